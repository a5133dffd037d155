"""A tree of boxes over [-1, 1], grown where noisy counts say that there are many points.

Where a point falls depends on that point and on public numbers only, and which boxes are divided depends on
noisy counts only. Every level has the same number of places whatever was counted: those not needed stay
empty, and their noise is thrown away.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cofactor.randomness import Seeds

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]

NO_PLACE = -1
"""The place of a point whose box is not divided any more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Boxes:
    """Places of one level, each with the smallest box that is known to hold all its points."""

    low: Floats
    high: Floats
    used: Truths
    """Whether there is a box at all."""

    @property
    def centres(self) -> Floats:
        """The middle of each box."""
        return (self.low + self.high) / 2

    @property
    def reach(self) -> Floats:
        """How far a point can be from the middle of its box, absolute values added up."""
        return np.asarray((self.high - self.low).sum(axis=1) / 2)

    def __len__(self) -> int:
        """Return the number of places."""
        return len(self.used)


class Splits(Protocol):
    """How boxes are divided: a frozen dataclass, public."""

    def cuts(self, width: int, seed: int) -> Iterator[tuple[Floats, float | None]]:
        """Yield, for one halving after another, a direction, and how far along it lies the cut.

        None for the middle of each box, where the direction must be that of a column.
        """


@dataclass(frozen=True)
class Halves:
    """Boxes are halved in the middle, one column after another.

    The box of a place becomes small, so sums of points around its middle need little noise.
    """

    def cuts(self, width: int, seed: int) -> Iterator[tuple[Floats, float | None]]:  # noqa: ARG002
        """Yield one column after another, over and over: nothing is left to chance."""
        while True:
            for column in np.eye(width):
                yield column, None


@dataclass(frozen=True)
class Hyperplanes:
    """Space is cut by random planes, as published (locality-sensitive hashing; thesis, section 5.2.6).

    Each of them is public chance, and cuts all boxes of a level.
    """

    def cuts(self, width: int, seed: int) -> Iterator[tuple[Floats, float | None]]:
        """Yield random directions, and cuts through random places not far from the middle."""
        chance = Seeds(seed).generator("hyperplanes")
        while True:
            direction = chance.normal(size=width)
            yield direction, float((direction * chance.uniform(-0.5, 0.5, width)).sum())


def everything(width: int) -> Boxes:
    """Return one box that holds all points."""
    return Boxes(low=-np.ones((1, width)), high=np.ones((1, width)), used=np.ones(1, np.bool_))


def divided(
    points: Floats, places: Integers, boxes: Boxes, direction: Floats, cut: float | None
) -> tuple[Integers, Boxes]:
    """Cut every box in two: place p becomes places 2 p and 2 p + 1."""
    height = np.zeros(len(points))
    # Column by column: then where a point falls cannot depend, by rounding, on which points lie around it.
    for column in np.flatnonzero(direction):
        height += points[:, column] * direction[column]
    if cut is None:
        middle = boxes.centres[:, int(np.argmax(direction))]
        beyond = height > middle[np.maximum(places, 0)]
    else:
        beyond = height > cut
    inside = np.where(places == NO_PLACE, NO_PLACE, 2 * places + beyond)
    return inside, _halved(boxes, None if cut is not None else int(np.argmax(direction)))


def _halved(boxes: Boxes, column: int | None) -> Boxes:
    low, high = np.repeat(boxes.low, 2, axis=0), np.repeat(boxes.high, 2, axis=0)
    if column is not None:
        middle = boxes.centres[:, column]
        high[0::2, column], low[1::2, column] = middle, middle
    return Boxes(low=low, high=high, used=np.repeat(boxes.used, 2))


def largest(counts: Integers, boxes: Boxes, *, above: float, most: int) -> Integers:
    """Return which boxes to divide further: those with noisy counts above a number, and not too many."""
    order = np.argsort(-counts, kind="stable")
    kept = order[(counts[order] > above) & boxes.used[order]]
    return np.sort(kept[:most])


def kept_only(places: Integers, boxes: Boxes, kept: Integers, room: int) -> tuple[Integers, Boxes]:
    """Keep some boxes as the first of `room` places; points elsewhere have no place any more."""
    renamed = np.full(len(boxes) + 1, NO_PLACE)  # the last is for those without a place
    renamed[kept] = np.arange(len(kept))
    source = np.zeros(room, np.int64)
    source[: len(kept)] = kept
    used = np.arange(room) < len(kept)
    return renamed[places], Boxes(low=boxes.low[source], high=boxes.high[source], used=used)


def without(boxes: Boxes, kept: Integers) -> Boxes:
    """Return the same places, of which those kept for dividing are no leaves."""
    used = boxes.used.copy()
    used[kept] = False
    return replace(boxes, used=used)


def joined(parts: list[Boxes]) -> Boxes:
    """Return the places of several levels behind one another."""
    return Boxes(
        low=np.vstack([each.low for each in parts]),
        high=np.vstack([each.high for each in parts]),
        used=np.concatenate([each.used for each in parts]),
    )
