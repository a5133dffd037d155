from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import DataError
from cofactor.factors.bayes import Bayes
from cofactor.factors.bayes_known import Known
from cofactor.factors.bayes_steps import Items, user_step
from cofactor.factors.bayes_told import Evidence, Told
from cofactor.factors.team import Team

Matrix = NDArray[np.float64]
USERS, ITEMS = 300, 20
BAYES = Bayes(factors=2, epochs=3, threads=1)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    """More users than are solved for at a time; the last ones have no ratings."""
    random = np.random.default_rng(1)
    users, items = np.nonzero(random.random((USERS - 5, ITEMS)) < 0.3)
    return Ratings.from_rows(
        users, items, random.uniform(1, 5, len(users)), user_ids=np.arange(USERS),
        item_ids=np.arange(ITEMS), scale=Scale(1, 5),
    )  # fmt: skip


def told_of(combinations: Matrix, precision: Matrix, information: Matrix) -> Told:
    return Told(combinations, len(information), lambda users: Evidence(precision[users], information[users]))


def some_evidence() -> Evidence:
    random = np.random.default_rng(2)
    roots = random.normal(size=(USERS, 2, 2))
    return Evidence(roots @ roots.transpose(0, 2, 1), random.normal(size=(USERS, 2)))


def test_what_is_told_counts_beside_a_users_ratings(ratings: Ratings) -> None:
    random, by_user, evidence = np.random.default_rng(3), ratings.by_user, some_evidence()
    combinations = random.normal(size=(2, 3))
    told = told_of(combinations, *evidence)
    items = Items(np.zeros(ITEMS), random.normal(size=(ITEMS, 5)), random.uniform(0.1, 1, ITEMS))
    with Team(2) as team:
        tastes, _ = user_step(by_user, by_user.values, items, np.eye(5), 0.7, team, told)
    for user in range(USERS):
        part = slice(by_user.ptr[user], by_user.ptr[user + 1])
        x = items.vectors[by_user.index[part]]
        weighted = x / (0.7 + items.variance[by_user.index[part], None])
        lift = np.column_stack([combinations, np.zeros((2, 2))])
        precision = weighted.T @ x + np.eye(5) + lift.T @ evidence.precision[user] @ lift
        mean = np.linalg.solve(
            precision, weighted.T @ by_user.values[part] + lift.T @ evidence.information[user]
        )
        np.testing.assert_allclose(tastes.means[user], mean, rtol=1e-4, atol=1e-5)


def test_nothing_told_changes_nothing(ratings: Ratings) -> None:
    nothing = told_of(np.ones((1, 3)), np.zeros((USERS, 1, 1)), np.zeros((USERS, 1)))
    np.testing.assert_array_equal(
        BAYES.learn(ratings, told=nothing).model.user_vectors, BAYES.fit(ratings).user_vectors
    )


def test_a_user_without_ratings_is_what_others_tell(ratings: Ratings) -> None:
    generous = np.zeros((USERS, 1))
    generous[-1] = 1e3 * 0.7
    told = told_of(np.array([[1.0, 0, 0]]), np.full((USERS, 1, 1), 1e3), generous)
    model = BAYES.learn(ratings, told=told).model
    items = list(range(ITEMS))
    gap = np.asarray(model.predict(USERS - 1, items)) - np.asarray(model.predict(USERS - 2, items))
    assert float(gap.mean()) == pytest.approx(0.7, abs=0.1)


def test_a_fit_goes_on_where_an_earlier_one_ended(ratings: Ratings) -> None:
    whole = BAYES.fit(ratings, seed=4)
    first = replace(BAYES, epochs=1).learn(ratings, seed=4)
    rest = replace(BAYES, epochs=2).learn(ratings, start=first.beliefs, seed=99)
    np.testing.assert_array_equal(rest.model.user_vectors, whole.user_vectors)
    np.testing.assert_array_equal(rest.model.item_vectors, whole.item_vectors)


def test_beliefs_about_other_items_are_refused(ratings: Ratings) -> None:
    start = BAYES.learn(ratings).beliefs
    with pytest.raises(DataError, match="about 20 items with 5 coordinates; there are 19 with 5"):
        BAYES.learn(ratings.select(items=slice(0, 19)), start=start)
    with pytest.raises(DataError, match="Start from a fit with the same items, features and factors"):
        replace(BAYES, factors=3).learn(ratings, start=start)


def test_what_is_told_about_others_is_refused(ratings: Ratings) -> None:
    evidence = some_evidence()
    with pytest.raises(DataError, match="about 299 users and 3 coordinates; the model has 300 and 3"):
        BAYES.learn(ratings, told=told_of(np.ones((2, 3)), evidence.precision[1:], evidence.information[1:]))
    with pytest.raises(DataError, match="300 users and 4 coordinates"):
        BAYES.learn(ratings, told=told_of(np.ones((2, 4)), *evidence))


def test_numbers_that_are_none_are_refused(ratings: Ratings) -> None:
    evidence = some_evidence()
    evidence.information[USERS - 1, 0] = np.nan
    with pytest.raises(DataError, match="must be finite numbers"):
        BAYES.learn(ratings, told=told_of(np.ones((2, 3)), *evidence))


def test_items_elsewhere_are_described_as_those_at_home(ratings: Ratings) -> None:
    random = np.random.default_rng(5)
    features = np.column_stack([random.normal(1990, 30, ITEMS), random.choice([0.0, 1.0], ITEMS)])
    known = Known.of(ratings, features, latent=2)
    bias = random.normal(size=ITEMS)
    centred = bias - np.average(bias, weights=known.counts)
    elsewhere = known.elsewhere(features, known.popularity, centred)
    np.testing.assert_allclose(elsewhere, known.vectors(bias)[:, :5])
