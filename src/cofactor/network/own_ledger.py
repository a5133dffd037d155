"""A party's own ledger, as a session on a network needs it: looked at, compared, and told of in extracts."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cofactor.errors import LedgerError, RunError
from cofactor.federation.books import Keeping, released, reserve
from cofactor.federation.declining import Declining
from cofactor.federation.sealing import belongs
from cofactor.privacy.budget import TOLERANCE, Budget
from cofactor.privacy.events import Event
from cofactor.privacy.ledger import PLANNED, Ledger
from cofactor.privacy.schedule import Schedule


def looked_at(holder: Keeping, *, newer_data: bool) -> Ledger | None:
    """Read the ledger beside a party's file, if there is one; nothing is written, not even to mend it.

    On a network a party has a file: what lives in memory forgets, at a restart, what was released.
    """
    path = holder.ledger_path
    if path is None:
        raise Declining("no data", f"{holder.name}: data without a file have no ledger. Name a file.")
    if not path.exists():
        return None
    ledger = _read(path.read_bytes())
    if not newer_data and not belongs(ledger.fingerprint, holder.fingerprint, path):
        raise Declining(
            "newer data",
            f"{path} belongs to other data than {holder.file}, or its key is gone. If the file has grown, go "
            f"on with 'cofactor budget {holder.file} --newer-data'.",
        )
    return ledger


def _read(content: bytes) -> Ledger:
    """Read a ledger; a last line that a crash cut off was not released, one that lacks only its end was."""
    try:
        return Ledger.from_bytes(content if content.endswith(b"\n") else content + b"\n")
    except LedgerError:
        return Ledger.from_bytes(content[: content.rfind(b"\n") + 1])


def in_all(ledger: Ledger | None, events: Iterable[Event], budget: Budget, session: str) -> float:
    """Return what everything that a ledger ever held costs, with these events in place of this session's."""
    if ledger is None:
        from cofactor.privacy.accountant import spent  # it takes a second to load

        return spent(list(events), budget.delta, unit=budget.unit, adjacency=budget.adjacency).epsilon
    before = [each.event for each in ledger.entries if each.event is not None and each.run != session]
    return ledger.cost([*before, *events]).epsilon


def allowed(ledger: Ledger | None) -> float | None:
    """Return what a ledger was begun with."""
    return None if ledger is None else ledger.budget.epsilon


def check_most(total: float, most: float | None) -> None:
    """Refuse what would cost more, with all that came before, than the party's policy allows."""
    if most is not None and not total <= most * (1 + TOLERANCE):
        raise Declining(
            "policy: epsilon in all",
            f"all runs on these data would cost epsilon {total:.4g}, and the policy allows {most:g}.",
        )


def charged(content: bytes, party: str, session: str) -> Ledger:
    """Return what a party says that it has charged in a session; refuse what is not about that."""
    ledger = Ledger.from_bytes(content)
    own = released(ledger, session)
    if ledger.party != party or len(own) < len(ledger.entries) or any(event.by != party for event in own):
        raise RunError(f"{party} sent a ledger that is not its own of this session. Ask the people there.")
    return ledger


def books(
    told: Mapping[str, bytes], session: str, schedules: Mapping[str, Schedule], budget: Budget
) -> dict[str, Ledger]:
    """Return what each party charged, as it said in the end; of one that did not come back, all that it may
    have charged. Refuse what is about something else, and a party that came and said nothing.
    """
    silent = [name for name in schedules if told.get(name) == b""]
    if silent:
        raise RunError(
            f"{', '.join(silent)} did not say what was charged: no guarantee can be written. Ask the people "
            "there."
        )
    found = {name: charged(content, name, session) for name, content in told.items() if content}
    return {
        name: found[name] if name in found else _planned(name, session, schedules[name], budget)
        for name in (*schedules, *(each for each in found if each not in schedules))
    }


def _planned(party: str, session: str, schedule: Schedule, budget: Budget) -> Ledger:
    """Return a ledger in which all that was planned is charged, for a party that has not said."""
    ledger = Ledger.create(None, party=party, fingerprint=PLANNED, budget=budget)
    reserve(ledger, schedule, session)
    for event in replace(schedule, parties=1).events():
        ledger.spend(replace(event, by=party), run=session)
    return ledger


def not_heard(books: Mapping[str, Ledger]) -> tuple[str, ...]:
    """Say for which parties the plan stands in, as whoever reads a guarantee should know."""
    names = ", ".join(name for name, each in books.items() if each.fingerprint == PLANNED)
    return (f"Not heard of in the end: {names}. All that was planned is counted.",) if names else ()


ONLY_OWN = (
    "This is one party's folder: it adds up what this party released. Other parties' releases are in theirs, "
    "and all of them in the coordinator's.",
)
"""What the guarantee in a party's own folder says besides."""
