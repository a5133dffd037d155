"""Messages: what was written is read again, and anything else is a ProtocolError."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.crypto import sum_wire as wire
from cofactor.crypto.shamir import PRIME
from cofactor.crypto.sum_terms import Terms
from cofactor.crypto.sum_wire import Kind
from cofactor.errors import ProtocolError
from tests.crypto.making import Play, make_terms

HEADER = 42
GRID = (6, 5, 4)


@dataclass(frozen=True)
class Sample:
    """A message that was really sent, and how it is read."""

    kind: Kind
    place: int
    data: bytes
    reader: Callable[[Terms, int, bytes], object]

    def read(self, data: bytes, terms: Terms | None = None, place: int | None = None) -> object:
        return self.reader(terms or real_terms(), self.place if place is None else place, data)


def real_terms() -> Terms:
    return make_terms(6, threshold=2, fewest=4, grid=GRID)


@cache
def samples() -> tuple[Sample, ...]:
    """One message of each kind, from a sum in which one party dropped out."""
    play, asked = Play(real_terms()), []
    for phase, drop in zip(
        ("advertise", "share", "mask", "confirm", "unmask"), ((), (), (5,), (), ()), strict=True
    ):
        asked.append(play.questions[1])
        play.step(phase, drop)
    sent = [play.replies[phase][1] for phase in play.replies]
    shares = len(sent[4][HEADER:]) // 33
    return (
        Sample(Kind.ADVERT, 1, sent[0], wire.read_advert),
        Sample(Kind.ADVERTS, 1, asked[1], wire.read_adverts),
        Sample(Kind.SHARES, 1, sent[1], partial(wire.read_shares, count=5)),
        Sample(Kind.HELD, 1, asked[2], wire.read_held),
        Sample(Kind.MASKED, 1, sent[2], wire.read_masked),
        Sample(Kind.SURVIVORS, 1, asked[3], wire.read_survivors),
        Sample(Kind.CONFIRMATION, 1, sent[3], wire.read_confirmation),
        Sample(Kind.CONFIRMATIONS, 1, asked[4], wire.read_confirmations),
        Sample(Kind.REVEALED, 1, sent[4], partial(wire.read_revealed, count=shares)),
    )


each_kind = pytest.mark.parametrize("number", range(9), ids=[kind.name for kind in Kind])


@each_kind
def test_what_was_sent_is_read(number: int) -> None:
    sample = samples()[number]
    assert sample.kind == number + 1
    sample.read(sample.data)


@each_kind
def test_a_message_cut_off_anywhere_is_refused_or_shorter_by_whole_entries(number: int) -> None:
    sample = samples()[number]
    lists = {Kind.ADVERTS, Kind.HELD, Kind.SURVIVORS, Kind.CONFIRMATIONS}
    read = 0
    for length in range(len(sample.data)):
        try:
            sample.read(sample.data[:length])
            read += 1
        except ProtocolError:
            pass
    assert read == 0 if sample.kind not in lists else read <= 5


@each_kind
def test_bytes_after_the_end_are_refused(number: int) -> None:
    sample = samples()[number]
    with pytest.raises(ProtocolError):
        sample.read(sample.data + b"\0")


@each_kind
def test_a_message_of_another_phase_session_round_or_place_is_refused(number: int) -> None:
    sample = samples()[number]
    for other in samples():
        if other is not sample:
            with pytest.raises(ProtocolError, match="does not start like"):
                sample.read(other.data)
    session = make_terms(6, threshold=2, fewest=4, grid=GRID, session="autumn")
    round = make_terms(6, threshold=2, fewest=4, grid=GRID, round=1)
    for terms in (session, round):
        with pytest.raises(ProtocolError, match="another phase, round, session or party"):
            sample.read(sample.data, terms)
    with pytest.raises(ProtocolError, match="Place 2"):
        sample.read(sample.data, place=2)


@each_kind
def test_every_bit_of_the_first_42_bytes_counts(number: int) -> None:
    sample = samples()[number]
    for bit in range(8 * HEADER):
        changed = bytearray(sample.data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ProtocolError):
            sample.read(bytes(changed))


@each_kind
@settings(max_examples=40)
@given(data=st.data())
def test_damaged_bytes_are_read_or_refused_and_nothing_else_happens(number: int, data: st.DataObject) -> None:
    sample = samples()[number]
    body = bytearray(sample.data[HEADER:])
    for at in data.draw(st.lists(st.integers(0, len(body) - 1), max_size=4)):
        body[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(body)))
    tail = data.draw(st.binary(max_size=40))
    for wrong in (bytes(body), bytes(body[:cut]) + tail, bytes(body) + tail):
        read_or_refused(sample, sample.data[:HEADER] + wrong)
    read_or_refused(sample, tail)


def read_or_refused(sample: Sample, data: bytes) -> None:
    with suppress(ProtocolError):
        sample.read(data)


@given(st.sets(st.integers(0, 18)))
def test_a_set_of_places_is_read_again(places: set[int]) -> None:
    terms = make_terms(19)
    data = wire.bitmap(terms, places)
    assert len(data) == 3
    assert wire.Reader(terms, data).bitmap() == places


def test_a_set_of_places_names_only_parties_that_exist() -> None:
    terms = make_terms(5)
    with pytest.raises(ProtocolError, match="do not exist"):
        wire.Reader(terms, b"\x20").bitmap()


@pytest.mark.parametrize("places", [[1, 1], [2, 1], [4, 5]])
def test_chosen_places_rise_and_exist(places: list[int]) -> None:
    terms = make_terms(5)
    with pytest.raises(ProtocolError, match="not in order"):
        wire.Reader(terms, np.array(places, "<u2").tobytes()).places(2)


@pytest.mark.parametrize("places", [[1, 1], [2, 1], [4, 5]])
def test_entries_rise_and_exist(places: list[int]) -> None:
    terms = make_terms(5)
    with pytest.raises(ProtocolError, match="not in order"):
        list(wire.Reader(terms, np.array(places, "<u2").tobytes()).entries())


def test_nobody_chooses_itself() -> None:
    terms = make_terms(5, chosen=2)
    body = bytes(64) + np.array([1, 3], "<u2").tobytes() + bytes(64)
    wire.read_advert(terms, 2, wire.message(terms, Kind.ADVERT, 2, body))
    with pytest.raises(ProtocolError, match="chose itself"):
        wire.read_advert(terms, 3, wire.message(terms, Kind.ADVERT, 3, body))


def test_a_share_is_below_the_prime() -> None:
    terms = make_terms(5)
    largest = (PRIME - 1).to_bytes(33, "big")
    assert wire.split_shares(terms, largest) == [largest]
    with pytest.raises(ProtocolError, match="below the prime"):
        wire.split_shares(terms, largest + PRIME.to_bytes(33, "big"))


def test_what_is_signed_and_what_keys_are_bound_to_never_coincide() -> None:
    play = Play(make_terms(6, chosen=4)).until("share")
    advert = wire.read_advert(play.terms, 1, play.replies["advertise"][1])
    bound: list[bytes] = []
    for terms in (play.terms, make_terms(6, chosen=4, round=1)):
        bound += [wire.to_sign_advert(terms, advert)]
        for place in (0, 1):
            bound += [wire.to_sign_sharers(terms, place, b"\1"), wire.to_sign_survivors(terms, place, b"\1")]
        bound += [
            wire.pair_context(terms, 0, 1),
            wire.pair_context(terms, 0, 2),
            wire.pair_context(terms, 1, 2),
        ]
        bound += [wire.seal_context(terms, 0, 1), wire.seal_context(terms, 1, 0)]
    assert len({*bound}) == len(bound)
    assert wire.pair_context(play.terms, 0, 1) == wire.pair_context(play.terms, 1, 0)


def test_places_take_two_bytes_up_to_65536_parties() -> None:
    assert len(wire.written(make_terms(5), 4)) == 2
