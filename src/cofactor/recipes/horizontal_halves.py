"""The two halves of `HorizontalMF`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped
from cofactor.errors import RunError
from cofactor.factors.model import Factors
from cofactor.federation.halves import Facts, Home, State, array_of, weighted_mean
from cofactor.federation.messages import Message
from cofactor.randomness import Seeds
from cofactor.recipes.home_fit import fit_with_released, fitted_users
from cofactor.recipes.local_steps import LocalSteps, mean_of, prepared, released_total
from cofactor.recipes.private_descent import PrivateDescent
from cofactor.recipes.shared_vectors import Begin, Finished, Shared, Total, Vectors

if TYPE_CHECKING:
    from cofactor.recipes.horizontal import HorizontalMF

Floats = NDArray[np.float32]


class HorizontalParticipant:
    """A party: its users' vectors never leave it."""

    def __init__(self, recipe: "HorizontalMF", home: Home) -> None:
        """Prepare the party's ratings: all of them for use at home, some of each user's for the steps."""
        self._recipe = recipe
        self._home = home
        self._all = prepared(home, None)
        self._some = prepared(home, recipe.most_ratings)
        self._steps: LocalSteps | None = None
        self._taken = 0

    def handle(self, round: int, message: Message) -> Message:  # noqa: ARG002 (rounds are counted by steps)
        """Take the local steps on the item vectors."""
        if isinstance(message, Begin):
            return Total(total=released_total(self._home, self._some))
        if isinstance(message, Shared):
            return Vectors(vectors=self._moved(message))
        raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")

    def finish(self, message: Message) -> Factors:
        """Fit the home model, with the released item vectors as far as they help. It stays here."""
        released = array_of(message, "vectors", self._shape, "the coordinator")
        return fit_with_released(self._recipe.home, self._home.party, released, self._home.seed)

    def state(self) -> State:
        """Return how many steps were taken, and the users' vectors."""
        users = {} if self._steps is None else {"users": self._steps.descent.users}
        return {"taken": np.array(self._taken), **users}

    def restore(self, state: State) -> None:
        """Go on from there; the item vectors come with the next average."""
        self._taken = int(state["taken"])
        self._kept_users = state.get("users")

    _kept_users: NDArray[Any] | None = None

    @property
    def _shape(self) -> tuple[int, int]:
        assert self._recipe.factors is not None
        return self._home.facts.item_count, self._recipe.factors

    def _moved(self, message: Shared) -> NDArray[Any]:
        recipe = self._recipe
        assert recipe.local_steps is not None
        centre = float(array_of(message, "centre", (), "the coordinator"))
        items = array_of(message, "vectors", self._shape, "the coordinator")
        steps = self._with(centre, items)
        faster = (len(self._home.facts.parties)) ** 0.5
        for step in range(self._taken, self._taken + recipe.local_steps):
            rate = recipe.rates(step, step + 1) * faster
        rates = recipe.rates(self._taken, self._taken + recipe.local_steps)
        if recipe.pretrain:
            moved = steps.take(recipe.local_steps, None, rates * faster)
        self._taken += recipe.local_steps
        return moved
