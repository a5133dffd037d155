"""How the command line speaks: tables and red words for people, one JSON object for programs."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cofactor.progress import Progress

if TYPE_CHECKING:
    pass

RED = "bold red"
YELLOW = "yellow"
GREEN = "green"


def console() -> Console:
    """Write to standard output; wide enough when it is a file, so that tables are not squeezed."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def print_json(value: Any) -> None:
    """Print one JSON object, the only thing on standard output."""
    print(json.dumps(value, indent=2, allow_nan=False, default=str))


def print_line(text: str, style: str = "") -> None:
    """Print a text as it is: brackets in a user's data are no markup, and no terminal obeys it."""
    console().print(Text(_harmless(text, lines=True), style=style), soft_wrap=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str = "") -> None:
    """Print a table; numbers to the right, words to the left."""
    head = Text(_harmless(title), "bold") if title else None
    table = Table(box=SIMPLE_HEAD, title=head, title_justify="left")
    for position, name in enumerate(columns):
        numeric = all(isinstance(row[position], int | float) for row in rows)
        table.add_column(Text(_harmless(name)), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*map(_cell, row))
    console().print(table)


def print_scores(scores: Mapping[str, Mapping[str, Any]], title: str = "") -> None:
    """Print errors, or the quality of rankings, by name; nothing when none were measured."""
    if not scores:
        return
    errors = "rmse" in next(iter(scores.values()))
    main, *others = ("rmse", "mse", "mae") if errors else ("ndcg_over_unseen", "precision", "recall", "map")
    rows = [
        (name, score[main], "{:.4f} to {:.4f}".format(*score["intervals"][main]), *(score[m] for m in others))
        for name, score in scores.items()
    ]
    print_table(("", main, "95% interval", *others), rows, title=title)


def print_facts(facts: Mapping[str, object]) -> None:
    """Print names and values in two columns; what is not known is left out."""
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        if value is not None:
            table.add_row(Text(_harmless(name.replace("_", " "))), _cell(value))
    console().print(table)


def _cell(value: object) -> Text:
    if isinstance(value, float):
        return Text(f"{value:.4f}")
    return Text(f"{value:,}" if isinstance(value, int) else _harmless(str(value)))


def _harmless(text: str, *, lines: bool = False) -> str:
    """Return a text without anything that a terminal would obey: a name could erase what stands above it."""
    return "".join(
        each if each.isprintable() or (lines and each == "\n") else " " if each.isspace() else "?"
        for each in text
    )


def print_error(kind: str, message: str, *, as_json: bool) -> None:
    """Print what went wrong on standard error; programs get JSON as well."""
    print(_harmless(f"{kind}: {message}", lines=True), file=sys.stderr)
    if as_json:
        print_json_error(kind, message)


def print_json_error(kind: str, message: str) -> None:
    """Print an error as the one JSON object on standard output."""
    print_json({"error": {"kind": kind, "message": message}})


class ProgressLine:
    """Draws progress on standard error: one rewritten line in a terminal, a line a second elsewhere."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self.live = sys.stderr.isatty()
        self.start = self.last = time.monotonic()
        self.stage, self.first = "", 1

    def __call__(self, event: Progress) -> None:
        """Show one event."""
        now = time.monotonic()
        if event.stage != self.stage:
            self.stage, self.start, self.last, self.first = event.stage, now, 0.0, event.step
        finished = event.step == event.steps
        if self.quiet or (not finished and now - self.last < (0.1 if self.live else 1.0)):
            return
        self.last = now
        print(
            self._line(event, now),
            end="\n" if finished or not self.live else "\r",
            file=sys.stderr,
            flush=True,
        )

    def _line(self, event: Progress, now: float) -> str:
        # What was resumed begins in the middle; its first step is the clock's beginning.
        done = event.step - self.first
        left = (now - self.start) / max(done, 1) * (event.steps - event.step)
        parts = [f"{event.stage} {event.step:,}/{event.steps:,}", event.note]
        if done > 0 and event.step < event.steps:
            parts.append(f"~{left:.0f} s left")
        clear = "\x1b[K" if self.live else ""
        return _harmless("  ".join(part for part in parts if part)) + clear
