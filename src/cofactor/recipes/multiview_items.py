"""The item server of `MultiViewMF`: it holds features of items, which are public, and nothing else."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import RunError
from cofactor.federation.door import COORDINATOR, Door
from cofactor.federation.halves import Facts, State, array_of
from cofactor.federation.messages import Message
from cofactor.recipes.multiview_letters import ITEM_SERVER, FeatureGradients, ItemsAsked

if TYPE_CHECKING:
    from cofactor.recipes.multiview import MultiViewMF

Reals = NDArray[np.float64]


class ItemServer:
    """Fits a vector to each feature, and tells how items should move to fit their features better."""

    def __init__(self, recipe: "MultiViewMF", facts: Facts, door: Door) -> None:
        """Read the features of the catalogue."""
        assert facts.public_items is not None
        self._recipe, self._facts, self._door = recipe, facts, door
        self._known = facts.public_items.rows(facts.catalogue).astype(np.float64)
        self._features: Reals = np.zeros((self._known.shape[1], recipe.factors))

    def handle(self, round: int, message: Message) -> Message:  # noqa: ARG002 (the same in all rounds)
        """Move the features' vectors, then return f(j, d) of equation (7), summed over the features."""
        if not isinstance(message, ItemsAsked):
            raise RunError(f"{ITEM_SERVER}: did not expect {type(message).__name__} here.")
        shape = (self._facts.item_count, self._recipe.factors)
        items = self._recipe.received(array_of(message, "items", shape, COORDINATOR), self._facts)
        self._features = self._moved(items)
        missed = self._known - items @ self._features.T
        return FeatureGradients(
            gradients=self._door.public((missed @ self._features).astype(np.float32)),
            features=self._door.public(self._features.astype(np.float32)),
        )

    def state(self) -> State:
        """Return the features' vectors."""
        return {"features": self._features}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._features = np.asarray(state["features"], np.float64)

    def _moved(self, items: Reals) -> Reals:
        """Return the features' best vectors, equation (11), or vectors after a step, equations (12), (13).

        A step is relative to the trace of the curvature, as users' are.
        """
        recipe = self._recipe
        squares = items.T @ items + recipe.penalty / recipe.side_weight * np.eye(recipe.factors)
        right = self._known.T @ items
        if recipe.update == "semi-als":
            return np.asarray(np.linalg.solve(squares, right.T).T)
        step = recipe.user_rate / np.trace(squares)
        return np.asarray(self._features + step * (right - self._features @ squares))
