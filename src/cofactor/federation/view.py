"""`View`: all that somebody saw of a training, messages included. Attacks see this, and nothing else.

Messages are kept only where a training was asked to capture them, which is for simulations: `Capture` takes
them down as they pass. What is needed to score guesses, the ratings themselves, is a `Truth`, apart from it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from cofactor.config import plain_numbers
from cofactor.data.ratings import Ratings
from cofactor.data.scale import Scale
from cofactor.errors import ConfigError, RunError
from cofactor.factors.model import Factors
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.halves import Split
from cofactor.federation.messages import Message

PUBLIC = "public"
"""Who sees what is published, and no message."""
PARTY = "party:"
"""What the name of a party is preceded by, where it is a role."""
OPENED = "opened"
"""What the view says of a sum that the coordinator could open."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """One message, with its content."""

    round: int
    sender: str
    """`SUM` if it is a sum of all parties' answers, as it was opened."""
    receiver: str
    """`SUM` if it is a party's own answer before it was hidden in a sum: only the party has seen it."""
    kind: str
    """The name of the message's class."""
    protection: str
    arrays: Mapping[str, NDArray[Any]]
    plain: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """All that one role, or several that collude, saw of a training."""

    roles: tuple[str, ...]
    """"coordinator", "party:NAME" or "public"; several if they collude."""
    recipe: Mapping[str, Any]
    """The recipe's settings as a table, all choices made: `kind` is its name."""
    split: Split
    parties: tuple[str, ...]
    users: tuple[int, ...]
    """Users at each party."""
    items: int
    """Items in all."""
    scale: Scale | None
    """Between which numbers ratings lie; None if they only tell that something happened."""
    seen: tuple[Seen, ...] = ()
    """The messages, the oldest first."""
    model: Factors | None = None
    """What was published in the end."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """By colluding party, what it opens sums with, if it is a decrypter. Never written down."""

    def messages(
        self, kind: str, *, round: int | None = None, sender: str | None = None, receiver: str | None = None
    ) -> Iterator[Seen]:
        """Yield the messages of a kind, of one round, sender or receiver if that is said."""
        for each in self.seen:
            if each.kind != kind or round not in (None, each.round):
                continue
            if sender in (None, each.sender) and receiver in (None, each.receiver):
                yield each


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """What a simulation knows, by party: guesses are scored with it. No attack gets it."""

    ratings: Mapping[str, Ratings]
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """The users' attributes, coded, a row for each user; where a party has any."""
