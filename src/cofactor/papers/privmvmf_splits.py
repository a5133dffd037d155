"""Whom and what PrivMVMF is tested on (section VI.C): known users and items, new users, new items."""

from dataclasses import dataclass

import numpy as np

from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction, cold_items, cold_users
from cofactor.papers.privmvmf_numbers import COLD_ITEM, COLD_USER, EXISTING

TEST_FRACTION = 0.2
"""Of each user's ratings, where she and her items are known."""
COLD_FRACTION = 0.1
"""Of the users, or of the items, that training never meets."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """Ratings to train on, and ratings to test with."""

    scenario: str
    train: Ratings
    """New users, or new items, are not in it: not even their ids."""
    test: Ratings
    """Its users are those to whom items are recommended, its items those that can be recommended."""
    rated: Ratings
    """What these users have rated of these items before, which is not recommended again."""


def parts(ratings: Ratings, scenario: str, seed: int) -> Parts:
    """Hold back what a scenario tests."""
    return {EXISTING: _known, COLD_USER: _new_users, COLD_ITEM: _new_items}[scenario](ratings, seed)


def _known(ratings: Ratings, seed: int) -> Parts:
    train, test = by_fraction(ratings, TEST_FRACTION, seed=seed)
    return Parts(scenario=EXISTING, train=train, test=test, rated=train)


def _new_users(ratings: Ratings, seed: int) -> Parts:
    kept, held = cold_users(ratings, COLD_FRACTION, seed=seed)
    new = held.by_user.sizes > 0
    test = held.select(users=new)
    return Parts(scenario=COLD_USER, train=kept.select(users=~new), test=test, rated=_nothing(test))


def _new_items(ratings: Ratings, seed: int) -> Parts:
    kept, held = cold_items(ratings, COLD_FRACTION, seed=seed)
    new = held.by_item.sizes > 0
    test = held.select(items=new)
    return Parts(scenario=COLD_ITEM, train=kept.select(items=~new), test=test, rated=_nothing(test))


def _nothing(test: Ratings) -> Ratings:
    return test.where(np.zeros(len(test), np.bool_))
