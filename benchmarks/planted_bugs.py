"""Bugs that an audit must find: the library does less than it charges for, while it runs, and nowhere else.

Each is put into the running process, never into the source. What ledgers are charged for stays what honest
code writes, and whoever looks replays a training with honest code: only the training itself is faulty.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks import canaries, cluster_canaries, survey_canaries
from cofactor.attacks.charged import charged
from cofactor.attacks.target import Played, Target
from cofactor.privacy import answer_noise, bounding, fixed_point, noise
from cofactor.privacy.clipping import clipped_sum
from cofactor.privacy.events import Event
from cofactor.privacy.fixed_point import add_rounded
from cofactor.randomness import Random
from cofactor.recipes import item_sums, private_descent
from cofactor.recipes.descent_kernels import add_ratings, add_users
from cofactor.recipes.item_sums import messages
from cofactor.recipes.private_descent import PrivateDescent
from cofactor.survey.result import Survey

Bug = Callable[[], AbstractContextManager[object]]

LITTLE = 0.3
"""How much of the noise is left."""
_ENDLESS = 1e300
_FAR = 1e3
"""By how much farther than its limit somebody may reach where limits also make a grid."""

honest: Bug = nullcontext
"""No bug at all."""


@contextmanager
def little_noise() -> Iterator[None]:
    """Draw less noise than is charged, of every kind that there is."""
    with ExitStack() as stack:
        for module, name, setting, power in _NOISE:
            stack.enter_context(patch.object(module, name, _multiplied(module, name, setting, LITTLE**power)))
        stack.enter_context(patch.object(PrivateDescent, "_grid", _quiet_grid(PrivateDescent._grid)))
        yield


# What draws noise, the place among its arguments of what says how much, and how that goes with the noise.
_NOISE = (
    (noise, "gaussian", 1, 1),
    (noise, "laplace", 1, 1),
    (noise, "discrete_gaussian", 1, 1),
    (noise, "discrete_laplace", 1, 1),
    (noise, "skellam", 1, 2),
    (noise, "skellam_of_key", 1, 2),
    (noise, "polya_of_key", 1, 1),  # and `polya` through it
    (noise, "poisson_binomial", 2, -1),
    (answer_noise, "randomized_response", 2, -1),
    (answer_noise, "wave", 4, -1),
)


def _multiplied(module: Any, name: str, setting: int, factor: float) -> Callable[..., Any]:
    """Return a function that is called with one of its settings multiplied."""
    real = getattr(module, name)

    def wrong(*arguments: Any, **more: Any) -> Any:
        given = list(arguments)
        given[setting] *= factor
        return real(*given, **more)

    return wrong


def _quiet_grid(real: Callable[..., private_descent.Grid]) -> Callable[..., private_descent.Grid]:
    """Return gradient steps' own noise, which a fused kernel draws, made smaller."""

    def wrong(*arguments: Any) -> private_descent.Grid:
        grid, little = real(*arguments), np.float32(LITTLE)
        return grid._replace(
            user_deviation=grid.user_deviation * little, item_deviation=grid.item_deviation * little
        )

    return wrong


@contextmanager
def forgotten_clip() -> Iterator[None]:
    """State how much one unit can contribute, and let it contribute as much as it likes."""
    with ExitStack() as stack:
        for where, name, wrong in _CLIPS:
            stack.enter_context(patch.object(where, name, wrong))
        yield


def _as_they_are(rows: Any, limit: float, norm: str) -> Any:  # noqa: ARG001
    return np.asarray(rows)


def _sum_as_it_is(rows: Any, ptr: Any, places: Any, place_count: int, limit: float, norm: Any) -> Any:
    return clipped_sum(rows, ptr, places, place_count, _FAR * limit, norm)


def _room_for_all(self: Any, weights: Any, limit: float, most: int, dimension: int) -> Any:  # noqa: ARG001
    return np.full(len(weights), _ENDLESS)


def _added_as_they_are(
    rows: Any, ptr: Any, places: Any, words: Any, limits: Any, step: float, most: Any, total: Any
) -> None:
    add_rounded(rows, ptr, places, words, limits, step, np.full_like(most, np.inf), total)


def _users_as_they_are(known: Any, vectors: Any, sums: Any, longest: Any, slopes: Any) -> int:  # noqa: ARG001
    return int(add_users(known, vectors, sums, np.float32(np.inf), slopes))


def _ratings_as_they_are(known: Any, vectors: Any, sums: Any, largest_error: Any, longest: Any) -> int:
    longer = None if longest is None else np.float32(np.inf)
    return int(add_ratings(known, vectors, sums, largest_error, longer))


def _each_rating_of_length_one(*arguments: Any) -> Any:
    """Bring each rating to length 1, where all of a user's together should have that."""
    rows = messages(*arguments)
    lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


_CLIPS: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
    (bounding, "clipped", _as_they_are),
    (bounding, "clipped_sum", _sum_as_it_is),
    (bounding, "clipped_whole", _as_they_are),
    (fixed_point, "clipped_whole", _as_they_are),
    (fixed_point, "add_rounded", _added_as_they_are),
    (fixed_point.FixedPoint, "_before_rounding", _room_for_all),
    (private_descent, "add_users", _users_as_they_are),
    (private_descent, "add_ratings", _ratings_as_they_are),
    (item_sums, "messages", _each_rating_of_length_one),
)


@contextmanager
def unsampled_batch() -> Iterator[None]:
    """Let everybody take part in every step, where each should do so by chance."""

    def everybody(descent: Any, *_: Any) -> tuple[Any, NDArray[np.int64]]:
        return descent._ratings, np.arange(descent._users.size)

    with patch.object(PrivateDescent, "_batch", everybody):
        yield


@dataclass(frozen=True, kw_only=True, eq=False)
class Faulty:
    """A target that has a bug while it runs, and not while scores are made."""

    target: Target
    bug: Bug
    charged: list[list[Event]] = field(default_factory=list)
    """What each run so far was charged for."""

    @property
    def name(self) -> str:
        """What is audited."""
        return self.target.name

    @property
    def canaries(self) -> int:
        """How many canaries there are."""
        return self.target.canaries

    def play(self, present: NDArray[np.bool_], random: Random) -> Played:
        """Run it once, with the bug, and score as if there were none."""
        with ExitStack() as stack:
            for module, name in _RUNS:
                stack.enter_context(patch.object(module, name, self._during(getattr(module, name))))
            return self.target.play(present, random)

    def _during(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def wrong(*arguments: Any, **settings: Any) -> Any:
            with self.bug():
                found = real(*arguments, **settings)
            self.charged.append(_events(found))
            return found

        return wrong


_RUNS = ((canaries, "train"), (survey_canaries, "ask"), (cluster_canaries, "find_clusters"))
"""What runs a training, a survey and a clustering, each where its canaries are planted."""


def _events(found: Any) -> list[Event]:
    return list(found.events) if isinstance(found, Survey) else charged(found.together)
