import numpy as np
import pytest

from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings
from cofactor.papers.privmvmf_baselines import (
    FEATURE_MEAN,
    FEATURE_POPULARITY,
    ITEM_MEAN,
    NOTES,
    OWN_RIDGE,
    POPULARITY,
    RANDOM,
    baselines,
)
from cofactor.papers.privmvmf_measures import measured
from cofactor.papers.privmvmf_numbers import COLD_ITEM, COLD_USER, EXISTING, NDCG, SCENARIOS
from cofactor.papers.privmvmf_splits import parts


def told() -> tuple[Ratings, PublicItems]:
    """Users like the first half of a genre, 0 to 39, better than the second, and rate it more often."""
    chance = np.random.default_rng(5)
    good = np.arange(80) < 40
    rated = chance.random((60, 80)) < np.where(good, 0.6, 0.2)
    users, items = np.nonzero(rated)
    values = np.where(good[items], chance.integers(3, 6, len(items)), chance.integers(1, 4, len(items)))
    columns = np.column_stack([good, ~good]).astype(np.float32)
    public = PublicItems.of_numbers(np.arange(80), columns, names=("good", "bad"), source="invented")
    ratings = Ratings.from_rows(users, items, values, user_ids=np.arange(60), item_ids=np.arange(80))
    return ratings, public


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_baseline_is_about_the_tested_users_and_items(scenario: str) -> None:
    ratings, items = told()
    own = parts(ratings, scenario, 1)
    found = {}
    for name, baseline in baselines(scenario).items():
        model = baseline(own, items, 1)
        np.testing.assert_array_equal(model.user_ids, own.test.user_ids)
        np.testing.assert_array_equal(model.item_ids, own.test.item_ids)
        assert name in NOTES
        found[name] = measured(model, own.rated, own.test)[NDCG]
    better = [name for name in found if name != RANDOM]
    assert all(found[name] > found[RANDOM] + 0.02 for name in better)


def test_of_new_items_only_features_tell_anything() -> None:
    assert set(baselines(EXISTING)) == set(baselines(COLD_USER)) == {RANDOM, POPULARITY, ITEM_MEAN}
    assert set(baselines(COLD_ITEM)) == {RANDOM, FEATURE_POPULARITY, FEATURE_MEAN, OWN_RIDGE}
    ratings, items = told()
    own = parts(ratings, COLD_ITEM, 2)
    good = own.test.item_ids < 40
    for name in (FEATURE_POPULARITY, FEATURE_MEAN):
        scores = baselines(COLD_ITEM)[name](own, items, 1).item_bias
        # Two features, two values: all items of a kind are alike.
        assert np.ptp(scores[good]) < 1e-5
        assert np.ptp(scores[~good]) < 1e-5
        assert scores[good].min() > scores[~good].max()


def test_a_mean_told_by_features_is_the_mean_rating_of_their_items() -> None:
    ratings, items = told()
    own = parts(ratings, COLD_ITEM, 2)
    scores = baselines(COLD_ITEM)[FEATURE_MEAN](own, items, 1).item_bias
    of_kind = own.train.values[own.train.item_ids[own.train.items] < 40].mean()
    # The penalty of 15 ratings is small beside some thousand.
    assert scores[own.test.item_ids < 40] == pytest.approx(of_kind, abs=0.05)


def test_random_recommendations_find_each_item_equally_often() -> None:
    ratings, items = told()
    own = parts(ratings, COLD_USER, 1)
    hits = np.zeros(80)
    for seed in range(300):
        model = baselines(COLD_USER)[RANDOM](own, items, seed)
        hits += np.bincount(model.top_items(slice(0, 1), 10)[0][0], minlength=80)
    # Each count is binomial with mean 37.5; that any of 80 is beyond 6.5 deviations has a chance below 1e-7,
    # and seeds are fixed.
    assert np.abs(hits - 37.5).max() < 6.5 * np.sqrt(37.5 * 0.875)
