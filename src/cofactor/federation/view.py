"""`View`: all that somebody saw of a training, messages included. Attacks see this, and nothing else.

Messages are kept only where a training was asked to capture them, which is for simulations: `Capture` takes
them down as they pass. What is needed to score guesses, the ratings themselves, is a `Truth`, apart from it.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.data.scale import Scale
from cofactor.errors import ConfigError, RunError
from cofactor.factors.model import Factors
from cofactor.federation.door import COORDINATOR
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split

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

    ratings: Mapping[str, Ratings] = field(default_factory=dict)
    attributes: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """The users' attributes, coded, a row for each user; where a party has any."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Captured:
    """All messages that some roles saw, and what was true."""

    whole: View
    """With the messages of all roles; what one of them saw is a `view`."""
    truth: Truth

    def view(self, *roles: str) -> View:
        """Return what one role saw, or several that collude."""
        for role in roles:
            if role != PUBLIC and role not in self.whole.roles:
                raise RunError(
                    f"what {role} saw was not captured, only what {', '.join(self.whole.roles)} did. Train "
                    f'again with capture="{role}" (--capture {role}).'
                )
        seen = [each for each in self.whole.seen if any(is_seen(role, each) for role in roles)]
        keys = {name: key for name, key in self.whole.keys.items() if PARTY + name in roles}
        return replace(self.whole, roles=roles, seen=tuple(seen), keys=keys)


class Capture:
    """Takes down what some roles see of one training, while it goes on."""

    def __init__(self, roles: str | Sequence[str], *, rounds: Sequence[int] | None = None) -> None:
        """Take down what a role sees, or several, in all rounds or in some."""
        self.roles = (roles,) if isinstance(roles, str) else tuple(roles)
        if not self.roles:
            raise ConfigError('say whose messages are captured: Capture("coordinator").')
        for role in self.roles:
            if role not in (COORDINATOR, PUBLIC) and not (isinstance(role, str) and role.startswith(PARTY)):
                raise ConfigError(f'{role!r} is no role. Use "coordinator", "party:NAME" or "public".')
        self._rounds = None if rounds is None else frozenset(rounds)
        self._seen: list[Seen] = []
        self._guard = threading.Lock()
        self._captured: Captured | None = None

    def check_roles(self, parties: Iterable[str]) -> None:
        """Refuse a party that does not take part, and a second training."""
        if self._captured is not None:
            raise ConfigError("this Capture holds another training already. Make a new one.")
        names = list(parties)
        for role in self.roles:
            if role.startswith(PARTY) and role.removeprefix(PARTY) not in names:
                told = ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
                raise ConfigError(f"there is no {role} to capture. The parties are {told}.")

    def take(
        self, body: Message, *, round: int, sender: str, receivers: Iterable[str], protection: str
    ) -> None:
        """Take a message down, if one of the roles sees it; whatever happens to its arrays later."""
        if self._rounds is not None and round not in self._rounds:
            return
        plain, arrays = body.plain, body.arrays
        found = [
            Seen(
                round=round,
                sender=sender,
                receiver=receiver,
                kind=type(body).__name__,
                protection=protection,
                arrays=arrays,
                plain=plain,
            )
            for receiver in receivers
        ]
        found = [each for each in found if any(is_seen(role, each) for role in self.roles)]
        if found:
            own = {name: array.copy() for name, array in arrays.items()}
            with self._guard:
                self._seen += [replace(each, arrays=own) for each in found]

    def end(self, frame: View, truth: Truth) -> Captured:
        """Put what was taken down into a view that says all the rest."""
        self._captured = Captured(whole=replace(frame, roles=self.roles, seen=tuple(self._seen)), truth=truth)
        return self._captured

    @property
    def captured(self) -> Captured:
        """All of it, when the training is over."""
        if self._captured is None:
            raise RunError("nothing was captured yet: the training has not ended.")
        return self._captured

    def view(self, *roles: str) -> View:
        """Return what one role saw, or several that collude, when the training is over."""
        return self.captured.view(*roles)


def is_seen(role: str, message: Seen) -> bool:
    """Say whether a role sees a message: as sender or as receiver."""
    name = role.removeprefix(PARTY) if role.startswith(PARTY) else role
    return role != PUBLIC and name in (message.sender, message.receiver)
