"""What to do with a user who rated the same item more than once."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped, Values, first_duplicate, group
from cofactor.errors import DataError

Duplicates = Literal["error", "last", "mean"]


class RatedTwice(DataError):
    """A user rated an item more than once, and nobody said which rating counts."""


def without_duplicates(
    grouped: Grouped, rule: Duplicates, user_ids: NDArray[Any], item_ids: NDArray[Any]
) -> Grouped:
    """Return one rating a pair, by the rule; ratings without duplicates come back as they are."""
    if rule not in ("error", "last", "mean"):
        raise DataError(f'duplicates must be "error", "last" or "mean", got {rule!r}.')
    at = first_duplicate(grouped, len(item_ids))
    if at < 0:
        return grouped
    if rule == "error":
        user = user_ids[np.searchsorted(grouped.ptr, at, side="right") - 1]
        raise RatedTwice(
            f"user {user} rated item {item_ids[grouped.index[at]]} more than once. "
            'Keep the last one with duplicates="last" (--duplicates last), or their mean with "mean".'
        )
    return _merged(grouped, len(item_ids), rule)


def _merged(grouped: Grouped, item_count: int, rule: Literal["last", "mean"]) -> Grouped:
    """Keep one rating a pair: the latest (by time, else by order), its value the mean if asked."""
    members = grouped.members()
    pair = members.astype(np.int64) * item_count + grouped.index
    when = np.arange(len(pair)) if grouped.times is None else grouped.times
    order = np.lexsort((when, pair))
    ends = np.append(pair[order][1:] != pair[order][:-1], True)
    last = order[ends]
    values = _means(grouped.values[order], ends) if rule == "mean" else grouped.values[last]
    times = None if grouped.times is None else grouped.times[last]
    return group(members[last], grouped.index[last], values, times, len(grouped.ptr) - 1)


def _means(values: Values, ends: NDArray[np.bool_]) -> Values:
    """Average each run of values; `ends` marks where a run ends."""
    starts = np.append(0, np.flatnonzero(ends)[:-1] + 1)
    sizes = np.diff(np.append(starts, len(values)))
    sums = np.add.reduceat(values.astype(np.float64), starts)
    return (sums / sizes).astype(np.float32)
