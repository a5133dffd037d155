"""The arithmetic of `HDPMF` at home: users fitted to items, and what each adds to the gradients of all items.

What a user adds has an l1 norm of at most her weight as a whole, in whole grains, whatever was asked.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped
from cofactor.data.ratings import Scale
from cofactor.federation.halves import Facts
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound
from cofactor.privacy.stretching import stretched_table
from cofactor.randomness import Random, Seeds
from cofactor.recipes.item_weights import stretches
from cofactor.recipes.local_steps import shortened
from cofactor.recipes.objective import ridge

Floats = NDArray[np.float32]
Reals = NDArray[np.float64]

_CENTRE = 0.625
"""Where on the scale everybody's ratings are taken to lie at first: at 3.5 from 1 to 5."""
_PENALTY = 2.0
"""On a user's way from where all users begin, counted in ratings."""
_SPREAD = 0.1
"""How far items begin apart from each other, as a part of the highest rating."""
_LONGEST = 2.0
"""The longest item vector that is believed, in highest ratings."""
_SMALLEST = 1e-9
"""In highest ratings: whose gradients add up to less is predicted exactly, but for rounding."""
_AT_ONCE = 2**22
"""Numbers that are worked on at once: what they need fits into memory for any cohort."""


@dataclass(frozen=True, kw_only=True)
class Space:
    """Where vectors begin and where they stay: from public numbers only."""

    factors: int
    scale: Scale

    @property
    def highest(self) -> float:
        """The largest rating, in absolute value: a user of length 1 reaches it where items begin."""
        return max(abs(self.scale.low), abs(self.scale.high))

    @property
    def usual(self) -> Floats:
        """The user vector at which all begin."""
        found = np.zeros(self.factors, np.float32)
        found[0] = (self.scale.low + _CENTRE * (self.scale.high - self.scale.low)) / self.highest
        return found

    @property
    def penalty(self) -> float:
        """The weight of a user's squared way from there."""
        return _PENALTY * self.highest**2

    @property
    def smallest(self) -> float:
        """The least that the gradients of a user add up to, in l1, for them to say anything."""
        return _SMALLEST * self.highest

    def first_items(self, count: int, seed: int) -> Floats:
        """Return where items begin: the first coordinate alike, the others apart by chance."""
        items = Seeds(seed).generator("hdpmf items").normal(0.0, _SPREAD, (count, self.factors))
        items[:, 0] = 1.0
        return (self.highest * items).astype(np.float32)

    def received(self, items: NDArray[np.generic]) -> Floats:
        """Return item vectors that came from outside; none is longer than can be believed."""
        return shortened(items, _LONGEST * self.highest)

    def fitted(self, ratings: Grouped, items: Floats) -> Floats:
        """Fit users to their own ratings, near where all begin; none is longer than 1."""
        residuals = ratings.values - (items @ self.usual)[ratings.index]
        return shortened(self.usual + ridge(replace(ratings, values=residuals), items, self.penalty), 1.0)


def bound_of(grains: int, facts: Facts) -> Bound:
    """Return the most by which a user of weight 1 changes the sums of all items, in whole numbers."""
    return Bound(size=float(grains), norm="l1", unit="user", weighed=stretches(facts.weights))


def summed(
    ratings: Grouped,
    users: Floats,
    items: Floats,
    weights: Reals,
    *,
    grains: int,
    bound: Bound,
    smallest: float,
    random: Random,
) -> Bounded:
    """Add up users' gradients of all items: each user's, taken together, with an l1 norm of her weight."""
    rows, owners = directions(ratings, users, items, smallest), ratings.members()
    total, width, count = np.zeros(items.size, np.int64), items.shape[1], len(ratings.ptr) - 1
    portion = max(1, _AT_ONCE // max(items.size, 1))
    for begin in range(0, count, portion):
        end = min(begin + portion, count)
        own = slice(ratings.ptr[begin], ratings.ptr[end])
        messages = np.zeros((end - begin, len(items), width))
        messages[owners[own] - begin, ratings.index[own]] = rows[own]
        total += stretched_table(
            messages.reshape(end - begin, items.size),
            weights[begin:end],
            np.zeros(end - begin, np.int64),
            place_count=1,
            grains=grains,
            random=random,
            adjacency="empty",
        ).value[0]
    return Bounded(value=total.reshape(items.shape), bound=bound)


def directions(ratings: Grouped, users: Floats, items: Floats, smallest: float) -> Reals:
    """Return the gradient of each rating by its item's vector; those of a user add up to 1 in l1.

    Whoever is predicted exactly has none, and adds nothing.
    """
    owners, wide = ratings.members(), users.astype(np.float64)
    missed = np.einsum("rk,rk->r", wide[owners], items[ratings.index]) - ratings.values
    rows = missed[:, None] * wide[owners]
    lengths = np.bincount(owners, np.abs(rows).sum(axis=1), minlength=len(ratings.ptr) - 1)
    inverse = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=lengths > smallest)
    return np.asarray(rows * inverse[owners, None])
