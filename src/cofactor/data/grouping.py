"""Ratings grouped by user or by item: the two layouts that every algorithm walks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel

Index = NDArray[np.int32]
Offsets = NDArray[np.int64]
Values = NDArray[np.float32]
Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grouped:
    """Ratings in groups: group g owns the positions ptr[g] to ptr[g + 1] of the other arrays."""

    ptr: Offsets
    index: Index
    """The other side of each rating: its item when grouped by user, its user when grouped by item."""
    values: Values
    times: Times | None = None

    @property
    def sizes(self) -> Offsets:
        """Number of ratings in each group."""
        return np.diff(self.ptr)

    def members(self) -> Index:
        """Return each rating's group."""
        return np.repeat(np.arange(len(self.ptr) - 1, dtype=np.int32), self.sizes)

    def window(self, start: int, stop: int) -> "Grouped":
        """Return the groups from start to stop; the ratings are shared, not copied."""
        first, last = self.ptr[start], self.ptr[stop]
        times = None if self.times is None else self.times[first:last]
        ptr = self.ptr[start : stop + 1] - first
        return Grouped(ptr, self.index[first:last], self.values[first:last], times)

    def take(self, groups: NDArray[np.int64]) -> "Grouped":
        """Return the named groups, in that order; their ratings are copied."""
        sizes = self.sizes[groups]
        ptr = offsets(sizes)
        positions = np.arange(ptr[-1]) + np.repeat(self.ptr[groups] - ptr[:-1], sizes)
        return self._at(ptr, positions)

    def keep(self, mask: NDArray[np.bool_]) -> "Grouped":
        """Return the ratings where the mask is true; groups keep their numbers."""
        counts = np.concatenate([[0], np.cumsum(mask)])
        return self._at(counts[self.ptr], np.flatnonzero(mask))

    def turned(self, other_count: int) -> "Grouped":
        """Group the same ratings by the other side, in a stable order."""
        return group(self.index, self.members(), self.values, self.times, other_count)

    def read_only(self) -> "Grouped":
        """Return the same memory through arrays that refuse to be written to."""
        times = None if self.times is None else read_only(self.times)
        return Grouped(read_only(self.ptr), read_only(self.index), read_only(self.values), times)

    def _at(self, ptr: Offsets, positions: NDArray[np.int64]) -> "Grouped":
        times = None if self.times is None else self.times[positions]
        return Grouped(ptr.astype(np.int64), self.index[positions], self.values[positions], times)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to; the caller's own array stays as it was."""
    view = array.view()
    view.flags.writeable = False
    return view


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array of our own read-only, so that `Ratings` can share it instead of copying it."""
    array.flags.writeable = False
    return array


def offsets(sizes: NDArray[np.int64]) -> Offsets:
    """Turn group sizes into group boundaries."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def group(keys: Index, others: Index, values: Values, times: Times | None, count: int) -> Grouped:
    """Group ratings by key; ratings of one key keep their order. Already grouped input is not copied."""
    ptr = offsets(np.bincount(keys, minlength=count))
    if len(keys) == 0 or bool(np.all(keys[1:] >= keys[:-1])):
        return Grouped(ptr, others, values, times)
    order = _grouped_order(keys, ptr)
    return Grouped(ptr, others[order], values[order], None if times is None else times[order])


def first_duplicate(grouped: Grouped, other_count: int) -> int:
    """Return the position of the first rating whose (group, index) occurred before, or -1."""
    return int(_first_duplicate(grouped.ptr, grouped.index, other_count))


@kernel
def _grouped_order(keys: Index, ptr: Offsets) -> Offsets:
    """Counting sort: the positions of the keys, group by group."""
    order = np.empty(keys.size, np.int64)
    place = ptr[:-1].copy()
    for position in range(keys.size):
        key = keys[position]
        order[place[key]] = position
        place[key] += 1
    return order


@kernel
def _first_duplicate(ptr: Offsets, index: Index, other_count: int) -> int:
    last_group = np.full(other_count, -1, np.int64)
    for g in range(ptr.size - 1):
        for position in range(ptr[g], ptr[g + 1]):
            if last_group[index[position]] == g:
                return position
            last_group[index[position]] = g
    return -1
