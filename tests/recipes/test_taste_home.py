from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings, Scale
from cofactor.data.split import by_fraction
from cofactor.factors.bayes import Bayes
from cofactor.factors.bayes_told import Evidence, Told
from cofactor.factors.model import Factors
from cofactor.recipes.taste_home import MISMATCHES, fit_at_home

BAYES = Bayes(factors=1, epochs=4, threads=1)
USERS, ITEMS = 300, 30


def make_ratings(each: int, users: int = USERS) -> tuple[Ratings, NDArray[np.float64]]:
    """Users who differ in their generosity only, and by how much."""
    random = np.random.default_rng(each)
    levels = random.normal(0, 0.8, users)
    user = np.repeat(np.arange(users), each)
    item = np.concatenate([random.choice(ITEMS, each, replace=False) for _ in range(users)])
    values = np.clip(3 + levels[user] + random.normal(0, 0.6, len(user)), 1, 5)
    ratings = Ratings.from_rows(
        user, item, values, user_ids=np.arange(users), item_ids=np.arange(ITEMS), scale=Scale(1, 5)
    )
    return ratings, levels


def said(levels: NDArray[np.float64], precision: float) -> Told:
    """The others say how generous each user is: of 1, popularity and bias, it is about the first."""

    def about(users: slice) -> Evidence:
        part = levels[users, None]
        return Evidence(np.full((len(part), 1, 1), precision), precision * part)

    return Told(np.array([[1.0, 0.0, 0.0]]), len(levels), about)


def error(model: Factors, test: Ratings) -> float:
    wrong = test.values - model.predict_rows(test.users, test.items)
    return float(np.mean(wrong.astype(np.float64) ** 2))


def test_a_party_listens_to_those_who_know_its_users() -> None:
    ratings, levels = make_ratings(5)
    train, test = by_fraction(ratings, 0.2, seed=1)
    found = fit_at_home(train, lambda mismatch: said(levels, 1 / mismatch), BAYES)
    assert found.mismatch == min(MISMATCHES)
    assert error(found.model, test) < 0.9 * error(BAYES.fit(train), test)


def test_a_party_does_not_listen_to_those_who_know_nothing() -> None:
    ratings, levels = make_ratings(5)
    wrong = np.random.default_rng(9).permutation(levels)
    heard = fit_at_home(ratings, lambda mismatch: said(wrong, 5 / mismatch), BAYES)
    silent = fit_at_home(ratings, lambda mismatch: said(wrong, 0.0 * mismatch), BAYES)
    assert heard.mismatch is None
    np.testing.assert_array_equal(heard.model.user_vectors, silent.model.user_vectors)


def test_a_party_with_too_few_ratings_to_tell_stays_alone() -> None:
    ratings, levels = make_ratings(2, users=20)
    assert fit_at_home(ratings, lambda mismatch: said(levels, 1 / mismatch), BAYES).mismatch is None


def test_one_rating_is_enough() -> None:
    one = Ratings.from_arrays([1], [2], [4.0], scale=Scale(1, 5))
    for seed in range(20):
        found = fit_at_home(one, lambda _: said(np.zeros(1), 1.0), BAYES, seed=seed)
        assert np.isfinite(found.model.predict(1, [2])[0])


def test_without_others_the_model_is_about_as_good_as_alone() -> None:
    train, test = by_fraction(make_ratings(12)[0], 0.2, seed=1)
    nothing = fit_at_home(train, lambda _: said(np.zeros(USERS), 0.0), replace(BAYES, epochs=12))
    assert error(nothing.model, test) == pytest.approx(
        error(replace(BAYES, epochs=12).fit(train), test), abs=0.004
    )


def test_the_same_seed_gives_the_same_model() -> None:
    ratings, levels = make_ratings(5)
    first, second = (fit_at_home(ratings, lambda m: said(levels, 1 / m), BAYES, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.model.user_vectors, second.model.user_vectors)
