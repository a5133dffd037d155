"""What devices and parties get by `SecureALS` on MovieLens, where users are protected."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.files import read_ratings
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.data.tables import side_tables
from cofactor.evaluate.ranking import ranking
from cofactor.factors.baselines import PersonalRidge, Popularity, UserItemBias, UserMean
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.papers.cells import replicated
from cofactor.privacy import noise
from cofactor.privacy.budget import Budget
from cofactor.randomness import SecureRandom
from cofactor.recipes.alone import Alone
from cofactor.recipes.central_steps import counted
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.train import train
from cofactor.recipes.usual_steps import one_release
from tests.recipes.parties import horizontal, mse

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


@pytest.mark.parametrize(("epsilon", "bar"), [(1.0, 0.77), (4.0, 0.755), (10.0, 0.75)])
def test_ten_times_as_many_devices_get_more(real_data: Find, epsilon: float, bar: float) -> None:
    path = real_data("ml-1m.zip")
    learn, test = replicated(*by_fraction(read_ratings(path), 0.1, seed=0), 10, seed=0)
    budget = Budget(epsilon=epsilon, delta=1e-7, unit="user")
    run = train(SecureALS(public_items=columns_of(path)), Federation.on_device(learn), budget=budget)
    assert mse(run.homes, Federation.on_device(test)) <= bar


@pytest.mark.parametrize("public", [False, True])
def test_forty_parties_together_beat_the_best_that_each_has_alone(real_data: Find, public: bool) -> None:
    path = real_data("ml-1m.zip")
    learn, test = (horizontal(part, 40) for part in by_fraction(read_ratings(path), 0.1, seed=0))
    columns = columns_of(path) if public else None
    known = learn if columns is None else learn.with_public_items(columns)
    least = min(
        mse(Alone().fit(known), test),
        mse({each.name: UserItemBias().fit(each.ratings) for each in learn.parties}, test),
    )
    budget = Budget(epsilon=1.0, delta=1e-6, unit="user")
    # What all know together is enough; models that parties fit beside it take ten times as long.
    run = train(SecureALS(public_items=columns, home=UsersOnly()), learn, budget=budget)
    assert mse(run.homes, test) < least


def noisy_popularity(learn: Ratings, budget: Budget) -> Factors:
    """Return counts to which every user adds a message of length 1, with all of the budget in their noise."""
    deviation = one_release(budget, Federation.on_device(learn).facts)
    counts = counted(learn.by_user, learn.item_count).value[:, 0]
    noisy = counts + noise.gaussian(counts.shape, deviation, SecureRandom())
    return replace(Popularity().fit(learn), item_bias=noisy.astype(np.float32))


def lists(path: Path, seed: int) -> NDArray[np.float64]:
    """Return precision and recall at epsilon 1, of our lists and of noisy popularity."""
    learn, test = by_fraction(read_ratings(path), 0.2, seed=seed)
    budget = Budget(epsilon=1.0, delta=DELTAS[path.name], unit="user")
    run = train(SecureALS(public_items=columns_of(path)), Federation.on_device(learn), budget=budget)
    found = [
        ranking(model, learn, test, threshold=4, resamples=1)
        for model in (run.homes["devices"], noisy_popularity(learn, budget))
    ]
    return np.array([[each.precision.value, each.recall.value] for each in found])


def test_lists_reach_what_was_promised_and_beat_popularity_at_the_same_epsilon(real_data: Find) -> None:
    ours, popular = np.mean([lists(real_data("ml-100k.inter"), seed) for seed in range(3)], axis=0)
    assert (ours >= 0.18).all()
    assert (popular < 0.15).all()


def test_lists_of_more_users_beat_popularity_at_the_same_epsilon_too(real_data: Find) -> None:
    ours, popular = lists(real_data("ml-1m.zip"), 0)
    assert (ours > popular).all()
