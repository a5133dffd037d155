"""What an audit found, for people: a verdict in colour, a sentence, figures, and what they do not say."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.cli.text import GREEN, RED, YELLOW, print_line, print_table

if TYPE_CHECKING:
    from cofactor.attacks.result import Audit

COLOURS = {"alarm": RED, "succeeded": YELLOW, "resisted": GREEN, "consistent": GREEN}
"""Red only where a promise was not kept: an attack may succeed where nothing was promised."""

GUESSES = ("trivial guess", "random guess")
"""What needs no attack."""
_SURER = "To be surer: --repeats 5 --confidence 0.9999"


def print_audit(found: "Audit") -> None:
    """Print all of it."""
    from cofactor.attacks.result import told

    who = " and ".join(found.seen_by.split("+"))
    sure = "" if found.confidence is None else f", confidence {found.confidence}"
    print_line(
        f"{shown_verdict(found.verdict)}: {found.attack}, as seen by {who}{sure}", COLOURS[found.verdict]
    )
    print_line(found.headline)
    columns, rows = beside_guesses(
        {name: told(value) for name, value in found.figures.items() if isinstance(value, int | float)}
    )
    if rows:
        print_table(columns, rows)
    for name, value in found.figures.items():
        if isinstance(value, str):
            print_line(f"{name}: {value}")
    for note in found.notes:
        print_line(note)
    if found.alarm and found.confidence is not None:
        wrong = f"{1 - found.confidence:.2g}"
        print_line(f"Where a promise is kept, an alarm has probability {wrong} at most. {_SURER}", RED)


def beside_guesses(figures: Mapping[str, str]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return a table of figures, with what was right by guessing alone beside what an attack got right.

    Such a figure is called as the attack's own, with the kind of guess behind a comma.
    """
    kinds = [kind for kind in GUESSES if any(name.endswith(f", {kind}") for name in figures)]
    own = [name for name in figures if not any(name.endswith(f", {kind}") for kind in kinds)]
    rows = [(name, figures[name], *(figures.get(f"{name}, {kind}", "") for kind in kinds)) for name in own]
    return ("", "found", *kinds), rows


def shown_verdict(verdict: str) -> str:
    """Write an alarm so that nobody overlooks it, with or without colours."""
    return verdict.upper() if verdict == "alarm" else verdict


def print_audits(folder: Path) -> None:
    """Print a line for each audit that a folder keeps."""
    from cofactor.federation.folder import AUDITS, read_audits

    for name, facts in read_audits(folder).items():
        _print_kept(f"{AUDITS}/{name}", facts)


def _print_kept(name: str, facts: Mapping[str, Any]) -> None:
    verdict = facts["verdict"]
    print_line(f"{name}: {shown_verdict(verdict)}. {facts['headline']}", COLOURS.get(verdict, RED))
