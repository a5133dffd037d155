"""The messages of `PersonalBiases`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.federation.messages import Message

Array = NDArray[Any]
Integers = NDArray[np.int64]

VALUES, HALVES = "sums of ratings by item", "counts and sums of ratings by item"
"""The one noisy release, as ledgers and plans name it: where who rated what is public, and where it is not.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class RatingsAsked(Message):
    """The coordinator asks how often and how high items are rated. There is nothing in the question."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CountsAndValues(Message):
    """Sums over ratings of each item, where who rated what is public."""

    counts: Integers
    """How many ratings there are: exact."""
    values: Integers
    """Ratings from -1 to 1, each times its weight, in whole grains."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Halves(Message):
    """Two sums over ratings of each item, in whole grains, where counts are protected, too.

    A rating v from -1 to 1, of weight w, adds w (1 + v) / 2 to the one and w (1 - v) / 2 to the other: their
    sum counts ratings, their difference tells how high they are.
    """

    halves: Integers


@dataclass(frozen=True, kw_only=True, eq=False)
class CoRatingAsked(Message):
    """The coordinator asks which items the same users rate: along some directions."""

    directions: Array
    """A column of numbers from -1 to 1 for each direction, a row for each item."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CoRatingSums(Message):
    """For each item, the sum over those who rated it of where their choices lie, in fixed point."""

    sums: Integers
