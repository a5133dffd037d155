"""The two halves of `HorizontalMF`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import RunError
from cofactor.factors.model import Factors, HomeFit, seen_in
from cofactor.federation.halves import Facts, Home, State, array_of, weighted_mean
from cofactor.federation.messages import Message
from cofactor.randomness import Seeds
from cofactor.recipes.home_fit import fit_with_released, fitted_users
from cofactor.recipes.local_steps import descent_of, mean_of, prepared, released_total, take
from cofactor.recipes.models import without_biases
from cofactor.recipes.private_descent import PrivateDescent
from cofactor.recipes.shared_vectors import Begin, Finished, Shared, Total, Vectors
from cofactor.recipes.steps import Steps

if TYPE_CHECKING:
    from cofactor.recipes.horizontal import HorizontalMF

Floats = NDArray[np.float32]

STEPS = "item vectors"
"""The release, as ledgers and plans name it."""
RIDGE = 4.0
"""So many imagined ratings pull a user's vector to where all begin."""


class HorizontalParticipant:
    """A party: its users' vectors never leave it."""

    def __init__(self, recipe: "HorizontalMF", home: Home) -> None:
        """Prepare the ratings: all of them for use at home, some of each user's for the steps."""
        self._recipe = recipe
        self._steps = Steps.of(recipe)
        self._home = home
        self._some = prepared(home, self._steps.most_ratings)
        self._descent: PrivateDescent | None = None
        self._users: Floats | None = None
        self._taken = 0

    def handle(self, round: int, message: Message) -> Message:  # noqa: ARG002 (steps are counted, not rounds)
        """Take the local steps on the item vectors."""
        if isinstance(message, Begin):
            return Total(total=released_total(self._home, self._some))
        if isinstance(message, Shared):
            return Vectors(vectors=self._moved(message))
        raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")

    def finish(self, message: Message) -> Factors:
        """Fit the home model, with the released vectors as far as they help; or users' vectors alone."""
        centre, items = self._read(message)
        if self._recipe.home is not None:
            return fit_with_released(self._recipe.home, self._home.party, items, self._home.seed)
        ratings, steps = self._home.party.ratings, self._steps
        return without_biases(
            ratings.user_ids,
            ratings.item_ids,
            steps.offset(centre),
            self._fitted(centre, items),
            items * np.float32(steps.unit_size(self._home.facts)),
            scale=self._home.facts.scale,
            seen=seen_in(ratings),
        )

    def state(self) -> State:
        """Return the users' vectors, and how many steps were taken."""
        users = {} if self._users is None else {"users": self._users}
        return {"taken": np.array(self._taken), **users}

    def restore(self, state: State) -> None:
        """Go on from there; item vectors come with the next average."""
        self._taken, self._users = int(state["taken"]), state.get("users")

    def _read(self, message: Message) -> tuple[float, Floats]:
        shape = (self._home.facts.item_count, self._steps.factors)
        centre = float(array_of(message, "centre", (), "the coordinator"))
        return centre, array_of(message, "vectors", shape, "the coordinator")

    def _moved(self, message: Message) -> NDArray[Any]:
        """Take the local steps; where both sides are trained, users follow after each step, at home."""
        steps, (centre, items) = self._steps, self._read(message)
        descent = self._with(centre, items)
        rates = steps.rates(self._taken, self._taken + steps.local_steps)
        self._taken += steps.local_steps
        return take(
            self._home,
            descent,
            STEPS,
            steps=steps.local_steps,
            rate_users=None,
            rate_items=rates * self._faster(),
            sampling=steps.sampling,
        )

    def _faster(self) -> float:
        """A party sees its own part of the gradient, and the average makes it smaller still."""
        facts = self._home.facts
        own = facts.users[facts.place(self._home.party.name)]
        return float((facts.user_count / own) ** 0.5)

    def _with(self, centre: float, items: Floats) -> PrivateDescent:
        """Take over the average. Users' vectors are fitted once, or to every average."""
        if self._users is None or not self._recipe.pretrain:
            self._users = self._followed(centre, items)
        if self._descent is None:
            self._descent = descent_of(self._home, self._some, self._users, items, self._steps, centre)
        self._descent.users, self._descent.items = self._users, items
        return self._descent

    def _followed(self, centre: float, items: Floats) -> Floats:
        raise NotImplementedError

    def _fitted(self, centre: float, items: Floats) -> Floats:
        raise NotImplementedError
