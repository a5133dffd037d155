"""`Ledger`: everything that was ever released about a party's data, and the refusal to release too much.

A ledger belongs to the data, not to a run: it lies beside them and outlives all runs. What is written in it
is charged, whether or not it was sent afterwards; what would exceed the budget is refused before anything is
written. See `chain` for what its file can show and what it cannot: a run keeps `count` and `head`, and
`check_kept` notices if entries were lost since.

The sum is proved for noise that was fixed beforehand, as a recipe's schedule is. Whoever chooses the noise of
a run after seeing what earlier runs gave leaves that proof; for Renyi accounting there is one that covers it
(Feldman and Zrnic 2021), which is why `Spent.renyi` stands beside epsilon.
"""

import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.config import as_table
from cofactor.errors import BudgetExceeded, CofactorError, ConfigError, LedgerError
from cofactor.privacy.budget import TOLERANCE, Budget
from cofactor.privacy.chain import Chain, Link, canonical
from cofactor.privacy.entries import Entry, Header, Period, read_entry, read_header
from cofactor.privacy.events import Event
from cofactor.privacy.fitting import advice, described, told_apart
from cofactor.privacy.mechanisms import event_from_table

if TYPE_CHECKING:
    from cofactor.privacy.accountant import Spent

Clock = Callable[[], datetime]
EXTRACT = "an extract, for others to see"
"""What an extract says in place of which data it belongs to."""
PLANNED = "a plan, for one who has not told"
"""What stands there where nobody has told what was released, and all that was planned is charged."""


def utc_now() -> datetime:
    """Return the time in UTC, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


class Ledger:
    """What all runs have spent of a budget. Make one with `create`, or read it with `open`."""

    def __init__(self, chain: Chain, clock: Clock) -> None:
        self._chain = chain
        self._clock = clock
        self._where = str(chain.path or "the ledger")
        self._guard = threading.RLock()
        self._reserved: Counter[Event] = Counter()
        self._reserved_in: datetime | None = None
        self._most: float | None = None
        self._header = read_header(chain.links[0], self._where)
        self._entries: list[Entry] = []
        self._take_in()

    @classmethod
    def create(
        cls,
        path: str | Path | None,
        *,
        party: str,
        fingerprint: str,
        budget: Budget,
        per: Period | None = None,
        clock: Clock = utc_now,
    ) -> "Ledger":
        """Begin a ledger; with path None it lives in memory only, for simulations.

        `fingerprint` says which data it belongs to: any text that differs where data differ. With `per` only
        the current calendar month or year (UTC) counts: `entries.RENEWED` says what that means.
        """
        time = clock().astimezone(UTC)
        Header(party=party, fingerprint=fingerprint, budget=budget, per=per, time=time)
        table = as_table(budget)
        facts = {
            "party": party,
            "fingerprint": fingerprint,
            "budget": table,
            "per": per,
            "time": time.isoformat(),
        }
        return cls(Chain.create(None if path is None else Path(path), facts), clock)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        fingerprint: str | None = None,
        recover: bool = False,
        clock: Clock = utc_now,
    ) -> "Ledger":
        """Read a ledger and check all of it; `fingerprint` is that of the data at hand, if there are any.

        An entry that a crash cut off was not released. `recover` drops it, and writes down that it did.
        """
        dropped = Chain.mend(Path(path)) if recover else 0
        ledger = cls(Chain.open(Path(path)), clock)
        if dropped:
            ledger._note(dropped=dropped)
        if fingerprint is not None and fingerprint != ledger.fingerprint:
            raise LedgerError(
                f"{path}: belongs to other data than those at hand: to another file, or the file has "
                "changed. Put the data back as they were, or continue the ledger with the newer data."
            )
        return ledger

    @classmethod
    def from_bytes(cls, content: bytes) -> "Ledger":
        """Read and check a copy of a ledger, from wherever it came; it lives in memory."""
        return cls(Chain.of(content), utc_now)

    @property
    def party(self) -> str:
        """Who holds the data."""
        return self._header.party

    @property
    def budget(self) -> Budget:
        """The most that may be learned."""
        return self._header.budget

    @property
    def per(self) -> Period | None:
        """How often the budget is renewed: never, if None."""
        return self._header.per

    @property
    def fingerprint(self) -> str:
        """Which data the ledger belongs to: the newest, if they were continued."""
        newer = [entry.fingerprint for entry in self._entries if entry.fingerprint is not None]
        return newer[-1] if newer else self._header.fingerprint

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, the oldest first."""
        return tuple(self._entries)

    @property
    def count(self) -> int:
        """How many lines there are, the first one included. Keep it, with `head`, to notice a cut."""
        return len(self._chain.links)

    @property
    def head(self) -> str:
        """The hash of the last line, which depends on all lines before."""
        return self._chain.head

    def content(self) -> bytes:
        """Return the file's bytes, whether or not there is a file: a run keeps a copy."""
        return self._chain.content()

    def extract(self, *runs: str, party: str, budget: Budget) -> bytes:
        """Return a ledger file with what these runs have released, and nothing else of this ledger.

        Others may see it: it tells neither which data it belongs to, nor what other runs cost. `party` is
        the name by which they know who released it; the ledger may have been begun under another.
        """
        own = [entry for entry in self._entries if entry.run in runs and entry.event is not None]
        begun = own[0].time if own else self._clock().astimezone(UTC)
        facts = {
            "party": party,
            "fingerprint": EXTRACT,
            "budget": as_table(budget),
            "per": None,
            "time": begun.isoformat(),
        }
        chain = Chain.create(None, facts)
        for entry in own:
            assert entry.event is not None
            chain.append({"run": entry.run, "event": as_table(entry.event), "time": entry.time.isoformat()})
        return chain.content()

    def check_kept(self, count: int, head: str) -> None:
        """Refuse a ledger that has lost what it held when it had this count and head."""
        if not 1 <= count <= self.count or self._chain.links[count - 1].hash != head:
            raise LedgerError(
                f"{self._where}: has lost entries that a run remembers, up to line {count}. Restore the file "
                "from a backup: without it nobody knows what was released."
            )

    def spend(self, event: Event, *, run: str = "") -> Entry:
        """Charge a release before it is made; BudgetExceeded if it would be too much, and nothing is charged.

        The entry is on disk when this returns. It stays, even if nothing is sent afterwards.
        """
        if not isinstance(event, Event) or not isinstance(run, str) or not run.isprintable():
            raise ConfigError("spend takes an Event, the second thing that release returns; run is a text.")
        _check_readable(event)
        with self._guard:
            with self._chain.locked():
                self._take_in()
                before = self._too_much_after(event)
                if before is None:
                    return self._charge(event, run)
            raise self._refusal([event], before)

    def reserve(self, events: Iterable[Event]) -> None:
        """Make sure that a whole schedule fits; its releases are then spent without asking the accountant.

        What is reserved is in memory only. It counts against other spending until it is spent or given up.
        What another process spends meanwhile comes first, and is noticed before the next release.
        """
        wanted = list(events)
        if not wanted:
            return  # what is reserved already stays subject to what others have spent since
        for event in wanted:
            _check_readable(event)
        with self._guard:
            self._refresh()
            before = [*self._counted(), *self._still_reserved()]
            if not self._within([*before, *wanted]):
                raise self._refusal(wanted, before)
            for event in wanted:
                self._reserved[event.once()] += event.count
            self._reserved_in = self._period_start

    def limit(self, epsilon: float | None) -> None:
        """Let this process spend no more than that in all, though the budget may allow it; None: the budget.

        A limit is not written down. It holds for what is spent by this object, whatever others spend.
        """
        with self._guard:
            self._most = epsilon
            self._reserved_in = None

    def give_up_reserved(self) -> None:
        """Give up what is reserved and not spent."""
        with self._guard:
            self._reserved.clear()

    def fits(self, events: Iterable[Event]) -> bool:
        """Say whether these could be spent as well, on top of all that is spent or reserved."""
        with self._guard:
            self._refresh()
            return self._within([*self._counted(), *self._still_reserved(), *events])

    def spent(self, *, ever: bool = False) -> "Spent":
        """Return what all runs have spent in the current period, or since the ledger was begun."""
        with self._guard:
            self._refresh()
            return self.cost(self._counted(ever=ever))

    @property
    def left(self) -> float:
        """The part of epsilon that is not spent. Releases compose: more of them may fit than it says."""
        return max(self.budget.epsilon - self.spent().epsilon, 0.0)

    def cost(self, events: Iterable[Event]) -> "Spent":
        """Return what events cost by themselves, in the budget's terms."""
        from cofactor.privacy.accountant import spent  # it takes a second to load

        return spent(events, self.budget.delta, unit=self.budget.unit, adjacency=self.budget.adjacency)

    def extended(self, fingerprint: str) -> None:
        """Continue with newer data, such as another month's ratings. What was spent stays spent."""
        if not isinstance(fingerprint, str) or not fingerprint:
            raise ConfigError("fingerprint must be a text, and not empty.")
        if fingerprint != self.fingerprint:
            self._note(fingerprint=fingerprint)

    def _too_much_after(self, event: Event) -> list[Event] | None:
        """Return the events on top of which this one is too much; None if it fits.

        What was reserved needs no new reckoning, unless others have spent or a new period has begun since.
        """
        reserved = self._reserved[event.once()] >= event.count
        if reserved and self._reserved_in == self._period_start:
            return None
        counted = self._counted()
        before = [*counted, *self._still_reserved(without=event)]
        if self._within([*before, event]):
            self._reserved_in = self._period_start
            return None
        if not reserved:
            return before
        # Others have spent what was reserved; this one release may fit all the same.
        return None if self._within([*counted, event]) else counted

    def _refusal(self, events: Sequence[Event], before: list[Event]) -> BudgetExceeded:
        epsilon = self.cost([*before, *events]).epsilon
        would_be, allowed = told_apart(epsilon, self._most_allowed)
        period = f" for this {self.per}" if self.per else ""
        return BudgetExceeded(
            f"{described(events)} would bring epsilon to {would_be}; the budget is {allowed}{period}. "
            f"Nothing was released. {self._remedy(events, before, epsilon)}"
        )

    def _remedy(self, events: Sequence[Event], before: list[Event], epsilon: float) -> str:
        if math.isinf(epsilon):
            return (
                f"No finite epsilon can be proved at delta {self.budget.delta:g}: it takes more noise, "
                "another mechanism, or a budget with a larger delta."
            )
        return advice(events, lambda more: self._could_add(before, more))

    def _could_add(self, before: list[Event], events: Sequence[Event]) -> bool:
        try:
            return self._within([*before, *events])
        except CofactorError:  # advice must not replace the refusal by another one
            return False

    def _within(self, events: list[Event]) -> bool:
        return self.cost(events).epsilon <= self._most_allowed * (1 + TOLERANCE)

    @property
    def _most_allowed(self) -> float:
        return self.budget.epsilon if self._most is None else min(self._most, self.budget.epsilon)

    def _counted(self, *, ever: bool = False) -> list[Event]:
        """Return the releases of the current period, and later ones: a clock set back forgets nothing."""
        start = self._header.time if ever else self._period_start
        return [entry.event for entry in self._entries if entry.event is not None and entry.time >= start]

    def _still_reserved(self, without: Event | None = None) -> list[Event]:
        left = self._reserved.copy()
        if without is not None:
            left[without.once()] -= without.count
        return [event.times(count) for event, count in left.items() if count > 0]

    @property
    def _period_start(self) -> datetime:
        if self.per is None:
            return self._header.time
        now = self._clock().astimezone(UTC)
        return datetime(now.year, now.month if self.per == "month" else 1, 1, tzinfo=UTC)

    def _charge(self, event: Event, run: str) -> Entry:
        entry = self._append(run=str(run), event=as_table(event))
        self._reserved[event.once()] -= min(event.count, self._reserved[event.once()])
        return entry

    def _note(self, **facts: Any) -> None:
        with self._guard, self._chain.locked():
            self._take_in()
            self._append(**facts)

    def _append(self, **facts: Any) -> Entry:
        # A clock that was set back must not move a release into a period that no longer counts.
        time = max(self._clock().astimezone(UTC), self._last_time)
        return self._read(self._chain.append({**facts, "time": time.isoformat()}))

    def _refresh(self) -> None:
        self._chain.refresh()
        self._take_in()

    def _take_in(self) -> None:
        """Read the lines that others have written. One that cannot be read stops every later call, too."""
        for link in self._chain.links[1 + len(self._entries) :]:
            self._read(link)
            self._reserved_in = None

    def _read(self, link: Link) -> Entry:
        entry = read_entry(link, self._where, not_before=self._last_time)
        self._entries.append(entry)
        return entry

    @property
    def _last_time(self) -> datetime:
        return self._entries[-1].time if self._entries else self._header.time


def _check_readable(event: Event) -> None:
    """Refuse an event that could be written but not be read again: it would spoil the whole ledger."""
    if event_from_table(json.loads(canonical(as_table(event))), "event") != event:
        raise ConfigError(
            f"{event.what} by {event.by}: its record cannot be read again, so it is not written."
        )
