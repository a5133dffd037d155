"""A distribution from a few bins: what frequency oracles can do for numbers (thesis, section 3.4.1)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cofactor.config import plain_numbers, whole
from cofactor.errors import ConfigError
from cofactor.privacy.answers import RandomizedResponse
from cofactor.randomness import Random
from cofactor.survey.method import Asked, Floats, Gives, Integers, check_settings
from cofactor.survey.oracles import GRR, OLH, best_oracle
from cofactor.survey.simplex import norm_sub


@dataclass(frozen=True, kw_only=True)
class Binning:
    """CFO with binning: a frequency oracle over bins, made to probabilities and spread evenly within them.

    Few bins hide the shape, many are noisy, and which number is best depends on the data.
    """

    gives: ClassVar[Gives] = "distribution"

    epsilon: float
    """The most that an answer says for any value against any other, in log-odds."""
    buckets: int = 256
    """How many numbers the estimate has: a multiple of the bins."""
    bins: int = 32
    """How many values are told apart."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_settings(epsilon=self.epsilon, buckets=self.buckets)
        whole(bins=self.bins)
        if self.bins < 2 or self.buckets % self.bins:
            raise ConfigError(
                f"bins must be at least 2 and divide buckets, got {self.bins:,} for {self.buckets:,}."
            )

    @property
    def oracle(self) -> GRR | OLH:
        """The oracle with the least variance for so many bins."""
        return best_oracle(self.epsilon, self.bins)

    @property
    def beside(self) -> tuple[str, ...]:
        """What goes beside the answers: seeds, where the oracle hashes."""
        return self.oracle.beside

    @property
    def mechanism(self) -> RandomizedResponse:
        """What answers are drawn with."""
        return self.oracle.mechanism

    def asked(self, values: Floats, random: Random) -> Asked:
        """Prepare values between 0 and 1."""
        return self.oracle.asked(values, random)

    def tally(self, answers: Integers, **beside: NDArray[Any]) -> Integers:
        """Add answers up as the oracle does."""
        return self.oracle.tally(answers, **beside)

    def estimate(self, tally: Integers) -> Floats:
        """Return probabilities: each bin's spread evenly over its buckets."""
        each = self.buckets // self.bins
        return np.repeat(norm_sub(self.oracle.estimate(tally)) / each, each)

    def resampled(self, tally: Integers, chance: np.random.Generator) -> Integers:
        """Draw another tally as the oracle does."""
        return self.oracle.resampled(tally, chance)
