"""`PrivateDescent`: the private gradient steps that a party takes on its own ratings (Li et al. 2022, eq. 7).

A step adds up the bounded gradients of users, or ratings, chosen in secret, adds noise to every row of all
vectors that move, whether anybody touched it or not, and projects them. What the steps reveal is one event:
nothing but the vectors after the last step leaves, yet the event pays for those of every step.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor.config import fraction, one_of, whole
from cofactor.data.grouping import Grouped, Offsets
from cofactor.errors import ConfigError
from cofactor.factors.simd import Table, cells, new_table
from cofactor.factors.whole_rows import step_size, whole_cells
from cofactor.privacy import noise
from cofactor.privacy.bounding import Shortened
from cofactor.privacy.budget import UNITS, Unit
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.mechanisms import Gaussian, SampledGaussian
from cofactor.randomness import InsecureRandom, Random, SecureRandom
from cofactor.recipes.clipping import Clipping, EmbeddingClipping, GradientClipping, Reach, reach, within
from cofactor.recipes.descent_inputs import (
    Rates,
    check_ratings,
    checked_chosen,
    checked_rates,
    checked_vectors,
    table_of,
)
from cofactor.recipes.descent_kernels import (
    MARGIN,
    Known,
    Motion,
    Noise,
    Sums,
    Vectors,
    add_ratings,
    add_users,
    move_items,
    move_users,
    project,
    some_ratings,
)

Read = Callable[[float, int, Shortened], None]
"""Is told what only a simulation may know of a step: the squares of its sums, each divided by its noise's
variance; how many numbers these are; and how many gradients were shortened."""


class Gradients(NamedTuple):
    """Sums of gradients, a row for each user and item."""

    users: NDArray[np.float64] | None
    """None if user vectors stay as they are."""
    items: NDArray[np.float64]


class WholeSums(NamedTuple):
    """Sums of gradients in whole grains, a row for each user and item, and the most that one unit adds."""

    users: NDArray[np.int64] | None
    """None if user vectors stay as they are."""
    items: NDArray[np.int64]
    bound: Bound
    """Of both together, in grains."""
    user_grain: float
    """What 1 stands for in the sums for users; that for items may differ."""
    item_grain: float
    shortened: Shortened
    """How many gradients were, and of how many: private."""


class Grid(NamedTuple):
    """In which steps sums are counted, and how much noise they get."""

    user_step: float
    item_step: float
    user_deviation: np.float32
    """In steps of its own, as is that of items; 0 for no noise."""
    item_deviation: np.float32


class PrivateDescent:
    """One party's ratings and vectors. Vectors always satisfy what their clipping asks for."""

    def __init__(
        self,
        ratings: Grouped,
        users: ArrayLike,
        items: ArrayLike,
        *,
        clipping: Clipping,
        unit: Unit,
        highest: float,
        most_ratings: int | None = None,
        radius: float | None = None,
    ) -> None:
        """Take ratings by user, less the public centre, and vectors, of which copies are kept.

        No rating may exceed `highest` in absolute value. `radius` is that of gradient clipping, by default
        sqrt(highest). For unit "user", no user may have more than `most_ratings`, where given.
        """
        one_of(UNITS, unit=unit)
        within(highest=highest)
        self.clipping, self.unit, self.highest, self.most_ratings = clipping, unit, highest, most_ratings
        self.radius = _radius(clipping, highest, radius)
        self._users, self.factors = table_of("users", users)
        self._items, item_factors = table_of("items", items)
        if self.factors != item_factors:
            raise ConfigError(f"users have {self.factors} factors, items {item_factors}. They must agree.")
        check_ratings(
            ratings,
            users=self._users.size,
            items=self._items.size,
            lowest=0.0 if isinstance(clipping, EmbeddingClipping) else -highest,
            highest=highest,
            most_ratings=most_ratings if unit == "user" else None,
        )
        self.reach(both=True)
        self._ratings = ratings.read_only()
        self._slopes = np.empty(int(ratings.sizes.max(initial=0)), np.float32)
        self._zero, self._inside = (new_table(1, self.factors) for _ in range(2))
        cells(self._inside)[:, : self.factors] = 1
        for table in (self._users, self._items):
            self._project(table)

    @property
    def users(self) -> NDArray[np.float32]:
        """The users' vectors, a copy; those that are set are projected."""
        return cells(self._users)[:, : self.factors].copy()

    @users.setter
    def users(self, vectors: ArrayLike) -> None:
        self._set("users", self._users, vectors)

    @property
    def items(self) -> NDArray[np.float32]:
        """The items' vectors, a copy; those that are set are projected."""
        return cells(self._items)[:, : self.factors].copy()

    @items.setter
    def items(self, vectors: ArrayLike) -> None:
        self._set("items", self._items, vectors)

    def reach(self, *, both: bool) -> Reach:
        """Return how far one unit reaches in a step that moves both sides, or items alone."""
        return reach(
            self.clipping, highest=self.highest, unit=self.unit, most_ratings=self.most_ratings, both=both
        )

    def take(
        self,
        steps: int,
        *,
        mechanism: Gaussian | None,
        rate_users: Rates | None,
        rate_items: Rates,
        random: Random,
        what: str,
        by: str,
        to: str,
        sampling: float | None = None,
        read: Read | None = None,
    ) -> Event | None:
        """Take steps and return their event: of count `steps`, or None without a mechanism.

        Rates, one or one for each step, multiply the sum of gradients. Without `rate_users` user vectors stay
        as they are: they must not leave, or for unit "rating" must come from released numbers alone.
        `sampling` is for steps without a mechanism; a `SampledGaussian` has its own. `read` is told of the
        first step.
        """
        whole(steps=steps)
        both = rate_users is not None
        event = self.event(mechanism, both, random, what, by, to)
        grid, item_sums = self._grid(mechanism, both), new_table(self._items.size, self.factors)
        for_items = checked_rates("rate_items", rate_items, steps, grid.item_step)
        for_users = checked_rates(
            "rate_users", 0.0 if rate_users is None else rate_users, steps, grid.user_step
        )
        for user_rate, item_rate in zip(for_users, for_items, strict=True):
            ratings, chosen = self._batch(mechanism, sampling, random)
            sums, shortened = self._add_up(ratings, chosen, grid, item_sums, both)
            if read is not None and mechanism is not None:
                read(self._signal(sums, grid, both), self._numbers(both), shortened)
                read = None
            if both:
                drawn = Noise(random.new_key(), grid.user_deviation)
                move_users(self._users, sums, chosen, drawn, self._motion(user_rate))
            drawn = Noise(random.new_key(), grid.item_deviation)
            move_items(self._items, sums, drawn, self._motion(item_rate))
        return None if event is None else event.times(steps)

    def sums(
        self, chosen: ArrayLike | None = None, *, both: bool, mechanism: Gaussian | None = None
    ) -> Gradients:
        """Return the sums of bounded gradients over the chosen users, by default all, without any noise.

        They are whole numbers of steps that suit the mechanism's noise. They must not leave as they are.
        """
        count = self._users.size
        some = np.arange(count) if chosen is None else checked_chosen(chosen, count)
        grid, item_sums = self._grid(mechanism, both), new_table(self._items.size, self.factors)
        sums, _ = self._add_up(self._ratings, some, grid, item_sums, both)
        items = whole_cells(sums.items)[:, : self.factors] * np.float64(grid.item_step)
        if not both:
            return Gradients(None, items)
        users = np.zeros((count, self.factors))
        users[some] = whole_cells(sums.users)[:, : self.factors] * np.float64(grid.user_step)
        return Gradients(users, items)

    def whole_sums(self, grain: float, *, both: bool) -> WholeSums:
        """Return the sums of all bounded gradients, without any noise, in whole grains.

        Every gradient is cut to whole grains towards zero before it is added, so that the bound holds in
        grains, too. They must not leave as they are.
        """
        reach = self.reach(both=both)
        grains = grain * (reach.users or 1.0), grain * reach.items
        grid = Grid(*grains, np.float32(0), np.float32(0))
        item_sums = new_table(self._items.size, self.factors)
        sums, shortened = self._add_up(self._ratings, np.arange(self._users.size), grid, item_sums, both)
        users = whole_cells(sums.users)[:, : self.factors].astype(np.int64) if both else None
        items = whole_cells(sums.items)[:, : self.factors].astype(np.int64)
        bound = replace(reach.bound, size=reach.bound.size / grain)
        return WholeSums(users, items, bound, *grains, shortened)

    def event(
        self, mechanism: Gaussian | None, both: bool, random: Random, what: str, by: str, to: str
    ) -> Event | None:
        """Return the record of one step; None without a mechanism."""
        if mechanism is None:
            return None
        _check_noise(mechanism, random)
        bound, numbers = self.reach(both=both).bound, self._numbers(both)
        return mechanism.event(bound, dimension=numbers, random=random, what=what, by=by, to=to)

    def _numbers(self, both: bool) -> int:
        return (self._items.size + (self._users.size if both else 0)) * self.factors

    def _batch(
        self, mechanism: Gaussian | None, sampling: float | None, random: Random
    ) -> tuple[Grouped, Offsets]:
        """Return the ratings of a step, and the users who have some of them.

        Each unit is chosen by a coin of its own: users with all their ratings, or single ratings. To choose
        users where ratings are protected would hide nothing: who sees that a user takes part knows that each
        of her ratings does.
        """
        if mechanism is not None and sampling is not None:
            raise ConfigError("sampling is for steps without a mechanism. Use SampledGaussian(sampling=...).")
        wanted = mechanism.sampling if isinstance(mechanism, SampledGaussian) else sampling
        if wanted is None:
            return self._ratings, np.arange(self._users.size)
        fraction(sampling=wanted)
        if self.unit == "user":
            return self._ratings, noise.chosen(self._users.size, wanted, random)
        return self._some_of(noise.chosen(len(self._ratings.values), wanted, random))

    def _some_of(self, positions: Offsets) -> tuple[Grouped, Offsets]:
        """Return some ratings, by their positions, and the users who gave them."""
        ptr, items, values = some_ratings(self._ratings.ptr, self._item_and_value, positions)
        return Grouped(ptr, items, values), np.flatnonzero(np.diff(ptr))

    @cached_property
    def _item_and_value(self) -> NDArray[np.float32]:
        """Both of each rating side by side, the item's number in a float's bits: one place in memory."""
        return np.column_stack([self._ratings.index.view(np.float32), self._ratings.values])

    def _grid(self, mechanism: Gaussian | None, both: bool) -> Grid:
        reach, longest = self.reach(both=both), self._longest()
        size = 0.0 if mechanism is None else mechanism.noise_size(reach.bound)
        on_users, on_items = size * (reach.users or 0.0), size * reach.items
        user_step, item_step = step_size(longest[0], on_users), step_size(longest[1], on_items)
        in_steps = noise.rounded_up(on_users / user_step), noise.rounded_up(on_items / item_step)
        return Grid(user_step, item_step, *in_steps)

    def _add_up(
        self, ratings: Grouped, chosen: Offsets, grid: Grid, item_sums: Table, both: bool
    ) -> tuple[Sums, Shortened]:
        """Add the bounded gradients of the chosen users' ratings to sums that are zero."""
        own = new_table(chosen.size if both else 0, self.factors)
        scales = np.float32(1 / grid.user_step), np.float32(1 / grid.item_step)
        sums = Sums(own, item_sums, *scales, self._zero)
        known = Known(ratings.ptr, ratings.index, ratings.values, chosen)
        vectors = Vectors(self._users, self._items)
        if isinstance(self.clipping, EmbeddingClipping):
            cut = add_ratings(known, vectors, sums, _below(self.highest), None)
        elif self.unit == "rating":
            cut = add_ratings(known, vectors, sums, np.float32(np.inf), _below(self.clipping.limit))
        else:
            cut = add_users(known, vectors, sums, _below(self.clipping.limit), self._slopes)
            return sums, (cut, chosen.size)
        return sums, (cut, int((ratings.ptr[chosen + 1] - ratings.ptr[chosen]).sum()))

    def _signal(self, sums: Sums, grid: Grid, both: bool) -> float:
        """Return the squares of all sums, each divided by its noise's variance, added up."""
        sides = [(sums.items, grid.item_deviation)] + ([(sums.users, grid.user_deviation)] if both else [])
        squares = [
            np.square(whole_cells(table)[:, : self.factors] / np.float64(noise)).sum()
            for table, noise in sides
        ]
        return float(sum(squares))

    def _longest(self) -> tuple[float, float]:
        """Return the longest row that is added to a sum at once, for users and for items."""
        if isinstance(self.clipping, EmbeddingClipping):
            return (2 * self.highest * self.radius,) * 2
        natural = 2 * (self.highest + self.radius**2) * self.radius
        at_once = self._items.size if self.unit == "user" else 1
        return min(self.clipping.limit, natural * at_once), min(self.clipping.limit, natural)

    def _motion(self, rate: float) -> Motion:
        return Motion(np.float32(rate), *self._projection(), self._inside, self.factors)

    def _projection(self) -> tuple[np.float32, bool]:
        nonnegative = isinstance(self.clipping, EmbeddingClipping) or self.clipping.nonnegative
        return _below(self.radius**2), nonnegative

    def _project(self, table: Table) -> None:
        project(table, *self._projection())

    def _set(self, name: str, table: Table, vectors: ArrayLike) -> None:
        given = checked_vectors(name, vectors)
        if given.shape != (table.size, self.factors):
            raise ConfigError(
                f"{name} must have shape {(table.size, self.factors)}, got {given.shape}. Keep all rows."
            )
        cells(table)[:, : self.factors] = given
        self._project(table)


def _below(limit: float) -> np.float32:
    return np.float32(limit * (1 - MARGIN))


def _check_noise(mechanism: Gaussian, random: Random) -> None:
    if type(mechanism) not in (Gaussian, SampledGaussian):
        raise ConfigError("private steps take Gaussian or SampledGaussian noise.")
    if not isinstance(random, SecureRandom | InsecureRandom):
        raise ConfigError("random must be SecureRandom(), or InsecureRandom(seed) in tests.")


def _radius(clipping: Clipping, highest: float, radius: float | None) -> float:
    if isinstance(clipping, GradientClipping):
        found = math.sqrt(highest) if radius is None else float(radius)
        within(radius=found)
        return found
    if radius is not None:
        raise ConfigError("EmbeddingClipping has a radius of its own, sqrt(highest). Leave radius out.")
    return clipping.radius(highest)
