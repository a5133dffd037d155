"""Dishonest users and parties: the former have other ratings, the latter other answers.

A party that lies lets the honest half make an answer, and then changes what has gone through the door.
Nothing stops it: uploads of a hidden sum come without a proof that they lie within bounds.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.data.scale import Scale
from cofactor.factors.model import Factors
from cofactor.federation.halves import Home, Participant, Recipe, State
from cofactor.federation.messages import Message
from cofactor.federation.summing import Form

Lie = Callable[[NDArray[Any], int | None], NDArray[Any]]
"""Return an array as a dishonest party sends it; given the largest number that its sum can hold, if known."""
_LARGEST = 1e14
"""The largest number that a coordinator believes at all, where there is no sum: a tenth of it."""


def few_ratings(ratings: Ratings, users: int) -> NDArray[np.int64]:
    """Return the users whose answers are about the fewest items, if they have two ratings or more."""
    sizes = np.diff(ratings.by_user.ptr)
    order = np.argsort(np.where(sizes > 1, sizes, np.iinfo(np.int64).max), kind="stable")
    return np.asarray(order[: min(users, int((sizes > 1).sum()))], np.int64)


def turned(ratings: Ratings, users: NDArray[np.int64], item: int, scale: Scale) -> Ratings:
    """Return ratings in which some users praise one item, and nothing else: as many ratings as they had.

    One of their items becomes this one, if they have not rated it, with the highest rating; all others get
    the lowest, so that it stands out among them.
    """
    index, values = ratings.items.astype(np.int64).copy(), ratings.values.copy()
    for user in users.tolist():
        own = np.flatnonzero(ratings.users == user)
        values[own] = scale.low
        place = own[np.flatnonzero(index[own] == item)[:1]] if item in index[own] else own[:1]
        index[place], values[place] = item, scale.high
    return Ratings.from_rows(
        ratings.users,
        index,
        values,
        user_ids=ratings.user_ids,
        item_ids=ratings.item_ids,
        scale=ratings.scale or scale,
    )


def boosted(item: int, items: int, boost: float) -> Lie:
    """Return the lie that multiplies all that is told about one item, as far as its sum can hold it."""

    def lie(array: NDArray[Any], largest: int | None) -> NDArray[Any]:
        if array.ndim == 0 or len(array) < items:
            return array
        changed = array.astype(np.float64)
        # Half of what fits: the honest parts of a sum must fit in beside it, or it wraps around.
        most = (_LARGEST if largest is None else largest) / 2
        changed[item] *= min(boost, most / max(float(np.abs(changed[item]).max()), 1e-30))
        return changed.astype(array.dtype)

    return lie


def lying(recipe: Recipe, party: str, lie: Lie) -> Recipe:
    """Return the same recipe, of which one party's half lies."""
    honest = type(recipe)

    def participant(self: Any, home: Home) -> Participant:
        half: Participant = honest.participant(self, home)
        return _Lying(half, home, lie) if home.party.name == party else half

    kind = type(honest.__name__, (honest,), {"participant": participant, "__doc__": honest.__doc__})
    settings = {each.name: getattr(recipe, each.name) for each in fields(cast(Any, recipe))}
    return cast(Recipe, kind(**settings))


class _Lying:
    """A party's half that changes its answers after they have passed the door."""

    def __init__(self, honest: Participant, home: Home, lie: Lie) -> None:
        self._honest, self._home, self._lie = honest, home, lie

    def handle(self, round: int, message: Message) -> Message:
        answer = self._honest.handle(round, message)
        largest = largest_of(answer, self._home)
        for array in answer.arrays.values():
            told = self._lie(array, largest)
            array.flags.writeable = True
            array[...] = told
        return answer

    def finish(self, message: Message) -> Factors:
        return self._honest.finish(message)

    def state(self) -> State:
        return self._honest.state()

    def restore(self, state: State) -> None:
        self._honest.restore(state)


def largest_of(answer: Message, home: Home) -> int | None:
    """Return the largest number that the sum of such answers can hold; None where there is no sum."""
    passed: Mapping[str, Any] = {name: home.door.passed(array) for name, array in answer.arrays.items()}
    if any(each.summand is None for each in passed.values()):
        return None
    return int(2 ** (Form.of(answer, passed).bits - 1) - 1)
