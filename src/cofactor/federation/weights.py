"""Whose weights go to which party. Those of users are private: errors name parties, never users."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ids import Ids
from cofactor.data.layout import is_number
from cofactor.data.numbering import number
from cofactor.data.tables import read_items, read_users
from cofactor.errors import ConfigError, DataError
from cofactor.federation.party import Party
from cofactor.privacy.budget import Personal, Unit
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.weights import Group, Weights


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicWeights:
    """What everybody knows about weights: all of the items', and of the users' no more than the policy."""

    groups: tuple[Group, ...] = ()
    """That users may choose between."""
    expected: float = 1.0
    """About what weights of users are on average."""
    items: NDArray[np.float64] = field(repr=False)
    """The weight of each item of the catalogue."""
    mechanism: Personal = "stretching"
    epsilon: float = 0.0
    """What weight 1 is promised; 0 without a budget."""
    threshold: float | None = None
    """With "sampling", what noise is made for."""
    simulated: bool = False
    """Whether users' weights follow from a seed."""

    @classmethod
    def of(
        cls, users: Weights, items: Weights, catalogue: Ids, budget: PersonalBudget | None
    ) -> "PublicWeights":
        """Return what is public of weights."""
        sampled = budget is not None and budget.mechanism == "sampling"
        return cls(
            groups=users.groups,
            expected=users.expected,
            items=items.of(catalogue),
            mechanism="stretching" if budget is None else budget.mechanism,
            epsilon=0.0 if budget is None else budget.epsilon,
            threshold=budget.sampled_at if budget is not None and sampled else None,
            simulated=users.simulated,
        )

    def as_table(self) -> dict[str, Any]:
        """Return a table for JSON: what a training that goes on after a crash must have had, too."""
        words = {"expected": self.expected, "mechanism": self.mechanism, "epsilon": self.epsilon}
        groups = [[group.name, group.share, group.low, group.high] for group in self.groups]
        return words | {"threshold": self.threshold, "groups": groups, "items": self.items.tolist()}


def own_weights(users: Weights, parties: Sequence[Party]) -> tuple[Party, ...]:
    """Give each party the weights of its users, unless it has brought them itself."""
    open_ones = [party for party in parties if party.weights is None]
    if open_ones:
        _, places = number(*(party.ratings.user_ids for party in open_ones))
        if (np.bincount(places) > 1).any():
            raise DataError(
                "some ids of users occur at two parties, where they are different people. Let each party "
                "bring weights of its own: party.with_weights(weights)."
            )
    return tuple(party.with_weights(users) if party.weights is None else party for party in parties)


def read_weights(
    path: str | Path,
    *,
    of: str = "users",
    id: str | None = None,
    groups: Sequence[Group] = (),
    expected: float | None = None,
    otherwise: float | str | None = None,
) -> Weights:
    """Read a table with a column of ids and one called "weight", or "group", which names one of `groups`.

    Who only names a group has its least weight.
    """
    if of not in ("users", "items"):
        raise ConfigError(f'weights are of "users" or of "items", got {of!r}.')
    table = (read_users if of == "users" else read_items)(path, id=id)
    named = {column.name.lower(): column for column in table.columns}
    column = named.get("weight") or named.get("group")
    if column is None:
        words = ", ".join(table.names) or "none"
        raise DataError(f'{path}: no column is called "weight" or "group". Columns beside ids: {words}.')
    given = {
        one: float(cell) if is_number(cell) else cell
        for one, cell in zip(table.ids.tolist(), column.cells, strict=True)
        if cell
    }
    return Weights.by(given, groups=groups, expected=expected, otherwise=otherwise)


def weights_lines(weights: PublicWeights | None, unit: Unit) -> tuple[str, ...]:
    """Say in a guarantee what is public about weights, and what protects the others."""
    return () if weights is None else (_PUBLIC_WEIGHTS, _OWN_WEIGHT[unit])


SIMULATED_WEIGHTS = (
    "Weights of users were drawn by a seed, and whoever knows it can draw them again: a simulation."
)
_PUBLIC_WEIGHTS = (
    "Weights of items, and the groups that users may choose between, with about how many do: public."
)
_OWN_WEIGHT: dict[Unit, str] = {
    "user": "Weights of users: they stay with them, and are hidden as a user of weight 1 is, not better: "
    "somebody who asks for much privacy is told from others as well as epsilon for weight 1 allows.",
    "rating": "Weights of users: they stay with them, but shape all that a user adds. A weight is hidden "
    "only as all ratings of a user together are, the less the more there are.",
}
