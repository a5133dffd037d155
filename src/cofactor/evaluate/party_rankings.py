"""How good the lists of items are that parties show to their users, all parties together."""

from collections.abc import Mapping

import numpy as np

from cofactor.data.grouping import Values
from cofactor.evaluate.ranking import (
    Ranking,
    default_threshold,
    ranking_of_lists,
    released_popularity,
    top_lists,
)
from cofactor.factors.baselines import Popularity
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation

POPULARITY, COUNTS = "popularity", "released counts"
"""The same items for everybody: by how often they really were rated, and by what was released of that."""


def party_rankings(
    homes: Mapping[str, Factors], own: str, train: Federation, test: Federation, *, seed: int = 0, k: int = 10
) -> dict[str, Ranking]:
    """Measure the parties' own models where they know how items are chosen; otherwise nothing.

    Nothing, too, where no rating that was held back is high enough for an item to be worth showing.

    Popularity stands beside them: it is not private, and hard to beat.
    """
    if train.kind == "vertical" or any(model.choice is None for model in homes.values()):
        return {}
    held_back = test.pooled()
    least = default_threshold(held_back)
    if least is not None and not (held_back.values >= least).any():
        return {}
    popular = Popularity().fit(train.pooled())
    shown = {
        POPULARITY: {party.name: _for_users_of(popular, homes[party.name]) for party in train.parties},
        COUNTS: {name: released_popularity(model) for name, model in homes.items()},
        own: homes,
    }
    if not any(np.ptp(model.item_bias) for model in shown[COUNTS].values()):
        del shown[COUNTS]  # Nothing was asked about items, so that none comes before another.
    k = min(k, train.facts.item_count)
    return {name: _ranking(models, train, test, k, seed) for name, models in shown.items()}


def _ranking(
    models: Mapping[str, Factors], train: Federation, test: Federation, k: int, seed: int
) -> Ranking:
    """Put all parties' lists one below the other, as their users stand in the pooled ratings."""
    lists = np.concatenate([top_lists(models[party.name], party.ratings, k) for party in train.parties])
    predicted: Values = np.concatenate(
        [models[p.name].predict_rows(p.ratings.users, p.ratings.items) for p in test.parties]
    )
    return ranking_of_lists(lists, predicted, test.pooled(), seed=seed)


def _for_users_of(popular: Factors, home: Factors) -> Factors:
    """Return the same order of items for everybody whom a party knows."""
    return released_popularity(home, log_counts=popular.item_bias)
