"""Noise (interim: slow, to be replaced within the hour)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.randomness import Random

Shape = int | tuple[int, ...]


def _rng(random: Random) -> np.random.Generator:
    return np.random.default_rng(random.new_key())


def gaussian(shape: Shape, deviation: float, random: Random) -> NDArray[np.float32]:
    """Interim."""
    return (_rng(random).standard_normal(shape) * deviation).astype(np.float32)


def laplace(shape: Shape, scale: float, random: Random) -> NDArray[np.float64]:
    """Interim."""
    return _rng(random).laplace(0, scale, shape)


def exponential(shape: Shape, random: Random) -> NDArray[np.float64]:
    """Interim."""
    return _rng(random).exponential(1, shape)


def snapped(values: NDArray[Any], size: float) -> NDArray[np.float64]:
    """Interim."""
    grid = 2.0 ** np.floor(np.log2(size / 16))
    return np.asarray(np.round(np.asarray(values, np.float64) / grid) * grid)


def chosen(units: int, probability: float, random: Random) -> NDArray[np.int64]:
    """Interim."""
    return np.flatnonzero(_rng(random).random(units) < probability)


def discrete_laplace(shape: Shape, scale: float, random: Random) -> NDArray[np.int64]:
    """Interim."""
    rng, p = _rng(random), -np.expm1(-1 / scale)
    return rng.geometric(p, shape) - rng.geometric(p, shape)


def discrete_gaussian(shape: Shape, sigma: float, random: Random) -> NDArray[np.int64]:
    """Interim."""
    reach = int(15 * sigma) + 2
    k = np.arange(-reach, reach + 1)
    w = np.exp(-(k**2) / (2 * sigma**2))
    return _rng(random).choice(k, size=shape, p=w / w.sum())


def skellam(shape: Shape, variance: float, random: Random) -> NDArray[np.int64]:
    """Interim."""
    rng = _rng(random)
    return rng.poisson(variance / 2, shape) - rng.poisson(variance / 2, shape)


def polya_share(shape: Shape, scale: float, parties: int, random: Random) -> NDArray[np.int64]:
    """Interim."""
    rng, p = _rng(random), -np.expm1(-1 / scale)
    return rng.negative_binomial(1 / parties, p, shape) - rng.negative_binomial(1 / parties, p, shape)


def published_laplace_share(
    common: NDArray[np.float64], scale: float, parties: int, random: Random
) -> NDArray[np.float64]:
    """Interim."""
    return scale * np.sqrt(2 * common / parties) * _rng(random).standard_normal(np.shape(common))


def poisson_binomial(shares: NDArray[Any], trials: int, theta: float, random: Random) -> NDArray[np.int32]:
    """Interim."""
    return _rng(random).binomial(trials, np.clip(0.5 + theta * shares, 0.5 - theta, 0.5 + theta)).astype(np.int32)


def randomized_response(
    values: NDArray[Any], choices: int, epsilon: float, random: Random
) -> NDArray[np.int64]:
    """Interim."""
    rng = _rng(random)
    truth = rng.random(np.shape(values)) < 1 / (1 + (choices - 1) * np.exp(-epsilon))
    other = (values + rng.integers(1, choices, np.shape(values))) % choices
    return np.where(truth, values, other).astype(np.int64)


def unary_encoding(
    values: NDArray[Any], choices: int, kept: float, raised: float, random: Random
) -> NDArray[np.uint8]:
    """Interim."""
    own = np.asarray(values)[..., None] == np.arange(choices)
    return (_rng(random).random(own.shape) < np.where(own, kept, raised)).astype(np.uint8)
