"""What the papers did to their data before they used it."""

from collections.abc import Iterable

import numpy as np

from cofactor.config import whole
from cofactor.data.ids import Id
from cofactor.data.ratings import Ratings
from cofactor.randomness import Seeds


def active_users(ratings: Ratings, at_least: int = 20) -> Ratings:
    """Keep the users with at least so many ratings, and the items that are then still rated.

    HDPMF, section 5, for all its data sets; MovieLens 100K, 1M and 10M come so from the publisher.
    """
    whole(at_least=at_least)
    return ratings.select(users=ratings.by_user.sizes >= at_least).compact()


def first_halves(ratings: Ratings) -> Ratings:
    """Keep the first half of the users and the first half of the items, in the order of their ids.

    DPMF-RP, section 6.1.1 and appendix G: "half of the 10M MovieLens dataset (ML5M)", 34,939 users and
    5,338 films, half of each number, with 4,327,872 ratings. The paper does not say which halves; the first
    ones are our reading. Random halves of both would leave about 2.5 million ratings.
    """
    users, items = ratings.user_count // 2, ratings.item_count // 2
    return ratings.select(users=slice(0, users), items=slice(0, items))


def yelp_subset(
    ratings: Ratings, *, users: int = 10_000, items: int = 30_000, at_least: int = 10, seed: int = 0
) -> Ratings:
    """Keep the most rated items, and of their users with at least so many ratings a random choice.

    DPMF-RP, section 6.1.1 and appendix G: "a subset of the Yelp dataset with ratings from 10,000 users and
    30,000 restaurants", 308,354 ratings. The paper does not say which: the rule and `at_least` are ours.
    """
    whole(users=users, items=items, at_least=at_least)
    most_rated = np.argsort(-ratings.by_item.sizes, kind="stable")[:items]
    kept = ratings.select(items=np.sort(most_rated))
    active = np.flatnonzero(kept.by_user.sizes >= at_least)
    chosen = Seeds(seed).generator("yelp subset").permutation(active)[:users]
    return kept.select(users=np.sort(chosen))


def libimseti_core(ratings: Ratings, *, at_least: int = 20) -> Ratings:
    """Keep users and profiles that have at least so many ratings among each other.

    PVLDB'22, section 4.3 (thesis, section 4.4.3), prepares LibimSeTi "with the same process as" Shin et
    al. 2018 (IEEE TKDE 30(9)) without saying what it is. Our reading: the publisher already left out users
    with fewer than 20 ratings; the same is asked of profiles, and both are repeated until nothing changes.
    """
    whole(at_least=at_least)
    while True:
        kept = ratings.select(items=ratings.by_item.sizes >= at_least)
        kept = kept.select(users=kept.by_user.sizes >= at_least)
        if len(kept) == len(ratings):
            return kept.compact()
        ratings = kept


def only_items(ratings: Ratings, items: Iterable[Id]) -> Ratings:
    """Keep the ratings of the given items; users keep their numbers.

    PrivMVMF, section VI.A: films that the tag genome describes, 914,676 of the ratings of MovieLens 1M.
    """
    wanted = {str(item) for item in items}
    return ratings.select(items=np.array([str(item) in wanted for item in ratings.item_ids.tolist()], bool))
