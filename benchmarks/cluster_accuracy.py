"""How good private clusters are at epsilon 1: losses over that of central k-means, and errors of tables.

    python -m benchmarks.cluster_accuracy [FOLDER]

Each number is the mean of ten, with its standard error; the mixture of Gaussians has other centres each time.
With a folder that holds letter.npz there are letters, too. Delta is one over the number of users. Our methods
find as many local clusters as they choose themselves; those of the thesis, five. The number of the last
column is what the releases cost in truth. Who is told nothing takes the middle of all ranges for everybody.
"""

import math
import sys
from pathlib import Path

import numpy as np

from cofactor.cluster.kmeans import clustered, loss
from cofactor.cluster.planning import usual_local_clusters
from cofactor.papers.cells import Effort
from cofactor.papers.results import Row
from cofactor.papers.thesis22_cluster_data import CLUSTERS, GAUSSIAN, LETTER, Crowd, read_crowds
from cofactor.papers.thesis22_cluster_findings import BARS
from cofactor.papers.thesis22_cluster_methods import (
    OURS,
    Answers,
    CentralPrivate,
    NoPrivacy,
    Ours,
    Published,
)
from cofactor.papers.thesis22_cluster_names import (
    BASIC,
    INDEPENDENT,
    LOSS,
    PRIVATE_CENTRES,
    PRIVATE_TABLE,
    PROPORTIONAL,
    TABLE_ERROR,
    TWO_PARTY,
    even,
    parties_panel,
)
from cofactor.papers.thesis22_cluster_rows import Place, Way, rows_by_measure
from cofactor.papers.thesis22_cluster_runs import budget_of
from cofactor.progress import nobody

EPSILON, REPEATS = 1.0, 10
SETTINGS = ((GAUSSIAN, 2), (GAUSSIAN, 4), (LETTER, 2))
THESIS = (BASIC, TWO_PARTY, PROPORTIONAL, INDEPENDENT, PRIVATE_TABLE, PRIVATE_CENTRES)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    crowds = {crowd.name: crowd for crowd in read_crowds(folder, (GAUSSIAN, LETTER))}
    for name, parties in SETTINGS:
        if name in crowds:
            shown(crowds[name], parties)


def shown(crowd: Crowd, parties: int) -> None:
    """Print one table."""
    panel = parties_panel(crowd.name, parties)
    print(f"\n{panel}, epsilon {EPSILON:g}, {crowd.users:,} users, {crowd.columns} columns")
    print(f"{'':44}{'loss ratio':>20}{'at most':>9}{'table error':>20}{'epsilon':>9}")
    place = Place(panel=panel, column="", widths=even(crowd.columns, parties), ways=ways(crowd, parties))
    found = rows_by_measure(crowd, [place], (LOSS, TABLE_ERROR), Effort(seeds=REPEATS), nobody)
    print(f"{'nothing released':44}{told_nothing(crowd):>20}")
    losses, errors = ({row.line: row for row in rows} for rows in found.values())
    for line, row in losses.items():
        most = BARS.get((panel, line))
        bar = "" if most is None else f"{most:.2f}"
        cost = "" if row.epsilon is None else f"{row.epsilon:.2f}"
        print(f"{line:44}{number(row):>20}{bar:>9}{number(errors.get(line)):>20}{cost:>9}")


def told_nothing(crowd: Crowd) -> str:
    """Return the loss of one centre in the middle of all ranges, over that of central k-means."""
    ratios = []
    for repeat in range(REPEATS):
        values = crowd.drawn(repeat).values
        best = loss(values, clustered(values, None, CLUSTERS, seed=repeat))
        ratios.append(loss(values, np.zeros((1, crowd.columns))) / best)
    return f"{np.mean(ratios):.3f} +- {np.std(ratios, ddof=1) / math.sqrt(REPEATS):.3f}"


def ways(crowd: Crowd, parties: int) -> list[Way]:
    """Return all methods: ours with as many local clusters as they choose."""
    budget = budget_of(EPSILON, crowd.users)
    ours = [
        Ours(
            line=line,
            epsilon=EPSILON,
            local_clusters=usual_local_clusters(
                method, users=crowd.users, parties=parties, clusters=CLUSTERS, budget=budget
            ),
            parts=True,
        )
        for line, method in OURS.items()
    ]
    thesis: list[Way] = [Published(epsilon=EPSILON, lines=THESIS), Answers(epsilon=EPSILON)]
    return [NoPrivacy(), CentralPrivate(epsilon=EPSILON), *thesis, *ours]


def number(row: Row | None) -> str:
    if row is None or row.ours is None or row.low is None or row.high is None:
        return ""
    return f"{row.ours:.3f} +- {(row.high - row.low) / 2:.3f}"


if __name__ == "__main__":
    main()
