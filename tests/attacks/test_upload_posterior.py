from dataclasses import replace

import numpy as np
import pytest

from cofactor.attacks.knowledge import Knowledge
from cofactor.attacks.upload_posterior import Posterior
from cofactor.attacks.uploads import Upload, with_laplace
from cofactor.recipes.multiview_weights import InclUnc, ObsOnly, SampledUnrated, Unrated
from tests.attacks.devices import KINDS, PUBLIC, answers, made


def posterior(upload: Upload, noise: float = 0.01, knowledge: Knowledge = PUBLIC) -> Posterior:
    return Posterior(upload=upload, knowledge=knowledge, noise=noise)


@pytest.mark.parametrize("unrated", KINDS)
def test_the_users_own_vector_tells_everything(unrated: Unrated) -> None:
    upload, row, vector = made(unrated)
    given = posterior(upload, 1e-4)
    chances = given.chances(vector)
    values = given.items.values[chances.ratings.argmax(axis=1)]
    np.testing.assert_array_equal(values, np.nan_to_num(row)[upload.sent_items])
    np.testing.assert_array_equal(given.answered(vector, chances), answers(1, seed=0)[0])
    np.testing.assert_allclose(chances.ratings.sum(axis=1), 1)


@pytest.mark.parametrize("unrated", KINDS)
def test_other_vectors_are_less_likely(unrated: Unrated) -> None:
    upload, _, vector = made(unrated)
    noisy = with_laplace(upload, 0.05, np.random.default_rng(1))
    given, random = posterior(noisy, 0.05), np.random.default_rng(2)
    best = given.log(vector)
    assert all(given.log(vector * (1 + 0.5 * random.normal(0, 1, len(vector)))) < best for _ in range(20))


def test_best_vectors_fit_the_ratings_that_they_imply() -> None:
    upload, _, vector = made(ObsOnly())
    stepped = replace(upload, known=replace(upload.known, update="sgd"))
    # At the true vector the equation holds; half as long a vector misses it by far.
    gain = [posterior(upload).log(each) - posterior(stepped).log(each) for each in (vector, 0.5 * vector)]
    assert gain[0] > gain[1] + 10


def test_what_a_row_can_stand_for() -> None:
    known = Knowledge(values=(1, 2), common=(0.25, 0.75), rated=0.2)

    def levels(unrated: Unrated, *, everywhere: bool = False) -> list[tuple[float, float, float]]:
        upload, _, _ = made(unrated)
        upload = replace(upload, known=replace(upload.known, everywhere=everywhere))
        items = posterior(upload, knowledge=known).items
        chances = np.exp(items.chances[0]).round(9)
        return list(zip(items.values.tolist(), items.weights.tolist(), chances.tolist(), strict=True))

    assert levels(ObsOnly()) == [(1, 1, 0.25), (2, 1, 0.75)]
    assert levels(ObsOnly(), everywhere=True) == [(1, 1, 0.05), (2, 1, 0.15), (0, 0, 0.8)]
    assert levels(InclUnc(alpha=0.3)) == [(1, 1, 0.05), (2, 1, 0.15), (0, 0.3, 0.8)]
    assert levels(InclUnc(alpha=0.3), everywhere=True) == levels(InclUnc(alpha=0.3))
    sampled = SampledUnrated(alpha=0.3, rho=1.0)
    assert levels(sampled) == [(1, 1, 0.125), (2, 1, 0.375), (0, 0.3, 0.5)]
    assert levels(sampled, everywhere=True) == [(1, 1, 0.05), (2, 1, 0.15), (0, 0.3, 0.2), (0, 0, 0.6)]
    assert levels(SampledUnrated(rho=0.0)) == levels(ObsOnly())


def test_missing_attributes_stay_missing_and_numbers_are_told() -> None:
    upload, _, vector = made(ObsOnly())
    rows, sides = upload.attribute_rows.copy(), upload.attributes
    rows[:3] = 0.0  # the first question was not answered
    number = -1.25
    rows = np.vstack([rows, (number - sides[0] @ vector) * vector])
    upload = replace(upload, attribute_rows=rows, attributes=np.vstack([sides, sides[:1]]))
    given = posterior(upload, 1e-4, replace(PUBLIC, numbers=(5,)))
    found = given.answered(vector, given.chances(vector))
    assert np.isnan(found[:3]).all()
    np.testing.assert_array_equal(found[3:5], answers(1, seed=0)[0][3:])
    assert found[5] == pytest.approx(number)


def test_an_answer_that_the_coding_does_not_know_is_none() -> None:
    upload, _, vector = made(ObsOnly())
    rows = upload.attribute_rows.copy()
    rows[:3] = -(upload.attributes[:3] @ vector)[:, None] * vector  # 0 in all columns of the question
    given = posterior(replace(upload, attribute_rows=rows), 1e-4)
    assert not given.answered(vector, given.chances(vector))[:3].any()


def test_where_noise_drowns_everything_what_is_common_is_guessed() -> None:
    upload, _, vector = made(ObsOnly())
    common = Knowledge(values=(1, 2, 3, 4, 5), common=(0.1, 0.1, 0.1, 0.6, 0.1), groups=PUBLIC.groups)
    given = posterior(upload, 1e6, replace(common, shares=(0.2, 0.5, 0.3, 0.4, 0.6)))
    chances = given.chances(vector)
    np.testing.assert_allclose(chances.ratings, np.tile([0.1, 0.1, 0.1, 0.6, 0.1], (19, 1)), atol=1e-3)
    np.testing.assert_array_equal(given.answered(vector, chances), [0, 1, 0, 0, 1])
