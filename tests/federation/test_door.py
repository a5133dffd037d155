"""Nothing leaves a party but by the door, and not before it is charged."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.crypto.keys import chain
from cofactor.errors import BudgetExceeded, CofactorError, ConfigError, Refused, RunError, TooFew
from cofactor.federation.door import COORDINATOR, OVERFLOW, Door, RoundLost, Summand
from cofactor.federation.labels import round_of
from cofactor.privacy.bounding import Bounded, coordinates, vector
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.laws import SkellamLaw
from cofactor.privacy.layers import Layers
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import DiscreteGaussian, Gaussian, Laplace, PoissonBinomial, Skellam
from cofactor.privacy.schedule import Release, Schedule
from cofactor.randomness import InsecureRandom, Random, SecureRandom

NOISE = Gaussian(noise_multiplier=4.0)
BUDGET = Budget(epsilon=2.0, delta=1e-6, unit="user")
SHARED, WHOLE = Skellam(noise_multiplier=4.0), Bound(size=10.0, norm="l2", unit="user")
LAYERS = Layers(parties=5, fewest=3)


def begun(budget: Budget = BUDGET) -> Ledger:
    return Ledger.create(None, party="north", fingerprint="data", budget=budget)


def door(ledger: Ledger | None = None, *, round: int = 1, random: Random | None = None, **more: Any) -> Door:
    made = Door(party="north", ledger=ledger, random=random or SecureRandom(), run="first", **more)
    made.begin(round)
    return made


def bounded(length: float = 0.5, *, count: int = 4) -> Bounded:
    return vector(np.full(count, length), limit=1.0, unit="user")


def event(what: str = "steps, round 1", **changes: Any) -> Event:
    usual: dict[str, Any] = {"what": what, "by": "north", "to": COORDINATOR, "mechanism": NOISE}
    return Event(**usual | {"bound": Bound(size=1.0, norm="l2", unit="user")} | changes)


def test_what_was_released_passes_and_is_in_the_ledger() -> None:
    ledger = begun()
    way = door(ledger, round=3)
    noisy = way.release(NOISE, bounded(), what="item sums")
    assert way.passed(noisy).protection == "noise"
    (entry,) = ledger.entries
    assert entry.run == "first"
    told = entry.event
    assert told is not None
    assert (told.what, told.by, told.to) == ("item sums, round 3", "north", COORDINATOR)
    assert (told.mechanism, told.bound, told.dimension, told.secure) == (NOISE, bounded().bound, 4, True)


def test_release_has_the_noise_it_is_charged_for() -> None:
    noisy = door(begun()).release(NOISE, bounded(0.0, count=20_000), what="sums")
    # A sample deviation of 20,000 is off by 0.5%; four parts in a hundred are eight of its deviations.
    assert float(noisy.std()) == pytest.approx(4.0, rel=0.04)


def shared(way: Door, *, count: int = 4, value: int = 0, **more: Any) -> NDArray[np.int64]:
    """Let the same whole number out, many times, with this party's part of the noise of a sum."""
    numbers = Bounded(value=np.full(count, value, np.int64), bound=WHOLE)
    return way.share(SHARED, numbers, what="sums", largest_sum=7, **more)


def test_share_has_its_part_of_the_variance_and_is_charged_in_whole() -> None:
    ledger = begun()
    way = door(ledger, layers=LAYERS)
    noisy = shared(way, count=40_000, value=5)
    # Before any excess is taken off: of the fewest survivors, three, one may collude.
    assert noisy.dtype == np.int64
    assert float((noisy - 5).var()) == pytest.approx(40.0**2 / 2, rel=0.06)
    passed = way.passed(noisy)
    assert passed.protection == "a share of noise"
    assert passed.summand == Summand(
        array=0, largest=7, noise=SkellamLaw(variance=5 * 40.0**2), layered=SkellamLaw(variance=40.0**2)
    )
    (entry,) = ledger.entries
    told = entry.event
    assert told is not None
    assert (told.mechanism, told.bound, told.dimension) == (SHARED, WHOLE, 40_000)
    assert (told.slack, told.secure, told.what) == (OVERFLOW, True, "sums, round 1")


def test_layers_of_a_share_are_drawn_by_the_secrets_of_its_round() -> None:
    way = door(begun(), layers=LAYERS)
    way.public(np.zeros(1, np.int64), largest_sum=1)
    noisy, first = shared(way, count=2_000), way.extra_secrets
    assert len(first) == len(LAYERS.grid) - 1
    assert first[1:] == chain(first[0], len(first))[1:]
    # With everybody left, all layers but the first are excess; the number of the array counts.
    excess = LAYERS.excess((2_000,), 40.0**2, 5, first, array=1)
    left = noisy - excess
    # 40^2 / 4, of 2,000 numbers: their variance is off by 3.2%, so 20% is six of its deviations.
    assert float(left.var()) == pytest.approx(400.0, rel=0.2)
    way.begin(2)
    assert way.extra_secrets != first


def test_party_without_layers_adds_all_the_noise_of_a_sum() -> None:
    way = door(begun())
    noisy = shared(way, count=40_000)
    assert float(noisy.var()) == pytest.approx(40.0**2, rel=0.06)
    assert way.passed(noisy).protection == "noise"
    assert way.passed(noisy).summand is None


def test_party_with_a_budget_of_its_own_adds_all_its_noise() -> None:
    ledger = begun()
    way = door(ledger, layers=LAYERS, shares=False, loudest=1.5)
    noisy = shared(way, count=40_000)
    assert float(noisy.var()) == pytest.approx(40.0**2, rel=0.06)
    assert way.passed(noisy).protection == "noise"
    assert way.passed(noisy).summand == Summand(
        array=0, largest=7, noise=SkellamLaw(variance=5 * 1.5 * 40.0**2)
    )
    assert len(ledger.entries) == 1


def test_numbers_that_stay_at_home_under_the_same_bound_are_charged_too() -> None:
    ledger = begun()
    shared(door(ledger, layers=LAYERS), beside=6)
    assert [entry.event.dimension for entry in ledger.entries if entry.event] == [10]


def test_cohort_draws_what_its_survivors_keep() -> None:
    way = door(begun(), layers=Layers(parties=100, fewest=60), cohort=True)
    noisy = shared(way, count=40_000, devices=80)
    kept = float(noisy.var()) * 79 / 80
    assert kept / 40.0**2 == pytest.approx(1.01, abs=0.06)
    assert way.passed(noisy).protection == "a share of noise"
    assert way.extra_secrets == []


def test_cohort_with_too_few_survivors_says_nothing() -> None:
    way = door(begun(), layers=Layers(parties=100, fewest=60), cohort=True)
    with pytest.raises(TooFew, match="59 devices are left, and 60 must be"):
        shared(way, devices=59)


BENT = PoissonBinomial(trials=3, theta=0.01, participants=2)
LIMIT = Bound(size=2.0, norm="max", unit="user", adjacency="replace")
ROOM = Budget(epsilon=10.0, delta=1e-6, unit="user", adjacency="replace")


def tossed(way: Door, values: NDArray[Any], coins: PoissonBinomial = BENT, **more: Any) -> NDArray[np.int64]:
    """Toss the coins of devices, a row of values each."""
    parts = [coordinates(part, limit=2.0) for part in np.array_split(values, max(1, len(values) // 3))]
    return way.coins(coins, parts, bound=LIMIT, shape=values.shape[1:], what="coins", **more)


def test_coins_of_a_device_are_charged_as_those_of_the_whole_sum() -> None:
    ledger = begun(ROOM)
    way = door(ledger, layers=LAYERS)
    way.public(np.zeros(1, np.int64), largest_sum=1)
    heads = tossed(way, np.full((1, 50, 4), 2.0))
    assert heads.shape == (50, 4)
    assert heads.dtype == np.int64
    assert heads.min() >= 0
    assert heads.max() <= 3
    passed = way.passed(heads)
    assert passed.protection == "a share of noise"
    # Nothing lies in layers, and no sum is larger than the coins of all parties.
    assert passed.summand == Summand(array=1, largest=15)
    (entry,) = ledger.entries
    told = entry.event
    assert told is not None
    assert (told.mechanism, told.bound, told.dimension) == (BENT, LIMIT, 200)
    assert (told.slack, told.secure, told.what) == (OVERFLOW, True, "coins, round 1")


@pytest.mark.parametrize(("layers", "honest"), [(LAYERS, 2), (None, 1)])
def test_coins_need_no_more_company_than_is_sure(layers: Layers | None, honest: int) -> None:
    ledger = begun(ROOM)
    way, values = door(ledger, layers=layers), np.zeros((1, 3))
    with pytest.raises(Refused, match=f"as few as {honest} honest ones"):
        tossed(way, values, replace(BENT, participants=honest + 1))
    assert not ledger.entries
    heads = tossed(way, values, replace(BENT, participants=honest))
    assert way.passed(heads).protection == ("noise" if honest == 1 else "a share of noise")


def test_cohort_tosses_the_coins_of_every_device_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    way = door(begun(ROOM), layers=Layers(parties=10, fewest=6), cohort=True)
    monkeypatch.setattr(way, "_charge", lambda _: None)  # no budget allows so many
    strong = replace(BENT, theta=0.2, participants=5)
    bent = np.array([2.0, -2.0, 0.0, 1.0, -1.0, 2.0, 9.0])
    heads = tossed(way, np.repeat(bent[:, None], 20_000, axis=1), strong, devices=7)
    chances = 0.5 + 0.2 * np.clip(bent, -2, 2) / 2
    mean, variance = 3 * chances.sum(), 3 * (chances * (1 - chances)).sum()
    # Of 20,000 draws: the mean is off by 0.016 and the variance by 1%; both limits are seven of these.
    assert heads.mean() == pytest.approx(mean, abs=0.11)
    assert heads.var() == pytest.approx(variance, rel=0.07)
    assert way.passed(heads).summand == Summand(array=0, largest=30)


def test_cohort_may_ask_some_of_its_devices_if_it_says_among_how_many_they_sum() -> None:
    ledger, some = begun(ROOM), Layers(parties=4, fewest=3)
    way = door(ledger, layers=Layers(parties=100, fewest=60), cohort=True)
    heads = tossed(way, np.zeros((3, 5)), devices=3, layers=some)
    assert way.passed(heads).summand == Summand(array=0, largest=12)
    with pytest.raises(Refused, match="as few as 2 honest ones"):
        tossed(way, np.zeros((3, 5)), replace(BENT, participants=3), devices=3, layers=some)
    with pytest.raises(TooFew, match="2 devices are left, and 3 must be"):
        tossed(way, np.zeros((2, 5)), devices=2, layers=some)
    with pytest.raises(TooFew, match="59 devices are left, and 60 must be"):
        tossed(way, np.zeros((59, 5)), devices=59)
    with pytest.raises(RunError, match="among all of the parties"):
        tossed(door(begun(ROOM), layers=LAYERS), np.zeros((1, 5)), layers=some)


def test_coins_that_differ_from_what_was_charged_do_not_leave() -> None:
    way = door(begun(ROOM), layers=Layers(parties=10, fewest=3), cohort=True)
    with pytest.raises(RunError, match="4 devices are not 5"):
        tossed(way, np.zeros((4, 5)), devices=5)
    other = coordinates(np.zeros((4, 5)), limit=3.0)
    for shape in ((5,), (6,)):
        with pytest.raises(RunError, match="differ from what was charged"):
            way.coins(BENT, [other], bound=LIMIT, shape=shape, what="coins", devices=4)
    assert not way._passed
    with pytest.raises(RunError, match="only a cohort"):
        tossed(door(begun(ROOM), layers=LAYERS), np.zeros((4, 5)), devices=4)


def test_coins_that_the_ledger_refuses_are_not_even_made() -> None:
    way = door(begun(Budget(epsilon=0.01, delta=1e-6, unit="user")), layers=LAYERS)
    made: list[int] = []

    def parts() -> Iterator[Bounded]:
        made.append(1)
        yield coordinates(np.zeros((1, 5)), limit=2.0)

    with pytest.raises(BudgetExceeded):
        way.coins(BENT, parts(), bound=LIMIT, shape=(5,), what="coins")
    assert not made
    assert not way._passed


def test_coins_are_bent_alike_at_all_parties() -> None:
    way = door(begun(ROOM), layers=LAYERS, shares=False)
    with pytest.raises(Refused, match="budget of its own"):
        tossed(way, np.zeros((1, 5)))
    with pytest.raises(RunError, match="tosses no coins"):
        tossed(door(begun(ROOM), layers=LAYERS), np.zeros((1, 5)), SHARED)  # type: ignore[arg-type]


@pytest.mark.parametrize("noise", [NOISE, DiscreteGaussian(), Laplace(), BENT])
def test_only_noise_that_adds_up_to_itself_has_shares(noise: Any) -> None:
    ledger = begun()
    with pytest.raises(RunError, match=f"{type(noise).__name__} noise has no shares. Use Skellam"):
        door(ledger, layers=LAYERS).share(
            noise, Bounded(value=np.zeros(3), bound=WHOLE), what="sums", largest_sum=1
        )
    assert not ledger.entries


def test_share_is_of_whole_numbers() -> None:
    ledger = begun()
    halves = Bounded(value=np.full(3, 0.5), bound=WHOLE)
    with pytest.raises(ConfigError, match="needs whole numbers"):
        door(ledger, layers=LAYERS).share(SHARED, halves, what="sums", largest_sum=1)
    assert not ledger.entries


def test_only_a_cohort_adds_the_noise_of_several_devices() -> None:
    for settings in ({}, {"layers": LAYERS}, {"layers": LAYERS, "shares": False}):
        ledger = begun()
        way = door(ledger, **settings)
        with pytest.raises(RunError, match="north: only a cohort adds the noise of several devices"):
            shared(way, devices=2)
        assert not ledger.entries
        assert not way._passed
    shared(door(begun(), cohort=True), devices=2)


@pytest.mark.parametrize("layers", [None, LAYERS])
def test_noise_that_cannot_be_drawn_is_not_charged(layers: Layers | None) -> None:
    ledger = begun()
    way = door(ledger, layers=layers)
    huge = Bounded(value=np.zeros(3, np.int64), bound=replace(WHOLE, size=1e12))
    with pytest.raises(ConfigError, match=r"variance.* Use a coarser grid"):
        way.share(SHARED, huge, what="sums", largest_sum=7)
    assert not ledger.entries
    assert not way._passed
    shared(way)
    assert len(ledger.entries) == 1


def test_share_that_the_ledger_refuses_does_not_leave() -> None:
    small = begun(Budget(epsilon=0.01, delta=1e-6, unit="user"))
    way = door(small, layers=LAYERS)
    with pytest.raises(BudgetExceeded):
        shared(way)
    assert not small.entries
    assert not way._passed
    with pytest.raises(RunError, match="without a ledger"):
        shared(door(layers=LAYERS))


def test_only_bounded_values_are_released() -> None:
    ledger = begun()
    with pytest.raises(ConfigError, match="only a Bounded value"):
        door(ledger).release(NOISE, np.zeros(3), what="sums")  # type: ignore[arg-type]
    assert not ledger.entries


def test_budget_is_kept_before_anything_leaves() -> None:
    small = begun(Budget(epsilon=0.01, delta=1e-6, unit="user"))
    way = door(small)
    with pytest.raises(BudgetExceeded):
        way.release(NOISE, bounded(), what="sums")
    assert not small.entries
    with pytest.raises(BudgetExceeded):
        way.made(event(), lambda: np.zeros(3))
    assert not small.entries


def test_charge_is_written_before_the_value_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = begun()
    way = door(ledger)
    seen: list[int] = []
    passes = way._passes

    def watched(*given: Any) -> Any:
        seen.append(len(ledger.entries))
        return passes(*given)

    monkeypatch.setattr(way, "_passes", watched)
    way.release(NOISE, bounded(), what="sums")
    way.made(event(), lambda: np.zeros(3))
    assert seen == [1, 2]


def test_what_did_not_pass_is_noticed_even_if_it_is_equal() -> None:
    way = door(begun())
    passed = way.public(np.arange(3.0))
    assert way.passed(passed).protection == "public"
    for other in (passed.copy(), np.arange(3.0), passed[:2], passed.view()):
        with pytest.raises(RunError, match="did not go through the door"):
            way.passed(other)


def test_what_is_changed_afterwards_at_home_does_not_change_what_left() -> None:
    way = door(begun())
    own = np.zeros(3)
    made = way.made(event(), lambda: own)
    public = way.public(own)
    own[:] = 5.0
    assert made.tolist() == public.tolist() == [0.0] * 3
    with pytest.raises(ValueError, match="read-only"):
        made[0] = 5.0


def test_what_passed_in_an_earlier_round_does_not_pass_again() -> None:
    way = door(begun())
    old = way.public(np.zeros(3))
    way.begin(2)
    with pytest.raises(RunError, match="did not go through the door"):
        way.passed(old)


def test_nothing_leaves_unprotected_where_there_is_a_budget() -> None:
    with pytest.raises(RunError, match="releases nothing without noise"):
        door(begun()).unprotected(np.zeros(3))
    way = door()
    assert way.passed(way.unprotected(np.zeros(3))).protection == "nothing"


def test_nothing_noisy_leaves_without_a_ledger() -> None:
    with pytest.raises(RunError, match="without a ledger"):
        door().release(NOISE, bounded(), what="sums")
    with pytest.raises(RunError, match="without a ledger"):
        door().made(event(), lambda: np.zeros(3))


def test_what_a_kernel_made_passes_and_is_charged() -> None:
    ledger = begun()
    way = door(ledger)
    assert way.passed(way.made(event(), lambda: np.zeros(3))).protection == "noise"
    assert len(ledger.entries) == 1


@pytest.mark.parametrize(
    "change",
    [{"what": "steps"}, {"what": "steps, round 2"}, {"what": "steps, round 11"}, {"by": "south"}],
    ids=str,
)
def test_event_of_another_round_or_party_is_refused(change: dict[str, Any]) -> None:
    ledger = begun()
    with pytest.raises(RunError, match="is no release of round 1"):
        door(ledger).made(replace(event(), **change), lambda: np.zeros(3))
    assert not ledger.entries


def test_label_is_what_a_kernel_needs() -> None:
    ledger = begun()
    way = door(ledger, round=7)
    label: Any = way.label("steps")
    way.made(replace(event(), **label), lambda: np.zeros(3))
    (entry,) = ledger.entries
    assert entry.event is not None
    assert entry.event.what == "steps, round 7"


def test_repeatable_noise_is_told_as_such() -> None:
    ledger = begun()
    way = door(ledger, random=InsecureRandom(3))
    way.release(NOISE, bounded(), what="sums")
    assert [entry.event.secure for entry in ledger.entries if entry.event] == [False]
    with pytest.raises(RunError, match="says that its noise is secure"):
        way.made(event(secure=True), lambda: np.zeros(3))
    way.made(event(secure=False), lambda: np.zeros(3))


def test_round_that_was_charged_before_a_crash_is_not_begun_again() -> None:
    ledger = begun()
    door(ledger, round=1).release(NOISE, bounded(), what="sums")
    after = Door(party="north", ledger=ledger, random=SecureRandom(), run="first")
    with pytest.raises(RoundLost, match="round 1 was charged before a crash"):
        after.begin(1)
    after.begin(2)
    after.begin(11)
    other = Door(party="north", ledger=ledger, random=SecureRandom(), run="second")
    other.begin(1)


def test_lost_round_is_an_error_of_ours_not_a_bug() -> None:
    assert issubclass(RoundLost, CofactorError)


@pytest.mark.parametrize(
    ("what", "number"),
    [
        ("sums, round 12", 12),
        ("a, round 1, round 2", 2),
        ("sums", None),
        ("12", None),
        ("sums, round x", None),
    ],
)
def test_round_of_an_event_is_read_off_its_label(what: str, number: int | None) -> None:
    assert round_of(event(what)) == number


def test_what_the_ledger_refuses_is_not_even_made() -> None:
    small = begun(Budget(epsilon=0.01, delta=1e-6, unit="user"))
    made: list[int] = []

    def make() -> NDArray[Any]:
        made.append(1)
        return np.zeros(3)

    with pytest.raises(BudgetExceeded):
        door(small).made(event(), make)
    assert not made


def test_nothing_leaves_beyond_the_schedule() -> None:
    release = Release(what="steps", mechanism=NOISE, bound=event().bound, dimension=3, times=2)
    plan, ledger = (
        Schedule(releases=(release,), rounds=2),
        begun(Budget(epsilon=9.0, delta=1e-6, unit="user")),
    )
    way = Door(party="north", ledger=ledger, random=SecureRandom(), run="first", schedule=plan)
    for round in (1, 2):
        way.begin(round)
        way.made(event(f"steps, round {round}").times(2), lambda: np.zeros(3))
    way.begin(3)
    with pytest.raises(Refused, match="released 6 times, and 4 were planned"):
        way.made(event("steps, round 3").times(2), lambda: np.zeros(3))
    with pytest.raises(Refused, match="0 were planned"):
        way.made(event("more, round 3"), lambda: np.zeros(3))
    assert len(ledger.entries) == 2


def test_a_joint_release_is_charged_as_such() -> None:
    ledger = begun(replace(BUDGET, epsilon=8.0))
    way = door(ledger, layers=LAYERS)
    way.release(NOISE, bounded(), what="alone")
    shared(way, joint=True)
    assert [entry.event.joint for entry in ledger.entries if entry.event] == [False, True]


def test_what_is_made_of_noisy_numbers_counts_as_noisy() -> None:
    way = door(begun())
    with pytest.raises(RunError, match="nothing noisy was made in round 1"):
        way.derived(np.zeros(2))
    noisy = way.release(NOISE, bounded(), what="sums")
    assert way.passed(way.derived(noisy / 2)).protection == "noise"
    way.begin(2)
    with pytest.raises(RunError, match="nothing noisy was made in round 2"):
        way.derived(noisy)


def test_what_is_sealed_for_another_party_is_called_so() -> None:
    way = door(begun())
    assert way.passed(way.sealed(np.zeros(8, np.uint8))).protection == "sealed for other parties"
