"""What releases add up to. dp-accounting composes; this module says what, and refuses what has no proof."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np
from dp_accounting import rdp
from dp_accounting.pld import privacy_loss_distribution as pld

from cofactor.config import not_negative, one_of
from cofactor.errors import Refused
from cofactor.privacy.budget import ADJACENCIES, UNITS, Adjacency, Unit
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.losses import ORDERS, Loss, loss_of

Method = Literal["pure", "Renyi", "privacy loss distribution"]

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
    counts: Counter[Event] = Counter()
    for event in events:
        counts[event.once()] += event.count
    remaining = delta
    losses = []
    for event, count in counts.items():
        loss = loss_of(event, steps_between(event.bound, unit, adjacency))
        remaining -= count * ((event.slack or 0.0) + loss.beyond)
        losses.append((loss, count * loss.times))
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
    curve = np.zeros(len(orders))
    for loss, count in losses:
        if loss.renyi is not None:
            curve += count * loss.renyi(orders)
    return float(rdp.compute_epsilon(orders, curve, delta)[0])


def _by_distribution(losses: list[tuple[Loss, int]], delta: float) -> float:
    if not losses:
        return 0.0
    round_off = _ROUND_OFF * max(100, sum(count for _, count in losses))
    if delta < 10 * round_off or any(loss.distribution is None for loss, _ in losses):
        return math.inf
    width = _width(losses)
    total = pld.identity(width)
    for loss, count in losses:
        if loss.distribution is not None:
            total = total.compose(loss.distribution(width, count))
    return float(total.get_epsilon_for_delta(delta - round_off))


def _width(losses: list[tuple[Loss, int]]) -> float:
    """Return the width of the grid: fine against one release, and no finer than memory allows."""
    variance = sum(count * loss.spread**2 for loss, count in losses)
    releases = sum(count for _, count in losses)
    fine = math.sqrt(variance) * min(_GRID / math.sqrt(releases), _WHOLE_GRID)
    span = variance + 20 * math.sqrt(variance)
    reach = max(loss.reach for loss, _ in losses)
    return max(fine, span / _LARGEST_GRID, reach / _LARGEST_SINGLE_GRID)
