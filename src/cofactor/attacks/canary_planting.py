"""Canaries in a federation: made-up units with items of their own, each in one of two states.

A canary is one unit of the guarantee: a user with all her ratings, or one rating. Nobody else rates its
items, so that canaries are in nobody's way, and all that one adds lies on few rows. Users and items of all
canaries are there in any case, as the catalogue and the list of users are public; a coin decides about
ratings alone.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cofactor.config import one_of, whole
from cofactor.data.ids import Ids
from cofactor.data.ratings import Ratings
from cofactor.data.scale import Scale
from cofactor.errors import ConfigError
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.privacy.budget import ADJACENCIES, UNITS, Adjacency, Unit

Rows = NDArray[np.int64]
Reals = NDArray[np.float64]

_CANARY = "canary"


class CanaryRatings(NamedTuple):
    """All ratings that canaries can have, one an entry."""

    canary: Rows
    party: Rows
    """At which party, by place."""
    user: Rows
    """The user's row at that party."""
    item: Rows
    """The item's row at that party."""
    column: Rows
    """The item's row in the catalogue of all parties."""
    value: Reals
    """Its rating if the canary is present."""
    other: Reals
    """Its rating if not; NaN for none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Planted:
    """A federation with room for canaries: who is present is still open."""

    ground: Federation
    """Everybody else's ratings, and users and items of all canaries."""
    ratings: CanaryRatings
    canaries: int

    def federation(self, present: NDArray[np.bool_], *, alone: bool = False) -> Federation:
        """Return the federation with some canaries present; `alone` without anybody else's ratings."""
        own = self.ratings
        if present.shape != (self.canaries,):
            raise ConfigError(f"there are {self.canaries:,} canaries: say of each whether it is present.")
        values = np.where(present[own.canary], own.value, own.other)
        parties = [self._party(at, values, alone) for at in range(len(self.ground.parties))]
        return replace(self.ground, parties=tuple(parties))

    def only(self, canary: int, *, present: bool) -> list[Party]:
        """Return the parties of one canary, with no other user; present or not."""
        own = self.ratings
        mine = own.canary == canary
        everybody = self._present if present else self._absent
        return [
            everybody[at].with_ratings(everybody[at].ratings.select(users=[user]))
            for at, user in sorted(set(zip(own.party[mine].tolist(), own.user[mine].tolist(), strict=True)))
        ]

    @cached_property
    def _present(self) -> tuple[Party, ...]:
        return self.federation(np.ones(self.canaries, np.bool_), alone=True).parties

    @cached_property
    def _absent(self) -> tuple[Party, ...]:
        return self.federation(np.zeros(self.canaries, np.bool_), alone=True).parties

    def _party(self, place: int, values: Reals, alone: bool) -> Party:
        party, scale = self.ground.parties[place], self.ground.scale
        here = (self.ratings.party == place) & ~np.isnan(values)
        own, added = party.ratings, (self.ratings.user[here], self.ratings.item[here], values[here])
        known = slice(0, 0 if alone else len(own))
        users, items, numbers = (
            np.concatenate([column[known], more])
            for column, more in zip((own.users, own.items, own.values), added, strict=True)
        )
        implicit = self.ground.implicit
        ratings = Ratings.from_rows(
            users,
            items,
            None if implicit else numbers,
            user_ids=own.user_ids,
            item_ids=own.item_ids,
            scale=None if implicit else scale,
        )
        return replace(party, ratings=ratings)


def planted(
    federation: Federation,
    canaries: int,
    *,
    unit: Unit,
    adjacency: Adjacency = "empty",
    ratings: int = 8,
    not_at: Collection[str] = (),
) -> Planted:
    """Make room for canaries in a federation of any kind; ledgers of its files are out of reach.

    For unit "user" each has so many `ratings`, at every party that holds her: the lowest and the highest in
    turn, which no taste explains. For unit "rating" it is one. Not to be present means to have no ratings;
    for adjacencies other than "empty", to have the opposite ones. Canaries go in turn to all parties but
    those named by `not_at`, which look at the others; to all, if there are no others.
    """
    whole(canaries=canaries, ratings=ratings)
    one_of(UNITS, unit=unit)
    one_of(ADJACENCIES, adjacency=adjacency)
    if federation.kind == "on-device" and not federation.facts.cohort:
        ground, own = _on_devices(federation, canaries, 1 if unit == "rating" else ratings)
    else:
        each = 1 if unit == "rating" else ratings
        everywhere = federation.kind == "vertical" and unit == "user"
        holding = [party.name not in not_at for party in federation.parties]
        places = np.flatnonzero(holding if any(holding) else np.ones(len(holding)))
        ground, own = _at_parties(federation, canaries, each, places, everywhere)
    told = _told(own, federation.scale, federation.implicit, adjacency)
    public = federation.ratings_each or round(
        (sum(len(party.ratings) for party in ground.parties) + len(told.canary) / 2) / len(ground.parties)
    )
    # How many ratings there are is public, and must not say who is present.
    return Planted(ground=replace(ground, ratings_each=public), ratings=told, canaries=canaries)


def _told(own: CanaryRatings, scale: Scale, implicit: bool, adjacency: Adjacency) -> CanaryRatings:
    """Give each canary's ratings their values: low and high in turn, in the order of its entries."""
    if implicit and adjacency == "value":
        raise ConfigError("these ratings have no values that could differ. Protect who rated what.")
    order, low, high = _within(own.canary), 1.0 if implicit else scale.low, 1.0 if implicit else scale.high
    value, other = (np.where((order + turned) % 2, high, low) for turned in (0, 1))
    nothing = implicit or adjacency == "empty"
    return own._replace(value=value, other=np.full(len(value), np.nan) if nothing else other)


def _at_parties(
    federation: Federation, canaries: int, each: int, places: Rows, everywhere: bool
) -> tuple[Federation, CanaryRatings]:
    """Add users and items of canaries to the parties that there are."""
    parties, vertical = federation.parties, federation.kind == "vertical"
    count, numbers = len(parties), np.arange(canaries)
    holders = np.zeros((canaries, count), np.bool_)
    if everywhere:
        holders[:, places] = True
    else:
        holders[numbers, places[numbers % len(places)]] = True
    new_users = _more([party.ratings.user_ids for party in parties], canaries, f"{_CANARY} user")
    items_at = [each * int(at.sum()) if vertical else each * canaries for at in holders.T]
    new_items = _more([party.ratings.item_ids for party in parties], max(items_at), f"{_CANARY} item")
    grown, entries, start = [], [], 0
    for at, party in enumerate(parties):
        here, users, items = numbers[holders[:, at]], party.ratings.user_count, party.ratings.item_count
        who = np.repeat(np.arange(len(here)), each)
        rows = users + (np.repeat(here, each) if vertical else who)
        own = np.arange(len(who)) if vertical else np.repeat(here, each) * each + _within(who)
        more_users = new_users if vertical else new_users[here]
        grown.append(_grown(party, more_users, new_items[: items_at[at]]))
        entries.append(_entries(here[who], at, rows, items + own, start + items + own))
        start += items + items_at[at] if vertical else 0
    joined = [np.concatenate(column) for column in zip(*entries, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return _regrown(federation, grown), CanaryRatings(*(column[order] for column in joined))


def _on_devices(federation: Federation, canaries: int, each: int) -> tuple[Federation, CanaryRatings]:
    """Add a device for each canary, and its items to the catalogue of all."""
    parties, items = federation.parties, federation.facts.item_count
    new_items = _more([parties[0].ratings.item_ids], each * canaries, f"{_CANARY} item")
    new_users = _more([party.ratings.user_ids for party in parties], canaries, f"{_CANARY} user")
    grown = [_grown(party, party.ratings.user_ids[:0], new_items) for party in parties]
    taken, own = {party.name for party in parties}, grown[0].ratings
    names = [f"{_CANARY} {number}" for number in range(canaries + len(taken))]
    free = [name for name in names if name not in taken]
    for name, user in zip(free, new_users, strict=False):
        none = Ratings.from_rows(
            [],
            [],
            None if own.implicit else [],
            user_ids=np.array([user]),
            item_ids=own.item_ids,
            scale=own.scale,
        )
        blank = Party(name=name, ratings=none, features=grown[0].features)
        grown.append(_with_blanks(blank, parties[0], 1))
    who = np.repeat(np.arange(canaries), each)
    columns = items + np.arange(len(who))
    entries = _entries(who, 0, np.zeros(len(who), np.int64), columns, columns)
    return _regrown(federation, grown), entries._replace(party=len(parties) + who)


def _entries(canary: Rows, party: int, user: Rows, item: Rows, column: Rows) -> CanaryRatings:
    open_values = np.full(len(canary), np.nan)
    return CanaryRatings(
        canary, np.full(len(canary), party), user, item, column, open_values, open_values.copy()
    )


def _within(groups: Rows) -> Rows:
    """Return the place of each entry in its group; entries of a group stand together."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups)


def _grown(party: Party, users: Ids, items: Ids) -> Party:
    """Return a party in memory with more users and items, of whom nothing is known."""
    own = party.ratings
    ratings = Ratings.from_rows(
        own.users,
        own.items,
        None if own.implicit else own.values,
        user_ids=np.concatenate([own.user_ids, users]) if len(users) else own.user_ids,
        item_ids=np.concatenate([own.item_ids, items]) if len(items) else own.item_ids,
        scale=own.scale,
    )
    features = party.features
    if features is not None:
        usual = np.broadcast_to(features.mean(axis=0), (len(items), features.shape[1]))
        features = np.concatenate([features, usual]).astype(np.float32)
    bare = replace(party, ratings=ratings, features=features, attributes=None, weights=None)
    return _with_blanks(replace(bare, file=None, fingerprint=""), party, len(users))


def _with_blanks(party: Party, known: Party, users: int) -> Party:
    """Return a party whose last users have no attributes, and all of the weight."""
    attributes, weights, before = known.attributes, known.weights, party.ratings.user_count - users
    if attributes is not None:
        missing = np.full((users, attributes.shape[1]), np.nan, np.float32)
        attributes = np.concatenate([attributes[:before], missing])
    if weights is not None:
        weights = np.concatenate([weights[:before], np.ones(users)])
    return replace(party, attributes=attributes, weights=weights)


def _regrown(federation: Federation, parties: Sequence[Party]) -> Federation:
    """Return the federation of parties that have grown, with what is public of their new items."""
    grown = replace(federation, parties=tuple(parties))
    if grown.public_items is not None:
        grown = grown.with_public_items(grown.public_items)
    if grown.weights is None:
        return grown
    usual = np.ones(len(grown.item_ids) - len(grown.weights.items))
    return replace(grown, weights=replace(grown.weights, items=np.append(grown.weights.items, usual)))


def _more(known: Sequence[Ids], count: int, word: str) -> Ids:
    """Return ids that nobody has yet, of the same kind."""
    if all(ids.dtype.kind in "iu" for ids in known):
        first = max((int(ids.max()) for ids in known if len(ids)), default=-1) + 1
        return np.arange(first, first + count)
    taken: set[Any] = {str(each) for ids in known for each in ids.tolist()}
    free = (name for number in range(count + len(taken)) if (name := f"{word} {number}") not in taken)
    return np.array([name for name, _ in zip(free, range(count), strict=False)], np.str_)
