"""Recipes with one step that sum what parties answer, and a few ratings for them."""

from dataclasses import replace
from typing import Any

import numpy as np

from cofactor.data.ratings import Ratings
from cofactor.privacy.budget import Budget
from cofactor.recipes.clipping import GradientClipping
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.sums import IdealSum, SecureSum
from cofactor.recipes.vertical import VerticalMF
from tests.recipes.parties import SCALE, facts_of

USER = Budget(epsilon=2.0, delta=1e-6, unit="user")
RATING = Budget(epsilon=2.0, delta=1e-6, unit="rating")
SUMS: list[Any] = [IdealSum(), SecureSum()]


def few_ratings(users: int = 24, items: int = 12) -> Ratings:
    chance = np.random.default_rng(3)
    rated = chance.random((users, items)) < 0.5
    user, item = np.nonzero(rated)
    return Ratings.from_rows(
        user,
        item,
        chance.integers(1, 11, len(user)).astype(np.float32) / 2,
        user_ids=np.arange(users),
        item_ids=np.arange(items),
        scale=SCALE,
    )


QUICK = HorizontalMF(
    factors=3, rounds=1, local_steps=1, sampling=1.0, clipping=GradientClipping(limit=2.0),
    learning_rate=0.01, centre=3.0, home=UsersOnly(),
)  # fmt: skip
ALONG = replace(QUICK, users="trained along")
SETTLED = replace(QUICK, aggregate=IdealSum()).settled(facts_of("horizontal"), USER)
ACROSS = VerticalMF(
    factors=3, rounds=1, local_steps=1, sampling=1.0, clipping=GradientClipping(limit=2.0),
    learning_rate=0.01, centre=3.0,
)  # fmt: skip
