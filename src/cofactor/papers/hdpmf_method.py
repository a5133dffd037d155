"""What HDPMF compares: its own method, three others, and both readings of "noise"."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError
from cofactor.evaluate.rating_errors import mae, mse, predictions
from cofactor.factors.model import Factors
from cofactor.papers.hdpmf_numbers import DPMF, EPSILON, HDPMF, HDPMF_R, MAE, MF, MSE, PDPMF
from cofactor.papers.hdpmf_splits import Repeat
from cofactor.recipes.hdpmf_fit import Method, Noise, PerRating

EPOCHS = 100
"""T."""
Measured = dict[str, float]
"""By measure."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is tuned."""

    rate: float
    penalty: float
    """lambda."""

    def __str__(self) -> str:
        return f"rate {self.rate:g}, lambda {self.penalty:g}"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A method, and when its noise is drawn."""

    method: Method
    noise: Noise = "fresh"
    rescaled: bool = True

    @property
    def name(self) -> str:
        """What the paper calls it."""
        names = {"mf": MF, "hdpmf": HDPMF, "pdpmf": PDPMF, "dpmf": DPMF}
        return names[self.method] if self.rescaled else HDPMF_R

    @property
    def line(self) -> str:
        """Its name in tables."""
        return self.name if self.method == "mf" else f"{self.name}, {self.noise} noise"

    def recipe(self, factors: int, setting: Setting) -> PerRating:
        """Return what fits it."""
        return PerRating(
            method=self.method,
            factors=factors,
            rate=setting.rate,
            penalty=setting.penalty,
            epochs=EPOCHS,
            epsilon=EPSILON,
            noise="none" if self.method == "mf" else self.noise,
            rescaled=self.rescaled,
        )

    def fitted(self, repeat: Repeat, factors: int, setting: Setting) -> Factors | None:
        """Fit it to a repeat's training ratings; None where its vectors grew without end."""
        return self.fitted_to(repeat.train, repeat, factors, setting)

    def fitted_to(self, train: Ratings, repeat: Repeat, factors: int, setting: Setting) -> Factors | None:
        """Fit it to some ratings of the users and items of a repeat, with their weights."""
        recipe = self.recipe(factors, setting)
        try:
            return recipe.fit(train, repeat.user_weights, repeat.item_weights, seed=repeat.seed)
        except ConfigError:  # the rate is too large for these ratings
            return None

    def promised(self, repeat: Repeat) -> float | None:
        """Return what the paper promises a rating of weight 1: nothing, the most, or the strictest."""
        return {"mf": None, "dpmf": EPSILON * repeat.least_weight}.get(self.method, EPSILON)

    def spent(self, repeat: Repeat) -> float | None:
        """Return what all epochs spend on a rating of weight 1; None where there is no finite number.

        What takes part in PDPMF spends the mean promise in each: noise is made for that.
        """
        promised = self.promised(repeat)
        if promised is None or self.noise != "fresh":
            return None
        return EPOCHS * (EPSILON * repeat.mean_weight if self.method == "pdpmf" else promised)


MF_LINE = Variant(method="mf")
HDPMF_FRESH, HDPMF_FIXED = Variant(method="hdpmf"), Variant(method="hdpmf", noise="fixed")
PDPMF_FRESH, PDPMF_FIXED = Variant(method="pdpmf"), Variant(method="pdpmf", noise="fixed")
DPMF_FRESH, DPMF_FIXED = Variant(method="dpmf"), Variant(method="dpmf", noise="fixed")
UNSCALED = Variant(method="hdpmf", rescaled=False)
VARIANTS = (MF_LINE, HDPMF_FRESH, HDPMF_FIXED, PDPMF_FRESH, PDPMF_FIXED, DPMF_FRESH, DPMF_FIXED)
"""Of Table 3."""


def measured(model: Factors, test: Ratings) -> Measured:
    """Return both errors; predictions are clipped to the scale."""
    predicted = predictions(model, test)
    return {MSE: mse(test.values, predicted), MAE: mae(test.values, predicted)}


def squared(model: Factors, test: Ratings) -> NDArray[np.float64]:
    """Return the squared error of each test rating."""
    return (predictions(model, test).astype(np.float64) - test.values) ** 2
