import math
import secrets
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.crypto import vector_shares
from cofactor.crypto.vector_shares import (
    LARGEST,
    MOST_BITS,
    PRIME,
    added,
    combined,
    from_bytes,
    split,
    to_bytes,
)
from cofactor.errors import ConfigError, ProtocolError, TooFew

EXTREMES = [-LARGEST, 1 - LARGEST, -(2**31), -1, 0, 1, 2**31 - 1, 2**31, LARGEST - 1, LARGEST]
VALUES = np.array(EXTREMES, np.int64)


def numbers(values: list[int]) -> NDArray[np.uint64]:
    return np.array(values, np.uint64)


def naive_shares(values: list[int], coefficients: list[list[int]], holders: int) -> list[list[int]]:
    """Evaluate one polynomial after the other with Python's whole numbers; the highest coefficients first."""
    shares = []
    for x in range(1, holders + 1):
        row = []
        for place, value in enumerate(values):
            polynomial = [*(each[place] for each in coefficients), value]
            degree = len(polynomial) - 1
            row.append(sum(c * x ** (degree - power) for power, c in enumerate(polynomial)) % PRIME)
        shares.append(row)
    return shares


def feed(monkeypatch: pytest.MonkeyPatch, rows: list[NDArray[np.uint64]]) -> list[int]:
    """Let these words be drawn one row after the other; return the list of how many bytes were asked for."""
    asked: list[int] = []

    def drawn(count: int) -> bytes:
        asked.append(count)
        return rows[len(asked) - 1].tobytes()

    monkeypatch.setattr(vector_shares, "token_bytes", drawn)
    return asked


@given(st.data())
def test_as_many_shares_as_the_threshold_open_the_sum_whoever_holds_them(data: st.DataObject) -> None:
    holders = data.draw(st.integers(1, 9))
    threshold = data.draw(st.integers(1, holders))
    parties, length = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 5))
    each = st.integers(-(LARGEST // parties), LARGEST // parties)
    rows = data.draw(st.lists(st.lists(each, min_size=length, max_size=length), min_size=parties))[:parties]
    vectors = [np.array(row, np.int64) for row in rows]
    split_up = [split(vector, threshold=threshold, holders=holders) for vector in vectors]
    sums = [added(from_bytes(to_bytes(shares[h]), length) for shares in split_up) for h in range(holders)]
    places = data.draw(st.permutations(range(holders)))[: data.draw(st.integers(threshold, holders))]
    opened = combined({place: sums[place] for place in places}, threshold=threshold)
    assert opened.dtype == np.int64
    np.testing.assert_array_equal(opened, np.sum(vectors, axis=0))


@pytest.mark.parametrize(("threshold", "holders"), [(1, 1), (1, 3), (2, 3), (3, 5), (5, 5)])
def test_every_quorum_opens_the_extremes(threshold: int, holders: int) -> None:
    shares = split(VALUES, threshold=threshold, holders=holders)
    for count in range(threshold, holders + 1):
        for places in combinations(range(holders), count):
            opened = combined({place: shares[place] for place in places}, threshold=threshold)
            np.testing.assert_array_equal(opened, VALUES)


@pytest.mark.parametrize(("threshold", "holders"), [(1, 2), (2, 3), (3, 5), (6, 40)])
@pytest.mark.parametrize("largest", [False, True])
def test_shares_are_those_of_the_plain_polynomials(
    monkeypatch: pytest.MonkeyPatch, threshold: int, holders: int, largest: bool
) -> None:
    random = np.random.default_rng(threshold)
    shape = (threshold - 1, len(VALUES))
    drawn = np.full(shape, 2**64 - 2, np.uint64) if largest else random.integers(0, 2**64, shape, np.uint64)
    asked = feed(monkeypatch, list(drawn))
    shares = split(VALUES, threshold=threshold, holders=holders)
    assert asked == [8 * len(VALUES)] * (threshold - 1)
    coefficients = [[word % 2**61 for word in row] for row in drawn.tolist()]
    assert [share.tolist() for share in shares] == naive_shares(EXTREMES, coefficients, holders)


def test_a_coefficient_beyond_the_prime_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    beyond = numbers([5, PRIME, 2**64 - 1])
    asked = feed(monkeypatch, [beyond, numbers([PRIME, 8]), numbers([7])])
    shares = split(np.zeros(3, np.int64), threshold=2, holders=2)
    assert asked == [24, 16, 8]
    assert [share.tolist() for share in shares] == [[5, 7, 8], [10, 14, 16]]


@pytest.mark.parametrize("values", [[0, 0], [LARGEST, -LARGEST], [3, 4]])
@pytest.mark.parametrize(("threshold", "seen"), [(2, (0,)), (2, (2,)), (3, (0, 1)), (3, (1, 2))])
def test_fewer_shares_than_the_threshold_are_uniform_whatever_was_split(
    values: list[int], threshold: int, seen: tuple[int, ...]
) -> None:
    # Pairs of shares in 8 x 8 boxes, 1,500 expected in each; single ones in 64 boxes. Chi-squared with 63
    # degrees of freedom is above 150 with probability 4e-9; 24 such tests.
    count = 48_000
    shares = split(np.repeat(np.array(values, np.int64), count), threshold=threshold, holders=3)
    across = 64 if len(seen) == 1 else 8
    boxes = np.zeros(2 * count, np.int64)
    for place in seen:
        boxes = boxes * across + (shares[place] // np.uint64(PRIME // across + 1)).astype(np.int64)
    for part in (boxes[:count], boxes[count:]):
        found = np.bincount(part, minlength=64)
        assert ((found - count / 64) ** 2).sum() / (count / 64) < 150


def test_the_lowest_bits_of_a_share_are_uniform_too() -> None:
    count = 128_000
    share = split(np.full(count, 2, np.int64), threshold=2, holders=3)[0]
    found = np.bincount((share % np.uint64(64)).astype(np.int64), minlength=64)
    # Standard deviation 44; false alarm of 64 boxes: 64 * 2e-11.
    assert abs(found - count / 64).max() < 6.7 * math.sqrt(count / 64)


def test_equal_vectors_have_unequal_shares() -> None:
    shares = split(np.zeros(50, np.int64), threshold=2, holders=2)
    assert len(set(shares[0].tolist())) == 50
    assert (shares[0] != split(np.zeros(50, np.int64), threshold=2, holders=2)[0]).all()


def test_sums_of_as_many_bits_as_are_promised_do_not_wrap_around() -> None:
    half = 2 ** (MOST_BITS - 1)
    values = np.array([-half, half - 1], np.int64)
    shares = split(values // 2, threshold=2, holders=2), split(values - values // 2, threshold=2, holders=2)
    sums = {place: added([each[place] for each in shares]) for place in range(2)}
    np.testing.assert_array_equal(combined(sums, threshold=2), values)


def test_the_prime_is_one() -> None:
    # Lucas and Lehmer's test, which is exact for 2^61 - 1.
    number = 4
    for _ in range(59):
        number = (number * number - 2) % PRIME
    assert number == 0


@given(st.integers(0, PRIME - 1), st.integers(0, PRIME - 1))
def test_products_modulo_the_prime_are_those_of_whole_numbers(a: int, b: int) -> None:
    weighed = vector_shares._weighed(numbers([a]).reshape(1, 1), numbers([b]))
    assert weighed.tolist() == [a * b % PRIME]


@pytest.mark.parametrize("a", [0, 1, 2**30, 2**31 - 1, 2**31, 2**60, PRIME - 2, PRIME - 1])
@pytest.mark.parametrize("b", [0, 1, 2**31 - 1, 2**60, PRIME - 1])
def test_sums_of_products_at_the_ends_do_not_overflow(a: int, b: int) -> None:
    rows = np.full((3, 2), a, np.uint64)
    assert vector_shares._weighed(rows, numbers([b] * 3)).tolist() == [3 * a * b % PRIME] * 2


@pytest.mark.parametrize("places", [(0, 1, 2), (0, 2, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("wrong", [0, -1])
def test_a_wrong_share_beyond_the_threshold_is_noticed(places: tuple[int, ...], wrong: int) -> None:
    shares = dict(enumerate(split(VALUES, threshold=2, holders=4)))
    given = {place: shares[place].copy() for place in places}
    given[places[wrong]][4] = (int(given[places[wrong]][4]) + 1) % PRIME
    with pytest.raises(ProtocolError, match="do not belong together"):
        combined(given, threshold=2)


def test_too_few_shares_open_nothing() -> None:
    shares = split(VALUES, threshold=3, holders=4)
    with pytest.raises(TooFew, match="3 holders, got 2"):
        combined({0: shares[0], 3: shares[3]}, threshold=3)
    with pytest.raises(TooFew):
        combined({}, threshold=0)
    with pytest.raises(TooFew, match="no share"):
        added([])


@pytest.mark.parametrize("place", [-1, 2**31])
def test_shares_of_impossible_holders_are_refused(place: int) -> None:
    with pytest.raises(ProtocolError, match="count from 0"):
        combined({place: numbers([1]), 1: numbers([1])}, threshold=2)


@pytest.mark.parametrize("size", [0, 23, 25, 32])
def test_shares_of_another_length_are_refused(size: int) -> None:
    with pytest.raises(ProtocolError, match="24 bytes"):
        from_bytes(bytes(size), 3)
    with pytest.raises(ProtocolError, match="3 numbers"):
        added([numbers([1, 2, 3]), numbers([1] * (size // 8 + size % 8))])
    with pytest.raises(ProtocolError, match="3 numbers"):
        combined({0: numbers([1, 2, 3]), 1: numbers([1] * (size // 8 + size % 8))}, threshold=2)


@pytest.mark.parametrize("number", [PRIME, 2**64 - 1])
def test_numbers_beyond_the_prime_are_refused(number: int) -> None:
    share = numbers([0, number])
    with pytest.raises(ProtocolError, match="below"):
        from_bytes(to_bytes(share), 2)
    with pytest.raises(ProtocolError, match="below"):
        added([numbers([0, 0]), share])
    with pytest.raises(ProtocolError, match="below"):
        combined({0: share}, threshold=1)


def test_shares_travel_as_eight_bytes_a_number() -> None:
    data = to_bytes(numbers([1, 256, PRIME - 1]))
    assert data == b"\1" + bytes(7) + b"\0\1" + bytes(6) + b"\xfe" + b"\xff" * 6 + b"\x1f"
    assert from_bytes(data, 3).tolist() == [1, 256, PRIME - 1]


def test_adding_up_leaves_the_shares_as_they_were() -> None:
    share = numbers([3, PRIME - 1])
    assert added([share, share, share]).tolist() == [9, PRIME - 3]
    assert share.tolist() == [3, PRIME - 1]


@pytest.mark.parametrize("value", [2**60, -(2**60), 2**63 - 1, -(2**63)])
def test_numbers_too_large_to_be_shared_are_refused_without_being_told(value: int) -> None:
    with pytest.raises(ConfigError, match="coarser step") as refusal:
        split(np.array([0, value], np.int64), threshold=2, holders=3)
    assert str(value) not in str(refusal.value)


@pytest.mark.parametrize("values", [np.zeros(2), np.zeros(2, np.uint64), np.zeros((2, 2), np.int64)])
def test_only_a_row_of_whole_numbers_is_shared(values: NDArray[np.int64]) -> None:
    with pytest.raises(ConfigError, match="int64"):
        split(values, threshold=2, holders=3)


@pytest.mark.parametrize(("threshold", "holders"), [(0, 3), (4, 3), (1, 0), (-1, 3), (1, 2**31)])
def test_a_threshold_that_no_holders_reach_is_refused(threshold: int, holders: int) -> None:
    with pytest.raises(ConfigError, match="threshold"):
        split(VALUES, threshold=threshold, holders=holders)


def test_coefficients_come_from_the_operating_system() -> None:
    assert vector_shares.token_bytes is secrets.token_bytes  # type: ignore[attr-defined]
