"""What devices get by `SecureALS` on MovieLens, where users are protected."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cofactor.data.files import read_ratings
from cofactor.data.public_items import PublicItems
from cofactor.data.split import by_fraction
from cofactor.data.tables import side_tables
from cofactor.evaluate.ranking import ranking
from cofactor.factors.baselines import PersonalRidge, Popularity, UserMean
from cofactor.federation.federation import Federation
from cofactor.privacy.budget import Budget
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.train import train
from tests.recipes.parties import mse

Find = Callable[[str], Path]

pytestmark = pytest.mark.slow

DELTAS = {"ml-1m.zip": 1e-6, "ml-100k.inter": 1e-5}


def columns_of(path: Path) -> PublicItems:
    films = side_tables(path)[1]
    assert films is not None
    return PublicItems.of_table(films)


def error(path: Path, epsilon: float, *, public: bool, seed: int = 0) -> float:
    """Return the error on a tenth of each user's ratings that was held out."""
    learn, test = by_fraction(read_ratings(path), 0.1, seed=seed)
    recipe = SecureALS(public_items=columns_of(path) if public else None)
    budget = Budget(epsilon=epsilon, delta=DELTAS[path.name], unit="user")
    run = train(recipe, Federation.on_device(learn), budget=budget)
    assert 0.99 * epsilon < (run.guarantee.epsilon or 0) <= epsilon
    return mse(run.homes, Federation.on_device(test))


@pytest.mark.parametrize(
    ("name", "public", "epsilon", "bar"),
    [
        ("ml-1m.zip", False, 1.0, 0.88),
        ("ml-1m.zip", False, 4.0, 0.82),
        ("ml-1m.zip", False, 10.0, 0.81),
        ("ml-1m.zip", True, 1.0, 0.82),
        ("ml-1m.zip", True, 4.0, 0.78),
        ("ml-1m.zip", True, 10.0, 0.765),
        ("ml-100k.inter", True, 1.0, 0.945),
        ("ml-100k.inter", True, 4.0, 0.875),
        ("ml-100k.inter", True, 10.0, 0.855),
    ],
)
def test_devices_reach_what_was_promised(
    real_data: Find, name: str, public: bool, epsilon: float, bar: float
) -> None:
    assert error(real_data(name), epsilon, public=public) <= bar


@pytest.mark.parametrize("name", DELTAS)
@pytest.mark.parametrize("public", [False, True])
def test_taking_part_costs_nobody_anything_even_at_little_epsilon(
    real_data: Find, name: str, public: bool
) -> None:
    path = real_data(name)
    learn, test = by_fraction(read_ratings(path), 0.1, seed=0)
    alone = [UserMean().fit(learn)]
    if public:
        alone.append(PersonalRidge().fit(learn, features=columns_of(path).rows(learn.item_ids)))
    least = min(mse({"devices": model}, Federation.on_device(test)) for model in alone)
    assert error(path, 0.5, public=public) <= least + 0.01


def test_lists_are_better_than_popularity_at_epsilon_1(real_data: Find) -> None:
    path = real_data("ml-100k.inter")
    found = []
    for seed in range(3):
        learn, test = by_fraction(read_ratings(path), 0.2, seed=seed)
        budget = Budget(epsilon=1.0, delta=1e-5, unit="user")
        run = train(SecureALS(public_items=columns_of(path)), Federation.on_device(learn), budget=budget)
        lists = ranking(run.homes["devices"], learn, test, threshold=4)
        popular = ranking(Popularity().fit(learn), learn, test, threshold=4)
        found.append((lists.precision.value, lists.recall.value, popular.precision.value))
    precision, recall, popularity = np.mean(found, axis=0)
    assert precision >= 0.18
    assert recall >= 0.18
    assert popularity < 0.15
