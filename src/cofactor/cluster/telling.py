"""What a clustering's result says: its segments, what is promised to users, and who took part."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cofactor.cluster.joining import joined
from cofactor.cluster.method import Floats
from cofactor.cluster.planning import Plan
from cofactor.cluster.records import Range
from cofactor.cluster.result import Clustering
from cofactor.config import as_table
from cofactor.federation.books import released
from cofactor.federation.finding import Alignment
from cofactor.federation.run import PartyFacts, Together
from cofactor.federation.transcript import Transcript
from cofactor.privacy.events import Event
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.ledger import Ledger

Released = tuple[tuple[Floats, ...], Floats]
"""The parties' local centres, and how many users are in every combination of them."""


def settings_of(plan: Plan) -> dict[str, Any]:
    """Return how a clustering is made, as tables."""
    return {"kind": "Clustering", "method": as_table(plan.method), "local": as_table(plan.local)}


def clustering_of(
    plan: Plan,
    found: Released,
    ranges: Sequence[Sequence[Range]],
    *,
    seed: int,
    guarantee: Guarantee,
    together: Together,
    created: str,
    seconds: float,
    scaled: Floats | None = None,
) -> Clustering:
    """Return the result; the centres are found here, unless somebody else has."""
    centres, table = found
    if scaled is None:
        scaled = joined(centres, table, plan.facts.clusters, seed=seed)
    return Clustering(
        facts=plan.facts,
        settings=settings_of(plan),
        ranges=tuple(tuple(own) for own in ranges),
        local_centres=centres,
        table=table,
        scaled=scaled,
        concerns=plan.concerns,
        guarantee=guarantee,
        together=together,
        seed=seed,
        created=created,
        seconds=seconds,
    )


def guarantee_of(
    plan: Plan,
    events: Iterable[Event],
    alignment: Alignment,
    unstated: Mapping[str, Sequence[str]],
    *,
    beside: Sequence[str] = (),
    doubts: Sequence[str] = (),
) -> Guarantee:
    """Return what is promised to the common users, for what parties have released.

    `unstated` names, by party, columns whose ranges were read off the data; `beside` says what else is not
    covered, and `doubts` what a reader should know.
    """
    promise = plan.method.promise(plan.facts)
    found = Guarantee.of(
        events,
        plan.budget,
        against=promise.against,
        covers=(_CENTRES, *promise.covers),
        does_not_cover=(*promise.does_not_cover, _PUBLIC, _LEDGERS, *alignment.sentences(), *beside),
        assumptions=promise.assumptions,
        shared_units=True,
        units=plan.facts.users,
        about="columns",
    )
    return replace(
        found,
        why_not=(*found.why_not, *promise.why_not, *_shown(unstated)),
        warnings=(*found.warnings, *promise.warnings, *doubts),
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


def _shown(unstated: Mapping[str, Sequence[str]]) -> list[str]:
    """Say what was read off the data, and is shown, that should have been agreed on beforehand."""
    return [
        f"The ranges of {', '.join(columns)} were read off the data of {name}, and are shown: their ends are "
        "somebody's numbers, and nothing hides them. State ranges."
        for name, columns in unstated.items()
        if columns
    ]


def together_of(
    plan: Plan,
    transcript: Transcript,
    ledgers: Mapping[str, Ledger],
    alignment: Alignment,
    parties: Collection[str] | None = None,
) -> Together:
    """Return who took part: all, or only those `parties` whom a folder is about."""
    facts, sent, session = plan.facts, transcript.bytes_by_sender(), transcript.session
    found = {
        name: PartyFacts(
            users=facts.users,
            items=width,
            ratings=0,
            bytes_sent=sent[name],
            epsilon=_alone(plan, ledgers[name], session),
        )
        for name, width in zip(facts.parties, facts.widths, strict=True)
        if parties is None or name in parties
    }
    return Together(
        split="vertical",
        session=session,
        simulated=False,
        budget=as_table(plan.budget),
        parties=found,
        rounds=plan.rounds,
        traffic=transcript.total_bytes,
        transcript=transcript.content(),
        ledgers={name: ledger.content() for name, ledger in ledgers.items()},
        alignment=alignment,
    )


def _alone(plan: Plan, ledger: Ledger, session: str) -> float | None:
    """Return what a party's users lose even if all others collude with the coordinator; None if all."""
    if not plan.method.alone(plan.facts):
        return None
    from cofactor.privacy.accountant import spent  # it takes a second to load

    budget = plan.budget
    own = spent(released(ledger, session), budget.delta, unit=budget.unit, adjacency=budget.adjacency)
    return own.epsilon
