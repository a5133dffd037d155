"""Progress is a callback of frozen events; who listens decides how it looks."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """One step of something long was finished."""

    stage: str
    """What is going on, as the user would say it: "sgd", "download"."""
    step: int
    steps: int
    note: str = ""
    """A few words about this step, such as a loss."""


Listener = Callable[[Progress], None]


def nobody(_: Progress) -> None:
    """Listen to nothing: the default."""
