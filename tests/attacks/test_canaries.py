"""Canaries in all recipes: none is told apart better than was promised, and all are where there is no noise."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from cofactor.attacks.canaries import RecipeTarget
from cofactor.data import partition
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import ConfigError
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.privacy.budget import Adjacency, Budget, Unit
from cofactor.privacy.one_run import judged
from cofactor.randomness import InsecureRandom
from cofactor.recipes.alone import Alone
from cofactor.recipes.central import CentralDPSGD
from cofactor.recipes.hdpmf import HDPMF
from cofactor.recipes.hdpmf_published import DPMF
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.item_rounds import ItemRound
from cofactor.recipes.langevin import DPSGLD
from cofactor.recipes.local_reports import LocalReports
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.named import classes
from cofactor.recipes.objective import ObjectivePerturbation
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.personal_biases import PersonalBiases
from cofactor.recipes.pooled import Pooled
from cofactor.recipes.projected import ProjectedMF
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum
from cofactor.recipes.vertical import VerticalMF
from cofactor.recipes.vertical_taste import VerticalTaste

CANARIES = 80
ROUNDS = (ItemRound(share=0.6, count_weight=1.0), ItemRound(share=0.4, count_weight=0.5))
FACTORS = (*ROUNDS, ItemRound(share=0.3, count_weight=0.2, factors=2, spread_share=0.02))


class Case(NamedTuple):
    """A recipe, the federation it is for, and what it protects."""

    recipe: Any
    kind: str
    unit: Unit = "user"
    adjacency: Adjacency = "empty"
    loose: float = 1000.0
    """An epsilon at which there is hardly any noise left."""


CASES = {
    "shared biases": Case(SharedBiases(item_rounds=ROUNDS), "on-device"),
    "shared biases, plain": Case(SharedBiases(item_rounds=ROUNDS, aggregate=PlainSum()), "horizontal"),
    "shared biases, mixed": Case(SharedBiases(item_rounds=ROUNDS, reduction=1.5), "on-device"),
    "secure als": Case(SecureALS(item_rounds=FACTORS), "on-device"),
    "vertical taste": Case(VerticalTaste(), "vertical", "rating"),
    "vertical taste, summed": Case(VerticalTaste(aggregate=IdealSum()), "vertical", "rating"),
    "personal biases": Case(PersonalBiases(), "on-device", "rating"),
    "personal biases, values": Case(PersonalBiases(), "on-device", "rating", "value"),
    "vertical mf": Case(VerticalMF(rounds=3, factors=3), "vertical", "rating"),
    "vertical mf, users": Case(VerticalMF(rounds=3, factors=3), "vertical"),
    "vertical mf, summed": Case(VerticalMF(rounds=3, aggregate=IdealSum()), "vertical", "rating"),
    "horizontal mf": Case(HorizontalMF(rounds=2, local_steps=3, factors=3), "horizontal"),
    "horizontal mf, replaced": Case(HorizontalMF(rounds=3, factors=3), "horizontal", adjacency="replace"),
    "horizontal mf, sampled": Case(HorizontalMF(rounds=20, factors=3, sampling=0.3), "horizontal"),
    "horizontal mf, summed": Case(HorizontalMF(rounds=3, factors=3, aggregate=SecureSum()), "horizontal"),
    "on-device mf": Case(OnDeviceMF(rounds=3, most_ratings=6), "on-device"),
    "local reports": Case(LocalReports(factors=4, rounds=8, rows=16), "on-device"),
    "local reports, replaced": Case(
        LocalReports(factors=4, rounds=8, rows=16), "on-device", adjacency="replace"
    ),
    "projected mf": Case(ProjectedMF(rounds=4), "on-device"),
    "multi view": Case(MultiViewMF(rounds=6), "on-device"),
    "hdpmf": Case(HDPMF(), "on-device"),
    "central dpsgd": Case(CentralDPSGD(rounds=3), "one party"),
    "dp-sgld": Case(DPSGLD(rounds=6, local_steps=2, sampling=0.3, factors=3), "vertical", "rating"),
    "dp-sgld, users": Case(DPSGLD(rounds=6, local_steps=2, sampling=0.3, factors=3), "vertical"),
}
UNPROMISED = {
    "objective perturbation": Case(ObjectivePerturbation(factors=4), "vertical"),
    "dpmf as published": Case(DPMF.as_published(epsilon=1000.0, rate=0.01, epochs=10), "on-device"),
    "horizontal mf without a budget": Case(HorizontalMF(rounds=2, factors=3), "horizontal"),
}
COINS = np.random.default_rng(5).random(CANARIES) < 0.5


def ratings() -> Ratings:
    random = np.random.default_rng(3)
    users, items = np.divmod(random.permutation(40 * 20)[:400], 20)
    return Ratings.from_rows(
        users,
        items,
        random.integers(1, 6, 400).astype(np.float32),
        user_ids=np.arange(40),
        item_ids=np.arange(20),
        scale=Scale(1, 5),
    )


def federation(kind: str) -> Federation:
    everybody = ratings()
    if kind == "on-device":
        return Federation.on_device(everybody)
    if kind == "one party":
        return Federation.horizontal([Party(name="all", ratings=everybody)], simulated=True)
    make: Callable[..., list[Ratings]] = getattr(partition, kind)
    parties = [Party(name=f"p{k}", ratings=part) for k, part in enumerate(make(everybody, 3, seed=1))]
    return getattr(Federation, kind)(parties, simulated=True)


def target(case: Case, epsilon: float | None, **settings: Any) -> RecipeTarget:
    budget = None
    if epsilon is not None:
        budget = Budget(epsilon=epsilon, delta=1e-6, unit=case.unit, adjacency=case.adjacency)
    return RecipeTarget(
        recipe=case.recipe,
        federation=federation(case.kind),
        budget=budget,
        canaries=CANARIES,
        **settings,
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::cofactor.errors.PrivacyWarning")
def test_canaries_do_not_refute_what_a_recipe_promises(name: str) -> None:
    played = target(CASES[name], 8.0).play(COINS, InsecureRandom(1))
    assert np.isfinite(played.scores).all()
    assert len(np.unique(played.scores)) > CANARIES / 2
    assert played.promised is not None
    assert not judged(played.scores, COINS, played.promised, confidence=0.999).refuted


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::cofactor.errors.PrivacyWarning")
def test_canaries_are_told_apart_where_there_is_hardly_any_noise(name: str) -> None:
    case = CASES[name]
    played = target(case, case.loose).play(COINS, InsecureRandom(2))
    found = judged(played.scores, COINS, None)
    assert found.right >= 0.8 * found.guesses
