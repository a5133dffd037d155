"""Ctrl-C while training: it takes effect when a step is finished, never inside a kernel."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from cofactor.cli.text import print_line
from cofactor.progress import Listener, Progress


@contextmanager
def interrupted_between_steps(listener: Listener) -> Iterator[Listener]:
    """Yield a listener that raises KeyboardInterrupt after the step during which Ctrl-C was pressed.

    A second Ctrl-C acts at once.
    """
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, before)

    def listen(event: Progress) -> None:
        listener(event)
        if asked:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield listen
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def held_back(told: str) -> Iterator[None]:
    """Let what was begun be finished; if Ctrl-C was pressed meanwhile, tell what was done, and stop then."""
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        if not asked:
            print("Finishing what may be charged already; nothing is lost.", file=sys.stderr, flush=True)
        asked = True

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        print_line(told)
        raise KeyboardInterrupt
