"""How much one unit's ratings may move the vectors: the two ways to bound a gradient, and the bound of each.

Gradients are those of the squared error (x - <u, v>)^2, factor 2 included: -2 v (x - <u, v>) for a user's
vector u, and -2 u (x - <u, v>) for an item's vector v.
"""

import math
from dataclasses import dataclass

from cofactor.config import one_of, plain_numbers, positive, whole
from cofactor.errors import ConfigError
from cofactor.privacy.budget import UNITS, Unit
from cofactor.privacy.events import Bound

SMALLEST, LARGEST = 1e-6, 1e6
"""Ratings, radii and limits outside this range would meet the ends of float32."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingClipping:
    """Keep vectors non-negative and shorter than the root of the highest rating (Li et al. 2022, eq. 6).

    Predictions then lie on the scale, no error exceeds the highest rating, and every gradient is bounded
    without a limit to choose. That needs ratings from 0 up: nothing may be subtracted from them.
    """

    def check_scale(self, *, lowest: float, centre: float = 0.0) -> None:
        """Refuse ratings below 0, and a centre that would put them there."""
        if centre != 0:
            raise ConfigError(
                f"EmbeddingClipping needs ratings as they are, got centre {centre:g}. Use centre 0, or "
                "GradientClipping."
            )
        if not lowest >= 0:
            raise ConfigError(
                f"EmbeddingClipping needs ratings from 0 up, got a scale from {lowest:g}. Shift the scale, "
                "or use GradientClipping."
            )

    def radius(self, highest: float) -> float:
        """Return the length below which vectors stay."""
        return math.sqrt(highest)


@dataclass(frozen=True, kw_only=True)
class GradientClipping:
    """Shorten each unit's gradient, user and item vectors together, to a limit.

    That of each rating for unit "rating"; that of all of a user's chosen ratings together for unit "user".
    """

    limit: float = 10.0
    """The longest gradient of one unit."""
    nonnegative: bool = False
    """Whether vectors are kept non-negative as well as short."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        within(limit=self.limit)
        if not isinstance(self.nonnegative, bool):
            raise ConfigError("nonnegative must be true or false.")

    def check_scale(self, *, lowest: float, centre: float = 0.0) -> None:
        """Accept any scale and centre: the limit alone bounds a gradient."""


Clipping = EmbeddingClipping | GradientClipping


@dataclass(frozen=True, kw_only=True)
class Reach:
    """The most that one unit changes the sums of gradients, and how noise is shared between the two sums.

    The sum over users gets noise of deviation `noise_size(bound) * users`, that over items of
    `noise_size(bound) * items`. Divided by these factors, both sums together change by at most the bound: one
    release, of one event.
    """

    bound: Bound
    """The most that one unit changes both sums together."""
    users: float | None
    """Factor of the noise on the sum for user vectors; None if user vectors stay as they are."""
    items: float
    """Factor of the noise on the sum for item vectors."""


def reach(clipping: Clipping, *, highest: float, unit: Unit, most_ratings: int | None, both: bool) -> Reach:
    """Return how far one unit reaches; `both` if user vectors move too, else item vectors alone.

    `highest` is the highest rating, and `most_ratings` the most that a user has: needed for unit "user" under
    embedding clipping, where each rating has its own bound.
    """
    one_of(UNITS, unit=unit)
    within(highest=highest)
    whole(most_ratings=most_ratings)
    if isinstance(clipping, GradientClipping):
        return _alike(clipping.limit, unit, both)
    longest = 2 * highest * clipping.radius(highest)  # Li et al. 2022, section 4.1: 2 R^(3/2)
    if unit == "rating":
        return _alike(longest * math.sqrt(2) if both else longest, unit, both)
    if most_ratings is None:
        raise ConfigError(
            'EmbeddingClipping bounds each rating: unit "user" needs most_ratings. Trim users to that many.'
        )
    # A user's ratings add up in the user's own row, but each moves another item's row.
    on_items = math.sqrt(most_ratings) * longest
    return _apart(most_ratings * longest, on_items) if both else _alike(on_items, unit, both)


def _alike(size: float, unit: Unit, both: bool) -> Reach:
    return Reach(bound=_bound(size, unit), users=1.0 if both else None, items=1.0)


def _apart(on_users: float, on_items: float) -> Reach:
    """Return the reach of two bounds with noise in proportion to each: 1/z_U^2 + 1/z_V^2 = 1/z^2.

    With equal multipliers z_U = z_V = sqrt(2) z the product of both deviations is least.
    """
    size = math.hypot(on_users, on_items)
    share = math.sqrt(2) / size
    return Reach(bound=_bound(size, "user"), users=share * on_users, items=share * on_items)


def _bound(size: float, unit: Unit) -> Bound:
    return Bound(size=size, norm="l2", unit=unit, adjacency="empty")


def within(**settings: float) -> None:
    """Refuse numbers that float32 could not compute with."""
    positive(**settings)
    for name, value in settings.items():
        if not SMALLEST <= value <= LARGEST:
            raise ConfigError(f"{name} must lie between {SMALLEST:g} and {LARGEST:g}, got {value:g}.")
