"""What goes over the wire: small typed messages, and the bytes they become. Nothing is pickled.

A message is a frozen dataclass of numbers, texts and arrays. Its bytes are a line of JSON that names the
kind, the plain fields and the arrays' types and shapes, and then the arrays, little-endian, one by one.
Whoever reads says which kinds it expects; anything else is refused before it is looked at.
"""

import json
import math
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import RunError

MAGIC = b"cofactor message 1\n"
"""The first bytes of every letter, with the version of its layout."""

_PLAIN = (int, float, str, bool, NoneType)
_TYPES = ("<f4", "<f8", "<i4", "<i8", "<u2", "<u4", "<u8", "|u1", "|b1")
_TEXTS = ("session", "sender", "protection")


@dataclass(frozen=True, kw_only=True, eq=False)
class Message:
    """The base of all messages; a recipe makes its own kinds, whose fields are numbers, texts or arrays."""

    relays: ClassVar[bool] = False
    """Whether the coordinator passes on with it what parties have sealed for each other."""

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
        little = {name: _little(name, array) for name, array in self.body.arrays.items()}
        head = {
            "session": self.session,
            "round": self.round,
            "sender": self.sender,
            "protection": self.protection,
            "kind": type(self.body).__name__,
            "plain": {name: _plain(name, value) for name, value in self.body.plain.items()},
            "arrays": {name: [array.dtype.str, list(array.shape)] for name, array in little.items()},
        }
        line = json.dumps(head, separators=(",", ":")).encode() + b"\n"
        return b"".join([MAGIC, line, *(array.tobytes() for array in little.values())])

    @classmethod
    def from_bytes(cls, data: bytes, kinds: Iterable[type[Message]]) -> "Letter":
        """Read a letter whose message is of one of these kinds; refuse everything else."""
        try:
            return _read(data, {kind.__name__: kind for kind in kinds})
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise RunError(
                f"a message cannot be read ({error}). Is the other side of the same version?"
            ) from None


@dataclass(frozen=True, kw_only=True)
class Heading:
    """What the first line of a letter says; its body is not looked at."""

    session: str
    round: int
    sender: str
    kind: str
    protection: str


def heading(data: bytes) -> Heading:
    """Read the first line of a letter, from whomever it came."""
    try:
        if not data.startswith(MAGIC):
            raise ValueError("it does not begin as cofactor's messages do")
        head = json.loads(data[len(MAGIC) :].partition(b"\n")[0])
        found = {field.name: head[field.name] for field in fields(Heading)}
        fits = type(found["round"]) is int and all(type(found[name]) is str for name in (*_TEXTS, "kind"))
    except (ValueError, KeyError, TypeError, RecursionError):
        fits = False
    if not fits:
        raise RunError("a message cannot be read. Is the other side of the same version?")
    return Heading(**found)


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
    plain = {name: _plain(name, value) for name, value in head["plain"].items()}
    _check_types(kinds[head["kind"]], {**plain, **arrays})
    if type(head["round"]) is not int or not all(isinstance(head[name], str) for name in _TEXTS):
        raise ValueError("its head makes no sense")
    return Letter(
        session=head["session"],
        round=head["round"],
        sender=head["sender"],
        body=kinds[head["kind"]](**plain, **arrays),
        protection=head["protection"],
    )


def _check_types(kind: type[Message], values: Mapping[str, Any]) -> None:
    """Refuse a number where an array is expected, and the like; what is missing or unknown shows later."""
    hints = typing.get_type_hints(kind)
    for name, value in values.items():
        choices = typing.get_args(hints[name]) if isinstance(hints[name], UnionType) else (hints[name],)
        # What numpy's array types look like differs between its versions: whatever is not plain is one.
        allowed = {choice if choice in _PLAIN else np.ndarray for choice in choices}
        if type(value) not in allowed and not (type(value) is int and float in allowed):
            raise ValueError(f"{name} is of another type")


def _plain(name: str, value: Any) -> Any:
    """Let a finite number, a text or nothing pass; refuse anything else."""
    if not isinstance(value, int | float | str | None) or value in (math.inf, -math.inf) or value != value:
        raise RunError(f"{name} is no finite number and no text, so it is not sent.")
    return value


def _little(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as it is sent; memory addresses of objects, say, must not leave."""
    little = array.astype(array.dtype.newbyteorder("<"), order="C")
    if little.dtype.str not in _TYPES:
        raise RunError(f"{name} is an array of {array.dtype}, which is not sent. Use {', '.join(_TYPES)}.")
    return little


def _array(data: bytes, at: int, type_name: str, shape: list[int]) -> tuple[NDArray[Any], int]:
    if type_name not in _TYPES:
        raise ValueError(f"arrays of type {type_name!r} are not sent")
    if not all(isinstance(length, int) and length >= 0 for length in shape):
        raise ValueError("an array has an impossible shape")
    kind = np.dtype(type_name)
    count = math.prod(shape)
    if at + count * kind.itemsize > len(data):
        raise ValueError("it has fewer bytes than it says")
    # A copy, because bytes begin anywhere: kernels want arrays that are aligned.
    return np.frombuffer(data, kind, count, at).reshape(shape).copy(), at + count * kind.itemsize
