"""What a recipe costs around a wish: plans on a grid of populations, ratings, rounds and budgets.

Reads no private data: everything follows from public numbers. How accurate models would be is tried out
on synthetic ratings in `planning_trainings`.
"""

import itertools
import time
import warnings
from dataclasses import dataclass, fields, replace
from typing import Any

from cofactor.config import positive, whole
from cofactor.errors import CofactorError, ConfigError, PrivacyWarning
from cofactor.progress import Listener, Progress, nobody
from cofactor.recipes.plan import plan, split_for

_AROUND = (0.25, 1.0, 4.0)
"""Populations and ratings of each beside those that were asked for."""
_AROUND_EPSILON = (0.25, 0.5, 1.0, 2.0, 4.0)
_LEAST_EPSILON, _MOST_EPSILON = 1e-6, 1000.0
"""What a budget may be."""
NO_TIME = "There was no time left to try it: more --minutes leave some."
Place = tuple[int, int, int, int]
"""Which value of users, of ratings of each, of rounds and of epsilon."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be planned: public numbers only."""

    recipe: Any
    budget: Any
    """A Budget: what each of the others on the grid is, but for epsilon."""
    users: int
    items: int
    ratings: int
    """At all parties together."""
    parties: int = 1

    def __post_init__(self) -> None:
        whole(users=self.users, items=self.items, ratings=self.ratings, parties=self.parties)
        if self.ratings < self.users:
            raise ConfigError(
                f"{self.ratings:,} ratings of {self.users:,} users are less than one each. --ratings counts "
                "those of all users together."
            )
        if self.ratings > self.users * self.items:
            raise ConfigError(
                f"{self.users:,} users cannot rate {self.items:,} items {self.ratings:,} times: once each "
                f"would be {self.users * self.items:,}. Ask for fewer ratings, or more items."
            )

    @property
    def ratings_each(self) -> float:
        """How many ratings a user has, on average."""
        return self.ratings / self.users

    @property
    def chooses_rounds(self) -> bool:
        """Whether the recipe lets one choose how many rounds there are."""
        return any(each.name == "rounds" for each in fields(self.recipe))

    @property
    def rounds(self) -> int | None:
        """How many rounds were asked for; None where the recipe chooses them."""
        found: int | None = self.recipe.rounds if self.chooses_rounds else None
        return found

    @property
    def split(self) -> str:
        """How the parties relate."""
        return split_for(self.recipe, self.parties)

    def plan(self) -> Any:
        """Return the Plan."""
        return plan(
            self.recipe,
            self.budget,
            users=self.users,
            items=self.items,
            ratings=self.ratings,
            parties=self.parties,
        )


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One choice of everything, and what follows from it."""

    place: Place
    """Which value of each axis."""
    asked: Asked
    """What is planned here."""
    plan: Any = None
    """A Plan; None if there is none."""
    why_not: str = ""
    """Why there is no plan."""

    def planned(self) -> "Cell":
        """Return it with its plan, or with the reason why there can be none."""
        try:
            return replace(self, plan=self.asked.plan())
        except CofactorError as error:
            return replace(self, why_not=str(error))


@dataclass(frozen=True, kw_only=True)
class Grid:
    """All that can be chosen, and what was asked for among it."""

    asked: Asked
    users: tuple[int, ...]
    ratings_each: tuple[float, ...]
    rounds: tuple[int | None, ...]
    """None where the recipe chooses them."""
    epsilon: tuple[float, ...]

    @classmethod
    def around(cls, asked: Asked) -> "Grid":
        """Put what was asked for in the middle; rounds vary where the recipe lets one choose them."""
        each, epsilon = asked.ratings_each, asked.budget.epsilon
        return cls(
            asked=asked,
            users=tuple(map(int, _around(asked.users, _AROUND))),
            ratings_each=tuple(some for some in _around(each, _AROUND) if some <= asked.items),
            rounds=_rounds(asked),
            epsilon=tuple(
                sorted(
                    {epsilon, *(_within(float(f"{epsilon * by:.3g}")) for by in _AROUND_EPSILON if by != 1)}
                )
            ),
        )

    @property
    def middle(self) -> Place:
        """Where stands what was asked for."""
        return (
            self.users.index(self.asked.users),
            self.ratings_each.index(self.asked.ratings_each),
            self.rounds.index(self.asked.rounds),
            self.epsilon.index(self.asked.budget.epsilon),
        )

    def cells(self) -> list[Cell]:
        """Return all cells, without plans, in the order of their places."""
        lengths = (len(self.users), len(self.ratings_each), len(self.rounds), len(self.epsilon))
        with warnings.catch_warnings():
            # A plan says itself what is doubtful about its budget.
            warnings.simplefilter("ignore", PrivacyWarning)
            return [self._cell(place) for place in itertools.product(*map(range, lengths))]  # type: ignore[arg-type]

    def importance(self, cell: Cell) -> tuple[int, bool]:
        """Order cells by how far they are from what was asked for: first that, then the other budgets."""
        moved = [here != asked for here, asked in zip(cell.place, self.middle, strict=True)]
        return sum(moved[:3]), moved[3]

    def _cell(self, place: Place) -> Cell:
        if place == self.middle:
            return Cell(place=place, asked=self.asked)
        users, each = self.users[place[0]], self.ratings_each[place[1]]
        recipe, rounds = self.asked.recipe, self.rounds[place[2]]
        changed = replace(
            self.asked,
            recipe=recipe if rounds == self.asked.rounds else replace(recipe, rounds=rounds),
            budget=replace(self.asked.budget, epsilon=self.epsilon[place[3]]),
            users=users,
            ratings=max(round(users * each), users),
        )
        return Cell(place=place, asked=changed)


def planned(grid: Grid, *, seconds: float, progress: Listener = nobody) -> list[Cell]:
    """Plan all cells, the most important first; those for which there is no time say so."""
    positive(seconds=seconds)
    deadline, cells = time.monotonic() + seconds, grid.cells()
    order = sorted(range(len(cells)), key=lambda at: grid.importance(cells[at]))
    for done, at in enumerate(order):
        if done and time.monotonic() > deadline:
            for other in order[done:]:
                cells[other] = replace(cells[other], why_not=NO_TIME)
            progress(Progress("plans", done, done, f"no time for {len(order) - done} more"))
            break
        cells[at] = cells[at].planned()
        progress(Progress("plans", done + 1, len(cells)))
    return cells


def _rounds(asked: Asked) -> tuple[int | None, ...]:
    """Return half as many rounds, what was asked for, and twice as many; none where the recipe chooses."""
    if not asked.chooses_rounds:
        return (None,)
    middle = asked.rounds
    if middle is None:
        found = Cell(place=(0, 0, 0, 0), asked=asked).planned().plan
        if found is None:
            return (None,)
        middle = int(found.schedule.rounds)
    around = _around(middle, (0.5, 1.0, 2.0))
    return tuple(asked.rounds if each == middle else int(each) for each in around)


def _around(value: float, factors: tuple[float, ...]) -> tuple[float, ...]:
    """Return a number among whole ones, of two digits each, that are so many times as large."""
    others = {float(max(1, int(float(f"{value * factor:.2g}")))) for factor in factors if factor != 1}
    return tuple(sorted({float(value), *others}))


def _within(epsilon: float) -> float:
    return min(max(epsilon, _LEAST_EPSILON), _MOST_EPSILON)
