"""`VerticalMF`: parties with different items of the same users factorize together (Li et al. 2022, sec. 4).

User and item vectors are released with noise in every local step, so that both may be published. A party that
predicts for its own users does better with `VerticalTaste`, which uses raw ratings at home.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from cofactor.config import fraction, plain_numbers, positive, whole
from cofactor.errors import ConfigError
from cofactor.federation.halves import Facts, Home, Promise, Split
from cofactor.federation.messages import Message
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.events import Bound
from cofactor.privacy.mechanisms import Gaussian
from cofactor.privacy.schedule import Release, Schedule
from cofactor.recipes.clipping import EmbeddingClipping, GradientClipping, Reach, reach
from cofactor.recipes.local_steps import mean_release, not_centred, step_noise
from cofactor.recipes.shared_vectors import Begin, Finished, Shared, Total, Vectors
from cofactor.recipes.usual_steps import LIMIT, UsualSteps, one_release
from cofactor.recipes.vertical_halves import FINE_TUNING, STEPS, VerticalCoordinator, VerticalParticipant

_BEGINNING, _SMALL = 0.6, 0.2
"""Where the coordinates that begin as biases stand, and how far the others lie from 0, all together."""


@dataclass(frozen=True, kw_only=True)
class VerticalMF:
    """Matrix factorization for parties who hold different items of the same users.

    What is left out is chosen when the federation is known, from public numbers only.
    """

    split: ClassVar[Split] = "vertical"
    units: ClassVar[tuple[Unit, ...]] = ("rating", "user")
    messages: ClassVar[tuple[type[Message], ...]] = (Begin, Total, Shared, Finished, Vectors)

    factors: int | None = None
    """Length of each user's and item's vector."""
    rounds: int | None = None
    """How often the parties' user vectors are averaged: T in the paper."""
    local_steps: int | None = None
    """Steps that each party takes between two averages, each with noise of its own: T' in the paper."""
    sampling: float | None = None
    """Probability with which each user takes part in a step; 1 for all."""
    clipping: EmbeddingClipping | GradientClipping | None = None
    """What bounds the change that one rating, or one user, can make."""
    learning_rate: float | None = None
    """Size of the first step: what multiplies the sum of the gradients of all parties."""
    decay: float = 0.2
    """Size of the last steps, as a part of the first, to which it falls in a straight line."""
    decay_until: float = 1.0
    """Part of all steps after which the size stays as it is."""
    centre: float | None = None
    """The mean rating, if it is public. Left out, it is released with noise. Gradient clipping takes it off
    all ratings; embedding clipping only begins there."""
    most_ratings: int | None = None
    """Ratings of each user that a party uses, where users are the unit: theta in the paper."""
    fine_tuning: int = 0
    """Steps at the end in which only item vectors move: kappa in the paper."""
    alone: bool = False
    """Whether parties never hear of each other: what cooperation is measured against."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(factors=self.factors, rounds=self.rounds, local_steps=self.local_steps)
        whole(most_ratings=self.most_ratings, fine_tuning=self.fine_tuning or None)
        positive(learning_rate=self.learning_rate, decay=self.decay, decay_until=self.decay_until)
        if self.sampling is not None and self.sampling != 1:
            fraction(sampling=self.sampling)
        if not isinstance(self.clipping, EmbeddingClipping | GradientClipping | None):
            raise ConfigError("clipping must be EmbeddingClipping() or GradientClipping(limit=...).")

    @classmethod
    def as_published(cls, parties: int = 1) -> "VerticalMF":
        """Return the setting of Li et al. (2022), section 4.3, for so many parties."""
        whole(parties=parties)
        return cls(
            factors=20,
            rounds=100,
            local_steps=10,
            sampling=0.01,
            clipping=EmbeddingClipping(),
            decay=0.1,
            decay_until=0.8,
            most_ratings=10 if parties == 1 else 5 if parties <= 10 else 2,
        )

    def settled(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe with all choices made, from public numbers only."""
        if self.centre is not None and not facts.scale.low <= self.centre <= facts.scale.high:
            raise ConfigError(f"centre {self.centre:g} does not lie on the scale, {facts.scale}.")
        if self.clipping is not None:
            self.clipping.check_scale(lowest=facts.scale.low)
        return self._with_usual_settings(facts, budget)._trimmed(facts, budget)

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:
        """Return everything that a party will release; noise is relative."""
        assert self.factors is not None
        assert self.local_steps is not None
        assert self.rounds is not None
        items = facts.items[facts.place(party)]
        rows = facts.user_count + items
        both = self._reach(facts, unit, both=True).bound
        releases = [self._release(STEPS, both, rows * self.factors, self.local_steps, self.rounds)]
        if self.fine_tuning:
            alone = self._reach(facts, unit, both=False).bound
            releases += [self._release(FINE_TUNING, alone, items * self.factors, self.fine_tuning, 1)]
        if self.centre is None:
            releases += [mean_release(facts, unit, self.most_ratings, self.steps, self.sampling or 1.0)]
        return Schedule(
            releases=tuple(releases),
            rounds=self.rounds,
            parties=len(facts.parties),
            shared_units=unit == "user",
            users=facts.user_count,
        )

    def participant(self, home: Home) -> VerticalParticipant:
        """Return a party's half."""
        return VerticalParticipant(self, home)

    def coordinator(self, facts: Facts, seed: int) -> VerticalCoordinator:
        """Return the coordinator's half."""
        return VerticalCoordinator(self, facts, seed)

    def promise(self, facts: Facts, budget: Budget) -> Promise:
        """Return what the guarantee says besides its numbers."""
        warnings = () if budget.unit == "rating" else (_USER_VECTORS,)
        return Promise(
            against=("the coordinator", "the other parties", "everyone who sees the vectors"),
            covers=("User vectors and item vectors, in every round and at the end.",),
            does_not_cover=(
                "Who the users are, which items there are, and how many ratings each party has: public.",
                "What a party shows to its own users.",
            ),
            warnings=(*warnings, *two_parties(facts)),
        )

    @property
    def steps(self) -> int:
        """Local steps in all rounds."""
        assert self.rounds is not None
        assert self.local_steps is not None
        return self.rounds * self.local_steps

    def used(self, facts: Facts) -> dict[str, float]:
        """Return about how many ratings each party uses."""
        most = math.inf if self.most_ratings is None else facts.user_count * self.most_ratings
        return {party: min(count, most) for party, count in zip(facts.parties, facts.ratings, strict=True)}

    def rates(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the sizes of steps number `start` to `stop`."""
        assert self.learning_rate is not None
        done = np.minimum(np.arange(start, stop) / (self.decay_until * self.steps), 1.0)
        return self.learning_rate * (1 - (1 - self.decay) * done)

    def start(
        self, side: Literal["users", "items"], count: int, centre: float, random: np.random.Generator
    ) -> NDArray[np.float32]:
        """Return vectors to begin with, which depend on nothing private.

        Where vectors may not be negative they begin near the mean rating (Li et al. 2022). Otherwise two
        coordinates begin as the users' and the items' biases: (a, 0) for all users, (0, a) for all items.
        """
        assert self.factors is not None
        assert self.clipping is not None
        shape = (count, self.factors)
        if not_centred(self.clipping):
            level = math.sqrt(max(centre, 0.0) / self.factors)
            return (level * random.uniform(0.8, 1.2, shape)).astype(np.float32)
        vectors = random.normal(0.0, _SMALL / math.sqrt(self.factors), shape)
        own = 0 if side == "users" else 1
        vectors[:, :2] = 0.0
        vectors[:, min(own, self.factors - 1)] = _BEGINNING
        return vectors.astype(np.float32)

    def _with_usual_settings(self, facts: Facts, budget: Budget | None) -> Self:
        chosen = replace(
            self,
            clipping=self.clipping or GradientClipping(limit=LIMIT),
            sampling=self.sampling or 1.0,
            local_steps=self.local_steps or 1,
        )
        noise = 0.0 if budget is None else one_release(budget, len(facts.parties), facts.split)
        usual = UsualSteps.of(facts, noise)
        chosen = replace(
            chosen,
            factors=self.factors or usual.factors,
            rounds=self.rounds or max(1, round(usual.steps / (chosen.local_steps or 1))),
        )
        if self.learning_rate is not None:
            return chosen
        assert chosen.clipping is not None
        if not_centred(chosen.clipping):
            return replace(chosen, learning_rate=chosen._published_rate(facts, budget))
        return replace(chosen, learning_rate=usual.rate(chosen.steps, facts))

    def _published_rate(self, facts: Facts, budget: Budget | None) -> float:
        """Let the noise of all steps together walk as far as a coordinate begins from zero.

        Without noise, one over the curvature that an average user's row has.
        """
        assert self.factors is not None
        most = facts.user_count / (2 * facts.scale.high * facts.rating_count)
        if budget is None:
            return most
        schedule = self._trimmed(facts, budget).schedule(facts, budget.unit, facts.parties[0])
        release = calibrated(schedule, budget).releases[0]
        assert isinstance(release.mechanism, Gaussian)
        level = math.sqrt((facts.scale.low + facts.scale.high) / 2 / self.factors)
        noise = release.mechanism.noise_size(release.bound)
        return min(most, level / (noise * math.sqrt(self.steps)))

    def _trimmed(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe with a number of ratings for each user where users are the unit, else without."""
        most = self.most_ratings or (10 if len(facts.parties) == 1 else 5)
        by_user = budget is not None and budget.unit == "user"
        return replace(self, most_ratings=most if by_user else None)

    def _reach(self, facts: Facts, unit: Unit, *, both: bool) -> Reach:
        assert self.clipping is not None
        return reach(
            self.clipping, highest=facts.scale.high, unit=unit, most_ratings=self.most_ratings, both=both
        )

    def _release(self, what: str, bound: Bound, dimension: int, times: int, rounds: int) -> Release:
        noise = step_noise(self.sampling)
        return Release(
            what=what, mechanism=noise, bound=bound, dimension=dimension, times=times, rounds=rounds
        )


_USER_VECTORS = (
    "A user vector that is released may not depend on that user, if users are the unit: such vectors carry "
    'next to nothing. Protect each rating instead (unit "rating"), or keep user vectors at home (horizontal).'
)


def two_parties(facts: Facts) -> tuple[str, ...]:
    """Warn where a sum hides nothing: of two parties each can take its own part off."""
    if len(facts.parties) != 2:
        return ()
    return (
        "Of two parties, each can take its own part off the average and see the other's: noise protects it "
        "alone.",
    )
