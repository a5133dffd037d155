"""Units that ask for more privacy contribute less: each has its own weight, and its own limit (stretching).

Noise is made for weight 1. A unit of weight w changes a sum by at most w times the bound, whatever it holds,
so it is w times as well hidden (Alaggan, Gambs and Kermarrec 2016). Weights are private: they enter what is
summed, and nothing else. Limits are whole numbers, rounded down: towards privacy.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor import chacha
from cofactor.compiled import kernel
from cofactor.config import one_of, whole
from cofactor.errors import ConfigError
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Adjacency
from cofactor.privacy.clipping import MARGIN, checked_places, checked_reals
from cofactor.privacy.events import Bound
from cofactor.randomness import Random

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

_MOST_GRAINS = 2**40


def checked_weights(weights: ArrayLike, count: int) -> Reals:
    """Return one weight for each of so many units; no message tells what a weight is."""
    found = np.asarray(weights, np.float64)
    if found.shape != (count,) or not np.all((found >= 0) & (found <= 1)):
        raise ConfigError(f"weights must be {count:,} numbers between 0 and 1, one for each unit.")
    return found


def weighed_grains(weights: ArrayLike, grains: int) -> Integers:
    """Return what each unit may contribute, if one of weight 1 may contribute `grains`: rounded down.

    Exactly: where a product comes out whole in floating point, it may have been rounded up to that.
    """
    whole(grains=grains)
    if grains > _MOST_GRAINS:
        raise ConfigError(f"grains must be at most {_MOST_GRAINS:,}, got {grains:,}. Use coarser ones.")
    known = checked_weights(weights, np.size(weights))
    products = known * grains
    limits = np.floor(products)
    doubtful = np.flatnonzero(limits == products)
    limits[doubtful] = _exactly(known[doubtful], lambda part, of: part * grains // of)
    return limits.astype(np.int64)


def weighed_squares(weights: Reals, most: int) -> Reals:
    """Return the largest sum of squares of units whose l2 norm may be w times `most`: whole, rounded down."""
    return _exactly(weights, lambda part, of: (part * most) ** 2 // of**2)


def _exactly(weights: Reals, of_ratio: Callable[[int, int], int]) -> Reals:
    """Return a whole number for each weight, reckoned from its two whole numbers; exact below 2^53."""
    distinct, which = np.unique(weights, return_inverse=True)
    found = [of_ratio(*weight.as_integer_ratio()) for weight in distinct.tolist()]
    return np.array(found, np.float64)[which]


def shortened_rows(rows: Integers, squares: Reals) -> Integers:
    """Shorten each row of whole numbers to a sum of squares of at most its own, rounding towards zero."""
    lengths = np.square(rows.astype(np.float64)).sum(axis=1)
    # Sums of squares of whole numbers are exact below 2^53; beyond, the margin is wider than the error.
    kept = lengths <= squares * np.where(lengths < 2.0**53, 1.0, 1 - MARGIN)
    scale = np.sqrt(squares) * (1 - MARGIN) / np.sqrt(np.maximum(lengths, 1.0))
    return np.where(kept[:, None], rows, np.trunc(rows * scale[:, None]).astype(np.int64))


def stretched_table(
    values: ArrayLike,
    weights: ArrayLike,
    places: ArrayLike,
    *,
    place_count: int,
    grains: int,
    random: Random,
    adjacency: Adjacency,
) -> Bounded:
    """Add up ratings in a table of whole numbers, each at most as long, in l1, as its own weight allows.

    Rating i has a row of `values`, of which the absolute values add up to at most 1 or are shortened to
    that; a weight; and a row `places[i]` of the table. It adds its values times its own `weighed_grains`,
    rounded by chance and right on average, and never more than these grains in all, whatever the rounding
    does. With columns (1 + v) / 2 and (1 - v) / 2, which add up to 1, noise for adjacency "empty" hides
    which ratings there are, too. For "replace" there is no such bound: another rating has another weight.
    """
    one_of(("empty", "value"), adjacency=adjacency)
    whole(place_count=place_count)
    rows = checked_reals("values", values, dimensions=2).astype(np.float64)
    where = checked_places(places, len(rows), place_count)
    limits = weighed_grains(checked_weights(weights, len(rows)), grains)
    if len(rows) * float(grains) >= 2**62:
        raise ConfigError(f"a sum of {len(rows):,} ratings does not fit 63 bits. Use fewer grains.")
    words = np.empty(len(rows), np.uint32)
    chacha.fill(words, random.new_key(), np.uint64(0), np.uint64(0), chacha.ROUNDS)
    total = np.zeros((place_count, rows.shape[1]), np.int64)
    add_stretched(rows, limits, where, words, total)
    size = grains * (1 if adjacency == "empty" else 2)
    bound = Bound(size=size, norm="l1", unit="rating", adjacency=adjacency, weighed=True)
    return Bounded(value=total, bound=bound)


@kernel
def add_stretched(
    rows: Reals, limits: Integers, places: Integers, words: NDArray[np.uint32], total: Integers
) -> None:
    """Add to a table what each rating contributes.

    One chance serves all columns of a row: what their absolute values add up to, from left to right, is
    rounded by it, and each column adds what is new. So a row adds what its own sum is rounded to, no more.
    """
    for at in range(rows.shape[0]):
        length = 0.0
        for k in range(rows.shape[1]):
            length += abs(rows[at, k])
        scale = limits[at] / max(length, 1.0)
        chance = (words[at] + 0.5) * 2.0**-32
        reached, below = 0.0, np.int64(0)
        for k in range(rows.shape[1]):
            reached += abs(rows[at, k]) * scale
            # A sum that rounding has lifted over its limit would be rounded up from there.
            above = min(np.int64(np.floor(reached + chance)), limits[at])
            total[places[at], k] += (above - below) * (1 if rows[at, k] >= 0 else -1)
            below = above
