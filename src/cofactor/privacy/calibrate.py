"""From a budget and a schedule to the least noise that keeps within it."""

import math
from dataclasses import replace
from functools import lru_cache

from cofactor.errors import ConfigError, Refused
from cofactor.privacy.accountant import spent
from cofactor.privacy.budget import Budget
from cofactor.privacy.mechanisms import Gaussian
from cofactor.privacy.schedule import Schedule

_CLOSE = 0.995
"""Share of the budget that must be spent."""
_ROOM = 0.95
"""Part of a budget, at most, that may be spent beforehand."""
_DIGITS = 4
_MOST = 1e9


def calibrated(schedule: Schedule, budget: Budget) -> Schedule:
    """Return the schedule with its noise scaled so that it spends the budget, and never more.

    The factor is rounded up, to four digits. Epsilon ends within 1% below the budget, except where the next
    smaller factor would already spend more, or a mechanism spends less even with its least noise.
    """
    _check_room(schedule, budget)
    # Gaussian noise costs the same for any number of coordinates: parties that differ there share one search.
    sizes = [release.dimension for release in schedule.releases]
    alike = all(
        isinstance(release.mechanism, Gaussian) or (release.fixed and release.dimension == 1)
        for release in schedule.releases
    )
    if not alike:
        return _calibrated(schedule, budget)
    return _resized(_calibrated(_resized(schedule, [1] * len(sizes)), budget), sizes)


def _check_room(schedule: Schedule, budget: Budget) -> None:
    """Refuse if what was released before leaves nothing: no amount of noise would do."""
    fixed = tuple(release for release in schedule.releases if release.fixed)
    if fixed and _epsilon(replace(schedule, releases=fixed), budget) > budget.epsilon * _ROOM:
        raise Refused(
            f"what was released before takes nearly all of epsilon {budget.epsilon:g}, and leaves too little "
            "for this. Give a larger budget, or spend less beforehand."
        )


def _resized(schedule: Schedule, sizes: list[int]) -> Schedule:
    releases = [
        replace(release, dimension=size) for release, size in zip(schedule.releases, sizes, strict=True)
    ]
    return replace(schedule, releases=tuple(releases))


@lru_cache(maxsize=128)
def _calibrated(schedule: Schedule, budget: Budget) -> Schedule:
    target = budget.epsilon * (1 + _CLOSE) / 2
    too_little: tuple[float, float] | None = None
    enough: tuple[float, float] | None = None
    factor = 1.0
    while factor < _MOST:
        trial = _scaled(schedule, factor)
        if trial is None:
            break
        epsilon = _epsilon(trial, budget)
        if epsilon > budget.epsilon:
            too_little = factor, epsilon
        elif epsilon >= _CLOSE * budget.epsilon or trial == _scaled(schedule, factor / 2):
            return trial
        else:
            enough = factor, epsilon
        factor = _rounded_up(_next(factor, epsilon, too_little, enough, target))
        if enough is not None and factor == enough[0]:
            return schedule.scaled(factor)
    if enough is not None:
        return schedule.scaled(enough[0])
    raise Refused(
        f"no amount of this noise keeps delta {budget.delta:g}. Give a larger delta, or use a mechanism that "
        "needs none: Laplace, DiscreteLaplace or an answer by chance."
    )


def _scaled(schedule: Schedule, factor: float) -> Schedule | None:
    """Return the schedule with so much noise; None if a mechanism cannot have so little or so much."""
    try:
        return schedule.scaled(factor)
    except ConfigError:
        return None


def _next(
    factor: float,
    epsilon: float,
    too_little: tuple[float, float] | None,
    enough: tuple[float, float] | None,
    target: float,
) -> float:
    """Between two known points follow a power law; else move on as if epsilon fell like 1 / noise."""
    if too_little is None or enough is None:
        return factor * min(max(epsilon / target, 1 / 8), 8.0)
    if math.isinf(too_little[1]) or enough[1] == 0:
        return math.sqrt(too_little[0] * enough[0])
    slope = math.log(too_little[1] / enough[1]) / math.log(too_little[0] / enough[0])
    step = math.log(target / enough[1]) / slope
    # Kept off both ends, so that every trial narrows the gap.
    gap = math.log(too_little[0] / enough[0])
    return enough[0] * math.exp(min(max(step / gap, 0.05), 0.95) * gap)


def _epsilon(schedule: Schedule, budget: Budget) -> float:
    total = spent(schedule.events(), budget.delta, unit=budget.unit, adjacency=budget.adjacency)
    return total.epsilon


def _rounded_up(factor: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(factor)) + 1 - _DIGITS)
    return float(f"{math.ceil(factor / unit - 1e-9) * unit:.{_DIGITS}g}")
