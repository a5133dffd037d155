"""What leaves a party of `PersonalBiases`: no rating changes it by more than its own weight allows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.errors import RunError
from cofactor.privacy import stretching
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Adjacency, Budget
from cofactor.privacy.coverage import assert_noise_covers
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.noise import came_true
from cofactor.privacy.sensitivity import assert_bounded, assert_weighed
from cofactor.privacy.weights import taking_part
from cofactor.randomness import SecureRandom
from cofactor.recipes import personal_sums
from cofactor.recipes.personal_letters import RatingsAsked
from tests.recipes.personal_parties import (
    ADJACENCIES,
    ITEM_WEIGHTS,
    ITEMS,
    SCALE,
    USERS,
    One,
    Units,
    half,
    personal,
    plain,
    table,
)


def bounded_of(units: Units, budget: Budget) -> Bounded:
    """Return what a cohort gives to the door, without noise."""
    participant, seen = half(table(units), budget), []

    def share(_: Any, bounded: Bounded, **__: Any) -> NDArray[np.int64]:
        seen.append(bounded)
        return bounded.value

    participant._home.door.share = share
    participant.handle(1, RatingsAsked())
    (found,) = seen
    assert found.bound == participant._home.schedule.releases[0].bound
    return found


class _Unmoved:
    """Chance that rounds every number up: the same however many there are."""

    ROUNDS = 0

    @staticmethod
    def fill(words: NDArray[np.uint32], *_: Any) -> None:
        words[:] = 2**32 - 1


@pytest.fixture
def unmoved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretching, "chacha", _Unmoved)


def draw(chance: np.random.Generator) -> One:
    weight = float(chance.choice([1.0, 0.1, 0.37, 0.013, chance.uniform(0.001, 1)]))
    return One(weight, int(chance.integers(ITEMS)), float(chance.choice([1.0, 5.0, 2.0, 3.7])))


def redraw(unit: One | None, chance: np.random.Generator) -> One | None:
    return None if unit is None else unit._replace(value=float(chance.choice([1.0, 5.0])))


DATASETS = Datasets(draw=draw, count=USERS, empty=None, redraw=redraw)


def weight_of(unit: One | None) -> float:
    return 0.0 if unit is None else unit.weight * ITEM_WEIGHTS[unit.item]


def worst(adjacency: Adjacency, unit: One) -> Neighbours:
    other = unit._replace(value=SCALE.low) if adjacency == "value" else None
    return Neighbours(units=(unit, One(0.5, unit.item, 2.0), None, None), which=0, other=other)


@pytest.mark.usefixtures("unmoved")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_each_rating_changes_the_sums_by_no_more_than_its_own_weight_allows(adjacency: Adjacency) -> None:
    loud = (One(1.0, 3, SCALE.high), One(0.3, 2, SCALE.high), One(0.25, 0, SCALE.high))
    assert_weighed(
        lambda units: bounded_of(units, personal(units, adjacency=adjacency)),
        bounded_of((None,) * USERS, personal((None,) * USERS, adjacency=adjacency)).bound,
        DATASETS,
        weight_of=weight_of,
        worst_cases=[worst(adjacency, unit) for unit in loud],
        pairs=30,
        climbs=30,
    )


@pytest.mark.usefixtures("unmoved")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_without_weights_each_rating_has_all_of_the_bound(adjacency: Adjacency) -> None:
    budget = plain(adjacency=adjacency)
    bound = bounded_of((None,) * USERS, budget).bound
    assert not bound.weighed
    assert_bounded(
        lambda units: bounded_of(units, budget),
        bound,
        DATASETS,
        worst_case=worst(adjacency, One(1.0, 3, SCALE.high)),
        pairs=20,
        climbs=20,
    )


@pytest.mark.usefixtures("unmoved")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_whoever_takes_part_is_bounded_like_anybody(
    monkeypatch: pytest.MonkeyPatch, adjacency: Adjacency
) -> None:
    # Chance is for who takes part; what is bounded is what those add who do.
    monkeypatch.setattr(personal_sums, "came_true", lambda chances, _: chances > 0.2)
    sampled: dict[str, Any] = {"adjacency": adjacency, "mechanism": "sampling", "threshold": 0.5}
    bound = bounded_of((None,) * USERS, personal((None,) * USERS, **sampled)).bound
    assert not bound.weighed
    assert_bounded(
        lambda units: bounded_of(units, personal(units, **sampled)),
        bound,
        DATASETS,
        worst_case=worst(adjacency, One(0.9, 3, SCALE.high)),
        pairs=20,
        climbs=20,
    )


def test_ratings_take_part_as_often_as_their_weights_say() -> None:
    chances = np.repeat(taking_part(np.array([0.02, 0.3, 0.499, 0.5, 0.9]), 1.0, 0.5), 20_000)
    took = came_true(chances, SecureRandom()).reshape(5, -1).mean(axis=1)
    wanted = chances.reshape(5, -1)[:, 0]
    # Six deviations: false alarms below 1e-7.
    assert (np.abs(took - wanted) <= 6 * np.sqrt(wanted * (1 - wanted) / 20_000)).all()
    assert took[3] == took[4] == 1.0


@pytest.mark.parametrize("mechanism", ["stretching", pytest.param("sampling", marks=pytest.mark.slow)])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_noise_covers_all_but_what_is_public(adjacency: Adjacency, mechanism: str) -> None:
    at = 1.0 if mechanism == "sampling" else None

    def released(units: Units) -> NDArray[Any]:
        budget = personal(units, adjacency=adjacency, mechanism=mechanism, threshold=at)
        reply = half(table(units), budget, random=SecureRandom()).handle(1, RatingsAsked())
        return np.concatenate([array.ravel() for array in reply.arrays.values()])

    assert_noise_covers(released, adjacency, DATASETS, runs=12)


def test_a_party_without_its_users_weights_releases_nothing() -> None:
    units: Units = (One(0.1, 0, 5.0), None, None, None)
    participant = half(table(units), personal(units))
    bare = replace(participant._home.party, weights=None)
    object.__setattr__(participant._home, "party", bare)
    with pytest.raises(RunError, match="are missing"):
        participant.handle(1, RatingsAsked())


@pytest.mark.parametrize("threshold", [0.05, 0.36, 2.0])
@pytest.mark.parametrize("chance", [0.01, 0.3, 0.9, 1.0])
def test_taking_part_by_chance_hides_values_as_well_as_eq_5_says(threshold: float, chance: float) -> None:
    # Who is not drawn adds 0, the middle of the values -g to g that noise of scale 2 g / t hides.
    grains, outcomes = 64, np.arange(-2000, 2001)
    laws = {at: np.exp(-np.abs(outcomes - at) * threshold / (2 * grains)) for at in range(-64, 65, 16)}
    mixed = [(1 - chance) * laws[0] + chance * law for law in laws.values()]
    worst = max(float(np.log(one / other).max()) for one in mixed for other in mixed)
    assert worst <= np.log1p(chance * np.expm1(threshold)) + 1e-12
