"""From clusterings, done again and again, to rows of a figure."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


class Way(Protocol):
    """One or more ways of clustering that share a part of their releases."""

    def costs(self, facts: Facts) -> Mapping[str, Cost]:
        """Return by line what each costs."""

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
    local_clusters: int = CLUSTERS


def rows_of(
    crowd: Crowd, places: Sequence[Place], measure: str, effort: Effort, progress: Listener
) -> list[Row]:
    """Cluster as often as effort says, and keep what one measure says of it.

    Chance is that of tests, so that a figure comes out the same again. The law is that of secure chance, but
    whoever knows the seed could take the noise off: these data are public or made up.
    """
    found: dict[tuple[int, str], list[float]] = {}
    splits: dict[tuple[int, ...], Split] = {}
    done, steps = 0, effort.seeds * len(places)
    for repeat in range(1, effort.seeds + 1):
        random = InsecureRandom(repeat)
        if crowd.anew or not splits:
            judge = Judge(points=crowd.drawn(repeat))
            splits = {place.widths: Split(judge=judge, widths=place.widths) for place in places}
        for number, place in enumerate(places):
            for way in place.ways:
                for line, measures in way.measures(splits[place.widths], repeat, random).items():
                    if measure in measures:
                        found.setdefault((number, line), []).append(measures[measure])
            done += 1
            progress(Progress("clusterings", done, steps, f"{place.panel}, {place.column}"))
    costs = [_costs(place, splits[place.widths]) for place in places]
    return [
        _row(places[number], line, costs[number][line], values) for (number, line), values in found.items()
    ]


def _costs(place: Place, split: Split) -> dict[str, Cost]:
    facts = split.facts(place.local_clusters)
    return {line: cost for way in place.ways for line, cost in way.costs(facts).items()}


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
