"""Real numbers as whole numbers of small steps, and back: secure sums add up whole numbers only.

Rounding is by chance and right on average; what one unit sends is shortened again after rounding, so that its
bound in whole numbers holds whatever the rounding did. Nothing here is noise: mechanisms add that.
"""

import math
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor import chacha
from cofactor.compiled import kernel
from cofactor.config import fraction, not_negative, plain_numbers, positive, whole
from cofactor.errors import ConfigError
from cofactor.privacy import bounding
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Adjacency, Unit
from cofactor.privacy.clipping import (
    MARGIN,
    checked_groups,
    checked_limit,
    checked_places,
    checked_reals,
    checked_whole,
    checked_whole_limit,
    clipped_whole,
)
from cofactor.privacy.laws import AnyLaw
from cofactor.privacy.stretching import checked_weights, shortened_rows, weighed_squares
from cofactor.privacy.tables import LARGEST_DEVIATION
from cofactor.randomness import Key, Random

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

_FEWEST_STEPS, _MOST_STEPS = 2**10, 2**16
_TOO_FEW_STEPS = 8
_STEPS_PER_ROOT = 5
"""Steps that a limit has for each root of the dimension: rounding then lengthens a row by less than 1%."""
_SHORTENED = 2.0**-20
"""The most often that a row at its limit is lengthened so much by rounding that it is shortened again."""
_DEVIATIONS = math.sqrt(-2 * math.log(_SHORTENED))


@dataclass(frozen=True, kw_only=True)
class FixedPoint:
    """How real numbers become whole numbers. All of it is public."""

    step: float
    """The real number that 1 stands for."""
    rotation: int | None = None
    """Seed of a random rotation before rounding, undone afterwards: it spreads what a few large numbers hold
    over all, which then need fewer bits. Any public number; None for no rotation."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        checked_limit("step", self.step)
        not_negative(rotation=self.rotation or 0)
        if self.rotation is not None and not isinstance(self.rotation, int):
            raise ConfigError(f"rotation must be a whole number or None, got {self.rotation}.")

    @classmethod
    def fitting(
        cls,
        *,
        limit: float,
        dimension: int,
        noise_multiplier: float,
        rotation: int | None = None,
        least_weight: float = 1.0,
    ) -> Self:
        """Choose a power of two as step: so fine that rounding costs little, so coarse that noise is quick.

        A limit has 2^10 steps or more, up to 2^17 in many dimensions, unless noise of `noise_multiplier`
        limits would then have more than its tables hold. Where units have weights, of which few are below
        `least_weight`, a step is so much finer: rounding errors do not shrink with the weight.
        """
        limit = checked_limit("limit", limit)
        whole(dimension=dimension)
        positive(noise_multiplier=noise_multiplier, least_weight=least_weight)
        if least_weight > 1:
            raise ConfigError(f"least_weight must be at most 1, got {least_weight:g}.")
        wanted = min(max(_STEPS_PER_ROOT * math.sqrt(dimension), _FEWEST_STEPS), _MOST_STEPS) / least_weight
        # The steps come out up to twice as many; and a sum has more noise before its excess is taken off.
        drawable = LARGEST_DEVIATION / 4 / noise_multiplier
        if drawable < _TOO_FEW_STEPS:
            raise ConfigError(
                f"noise of {noise_multiplier:,.0f} times the limit leaves no steps to round to, and nothing "
                "to learn. Use a larger budget, or fewer rounds."
            )
        steps = min(wanted, drawable)
        return cls(step=math.ldexp(1.0, math.floor(math.log2(limit / steps))), rotation=rotation)

    def width(self, dimension: int) -> int:
        """Return how many whole numbers so many real ones become; a rotation needs a power of two."""
        whole(dimension=dimension)
        return dimension if self.rotation is None else 1 << (dimension - 1).bit_length()

    def whole_limit(self, limit: float, dimension: int) -> int:
        """Return the most that the l2 norm of one unit's whole numbers can be.

        Rounding lengthens a row at its limit c to at most the root of c^2 + d/4 + sqrt(2 ln 1/b) (c +
        sqrt(d)/2) in all but a part b of the cases (Kairouz, Liu and Steinke 2021, Proposition 22), and never
        beyond c + sqrt(d). `dimension` may count only the entries of a row that are not 0, if a public number
        bounds them and nothing is rotated: a 0 stays a 0.
        """
        c, d = checked_limit("limit", limit) / self.step, self.width(dimension)
        nearly_always = d / 4 + _DEVIATIONS * (c + math.sqrt(d) / 2)
        most = math.ceil(min(math.sqrt(c**2 + nearly_always), c + math.sqrt(d)))
        return int(checked_whole_limit(most))

    def rows(
        self, values: ArrayLike, *, limit: float, random: Random, dimension: int | None = None
    ) -> Integers:
        """Return a row of whole numbers for each row of values, the whole contribution of one unit.

        Rows longer than `limit` are shortened to it; the l2 norm of each row that comes back is at most
        `whole_limit(limit, dimension)`, where `dimension` is by default the length of a row.
        """
        rounded, most = self._rounded(values, limit, random, dimension)
        return clipped_whole(rounded, most, "l2")

    def total(
        self,
        values: ArrayLike,
        *,
        limit: float,
        random: Random,
        unit: Unit,
        adjacency: Adjacency = "empty",
        dimension: int | None = None,
        weights: ArrayLike | None = None,
    ) -> Bounded:
        """Return the sum of `rows`, with the bound that it keeps; with weights, each row's own part of it."""
        if weights is None:
            rounded, most = self._rounded(values, limit, random, dimension)
            return bounding.whole_sum(rounded, limit=most, norm="l2", unit=unit, adjacency=adjacency)
        known = checked_weights(weights, len(checked_reals("values", values, dimensions=2)))
        rounded, most = self._rounded(values, limit, random, dimension, known)
        _check_fits(len(known), most)
        kept = shortened_rows(rounded, weighed_squares(known, most))
        return _weighed(bounding.stated(kept.sum(axis=0), limit=most, unit=unit, adjacency=adjacency))

    def table(
        self,
        rows: ArrayLike,
        ptr: ArrayLike,
        places: ArrayLike,
        *,
        place_count: int,
        limit: float,
        random: Random,
        adjacency: Adjacency = "empty",
        weights: ArrayLike | None = None,
    ) -> Bounded:
        """Add rows of users to a table of whole numbers, and bound all that a user adds to it.

        User g has rows ptr[g] to ptr[g + 1]; each is added to row `places[...]` of `place_count` rows. What a
        user adds is shortened to `limit`, rounded, and shortened again to `whole_limit(limit, table size)`;
        with weights, to weights[g] times that, and a little less before rounding.
        """
        if self.rotation is not None:
            raise ConfigError("a table is not rotated. Leave rotation out.")
        reals = checked_reals("rows", rows, dimensions=2).astype(np.float64)
        groups, width = checked_groups(ptr, len(reals)), reals.shape[1]
        rows_of = checked_places(places, len(reals), place_count)
        most = self.whole_limit(limit, place_count * width)
        _check_fits(len(groups) - 1, most)
        known = checked_weights(np.ones(len(groups) - 1) if weights is None else weights, len(groups) - 1)
        words = _words(reals.size, random).reshape(reals.shape)
        total = np.zeros((place_count, width), np.int64)
        longest = self._before_rounding(known, limit, most, place_count * width)
        add_rounded(reals, groups, rows_of, words, longest, self.step, weighed_squares(known, most), total)
        bounded = bounding.stated(total, limit=most, unit="user", adjacency=adjacency)
        return bounded if weights is None else _weighed(bounded)

    def decoded(self, total: ArrayLike, dimension: int) -> Reals:
        """Return the real numbers that a row, a sum of rows, or rows of sums stand for."""
        numbers = np.asarray(checked_whole("total", total).astype(np.float64) * self.step)
        if numbers.ndim == 0 or numbers.shape[-1] != self.width(dimension):
            raise ConfigError(f"{dimension:,} real numbers became {self.width(dimension):,} whole ones.")
        if self.rotation is None:
            return numbers
        return _transformed(numbers)[..., :dimension] * _signs(self.rotation, dimension)

    def _rounded(
        self,
        values: ArrayLike,
        limit: float,
        random: Random,
        dimension: int | None,
        weights: Reals | None = None,
    ) -> tuple[Integers, int]:
        """Return rounded rows, and the limit that they have yet to be shortened to."""
        reals = checked_reals("values", values, dimensions=2).astype(np.float64)
        if dimension is not None and self.rotation is not None:
            raise ConfigError("a rotation fills whole rows. Leave dimension out, or do without rotation.")
        rounded = reals.shape[1] if dimension is None else dimension
        most = self.whole_limit(limit, rounded)
        known = np.ones(len(reals)) if weights is None else weights
        longest = self._before_rounding(known, limit, most, rounded)
        lengths = np.sqrt(np.square(reals).sum(axis=1))
        scaled = reals * (longest / np.maximum(np.maximum(lengths, longest), 1e-300) / self.step)[:, None]
        return rounded_by_chance(self._rotated(scaled), random), most

    def _before_rounding(self, weights: Reals, limit: float, most: int, dimension: int) -> Reals:
        """Return how long each unit may be before rounding: its weight times the limit, at most.

        Rounding lengthens short rows by as much as long ones. So a unit of small weight leaves room for that,
        and is hardly ever shortened again afterwards, which would turn all its numbers towards zero.
        """
        d, own, wanted = self.width(dimension), weights * most, weights * limit / self.step
        squares = own**2 + _DEVIATIONS**2 / 4 - d / 4 - _DEVIATIONS * math.sqrt(d) / 2
        room = np.maximum(np.sqrt(np.maximum(squares, 0.0)) - _DEVIATIONS / 2, own - math.sqrt(d))
        return np.asarray(np.clip(room, wanted / 2, wanted) * self.step * (1 - MARGIN))

    def _rotated(self, rows: Reals) -> Reals:
        if self.rotation is None:
            return rows
        count, dimension = rows.shape
        padded = np.zeros((count, self.width(dimension)))
        padded[:, :dimension] = rows * _signs(self.rotation, dimension)
        return _transformed(padded)


def _weighed(bounded: Bounded) -> Bounded:
    return replace(bounded, bound=replace(bounded.bound, weighed=True))


def _check_fits(units: int, most: int) -> None:
    if units * float(most) >= 2**62:
        raise ConfigError(f"a sum of {units:,} units does not fit 63 bits. Use a coarser grid.")


def rounded_by_chance(values: Reals, random: Random) -> Integers:
    """Round each number down or up, so that it is right on average (to 2^-32); whole numbers stay."""
    below = np.floor(values)
    up = _words(values.size, random).reshape(values.shape) < (values - below) * 2.0**32
    return below.astype(np.int64) + up


def _words(count: int, random: Random) -> NDArray[np.uint32]:
    words = np.empty(count, np.uint32)
    chacha.fill(words, random.new_key(), np.uint64(0), np.uint64(0), chacha.ROUNDS)
    return words


@kernel
def add_rounded(
    rows: Reals,
    ptr: NDArray[np.int64],
    places: NDArray[np.int64],
    words: NDArray[np.uint32],
    limits: Reals,
    step: float,
    most: Reals,
    total: Integers,
) -> None:
    """Add what each group of rows contributes to a table, in whole steps that are rounded by chance.

    A group's contribution is at most as long as its own limit before rounding, and the squares of its steps
    add up to at most its own of `most` afterwards.
    """
    own = np.zeros(total.shape, np.float64)
    is_touched, touched = np.zeros(len(total), np.bool_), np.empty(len(total), np.int64)
    for group in range(ptr.size - 1):
        count, squares = 0, 0.0
        for at in range(ptr[group], ptr[group + 1]):
            place = places[at]
            if not is_touched[place]:
                is_touched[place], touched[count] = True, place
                count += 1
            for k in range(rows.shape[1]):
                own[place, k] += rows[at, k]
        for at in range(count):
            for k in range(rows.shape[1]):
                squares += own[touched[at], k] ** 2
        scale = min(1.0, limits[group] / np.sqrt(max(squares, 1e-300))) / step
        squares = 0.0
        for at in range(count):
            for k in range(rows.shape[1]):
                exact = own[touched[at], k] * scale
                below = np.floor(exact)
                if words[ptr[group] + at, k] < (exact - below) * 2.0**32:
                    below += 1.0
                own[touched[at], k] = below
                squares += below * below
        # Sums of squares of whole numbers are exact below 2^53; beyond, the margin is wider than the error.
        within = squares <= most[group] * (1.0 if squares < 2.0**53 else 1.0 - 1e-6)
        shrink = 1.0 if within else np.sqrt(most[group] / squares) * (1.0 - 1e-6)
        for at in range(count):
            place = touched[at]
            is_touched[place] = False
            for k in range(rows.shape[1]):
                total[place, k] += np.int64(own[place, k] * shrink)
                own[place, k] = 0.0


def largest_sum(
    parties: int, most: int, noise: AnyLaw, coordinates: int, *, failure: float = 2.0**-40
) -> int:
    """Return a number that no coordinate of a noisy sum exceeds in absolute value, but with chance `failure`.

    `most` is the largest absolute value of a coordinate of one party's numbers (a bound in l1 or l2 is one),
    and `noise` all that is in the sum: before excess layers are taken off, that is `parties` times what stays
    with the fewest survivors. By Chernoff's bound, over all coordinates and both sides.
    """
    whole(parties=parties, most=most, coordinates=coordinates)
    fraction(failure=failure)
    return parties * most + noise.reach(math.log2(2 * coordinates / failure))


def _transformed(rows: Reals) -> Reals:
    """Return the Walsh-Hadamard transform of rows of 2^k numbers: it keeps lengths, and undoes itself."""
    width = rows.shape[-1]
    found, half = rows, 1
    while half < width:
        pairs = found.reshape(-1, width // (2 * half), 2, half)
        found = np.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), axis=2)
        half *= 2
    return found.reshape(rows.shape) / math.sqrt(width)


def _signs(seed: int, count: int) -> Reals:
    """Return +1 and -1 by lot; whoever has the seed gets the same."""
    key: Key = np.frombuffer(sha256(f"cofactor rotation {seed}".encode()).digest(), "<u4").astype(np.uint32)
    words = np.empty(count, np.uint32)
    chacha.fill(words, key, np.uint64(0), np.uint64(0), chacha.ROUNDS)
    return np.where(words & np.uint32(1), 1.0, -1.0)
