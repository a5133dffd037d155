"""HDPMF as it can be promised: users of weight w change a sum by w times the bound, whatever is asked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, Refused, RunError
from cofactor.federation.door import Door
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts, Home
from cofactor.federation.party import Party
from cofactor.federation.weights import PublicWeights
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.coverage import assert_noise_covers
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.sensitivity import assert_weighed
from cofactor.privacy.weights import HDPMF_USERS, Weights
from cofactor.progress import Progress
from cofactor.randomness import InsecureRandom, Random, SecureRandom
from cofactor.recipes.hdpmf import HDPMF
from cofactor.recipes.hdpmf_halves import HDPMFParticipant
from cofactor.recipes.hdpmf_steps import Space, directions
from cofactor.recipes.hosts import aggregate_of
from cofactor.recipes.shared_vectors import Begin, Gradients, Shared
from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum
from cofactor.recipes.train import train
from tests.recipes.parties import ITEMS, SCALE, USERS, horizontal, small_ratings, table
from tests.recipes.test_item_sums import grouped

BUDGET = Budget(epsilon=4.0, delta=1e-6, unit="user")
QUICK = HDPMF(factors=2, rounds=2)
FEW = replace(QUICK, aggregate=IdealSum(dropout=0.25, colluding=0.25))
"""For as few devices as tests have."""
WEIGHTS = (1.0, 0.6, 0.25, 0.1)
Row = tuple[float, ...]
"""A user's weight, and then a rating of each item; NaN for none."""
EMPTY: Row = (1.0,) + (float("nan"),) * ITEMS


def facts_of(mechanism: Any = "stretching", users: int = USERS) -> Facts:
    weights = PublicWeights(
        groups=HDPMF_USERS,
        expected=0.5,
        items=np.ones(ITEMS),
        mechanism=mechanism,
        epsilon=4.0,
        threshold=2.0 if mechanism == "sampling" else None,
    )
    return Facts(
        split="on-device",
        parties=("devices",),
        users=(users,),
        items=(ITEMS,),
        ratings=(12,),
        scale=SCALE,
        shared_ids=np.arange(ITEMS),
        catalogue=np.arange(ITEMS),
        weights=weights,
    )


def cohort(
    units: tuple[Row, ...], recipe: HDPMF = FEW, *, facts: Facts | None = None, random: Random | None = None
) -> HDPMFParticipant:
    """Return a cohort of devices, at work in round 1."""
    facts = facts or facts_of()
    settled = recipe.settled(facts, BUDGET)
    schedule = calibrated(settled.schedule(facts, "user", "devices"), BUDGET)
    door = Door(
        party="devices",
        ledger=Ledger.create(None, party="devices", fingerprint="a test", budget=BUDGET),
        random=random or InsecureRandom(0),
        run="a test",
        schedule=schedule,
        layers=aggregate_of(settled).layers(facts.summed),
        cohort=True,
    )
    rated = [(u, i, x) for u, row in enumerate(units) for i, x in enumerate(row[1:]) if x == x]
    party = Party(name="devices", ratings=table(rated), weights=np.array([row[0] for row in units]))
    door.begin(1)
    return settled.participant(Home(party=party, facts=facts, schedule=schedule, door=door, seed=0))


def question(seed: int = 5, vectors: NDArray[Any] | None = None) -> Shared:
    drawn = np.random.default_rng(seed).normal(0, 3.0, (ITEMS, 2))
    return Shared(centre=np.array(0.0), vectors=drawn if vectors is None else vectors)


def answer(half: HDPMFParticipant, asked: Shared | None = None) -> NDArray[np.int64]:
    found = half.handle(1, asked or question())
    assert isinstance(found, Gradients)
    return found.gradients


def noise_free(half: HDPMFParticipant, asked: Shared | None = None) -> Bounded:
    """Return what the cohort gives to the door."""
    seen: list[Bounded] = []

    def share(mechanism: Any, bounded: Bounded, **_: Any) -> NDArray[np.int64]:
        seen.append(bounded)
        return bounded.value

    half._home.door.share = share  # type: ignore[method-assign]
    half.handle(1, asked or question())
    return seen[-1]


def drawn(chance: np.random.Generator) -> Row:
    values = chance.choice([0.5, 3.0, 5.0], ITEMS)
    values[chance.random(ITEMS) < 0.3] = np.nan
    return float(chance.choice(WEIGHTS)), *values.tolist()


def bound_for(recipe: HDPMF, facts: Facts) -> Any:
    return recipe.settled(facts, BUDGET).schedule(facts, "user", "").releases[0].bound


def test_a_user_changes_a_round_by_no_more_than_her_own_weight_allows() -> None:
    chance = np.random.default_rng(1)
    others = tuple(drawn(chance) for _ in range(USERS - 1))
    loud = tuple((weight, *(5.0, 0.5) * (ITEMS // 2)) for weight in WEIGHTS)
    bound = bound_for(FEW, facts_of())
    assert (bound.norm, bound.unit, bound.adjacency, bound.weighed) == ("l1", "user", "empty", True)
    assert_weighed(
        lambda units: noise_free(cohort(units)),
        bound,
        Datasets(draw=drawn, count=USERS, empty=EMPTY),
        weight_of=lambda row: float(row[0]),
        worst_cases=[Neighbours(units=(row, *others), which=0, other=EMPTY) for row in loud],
        pairs=15,
        climbs=15,
    )


EXTREMES = (9e14, -9e14, 1e6, 1e-6, 5e-324, 0.0)


@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("where", [slice(None), slice(0, 3)])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_no_question_makes_anybody_add_more_or_fail(extreme: float, where: slice, kind: Any) -> None:
    vectors = question().vectors.astype(kind)
    vectors[where] = kind(extreme)
    nobody = (EMPTY,) * (USERS - 1)
    for row in ((0.25, *(5.0,) * ITEMS), (0.25, 0.5, *EMPTY[2:]), (0.25, *EMPTY[1:-1], 5.0)):
        found = noise_free(cohort((row, *nobody)), question(vectors=vectors))
        assert np.abs(found.value).sum() <= 0.25 * found.bound.size


@pytest.mark.parametrize(
    ("vectors", "match"),
    [(np.full((ITEMS, 2), np.nan), "not finite"), (np.zeros((ITEMS, 3)), "not of shape"), (None, None)],
)
def test_what_is_no_question_is_refused_before_ratings_are_looked_at(vectors: Any, match: str | None) -> None:
    asked: Any = Begin() if match is None else question(vectors=vectors)
    for units in ((EMPTY,) * USERS, ((1.0, *(5.0,) * ITEMS),) * USERS):
        with pytest.raises(RunError, match=match or "did not expect Begin here"):
            cohort(units).handle(1, asked)


def test_noise_covers_every_item_whoever_rated_it() -> None:
    assert_noise_covers(
        lambda units: answer(cohort(units, random=SecureRandom())),
        "empty",
        Datasets(draw=drawn, count=USERS, empty=EMPTY),
        runs=6,
    )


def test_whoever_does_not_take_part_adds_nothing_and_the_others_all_that_weight_1_may() -> None:
    units, facts = tuple((0.1, *(5.0, 0.5) * 3) for _ in range(USERS)), facts_of("sampling")
    half = cohort(units, facts=facts)
    bound = bound_for(FEW, facts)
    assert not bound.weighed
    for taking_part in (False, True):
        half._taking_part = np.array([taking_part] + [False] * (USERS - 1))
        found = noise_free(half)
        assert np.abs(found.value).sum() == pytest.approx(taking_part * bound.size, abs=1)


def test_who_takes_part_is_drawn_once_and_remembered() -> None:
    units = tuple(drawn(np.random.default_rng(k)) for k in range(USERS))
    first, facts = [], facts_of("sampling")
    for _ in range(20):
        half = cohort(units, facts=facts, random=SecureRandom())
        before = half._taking_part.copy()
        answer(half)
        np.testing.assert_array_equal(before, half._taking_part)
        other = cohort(units, facts=facts, random=SecureRandom())
        other.restore(half.state())
        np.testing.assert_array_equal(other._taking_part, before)
        first.append(before)
    assert len(np.unique(first, axis=0)) > 1, "it is drawn anew in another training"
    assert cohort(units).state() == {}, "weights are in no file"


def test_gradients_are_those_of_the_squared_error_in_the_direction_of_each_user() -> None:
    chance = np.random.default_rng(2)
    ratings = grouped([[(0, 4.0), (2, 1.0)], [], [(1, 3.0)]])
    users, items = (
        chance.normal(size=(3, 2)).astype(np.float32),
        chance.normal(size=(3, 2)).astype(np.float32),
    )
    found = directions(ratings, users, items, smallest=1e-9)

    def gradient(user: int, item: int, value: float) -> Any:
        u, v = users[user].astype(np.float64), items[item].astype(np.float64)
        return 2 * (u @ v - value) * u

    first = np.array([gradient(0, 0, 4.0), gradient(0, 2, 1.0)])
    np.testing.assert_allclose(found[:2], first / np.abs(first).sum(), rtol=1e-6)
    third = gradient(2, 1, 3.0)
    np.testing.assert_allclose(found[2], third / np.abs(third).sum(), rtol=1e-6)


def test_whoever_is_predicted_exactly_adds_nothing() -> None:
    ratings = grouped([[(0, 2.0)], [(0, 3.0)]])
    ones = np.ones((2, 1), np.float32)
    found = directions(ratings, ones, 2 * np.ones((1, 1), np.float32), smallest=1e-9)
    np.testing.assert_array_equal(found, [[0.0], [-1.0]])


@given(
    st.lists(st.lists(st.floats(0.5, 5.0, width=32), min_size=0, max_size=ITEMS), min_size=1, max_size=3),
    st.integers(0, 100),
)
def test_users_are_fitted_to_their_ratings_and_no_longer_than_1(rows: list[list[float]], seed: int) -> None:
    space = Space(factors=2, scale=SCALE)
    ratings = grouped([list(enumerate(row)) for row in rows])
    items = space.received(question(seed).vectors)
    users = space.fitted(ratings, items)
    assert np.linalg.norm(users, axis=1).max() <= 1 + 1e-6
    for row, user in zip(rows, users, strict=True):
        own, usual = items[: len(row)].astype(np.float64), space.usual.astype(np.float64)
        square = own.T @ own + space.penalty * np.eye(2)
        best = usual + np.linalg.solve(square, own.T @ (np.array(row) - own @ usual))
        np.testing.assert_allclose(user, best / max(1.0, np.linalg.norm(best)), atol=1e-4)


def test_items_begin_where_a_user_of_length_1_can_reach_the_whole_scale() -> None:
    space = Space(factors=3, scale=SCALE)
    items = space.first_items(50, seed=1)
    np.testing.assert_array_equal(items, space.received(items))
    assert (items[:, 0] == 5.0).all()
    assert len(np.unique(items[:, 1:])) == 100
    assert items @ space.usual == pytest.approx(0.5 + 0.625 * 4.5)


def personal(mechanism: Any = "stretching", **settings: Any) -> PersonalBudget:
    users = Weights.drawn(HDPMF_USERS, seed=2)
    return PersonalBudget(
        epsilon=4.0, delta=1e-6, unit="user", adjacency="empty", users=users, mechanism=mechanism, **settings
    )


def test_rounds_are_composed_and_each_user_is_promised_her_part() -> None:
    run = train(QUICK, Federation.on_device(small_ratings()), budget=personal())
    guarantee: Any = run.guarantee
    assert 0.98 * 4.0 <= guarantee.epsilon <= 4.0
    assert 0.9 * guarantee.epsilon / 4 <= guarantee.for_weight(0.25).epsilon <= guarantee.epsilon / 4
    text = str(guarantee)
    assert "a user of weight w adds at most w times" in text
    assert "hardly better than users' own means" in text
    assert not guarantee.holds
    assert "simulates a secure sum" in text


def test_sampling_is_made_for_the_threshold() -> None:
    budget = personal("sampling", threshold=2.0)
    run = train(QUICK, Federation.on_device(small_ratings()), budget=budget)
    guarantee: Any = run.guarantee
    assert 0.98 * 2.0 <= guarantee.epsilon <= 2.0
    assert guarantee.for_weight(0.25).epsilon <= 1.0
    assert "nobody learns whose ratings go into sums" in str(guarantee)


def test_a_guarantee_that_needs_no_simulation_holds_for_parties() -> None:
    for aggregate in (SecureSum(), PlainSum()):
        recipe = replace(QUICK, aggregate=aggregate)
        run = train(recipe, horizontal(small_ratings(), 3), budget=personal())
        guarantee: Any = run.guarantee
        assert guarantee.holds
        assert guarantee.epsilon <= 4.0


def test_hidden_sums_need_a_delta_and_open_ones_do_not() -> None:
    budget = Budget(epsilon=1.0, delta=0.0, unit="user")
    run = train(replace(QUICK, aggregate=PlainSum()), horizontal(small_ratings(), 3), budget=budget)
    guarantee: Any = run.guarantee
    assert guarantee.holds
    with pytest.raises(Refused, match=r"needs a delta\. Use delta=1e-9"):
        QUICK.settled(replace(facts_of(users=1000), weights=None), budget)


def test_weights_of_users_are_in_no_message_and_no_folder(tmp_path: Path) -> None:
    weight = 0.123456789012345
    budget = replace(personal(), users=Weights.by(lambda _: weight, expected=0.5))
    run = train(QUICK, Federation.on_device(small_ratings()), budget=budget, folder=tmp_path / "session")
    run.save(tmp_path / "run")
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"Gradients" in written
    assert str(weight)[:10].encode() not in written
    assert np.float64(weight).tobytes() not in written


def test_a_training_that_was_stopped_goes_on_and_charges_no_round_twice(tmp_path: Path) -> None:
    def stop(event: Progress) -> None:
        if event.step == 1:
            raise KeyboardInterrupt

    federation, budget = Federation.on_device(small_ratings()), personal("sampling")
    with pytest.raises(KeyboardInterrupt):
        train(QUICK, federation, budget=budget, folder=tmp_path, progress=stop)
    guarantee: Any = train(QUICK, federation, budget=budget, folder=tmp_path).guarantee
    assert guarantee.epsilon <= budget.public.epsilon


def missed(run: Any, ratings: Ratings) -> float:
    found = run.homes["devices"].predict_rows(ratings.users, ratings.items)
    return float(np.mean((found - ratings.values) ** 2))


def test_without_a_budget_it_learns_and_newcomers_can_be_folded_in() -> None:
    ratings = small_ratings()
    federation = Federation.on_device(ratings)
    run = train(replace(QUICK, rounds=30), federation)
    begun = train(replace(QUICK, rounds=1, learning_rate=1e-9), federation)
    assert missed(run, ratings) < 0.9 * missed(begun, ratings)
    assert run.model is not None
    own = ratings.by_user.window(0, 1)
    newcomer = dict(zip(ratings.item_ids[own.index].tolist(), own.values.tolist(), strict=True))
    folded, some = run.model.fold_in(newcomer), ratings.item_ids[:20].tolist()
    known = run.homes["devices"].predict(ratings.user_ids[0], some)
    assert np.abs(folded.predict("new user", some) - known).max() < 0.3


def test_less_budget_takes_smaller_steps_and_coarser_grains() -> None:
    facts = facts_of(users=500)
    loose, tight = (
        HDPMF().settled(facts, Budget(epsilon=epsilon, delta=1e-6, unit="user")) for epsilon in (4.0, 0.1)
    )
    assert tight.step_size < loose.step_size
    assert tight.steps < loose.steps
    assert loose.turns == tight.turns == 2


def test_single_ratings_cannot_be_protected() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6, unit="rating")
    with pytest.raises(Refused, match=r"one rating changes all that the user adds\..*PersonalBiases"):
        train(HDPMF(), Federation.on_device(small_ratings()), budget=budget)


@pytest.mark.parametrize("wrong", [{"factors": 0}, {"rounds": 0}, {"learning_rate": 0.0}, {"aggregate": 3}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        HDPMF(**wrong)


def test_what_is_not_settled_cannot_be_planned() -> None:
    with pytest.raises(RunError, match="not settled: grains is still open"):
        HDPMF().schedule(facts_of(), "user", "devices")
