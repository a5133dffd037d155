"""What a federation must know before it trains, and nobody may collect: asked by private surveys.

How many ratings users have, to choose how many of each to use; and how ratings are spread, to centre them.
`train(..., surveys=[...])` counts both against the run's budget.
"""

import math
from dataclasses import dataclass

from cofactor.config import positive
from cofactor.errors import ConfigError, DataError, Refused
from cofactor.federation.doubts import doubts_about
from cofactor.federation.federation import Federation
from cofactor.privacy.budget import Budget
from cofactor.randomness import Random, SecureRandom
from cofactor.survey.asking import ask
from cofactor.survey.method import NOTHING, left_open
from cofactor.survey.people import activity_of, one_rating_each
from cofactor.survey.question import Question
from cofactor.survey.result import Survey

ACTIVITY, RATING = "ratings of a user", "a rating of each user"
"""What is asked, as ledgers name it."""
_UNTOUCHED = 0.75
"""Part of all users who have no more ratings than the cap."""
_SECURE = SecureRandom()


@dataclass(frozen=True, kw_only=True, eq=False)
class ChosenCap:
    """How many ratings of each user to use, and the survey that says so."""

    most_ratings: int
    """For the recipe's setting of that name."""
    between: tuple[int, int]
    """Where it would lie for nine of ten such surveys, noise and people drawn again."""
    kept: float
    """Part of all ratings, by the survey, that is used."""
    survey: Survey
    """For `train(..., surveys=[...])`."""

    @classmethod
    def of(cls, survey: Survey) -> "ChosenCap":
        """Return the cap that a survey of activity says: as many as three users of four have at most."""
        found = survey.distribution
        if found is None or survey.question.name != ACTIVITY:
            raise ConfigError(f"a cap follows from how {ACTIVITY!r} are spread, and from nothing else.")
        cap, around = found.quantile(_UNTOUCHED), survey.band(0.9, repeats=50).quantile(_UNTOUCHED)
        return cls(
            most_ratings=int(cap),
            between=(int(around.low), int(around.high)),
            kept=float(found.mean_below_cap(cap) / found.mean),
            survey=survey,
        )

    def __str__(self) -> str:
        """Say what was chosen."""
        return (
            f"at most {self.most_ratings:,} ratings of each user ({self.between[0]:,} to "
            f"{self.between[1]:,}), which keeps about {self.kept:.0%} of all: a survey at epsilon "
            f"{self.survey.method.epsilon:g}"
        )


def choose_cap(
    federation: Federation,
    epsilon: float,
    *,
    budget: Budget | None = None,
    random: Random = _SECURE,
    newer_data: bool = False,
) -> ChosenCap:
    """Ask every user how many ratings she has, privately, and choose how many to use of each.

    It is as many as three users of four have at most. Noise grows with the root of the cap c, and what a sum
    is made of with E[min(activity, c)]; on four real sets of ratings the most of the one for the other is had
    where 61% to 82% of users have no more than c, and three quarters reach 98% of it. A quantile is also what
    a few noisy answers tell best. `budget` is that of the whole training: see `ask`.
    """
    _check_worth(federation, epsilon)
    items = federation.facts.item_count
    if items < 2:
        raise DataError("where there is one item nobody has several ratings: there is no cap to choose.")
    question = Question(name=ACTIVITY, low=1, high=items, whole=True, log=True)
    return ChosenCap.of(
        ask(
            activity_of(_asked_once(federation)),
            question,
            epsilon=epsilon,
            budget=budget,
            random=random,
            newer_data=newer_data,
            doubts=doubts_about(federation),
        )
    )


def rating_histogram(
    federation: Federation,
    epsilon: float,
    *,
    budget: Budget | None = None,
    random: Random = _SECURE,
    newer_data: bool = False,
) -> Survey:
    """Ask every user for one of her ratings, drawn by chance, privately.

    Its `mean` is where a recipe may centre ratings: `centre`. Every user counts alike in it, however many
    ratings she has. `budget` is that of the whole training: see `ask`.
    """
    _check_worth(federation, epsilon)
    if federation.implicit:
        raise DataError("the rows only tell that something happened: there are no ratings to spread.")
    scale = federation.scale
    steps = float(scale.low).is_integer() and float(scale.high).is_integer()
    return ask(
        one_rating_each(_asked_once(federation), random, whole=steps),
        Question(name=RATING, low=scale.low, high=scale.high, whole=steps),
        epsilon=epsilon,
        budget=budget,
        random=random,
        newer_data=newer_data,
        doubts=doubts_about(federation),
    )


def _check_worth(federation: Federation, epsilon: float) -> None:
    """Refuse to spend a part of a budget on answers that would tell next to nothing, before it is spent."""
    if not isinstance(federation, Federation):
        raise ConfigError(
            "surveys before a training are of a Federation: Federation.horizontal, or Federation.on_device."
        )
    positive(epsilon=epsilon)
    users = federation.facts.user_count
    if left_open(epsilon, users) <= NOTHING:
        return
    least = 0.5 / (NOTHING * math.sqrt(users))
    from_here = f"From epsilon {2 * math.atanh(least) + 0.005:.2f} on they" if least < 1 else "So few never"
    raise Refused(
        f"answers of {users:,} users at epsilon {epsilon:g} would tell next to nothing: nobody was asked. "
        f"{from_here} tell something; without a survey the recipe makes its own guess."
    )


def _asked_once(federation: Federation) -> Federation:
    """Refuse a federation in which a user would be asked by several parties."""
    if federation.kind == "vertical":
        raise ConfigError(
            "users of a vertical federation are at all parties, and each would ask them. Survey one party: "
            "Federation.horizontal([party])."
        )
    if federation.weights is not None:
        raise ConfigError("a survey asks all users alike, and weights promise some more. Leave one out.")
    return federation
