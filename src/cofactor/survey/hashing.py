"""Hash functions for local hashing: polynomials of degree two over the field of 2^31 - 1.

A seed is three numbers of the field: h(value) = (c value + b) value + a. Over all seeds, the hashes of any
three values are independent and even (Wegman and Carter 1981). So whoever knows what somebody answered knows
the chance that another value's hash is the same exactly, and how counts of two values vary together as
well: it is as if the hash were drawn anew for every value. Privacy does not depend on any of this.
"""

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import inlined, kernel
from cofactor.errors import RunError
from cofactor.randomness import Random
from cofactor.survey.method import Integers

Words = NDArray[np.uint32]

FIELD = 2**31 - 1
_U = np.uint32
_FIELD = _U(FIELD)
_TOGETHER = 512
"""People whose hashes are stepped through side by side: what they take fits into the nearest cache."""


def drawn_seeds(people: int, random: Random) -> Words:
    """Return a seed for each person: public chance."""
    return np.random.default_rng(random.new_key()).integers(0, FIELD, (people, 3), np.uint32)


def checked_seeds(seeds: object, people: int) -> Words:
    """Return seeds from strangers; refuse those that cannot be."""
    found = np.asarray(seeds)
    numbers = found.shape == (people, 3) and found.dtype.kind in "iu"
    if not numbers or np.any((found < 0) | (found >= FIELD)):
        raise RunError(f"seeds are not three whole numbers from 0 to {FIELD - 1:,} for each answer.")
    return found.astype(np.uint32)


def hashes(seeds: Words, values: Integers, cells: int) -> Integers:
    """Return the cell, of so many, to which each person's hash function puts that person's value."""
    a, b, c = seeds.T.astype(np.int64)
    places = ((c * values + b) % FIELD * values + a) % FIELD
    return np.asarray(places * cells // FIELD)


def first_places(cells: int) -> Integers:
    """Return where each cell begins in the field, and where the last one ends."""
    return -(-np.arange(cells + 1) * FIELD // cells)


def collision(cells: int) -> float:
    """Return the chance that two values fall into one cell: about one over the number of cells.

    The field is a prime, so some cells are larger by one than others.
    """
    size, larger = divmod(FIELD, cells)
    return (larger * (size + 1) ** 2 + (cells - larger) * size**2) / FIELD**2


def supports(seeds: Words, answers: Integers, cells: int, values: int) -> Integers:
    """Count, for each value from 0 on, the people whose hash function puts it where they answered."""
    first = first_places(cells)
    # Moved so that the answer's cell begins at 0: whether a place is in it takes one comparison.
    place = (seeds[:, 0] - first[answers]) % FIELD
    step = (seeds[:, 1].astype(np.int64) + seeds[:, 2]) % FIELD
    widen = 2 * seeds[:, 2].astype(np.int64) % FIELD
    size = np.diff(first)[answers]
    counts = np.zeros(values, np.int64)
    count_supports(counts, *(each.astype(np.uint32) for each in (place, step, widen, size)))
    return counts


@kernel
def count_supports(counts: Integers, place: Words, step: Words, widen: Words, size: Words) -> None:
    """Add, to each value's count, who has a place below the size; from value to value, places move by steps.

    Steps grow by `widen`, all in the field. Places and steps are used up.
    """
    for start in range(0, place.size, _TOGETHER):
        at, by = place[start : start + _TOGETHER], step[start : start + _TOGETHER]
        more, below = widen[start : start + _TOGETHER], size[start : start + _TOGETHER]
        for value in range(counts.size):
            found = _U(0)
            for person in range(at.size):
                found = _U(found + _U(at[person] < below[person]))
                at[person] = _added(at[person], by[person])
                by[person] = _added(by[person], more[person])
            counts[value] += found


@inlined
def _added(one: np.uint32, other: np.uint32) -> np.uint32:
    """Return a sum in the field. Numba's sums of 32-bit words have 64 bits: they must be cut to vectorise."""
    total = _U(one + other)
    return min(total, _U(total - _FIELD))
