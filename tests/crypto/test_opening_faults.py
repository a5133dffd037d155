"""Sums that decrypters open: they divide the work, stand in for each other, and none of them is believed."""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pytest

from cofactor.crypto.lattice import CHECKS, SLOTS
from cofactor.crypto.opening_wire import read_answer, read_request, read_upload, write_answer
from cofactor.crypto.openings import Collector
from cofactor.crypto.threshold import ThresholdPaillier, dealt_from
from cofactor.errors import ProtocolError, TooFew
from tests.crypto.opening_parties import (
    BITS,
    ENCRYPTED,
    KINDS,
    LENGTH,
    PARTIES,
    Circle,
    in_shares,
    under_lattice,
    under_paillier,
)
from tests.crypto.paillier_keys import OTHER_SMALL


@pytest.fixture(params=KINDS)
def circle(request: pytest.FixtureRequest) -> Circle:
    made: Circle = request.param()
    return made


def longer(circle: Circle, length: int) -> Circle:
    """Return the circle with more numbers, so that they come in several pieces."""
    circle.values = np.random.default_rng(4).integers(-(2**36), 2**36, (PARTIES, length))
    return circle.with_terms(length=length)


def three_pieces(made: Callable[[], Circle]) -> Circle:
    circle = longer(made(), 11 if made is under_paillier else 2 * (SLOTS["bfv"] - CHECKS) + 5)
    assert circle.hiding.pieces(circle.opening.length, BITS) == 3
    return circle


def asked_for(collector: Collector) -> dict[int, list[int]]:
    """Return the pieces that each decrypter is asked for, by its place."""
    return {
        place: [piece for block in read_request(data).pieces for piece in block]
        for place, data in collector.asks().items()
    }


@pytest.mark.parametrize(("made", "each"), [(under_paillier, 2), (under_lattice, 1)])
def test_decrypters_divide_the_pieces_among_them(made: Callable[[], Circle], each: int) -> None:
    circle = three_pieces(made)
    uploads = circle.uploads()
    asked = asked_for(circle.collector(uploads))
    assert {place: len(pieces) for place, pieces in asked.items()} == dict.fromkeys((4, 0, 2), each)
    assert sorted(chain(*asked.values())) == sorted([0, 1, 2] * each)
    found = circle.opened(circle.collector(uploads))
    np.testing.assert_array_equal(found, circle.values.sum(axis=0))


@pytest.mark.parametrize(
    ("made", "gone"), [(under_paillier, 4), (under_paillier, 0), (under_paillier, 2), (under_lattice, 0)]
)
def test_others_take_over_the_pieces_of_a_decrypter_that_fails(made: Callable[[], Circle], gone: int) -> None:
    circle = three_pieces(made)
    collector = circle.collector(circle.uploads())
    found = circle.opened(collector, {4, 0, 2} - {gone})
    np.testing.assert_array_equal(found, circle.values.sum(axis=0))


@pytest.mark.parametrize("made", ENCRYPTED)
def test_a_decrypter_that_has_opened_some_pieces_opens_the_others_of_the_same_sum(
    made: Callable[[], Circle],
) -> None:
    circle = three_pieces(made)
    collector, decrypters = circle.collector(circle.uploads()), circle.decrypters()
    first = collector.asks()
    collector.take({place: decrypters[place].answer(first[place]) for place in (0, 2)})
    again = collector.asks()
    assert again
    assert 4 not in again
    collector.take({place: decrypters[place].answer(data) for place, data in again.items()})
    assert collector.finished
    np.testing.assert_array_equal(collector.opened(), circle.values.sum(axis=0))


def test_a_lattice_sum_that_only_one_decrypter_answers_for_is_opened() -> None:
    circle = three_pieces(under_lattice)
    found = circle.opened(circle.collector(circle.uploads()), {2})
    np.testing.assert_array_equal(found, circle.values.sum(axis=0))


def test_nobody_is_asked_twice_for_the_same_pieces(circle: Circle) -> None:
    collector = circle.collector(circle.uploads())
    seen: list[tuple[int, range]] = []

    def ask_on() -> None:
        asks = collector.asks()
        seen.extend((place, block) for place, data in asks.items() for block in read_request(data).pieces)
        collector.take({})
        ask_on()

    with pytest.raises(TooFew, match="Nothing was opened"):
        ask_on()
    assert len(set(seen)) == len(seen) >= circle.hiding.quorum


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda answer: answer[:-1],
        lambda answer: answer + b"\0",
        lambda answer: answer.replace(b"CFAN", b"CFRQ"),
    ],
)
def test_an_answer_that_makes_no_sense_counts_as_none(
    circle: Circle, spoil: Callable[[bytes], bytes]
) -> None:
    collector, decrypters = circle.collector(circle.uploads()), circle.decrypters()
    asks = collector.asks()
    collector.take({place: spoil(decrypters[place].answer(data)) for place, data in asks.items()})
    assert set(collector.refused) == set(asks)
    assert not collector.finished


def taken(circle: Circle, change: Callable[[bytes], bytes]) -> Collector:
    """Return a collector that has all answers, of which the first decrypter's part is changed."""
    collector, decrypters = circle.collector(circle.uploads()), circle.decrypters()
    answers = {place: decrypters[place].answer(data) for place, data in collector.asks().items()}
    first = next(iter(answers))
    blocks = collector._pending[circle.opening.decrypters.index(first)]
    parts = [change(part) for part in read_answer(answers[first], blocks)]
    answers[first] = write_answer(list(zip(blocks, parts, strict=True)))
    collector.take(answers)
    assert collector.finished
    return collector


@pytest.mark.parametrize(
    "made", [in_shares, under_paillier, lambda: under_paillier(shares="root")], ids=["shares", "key", "root"]
)
@pytest.mark.parametrize(
    "change",
    [
        lambda part: part[:-2] + bytes([part[-2] ^ 1]) + part[-1:],
        lambda part: part[:-8],
        lambda part: part + bytes(8),
        lambda part: bytes(len(part)),
        lambda part: b"\xff" * len(part),
    ],
    ids=["changed", "short", "long", "zeros", "ones"],
)
def test_a_false_part_opens_nothing(made: Callable[[], Circle], change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ProtocolError):
        taken(made(), change).opened()


@pytest.mark.parametrize("change", [lambda part: part[:-8], lambda part: b"\x7f" * len(part)])
def test_a_false_part_of_a_lattice_sum_is_refused_if_it_cannot_be_one(change: Any) -> None:
    with pytest.raises(ProtocolError):
        taken(under_lattice(), change).opened()


def test_a_part_for_another_sum_of_the_same_key_is_noticed() -> None:
    circle = under_paillier()
    collector, decrypters, other = circle.collector(circle.uploads()), circle.decrypters(), circle.uploads()
    uploads = tuple(read_upload(other[place]) for place in range(PARTIES))
    asks = collector.asks()
    asks[0] = replace(read_request(asks[0]), uploads=uploads).to_bytes()
    collector.take({place: decrypters[place].answer(data) for place, data in asks.items()})
    with pytest.raises(ProtocolError, match="another key, sum, place or piece"):
        collector.opened()


def trusting(made: Callable[[], Circle]) -> Circle:
    return made().with_terms(recheck=False)


@pytest.mark.parametrize("made", ENCRYPTED)
def test_where_all_agreed_to_it_decrypters_take_the_collectors_total(made: Callable[[], Circle]) -> None:
    circle = trusting(made)
    collector = circle.collector(circle.uploads())
    request = read_request(collector.asks()[4])
    assert request.total
    assert all(not upload.boxes for upload in request.uploads)
    assert [upload.place for upload in request.uploads] == [*range(PARTIES)]
    found = circle.opened(circle.collector(circle.uploads()))
    np.testing.assert_array_equal(found, circle.values.sum(axis=0))


@pytest.mark.parametrize("made", ENCRYPTED)
def test_a_decrypter_that_trusts_totals_still_opens_one_of_enough_parties(
    made: Callable[[], Circle],
) -> None:
    circle = trusting(made)
    uploads = circle.uploads()
    hiding, decrypter = circle.hiding, circle.decrypter(0)
    total = hiding.total([read_upload(each).boxes[0] for each in uploads.values()], LENGTH, BITS)
    other = hiding.total([read_upload(each).boxes[0] for each in list(uploads.values())[1:]], LENGTH, BITS)
    few = {place: uploads[place] for place in (0, 1)}
    with pytest.raises(TooFew):
        decrypter.answer(circle.request(0, few, total))
    with pytest.raises(ProtocolError, match="not agreed to add it up"):
        decrypter.answer(circle.request(0, uploads))
    decrypter.answer(circle.request(0, uploads, total))
    with pytest.raises(ProtocolError, match="Two are not opened"):
        decrypter.answer(circle.request(0, uploads, other))


@pytest.mark.parametrize("made", ENCRYPTED)
def test_uploads_for_a_sum_that_is_rechecked_serve_in_no_other(made: Callable[[], Circle]) -> None:
    circle = made()
    lax = circle.with_terms(recheck=False)
    with pytest.raises(TooFew):
        lax.collector(circle.uploads())


def test_a_total_of_another_key_or_of_nothing_is_not_opened() -> None:
    circle = trusting(under_paillier)
    foreign = dealt_from(ThresholdPaillier(), 3, OTHER_SMALL).cipher
    for total in (b"nonsense", foreign.encrypted(circle.values[0], BITS)):
        with pytest.raises(ProtocolError):
            circle.decrypter(0).answer(circle.request(0, circle.uploads(), total))
