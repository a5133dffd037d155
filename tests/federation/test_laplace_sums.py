"""Sums with discrete Laplace noise, of which each party adds a share: the sums, and nothing beside them.

Statistical checks fail by chance less than once in ten million runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.errors import ConfigError, TooFew
from cofactor.federation import summing
from cofactor.federation.channel import ANSWER
from cofactor.federation.door import OVERFLOW, Door, Summand, slack_of
from cofactor.federation.messages import Letter
from cofactor.federation.summing import SUM_MESSAGES, Form, PartySum, SumBegun, Summing, SumPart, simulated
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Bound
from cofactor.privacy.laws import PolyaLaw
from cofactor.privacy.layers import Layers
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import DiscreteLaplace, Skellam
from cofactor.randomness import Random, SecureRandom
from cofactor.recipes import hosts
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.sums import IdealSum, SecureSum
from tests.crypto.fixed_primes import fixed_primes
from tests.federation.making import LaplaceSums, horizontal, trained
from tests.federation.summing_parties import FirstParties, plain_sum, play, prepared, question
from tests.federation.test_summing import OneArray
from tests.privacy.making import assert_fits

NAMES = ("north", "south", "west", "east", "middle", "coast", "hills")
PURE = Budget(epsilon=2.0, delta=1e-9, unit="rating", adjacency="value")
BOUND = Bound(size=10.0, norm="l1", unit="rating", adjacency="value")
NOISE = DiscreteLaplace(noise_multiplier=1.5)
LAW = PolyaLaw(scale=15.0)
LAYERS = Layers(parties=5, fewest=3)
MANY = 40_000


def door(*, budget: Budget = PURE, random: Random | None = None, party: str = "north", **more: Any) -> Door:
    ledger = Ledger.create(None, party=party, fingerprint="data", budget=budget)
    made = Door(party=party, ledger=ledger, random=random or SecureRandom(), run="first", **more)
    made.begin(1)
    return made


def shared(way: Door, *, count: int = MANY, value: int = 0, **more: Any) -> NDArray[np.int64]:
    numbers = Bounded(value=np.full(count, value, np.int64), bound=BOUND)
    return way.share(NOISE, numbers, what="sums", largest_sum=7, **more)


# At the door.


def test_share_is_its_part_of_the_noise_and_is_charged_in_whole() -> None:
    way = door(layers=LAYERS)
    noisy = shared(way, value=5)
    # Before any excess is taken off: of the fewest survivors, three, one may collude.
    assert_fits(noisy - 5, LAW.part(Fraction(1, 2)))
    passed = way.passed(noisy)
    assert passed.protection == "a share of noise"
    room = PolyaLaw(scale=15.0 * 2**0.5, shape=Fraction(5, 2))
    assert passed.summand == Summand(array=0, largest=7, noise=room, layered=LAW)
    assert way._ledger is not None
    (entry,) = way._ledger.entries
    told = entry.event
    assert told is not None
    assert (told.mechanism, told.bound, told.dimension) == (NOISE, BOUND, MANY)
    assert (told.slack, told.secure, told.what) == (OVERFLOW, True, "sums, round 1")


def test_room_is_that_of_shares_where_nobody_is_louder() -> None:
    way = door(layers=LAYERS, loudest=0.5)
    summand = way.passed(shared(way)).summand
    assert summand is not None
    assert summand.noise == PolyaLaw(scale=15.0, shape=Fraction(5, 2))


@pytest.mark.parametrize("settings", [{}, {"layers": LAYERS, "shares": False}])
def test_party_without_company_adds_all_of_the_noise(settings: dict[str, Any]) -> None:
    way = door(**settings)
    noisy = shared(way)
    assert_fits(noisy, LAW)
    assert way.passed(noisy).protection == "noise"
    summand = way.passed(noisy).summand
    assert summand is None or summand.layered is None


def test_cohort_draws_what_its_survivors_keep() -> None:
    layers = Layers(parties=100, fewest=60)
    way = door(layers=layers, cohort=True)
    noisy = shared(way, devices=80)
    assert_fits(noisy, LAW.part(layers.part(80, devices=80)))
    assert 1 <= layers.part(80, devices=79) <= Fraction(102, 100)
    assert way.passed(noisy).protection == "a share of noise"
    with pytest.raises(TooFew, match="59 devices are left, and 60 must be"):
        shared(way, devices=59)


def test_cohort_that_shares_nothing_adds_the_noise_of_every_device() -> None:
    assert_fits(shared(door(cohort=True), count=20_000, devices=3), LAW.part(Fraction(3)))


@pytest.mark.parametrize("layers", [None, LAYERS])
def test_noise_that_cannot_be_drawn_is_not_charged(layers: Layers | None) -> None:
    way = door(layers=layers)
    huge = Bounded(value=np.zeros(3, np.int64), bound=Bound(size=1e6, norm="l1", unit="rating"))
    with pytest.raises(ConfigError, match=r"scale must be at most.* Use a coarser grid"):
        way.share(NOISE, huge, what="sums", largest_sum=7)
    assert way._ledger is not None
    assert not way._ledger.entries


def test_bound_in_another_norm_is_refused() -> None:
    numbers = Bounded(value=np.zeros(3, np.int64), bound=Bound(size=10.0, norm="l2", unit="user"))
    with pytest.raises(ConfigError, match="needs a bound in l1"):
        door(layers=LAYERS).share(NOISE, numbers, what="sums", largest_sum=7)


def test_delta_is_charged_where_a_sum_hides_and_only_there_for_noise_that_needs_none() -> None:
    assert slack_of(Skellam(), None) == slack_of(Skellam(), LAYERS) == OVERFLOW
    assert slack_of(NOISE, None) is None
    assert slack_of(NOISE, LAYERS) == OVERFLOW
    way = door(budget=Budget(epsilon=1.0, delta=1e-6, unit="rating", adjacency="value"), layers=LAYERS)
    shared(way, count=2)
    assert way._ledger is not None
    (entry,) = way._ledger.entries
    assert entry.event is not None
    assert entry.event.slack == OVERFLOW


# Parts that are added up.


def part_of(place: int, how: Summing, layers: Layers, **more: Any) -> SumPart:
    way = door(party=f"p{place}", layers=layers, **more)
    out = shared(way)
    found, _ = PartySum(how, OneArray(values=out), {"values": way.passed(out)}, way).begun(
        way.party, None, session="s", round=1
    )
    assert isinstance(found, SumPart)
    return found


def test_noise_that_stays_is_that_of_one_release_for_every_number_of_survivors() -> None:
    layers = Layers(parties=7, fewest=4, colluding=2)
    how = Summing(layers=layers)
    parts = {f"p{place}": part_of(place, how, layers) for place in range(7)}
    assert parts["p0"].scales.tolist() == [15.0]
    assert parts["p0"].variances.tolist() == [0.0]
    for count in (7, 6, 5, 4):
        _, total = simulated(how, dict(list(parts.items())[:count]))
        assert layers.part(count, devices=count - 2) == 1
        assert_fits(total, LAW.part(Fraction(count, count - 2)))


def test_noise_in_excess_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summing, "without_excess", lambda total, *_: total)
    with pytest.raises(AssertionError):
        test_noise_that_stays_is_that_of_one_release_for_every_number_of_survivors()


def test_parties_of_two_laws_have_a_sum_all_the_same() -> None:
    layers = Layers(parties=3, fewest=2)
    how = Summing(layers=layers)
    parts = {f"p{k}": part_of(k, how, layers) for k in range(2)}
    parts["p2"] = part_of(2, how, layers, shares=False)
    assert parts["p2"].scales.tolist() == [0.0]
    _, total = simulated(how, parts)
    # All of one party's, and of each of the other two a half.
    assert_fits(total, LAW.part(Fraction(2)))


# Whole sessions.


@contextmanager
def free() -> Iterator[None]:
    """Leave out what all this would cost; north, south and west are decrypters."""
    with pytest.MonkeyPatch.context() as patch, fixed_primes():
        patch.setattr(Ledger, "_within", lambda *_: True)
        patch.setattr(hosts, "SystemRandom", FirstParties)
        yield


@pytest.fixture
def unreckoned() -> Iterator[None]:
    with free():
        yield


@settings(max_examples=15)
@given(st.dictionaries(st.sampled_from(NAMES[:5]), st.integers(0, 4), max_size=2))
def test_secure_sum_is_the_simulated_sum_whoever_leaves_at_whichever_step(leaves: dict[str, int]) -> None:
    with free():
        ideal, secure = (
            play(aggregate, 5, leaves=leaves, kind=LaplaceSums)
            for aggregate in (IdealSum(dropout=0.4), SecureSum(dropout=0.4))
        )
    assert secure.total is not None
    assert ideal.total is not None
    np.testing.assert_array_equal(secure.total, ideal.total)


@pytest.mark.usefixtures("unreckoned")
@pytest.mark.parametrize(
    "aggregate", [IdealSum(dropout=0.4), SecureSum(dropout=0.4)], ids=["ideal", "secure"]
)
def test_excess_layers_are_taken_off_and_what_stays_is_exactly_the_rest(aggregate: Any) -> None:
    played = play(aggregate, 5, leaves={"south": 2}, kind=LaplaceSums)
    survivors = [name for name in NAMES[:5] if name != "south"]
    layers, law = aggregate.layers(5), PolyaLaw(scale=200.0)
    kept = layers.kept(4)
    assert kept < len(layers.grid)
    expected = plain_sum(5, survivors)
    for name in survivors:
        seeds = played.hosts[name]._door._seeds
        expected += layers.added((5,), law, seeds) - layers.excess((5,), law, 4, seeds[kept:])
    np.testing.assert_array_equal(played.total, expected)


@pytest.mark.usefixtures("unreckoned")
@pytest.mark.parametrize(
    "aggregate", [SharedSum(dropout=0.4), EncryptedSum(dropout=0.4)], ids=["shared", "paillier"]
)
@pytest.mark.parametrize("leaves", [{}, {"east": ANSWER}])
def test_all_noise_that_survivors_added_stays_where_decrypters_open(
    aggregate: Any, leaves: dict[str, int]
) -> None:
    played = play(aggregate, 5, leaves=leaves, kind=LaplaceSums)
    survivors = [name for name in NAMES[:5] if name not in leaves]
    layers = aggregate.layers(5)
    expected = plain_sum(5, survivors)
    for name in survivors:
        expected += layers.added((5,), PolyaLaw(scale=200.0), played.hosts[name]._door._seeds)
    np.testing.assert_array_equal(played.total, expected)


@pytest.mark.usefixtures("unreckoned")
def test_numbers_are_as_wide_as_the_largest_sum_with_its_noise() -> None:
    def bits(loudest: float) -> set[int]:
        played = prepared(LaplaceSums(aggregate=IdealSum()), horizontal(3))
        found = set()
        for host in played.hosts.values():
            host._door._loudest = loudest
            body = Letter.from_bytes(host.handle(question()), SUM_MESSAGES).body
            assert isinstance(body, SumBegun | SumPart)
            found.add(Form.read(body.form).bits)
        return found

    # 4 * 100 for each of 120 ratings, 48,000; and noise, whose tails are charged up to 42 bits of chance.
    assert bits(0.5) == {17}
    layers = IdealSum().layers(3)
    assert layers is not None
    law = PolyaLaw(scale=200.0).most(3, layers.fewest - layers.colluding, 1e4)
    reach = 48_000 + law.reach(np.log2(2 * 5 / (OVERFLOW / 4)))
    assert bits(1e4) == {int(2 * reach).bit_length()}


@pytest.mark.parametrize("delta", [1e-9, 1e-6])
def test_a_run_costs_exactly_its_epsilon(delta: float) -> None:
    budget = Budget(epsilon=3.0, delta=delta, unit="user")
    run = trained(
        LaplaceSums(rounds=3, aggregate=SecureSum(dropout=0.25)),
        horizontal(4),
        budget=budget,
        random=SecureRandom(),
    )
    assert run.guarantee.holds
    assert run.guarantee.epsilon is not None
    assert run.guarantee.epsilon == pytest.approx(3.0, rel=1e-3)
    assert run.guarantee.epsilon <= 3.0
