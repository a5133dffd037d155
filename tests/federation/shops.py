"""Two shops, each with users of its own, who are known by their ids."""

import numpy as np

from cofactor.data.ratings import Ratings
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party


def ratings(*users: int, items: int = 4) -> Ratings:
    rows = np.repeat(users, items)
    return Ratings.from_arrays(rows, np.tile(np.arange(items), len(users)), 1.0 + np.arange(len(rows)) % 5)


def shops() -> Federation:
    return Federation.horizontal(
        [Party(name="north", ratings=ratings(5, 3, 4)), Party(name="south", ratings=ratings(9, 8))]
    )
