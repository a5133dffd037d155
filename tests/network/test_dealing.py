"""Keys of sums among parties who do not trust whoever carries their messages."""

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
import pytest

from cofactor.crypto.boxes import apart, joined, opened_from
from cofactor.crypto.keys import Identity, KeyPair
from cofactor.crypto.lattice import Lattice
from cofactor.crypto.openings import Collector, Decrypter, Opening, uploaded
from cofactor.crypto.shared_key import SharedKey
from cofactor.crypto.threshold import ThresholdPaillier
from cofactor.crypto.written_keys import cipher_of, holder_of, made
from cofactor.errors import ConfigError, ProtocolError, RunError
from cofactor.federation.messages import Letter, Message
from cofactor.network import dealing
from cofactor.network.dealing import DEALER, LOT, Dealing, DealingPost, dealing_assumptions, drawn, relay
from cofactor.network.dealt_keys import DealtKeys
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from tests.crypto.fixed_primes import fixed_primes
from tests.crypto.paillier_keys import PAPER

NAMES = ("north", "south", "west", "east")
KINDS: dict[str, Any] = {
    "shared": SharedSum(),
    "shared by two": SharedSum(decrypters=2),
    "paillier": EncryptedSum(),
    "root": EncryptedSum(scheme=ThresholdPaillier(shares="root", quorum=3)),
    "one key": EncryptedSum(scheme=SharedKey(), decrypters=2),
    "one holder": EncryptedSum(scheme=SharedKey(packed=False)),
    "bfv": EncryptedSum(scheme=Lattice()),
    "ckks": EncryptedSum(scheme=Lattice(variant="ckks"), decrypters=3),
}
SEALED = ["paillier", "root", "one key", "ckks"]
"""Where somebody seals secrets for others."""
HELLOS, NONCES, DEALT, CONFIRMED = 1, 2, 3, 4
"""The steps in which parties hear of these."""
Tamper = Callable[[str, int, dict[str, bytes]], dict[str, bytes]]


@pytest.fixture(autouse=True, scope="module")
def known_primes() -> Iterator[None]:
    with fixed_primes():
        yield


@dataclass
class Table:
    """Parties, and a coordinator that carries letters, keeps them, and may change them."""

    aggregate: Any
    session: str = "s"
    tamper: Tamper | None = None
    identities: dict[str, Identity] = field(default_factory=lambda: {n: Identity.generate() for n in NAMES})
    carried: list[bytes] = field(default_factory=list)
    parties: dict[str, Dealing] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parties = {name: self.party(name) for name in NAMES}

    @property
    def roster(self) -> dict[str, bytes]:
        return {name: identity.public for name, identity in self.identities.items()}

    def party(self, name: str, aggregate: Any = None) -> Dealing:
        return Dealing(
            aggregate or self.aggregate,
            party=name,
            roster=self.roster,
            identity=self.identities[name],
            session=self.session,
        )

    def ask_all(self, questions: dict[str, Message]) -> Mapping[str, Message]:
        return {name: self.ask(name, question) for name, question in questions.items()}

    def ask(self, name: str, question: Message) -> Message:
        assert isinstance(question, DealingPost)
        if self.tamper is not None:
            notes = self.tamper(name, question.step, dict(question.entries()))
            question = DealingPost.of(question.step, notes.items())
        return self.carry(name, self.parties[name].take(self.carry("coordinator", question)))

    def carry(self, sender: str, body: Message) -> Message:
        self.carried.append(Letter(session=self.session, round=0, sender=sender, body=body).to_bytes())
        return Letter.from_bytes(self.carried[-1], [DealingPost]).body

    def deal(self) -> DealtKeys:
        return relay(self.aggregate, roster=self.roster, session=self.session, ask_all=self.ask_all)

    def results(self) -> dict[str, DealtKeys]:
        found = {name: party.result for name, party in self.parties.items()}
        return {name: each for name, each in found.items() if each is not None}


def check_sum_opens(table: Table, kept: Mapping[str, DealtKeys], public: DealtKeys) -> None:
    """Let every party upload under what it has kept, and open the sum by what decrypters have."""
    aggregate, decryption = table.aggregate, public.decryption(table.aggregate)
    values = np.array([[5, -3, 2**30], [1, 0, 7], [-9, 4, 1], [100, 200, 300]])
    opening = Opening(
        session="sums",
        round=1,
        roster=tuple(table.roster.values()),
        decrypters=tuple(NAMES.index(name) for name in decryption.decrypters),
        fewest=len(NAMES),
        length=3,
        bits=40,
        keys=decryption.hiding.identity,
        recheck=decryption.recheck,
    )
    uploads = {
        at: uploaded(opening, at, table.identities[name], kept[name].decryption(aggregate).hiding, values[at])
        for at, name in enumerate(NAMES)
    }
    collector = Collector(opening, decryption.hiding, uploads)
    keys = {name: kept[name].key(aggregate) for name in NAMES}
    assert {name for name in NAMES if keys[name] is not None} == set(decryption.decrypters)
    pieces = decryption.hiding.pieces(3, 40)
    while not collector.finished:
        replies = {}
        for place, asked in collector.asks().items():
            key = keys[NAMES[place]]
            assert key is not None
            replies[place] = Decrypter(opening, key.number, key.opener, pieces).answer(asked)
        collector.take(replies)
    np.testing.assert_array_equal(collector.opened(), values.sum(axis=0))


@pytest.mark.parametrize("kind", KINDS)
def test_all_parties_arrive_at_keys_with_which_a_sum_opens(kind: str) -> None:
    table = Table(KINDS[kind])
    public = table.deal()
    kept = table.results()
    assert {each.decrypters for each in kept.values()} == {public.decrypters}
    assert len(public.decrypters) == KINDS[kind].decrypter_count(len(NAMES))
    check_sum_opens(table, kept, public)


@pytest.mark.parametrize("kind", KINDS)
def test_keys_that_were_stored_open_sums_after_a_restart(kind: str) -> None:
    table = Table(KINDS[kind])
    public = DealtKeys.from_bytes(table.deal().to_bytes())
    kept = {name: DealtKeys.from_bytes(each.to_bytes()) for name, each in table.results().items()}
    assert public.secret == b""
    assert public.key(table.aggregate) is None
    check_sum_opens(table, kept, public)


def test_every_decrypter_has_a_share_of_its_own_and_others_have_none() -> None:
    table = Table(KINDS["paillier"])
    public = table.deal()
    kept = table.results()
    assert len({kept[name].secret for name in public.decrypters}) == 3
    assert [kept[name].secret for name in NAMES if name not in public.decrypters] == [b""]


# What a coordinator can do


@pytest.mark.parametrize("kind", KINDS)
def test_no_secret_is_in_what_the_coordinator_carries(kind: str) -> None:
    table = Table(KINDS[kind])
    public = table.deal()
    carried = b"".join(table.carried)
    secrets_kept = [each.secret for each in table.results().values() if each.secret]
    assert len(secrets_kept) == len(public.decrypters)
    for secret in secrets_kept:
        # A lattice key holds the public one as well: what is secret of it stands at its end.
        assert secret not in carried
        assert secret[-256:] not in carried


@pytest.mark.parametrize("kind", SEALED)
def test_a_share_opens_for_its_decrypter_and_for_nobody_else(kind: str) -> None:
    table = Table(KINDS[kind])
    table.deal()
    record = table.parties["east"]._record
    dealer, receiver, *_ = record.decrypters
    box, bound_to = record.boxes[receiver], record.bound_to(receiver)
    pairs = {name: party._pair for name, party in table.parties.items()}
    assert (
        opened_from(record.keys[dealer], pairs[receiver], box, bound_to) == table.results()[receiver].secret
    )
    for name, pair in {**pairs, "a stranger": KeyPair.fresh()}.items():
        for peer, key in record.keys.items():
            if {name, peer} == {dealer, receiver}:
                continue
            with pytest.raises(ProtocolError, match="does not open"):
                opened_from(key, pair, box, bound_to)
    with pytest.raises(ProtocolError, match="does not open"):
        opened_from(record.keys[dealer], pairs[receiver], box, record.bound_to("another"))


def changed(step: int, victim: str, change: Callable[[bytes], bytes]) -> Tamper:
    def tamper(receiver: str, at: int, notes: dict[str, bytes]) -> dict[str, bytes]:
        if at == step and receiver != victim:
            notes[victim] = change(notes[victim])
        return notes

    return tamper


def flipped(note: bytes) -> bytes:
    return note[:-1] + bytes([note[-1] ^ 1])


@pytest.mark.parametrize("kind", ["shared", "paillier"])
@pytest.mark.parametrize("step", [HELLOS, NONCES, CONFIRMED])
def test_a_key_a_nonce_or_a_confirmation_that_was_changed_is_refused(kind: str, step: int) -> None:
    table = Table(KINDS[kind], tamper=changed(step, "south", flipped))
    with pytest.raises(ProtocolError, match=r"^south: its note is not signed by the key that is pinned"):
        table.deal()
    assert set(table.results()) <= {"south"}


@pytest.mark.parametrize("kind", KINDS)
def test_keys_that_were_changed_on_their_way_are_refused(kind: str) -> None:
    def tamper(receiver: str, at: int, notes: dict[str, bytes]) -> dict[str, bytes]:
        return {name: flipped(note) for name, note in notes.items()} if at == DEALT else notes

    table = Table(KINDS[kind], tamper=tamper)
    with pytest.raises(ProtocolError, match="its note is not signed by the key that is pinned"):
        table.deal()
    assert table.results() == {}


def test_a_key_of_the_coordinators_own_passes_for_nobodys() -> None:
    stranger, pair = Identity.generate(), KeyPair.fresh()

    def own(note: bytes) -> bytes:
        said = note[64:96] + pair.public
        return stranger.sign(said) + said

    table = Table(KINDS["shared"], tamper=changed(HELLOS, "west", own))
    with pytest.raises(ProtocolError, match=r"^west: its note is not signed"):
        table.deal()


def test_notes_of_another_session_are_refused() -> None:
    first = Table(KINDS["shared"])
    first.deal()
    old = Letter.from_bytes(first.carried[len(NAMES) * 2], [DealingPost]).body
    assert isinstance(old, DealingPost)
    notes = dict(old.entries())
    assert set(notes) == set(NAMES)
    second = Table(
        KINDS["shared"],
        session="another",
        identities=first.identities,
        tamper=changed(HELLOS, "east", lambda _: notes["east"]),
    )
    with pytest.raises(ProtocolError, match=r"^east: its note is not signed"):
        second.deal()


def test_an_earlier_note_of_a_party_that_began_anew_is_not_passed_off_as_its_own() -> None:
    table = Table(KINDS["shared"])
    old = table.parties["east"].take(DealingPost.of(0, []))
    assert isinstance(old, DealingPost)
    table.parties["east"] = table.party("east")
    table.tamper = lambda _, at, notes: notes | dict(old.entries()) if at == HELLOS else notes
    with pytest.raises(ProtocolError, match=r"^east: an earlier note of its own"):
        table.deal()


def test_parties_that_are_told_different_things_find_out_though_one_of_them_lies() -> None:
    table = Table(KINDS["shared"])
    other = table.party("east").take(DealingPost.of(0, []))
    assert isinstance(other, DealingPost)

    def tamper(receiver: str, at: int, notes: dict[str, bytes]) -> dict[str, bytes]:
        """East has signed two keys, and north is shown the other one."""
        return notes | dict(other.entries()) if (receiver, at) == ("north", HELLOS) else notes

    table.tamper = tamper
    with pytest.raises(ProtocolError, match="parties were told different things"):
        table.deal()
    assert table.results() == {}


def test_a_party_that_tells_another_number_than_it_committed_to_is_refused() -> None:
    table = Table(KINDS["shared"])
    east = table.parties["east"]
    take = east.take

    def late(message: Message) -> DealingPost:
        if isinstance(message, DealingPost) and message.step == HELLOS:
            # It has seen what others committed to, and would rather have another number.
            east._nonce = secrets.token_bytes(32)
            east._reveal = lambda: east._nonce  # type: ignore[method-assign]
        return take(message)

    east.take = late  # type: ignore[method-assign]
    with pytest.raises(ProtocolError, match="east tells another number than it committed to"):
        table.deal()


def test_no_keys_are_used_that_a_party_has_understood_otherwise() -> None:
    table = Table(KINDS["bfv"])
    table.parties["west"]._confirm = lambda: bytes(32)  # type: ignore[method-assign]
    with pytest.raises(ProtocolError, match="west has understood other keys than the rest"):
        table.deal()
    notes: dict[str, bytes] = {}
    table = Table(KINDS["bfv"])
    table.parties["west"]._confirm = lambda: bytes(32)  # type: ignore[method-assign]
    for step in range(CONFIRMED):
        answers = table.ask_all({name: DealingPost.of(step, notes.items()) for name in NAMES})
        notes = {name: note for each in answers.values() for name, note in each.entries()}  # type: ignore[attr-defined]
    for name in NAMES:
        with pytest.raises(ProtocolError, match="has understood other keys than the rest"):
            table.ask(name, DealingPost.of(CONFIRMED, notes.items()))
    assert table.results() == {}


def test_keys_that_are_none_or_anothers_are_refused() -> None:
    table = Table(KINDS["shared"])
    hello = table.parties["west"]._hello()
    north = table.parties["north"]._pair.public
    for key, match in (
        (bytes(32), "west tells a key with which nobody can seal"),
        (north, "Two parties have the same key"),
        (north[:-1], "west begins a dealing of keys otherwise"),
    ):
        again = Table(KINDS["shared"])
        again.parties["north"]._pair = table.parties["north"]._pair
        again.parties["west"]._hello = lambda key=key: hello[:32] + key  # type: ignore[method-assign, misc]
        with pytest.raises(ProtocolError, match=match):
            again.deal()


def test_parties_with_other_settings_are_refused() -> None:
    table = Table(KINDS["shared"])
    table.parties["west"] = table.party("west", SharedSum(needed=3))
    with pytest.raises(ProtocolError, match=r"^west: its note is not signed .* these settings"):
        table.deal()


def test_nobody_speaks_for_somebody_else() -> None:
    table = Table(KINDS["shared"])
    with pytest.raises(ConfigError, match="north: the roster has another key for this party"):
        Dealing(
            SharedSum(), party="north", roster=table.roster, identity=table.identities["south"], session="s"
        )


# What a decrypter that makes keys can do


def test_a_key_of_another_size_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dealing, "made", lambda _, count: made(SharedKey(bits=1024), count))
    with pytest.raises(ProtocolError, match=r"The keys that \w+ has made are refused. .*no key of 2048 bits"):
        Table(KINDS["paillier"]).deal()


@pytest.mark.parametrize("kind", ["one key", "ckks", "one holder", "bfv"])
def test_a_secret_that_does_not_fit_its_public_key_is_refused(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(scheme: Any, count: int) -> Any:
        public, found = made(scheme, count)
        others = made(scheme, count)[1] if isinstance(scheme, Lattice) else [bytes(len(found[0]))] * count
        return public, others

    monkeypatch.setattr(dealing, "made", other)
    with pytest.raises(ProtocolError, match=r"The key that \w+ made for \w+ is refused"):
        Table(KINDS[kind]).deal()


def test_public_keys_that_hold_the_secret_or_other_parameters_are_refused() -> None:
    public, (secret,) = made(Lattice(), 1)
    with pytest.raises(ProtocolError, match="secret where it must not have one"):
        cipher_of(Lattice(), 1, secret)
    with pytest.raises(ProtocolError, match="none where it must"):
        holder_of(Lattice(), 1, public, 0, public)
    with pytest.raises(ProtocolError, match="other parameters"):
        cipher_of(Lattice(variant="ckks"), 1, public)
    for damaged in (b"", public[:1000], b"nonsense"):
        with pytest.raises(ProtocolError, match="cannot be read"):
            cipher_of(Lattice(), 1, damaged)


@pytest.mark.parametrize("scheme", [ThresholdPaillier(), SharedKey()], ids=["threshold", "shared"])
def test_damaged_keys_of_paillier_are_refused(scheme: Any) -> None:
    public, (_, secret) = made(scheme, 2)
    size = scheme.bits // 8
    no_keys = (b"", public[:-1], bytes(len(public)), bytes([public[0] ^ 1]) + public[1:])
    for damaged in (*no_keys, public[:size] + bytes(2 * size), public[:size] + b"\xff" * 2 * size):
        with pytest.raises(ProtocolError):
            cipher_of(scheme, 2, damaged)
    for damaged in (b"", secret[:-1], bytes(len(secret)), b"\xff" * len(secret)):
        with pytest.raises(ProtocolError):
            holder_of(scheme, 2, public, 1, damaged)


def test_a_whole_key_of_a_square_is_refused() -> None:
    prime, scheme = PAPER[0], SharedKey()
    half = int(prime).to_bytes(64, "little")
    public = int(prime**2).to_bytes(128, "little") + (2).to_bytes(256, "little")
    with pytest.raises(ProtocolError, match="does not belong to the public key"):
        holder_of(scheme, 1, public, 0, half + half)


def test_only_the_first_decrypter_deals() -> None:
    table = Table(KINDS["shared"])
    table.parties["west"]._deal = lambda: b"keys"  # type: ignore[method-assign]
    with pytest.raises(ProtocolError, match="west deals keys, and it is not its turn"):
        table.deal()


# The lot


def test_every_party_is_drawn_as_often_as_any_other() -> None:
    draws, count = 4000, 2
    lots = [drawn(NAMES, count, secrets.token_bytes(32)) for _ in range(draws)]
    assert all(len(set(lot)) == count for lot in lots)
    expected, spread = draws * count / 4, sqrt(draws * count / 4 * (1 - count / 4))
    # Six standard deviations: a false alarm in a hundred million.
    drawn_at_all = Counter(name for lot in lots for name in lot)
    first = Counter(lot[0] for lot in lots)
    assert all(abs(drawn_at_all[name] - expected) < 6 * spread for name in NAMES)
    assert all(abs(first[name] - draws / 4) < 6 * sqrt(draws * 3 / 16) for name in NAMES)


def test_lots_of_two_sessions_of_the_same_parties_are_independent() -> None:
    table = Table(SharedSum(decrypters=2))
    found = set()
    for at in range(60):
        again = Table(table.aggregate, session=str(at), identities=table.identities)
        found.add(again.deal().decrypters)
    # Of 12 pairs in order; with 60 draws one is left out with a chance of 12 (11/12)^60 = 6%, half of them
    # with one below 924 / 2^60 < 1e-15.
    assert len(found) > 6


# Answers


def test_the_same_question_gets_the_same_answer_and_another_one_gets_none() -> None:
    table = Table(KINDS["shared"])
    party = table.parties["north"]
    first = party.take(DealingPost.of(0, []))
    assert party.take(DealingPost.of(0, [])) is first
    with pytest.raises(ProtocolError, match="over, or further on"):
        party.take(DealingPost.of(0, [("north", b"x")]))
    with pytest.raises(ProtocolError, match="A step of the dealing of keys was left out"):
        party.take(DealingPost.of(2, []))


def test_a_dealing_is_over_after_a_refusal() -> None:
    table = Table(KINDS["shared"])
    hellos = [
        each for party in table.parties.values() for each in party.take(DealingPost.of(0, [])).entries()
    ]
    north = table.parties["north"]
    with pytest.raises(ProtocolError, match="its note is missing"):
        north.take(DealingPost.of(1, hellos[:-1]))
    with pytest.raises(ProtocolError, match="Begin a new session"):
        north.take(DealingPost.of(1, hellos))
    assert north.result is None


def test_a_party_that_does_not_answer_or_answers_nonsense_is_named() -> None:
    table = Table(KINDS["shared"])

    def without(questions: dict[str, Message]) -> dict[str, Message]:
        return {name: answer for name, answer in table.ask_all(questions).items() if name != "west"}

    def nonsense(questions: dict[str, Message]) -> dict[str, Message]:
        return {**table.ask_all(questions), "west": Message()}

    with pytest.raises(RunError, match=r"^west did not answer"):
        relay(table.aggregate, roster=table.roster, session="s", ask_all=without)
    table.__post_init__()
    with pytest.raises(RunError, match=r"^west answered something that makes no sense"):
        relay(table.aggregate, roster=table.roster, session="s", ask_all=nonsense)


def test_posts_that_are_none_are_refused() -> None:
    good = DealingPost.of(0, [("north", b"abc"), ("south", b"")])
    assert good.entries() == [("north", b"abc"), ("south", b"")]
    changes: list[dict[str, Any]] = [
        {"names": "{"},
        {"names": "[1, 2]"},
        {"names": '["\\ud800", "south"]'},
        {"names": '["north"]'},
        {"lengths": np.array([4, -1])},
        {"lengths": np.array([3.0, 0.0])},
        {"lengths": np.array([2**62, 2**62])},
        {"data": np.zeros((3, 1), np.uint8)},
        {"data": np.zeros(2, np.uint8)},
    ]
    given = {"step": 0, "names": good.names, "lengths": good.lengths, "data": good.data}
    for change in changes:
        with pytest.raises(ProtocolError, match="A post has"):
            DealingPost(**{**given, **change}).entries()


def test_stored_keys_that_are_damaged_are_refused_without_a_word_of_them() -> None:
    table = Table(KINDS["shared"])
    table.deal()
    stored = table.results()["north"].to_bytes()
    for damaged in (b"", stored[:-1], stored[1:], joined([b"x"] * 5), joined(apart(stored)[:4])):
        with pytest.raises(RunError, match="stored keys of this session cannot be read"):
            DealtKeys.from_bytes(damaged)
    for each in table.results().values():
        assert "secret" not in repr(each)
        assert "public" not in repr(each)


def test_a_guarantee_says_who_was_trusted_with_keys() -> None:
    assert dealing_assumptions(KINDS["paillier"], 4) == (DEALER, LOT)
    assert dealing_assumptions(KINDS["paillier"], 3) == (DEALER, LOT)
    assert dealing_assumptions(KINDS["bfv"], 4) == (LOT,)
    assert dealing_assumptions(KINDS["shared"], 4) == (LOT,)
    assert dealing_assumptions(KINDS["shared"], 3) == ()
