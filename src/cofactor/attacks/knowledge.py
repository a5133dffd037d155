"""`Knowledge`: what somebody who attacks uploads knows beforehand about ratings and attributes in general."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import fraction
from cofactor.data.codes import Category, Groups, Region, Tags
from cofactor.data.coding import Coding
from cofactor.data.grouping import Grouped
from cofactor.data.scale import MOST_STEPS, Scale
from cofactor.errors import ConfigError
from cofactor.federation.view import View

Columns = tuple[tuple[int, ...], ...]

_RATED = 0.05
"""The part of all items that a user is taken to have rated, if nothing is known."""
_RARE = 1e-6
"""Nothing is taken to be rarer than this."""


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What is known about all users together; of the attacked one nothing is."""

    values: tuple[float, ...]
    """The ratings that there can be."""
    common: tuple[float, ...] | None = None
    """How common each of them is; equally, if nobody knows."""
    rated: float = _RATED
    """The part of all items that a user rates."""
    groups: Columns = ()
    """Columns of the attributes of which just one is 1: one tuple for each question, such as the gender."""
    numbers: tuple[int, ...] = ()
    """Columns that can be any number; all others are 0 or 1."""
    shares: tuple[float, ...] | None = None
    """For each column, how many users have a 1 in it; all answers are equally common if nobody knows."""
    source: str = "the scale and the coding, which are public; all answers are taken to be equally common"
    """Where this comes from."""

    def __post_init__(self) -> None:
        fraction(rated=self.rated)
        if not self.values:
            raise ConfigError(
                "values are empty: name the ratings that there can be, such as (1, 2, 3, 4, 5)."
            )
        if self.common is not None and len(self.common) != len(self.values):
            raise ConfigError(f"{len(self.values)} values, but {len(self.common)} numbers of how common.")

    @classmethod
    def public(cls, scale: Scale | None, coding: Coding | None = None) -> "Knowledge":
        """Know what is public: the ratings that there can be, and how attributes are coded."""
        groups, numbers = columns_of(coding)
        return cls(values=values_of(scale), groups=groups, numbers=numbers)

    @classmethod
    def of_view(cls, view: View) -> "Knowledge":
        """Know what is public in a run."""
        views = None if view.model is None else view.model.views
        return cls.public(view.scale, None if views is None else views.attributes)

    @classmethod
    def of_population(
        cls,
        ratings: Grouped,
        items: int,
        scale: Scale | None,
        *,
        attributes: NDArray[Any] | None = None,
        coding: Coding | None = None,
        source: str = "the histogram of the attacked users' own population: ratings, density, attributes",
    ) -> "Knowledge":
        """Know how common ratings and attributes are among some people, who may be the attacked ones."""
        values = values_of(scale)
        counts = [int(np.isclose(ratings.values, each).sum()) for each in values]
        groups, numbers = columns_of(coding)
        return cls(
            values=values,
            common=tuple(count / max(sum(counts), 1) for count in counts),
            rated=float(np.clip(len(ratings.values) / (len(ratings.sizes) * items), _RARE, 1 - _RARE)),
            groups=groups,
            numbers=numbers,
            shares=None if attributes is None else tuple(np.nanmean(attributes, axis=0).tolist()),
            source=source,
        )

    @property
    def step(self) -> float:
        """The smallest difference of two ratings."""
        apart = np.diff(np.sort(self.values))
        return float(apart.min()) if len(apart) else 1.0

    @property
    def highest(self) -> float:
        """The largest rating, whatever its sign."""
        return max(abs(each) for each in self.values)

    def chances(self) -> NDArray[np.float64]:
        """Return how common each rating is; none is impossible."""
        told = np.ones(len(self.values)) if self.common is None else np.array(self.common)
        told = np.maximum(told / told.sum(), _RARE)
        return np.asarray(told / told.sum())

    def questions(self, width: int) -> Columns:
        """Return the groups, and every other column that is 0 or 1 as a group of its own."""
        grouped = {column for group in self.groups for column in group}
        alone = [(at,) for at in range(width) if at not in grouped and at not in self.numbers]
        return (*self.groups, *alone)

    def shares_of(self, width: int) -> NDArray[np.float64]:
        """Return how common a 1 is in each column; there may be none at all."""
        if width == 0:
            return np.zeros(0)
        if self.shares is not None and len(self.shares) != width:
            raise ConfigError(f"{len(self.shares)} shares of attributes, of which there are {width}.")
        told = np.full(width, 0.5) if self.shares is None else np.array(self.shares)
        for group in self.groups if self.shares is None else ():
            told[list(group)] = 1 / len(group)
        return np.asarray(np.clip(told, _RARE, 1 - _RARE))


def values_of(scale: Scale | None) -> tuple[float, ...]:
    """Return all ratings of a scale; without one there are only ones.

    Where nobody has stated the steps, they are taken to be of 1 if so many fit between the ends.
    """
    if scale is None:
        return (1.0,)
    width = scale.high - scale.low
    steps = round(width / (scale.step or 1.0))
    fits = scale.step is not None or width == steps
    if not (fits and 0 < steps < MOST_STEPS):
        raise ConfigError(
            f"ratings from {scale} can be any number in between, and this attack needs a scale with steps, "
            "such as Scale(1, 5, 1)."
        )
    return tuple(np.linspace(scale.low, scale.high, steps + 1).tolist())


def columns_of(coding: Coding | None) -> tuple[Columns, tuple[int, ...]]:
    """Return which columns of coded attributes belong to one question, and which are numbers."""
    groups: list[tuple[int, ...]] = []
    numbers: list[int] = []
    end = 0
    for code in () if coding is None else coding.codes:
        start, end = end, end + len(code.suffixes())
        if isinstance(code, Category | Groups | Region) and not isinstance(code, Tags):
            groups.append(tuple(range(start, end)))
        elif not isinstance(code, Tags):
            numbers.extend(range(start, end))
    return tuple(groups), tuple(numbers)
