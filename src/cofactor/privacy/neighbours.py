"""Datasets and their neighbours, made at random from units of which nothing else is known.

A unit is whatever is protected: all that a user contributed, one rating, a row.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cofactor.config import whole
from cofactor.errors import ConfigError
from cofactor.privacy.budget import Adjacency

Units = tuple[Any, ...]
Chance = np.random.Generator


@dataclass(frozen=True, kw_only=True)
class Datasets:
    """How to make datasets and neighbours of them."""

    draw: Callable[[Chance], Any]
    """Return a random unit. Make extreme ones likely: zeros, the ends of the scale, far beyond the limits."""
    count: int
    """How many units make a dataset."""
    empty: Any = None
    """A unit that contributes nothing: what a unit becomes for adjacency "empty"."""
    redraw: Callable[[Any, Chance], Any] | None = None
    """Return a unit with other values and all else the same: needed for adjacency "value"."""
    mutate: Callable[[Any, Chance], Any] | None = None
    """Return a unit a little different, for the climb from the worst pair found; by default a new unit."""

    def __post_init__(self) -> None:
        whole(count=self.count)

    def nearby(self, unit: Any, chance: Chance) -> Any:
        """Return a unit a little different, or a new one."""
        return self.draw(chance) if self.mutate is None or unit is self.empty else self.mutate(unit, chance)

    def neighbour(self, unit: Any, adjacency: Adjacency, chance: Chance) -> Any:
        """Return what a unit may become."""
        if adjacency == "empty":
            return self.empty
        if adjacency == "replace":
            return self.draw(chance)
        if self.redraw is None:
            raise ConfigError('adjacency "value" needs Datasets(redraw=...): new values, all else the same.')
        return self.redraw(unit, chance)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Neighbours:
    """Two datasets that differ in one unit."""

    units: Units
    """The first dataset."""
    which: int
    """The place of the unit that differs."""
    other: Any
    """What stands there in the second dataset."""

    @property
    def datasets(self) -> tuple[Units, Units]:
        """Both datasets."""
        return self.units, changed(self.units, self.which, self.other)


def random_units(datasets: Datasets, chance: Chance) -> Units:
    """Return a random dataset."""
    return tuple(datasets.draw(chance) for _ in range(datasets.count))


def random_neighbours(datasets: Datasets, adjacency: Adjacency, chance: Chance) -> Neighbours:
    """Return a random dataset and a random neighbour of it."""
    units, which = random_units(datasets, chance), int(chance.integers(datasets.count))
    return Neighbours(units=units, which=which, other=datasets.neighbour(units[which], adjacency, chance))


def mutated(pair: Neighbours, datasets: Datasets, adjacency: Adjacency, chance: Chance) -> Neighbours:
    """Return a pair a little different: in a bystander, or in the unit that differs, on one side or both."""
    at = pair.which if chance.random() < 0.5 else int(chance.integers(len(pair.units)))
    units = changed(pair.units, at, datasets.nearby(pair.units[at], chance))
    if at != pair.which or adjacency == "empty":
        return replace(pair, units=units)
    one_side = chance.random() < 0.5
    if adjacency == "replace":
        other = pair.other if one_side else datasets.nearby(pair.other, chance)
        return replace(pair, units=units if one_side else pair.units, other=other)
    if one_side:
        return replace(pair, other=datasets.neighbour(pair.other, adjacency, chance))
    return replace(pair, units=units, other=datasets.neighbour(units[at], adjacency, chance))


def changed(units: Units, which: int, other: Any) -> Units:
    """Return the dataset with another unit in one place."""
    return (*units[:which], other, *units[which + 1 :])
