"""Laws of whole-number noise as tables of thresholds, for exact inversion.

Weights are computed in whole numbers with 256 binary places, until what is left out is below 2^-128 of the
total; their sums become thresholds of 128 bits. So a law drawn by `integer_kernels.look_up` differs from the
true one by less than 2^-100 in total variation, whatever the size of its table.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from cofactor.config import positive
from cofactor.errors import ConfigError

LARGEST_DEVIATION = 2**17
"""The most steps of the grid in a deviation, for laws with Gaussian tails."""
LARGEST_SCALE = 2**14
"""The same for the scale of laws with exponential tails, which need longer tables."""

_PLACES = 256
_ONE = 1 << _PLACES
_REST = 130
"""Minus the binary logarithm of what may be left out on either side."""
_LEADING = range(8, 17)
"""How many leading bits a guide may have."""
_KEPT = 8
"""Tables kept; the largest take 60 MB."""
_KEPT_SMALL, _SMALL = 128, 2**20
"""Small tables that are kept: noise in layers needs dozens of them in turn."""
_MAKING_LARGE = Lock()
"""Devices that are threads of one process want the same large table at once: it is made once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """A law on whole numbers: threshold k is 2^128 P(X <= smallest + k), rounded down, all but the last."""

    smallest: int
    """The smallest value that can be drawn."""
    high: NDArray[np.uint64]
    """The upper halves of the thresholds."""
    low: NDArray[np.uint64]
    """Their lower halves."""
    guide: NDArray[np.int32]
    """For each value of the leading bits, how many thresholds are smaller than all that begin so."""
    shift: int
    """How many bits of an upper half are not among the leading bits."""


@lru_cache(_KEPT)
def discrete_gaussian(sigma: float) -> Table:
    """Return the law P(k) ~ exp(-k^2 / (2 sigma^2))."""
    positive(sigma=sigma)
    _refuse_above(LARGEST_DEVIATION, sigma=sigma)
    step = 1 / Fraction(sigma) ** 2
    ratio, change = _exp(step / 2), _exp(step)
    side, weight = [], _ONE
    while not _negligible(weight, ratio):
        side.append(weight)
        weight = weight * ratio >> _PLACES
        ratio = ratio * change >> _PLACES
    return _symmetric(side)


@lru_cache(_KEPT)
def discrete_laplace(scale: float) -> Table:
    """Return the law P(k) ~ exp(-|k| / scale)."""
    positive(scale=scale)
    _refuse_above(LARGEST_SCALE, scale=scale)
    ratio = _exp(1 / Fraction(scale))
    side, weight = [], _ONE
    while not _negligible(weight, ratio):
        side.append(weight)
        weight = weight * ratio >> _PLACES
    return _symmetric(side)


@lru_cache(_KEPT_SMALL)
def polya_count(scale: float, shape: Fraction) -> Table:
    """Return how many jumps make up the difference of two negative binomial numbers of this shape.

    A negative binomial number with P(k + 1) / P(k) = q (k + shape) / (k + 1) and q = exp(-1 / scale) is the
    sum of a Poisson number of independent jumps, of mean -shape log(1 - q); in the difference of two, twice
    as many jumps go either way. Only this small table depends on the shape.
    """
    positive(scale=scale)
    _refuse_above(LARGEST_SCALE, scale=scale)
    if not isinstance(shape, Fraction) or not 0 < shape <= 1:
        raise ConfigError(f"shape must be a Fraction above 0 and at most 1, got {shape!r}.")
    mean = 2 * _minus_log(1 / Fraction(scale)) * shape.numerator // shape.denominator
    weights: list[int] = []
    weight = _ONE
    while not _negligible(weight, mean // (len(weights) + 1)):
        weights.append(weight)
        weight = (weight * mean >> _PLACES) // len(weights)
    return _table(0, weights)


@lru_cache(_KEPT)
def polya_jump(scale: float) -> Table:
    """Return the law of one such jump: P(k) ~ q^|k| / |k|, for k other than 0, with q = exp(-1 / scale)."""
    positive(scale=scale)
    _refuse_above(LARGEST_SCALE, scale=scale)
    ratio = _exp(1 / Fraction(scale))
    side, weight = [0], _ONE
    while not _negligible(weight, ratio):
        side.append(weight)
        weight = (weight * ratio >> _PLACES) * (len(side) - 1) // len(side)
    return _symmetric(side)


@lru_cache(_KEPT_SMALL)
def largest_geometric(count: int, low: int, high: int) -> Table:
    """Return the largest of `count` geometric numbers, P(X <= z) = 1 - 2^-z, clipped to [low, high]."""
    below = [_power(_ONE - (_ONE >> z), count) for z in range(low, high)]
    sums = [*below, _ONE]
    return _table(low, [sums[0], *(after - before for before, after in pairwise(sums))])


def _power(base: int, exponent: int) -> int:
    """Return a power in fixed point, by squaring: each step rounds by less than 2^-255."""
    result = _ONE
    while exponent:
        if exponent & 1:
            result = result * base >> _PLACES
        base = base * base >> _PLACES
        exponent >>= 1
    return result


def skellam(variance: float) -> Table:
    """Return the law of the difference of two Poisson numbers of mean variance / 2."""
    if variance <= _SMALL:
        return _small_skellam(variance)
    with _MAKING_LARGE:
        return _large_skellam(variance)


@lru_cache(_KEPT_SMALL)
def _small_skellam(variance: float) -> Table:
    return _skellam(variance)


@lru_cache(_KEPT)
def _large_skellam(variance: float) -> Table:
    return _skellam(variance)


def _skellam(variance: float) -> Table:
    """Compute the law.

    P(k) ~ I_k(variance), a Bessel function, from I_(k-1) = I_(k+1) + 2 k / variance I_k downward (Miller):
    all terms are positive, so that no digits are lost, and what a false start adds fades away.
    """
    positive(variance=variance)
    _refuse_above(LARGEST_DEVIATION**2, variance=variance)
    numerator, denominator = Fraction(variance).as_integer_ratio()
    side = [0, _ONE]
    for k in range(skellam_reach(variance, _REST + 10), 0, -1):
        side.append(side[-2] + 2 * k * denominator * side[-1] // numerator)
    return _symmetric(side[:0:-1])


def skellam_reach(variance: float, bits: float) -> int:
    """Return the least k for which Chernoff's bound says that P(X >= k) is at most 2^-bits.

    Of all exp(v (cosh s - 1) - s k), which bound P(X >= k), the one with sinh s = k / v is the least.
    """

    def exponent(k: int) -> float:
        return k * math.asinh(k / variance) - k * k / (math.hypot(k, variance) + variance)

    return _least(exponent, bits)


def polya_reach(scale: float, shape: float, bits: float) -> int:
    """Return a k for which Chernoff's bound says that P(X >= k) is at most 2^-bits.

    X is the difference of two negative binomial numbers of this shape r; with a = 1 / scale its generating
    function at s < a is (2 sinh^2(a / 2) / (cosh a - cosh s))^r. Every such s bounds P(X >= k); the one that
    is taken is best for a large scale.
    """
    positive(scale=scale, shape=shape)

    def exponent(k: int) -> float:
        tail = k / scale
        root = math.hypot(shape, tail)
        nearness = shape * (1 + shape / (root + tail)) / (shape + root)  # 1 - s / a
        logs = _log_sinh(1 - nearness / 2, scale) + _log_sinh(nearness / 2, scale)
        return (1 - nearness) * tail + shape * (logs - 2 * _log_sinh(0.5, scale))

    return _least(exponent, bits)


def _log_sinh(part: float, scale: float) -> float:
    """Return log sinh(part / scale), which itself may be too large for a float."""
    return part / scale + math.log(-math.expm1(-2 * part / scale) / 2)


def _least(exponent: Callable[[int], float], bits: float) -> int:
    """Return the least whole number whose exponent is enough for 2^-bits, if exponents rise."""
    most = 1
    while exponent(most) < bits * math.log(2):
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        enough = exponent(middle) >= bits * math.log(2)
        least, most = (least, middle) if enough else (middle, most)
    return most


def _exp(power: Fraction) -> int:
    """Return exp(-power) in fixed point."""
    if power > _PLACES:
        return 0
    with localcontext() as context:
        context.prec = 100
        return int((-Decimal(power.numerator) / Decimal(power.denominator)).exp() * _ONE)


def _minus_log(power: Fraction) -> int:
    """Return -log(1 - exp(-power)) in fixed point."""
    if power > _PLACES:
        return 0
    with localcontext() as context:
        context.prec = 100
        return int(-(1 - (-Decimal(power.numerator) / Decimal(power.denominator)).exp()).ln() * _ONE)


def _negligible(weight: int, ratio: int) -> bool:
    # From here on each weight is at most ratio times the one before: their sum is below weight / (1 - ratio).
    return weight << _REST < _ONE - ratio


def _symmetric(side: list[int]) -> Table:
    """Make the table of a law from its weights at 0, 1, 2, ..., which are those at 0, -1, -2, ... as well."""
    return _table(1 - len(side), [*side[:0:-1], *side])


def _table(smallest: int, weights: list[int]) -> Table:
    total = sum(weights)
    # The last sum is the total: a threshold of 2^128 that no number reaches.
    sums = accumulate(weights[:-1])
    words = b"".join(((partial << 128) // total).to_bytes(16, "little") for partial in sums)
    low, high = np.frombuffer(words, "<u8").astype(np.uint64).reshape(-1, 2).T.copy()
    shift = 64 - min(max((4 * len(weights)).bit_length(), _LEADING.start), _LEADING.stop - 1)
    table = Table(smallest=smallest, high=high, low=low, guide=_guide(high, shift), shift=shift)
    for shared in (table.high, table.low, table.guide):
        shared.flags.writeable = False
    return table


def _guide(high: NDArray[np.uint64], shift: int) -> NDArray[np.int32]:
    beginnings = np.arange(1 << (64 - shift), dtype=np.uint64) << np.uint64(shift)
    below = np.searchsorted(high, beginnings, side="left")
    return np.append(below, len(high)).astype(np.int32)


def _refuse_above(largest: int, **settings: float) -> None:
    for name, value in settings.items():
        if value > largest:
            raise ConfigError(
                f"{name} must be at most {largest} in steps of the grid, got {value:g}. Use a coarser grid: "
                "steps so much finer than the noise gain nothing."
            )
