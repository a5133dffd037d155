from dataclasses import replace

import numpy as np
import pytest

from cofactor.attacks.rank_one import direction_of
from cofactor.attacks.scale_search import found_vector
from cofactor.attacks.upload_posterior import Posterior
from cofactor.attacks.uploads import Update, Upload, with_laplace
from cofactor.recipes.multiview_weights import ObsOnly, Unrated
from tests.attacks.devices import KINDS, PUBLIC, UPDATES, made, without_attributes


def searched(upload: Upload, noise: float) -> np.ndarray:
    posterior = Posterior(upload=upload, knowledge=PUBLIC, noise=noise)
    return found_vector(posterior, direction_of(posterior.everything))


@pytest.mark.parametrize("unrated", KINDS)
@pytest.mark.parametrize("update", UPDATES)
def test_the_length_of_a_users_vector_is_found_exactly(unrated: Unrated, update: Update) -> None:
    for seed in range(5):
        upload, _, vector = made(unrated, update, seed=seed)
        np.testing.assert_allclose(searched(upload, 1e-9), vector, rtol=1e-5, atol=1e-6)


def test_ratings_alone_tell_the_length() -> None:
    upload, _, vector = made(ObsOnly(), "sgd")
    np.testing.assert_allclose(searched(without_attributes(upload), 1e-9), vector, rtol=1e-5)


def test_rows_that_were_shortened_leave_enough() -> None:
    upload, _, vector = made(ObsOnly(), "at home", longest=3.0)
    lengths = np.linalg.norm(upload.item_rows[upload.sent_items], axis=1)
    assert 3 < (lengths < 2.999).sum() < len(lengths) - 3
    np.testing.assert_allclose(searched(without_attributes(upload), 1e-9), vector, rtol=1e-5)


@pytest.mark.parametrize("update", UPDATES)
def test_under_noise_the_whole_vector_is_fitted(update: Update) -> None:
    errors = []
    for seed in range(3):
        upload, _, vector = made(ObsOnly(), update, seed=seed)
        noisy = with_laplace(upload, 0.05, np.random.default_rng(seed))
        along = direction_of(Posterior(upload=noisy, knowledge=PUBLIC, noise=0.05).everything)
        along = along * (along @ vector)  # the right length along the direction that rows show
        found = searched(noisy, 0.05)
        errors.append([np.linalg.norm(each - vector) / np.linalg.norm(vector) for each in (found, along)])
    fitted, shown = np.mean(errors, axis=0)
    assert fitted < 0.05
    assert fitted < shown


def test_finer_scales_are_searched_more_finely() -> None:
    upload, row, vector = made(ObsOnly(), "sgd")
    halved = replace(PUBLIC, values=tuple(np.arange(1, 5.1, 0.5).tolist()))
    posterior = Posterior(upload=without_attributes(upload), knowledge=halved, noise=1e-9)
    found = found_vector(posterior, direction_of(posterior.everything))
    np.testing.assert_allclose(found, vector, rtol=1e-5)
    assert not np.isnan(row).all()
