"""The two halves of `HorizontalMF`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped
from cofactor.errors import RunError
from cofactor.factors.bayes import Bayes
from cofactor.factors.model import Factors, HomeFit, seen_in
from cofactor.federation.door import SUM
from cofactor.federation.halves import Facts, Home, State, array_of, weighted_mean
from cofactor.federation.messages import Message
from cofactor.randomness import Seeds
from cofactor.recipes.home_fit import Users, fit_with_released, fitted_tastes, fitted_users
from cofactor.recipes.local_steps import (
    centre_of,
    descent_of,
    mean_of,
    prepared,
    released_total,
    shortened,
    take,
    weight_of,
    weighted,
)
from cofactor.recipes.models import without_biases
from cofactor.recipes.private_descent import PrivateDescent
from cofactor.recipes.shared_vectors import Begin, Finished, Shared, Vectors
from cofactor.recipes.steps import Steps
from cofactor.recipes.summed_steps import after_sum, item_gradients
from cofactor.recipes.summing_mode import adds_gradients, grain_of, only_sums

if TYPE_CHECKING:
    from cofactor.recipes.horizontal import HorizontalMF

Floats = NDArray[np.float32]

STEPS = "item vectors"
"""The release, as ledgers and plans name it."""
_SPREAD = 0.3
"""How far from 0 the coordinates of centred items begin, their biases apart."""
_FOLD_IN = 2.0
"""Penalty on the vector of a user who is folded in later, counted in ratings."""


class HorizontalParticipant:
    """A party: its users' vectors never leave it."""

    def __init__(self, recipe: "HorizontalMF", home: Home) -> None:
        """Prepare the ratings: all of them for use at home, some of each user's for the steps."""
        self._recipe = recipe
        self._steps = Steps.of(recipe)
        self._home = home
        self._some = prepared(home, self._steps.most_ratings)
        self._users: Users | None = None
        self._taken = 0

    def handle(self, round: int, message: Message) -> Message:  # noqa: ARG002 (steps are counted, not rounds)
        """Take the local steps on the item vectors."""
        if isinstance(message, Begin):
            summed = adds_gradients(self._recipe, self._home.facts)
            return released_total(self._home, self._some, "user", summed=summed)
        if isinstance(message, Shared):
            return self._moved(message)
        raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")

    def finish(self, message: Message) -> Factors:
        """Fit the home model, with the released vectors as far as they help; or users' vectors alone."""
        centre, items = self._read(message)
        if isinstance(self._recipe.home, Bayes):
            return fit_with_released(self._recipe.home, self._home.party, items, self._home.seed)
        ratings, steps, users = self._home.party.ratings, self._steps, self._fitted(centre, items)
        size = np.float32(steps.unit_size(self._home.facts))
        model = without_biases(
            ratings.user_ids,
            ratings.item_ids,
            steps.offset(centre),
            users.vectors,
            items * size,
            scale=self._home.facts.scale,
            seen=seen_in(ratings),
        )
        return replace(model, user_bias=users.bias * size)

    def state(self) -> State:
        """Return the users' vectors, and how many steps were taken."""
        users = {} if self._users is None else self._users._asdict()
        return {"taken": np.array(self._taken), **users}

    def restore(self, state: State) -> None:
        """Go on from there; item vectors come with the next average."""
        self._taken = int(state["taken"])
        self._users = Users(state["bias"], state["vectors"]) if "vectors" in state else None

    def _read(self, message: Message) -> tuple[float, Floats]:
        """Read the average; whatever comes is shortened, so that no fit to ratings can fail because of it."""
        facts, steps = self._home.facts, self._steps
        items = array_of(message, "vectors", (facts.item_count, steps.factors), "the coordinator")
        return centre_of(message, facts), shortened(items, steps.radius(facts))

    def _moved(self, message: Message) -> Message:
        """Take the local steps; users that are trained along follow after each step, at home."""
        centre, items = self._read(message)
        descent, taken = self._descent(centre, items), self._taken
        self._taken += self._steps.local_steps
        rates = self._steps.rates(taken, self._taken)
        if (grain := grain_of(self._recipe, self._home.facts)) is not None:
            answer: Message = item_gradients(self._home, descent, STEPS, grain)
            self._follow(descent, rates[0])
            return answer
        summed = only_sums(self._recipe, self._home.facts)
        parts = rates.reshape(-1, 1) if self._recipe.users == "trained along" else [rates]
        for part in parts:
            moved = self._take(descent, part, summed)
            self._follow(descent, part[0])
        return weighted(self._home, moved) if summed else Vectors(vectors=moved)

    def _follow(self, descent: PrivateDescent, rate: float) -> None:
        """Let users that are trained along take a step, at home."""
        if self._recipe.users != "trained along":
            return
        slopes = descent.sums(both=True).users
        assert slopes is not None
        descent.users = descent.users - rate * slopes
        self._users = Users(np.zeros(len(descent.users), np.float32), descent.users)

    def _take(self, descent: PrivateDescent, rates: NDArray[np.float64], summed: bool) -> NDArray[Any]:
        facts = self._home.facts
        # The average makes each party's part of the gradient smaller: Li et al. 2022, eq. 5.
        faster = facts.user_count / facts.users[facts.place(self._home.party.name)]
        return take(
            self._home,
            descent,
            STEPS,
            steps=len(rates),
            rate_users=None,
            rate_items=rates * faster,
            sampling=self._steps.sampling,
            weight=weight_of(self._home) if summed else None,
        )

    def _descent(self, centre: float, items: Floats) -> PrivateDescent:
        """Take over the average. Users are fitted once, to where all items begin, or to every average."""
        if self._users is None or self._recipe.users == "refitted":
            self._users = self._begun(centre, items)
        return descent_of(
            self._home, self._some, self._users.vectors, items, self._steps, centre, self._users.bias
        )

    def _begun(self, centre: float, items: Floats) -> Users:
        if self._recipe.users != "trained along":
            return self._fitted(centre, items)
        random, count = Seeds(self._home.seed).generator("users"), self._home.party.ratings.user_count
        return Users(np.zeros(count, np.float32), self._steps.start("users", count, centre, random))

    def _fitted(self, centre: float, items: Floats) -> Users:
        """Fit users to all their ratings, which stays at home."""
        ratings, steps = prepared(self._home, None), self._steps
        size = np.float32(steps.unit_size(self._home.facts))
        values = (ratings.values - np.float32(steps.offset(centre))) / size
        own = Grouped(ratings.ptr, ratings.index, values)
        if steps.centred:
            return fitted_tastes(own, items)
        return fitted_users(own, items, steps.level(centre))


class HorizontalCoordinator:
    """Averages the items' vectors."""

    def __init__(self, recipe: "HorizontalMF", facts: Facts, seed: int) -> None:
        """Begin with item vectors that depend on nothing private."""
        self._recipe = recipe
        self._steps = Steps.of(recipe)
        self._facts = facts
        self._seed = seed
        self._asks_mean = self._steps.asks_mean
        self._centre = self._steps.beginning(facts)
        self._items = self._started()

    @property
    def rounds(self) -> int:
        """One for the mean, if it is not public, and T averages."""
        return self._asks_mean + self._steps.rounds

    def ask(self, round: int) -> Message:
        """Ask for the mean, or for steps."""
        return Begin() if self._asks_mean and round == 1 else Shared(**self._average())

    def sums(self, round: int) -> bool:
        """Say whether only the sum of the answers is wanted: of the mean, only where its noise is shared."""
        wanted = adds_gradients if self._asks_mean and round == 1 else only_sums
        return wanted(self._recipe, self._facts)

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Average what came back, or step against its sum; without any answer everything stays as it was."""
        if self._asks_mean and round == 1:
            self._centre = mean_of(replies, self._facts, "user")
            self._items = self._started()
        elif SUM in replies:
            taken = round - self._asks_mean - 1
            self._items = after_sum(self._items, replies[SUM], taken, self._recipe, self._facts)
        elif replies:
            shape = self._items.shape
            found = {party: array_of(reply, "vectors", shape, party) for party, reply in replies.items()}
            weights = dict(zip(self._facts.parties, map(float, self._facts.users), strict=True))
            self._items = weighted_mean(found, weights)

    def last(self) -> Message:
        """Return the last average."""
        return Finished(**self._average())

    def published(self) -> Factors:
        """Return the items' vectors; users who bring their own ratings can be folded in."""
        facts, steps = self._facts, self._steps
        size = np.float32(steps.unit_size(facts))
        return without_biases(
            facts.catalogue[:0],
            facts.catalogue,
            steps.offset(self._centre),
            np.zeros((0, steps.factors), np.float32),
            self._items * size,
            scale=facts.scale,
            home=HomeFit(_FOLD_IN * np.eye(steps.factors), np.ones(facts.item_count)),
        )

    def state(self) -> State:
        """Return the average."""
        return {"centre": np.array(self._centre), "items": self._items}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._centre, self._items = float(state["centre"]), np.asarray(state["items"], np.float32)

    def _average(self) -> dict[str, Any]:
        return {"centre": np.array(self._centre), "vectors": self._items}

    def _started(self) -> Floats:
        random, count = Seeds(self._seed).generator("shared items"), self._facts.item_count
        if not self._steps.centred:
            return self._steps.start("items", count, self._centre, random)
        items = random.normal(0.0, _SPREAD, (count, self._steps.factors)).astype(np.float32)
        items[:, 0] = 0.0  # their biases
        return items
