"""The two halves of every recipe. They know no transport: messages come in, messages go out.

The participant lives with a party's data. The coordinator sees replies only; parties that did not answer are
simply missing. Both can say what they must remember to go on after a restart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from cofactor.data.coding import Coding
from cofactor.data.ids import Ids
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Scale
from cofactor.errors import RunError
from cofactor.factors.model import Factors
from cofactor.federation.door import Door
from cofactor.federation.messages import Message
from cofactor.federation.party import Party
from cofactor.federation.splits import Split
from cofactor.federation.weights import PublicWeights
from cofactor.privacy.assumptions import Assumption
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.schedule import Schedule

_HUGE = 1e15
State = Mapping[str, NDArray[Any]]
"""Arrays by name: what a half must remember. Numbers are arrays of no dimension."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Facts:
    """What everybody knows: the parties agreed on it before the first message."""

    split: Split
    parties: tuple[str, ...]
    users: tuple[int, ...]
    """Users at each party; in a vertical federation all have the same."""
    items: tuple[int, ...]
    """Items at each party; in a horizontal federation all have the same."""
    ratings: tuple[int, ...]
    """Ratings at each party: sizes of steps follow from them, so they are public."""
    scale: Scale
    """The lowest and the highest rating that there can be."""
    shared_ids: Ids
    """The ids that all parties share: items if horizontal, users if vertical."""
    catalogue: Ids
    """The ids of all items: party by party if vertical."""
    features: int = 0
    """Public numbers about each item."""
    public_items: PublicItems | None = None
    """What was declared to be public about the items, if anything was."""
    attributes: Coding | None = None
    """How the users' attributes became numbers, if parties have any; the attributes stay private."""
    weights: PublicWeights | None = None
    """What is public of weights, if users or items have any."""

    implicit: bool = False
    """Whether ratings only tell that something happened."""
    searched: bool = False
    """Whether users are those whom all parties have: everyone rated something at every party, and how many
    ratings theirs are need not be told."""

    @property
    def user_count(self) -> int:
        """Users in all."""
        return self.users[0] if self.split == "vertical" else sum(self.users)

    @property
    def item_count(self) -> int:
        """Items in all."""
        return sum(self.items) if self.split == "vertical" else self.items[0]

    @property
    def rating_count(self) -> int:
        """Ratings in all."""
        return sum(self.ratings)

    @property
    def cohort(self) -> bool:
        """Whether one participant plays all devices of a simulation."""
        return self.split == "on-device" and len(self.parties) == 1 and self.user_count > 1

    @property
    def summed(self) -> int:
        """How many parties, or devices of a cohort, a sum is made of."""
        return self.user_count if self.cohort else len(self.parties)

    def items_of(self, party: str) -> slice:
        """Return where a party's items stand in the catalogue."""
        if self.split != "vertical":
            return slice(0, len(self.catalogue))
        start = sum(self.items[: self.place(party)])
        return slice(start, start + self.items[self.place(party)])

    def place(self, party: str) -> int:
        """Return a party's place among the parties."""
        return self.parties.index(party)


@dataclass(frozen=True, kw_only=True, eq=False)
class Home:
    """All that a participant has: its party, the door, and what is public."""

    party: Party
    facts: Facts
    schedule: Schedule | None
    """Its releases, with their noise; None if there is no budget."""
    door: Door
    seed: int
    dropout: float = 0.0
    """Part of a cohort's devices, by chance, that drop out of each round of a simulation."""


class Participant(Protocol):
    """The half that lives with a party's data."""

    def handle(self, round: int, message: Message) -> Message:
        """Answer the coordinator. All arrays of the answer went through the door."""

    def finish(self, message: Message) -> Factors:
        """Return the party's own model, which never leaves it."""

    def state(self) -> State:
        """Return what it must remember to go on after this round."""

    def restore(self, state: State) -> None:
        """Go on from there."""


class Coordinator(Protocol):
    """The half that nobody trusts: it adds things up.

    A training can be ended early, after any round: `last` and `published` must then make do with what there
    is. A half that needs one more round for that says so by `ends_after(round)`, which returns the last one.
    """

    @property
    def rounds(self) -> int:
        """How many rounds of questions are planned."""

    def ask(self, round: int) -> Message:
        """Return the question of a round, the same for all parties; rounds count from 1."""

    def sums(self, round: int) -> bool:
        """Say whether only the sum of the answers is wanted in this round: a single reply then tells it."""

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Take in the answers of a round; whoever is missing did not answer."""

    def last(self) -> Message:
        """Return the message with which every party finishes at home."""

    def published(self) -> Factors | None:
        """Return the model that everyone may see, if there is one."""

    def state(self) -> State:
        """Return what it must remember to go on after this round."""

    def restore(self, state: State) -> None:
        """Go on from there."""


class Role(Protocol):
    """The half of somebody who takes part and holds no ratings. Its answers go through a door of its own."""

    def handle(self, round: int, message: Message) -> Message:
        """Answer the coordinator."""

    def state(self) -> State:
        """Return what it must remember to go on after this round."""

    def restore(self, state: State) -> None:
        """Go on from there."""


class AsksRoles(Coordinator, Protocol):
    """A coordinator that also asks those who hold no ratings, in every round, before the parties."""

    @property
    def roles(self) -> tuple[str, ...]:
        """Whom it asks."""

    def ask_role(self, role: str, round: int) -> Message:
        """Return the question for one of them."""

    def take_role(self, role: str, round: int, message: Message) -> None:
        """Take in its answer; whoever did not answer is not taken in."""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a recipe's guarantee says besides its numbers."""

    against: tuple[str, ...]
    covers: tuple[str, ...] = ()
    does_not_cover: tuple[str, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    warnings: tuple[str, ...] = ()
    why_not: tuple[str, ...] = ()
    """Why it does not hold, if it does not, whatever the numbers say."""
    shared: Mapping[str, float] = field(default_factory=dict)
    """By release, the part of the noise, as a variance, that a party adds itself: all that protects it if
    all others collude. All of it where nothing is said."""


class Recipe(Protocol):
    """A frozen dataclass that says how parties train together.

    A recipe that takes no budget, because what it claims cannot be proved, has a text `not_private` besides:
    the guarantee then gives that reason. One that wants sums says in `aggregate` how they are made. One that
    serves several kinds of federations names all of them in `splits`; one that can use ratings without values
    says so in `takes_implicit`; one that weighs names in `takes_weights` the units that can have weights. One
    that needs somebody who holds no ratings, such as a server with features of items, names them by
    `roles(facts)` and makes their halves by `role(name, facts, door, seed)`; its coordinator's half is an
    `AsksRoles`.
    """

    split: ClassVar[Split]
    """The kind of federation that it is for; the usual one, if it serves several."""
    units: ClassVar[tuple[Unit, ...]]
    """The units that it can protect; the first is the usual one."""
    messages: ClassVar[tuple[type[Message], ...]]
    """The kinds of messages that its halves exchange."""

    def settled(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe with all choices made, from public numbers only; refuse what cannot be had."""

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:
        """Return everything that a party will release, with noise still to be scaled. Only when settled."""

    def participant(self, home: Home) -> Participant:
        """Return the party's half. Only when settled."""

    def coordinator(self, facts: Facts, seed: int) -> Coordinator:
        """Return the coordinator's half. Only when settled."""

    def promise(self, facts: Facts, budget: Budget) -> Promise:
        """Return what the guarantee says besides its numbers."""


def splits_of(recipe: Any) -> tuple[Split, ...]:
    """Return the kinds of federations that a recipe serves, the usual one first."""
    found: tuple[Split, ...] = getattr(recipe, "splits", (recipe.split,))
    return found


def weighted_mean(
    replies: Mapping[str, NDArray[np.float32]], weights: Mapping[str, float]
) -> NDArray[np.float32]:
    """Average what the parties that answered have sent; there must be some."""
    if not replies:
        raise RunError("nobody answered, so there is no mean.")
    total = sum(weights[party] for party in replies)
    mean = sum(np.float64(weights[party] / total) * values for party, values in replies.items())
    return np.asarray(mean, np.float32)


def array_of(message: Message, name: str, shape: Sequence[int], sender: str) -> NDArray[Any]:
    """Return an array of a message from outside, or refuse one that does not fit or is not finite.

    Numbers so large that arithmetic on them could fail at some parties, and not at others, count as such:
    where it fails would tell what they hold.
    """
    found = message.arrays.get(name)
    # As real numbers: the least whole number of 64 bits is its own absolute value, and looks small.
    if found is None or found.shape != tuple(shape) or not (np.abs(found.astype(np.float64)) < _HUGE).all():
        raise RunError(f"{sender} sent {name} that are missing, not finite or not of shape {tuple(shape)}.")
    return found
