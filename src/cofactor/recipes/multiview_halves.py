"""The two halves of `MultiViewMF`. The same participant is one device, a party of many users, or a cohort."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import ConfigError, RunError
from cofactor.factors.model import Factors, HomeFit, seen_in
from cofactor.factors.views import Views
from cofactor.federation.door import COORDINATOR
from cofactor.federation.halves import Facts, Home, State, array_of
from cofactor.federation.messages import Message
from cofactor.randomness import Key, Seeds
from cofactor.recipes.device_steps import left_in
from cofactor.recipes.local_steps import prepared
from cofactor.recipes.models import without_biases
from cofactor.recipes.multiview_adam import Adam
from cofactor.recipes.multiview_kernels import solved_users, stepped_users
from cofactor.recipes.multiview_letters import (
    ITEM_SERVER,
    SUMS,
    ItemsAsked,
    ViewGradients,
    ViewsAsked,
    ViewsFinal,
)
from cofactor.recipes.multiview_sums import bounded_sum, plain_sum
from cofactor.recipes.multiview_weights import Entries, entries_of
from cofactor.recipes.summing_mode import into_sum, only_sums

if TYPE_CHECKING:
    from cofactor.recipes.multiview import MultiViewMF

Reals = NDArray[np.float64]
Fit = tuple[Reals, Reals]
"""Vectors of items, and of attributes."""

_BEGINNING = 0.01
"""Deviation of the vectors with which training begins."""
_FARTHEST = 100.0
"""The largest number that an attribute can be, on a scale on which most lie between -2 and 2."""


class ViewsParticipant:
    """One device, a party of many users, or a cohort of devices: users' vectors never leave it."""

    def __init__(self, recipe: "MultiViewMF", home: Home) -> None:
        """Draw decoys, once and for all."""
        self._recipe, self._home = recipe, home
        self._attributes = _attributes_of(home)
        self._users: Reals = np.zeros((home.party.ratings.user_count, recipe.factors))
        self._draw(home.door.random.new_key())

    def handle(self, round: int, message: Message) -> Message:
        """Move users' vectors, and add up the gradients of those who have not dropped out."""
        home, recipe = self._home, self._recipe
        if not isinstance(message, ViewsAsked):
            raise RunError(f"{home.party.name}: did not expect {type(message).__name__} here.")
        fit = self._read(message)
        if recipe.update == "semi-als":
            self._users = self._solved(fit)
        else:
            self._users = stepped_users(
                self._users, recipe.user_rate, *self._entries, fit[0], self._attributes, fit[1],
                recipe.side_weight, recipe.penalty,
            )  # fmt: skip
        left = left_in(round, home)
        count = np.array([left.sum()], np.int64)
        return ViewGradients(
            gradients=self._out(fit, left),
            count=home.door.public(count, largest_sum=home.facts.user_count),
        )

    def finish(self, message: Message) -> Factors:
        """Fit every user to all that counts, ratings and attributes: equation (8)."""
        if not isinstance(message, ViewsFinal):
            raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")
        ratings, fit = self._home.party.ratings, self._read(message)
        features = array_of(message, "features", self._recipe.shapes(self._home.facts)[2], COORDINATOR)
        return without_biases(
            ratings.user_ids,
            ratings.item_ids,
            0.0,
            self._solved(fit).astype(np.float32),
            fit[0].astype(np.float32),
            seen=seen_in(ratings),
            **known_of(self._recipe, self._home.facts, fit[1], features),
        )

    def state(self) -> State:
        """Return the users' vectors, from which steps go on, and what decoys follow from."""
        return {"users": self._users, "decoys": self._key}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._users = np.asarray(state["users"], np.float64)
        self._draw(np.asarray(state["decoys"], np.uint32))

    def _draw(self, key: Key) -> None:
        self._key, home = key, self._home
        ratings = prepared(home, None)
        self._entries: Entries = entries_of(ratings, self._recipe.unrated, home.facts.item_count, key)

    def _read(self, message: Message) -> Fit:
        """Read vectors; whatever comes is shortened, so that arithmetic on them cannot fail."""
        recipe, facts = self._recipe, self._home.facts
        items, attributes, _ = recipe.shapes(facts)
        return (
            recipe.received(array_of(message, "items", items, COORDINATOR), facts),
            recipe.received(array_of(message, "attributes", attributes, COORDINATOR), facts),
        )

    def _solved(self, fit: Fit) -> Reals:
        recipe = self._recipe
        return solved_users(
            *self._entries, fit[0], self._attributes, fit[1], recipe.side_weight, recipe.penalty
        )

    def _out(self, fit: Fit, left: NDArray[np.bool_]) -> NDArray[np.int64]:
        recipe, home = self._recipe, self._home
        # Whose vector is 0 adds nothing. Who has no ratings adds nothing either, whatever the attributes:
        # what a user adds is then bounded beside having rated nothing, of which a guarantee speaks.
        telling = left & (home.party.ratings.by_user.sizes > 0)
        users = self._users * telling[:, None]
        numbers = (users, self._entries, fit[0], self._attributes, fit[1])
        if home.schedule is None:
            most = recipe.most(home.facts)
            bounded = plain_sum(*numbers, step=recipe.grid().step, most=most * int(left.sum()))
        else:
            bounded = bounded_sum(*numbers, recipe.grid(), recipe.longest(), home.door.random)
            most = int(bounded.bound.size)
        # A party of many users adds noise once; in a cohort every device adds its own.
        devices = int(left.sum()) if home.facts.cohort else 1
        largest = home.facts.user_count * most
        return into_sum(home, recipe, SUMS, bounded, largest_sum=largest, devices=devices)


class ViewsCoordinator:
    """Moves vectors of items and of attributes down the sum of all gradients: equations (4) to (7)."""

    def __init__(self, recipe: "MultiViewMF", facts: Facts, seed: int) -> None:
        """Begin with vectors that depend on nothing private."""
        self._recipe, self._facts = recipe, facts
        items, attributes, features = recipe.shapes(facts)
        self._items, self._rows = items[0], items[0] + attributes[0]
        random = Seeds(seed).generator("shared vectors")
        self._vectors: Reals = random.normal(0.0, _BEGINNING, (self._rows, recipe.factors))
        self._adam = Adam(recipe, self._vectors.shape)
        self._features: Reals = np.zeros(features)
        self._by_features: Reals = np.zeros(items)

    @property
    def rounds(self) -> int:
        """How often gradients are added up."""
        return self._recipe.turns

    @property
    def roles(self) -> tuple[str, ...]:
        """The item server, if items have features."""
        return self._recipe.roles(self._facts)

    def ask_role(self, role: str, round: int) -> Message:  # noqa: ARG002 (the same in all rounds)
        """Ask how items should move to fit their features."""
        return ItemsAsked(items=self._all["items"])

    def take_role(self, role: str, round: int, message: Message) -> None:  # noqa: ARG002
        """Take that in; whoever does not answer is taken at the last word."""
        self._by_features = array_of(message, "gradients", self._by_features.shape, ITEM_SERVER)
        self._features = array_of(message, "features", self._features.shape, ITEM_SERVER)

    def ask(self, round: int) -> Message:  # noqa: ARG002 (the same in all rounds)
        """Ask for gradients."""
        return ViewsAsked(**self._all)

    def sums(self, round: int) -> bool:  # noqa: ARG002 (the same in all rounds)
        """Only sums are wanted, unless every party adds all of the noise."""
        return only_sums(self._recipe, self._facts)

    def take(self, round: int, replies: Mapping[str, Message]) -> None:  # noqa: ARG002
        """Take a step; users who did not answer are taken to be like the others.

        The derivative by U has lambda1 here, which equation (5) leaves out.
        """
        count, total = 0, np.zeros(self._vectors.shape, np.int64)
        for sender, reply in replies.items():
            count += int(array_of(reply, "count", (1,), sender)[0])
            total = total + array_of(reply, "gradients", total.shape, sender)
        if count < 1:
            return
        recipe, facts = self._recipe, self._facts
        told = recipe.grid().decoded(total, recipe.factors) * (facts.user_count / count)
        told[self._items :] *= recipe.side_weight
        told[: self._items] += recipe.side_weight * self._by_features
        gradient = -2 * told + 2 * recipe.penalty * self._vectors
        self._vectors = self._adam.moved(self._vectors, gradient)

    def last(self) -> Message:
        """Return all vectors as they are now."""
        return ViewsFinal(**self._all, features=self._features)

    def published(self) -> Factors:
        """Return a model of items and both views: it serves users who bring ratings, or only attributes."""
        facts, nobody = self._facts, np.zeros((0, self._recipe.factors), np.float32)
        return without_biases(
            facts.catalogue[:0],
            facts.catalogue,
            0.0,
            nobody,
            self._vectors[: self._items].astype(np.float32),
            **known_of(self._recipe, facts, self._vectors[self._items :], self._features),
        )

    @property
    def _all(self) -> dict[str, Any]:
        told = self._vectors.astype(np.float32)
        return {"items": told[: self._items], "attributes": told[self._items :]}

    def state(self) -> State:
        """Return all vectors, and what steps remember."""
        own = {"vectors": self._vectors, "features": self._features, "by features": self._by_features}
        return own | {f"adam {name}": value for name, value in self._adam.state().items()}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._vectors = np.asarray(state["vectors"], np.float64)
        self._features = np.asarray(state["features"], np.float64)
        self._by_features = np.asarray(state["by features"], np.float64)
        self._adam.restore({name: state[f"adam {name}"] for name in self._adam.state()})


def known_of(recipe: "MultiViewMF", facts: Facts, attributes: Reals, features: Reals) -> dict[str, Any]:
    """Return what a model needs for users and items that it has never met."""
    views = None
    if facts.attributes is not None or facts.public_items is not None:
        views = Views.learned(
            attributes,
            features,
            ridge=recipe.penalty / recipe.side_weight,
            attributes=facts.attributes,
            public_items=facts.public_items,
        )
    home = HomeFit(recipe.penalty * np.eye(recipe.factors), np.ones(facts.item_count))
    return {"scale": facts.scale, "home": home, "views": views}


def _attributes_of(home: Home) -> Reals:
    """Return the users' attributes, as many columns as are coded; what is missing is NaN."""
    count, coding = home.party.ratings.user_count, home.facts.attributes
    width = 0 if coding is None else coding.width
    if home.party.attributes is None or coding is None:
        return np.full((count, width), np.nan)
    if home.party.attributes.shape != (count, width):
        raise ConfigError(f"{home.party.name}: attributes are not coded as all agreed.")
    return np.clip(home.party.attributes.astype(np.float64), -_FARTHEST, _FARTHEST)
