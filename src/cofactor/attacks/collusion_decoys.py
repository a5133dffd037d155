"""Rated items among decoys, over several rounds: what is there in every round was rated.

Users of `MultiViewMF` may send gradients of items that they have not rated, too. Decoys that are drawn afresh
in every round, as published (Mai and Pang, equation 36), hide nothing for long: `FreshDecoys` shows it.
Ours are drawn once, and stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import ConfigError
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.halves import Home
from cofactor.federation.messages import Message
from cofactor.federation.view import Truth, View
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_halves import ViewsParticipant

Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class FreshDecoys(MultiViewMF):
    """`MultiViewMF` with other decoys in every round, as published: which items were rated shows soon."""

    def participant(self, home: Home) -> "FreshDecoysParticipant":
        """Return a party's half."""
        return FreshDecoysParticipant(self, home)


class FreshDecoysParticipant(ViewsParticipant):
    """The same half, which draws decoys anew before every answer."""

    def handle(self, round: int, message: Message) -> Message:
        """Draw decoys, and answer."""
        self.restore({**self.state(), "decoys": self._home.door.random.new_key()})
        return super().handle(round, message)


@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """Which items one user showed, round by round."""

    sender: str
    rounds: tuple[int, ...]
    items: Flags
    """A row for each round; true for the items of which it sent anything."""

    def always(self, rounds: int) -> Flags:
        """Return the items that were there in each of the first rounds: the guess of what was rated."""
        return np.asarray(self.items[:rounds].all(axis=0))


@dataclass(frozen=True, kw_only=True)
class RatedSets:
    """How well rated items were told from decoys, by how many rounds were seen."""

    rounds: int
    users: int
    precision: float
    """The part of items taken for rated that were."""
    recall: float
    """The part of rated items that were taken for rated."""

    def __str__(self) -> str:
        """Say it in a sentence."""
        return (
            f"After {self.rounds} rounds {self.precision:.1%} of the items that {self.users:,} users showed "
            f"in all of them were rated, and {self.recall:.1%} of what they had rated was among these."
        )


def shown_items(view: View) -> tuple[Shown, ...]:
    """Return which items each user showed by single uploads; `with_opened` adds those that keys open."""
    found: dict[str, list[tuple[int, Flags]]] = {}
    for each in view.messages("ViewGradients", receiver=COORDINATOR):
        if each.sender != SUM:
            shown = np.asarray(each.arrays["gradients"][: view.items] != 0)
            found.setdefault(each.sender, []).append((each.round, np.asarray(shown.any(axis=1))))
    if not found:
        raise ConfigError(
            f"{' and '.join(view.roles)} saw no single uploads of MultiViewMF, only sums: which items a user "
            "sent anything for does not show."
        )
    return tuple(
        Shown(
            sender=sender,
            rounds=tuple(round for round, _ in rows),
            items=np.stack([shown for _, shown in rows]),
        )
        for sender, rows in found.items()
    )


def rated_sets(shown: Sequence[Shown], truth: Truth) -> tuple[RatedSets, ...]:
    """Score the guess that what stays was rated, after one round, two, and so on."""
    most = min(len(each.rounds) for each in shown)
    return tuple(_scored(shown, truth, rounds) for rounds in range(1, most + 1))


def _scored(shown: Sequence[Shown], truth: Truth, rounds: int) -> RatedSets:
    hits = guessed = rated = 0
    for each in shown:
        guess, own = each.always(rounds), np.zeros(each.items.shape[1], np.bool_)
        own[truth.ratings[each.sender].items] = True
        hits, guessed, rated = hits + (guess & own).sum(), guessed + guess.sum(), rated + own.sum()
    return RatedSets(
        rounds=rounds,
        users=len(shown),
        precision=float(hits / max(guessed, 1)),
        recall=float(hits / max(rated, 1)),
    )
