"""The home fit of `VerticalTaste`: a party's own ratings, what the others tell, and a guard against harm.

All of this stays with the party, so it may use raw ratings as it likes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.factors.bayes import Bayes, Beliefs
from cofactor.factors.bayes_told import Told
from cofactor.factors.model import Factors
from cofactor.randomness import Seeds

MISMATCHES = (0.05, 0.3, 1.0)
"""How different a user may be with the others: what the guard chooses from, besides not to listen at all."""
_HELD_OUT = 0.1
_FEWEST = 50
"""With fewer held-out ratings than this there is no telling, and the party stays alone."""
_SURE = 3.0
"""By how many standard errors listening must have helped on the held-out ratings."""


@dataclass(frozen=True, eq=False)
class AtHome:
    """What a party has in the end. It never leaves the party."""

    model: Factors
    mismatch: float | None
    """Which mismatch the guard chose; None: the party does not listen to the others."""


def fit_at_home(
    ratings: Ratings,
    listen: Callable[[float], Told],
    bayes: Bayes,
    *,
    features: NDArray[Any] | None = None,
    seed: int = 0,
) -> AtHome:
    """Fit the party's model, with what the others tell where that helps on ratings held out.

    `listen` returns what the others tell, given how different users may be with them. To choose,
    half of the epochs run without the held-out ratings. Then the party fits all of its ratings as it would
    alone, and listens in the second half of the epochs; or not at all.
    """
    learn, test = _held_out(ratings, seed)
    first = replace(bayes, epochs=(bayes.epochs + 1) // 2)
    start = first.learn(learn, features=features, seed=seed).beliefs
    chosen = None
    if len(test) > 0:
        once = replace(bayes, epochs=1)
        alone = _errors(once, learn, test, features, start, None)
        chosen = _chosen(
            alone, {each: _errors(once, learn, test, features, start, listen(each)) for each in MISMATCHES}
        )
    if chosen is None:
        return AtHome(bayes.fit(ratings, features=features, seed=seed), None)
    begun = first.learn(ratings, features=features, seed=seed).beliefs
    second = replace(bayes, epochs=max(bayes.epochs // 2, 1))
    return AtHome(second.learn(ratings, features=features, told=listen(chosen), start=begun).model, chosen)


def _held_out(ratings: Ratings, seed: int) -> tuple[Ratings, Ratings]:
    """Hold out a tenth of the ratings, or none if that would be too few."""
    held = Seeds(seed).generator("taste: held out").random(len(ratings)) < _HELD_OUT
    if held.sum() < _FEWEST:
        held[:] = False
    return ratings.where(~held), ratings.where(held)


def _errors(
    bayes: Bayes,
    learn: Ratings,
    test: Ratings,
    features: NDArray[Any] | None,
    start: Beliefs,
    told: Told | None,
) -> NDArray[np.float64]:
    model = bayes.learn(learn, features=features, told=told, start=start).model
    wrong = test.values - model.predict_rows(test.users, test.items)
    squares: NDArray[np.float64] = np.square(wrong.astype(np.float64))
    return squares


def _chosen(alone: NDArray[np.float64], joined: dict[float, NDArray[np.float64]]) -> float | None:
    """Return the mismatch with the least error, if it is surely better than not to listen."""
    best = min(joined, key=lambda mismatch: float(joined[mismatch].mean()))
    gains = alone - joined[best]
    return best if gains.mean() > _SURE * gains.std() / np.sqrt(len(gains)) else None
