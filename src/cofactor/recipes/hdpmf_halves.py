"""The two halves of `HDPMF`: gradients of items are added up a few times, and all else stays at home."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped
from cofactor.errors import RunError
from cofactor.factors.model import Factors, HomeFit, seen_in
from cofactor.federation.door import COORDINATOR
from cofactor.federation.halves import Facts, Home, State, array_of
from cofactor.federation.messages import Message
from cofactor.recipes.device_steps import left_in
from cofactor.recipes.hdpmf_steps import bound_of, summed
from cofactor.recipes.item_weights import drawn_to_take_part, own_weights, samples
from cofactor.recipes.models import without_biases
from cofactor.recipes.shared_vectors import Finished, Gradients, Shared
from cofactor.recipes.summing_mode import into_sum, only_sums

if TYPE_CHECKING:
    from cofactor.recipes.hdpmf import HDPMF

Floats = NDArray[np.float32]

GRADIENTS = "gradients of items"
"""The release, as ledgers and plans name it."""
_TAKING_PART = "taking part"


class HDPMFParticipant:
    """One device, a party of many users, or a cohort of devices: users' vectors and weights stay there."""

    def __init__(self, recipe: "HDPMF", home: Home) -> None:
        """Limit ratings to the scale, and draw who takes part where not all do."""
        self._recipe, self._home, self._space = recipe, home, recipe.space(home.facts)
        scale, ratings = home.facts.scale, home.party.ratings.by_user
        values = np.clip(ratings.values, np.float32(scale.low), np.float32(scale.high))
        self._ratings = Grouped(ratings.ptr, ratings.index, values)
        self._weights, self._taking_part = own_weights(home), drawn_to_take_part(home)

    def handle(self, round: int, message: Message) -> Message:
        """Add up gradients of all items."""
        if not isinstance(message, Shared):
            raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")
        items, left = self._read(message), left_in(round, self._home)
        return Gradients(gradients=self._out(items, left))

    def finish(self, message: Message) -> Factors:
        """Fit every user to all of the user's ratings."""
        items, ratings = self._read(message), self._home.party.ratings
        return without_biases(
            ratings.user_ids,
            ratings.item_ids,
            0.0,
            self._space.fitted(self._ratings, items),
            items,
            scale=self._home.facts.scale,
            seen=seen_in(ratings),
        )

    def state(self) -> State:
        """Return who takes part where chance decided it: in all rounds, or in none."""
        return {_TAKING_PART: self._taking_part} if samples(self._home.facts.weights) else {}

    def restore(self, state: State) -> None:
        """Go on from there."""
        if samples(self._home.facts.weights):
            self._taking_part = np.asarray(state[_TAKING_PART], np.bool_)

    def _read(self, message: Message) -> Floats:
        """Read item vectors; whatever comes is shortened, so that nothing fails on it."""
        shape = (self._home.facts.item_count, self._space.factors)
        return self._space.received(array_of(message, "vectors", shape, COORDINATOR))

    def _out(self, items: Floats, left: NDArray[np.bool_]) -> NDArray[Any]:
        home, recipe = self._home, self._recipe
        everybody = np.ones(len(left)) if self._weights is None else self._weights
        bounded = summed(
            self._ratings,
            self._space.fitted(self._ratings, items),
            items,
            np.where(left & self._taking_part, everybody, 0.0),
            grains=recipe.steps,
            bound=bound_of(recipe.steps, home.facts),
            smallest=self._space.smallest,
            random=home.door.random,
        )
        # A party of many users adds noise once; in a cohort every device adds its own.
        devices = int(left.sum()) if home.facts.cohort else 1
        most = home.facts.user_count * recipe.steps
        return into_sum(home, recipe, GRADIENTS, bounded, largest_sum=most, devices=devices)


class HDPMFCoordinator:
    """Moves the items against the sum of all gradients."""

    def __init__(self, recipe: "HDPMF", facts: Facts, seed: int) -> None:
        """Begin with item vectors that depend on nothing private."""
        self._recipe, self._facts, self._space = recipe, facts, recipe.space(facts)
        self._items = self._space.first_items(facts.item_count, seed)

    @property
    def rounds(self) -> int:
        """How often gradients are added up."""
        return self._recipe.turns

    def ask(self, round: int) -> Message:  # noqa: ARG002 (the same in all rounds)
        """Ask for gradients."""
        return Shared(**self._all())

    def sums(self, round: int) -> bool:  # noqa: ARG002 (the same in all rounds)
        """Only sums are wanted, unless every party adds all of the noise."""
        return only_sums(self._recipe, self._facts)

    def take(self, round: int, replies: Mapping[str, Message]) -> None:  # noqa: ARG002
        """Take a step; without answers everything stays as it was."""
        shape, recipe = self._items.shape, self._recipe
        total = sum(
            (array_of(reply, "gradients", shape, who) for who, reply in replies.items()), np.zeros(shape)
        )
        self._items = self._space.received(self._items - recipe.step_size * total / recipe.steps)

    def last(self) -> Message:
        """Return the items as they are now."""
        return Finished(**self._all())

    def published(self) -> Factors:
        """Return the items; users who bring their own ratings can be folded in."""
        facts, factors = self._facts, self._space.factors
        model = without_biases(
            facts.catalogue[:0],
            facts.catalogue,
            0.0,
            np.zeros((0, factors), np.float32),
            self._items,
            scale=facts.scale,
            home=HomeFit(self._space.penalty * np.eye(factors), np.ones(facts.item_count)),
        )
        # A folded-in vector is the way from where all users begin, whose predictions are the items' biases.
        return replace(model, item_bias=self._items @ self._space.usual)

    def state(self) -> State:
        """Return the items."""
        return {"items": self._items}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._items = np.asarray(state["items"], np.float32)

    def _all(self) -> dict[str, Any]:
        return {"centre": np.array(0.0), "vectors": self._items}
