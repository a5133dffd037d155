"""`Budget`: how much anybody may learn, about whom, and compared with what."""

import math
import warnings
from dataclasses import dataclass
from typing import Literal

from cofactor.config import not_negative, one_of, plain_numbers, positive
from cofactor.errors import ConfigError, PrivacyWarning
from cofactor.figures import percent

Unit = Literal["user", "rating"]
UNITS: tuple[Unit, ...] = ("user", "rating")

Adjacency = Literal["empty", "replace", "value"]
ADJACENCIES: tuple[Adjacency, ...] = ("empty", "replace", "value")

Personal = Literal["stretching", "sampling"]
PERSONAL: tuple[Personal, ...] = ("stretching", "sampling")

LARGEST_DELTA = 0.01
TOLERANCE = 1e-9
"""Relative, for the rounding of epsilon alone."""
SMALLEST_EPSILON, LARGE_EPSILON, LARGEST_EPSILON = 1e-6, 10.0, 1000.0


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The most that may be learned about one unit."""

    epsilon: float
    """Log-odds by which any conclusion about a unit may change."""
    delta: float
    """Probability with which epsilon may fail; 0 for mechanisms that never fail."""
    unit: Unit
    """Who is protected: "user", everything one user contributed, or "rating", any one rating."""
    adjacency: Adjacency = "empty"
    """Compared with what: "empty", the unit's ratings become nothing while the number of users stays
    public; "replace", they become any others; "value", only their values change: who rated what is public."""
    personal: Personal | None = None
    """How units that ask for more privacy get it, if some do: their contributions are shrunk by their weight
    ("stretching"), or they take part by chance ("sampling"). See `PersonalBudget`."""
    unsampled: float | None = None
    """With "sampling", what a unit of weight 1 is promised; `epsilon` is what noise is made for."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        not_negative(epsilon=self.epsilon, delta=self.delta)
        one_of(UNITS, unit=self.unit)
        one_of(ADJACENCIES, adjacency=self.adjacency)
        if self.personal is not None:
            one_of(PERSONAL, personal=self.personal)
        if self.unsampled is not None:
            positive(unsampled=self.unsampled)
        if not SMALLEST_EPSILON <= self.epsilon <= LARGEST_EPSILON:
            raise ConfigError(
                f"epsilon must lie between 1e-6, with which nothing useful can be released, "
                f"and {LARGEST_EPSILON:g}, which promises nothing at all; got {self.epsilon:g}."
            )
        if self.delta >= LARGEST_DELTA:
            raise ConfigError(
                f"delta must be below {LARGEST_DELTA}, got {self.delta:g}: it is the probability that the "
                "promise fails outright. Use far less than 1 divided by the number of users."
            )
        for concern in self.concerns():
            warnings.warn(concern, PrivacyWarning, stacklevel=3)

    def __str__(self) -> str:
        """Write the budget in one line."""
        numbers = f"epsilon {self.epsilon:g}, delta {self.delta:g}"
        own = {None: "", "stretching": " of weight 1", "sampling": ", which takes part by chance"}
        return f'{numbers} for each {self.unit}{own[self.personal]}, adjacency "{self.adjacency}"'

    @property
    def of_weight_1(self) -> float:
        """What a unit of weight 1 is promised: others have the part of it that is their weight."""
        return self.epsilon if self.unsampled is None else self.unsampled

    @property
    def odds(self) -> float:
        """How often a guesser with even prior odds is right at best."""
        return odds(self.epsilon, self.delta)

    def allows(self, epsilon: float) -> bool:
        """Say whether an epsilon is within the budget."""
        return epsilon <= self.epsilon * (1 + TOLERANCE)

    def concerns(self, units: int | None = None) -> list[str]:
        """Say what a privacy officer should know; `units` is how many users (or ratings) there are."""
        found = []
        if self.epsilon > LARGE_EPSILON:
            found.append(
                f"epsilon {self.epsilon:g} is above {LARGE_EPSILON:g} and promises next to nothing: somebody "
                f"who guesses between two possibilities may be right {percent(self.odds)} of the time."
            )
        if units and self.delta >= 1 / units:
            found.append(
                f"delta {self.delta:g} is not below 1/{units:,}: a method that publishes one {self.unit} "
                f"at random would satisfy it. Use delta well below {1 / units:.1g}."
            )
        return found


def odds(epsilon: float, delta: float) -> float:
    """Return (e^epsilon + delta) / (1 + e^epsilon): how often a guesser with even prior odds is right."""
    return min(1.0, (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon)))
