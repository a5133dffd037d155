"""The lines of a ledger: what they say, and their reading, which believes nothing."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from cofactor.config import from_table, one_of
from cofactor.errors import ConfigError, LedgerError, PrivacyWarning
from cofactor.privacy.budget import Budget
from cofactor.privacy.chain import Link
from cofactor.privacy.events import Event
from cofactor.privacy.mechanisms import event_from_table

Period = Literal["month", "year"]
RENEWED: dict[Period, str] = {
    "month": "renewed every month: over a year twelve times as much may be learned",
    "year": "renewed every year: over ten years ten times as much may be learned",
}
"""What it means that only the releases of the current calendar month or year (UTC) count."""

_NONSENSE = (ConfigError, ValueError, TypeError, ArithmeticError)
"""What reading a line can raise that was sealed as it should be, but not by this program."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """The first line: whose data, and how much may be learned about them."""

    party: str
    """Who holds the data."""
    fingerprint: str
    """Which data."""
    budget: Budget
    per: Period | None = None
    """How often the budget is renewed: never, if None."""
    time: datetime
    """When the ledger was begun, in UTC."""

    def __post_init__(self) -> None:
        for name, text in (("party", self.party), ("fingerprint", self.fingerprint)):
            if not isinstance(text, str) or not text:
                raise ConfigError(f"{name} must be a text, and not empty, got {text!r}.")
        if self.per is not None:
            one_of(tuple(RENEWED), per=self.per)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A later line: a release, or newer data, or that a line cut off by a crash was dropped."""

    number: int
    """Its line in the file."""
    time: datetime
    """When it was written, in UTC; never before the entry before it."""
    run: str = ""
    """The run that made the release."""
    event: Event | None = None
    """What was released."""
    fingerprint: str | None = None
    """Which data from here on."""
    dropped: int | None = None
    """How many bytes of a line that was not completely written were dropped."""


def read_header(link: Link, where: str) -> Header:
    """Read the first line."""
    facts = link.facts
    try:
        with warnings.catch_warnings():
            # Whoever opened the ledger was warned then; the command line says it again in its own way.
            warnings.simplefilter("ignore", PrivacyWarning)
            budget: Budget = from_table(Budget, facts.get("budget", {}), "budget")
        return Header(
            party=_text(facts, "party"),
            fingerprint=_text(facts, "fingerprint"),
            budget=budget,
            per=facts.get("per"),
            time=_time(facts),
        )
    except _NONSENSE as error:
        raise LedgerError(f"{where}, line 1: {error}") from None


def read_entry(link: Link, where: str, *, not_before: datetime) -> Entry:
    """Read a later line."""
    facts = link.facts
    try:
        time = _time(facts)
        if time < not_before:
            raise ValueError("is dated before the line above it.")
        return Entry(number=link.number, time=time, **_content(facts))
    except _NONSENSE as error:
        raise LedgerError(f"{where}, line {link.number}: {error}") from None


def _content(facts: Mapping[str, Any]) -> dict[str, Any]:
    names = set(facts) - {"time"}
    if names == {"run", "event"} and isinstance(facts["event"], Mapping):
        return {"run": _text(facts, "run"), "event": event_from_table(facts["event"], "event")}
    if names == {"fingerprint"}:
        return {"fingerprint": _text(facts, "fingerprint")}
    if names == {"dropped"} and isinstance(facts["dropped"], int):
        return {"dropped": facts["dropped"]}
    raise ValueError("is no entry that this cofactor knows. Upgrade cofactor, or restore the file.")


def _text(facts: Mapping[str, Any], name: str) -> str:
    value = facts.get(name)
    if not isinstance(value, str):
        raise ValueError(f"has no {name}.")
    return value


def _time(facts: Mapping[str, Any]) -> datetime:
    time = datetime.fromisoformat(_text(facts, "time"))
    if time.utcoffset() != timedelta(0):
        raise ValueError("has a time that is not in UTC.")
    return time
