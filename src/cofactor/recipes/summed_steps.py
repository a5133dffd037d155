"""One step on the sum of all parties' gradients: their parts of the noise add up to one (sharp edge 27).

Gradients are counted in whole grains. Nobody computes anything from a sum that has only a part of its noise:
between two sums each party takes part in one step, and no more.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.factors.whole_rows import MOST
from cofactor.federation.door import OVERFLOW, SUM
from cofactor.federation.halves import Facts, Home, array_of
from cofactor.federation.messages import Message
from cofactor.privacy import noise
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound
from cofactor.privacy.mechanisms import Skellam
from cofactor.privacy.schedule import Release
from cofactor.privacy.tables import LARGEST_DEVIATION
from cofactor.recipes.clipping import Reach
from cofactor.recipes.local_steps import averaged, release_of, shortened
from cofactor.recipes.private_descent import PrivateDescent, WholeSums
from cofactor.recipes.shared_vectors import Gradients, Weighted
from cofactor.recipes.steps import Steps

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

_FINE = 2**13
"""Grains of the longest gradient, where noise leaves so many."""


def grain_for(longest: float, noise_multiplier: float) -> float:
    """Return what 1 stands for: a power of two, so fine that cutting to whole numbers takes little away.

    The noise of a sum must not have more grains than its tables hold.
    """
    grains = min(_FINE, LARGEST_DEVIATION / 4 / max(noise_multiplier, 1.0))
    return math.ldexp(1.0, math.floor(math.log2(longest / grains)) + 1)


def summed_release(what: str, reach: Reach, grain: float, dimension: int, steps: Steps) -> Release:
    """Return the release of a sum of gradients in each round with a step; noise is still to be scaled."""
    bound = Bound(size=reach.bound.size / grain, norm="l2", unit=reach.bound.unit)
    return Release(
        what=what,
        mechanism=Skellam(),
        bound=bound,
        dimension=dimension,
        rounds=steps.rounds,
        first=steps.first,
        slack=OVERFLOW,
    )


def item_gradients(home: Home, descent: PrivateDescent, what: str, grain: float) -> Gradients:
    """Let out a party's gradients of item vectors, with its part of the noise."""
    sums = descent.whole_sums(grain, both=False)
    most = largest(home.facts, home.facts.user_count, sums.bound)
    return Gradients(gradients=_out(home, sums.items, sums, what, most, beside=0))


def user_gradients(home: Home, descent: PrivateDescent, what: str, grain: float, rate: float) -> Gradients:
    """Let out a party's gradients of users, with its part of the noise; move its items, with all of it.

    Both are one release, of one bound: that of what a rating adds to both together.
    """
    sums = descent.whole_sums(grain, both=True)
    assert sums.users is not None
    most = largest(home.facts, home.facts.item_count, sums.bound)
    answer = Gradients(gradients=_out(home, sums.users, sums, what, most, beside=sums.items.size))
    drawn = np.zeros_like(sums.items)
    release = release_of(home, what)
    if release is not None:
        assert isinstance(release.mechanism, Skellam)
        variance = release.mechanism.noise_size(sums.bound) ** 2
        drawn = noise.skellam(sums.items.shape, variance, home.door.random)
    descent.items = moved(descent.items, sums.items + drawn, rate * sums.item_grain)
    return answer


def after_sum(vectors: Floats, total: Message, taken: int, recipe: Any, facts: Facts) -> Floats:
    """Return shared vectors after a step against the sum of gradients, or the average of what was summed."""
    if isinstance(total, Weighted):
        return averaged(total, vectors.shape)
    steps = Steps.of(recipe)
    gradients = array_of(total, "gradients", vectors.shape, SUM)
    rate = float(steps.rates(taken, taken + 1)[0]) * recipe.grain
    return projected(moved(vectors, gradients, rate), steps, facts)


def moved(vectors: Floats, gradients: Integers, rate: float) -> Floats:
    """Return vectors after a step against a sum of gradients; they are still to be projected."""
    return (vectors - rate * gradients).astype(np.float32)


def projected(vectors: NDArray[Any], steps: Steps, facts: Facts) -> Floats:
    """Return vectors of which none is too long nor, where that is asked for, negative."""
    return shortened(vectors if steps.centred else np.maximum(vectors, 0), steps.radius(facts))


def largest(facts: Facts, terms: int, bound: Bound) -> int:
    """Return the largest absolute value that a sum of so many bounded terms can have."""
    return min(terms * math.ceil(bound.size), len(facts.parties) * MOST)


def _out(home: Home, values: Integers, sums: WholeSums, what: str, most: int, *, beside: int) -> Integers:
    door, release = home.door, release_of(home, what)
    if release is None:
        return door.unprotected(values, largest_sum=most)
    assert isinstance(release.mechanism, Skellam)
    bounded = Bounded(value=values, bound=sums.bound, shortened=sums.shortened)
    return door.share(release.mechanism, bounded, what=what, largest_sum=most, beside=beside)
