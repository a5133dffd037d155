"""The messages of recipes whose parties train one set of vectors together."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.federation.messages import Message

Array = NDArray[Any]
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Begin(Message):
    """The coordinator asks for what is needed before the first step."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Total(Message):
    """A party's sum of all its ratings, less the middle of the scale, with noise."""

    total: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Totals(Message):
    """The same in whole numbers, for a sum, and how many ratings or users were added up."""

    total: Integers
    count: Integers


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Gradients(Message):
    """A party's gradients of the shared vectors, in whole grains, for a sum."""

    gradients: Integers


@dataclass(frozen=True, kw_only=True, eq=False)
class Weighted(Message):
    """Vectors that a party's steps have made, in whole grains and times its weight, for a sum."""

    vectors: Integers
    weight: Integers


SHARED_VECTORS = (Begin, Total, Totals, Shared, Finished, Vectors, Gradients, Weighted)
"""All of them."""
