"""How numbers are hidden from all but a quorum: under a cipher, or in shares that are sealed for each."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.crypto.ciphers import Part
from cofactor.crypto.hiding import HolderOfKey, HolderOfShares, InShares, UnderCipher
from cofactor.crypto.keys import KeyPair
from cofactor.crypto.lattice import Lattice
from cofactor.crypto.threshold import ThresholdPaillier, dealt_from
from cofactor.errors import ConfigError, ProtocolError, TooFew
from tests.crypto.paillier_keys import SMALL

BITS = 40
BOUND = (b"this sum, party 0", b"this sum, party 1", b"this sum, party 2")
Values = NDArray[np.int64]


class Hidden:
    """A way of hiding numbers, and everybody who can open them."""

    def __init__(self, hiding: Any, openers: list[Any]) -> None:
        self.hiding, self.openers = hiding, openers

    def uploads(self, values: Values, bits: int = BITS) -> list[tuple[bytes, ...]]:
        return [self.hiding.boxes(row, bits, bound) for row, bound in zip(values, BOUND, strict=False)]

    def part(self, number: int, uploads: Any, length: int, bits: int = BITS) -> Part:
        own = [
            (boxes[number if len(boxes) > 1 else 0], bound)
            for boxes, bound in zip(uploads, BOUND, strict=False)
        ]
        total = self.openers[number].total(own, length, bits)
        pieces = range(self.hiding.pieces(length, bits))
        return Part(number, pieces, self.openers[number].part(total, length, bits, pieces))

    def opened(self, uploads: Any, length: int, numbers: Any, bits: int = BITS) -> Values:
        total = self.hiding.total([boxes[0] for boxes in uploads], length, bits)
        parts = [self.part(number, uploads, length, bits) for number in numbers]
        found: Values = self.hiding.combined(total, length, bits, parts)
        return found


def in_shares(quorum: int = 2, decrypters: int = 3) -> Hidden:
    pairs = [KeyPair.fresh() for _ in range(decrypters)]
    return Hidden(InShares([pair.public for pair in pairs], quorum), [HolderOfShares(pair) for pair in pairs])


def under(dealt: Any) -> Hidden:
    return Hidden(UnderCipher(dealt.cipher), [HolderOfKey(dealt.cipher, each) for each in dealt.holders])


@pytest.fixture(scope="module")
def ways() -> dict[str, Hidden]:
    return {
        "shares": in_shares(),
        "paillier": under(dealt_from(ThresholdPaillier(), 3, SMALL)),
        "root": under(dealt_from(ThresholdPaillier(shares="root"), 3, SMALL)),
        "bfv": under(Lattice(variant="bfv").dealt(3)),
        "ckks": under(Lattice(variant="ckks").dealt(3)),
    }


@pytest.fixture(params=["shares", "paillier", "root", "bfv", "ckks"])
def way(request: pytest.FixtureRequest, ways: dict[str, Hidden]) -> Hidden:
    return ways[request.param]


VALUES = np.random.default_rng(1).integers(-(2**36), 2**36, (3, 11))


@pytest.mark.parametrize("numbers", list(combinations(range(3), 2)))
def test_a_quorum_opens_the_sum_of_what_was_hidden(way: Hidden, numbers: tuple[int, ...]) -> None:
    found = way.opened(way.uploads(VALUES), 11, numbers)
    np.testing.assert_array_equal(found, VALUES.sum(axis=0))


def test_all_who_open_together_must_agree(way: Hidden) -> None:
    uploads = way.uploads(VALUES)
    np.testing.assert_array_equal(way.opened(uploads, 11, range(3)), VALUES.sum(axis=0))
    total = way.hiding.total([boxes[0] for boxes in uploads], 11, BITS)
    parts = [way.part(number, uploads, 11) for number in range(3)]
    other = way.part(2, way.uploads(VALUES + 1), 11)
    with pytest.raises(ProtocolError):
        way.hiding.combined(total, 11, BITS, [*parts[:2], other])


def test_fewer_than_the_quorum_open_nothing(way: Hidden) -> None:
    uploads = way.uploads(VALUES)
    with pytest.raises(TooFew):
        way.opened(uploads, 11, range(way.hiding.quorum - 1))


def test_numbers_at_the_ends_of_their_range_are_kept(way: Hidden) -> None:
    ends = np.array([[-(2**39), 2**39 - 1, 0, -1], [0, 0, 0, 0], [0, 0, 2**39 - 1, 1]])
    np.testing.assert_array_equal(way.opened(way.uploads(ends), 4, (0, 1)), ends.sum(axis=0))


@pytest.mark.parametrize("beyond", [2**39, -(2**39) - 1])
def test_numbers_beyond_their_range_are_not_hidden(way: Hidden, beyond: int) -> None:
    with pytest.raises(ConfigError):
        way.hiding.boxes(np.array([0, beyond]), BITS, b"")


def test_the_same_numbers_never_look_the_same(way: Hidden) -> None:
    once, again = (way.hiding.boxes(VALUES[0], BITS, b"bound") for _ in range(2))
    assert not set(once) & set(again)


def test_how_many_boxes_and_pieces_there_are(ways: dict[str, Hidden]) -> None:
    assert len(ways["shares"].hiding.boxes(VALUES[0], BITS, b"")) == 3
    assert ways["shares"].hiding.pieces(10**6, BITS) == 1
    assert ways["shares"].hiding.total([b"anything"], 11, BITS) == b""
    for name in ("paillier", "bfv"):
        assert len(ways[name].hiding.boxes(VALUES[0], BITS, b"")) == 1
    # 191 bits of room take four numbers of 40.
    assert ways["paillier"].hiding.pieces(11, BITS) == 3


@settings(max_examples=25)
@given(st.integers(2, 5), st.integers(0, 3), st.integers(1, 60), st.integers(0, 2**32))
def test_shares_of_any_numbers_open_with_any_quorum(quorum: int, more: int, bits: int, seed: int) -> None:
    way, chance = in_shares(quorum, quorum + more), np.random.default_rng(seed)
    room = 2 ** (bits - 1) // 3
    values = chance.integers(-room, room + 1, (3, 4))
    some = chance.permutation(quorum + more)[:quorum].tolist()
    np.testing.assert_array_equal(way.opened(way.uploads(values, bits), 4, some, bits), values.sum(axis=0))


@pytest.mark.parametrize("bits", [61, 62, 64])
def test_shares_take_no_sums_that_could_wrap_around_unnoticed(bits: int) -> None:
    way, values = in_shares(), np.full((2, 1), 2**59 + 5)
    with pytest.raises(ConfigError, match="60"):
        way.opened(way.uploads(values, bits), 1, (0, 1), bits)


def test_a_sum_of_shares_that_does_not_fit_is_not_told() -> None:
    way = in_shares()
    with pytest.raises(ProtocolError, match="more than the 40 bits"):
        way.opened(way.uploads(np.full((2, 1), 2**38)), 1, (0, 1))


def test_a_share_opens_for_its_decrypter_its_party_and_its_sum_only() -> None:
    way = in_shares()
    boxes = way.hiding.boxes(VALUES[0], BITS, BOUND[0])
    way.openers[0].total([(boxes[0], BOUND[0])], 11, BITS)
    for number, box, bound in ((0, boxes[1], BOUND[0]), (1, boxes[0], BOUND[0]), (0, boxes[0], BOUND[1])):
        with pytest.raises(ProtocolError, match="does not open"):
            way.openers[number].total([(box, bound)], 11, BITS)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 255), st.integers(0, 200))
def test_no_changed_or_cut_share_opens(at: int, flip: int, cut: int) -> None:
    way, box = _SHARES, bytearray(_BOX)
    box[at % len(box)] ^= flip
    for wrong in (bytes(box), _BOX[: cut % len(_BOX)], _BOX + b"\0"):
        with pytest.raises(ProtocolError):
            way.openers[0].total([(wrong, b"bound")], 11, BITS)


_SHARES = in_shares()
_BOX = _SHARES.hiding.boxes(VALUES[0], BITS, b"bound")[0]


def test_a_share_of_too_few_or_too_many_numbers_is_refused() -> None:
    for length in (10, 12):
        with pytest.raises(ProtocolError):
            _SHARES.openers[0].total([(_BOX, b"bound")], length, BITS)
    part = Part(0, range(1), bytes(8 * 11))
    with pytest.raises(ProtocolError):
        _SHARES.hiding.combined(b"", 12, BITS, [part, Part(1, range(1), bytes(8 * 12))])


@pytest.mark.parametrize("quorum", [1, 0, 4])
def test_shares_need_a_quorum_of_two_at_least_and_of_all_at_most(quorum: int) -> None:
    with pytest.raises(ConfigError, match="quorum must lie between 2 and the 3 decrypters"):
        in_shares(quorum, 3)


def test_keys_their_order_and_the_quorum_name_a_way_of_hiding() -> None:
    keys = [KeyPair.fresh().public for _ in range(4)]
    named = [
        InShares(keys, 2),
        InShares(keys, 3),
        InShares(keys[::-1], 2),
        InShares(keys[:3], 2),
        InShares([*keys[:3], KeyPair.fresh().public], 2),
    ]
    assert len({each.identity for each in named}) == len(named)
    assert {len(each.identity) for each in named} == {32}
    assert InShares(keys, 2).identity == named[0].identity
