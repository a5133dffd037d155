"""The messages of `SharedBiases` and `SecureALS`."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.federation.messages import Message

Array = NDArray[Any]
Integers = NDArray[np.int64]

USER_SUMS, GAIN_SUM = "number of users and their mean", "whether it helped"
"""The first release and the last, as ledgers and plans name them."""


def item_sums_of(round: int) -> str:
    """Return the name of the release about items in a round of them, counted from 1."""
    return f"sums about items {round}"


def spread_sums_of(round: int) -> str:
    """Return the name of the release about how tastes spread in the same round."""
    return f"how tastes spread {round}"


@dataclass(frozen=True, kw_only=True, eq=False)
class UsersAsked(Message):
    """The coordinator asks how many users there are, and how high they rate."""


@dataclass(frozen=True, kw_only=True, eq=False)
class UserSums(Message):
    """Sums over users, in whole grains."""

    sums: Integers
    """1 for each user with ratings, and the user's mean."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemsKnown(Message):
    """What everybody knows of items by now, in units of a scale from 1 to 5; made from noisy sums only."""

    mean: Array
    """One number."""
    bias: Array
    """How much higher an item is rated: a number for each."""
    variance: Array
    """How uncertain that is."""
    learned: Array
    """Two columns on which users have slopes: log popularity, and bias."""
    importance: Array
    """How much an item counts in a user's message, before that is normalised."""
    covariance: Array
    """Of users' tastes."""
    factors: Array
    """Further columns, learned from sums: none before they are begun."""
    told: Array
    """By which tastes for factors are multiplied before they are told."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemsFinal(ItemsKnown):
    """The same at the end, with how often items are rated."""

    counts: Array
    """Two columns: about how many ratings an item has, in units of their own, and how uncertain that is."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GainAsked(ItemsKnown):
    """The same, and the question whether users predict better with it than by themselves."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GainSum(Message):
    """By how much, over all users, in whole grains: one number."""

    gain: Integers


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemSums(Message):
    """Sums over users for each item, in whole grains: counts, residuals, and residuals times tastes."""

    items: Integers


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemAndSpreadSums(Message):
    """The same, and how tastes spread beyond what was thought."""

    items: Integers
    spread: Integers


def without_items(known: ItemsKnown) -> ItemsKnown:
    """Return a message that tells nothing of single items: with it, users are by themselves."""
    names = ("bias", "variance", "learned", "factors")
    return replace(known, **{name: np.zeros_like(getattr(known, name)) for name in names})
