"""What is known of items as models: for those who keep their tastes at home, and for everybody."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError
from cofactor.factors.baselines import balanced
from cofactor.factors.choosing import Choice
from cofactor.factors.model import Factors, HomeFit, seen_in
from cofactor.federation.door import COORDINATOR
from cofactor.federation.halves import Facts, array_of
from cofactor.federation.messages import Message
from cofactor.recipes.item_sums import Known

Reals = NDArray[np.float64]

_UNKNOWN = 0.3
"""Part of its uncertainty that is added to a count before its logarithm is taken."""


def features_of(facts: Facts) -> Reals:
    """Return public numbers about items, balanced; none if none were declared."""
    if facts.public_items is None:
        if facts.features:
            raise ConfigError("public features of items must be declared: Federation.with_public_items.")
        return np.zeros((facts.item_count, 0))
    return balanced(facts.public_items.rows(facts.catalogue))


class Units:
    """Ratings in units of a scale from 1 to 5, less its middle."""

    def __init__(self, facts: Facts) -> None:
        """Read the scale off what is public."""
        self.middle = (facts.scale.low + facts.scale.high) / 2
        self.size = (facts.scale.high - facts.scale.low) / 4

    def inward(self, ratings: Grouped) -> Grouped:
        """Return ratings in these units."""
        values = np.clip((ratings.values.astype(np.float64) - self.middle) / self.size, -2.0, 2.0)
        return Grouped(ratings.ptr, ratings.index, values.astype(np.float32))


def model_of(
    facts: Facts,
    message: Message,
    known: Known,
    features: Reals,
    user_ids: Any,
    tastes: Reals,
    seen: Any,
) -> Factors:
    """Return what is known as a model, with users' tastes."""
    units = Units(facts)
    precision: Reals = np.asarray(np.linalg.inv(known.root @ known.root.T) / units.size**2, np.float64)
    return Factors(
        user_ids=user_ids,
        item_ids=facts.catalogue,
        mean=float(units.middle),
        user_bias=(units.size * tastes[:, 0]).astype(np.float32),
        item_bias=(units.size * known.expected).astype(np.float32),
        user_vectors=(units.size * tastes[:, 1:]).astype(np.float32),
        item_vectors=known.plain[:, 1:].astype(np.float32),
        scale=facts.scale,
        seen=seen,
        home=HomeFit(precision, known.weights / units.size**2, calibrated=True),
        choice=choice_of(message, features, facts),
    )


def choosing_model(facts: Facts, message: Message, features: Reals, ratings: Ratings | None) -> Factors:
    """Return a model that only ranks: by how often items are chosen, and by what a user has chosen."""
    choice = choice_of(message, features, facts)
    users = facts.catalogue[:0] if ratings is None else ratings.user_ids
    return Factors(
        user_ids=users,
        item_ids=facts.catalogue,
        mean=0.0,
        user_bias=np.zeros(len(users), np.float32),
        item_bias=choice.log_counts,
        user_vectors=np.zeros((len(users), 0), np.float32),
        item_vectors=np.zeros((facts.item_count, 0), np.float32),
        seen=None if ratings is None else seen_in(ratings),
        home=HomeFit(np.zeros((0, 0)), np.ones(facts.item_count), confidence=1.0),
        choice=choice,
    )


def choice_of(message: Message, features: Reals, facts: Facts) -> Choice:
    """Return how items are ranked: by how often they are rated, and what a user's own choice tells."""
    counts = array_of(message, "counts", (facts.item_count, 2), COORDINATOR)
    floor = _UNKNOWN * np.maximum(counts[:, 1], 1e-3)
    return Choice.from_counts(counts[:, 0], floor, features)
