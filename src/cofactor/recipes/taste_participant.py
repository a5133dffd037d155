"""The half of `VerticalTaste` that lives with a party's data."""

import math
from collections.abc import Callable

import numpy as np

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
from cofactor.privacy.mechanisms import Gaussian
from cofactor.recipes.taste_home import fit_at_home
from cofactor.recipes.taste_items import KnownItems, Matrix, Units, Vector, item_sums
from cofactor.recipes.taste_letters import (
    ITEM_SUMS,
    USER_MESSAGES,
    TasteBegin,
    TasteDirections,
    TasteItems,
    TasteSums,
    TasteTotal,
)
from cofactor.recipes.taste_likelihood import Moments, told_by_others
from cofactor.recipes.taste_message import Directions, user_messages


class TasteParticipant:
    """Tells about items, then about users, then listens."""

    def __init__(self, home: Home, *, width: int, share: float, bayes: Bayes) -> None:
        """Take the party's data.

        A direction has `width` numbers; `share` is the party's part of the noise on messages about users.
        """
        self._home, self._width, self._bayes = home, width, bayes
        # A party that asks for more noise than the others cannot count on theirs: it adds all of its own.
        self._share = share if home.party.budget is None else 1.0
        own = home.party.ratings
        self._ratings = Ratings(
            own.by_user, user_ids=own.user_ids, item_ids=own.item_ids, scale=home.facts.scale
        )
        self._units = Units.of(home.facts.scale)
        self._sent: Matrix | None = None
        self._variance = 0.0

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
        return {} if self._sent is None else {"sent": self._sent, "variance": np.array(self._variance)}

    def restore(self, state: State) -> None:
        """Go on from there."""
        if "sent" in state:
            self._sent, self._variance = np.asarray(state["sent"]), float(state["variance"])

    def _about_items(self) -> TasteItems:
        sums, variance = self._released(item_sums(self._ratings, self._units), ITEM_SUMS, 1.0)
        features = self._home.party.features
        table = np.zeros((len(sums), 0)) if features is None else features.astype(np.float64)
        return TasteItems(sums=sums, variance=variance, features=self._home.door.public(table))

    def _about_users(self, message: TasteDirections) -> TasteSums:
        own = self._home.facts.items_of(self._home.party.name)
        items, directions = _read(message, self._home, self._width)
        bounded = user_messages(self._ratings, self._units, items.mean, items.bias[own], directions.rows[own])
        self._sent, variance = self._released(bounded, USER_MESSAGES, self._share)
        self._variance = float(variance[0])
        return TasteSums(sums=self._sent, variance=variance)

    def _released(self, bounded: Bounded, what: str, share: float) -> tuple[Matrix, Vector]:
        """Let a bounded value out with its noise, and say how much that was."""
        door, schedule = self._home.door, self._home.schedule
        if schedule is None:
            return door.unprotected(bounded.value), door.public(np.zeros(1))
        mechanism = next(release.mechanism for release in schedule.releases if release.what == what)
        assert isinstance(mechanism, Gaussian)
        noisy = door.release(mechanism, bounded, what=what, share=share)
        return noisy, door.public(np.array([share * mechanism.noise_size(bounded.bound) ** 2]))

    def _listener(self, message: TasteTotal) -> Callable[[float], Told]:
        """Return what the others tell, for any mismatch: the sum, with the party's own part taken off."""
        home = self._home
        items, directions = _read(message, home, self._width)
        users, parties = home.facts.user_count, len(home.facts.parties)
        others = array_of(message, "total", (users, 2 * self._width), COORDINATOR).astype(np.float64)
        variance = float(array_of(message, "variance", (1,), COORDINATOR)[0])
        answered = array_of(message, "answered", (parties,), COORDINATOR)
        if self._sent is not None and answered[home.facts.place(home.party.name)]:
            others, variance = others - self._sent, variance - self._variance
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
