"""Canaries in all recipes: told apart no better than was promised, and clearly where there is no noise."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from cofactor.attacks.canaries import RecipeTarget
from cofactor.data import partition
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import ConfigError
from cofactor.factors.sgd import SGD
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.privacy import noise
from cofactor.privacy.budget import Adjacency, Budget, Unit
from cofactor.privacy.one_run import OneRun, judged
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.weights import Weights
from cofactor.randomness import InsecureRandom
from cofactor.recipes import private_descent
from cofactor.recipes.alone import Alone
from cofactor.recipes.central import CentralDPSGD
from cofactor.recipes.clipping import GradientClipping
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
REPORTS = LocalReports(factors=4, rounds=8, rows=16)
FACTORS = (*ROUNDS, ItemRound(share=0.3, count_weight=0.2, factors=2, spread_share=0.02))


class Case(NamedTuple):
    """A recipe, the federation it is for, and what it protects."""

    recipe: Any
    kind: str
    unit: Unit = "user"
    adjacency: Adjacency = "empty"
    loose: float = 1000.0
    """An epsilon at which there is hardly any noise left."""


BIASES: dict[str, Any] = {"item_rounds": ROUNDS, "gain_share": 0.0}
STEPS: dict[str, Any] = {"rounds": 2, "factors": 3, "centre": 3.0}
SAMPLED: dict[str, Any] = {"rounds": 1, "local_steps": 8, "factors": 3, "sampling": 0.5}
CASES = {
    "shared biases": Case(SharedBiases(**BIASES), "on-device"),
    "shared biases, plain": Case(SharedBiases(**BIASES, aggregate=PlainSum()), "horizontal"),
    "shared biases, mixed": Case(SharedBiases(**BIASES, reduction=1.5), "on-device"),
    "secure als": Case(SecureALS(**(BIASES | {"item_rounds": FACTORS})), "on-device"),
    "vertical taste": Case(VerticalTaste(), "vertical", "rating"),
    "vertical taste, summed": Case(VerticalTaste(aggregate=IdealSum()), "vertical", "rating"),
    "personal biases": Case(PersonalBiases(), "on-device", "rating"),
    "personal biases, values": Case(PersonalBiases(), "on-device", "rating", "value"),
    "vertical mf": Case(VerticalMF(**STEPS), "vertical", "rating"),
    "vertical mf, users": Case(VerticalMF(**STEPS), "vertical"),
    "vertical mf, summed": Case(VerticalMF(**STEPS, aggregate=IdealSum()), "vertical", "rating"),
    "horizontal mf": Case(HorizontalMF(**STEPS, local_steps=3), "horizontal"),
    "horizontal mf, replaced": Case(HorizontalMF(**STEPS), "horizontal", adjacency="replace"),
    "horizontal mf, sampled": Case(HorizontalMF(**SAMPLED, centre=3.0), "horizontal"),
    "horizontal mf, summed": Case(HorizontalMF(**STEPS, aggregate=SecureSum()), "horizontal"),
    "on-device mf": Case(OnDeviceMF(rounds=3, most_ratings=6), "on-device"),
    "local reports": Case(REPORTS, "on-device"),
    "local reports, replaced": Case(REPORTS, "on-device", adjacency="replace"),
    "projected mf": Case(ProjectedMF(rounds=4), "on-device", loose=50.0),
    "multi view": Case(MultiViewMF(rounds=6), "on-device"),
    "hdpmf": Case(HDPMF(), "on-device"),
    "central dpsgd": Case(CentralDPSGD(rounds=3, centre=3.0), "one party"),
    "dp-sgld": Case(DPSGLD(**SAMPLED), "vertical", "rating"),
    "dp-sgld, users": Case(DPSGLD(**SAMPLED), "vertical"),
}
UNPROMISED = {
    "objective perturbation": Case(ObjectivePerturbation(factors=4, claimed_epsilon=100.0), "vertical"),
    "dpmf as published": Case(DPMF.as_published(epsilon=1000.0, rate=0.01, epochs=10), "on-device"),
    "horizontal mf without a budget": Case(HorizontalMF(rounds=2, factors=3), "horizontal"),
}
VARIANTS = (
    "shared biases, mixed",
    "personal biases, values",
    "vertical mf, users",
    "horizontal mf, sampled",
    "horizontal mf, summed",
)
"""That are scored in ways of their own."""
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
    deal = partition.vertical if kind == "vertical" else partition.horizontal
    parties = [Party(name=f"p{k}", ratings=part) for k, part in enumerate(deal(everybody, 3, seed=1))]
    bring = Federation.vertical if kind == "vertical" else Federation.horizontal
    return bring(parties, simulated=True)


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


def cases(*variants: str) -> list[Any]:
    """Name all cases; variants of a recipe, which have a comma, are left to longer test runs but for some."""
    later = [name for name in CASES if "," in name and name not in variants]
    return [pytest.param(name, marks=pytest.mark.slow if name in later else ()) for name in CASES]


@pytest.mark.parametrize("name", cases())
@pytest.mark.filterwarnings("ignore::cofactor.errors.PrivacyWarning")
def test_canaries_do_not_refute_what_a_recipe_promises(name: str) -> None:
    played = target(CASES[name], 1.0).play(COINS, InsecureRandom(1))
    assert np.isfinite(played.scores).all()
    assert len(np.unique(played.scores)) > 20
    assert played.promised is not None
    assert not judged(played.scores, COINS, played.promised, confidence=0.999).refuted


@pytest.mark.parametrize("name", cases(*VARIANTS))
@pytest.mark.filterwarnings("ignore::cofactor.errors.PrivacyWarning")
def test_canaries_are_told_apart_where_there_is_hardly_any_noise(name: str) -> None:
    case = CASES[name]
    found = guessed(target(case, case.loose))
    assert found.right >= 0.8 * found.guesses


@pytest.mark.parametrize("name", UNPROMISED)
def test_canaries_bound_what_is_lost_where_nothing_is_promised(name: str) -> None:
    played = target(UNPROMISED[name], None).play(COINS, InsecureRandom(3))
    found = judged(played.scores, COINS, played.promised)
    assert played.promised is None
    assert found.p_value is None
    assert found.epsilon_at_least > 0.5


def test_every_recipe_of_the_box_is_among_the_cases() -> None:
    audited = {type(case.recipe).__name__ for case in (*CASES.values(), *UNPROMISED.values())}
    assert {recipe.__name__ for recipe in classes().values()} - audited == {"Alone", "Pooled"}


@pytest.mark.parametrize("recipe", [Alone(), Pooled(model=SGD())])
def test_recipes_that_send_nothing_are_refused_with_a_reason(recipe: Any) -> None:
    with pytest.raises(ConfigError, match="sends nothing in which a canary could show"):
        RecipeTarget(recipe=recipe, federation=federation("horizontal"))


def guessed(planted: RecipeTarget, seed: int = 2) -> OneRun:
    return judged(planted.play(COINS, InsecureRandom(seed)).scores, COINS, None)


@pytest.mark.parametrize("seen_by", ["public", "party:p2", "coordinator+party:p2"])
@pytest.mark.filterwarnings("ignore::cofactor.errors.PrivacyWarning")
def test_other_roles_see_canaries_too(seen_by: str) -> None:
    found = guessed(target(CASES["horizontal mf, summed"], 1000.0, seen_by=seen_by))
    assert found.right >= 0.8 * found.guesses


@pytest.mark.filterwarnings("ignore::cofactor.errors.PrivacyWarning")
def test_a_role_that_sees_nothing_is_told_so() -> None:
    with pytest.raises(ConfigError, match="no model was published"):
        guessed(target(CASES["vertical taste"], 8.0, seen_by="public"))


def test_noise_that_is_too_small_is_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = noise.gaussian
    monkeypatch.setattr(
        noise, "gaussian", lambda shape, deviation, random: drawn(shape, deviation / 20, random)
    )
    played = target(CASES["central dpsgd"], 1.0).play(COINS, InsecureRandom(4))
    assert judged(played.scores, COINS, played.promised).refuted


def test_a_forgotten_bound_is_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canaries rate so much, and so extremely, that nothing but the bound keeps them in."""
    monkeypatch.setattr(private_descent, "_below", lambda _: np.float32(np.inf))
    recipe = HorizontalMF(rounds=2, factors=3, centre=3.0, clipping=GradientClipping(limit=0.5))
    played = target(Case(recipe, "horizontal"), 1.0, ratings=32).play(COINS, InsecureRandom(4))
    assert judged(played.scores, COINS, played.promised).refuted


@pytest.mark.filterwarnings("ignore::cofactor.errors.PrivacyWarning")
def test_canaries_have_all_of_a_personal_budget() -> None:
    budget = PersonalBudget(epsilon=100.0, delta=1e-6, unit="user", users=Weights.equal(0.1))
    planted = RecipeTarget(
        recipe=HDPMF(), federation=federation("on-device"), budget=budget, canaries=CANARIES
    )
    assert guessed(planted).right == 40
    own = planted.planted.federation(COINS).parties[0].weights
    assert own is not None
    assert own[:40].max() == 0.1
    assert own[40:].min() == 1.0


def test_files_of_parties_and_their_ledgers_are_left_alone(tmp_path: Path) -> None:
    parties = []
    for party in federation("horizontal").parties:
        own, file = party.ratings, tmp_path / f"{party.name}.csv"
        rows = zip(own.users, own.items, own.values, strict=True)
        file.write_text("user,item,rating\n" + "".join(f"{u},{i},{value:g}\n" for u, i, value in rows))
        parties.append(Party.from_csv(file))
    before = sorted(tmp_path.iterdir())
    planted = RecipeTarget(
        recipe=HorizontalMF(**STEPS),
        federation=Federation.horizontal(parties),
        budget=Budget(epsilon=1.0, delta=1e-6, unit="user"),
        canaries=CANARIES,
    )
    planted.play(COINS, InsecureRandom(5))
    assert sorted(tmp_path.iterdir()) == before
