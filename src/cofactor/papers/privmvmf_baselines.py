"""What PrivMVMF's numbers must be seen beside: chance, popularity and means, for known and for new items.

None of them knows anything of a user but what she has rated, and all but the last are the same for everybody.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings
from cofactor.factors.baselines import ItemMean, PersonalRidge, Popularity, balanced
from cofactor.factors.model import Factors
from cofactor.papers.privmvmf_numbers import COLD_ITEM
from cofactor.papers.privmvmf_splits import Parts
from cofactor.randomness import Seeds

RANDOM, POPULARITY, ITEM_MEAN = "random", "popularity", "item mean"
FEATURE_POPULARITY, FEATURE_MEAN = "popularity by features", "item mean by features"
OWN_RIDGE = "user's own ridge on features"
NOTES = {
    RANDOM: "vectors that nothing was fitted to",
    POPULARITY: "how many users rated an item; not private",
    ITEM_MEAN: "the same for all users; not private",
    FEATURE_POPULARITY: "what the features of new items tell about it, by least squares; not private",
    FEATURE_MEAN: "what the features of new items tell about it, by least squares; not private",
    OWN_RIDGE: "every user by herself, on public features: nothing leaves her",
}
_CHANCES = 32
"""Length of random vectors."""
_DAMPING = 15.0
"""Penalty on squared slopes of features, counted in what is fitted: ratings, or items."""

Baseline = Callable[[Parts, PublicItems, int], Factors]
"""Makes a model of the test's users and items from parts, public items and a seed."""


def baselines(scenario: str) -> dict[str, Baseline]:
    """Return by name what exists in a scenario: of new items nobody has rated, only features tell."""
    if scenario == COLD_ITEM:
        return {
            RANDOM: _random,
            FEATURE_POPULARITY: _popularity_by_features,
            FEATURE_MEAN: _mean_by_features,
            OWN_RIDGE: _own_ridge,
        }
    return {
        RANDOM: _random,
        POPULARITY: lambda parts, _, __: _alike(parts.test, Popularity().fit(parts.train).item_bias),
        ITEM_MEAN: lambda parts, _, __: _alike(parts.test, ItemMean().fit(parts.train).item_bias),
    }


def _random(parts: Parts, items: PublicItems, seed: int) -> Factors:  # noqa: ARG001 (nothing is looked at)
    chance = Seeds(seed).generator("random recommendations")
    sizes = (parts.test.user_count, _CHANCES), (parts.test.item_count, _CHANCES)
    users, columns = (chance.standard_normal(size, np.float32) for size in sizes)
    plain = _alike(parts.test, np.zeros(parts.test.item_count))
    return replace(plain, user_vectors=users, item_vectors=columns)


def _popularity_by_features(parts: Parts, items: PublicItems, seed: int) -> Factors:  # noqa: ARG001
    counts = np.log1p(parts.train.by_item.sizes)
    return _alike(parts.test, _told(parts, items, counts, np.ones(len(counts))))


def _mean_by_features(parts: Parts, items: PublicItems, seed: int) -> Factors:  # noqa: ARG001
    counts = parts.train.by_item.sizes.astype(np.float64)
    sums = np.bincount(parts.train.items, parts.train.values, minlength=len(counts))
    return _alike(parts.test, _told(parts, items, sums / np.maximum(counts, 1), counts))


def _told(
    parts: Parts, items: PublicItems, wanted: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Fit a number of each known item to its features, and return what those of new items tell of it."""
    features, known = _features(parts, items), parts.train.item_count
    columns = np.column_stack([np.ones(len(features)), features])
    penalty = np.diag([0.0, *[_DAMPING] * features.shape[1]])
    weighted = columns[:known] * weights[:, None]
    slopes = np.linalg.solve(weighted.T @ columns[:known] + penalty, weighted.T @ wanted)
    return np.asarray(columns[known:] @ slopes)


def _own_ridge(parts: Parts, items: PublicItems, seed: int) -> Factors:
    train, test = parts.train, parts.test
    both = Ratings.from_rows(
        train.users,
        train.items,
        train.values,
        user_ids=train.user_ids,
        item_ids=np.concatenate([train.item_ids, test.item_ids]),
        scale=train.scale,
    )
    whole = PersonalRidge().fit(both, features=_features(parts, items).astype(np.float32), seed=seed)
    new = slice(train.item_count, None)
    return replace(
        _alike(test, whole.item_bias[new]),
        user_bias=whole.user_bias,
        user_vectors=whole.user_vectors,
        item_vectors=whole.item_vectors[new],
    )


def _features(parts: Parts, items: PublicItems) -> NDArray[np.float64]:
    """Return a row for each known item, then one for each new one."""
    return balanced(items.rows(np.concatenate([parts.train.item_ids, parts.test.item_ids])))


def _alike(test: Ratings, scores: NDArray[np.floating]) -> Factors:
    """Return the model that ranks the test's items in one order for everybody."""
    users, items = test.user_count, test.item_count
    return Factors(
        user_ids=test.user_ids,
        item_ids=test.item_ids,
        mean=0.0,
        user_bias=np.zeros(users, np.float32),
        item_bias=scores.astype(np.float32),
        user_vectors=np.zeros((users, 0), np.float32),
        item_vectors=np.zeros((items, 0), np.float32),
    )
