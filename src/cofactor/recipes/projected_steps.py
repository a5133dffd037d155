"""The arithmetic of `ProjectedMF`, for one device or for many at once.

A device's gradient is one row for each item, and all of its rows are multiples of its user's vector: a weight
for each item, times the vector. So what is sketched and flattened is the column of weights alone.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.data.grouping import Grouped, Index, Offsets, Values
from cofactor.randomness import Seeds

Reals = NDArray[np.float64]

_STEEPEST = 1e12
"""The most by which a user's equations may grow along one direction, divided by the penalty: below it they
have a solution to many digits, whatever is asked."""
_AT_ONCE = 2**17
"""Numbers that are worked on at once: what they need fits into a cache, for any cohort."""
_TINY = 1e-12
"""Keeps from dividing by 0; gradients here are far below the usual 1e-8."""
_FLATTEST = 1e-3
"""The least slope from scores to ratings: it keeps their order and says next to nothing."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """A public projection of items to fewer rows, and the signs by which rows are flattened.

    Item j is added, with its sign, to row `rows[j]`: column j of S has this one entry (eq. 13).
    """

    rows: Index
    signs: Reals
    """Of items, 1 or -1: sigma in the paper."""
    flips: Reals
    """Of rows, 1 or -1, as many as there are with padding: xi in Algorithm 3."""
    count: int
    """Rows without padding: p in the paper."""

    @classmethod
    def drawn(cls, items: int, count: int, seed: int, purpose: str) -> "Sketch":
        """Return the sketch of a purpose: everybody who knows the seed draws the same.

        With as many rows as items there is nothing to project, and every item keeps a row of its own.
        """
        chance = Seeds(seed).generator(purpose)
        flips = chance.choice([-1.0, 1.0], padded(count))
        if count == items:
            return cls(np.arange(items, dtype=np.int32), np.ones(items), flips, count)
        rows = chance.integers(0, count, items).astype(np.int32)
        return cls(rows, chance.choice([-1.0, 1.0], items), flips, count)

    def projected(self, values: Reals) -> Reals:
        """Return S values: a row for each row of the sketch."""
        out = np.zeros((self.count, values.shape[1]))
        np.add.at(out, self.rows, self.signs[:, None] * values)
        return out

    def spread(self, rows: Reals) -> Reals:
        """Return S^T rows: a row for each item."""
        return np.asarray(self.signs[:, None] * rows[self.rows])

    def flattened(self, weights: Reals) -> Reals:
        """Return H D S w for every row w of `weights`, one weight an item: Algorithm 3, padding included."""
        out = np.zeros((len(weights), len(self.flips)))
        add_signed(out, weights, self.rows, self.signs)
        out *= self.flips
        mix(out)
        return out

    def unflattened(self, flat: Reals) -> Reals:
        """Return the rows that were flattened, without padding: Algorithm 4."""
        turned = np.ascontiguousarray(flat.T, np.float64)
        mix(turned)
        return np.asarray((turned * self.flips).T[: self.count])


def padded(rows: int) -> int:
    """Return the smallest power of two that is no smaller: p' in the paper."""
    return 1 << (rows - 1).bit_length()


@kernel
def add_signed(out: Reals, weights: Reals, rows: Index, signs: Reals) -> None:
    """Add each weight, with its item's sign, to its item's place: S w for each row w."""
    for device in range(weights.shape[0]):
        for item in range(weights.shape[1]):
            out[device, rows[item]] += signs[item] * weights[device, item]


@kernel
def mix(rows: Reals) -> None:
    """Multiply each row by the Walsh-Hadamard matrix of its length, a power of two, in place: an isometry."""
    length = rows.shape[1]
    scale = 1 / np.sqrt(length)
    for row in range(rows.shape[0]):
        half = 1
        while half < length:
            for start in range(0, length, 2 * half):
                for at in range(start, start + half):
                    first, second = rows[row, at], rows[row, at + half]
                    rows[row, at], rows[row, at + half] = first + second, first - second
            half *= 2
        for at in range(length):
            rows[row, at] *= scale


@dataclass(frozen=True, kw_only=True)
class HomeSteps:
    """How a device makes its gradient, in the paper's constants."""

    penalty: float
    """lambda in eq. 5."""
    confidence: float
    """kappa in eq. 3: a rating counts 1 + kappa, an item without one counts 1 and asks for 0."""
    largest_error: float
    """e in eq. 16."""
    user_limit: float
    """B_1 in eq. 17."""
    participation: float
    """beta: gradients are divided by it, as if those who are not asked had sent the same."""
    clipped_errors: bool
    """Whether errors are those of the vector after eq. 17, as in Algorithm 2, or before it."""

    def readable(self, items: NDArray[Any]) -> Reals:
        """Return items that any user's equations can be solved for, whatever came; most are as they were."""
        most = math.sqrt(_STEEPEST * self.penalty / (max(items.size, 1) * (1 + self.confidence)))
        return np.clip(items.astype(np.float64), -most, most)

    def users(self, ratings: Grouped, items: Reals) -> Reals:
        """Return every user's vector in closed form (eq. 5): her own ratings, and what all items share."""
        shared = items.T @ items + self.penalty * np.eye(items.shape[1])
        out = np.zeros((len(ratings.ptr) - 1, items.shape[1]))
        solve_users(out, shared, items, ratings.ptr, ratings.index, ratings.values, self.confidence)
        return out

    def gradients(self, ratings: Grouped, items: Reals) -> tuple[Reals, Reals]:
        """Return each user's weight of every item, and her vector: gradients are their products.

        A device's gradient of item j is 2 c_ij e_ij u_i / beta (eq. 7, 16 and 41).
        """
        whole = self.users(ratings, items)
        short = shortened(whole, self.user_limit)
        scores = (short if self.clipped_errors else whole) @ items.T
        owners, e = ratings.members(), self.largest_error
        rated = np.clip(ratings.values - scores[owners, ratings.index], -e, e)
        weights = np.clip(-scores, -e, e)
        weights[owners, ratings.index] = (1 + self.confidence) * rated
        return weights, (2 / self.participation) * short


def shortened(users: Reals, limit: float) -> Reals:
    """Return vectors of an l1 norm of at most `limit` (eq. 17)."""
    lengths = np.abs(users).sum(axis=1, keepdims=True)
    return np.asarray(users * (limit / np.maximum(lengths, limit)))


@kernel
def solve_users(
    out: Reals, shared: Reals, items: Reals, ptr: Offsets, index: Index, values: Values, confidence: float
) -> None:
    """Solve (shared + kappa sum v v') u = (1 + kappa) sum r v over each user's ratings, by Cholesky."""
    factors = items.shape[1]
    matrix = np.empty((factors, factors))
    for user in range(ptr.size - 1):
        for j in range(factors):
            out[user, j] = 0.0
            for k in range(j + 1):
                matrix[j, k] = shared[j, k]
        for at in range(ptr[user], ptr[user + 1]):
            item = index[at]
            for j in range(factors):
                out[user, j] += (1 + confidence) * values[at] * items[item, j]
                for k in range(j + 1):
                    matrix[j, k] += confidence * items[item, j] * items[item, k]
        solve(matrix, out, user)


@kernel
def solve(matrix: Reals, sides: Reals, row: int) -> None:
    """Solve matrix x = a row of sides, in place, from the lower half of a positive definite matrix."""
    size = matrix.shape[0]
    for j in range(size):
        for k in range(j):
            matrix[j, j] -= matrix[j, k] * matrix[j, k]
            sides[row, j] -= matrix[j, k] * sides[row, k]
        matrix[j, j] = np.sqrt(matrix[j, j])
        sides[row, j] /= matrix[j, j]
        for i in range(j + 1, size):
            for k in range(j):
                matrix[i, j] -= matrix[i, k] * matrix[j, k]
            matrix[i, j] /= matrix[j, j]
    for j in range(size - 1, -1, -1):
        for i in range(j + 1, size):
            sides[row, j] -= matrix[i, j] * sides[row, i]
        sides[row, j] /= matrix[j, j]


def flat_gradients(steps: HomeSteps, sketch: Sketch, ratings: Grouped, items: Reals) -> Iterator[Reals]:
    """Yield flattened gradients of some devices at a time: devices, rows with padding, factors."""
    count, width = len(ratings.ptr) - 1, max(len(items), len(sketch.flips) * items.shape[1])
    at_once = max(1, _AT_ONCE // width)
    for begin in range(0, count, at_once):
        weights, users = steps.gradients(ratings.window(begin, min(begin + at_once, count)), items)
        yield sketch.flattened(weights)[:, :, None] * users[:, None, :]


def as_ratings(
    ratings: Grouped, users: Reals, items: Reals, middle: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what to add to each user's scores, and what to multiply them by, so that they are ratings.

    Scores are fitted to 0 wherever nothing was rated, so they rank and are no ratings. A line through the
    user's own ratings makes ratings of them, flatter the less their scores explain: then it is the user's
    mean. It always rises, so that it changes no order; with no ratings, it stays at the middle of the scale.
    """
    owners, count = ratings.members(), np.maximum(ratings.sizes, 1)
    scores = np.einsum("ij,ij->i", users[owners], items[ratings.index])
    score_mean = np.bincount(owners, scores, len(count)) / count
    # As if each user had one rating more, at the middle.
    mean = (np.bincount(owners, ratings.values, len(count)) + middle) / (ratings.sizes + 1)
    score, value = scores - score_mean[owners], ratings.values - mean[owners]
    within, across = np.bincount(owners, score**2, len(count)), np.bincount(owners, score * value, len(count))
    slope = across / np.maximum(within, _TINY)
    explained = slope * across
    left = np.maximum(np.bincount(owners, value**2, len(count)) - explained, 0.0)
    freedom = ratings.sizes - items.shape[1] - 1
    by_chance = items.shape[1] * left / np.maximum(freedom, 1)
    kept = np.where(freedom > 0, 1 - by_chance / np.maximum(explained, _TINY), 0.0)
    slope = np.maximum(slope * np.clip(kept, 0.0, 1.0), _FLATTEST)
    return mean - slope * score_mean, slope


@dataclass(frozen=True, eq=False)
class Adam:
    """Adaptive steps (Kingma and Ba 2014), from what past gradients were."""

    first: Reals
    second: Reals
    taken: int = 0
    """Steps so far."""

    def after(
        self, gradient: Reals, *, rate: float, first_decay: float, second_decay: float
    ) -> tuple["Adam", Reals]:
        """Return what is remembered after one more step, and what to add to the values."""
        taken = self.taken + 1
        first = first_decay * self.first + (1 - first_decay) * gradient
        second = second_decay * self.second + (1 - second_decay) * gradient**2
        mean, square = first / (1 - first_decay**taken), second / (1 - second_decay**taken)
        return Adam(first, second, taken), -rate * mean / (np.sqrt(square) + _TINY)
