"""The two halves of `VerticalMF`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import RunError
from cofactor.factors.model import Factors, seen_in
from cofactor.federation.door import SUM
from cofactor.federation.halves import Facts, Home, State, array_of, weighted_mean
from cofactor.federation.messages import Message
from cofactor.randomness import Seeds
from cofactor.recipes.local_steps import (
    centre_of,
    descent_of,
    mean_of,
    prepared,
    released_total,
    take,
    unit_of,
    weight_of,
    weighted,
)
from cofactor.recipes.models import without_biases
from cofactor.recipes.private_descent import PrivateDescent
from cofactor.recipes.shared_vectors import Begin, Finished, Shared, Vectors
from cofactor.recipes.steps import Steps
from cofactor.recipes.summed_steps import after_sum, user_gradients
from cofactor.recipes.summing_mode import adds_gradients, grain_of, only_sums

if TYPE_CHECKING:
    from cofactor.recipes.vertical import VerticalMF

Floats = NDArray[np.float32]

STEPS, FINE_TUNING = "user and item vectors", "item vectors"
"""The releases, as ledgers and plans name them."""


class VerticalParticipant:
    """A party: its item vectors stay until the end, the users' come and go."""

    def __init__(self, recipe: "VerticalMF", home: Home) -> None:
        """Prepare the party's ratings; vectors come with the first average."""
        self._recipe = recipe
        self._steps = Steps.of(recipe)
        self._home = home
        self._ratings = prepared(home, self._steps.most_ratings)
        self._descent: PrivateDescent | None = None
        self._centre = 0.0
        self._taken = 0
        self._given = False

    def handle(self, round: int, message: Message) -> Message:  # noqa: ARG002 (steps are counted, not rounds)
        """Take the local steps, or give the item vectors away at the end."""
        if isinstance(message, Begin):
            return released_total(
                self._home,
                self._ratings,
                unit_of(self._home),
                summed=adds_gradients(self._recipe, self._home.facts),
            )
        if isinstance(message, Shared):
            return self._moved(self._with(message))
        if isinstance(message, Finished):
            return Vectors(vectors=self._fine_tuned(self._with(message)))
        raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")

    def finish(self, message: Message) -> Factors:
        """Return the party's part of the published model."""
        descent, ratings = self._with(message), self._home.party.ratings
        return without_biases(
            ratings.user_ids,
            ratings.item_ids,
            self._steps.offset(self._centre),
            descent.users,
            descent.items * np.float32(self._steps.unit_size(self._home.facts)),
            scale=self._home.facts.scale,
            seen=seen_in(ratings),
        )

    def state(self) -> State:
        """Return the item vectors, and how many steps were taken."""
        numbers = {
            "centre": np.array(self._centre),
            "taken": np.array(self._taken),
            "given": np.array(self._given),
        }
        if self._descent is None:
            return numbers
        return {**numbers, "users": self._descent.users, "items": self._descent.items}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._centre, self._taken = float(state["centre"]), int(state["taken"])
        self._given = bool(state["given"])
        if "items" in state:
            self._descent = self._begun(state["users"], state["items"])

    def _with(self, message: Message) -> PrivateDescent:
        """Take over the average; a party that is alone keeps its own user vectors after the first."""
        facts, factors = self._home.facts, self._steps.factors
        self._centre = centre_of(message, facts)
        users = array_of(message, "vectors", (facts.user_count, factors), "the coordinator")
        if self._descent is None:
            random = Seeds(self._home.seed).generator(f"items of {self._home.party.name}")
            items = self._steps.start("items", self._home.party.ratings.item_count, self._centre, random)
            self._descent = self._begun(users, items)
        elif not self._recipe.alone:
            self._descent.users = users
        return self._descent

    def _begun(self, users: NDArray[Any], items: NDArray[Any]) -> PrivateDescent:
        return descent_of(self._home, self._ratings, users, items, self._steps, self._centre)

    def _moved(self, descent: PrivateDescent) -> Message:
        steps, facts = self._steps, self._home.facts
        rates = steps.rates(self._taken, self._taken + steps.local_steps)
        self._taken += steps.local_steps
        if (grain := grain_of(self._recipe, facts)) is not None:
            return user_gradients(self._home, descent, STEPS, grain, rates[0])
        # A party sees its own part of the gradient for users, and the average makes it smaller still.
        faster = (facts.item_count / facts.items[facts.place(self._home.party.name)]) ** 0.5
        summed = only_sums(self._recipe, facts)
        moved = take(
            self._home,
            descent,
            STEPS,
            steps=steps.local_steps,
            rate_users=rates * faster,
            rate_items=rates,
            sampling=steps.sampling,
            weight=weight_of(self._home) if summed else None,
        )
        return weighted(self._home, moved) if summed else Vectors(vectors=moved)

    def _fine_tuned(self, descent: PrivateDescent) -> NDArray[Any]:
        recipe, door = self._recipe, self._home.door
        if self._given:
            raise RunError(f"{self._home.party.name}: item vectors are given away once.")
        self._given = True
        if recipe.fine_tuning:
            return take(
                self._home,
                descent,
                FINE_TUNING,
                steps=recipe.fine_tuning,
                rate_users=None,
                rate_items=float(self._steps.rates(self._steps.total, self._steps.total + 1)[0]),
                sampling=self._steps.sampling,
            )
        # Every step that made them was charged in its round.
        return door.public(descent.items) if self._home.schedule else door.unprotected(descent.items)


class VerticalCoordinator:
    """Averages the users' vectors and collects the items' at the end."""

    def __init__(self, recipe: "VerticalMF", facts: Facts, seed: int) -> None:
        """Begin with user vectors that depend on nothing private."""
        self._recipe = recipe
        self._steps = Steps.of(recipe)
        self._facts = facts
        self._asks_mean = self._steps.asks_mean
        self._centre = self._steps.beginning(facts)
        self._seed = seed
        self._users = self._started()
        self._items: dict[str, Floats] = {}
        self._closing = self.rounds

    @property
    def rounds(self) -> int:
        """One for the mean, if it is not public; T averages; one for the items."""
        return self._asks_mean + self._steps.rounds + 1

    def ends_after(self, round: int) -> int:
        """Ask for the items next, unless that was done: they are what the users' vectors go with."""
        self._closing = round if self._items else round + 1
        return self._closing

    def ask(self, round: int) -> Message:
        """Ask for the mean, for steps, or for the items."""
        if self._asks_mean and round == 1:
            return Begin()
        return self.last() if round == self._closing else Shared(**self._average())

    def sums(self, round: int) -> bool:
        """Say whether only the sum of the answers is wanted: item vectors are always seen."""
        if round == self._closing:
            return False
        wanted = adds_gradients if self._asks_mean and round == 1 else only_sums
        return wanted(self._recipe, self._facts)

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Average what came back; without any answer everything stays as it was."""
        if self._asks_mean and round == 1:
            self._centre = mean_of(replies, self._facts, "user" if self._steps.most_ratings else "rating")
            self._users = self._started()
        elif round == self._closing:
            self._items = {party: self._checked(reply, party) for party, reply in replies.items()}
        elif SUM in replies:
            taken = round - self._asks_mean - 1
            self._users = after_sum(self._users, replies[SUM], taken, self._recipe, self._facts)
        elif replies:
            shape = self._users.shape
            found = {party: array_of(reply, "vectors", shape, party) for party, reply in replies.items()}
            weights = dict(zip(self._facts.parties, map(float, self._facts.items), strict=True))
            self._users = weighted_mean(found, weights)

    def last(self) -> Message:
        """Return the last average."""
        return Finished(**self._average())

    def published(self) -> Factors | None:
        """Return all vectors, if all parties gave theirs."""
        facts = self._facts
        if set(self._items) != set(facts.parties) or self._recipe.alone:
            return None
        items = np.concatenate([self._items[party] for party in facts.parties])
        items *= np.float32(self._steps.unit_size(facts))
        offset = self._steps.offset(self._centre)
        return without_biases(
            facts.shared_ids, facts.catalogue, offset, self._users, items, scale=facts.scale
        )

    def state(self) -> State:
        """Return the average, and the items' vectors at the end."""
        items = {f"items of {party}": vectors for party, vectors in self._items.items()}
        return {"centre": np.array(self._centre), "users": self._users, **items}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._centre, self._users = float(state["centre"]), np.asarray(state["users"], np.float32)
        names = {party: f"items of {party}" for party in self._facts.parties}
        self._items = {party: state[name] for party, name in names.items() if name in state}

    def _average(self) -> dict[str, Any]:
        return {"centre": np.array(self._centre), "vectors": self._users}

    def _started(self) -> Floats:
        random = Seeds(self._seed).generator("shared users")
        return self._steps.start("users", self._facts.user_count, self._centre, random)

    def _checked(self, reply: Message, party: str) -> Floats:
        shape = (self._facts.items[self._facts.place(party)], self._users.shape[1])
        return np.asarray(array_of(reply, "vectors", shape, party), np.float32)
