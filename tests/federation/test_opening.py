"""Sums that decrypters open, in whole sessions: the same sums, whoever leaves, and nothing beside them."""

from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.crypto.keys import Identity
from cofactor.crypto.lattice import Lattice
from cofactor.crypto.opening_wire import read_request
from cofactor.crypto.openings import Collector
from cofactor.crypto.shared_key import SharedKey
from cofactor.crypto.threshold import ThresholdPaillier
from cofactor.errors import ProtocolError, Refused, RunError, TooFew
from cofactor.federation.channel import ANSWER, Failures, InProcess
from cofactor.federation.door import COORDINATOR
from cofactor.federation.drive import drive
from cofactor.federation.host import Host
from cofactor.federation.messages import Letter
from cofactor.federation.opening import opening_of
from cofactor.federation.summing import SUM_MESSAGES, Form, SumBegun, SumStep
from cofactor.privacy.ledger import Ledger
from cofactor.recipes import hosts
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.sums import IdealSum
from tests.crypto.fixed_primes import fixed_primes
from tests.federation.making import ItemSums, horizontal
from tests.federation.summing_parties import FirstParties, Played, plain_sum, play, prepared, question

NAMES = ("north", "south", "west", "east", "middle", "coast", "hills")
OPENING = ANSWER + 1
"""The first step after all uploads."""
KINDS: dict[str, Any] = {
    "shared": SharedSum(),
    "paillier": EncryptedSum(),
    "root": EncryptedSum(scheme=ThresholdPaillier(shares="root")),
    "trusting": EncryptedSum(recheck=False),
    "bfv": EncryptedSum(scheme=Lattice()),
    "ckks": EncryptedSum(scheme=Lattice(variant="ckks"), decrypters=2),
    "one key": EncryptedSum(scheme=SharedKey(), decrypters=2),
}
FEW = ["shared", "paillier", "bfv"]
TOLERANT = SharedSum(dropout=0.4)


@pytest.fixture(autouse=True, scope="module")
def unreckoned() -> Any:
    """Leave out what all this would cost; north, south and west are decrypters."""
    with pytest.MonkeyPatch.context() as patch, fixed_primes():
        patch.setattr(Ledger, "_within", lambda *_: True)
        patch.setattr(hosts, "SystemRandom", FirstParties)
        yield


@pytest.mark.parametrize(("kind", "count"), [*((kind, 4) for kind in KINDS), ("shared", 2), ("bfv", 2)])
def test_sums_are_those_of_the_parties_numbers_bit_for_bit(kind: str, count: int) -> None:
    played = play(KINDS[kind], count, private=False)
    assert played.total is not None
    assert played.total.dtype == np.int64
    np.testing.assert_array_equal(played.total, plain_sum(count, NAMES[:count]))
    assert played.rounds[0].missing == {}


@pytest.mark.parametrize("kind", FEW)
def test_noise_is_in_the_sum_as_if_it_were_simulated(kind: str) -> None:
    aggregate = KINDS[kind]
    np.testing.assert_array_equal(play(aggregate, 4).total, play(IdealSum(colluding=0.1), 4).total)


@pytest.mark.parametrize("leaves", [{}, {"south": ANSWER}, {"south": ANSWER, "middle": ANSWER}])
def test_all_noise_that_survivors_added_stays_in_the_sum(leaves: dict[str, int]) -> None:
    played = play(TOLERANT, 5, leaves=leaves)
    layers = TOLERANT.layers(5)
    assert layers is not None
    assert (layers.fewest, layers.colluding, len(layers.grid)) == (3, 1, 1)
    survivors = [name for name in NAMES[:5] if name not in leaves]
    expected = plain_sum(5, survivors)
    for name in survivors:
        expected += layers.added((5,), 200.0**2, played.hosts[name]._door._seeds)
    np.testing.assert_array_equal(played.total, expected)


leavers = st.dictionaries(st.sampled_from(NAMES[:5]), st.integers(ANSWER, OPENING + 1), max_size=5)


@settings(max_examples=30)
@given(leavers)
def test_whoever_leaves_the_sum_is_right_or_not_opened_at_all(leaves: dict[str, int]) -> None:
    survivors = [name for name in NAMES[:5] if leaves.get(name, 9) > ANSWER]
    helpers = [name for name in NAMES[:3] if leaves.get(name, 9) > OPENING]
    if len(survivors) < 3:
        with pytest.raises(Refused, match="The sum was not opened"):
            play(TOLERANT, 5, leaves=leaves, private=False)
        return
    played = play(TOLERANT, 5, leaves=leaves, private=False)
    if len(helpers) < 2:
        # A third decrypter is asked only one step later; by then it may have left, too.
        assert played.total is None
        assert played.rounds[0].answered == 0
        return
    if played.total is None:
        assert any(leaves.get(name) == OPENING + 1 for name in NAMES[:3])
        return
    np.testing.assert_array_equal(played.total, plain_sum(5, survivors))
    assert set(played.rounds[0].missing) <= set(leaves)


@pytest.mark.parametrize("aggregate", [KINDS["shared"], KINDS["paillier"]], ids=["shared", "paillier"])
@pytest.mark.parametrize("silent", ["north", "south", "west"])
def test_decrypter_that_is_silent_after_its_upload_is_in_the_sum(aggregate: Any, silent: str) -> None:
    failures = Failures(silent=frozenset({(silent, 1)}))
    played = play(aggregate, 4, failures=failures, private=False)
    np.testing.assert_array_equal(played.total, plain_sum(4, NAMES[:4]))


@pytest.mark.parametrize("kind", FEW)
def test_round_that_too_few_decrypters_answer_is_left_out_and_the_next_one_is_not(kind: str) -> None:
    aggregate = KINDS[kind]
    failures = Failures(silent=frozenset({("north", 1), ("west", 1)}))
    played = play(aggregate, 4, failures=failures, rounds=2)
    first, second = played.coordinator.totals
    assert first is None
    assert second is not None
    assert [each.answered for each in played.rounds] == [0, 4]
    assert all("too few answer" in why or "not heard" in why for why in played.rounds[0].missing.values())
    # Everybody has paid: the uploads were sent.
    assert all(len(ledger.entries) == 2 for ledger in played.ledgers.values())


def test_sum_of_fewer_parties_than_promised_ends_the_training_with_nothing_opened() -> None:
    played = prepared(ItemSums(rounds=1, aggregate=TOLERANT), horizontal(5))
    failures = Failures(absent=frozenset((name, 1) for name in ("north", "east", "west")))
    channel = InProcess(played.hosts, failures=failures)
    with pytest.raises(Refused, match=r"at least 3 of 5 parties must. The sum was not opened"):
        drive(played.coordinator, channel, played.session, played.rounds.append)
    channel.close()
    assert not played.coordinator.totals
    assert all("a part in opening the sum" not in played.protections(name) for name in NAMES[:5])


def test_without_dropouts_allowed_a_single_missing_party_is_enough() -> None:
    with pytest.raises(Refused, match=r"hills did not answer, and at least 7 of 7 parties must"):
        play(SharedSum(), 7, leaves={"hills": ANSWER})


@pytest.mark.parametrize("kind", FEW)
def test_transcript_says_that_nobody_saw_an_answer_and_who_opened_the_sum(kind: str) -> None:
    aggregate = KINDS[kind]
    played, open_too = play(aggregate, 4), play(aggregate, 4, private=False)
    count = aggregate.decrypter_count(4)
    for name in NAMES[:4]:
        helps = ["a part in opening the sum"] * len(asked_to_open(played, name))
        assert played.protections(name) == ["a share of noise, encrypted", *helps]
        assert open_too.protections(name)[0] == "nothing, encrypted"
        assert not helps or name in NAMES[:count]
    assert played.rounds[0].traffic == played.session.transcript.total_bytes


def asked_to_open(played: Played, party: str) -> list[Any]:
    sent = played.session.transcript.sent
    return [each for each in sent if each.receiver == party and each.kind == "SumStep"]


def test_letter_to_the_coordinator_holds_no_number_in_the_clear() -> None:
    for kind in FEW:
        host = prepared(ItemSums(aggregate=KINDS[kind]), horizontal(4), private=False).hosts["north"]
        reply = Letter.from_bytes(host.handle(question()), SUM_MESSAGES)
        own = plain_sum(4, ["north"])
        assert isinstance(reply.body, SumBegun)
        assert reply.body.variances.tolist() == [0.0]
        assert not any(value.tobytes() in reply.body.data.tobytes() for value in own if abs(value) > 2**8)
        assert not hasattr(host._sum, "_values")


def step(data: bytes, round: int = 1) -> bytes:
    body = SumStep(data=np.frombuffer(data, np.uint8))
    return Letter(session="s", round=round, sender=COORDINATOR, body=body).to_bytes()


def begun(played: Played) -> dict[str, bytes]:
    """Let all parties upload."""
    bodies = {
        name: Letter.from_bytes(host.handle(question()), SUM_MESSAGES).body
        for name, host in played.hosts.items()
    }
    return {name: body.data.tobytes() for name, body in bodies.items() if isinstance(body, SumBegun)}


def request(played: Played, uploads: dict[str, bytes]) -> bytes:
    """Return what a coordinator asks the first decrypter, of all these uploads."""
    summing, host = played.session.summing, played.hosts["north"]
    assert summing is not None
    body = Letter.from_bytes(host._reply, SUM_MESSAGES).body
    assert isinstance(body, SumBegun)
    asked = sha256(question()).hexdigest()
    opening = opening_of(summing, Form.read(body.form), f"s {asked}", 1)
    by_place = {summing.place(name): data for name, data in uploads.items()}
    return Collector(opening, summing.hiding, by_place).asks()[summing.place("north")]


def test_decrypters_open_sums_of_as_many_parties_as_the_noise_was_planned_for() -> None:
    played = prepared(ItemSums(aggregate=TOLERANT), horizontal(5))
    uploads = begun(played)
    request(played, {name: uploads[name] for name in NAMES[:3]})
    with pytest.raises(TooFew, match="2 parties have sent numbers, and it takes 3"):
        request(played, {name: uploads[name] for name in NAMES[:2]})


def test_party_without_a_key_opens_nothing() -> None:
    played = prepared(ItemSums(aggregate=SharedSum()), horizontal(4))
    asked = request(played, begun(played))
    with pytest.raises(ProtocolError, match="east holds no key, and is asked to open a sum"):
        played.hosts["east"].handle(step(asked))


def test_decrypter_opens_one_sum_a_round_whatever_it_is_asked() -> None:
    played = prepared(ItemSums(aggregate=TOLERANT), horizontal(5))
    uploads = begun(played)
    asked = request(played, uploads)
    first = played.hosts["north"].handle(step(asked))
    assert played.hosts["north"].handle(step(asked)) == first
    fewer = {name: data for name, data in uploads.items() if name != "east"}
    with pytest.raises(ProtocolError, match="Two are not opened"):
        played.hosts["north"].handle(step(request(played, fewer)))
    # Nor does asking the question again make it forget.
    played.hosts["north"].handle(question())
    with pytest.raises(ProtocolError, match="Two are not opened"):
        played.hosts["north"].handle(step(request(played, fewer)))


def test_uploads_of_a_round_are_not_opened_in_the_next_one() -> None:
    played = prepared(ItemSums(aggregate=TOLERANT), horizontal(5))
    asked = request(played, begun(played))
    played.hosts["north"].handle(question(2))
    with pytest.raises(ProtocolError, match="another sum than was agreed on"):
        played.hosts["north"].handle(step(asked, round=2))
    with pytest.raises(RunError, match="round 1 is over"):
        played.hosts["north"].handle(step(asked))


def test_nonsense_gets_nothing_opened_and_the_sum_is_opened_after_it() -> None:
    played = prepared(ItemSums(aggregate=SharedSum()), horizontal(4))
    asked = request(played, begun(played))
    for data in (b"", b"nonsense", asked[:-1], asked[:37]):
        with pytest.raises(ProtocolError):
            played.hosts["north"].handle(step(data))
    assert len(read_request(asked).uploads) == 4
    played.hosts["north"].handle(step(asked))


@pytest.mark.parametrize("identity", [None, Identity.generate()], ids=["none", "foreign"])
def test_upload_needs_the_key_that_the_others_know(identity: Identity | None) -> None:
    played = prepared(ItemSums(aggregate=SharedSum()), horizontal(3))
    host = played.hosts["north"]
    stranger = Host(
        host._participant, host._door, session="s", kinds=ItemSums.messages,
        summing=played.session.summing, identity=identity,
    )  # fmt: skip
    with pytest.raises(RunError, match="north: such a sum needs the key"):
        stranger.handle(question())


def test_party_whose_upload_makes_no_sense_counts_as_dropped_out() -> None:
    played = prepared(ItemSums(rounds=1, aggregate=TOLERANT), horizontal(5), private=False)
    handle = played.hosts["east"].handle

    def nonsense(data: bytes) -> bytes:
        letter = Letter.from_bytes(handle(data), SUM_MESSAGES)
        assert isinstance(letter.body, SumBegun)
        body = SumBegun(
            form=letter.body.form, variances=np.zeros(1), scales=np.zeros(1), data=letter.body.data[:-1]
        )
        return Letter(session="s", round=1, sender="east", body=body, protection=letter.protection).to_bytes()

    played.hosts["east"].handle = nonsense  # type: ignore[method-assign]
    channel = InProcess(played.hosts)
    drive(played.coordinator, channel, played.session, played.rounds.append)
    channel.close()
    np.testing.assert_array_equal(played.total, plain_sum(5, ["north", "south", "west", "middle"]))
    assert set(played.rounds[0].missing) == {"east"}
