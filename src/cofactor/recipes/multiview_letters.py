"""The messages of `MultiViewMF`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.federation.messages import Message

Array = NDArray[Any]

ITEM_SERVER = "item server"
"""Who holds features of items, and nothing private."""
SUMS = "gradients of items and attributes"
"""The release, as ledgers and plans name it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ViewsAsked(Message):
    """The coordinator asks users for gradients."""

    items: Array
    """A vector for each item: Q in the paper."""
    attributes: Array
    """A vector for each number of the users' attributes: U."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ViewGradients(Message):
    """What users add to the sum of a round."""

    gradients: NDArray[np.int64]
    """In whole grains: a row for each item, rated or not, and then one for each number of the attributes."""
    count: NDArray[np.int64]
    """How many users that are: one number."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemsAsked(Message):
    """The coordinator asks the item server for gradients."""

    items: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureGradients(Message):
    """What the item server answers."""

    gradients: Array
    """A row for each item."""
    features: Array
    """A vector for each feature of the items: V in the paper."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ViewsFinal(Message):
    """All that was learned."""

    items: Array
    attributes: Array
    features: Array


MULTI_VIEW = (ViewsAsked, ViewGradients, ItemsAsked, FeatureGradients, ViewsFinal)
"""All of them."""
