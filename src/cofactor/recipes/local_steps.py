"""What parties of `VerticalMF` and `HorizontalMF` have in common: ratings made ready, and private steps."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped
from cofactor.federation.door import COORDINATOR
from cofactor.federation.halves import Facts, Home, array_of
from cofactor.federation.messages import Message
from cofactor.privacy.bounding import sum_of_records
from cofactor.privacy.budget import Unit
from cofactor.privacy.events import Bound
from cofactor.privacy.mechanisms import Gaussian
from cofactor.privacy.schedule import Release
from cofactor.privacy.trimming import trimmed
from cofactor.recipes.private_descent import PrivateDescent
from cofactor.recipes.steps import Steps

MEAN = "the mean rating"
"""What the release of the mean is called in ledgers and plans."""


def prepared(home: Home, most_ratings: int | None) -> Grouped:
    """Return the party's ratings by user, limited to the scale and, for each user, to so many, in secret."""
    scale, ratings = home.facts.scale, home.party.ratings.by_user
    values = np.clip(ratings.values, np.float32(scale.low), np.float32(scale.high))
    limited = Grouped(ratings.ptr, ratings.index, values)
    if most_ratings is None:
        return limited
    return limited.keep(trimmed(limited.ptr, most_ratings, home.door.random))


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
) -> NDArray[Any]:
    """Take steps and let out what they made: the users' vectors if these move, else the items'.

    They are charged beforehand: what the ledger refuses is never made.
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
            **label,
        )
        return descent.users if both else descent.items

    event = descent.event(mechanism, both, door.random, **label)
    return door.unprotected(make()) if event is None else door.made(event.times(steps), make)


def released_total(home: Home, ratings: Grouped, unit: Unit) -> NDArray[Any]:
    """Let out the sum of all ratings, or of all users' means, less the middle of the scale."""
    values = (ratings.values.astype(np.float64) - _middle(home.facts))[:, None]
    if unit == "user":
        rated = ratings.sizes > 0
        values = np.add.reduceat(values, ratings.ptr[:-1][rated]) / ratings.sizes[rated, None]
    release = release_of(home, MEAN)
    if release is None:
        return home.door.unprotected(values.sum(axis=0))
    bounded = sum_of_records(values, limit=release.bound.size, unit=unit)
    return home.door.release(release.mechanism, bounded, what=MEAN)


def mean_release(facts: Facts, unit: Unit, steps: Steps) -> Release:
    """Return the release of the mean, with about its share of the budget."""
    return Release(
        what=MEAN,
        mechanism=Gaussian(noise_multiplier=1 / (steps.sampling * math.sqrt(steps.mean_share * steps.total))),
        bound=Bound(size=(facts.scale.high - facts.scale.low) / 2, norm="l2", unit=unit),
        dimension=1,
        rounds=1,
    )


def mean_of(replies: Mapping[str, Message], facts: Facts, unit: Unit) -> float:
    """Return the mean rating, or the mean of the users' means, that the parties' sums tell."""
    counts = facts.ratings if unit == "rating" else facts.users
    totals = [float(array_of(reply, "total", (1,), party)[0]) for party, reply in replies.items()]
    count = sum(counts[facts.place(party)] for party in replies)
    mean = _middle(facts) + sum(totals) / max(count, 1)
    return float(np.clip(mean, facts.scale.low, facts.scale.high))


def _gaussian(release: Release) -> Gaussian:
    assert isinstance(release.mechanism, Gaussian)
    return release.mechanism


def _middle(facts: Facts) -> float:
    return (facts.scale.low + facts.scale.high) / 2
