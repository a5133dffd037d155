"""What `PersonalBiases` gives on MovieLens, at the privacy that HDPMF specifies (Table 2)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.data.files import read_ratings
from cofactor.data.split import leave_out
from cofactor.factors.baselines import UserMean
from cofactor.federation.federation import Federation
from cofactor.privacy.personal import PersonalBudget
from cofactor.recipes.personal_biases import PersonalBiases
from cofactor.recipes.train import train
from tests.recipes.parties import mse

Find = Callable[[str], Path]

pytestmark = pytest.mark.slow


def error(path: Path, seed: int, recipe: PersonalBiases, **settings: Any) -> float:
    """Return the error on ten ratings of each user."""
    learn, test = leave_out(read_ratings(path), 10, seed=seed)
    budget = PersonalBudget.as_published(seed=seed, delta=1e-9, **settings)
    run = train(recipe, Federation.on_device(learn), budget=budget)
    assert run.guarantee.epsilon == pytest.approx(budget.public.epsilon, rel=1e-12)
    return mse(run.homes, Federation.on_device(test))


@pytest.mark.parametrize(
    ("name", "settings", "co_rating", "bar"),
    [
        ("ml-100k.inter", {}, 0, 0.965),
        ("ml-100k.inter", {"adjacency": "empty"}, 0, 0.955),
        ("ml-100k.inter", {"mechanism": "sampling"}, 0, 0.975),
        ("ml-100k.inter", {}, 12, 0.91),
        ("ml-1m.zip", {}, 0, 0.87),
    ],
)
def test_personal_budgets_leave_predictions_good(
    real_data: Find, name: str, settings: dict[str, Any], co_rating: int, bar: float
) -> None:
    recipe = PersonalBiases(co_rating=co_rating)
    errors = [error(real_data(name), seed, recipe, **settings) for seed in range(5 if "100k" in name else 1)]
    assert np.mean(errors) < bar


def test_users_by_themselves_predict_far_worse(real_data: Find) -> None:
    learn, test = leave_out(read_ratings(real_data("ml-100k.inter")), 10, seed=0)
    alone = mse({"devices": UserMean().fit(learn)}, Federation.on_device(test))
    assert alone > 1.05
