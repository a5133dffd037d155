"""`Event`: a frozen record of one noisy release. What is not recorded was not released."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self, runtime_checkable

from cofactor.config import fraction, one_of, plain_numbers, positive, whole
from cofactor.errors import ConfigError
from cofactor.privacy.budget import ADJACENCIES, UNITS, Adjacency, Unit

Norm = Literal["l1", "l2", "max", "choice", "member"]
NORMS: tuple[Norm, ...] = ("l1", "l2", "max", "choice", "member")


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The most by which the noise-free value changes between neighbours."""

    size: float
    """The largest change, in `norm`; for "max", the largest absolute coordinate of one contribution."""
    norm: Norm
    """"l2", the root of the sum of squares; "l1", the sum of absolute values; "max", every coordinate;
    "choice", one number of a list for each unit; "member", how many of several sets a unit is in."""
    unit: Unit
    """Whose contribution is bounded."""
    adjacency: Adjacency = "empty"
    """Which neighbours: as in `Budget`."""
    weighed: bool = False
    """Whether a unit's own weight multiplies it: a unit of weight w then changes at most w times as much."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        positive(size=self.size)
        one_of(NORMS, norm=self.norm)
        one_of(UNITS, unit=self.unit)
        one_of(ADJACENCIES, adjacency=self.adjacency)
        if self.norm in ("max", "choice") and self.adjacency != "replace":
            raise ConfigError(
                f'a bound in norm "{self.norm}" says what a contribution can be replaced with: its adjacency '
                f'is "replace", got "{self.adjacency}".'
            )
        if self.norm == "member" and (self.size != 1 or self.adjacency != "empty"):
            raise ConfigError(
                'a bound in norm "member" is 1, for adjacency "empty": a unit is in one set, or none.'
            )


@runtime_checkable
class Mechanism(Protocol):
    """How noise is added: a frozen dataclass whose fields, with the bound, are all that noise depends on."""

    @property
    def norm(self) -> Norm:
        """The norm in which values must be bounded."""

    @property
    def exact(self) -> bool:
        """True for whole numbers and choices; False where real numbers are rounded to a grid."""

    def scaled(self, factor: float) -> Self:
        """Return the same mechanism with `factor` times the noise."""

    def check(self, bound: Bound) -> None:
        """Refuse a bound that this noise is not made for."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something left a party, bounded and noisy."""

    what: str
    """What was released, in the words of its recipe: "item gradients, round 3"."""
    by: str
    """The party that released it."""
    to: str
    """Who gets to see it: "coordinator", "everyone"."""
    mechanism: Mechanism
    """The noise, relative to the bound."""
    bound: Bound
    """The most that one unit can change."""
    dimension: int = 1
    """How many numbers are released at once."""
    count: int = 1
    """How many times."""
    slack: float | None = None
    """Probability, each time, that chance which does not depend on the data gives everything away: paid in
    delta. For noise that is only close to its law: (1 + e^epsilon) times the total variation distance."""
    secure: bool = True
    """Whether the noise came from SecureRandom."""
    joint: bool = False
    """Whether it is one release of several parties together. Each of them charges all of it; where their
    releases are added up, it counts once: `counted_once`."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        for name in ("what", "by", "to"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).isprintable():
                raise ConfigError(f"{name} must be a text on one line.")
        if not isinstance(self.bound, Bound) or not isinstance(self.mechanism, Mechanism):
            raise ConfigError("an event needs a Bound, and a mechanism of cofactor.privacy.mechanisms.")
        for name in ("secure", "joint"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name} must be true or false.")
        self.mechanism.check(self.bound)
        whole(dimension=self.dimension, count=self.count)
        if self.slack is not None:
            fraction(slack=self.slack)

    def times(self, count: int) -> "Event":
        """Return the same release, made so many times as often."""
        return replace(self, count=self.count * int(count))

    def once(self) -> "Event":
        """Return one such release without its story: events that cost the same are equal."""
        return replace(self, what="", by="", to="", count=1, secure=True)


def counted_once(events: Iterable[Event]) -> list[Event]:
    """Return what parties have released, with releases that are joint counted once, not once for each party.

    All parties of a session charge the same joint releases; if some have charged more, theirs count.
    """
    own: list[Event] = []
    joint: dict[str, Counter[Event]] = defaultdict(Counter)
    for event in events:
        if event.joint:
            joint[event.by][event.once()] += event.count
        else:
            own.append(event)
    most: Counter[Event] = Counter()
    for charged in joint.values():
        most |= charged
    return [*own, *(event.times(count) for event, count in most.items())]
