"""What `MultiViewMF` gets on MovieLens, a fifth of each user's ratings held out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.attributes import UserAttributes
from cofactor.data.coding import published_coding
from cofactor.data.files import read_ratings
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings, Scale
from cofactor.data.split import by_fraction
from cofactor.data.tables import read_items, read_users
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.privacy.budget import Budget
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_weights import InclUnc
from cofactor.recipes.train import train

Find = Callable[[str], Path]

pytestmark = pytest.mark.slow


def divided(ratings: Path, users: Path, items: Path) -> tuple[Federation, Ratings, Ratings]:
    """Return devices with side tables, and the ratings that they learn from and are tested on."""
    learn, test = by_fraction(read_ratings(ratings), 0.2, seed=1)
    table = read_users(users)
    told = UserAttributes.of_table(table, published_coding(table))
    devices = Federation.on_device(learn, scale=Scale(1, 5)).with_user_attributes(told)
    return devices.with_public_items(PublicItems.coded(read_items(items))), learn, test


def ndcg(model: Factors, test: Ratings) -> float:
    """Return how well each user's own test items are put in order: the first ten, gains 2^r - 1."""
    found, rated = [], test.by_user
    weights = 1 / np.log2(np.arange(2, 12))
    for user in np.flatnonzero(rated.sizes):
        part = slice(rated.ptr[user], rated.ptr[user + 1])
        scores = model.item_vectors[rated.index[part]] @ model.user_vectors[user]
        gains = 2.0 ** rated.values[part] - 1
        best, ideal = gains[np.argsort(-scores, kind="stable")][:10], np.sort(gains)[::-1][:10]
        found.append((best * weights[: len(best)]).sum() / (ideal * weights[: len(ideal)]).sum())
    return float(np.mean(found))


def precision(lists: NDArray[Any], test: Ratings) -> float:
    """Return which part of what is recommended users rated 4 or 5 in the test."""
    rated = test.by_user
    liked = [
        set(rated.index[part][rated.values[part] >= 4].tolist())
        for part in (slice(rated.ptr[user], rated.ptr[user + 1]) for user in range(test.user_count))
    ]
    hits = [len(own & set(best)) / 10 for own, best in zip(liked, lists.tolist(), strict=True)]
    return float(np.mean(hits))


def test_items_are_ranked_as_well_as_published(real_data: Find) -> None:
    path = real_data("ml-1m.zip")
    federation, _, test = divided(path, path, path)
    run = train(MultiViewMF(), federation)
    assert ndcg(run.homes["devices"], test) == pytest.approx(0.83, abs=0.01)


def test_recommendations_with_noise_are_better_than_the_most_popular_items(real_data: Find) -> None:
    federation, learn, test = divided(*(real_data(f"ml-100k.{end}") for end in ("inter", "user", "item")))
    # Of several runs the mean is 0.182 and the deviation 0.009; the most popular items have 0.129.
    budget = Budget(epsilon=10.0, delta=1e-5, unit="user")
    run = train(MultiViewMF(unrated=InclUnc()), federation, budget=budget)
    private = precision(run.homes["devices"].top_items(slice(None), 10)[0], test)
    popular = np.tile(learn.by_item.sizes.astype(np.float64), (learn.user_count, 1))
    popular[learn.users, learn.items] = -1
    assert private > precision(np.argsort(-popular, axis=1, kind="stable")[:, :10], test)
