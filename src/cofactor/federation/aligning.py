"""One numbering of what parties share, and one list of what they do not."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto.psi import Rule
from cofactor.data.grouping import Index
from cofactor.data.ids import Ids
from cofactor.data.numbering import number
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, DataError
from cofactor.federation.declining import Declining
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.finding import Alignment, Among, find_common
from cofactor.federation.party import Party

Align = Literal["union", "psi"]
"""Which users a vertical federation is about: all of all parties, or those found to be common."""


def aligned(parties: Sequence[Party], side: str) -> tuple[Party, ...]:
    """Give all parties one numbering of the side that they share."""
    _check(parties)
    shared, places = numbered({party.name: getattr(party.ratings, f"{side}_ids") for party in parties}, side)
    return tuple(renumbered(party, shared, places[party.name], side) for party in parties)


def numbered(lists: Mapping[str, Ids], side: str) -> tuple[Ids, dict[str, Index]]:
    """Return one list of all ids, and where each party's own stand in it."""
    first = next(iter(lists.values()))
    if all(len(ids) == len(first) and np.array_equal(ids, first) for ids in lists.values()):
        return first, dict.fromkeys(lists, np.arange(len(first), dtype=np.int32))
    kinds = {ids.dtype.kind for ids in lists.values() if len(ids)}
    if len(kinds) > 1:
        text = ", ".join(name for name, ids in lists.items() if ids.dtype.kind == "U")
        raise DataError(
            f"{text}: {side} ids are text, and other parties' are numbers. Bring them to one form."
        )
    shared, places = number(*lists.values())
    if len(shared) == len(places):
        other = "horizontal" if side == "user" else "vertical"
        raise DataError(f"the parties have no {side} in common. Did you mean a {other} federation?")
    ends = np.cumsum([len(ids) for ids in lists.values()])
    return shared, dict(zip(lists, np.split(places, ends[:-1]), strict=True))


def only_common(parties: Sequence[Party], *, among: Among, rule: Rule) -> tuple[tuple[Party, ...], Alignment]:
    """Leave each party those users whom all have, in one order, found by private set intersection."""
    _check(parties)
    found = find_common({party.name: party.ratings.user_ids for party in parties}, among=among, rule=rule)
    return tuple(only(party, found.ids, found.rows[party.name]) for party in parties), found.alignment


def only(party: Party, ids: Ids, rows: NDArray[np.int64]) -> Party:
    """Leave a party the users of some rows, under these ids."""
    kept = party.ratings.select(users=rows)
    ratings = Ratings(kept.by_user, user_ids=ids, item_ids=kept.item_ids, scale=kept.scale)
    # Ids may be written differently now, so that nothing is looked up by them.
    attributes = None if party.attributes is None else party.attributes[rows]
    weights = None if party.weights is None else party.weights[rows]
    return replace(party, ratings=ratings, attributes=attributes, weights=weights)


def _check(parties: Sequence[Party]) -> None:
    if not parties or not all(isinstance(party, Party) for party in parties):
        raise ConfigError("a federation needs at least one Party. Make one with Party.from_csv(file).")
    names = [party.name for party in parties]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"two parties are called {twice!r}. Give each a name of its own.")
    taken = next((name for name in names if name in (COORDINATOR, SUM)), None)
    if taken is not None:
        raise ConfigError(f"no party can be called {taken!r}: files and reports use the word otherwise.")
    files = [party.file.resolve() for party in parties if party.file is not None]
    if len(set(files)) < len(files):
        raise ConfigError("two parties have the same file, and so the same ledger. Give each its own file.")
    # Files of devices without ratings may be alike: that must not show.
    prints = [party.fingerprint for party in parties if party.fingerprint and len(party.ratings)]
    if len(set(prints)) < len(prints):
        raise DataError("two parties have the same ratings, byte for byte. Give each its own data.")


def renumbered(party: Party, shared: Ids, places: Index, side: str) -> Party:
    """Give a party's users or items their places among those of all."""
    old, by_user = party.ratings, side == "user"
    if np.array_equal(shared, old.user_ids if by_user else old.item_ids):
        return party
    if not by_user and party.features is not None:
        raise DataError("give item features when the catalogue is shared: Federation.with_public_items.")
    ratings = Ratings.from_rows(
        places[old.users] if by_user else old.users,
        old.items if by_user else places[old.items],
        old.values,
        times=old.times,
        user_ids=shared if by_user else old.user_ids,
        item_ids=old.item_ids if by_user else shared,
        scale=old.scale,
    )
    return party.with_ratings(ratings)


def placed(party: Party, shared: Ids, side: str) -> Party:
    """Put a party's users or items into the places that all agreed on; what is not shared stays out.

    It does so in silence: to refuse would tell whoever chose the shared ones what the party holds.
    """
    own: Ids = getattr(party.ratings, f"{side}_ids")
    if len(own) and own.dtype.kind != shared.dtype.kind:
        raise Declining("kind of ids", f"{side} ids are text here and numbers there, or the other way round.")
    order = np.argsort(shared, kind="stable")
    at = np.minimum(np.searchsorted(shared, own, sorter=order), len(shared) - 1)
    places = order[at]
    known = shared[places] == own
    if not known.all():
        rows = np.flatnonzero(known)
        ratings = party.ratings.select(users=rows) if side == "user" else party.ratings.select(items=rows)
        party, places = party.with_ratings(ratings), places[known]
    found: Index = places.astype(np.int32)
    return renumbered(party, shared, found, side)


def joined(parts: Sequence[tuple[str, Ids]]) -> Ids:
    """Put ids one behind the other; where two parties use the same one, all are named after their party."""
    together = (
        np.concatenate([ids for _, ids in parts]) if len({ids.dtype.kind for _, ids in parts}) == 1 else None
    )
    if together is not None and len(np.unique(together)) == len(together):
        return together
    return np.array([f"{name}/{each}" for name, ids in parts for each in ids.tolist()])
