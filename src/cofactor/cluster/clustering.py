"""`find_clusters`: parties with different columns of the same users find segments of them together."""

import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from cofactor.cluster.kmeans import check_installed
from cofactor.cluster.local import LSHForest
from cofactor.cluster.method import LocalClustering, Membership
from cofactor.cluster.planning import Plan, check_budget
from cofactor.cluster.records import Records
from cofactor.cluster.result import Clustering
from cofactor.cluster.session import run
from cofactor.cluster.settling import begun_with, in_order, ledger_of, plan_of, within
from cofactor.cluster.tables import SecureTable
from cofactor.cluster.telling import clustering_of, guarantee_of, settings_of, together_of
from cofactor.crypto.psi import Rule
from cofactor.errors import BudgetExceeded, ConfigError, Refused
from cofactor.federation.books import all_released
from cofactor.federation.channel import NO_FAILURES, Failures
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.finding import Among, How, find_common
from cofactor.federation.view import Capture, Truth, View
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.randomness import Random, SecureRandom

_SECURE = SecureRandom()


def find_clusters(
    records: Sequence[Records],
    *,
    clusters: int,
    budget: Budget,
    method: Membership | None = None,
    local: LocalClustering | None = None,
    local_clusters: int | None = None,
    align: How = "psi",
    among: Among = "leader",
    rule: Rule = "exact",
    seed: int = 0,
    random: Random = _SECURE,
    failures: Failures = NO_FAILURES,
    ledger_budget: Budget | None = None,
    newer_data: bool = False,
    capture: Capture | None = None,
) -> Clustering:
    """Find segments of the users that all parties have in common, by the columns of all of them.

    Which users those are is found out first: by private set intersection ("psi"), or from "ids" that the
    parties show each other; `among` and `rule` are those of `find_common`. A party with a file has a ledger
    beside it, which is charged for what the party releases and what all release together; where there is none
    yet, `ledger_budget` says what that may ever cost, by default this clustering and nothing more. `seed` is
    that of public chance and never touches noise. `newer_data` says that files may have grown since.
    `capture` takes down what some roles see, for attacks on made-up records.
    """
    check_installed()
    check_budget(budget)
    holders = _checked(records, budget)
    _check_capture(capture, holders)
    created, start = datetime.now(UTC), time.perf_counter()
    common = find_common({each.name: each.ids for each in holders}, how=align, among=among, rule=rule)
    aligned = [in_order(each, common.ids, common.rows[each.name]) for each in holders]
    plan = plan_of(
        [each.name for each in aligned],
        [each.columns for each in aligned],
        len(common),
        clusters=clusters,
        budget=budget,
        method=method or SecureTable(),
        local=local or LSHForest(),
        local_clusters=local_clusters,
    )
    ledgers = _ledgers(aligned, plan, ledger_budget, newer_data=newer_data)
    session, gathering = run(plan, aligned, ledgers, seed, random, failures, capture)
    if capture is not None:
        capture.end(_frame(plan), Truth())
    unstated, events = {each.name: each.unstated for each in aligned}, all_released(ledgers, session.name)
    return clustering_of(
        plan,
        gathering.found(),
        [tuple(each.ranges.values()) for each in aligned],
        seed=seed,
        guarantee=guarantee_of(plan, events, common.alignment, unstated),
        together=together_of(plan, session.transcript, ledgers, common.alignment),
        created=created.isoformat(timespec="seconds"),
        seconds=time.perf_counter() - start,
    )


def _checked(records: Sequence[Records], budget: Budget) -> list[Records]:
    holders = list(records) if isinstance(records, Sequence) else []
    if len(holders) < 2 or not all(isinstance(each, Records) for each in holders):
        raise ConfigError(
            "find_clusters takes a list with the Records of two parties or more, such as "
            "[Records.from_csv(file), ...]. One party needs no help."
        )
    taken = next((each.name for each in holders if each.name in (COORDINATOR, SUM)), None)
    if taken is not None:
        raise ConfigError(
            f"no party may be called {taken!r}: that is who adds things up. Give it another name."
        )
    name, times = Counter(each.name for each in holders).most_common(1)[0]
    if times > 1:
        raise ConfigError(f"{times} parties are called {name!r}. Give each a name of its own.")
    files = Counter(each.ledger_path.resolve() for each in holders if each.ledger_path is not None)
    if files and max(files.values()) > 1:
        raise ConfigError("two parties have the same file. Name it once.")
    for each in holders:
        if each.budget is not None and not within(each.budget, budget):
            raise BudgetExceeded(
                f"{each.name} allows {each.budget}, and the clustering would have {budget}. Nothing was "
                "released. What is counted together has one budget: use the smallest for all."
            )
    return holders


def _check_capture(capture: Capture | None, holders: Sequence[Records]) -> None:
    """Refuse to take down messages about real people."""
    if capture is None:
        return
    capture.check_roles(each.name for each in holders)
    if any(each.ledger_path is not None for each in holders):
        raise Refused("messages are captured in simulations only: cluster made-up records, without files.")


def _frame(plan: Plan) -> View:
    facts = plan.facts
    return View(
        roles=(),
        recipe=settings_of(plan),
        split="vertical",
        parties=facts.parties,
        users=(facts.users,) * len(facts.parties),
        items=0,
        scale=None,
    )


def _ledgers(
    holders: Sequence[Records], plan: Plan, budget: Budget | None, *, newer_data: bool
) -> dict[str, Ledger]:
    """Open all ledgers, and make sure that all of them have room before anything is released.

    Those that exist come first: a refusal leaves no new ones behind.
    """
    kept = {each.name for each in holders if each.ledger_path is not None and each.ledger_path.exists()}
    terms = {
        each.name: begun_with(each, plan.schedules[each.name], plan.budget, budget)
        for each in holders
        if each.name not in kept
    }
    ledgers = {
        each.name: ledger_of(
            each, terms.get(each.name, plan.budget), plan.schedules[each.name], newer_data=newer_data
        )
        for each in sorted(holders, key=lambda one: one.name not in kept)
    }
    return {each.name: ledgers[each.name] for each in holders}
