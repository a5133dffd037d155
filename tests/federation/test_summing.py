"""Sums of which nobody sees the parts: simulated and secure ones are the same sums."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.errors import Refused
from cofactor.federation import summing
from cofactor.federation.channel import Failures, InProcess
from cofactor.federation.door import COORDINATOR, Door, Summand
from cofactor.federation.drive import drive
from cofactor.federation.federation import Federation
from cofactor.federation.messages import Letter, Message
from cofactor.federation.run import Run
from cofactor.federation.summing import (
    SUM_MESSAGES,
    Form,
    PartySum,
    SumBegun,
    Summing,
    SumPart,
    simulated,
)
from cofactor.federation.verify import verify
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.laws import SkellamLaw
from cofactor.privacy.layers import Layers
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import Skellam
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.recipes.sums import IdealSum, SecureSum
from tests.federation.forging import Facts, change_facts, failed, forge_transcript, last_answer
from tests.federation.making import BUDGET, ItemSums, horizontal, parties, trained
from tests.federation.summing_parties import Played, plain_sum, play, prepared, question

NAMES = ("north", "south", "west", "east", "middle", "coast", "hills")
TOLERANCE = {3: 0.0, 4: 0.25, 5: 0.4, 6: 0.34, 7: 0.43}
"""By how many there are, the part of them that may drop out: 0, 1, 2, 2 and 3."""


@pytest.fixture(autouse=True, scope="module")
def unreckoned() -> Any:
    """Leave out what all this would cost."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "_within", lambda *_: True)
        yield


def sums(count: int) -> tuple[IdealSum, SecureSum]:
    return IdealSum(dropout=TOLERANCE[count]), SecureSum(dropout=TOLERANCE[count])


def may_leave(count: int) -> int:
    layers = IdealSum(dropout=TOLERANCE[count]).layers(count)
    assert layers is not None
    return count - layers.fewest


def test_tolerated_dropouts_are_as_many_as_these_tests_think() -> None:
    assert [may_leave(count) for count in TOLERANCE] == [0, 1, 2, 2, 3]


leavers = st.sampled_from([*TOLERANCE]).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.dictionaries(st.sampled_from(NAMES[:count]), st.integers(0, 4), max_size=may_leave(count)),
    )
)


@settings(max_examples=25)
@given(leavers)
def test_secure_sum_is_the_simulated_sum_whoever_leaves_at_whichever_step(
    drawn: tuple[int, dict[str, int]],
) -> None:
    count, leaves = drawn
    ideal, secure = (play(each, count, leaves=leaves) for each in sums(count))
    assert secure.total is not None
    assert ideal.total is not None
    assert secure.total.dtype == ideal.total.dtype == np.int64
    np.testing.assert_array_equal(secure.total, ideal.total)
    # Whoever left before the answers were sent is not in the sum.
    assert set(ideal.rounds[0].missing) == {name for name, step in leaves.items() if step <= 2}
    assert set(secure.rounds[0].missing) == set(leaves)


@settings(max_examples=25)
@given(leavers)
def test_without_a_budget_sums_are_those_of_the_survivors_numbers(drawn: tuple[int, dict[str, int]]) -> None:
    count, leaves = drawn
    survivors = [name for name in NAMES[:count] if leaves.get(name, 9) > 2]
    for aggregate in sums(count):
        played = play(aggregate, count, leaves=leaves, private=False)
        assert played.total is not None
        np.testing.assert_array_equal(played.total, plain_sum(count, survivors))


@pytest.mark.parametrize("kind", ["absent", "lost", "silent"])
def test_scripted_failures_up_to_the_tolerated_number_do_no_harm(kind: str) -> None:
    failing: Any = {kind: frozenset({("north", 1), ("east", 1)})}
    ideal, secure = (play(each, 5, failures=Failures(**failing)) for each in sums(5))
    assert secure.total is not None
    assert ideal.total is not None
    np.testing.assert_array_equal(secure.total, ideal.total)
    # Who is absent is not asked, so it pays nothing; whose answer is lost, or who is silent later, pays.
    charged = [name for name, ledger in secure.ledgers.items() if ledger.entries]
    assert charged == (["south", "west", "middle"] if kind == "absent" else [*NAMES[:5]])
    silent = [*NAMES[:5]] if kind == "silent" else ["south", "west", "middle"]
    exact = play(secure.coordinator.recipe.aggregate, 5, failures=Failures(**failing), private=False)
    np.testing.assert_array_equal(exact.total, plain_sum(5, silent))


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_sum_that_too_many_leave_is_left_out_and_nothing_changes(step: int) -> None:
    leaves = dict.fromkeys(("north", "east", "west"), step)
    played = play(SecureSum(dropout=0.4), 5, leaves=leaves, rounds=2)
    assert played.coordinator.totals == [None, None]
    assert played.coordinator.mean.tolist() == [3.0] * 5
    assert [each.answered for each in played.rounds] == [0, 0]
    told = [played.protections(name).count("shares of keys") for name in ("south", "middle")]
    assert told == ([2, 2] if step == 4 else [0, 0])


@pytest.mark.parametrize("aggregate", sums(5), ids=["ideal", "secure"])
def test_sum_that_too_few_begin_ends_the_training_with_nothing_opened(aggregate: Any) -> None:
    played = prepared(ItemSums(rounds=1, aggregate=aggregate), horizontal(5))
    failures = Failures(absent=frozenset((name, 1) for name in ("north", "east", "west")))
    channel = InProcess(played.hosts, failures=failures)
    with pytest.raises(Refused, match=r"at least 3 of 5 parties must. The sum was not opened"):
        drive(played.coordinator, channel, played.session, played.rounds.append)
    channel.close()
    assert not played.coordinator.totals
    assert played.coordinator.mean.tolist() == [3.0] * 5
    assert not any("keys" in word or "masked" in word for word in played.protections("south"))


@pytest.mark.parametrize("count", [5, 7])
@pytest.mark.parametrize(
    "aggregate", [IdealSum(dropout=0.4), SecureSum(dropout=0.4)], ids=["ideal", "secure"]
)
def test_excess_layers_are_taken_off_and_what_stays_is_exactly_the_rest(count: int, aggregate: Any) -> None:
    leaves = {"south": 2}
    played = play(aggregate, count, leaves=leaves)
    survivors = [name for name in NAMES[:count] if name not in leaves]
    layers = aggregate.layers(count)
    kept = layers.kept(len(survivors))
    assert kept < len(layers.grid)
    expected = plain_sum(count, survivors)
    for name in survivors:
        door = played.hosts[name]._door
        variance = (200.0 * 1.0) ** 2  # the schedule's noise multiplier, on hundredths
        # All of the noise, less the layers from `kept` on.
        noise = layers.added((5,), variance, door._seeds)
        expected += noise - layers.excess((5,), variance, len(survivors), door._seeds[kept:])
    assert played.total is not None
    np.testing.assert_array_equal(played.total, expected)


MANY = 40_000


def noisy_part(place: int, how: Summing, layers: Layers, **more: Any) -> SumPart:
    """Return a party's part of a sum of zeros."""
    ledger = Ledger.create(None, party=f"p{place}", fingerprint="x", budget=BUDGET)
    door = Door(
        party=f"p{place}", ledger=ledger, random=InsecureRandom(place), run="r", layers=layers, **more
    )
    door.begin(1)
    zeros = Bounded(value=np.zeros(MANY, np.int64), bound=Bound(size=100.0, norm="l2", unit="user"))
    out = door.share(Skellam(noise_multiplier=1.0), zeros, what="sums", largest_sum=1)
    one = OneArray(values=out)
    part, _ = PartySum(how, one, {"values": door.passed(out)}, door).begun(
        door.party, None, session="s", round=1
    )
    assert isinstance(part, SumPart)
    return part


@dataclass(frozen=True, kw_only=True, eq=False)
class OneArray(Message):
    """A message with one array."""

    values: NDArray[Any]


def test_noise_that_stays_is_that_of_one_release_for_every_number_of_survivors() -> None:
    layers = Layers(parties=7, fewest=4, colluding=2)
    how = Summing(layers=layers)
    parts = {f"p{place}": noisy_part(place, how, layers) for place in range(7)}
    for count in (7, 6, 5, 4):
        _, total = simulated(how, dict(list(parts.items())[:count]))
        honest = float(total.var()) * (count - 2) / count
        # The variance of 40,000 numbers is off by 0.7%; six times that in either direction, and ratio 1.02.
        assert 0.957 < honest / 100.0**2 < 1.02 * 1.043, count


def test_noise_in_excess_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summing, "without_excess", lambda total, *_: total)
    with pytest.raises(AssertionError):
        test_noise_that_stays_is_that_of_one_release_for_every_number_of_survivors()


def test_party_that_adds_all_of_its_noise_leaves_nothing_to_take_off() -> None:
    layers = Layers(parties=4, fewest=3)
    how = Summing(layers=layers)
    parts = {f"p{k}": noisy_part(k, how, layers, shares=k > 0, loudest=1.0) for k in range(4)}
    assert parts["p0"].variances.tolist() == [0.0]
    _, total = simulated(how, parts)
    # All of one party's, and of each of the other three a third.
    assert float(total.var()) / 100.0**2 == pytest.approx(1 + 3 / 3, rel=0.06)


def test_transcript_tells_what_everybody_saw_of_a_sum() -> None:
    ideal, secure = (play(each, 4) for each in sums(4))
    (part,) = (each for each in ideal.session.transcript.sent if each.sender == "north")
    assert (part.kind, part.receiver) == ("SumPart", "the sum of all answers")
    assert part.protection == "a share of noise, SIMULATION"
    own = [each for each in secure.session.transcript.sent if each.sender == "north"]
    assert [(each.kind, each.receiver) for each in own] == [
        ("SumBegun", COORDINATOR),
        *[("SumStep", COORDINATOR)] * 4,
    ]
    passed_on = {e.protection for e in secure.session.transcript.sent if e.kind == "SumStep"}
    assert "between parties" in passed_on
    assert "a share of noise" not in passed_on
    assert secure.rounds[0].traffic == secure.session.transcript.total_bytes


def totals(run: Any) -> Any:
    assert run.model is not None
    return run.model.item_bias


def test_party_with_a_budget_of_its_own_adds_all_its_noise_and_the_sum_has_room() -> None:
    strict, *others = parties(4)
    mixed = [replace(strict, budget=replace(BUDGET, epsilon=0.25)), *others]
    federation = Federation.horizontal(mixed)
    ideal, secure = (trained(ItemSums(rounds=2, aggregate=each), federation) for each in sums(4))
    np.testing.assert_array_equal(totals(ideal), totals(secure))
    assert secure.together is not None
    losses = {name: each.epsilon or np.inf for name, each in secure.together.parties.items()}
    assert losses["north"] < 1 < losses["south"]
    exact = trained(ItemSums(rounds=2, aggregate=SecureSum()), federation, budget=None)
    assert not np.array_equal(totals(exact), totals(secure))


def bits_of(played: Played) -> Mapping[str, int]:
    found = {}
    for name, host in played.hosts.items():
        body = Letter.from_bytes(host.handle(question()), SUM_MESSAGES).body
        assert isinstance(body, SumBegun | SumPart)
        found[name] = Form.read(body.form).bits
    return found


def test_numbers_are_as_wide_as_the_largest_sum_with_its_noise() -> None:
    # 4 * 100 for each of 120 ratings, and noise that is charged not to exceed 8 or 9 deviations.
    played = prepared(ItemSums(aggregate=IdealSum()), horizontal(3))
    assert set(bits_of(played).values()) == {17}
    silent = prepared(ItemSums(aggregate=IdealSum()), horizontal(3), private=False)
    assert set(bits_of(silent).values()) == {17}
    loud = prepared(ItemSums(aggregate=IdealSum()), horizontal(3))
    for host in loud.hosts.values():
        host._door._loudest = 1e6
    assert set(bits_of(loud).values()) == {23}


def test_room_for_noise_is_counted_only_where_there_is_noise() -> None:
    quiet = Summand(array=0, largest=100)
    noisy = replace(quiet, noise=SkellamLaw(variance=400.0))
    assert summing._largest(quiet, 5) == 100
    assert 100 + 7 * 20 < summing._largest(noisy, 5) < 100 + 12 * 20


@pytest.fixture(scope="module", params=sums(4), ids=["ideal", "secure"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A run of four parties, of which one leaves in the second round."""
    run = trained(
        ItemSums(rounds=2, aggregate=request.param),
        horizontal(4),
        random=SecureRandom(),
        failures=Failures(lost=frozenset({("east", 2)})),
    )
    folder = run.save(tmp_path_factory.mktemp("stored") / "run")
    return type(request.param).__name__, folder


@pytest.fixture
def folder(stored: tuple[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored[1], tmp_path / "copy"))


def test_honest_sums_are_borne_out(stored: tuple[str, Path], folder: Path) -> None:
    verdict = verify(folder)
    assert not failed(verdict)
    details = {check.name: check.detail for check in verdict.checks}
    assert ("8 answers left" if stored[0] == "SecureSum" else "7 answers left") in details["answers"]
    assert Run.load(folder).guarantee.holds == (stored[0] == "SecureSum")


def test_share_that_somebody_saw_is_found_out(folder: Path) -> None:
    def unmasked(lines: list[Facts]) -> None:
        for line in lines:
            if line["protection"].startswith("a share of noise"):
                line["protection"] = "a share of noise"

    forge_transcript(folder, unmasked)
    assert "saw an answer that had only a share of the noise" in failed(verify(folder))["answers"]


def test_protection_that_nobody_knows_is_found_out(folder: Path) -> None:
    forge_transcript(folder, lambda lines: last_answer(lines).update(protection="noise, shaken"))
    assert "nobody knows what 'noise, shaken' protects" in failed(verify(folder))["answers"]


def test_simulated_sum_that_claims_to_protect_is_found_out(stored: tuple[str, Path], folder: Path) -> None:
    simulated = stored[0] == "IdealSum"

    def claim(facts: Facts) -> None:
        honest = Guarantee.from_json(facts["guarantee"])
        facts["guarantee"] = replace(honest, why_not=()).as_json()

    change_facts(folder, claim)
    assert Run.load(folder).guarantee.holds
    wrong = failed(verify(folder))
    if simulated:
        assert "only a simulation hid an answer, and the run promises privacy" in wrong["answers"]
    else:
        assert not wrong
