"""`find_clusters`: parties with different columns of the same users find segments of them together."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from cofactor.cluster.joining import joined
from cofactor.cluster.kmeans import check_installed
from cofactor.cluster.local import LSHForest
from cofactor.cluster.method import Facts, LocalClustering, Membership
from cofactor.cluster.planning import Plan, check_budget, planned, usual_local_clusters
from cofactor.cluster.records import Records
from cofactor.cluster.result import Clustering
from cofactor.cluster.session import run
from cofactor.cluster.tables import SecureTable
from cofactor.config import as_table, whole
from cofactor.crypto.psi import Rule
from cofactor.errors import BudgetExceeded, ConfigError, Refused
from cofactor.federation.books import all_released, open_ledger, released
from cofactor.federation.channel import NO_FAILURES, Failures
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.drive import Session
from cofactor.federation.finding import Among, Common, How, find_common
from cofactor.federation.run import PartyFacts, Together
from cofactor.federation.view import Capture, Truth, View
from cofactor.privacy.budget import Budget
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.plan import needed
from cofactor.privacy.schedule import Schedule
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
    aligned = [_in_order(each, common) for each in holders]
    plan = _plan(aligned, clusters, budget, method or SecureTable(), local or LSHForest(), local_clusters)
    ledgers = _ledgers(aligned, plan, ledger_budget, newer_data=newer_data)
    session, gathering = run(plan, aligned, ledgers, seed, random, failures, capture)
    centres, table = gathering.found()
    found = joined(centres, table, clusters, seed=seed)
    if capture is not None:
        capture.end(_frame(plan), Truth())
    return Clustering(
        facts=plan.facts,
        settings={"kind": "Clustering", "method": as_table(plan.method), "local": as_table(plan.local)},
        ranges=tuple(tuple(each.ranges[column] for column in each.columns) for each in aligned),
        local_centres=centres,
        table=table,
        scaled=found,
        concerns=plan.concerns,
        guarantee=_guarantee(plan, aligned, ledgers, session, common),
        together=_together(plan, aligned, ledgers, session, common),
        seed=seed,
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
        if each.budget is not None and not _within(each.budget, budget):
            raise BudgetExceeded(
                f"{each.name} allows {each.budget}, and the clustering would have {budget}. Nothing was "
                "released. What is counted together has one budget: use the smallest for all."
            )
    return holders


def _within(own: Budget, budget: Budget) -> bool:
    same = (own.unit, own.adjacency) == (budget.unit, budget.adjacency)
    return same and own.allows(budget.epsilon) and budget.delta <= own.delta


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
        recipe={"kind": "Clustering", "method": as_table(plan.method), "local": as_table(plan.local)},
        split="vertical",
        parties=facts.parties,
        users=(facts.users,) * len(facts.parties),
        items=0,
        scale=None,
    )


def _in_order(each: Records, common: Common) -> Records:
    return replace(each, ids=tuple(map(str, common.ids.tolist())), values=each.values[common.rows[each.name]])


def _plan(
    holders: Sequence[Records],
    clusters: int,
    budget: Budget,
    method: Membership,
    local: LocalClustering,
    local_clusters: int | None,
) -> Plan:
    whole(clusters=clusters, local_clusters=local_clusters)
    if not hasattr(method, "countable") or not hasattr(local, "centres"):
        raise ConfigError(
            "method is a way to count, such as SecureTable(), and local one to cluster alone, such as "
            "LSHForest()."
        )
    users = len(holders[0].ids)
    chosen = local_clusters or usual_local_clusters(
        method, users=users, parties=len(holders), clusters=clusters, budget=budget
    )
    facts = Facts(
        parties=tuple(each.name for each in holders),
        users=users,
        columns=tuple(each.columns for each in holders),
        clusters=clusters,
        local_clusters=chosen,
    )
    return planned(facts, budget, method=method, local=local)


def _ledgers(
    holders: Sequence[Records], plan: Plan, budget: Budget | None, *, newer_data: bool
) -> dict[str, Ledger]:
    """Open all ledgers, and make sure that all of them have room before anything is released.

    Those that exist come first: a refusal leaves no new ones behind.
    """
    ledgers = {}
    kept = {each.name for each in holders if each.ledger_path is not None and each.ledger_path.exists()}
    terms = {
        each.name: _terms(each, plan.schedules[each.name], plan.budget, budget)
        for each in holders
        if each.name not in kept
    }
    for each in sorted(holders, key=lambda one: one.name not in kept):
        schedule = plan.schedules[each.name]
        ledger = open_ledger(each, terms.get(each.name, plan.budget), None, newer_data=newer_data)
        try:
            ledger.reserve(replace(event, by=each.name) for event in schedule.events())
        except BudgetExceeded as error:
            raise BudgetExceeded(f"{error} {_FOUND}") from None
        ledgers[each.name] = ledger
    return {each.name: ledgers[each.name] for each in holders}


_FOUND = "Parties know by now which users they have in common, and nothing else."


def _terms(each: Records, schedule: Schedule, budget: Budget, ledger_budget: Budget | None) -> Budget:
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


def _guarantee(
    plan: Plan,
    holders: Sequence[Records],
    ledgers: Mapping[str, Ledger],
    session: Session,
    common: Common,
) -> Guarantee:
    promise = plan.method.promise(plan.facts)
    found = Guarantee.of(
        all_released(ledgers, session.name),
        plan.budget,
        against=promise.against,
        covers=(_CENTRES, *promise.covers),
        does_not_cover=(*promise.does_not_cover, _PUBLIC, _LEDGERS, *common.alignment.sentences()),
        assumptions=promise.assumptions,
        shared_units=True,
        units=plan.facts.users,
        about="columns",
    )
    return replace(
        found,
        why_not=(*found.why_not, *promise.why_not, *_shown(holders)),
        warnings=(*found.warnings, *promise.warnings),
    )


_CENTRES = "Every party's local centres, and whatever is made of them."
_LEDGERS = (
    "What other parties release alone in other runs: a party's ledger adds up what the party released, and "
    "what all released together. A user of several parties loses what all of their ledgers hold."
)
_PUBLIC = (
    "How many users the parties have in common, what their columns are called, and between which numbers "
    "they lie: public."
)


def _shown(holders: Sequence[Records]) -> list[str]:
    """Say what was read off the data, and is shown, that should have been agreed on beforehand."""
    return [
        f"The ranges of {', '.join(each.unstated)} were read off the data of {each.name}, and are shown: "
        "their ends are somebody's numbers, and nothing hides them. State ranges."
        for each in holders
        if each.unstated
    ]


def _together(
    plan: Plan,
    holders: Sequence[Records],
    ledgers: Mapping[str, Ledger],
    session: Session,
    common: Common,
) -> Together:
    transcript = session.transcript
    sent = transcript.bytes_by_sender()
    parties = {
        each.name: PartyFacts(
            users=plan.facts.users,
            items=len(each.columns),
            ratings=0,
            bytes_sent=sent[each.name],
            epsilon=_alone(plan, ledgers[each.name], session.name),
        )
        for each in holders
    }
    return Together(
        split="vertical",
        session=session.name,
        simulated=False,
        budget=as_table(plan.budget),
        parties=parties,
        rounds=plan.rounds,
        traffic=transcript.total_bytes,
        transcript=transcript.content(),
        ledgers={name: ledger.content() for name, ledger in ledgers.items()},
        alignment=common.alignment,
    )


def _alone(plan: Plan, ledger: Ledger, session: str) -> float | None:
    """Return what a party's users lose even if all others collude with the coordinator; None if all."""
    if not plan.method.alone(plan.facts):
        return None
    from cofactor.privacy.accountant import spent  # it takes a second to load

    budget = plan.budget
    own = spent(released(ledger, session), budget.delta, unit=budget.unit, adjacency=budget.adjacency)
    return own.epsilon
