import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from cofactor.errors import RunError
from cofactor.federation.messages import MAGIC, Letter, Message

TYPES = ["<f4", "<f8", "<i4", "<i8", "<u4", "<u8", "|u1", "|b1"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Everything(Message):
    whole: int
    real: float
    text: str
    truth: bool
    perhaps: int | None = None
    table: NDArray[Any]
    maybe: NDArray[Any] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Nothing(Message):
    pass


KINDS = (Everything, Nothing)
TABLE = np.arange(6, dtype=np.float32).reshape(2, 3)


def everything(**changes: Any) -> Everything:
    usual: dict[str, Any] = {"whole": 3, "real": 0.5, "text": "a", "truth": True, "table": TABLE}
    return Everything(**usual | changes)


def letter(body: Message | None = None, **changes: Any) -> Letter:
    usual: dict[str, Any] = {"session": "s", "round": 4, "sender": "north", "protection": "noise"}
    return Letter(**usual | changes, body=body or everything())


def again(body: Message) -> Any:
    return Letter.from_bytes(letter(body).to_bytes(), KINDS).body


def changed(data: bytes, **changes: Any) -> bytes:
    """Return a letter's bytes with other facts in its head."""
    head, _, rest = data[len(MAGIC) :].partition(b"\n")
    return MAGIC + json.dumps(json.loads(head) | changes).encode() + b"\n" + rest


@given(
    whole=st.integers(-(2**70), 2**70),
    real=st.floats(allow_nan=False, allow_infinity=False),
    text=st.text(),
    truth=st.booleans(),
    perhaps=st.none() | st.integers(),
    table=st.sampled_from(TYPES).flatmap(
        lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, max_dims=4, min_side=0))
    ),
)
def test_every_field_comes_back_as_it_was(
    whole: int, real: float, text: str, truth: bool, perhaps: int | None, table: NDArray[Any]
) -> None:
    found = again(
        everything(whole=whole, real=real, text=text, truth=truth, perhaps=perhaps, table=table, maybe=table)
    )
    assert (found.whole, found.real, found.text, found.truth, found.perhaps) == (
        whole,
        real,
        text,
        truth,
        perhaps,
    )
    for array in (found.table, found.maybe):
        assert array.dtype == table.dtype
        assert array.shape == table.shape
        assert array.tobytes() == table.tobytes()


@given(session=st.text(), round=st.integers(0, 10**9), sender=st.text(), protection=st.text())
def test_envelope_comes_back_as_it_was(session: str, round: int, sender: str, protection: str) -> None:
    sent = letter(Nothing(), session=session, round=round, sender=sender, protection=protection)
    found = Letter.from_bytes(sent.to_bytes(), KINDS)
    assert (found.session, found.round, found.sender, found.protection) == (
        session,
        round,
        sender,
        protection,
    )
    assert isinstance(found.body, Nothing)


@pytest.mark.parametrize(
    "table",
    [
        TABLE.astype(">f4"),
        np.asfortranarray(TABLE),
        TABLE.T,
        np.arange(20, dtype=">i8")[::-3],
        np.broadcast_to(np.float64(2.5), (3, 2)),
        np.array(7.5),
        np.array(True),
        np.zeros((0, 3), np.int32),
    ],
    ids=["big-endian", "fortran", "turned", "strided", "broadcast", "number", "truth", "empty"],
)
def test_arrays_of_any_layout_arrive_right(table: NDArray[Any]) -> None:
    found = again(everything(table=table)).table
    assert np.array_equal(found, table)
    assert found.shape == table.shape
    assert found.dtype == table.dtype.newbyteorder("<")


def test_arrays_that_arrive_are_aligned_whatever_stands_before_them() -> None:
    for length in range(16):
        found = again(everything(table=np.zeros(length, np.uint8), maybe=np.zeros(3)))
        assert found.maybe.flags.aligned


def test_letter_is_its_numbers_and_a_short_head() -> None:
    table = np.zeros((1000, 20), np.float32)
    extra = len(letter(everything(table=table)).to_bytes()) - table.nbytes
    assert 0 < extra < 1000


@given(cut=st.integers(0, 10_000))
def test_cut_letter_is_refused(cut: int) -> None:
    data = letter().to_bytes()
    with pytest.raises(RunError, match="cannot be read"):
        Letter.from_bytes(data[: cut % len(data)], KINDS)


@given(more=st.binary(min_size=1))
def test_letter_with_bytes_behind_it_is_refused(more: bytes) -> None:
    with pytest.raises(RunError, match="more bytes than it says"):
        Letter.from_bytes(letter().to_bytes() + more, KINDS)


@given(st.binary() | st.binary().map(lambda rest: MAGIC + rest))
def test_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(RunError, match="cannot be read"):
        Letter.from_bytes(data, KINDS)


@given(position=st.integers(0, 10_000), other=st.integers(1, 255))
def test_changed_letter_is_read_or_refused_and_nothing_else(position: int, other: int) -> None:
    data = bytearray(letter().to_bytes())
    data[position % len(data)] ^= other
    with suppress(RunError):
        Letter.from_bytes(bytes(data), KINDS)


PLAIN = {"whole": 3, "real": 0.5, "text": "a", "truth": True, "perhaps": None, "maybe": None}
HEADS: dict[str, dict[str, Any]] = {
    "unknown kind": {"kind": "Letter"},
    "kind that is no name": {"kind": ["Everything"]},
    "objects": {"arrays": {"table": ["|O", [3]]}},
    "half precision": {"arrays": {"table": ["<f2", [12]]}},
    "big-endian": {"arrays": {"table": [">f4", [2, 3]]}},
    "type that is no name": {"arrays": {"table": [["<f4"], [2, 3]]}},
    "negative shape": {"arrays": {"table": ["<f4", [-2, -3]]}},
    "shape of unknown length": {"arrays": {"table": ["<f4", [-1, 3]]}},
    "broken shape": {"arrays": {"table": ["<f4", [1.5, 4]]}},
    "text as shape": {"arrays": {"table": ["<f4", "23"]}},
    "huge shape": {"arrays": {"table": ["<f4", [2**62, 2**62]]}},
    "empty and huge shape": {"arrays": {"table": ["<f4", [0, 2**80]]}},
    "too many dimensions": {"arrays": {"table": ["<f4", [1] * 100]}},
    "array without shape": {"arrays": {"table": ["<f4"]}},
    "arrays as a list": {"arrays": [["<f4", [2, 3]]]},
    "missing array": {"arrays": {}},
    "unknown field": {"plain": PLAIN | {"colour": 3}},
    "missing field": {"plain": {"whole": 3}},
    "NaN": {"plain": PLAIN | {"real": float("nan")}},
    "infinity": {"plain": PLAIN | {"real": float("inf")}},
    "text for a number": {"plain": PLAIN | {"real": "0.5"}},
    "truth for a number": {"plain": PLAIN | {"whole": True}},
    "number for an array": {"plain": PLAIN | {"maybe": 3}},
    "list": {"plain": PLAIN | {"text": ["a"]}},
    "plain fields as a list": {"plain": ["whole"]},
    "round that is no number": {"round": "4"},
    "endless round": {"round": float("inf")},
    "broken round": {"round": 4.5},
    "session that is no text": {"session": None},
    "sender that is no text": {"sender": 5},
    "protection that is no text": {"protection": ["noise"]},
}


@pytest.mark.parametrize("change", HEADS.values(), ids=HEADS)
def test_head_without_sense_is_refused(change: dict[str, Any]) -> None:
    data = changed(letter().to_bytes(), **change)
    with pytest.raises(RunError):
        Letter.from_bytes(data, KINDS)


def test_same_head_unchanged_is_read() -> None:
    found = Letter.from_bytes(changed(letter().to_bytes(), plain=PLAIN), KINDS)
    assert found.round == 4


@pytest.mark.parametrize("part", ["[" * 100_000, '{"a":' * 100_000, "9" * 10_000, "1e999", "null", "[]"])
def test_deep_and_large_json_is_refused(part: str) -> None:
    with pytest.raises(RunError, match="cannot be read"):
        Letter.from_bytes(MAGIC + part.encode() + b"\n", KINDS)


def test_kind_is_only_read_where_it_is_expected() -> None:
    with pytest.raises(RunError, match="'Everything' is not expected here"):
        Letter.from_bytes(letter().to_bytes(), (Nothing,))


@pytest.mark.parametrize(
    "change",
    [
        {"table": np.array([{}, "x"], object)},
        {"table": np.array(["a"])},
        {"table": np.zeros(2, np.complex128)},
        {"table": np.zeros(2, np.float16)},
        {"real": float("nan")},
        {"real": -float("inf")},
        {"text": ["a"]},
        {"whole": np.int64(3)},
    ],
    ids=["objects", "texts", "complex", "half precision", "NaN", "infinity", "list", "numpy's number"],
)
def test_what_cannot_be_read_is_not_sent(change: dict[str, Any]) -> None:
    with pytest.raises(RunError, match=next(iter(change))):
        letter(everything(**change)).to_bytes()
