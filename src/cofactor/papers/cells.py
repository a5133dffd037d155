"""Trainings that make up a figure, and how well each of them does."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from scipy.special import stdtrit

from cofactor.config import fraction, whole
from cofactor.data import partition
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.errors import ConfigError, DataError, PrivacyWarning, Refused
from cofactor.evaluate.bootstrap import Estimate
from cofactor.evaluate.joining import HeldBack
from cofactor.factors.bayes import Bayes
from cofactor.factors.model import Factors
from cofactor.factors.sgd import SGD
from cofactor.federation.channel import Failures
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.papers.material import Material
from cofactor.papers.results import NO_NOISE, Row
from cofactor.privacy.budget import Budget, Unit
from cofactor.progress import Listener, Progress
from cofactor.randomness import Seeds
from cofactor.recipes.home_fit import fit_with_released
from cofactor.recipes.local_reports import budget_if_shuffled
from cofactor.recipes.train import train

T = TypeVar("T")

TEST_FRACTION = 0.1
"""Li et al. 2022, section 4.3: a tenth of the ratings is kept for testing."""
_KEPT = 0.8
"""Part of a user's ratings that a replica keeps."""
PER = {"rating": "per-rating", "user": "per-user"}
"""What the paper calls the units."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is spent on a figure."""

    seeds: int = 1
    """How often everything is done anew: split, parties, beginnings and noise."""
    quick: bool = False
    """Whether fewer columns will do."""
    steps: int = 1000
    """Local steps of every training: T T' in the paper. A multiple of 50."""
    delta: float = 1e-6

    def __post_init__(self) -> None:
        whole(seeds=self.seeds, steps=self.steps)
        fraction(delta=self.delta)
        if self.steps % 50:
            raise ConfigError(f"steps must be a multiple of 50, got {self.steps}.")

    def shown(self, usual: Sequence[T], quick: Sequence[T]) -> Sequence[T]:
        """Return what a figure shows: the usual columns, or fewer."""
        return quick if self.quick else usual


@dataclass(frozen=True, kw_only=True)
class Dealing:
    """How one set of ratings becomes the parties of a simulation."""

    split: Literal["vertical", "horizontal", "on-device"]
    parties: int = 1
    """How many; by category there are as many as categories, and on devices as users."""
    by_category: bool = False
    replicas: int = 1
    """On devices: how many times every user takes part. Only the first of them is tested."""

    def federations(
        self, material: Material, train: Ratings, test: Ratings, seed: int
    ) -> tuple[Federation, Federation]:
        """Deal both parts alike; a party without ratings to train on is left out."""
        if self.split == "on-device":
            halves = (train, test) if self.replicas == 1 else replicated(train, test, self.replicas, seed)
            devices = [Federation.on_device(half, scale=material.ratings.scale) for half in halves]
            return devices[0], devices[1]
        parts = [self._parts(material, ratings, seed) for ratings in (train, test)]
        kept = [name for name, own in parts[0].items() if len(own)]
        make = Federation.vertical if self.split == "vertical" else Federation.horizontal
        found = [
            make(
                [Party(name=name, ratings=half[name]) for name in kept],
                scale=material.ratings.scale,
                simulated=True,
            )
            for half in parts
        ]
        return found[0], found[1]

    def _parts(self, material: Material, ratings: Ratings, seed: int) -> dict[str, Ratings]:
        if self.by_category:
            named = partition.by_category(ratings, categories_of(material))
            return {f"category-{number}": part for number, part in enumerate(named.values(), 1)}
        deal = partition.vertical if self.split == "vertical" else partition.horizontal
        dealt = deal(ratings, self.parties, seed=seed)
        return {f"party-{number}": part for number, part in enumerate(dealt, 1)}


def replicated(train: Ratings, test: Ratings, replicas: int, seed: int) -> tuple[Ratings, Ratings]:
    """Let every user take part several times: others than the first keep 80% of their training ratings.

    It shows what a method would make of more users, who are as alike as the ones there are.
    """
    chance = Seeds(seed).generator("replicas of users")
    kept = [np.ones(len(train), np.bool_)]
    kept += [chance.random(len(train)) < _KEPT for _ in range(1, replicas)]
    ids = np.arange(replicas * train.user_count)
    users = [train.users[mask] + np.int32(train.user_count * at) for at, mask in enumerate(kept)]
    items = [train.items[mask] for mask in kept]
    values = [train.values[mask] for mask in kept]
    shared: dict[str, Any] = {"user_ids": ids, "item_ids": train.item_ids, "scale": train.scale}
    return (
        Ratings.from_rows(np.concatenate(users), np.concatenate(items), np.concatenate(values), **shared),
        Ratings.from_rows(test.users, test.items, test.values, **shared),
    )


def categories_of(material: Material) -> tuple[tuple[str, ...], ...]:
    """Return the categories of all items, without which items cannot be split by them."""
    if material.categories is None:
        raise DataError(
            f"{material.name} has no categories of items. Put a table of items with a column of genres "
            "beside the ratings, or use MovieLens."
        )
    return material.categories


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One training and where its error stands in the figure."""

    line: str
    panel: str
    column: str = ""
    """Left out: the epsilon, or "no noise"."""
    dealing: Dealing
    recipe: Any
    """What trains; a model, such as SGD, that every party fits by itself; or a function of a federation and a
    seed that returns what each party has by itself."""
    unit: Unit | None = None
    """Who is protected; None if nobody is."""
    epsilon: float | None = None
    if_shuffled: bool = False
    """Whether epsilon is what local reports would have if somebody whom all trust shuffled them."""
    dropout: float = 0.0
    """Part of the devices, by chance, whose answers are lost in each round."""
    claimed: float | None = None
    """An epsilon that the method claims for itself, and that nobody can prove."""
    impossible: str = ""
    """Why there is nothing to train."""
    fine_tuned: str | None = None
    """A second line: after each party's home model made what it could of the released vectors."""
    note: str = ""

    def budget(self, delta: float, devices: int = 1) -> Budget | None:
        """Return the budget of the training; a local one if reports are imagined to be shuffled."""
        if self.unit is None or self.epsilon is None:
            return None
        wanted = Budget(epsilon=self.epsilon, delta=delta, unit=self.unit)
        if not self.if_shuffled:
            return wanted
        with warnings.catch_warnings():
            # Local epsilons may be so large that they promise next to nothing: a figure's note says it.
            warnings.simplefilter("ignore", PrivacyWarning)
            return budget_if_shuffled(wanted, devices=devices, rounds=self.recipe.rounds)

    @property
    def place(self) -> str:
        """The column."""
        return self.column or (NO_NOISE if self.label is None else f"epsilon {self.label:g}")

    @property
    def label(self) -> float | None:
        """What the paper would call epsilon."""
        return self.claimed if self.epsilon is None else self.epsilon


@dataclass(kw_only=True)
class _Found:
    """What the seeds of one cell gave."""

    lines: dict[str, list[Estimate]] = field(default_factory=dict)
    epsilons: list[float] = field(default_factory=list)
    refused: str = ""


def measured(material: Material, cells: Sequence[Cell], effort: Effort, progress: Listener) -> list[Row]:
    """Train all cells and measure them on the ratings held back; what is refused has its reason for a note.

    With one seed, intervals are from a bootstrap over users; with several, from how much the seeds differ.
    """
    found = [_Found() for _ in cells]
    done, steps = 0, len(cells) * effort.seeds
    for seed in range(1, effort.seeds + 1):
        halves = by_fraction(material.ratings, TEST_FRACTION, seed=seed)
        for dealing in dict.fromkeys(cell.dealing for cell in cells):
            trained, kept = dealing.federations(material, *halves, seed)
            for cell, one in zip(cells, found, strict=True):
                if cell.dealing == dealing:
                    _measure(cell, one, trained, HeldBack(kept), effort, seed)
                    done += 1
                    progress(Progress("trainings", done, steps, f"{cell.line}, {cell.panel}, {cell.place}"))
    return [row for cell, one in zip(cells, found, strict=True) for row in _rows(cell, one, effort)]


def _measure(
    cell: Cell, found: _Found, federation: Federation, test: HeldBack, effort: Effort, seed: int
) -> None:
    if cell.impossible:
        return
    if callable(cell.recipe):
        _note(found, {cell.line: cell.recipe(federation, seed)}, test, seed)
        return
    if isinstance(cell.recipe, SGD):
        fitted = {p.name: cell.recipe.fit(p.ratings, seed=seed) for p in federation.parties}
        _note(found, {cell.line: fitted}, test, seed)
        return
    budget = cell.budget(effort.delta, federation.facts.summed)
    failures = Failures(devices=cell.dropout)
    try:
        run = train(cell.recipe, federation, budget=budget, seed=seed, failures=failures)
    except (Refused, ConfigError) as why:  # such as noise so large that no grid is left to round to
        found.refused = str(why)
        return
    homes = {cell.line: run.homes}
    if cell.fine_tuned is not None:
        homes[cell.fine_tuned] = _fine_tuned(run, federation, seed)
    _note(found, homes, test, seed)
    if cell.epsilon is not None and run.guarantee.epsilon is not None:
        found.epsilons.append(run.guarantee.epsilon)


def _note(found: _Found, homes: Mapping[str, Mapping[str, Factors]], test: HeldBack, seed: int) -> None:
    for line, errors in test.errors(test.predicted(homes), seed).items():
        found.lines.setdefault(line, []).append(errors.mse)


def _fine_tuned(run: Run, federation: Federation, seed: int) -> dict[str, Factors]:
    """Fit each party's home model, with the released item vectors as far as they help."""
    assert run.model is not None
    released = run.model.item_vectors
    return {p.name: fit_with_released(Bayes(), p, released, seed) for p in federation.parties}


def _rows(cell: Cell, found: _Found, effort: Effort) -> list[Row]:
    lines = [cell.line, *([] if cell.fine_tuned is None else [cell.fine_tuned])]
    return [
        Row(
            line=line,
            panel=cell.panel,
            column=cell.place,
            epsilon_label=cell.label,
            epsilon=max(found.epsilons, default=None),
            delta=None if cell.epsilon is None else effort.delta,
            note=f"refused: {found.refused}" if found.refused else cell.impossible or cell.note,
            at_home=line == cell.fine_tuned,
            **summary(found.lines.get(line, [])),
        )
        for line in lines
    ]


def summary(estimates: Sequence[Estimate]) -> dict[str, float | None]:
    """Return the mean and its 95% interval: that of the only estimate, or Student's from several."""
    if not estimates:
        return {"ours": None, "low": None, "high": None}
    if len(estimates) == 1:
        return {"ours": estimates[0].value, "low": estimates[0].low, "high": estimates[0].high}
    values = [one.value for one in estimates]
    count, mean = len(values), math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    width = float(stdtrit(count - 1, 0.975)) * deviation / math.sqrt(count)
    return {"ours": mean, "low": mean - width, "high": mean + width}
