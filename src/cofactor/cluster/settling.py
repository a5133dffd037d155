"""What is settled before a clustering begins: its plan, and that a party's ledger has room for its part."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cofactor.cluster.method import Facts, LocalClustering, Membership
from cofactor.cluster.planning import Plan, planned, usual_local_clusters
from cofactor.cluster.records import Records
from cofactor.config import whole
from cofactor.data.ids import Ids
from cofactor.errors import BudgetExceeded, ConfigError
from cofactor.federation.books import open_ledger
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.plan import needed
from cofactor.privacy.schedule import Schedule

_FOUND = "Parties know by now which users they have in common, and nothing else."


def plan_of(
    parties: Sequence[str],
    columns: Sequence[Sequence[str]],
    users: int,
    *,
    clusters: int,
    budget: Budget,
    method: Membership,
    local: LocalClustering,
    local_clusters: int | None,
) -> Plan:
    """Return the plan for so many common users of parties with these columns: public numbers only."""
    whole(clusters=clusters, local_clusters=local_clusters)
    if not hasattr(method, "countable") or not hasattr(local, "centres"):
        raise ConfigError(
            "method is a way to count, such as SecureTable(), and local one to cluster alone, such as "
            "LSHForest()."
        )
    chosen = local_clusters or usual_local_clusters(
        method, users=users, parties=len(parties), clusters=clusters, budget=budget
    )
    facts = Facts(
        parties=tuple(parties),
        users=users,
        columns=tuple(tuple(own) for own in columns),
        clusters=clusters,
        local_clusters=chosen,
    )
    return planned(facts, budget, method=method, local=local)


def in_order(each: Records, ids: Ids, rows: NDArray[np.int64]) -> Records:
    """Return the records of the common users, who stand in these rows, in this order."""
    return replace(each, ids=tuple(map(str, ids.tolist())), values=each.values[rows])


def within(own: Budget, budget: Budget) -> bool:
    """Say whether a clustering with this budget keeps a party's own, too."""
    same = (own.unit, own.adjacency) == (budget.unit, budget.adjacency)
    return same and own.allows(budget.epsilon) and budget.delta <= own.delta


def ledger_of(each: Records, terms: Budget, schedule: Schedule, *, newer_data: bool) -> Ledger:
    """Open a party's ledger, or begin it, and make sure that it has room for all that the party releases."""
    ledger = open_ledger(each, terms, None, newer_data=newer_data)
    try:
        ledger.reserve(replace(event, by=each.name) for event in schedule.events())
    except BudgetExceeded as error:
        raise BudgetExceeded(f"{error} {_FOUND}") from None
    return ledger


def begun_with(each: Records, schedule: Schedule, budget: Budget, ledger_budget: Budget | None) -> Budget:
    """Return with what a new ledger of a party is begun.

    A user loses what all parties release: of what she may lose, each may spend its own part.
    """
    wanted = ledger_budget or budget
    if not isinstance(wanted, Budget) or (wanted.unit, wanted.adjacency) != (budget.unit, budget.adjacency):
        raise ConfigError(f"a ledger with {wanted} does not count what a clustering with {budget} releases.")
    cost = needed(schedule, delta=wanted.delta, unit=wanted.unit, adjacency=wanted.adjacency).epsilon
    most = cost if ledger_budget is None else wanted.epsilon
    least = most if each.budget is None else min(most, each.budget.epsilon)
    terms = replace(wanted, epsilon=least)
    if not terms.allows(cost):
        raise BudgetExceeded(
            f"{each.name} would release what costs its users epsilon {cost:.3g}, and may spend {least:g} in "
            f"all. Nothing was released. Begin its ledger with more, or cluster with less. {_FOUND}"
        )
    return terms
