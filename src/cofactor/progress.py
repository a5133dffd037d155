"""Progress is a callback of frozen events; who listens decides how it looks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Progress:
    """One step of something long was finished."""

    stage: str
    """What is going on, as the user would say it: "sgd", "download"."""
    step: int
    steps: int
    note: str = ""
    """A few words about this step, such as a loss."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """The same in numbers, by name, for programs: "epsilon", "bytes"."""


Listener = Callable[[Progress], None]


def nobody(_: Progress) -> None:
    """Listen to nothing: the default."""
