"""How accurate models are on synthetic ratings of a planned shape: found by training, not by a formula.

The ratings are made up from a model of people, see `cofactor.data.synthetic`; no private data are read.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from cofactor.config import positive, whole
from cofactor.data import partition
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.data.synthetic import Shape, make
from cofactor.errors import CofactorError
from cofactor.evaluate.joining import (
    ALONE,
    USER_MEAN,
    HeldBack,
    Predicted,
    common_models,
    home_models,
    own_name,
)
from cofactor.evaluate.planning import NO_TIME, Asked, Cell, Grid
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.progress import Listener, Progress, nobody
from cofactor.recipes.train import train

TEST_FRACTION = 0.1
"""Of each synthetic user's ratings, kept back to measure the error."""
_MOST_RATINGS = 4_000_000
"""What is trained here at once, at most."""
_FEWEST_USERS = 50
_SMALLER = 4
"""How many times fewer users are trained where there are too many."""
_CONFIDENCE = 0.95
Size = tuple[int, int]
"""Users and ratings."""
Key = tuple[int, int, int | None, float]
"""Users, ratings, rounds and epsilon of a training."""


@dataclass(frozen=True, kw_only=True)
class Trained:
    """Models of synthetic ratings of one shape, trained several times over: each time all is made anew."""

    users: int
    ratings: int
    rounds: int | None
    epsilon: float
    own: str
    """The name of the recipe's own models among the errors."""
    errors: tuple[Mapping[str, float], ...]
    """Of each repeat, root mean squared errors by name, on the same ratings."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers: means, how far repeats are apart, and intervals for the means."""
        names = [name for name in (USER_MEAN, ALONE, self.own, "pooled") if name in self.errors[0]]
        columns = {name: [one[name] for one in self.errors] for name in names}
        # What a party has that sends nothing: its own model, or of a device its user's mean.
        over = ALONE if ALONE in columns else USER_MEAN
        gains = np.subtract(columns[over], columns[self.own])
        return {
            "users": self.users,
            "ratings": self.ratings,
            "rounds": self.rounds,
            "epsilon": self.epsilon,
            "repeats": len(self.errors),
            "own": self.own,
            "rmse": {name: summary(column) for name, column in columns.items()},
            "gain": {"over": over, **summary(gains.tolist())},
        }


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Return mean and standard deviation of repeats, and a 95% interval for the mean (Student's t).

    Of a single one nothing is known but itself.
    """
    count, mean = len(values), float(np.mean(values))
    if count < 2:
        return {"mean": mean, "spread": None, "low": None, "high": None}
    spread = float(np.std(values, ddof=1))
    margin = float(stats.t.ppf((1 + _CONFIDENCE) / 2, count - 1)) * spread / math.sqrt(count)
    return {"mean": mean, "spread": spread, "low": mean - margin, "high": mean + margin}


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What was trained, and what each cell has of it."""

    trainings: tuple[Trained, ...]
    of_cell: tuple[int | None, ...]
    """For each cell, which of the trainings is about it."""
    why_not: tuple[str, ...]
    """For each cell, why there is none."""


class _TimeIsUp(Exception):
    """Ends a training for which there is no more time."""


@dataclass(kw_only=True)
class Trying:
    """Trains on synthetic ratings for as long as it may."""

    deadline: float
    """In seconds of the monotonic clock."""
    most_users: int | None = None
    """How many are trained at most, where what was asked for is too much."""
    found: dict[Key, list[Mapping[str, float]]] = field(default_factory=dict)
    own: str = ""
    refused: dict[Key, str] = field(default_factory=dict)
    _baselines: dict[tuple[Size, int], Mapping[str, float]] = field(default_factory=dict)
    _seconds_each: float = 0.0
    """Of the last training, by its ratings."""

    @property
    def count(self) -> int:
        """How many trainings there were."""
        return sum(map(len, self.found.values()))

    def size(self, asked: Asked) -> Size:
        """Return how many users and ratings are trained in place of what was asked for."""
        users = min(asked.users, self.most_users or asked.users)
        return users, asked.ratings if users == asked.users else max(round(users * asked.ratings_each), users)

    def key(self, asked: Asked) -> Key:
        """Name a training."""
        return *self.size(asked), asked.rounds, asked.budget.epsilon

    def begin(self, asked: Asked) -> None:
        """Train what was asked for, or so many users fewer that half of the time that is left is enough."""
        while True:
            until = time.monotonic() + (self.deadline - time.monotonic()) / 2
            users, ratings = self.size(asked)
            if ratings <= _MOST_RATINGS and self.once(asked, 0, until):
                return
            if self.key(asked) in self.refused or users // _SMALLER < _FEWEST_USERS:
                return
            self.most_users = users // _SMALLER

    def wants(self, asked: Asked, repeat: int) -> bool:
        """Say whether a training is the next of its kind, and there is time for it, going by the last one."""
        key = self.key(asked)
        left = self.deadline - time.monotonic()
        return (
            len(self.found.get(key, ())) == repeat
            and key not in self.refused
            and key[1] <= _MOST_RATINGS
            and self._seconds_each * key[1] <= left
            and left > 0
        )

    def once(self, asked: Asked, repeat: int, until: float) -> bool:
        """Train once on ratings of its own, unless it takes longer than it may; say whether it was done."""
        key, start = self.key(asked), time.monotonic()
        try:
            errors = self._errors(asked, repeat, until)
        except _TimeIsUp:
            return False
        except CofactorError as error:
            self.refused[key] = str(error)
            return False
        self.found.setdefault(key, []).append(errors)
        self._seconds_each = (time.monotonic() - start) / key[1]
        return True

    def _errors(self, asked: Asked, repeat: int, until: float) -> Mapping[str, float]:
        def watch(_: Progress) -> None:
            if time.monotonic() > until:
                raise _TimeIsUp

        size = self.size(asked)
        halves = by_fraction(made_up(asked, size, repeat), test=TEST_FRACTION, seed=repeat)
        training, test = (_federation(half, asked, repeat) for half in halves)
        run = train(asked.recipe, training, budget=asked.budget, seed=repeat, progress=watch)
        parts, self.own = HeldBack(test), own_name(run)
        predicted = parts.predicted({self.own: run.homes})
        if (size, repeat) not in self._baselines:
            beside = parts.predicted(home_models(run, training))
            beside |= parts.predicted_by_all(common_models(run, training))
            others = {name: each for name, each in beside.items() if name != self.own}
            self._baselines[size, repeat] = _rmse(parts, others)
        return {**self._baselines[size, repeat], **_rmse(parts, predicted)}


def tried(
    grid: Grid, cells: Sequence[Cell], *, repeats: int, seconds: float, progress: Listener = nobody
) -> Tried:
    """Train what was planned, the most important first, for as long as there is time."""
    whole(repeats=repeats)
    positive(seconds=seconds)
    trying, jobs = Trying(deadline=time.monotonic() + seconds), list(_in_turn(grid, cells, repeats))

    def tell(left: float) -> None:
        # How many there will be is not known: how much of the time is gone is.
        gone = math.floor(seconds - max(left, 0.0))
        progress(Progress("trainings, second", gone, math.floor(seconds), f"{trying.count:,} done"))

    if jobs:
        trying.begin(cells[jobs[0][0]].asked)
    for at, repeat in jobs:
        if trying.wants(cells[at].asked, repeat):
            trying.once(cells[at].asked, repeat, trying.deadline)
            tell(trying.deadline - time.monotonic())
    tell(0.0)
    return _told(trying, cells)


def made_up(asked: Asked, size: Size, seed: int) -> Ratings:
    """Make ratings of a shape up; the same seed makes the same ones."""
    users, ratings = size
    shape = Shape(
        users=users,
        items=asked.items,
        ratings=ratings,
        minimum=max(1, int(ratings / users / 5)),
        busiest=max(0.6, min(1.0, 1.5 * ratings / users / asked.items)),
    )
    return make(shape, seed=seed).ratings


def _in_turn(grid: Grid, cells: Sequence[Cell], repeats: int) -> Iterator[tuple[int, int]]:
    """Yield cells and repeats, the most important first: the budgets, which make a curve, in turn."""
    usable = [at for at, cell in enumerate(cells) if cell.plan is not None]
    order = sorted(usable, key=lambda at: grid.importance(cells[at]))
    curve = [at for at in order if grid.importance(cells[at]) == (0, True)]
    others = [at for at in order if at not in curve]
    yield from ((at, repeat) for at in others[:1] for repeat in range(repeats))
    yield from ((at, repeat) for repeat in range(repeats) for at in curve)
    yield from ((at, repeat) for at in others[1:] for repeat in range(repeats))


def _federation(ratings: Ratings, asked: Asked, seed: int) -> Federation:
    """Deal ratings out to make-believe parties; the same seed deals both parts of a split alike."""
    scale = ratings.scale
    if asked.split == "on-device":
        return Federation.on_device(ratings, scale=scale)
    vertical = asked.split == "vertical"
    deal = partition.vertical if vertical else partition.horizontal
    dealt = enumerate(deal(ratings, asked.parties, seed=seed), 1)
    parties = [Party(name=f"party-{number}", ratings=part) for number, part in dealt]
    bring = Federation.vertical if vertical else Federation.horizontal
    return bring(parties, scale=scale, simulated=True)


def _rmse(parts: HeldBack, predicted: Predicted) -> dict[str, float]:
    return {name: one.rmse.value for name, one in parts.errors(predicted, 0).items()}


def _told(trying: Trying, cells: Sequence[Cell]) -> Tried:
    """Say what was trained, and which cell it is about."""
    keys = list(trying.found)
    own = [None if cell.plan is None else trying.key(cell.asked) for cell in cells]
    return Tried(
        trainings=tuple(
            Trained(
                users=key[0],
                ratings=key[1],
                rounds=key[2],
                epsilon=key[3],
                own=trying.own,
                errors=tuple(trying.found[key]),
            )
            for key in keys
        ),
        of_cell=tuple(keys.index(key) if key in trying.found else None for key in own),
        why_not=tuple(
            "" if key is None or key in trying.found else trying.refused.get(key, NO_TIME) for key in own
        ),
    )
