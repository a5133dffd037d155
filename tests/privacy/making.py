"""What several tests of the room make: bounds, events, their cost, and one reference."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from cofactor.privacy.accountant import Spent, spent
from cofactor.privacy.budget import Adjacency, Unit
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.laws import PolyaLaw
from cofactor.privacy.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    SampledGaussian,
    Skellam,
)

SIZE = 2.5
"""No reference knows about this sensitivity: only the ratio of noise to bound may count."""
NOISES = (
    Gaussian(noise_multiplier=1.5),
    SampledGaussian(noise_multiplier=0.8, sampling=0.05),
    Laplace(noise_multiplier=1.2),
    DiscreteLaplace(noise_multiplier=2.0),
    DiscreteGaussian(noise_multiplier=1.5),
    Skellam(noise_multiplier=2.0),
)


def bound_for(mechanism: Any, *, size: float = SIZE, unit: Unit = "user") -> Bound:
    adjacency: Adjacency = "replace" if mechanism.norm in ("max", "choice") else "empty"
    own = 1.0 if mechanism.norm == "member" else size
    return Bound(size=own, norm=mechanism.norm, unit=unit, adjacency=adjacency)


def event(mechanism: Any, *, size: float = SIZE, unit: Unit = "user", **changes: Any) -> Event:
    fixed: dict[str, Any] = {"what": "sums", "by": "north", "to": "coordinator", "mechanism": mechanism}
    return Event(**fixed | {"bound": bound_for(mechanism, size=size, unit=unit)} | changes)


def cost(*events: Event, delta: float = 1e-6, adjacency: Adjacency = "empty") -> Spent:
    return spent(events, delta, unit="user", adjacency=adjacency)


def epsilon_where(delta_of: Callable[[float], float], delta: float) -> float:
    """Return where a falling curve crosses delta."""
    if delta_of(0.0) <= delta:
        return 0.0
    top = 1.0
    while delta_of(top) > delta:
        top *= 2
    return float(optimize.brentq(lambda epsilon: delta_of(epsilon) - delta, 0, top, xtol=1e-12))


def gaussian_delta(epsilon: float, multiplier: float) -> float:
    """Balle and Wang 2018, Theorem 8, for sensitivity 1."""
    a, b = 1 / (2 * multiplier), epsilon * multiplier
    return float(stats.norm.cdf(a - b) - math.exp(epsilon + stats.norm.logcdf(-a - b)))


def assert_fits(drawn: NDArray[np.int64], law: PolyaLaw) -> None:
    """Compare with the difference of two negative binomial numbers by chi-square; rare values are one.

    It fails by chance less than once in 10^7 runs.
    """
    size = 1 << 14
    one = stats.nbinom(float(law.shape), -np.expm1(-1 / law.scale)).pmf(np.arange(size // 2))
    pmf = np.fft.ifft(np.abs(np.fft.fft(one, size)) ** 2).real
    most = int(np.flatnonzero(pmf[: size // 2] * drawn.size >= 20).max())
    expected = pmf[np.abs(np.arange(-most, most + 1))] * drawn.size
    seen = np.bincount(np.clip(drawn, -most - 1, most + 1) + most + 1, minlength=2 * most + 3)
    expected = np.concatenate([[(drawn.size - expected.sum()) / 2], expected, [0.0]])
    expected[-1] = expected[0]
    statistic = ((seen - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, len(seen) - 1) > 1e-8
