"""How many steps, how large, and how many factors: a rule from public numbers only.

Measured on MovieLens (docs/recipes.md has the numbers); nothing of it looks at the ratings at hand. It is
stated for ratings in units in which a scale from 1 to 5 has unit 1.
"""

import math
from dataclasses import dataclass

from cofactor.federation.halves import Facts
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.events import Bound
from cofactor.privacy.mechanisms import Gaussian
from cofactor.privacy.schedule import Release, Schedule

LIMIT = 2.5
"""The longest gradient of one rating; few are longer once ratings are centred."""
_WALK = 0.35
"""How far the noise of all steps together may carry a coordinate."""
_CURVATURE = 8.0
"""A step larger than this over the longer side of the table would overshoot."""
_FEWEST_STEPS, _MOST_STEPS = 20, 200
_FEWEST_FACTORS, _MOST_FACTORS = 2, 20
_FACTORS_FOR = 0.055
"""Factors for each rating that a row has, where one release has noise of one rating."""


def one_release(budget: Budget, facts: Facts) -> float:
    """Return the noise multiplier that one release would need if it had the whole budget."""
    bound = Bound(size=1.0, norm="l2", unit=budget.unit, adjacency="empty")
    release = Release(what="one release", mechanism=Gaussian(), bound=bound, dimension=1)
    shared = facts.split == "vertical" and budget.unit == "user"
    schedule = Schedule(releases=(release,), rounds=1, parties=len(facts.parties), shared_units=shared)
    settled = calibrated(schedule, budget).releases[0].mechanism
    assert isinstance(settled, Gaussian)
    return settled.noise_multiplier


@dataclass(frozen=True, kw_only=True)
class UsualSteps:
    """The rule's choices."""

    factors: int
    steps: int
    way: float
    """The sum of all steps' sizes, if they did not fall: no more noise than this may add up."""

    @classmethod
    def of(cls, facts: Facts, noise: float) -> "UsualSteps":
        """Choose for a federation and the noise that one release would need."""
        longer = max(facts.user_count, facts.item_count)
        way = math.inf if noise == 0 else _WALK / (noise * LIMIT)
        steps = min(max(way * longer / _CURVATURE, _FEWEST_STEPS), _MOST_STEPS)
        rows = (facts.user_count + facts.item_count) * len(facts.parties) ** 0.25
        wanted = math.inf if noise == 0 else _FACTORS_FOR * facts.rating_count / (rows * noise)
        factors = min(max(wanted, _FEWEST_FACTORS), _MOST_FACTORS)
        return cls(factors=int(factors), steps=math.ceil(steps), way=way)

    def rate(self, steps: int, facts: Facts) -> float:
        """Return the size of the first of so many steps."""
        return min(self.way / steps, _CURVATURE / max(facts.user_count, facts.item_count))
