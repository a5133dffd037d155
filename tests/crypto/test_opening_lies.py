"""Sums that decrypters open, among parties and collectors that lie."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.crypto.ciphers import Part
from cofactor.crypto.gmp import gmp
from cofactor.crypto.lattice import Lattice
from cofactor.crypto.opening_wire import Upload, read_answer, read_request, read_upload
from cofactor.crypto.openings import Decrypter
from cofactor.crypto.threshold import ThresholdPaillier, dealt_from
from cofactor.errors import ConfigError, ProtocolError, TooFew
from tests.crypto.opening_parties import (
    BITS,
    ENCRYPTED,
    KINDS,
    LENGTH,
    Circle,
    in_shares,
    under,
    under_paillier,
)
from tests.crypto.paillier_keys import OTHER_SMALL


@pytest.fixture(params=KINDS)
def circle(request: pytest.FixtureRequest) -> Circle:
    made: Circle = request.param()
    return made


@pytest.fixture(params=ENCRYPTED)
def encrypted(request: pytest.FixtureRequest) -> Circle:
    made: Circle = request.param()
    return made


def of_another_key(circle: Circle) -> bytes:
    dealt = (
        dealt_from(ThresholdPaillier(), 3, OTHER_SMALL) if circle.hiding.quorum == 2 else Lattice().dealt(3)
    )
    return bytes(dealt.cipher.encrypted(circle.values[1], BITS))


def of_other_bits(circle: Circle) -> bytes:
    hiding: Any = circle.hiding
    return bytes(hiding._cipher.encrypted(circle.values[1][:-1], BITS))


@pytest.mark.parametrize(
    "box", [of_another_key, of_other_bits, lambda _: b"", lambda _: b"nonsense" * 100], ids=range(4)
)
def test_an_upload_that_cannot_be_added_is_refused_by_name_and_the_others_are_opened(
    encrypted: Circle, box: Callable[[Circle], bytes]
) -> None:
    collector = encrypted.collector({**encrypted.uploads(), 1: encrypted.signed(1, box(encrypted))})
    assert list(collector.refused) == [1]
    assert collector.survivors == (0, 2, 3, 4)
    found = encrypted.opened(collector)
    np.testing.assert_array_equal(found, encrypted.values[[0, 2, 3, 4]].sum(axis=0))


def test_ciphertexts_that_share_a_factor_with_the_key_are_refused_by_name() -> None:
    circle = under_paillier()
    good = read_upload(circle.upload(1)).boxes[0]
    for number in (0, _modulus(circle)):
        width = (len(good) - 60) // 2
        box = good[:-width] + int(number).to_bytes(width, "little")
        collector = circle.collector({**circle.uploads(), 1: circle.signed(1, box)})
        assert list(collector.refused) == [1]
        assert "shares a factor with the key" in collector.refused[1]


def _modulus(circle: Circle) -> int:
    hiding: Any = circle.hiding
    return int(hiding._cipher._key.modulus)


def test_if_too_few_uploads_can_be_added_nothing_is_opened(encrypted: Circle) -> None:
    bad = {place: encrypted.signed(place, b"nonsense") for place in (1, 2, 3)}
    with pytest.raises(TooFew, match="2 parties have sent numbers, and it takes 3"):
        encrypted.collector({**encrypted.uploads(), **bad})


@pytest.mark.parametrize("count", [1, 2, 4])
def test_shares_for_fewer_or_more_decrypters_than_there_are_are_refused_by_name(count: int) -> None:
    circle = in_shares()
    boxes = [*read_upload(circle.upload(1)).boxes.values(), b"one more"]
    collector = circle.collector({**circle.uploads(), 1: circle.signed(1, *boxes[:count])})
    assert list(collector.refused) == [1]
    found = circle.opened(collector)
    np.testing.assert_array_equal(found, circle.values[[0, 2, 3, 4]].sum(axis=0))


def test_nobody_encrypts_something_else_for_each_decrypter(encrypted: Circle) -> None:
    boxes = [read_upload(encrypted.upload(1)).boxes[0] for _ in range(3)]
    collector = encrypted.collector({**encrypted.uploads(), 1: encrypted.signed(1, *boxes)})
    assert list(collector.refused) == [1]
    uploads = {**encrypted.uploads(), 1: encrypted.signed(1, *boxes)}
    with pytest.raises(ProtocolError):
        encrypted.decrypter(1).answer(encrypted.request(1, uploads))


def test_shares_that_only_one_decrypter_cannot_open_are_not_added_by_anybody_else() -> None:
    circle = in_shares()
    good = read_upload(circle.upload(1))
    boxes = [good.boxes[0], b"\1" * len(good.boxes[1]), good.boxes[2]]
    collector = circle.collector({**circle.uploads(), 1: circle.signed(1, *boxes)})
    assert collector.survivors == (0, 1, 2, 3, 4)  # the collector cannot look into shares
    decrypters, asks = circle.decrypters(), collector.asks()
    with pytest.raises(ProtocolError, match="does not open"):
        decrypters[0].answer(asks[0])


def test_keys_that_were_not_agreed_on_serve_nobody(encrypted: Circle) -> None:
    other = under_paillier() if encrypted.hiding.quorum == 2 else under(Lattice().dealt(3))
    with pytest.raises(ConfigError, match="under the keys that were agreed on"):
        replace(encrypted, hiding=other.hiding).upload(0)
    with pytest.raises(ConfigError, match="not those that were agreed on"):
        replace(encrypted, hiding=other.hiding).collector(encrypted.uploads())
    mixed = replace(encrypted, openers=other.openers)
    with pytest.raises(ProtocolError):
        mixed.opened(mixed.collector(mixed.uploads()))


def test_nobody_gets_the_same_pieces_opened_a_thousand_times_in_one_request() -> None:
    circle = under_paillier()
    asked = read_request(circle.request(0, circle.uploads()))
    for pieces in ((range(2), range(2)), (range(2), range(1, 2)), (range(1),) * 1000):
        with pytest.raises(ProtocolError):
            circle.decrypter(0).answer(replace(asked, pieces=pieces).to_bytes())


def test_there_is_no_decrypter_beyond_the_last(circle: Circle) -> None:
    for number in (-1, 3):
        with pytest.raises(ConfigError, match=f"There is no decrypter {number}"):
            Decrypter(circle.opening, number, circle.openers[0], 1)


def test_uploads_cannot_be_named_alike_by_running_into_each_other() -> None:
    # A record is its place, hashes and a signature: eight of them are a whole number of hashes longer.
    circle = in_shares()
    rows = [Upload(place, bytes(64), (bytes([place]) * 32,), {}) for place in range(10)]
    swallowed = b"".join(row.bound + row.signature for row in rows[1:9])
    body = rows[0].hashes[0] + rows[0].signature + swallowed
    cut = [body[at : at + 32] for at in range(0, len(body), 32)]
    one = Upload(0, b"".join(cut[-2:]), tuple(cut[:-2]), {})
    asked = read_request(circle.request(0, circle.uploads()))
    names = {
        circle.decrypter(0)._named(replace(asked, uploads=tuple(uploads)))
        for uploads in (rows, [one, rows[9]])
    }
    assert len(names) == 2


def test_a_collector_with_one_decrypters_key_gets_two_sums_opened_that_differ_by_a_party() -> None:
    # Why such sums also rest on a coordinator that asks all decrypters for the same one, unless all of them
    # must come together or all parties must be in the sum.
    circle = in_shares(quorum=2, fewest=3)
    uploads = circle.uploads()
    without = {place: uploads[place] for place in (1, 2, 3, 4)}

    def sum_of(some: dict[int, bytes], *decrypters: tuple[int, Decrypter]) -> Any:
        parts = []
        for number, each in decrypters:
            (data,) = read_answer(each.answer(circle.request(number, some)), [range(1)])
            parts.append(Part(number, range(1), data))
        return circle.hiding.combined(b"", LENGTH, BITS, parts)

    # The traitor's answers can be made by whoever has its key: each is a fresh start. The others are honest.
    everybody = sum_of(uploads, (0, circle.decrypter(0)), (1, circle.decrypter(1)))
    others = sum_of(without, (0, circle.decrypter(0)), (2, circle.decrypter(2)))
    np.testing.assert_array_equal(everybody - others, circle.values[0])
    # Neither works if all parties must be in the sum, nor if all decrypters must take part.
    strict = circle.with_terms(fewest=5)
    with pytest.raises(TooFew):
        strict.decrypter(0).answer(strict.request(0, {p: strict.upload(p) for p in (1, 2, 3, 4)}))


def test_a_party_that_builds_its_upload_from_others_gets_a_single_partys_numbers_opened() -> None:
    # Why encrypted sums rest on parties that keep to the protocol: ciphertexts can be turned round and added.
    circle = under_paillier()
    uploads = circle.uploads(0, 1, 2, 3)
    hiding: Any = circle.hiding
    cipher = hiding._cipher
    others = cipher.added([read_upload(uploads[place]).boxes[0] for place in (1, 2, 3)], LENGTH, BITS)
    turned = [gmp().invert(each, cipher._key.square) for each in cipher._numbers(others, LENGTH, BITS)]
    uploads[4] = circle.signed(4, cipher._written(turned, LENGTH, BITS))
    np.testing.assert_array_equal(circle.opened(circle.collector(uploads)), circle.values[0])


def test_a_party_cannot_build_its_upload_from_the_shares_of_others() -> None:
    circle = in_shares()
    uploads = circle.uploads(0, 1, 2, 3)
    copied = read_upload(uploads[0]).boxes
    uploads[4] = circle.signed(4, *copied.values())
    with pytest.raises(ProtocolError, match="does not open"):
        circle.opened(circle.collector(uploads))
