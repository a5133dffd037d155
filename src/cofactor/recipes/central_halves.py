"""The two halves of `CentralDPSGD`: the server that holds all ratings, and whoever sees what it publishes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped
from cofactor.errors import RunError
from cofactor.factors.model import Factors, seen_in
from cofactor.federation.door import COORDINATOR
from cofactor.federation.halves import Facts, Home, State, array_of
from cofactor.federation.messages import Message
from cofactor.privacy.bounding import Bounded
from cofactor.randomness import Seeds
from cofactor.recipes.central_steps import (
    RADIUS,
    counted,
    fitted,
    moved,
    started,
    summed,
    unit_size,
    weights_of,
)
from cofactor.recipes.local_steps import centre_of, mean_of, prepared, release_of, released_total, shortened
from cofactor.recipes.shared_vectors import Begin, Finished, Total

if TYPE_CHECKING:
    from cofactor.recipes.central import CentralDPSGD

Floats = NDArray[np.float32]

COUNTS = "counts of items"
SLOPES = "slopes of items"
"""The releases, as ledgers and plans name them, besides the mean."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CountItems(Message):
    """The question for how often items were rated."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Counts(Message):
    """How often they were, where every user counts as much in all."""

    counts: NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Items(Message):
    """The items as they are, which a step is to move."""

    centre: NDArray[Any]
    """What is taken off all ratings: one number."""
    vectors: NDArray[Any]
    weights: NDArray[Any]
    """How much a rating of each item counts."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Slopes(Message):
    """Where all users together want the items to move."""

    slopes: NDArray[Any]


MESSAGES = (Begin, Total, CountItems, Counts, Items, Slopes, Finished)


class CentralParticipant:
    """The server: it sees all ratings, and lets out sums over its users, bounded and noisy."""

    def __init__(self, recipe: "CentralDPSGD", home: Home) -> None:
        """Prepare the ratings."""
        self._recipe = recipe
        self._home = home
        self._ratings = prepared(home, None)

    def handle(self, round: int, message: Message) -> Message:  # noqa: ARG002 (questions say what they want)
        """Tell the mean, the counts, or the slopes."""
        if isinstance(message, Begin):
            return released_total(self._home, self._ratings, "user", summed=False)
        if isinstance(message, CountItems):
            return Counts(counts=self._out(COUNTS, counted(self._ratings, self._home.facts.item_count)))
        if isinstance(message, Items):
            return Slopes(slopes=self._out(SLOPES, self._slopes(message)))
        raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")

    def finish(self, message: Message) -> Factors:
        """Fit every user to the items once more."""
        centre, items = self._read(message)
        users = fitted(self._centred(centre), items, self._recipe.penalties)
        ratings, size = self._home.party.ratings, np.float32(unit_size(self._home.facts))
        return Factors(
            user_ids=ratings.user_ids,
            item_ids=ratings.item_ids,
            mean=centre,
            user_bias=users.bias * size,
            item_bias=items[:, 0] * size,
            user_vectors=users.tastes,
            item_vectors=items[:, 1:] * size,
            scale=self._home.facts.scale,
            seen=seen_in(ratings),
            home=self._recipe.home_fit(self._home.facts),
        )

    def state(self) -> State:
        """Return nothing: items come with the next question."""
        return {}

    def restore(self, state: State) -> None:
        """Go on; there is nothing to remember."""

    def _read(self, message: Message) -> tuple[float, Floats]:
        """Read the items; whatever comes is shortened, so that no fit to ratings can fail because of it."""
        facts = self._home.facts
        shape = (facts.item_count, self._recipe.chosen().factors)
        return centre_of(message, facts), shortened(array_of(message, "vectors", shape, COORDINATOR), RADIUS)

    def _slopes(self, message: Items) -> Bounded:
        centre, items = self._read(message)
        weights = array_of(message, "weights", (len(items),), COORDINATOR)
        ratings, recipe = self._centred(centre), self._recipe
        users = fitted(ratings, items, recipe.penalties)
        return summed(ratings, users, items, weights, recipe.limit)

    def _centred(self, centre: float) -> Grouped:
        size = np.float32(unit_size(self._home.facts))
        own = self._ratings
        return Grouped(own.ptr, own.index, (own.values - np.float32(centre)) / size)

    def _out(self, what: str, bounded: Bounded) -> NDArray[Any]:
        release = release_of(self._home, what)
        if release is None:
            return self._home.door.unprotected(bounded.value)
        return self._home.door.release(release.mechanism, bounded, what=what)


class CentralCoordinator:
    """Moves the items along the slopes that the server publishes."""

    def __init__(self, recipe: "CentralDPSGD", facts: Facts, seed: int) -> None:
        """Begin with items that depend on nothing private."""
        self._recipe, self._chosen = recipe, recipe.chosen()
        self._facts = facts
        self._centre = (facts.scale.low + facts.scale.high) / 2 if recipe.centre is None else recipe.centre
        chance = Seeds(seed).generator("shared items")
        self._items = started(facts.item_count, self._chosen.factors, recipe.spread, chance)
        self._weights = np.ones(facts.item_count, np.float32)

    @property
    def rounds(self) -> int:
        """One for the mean, one for the counts, if they are wanted, and all steps."""
        return len(self._questions) + self._chosen.rounds

    def ask(self, round: int) -> Message:
        """Ask for the mean, for counts, or for slopes."""
        if round <= len(self._questions):
            return self._questions[round - 1]
        return Items(**self._all(), weights=self._weights)

    def sums(self, round: int) -> bool:  # noqa: ARG002 (never)
        """There is one party, and nothing to add up."""
        return False

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Take a step; without an answer everything stays as it was."""
        for sender, reply in replies.items():
            asked = self.ask(round)
            if isinstance(asked, Begin):
                self._centre = mean_of(replies, self._facts, "user")
            elif isinstance(asked, CountItems):
                self._weights = self._weighted(reply, sender)
            else:
                slopes = array_of(reply, "slopes", self._items.shape, sender)
                self._items = moved(self._items, slopes, self._chosen.rate)

    def last(self) -> Message:
        """Return the items as they are now."""
        return Finished(**self._all())

    def published(self) -> Factors:
        """Return the items; users who bring their own ratings can be folded in."""
        facts, size = self._facts, np.float32(unit_size(self._facts))
        return Factors(
            user_ids=facts.catalogue[:0],
            item_ids=facts.catalogue,
            mean=self._centre,
            user_bias=np.zeros(0, np.float32),
            item_bias=self._items[:, 0] * size,
            user_vectors=np.zeros((0, self._chosen.factors - 1), np.float32),
            item_vectors=self._items[:, 1:] * size,
            scale=facts.scale,
            home=self._recipe.home_fit(facts),
        )

    def state(self) -> State:
        """Return the items, and how much each counts."""
        return {"centre": np.array(self._centre), "items": self._items, "weights": self._weights}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._centre = float(state["centre"])
        self._items = np.asarray(state["items"], np.float32)
        self._weights = np.asarray(state["weights"], np.float32)

    @property
    def _questions(self) -> list[Message]:
        """What is asked before the first step."""
        mean: list[Message] = [Begin()] if self._recipe.centre is None else []
        return mean + ([CountItems()] if self._chosen.power else [])

    def _weighted(self, reply: Message, sender: str) -> Floats:
        counts = array_of(reply, "counts", (self._facts.item_count, 1), sender)
        return weights_of(counts[:, 0], self._chosen.least_count, self._chosen.power)

    def _all(self) -> dict[str, Any]:
        return {"centre": np.array(self._centre), "vectors": self._items}
