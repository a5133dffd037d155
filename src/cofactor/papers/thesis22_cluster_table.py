"""Table 5.1 of the thesis: how many local clusters its rule chooses (section 5.4.2)."""

import math
from collections.abc import Sequence

from cofactor.papers.cells import Effort
from cofactor.papers.results import Row
from cofactor.papers.thesis22_cluster_data import CLUSTERS, Crowd
from cofactor.papers.thesis22_cluster_sketch import ROWS, Shares
from cofactor.papers.thesis22_figures import epsilon_column
from cofactor.progress import Listener

WRITTEN, MEASURED = 0.649, 1.04
"""What relates a sketch's error to its rows: the thesis' number, and that of the largest of hashes."""
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
_PAIR = 2
"""Tables are those of two parties, however many there are."""
_MOST = 100


def rule_line(rho: float) -> str:
    """Return what the line is called that shows the rule with a constant."""
    return f"rule, rho {rho:g}"


def chosen(*, users: int, parties: int, epsilon: float, rho: float, clusters: int = CLUSTERS) -> int:
    """Return the least number whose average cell drowns in the noise, or more, if clusters need more."""
    shares = Shares.of(epsilon, users, parties)
    drowned = next(local for local in range(1, _MOST) if _drowns(local, users, shares, rho))
    return max(drowned, math.ceil(math.pow(clusters, 1 / parties)))


def _drowns(local: int, users: int, shares: Shares, rho: float) -> bool:
    """Say whether two standard deviations (Theorem 5.3.3) exceed an average cell."""
    cell = users / local**2
    phantoms = 4 * rho * _PAIR * (local - 1) * math.sqrt(math.log(1 / shares.delta)) / shares.members
    return 2 * (rho * (users - cell) / math.sqrt(ROWS) + phantoms) >= cell


def local_clusters_table(crowd: Crowd, effort: Effort, progress: Listener) -> list[Row]:  # noqa: ARG001
    """Return Table 5.1, beside what the rule chooses; it depends on no data."""
    return [
        Row(
            line=rule_line(rho),
            panel=f"S = {parties}, {users:,} users",
            column=epsilon_column(epsilon),
            ours=float(chosen(users=users, parties=parties, epsilon=epsilon, rho=rho)),
            paper=float(printed),
        )
        for (parties, users), row in PRINTED.items()
        for rho in (WRITTEN, MEASURED)
        for epsilon, printed in zip(TABLE_EPSILONS, row, strict=True)
    ]


def findings_table(rows: Sequence[Row]) -> list[str]:
    """Say how many of the printed numbers the rule gives."""
    found = []
    for line in dict.fromkeys(row.line for row in rows):
        own = [row for row in rows if row.line == line and row.paper is not None]
        same = sum(row.ours == row.paper for row in own)
        found.append(f"Numbers of local clusters by the {line}: {same} of {len(own)} as printed.")
    return found
