"""The half of `VerticalTaste` that lives with a party's data."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.errors import RunError
from cofactor.factors.bayes import Bayes
from cofactor.factors.bayes_known import Known
from cofactor.factors.bayes_told import Told
from cofactor.factors.model import Factors
from cofactor.federation.door import COORDINATOR
from cofactor.federation.halves import Home, State, array_of
from cofactor.federation.messages import Message
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.mechanisms import Skellam
from cofactor.recipes.taste_home import fit_at_home
from cofactor.recipes.taste_items import KnownItems, Matrix, Units, Vector, item_sums
from cofactor.recipes.taste_letters import (
    ITEM_SUMS,
    USER_MESSAGES,
    TasteBegin,
    TasteDirections,
    TasteItems,
    TasteShares,
    TasteSums,
    TasteTotal,
)
from cofactor.recipes.taste_likelihood import Moments, told_by_others
from cofactor.recipes.taste_message import Directions, user_messages
from cofactor.recipes.taste_shares import Shares


class TasteParticipant:
    """Tells about items, then about users, then listens."""

    def __init__(self, home: Home, *, width: int, shares: Shares | None, bayes: Bayes) -> None:
        """Take the party's data.

        A direction has `width` numbers. With `shares` messages about users are only summed.
        """
        self._home, self._width, self._bayes, self._shares = home, width, bayes, shares
        own = home.party.ratings
        self._ratings = Ratings(
            own.by_user, user_ids=own.user_ids, item_ids=own.item_ids, scale=home.facts.scale
        )
        self._units = Units.of(home.facts.scale)
        self._sent: NDArray[Any] | None = None
        self._variance = 0.0
        self._alone = 0.0
        self._secrets = np.zeros((0, 32), np.uint8)

    def handle(self, round: int, message: Message) -> Message:
        """Answer with what may be known about the party's items, or about its users."""
        if round == 1 and isinstance(message, TasteBegin):
            return self._about_items()
        if round == 2 and isinstance(message, TasteDirections):
            return self._about_users(message)
        raise RunError(
            f"{self._home.party.name}: round {round} does not begin with {type(message).__name__}."
        )

    def finish(self, message: Message) -> Factors:
        """Fit the party's own model, with what the others tell where that helps."""
        if not isinstance(message, TasteTotal):
            raise RunError(f"{self._home.party.name}: the last message has no sum of messages about users.")
        return fit_at_home(
            self._ratings,
            self._listener(message),
            self._bayes,
            features=self._home.party.features,
            seed=self._home.seed,
        ).model

    def state(self) -> State:
        """Return the party's own noisy message, which it takes off the sum in the end."""
        if self._sent is None:
            return {}
        numbers = {"variance": np.array(self._variance), "alone": np.array(self._alone)}
        return {"sent": self._sent, **numbers, "secrets": self._secrets}

    def restore(self, state: State) -> None:
        """Go on from there."""
        if "sent" in state:
            self._sent, self._variance = np.asarray(state["sent"]), float(state["variance"])
            self._alone, self._secrets = float(state["alone"]), np.asarray(state["secrets"])

    def _about_items(self) -> TasteItems:
        sums, variance = self._released(item_sums(self._ratings, self._units), ITEM_SUMS)
        features = self._home.party.features
        table = np.zeros((len(sums), 0)) if features is None else features.astype(np.float64)
        return TasteItems(sums=sums, variance=variance, features=self._home.door.public(table))

    def _about_users(self, message: TasteDirections) -> TasteSums | TasteShares:
        own, shares = self._home.facts.items_of(self._home.party.name), self._shares
        items, directions = _read(message, self._home, self._width)
        bounded = user_messages(
            self._ratings,
            self._units,
            items.mean,
            items.bias[own],
            directions.rows[own],
            grain=None if shares is None else shares.grain,
        )
        if shares is None:
            self._sent, variance = self._released(bounded, USER_MESSAGES)
            self._variance = float(variance[0])
            return TasteSums(sums=self._sent, variance=variance)
        mechanism = self._mechanism(USER_MESSAGES)
        assert isinstance(mechanism, Skellam | None)
        answer = shares.answer(self._home, bounded, mechanism)
        full = 0.0 if mechanism is None else mechanism.noise_size(bounded.bound) ** 2
        alone = self._home.party.budget is not None
        self._sent, self._variance, self._alone = answer.sums, (1 - alone) * full, alone * full
        secrets = b"".join(self._home.door.extra_secrets)
        self._secrets = np.frombuffer(secrets, np.uint8).reshape(-1, 32)
        return answer

    def _released(self, bounded: Bounded, what: str) -> tuple[Matrix, Vector]:
        """Let a bounded value out with its noise, and say how much that was."""
        door, mechanism = self._home.door, self._mechanism(what)
        if mechanism is None:
            return door.unprotected(bounded.value), door.public(np.zeros(1))
        noisy = door.release(mechanism, bounded, what=what)
        return noisy, door.public(np.array([mechanism.noise_size(bounded.bound) ** 2]))

    def _mechanism(self, what: str) -> Any:
        schedule = self._home.schedule
        if schedule is None:
            return None
        return next(release.mechanism for release in schedule.releases if release.what == what)

    def _own_part(self, count: int) -> tuple[NDArray[Any], float]:
        """Return what the party itself has left in a sum of so many messages, and its noise's variance."""
        assert self._sent is not None
        if self._shares is None:
            return self._sent, self._variance
        part = self._shares.own_part(self._sent, self._variance, count, self._secrets)
        left = self._shares.left(count, self._variance) + self._alone
        return part, left * self._shares.grain**2

    def _listener(self, message: TasteTotal) -> Callable[[float], Told]:
        """Return what the others tell, for any mismatch: the sum, with the party's own part taken off."""
        home = self._home
        items, directions = _read(message, home, self._width)
        users, parties = home.facts.user_count, len(home.facts.parties)
        others = array_of(message, "total", (users, 2 * self._width), COORDINATOR).astype(np.float64)
        variance = float(array_of(message, "variance", (1,), COORDINATOR)[0])
        answered = array_of(message, "answered", (parties,), COORDINATOR)
        if self._sent is not None and answered[home.facts.place(home.party.name)]:
            own, noise = self._own_part(int(answered.sum()))
            others, variance = others - own, variance - noise
        known = Known.of(self._ratings, home.party.features, self._bayes.factors)
        described = known.elsewhere(items.features, items.popularity, items.bias)
        moments = Moments.of(directions.rows, items.weights, described)
        noise = math.sqrt(max(variance, 0.0))

        def listen(mismatch: float) -> Told:
            return told_by_others(others, directions, moments, noise, mismatch)

        return listen


def _read(message: TasteDirections, home: Home, width: int) -> tuple[KnownItems, Directions]:
    """Read what is known about items out of a message from outside."""
    count = home.facts.item_count
    bias, popularity, weights = (
        array_of(message, name, (count,), COORDINATOR) for name in ("bias", "popularity", "weights")
    )
    features = array_of(message, "features", (count, home.facts.features), COORDINATOR)
    rows = array_of(message, "rows", (count, width), COORDINATOR)
    for number in (message.mean, message.scale):
        if not isinstance(number, float) or not math.isfinite(number):
            raise RunError(f"{COORDINATOR} sent a mean or a scale that is not a finite number.")
    items = KnownItems(message.mean, bias, popularity, weights, features)
    return items, Directions(rows, message.scale)
