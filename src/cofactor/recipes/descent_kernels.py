"""Private gradient steps on tables of rows: bounded gradients are added up, then all rows move, with noise.

Gradients are added up as whole numbers of small steps, so a sum over many ratings is exact: two sums that
differ in one unit differ by that unit's bounded contribution, and no rounding of the others adds to it. Noise
is rounded to the same steps, together with the sum: what leaves has none of the digits in which
floating-point noise shows its origin (Mironov 2012).
"""

from typing import Any, NamedTuple

import numpy as np

from cofactor import chacha
from cofactor.compiled import kernel
from cofactor.data.grouping import Index, Offsets, Values
from cofactor.factors.simd import (
    LANES,
    Table,
    combine,
    dot,
    fetch_row,
    load_row,
    product,
    scaled,
    store_row,
    without_negatives,
)
from cofactor.factors.whole_rows import add_whole, noisy, row_at
from cofactor.privacy.gaussian_kernels import NUMBERS, block_of, fill_gaussian
from cofactor.randomness import Key

MARGIN = 1e-5
"""Limits in float32 are set this much, relatively, below those that are promised: more than float32 can be
wrong about the length of MOST_FACTORS numbers."""
MOST_FACTORS = 1000
AT_ONCE = 4 * NUMBERS
"""Numbers of noise that are made at once: few enough to stay in the nearest cache."""

_AHEAD = 8
"""How many ratings ahead rows are fetched: items lie far apart."""
_F = np.float32
_ONE = np.float32(1)
_NOTICED = np.float32(1 + 2 * MARGIN)
"""What is shortened by no more than this lay at the limit itself, or below it."""


class Known(NamedTuple):
    """Ratings by user, and the users who take part in this step."""

    ptr: Offsets
    items: Index
    values: Values
    chosen: Offsets
    """Users by number, in rising order."""


class Vectors(NamedTuple):
    """All vectors, as they are before the step."""

    users: Table
    items: Table


class Sums(NamedTuple):
    """Where gradients are added up, in whole steps."""

    users: Table
    """A row for each user who takes part, in the same order; no rows if user vectors stay as they are."""
    items: Table
    """A row for each item."""
    per_user_step: np.float32
    """One, divided by the size of a step of the sums for users."""
    per_item_step: np.float32
    """One, divided by the size of a step of the sums for items."""
    zero: Table
    """A row of zeros."""


class Noise(NamedTuple):
    """The noise of one side; a key serves one pass."""

    key: Key
    deviation: np.float32
    """In steps; 0 for none."""


class Motion(NamedTuple):
    """How rows move."""

    rate: np.float32
    """What a step of the noisy sum is multiplied with."""
    squared_radius: np.float32
    nonnegative: bool
    inside: Table
    """A row of ones where vectors have numbers, of zeros in their padding."""
    factors: int


@kernel
def add_ratings(
    known: Known, vectors: Vectors, sums: Sums, largest_error: np.float32, longest: np.float32 | None
) -> int:
    """Add up the gradients of all ratings of the chosen users, each bounded by itself.

    Errors are limited to the largest, gradients to the longest: those of the user's and the item's vector
    together, or of the item's alone. None if errors and vectors bound them already. Return how many were
    shortened noticeably.
    """
    both, shortened = sums.users.size > 0, 0
    noticed = _NOTICED * largest_error
    for place in range(known.chosen.size):
        u = known.chosen[place]
        user, own = load_row(vectors.users, u), load_row(sums.zero, 0)
        user_square = dot(user, user)
        for at in range(known.ptr[u], known.ptr[u + 1]):
            i = known.items[at]
            soon = known.items[min(at + _AHEAD, known.items.size - 1)]
            fetch_row(vectors.items, soon)
            fetch_row(sums.items, soon)
            item = load_row(vectors.items, i)
            error = known.values[at] - dot(user, item)
            # The gradients are this times the other side's vector.
            slope = _F(-2) * min(max(error, -largest_error), largest_error)
            shortening = _ONE
            if longest is not None:
                square = user_square + dot(item, item) if both else user_square
                shortening = _shortening(slope * slope * square, longest)
                slope *= shortening
            if abs(error) > noticed or shortening * _NOTICED < _ONE:
                shortened += 1
            if both:
                own = add_whole(own, scaled(slope * sums.per_user_step, item))
            total = add_whole(load_row(sums.items, i), scaled(slope * sums.per_item_step, user))
            store_row(sums.items, i, total)
        if both:
            store_row(sums.users, place, own)
    return shortened


@kernel
def add_users(known: Known, vectors: Vectors, sums: Sums, longest: np.float32, slopes: Values) -> int:
    """Add up the gradients of the chosen users, each limited to the longest over all of a user's ratings.

    A user's items are all different, so the squares of their gradients add up. `slopes` has room for the
    ratings of any one user. Return how many users' were shortened noticeably.
    """
    both, shortened = sums.users.size > 0, 0
    for place in range(known.chosen.size):
        u = known.chosen[place]
        first, count = known.ptr[u], known.ptr[u + 1] - known.ptr[u]
        user, own, squares = load_row(vectors.users, u), load_row(sums.zero, 0), 0.0
        for k in range(count):
            item = load_row(vectors.items, known.items[first + k])
            slopes[k] = _F(-2) * (known.values[first + k] - dot(user, item))
            own = combine(_ONE, own, slopes[k], item)
            squares += np.float64(slopes[k]) * np.float64(slopes[k])
        square = _F(squares * dot(user, user) + (dot(own, own) if both else 0.0))
        shortening = _shortening(square, longest)
        if shortening * _NOTICED < _ONE:
            shortened += 1
        for k in range(count):
            i = known.items[first + k]
            change = scaled(slopes[k] * shortening * sums.per_item_step, user)
            store_row(sums.items, i, add_whole(load_row(sums.items, i), change))
        if both:
            change = scaled(shortening * sums.per_user_step, own)
            store_row(sums.users, place, add_whole(load_row(sums.zero, 0), change))
    return shortened


@kernel
def _shortening(square: np.float32, length: np.float32) -> np.float32:
    """Return what to multiply a gradient with whose squared length this is."""
    return _ONE if square <= length * length else length / np.sqrt(square)


@kernel
def move_users(rows: Table, sums: Sums, chosen: Offsets, noise: Noise, motion: Motion) -> None:
    """Move every user's row: by its sum if the user was chosen, by noise in any case."""
    numbers = np.zeros(AT_ONCE + LANES, np.float32)
    inside, zero = load_row(motion.inside, 0), load_row(sums.zero, 0)
    at_once, next_chosen = AT_ONCE // motion.factors, 0
    for begin in range(0, rows.size, at_once):
        end = min(begin + at_once, rows.size)
        _fill(numbers, noise, begin // at_once, (end - begin) * motion.factors)
        for r in range(begin, end):
            total = zero
            if next_chosen < chosen.size and chosen[next_chosen] == r:
                total = load_row(sums.users, next_chosen)
                next_chosen += 1
            more = product(row_at(numbers, (r - begin) * motion.factors, rows), inside)
            store_row(rows, r, _moved(load_row(rows, r), noisy(total, more), motion))


@kernel
def move_items(rows: Table, sums: Sums, noise: Noise, motion: Motion) -> None:
    """Move every item's row by its sum and noise, and leave the sum at zero for the next step."""
    numbers = np.zeros(AT_ONCE + LANES, np.float32)
    inside, zero = load_row(motion.inside, 0), load_row(sums.zero, 0)
    at_once = AT_ONCE // motion.factors
    for begin in range(0, rows.size, at_once):
        end = min(begin + at_once, rows.size)
        _fill(numbers, noise, begin // at_once, (end - begin) * motion.factors)
        for r in range(begin, end):
            total = load_row(sums.items, r)
            store_row(sums.items, r, zero)
            more = product(row_at(numbers, (r - begin) * motion.factors, rows), inside)
            store_row(rows, r, _moved(load_row(rows, r), noisy(total, more), motion))


@kernel
def _fill(numbers: Values, noise: Noise, part: int, count: int) -> None:
    """Make the noise of one part of the rows; each part has blocks of its own."""
    if noise.deviation > 0:
        whole_groups = numbers[: -(-count // NUMBERS) * NUMBERS]
        fill_gaussian(whole_groups, noise.key, block_of(part * AT_ONCE), noise.deviation, chacha.ROUNDS)


@kernel
def _moved(row: Any, total: Any, motion: Motion) -> Any:
    return projected(combine(_ONE, row, -motion.rate, total), motion.squared_radius, motion.nonnegative)


@kernel
def projected(row: Any, squared_radius: np.float32, nonnegative: bool) -> Any:
    """Project a row onto the vectors that are short enough and, if asked for, not negative."""
    if nonnegative:
        row = without_negatives(row)
    # No branch: with noise, nobody could predict it.
    return scaled(min(_ONE, np.sqrt(squared_radius / dot(row, row))), row)


@kernel
def project(rows: Table, squared_radius: np.float32, nonnegative: bool) -> None:
    """Project every row of a table."""
    for r in range(rows.size):
        store_row(rows, r, projected(load_row(rows, r), squared_radius, nonnegative))


@kernel
def some_ratings(ptr: Offsets, pairs: Values, positions: Offsets) -> tuple[Offsets, Index, Values]:
    """Return the ratings at some positions, in rising order, and where each group's begin among them.

    A pair is an item's number, in the bits of a float, and a value.
    """
    found = np.empty(ptr.size, np.int64)
    numbers, values = np.empty(positions.size, np.float32), np.empty(positions.size, np.float32)
    for k in range(positions.size):
        numbers[k], values[k] = pairs[positions[k], 0], pairs[positions[k], 1]
    at = 0
    for group in range(ptr.size):
        while at < positions.size and positions[at] < ptr[group]:
            at += 1
        found[group] = at
    return found, numbers.view(np.int32), values
