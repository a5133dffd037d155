"""What a sum refuses: nonsense from parties, and a coordinator that wants to see parts."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.crypto.keys import Identity
from cofactor.errors import ProtocolError, RunError
from cofactor.federation.channel import InProcess
from cofactor.federation.door import COORDINATOR, Door, RoundLost
from cofactor.federation.drive import drive
from cofactor.federation.host import Host
from cofactor.federation.messages import Letter, Message
from cofactor.federation.summing import (
    SUM_MESSAGES,
    CoordinatorSum,
    Form,
    PartySum,
    SumBegun,
    Summing,
    SumPart,
    SumStep,
    simulated,
)
from cofactor.privacy.layers import Layers
from cofactor.privacy.ledger import Ledger
from cofactor.randomness import InsecureRandom
from cofactor.recipes.sums import IdealSum, SecureSum
from tests.federation.making import Adder, ItemSums, horizontal
from tests.federation.summing_parties import play, prepared, question

SUMS: list[Any] = [IdealSum(dropout=0.4), SecureSum(dropout=0.4)]


@pytest.fixture(autouse=True)
def unreckoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what all this would cost."""
    monkeypatch.setattr(Ledger, "_within", lambda *_: True)


def form(**changes: Any) -> str:
    usual: dict[str, Any] = {"kind": "OffInAll", "arrays": [["hundredths", 0, [5]]], "bits": 32}
    return json.dumps([*(usual | changes).values()])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "makes no sense"),
        ("[1, 2]", "makes no sense"),
        ("null", "makes no sense"),
        ("[" * 100_000, "makes no sense"),
        (form(arrays=[["hundredths", 0]]), "makes no sense"),
        (form(arrays=[["hundredths", 0, ["x"]]]), "makes no sense"),
        (form(arrays=5), "makes no sense"),
        (form(arrays=[["hundredths", 0, [-5]]]), "impossible"),
        (form(bits=0), "impossible"),
        (form(bits=65), "impossible"),
        (form(bits="many"), "makes no sense"),
        ('["a", [["x", Infinity, [1]]], 8]', "makes no sense"),
        ('["a", [["x", 0, [1e400]]], 8]', "makes no sense"),
        ('["a", [["x", 0, [1]]], Infinity]', "makes no sense"),
    ],
    ids=range(14),
)
def test_form_that_makes_no_sense_is_refused(text: str, message: str) -> None:
    with pytest.raises(RunError, match=message):
        Form.read(text)


def test_form_survives_its_way_over_the_wire() -> None:
    made = Form("OffInAll", (("a", 0, (5, 2)), ("b", 3, ())), 41)
    assert Form.read(str(made)) == made
    assert made.length == 11
    found = made.split(np.arange(11))
    assert found["a"].tolist() == np.arange(10).reshape(5, 2).tolist()
    assert (found["b"].shape, int(found["b"])) == ((), 10)


@pytest.mark.parametrize("kind", ["Guess2", "SumStep"])
def test_sum_of_an_unknown_kind_is_refused(kind: str) -> None:
    with pytest.raises(RunError, match="is not expected here"):
        Form(kind, (("a", 0, (1,)),), 8).message(np.zeros(1, np.int64), ItemSums.messages)


def part(**changes: Any) -> SumPart:
    usual = {"form": form(), "values": np.zeros(5, np.int64)}
    usual |= {"variances": np.zeros(1), "scales": np.zeros(1)}
    return SumPart(**{"secrets": np.zeros((0, 32), np.uint8)} | usual | changes)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"values": np.zeros(4, np.int64)}, "south sent other numbers than it says"),
        ({"values": np.zeros((5, 1), np.int64)}, "south sent other numbers than it says"),
        ({"values": np.full(5, 0.5)}, "south sent other numbers than it says"),
        ({"variances": np.zeros(2)}, "south says something impossible about its noise"),
        ({"variances": np.array([-1.0])}, "south says something impossible about its noise"),
        ({"variances": np.array([np.nan])}, "south says something impossible about its noise"),
        ({"variances": np.array([np.inf])}, "south says something impossible about its noise"),
        ({"scales": np.zeros(2)}, "south says something impossible about its noise"),
        ({"scales": np.array([-1.0])}, "south says something impossible about its noise"),
        ({"scales": np.array([np.nan])}, "south says something impossible about its noise"),
        ({"scales": np.ones(1), "variances": np.ones(1)}, "south says that its noise follows two laws"),
    ],
    ids=range(11),
)
def test_numbers_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    how = Summing(layers=Layers(parties=3, fewest=2))
    with pytest.raises(RunError, match=message):
        simulated(how, {"north": part(), "south": part(**wrong)})
    if "values" not in wrong:
        usual: dict[str, Any] = {"variances": np.zeros(1), "scales": np.zeros(1)}
        usual["data"] = np.zeros(0, np.uint8)
        begun = [SumBegun(form=form(), **usual | changes) for changes in ({}, wrong)]
        with pytest.raises(RunError, match=message):
            CoordinatorSum(secure_summing(), dict(zip(("north", "south"), begun, strict=True)), "s", 1)


def secure_summing() -> Summing:
    roster = {name: Identity.generate().public for name in ("north", "south")}
    near = SecureSum().neighbourhood(2)
    return Summing(layers=Layers(parties=2, fewest=2), neighbourhood=near, roster=roster)


@dataclass(frozen=True, kw_only=True, eq=False)
class OneArray(Message):
    """A message with one array."""

    values: NDArray[Any]


def test_answer_that_is_summed_holds_whole_numbers() -> None:
    layers = Layers(parties=2, fewest=2)
    door = Door(party="north", ledger=None, random=InsecureRandom(1), run="r", layers=layers)
    door.begin(1)
    out = door.unprotected(np.zeros(3), largest_sum=5)
    with pytest.raises(RunError, match=r"values is not of whole numbers \(int64\)"):
        PartySum(Summing(layers=layers), OneArray(values=out), {"values": door.passed(out)}, door)


def step(round: int, data: bytes = b"") -> bytes:
    body = SumStep(data=np.frombuffer(data, np.uint8))
    return Letter(session="s", round=round, sender=COORDINATOR, body=body).to_bytes()


@dataclass(frozen=True, kw_only=True, eq=False)
class Both(Message):
    """What is summed, and beside it what is seen."""

    hundredths: NDArray[np.int64]
    sums: NDArray[Any]


def test_answer_is_summed_as_a_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def both(self: Adder, _: Any, message: Message) -> Message:
        first = self._part(self._off(message.arrays["mean"])).arrays["hundredths"]
        return Both(hundredths=first, sums=self.home.door.public(np.zeros(2)))

    monkeypatch.setattr(Adder, "handle", both)
    for aggregate in SUMS:
        host = prepared(ItemSums(aggregate=aggregate), horizontal(5)).hosts["north"]
        with pytest.raises(RunError, match="north: an answer that is summed is summed as a whole"):
            host.handle(question())


@pytest.mark.parametrize("aggregate", SUMS, ids=["ideal", "secure"])
def test_coordinator_that_wants_no_sum_sees_no_share(aggregate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    played = prepared(ItemSums(rounds=1, aggregate=aggregate), horizontal(5))
    monkeypatch.setattr(played.coordinator, "sums", lambda _: False)
    channel = InProcess(played.hosts)
    with pytest.raises(RunError, match="north began a sum in round 1, and no sum was wanted"):
        drive(played.coordinator, channel, played.session, played.rounds.append)
    channel.close()
    assert not played.coordinator.totals
    assert "a share of noise" not in played.protections("north")


def test_first_letter_of_a_secure_sum_holds_keys_and_no_numbers() -> None:
    host = prepared(ItemSums(aggregate=SecureSum()), horizontal(3)).hosts["north"]
    reply = Letter.from_bytes(host.handle(question()), SUM_MESSAGES)
    assert reply.protection == "public"
    assert set(reply.body.arrays) == {"variances", "scales", "data"}
    assert reply.body.arrays["variances"].tolist() == [200.0**2]
    # An advert is two keys, a signature and names of neighbours.
    assert reply.body.arrays["data"].size < 200


def test_host_that_cannot_sum_sends_no_share() -> None:
    played = prepared(ItemSums(aggregate=SecureSum()), horizontal(3))
    host = played.hosts["north"]
    bare = Host(host._participant, host._door, session="s", kinds=ItemSums.messages)
    with pytest.raises(RunError, match="north: an answer that is summed is summed as a whole"):
        bare.handle(question())


@pytest.mark.parametrize("identity", [None, Identity.generate()], ids=["none", "foreign"])
def test_secure_sum_needs_the_key_that_the_others_know(identity: Identity | None) -> None:
    played = prepared(ItemSums(aggregate=SecureSum()), horizontal(3))
    host = played.hosts["north"]
    stranger = Host(
        host._participant, host._door, session="s", kinds=ItemSums.messages,
        summing=played.session.summing, identity=identity,
    )  # fmt: skip
    with pytest.raises(RunError, match="north: a secure sum needs the key"):
        stranger.handle(question())


def test_steps_of_a_sum_that_was_never_begun_or_is_over_are_refused() -> None:
    host = prepared(ItemSums(aggregate=SecureSum()), horizontal(3)).hosts["north"]
    with pytest.raises(RoundLost, match="keys of the secure sum of round 1 are gone"):
        host.handle(step(1))
    host.handle(question())
    with pytest.raises(ProtocolError):
        host.handle(step(1, b"nonsense"))
    with pytest.raises(RoundLost, match="round 2"):
        host.handle(step(2))
    played = play(SecureSum(), 3)
    with pytest.raises(ProtocolError, match=r"is over. It is not opened twice"):
        played.hosts["north"].handle(step(1))


@pytest.mark.parametrize("aggregate", SUMS, ids=["ideal", "secure"])
def test_party_that_starts_again_sends_stored_numbers_but_has_no_keys(aggregate: Any, tmp_path: Path) -> None:
    played = prepared(ItemSums(aggregate=aggregate), horizontal(5), folder=tmp_path)
    host = played.hosts["north"]
    reply = host.handle(question())
    assert host.handle(question()) == reply
    again = Host(
        host._participant, host._door, session="s", kinds=ItemSums.messages, file=tmp_path / "north.npz",
        summing=played.session.summing, identity=host._identity,
    )  # fmt: skip
    if isinstance(aggregate, IdealSum):
        assert again.handle(question()) == reply
        return
    for data in (question(), step(1)):
        with pytest.raises(RoundLost, match="keys of the secure sum of round 1 are gone"):
            again.handle(data)
    assert Letter.from_bytes(again.handle(question(2)), SUM_MESSAGES).round == 2


def test_party_that_sends_nonsense_counts_as_dropped_out() -> None:
    played = prepared(ItemSums(rounds=1, aggregate=SecureSum(dropout=0.4)), horizontal(5))
    handle = played.hosts["east"].handle

    def nonsense(data: bytes) -> bytes:
        letter = Letter.from_bytes(handle(data), SUM_MESSAGES)
        if letter.protection != "a share of noise, masked":
            return letter.to_bytes()
        return replace(letter, body=SumStep(data=np.zeros(7, np.uint8))).to_bytes()

    played.hosts["east"].handle = nonsense  # type: ignore[method-assign]
    channel = InProcess(played.hosts)
    drive(played.coordinator, channel, played.session, played.rounds.append)
    channel.close()
    ideal = play(IdealSum(dropout=0.4), 5, leaves={"east": 2})
    np.testing.assert_array_equal(played.total, ideal.total)
    assert set(played.rounds[0].missing) == {"east"}
