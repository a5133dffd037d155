"""How many steps, how large, and how many factors: a rule from public numbers only.

Measured on MovieLens (docs/federations.md has the numbers); nothing of it looks at the ratings at hand. It is
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
USER_LIMIT = 5.0
"""The longest gradient of all ratings of a user together."""
_WALK = 0.35
"""How far the noise of all steps together may carry a coordinate."""
_CURVATURE = 8.0
"""A step larger than this over the longer side of the table would overshoot."""
_FEWEST_STEPS, _MOST_STEPS = 20, 200
_FEWEST_FACTORS, _MOST_FACTORS = 2, 20
_USER_WALK = 0.3
"""The same as _WALK where users are protected."""
_USER_CURVATURE = 6.0
_USERS_FOR, _MOST_TASTES = 5e-5, 8
"""Factors for each user, besides the bias, where one release has noise of one user."""
_RATINGS_FOR_A_FACTOR = 10
"""Ratings of a row that it takes to tell one coordinate of its vector."""
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


def mean_share(facts: Facts, noise: float, count: int) -> float:
    """Return the part of the budget that the mean costs if it is to be known to a tenth of a unit.

    `count` is how many ratings, or users, are added up. Between 1% and 10%.
    """
    wanted = (2.0 * noise * math.sqrt(len(facts.parties)) / (0.1 * count)) ** 2
    return min(max(wanted, 0.01), 0.1)


@dataclass(frozen=True, kw_only=True)
class UsualSteps:
    """The rule's choices."""

    factors: int
    steps: int
    way: float
    """The sum of all steps' sizes, if they did not fall: no more noise than this may add up."""
    largest: float
    """The largest step that does not overshoot."""

    @classmethod
    def of(cls, facts: Facts, noise: float) -> "UsualSteps":
        """Choose for both sides, protecting ratings; `noise` is what one release would need."""
        way = _over(_WALK / LIMIT, noise)
        largest = _CURVATURE / max(facts.user_count, facts.item_count)
        rows = (facts.user_count + facts.item_count) * len(facts.parties) ** 0.25
        factors = min(_over(_FACTORS_FOR * facts.rating_count / rows, noise), _learnable(facts))
        return cls(
            factors=int(min(max(factors, _FEWEST_FACTORS), _MOST_FACTORS)),
            steps=math.ceil(min(max(way / largest, _FEWEST_STEPS), _MOST_STEPS)),
            way=way,
            largest=largest,
        )

    @classmethod
    def for_items(cls, facts: Facts, noise: float, noises: float) -> "UsualSteps":
        """Choose for items alone, protecting users; the first factor is a bias.

        A sum over all parties has `noises` times the noise of one, as a variance.
        """
        in_all = noise * math.sqrt(noises)
        way = _over(_USER_WALK / USER_LIMIT, in_all)
        each = math.sqrt(facts.rating_count / facts.user_count)
        largest = _USER_CURVATURE * each / (facts.user_count * USER_LIMIT)
        factors = min(_over(_USERS_FOR * facts.user_count, in_all), _learnable(facts))
        return cls(
            factors=1 + int(min(factors, _MOST_TASTES)),
            steps=math.ceil(min(max(way / largest, _FEWEST_STEPS), _MOST_STEPS / 2)),
            way=way,
            largest=largest,
        )

    def rate(self, steps: int) -> float:
        """Return the size of the first of so many steps."""
        return min(self.way / steps, self.largest)


def _learnable(facts: Facts) -> float:
    """Return how many factors so many ratings can tell, if there were no noise."""
    return facts.rating_count / (facts.user_count + facts.item_count) / _RATINGS_FOR_A_FACTOR


def _over(number: float, noise: float) -> float:
    return math.inf if noise == 0 else number / noise
