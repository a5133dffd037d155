"""Steps on sums of gradients: the parties' noise adds up to that of one, and nobody sees a part."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.federation.channel import Failures
from cofactor.federation.door import SUM, Door
from cofactor.federation.halves import Home
from cofactor.federation.messages import Message
from cofactor.federation.party import Party
from cofactor.privacy.budget import Unit
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.layers import Layers
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import Skellam
from cofactor.privacy.neighbours import Datasets
from cofactor.privacy.schedule import Schedule
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.privacy.tables import LARGEST_DEVIATION
from cofactor.randomness import InsecureRandom
from cofactor.recipes.clipping import Clipping, EmbeddingClipping, GradientClipping
from cofactor.recipes.horizontal_halves import HorizontalCoordinator
from cofactor.recipes.shared_vectors import Shared
from cofactor.recipes.steps import Steps
from cofactor.recipes.summed_steps import grain_for, largest, summed_release, user_gradients
from cofactor.recipes.sums import IdealSum, SecureSum
from cofactor.recipes.train import train
from cofactor.recipes.vertical_halves import STEPS
from tests.recipes.descents import (
    CLIPPINGS,
    ITEMS,
    UNITS,
    USERS,
    by_user,
    datasets,
    lowest_for,
    party_of,
    random_party,
    worst_case,
)
from tests.recipes.parties import facts_of, horizontal, participant_of, table, transcript, vertical
from tests.recipes.summing_toys import ACROSS, QUICK, RATING, SETTLED, SUMS, USER, few_ratings

GRAIN = 2.0**-10


@pytest.mark.parametrize("clipping", CLIPPINGS, ids=["embedding", "gradient"])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("both", [True, False], ids=["both", "items"])
@pytest.mark.parametrize("grain", [2.0**-10, 0.25], ids=["fine", "coarse"])
def test_one_unit_changes_whole_sums_by_the_bound_and_no_more(
    clipping: Clipping, unit: Unit, both: bool, grain: float
) -> None:
    def release(units: tuple[Any, ...]) -> NDArray[np.int64]:
        found = party_of(by_user(units, unit), clipping, unit).whole_sums(grain, both=both)
        assert found.items.dtype == np.int64
        return found.items if found.users is None else np.concatenate([found.users, found.items])

    empty = party_of([[]] * USERS, clipping, unit)
    bound = empty.whole_sums(grain, both=both).bound
    assert bound.size == empty.reach(both=both).bound.size / grain
    # A coarse grain only ever shortens a contribution: no worst case is reached.
    worst = worst_case(unit) if grain < 0.01 else None
    assert_bounded(
        release, bound, datasets(unit, lowest_for(clipping)), worst_case=worst, pairs=50, climbs=50
    )


@pytest.mark.parametrize("users", ["refitted", "pretrained", "trained along"])
@pytest.mark.parametrize("clipping", CLIPPINGS, ids=["embedding", "gradient"])
def test_a_user_changes_what_a_party_adds_to_a_sum_by_no_more_than_the_bound(
    clipping: Clipping, users: Any
) -> None:
    recipe = replace(QUICK, rounds=2, clipping=clipping, users=users, most_ratings=4, aggregate=IdealSum())
    facts = facts_of("horizontal")
    bound = recipe.settled(facts, USER).schedule(facts, "user", "north").releases[0].bound
    items = np.abs(np.random.default_rng(1).normal(size=(ITEMS, 3))).astype(np.float32)

    def release(units: tuple[Any, ...]) -> Any:
        rated = [(u, i, x) for u, row in enumerate(units) for i, x in enumerate(row) if x is not None]
        half, _ = participant_of(recipe, table(rated), USER)
        added: list[Any] = []

        def share(_: Any, bounded: Any, **__: Any) -> Any:
            added.append(bounded)
            return bounded.value

        half._home.door.share = share
        for number in (1, 2):  # by then users have moved, each by its own ratings
            half.handle(number, Shared(centre=np.array(3.0), vectors=items))
        return added[-1]

    def row(chance: np.random.Generator) -> tuple[float | None, ...]:
        values = chance.choice([0.5, 5.0, 3.0], ITEMS)
        rated = chance.permutation(ITEMS)[: chance.integers(1, 5)]
        return tuple(float(x) if i in rated else None for i, x in enumerate(values))

    drawn = Datasets(draw=row, count=4, empty=(None,) * ITEMS)
    assert_bounded(release, bound, drawn, pairs=40, climbs=40)


@pytest.mark.parametrize("clipping", CLIPPINGS, ids=["embedding", "gradient"])
@pytest.mark.parametrize("unit", UNITS)
def test_whole_sums_are_the_sums_up_to_a_grain_for_each_rating(clipping: Clipping, unit: Unit) -> None:
    party = random_party(clipping, unit)
    exact, whole = party.sums(both=True), party.whole_sums(GRAIN, both=True)
    assert exact.users is not None
    assert whole.users is not None
    # No user has more than 12 ratings, and no item more than 40.
    np.testing.assert_allclose(whole.users * whole.user_grain, exact.users, atol=13 * whole.user_grain)
    np.testing.assert_allclose(whole.items * whole.item_grain, exact.items, atol=41 * whole.item_grain)
    assert whole.users.any()
    assert party.whole_sums(GRAIN, both=False).users is None


@pytest.mark.parametrize("longest", [0.3, 1.0, 7.0, 1000.0])
@pytest.mark.parametrize("noise", [0.0, 1.0, 5.0, 300.0, 5000.0])
def test_grain_is_fine_and_noise_has_no_more_grains_than_can_be_drawn(longest: float, noise: float) -> None:
    grain = grain_for(longest, noise)
    assert math.frexp(grain)[0] == 0.5  # a power of two
    assert longest / grain <= 2**13
    assert noise * longest / grain <= LARGEST_DEVIATION / 4
    # Not coarser than it must be.
    assert longest / grain >= 2**12 or noise * longest / grain >= LARGEST_DEVIATION / 8


def test_largest_sum_counts_all_terms_and_never_more_than_fit() -> None:
    facts = facts_of("horizontal")
    steps = Steps.of(SETTLED)
    bound = summed_release("x", steps.reach(facts, "user", both=False), 1.0, 9, steps).bound
    assert largest(facts, 100, replace(bound, size=3.2)) == 400
    assert largest(facts, 10**9, replace(bound, size=1e6)) < 2**33


@pytest.mark.parametrize("aggregate", SUMS, ids=["ideal", "secure"])
@pytest.mark.parametrize("users", ["refitted", "pretrained"])
@pytest.mark.parametrize(
    "clipping", [GradientClipping(limit=2.0), EmbeddingClipping()], ids=["gradient", "embedding"]
)
def test_without_a_budget_a_horizontal_step_is_that_of_all_ratings_in_one_place(
    aggregate: Any, users: Any, clipping: Any
) -> None:
    recipe = replace(QUICK, users=users, clipping=clipping, most_ratings=20)
    pooled = train(recipe, horizontal(few_ratings(), 1)).model
    together = train(replace(recipe, aggregate=aggregate), horizontal(few_ratings(), 3))
    assert pooled is not None
    assert together.model is not None
    grain = together.recipe["grain"]
    assert grain < 0.02
    # Of 24 users and a rate of 0.01, each off by a grain at most.
    np.testing.assert_allclose(
        together.model.item_vectors, pooled.item_vectors, atol=0.01 * 24 * grain * 1.125 + 1e-6
    )
    start = train(replace(recipe, learning_rate=1e-9), horizontal(few_ratings(), 1)).model
    assert start is not None
    assert np.abs(start.item_vectors - pooled.item_vectors).max() > 0.01
    assert {each.protection for each in transcript(together)} >= {
        "nothing, masked" if isinstance(aggregate, SecureSum) else "nothing, SIMULATION"
    }


@pytest.mark.parametrize("aggregate", SUMS, ids=["ideal", "secure"])
def test_without_a_budget_a_vertical_step_is_that_of_all_ratings_in_one_place(aggregate: Any) -> None:
    federation = vertical(few_ratings(), 3)
    recipe = replace(ACROSS, aggregate=aggregate).settled(federation.facts, None)
    facts, coordinator = federation.facts, recipe.coordinator(federation.facts, 0)
    asked = coordinator.ask(1)
    users, items, rate = asked.arrays["vectors"].astype(np.float64), [], 0.01
    moved = users.copy()
    for party in federation.parties:
        door = Door(party=party.name, ledger=None, random=InsecureRandom(0), run="r")
        home = Home(party=party, facts=facts, schedule=None, door=door, seed=0)
        descent = recipe.participant(home)._with(asked)
        sums = descent.sums(both=True)
        assert sums.users is not None
        moved -= rate * sums.users
        items.append(descent.items - rate * sums.items)
    model = train(recipe, federation).model
    assert model is not None
    size = 1.125  # of the units of training, on a scale from 0.5 to 5
    # Each user has 12 ratings at most, and each item 24.
    np.testing.assert_allclose(model.user_vectors, moved, atol=rate * 12 * (recipe.grain or 0) + 1e-6)
    np.testing.assert_allclose(
        model.item_vectors, size * np.concatenate(items), atol=size * rate * 24 * (recipe.grain or 0) + 1e-6
    )
    assert np.abs(moved - users).max() > 0.01


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Message]]:
    """Return what all coordinators from now on take in."""
    found: list[Mapping[str, Message]] = []
    take = HorizontalCoordinator.take

    def watched(self: HorizontalCoordinator, round: int, replies: Mapping[str, Message]) -> None:
        found.append(replies)
        take(self, round, replies)

    monkeypatch.setattr(HorizontalCoordinator, "take", watched)
    return found


@pytest.mark.parametrize("gone", [0, 1])
def test_opened_sum_has_the_noise_of_one_release_and_not_that_of_every_party(
    gone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    federation = horizontal(few_ratings(40, 500), 4)
    recipe = replace(QUICK, factors=20, aggregate=IdealSum(dropout=0.25)).settled(federation.facts, USER)
    failures = Failures(absent=frozenset({("party-1", 1)}) if gone else frozenset())
    taken = recorded(monkeypatch)
    for seed in (1, 2):  # twice the same gradients, with other noise
        train(recipe, federation, budget=USER, failures=failures, random=InsecureRandom(seed))
    one_sum, other = (replies[SUM].arrays["gradients"] for replies in taken)
    release = calibrated(recipe.schedule(federation.facts, "user", "party-0"), USER).releases[0]
    assert isinstance(release.mechanism, Skellam)
    one = release.mechanism.noise_size(release.bound) ** 2
    left, honest = 4 - gone, 3 - gone
    # The variance of 10,000 numbers is off by 1.4%; six times that either way, and 2% that layers may keep.
    assert 0.915 < float((one_sum - other).var()) / 2 / one * honest / left < 1.02 * 1.085


@pytest.mark.parametrize("aggregate", SUMS, ids=["ideal", "secure"])
def test_sum_of_gradients_is_one_event_for_each_party_with_less_noise_in_all(aggregate: Any) -> None:
    federation = horizontal(few_ratings(), 4)
    run = train(replace(QUICK, rounds=2, aggregate=aggregate), federation, budget=USER)
    secure = isinstance(aggregate, SecureSum)
    assert run.guarantee.holds == secure
    assert run.guarantee.releases == 8
    assert 0.98 * 2 < (run.guarantee.epsilon or 0) <= 2
    masked = "a share of noise, masked" if secure else "a share of noise, SIMULATION"
    assert {each.protection for each in transcript(run) if "noise" in each.protection} == {masked}
    assert run.together is not None
    # If all others collude, a third of the noise protects.
    assert all((each.epsilon or np.inf) > 3 for each in run.together.parties.values())


def test_item_vectors_get_all_the_noise_at_home_and_what_leaves_has_a_part() -> None:
    layers, grain, count = Layers(parties=4, fewest=3), 2.0**-7, 2000
    descent = random_party(GradientClipping(limit=3.0), "rating", users=count, items=count, empty=True)
    descent.items = np.full(descent.items.shape, 0.2)
    bound = descent.whole_sums(grain, both=True).bound
    mechanism = Skellam(noise_multiplier=2.0)
    release = replace(
        summed_release(STEPS, descent.reach(both=True), grain, 2 * count * 5, Steps.of(SETTLED)),
        mechanism=mechanism,
    )
    ledger = Ledger.create(None, party="north", fingerprint="x", budget=replace(RATING, epsilon=8.0))
    door = Door(party="north", ledger=ledger, random=InsecureRandom(2), run="r", layers=layers)
    door.begin(1)
    home = Home(
        party=Party(name="north", ratings=table([])),
        facts=replace(facts_of("vertical"), users=(count,) * 2, items=(count,) * 2),
        schedule=Schedule(releases=(release,), rounds=1),
        door=door,
        seed=0,
    )
    rate, before = 0.01, descent.items.astype(np.float64)
    left = user_gradients(home, descent, STEPS, grain, rate).gradients
    at_home = (before - descent.items) / (rate * grain)
    one = mechanism.noise_size(bound) ** 2
    # 10,000 numbers each: their variances are off by 1.4%.
    assert float(at_home.var()) == pytest.approx(one, rel=0.085)
    assert float(left.var()) == pytest.approx(one / 2, rel=0.085)
    assert abs(float(np.corrcoef(at_home.ravel(), left.ravel())[0, 1])) < 0.06
    (entry,) = ledger.entries
    assert entry.event is not None
    assert (entry.event.dimension, entry.event.bound) == (2 * count * 5, bound)


def test_private_vertical_run_releases_what_it_planned() -> None:
    federation = vertical(few_ratings(), 3)
    run = train(replace(ACROSS, rounds=2, aggregate=SecureSum()), federation, budget=RATING)
    assert run.guarantee.holds
    assert 0.98 * 2 < (run.guarantee.epsilon or 0) <= 2
    assert run.guarantee.releases == 6
    protections = [each.protection for each in transcript(run) if each.sender == "party-0"]
    assert protections.count("a share of noise, masked") == 2
    assert protections[-1] == "public"  # item vectors, each step of which was paid for in its round


PLACES = [(user, item) for user in range(4) for item in range(6)]
SOME = table([(user, item, 0.5 + (user + item) % 9 / 2) for user, item in PLACES if (user * item) % 3])


@pytest.mark.parametrize(
    "recipe", [QUICK, replace(QUICK, users="trained along"), ACROSS], ids=["h", "along", "v"]
)
def test_participant_goes_on_after_a_restart_between_two_sums(recipe: Any) -> None:
    budget = RATING if recipe.split == "vertical" else USER
    settings = replace(recipe, rounds=3, aggregate=IdealSum())
    half, settled = participant_of(settings, SOME, budget)
    facts = facts_of(recipe.split)
    layers = Layers(parties=2, fewest=2)
    door = Door(party="north", ledger=None, random=InsecureRandom(0), run="r", layers=layers)
    silent = Home(party=half._home.party, facts=facts, schedule=None, door=door, seed=0)
    first, coordinator = settled.participant(silent), settled.coordinator(facts, 0)
    asked = coordinator.ask(1)
    silent.door.begin(1)
    answer = first.handle(1, asked)
    coordinator.take(1, {SUM: answer})
    again = settled.coordinator(facts, 0)
    again.restore(coordinator.state())
    second = settled.participant(silent)
    second.restore(first.state())
    question = again.ask(2)
    np.testing.assert_array_equal(question.arrays["vectors"], coordinator.ask(2).arrays["vectors"])
    assert not np.array_equal(question.arrays["vectors"], asked.arrays["vectors"])
    silent.door.begin(2)
    answers = [each.handle(2, question).arrays["gradients"] for each in (first, second)]
    np.testing.assert_array_equal(*answers)
    assert not np.array_equal(answers[0], answer.arrays["gradients"])
    for name, array in first.state().items():
        np.testing.assert_array_equal(second.state()[name], array)


def test_round_without_a_sum_changes_nothing() -> None:
    facts = facts_of("horizontal")
    coordinator = SETTLED.coordinator(facts, 0)
    before = coordinator.state()
    coordinator.take(1, {})
    for name, array in coordinator.state().items():
        np.testing.assert_array_equal(before[name], array)
