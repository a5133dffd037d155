"""Two-round aggregation as published (Li et al. 2022, section 6.2): it protects less than it claims.

It exists to show that. In round 1 every survivor sends its gradient with noise xi of variance zeta1 sigma^2;
in round 2 it sends -xi + xi', which replaces that noise by one of variance zeta2 sigma^2. The coordinator is
to see noise of variance sigma^2 either way (Theorem 5). But it sees both sums, S and D, and S + c D has less
noise than either S or S + D if c lies between 0 and 1. `cofactor.privacy.layers` is what protects.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import fraction, not_negative, plain_numbers, positive, whole
from cofactor.errors import ConfigError
from cofactor.privacy import noise
from cofactor.privacy.accountant import spent
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.evidence import mu_of
from cofactor.privacy.mechanisms import Gaussian
from cofactor.randomness import Random

Values = NDArray[np.float64]

_ROUNDING = 1e-9
"""By how much a computed part of the users may miss the one that is meant."""


@dataclass(frozen=True, kw_only=True)
class TwoRounds:
    """The published variant, for so many users of whom a part may drop out."""

    users: int
    """How many take part, n."""
    omega: float
    """The part of them that may drop out in a round."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(users=self.users)
        fraction(omega=self.omega)

    def parts(self, survivors: int) -> tuple[float, float]:
        """Return zeta1 and zeta2 of Theorem 5: a user's variance in both rounds, relative to sigma^2."""
        fewest = (1 - self.omega) * self.users
        if not fewest - _ROUNDING <= survivors <= self.users:
            raise ConfigError(f"survivors must lie between {fewest:g} and {self.users:,}, got {survivors:,}.")
        return 1 / fewest, 1 / survivors

    def weight(self, survivors: int) -> float:
        """Return the c for which S + c D has the least noise."""
        first, second = self.parts(survivors)
        return first / (first + second)

    def left(self, survivors: int) -> float:
        """Return the variance of the noise in S + c D, relative to the sigma^2 that is claimed."""
        return survivors * least_variance(*self.parts(survivors))

    def seen(
        self, values: NDArray[Any], sigma: float, survivors: int, random: Random
    ) -> tuple[Values, Values]:
        """Return what the coordinator sees, S and D, where the survivors' gradients add up to `values`.

        Noise of many users is drawn at once: normal numbers add up to normal numbers.
        """
        positive(sigma=sigma)
        shape = np.shape(values)
        first, second = (
            noise.gaussian(shape, sigma * math.sqrt(survivors * part), random).astype(np.float64)
            for part in self.parts(survivors)
        )
        return np.asarray(values) + first, second - first


def least_variance(first: float, second: float) -> float:
    """Return zeta1 zeta2 / (zeta1 + zeta2), the variance that the best S + c D has for each survivor.

    Its noise is (1 - c) xi + c xi'.
    """
    return first * second / (first + second)


def really_spent(epsilon: float, delta: float, *, omega: float, dropped: float = 0.0) -> float:
    """Return the epsilon that both rounds spend where (epsilon, delta) is claimed for Gaussian noise.

    `dropped` is the part of the users that dropped out of round 1, at most `omega`. The number of iterations
    does not matter: they add up alike in what is claimed and in what is spent.
    """
    not_negative(dropped=dropped)
    fraction(omega=omega)
    if dropped > omega + _ROUNDING:
        raise ConfigError(f"dropped must be at most omega, {omega:g}, got {dropped:g}: more stop the round.")
    left = (1 - dropped) * least_variance(1 / (1 - omega), 1 / (1 - dropped))
    multiplier = math.sqrt(left) / mu_of(epsilon, delta)
    event = Event(
        what="S + c D",
        by="users",
        to="coordinator",
        mechanism=Gaussian(noise_multiplier=multiplier),
        bound=Bound(size=1.0, norm="l2", unit="user"),
    )
    return spent([event], delta, unit="user").epsilon


def best_weights(first: Values, others: Sequence[Values]) -> Values:
    """Return the weights for which `first`, plus each of the others times its weight, varies least.

    Estimated from samples of what a coordinator sees, of any protocol: whatever of the first can be taken off
    with the help of the others is taken off.
    """
    centred = [np.ravel(sample) - np.mean(sample) for sample in (first, *others)]
    return np.asarray(np.linalg.lstsq(np.stack(centred[1:], axis=1), -centred[0])[0])
