"""What every way of asking has in common: a half for the people who answer, and one for the aggregator.

    answers = report(method, values)                    # at home: one answer for each person
    estimate = method.estimate(method.tally(**answers)) # in the open: answers are added up

A method is public and settled beforehand. Privacy rests on its mechanism alone: what goes beside the answers
is public chance, and everything that happens to answers afterwards can be done by anybody.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from cofactor.config import positive, whole
from cofactor.errors import ConfigError, DataError, RunError
from cofactor.privacy.bounding import Bounded
from cofactor.randomness import Random, SecureRandom

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

Gives = Literal["distribution", "ranges", "mean"]
"""What an estimate is: probabilities; unbiased numbers, some of them negative, whose sums over ranges mean
something; or one number."""

MOST_BUCKETS = 2**16
NOTHING = 0.25
"""Where more of the range than this is left open, next to nothing was learned."""
_SECURE = SecureRandom()


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """What the people who answer have prepared."""

    bounded: Bounded
    """What the mechanism turns into answers, one for each person."""
    beside: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Public chance that goes with the answers, drawn whatever the values are: a row for each person."""


class Method(Protocol):
    """One way of asking: a frozen dataclass that people and aggregator agree on."""

    @property
    def epsilon(self) -> float:
        """What an answer costs: the most that it says for any value against any other, in log-odds."""

    @property
    def buckets(self) -> int:
        """How many numbers an estimate has; 1 for a mean."""

    @property
    def gives(self) -> Gives:
        """What an estimate is."""

    @property
    def beside(self) -> tuple[str, ...]:
        """Names of the arrays that go beside the answers."""

    @property
    def mechanism(self) -> Any:
        """The mechanism on which all privacy rests."""

    def asked(self, values: Floats, random: Random) -> Asked:
        """Prepare values between 0 and 1 for the mechanism."""

    def tally(self, answers: Integers, **beside: NDArray[Any]) -> Integers:
        """Add answers up to whole numbers of a fixed shape; tallies of several parties are added, too.

        Answers come from strangers: those that cannot be are refused.
        """

    def estimate(self, tally: Integers) -> Floats:
        """Return numbers over equal parts of [0, 1]; of a mean, where in it the mean lies."""

    def resampled(self, tally: Integers, chance: np.random.Generator) -> Integers:
        """Return another tally that could have been, for the bootstrap."""


def report(method: Method, values: Any, random: Random = _SECURE) -> dict[str, NDArray[Any]]:
    """Return what people with these values, between 0 and 1, send; one person has one value."""
    asked = method.asked(checked_positions(np.atleast_1d(values)), random)
    return {"answers": method.mechanism.noisy(asked.bounded, random), **asked.beside}


def simulated(method: Method, values: Any, random: Random = _SECURE) -> Floats:
    """Ask people with these values, between 0 and 1, and return the estimate."""
    return method.estimate(method.tally(**report(method, values, random)))


def checked_positions(values: Any) -> Floats:
    """Return values as numbers between 0 and 1, a row of them; refuse any others."""
    found = np.asarray(values, np.float64)
    if found.ndim != 1 or not np.all((found >= 0) & (found <= 1)):
        raise DataError("values must be a row of numbers between 0 and 1. Scale them with a Question.")
    return found


def cells_of(values: Floats, cells: int) -> Integers:
    """Return in which of so many equal parts of [0, 1] each value lies; 1 is in the last one."""
    return np.minimum((values * cells).astype(np.int64), cells - 1)


def checked_answers(answers: Any, below: int, name: str = "answers") -> Integers:
    """Return whole numbers from strangers; refuse those that are not from 0 to below `below`."""
    found = np.asarray(answers)
    if found.ndim != 1 or found.dtype.kind not in "iu" or np.any((found < 0) | (found >= below)):
        raise RunError(f"{name} are not a row of whole numbers from 0 to {below - 1:,}.")
    return found.astype(np.int64)


def check_beside(method: Method, beside: Mapping[str, object]) -> None:
    """Refuse reports with other things beside the answers than the method has."""
    if set(beside) != set(method.beside):
        raise RunError(f"beside the answers must be {' and '.join(method.beside) or 'nothing'}.")


def checked_tally(tally: Any, *shape: int) -> Integers:
    """Return counts of this shape; refuse what cannot be a tally."""
    found = np.asarray(tally)
    if found.shape != shape or found.dtype.kind not in "iu" or np.any(found < 0):
        raise RunError(f"a tally is not an array of {' x '.join(map(str, shape))} counts.")
    if found.astype(np.float64).sum() >= 2**63:
        raise RunError("a tally of 2^63 answers or more cannot be: it was not added up right.")
    return found.astype(np.int64)


def some_people(answered: Any) -> int:
    """Return how many people have answered; refuse to make anything of nobody's answers."""
    if answered < 1:
        raise DataError("nobody has answered, so there is nothing to estimate from. Ask at least one person.")
    return int(answered)


def left_open(epsilon: float, people: int) -> float:
    """Return by about how much of the range answers leave the mean open, as a deviation, whoever reads them.

    That of stochastic rounding, which is about the best that there is where it is large.
    """
    return 0.5 / (math.tanh(epsilon / 2) * math.sqrt(max(people, 1)))


def check_settings(*, epsilon: float, buckets: int, least: int = 2) -> None:
    """Refuse settings that no method can have."""
    positive(epsilon=epsilon)
    if not 1e-9 <= epsilon <= 64:
        raise ConfigError(f"epsilon must lie between 1e-9 and 64, got {epsilon:g}.")
    whole(buckets=buckets)
    if not least <= buckets <= MOST_BUCKETS:
        raise ConfigError(f"buckets must lie between {least} and {MOST_BUCKETS:,}, got {buckets:,}.")
