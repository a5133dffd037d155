"""What parties of `VerticalMF` and `HorizontalMF` have in common: ratings made ready, and private steps."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped
from cofactor.federation.door import COORDINATOR, OVERFLOW, SUM
from cofactor.federation.halves import Facts, Home, array_of
from cofactor.federation.messages import Message
from cofactor.privacy.bounding import sum_of_records
from cofactor.privacy.budget import Unit
from cofactor.privacy.events import Bound
from cofactor.privacy.fixed_point import FixedPoint
from cofactor.privacy.mechanisms import Gaussian, Skellam
from cofactor.privacy.schedule import Release
from cofactor.privacy.trimming import trimmed
from cofactor.recipes.private_descent import PrivateDescent
from cofactor.recipes.shared_vectors import Total, Totals, Weighted
from cofactor.recipes.steps import Steps

MEAN = "the mean rating"
"""What the release of the mean is called in ledgers and plans."""
LEFT_OUT = "ratings"
"""What is trimmed is called, where a simulation reads how much that is."""
_MEAN_STEPS = 2**9
"""Whole numbers in half of the scale, where the mean is summed as one."""
_GRAIN = 2.0**-20
"""What 1 stands for where vectors are summed as whole numbers: far finer than their noise."""


def prepared(home: Home, most_ratings: int | None) -> Grouped:
    """Return the party's ratings by user, limited to the scale and, for each user, to so many, in secret."""
    scale, ratings = home.facts.scale, home.party.ratings.by_user
    values = np.clip(ratings.values, np.float32(scale.low), np.float32(scale.high))
    limited = Grouped(ratings.ptr, ratings.index, values)
    if most_ratings is None:
        return limited
    kept = limited.keep(trimmed(limited.ptr, most_ratings, home.door.random))
    read_trimmed(home, len(limited.values) - len(kept.values), len(limited.values))
    return kept


def read_trimmed(home: Home, left_out: int, ratings: int) -> None:
    """Let the gauge of a simulation read how many ratings were left out."""
    if home.door.gauge is not None:
        home.door.gauge.trimmed(LEFT_OUT, left_out, ratings)


def release_of(home: Home, what: str) -> Release | None:
    """Return one of the party's releases by its name; None in a run without a budget."""
    schedule = home.schedule
    return None if schedule is None else next(each for each in schedule.releases if each.what == what)


def unit_of(home: Home) -> Unit:
    """Return whose contribution is bounded."""
    return "rating" if home.schedule is None else home.schedule.releases[0].bound.unit


def descent_of(
    home: Home,
    ratings: Grouped,
    users: NDArray[Any],
    items: NDArray[Any],
    steps: Steps,
    centre: float,
    user_bias: NDArray[np.float32] | None = None,
) -> PrivateDescent:
    """Return the party's private steps, on ratings less the offset and in the units of training.

    Users' biases are taken off as well, where they stay at home.
    """
    scale, offset, size = home.facts.scale, steps.offset(centre), steps.unit_size(home.facts)
    highest = max(scale.high - offset, offset - scale.low) / size
    values = (ratings.values - np.float32(offset)) / np.float32(size)
    if user_bias is not None:
        values -= user_bias[ratings.members()]
    return PrivateDescent(
        Grouped(ratings.ptr, ratings.index, np.clip(values, -np.float32(highest), np.float32(highest))),
        users,
        items,
        clipping=steps.clipping,
        unit=unit_of(home),
        highest=highest,
        most_ratings=steps.most_ratings,
        radius=steps.radius(home.facts) if steps.centred else None,
    )


def centre_of(message: Message, facts: Facts) -> float:
    """Return the centre that the coordinator sends, brought onto the scale."""
    centre = float(array_of(message, "centre", (), COORDINATOR))
    return float(np.clip(centre, facts.scale.low, facts.scale.high))


def shortened(vectors: NDArray[Any], limit: float) -> NDArray[np.float32]:
    """Return vectors of which none is longer than the limit."""
    wide = vectors.astype(np.float64)
    # Divided first: the square of a huge number is none.
    largest = np.maximum(np.abs(wide).max(axis=1, keepdims=True), 1e-30)
    lengths = largest * np.maximum(np.linalg.norm(wide / largest, axis=1, keepdims=True), 1.0)
    short: NDArray[np.float32] = (wide * np.minimum(1.0, limit / lengths)).astype(np.float32)
    return short


def take(
    home: Home,
    descent: PrivateDescent,
    what: str,
    *,
    steps: int,
    rate_users: Any,
    rate_items: Any,
    sampling: float,
    weight: int | None = None,
) -> NDArray[Any]:
    """Take steps and let out what they made: the users' vectors if these move, else the items'.

    They are charged beforehand: what the ledger refuses is never made. With a weight, what they made is
    multiplied by it and becomes whole numbers, for a sum of all parties.
    """
    door, release, both = home.door, release_of(home, what), rate_users is not None
    mechanism = None if release is None else _gaussian(release)
    label = door.label(what)

    def make() -> NDArray[Any]:
        descent.take(
            steps,
            mechanism=mechanism,
            rate_users=rate_users,
            rate_items=rate_items,
            random=door.random,
            sampling=sampling if release is None and sampling != 1 else None,
            read=None if door.gauge is None else partial(door.gauge.made, what),
            **label,
        )
        vectors = descent.users if both else descent.items
        return (
            vectors
            if weight is None
            else np.rint(weight * vectors.astype(np.float64) / _GRAIN).astype(np.int64)
        )

    # No vector is longer than the radius, and the weights of all parties are users or items.
    largest = None if weight is None else math.ceil(_total_weight(home.facts) * descent.radius / _GRAIN)
    event = descent.event(mechanism, both, door.random, **label)
    if event is None:
        return door.unprotected(make(), largest_sum=largest)
    return door.made(event.times(steps), make, largest_sum=largest)


def weight_of(home: Home) -> int:
    """Return how much a party's vectors count in an average: as many users, or items, as it has."""
    facts, place = home.facts, home.facts.place(home.party.name)
    return facts.items[place] if facts.split == "vertical" else facts.users[place]


def weighted(home: Home, vectors: NDArray[Any]) -> Weighted:
    """Return the answer to a sum of vectors, with the weight that they were multiplied by."""
    weight = np.array([weight_of(home)], np.int64)
    return Weighted(vectors=vectors, weight=home.door.public(weight, largest_sum=_total_weight(home.facts)))


def averaged(total: Weighted, shape: Sequence[int]) -> NDArray[np.float32]:
    """Return the average of the vectors that were summed with their weights."""
    vectors, weight = array_of(total, "vectors", shape, SUM), array_of(total, "weight", (1,), SUM)
    return np.asarray(vectors * (_GRAIN / max(int(weight[0]), 1)), np.float32)


def _total_weight(facts: Facts) -> int:
    return facts.item_count if facts.split == "vertical" else facts.user_count


def released_total(home: Home, ratings: Grouped, unit: Unit, *, summed: bool) -> Total | Totals:
    """Let out the sum of all ratings, or of all users' means, less the middle of the scale.

    A rating that is taken away changes its user's mean by no more than half of the scale, either. Where it
    is `summed` with those of other parties, in whole numbers, they share its noise.
    """
    values = (ratings.values.astype(np.float64) - _middle(home.facts))[:, None]
    if _by_users(home.facts, unit):
        rated = ratings.sizes > 0
        values = np.add.reduceat(values, ratings.ptr[:-1][rated]) / ratings.sizes[rated, None]
    if summed:
        return _shared_total(home, values, unit)
    release = release_of(home, MEAN)
    if release is None:
        return Total(total=home.door.unprotected(values.sum(axis=0)))
    bounded = sum_of_records(values, limit=release.bound.size, unit=unit)
    return Total(total=home.door.release(release.mechanism, bounded, what=MEAN))


def _shared_total(home: Home, values: NDArray[np.float64], unit: Unit) -> Totals:
    """Let out the sum in whole numbers, and how many ratings or users it is of."""
    door, facts, release = home.door, home.facts, release_of(home, MEAN)
    bounded = _points(facts).total(values, limit=_half(facts), random=door.random, unit=unit)
    own, in_all = _count(facts, unit, home.party.name), sum(_count(facts, unit, p) for p in facts.parties)
    most = in_all * math.ceil(bounded.bound.size)
    if release is None:
        total = door.unprotected(bounded.value, largest_sum=most)
    else:
        assert isinstance(release.mechanism, Skellam)
        total = door.share(release.mechanism, bounded, what=MEAN, largest_sum=most)
    return Totals(total=total, count=door.public(np.array([own], np.int64), largest_sum=in_all))


def mean_release(facts: Facts, unit: Unit, steps: Steps, *, summed: bool = False) -> Release:
    """Return the release of the mean, with about its share of the budget; summed, parties share its noise."""
    multiplier = 1 / (steps.sampling * math.sqrt(steps.mean_share * steps.total))
    size = float(_points(facts).whole_limit(_half(facts), 1)) if summed else _half(facts)
    return Release(
        what=MEAN,
        mechanism=Skellam(noise_multiplier=multiplier) if summed else Gaussian(noise_multiplier=multiplier),
        bound=Bound(size=size, norm="l2", unit=unit),
        dimension=1,
        rounds=1,
        slack=OVERFLOW if summed else None,
    )


def mean_of(replies: Mapping[str, Message], facts: Facts, unit: Unit) -> float:
    """Return the mean rating, or the mean of the users' means, that the parties' sums tell."""
    if SUM in replies:
        total = float(array_of(replies[SUM], "total", (1,), SUM)[0]) * _points(facts).step
        count = int(array_of(replies[SUM], "count", (1,), SUM)[0])
    else:
        total = sum(float(array_of(reply, "total", (1,), party)[0]) for party, reply in replies.items())
        count = sum(_count(facts, unit, party) for party in replies)
    return float(np.clip(_middle(facts) + total / max(count, 1), facts.scale.low, facts.scale.high))


def _count(facts: Facts, unit: Unit, party: str) -> int:
    return (facts.users if _by_users(facts, unit) else facts.ratings)[facts.place(party)]


def _by_users(facts: Facts, unit: Unit) -> bool:
    """Say whether users' means are summed: there are as many as users, however many ratings they have."""
    return unit == "user" or facts.searched


def _points(facts: Facts) -> FixedPoint:
    """Return how a sum of ratings becomes a whole number."""
    return FixedPoint(step=_half(facts) / _MEAN_STEPS)


def _half(facts: Facts) -> float:
    return (facts.scale.high - facts.scale.low) / 2


def _gaussian(release: Release) -> Gaussian:
    assert isinstance(release.mechanism, Gaussian)
    return release.mechanism


def _middle(facts: Facts) -> float:
    return (facts.scale.low + facts.scale.high) / 2
