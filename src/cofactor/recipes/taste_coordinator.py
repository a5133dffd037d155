"""The half of `VerticalTaste` that nobody trusts: it sees what was released, and adds it up."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import RunError
from cofactor.factors.model import Factors
from cofactor.federation.door import SUM
from cofactor.federation.halves import Facts, State, array_of
from cofactor.federation.messages import Message
from cofactor.recipes.taste_items import KnownItems
from cofactor.recipes.taste_letters import TasteBegin, TasteDirections, TasteTotal
from cofactor.recipes.taste_message import Directions
from cofactor.recipes.taste_public import public_model
from cofactor.recipes.taste_shares import Shares

Arrays = dict[str, NDArray[Any]]

_TOTAL = ("total", "variance", "answered")


class TasteCoordinator:
    """Asks about items, makes directions of the answers, and adds up what is told about users."""

    rounds = 2

    def __init__(self, facts: Facts, *, width: int, shares: Shares | None, publish: bool) -> None:
        """Take what is public.

        A direction has `width` numbers. With `shares` nobody sees single messages about users.
        """
        self._facts, self._width, self._shares, self._publish = facts, width, shares, publish
        self._known: Arrays = {}
        self._total: Arrays = {}

    def ask(self, round: int) -> Message:
        """Ask about items, then about users."""
        return TasteBegin() if round == 1 else TasteDirections(**self._described())

    def sums(self, round: int) -> bool:
        """Say whether only the sum of the answers is wanted."""
        return round == 2 and self._shares is not None

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Take in what the parties have released."""
        if round == 1:
            self._known = self._items(replies)
        else:
            self._total = self._added(replies)

    def last(self) -> Message:
        """Tell everybody the sum; before the second round, that nobody has told anything."""
        return TasteTotal(**{**self._described(), **(self._total or self._added({}))})

    def published(self) -> Factors | None:
        """Return a model made from what was released, if one is wanted."""
        if not self._publish or not self._total:
            return None
        known, total = self._known, self._total
        items = KnownItems(
            float(known["mean"]), known["bias"], known["popularity"], known["weights"], known["features"]
        )
        return public_model(
            total["total"],
            math.sqrt(float(total["variance"][0])),
            items,
            Directions(known["rows"], float(known["scale"])),
            user_ids=self._facts.shared_ids,
            item_ids=self._facts.catalogue,
            scale=self._facts.scale,
        )

    def state(self) -> State:
        """Return what was made of the answers so far."""
        return {**self._known, **self._total}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._total = {name: state[name] for name in _TOTAL if name in state}
        self._known = {name: array for name, array in state.items() if name not in _TOTAL}

    def _items(self, replies: Mapping[str, Message]) -> Arrays:
        """Make of the parties' item sums what everybody may know, and the directions to tell tastes in.

        Of items of a party that did not answer nothing is known.
        """
        facts, count = self._facts, self._facts.item_count
        sums, noise, features = np.zeros((count, 2)), np.zeros(count), np.zeros((count, facts.features))
        for party, reply in replies.items():
            own = facts.items_of(party)
            sums[own] = array_of(reply, "sums", sums[own].shape, party)
            noise[own] = math.sqrt(_variance(reply, party))
            features[own] = array_of(reply, "features", features[own].shape, party)
        items = KnownItems.of(sums, features, noise)
        directions = Directions.of(items, self._width - 1)
        return {
            "mean": np.array(items.mean),
            "scale": np.array(directions.scale),
            "bias": items.bias,
            "popularity": items.popularity,
            "weights": items.weights,
            "features": items.features,
            "rows": directions.rows,
        }

    def _added(self, replies: Mapping[str, Message]) -> Arrays:
        """Add up what the parties told about users; if nobody told anything, everybody stays alone."""
        if SUM in replies and self._shares is not None:
            return self._shares.opened(replies[SUM], self._facts, self._width)
        facts = self._facts
        total, variance = np.zeros((facts.user_count, 2 * self._width)), 0.0
        for party, reply in replies.items():
            total += array_of(reply, "sums", total.shape, party)
            variance += _variance(reply, party)
        answered = [party in replies for party in facts.parties]
        return {"total": total, "variance": np.array([variance]), "answered": np.array(answered)}

    def _described(self) -> dict[str, Any]:
        numbers = {name: float(self._known[name]) for name in ("mean", "scale")}
        return {**self._known, **numbers}


def _variance(reply: Message, party: str) -> float:
    variance = float(array_of(reply, "variance", (1,), party)[0])
    if variance < 0:
        raise RunError(f"{party} sent a negative variance.")
    return variance
