"""The two halves of `OnDeviceMF`. The same participant is one device, or plays all of a simulation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import RunError
from cofactor.factors.model import Factors, HomeFit, seen_in
from cofactor.federation.door import COORDINATOR
from cofactor.federation.halves import Facts, Home, State, array_of
from cofactor.federation.messages import Message
from cofactor.randomness import Seeds
from cofactor.recipes.device_steps import drawn, fitted_at_home, left_in, moved, summed
from cofactor.recipes.local_steps import prepared, read_trimmed
from cofactor.recipes.models import without_biases
from cofactor.recipes.shared_vectors import Finished, Shared
from cofactor.recipes.summed_steps import projected
from cofactor.recipes.summing_mode import into_sum, only_sums

if TYPE_CHECKING:
    from cofactor.recipes.on_device import OnDeviceMF

Floats = NDArray[np.float32]

SUMS = "gradients of items"
"""The release, as ledgers and plans name it."""
_FOLD_IN = 2.0
"""Penalty on the vector of a user who is folded in later, counted in ratings of items of length 1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceGradients(Message):
    """What devices add to the sum of a round."""

    gradients: NDArray[np.int64]
    """Those of the ratings that they drew, in whole grains, a row for each item."""
    count: NDArray[np.int64]
    """How many devices that are: one number."""


class DeviceParticipant:
    """One device, or a cohort of them: users' vectors never leave it."""

    def __init__(self, recipe: "OnDeviceMF", home: Home) -> None:
        """Prepare the ratings."""
        self._recipe = recipe
        self._steps = recipe.steps()
        self._home = home
        self.ratings = prepared(home, None)
        self._users: Floats | None = None

    def handle(self, round: int, message: Message) -> Message:
        """Draw ratings and add up their gradients."""
        if not isinstance(message, Shared):
            raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")
        items, users = self.fitted(message)
        left = left_in(round, self._home)
        return DeviceGradients(
            gradients=self._out(items, users, left),
            count=self._home.door.public(
                np.array([left.sum()], np.int64), largest_sum=self._home.facts.user_count
            ),
        )

    def finish(self, message: Message) -> Factors:
        """Fine-tune at home: fit every user to all of the user's ratings once more."""
        items, ratings = self._read(message), self._home.party.ratings
        return without_biases(
            ratings.user_ids,
            ratings.item_ids,
            0.0,
            self._fitted(items),
            items,
            scale=self._home.facts.scale,
            seen=seen_in(ratings),
        )

    def state(self) -> State:
        """Return the users' vectors: items come with the next question."""
        return {} if self._users is None else {"users": self._users}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._users = np.asarray(state["users"], np.float32) if "users" in state else None

    def fitted(self, message: Message) -> tuple[Floats, Floats]:
        """Return items, and users as they are in this round."""
        items = self._read(message)
        if self._users is None or self._recipe.users == "refitted":
            self._users = self._fitted(items)
        return items, self._users

    def _read(self, message: Message) -> Floats:
        """Read item vectors; whatever comes is projected, so that bounds do not rest on the coordinator."""
        shape = (self._home.facts.item_count, self._steps.factors)
        items = array_of(message, "vectors", shape, COORDINATOR)
        # As they came: a number that float32 cannot hold would fail at those alone who rated the item.
        return projected(items, self._steps, self._home.facts)

    def _fitted(self, items: Floats) -> Floats:
        return fitted_at_home(self.ratings, items, self._steps, self._home.facts, self._recipe.beginning)

    def _out(self, items: Floats, users: Floats, left: NDArray[np.bool_]) -> NDArray[np.int64]:
        recipe, facts, door = self._recipe, self._home.facts, self._home.door
        grid, limit, devices = recipe.grid(), recipe.limit(facts), int(left.sum())
        assert recipe.most_ratings is not None
        some = drawn(self.ratings, recipe.most_ratings, left, door.random)
        there = int(self.ratings.sizes[left].sum())
        read_trimmed(self._home, there - len(some.values), there)
        bounded = summed(
            some,
            users,
            items,
            grid,
            limit=limit,
            most_ratings=recipe.most_ratings,
            random=door.random,
        )
        # A device has drawn an item once at most.
        most = facts.user_count * grid.whole_limit(limit, items.shape[1])
        return into_sum(self._home, recipe, SUMS, bounded, largest_sum=most, devices=devices)


class DeviceCoordinator:
    """Moves the items against the sum of the devices' gradients."""

    def __init__(self, recipe: "OnDeviceMF", facts: Facts, seed: int) -> None:
        """Begin with item vectors that depend on nothing private."""
        self._recipe = recipe
        self._steps = recipe.steps()
        self._facts = facts
        random = Seeds(seed).generator("shared items")
        self._items = self._steps.start("items", facts.item_count, recipe.beginning, random)

    @property
    def rounds(self) -> int:
        """T in the paper."""
        return self._steps.rounds

    def ask(self, round: int) -> Message:  # noqa: ARG002 (the same in all rounds)
        """Ask for gradients."""
        return Shared(**self._all())

    def sums(self, round: int) -> bool:  # noqa: ARG002 (the same in all rounds)
        """Only sums are wanted, unless every device adds all of the noise."""
        return only_sums(self._recipe, self._facts)

    def take(self, round: int, replies: Mapping[str, Message]) -> None:  # noqa: ARG002
        """Take a step; without answers everything stays as it was."""
        count, total = 0, np.zeros(self._items.shape, np.int64)
        for sender, reply in replies.items():
            count += int(array_of(reply, "count", (1,), sender)[0])
            total = total + array_of(reply, "gradients", self._items.shape, sender)
        if count < 1:
            return
        recipe = self._recipe
        mean = recipe.grid().decoded(total, self._steps.factors) / count
        self._items = moved(
            self._items, mean, self._steps.learning_rate, self._steps, self._facts, recipe.beginning
        )

    def last(self) -> Message:
        """Return the items as they are now."""
        return Finished(**self._all())

    def published(self) -> Factors:
        """Return the items' vectors; users who bring their own ratings can be folded in."""
        facts, factors = self._facts, self._steps.factors
        model = without_biases(
            facts.catalogue[:0],
            facts.catalogue,
            0.0,
            np.zeros((0, factors), np.float32),
            self._items,
            scale=facts.scale,
            home=HomeFit(_FOLD_IN * self._recipe.beginning * np.eye(factors), np.ones(facts.item_count)),
        )
        # Users who tell little are like the one that all begin as, whose predictions are the items' biases.
        usual = self._steps.level(self._recipe.beginning)
        return replace(model, item_bias=usual * self._items.sum(axis=1))

    def state(self) -> State:
        """Return the items."""
        return {"items": self._items}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._items = np.asarray(state["items"], np.float32)

    def _all(self) -> dict[str, Any]:
        return {"centre": np.array(self._recipe.beginning), "vectors": self._items}
