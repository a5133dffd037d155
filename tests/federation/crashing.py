"""What is left of a training after a crash."""

from pathlib import Path

from cofactor.federation.books import released
from cofactor.federation.labels import round_of
from cofactor.privacy.ledger import Ledger

Which = tuple[str, int, str, str]
"""An answer: its party, its round, its kind and its protection, by which the steps of a sum differ."""
Left = dict[Which, set[bytes]]


class Killed(BaseException):
    """The process is gone; nothing catches it."""


def charged(folder: Path, party: str) -> list[int | None]:
    ledger = Ledger.open(folder / f"{party}.ledger")
    (run,) = {entry.run for entry in ledger.entries if entry.event is not None}
    return [round_of(event) for event in released(ledger, run)]
