"""The messages of `VerticalTaste`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.federation.messages import Message
from cofactor.recipes.taste_items import Matrix, Vector

Integers = NDArray[np.int64]

ITEM_SUMS, USER_MESSAGES = "item sums", "messages about users"


@dataclass(frozen=True, kw_only=True, eq=False)
class TasteBegin(Message):
    """Round 1, to all: tell about your items."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TasteItems(Message):
    """Round 1, from a party: its items, in noisy sums and public numbers."""

    sums: Matrix
    variance: Vector
    """Variance of the noise on a number: public."""
    features: Matrix


@dataclass(frozen=True, kw_only=True, eq=False)
class TasteDirections(Message):
    """Round 2, to all: what is known about all items, party by party, and in which directions to tell."""

    mean: float
    scale: float
    bias: Vector
    popularity: Vector
    weights: Vector
    features: Matrix
    rows: Matrix


@dataclass(frozen=True, kw_only=True, eq=False)
class TasteSums(Message):
    """Round 2, from a party: noisy sums about each user."""

    sums: Matrix
    variance: Vector
    """Variance of the noise on a number: public. Added up, it is that of the sum."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TasteShares(Message):
    """Round 2, from a party whose message is only summed: whole grains, with a part of the noise.

    The rest is public, with a place for each party: added up, it tells of all who are in the sum.
    """

    sums: Integers
    answered: Integers
    """1 at the party's own place."""
    shared: Integers
    """At its place, the variance of the noise of the whole sum, in grains, of which it adds a part."""
    alone: Integers
    """The same for a party that adds all of that noise itself."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TasteTotal(TasteDirections):
    """In the end, to all: the sum of all messages about users, and what is needed to read it."""

    total: Matrix
    variance: Vector
    answered: NDArray[np.bool_]
    """Whose messages are in the sum, party by party."""
