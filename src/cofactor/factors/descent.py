"""An epoch of stochastic gradient descent on tables of rows.

A user's row is [vector, zeros, bias, 1] and an item's [vector, zeros, 1, bias], so that one dot product
gives vector . vector + user bias + item bias, and one rule moves vectors and biases alike. Without biases
the ones are zeros: the biases then stay at 0 by themselves.
"""

from typing import Any, NamedTuple

import numpy as np

from cofactor.compiled import kernel
from cofactor.data.grouping import Values
from cofactor.factors.schedule import GRID, Schedule
from cofactor.factors.simd import (
    Table,
    column,
    combine,
    dot,
    load_row,
    scaled,
    store_row,
    with_column,
    without_negatives,
)
from cofactor.factors.team import Team

ALL = np.float32(1)
"""A float32, so that what is left of a row after its pull does not become a float64."""
USER_BIAS, USER_ONE = -2, -1
ITEM_BIAS, ITEM_ONE = -1, -2


class Rows(NamedTuple):
    """The users, or the items."""

    table: Table
    pull: Values
    """How strongly each step pulls a row towards zero."""


class Share(NamedTuple):
    """What a thread trains before it waits for the others: some groups of users, in some turns.

    In turn t the users of group g meet the items of group g ^ t. Within a turn no two blocks have a row in
    common; and threads that share the groups evenly, a power of two of them, stay among their own items for
    GRID / threads turns, since only the last bits of t change.
    """

    first_group: int
    end_group: int
    first_turn: int
    end_turn: int


def epoch(
    users: Rows, items: Rows, order: Schedule, team: Team, *, rate: float, highest: float | None = None
) -> None:
    """Visit every rating once; with `highest`, rows are clipped after each step."""
    step = np.float32(rate)
    # A little below the limit, because lengths are rounded.
    limit = None if highest is None else np.float32(highest * (1 - 1e-5))
    cuts = [GRID * part // team.size for part in range(team.size + 1)]
    turns = GRID // team.size if GRID % team.size == 0 else 1
    for turn in range(0, GRID, turns):

        def train(part: int, turn: int = turn) -> None:
            share = Share(cuts[part], cuts[part + 1], turn, turn + turns)
            _descend(users, items, order, share, step, limit)

        team.together(train)


@kernel
def _descend(
    users: Rows, items: Rows, order: Schedule, share: Share, rate: np.float32, limit: np.float32 | None
) -> None:
    """Take a step for each rating of some blocks; the columns of ones stay as they are.

    With a limit, for models without biases, rows are clipped instead. Numba compiles each case by itself.
    """
    for turn in range(share.first_turn, share.end_turn):
        for g in range(share.first_group, share.end_group):
            block = g * GRID + (g ^ turn)
            for at in range(order.ptr[block], order.ptr[block + 1]):
                u, i = order.users[at], order.items[at]
                user, item = load_row(users.table, u), load_row(items.table, i)
                change = rate * (order.values[at] - dot(user, item))
                new_user = combine(ALL - rate * users.pull[u], user, change, item)
                new_item = combine(ALL - rate * items.pull[i], item, change, user)
                if limit is None:
                    store_row(users.table, u, with_column(new_user, -1, column(user, -1)))
                    store_row(items.table, i, with_column(new_item, -2, column(item, -2)))
                else:
                    store_row(users.table, u, _clipped(new_user, limit))
                    store_row(items.table, i, _clipped(new_item, limit))


@kernel
def _clipped(row: Any, limit: np.float32) -> Any:
    """Project onto the non-negative vectors whose squared length is at most the limit."""
    row = without_negatives(row)
    squared = dot(row, row)
    return row if squared <= limit else scaled(np.sqrt(limit / squared), row)
