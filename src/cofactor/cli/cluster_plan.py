"""`cofactor cluster --plan`: what noise a clustering takes, before any data are read."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cofactor.cli.cluster_methods import chosen_local, chosen_method
from cofactor.cli.cluster_wish import budget_of, check_settings
from cofactor.cli.text import RED, print_json, print_line
from cofactor.config import whole
from cofactor.errors import ConfigError

if TYPE_CHECKING:
    from cofactor.cluster.planning import Plan


@dataclass(frozen=True, kw_only=True)
class PlanWish:
    """What is known of a clustering without data."""

    clusters: int
    local_clusters: int | None
    epsilon: float
    delta: float | None
    method: str | None
    local: str | None
    users: int | None
    widths: str | None

    def made(self) -> "Plan":
        """Settle all noise."""
        from cofactor.cluster.method import Facts
        from cofactor.cluster.planning import planned, usual_local_clusters

        check_settings(self.clusters, self.local_clusters, self.method, self.local)
        whole(users=self.users)
        if self.users is None or self.widths is None:
            raise ConfigError(
                "--plan needs --users 20000 (in common) and --widths 4,4 (columns of each party)."
            )
        widths, method = _widths(self.widths), chosen_method(self.method)
        budget = budget_of(self.epsilon, self.delta, self.users)
        parties = len(widths)
        local_clusters = self.local_clusters or usual_local_clusters(
            method, users=self.users, parties=parties, clusters=self.clusters, budget=budget
        )
        facts = Facts(
            parties=tuple(f"party {place}" for place in range(1, parties + 1)),
            users=self.users,
            columns=tuple(tuple(f"column {at}" for at in range(1, width + 1)) for width in widths),
            clusters=self.clusters,
            local_clusters=local_clusters,
        )
        return planned(facts, budget, method=method, local=chosen_local(self.local))


def print_plan(plan: "Plan", *, as_json: bool) -> None:
    """Print what the parties release, with which noise, and what it costs."""
    from cofactor.privacy.plan import plan as examined

    facts, found = plan.facts, examined(plan.whole, plan.budget, keep_noise=True)
    cells = facts.local_clusters ** len(facts.parties)
    if as_json:
        public = {"users": facts.users, "clusters": facts.clusters, "local_clusters": facts.local_clusters}
        print_json({**public, "widths": list(facts.widths), **found.as_json()})
        return
    print_line(
        f"{facts.clusters} clusters of {facts.users:,} users: each of {len(facts.parties)} parties finds "
        f"{facts.local_clusters} local clusters in its columns, and {type(plan.method).__name__} counts who "
        f"is in which of {cells:,} combinations."
    )
    print_line(str(found), "" if found.holds else RED)


def _widths(text: str) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if len(found) < 2 or min(found) < 1:
        raise ConfigError(
            f"--widths must look like 4,4: how many columns each of two parties or more has, got {text!r}."
        )
    return found
