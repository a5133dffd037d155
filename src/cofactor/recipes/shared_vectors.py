"""The messages of recipes whose parties train one set of vectors together."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from cofactor.federation.messages import Message

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Begin(Message):
    """The coordinator asks for what is needed before the first step."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Total(Message):
    """A party's sum of all its ratings, less the middle of the scale, with noise."""

    total: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Shared(Message):
    """The coordinator's average, on which the parties go on."""

    centre: Array
    """What is taken off all ratings: one number."""
    vectors: Array
    """Of the users if vertical, of the items if horizontal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Finished(Message):
    """The last average; a party that shares its own vectors sends them now."""

    centre: Array
    vectors: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Vectors(Message):
    """What a party's steps made of the shared vectors, or its own vectors at the end."""

    vectors: Array
