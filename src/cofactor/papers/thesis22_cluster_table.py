"""Table 5.1 of the thesis: how many local clusters its rule chooses (section 5.4.2)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from cofactor.cluster.planning import usual_local_clusters
from cofactor.cluster.sketch_sizes import SPREAD, published_local_clusters
from cofactor.cluster.sketches import Sketches
from cofactor.papers.cells import Effort
from cofactor.papers.results import Row
from cofactor.papers.thesis22_cluster_data import CLUSTERS, Crowd
from cofactor.papers.thesis22_cluster_names import REPAIRED
from cofactor.papers.thesis22_cluster_runs import budget_of
from cofactor.papers.thesis22_cluster_sketch import ROWS, Shares
from cofactor.papers.thesis22_figures import epsilon_column
from cofactor.progress import Listener

WRITTEN = 0.649
"""What relates a sketch's error to its rows in the thesis; of the largest of hashes, `SPREAD` is true."""
RHOS = (WRITTEN, SPREAD)
PRINTED = {
    (2, 20_000): (4, 5, 5, 6, 6),
    (2, 60_000): (5, 6, 6, 7, 7),
    (2, 100_000): (6, 6, 7, 7, 7),
    (4, 20_000): (4, 4, 5, 5, 5),
    (4, 60_000): (4, 5, 6, 6, 6),
    (4, 100_000): (5, 6, 6, 7, 7),
}
"""By parties and users, for each epsilon."""
TABLE_EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0)


def rule_line(rho: float) -> str:
    """Return what the line is called that shows the rule with a constant."""
    return f"rule, rho {rho:g}"


def by_rule(*, users: int, parties: int, epsilon: float, rho: float) -> int:
    """Return how many local clusters the rule chooses, with the thesis' parts of a budget."""
    shares = Shares.of(epsilon, users, parties)
    return published_local_clusters(
        users=users,
        clusters=CLUSTERS,
        parties=parties,
        epsilon=shares.members,
        delta=shares.delta,
        rows=ROWS,
        spread=rho,
    )


def local_clusters_table(crowd: Crowd, effort: Effort, progress: Listener) -> list[Row]:  # noqa: ARG001
    """Return Table 5.1, beside what the rule chooses, and what ours does; neither depends on any data."""
    return rows_by({rule_line(rho): partial(by_rule, rho=rho) for rho in RHOS} | {REPAIRED: _ours})


def rows_by(lines: Mapping[str, Callable[..., int]]) -> list[Row]:
    """Return what several rules choose, each from users, parties and epsilon, beside what is printed."""
    return [
        Row(
            line=line,
            panel=f"S = {parties}, {users:,} users",
            column=epsilon_column(epsilon),
            ours=float(chosen(users=users, parties=parties, epsilon=epsilon)),
            paper=None if line == REPAIRED else float(printed),
        )
        for (parties, users), row in PRINTED.items()
        for line, chosen in lines.items()
        for epsilon, printed in zip(TABLE_EPSILONS, row, strict=True)
    ]


def _ours(*, users: int, parties: int, epsilon: float) -> int:
    return usual_local_clusters(
        Sketches(), users=users, parties=parties, clusters=CLUSTERS, budget=budget_of(epsilon, users)
    )


def findings_table(rows: Sequence[Row]) -> list[str]:
    """Say how many of the printed numbers the rule gives."""
    found = []
    for line in dict.fromkeys(row.line for row in rows if row.paper is not None):
        own = [row for row in rows if row.line == line]
        same = sum(row.ours == row.paper for row in own)
        found.append(f"Local clusters, {line}: {same} of {len(own)} as printed.")
    return found
