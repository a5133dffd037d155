"""The order in which SGD meets the ratings: chosen once a fit, so that an epoch is one walk through memory.

Users and items are dealt into GRID groups each, which cuts the ratings into GRID x GRID blocks. Blocks that
share neither users nor items can be trained at the same time, and it makes no difference to the result how
many threads do it. The items of a block also fit into a processor's own cache.

Within a block several users take turns, one rating each. Two ratings of one user in a row would have to wait
for each other: the second needs what the first has made of the user.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.data.grouping import Index, Offsets, Values
from cofactor.data.ratings import Ratings
from cofactor.factors.units import Units

GRID = 8
"""Groups of users and of items: as many threads can train at once."""
IN_TURN = 8
"""Users that take turns: enough to hide the wait, few enough for their rows to stay at hand."""


class Schedule(NamedTuple):
    """Ratings in the order of training; block (g, h) lies from ptr[g * GRID + h] to the next."""

    ptr: Offsets
    users: Index
    """The table row of each rating's user."""
    items: Index
    values: Values
    """In the units of training."""


class Seats(NamedTuple):
    """Where users or items sit in their table: group by group."""

    rows: Index
    """The table row of each user or item."""
    groups: Index
    """The group of each user or item."""


def seats(sizes: NDArray[np.int64]) -> Seats:
    """Deal users or items, the largest first, so that all groups get about the same number of ratings."""
    largest_first = np.argsort(-sizes, kind="stable")
    there_and_back = np.concatenate([np.arange(GRID), np.arange(GRID)[::-1]])
    groups = np.empty(len(sizes), np.int32)
    groups[largest_first] = np.resize(there_and_back, len(sizes))
    rows = np.empty(len(sizes), np.int32)
    rows[np.lexsort((-sizes, groups))] = np.arange(len(sizes))
    return Seats(rows, groups)


def schedule(
    ratings: Ratings, units: Units, users: Seats, items: Seats, generator: np.random.Generator
) -> Schedule:
    """Put the ratings in the order of training."""
    count = ratings.user_count
    by_user = ratings.by_user
    first_bucket = users.groups * np.int64(GRID * count) + users.rows
    item_block = items.groups * np.int64(count)
    ptr = _bucket_starts(by_user.ptr, by_user.index, first_bucket, item_block)
    index, values = _in_buckets(
        by_user.ptr, by_user.index, by_user.values, first_bucket, item_block, items.rows, ptr.copy(),
        units.mean, units.spread,
    )  # fmt: skip
    starts = ptr[::count].copy()
    return Schedule(starts, *_take_turns(starts, count, ptr, index, values, generator))


@kernel
def _bucket_starts(ptr: Offsets, index: Index, first_bucket: Offsets, item_block: Offsets) -> Offsets:
    """Return where each bucket starts; bucket block * users + user row holds a user's ratings in a block."""
    starts = np.zeros(GRID * GRID * first_bucket.size + 1, np.int64)
    for user in range(first_bucket.size):
        for at in range(ptr[user], ptr[user + 1]):
            starts[first_bucket[user] + item_block[index[at]] + 1] += 1
    for bucket in range(1, starts.size):
        starts[bucket] += starts[bucket - 1]
    return starts


@kernel
def _in_buckets(
    ptr: Offsets,
    index: Index,
    values: Values,
    first_bucket: Offsets,
    item_block: Offsets,
    item_rows: Index,
    place: Offsets,
    mean: float,
    spread: float,
) -> tuple[Index, Values]:
    """Return item rows and values in the units of training, bucket by bucket; `place` is where they start."""
    items = np.empty(index.size, np.int32)
    standard = np.empty(index.size, np.float32)
    for user in range(first_bucket.size):
        for at in range(ptr[user], ptr[user + 1]):
            bucket = first_bucket[user] + item_block[index[at]]
            items[place[bucket]] = item_rows[index[at]]
            standard[place[bucket]] = (values[at] - mean) / spread
            place[bucket] += 1
    return items, standard


@kernel
def _take_turns(
    starts: Offsets,
    user_count: int,
    ptr: Offsets,
    index: Index,
    values: Values,
    generator: np.random.Generator,
) -> tuple[Index, Index, Values]:
    """Write each block with IN_TURN users in turn, each user's ratings in random order."""
    users = np.empty(index.size, np.int32)
    items = np.empty(index.size, np.int32)
    turned = np.empty(index.size, np.float32)
    bucket = np.empty(IN_TURN, np.int64)
    place = np.empty(IN_TURN, np.int64)
    out = 0
    for block in range(starts.size - 1):
        waiting, end = block * user_count, (block + 1) * user_count
        playing = 0
        while playing > 0 or waiting < end:
            while playing < IN_TURN and waiting < end:
                if ptr[waiting] < ptr[waiting + 1]:
                    _shuffle(index[ptr[waiting] : ptr[waiting + 1]], values[ptr[waiting] :], generator)
                    bucket[playing], place[playing] = waiting, ptr[waiting]
                    playing += 1
                waiting += 1
            staying = 0
            for k in range(playing):
                users[out] = bucket[k] - block * user_count
                items[out], turned[out] = index[place[k]], values[place[k]]
                out += 1
                if place[k] + 1 < ptr[bucket[k] + 1]:
                    bucket[staying], place[staying] = bucket[k], place[k] + 1
                    staying += 1
            playing = staying
    return users, items, turned


@kernel
def _shuffle(index: Index, values: Values, generator: np.random.Generator) -> None:
    for last in range(index.size - 1, 0, -1):
        other = int(generator.random() * (last + 1))
        index[last], index[other] = index[other], index[last]
        values[last], values[other] = values[other], values[last]
