"""HDPMF, PDPMF and DPMF as Hu and Fang ran them, on the protocol: epoch by epoch, and without a guarantee."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import ConfigError, RunError
from cofactor.factors.model import Factors, HomeFit
from cofactor.federation.door import COORDINATOR
from cofactor.federation.halves import Facts, Home, Promise, State, array_of
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.schedule import Schedule
from cofactor.recipes.hdpmf_fit import Descent, PerRating, initial
from cofactor.recipes.models import without_biases
from cofactor.recipes.shared_vectors import Finished, Shared, Vectors

Reals = NDArray[np.float64]

_NO_BUDGET = (
    "HDPMF, PDPMF and DPMF as published take no budget: what is claimed for them cannot be proved. Leave the "
    "budget out, and set epsilon; or use HDPMF(), which keeps what it promises."
)
_ONE_PLACE = (
    "HDPMF, PDPMF and DPMF as published are simulations, in which one process plays all devices: use "
    "Federation.on_device(ratings). Real devices would give their ratings away; let them use HDPMF()."
)
_CLAIMS = {
    "hdpmf": "epsilon {epsilon:g} times W is claimed for a rating of weight W",
    "pdpmf": "epsilon {epsilon:g} times W is claimed for a rating of weight W, which takes part by chance",
    "dpmf": "epsilon {epsilon:g} times the least W of all is claimed for every rating",
}
_FRESH = (
    "Noise for that is drawn anew in each of {epochs:,} epochs, which cost {epochs:,} times as much in all: "
    "for epsilon {epsilon:g} put {total:g}."
)
_FRESH_BY_CHANCE = (
    "Noise for the mean promise is drawn anew in each of {epochs:,} epochs, and who takes part does so in "
    "all of them: that costs {epochs:,} times the mean promise, and chance takes next to nothing off it for "
    "those who were promised less."
)
_FIXED = (
    "Noise for that is drawn once for {epochs:,} epochs: the difference of what a user sends in two of them "
    "has no noise in it, and ratings follow from a few such differences."
)
_SINGLE = (
    "The recommender sees single messages, and of the noise of an item with n raters each has a part that is "
    "the root of n times too small: 10 times the claim where n is 100, in one epoch."
)
_FITTED = (
    "The proof takes users' vectors, none longer than 1, as given, but they are fitted to the same ratings: "
    "one rating changes all messages of its user. And the claim is about values, not about who rated what."
)


@dataclass(frozen=True, kw_only=True)
class PublishedHDPMF(PerRating):
    """One of the paper's methods, for a simulation of devices. `not_private` says what it really costs.

    It trains what `fit` does, an epoch a round; item vectors go to the recommender and back.
    """

    split: ClassVar[Split] = "on-device"
    units: ClassVar[tuple[Unit, ...]] = ("rating",)
    takes_weights: ClassVar[tuple[Unit, ...]] = ("rating",)
    messages: ClassVar[tuple[type[Message], ...]] = (Shared, Vectors, Finished)

    @property
    def not_private(self) -> str:
        """Why it has no guarantee, with what it costs."""
        if not self.noisy:
            return "Not private: no noise was added to anything that was sent."
        claim = _CLAIMS[self.method].format(epsilon=self.epsilon)
        fresh = _FRESH_BY_CHANCE if self.method == "pdpmf" else _FRESH
        costs = fresh if self.noise == "fresh" else _FIXED
        cost = costs.format(epochs=self.epochs, epsilon=self.epsilon, total=self.epochs * self.epsilon)
        return f"Not private: {claim}. {cost} {_SINGLE} {_FITTED}"

    def settled(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe as it is; refuse a budget, and devices that are real."""
        if budget is not None:
            raise ConfigError(_NO_BUDGET)
        if not facts.cohort:
            raise ConfigError(_ONE_PLACE)
        return self

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:  # noqa: ARG002 (there is none)
        """Refuse: nothing that it releases can be accounted for."""
        raise ConfigError(_NO_BUDGET)

    def participant(self, home: Home) -> "PublishedParticipant":
        """Return the half of all devices together."""
        return PublishedParticipant(self, home)

    def coordinator(self, facts: Facts, seed: int) -> "PublishedCoordinator":
        """Return the recommender's half."""
        return PublishedCoordinator(self, facts, seed)

    def promise(self, facts: Facts, budget: Budget) -> Promise:  # noqa: ARG002 (there is none)
        """Refuse: there is nothing to promise."""
        raise ConfigError(_NO_BUDGET)

    def predicting(self, items: Reals, facts: Facts) -> Reals:
        """Return item vectors as predictions take them: divided by their weights, where ratings were."""
        return items / items_weights(facts)[:, None] if self.divides else items


class PDPMF:
    """Factorization from ratings that take part by chance (Zhang et al. 2019): as published only.

    Mended, it is `HDPMF` with PersonalBudget(mechanism="sampling"): the budget says who takes part, and the
    recipe is the same.
    """

    def __init__(self) -> None:
        """Refuse: there is no such recipe, but for the published one."""
        raise ConfigError(
            "PDPMF is there as published only: PDPMF.as_published(). For a guarantee that holds, use HDPMF() "
            'with PersonalBudget(mechanism="sampling").'
        )

    @staticmethod
    def as_published(**settings: Any) -> PublishedHDPMF:
        """Return it as HDPMF's tables compare with it, with noise for the mean budget: not private.

        Settings are those of `HDPMF.as_published`.
        """
        return PublishedHDPMF(method="pdpmf", **({"rate": 0.005} | settings))


class DPMF:
    """Factorization with the strictest privacy for all (Hua, Xia and Zhong 2015): as published only.

    Mended, it is `HDPMF` with a plain Budget, of the strictest epsilon.
    """

    def __init__(self) -> None:
        """Refuse: there is no such recipe, but for the published one."""
        raise ConfigError(
            "DPMF is there as published only: DPMF.as_published(). For a guarantee that holds, use HDPMF() "
            "with a Budget of the strictest epsilon."
        )

    @staticmethod
    def as_published(**settings: Any) -> PublishedHDPMF:
        """Return it as HDPMF's tables compare with it, with noise for the strictest budget: not private.

        Settings are those of `HDPMF.as_published`.
        """
        return PublishedHDPMF(method="dpmf", **({"rate": 0.0005} | settings))


class PublishedParticipant:
    """All devices of a simulation: users' vectors and weights stay here."""

    def __init__(self, recipe: PublishedHDPMF, home: Home) -> None:
        """Take ratings and weights; whoever has none has weight 1."""
        own = home.party.weights
        users = np.ones(home.party.ratings.user_count) if own is None else own
        self._home = home
        self._descent = Descent(recipe, home.party.ratings, users, items_weights(home.facts), home.seed)

    def handle(self, round: int, message: Message) -> Message:
        """Go through all ratings once, and tell what became of the items."""
        if not isinstance(message, Shared):
            raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")
        self._read(message)
        self._descent.run(round - 1)
        return Vectors(vectors=self._home.door.unprotected(self._descent.items))

    def finish(self, message: Message) -> Factors:
        """Return the devices' models."""
        self._read(message)
        return self._descent.finished()

    def state(self) -> State:
        """Return the users' vectors: items come with the next question."""
        return {"users": self._descent.users}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._descent.users = np.array(state["users"], np.float64)

    def _read(self, message: Message) -> None:
        found = array_of(message, "vectors", self._descent.items.shape, COORDINATOR)
        self._descent.items = np.array(found, np.float64)


class PublishedCoordinator:
    """The recommender: it hands item vectors on, as they came."""

    def __init__(self, recipe: PublishedHDPMF, facts: Facts, seed: int) -> None:
        """Begin where `fit` does."""
        self._recipe, self._facts = recipe, facts
        self._items = initial("items", (facts.item_count, recipe.factors), seed)

    @property
    def rounds(self) -> int:
        """As many as epochs."""
        return self._recipe.epochs

    def ask(self, round: int) -> Message:  # noqa: ARG002 (the same in all rounds)
        """Ask for an epoch."""
        return Shared(**self._all())

    def sums(self, round: int) -> bool:  # noqa: ARG002 (never)
        """The recommender sees what there is."""
        return False

    def take(self, round: int, replies: Mapping[str, Message]) -> None:  # noqa: ARG002
        """Take the items; without an answer they stay as they were."""
        for sender, reply in replies.items():
            self._items = np.array(array_of(reply, "vectors", self._items.shape, sender), np.float64)

    def last(self) -> Message:
        """Return the items as they are now."""
        return Finished(**self._all())

    def published(self) -> Factors:
        """Return the items; users who bring their own ratings can be folded in."""
        facts, recipe = self._facts, self._recipe
        return without_biases(
            facts.catalogue[:0],
            facts.catalogue,
            0.0,
            np.zeros((0, recipe.factors), np.float32),
            recipe.predicting(self._items, facts).astype(np.float32),
            scale=facts.scale,
            home=HomeFit(max(recipe.penalty, 1e-6) * np.eye(recipe.factors), np.ones(facts.item_count), 1.0),
        )

    def state(self) -> State:
        """Return the items."""
        return {"items": self._items}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._items = np.array(state["items"], np.float64)

    def _all(self) -> dict[str, Any]:
        return {"centre": np.array(0.0), "vectors": self._items}


def items_weights(facts: Facts) -> Reals:
    """Return the public weights of the items; 1 where nothing was said."""
    return np.ones(facts.item_count) if facts.weights is None else facts.weights.items
