"""Training of several parties: from a recipe, a federation and a budget to a run."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.config import as_table
from cofactor.crypto.keys import Identity
from cofactor.errors import ConfigError, DataError, Refused
from cofactor.federation.books import all_released, open_ledger, own_budget, released, reserve
from cofactor.federation.channel import NO_FAILURES, Failures, InProcess
from cofactor.federation.doubts import doubts_about
from cofactor.federation.drive import Round, drive, farewell, rounds_had
from cofactor.federation.federation import Federation
from cofactor.federation.gauge import Gauge
from cofactor.federation.halves import Recipe, splits_of
from cofactor.federation.host import Host
from cofactor.federation.run import Run
from cofactor.federation.session import (
    alone_in,
    begun,
    end_told,
    seconds_in_rounds,
    tell,
    terms_of,
    told_before,
)
from cofactor.federation.splits import shared_units
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.plan import needed
from cofactor.privacy.schedule import Schedule
from cofactor.privacy.weights import Weights
from cofactor.progress import Listener, Progress, nobody
from cofactor.randomness import Random, SecureRandom, own_random
from cofactor.recipes.capturing import AnyCapture, capture_of, captured
from cofactor.recipes.hosts import (
    aggregate_of,
    host_of,
    keys_for,
    noise_beside_own,
    role_hosts,
    summing_of,
)
from cofactor.recipes.outcome import data_facts, together_of
from cofactor.recipes.promising import guarantee_of
from cofactor.recipes.surveys import check_surveys, left_by, note_surveys
from cofactor.recipes.telling import Phases, told_rounds
from cofactor.recipes.weighing import check_weights

if TYPE_CHECKING:
    from cofactor.survey.result import Survey

_SECURE = SecureRandom()


@dataclass(frozen=True, kw_only=True)
class Training:
    """How a training is to be run, beside what is trained."""

    seed: int = 0
    progress: Listener = nobody
    random: Random = _SECURE
    failures: Failures = NO_FAILURES
    folder: Path | None = None
    """Where everything is kept that is needed to go on after a crash."""
    newer_data: bool = False
    """Whether files may have grown since their ledgers were begun."""
    surveys: "tuple[Survey, ...]" = ()
    """Surveys that the recipe's settings came from: they count against the budget."""
    capture: AnyCapture | None = None
    """Whose messages are taken down, for attacks."""


def train_together(recipe: Recipe, federation: Federation, budget: Budget | None, training: Training) -> Run:
    """Train a federation; what is in the folder already is not done again."""
    _check(recipe, federation, budget)
    users: Weights | None = None
    if isinstance(budget, PersonalBudget):
        if federation.weights is not None:
            raise ConfigError("weights come with the federation, or with the budget: not with both.")
        users = budget.users if all(party.weights is None for party in federation.parties) else None
        federation = federation.with_weights(budget.users, budget.items, budget=budget)
        budget = budget.public
    check_weights(recipe, federation.weights, budget)
    check_surveys(training.surveys, federation, budget)
    if getattr(recipe, "public_items", None) is not None:
        federation = federation.with_public_items(recipe.public_items)  # type: ignore[attr-defined]
    elif hasattr(recipe, "public_items") and federation.facts.features and federation.public_items is None:
        raise ConfigError("public features of items must be declared: Federation.with_public_items.")
    if training.failures.devices and not federation.facts.cohort:
        raise ConfigError("devices drop out by chance in a simulation only: Federation.on_device(ratings).")
    with alone_in(training.folder):
        run = _trained(recipe, federation, budget, training)
    return replace(run, guarantee=replace(run.guarantee, weights=users))


def _trained(recipe: Recipe, federation: Federation, budget: Budget | None, training: Training) -> Run:
    created, phases = datetime.now(UTC), Phases()
    facts = federation.facts
    settled = recipe.settled(facts, left_by(training.surveys, budget))
    _check_unit(settled, budget)
    _check_hidden(settled, federation, budget)
    capture = capture_of(training.capture, settled, federation)
    surveyed = {survey.session: survey.question.name for survey in training.surveys}
    terms = {**terms_of(settled, budget, federation, training.seed), "surveys": surveyed}
    session = begun(training.folder, terms, settled.messages)
    identities = {party.name: Identity.generate() for party in federation.parties}
    decryption, keys = keys_for(settled, facts)
    roster = {name: identity.public for name, identity in identities.items()}
    session = replace(
        session, summing=summing_of(settled, facts, roster, decryption), capture=capture, may_stop=True
    )
    schedules = {} if budget is None else _schedules(settled, federation, budget, training.surveys)
    ledgers = {} if budget is None else _ledgers(federation, budget, schedules, session.name, training)
    coordinator = settled.coordinator(facts, training.seed)
    stricter = {party.name for party in federation.parties if party.budget is not None}
    loudest = noise_beside_own(settled, facts, schedules, stricter)
    gauge = Gauge() if federation.simulated else None
    hosts = {
        party.name: host_of(
            settled,
            party,
            facts,
            session,
            schedule=schedules[party.name].without_fixed() if party.name in schedules else None,
            ledger=ledgers.get(party.name),
            random=own_random(training.random, facts.place(party.name)),
            identity=identities[party.name],
            key=keys.get(party.name),
            loudest=loudest.get(party.name, 1.0),
            seed=training.seed,
            dropout=training.failures.devices,
            gauge=gauge,
        )
        for party in federation.parties
    }
    events = told_before(training.folder)
    before = seconds_in_rounds(events)

    def keep(event: Progress) -> None:
        events.append(event)
        tell(training.folder, event)

    def note(event: Progress) -> None:
        keep(event)
        training.progress(event)

    rounds_told = told_rounds(note, budget, _loosest(schedules, federation, budget), before)

    def done(round: Round) -> None:
        rounds_told(round)
        # What a simulation knows of itself is told when it is over, and never on the way.
        events.extend([] if gauge is None else gauge.told(round.number, round.of))

    if events and (last := max(event.step for event in events)) < coordinator.rounds:
        keep(Progress("resumed", last, coordinator.rounds))
    phases.over("getting ready")
    phases.add("rounds", before)
    roles = role_hosts(settled, facts, session, training.seed)
    channel = InProcess(hosts, roles=roles, failures=training.failures)
    try:
        with end_told(training.folder):
            drive(coordinator, channel, session, done)
    finally:
        channel.close()
        for ledger in ledgers.values():
            ledger.give_up_reserved()
    phases.over("rounds")
    homes = _finished(hosts, farewell(coordinator, session, channel.parties))
    model = coordinator.published()
    phases.over("finishing at home")
    together = together_of(
        settled,
        facts,
        budget,
        session,
        {name: ledger.content() for name, ledger in ledgers.items()},
        {name: released(ledger, session.name, *surveyed) for name, ledger in ledgers.items()},
        stricter=stricter,
        rounds=rounds_had(coordinator, session),
        planned=coordinator.rounds,
        roles=tuple(roles),
        surveys=surveyed,
        simulated=federation.simulated,
        alignment=federation.alignment,
    )
    return Run(
        model=model,
        recipe=as_table(settled),
        seed=training.seed,
        data=data_facts(facts),
        created=created.isoformat(timespec="seconds"),
        seconds=sum(phases.seconds.values()),
        phases=phases.seconds,
        events=tuple(events),
        guarantee=guarantee_of(
            settled,
            facts,
            budget,
            all_released(ledgers, session.name, *surveyed),
            alignment=federation.alignment,
            doubts=doubts_about(federation),
            ended=together.ended_early,
        ),
        homes=homes,
        captured=captured(capture, settled, federation, model, keys),
        together=together,
    )


def _check(recipe: Recipe, federation: Federation, budget: Budget | None) -> None:
    name = type(recipe).__name__
    if not isinstance(federation, Federation):
        raise ConfigError(
            f"{name} trains a Federation. Make one with Federation.{recipe.split.replace('-', '_')}(parties)."
        )
    if federation.kind not in splits_of(recipe):
        words = " and ".join(splits_of(recipe))
        raise ConfigError(f"{name} is for {words} federations, and this one is {federation.kind}.")
    if federation.implicit and not getattr(recipe, "takes_implicit", False):
        raise DataError(
            f"the rows only tell that something happened, and {name} trains on ratings with values. Use "
            "SecureALS (secure-als), or train such data in one place, with Pooled."
        )
    if budget is not None and not isinstance(budget, Budget):
        raise ConfigError(f"budget must be a Budget, got {budget!r}.")
    # That a device holds nothing is nobody's business; a party without ratings has only been misnamed.
    if federation.kind != "on-device" and any(len(party.ratings) == 0 for party in federation.parties):
        empty = next(party.name for party in federation.parties if len(party.ratings) == 0)
        raise ConfigError(f"{empty} has no ratings. Leave it out.")


def _check_hidden(recipe: Recipe, federation: Federation, budget: Budget | None) -> None:
    """Refuse to charge ledgers that outlive the run for what a simulation, or one key for all, hides."""
    why_not = aggregate_of(recipe).why_not(federation.facts.summed)
    lasting = any(party.file is not None for party in federation.parties)
    if why_not and budget is not None and lasting:
        raise Refused(
            f"{why_not[0]} Whoever can see an answer sees it with a share of the noise, and ledgers beside "
            "files would be charged too little. Use SecureSum(), SharedSum() or PlainSum() (--sum secure, "
            "--sum shared, --sum plain)."
        )


def _check_unit(recipe: Recipe, budget: Budget | None) -> None:
    if budget is not None and budget.unit not in recipe.units:
        raise ConfigError(
            f"{type(recipe).__name__} protects each {' or '.join(recipe.units)}, and the budget is for each "
            f"{budget.unit}."
        )


def _schedules(
    recipe: Recipe, federation: Federation, budget: Budget, surveys: Sequence["Survey"]
) -> dict[str, Schedule]:
    return {
        party.name: calibrated(
            recipe.schedule(federation.facts, budget.unit, party.name).with_fixed(
                event for survey in surveys for event in survey.events_of(party.name)
            ),
            own_budget(party, budget),
        )
        for party in federation.parties
    }


def _ledgers(
    federation: Federation,
    budget: Budget,
    schedules: Mapping[str, Schedule],
    session: str,
    training: Training,
) -> dict[str, Ledger]:
    """Open all ledgers, and make sure that all of them have room before anybody begins.

    Those that exist come first: a refusal leaves no new ones behind.
    """
    ledgers = {}
    for party in sorted(federation.parties, key=lambda each: not each.has_ledger):
        terms = own_budget(party, budget)
        if shared_units(federation.kind, budget.unit):
            # A user loses what all parties release: of what she may lose, each may spend its own part.
            own = replace(schedules[party.name], parties=1)
            terms = needed(own, delta=terms.delta, unit=terms.unit, adjacency=terms.adjacency)
        ledger = open_ledger(party, terms, training.folder, newer_data=training.newer_data)
        note_surveys(ledger, party.name, training.surveys)
        reserve(ledger, schedules[party.name].without_fixed(), session)
        ledgers[party.name] = ledger
    return {party.name: ledgers[party.name] for party in federation.parties}


def _loosest(
    schedules: Mapping[str, Schedule], federation: Federation, budget: Budget | None
) -> Schedule | None:
    """Return the schedule with the least noise: parties may have asked for more."""
    if budget is None:
        return None
    party = max(federation.parties, key=lambda party: own_budget(party, budget).epsilon)
    return schedules[party.name]


def _finished(hosts: Mapping[str, Host], last: bytes) -> dict[str, Any]:
    with ThreadPoolExecutor(min(max(1, len(hosts)), 64)) as pool:
        futures = {name: pool.submit(host.finish, last) for name, host in hosts.items()}
        return {name: future.result() for name, future in futures.items()}
