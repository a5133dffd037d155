"""`ObjectivePerturbation`: a random slope in what each item's vector minimises (Hua, Xia and Zhong 2015).

Noise is drawn once, and not added to the result but to the objective. The proof takes the users' vectors as
given, and they are not: so this is a baseline, with an epsilon that is claimed, and no guarantee.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cofactor.config import plain_numbers, positive, whole
from cofactor.data.grouping import Grouped
from cofactor.errors import ConfigError, RunError
from cofactor.factors.bayes_kernels import pack, sum_moments, unpack
from cofactor.factors.model import Factors, HomeFit, seen_in
from cofactor.federation.halves import Facts, Home, Promise, State, array_of
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy import noise
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.schedule import Schedule
from cofactor.randomness import Random, Seeds
from cofactor.recipes.models import without_biases
from cofactor.recipes.shared_vectors import Begin, Vectors

Floats = NDArray[np.float32]
Reals = NDArray[np.float64]

_ALTERNATIONS = 10
"""How often users and items are fitted to each other, without noise, before the items are fitted with it."""
_NO_BUDGET = (
    "ObjectivePerturbation takes no budget: its claim cannot be proved. Leave the budget out, and set "
    "claimed_epsilon."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Thanks(Message):
    """The coordinator has what it asked for."""


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation:
    """Item vectors of a perturbed objective, for parties who hold different items of the same users.

    A baseline. Each party fits its users by itself, and they stay there; nothing is averaged. It is not
    private, whatever is claimed: `not_private` says why.
    """

    split: ClassVar[Split] = "vertical"
    units: ClassVar[tuple[Unit, ...]] = ("rating",)
    messages: ClassVar[tuple[type[Message], ...]] = (Begin, Vectors, Thanks)

    claimed_epsilon: float = 1.0
    """What the paper would call epsilon: for the value of one rating, if the users' vectors were given."""
    factors: int = 20
    """Length of each user's and item's vector."""
    regularization: float = 5.0
    """Weight of the squared length of each vector beside the squared errors: lambda in the paper."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        positive(claimed_epsilon=self.claimed_epsilon, regularization=self.regularization)
        whole(factors=self.factors)

    @property
    def not_private(self) -> str:
        """Why it has no guarantee."""
        return (
            f"Not private: epsilon {self.claimed_epsilon:g} is claimed for item vectors as if the user "
            "vectors behind them were given, but these were fitted to the same ratings without noise. And "
            "the claim is about the values of ratings only, not about who rated what."
        )

    def settled(self, facts: Facts, budget: Budget | None) -> Self:  # noqa: ARG002 (nothing is left to choose)
        """Return the recipe as it is; refuse a budget."""
        if budget is not None:
            raise ConfigError(_NO_BUDGET)
        return self

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:  # noqa: ARG002 (there is none)
        """Refuse: nothing that it releases can be accounted for."""
        raise ConfigError(_NO_BUDGET)

    def participant(self, home: Home) -> "ObjectiveParticipant":
        """Return a party's half."""
        return ObjectiveParticipant(self, home)

    def coordinator(self, facts: Facts, seed: int) -> "ObjectiveCoordinator":  # noqa: ARG002 (no chance here)
        """Return the coordinator's half."""
        return ObjectiveCoordinator(self, facts)

    def promise(self, facts: Facts, budget: Budget) -> Promise:  # noqa: ARG002 (there is none)
        """Refuse: there is nothing to promise."""
        raise ConfigError(_NO_BUDGET)

    def home_fit(self, items: int) -> HomeFit:
        """Return how a user's vector follows from the user's ratings once item vectors are known."""
        return HomeFit(self.regularization * np.eye(self.factors), np.ones(items))


class ObjectiveParticipant:
    """A party: item vectors leave it once, user vectors never."""

    def __init__(self, recipe: ObjectivePerturbation, home: Home) -> None:
        """Take the party's ratings, limited to the scale and less its middle."""
        self._recipe = recipe
        self._home = home
        scale, ratings = home.facts.scale, home.party.ratings.by_user
        values = np.clip(ratings.values, np.float32(scale.low), np.float32(scale.high))
        self._ratings = Grouped(ratings.ptr, ratings.index, values - np.float32(_middle(home.facts)))
        self._items: Floats | None = None

    def handle(self, round: int, message: Message) -> Message:  # noqa: ARG002 (there is one round)
        """Let the perturbed item vectors out."""
        if not isinstance(message, Begin):
            raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")
        return Vectors(vectors=self._home.door.unprotected(self._perturbed()))

    def finish(self, message: Message) -> Factors:  # noqa: ARG002 (it tells nothing)
        """Fit the users to the perturbed items, which needs no privacy at home."""
        ratings, items = self._home.party.ratings, self._perturbed()
        return without_biases(
            ratings.user_ids,
            ratings.item_ids,
            _middle(self._home.facts),
            ridge(self._ratings, items, self._recipe.regularization),
            items,
            scale=self._home.facts.scale,
            seen=seen_in(ratings),
            home=self._recipe.home_fit(ratings.item_count),
        )

    def state(self) -> State:
        """Return the item vectors: noise is drawn once."""
        return {} if self._items is None else {"items": self._items}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._items = np.asarray(state["items"], np.float32) if "items" in state else None

    def _perturbed(self) -> Floats:
        """Return the item vectors; fitted, and their noise drawn, when first asked for."""
        if self._items is None:
            recipe, home = self._recipe, self._home
            by_item = self._ratings.turned(home.party.ratings.item_count)
            random = Seeds(home.seed).generator(f"items of {home.party.name}")
            users = fitted_users(self._ratings, by_item, recipe, random)
            shape = (home.party.ratings.item_count, recipe.factors)
            slopes = random_slopes(shape, slope_size(recipe, home.facts), home.door.random)
            self._items = ridge(by_item, users, recipe.regularization, slopes)
        return self._items


class ObjectiveCoordinator:
    """Collects the items' vectors."""

    def __init__(self, recipe: ObjectivePerturbation, facts: Facts) -> None:
        """Begin with nothing."""
        self._recipe = recipe
        self._facts = facts
        self._items: Floats | None = None

    @property
    def rounds(self) -> int:
        """One."""
        return 1

    def ask(self, round: int) -> Message:  # noqa: ARG002 (there is one)
        """Ask for item vectors."""
        return Begin()

    def sums(self, round: int) -> bool:  # noqa: ARG002 (never)
        """Every party has items of its own: there is nothing to add up."""
        return False

    def take(self, round: int, replies: Mapping[str, Message]) -> None:  # noqa: ARG002 (there is one)
        """Keep the items of a party that is the only one: vectors of different fits do not go together."""
        for party, reply in replies.items():
            shape = (self._facts.items[self._facts.place(party)], self._recipe.factors)
            items = array_of(reply, "vectors", shape, party)
            if len(self._facts.parties) == 1:
                self._items = np.asarray(items, np.float32)

    def last(self) -> Message:
        """Say that it is over."""
        return Thanks()

    def published(self) -> Factors | None:
        """Return the item vectors of the only party; users who bring their own ratings can be folded in."""
        if self._items is None:
            return None
        facts, recipe = self._facts, self._recipe
        return without_biases(
            facts.shared_ids[:0],
            facts.catalogue,
            _middle(facts),
            np.zeros((0, recipe.factors), np.float32),
            self._items,
            scale=facts.scale,
            home=recipe.home_fit(facts.item_count),
        )

    def state(self) -> State:
        """Return the items' vectors."""
        return {} if self._items is None else {"items": self._items}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._items = np.asarray(state["items"], np.float32) if "items" in state else None


def fitted_users(
    by_user: Grouped, by_item: Grouped, recipe: ObjectivePerturbation, random: np.random.Generator
) -> Floats:
    """Fit users and items to each other without noise, and return the users: none is longer than 1."""
    shape = (len(by_item.sizes), recipe.factors)
    items = random.normal(0.0, 1 / np.sqrt(recipe.factors), shape).astype(np.float32)
    for _ in range(_ALTERNATIONS):
        users = shortened(ridge(by_user, items, recipe.regularization))
        items = ridge(by_item, users, recipe.regularization)
    return users


def shortened(vectors: Floats) -> Floats:
    """Shorten vectors that are longer than 1, which is what the claim assumes of users."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    # Rounded to float32, a quotient may be longer than 1 by a few units in the last place.
    return np.asarray(vectors / np.maximum(lengths * (1 + 1e-6), 1.0), np.float32)


def ridge(ratings: Grouped, others: Floats, regularization: float, slopes: Reals | None = None) -> Floats:
    """Return the vector v of each group that fits its ratings x of others u best.

    It minimises sum (x - <u, v>)^2 + regularization |v|^2 + <slope, v>; without slopes, the last is left out.
    """
    width = others.shape[1]
    products = pack(others.astype(np.float64)[:, :, None] * others[:, None, :])
    moments = np.hstack([np.ones((len(others), 1)), others, products]).astype(np.float32)
    plain, by_target = sum_moments(ratings.ptr, ratings.index, ratings.values, moments, width + 1)
    squares = unpack(plain[:, width + 1 :], width) + regularization * np.eye(width)
    wanted = by_target[:, 1:] - (0.0 if slopes is None else slopes / 2)
    return np.asarray(np.linalg.solve(squares, wanted[:, :, None])[:, :, 0], np.float32)


def slope_size(recipe: ObjectivePerturbation, facts: Facts) -> float:
    """Return the scale of slopes that the claim asks for.

    A rating x of a user u appears in the gradient at v as 2 (<u, v> - x) u. Another value changes that by at
    most 2 (high - low), as u is not longer than 1, and a slope that differs by as much makes up for it.
    """
    return 2 * (facts.scale.high - facts.scale.low) / recipe.claimed_epsilon


def random_slopes(shape: tuple[int, int], size: float, random: Random) -> Reals:
    """Return vectors b, one a row, of density in proportion to exp(-|b| / size)."""
    # In p dimensions the length then has a Gamma law of shape p: a sum of p exponential numbers.
    lengths = size * noise.exponential(shape, random).sum(axis=1, keepdims=True)
    directions = noise.gaussian(shape, 1.0, random).astype(np.float64)
    return np.asarray(lengths * directions / np.linalg.norm(directions, axis=1, keepdims=True))


def _middle(facts: Facts) -> float:
    return (facts.scale.low + facts.scale.high) / 2
