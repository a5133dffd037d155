"""HDPMF on MovieLens 100K, as the paper splits it: ten test ratings of each user."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cofactor.data.files import read_ratings
from cofactor.data.prepare import active_users
from cofactor.data.ratings import Ratings
from cofactor.data.split import leave_out
from cofactor.factors.baselines import UserMean
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.privacy.budget import Budget
from cofactor.privacy.weights import HDPMF_ITEMS, HDPMF_USERS, Weights
from cofactor.recipes.hdpmf import HDPMF
from cofactor.recipes.hdpmf_fit import Method, PerRating
from cofactor.recipes.train import train

pytestmark = pytest.mark.slow
SEEDS = (1, 2)
Data = Callable[[str], Path]


def mse(model: Factors, test: Ratings) -> float:
    return float(np.mean((model.predict_rows(test.users, test.items) - test.values) ** 2))


def measured(ratings: Ratings, settings: PerRating) -> float:
    """Return the mean squared error at the privacy specification of Table 2, over some seeds."""
    found = []
    for seed in SEEDS:
        learn, test = leave_out(ratings, 10, seed=seed)
        users = Weights.drawn(HDPMF_USERS, seed=seed).of(ratings.user_ids)
        items = Weights.drawn(HDPMF_ITEMS, seed=seed + 1000).of(ratings.item_ids)
        found.append(mse(settings.fit(learn, users, items, seed=seed), test))
    return float(np.mean(found))


def prepared(real_data: Data) -> Ratings:
    return active_users(read_ratings(real_data("ml-100k.inter")), 20)


TABLE_3: dict[tuple[Method, int], float] = {
    ("mf", 10): 0.9269,
    ("mf", 5): 0.9231,
    ("hdpmf", 10): 1.4690,
    ("hdpmf", 5): 1.2257,
    ("pdpmf", 10): 1.5623,
    ("pdpmf", 5): 1.2475,
}
RATES: dict[Method, float] = {"mf": 0.01, "hdpmf": 0.005, "pdpmf": 0.005}


def test_noise_that_is_fresh_in_every_epoch_makes_table_3(real_data: Data) -> None:
    ratings = prepared(real_data)
    for (method, factors), paper in TABLE_3.items():
        settings = PerRating(method=method, factors=factors, rate=RATES[method])
        assert measured(ratings, settings) == pytest.approx(paper, rel=0.05), (method, factors)


def test_noise_that_is_drawn_once_as_in_theorem_2_does_not(real_data: Data) -> None:
    ratings = prepared(real_data)
    for factors, expected in ((10, 2.8), (5, 2.0)):
        settings = PerRating(method="hdpmf", factors=factors, rate=0.005, noise="fixed")
        assert measured(ratings, settings) == pytest.approx(expected, rel=0.1)


def test_without_rescaling_it_is_worse_than_saying_the_same_to_everybody(real_data: Data) -> None:
    ratings = prepared(real_data)
    unscaled = PerRating(method="hdpmf", factors=10, rate=0.005, rescaled=False)
    assert measured(ratings, unscaled) > 3.0


def test_what_can_be_promised_is_hardly_better_than_users_own_means(real_data: Data) -> None:
    ratings, found, means = prepared(real_data), [], []
    for seed in SEEDS:
        learn, test = leave_out(ratings, 10, seed=seed)
        budget = Budget(epsilon=1.0, delta=1e-9, unit="user")
        run = train(HDPMF(), Federation.on_device(learn), budget=budget, seed=seed)
        found.append(mse(run.homes["devices"], test))
        means.append(mse(UserMean().fit(learn), test))
    assert 0.95 < np.mean(found) / np.mean(means) < 1.01
