"""Ways to divide ratings among parties: by user, by item, or one user each. No rating is lost or doubled."""

from collections import Counter
from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from cofactor.config import not_negative, whole
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, DataError
from cofactor.randomness import Seeds

NO_CATEGORY = "no category"


def horizontal(ratings: Ratings, parties: int, *, skew: float = 0.0, seed: int = 0) -> list[Ratings]:
    """Deal the users out at random; all parties keep the numbering of the items.

    With skew 0 the parties are as equal as can be. Otherwise their shares of the users are lognormal:
    skew is the standard deviation of a share's logarithm (1 is uneven, 2 has one or two giants).
    """
    groups = _deal(ratings.user_count, parties, skew, "users", seed)
    return [ratings.select(users=rows) for rows in groups]


def vertical(ratings: Ratings, parties: int, *, skew: float = 0.0, seed: int = 0) -> list[Ratings]:
    """Deal the items out at random; all parties keep the users' numbering. `skew` is as in `horizontal`."""
    groups = _deal(ratings.item_count, parties, skew, "items", seed)
    return [ratings.select(items=rows) for rows in groups]


def by_category(ratings: Ratings, categories: Sequence[Sequence[str]]) -> dict[str, Ratings]:
    """Make each category a party that holds its items; all parties keep the numbering of the users.

    `categories` lists those of each item, in the order of `ratings.item_ids`. An item of several
    categories goes to the one with the fewest items (PVLDB 2022, section 4.3), between equals to the first
    by name; one of none goes to the party "no category". Categories left without items are left out.
    """
    if len(categories) != ratings.item_count:
        raise DataError(
            f"categories lists {len(categories):,} items but the ratings have {ratings.item_count:,}. "
            "Give one entry for each of ratings.item_ids, in that order."
        )
    owner = np.array(_rarest(categories))
    return {str(name): ratings.select(items=np.flatnonzero(owner == name)) for name in np.unique(owner)}


def on_device(ratings: Ratings) -> "Devices":
    """Make each user a party. The parties are views made when asked for: no rating is copied."""
    return Devices(ratings)


class Devices(Sequence[Ratings]):
    """One party a user, in the order of the users; a slice is again such a sequence."""

    def __init__(self, ratings: Ratings) -> None:
        """Share the ratings with the views to come."""
        self._ratings = ratings

    def __len__(self) -> int:
        return self._ratings.user_count

    @overload
    def __getitem__(self, which: int) -> Ratings: ...
    @overload
    def __getitem__(self, which: slice) -> "Devices": ...
    def __getitem__(self, which: int | slice) -> "Ratings | Devices":
        if isinstance(which, slice):
            return Devices(self._ratings.select(users=which))
        row = range(len(self))[which]
        return self._ratings.select(users=slice(row, row + 1))


def _rarest(categories: Sequence[Sequence[str]]) -> list[str]:
    """Return the category with the fewest items, for each item among its own."""
    for row, names in enumerate(categories):
        if isinstance(names, str):
            raise DataError(
                f'item number {row + 1} has the category "{names}"; give a list such as ["{names}"].'
            )
    sizes = Counter(name for names in categories for name in set(names))
    return [min(names, key=lambda name: (sizes[name], name), default=NO_CATEGORY) for names in categories]


def _deal(count: int, parties: int, skew: float, side: str, seed: int) -> list[NDArray[np.int64]]:
    """Divide the numbers below count at random among the parties; each gets at least one."""
    whole(parties=parties)
    not_negative(skew=skew)
    if parties > count:
        raise ConfigError(
            f"{count:,} {side} cannot be divided among {parties:,} parties. Ask for fewer parties."
        )
    random = Seeds(seed).generator(f"partition {side}")
    logarithms = skew * random.standard_normal(parties)
    shares = np.exp(logarithms - logarithms.max())
    bounds = np.cumsum(_sizes(shares / shares.sum(), count))[:-1]
    return [np.sort(rows) for rows in np.split(random.permutation(count), bounds)]


def _sizes(shares: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Round shares of a count so that they add up: one each, and the rest by largest remainder."""
    ideal = shares * (count - len(shares))
    sizes = ideal.astype(np.int64)
    left = count - len(shares) - sizes.sum()
    sizes[np.argsort(sizes - ideal, kind="stable")[:left]] += 1
    return sizes + 1
