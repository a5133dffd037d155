"""A small world: ratings, a split, and the true model behind them."""

from dataclasses import dataclass

import pytest

from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.data.synthetic import Shape, make
from cofactor.factors.model import Factors


@dataclass(frozen=True)
class World:
    """What the tests of this room measure."""

    train: Ratings
    test: Ratings
    model: Factors


@pytest.fixture(scope="session")
def world() -> World:
    """Split synthetic ratings and take their truth as the model."""
    made = make(Shape(users=150, items=80, ratings=4500, minimum=8), seed=11)
    train, test = by_fraction(made.ratings, 0.3, seed=1)
    truth = made.truth
    model = Factors(
        user_ids=train.user_ids,
        item_ids=train.item_ids,
        mean=truth.mean,
        user_bias=truth.user_bias,
        item_bias=truth.item_bias,
        user_vectors=truth.user_vectors,
        item_vectors=truth.item_vectors,
        scale=train.scale,
    )
    return World(train, test, model)
