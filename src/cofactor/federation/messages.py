"""What goes over the wire: small typed messages, and the bytes they become. Nothing is pickled.

A message is a frozen dataclass of numbers, texts and arrays. Its bytes are a line of JSON that names the
kind, the plain fields and the arrays' types and shapes, and then the arrays, little-endian, one by one.
Whoever reads says which kinds it expects; anything else is refused before it is looked at.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import RunError

MAGIC = b"cofactor message 1\n"
"""The first bytes of every letter, with the version of its layout."""

_TYPES = ("<f4", "<f8", "<i4", "<i8", "<u4", "<u8", "|u1", "|b1")


@dataclass(frozen=True, kw_only=True, eq=False)
class Message:
    """The base of all messages; a recipe makes its own kinds, whose fields are numbers, texts or arrays."""

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The fields that hold arrays."""
        return {name: value for name, value in self._fields() if isinstance(value, np.ndarray)}

    @property
    def plain(self) -> dict[str, Any]:
        """The fields that hold a number, a text or nothing."""
        return {name: value for name, value in self._fields() if not isinstance(value, np.ndarray)}

    def _fields(self) -> Iterable[tuple[str, Any]]:
        return ((field.name, getattr(self, field.name)) for field in fields(self))


@dataclass(frozen=True, kw_only=True)
class Letter:
    """A message with what is needed to put it in its place."""

    session: str
    """Which training it belongs to."""
    round: int
    sender: str
    body: Message
    protection: str = "public"
    """What stands between its numbers and the ratings they came from, as its sender says."""

    def to_bytes(self) -> bytes:
        """Return the letter as bytes."""
        arrays = {name: np.ascontiguousarray(array) for name, array in self.body.arrays.items()}
        little = {name: array.astype(array.dtype.newbyteorder("<")) for name, array in arrays.items()}
        head = {
            "session": self.session,
            "round": self.round,
            "sender": self.sender,
            "protection": self.protection,
            "kind": type(self.body).__name__,
            "plain": self.body.plain,
            "arrays": {name: [array.dtype.str, list(array.shape)] for name, array in little.items()},
        }
        line = json.dumps(head, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        return b"".join([MAGIC, line, *(array.tobytes() for array in little.values())])

    @classmethod
    def from_bytes(cls, data: bytes, kinds: Iterable[type[Message]]) -> "Letter":
        """Read a letter whose message is of one of these kinds; refuse everything else."""
        try:
            return _read(data, {kind.__name__: kind for kind in kinds})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RunError(
                f"a message cannot be read ({error}). Is the other side of the same version?"
            ) from None


def _read(data: bytes, kinds: dict[str, type[Message]]) -> Letter:
    if not data.startswith(MAGIC):
        raise ValueError("it does not begin as cofactor's messages do")
    line, _, rest = data[len(MAGIC) :].partition(b"\n")
    head = json.loads(line)
    if head["kind"] not in kinds:
        raise ValueError(f"kind {head['kind']!r} is not expected here")
    arrays, at = {}, 0
    for name, (type_name, shape) in head["arrays"].items():
        arrays[name], at = _array(rest, at, type_name, shape)
    if at != len(rest):
        raise ValueError("it has more bytes than it says")
    body = kinds[head["kind"]](**head["plain"], **arrays)
    return Letter(
        session=str(head["session"]),
        round=int(head["round"]),
        sender=str(head["sender"]),
        body=body,
        protection=str(head["protection"]),
    )


def _array(data: bytes, at: int, type_name: str, shape: list[int]) -> tuple[NDArray[Any], int]:
    if type_name not in _TYPES:
        raise ValueError(f"arrays of type {type_name!r} are not sent")
    if not all(isinstance(length, int) and length >= 0 for length in shape):
        raise ValueError("an array has an impossible shape")
    kind = np.dtype(type_name)
    count = math.prod(shape)
    if at + count * kind.itemsize > len(data):
        raise ValueError("it has fewer bytes than it says")
    return np.frombuffer(data, kind, count, at).reshape(shape), at + count * kind.itemsize
