"""`Federation`: parties that train together, and how their ratings relate."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import get_args

import numpy as np

from cofactor.config import one_of, whole
from cofactor.crypto.psi import Rule
from cofactor.data import split as splits
from cofactor.data.attributes import UserAttributes
from cofactor.data.coding import Coding
from cofactor.data.ids import Ids
from cofactor.data.numbering import number
from cofactor.data.partition import Devices
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import ConfigError, DataError
from cofactor.federation.aligning import Align, aligned, joined, only_common
from cofactor.federation.attributes import check_attributes, coding_of, shared_out
from cofactor.federation.finding import Alignment, Among
from cofactor.federation.halves import Facts
from cofactor.federation.party import Party
from cofactor.federation.splits import Split
from cofactor.federation.weights import PublicWeights, own_weights
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.weights import Weights

HAPPENED = Scale(0, 1)
"""The scale of what only tells that something happened: 1 says so."""
_ROOM = 0.25
"""Part of the scale by which the ratings of a party may stay away from its ends."""


@dataclass(frozen=True, eq=False)
class Federation:
    """Parties that share users or items. Make one with `horizontal`, `vertical` or `on_device`."""

    kind: Split
    parties: tuple[Party, ...]
    """All with the same numbering of what they share: items if horizontal, users if vertical."""
    scale: Scale
    """The lowest and the highest rating that there can be: public, agreed on beforehand."""
    simulated: bool = False
    """Whether one file was dealt out to make-believe parties."""
    scale_stated: bool = False
    """Whether the scale was named; otherwise it was read off the parties' ratings."""
    ratings_each: int | None = None
    """About how many ratings a device has: a public guess, so that nobody tells how many it has."""
    public_items: PublicItems | None = None
    """What was declared to be public about the items: see `with_public_items`."""
    attributes: Coding | None = None
    """How the users' attributes became numbers: public. See `with_user_attributes`."""
    weights: PublicWeights | None = None
    """What is public of weights. See `with_weights`."""
    alignment: Alignment | None = None
    """How the users in common were found, and who learned what by it; None where ids are public."""

    @classmethod
    def horizontal(
        cls, parties: Sequence[Party], *, scale: Scale | None = None, simulated: bool = False
    ) -> "Federation":
        """Bring together parties that hold different users and the same items.

        The catalogue of items is public: all parties know all ids. Equal user ids at two parties are taken
        to be different people.
        """
        return cls(
            "horizontal", aligned(parties, "item"), _scale(parties, scale), simulated, scale is not None
        )

    @classmethod
    def vertical(
        cls,
        parties: Sequence[Party],
        *,
        align: Align = "union",
        among: Among = "leader",
        rule: Rule = "exact",
        scale: Scale | None = None,
        simulated: bool = False,
    ) -> "Federation":
        """Bring together parties that hold different items of the same users.

        With "union" no rating is lost, and every party learns every user id of every other: who is missing at
        a party is an empty row there. With "psi" the parties find the users whom all have (see
        `find_common` for `among` and `rule`) and learn no others; ratings of others stay out. Equal item ids
        at two parties are different items.
        """
        one_of(get_args(Align), align=align)
        if align == "union":
            shared, found = aligned(parties, "user"), None
        else:
            shared, found = only_common(parties, among=among, rule=rule)
        return cls("vertical", shared, _scale(shared, scale), simulated, scale is not None, alignment=found)

    @classmethod
    def on_device(
        cls,
        devices: Ratings | Sequence[Party],
        *,
        scale: Scale | None = None,
        name: str = "devices",
        ratings_each: int = 50,
    ) -> "Federation":
        """Bring devices together, each with one user's ratings. The catalogue of items is public.

        `ratings_each` is about how many ratings a device has: a public guess, not read off the data. Ratings
        of many users make a simulation: every user is a device, and one participant, called `name`, answers
        for all of them; how many ratings there are in all is public then.
        """
        if isinstance(devices, str) or (scale is not None and not isinstance(scale, Scale)):
            raise ConfigError("devices are Ratings or a list of Party, and a scale is Scale(1, 5).")
        if isinstance(devices, Ratings):
            cohort = Party(name=name, ratings=devices)
            return cls("on-device", (cohort,), _scale([cohort], scale), True, scale is not None)
        crowded = next((party for party in devices if party.ratings.user_count != 1), None)
        if crowded is not None:
            raise DataError(
                f"{crowded.name} has ratings of {crowded.ratings.user_count:,} users, and a device has those "
                "of one. Parties of many users make a horizontal federation."
            )
        whole(ratings_each=ratings_each)
        return cls(
            "on-device",
            aligned(devices, "item"),
            _scale(devices, scale),
            scale_stated=scale is not None,
            ratings_each=ratings_each,
        )

    @property
    def devices(self) -> Devices:
        """The users' own devices, of a simulation of them."""
        if not self.facts.cohort:
            raise ConfigError("these parties are not simulated devices. Look at parties.")
        return Devices(self.parties[0].ratings)

    @cached_property
    def facts(self) -> Facts:
        """What everybody knows about it."""
        shared_users = self.kind == "vertical"
        first = self.parties[0].ratings
        widths = {0 if p.features is None else p.features.shape[1] for p in self.parties}
        if len(widths) > 1:
            raise DataError(
                "parties have different numbers of item features. Give all of them the same columns."
            )
        check_attributes(self.attributes, self.parties)
        return Facts(
            split=self.kind,
            parties=tuple(party.name for party in self.parties),
            users=tuple(party.ratings.user_count for party in self.parties),
            items=tuple(party.ratings.item_count for party in self.parties),
            ratings=tuple(self.ratings_each or len(party.ratings) for party in self.parties),
            scale=self.scale,
            shared_ids=first.user_ids if shared_users else first.item_ids,
            catalogue=self.item_ids,
            features=widths.pop(),
            public_items=self.public_items,
            attributes=self.attributes,
            weights=self.weights,
            implicit=self.implicit,
            searched=self.alignment is not None,
        )

    def with_public_items(self, items: PublicItems) -> "Federation":
        """Declare numbers about the items to be public, and give every party those about its own.

        Items that are not described get the mean of every column.
        """
        parties = [
            replace(party, features=items.matching_rows(party.ratings.item_ids, owner=party.name))
            for party in self.parties
        ]
        return replace(self, parties=tuple(parties), public_items=items)

    def with_user_attributes(self, attributes: UserAttributes | Mapping[str, UserAttributes]) -> "Federation":
        """Give every party what is known about its own users: private, like their ratings.

        One table may serve all parties, or each has its own by name; the coding, which is public, must be the
        same. Users who are in no table have no attributes.
        """
        own = shared_out(attributes, self.kind, self.parties)
        parties = [replace(party, attributes=own[party.name]) for party in self.parties]
        return replace(self, parties=tuple(parties), attributes=coding_of(attributes))

    def with_weights(
        self, users: Weights, items: Weights | None = None, *, budget: PersonalBudget | None = None
    ) -> "Federation":
        """Give every party the weights of its own users, private like ratings, and all those of items.

        A party that has weights of its own (`Party.with_weights`) keeps them: of `users`, only the policy is
        for it. `train` does all of that for a `PersonalBudget`.
        """
        if self.kind == "vertical":
            raise ConfigError("weights are for federations in which every user is at one party.")
        parties = own_weights(users, self.parties)
        public = PublicWeights.of(users, items or Weights.equal(), self.item_ids, budget)
        return replace(self, parties=parties, weights=public)

    def at_two_parties(self) -> int:
        """Return how many ids of users occur at more than one party, where users are not shared."""
        if self.kind == "vertical":
            return 0
        _, places = number(*(party.ratings.user_ids for party in self.parties))
        return int((np.bincount(places) > 1).sum())

    def party(self, name: str) -> Party:
        """Return a party by its name."""
        for party in self.parties:
            if party.name == name:
                return party
        known = ", ".join(party.name for party in self.parties)
        raise ConfigError(f"there is no party {name!r}. There are {known}.")

    def divided(
        self, divide: Callable[[Ratings], tuple[Ratings, Ratings]]
    ) -> tuple["Federation", "Federation"]:
        """Divide every party's ratings in two, such as for training and for testing."""
        pairs = [divide(party.ratings) for party in self.parties]
        halves = [
            tuple(party.with_ratings(pair[side]) for party, pair in zip(self.parties, pairs, strict=True))
            for side in (0, 1)
        ]
        return replace(self, parties=halves[0]), replace(self, parties=halves[1])

    def split(self, test_fraction: float = 0.1, *, seed: int = 0) -> tuple["Federation", "Federation"]:
        """Hold back a random fraction of each user's ratings at each party; returns (train, test)."""
        return self.divided(lambda ratings: splits.by_fraction(ratings, test_fraction, seed=seed))

    def pooled(self) -> Ratings:
        """Return all ratings in one place, which no real federation can: for comparison only.

        Users of a horizontal federation, and items of a vertical one, are named after their party where ids
        occur at more than one.
        """
        users, items = self.user_ids, self.item_ids
        apart = self.kind == "vertical"
        starts = np.cumsum(
            [0, *(len(p.ratings.item_ids if apart else p.ratings.user_ids) for p in self.parties)]
        )
        rows = [
            p.ratings.users if apart else p.ratings.users + at
            for p, at in zip(self.parties, starts, strict=False)
        ]
        columns = [
            p.ratings.items + at if apart else p.ratings.items
            for p, at in zip(self.parties, starts, strict=False)
        ]
        return Ratings.from_rows(
            np.concatenate(rows),
            np.concatenate(columns),
            np.concatenate([p.ratings.values for p in self.parties]),
            user_ids=users,
            item_ids=items,
            scale=None if self.implicit else self.scale,
        )

    @property
    def implicit(self) -> bool:
        """Whether ratings only tell that something happened."""
        return all(party.ratings.implicit for party in _telling(self.parties))

    @cached_property
    def user_ids(self) -> Ids:
        """All users, party by party unless they are shared."""
        if self.kind == "vertical":
            return self.parties[0].ratings.user_ids
        return joined([(party.name, party.ratings.user_ids) for party in self.parties])

    @cached_property
    def item_ids(self) -> Ids:
        """All items, party by party unless they are shared."""
        if self.kind != "vertical":
            return self.parties[0].ratings.item_ids
        return joined([(party.name, party.ratings.item_ids) for party in self.parties])


def _scale(parties: Sequence[Party], scale: Scale | None) -> Scale:
    telling = _telling(parties)
    without = [party.name for party in telling if party.ratings.implicit]
    if len(without) == len(telling):
        return HAPPENED
    if without:
        raise DataError(
            f"{without[0]}: its rows only tell that something happened, and other parties have ratings with "
            "values. Bring them to one form: ratings.without_values(), or --implicit."
        )
    known = [party.ratings.scale for party in parties if party.ratings.scale is not None]
    agreed = scale or _common(parties, known)
    for party in parties:
        own = party.ratings.scale
        if own is not None and (own.low < agreed.low or own.high > agreed.high):
            raise DataError(
                f"{party.name} rates from {own.low:g} to {own.high:g}, beyond the agreed {agreed}. "
                "Name the right scale."
            )
    return agreed


def _telling(parties: Sequence[Party]) -> Sequence[Party]:
    """Return those with ratings: who has none says nothing of their form, and must show nowhere."""
    return [party for party in parties if len(party.ratings)] or parties


def _common(parties: Sequence[Party], known: Sequence[Scale]) -> Scale:
    """Return the scale that covers all parties'; refuse scales that can hardly be the same."""
    widest = Scale(min(s.low for s in known), max(s.high for s in known))
    room = _ROOM * (widest.high - widest.low)
    if any(s.low > widest.low + room or s.high < widest.high - room for s in known):
        own = [(party.name, party.ratings.scale) for party in parties]
        ranges = ", ".join(f"{name} {s.low:g} to {s.high:g}" for name, s in own if s is not None)
        raise DataError(
            f"the parties rate on different scales: {ranges}. Bring them to one, or name it: scale=Scale(1, "
            "5) or --scale 1:5."
        )
    return widest
