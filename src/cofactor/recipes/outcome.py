"""What a training leaves behind besides models: who took part, what was sent, what each party lost."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cofactor.config import as_table
from cofactor.errors import Refused
from cofactor.federation.drive import Session
from cofactor.federation.finding import Alignment
from cofactor.federation.halves import Facts, Recipe
from cofactor.federation.labels import release_of, round_of
from cofactor.federation.run import DataFacts, PartyFacts, Together
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Event
from cofactor.privacy.mechanisms import DiscreteLaplace, PoissonBinomial


def together_of(
    recipe: Recipe,
    facts: Facts,
    budget: Budget | None,
    session: Session,
    ledgers: Mapping[str, bytes],
    events: Mapping[str, list[Event]],
    *,
    rounds: int,
    planned: int,
    parties: Sequence[str] | None = None,
    stricter: Collection[str] = (),
    roles: tuple[str, ...] = (),
    surveys: Mapping[str, str] | None = None,
    simulated: bool = False,
    alignment: Alignment | None = None,
) -> Together:
    """Return what a run keeps, after so many rounds of those that were planned.

    `ledgers` are copies, `events` what each party has released, both by party. `parties` are those whom it
    is about, all of them if left out; the `stricter` ones have budgets of their own, and so add all of their
    noise themselves.
    """
    sent = session.transcript.bytes_by_sender()
    # What was charged in a round that a crash cut off counts, and so does its round.
    charged = [round_of(event) or 0 for own in events.values() for event in own]
    rounds = max(rounds, *charged, 0)
    shared = {} if budget is None else recipe.promise(facts, budget).shared
    found = {}
    for name in facts.parties if parties is None else parties:
        at, parts = facts.place(name), {} if name in stricter else shared
        found[name] = PartyFacts(
            users=facts.users[at],
            items=facts.items[at],
            ratings=facts.ratings[at],
            bytes_sent=sent[name],
            # What a cohort releases is all devices' together; what one of them would lose shows in no number.
            epsilon=None if budget is None or facts.cohort else _loss(events.get(name, []), budget, parts),
        )
    return Together(
        split=facts.split,
        session=session.name,
        simulated=simulated,
        budget=None if budget is None else as_table(budget),
        parties=found,
        rounds=rounds,
        planned_rounds=planned if planned > rounds else None,
        roles=roles,
        traffic=sent.total(),
        transcript=session.transcript.content(),
        ledgers=dict(ledgers),
        surveys=dict(surveys or {}),
        alignment=alignment,
    )


def _loss(events: list[Event], budget: Budget, shares: Mapping[str, float]) -> float | None:
    """Return what a party loses if all others collude: only its own share of the noise protects it then."""
    from cofactor.privacy.accountant import spent

    parts = [shares.get(release_of(event), 1.0) for event in events]
    if any(
        isinstance(each.mechanism, DiscreteLaplace) and part < 1
        for each, part in zip(events, parts, strict=True)
    ):
        return None  # a part of such noise is mostly 0: it has another law, and next to no use
    alone = [
        replace(event, mechanism=_own(event.mechanism, part))
        for event, part in zip(events, parts, strict=True)
    ]
    try:
        epsilon = spent(alone, budget.delta, unit=budget.unit, adjacency=budget.adjacency).epsilon
    except Refused:
        return None
    return epsilon if epsilon < float("inf") else None


def _own(mechanism: Any, part: float) -> Any:
    """Return what is left of a mechanism if all others collude: part of the noise, or one's own coins."""
    if isinstance(mechanism, PoissonBinomial) and part < 1:
        return replace(mechanism, participants=1)
    return mechanism.scaled(part**0.5)


def data_facts(facts: Facts) -> DataFacts:
    """Return the size of what was trained on."""
    scale = "implicit" if facts.implicit else str(facts.scale)
    return DataFacts(facts.user_count, facts.item_count, facts.rating_count, scale)
