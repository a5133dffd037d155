"""What releases add up to. dp-accounting composes; this module says what, and refuses what has no proof."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np
from dp_accounting import rdp
from dp_accounting.pld import privacy_loss_distribution as pld
from numpy.typing import NDArray

from cofactor.config import not_negative, one_of
from cofactor.errors import Refused
from cofactor.privacy.budget import ADJACENCIES, UNITS, Adjacency, Unit
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.losses import ORDERS, Loss, loss_of

Method = Literal["pure", "Renyi", "privacy loss distribution"]
Orders = tuple[float, ...]

_GRID, _WHOLE_GRID = 0.05, 0.005
"""Width of the grid of losses, in units of the spread of one release and of all together. Rounding adds at
most width^2 / 4 to the variance of each release's loss: below 0.1% of it."""
_LARGEST_GRID, _LARGEST_SINGLE_GRID = 2**19, 2**16
_ROUND_OFF = 1e-15
"""Error in delta that a convolution may make for each release; it is taken off delta beforehand."""


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a list of events costs a unit."""

    epsilon: float
    """The least that can be proved; infinite if nothing can."""
    delta: float
    unit: Unit
    adjacency: Adjacency
    method: Method
    """Which accountant proved it."""
    renyi: float
    """What the Renyi accountant proves, for comparison; infinite where it cannot."""


def spent(
    events: Iterable[Event],
    delta: float,
    *,
    unit: Unit,
    adjacency: Adjacency = "empty",
    orders: Sequence[float] = ORDERS,
) -> Spent:
    """Compose events that all concern the same units, whichever parties released them."""
    not_negative(delta=delta)
    one_of(UNITS, unit=unit)
    one_of(ADJACENCIES, adjacency=adjacency)
    return _spent(tuple(_counted(events).items()), delta, unit, adjacency, tuple(orders))


@lru_cache(maxsize=256, typed=True)
def _spent(
    counts: tuple[tuple[Event, int], ...], delta: float, unit: Unit, adjacency: Adjacency, orders: Orders
) -> Spent:
    """Compose; kept, since all parties' ledgers ask for the same sum, and so does what a guarantee says."""
    losses, lost = _losses(counts, unit, adjacency)
    remaining = delta - lost
    found: dict[Method, float] = {
        "privacy loss distribution": _by_distribution(losses, remaining),
        "Renyi": _by_renyi(losses, remaining, orders),
        "pure": math.inf if remaining < 0 else sum(loss.pure * count for loss, count in losses),
    }
    method = min(found, key=lambda name: found[name])
    return Spent(
        epsilon=found[method],
        delta=delta,
        unit=unit,
        adjacency=adjacency,
        method=method,
        renyi=found["Renyi"],
    )


def spent_apart(
    events: Iterable[Event], delta: float, *, unit: Unit, adjacency: Adjacency = "empty"
) -> Spent:
    """Compose events of parties that share no units: what the worst-off party's units lose."""
    by_party = groupby(sorted(events, key=lambda event: event.by), key=lambda event: event.by)
    each = [spent(list(group), delta, unit=unit, adjacency=adjacency) for _, group in by_party]
    nothing = spent([], delta, unit=unit, adjacency=adjacency)
    return max([nothing, *each], key=lambda total: total.epsilon)


def profile(
    events: Iterable[Event], parts: Sequence[float], *, unit: Unit, adjacency: Adjacency = "empty"
) -> list[tuple[float, float]]:
    """Return pairs (epsilon, delta) that all hold for the same events.

    The first has the least delta; then come epsilon 0, with the total variation as delta, and these `parts`
    of it. Epsilon is infinite where nothing is known.
    """
    losses, lost = _losses(_counted(events).items(), unit, adjacency)
    found = [(sum(loss.pure * count for loss, count in losses), lost)]
    if not losses:
        return found
    if (total := _distribution(losses)) is not None:
        most = total.distribution.get_delta_for_epsilon(0.0) + total.round_off
        known = [part * most > 10 * total.round_off for part in parts]
        epsilons = [
            total.distribution.get_epsilon_for_delta(part * most - total.round_off) if whole else math.inf
            for part, whole in zip(parts, known, strict=True)
        ]
    else:
        # Pinsker's inequality: the Renyi divergence of any order from 1 on is at least that of order 1.
        most = min(math.sqrt(_by_order(losses, ORDERS[:1])[0] / 2), 1.0)
        epsilons = [_by_renyi(losses, part * most, ORDERS) for part in parts]
    pairs = zip((0.0, *epsilons), (most, *(part * most for part in parts)), strict=True)
    return [*found, *((float(epsilon), float(delta + lost)) for epsilon, delta in pairs)]


def _counted(events: Iterable[Event]) -> Counter[Event]:
    """Return how often each release happens."""
    counts: Counter[Event] = Counter()
    for event in events:
        counts[event.once()] += event.count
    return counts


def _losses(
    counts: Iterable[tuple[Event, int]], unit: Unit, adjacency: Adjacency
) -> tuple[list[tuple[Loss, int]], float]:
    """Return what each release can lose, how often it happens, and what all of them take off delta."""
    losses, lost = [], 0.0
    for event, count in counts:
        loss = loss_of(event, steps_between(event.bound, unit, adjacency))
        lost += count * ((event.slack or 0.0) + loss.beyond)
        losses.append((loss, count * loss.times))
    return losses, lost


def steps_between(bound: Bound, unit: Unit, adjacency: Adjacency) -> int:
    """Return how many of the bound's neighbours lie between any two inputs that the budget compares.

    Replacing covers everything that happens to the unit, or to a part of it. Emptying covers the rest in two
    steps, from the one input to nothing and from nothing to the other: the bound doubles.
    """
    if bound.unit in (unit, "user"):
        same = bound.adjacency == adjacency and (bound.unit == unit or adjacency == "value")
        if same or bound.adjacency == "replace":
            return 1
        if bound.adjacency == "empty":
            return 2
    raise Refused(
        f'a release bounded for each {bound.unit} ("{bound.adjacency}") proves nothing for each {unit} '
        f'("{adjacency}"). Bound what one {unit} contributes for "{adjacency}", or state the budget for each '
        f'{bound.unit} with "{bound.adjacency}".'
    )


def _by_renyi(losses: list[tuple[Loss, int]], delta: float, orders: Sequence[float]) -> float:
    if delta <= 0 or any(loss.renyi is None for loss, _ in losses):
        return math.inf if losses else 0.0
    return float(rdp.compute_epsilon(orders, _by_order(losses, orders), delta)[0])


def _by_order(losses: list[tuple[Loss, int]], orders: Sequence[float]) -> NDArray[np.float64]:
    """Return the Renyi divergence of all releases together; infinite where one has none."""
    curve = np.zeros(len(orders))
    for loss, count in losses:
        curve += math.inf if loss.renyi is None else count * np.asarray(loss.renyi(orders))
    return curve


def _by_distribution(losses: list[tuple[Loss, int]], delta: float) -> float:
    if not losses:
        return 0.0
    if delta < 10 * _round_off(losses):
        return math.inf
    total = _distribution(losses)
    if total is None:
        return math.inf
    return float(total.distribution.get_epsilon_for_delta(delta - total.round_off))


class _Distribution(NamedTuple):
    distribution: Any
    """Of the losses of all releases together."""
    round_off: float
    """What its delta can be wrong by."""


def _distribution(losses: list[tuple[Loss, int]]) -> _Distribution | None:
    """Compose all losses; None if one of them has no distribution."""
    if any(loss.distribution is None for loss, _ in losses):
        return None
    width = _width(losses)
    total = pld.identity(width)
    for loss, count in losses:
        if loss.distribution is not None:
            total = total.compose(loss.distribution(width, count))
    return _Distribution(total, _round_off(losses))


def _round_off(losses: list[tuple[Loss, int]]) -> float:
    return _ROUND_OFF * max(100, sum(count for _, count in losses))


def _width(losses: list[tuple[Loss, int]]) -> float:
    """Return the width of the grid: fine against one release, and no finer than memory allows."""
    variance = sum(count * loss.spread**2 for loss, count in losses)
    releases = sum(count for _, count in losses)
    fine = math.sqrt(variance) * min(_GRID / math.sqrt(releases), _WHOLE_GRID)
    span = variance + 20 * math.sqrt(variance)
    reach = max(loss.reach for loss, _ in losses)
    return max(fine, span / _LARGEST_GRID, reach / _LARGEST_SINGLE_GRID)
