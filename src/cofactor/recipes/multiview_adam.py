"""Adam (Kingma and Ba 2015): steps whose sizes follow from how large gradients have been."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cofactor.federation.halves import State

if TYPE_CHECKING:
    from cofactor.recipes.multiview import MultiViewMF

Reals = NDArray[np.float64]


class Adam:
    """Moves a table of numbers down its gradient; what it remembers began at 0, and is corrected for it."""

    def __init__(self, recipe: "MultiViewMF", shape: tuple[int, ...]) -> None:
        """Begin with nothing to remember."""
        self._recipe, self._steps = recipe, 0
        self._mean: Reals = np.zeros(shape)
        self._square: Reals = np.zeros(shape)

    def moved(self, values: Reals, gradient: Reals) -> Reals:
        """Return the table after one step."""
        recipe, self._steps = self._recipe, self._steps + 1
        first, second = recipe.adam_first, recipe.adam_second
        self._mean = first * self._mean + (1 - first) * gradient
        self._square = second * self._square + (1 - second) * gradient**2
        mean = self._mean / (1 - first**self._steps)
        square = self._square / (1 - second**self._steps)
        return np.asarray(values - recipe.adam_rate * mean / (np.sqrt(square) + recipe.adam_tiny))

    def state(self) -> State:
        """Return what it remembers."""
        return {"mean": self._mean, "square": self._square, "steps": np.array(self._steps)}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._mean, self._square = state["mean"].astype(np.float64), state["square"].astype(np.float64)
        self._steps = int(state["steps"])
