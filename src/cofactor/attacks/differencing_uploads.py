"""HDPMF as Algorithm 1 of Hu and Fang (2023) has it, message by message: single users upload gradients.

It exists to be attacked. `HDPMF.as_published()` makes the paper's tables, one rating at a time; this sends
what line 5 of the algorithm sends, so that the recommender sees what a recommender would.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cofactor.config import not_negative, one_of, plain_numbers, positive, whole
from cofactor.errors import ConfigError, RunError
from cofactor.factors.model import Factors, HomeFit, seen_in
from cofactor.federation.door import COORDINATOR
from cofactor.federation.halves import Facts, Home, Promise, State, array_of
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.noise import gaussian
from cofactor.privacy.schedule import Schedule
from cofactor.randomness import Seeds
from cofactor.recipes.hdpmf_fit import Noise, PerRating, initial
from cofactor.recipes.hdpmf_published import items_weights
from cofactor.recipes.models import without_biases

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

_NO_BUDGET = (
    "PublishedUploads takes no budget: what is claimed for it cannot be proved, and it is there to show "
    "that. Leave the budget out, and set epsilon; or use HDPMF(), which keeps what it promises."
)
_SPREAD = 0.01
"""Deviation of the coordinates at which users begin, as in `HDPMF.as_published()`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RatersAsked(Message):
    """The recommender asks who has rated what, to hand out what their noise is made with."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Raters(Message):
    """How many users of a party have rated each item: of a single user, which items."""

    counts: Integers


@dataclass(frozen=True, kw_only=True, eq=False)
class UploadsAsked(Message):
    """The recommender asks for an epoch's gradients."""

    vectors: Reals
    """A vector for each item."""
    spreads: Reals
    """Deviation of the noise that each rater adds to each of its numbers."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Uploads(Message):
    """What users send to the recommender: line 5 of Algorithm 1. A party of many sends the sum of theirs."""

    items: Integers
    """The items that they have rated, by their places in the catalogue."""
    gradients: Reals
    """2 (u . v - W R) u, and noise: a row for each of these items."""


@dataclass(frozen=True, kw_only=True, eq=False)
class UploadsFinal(Message):
    """The items as they are at the end."""

    vectors: Reals


@dataclass(frozen=True, kw_only=True)
class PublishedUploads:
    """Algorithm 1 of HDPMF, in which the recommender sees each user's gradients. Not private."""

    split: ClassVar[Split] = "on-device"
    splits: ClassVar[tuple[Split, ...]] = ("on-device", "horizontal")
    units: ClassVar[tuple[Unit, ...]] = ("rating",)
    takes_weights: ClassVar[tuple[Unit, ...]] = ("rating",)
    messages: ClassVar[tuple[type[Message], ...]] = (RatersAsked, Raters, UploadsAsked, Uploads, UploadsFinal)

    factors: int = 10
    """Length of each user's and item's vector, K."""
    rate: float = 0.001
    """Size of the first steps; it falls as in `PerRating`."""
    penalty: float = 0.01
    """Weight of the squared length of vectors, lambda."""
    epochs: int = 100
    """How often gradients are sent, T."""
    epsilon: float = 1.0
    """What is claimed for a rating of weight 1."""
    noise: Noise = "fixed"
    """Drawn once for all epochs, as Theorem 2 has it; "fresh" in each of them; or "none"."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        one_of(("fresh", "fixed", "none"), noise=self.noise)
        whole(factors=self.factors, epochs=self.epochs)
        positive(rate=self.rate, epsilon=self.epsilon)
        not_negative(penalty=self.penalty)

    @property
    def not_private(self) -> str:
        """Why it has no guarantee."""
        return (
            "Not private: the recommender sees single users' gradients, and noise that is drawn once goes "
            "away in the difference of two of them, while noise drawn anew costs as much again each time."
        )

    def settled(self, facts: Facts, budget: Budget | None) -> Self:  # noqa: ARG002 (nothing is open)
        """Return the recipe as it is; refuse a budget."""
        if budget is not None:
            raise ConfigError(_NO_BUDGET)
        return self

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:  # noqa: ARG002 (there is none)
        """Refuse: nothing that it releases can be accounted for."""
        raise ConfigError(_NO_BUDGET)

    def promise(self, facts: Facts, budget: Budget) -> Promise:  # noqa: ARG002 (there is none)
        """Refuse: there is nothing to promise."""
        raise ConfigError(_NO_BUDGET)

    def participant(self, home: Home) -> "UploadingUsers":
        """Return the half of one user, or of a party of many."""
        return UploadingUsers(self, home)

    def coordinator(self, facts: Facts, seed: int) -> "Recommender":
        """Return the recommender's half."""
        return Recommender(self, facts, seed)

    def rate_in(self, epoch: int) -> float:
        """Return the size of the steps in an epoch, counted from 0."""
        schedule = PerRating(method="hdpmf", rate=self.rate, epochs=self.epochs)
        return schedule.rate_in(epoch)

    def scale_of(self, facts: Facts) -> float:
        """Return the scale of the Laplace noise that all raters of an item add together: Theorem 2."""
        if self.noise == "none":
            return 0.0
        return 2 * math.sqrt(self.factors) * (facts.scale.high - facts.scale.low) / self.epsilon


class UploadingUsers:
    """One user's device, or a party of many users who upload together."""

    def __init__(self, recipe: PublishedUploads, home: Home) -> None:
        """Begin with a vector for each user, and noise that is still to be drawn."""
        self._recipe, self._home, ratings = recipe, home, home.party.ratings
        own = home.party.weights
        users = np.ones(ratings.user_count) if own is None else own
        self._owners, self._index = ratings.users.astype(np.int64), ratings.items.astype(np.int64)
        self._weights = users[self._owners] * items_weights(home.facts)[self._index]
        self._targets = self._weights * ratings.values
        self._user_weights = users
        shape = (ratings.user_count, recipe.factors)
        self._users: Reals = gaussian(shape, _SPREAD, home.door.random).astype(np.float64)
        self._draws: Reals = np.zeros((0, recipe.factors))

    def handle(self, round: int, message: Message) -> Message:
        """Say what was rated; then, in every epoch, take a step and upload gradients."""
        door = self._home.door
        if isinstance(message, RatersAsked):
            counts = np.bincount(self._index, minlength=self._home.facts.item_count)
            return Raters(counts=door.unprotected(counts.astype(np.int64)))
        if not isinstance(message, UploadsAsked):
            raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")
        shape = (self._home.facts.item_count, self._recipe.factors)
        vectors = array_of(message, "vectors", shape, COORDINATOR)
        if round > 2:
            self._step(vectors, self._recipe.rate_in(round - 3))
        items, sums = self._gradients(vectors, array_of(message, "spreads", shape, COORDINATOR))
        return Uploads(items=door.unprotected(items), gradients=door.unprotected(sums))

    def finish(self, message: Message) -> Factors:
        """Return the users' models, divided by their weights again (lines 13 to 17)."""
        ratings, facts = self._home.party.ratings, self._home.facts
        shape = (facts.item_count, self._recipe.factors)
        items = array_of(message, "vectors", shape, COORDINATOR) / items_weights(facts)[:, None]
        users = self._users / self._user_weights[:, None]
        return without_biases(
            ratings.user_ids,
            ratings.item_ids,
            0.0,
            users.astype(np.float32),
            items.astype(np.float32),
            scale=facts.scale,
            seen=seen_in(ratings),
        )

    def state(self) -> State:
        """Return the users' vectors, and the noise if it is drawn once."""
        return {"users": self._users, "draws": self._draws}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._users, self._draws = (np.array(state[name], np.float64) for name in ("users", "draws"))

    def _step(self, vectors: Reals, rate: float) -> None:
        """Move users against their gradients (line 11); none is longer than 1, as the proof has it."""
        rows = 2 * self._missed(vectors)[:, None] * vectors[self._index]
        toward = np.zeros_like(self._users)
        np.add.at(toward, self._owners, rows)
        users = self._users - rate * (toward + 2 * self._recipe.penalty * self._users)
        self._users = users / np.maximum(np.linalg.norm(users, axis=1, keepdims=True), 1.0)

    def _gradients(self, vectors: Reals, spreads: Reals) -> tuple[Integers, Reals]:
        """Return the items that were rated, and the gradients of each with its noise."""
        rows = 2 * self._missed(vectors)[:, None] * self._users[self._owners]
        if self._recipe.noise == "fresh" or not len(self._draws):
            self._draws = gaussian(rows.shape, 1.0, self._home.door.random).astype(np.float64)
        rows = rows + spreads[self._index] * self._draws
        items, places = np.unique(self._index, return_inverse=True)
        sums = np.zeros((len(items), self._recipe.factors))
        np.add.at(sums, places, rows)
        return items, sums

    def _missed(self, vectors: Reals) -> Reals:
        predicted = np.einsum("rk,rk->r", self._users[self._owners], vectors[self._index])
        return np.asarray(predicted - self._targets)


class Recommender:
    """Moves items against the gradients that it is sent, and sees every one of them."""

    def __init__(self, recipe: PublishedUploads, facts: Facts, seed: int) -> None:
        """Begin where `HDPMF.as_published()` does."""
        self._recipe, self._facts, self._seed = recipe, facts, seed
        self._items = initial("items", (facts.item_count, recipe.factors), seed)
        self._raters: Reals = np.zeros(facts.item_count)

    @property
    def rounds(self) -> int:
        """One to ask who rated what, and as many as epochs."""
        return 1 + self._recipe.epochs

    def ask(self, round: int) -> Message:
        """Ask who rated what, and then for gradients."""
        if round == 1:
            return RatersAsked()
        return UploadsAsked(vectors=self._items, spreads=self._spreads(round))

    def sums(self, round: int) -> bool:  # noqa: ARG002 (never)
        """The recommender sees single messages."""
        return False

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Take a step down the sum of all gradients (line 7)."""
        total = np.zeros(self._items.shape)
        for sender, reply in replies.items():
            if round == 1:
                self._raters = self._raters + array_of(reply, "counts", self._raters.shape, sender)
                continue
            items = np.asarray(reply.arrays["items"], np.int64)
            rows = array_of(reply, "gradients", (len(items), self._recipe.factors), sender)
            np.add.at(total, items, rows)
        if round > 1:
            rate = self._recipe.rate_in(round - 2)
            self._items = self._items - rate * (total + 2 * self._recipe.penalty * self._items)

    def last(self) -> Message:
        """Return the items as they are now."""
        return UploadsFinal(vectors=self._items)

    def published(self) -> Factors:
        """Return the items; users who bring their own ratings can be folded in."""
        facts, recipe = self._facts, self._recipe
        items = self._items / items_weights(facts)[:, None]
        penalty = max(recipe.penalty, 1e-6) * np.eye(recipe.factors)
        return without_biases(
            facts.catalogue[:0],
            facts.catalogue,
            0.0,
            np.zeros((0, recipe.factors), np.float32),
            items.astype(np.float32),
            scale=facts.scale,
            home=HomeFit(penalty, np.ones(facts.item_count), 1.0),
        )

    def state(self) -> State:
        """Return the items, and how often each was rated."""
        return {"items": self._items, "raters": self._raters}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._items, self._raters = (np.array(state[name], np.float64) for name in ("items", "raters"))

    def _spreads(self, round: int) -> Reals:
        """Return the deviation of each rater's part of the noise: Theorem 3, with the root over h."""
        epoch: Any = round if self._recipe.noise == "fresh" else "all"
        chance = Seeds(self._seed).generator(f"h of epoch {epoch}").standard_exponential(self._items.shape)
        raters = np.maximum(self._raters, 1.0)[:, None]
        return np.asarray(self._recipe.scale_of(self._facts) * np.sqrt(2 * chance / raters))
