"""How many factors and steps `CentralDPSGD` takes, and how large ones: a rule from public numbers only.

It follows a random search on a validation part of MovieLens 1M at epsilon 1, 4 and 10, which
`benchmarks/central_search.py` repeats; nothing of it looks at the ratings at hand.
"""

import math
from dataclasses import dataclass

from cofactor.federation.halves import Facts

_WALK = 0.35
"""How far the noise of all steps together may carry a coordinate."""


@dataclass(frozen=True, kw_only=True)
class Usual:
    """What is usual where noise is so large."""

    most_noise: float
    """The most noise that one release with the whole budget would have, for each user."""
    factors: int
    rounds: int
    weight_power: float
    stride: float
    """How far a step reaches, relative to what items that are rated by many can stand."""

    def rate(self, facts: Facts, rounds: int, noise: float) -> float:
        """Return what multiplies the sum of contributions of length 1 at most.

        `noise` is that of one such sum. Each user contributes to the root of her ratings.
        """
        ratings_each = facts.rating_count / facts.user_count
        largest = self.stride * math.sqrt(ratings_each) / facts.user_count
        return largest if noise == 0 else min(largest, _WALK / (noise * math.sqrt(rounds)))


_USUAL = (
    Usual(most_noise=1.5e-4, factors=6, rounds=40, weight_power=0.0, stride=1.5),
    Usual(most_noise=4e-4, factors=4, rounds=25, weight_power=0.0, stride=1.5),
    Usual(most_noise=math.inf, factors=1, rounds=14, weight_power=0.45, stride=3.0),
)


def usual(noise: float) -> Usual:
    """Return what is usual for that much noise for each user."""
    return next(each for each in _USUAL if noise <= each.most_noise)
