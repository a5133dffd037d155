"""From clusterings, done again and again, to rows of a figure."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from cofactor.cluster.method import Facts
from cofactor.papers.cells import Effort
from cofactor.papers.results import Row
from cofactor.papers.thesis22_cluster_data import CLUSTERS, Crowd
from cofactor.papers.thesis22_cluster_judge import Judge, Measures, Split
from cofactor.papers.thesis22_rows import Repeated
from cofactor.progress import Listener, Progress
from cofactor.randomness import InsecureRandom, Random


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a line's releases cost a user."""

    label: float | None = None
    """What they are said to cost."""
    epsilon: float | None = None
    """What is proved for them; None where nothing is private."""
    delta: float | None = None
    note: str = ""


_WAYS, _REPEATS = 100, 100_000
"""More than there are in any column, so that none begins with the seed of another."""


class Way(Protocol):
    """One or more ways of clustering that share a part of their releases."""

    def costs(self, facts: Facts) -> Mapping[str, Cost]:
        """Return by line what each costs, whatever number of local clusters the facts name."""

    def measures(self, split: Split, repeat: int, random: Random) -> Mapping[str, Measures]:
        """Cluster, and return by line and measure how well that went."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where ways of clustering stand in a figure."""

    panel: str
    column: str
    widths: tuple[int, ...]
    """How many columns each party has."""
    ways: Sequence[Way]


def rows_of(
    crowd: Crowd, places: Sequence[Place], measure: str, effort: Effort, progress: Listener
) -> list[Row]:
    """Cluster as often as effort says, and keep what one measure says of it."""
    return rows_by_measure(crowd, places, (measure,), effort, progress)[measure]


def rows_by_measure(
    crowd: Crowd, places: Sequence[Place], measures: Sequence[str], effort: Effort, progress: Listener
) -> dict[str, list[Row]]:
    """Cluster as often as effort says, and keep what several measures say of it.

    Chance is that of tests, so that a figure comes out the same again. The law is that of secure chance, but
    whoever knows the seed could take the noise off: these data are public or made up.
    """
    judges = _judges(crowd, effort.seeds)
    splits = {
        widths: [Split(judge=judge, widths=widths) for judge in judges]
        for widths in dict.fromkeys(place.widths for place in places)
    }
    rows: dict[str, list[Row]] = {measure: [] for measure in measures}
    for number, place in enumerate(places):
        own = splits[place.widths]
        for order, way in enumerate(place.ways):
            # Small matrices are multiplied thousands of times: threads would wait for each other.
            with import_module("threadpoolctl").threadpool_limits(limits=1):
                costs = way.costs(own[0].facts(CLUSTERS))
                found = _repeated(way, own, effort.seeds, seed=(number * _WAYS + order) * _REPEATS)
            for measure, kept in rows.items():
                kept += [
                    _row(place, line, costs[line], [one[measure] for one in several])
                    for line, several in found.items()
                    if measure in several[0]
                ]
        progress(Progress("columns", number + 1, len(places), f"{place.panel}, {place.column}"))
    return rows


def _judges(crowd: Crowd, repeats: int) -> list[Judge]:
    """Return the users of every repeat; where they are the same, what is known of them is found out once."""
    if crowd.anew:
        return [Judge(points=crowd.drawn(repeat)) for repeat in range(1, repeats + 1)]
    return [Judge(points=crowd.drawn(1))]


def _repeated(way: Way, splits: Sequence[Split], repeats: int, *, seed: int) -> dict[str, list[Measures]]:
    """Return by line what came of each repeat; no two share their chance."""
    found: dict[str, list[Measures]] = {}
    for repeat in range(1, repeats + 1):
        split = splits[(repeat - 1) % len(splits)]
        for line, measures in way.measures(split, repeat, InsecureRandom(seed + repeat)).items():
            found.setdefault(line, []).append(measures)
    return found


def _row(place: Place, line: str, cost: Cost, values: Sequence[float]) -> Repeated:
    mean, several = statistics.fmean(values), len(values) > 1
    error = statistics.stdev(values) / math.sqrt(len(values)) if several else 0.0
    return Repeated(
        line=line,
        panel=place.panel,
        column=place.column,
        ours=mean,
        low=mean - error if several else None,
        high=mean + error if several else None,
        epsilon_label=cost.label,
        epsilon=cost.epsilon,
        delta=cost.delta,
        note=cost.note,
        repeats=len(values),
        values=tuple(values),
    )
