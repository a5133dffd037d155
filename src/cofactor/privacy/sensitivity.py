"""Sensitivity is measured, not believed: by how much can one unit change a release?

A test gives a release function with its noise switched off, the `Bound` that the accountant is told, and a
way to make data. `check` looks for neighbours whose releases differ by more than the bound; at the worst
case that the formula says is reachable they must differ by almost as much, or the bound is too loose.

    assert_bounded(release, bound, datasets, worst_case=Neighbours(units=..., which=0, other=...))

Where units have weights, `assert_weighed` holds every unit against its own part of the bound.
With hypothesis, draw a `Neighbours` and assert `difference(release, bound, pair) <= bound.size`. Whether
noise covers all of a release is the other half: `cofactor.privacy.coverage`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import whole
from cofactor.errors import ConfigError
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound
from cofactor.privacy.neighbours import Datasets, Neighbours, Units, mutated, random_neighbours, random_units
from cofactor.randomness import Seeds

Release = Callable[[Units], NDArray[Any] | Bounded]
WeightOf = Callable[[Any], float]
Values = NDArray[np.longdouble]

TOLERANCE = 1e-9
"""Rounding, relative to the bound, that the arithmetic of a test may add to a difference."""
CLOSE = 0.99
"""The part of the bound that the worst case must reach."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was measured, against what the accountant is told. It holds no data."""

    bound: Bound
    """What the accountant is told."""
    largest: float
    """The largest difference found, in the bound's norm; infinite if a shape or a NaN depends on the data.
    Where units have weights, it is divided by that of the unit that differs."""
    found: str
    """At which kind of pair: "a random pair", "a pair found by climbing", "the worst case"."""
    pairs: int
    """How many pairs were compared."""
    worst_case: float | None
    """The difference at the worst case, if one was given; the smallest, if several were."""
    weighed: bool = False
    """Whether each difference was held against the unit's own part of the bound."""

    @property
    def bounded(self) -> bool:
        """Whether no difference exceeds the bound."""
        return self.largest <= self.bound.size * (1 + TOLERANCE)

    @property
    def tight(self) -> bool:
        """Whether the worst case, if one was given, comes close to the bound."""
        return self.worst_case is None or self.worst_case >= CLOSE * self.bound.size

    @property
    def holds(self) -> bool:
        """Whether the bound is right: neither exceeded nor too loose."""
        return self.bounded and self.tight

    def __str__(self) -> str:
        """Say it in a sentence or two."""
        words = (
            f"{'BOUND HOLDS' if self.bounded else 'BOUND EXCEEDED'}: the largest difference"
            f"{', divided by the weight,' if self.weighed else ''} is "
            f"{self.largest:.6g} at {self.found}; the accountant is told {self.bound.size:.6g} "
            f"({self.bound.norm}, unit {self.bound.unit}, adjacency {self.bound.adjacency}; "
            f"{self.pairs} pairs compared)."
        )
        if self.tight:
            return words
        return f"{words} TOO LOOSE: the worst case reaches only {self.worst_case:.6g}."


def difference(release: Release, bound: Bound, pair: Neighbours) -> float:
    """Return by how much a release differs between neighbours, in the bound's norm.

    A bound on every coordinate is about the contribution itself: for norm "max" it is the largest coordinate
    on either side. A shape or a NaN that depends on the data counts as an infinite difference.
    """
    first, second = (_value(release, bound, units) for units in pair.datasets)
    if first.shape != second.shape or not (np.isfinite(first).all() and np.isfinite(second).all()):
        return math.inf
    if bound.norm in ("max", "choice"):
        return float(np.abs(np.stack([first, second])).max(initial=0))
    if bound.norm == "member":
        return float((first != second).reshape(-1, first.shape[-1]).any(axis=0).sum())
    change = np.abs(first - second)
    return float(change.sum() if bound.norm == "l1" else np.sqrt(np.square(change).sum()))


def check(
    release: Release,
    bound: Bound,
    datasets: Datasets,
    *,
    worst_case: Neighbours | Sequence[Neighbours] | None = None,
    pairs: int = 200,
    climbs: int = 200,
    seed: int = 0,
    weight_of: WeightOf | None = None,
) -> Report:
    """Measure the largest difference between neighbours: at random pairs, by climbing, at the worst cases.

    `release` gets the units of a dataset and returns the noise-free value, the same for the same units. If
    units have weights, every difference is divided by that of its unit, the larger one if both sides have
    some.
    """
    whole(pairs=pairs)
    cases = [worst_case] if isinstance(worst_case, Neighbours) else list(worst_case or ())
    for case in cases:
        _check_worst_case(case, bound, datasets)

    def measured(pair: Neighbours) -> float:
        change = difference(release, bound, pair)
        return change if weight_of is None else _relative(change, pair, datasets, weight_of)

    chance = Seeds(seed).generator("sensitivity")
    _refuse_noise(release, bound, random_units(datasets, chance))
    drawn = (random_neighbours(datasets, bound.adjacency, chance) for _ in range(pairs))
    differences = [(measured(pair), pair) for pair in drawn]
    largest, worst = max(differences, key=lambda found: found[0])
    found = "a random pair"
    for _ in range(climbs):
        candidate = mutated(worst, datasets, bound.adjacency, chance)
        reached = measured(candidate)
        if reached > largest:
            found = "a pair found by climbing"
        if reached >= largest:  # equally bad pairs too, or the climb would end on the first plateau
            largest, worst = reached, candidate
    at_worst = [measured(case) for case in cases]
    if max(at_worst, default=0.0) > largest:
        largest, found = max(at_worst), "the worst case"
    return Report(
        bound=bound,
        largest=largest,
        found=found,
        pairs=pairs + climbs + len(cases),
        worst_case=min(at_worst, default=None),
        weighed=weight_of is not None,
    )


def assert_bounded(
    release: Release,
    bound: Bound,
    datasets: Datasets,
    *,
    worst_case: Neighbours | None = None,
    pairs: int = 200,
    climbs: int = 200,
    seed: int = 0,
) -> Report:
    """Run `check`, and raise AssertionError unless the bound holds and is tight."""
    report = check(release, bound, datasets, worst_case=worst_case, pairs=pairs, climbs=climbs, seed=seed)
    if not report.holds:
        raise AssertionError(str(report))
    return report


def assert_weighed(
    release: Release,
    bound: Bound,
    datasets: Datasets,
    *,
    weight_of: WeightOf,
    worst_cases: Sequence[Neighbours] = (),
    pairs: int = 200,
    climbs: int = 200,
    seed: int = 0,
) -> Report:
    """Assert that a unit of weight w changes a release by at most w times the bound, and can by as much.

    Give worst cases of small weights as well as of 1: each must come close to its own part of the bound.
    """
    if not bound.weighed:
        raise ConfigError("the bound says nothing of weights. Use assert_bounded, or a weighed bound.")
    report = check(
        release,
        bound,
        datasets,
        worst_case=worst_cases,
        pairs=pairs,
        climbs=climbs,
        seed=seed,
        weight_of=weight_of,
    )
    if not report.holds:
        raise AssertionError(str(report))
    return report


def _relative(change: float, pair: Neighbours, datasets: Datasets, weight_of: WeightOf) -> float:
    sides = (pair.units[pair.which], pair.other)
    weight = max((weight_of(side) for side in sides if side is not datasets.empty), default=0.0)
    if weight > 0:
        return change / weight
    return math.inf if change > 0 else 0.0


def _value(release: Release, bound: Bound, units: Units) -> Values:
    found = release(units)
    if isinstance(found, Bounded) and found.bound != bound:
        raise ConfigError("the release states another bound than the accountant is told. They must agree.")
    return plain(found)


def _check_worst_case(pair: Neighbours, bound: Bound, datasets: Datasets) -> None:
    if not 0 <= pair.which < len(pair.units):
        raise ConfigError(f"which must lie between 0 and {len(pair.units) - 1}, got {pair.which}.")
    sides = (pair.units[pair.which], pair.other)
    if bound.adjacency == "empty" and not any(side is datasets.empty for side in sides):
        raise ConfigError('for adjacency "empty" one side of the worst case must be Datasets.empty itself.')


def _refuse_noise(release: Release, bound: Bound, units: Units) -> None:
    first, second = _value(release, bound, units), _value(release, bound, units)
    if not np.array_equal(first, second, equal_nan=True):
        raise ConfigError(
            "the release differs between two runs on the same data. Switch its noise off, and give whatever "
            "else it draws a generator that starts anew in each call."
        )


def plain(found: NDArray[Any] | Bounded) -> Values:
    """Return the numbers in a type that holds every float64 and int64 exactly, where the machine has one."""
    return np.asarray(found.value if isinstance(found, Bounded) else found).astype(np.longdouble)
