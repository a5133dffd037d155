"""Noise for mechanisms. Every call takes a fresh key, or the one it is given, and no other source of chance.

Whole numbers follow their law to within 2^-100 in total variation; probabilities are rounded towards privacy.
Real numbers are floating-point numbers, whose digits can tell more than their law (Mironov 2012): whoever
releases a sum with real noise rounds it with `snapped`.
"""

import hmac
import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor import chacha
from cofactor.config import fraction, not_negative, positive, whole
from cofactor.errors import ConfigError
from cofactor.privacy import tables
from cofactor.privacy.gaussian_kernels import fill_gaussian
from cofactor.privacy.integer_kernels import look_up, toss_coins
from cofactor.randomness import Key, Random

Shape = int | tuple[int, ...]
Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

_SMALLEST, _LARGEST = 1e-30, 1e30
"""Sizes of real noise between which no number of any use is lost to the range of float32."""
_MOST_TRIALS = 2**16 - 1
_AT_ONCE, _MOST_PARTS = 2.0**28, 2**12
"""Variance of Skellam noise that is drawn at once, and how often it is at most."""
_MOST_WHOLE = 2**16
"""How many times discrete Laplace noise is drawn at most."""
_JUMPING_AT_ONCE = 2**16
FULL = 2**64
"""How many words of 64 bits there are."""
_SELDOM, _MANY = 1 / 8, 2**17
"""Where so few of so many take part, it is cheaper to draw the gaps between them."""
GAUSSIAN_REACH = 9.4
"""Deviations that every normal number can reach; its words have 64 bits where it matters."""


def gaussian(
    shape: Shape, deviation: float, random: Random, *, rounds: int = chacha.ROUNDS
) -> NDArray[np.float32]:
    """Return normal numbers; they reach 9.4 deviations. `rounds` of ChaCha: 12 or 20."""
    _refuse_extreme(deviation=deviation)
    out = np.empty(shape, np.float32)
    fill_gaussian(out.reshape(-1), random.new_key(), np.uint64(0), rounded_up(deviation), rounds)
    return out


def rounded_up(size: float) -> np.float32:
    """Return the smallest float32 that is no smaller: noise may be too large, but not too small."""
    near = np.float32(size)
    # Compared as doubles: against a float32, numpy would round the size first.
    return near if float(near) >= size else np.nextafter(near, np.float32(np.inf))


def laplace(shape: Shape, scale: float, random: Random) -> Reals:
    """Return Laplace numbers: density exp(-|x| / scale) / (2 scale)."""
    _refuse_extreme(scale=scale)
    words = uniform_words(_count(shape), random.new_key())
    sign = 1.0 - 2.0 * (words & np.uint64(1)).astype(np.float64)
    return (scale * sign * _minus_logarithm(words >> np.uint64(1))).reshape(shape)


def exponential(shape: Shape, random: Random) -> Reals:
    """Return exponential numbers of mean 1."""
    words = uniform_words(_count(shape), random.new_key())
    return _minus_logarithm(words >> np.uint64(1)).reshape(shape)


def _minus_logarithm(words: NDArray[np.uint64]) -> Reals:
    """Return -ln u for u = (word + 1/2) / 2^63, of words with 63 bits."""
    beyond = np.uint64(2**63 - 1) - words
    # Near u = 1 only 1 - u still has its small digits.
    below_half = -np.log((np.minimum(words, beyond) + 0.5) * 2.0**-63)
    above_half = -np.log1p(-(np.minimum(words, beyond) + 0.5) * 2.0**-63)
    return np.asarray(np.where(words < beyond, below_half, above_half))


def snapped(values: NDArray[Any], size: float) -> Reals:
    """Round to multiples of a power of two between 1/32 and 1/16 of the noise's size, its upper end included.

    Rounding cannot weaken a guarantee; it removes the digits in which floating-point noise shows its origin.
    """
    _refuse_extreme(size=size)
    grid = math.ldexp(1.0, math.frexp(size)[1] - 5)
    steps = np.rint(np.asarray(values, np.float64) / grid)
    if not np.all(np.abs(steps) < 2.0**52):
        raise ConfigError(
            f"some values are no numbers, or so large that noise of size {size:g} is lost in rounding. "
            "Subtract a public constant, or bound them."
        )
    # Adding 0 makes -0 a 0: its sign would tell the side that it was rounded from.
    return np.asarray(steps * grid + 0.0)


def chosen(units: int, probability: float, random: Random) -> Integers:
    """Return the numbers below `units` of those who take part, each by a coin of its own (Poisson sampling).

    The probability is rounded down to a multiple of 2^-64; where few of very many take part, gaps between
    them are drawn instead, whose law is right to 2^-50.
    """
    not_negative(units=units)
    if units != int(units):
        raise ConfigError(f"units must be a whole number, got {units}.")
    fraction(probability=probability)
    if probability <= _SELDOM and units >= _MANY:
        return _by_gaps(units, probability, random)
    limit = np.uint64(int(math.ldexp(probability, 64)))
    return np.flatnonzero(uniform_words(units, random.new_key()) < limit)


def came_true(chances: Reals, random: Random) -> NDArray[np.bool_]:
    """Say for each chance whether it came true: never more often than it says."""
    words = uniform_words(chances.size, random.new_key()).reshape(chances.shape)
    # 53 bits, which a float holds exactly.
    drawn = (words >> np.uint64(11)).astype(np.float64)
    return np.asarray(drawn < np.floor(chances * 2.0**53))


def _by_gaps(units: int, probability: float, random: Random) -> Integers:
    """Draw how many are left out between two that take part: a number for each who does, not for all."""
    expected = units * probability
    room = int(expected + 10 * math.sqrt(expected) + 64)
    found, at = [], -1
    while at < units:
        chances = ((uniform_words(room, random.new_key()) >> np.uint64(11)) + 0.5) * 2.0**-53
        gaps = np.minimum(np.log(chances) / math.log1p(-probability), units).astype(np.int64)
        found.append(at + np.cumsum(gaps + 1))
        at = int(found[-1][-1])
    places = np.concatenate(found)
    return places[places < units]


def discrete_gaussian(shape: Shape, sigma: float, random: Random) -> Integers:
    """Return whole numbers with P(k) ~ exp(-k^2 / (2 sigma^2))."""
    return _drawn(tables.discrete_gaussian(float(sigma)), shape, random)


def discrete_laplace(shape: Shape, scale: float, random: Random) -> Integers:
    """Return whole numbers with P(k) ~ exp(-|k| / scale)."""
    return _drawn(tables.discrete_laplace(float(scale)), shape, random)


def skellam(shape: Shape, variance: float, random: Random) -> Integers:
    """Return differences of two Poisson numbers of mean variance / 2.

    Much noise is drawn in parts, which add up to the same law: a table of it would take longer to make.
    """
    positive(variance=variance)
    parts = math.ceil(variance / _AT_ONCE)
    if parts > _MOST_PARTS:
        raise ConfigError(f"a variance of {variance:.3g} is too much to draw. Use a coarser grid.")
    table, total = tables.skellam(float(variance) / parts), np.zeros(shape, np.int64)
    for _ in range(parts):
        total += _drawn(table, shape, random)
    return total


def skellam_of_key(shape: Shape, variance: float, key: bytes) -> Integers:
    """Return the same numbers as often as the key is given, to whoever has it: noise that can be taken off.

    The key has 32 secret bytes and serves one draw: two draws with one key are not independent.
    """
    _check_key(key)
    return _looked_up(tables.skellam(float(variance)), shape, np.frombuffer(key, "<u4").astype(np.uint32))


def polya(shape: Shape, scale: float, part: Fraction, random: Random) -> Integers:
    """Return a part of discrete Laplace noise: parts that add up to 1 have P(k) ~ exp(-|k| / scale).

    Each is the difference of two negative binomial numbers of shape `part`, which may exceed 1.
    """
    return polya_of_key(shape, scale, part, random.new_key().astype("<u4").tobytes())


def polya_of_key(shape: Shape, scale: float, part: Fraction, key: bytes) -> Integers:
    """Return the same numbers as often as the key is given, to whoever has it: noise that can be taken off.

    The key has 32 secret bytes and serves one draw: two draws with one key are not independent.
    """
    _check_key(key)
    part = Fraction(part)
    if not 0 < part <= _MOST_WHOLE:
        raise ConfigError(f"{float(part):.3g} times the noise cannot be drawn. Share it among the devices.")
    times, rest = divmod(part, 1)
    total = np.zeros(shape, np.int64)
    for number in range(times):
        total += _looked_up(tables.discrete_laplace(float(scale)), shape, _of(key, f"all of it, {number}"))
    return total + _jumped(shape, float(scale), rest, key) if rest else total


def _jumped(shape: Shape, scale: float, part: Fraction, key: bytes) -> Integers:
    """Add up so many jumps for each number as `tables.polya_count` says."""
    counts = _looked_up(tables.polya_count(scale, part), _count(shape), _of(key, "how many jumps"))
    total = np.empty(counts.size, np.int64)
    for start in range(0, counts.size, _JUMPING_AT_ONCE):
        some = slice(start, start + _JUMPING_AT_ONCE)
        ends = np.append(0, np.cumsum(counts[some]))
        jumps = _looked_up(tables.polya_jump(scale), int(ends[-1]), _of(key, f"jumps from {start}"))
        total[some] = np.diff(np.append(0, np.cumsum(jumps))[ends])
    return total.reshape(shape)


def published_laplace_share(common: Reals, scale: float, parties: int, random: Random) -> Reals:
    """Return one party's share of Laplace noise as HDPMF publishes it; it does not protect.

    `parties` shares with the same `common` numbers, drawn with `exponential`, add up to Laplace noise:
    scale sqrt(2 h) N(0, 1). But whoever knows `common`, as every party must, sees plain normal noise, hardly
    any where h is small; and a single share is smaller than the noise that was promised. For reproducing the
    paper's tables only; `polya` is what protects.
    """
    _refuse_extreme(scale=scale)
    whole(parties=parties)
    normal = gaussian(np.shape(common), 1.0, random).astype(np.float64)
    return np.asarray(scale * np.sqrt(2 * np.asarray(common) / parties) * normal)


def largest_geometric(shape: Shape, count: int, low: int, high: int, random: Random) -> Integers:
    """Draw the largest of `count` geometric numbers with p = 1/2, clipped, for each place."""
    return _drawn(tables.largest_geometric(count, low, high), shape, random)


def poisson_binomial(shares: NDArray[Any], trials: int, theta: float, random: Random) -> NDArray[np.int32]:
    """Return how many of `trials` coins fell heads for each share in [-1, 1].

    The probability of heads is 1/2 + theta share, to within 2^-32 and never beyond 1/2 +- theta.
    """
    whole(trials=trials)
    if trials > _MOST_TRIALS or not 0 < theta < 0.5:
        raise ConfigError(
            f"trials must be at most {_MOST_TRIALS} and theta between 0 and 1/2, got {trials} and {theta}."
        )
    flat = np.ascontiguousarray(shares, np.float64).reshape(-1)
    out = np.empty(flat.size, np.int32)
    if not toss_coins(out, flat, trials, theta, random.new_key()):
        raise ConfigError("every share must lie within [-1, 1]. Clip the values to their bound first.")
    return out.reshape(np.shape(shares))


def below(count: int, limit: int, random: Random) -> Integers:
    """Return whole numbers from 0 to below `limit`, all exactly equally likely."""
    whole(limit=limit)
    if limit > 2**62:
        raise ConfigError(f"limit must be at most 2^62, got {limit}.")
    words = uniform_words(count, random.new_key())
    # Words beyond the last whole multiple would make small numbers likelier.
    last = np.uint64(FULL - FULL % limit - 1)
    while np.any(beyond := words > last):
        words[beyond] = uniform_words(int(beyond.sum()), random.new_key())
    return (words % np.uint64(limit)).astype(np.int64)


def _drawn(table: tables.Table, shape: Shape, random: Random) -> Integers:
    return _looked_up(table, shape, random.new_key())


def _looked_up(table: tables.Table, shape: Shape, key: Key) -> Integers:
    out = np.empty(shape, np.int64)
    look_up(out.reshape(-1), key, table.high, table.low, table.guide, np.uint64(table.shift), table.smallest)
    return out


def _check_key(key: bytes) -> None:
    if not isinstance(key, bytes) or len(key) != 32:
        raise ConfigError("a key of noise must be 32 bytes. Draw it with secrets.token_bytes(32).")


def _of(key: bytes, purpose: str) -> Key:
    """Return a key of its own for each purpose of one that is given."""
    return np.frombuffer(hmac.digest(key, purpose.encode(), "sha256"), "<u4").astype(np.uint32)


def uniform_words(count: int, key: Key, part: int = 0) -> NDArray[np.uint64]:
    """Return uniform words of 64 bits; each part has a range of 2^32 blocks to itself."""
    words = np.empty(2 * count, np.uint32)
    chacha.fill(words, key, np.uint64(0), np.uint64(part) << np.uint64(32), chacha.ROUNDS)
    return words.view(np.uint64)


def _count(shape: Shape) -> int:
    return math.prod(shape) if isinstance(shape, tuple) else shape


def _refuse_extreme(**settings: float) -> None:
    positive(**settings)
    for name, value in settings.items():
        if not _SMALLEST <= value <= _LARGEST:
            raise ConfigError(f"{name} must lie between 1e-30 and 1e30, got {value:g}. Rescale the values.")
