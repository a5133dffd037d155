"""How many factors and steps `CentralDPSGD` takes, and how large ones: a rule from public numbers only.

It follows random searches on a validation part of MovieLens 1M: about 400 settings each at epsilon 1 and 4,
and about 100 at 10 (`benchmarks/central_search.py` is the last of them), and six settings on a validation
part of MovieLens 100K, for where noise is largest. Nothing of it looks at the ratings at hand.
"""

import math
from dataclasses import dataclass

from cofactor.federation.halves import Facts


@dataclass(frozen=True, kw_only=True)
class Usual:
    """What is usual where noise is so large."""

    most_noise: float
    """The most noise that one release with the whole budget would have, for each user."""
    factors: int
    rounds: int
    weight_power: float
    walk: float
    """How far the noise of all steps together may carry a coordinate."""
    stride: float
    """How far a step reaches at most, relative to what items that are rated by many can stand."""

    def rate(self, facts: Facts, rounds: int, noise: float) -> float:
        """Return what multiplies the sum of contributions of length 1 at most.

        `noise` is that of one such sum. Each user contributes to the root of her ratings.
        """
        ratings_each = facts.rating_count / facts.user_count
        largest = self.stride * math.sqrt(ratings_each) / facts.user_count
        return largest if noise == 0 else min(largest, self.walk / (noise * math.sqrt(rounds)))


_USUAL = (
    Usual(most_noise=3e-4, factors=4, rounds=50, weight_power=0.0, walk=0.1, stride=1.5),
    Usual(most_noise=2e-3, factors=2, rounds=50, weight_power=0.0, walk=0.11, stride=1.5),
    Usual(most_noise=math.inf, factors=1, rounds=14, weight_power=0.45, walk=0.2, stride=3.0),
)


def usual(noise: float) -> Usual:
    """Return what is usual for that much noise for each user."""
    return next(each for each in _USUAL if noise <= each.most_noise)
