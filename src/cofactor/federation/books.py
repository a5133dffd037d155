"""Ledgers of the parties that take part in a session: opened, and asked beforehand whether all of it fits."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cofactor.errors import ConfigError, LedgerError
from cofactor.federation.sealing import belongs, is_keyed, key_path, sealed
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Event
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.schedule import Schedule

if TYPE_CHECKING:
    from cofactor.federation.party import Party


class Keeping(Protocol):
    """Somebody who holds data, and keeps a ledger of them."""

    @property
    def name(self) -> str:
        """The holder's name."""

    @property
    def file(self) -> Path | None:
        """Where the data came from, if from a file."""

    @property
    def fingerprint(self) -> str:
        """Which data these are."""

    @property
    def ledger_path(self) -> Path | None:
        """Where the ledger lies, if there is a file."""


def open_ledger(party: Keeping, budget: Budget, folder: Path | None, *, newer_data: bool = False) -> Ledger:
    """Open the ledger beside the party's file, or begin it; a party without a file keeps one with the run."""
    path = party.ledger_path or (None if folder is None else folder / f"{party.name}.ledger")
    if path is None or not path.exists():
        return begin_ledger(party, budget, path)
    ledger = ledger_at(path, party, newer_data=newer_data)
    _check_same_terms(ledger, budget, path)
    return ledger


def begin_ledger(party: Keeping, budget: Budget, path: Path | None) -> Ledger:
    """Begin a ledger for somebody's data; without a path it lives in memory."""
    if path is not None and key_path(path).exists() and not path.exists():
        raise LedgerError(
            f"{path} is gone, and its key is still here: nobody knows what was released. Restore it from a "
            f"backup; or, if nothing ever was, remove {key_path(path)} and begin anew."
        )
    told = sealed(party.fingerprint, path) if path and party.fingerprint else "data of a simulation"
    return Ledger.create(path, party=party.name, fingerprint=told, budget=budget)


def ledger_at(path: Path, party: Keeping, *, newer_data: bool = False) -> Ledger:
    """Open a ledger that exists, whatever its budget is for.

    A line that a crash cut off was not released, so it is dropped. `newer_data` says that the file has grown
    since, and that the ledger goes on with it.
    """
    ledger = Ledger.open(path, recover=True)
    if party.fingerprint and not belongs(ledger.fingerprint, party.fingerprint, path):
        if not newer_data and not key_path(path).exists() and is_keyed(ledger.fingerprint):
            raise LedgerError(
                f"{key_path(path)} is missing: without it nobody can tell whether {party.file} is what the "
                "ledger belongs to. Restore it from a backup; or, if the data are the same or have grown, go "
                f"on with 'cofactor budget {party.file} --newer-data'."
            )
        if not newer_data:
            raise LedgerError(
                f"{path}: belongs to other data than {party.file}: another file, or the file has changed. If "
                f"it has grown, go on with 'cofactor budget {party.file} --newer-data'."
            )
        ledger.extended(sealed(party.fingerprint, path))
    return ledger


def reserve(ledger: Ledger, schedule: Schedule, session: str) -> None:
    """Make sure that what is left of a schedule fits, before anything is released."""
    own = replace(schedule, parties=1)
    done: Counter[Event] = Counter()
    for event in released(ledger, session):
        done[event.once()] += event.count
    wanted = []
    for event in own.events():
        already = min(event.count, done[event.once()])
        # Two releases may be alike: what was done counts for one of them.
        done[event.once()] -= already
        if event.count > already:
            wanted.append(replace(event, by=ledger.party, count=event.count - already))
    ledger.reserve(wanted)


def released(ledger: Ledger, *sessions: str) -> list[Event]:
    """Return what sessions have released, as the ledger knows it."""
    return [entry.event for entry in ledger.entries if entry.run in sessions and entry.event is not None]


def own_budget(party: "Party", budget: Budget) -> Budget:
    """Return the budget that a party's noise must keep: its own, if it asks for more privacy."""
    own = party.budget
    if own is None:
        return budget
    if budget.personal == "sampling":
        raise ConfigError(
            f"{party.name}: it has a budget of its own, and users who take part by chance have one chance at "
            'all parties. Use mechanism="stretching", or the strictest budget for all.'
        )
    if (own.unit, own.adjacency) != (budget.unit, budget.adjacency):
        raise ConfigError(
            f"{party.name}: its budget is for each {own.unit}, the run's for each {budget.unit}."
        )
    if own.epsilon > budget.epsilon or own.delta > budget.delta:
        raise ConfigError(
            f"{party.name}: its own budget ({own}) is larger than the run's ({budget}). Ask for less, or "
            "raise the run's."
        )
    return replace(own, personal=budget.personal)


def all_released(ledgers: Mapping[str, Ledger], *sessions: str) -> list[Event]:
    """Return everything that all parties have released in some sessions."""
    return [event for ledger in ledgers.values() for event in released(ledger, *sessions)]


def _check_same_terms(ledger: Ledger, budget: Budget, path: Path) -> None:
    terms, wanted = ledger.budget, budget
    if (terms.unit, terms.adjacency) != (wanted.unit, wanted.adjacency):
        raise LedgerError(
            f'{path}: its budget is for each {terms.unit} ("{terms.adjacency}"), and this run protects each '
            f'{wanted.unit} ("{wanted.adjacency}"). Use a recipe and a --unit that the ledger knows; what '
            "was spent under it stays spent."
        )
    if terms.personal is not None and terms.personal != wanted.personal:
        raise LedgerError(
            f"{path}: its budget is personal ({terms.personal}): some users were promised less than others, "
            "and this run would not keep that. Train with weights, and the same mechanism: "
            f"--user-weights FILE --personal {terms.personal}."
        )
    if (
        terms.personal == "sampling"
        and terms.of_weight_1 * wanted.epsilon < wanted.of_weight_1 * terms.epsilon
    ):
        raise LedgerError(
            f"{path}: its budget samples users for {terms.epsilon / terms.of_weight_1:.3g} of what weight 1 "
            f"is promised, and this run for {wanted.epsilon / wanted.of_weight_1:.3g}: many such runs would "
            "cost small weights more than their part. Use a larger --threshold."
        )
