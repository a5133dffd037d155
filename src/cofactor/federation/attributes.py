"""Whose attributes go to which party. They are private: errors name parties, never users."""

from collections.abc import Mapping, Sequence

import numpy as np

from cofactor.data.attributes import UserAttributes
from cofactor.data.codes import Numbers
from cofactor.data.coding import Coding
from cofactor.data.numbering import number
from cofactor.errors import ConfigError, DataError
from cofactor.federation.party import Party
from cofactor.federation.splits import Split

Tables = UserAttributes | Mapping[str, UserAttributes]
"""One table for all parties, or one for each by the party's name."""


def coding_of(tables: Tables) -> Coding:
    """Return the coding that all tables share."""
    codings = [tables.coding] if isinstance(tables, UserAttributes) else [t.coding for t in tables.values()]
    if not codings:
        raise ConfigError("there is no table of user attributes. Give one for each party.")
    if any(coding != codings[0] for coding in codings):
        raise DataError(
            "the parties' attributes are coded in different ways. State one coding for all of them: "
            "Coding.stated, and UserAttributes.of_table(table, coding)."
        )
    return codings[0]


def shared_out(tables: Tables, split: Split, parties: Sequence[Party]) -> dict[str, Numbers]:
    """Return each party's attributes, a row for each of its users, by the party's name."""
    if split == "vertical":
        raise ConfigError(
            "user attributes are for federations in which every user is at one party: horizontal, on-device. "
            "The parties of a vertical one have the same users, and need not know the same of them."
        )
    by_party = _by_party(tables, parties)
    described = {party.name: by_party[party.name].known(party.ratings.user_ids) for party in parties}
    # Which devices have attributes is private: only none of them at all is a mistake that may be told.
    unknown = [name for name, count in described.items() if not count]
    if len(unknown) == len(parties) or (unknown and split == "horizontal"):
        who = "these users" if split == "on-device" else f"the users of {unknown[0]}"
        raise DataError(
            f"{by_party[unknown[0]].source} describes none of {who}. Name a table with the same ids as the "
            "ratings."
        )
    return {party.name: by_party[party.name].rows(party.ratings.user_ids) for party in parties}


def check_attributes(coding: Coding | None, parties: Sequence[Party]) -> None:
    """Refuse attributes that the public coding does not fit."""
    width = None if coding is None else coding.width
    for party in parties:
        if (None if party.attributes is None else party.attributes.shape[1]) != width:
            raise DataError(
                f"{party.name} has attributes that are not coded as all others'. Give them to all parties: "
                "Federation.with_user_attributes."
            )


def _by_party(tables: Tables, parties: Sequence[Party]) -> Mapping[str, UserAttributes]:
    names = [party.name for party in parties]
    if isinstance(tables, UserAttributes):
        _, places = number(*(party.ratings.user_ids for party in parties))
        if (np.bincount(places) > 1).any():
            raise DataError(
                "some ids of users occur at two parties, where they are different people. Give each party a "
                "table of its own, by the party's name."
            )
        return dict.fromkeys(names, tables)
    if set(tables) != set(names):
        raise ConfigError(f"there must be one table of user attributes for each of {', '.join(names)}.")
    return tables
