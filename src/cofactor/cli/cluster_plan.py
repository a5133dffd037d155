"""`cofactor cluster --plan`: what noise a clustering takes, before any data are read."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cofactor.cli.cluster_methods import chosen_local, chosen_method
from cofactor.cli.cluster_wish import budget_of, check_settings
from cofactor.cli.text import YELLOW, print_json, print_line, print_table
from cofactor.config import as_table, whole
from cofactor.errors import ConfigError

if TYPE_CHECKING:
    from cofactor.cluster.planning import Plan
    from cofactor.privacy.plan import Plan as Costs
    from cofactor.privacy.schedule import Release


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
    from cofactor.figures import percent, rounded_up
    from cofactor.privacy.plan import plan as examined

    facts, found = plan.facts, examined(plan.whole, plan.budget, keep_noise=True)
    cells = facts.local_clusters ** len(facts.parties)
    if as_json:
        print_json(_as_object(plan, found))
        return
    print_line(
        f"{facts.clusters} clusters of {facts.users:,} users: each of {len(facts.parties)} parties finds "
        f"{facts.local_clusters} local clusters in its columns, and {type(plan.method).__name__} counts who "
        f"is in which of {cells:,} combinations. On average one holds {facts.users / cells:,.1f} users, and "
        f"a local cluster {facts.users / facts.local_clusters:,.1f}."
    )
    rows: Counter[tuple[str, int, str]] = Counter()
    for release in plan.whole.releases:
        rows[release.what, release.dimension, _noise(release)] += release.count(plan.rounds)
    print_table(
        ("what is released", "numbers", "noise", "times"), [(*row, times) for row, times in rows.items()]
    )
    print_line(
        f"In all: epsilon {rounded_up(found.spent.epsilon)} at delta {found.spent.delta:g}, by "
        f"{found.spent.method}; who guesses whether a user's columns are in the data is right at most "
        f"{percent(found.odds)} of the time."
    )
    for concern in plan.concerns:
        print_line(f"Warning: {concern}", YELLOW)


def _as_object(plan: "Plan", found: "Costs") -> dict[str, Any]:
    kept = ("holds", "budget", "epsilon", "delta", "odds", "accountant", "rounds", "releases")
    told = found.as_json()
    return {
        "users": plan.facts.users,
        "widths": list(plan.facts.widths),
        "clusters": plan.facts.clusters,
        "local_clusters": plan.facts.local_clusters,
        **{name: told[name] for name in kept},
        "concerns": list(plan.concerns),
    }


def _noise(release: "Release") -> str:
    told = as_table(release.mechanism)
    settings = (
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in told.items()
        if name != "kind"
    )
    return f"{told['kind']}({', '.join(settings)})"


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
