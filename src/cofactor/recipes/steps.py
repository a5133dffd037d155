"""`Steps`: how `VerticalMF` and `HorizontalMF` move their vectors, with all choices made."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from cofactor.config import fraction, positive, whole
from cofactor.errors import ConfigError, RunError
from cofactor.federation.halves import Facts
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.mechanisms import Gaussian, SampledGaussian, Skellam
from cofactor.privacy.schedule import Release, Schedule
from cofactor.recipes.clipping import Clipping, EmbeddingClipping, GradientClipping, Reach, reach
from cofactor.recipes.usual_steps import UsualSteps

T = TypeVar("T")
Floats = NDArray[np.float32]

RADIUS = 2.0
"""No centred vector is longer, in the units of training: a guard against steps that are too large."""
_BEGINNING, _SMALL = 0.6, 0.2
"""Where the coordinates that begin as biases stand, and how far the others lie from 0, all together."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """The settings of a recipe that takes private steps; fields are as in the recipes."""

    factors: int
    rounds: int
    local_steps: int
    sampling: float
    clipping: Clipping
    learning_rate: float
    decay: float
    decay_until: float
    centre: float | None
    mean_share: float
    most_ratings: int | None

    @classmethod
    def of(cls, recipe: Any) -> Self:
        """Read the settings of a recipe that is settled."""
        found = {field.name: getattr(recipe, field.name) for field in fields(cls)}
        missing = [name for name in found if found[name] is None and name not in ("centre", "most_ratings")]
        if missing:
            raise RunError(f"{type(recipe).__name__} is not settled: {', '.join(missing)} are still open.")
        return cls(**found)

    @classmethod
    def chosen(
        cls,
        recipe: Any,
        usual: UsualSteps,
        *,
        clipping: Clipping,
        mean_share: float,
        most_ratings: int | None,
    ) -> Self:
        """Take what a recipe says, and where it says nothing what is usual."""
        local_steps = recipe.local_steps or 1
        rounds = recipe.rounds or max(1, round(usual.steps / local_steps))
        return cls(
            factors=recipe.factors or usual.factors,
            rounds=rounds,
            local_steps=local_steps,
            sampling=recipe.sampling or 1.0,
            clipping=recipe.clipping or clipping,
            learning_rate=recipe.learning_rate or usual.rate(rounds * local_steps),
            decay=recipe.decay,
            decay_until=recipe.decay_until,
            centre=recipe.centre,
            mean_share=recipe.mean_share or mean_share,
            most_ratings=most_ratings,
        )

    @property
    def total(self) -> int:
        """Steps in all rounds."""
        return self.rounds * self.local_steps

    @property
    def centred(self) -> bool:
        """Whether the mean is taken off ratings: not where vectors may not be negative."""
        clipping = self.clipping
        return not (isinstance(clipping, EmbeddingClipping) or clipping.nonnegative)

    @property
    def asks_mean(self) -> bool:
        """Whether the mean is released: where it is taken off ratings, and nobody has said what it is."""
        return self.centred and self.centre is None

    @property
    def first(self) -> int:
        """The first round with steps: the second one, where the mean is asked for before them."""
        return 1 + self.asks_mean

    def beginning(self, facts: Facts) -> float:
        """Return the mean rating as far as it is public: the middle of the scale, if nobody says."""
        return (facts.scale.low + facts.scale.high) / 2 if self.centre is None else self.centre

    def radius(self, facts: Facts) -> float:
        """Return the length that no vector has, in the units of training."""
        return RADIUS if self.centred else math.sqrt(facts.scale.high)

    def offset(self, centre: float) -> float:
        """Return what is taken off all ratings."""
        return centre if self.centred else 0.0

    def unit_size(self, facts: Facts) -> float:
        """Return the units of training: 1 for a scale from 1 to 5, and where ratings are not centred."""
        return (facts.scale.high - facts.scale.low) / 4 if self.centred else 1.0

    def rates(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the sizes of steps number `start` to `stop`."""
        done = np.minimum(np.arange(start, stop) / (self.decay_until * self.total), 1.0)
        return self.learning_rate * (1 - (1 - self.decay) * done)

    def start(
        self, side: Literal["users", "items"], count: int, centre: float, random: np.random.Generator
    ) -> Floats:
        """Return vectors to begin with, which depend on nothing private.

        Where vectors may not be negative they begin near the mean rating (Li et al. 2022). Otherwise two
        coordinates begin as the users' and the items' biases: (a, 0) for all users, (0, a) for all items.
        """
        shape = (count, self.factors)
        if not self.centred:
            return (self.level(centre) * random.uniform(0.8, 1.2, shape)).astype(np.float32)
        vectors = random.normal(0.0, _SMALL / math.sqrt(self.factors), shape)
        vectors[:, :2] = 0.0
        vectors[:, 0 if side == "users" else min(1, self.factors - 1)] = _BEGINNING
        return vectors.astype(np.float32)

    def level(self, centre: float) -> float:
        """Return where the coordinates of vectors that may not be negative begin."""
        return math.sqrt(max(centre, 0.0) / self.factors)

    def reach(self, facts: Facts, unit: Unit, *, both: bool) -> Reach:
        """Return how far one unit reaches in a step."""
        most = self.most_ratings
        return reach(self.clipping, highest=facts.scale.high, unit=unit, most_ratings=most, both=both)

    def release(self, what: str, reach: Reach, dimension: int, *, times: int, rounds: int) -> Release:
        """Return the release of so many steps in each of so many rounds; noise is still to be scaled."""
        noise = Gaussian() if self.sampling == 1 else SampledGaussian(sampling=self.sampling)
        return Release(
            what=what,
            mechanism=noise,
            bound=reach.bound,
            dimension=dimension,
            times=times,
            rounds=rounds,
            first=self.first,
        )

    def published_rate(
        self, facts: Facts, budget: Budget | None, schedule: Schedule | None, grain: float = 1.0
    ) -> float:
        """Let the noise of all steps together walk half as far as a coordinate begins from zero.

        Without noise, one over the curvature that an average user's row has. Noise is counted in grains.
        """
        most = facts.user_count / (2 * facts.scale.high * facts.rating_count)
        if budget is None or schedule is None:
            return most
        release = calibrated(schedule, budget).releases[0]
        assert isinstance(release.mechanism, Gaussian | Skellam)
        noise = release.mechanism.noise_size(release.bound) * grain
        return min(most, self.level(self.beginning(facts)) / (2 * noise * math.sqrt(self.total)))

    def settings(self) -> dict[str, Any]:
        """Return the fields by name, to settle a recipe with."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def with_rate(recipe: T, steps: Steps, facts: Facts, budget: Budget | None) -> T:
    """Return a recipe with these settings; vectors that may not be negative take steps as published."""
    settled: Any = replace(cast(Any, recipe), **steps.settings())
    if not steps.centred and cast(Any, recipe).learning_rate is None:
        schedule = None if budget is None else settled.schedule(facts, budget.unit, facts.parties[0])
        rate = steps.published_rate(facts, budget, schedule, getattr(settled, "grain", None) or 1.0)
        settled = replace(settled, learning_rate=rate)
    return cast(T, settled)


def check_settings(recipe: Any) -> None:
    """Refuse settings of a recipe that make no sense."""
    whole(factors=recipe.factors, rounds=recipe.rounds, local_steps=recipe.local_steps)
    whole(most_ratings=recipe.most_ratings)
    positive(learning_rate=recipe.learning_rate, decay=recipe.decay, decay_until=recipe.decay_until)
    if recipe.mean_share is not None:
        fraction(mean_share=recipe.mean_share)
    if recipe.sampling is not None and recipe.sampling != 1:
        fraction(sampling=recipe.sampling)
    if not isinstance(recipe.clipping, EmbeddingClipping | GradientClipping | None):
        raise ConfigError("clipping must be EmbeddingClipping() or GradientClipping(limit=...).")


def check_scale(recipe: Any, facts: Facts) -> None:
    """Refuse a centre beyond the scale, and a scale that a clipping cannot have."""
    if recipe.centre is not None and not facts.scale.low <= recipe.centre <= facts.scale.high:
        raise ConfigError(f"centre {recipe.centre:g} does not lie on the scale, {facts.scale}.")
    if recipe.clipping is not None:
        recipe.clipping.check_scale(lowest=facts.scale.low)
