import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.crypto.ciphers import Integers
from cofactor.crypto.packing import CHECK_BITS, Packing
from cofactor.errors import ConfigError, ProtocolError

MODULUS = 2**300 + 157


def naive_plaintexts(packing: Packing, values: list[int]) -> list[int]:
    """Add up field by field, and the check above them, in whole numbers without a limit."""
    rows = [values[start : start + packing.fields] for start in range(0, len(values), packing.fields)]
    return [naive_plaintext(packing, row) % packing.modulus for row in rows]


def naive_plaintext(packing: Packing, row: list[int]) -> int:
    fields = sum(value << packing.bits * k for k, value in enumerate(row))
    check = sum(pow(10, k + 1, 1021) * value for k, value in enumerate(row))
    return fields + (check << packing.bits * len(row))


@st.composite
def summands(draw: st.DrawFn) -> tuple[int, list[Integers]]:
    """Draw bits, and rows of numbers whose sum, like each of them, has no more than these."""
    bits, length = draw(st.integers(1, 64)), draw(st.integers(1, 30))
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    rows: list[list[int]] = []
    totals = [0] * length
    for _ in range(draw(st.integers(1, 4))):
        row = [
            draw(st.integers(max(low, low - total), min(high, high - total)) | st.just(0)) for total in totals
        ]
        totals = [total + value for total, value in zip(totals, row, strict=True)]
        rows.append(row)
    return bits, [np.array(row, np.int64) for row in rows]


@settings(max_examples=60)
@given(summands())
def test_sums_of_plaintexts_are_the_plaintexts_of_sums(drawn: tuple[int, list[Integers]]) -> None:
    bits, rows = drawn
    packing = Packing.densest(bits, MODULUS)
    plaintexts = [packing.packed(row) for row in rows]
    for row, plaintext in zip(rows, plaintexts, strict=True):
        assert plaintext == naive_plaintexts(packing, row.tolist())
    total = [sum(column) % MODULUS for column in zip(*plaintexts, strict=True)]
    exact = [sum(column) for column in zip(*(row.tolist() for row in rows), strict=True)]
    assert packing.unpacked(total, len(rows[0])).tolist() == exact


@pytest.mark.parametrize("bits", [1, 2, 31, 32, 33, 46, 63, 64])
def test_the_ends_of_the_range_come_back(bits: int) -> None:
    packing = Packing.densest(bits, MODULUS)
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    for ends in ([low], [high], [0], [low, high], [high, low]):
        values = np.array((ends * packing.fields)[: 2 * packing.fields + 1] or ends, np.int64)
        assert packing.unpacked(packing.packed(values), len(values)).tolist() == values.tolist()


@pytest.mark.parametrize("bits", [1, 8, 46, 63])
@pytest.mark.parametrize("side", ["below", "above"])
def test_a_number_out_of_range_is_refused_and_not_told(bits: int, side: str) -> None:
    value = -(2 ** (bits - 1)) - 1 if side == "below" else 2 ** (bits - 1)
    with pytest.raises(ConfigError, match=r"does not fit into the \d+ bits") as refused:
        Packing.densest(bits, MODULUS).packed(np.array([0, value], np.int64))
    assert str(value) not in str(refused.value).replace(f"the {bits} bits", "")


def test_as_many_numbers_as_fit_share_a_plaintext_below_its_check() -> None:
    packing = Packing.densest(46, 2**2047 + 1)
    assert packing.check_bits == CHECK_BITS == 64
    assert packing.fields == (2047 - 64) // 46
    assert packing.pieces(22_446) == 522
    assert packing.pieces(packing.fields) == 1
    assert packing.pieces(packing.fields + 1) == 2
    assert [packing.count(piece, 50) for piece in (0, 1)] == [43, 7]
    assert Packing.densest(40, 2**2047 + 1).pieces(22_446) == 459


def test_one_number_a_plaintext_is_a_packing_too() -> None:
    packing = Packing(46, 1, MODULUS)
    values = np.array([-3, 0, 2**45 - 1], np.int64)
    checked = [value + (10 * value << 46) for value in values.tolist()]
    assert packing.packed(values) == [each % MODULUS for each in checked]
    assert packing.unpacked(packing.packed(values), 3).tolist() == values.tolist()


def test_every_plaintext_beside_those_that_were_packed_is_refused() -> None:
    packing = Packing(8, 3, MODULUS)
    highest, lowest = packing.packed(np.array([127] * 3))[0], packing.packed(np.array([-128] * 3))[0]
    assert packing.unpacked([highest], 3).tolist() == [127] * 3
    assert packing.unpacked([lowest], 3).tolist() == [-128] * 3
    beside = [each + step for each in (0, highest, lowest) for step in (1, -1, 1 << 8, 1 << 24, -(1 << 24))]
    for plaintext in (*beside, MODULUS // 2, MODULUS // 3):
        with pytest.raises(ProtocolError, match="Nothing was opened"):
            packing.unpacked([plaintext % MODULUS], 3)


def test_the_last_plaintext_may_hold_only_its_own_fields() -> None:
    packing = Packing(8, 3, MODULUS)
    full, short = packing.packed(np.array([1, 2, 3, 4]))
    for wrong in (short + (1 << 8), full):
        with pytest.raises(ProtocolError, match="Nothing was opened"):
            packing.unpacked([full, wrong], 4)


@settings(max_examples=200)
@given(st.integers(1, 64), st.data())
def test_a_sum_that_overflows_in_any_one_field_is_seen(bits: int, data: st.DataObject) -> None:
    packing = Packing.densest(bits, MODULUS)
    count = data.draw(st.integers(1, packing.fields))
    half = 2 ** (bits - 1)
    row = data.draw(st.lists(st.integers(-half, half - 1), min_size=count, max_size=count))
    at, beyond = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, 2**70))
    row[at] = data.draw(st.sampled_from([half + beyond, -half - 1 - beyond]))
    with pytest.raises(ProtocolError, match="more bits than were agreed on"):
        packing.unpacked([naive_plaintext(packing, row) % MODULUS], count)


@settings(max_examples=200)
@given(st.integers(11, 46), st.data())
def test_two_fields_that_overflow_once_are_seen(bits: int, data: st.DataObject) -> None:
    packing = Packing.densest(bits, 2**2047 + 1)
    half, row = 2 ** (bits - 1), [0] * packing.fields
    for at in data.draw(st.lists(st.integers(0, packing.fields - 1), min_size=2, max_size=2, unique=True)):
        row[at] = data.draw(st.integers(half, 3 * half - 1) | st.integers(-3 * half + 1, -half - 1))
    with pytest.raises(ProtocolError, match="more bits than were agreed on"):
        packing.unpacked([naive_plaintext(packing, row) % packing.modulus], packing.fields)


def test_as_many_plaintexts_as_pieces_are_read() -> None:
    packing = Packing(8, 3, MODULUS)
    for count in (1, 3):
        with pytest.raises(ProtocolError, match=f"stand in 2 plaintexts, got {count}"):
            packing.unpacked([0] * count, 4)


@pytest.mark.parametrize(
    "values", [np.zeros(0, np.int64), np.zeros((2, 2), np.int64), np.zeros(3), np.zeros(3, np.int32)]
)
def test_only_rows_of_int64_are_packed(values: Integers) -> None:
    with pytest.raises(ConfigError, match="whole numbers"):
        Packing.densest(8, MODULUS).packed(values)


@pytest.mark.parametrize("bits", [0, 65, -1])
def test_fields_have_from_1_to_64_bits(bits: int) -> None:
    with pytest.raises(ConfigError, match="bits must be at"):
        Packing.densest(bits, MODULUS)


def test_fields_that_leave_no_room_for_a_check_are_refused() -> None:
    Packing(57, 4, 2**300 + 157)
    with pytest.raises(ConfigError, match="fewer than 71 bits for a check"):
        Packing(58, 4, 2**300 + 157)


def test_numbers_of_numpy_serve_as_settings() -> None:
    packing = Packing(np.int64(64), np.int32(3), MODULUS)  # type: ignore[arg-type]
    values = np.array([-(2**63), 2**63 - 1, -1], np.int64)
    assert packing.unpacked(packing.packed(values), 3).tolist() == values.tolist()
