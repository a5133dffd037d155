"""How a sketch is sized, from public numbers: where registers are clipped, and how many phantoms there are.

More phantoms are more private on any data: who has registers can make more up, and clip again. Fewer are more
accurate. Where registers are clipped matters little to either, within a step or two.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from dp_accounting import rdp

from cofactor.cluster.estimates import deviation
from cofactor.errors import Refused
from cofactor.privacy.accountant import spent
from cofactor.privacy.bounding import MEMBER
from cofactor.privacy.events import Event
from cofactor.privacy.pairs import partition_sketch
from cofactor.privacy.sketches import PartitionSketch

SPREAD = 1.04
"""rho: the relative deviation of a harmonic mean, times the root of the rows. The thesis has 0.649."""

_WINDOW = 8
"""How far apart the ends of the clip are. From 6 to 10, tables are equally good to within a tenth."""
_LOWEST, _HIGHEST = 2, 24
"""Between which the lower end lies: in sight of clusters of a few users, and of many millions."""
_MOST_PHANTOMS = 2**30
_MOST_LOCAL_CLUSTERS = 64
_ORDERS = (1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512)


@lru_cache(maxsize=64)
def chosen(
    *, rows: int, pairs: int, users: int, local_clusters: int, epsilon: float, delta: float
) -> PartitionSketch:
    """Return the sketch of two parties, of all such, that tells the size of an average combination best.

    One for each of so many pairs of parties keeps, all together, (epsilon, delta) exactly.
    """
    candidates = [
        _with_phantoms(
            PartitionSketch(rows=rows, phantoms=1, low=low, high=low + _WINDOW), pairs, epsilon, delta
        )
        for low in range(_LOWEST, _HIGHEST + 1)
    ]
    possible = [sketch for sketch in candidates if sketch is not None]
    best = min(possible, key=lambda sketch: deviation(sketch, users, local_clusters), default=None)
    # The quick bound only finds where to look: what is promised, the accountant says.
    enough = None if best is None else _enough(best, pairs, epsilon, delta)
    if enough is None:
        raise Refused(
            f"no number of phantoms keeps epsilon {epsilon:g} and delta {delta:g} with sketches of {rows:,} "
            f"rows for {pairs} pairs of parties. Give a larger budget, or use SecureTable()."
        )

    def affordable(phantoms: int) -> bool:
        return cost(replace(enough, phantoms=phantoms), pairs, delta) <= epsilon

    return replace(enough, phantoms=_fewest(affordable, enough.phantoms))


def cost(sketch: PartitionSketch, pairs: int, delta: float) -> float:
    """Return the epsilon that sketches of so many pairs of parties cost together, by the exact law."""
    event = Event(
        what="sketches", by="all", to="coordinator", mechanism=sketch, bound=MEMBER, count=pairs, joint=True
    )
    return spent([event], delta, unit="user", adjacency="empty").epsilon


def usual_local_clusters(
    *, users: int, clusters: int, parties: int, epsilon: float, delta: float, rows: int
) -> int:
    """Return how many local clusters a party should find, by the rule of the thesis for estimates used here.

    As many as clusters are wanted, but no more than it takes for an average combination to be as small as two
    deviations of its estimate, and enough to make `clusters` combinations. `epsilon` and `delta` are those of
    all sketches together.
    """
    pairs = parties * (parties - 1) // 2
    sketch = chosen(
        rows=rows, pairs=pairs, users=users, local_clusters=clusters, epsilon=epsilon, delta=delta
    )
    overwhelmed = _overwhelmed(users, lambda many: deviation(sketch, users, many))
    return max(min(overwhelmed, clusters), _least(clusters, parties))


def published_local_clusters(
    *,
    users: int,
    clusters: int,
    parties: int,
    epsilon: float,
    delta: float,
    rows: int,
    spread: float = SPREAD,
) -> int:
    """Return the same as published (section 5.4.2), for unions by harmonic means: max(k_0, k^(1/S)).

    By Theorem 5.3.3 with s = 2. `epsilon` and `delta` are those of one party's sketch, epsilon_2 and delta_2.
    """

    def noise(many: int) -> float:
        seen = spread * (users - users / many**2) / math.sqrt(rows)
        return seen + 8 * spread * (many - 1) * math.sqrt(math.log(1 / delta)) / epsilon

    return max(_overwhelmed(users, noise), _least(clusters, parties))


def _overwhelmed(users: int, noise: Callable[[int], float]) -> int:
    """Return k_0, the smallest number of local clusters with 2 sigma >= n / k_0^2."""
    found = (many for many in range(1, _MOST_LOCAL_CLUSTERS) if 2 * noise(many) >= users / many**2)
    return next(found, _MOST_LOCAL_CLUSTERS)


def _least(clusters: int, parties: int) -> int:
    """Return k^(1/S), rounded up: with fewer there are not as many combinations as clusters."""
    return next(many for many in range(1, clusters + 1) if many**parties >= clusters)


def _with_phantoms(
    sketch: PartitionSketch, pairs: int, epsilon: float, delta: float
) -> PartitionSketch | None:
    """Return it with phantoms that keep epsilon by a Renyi bound, quick and a bit high; None if none do."""

    def affordable(phantoms: int) -> bool:
        curve = partition_sketch(sketch.parties, phantoms, sketch.low, sketch.high).renyi(_ORDERS)
        return bool(rdp.compute_epsilon(_ORDERS, curve * sketch.rows * pairs, delta)[0] <= epsilon)

    most = min(_MOST_PHANTOMS, 2 ** (sketch.high + 6))
    return replace(sketch, phantoms=_fewest(affordable, most, 50)) if affordable(most) else None


def _enough(sketch: PartitionSketch, pairs: int, epsilon: float, delta: float) -> PartitionSketch | None:
    """Return it with phantoms doubled until the accountant agrees; None if it never does."""
    while sketch.phantoms <= _MOST_PHANTOMS:
        if cost(sketch, pairs, delta) <= epsilon:
            return sketch
        sketch = replace(sketch, phantoms=2 * sketch.phantoms)
    return None


def _fewest(enough: Callable[[int], bool], most: int, parts: int = 200) -> int:
    """Return the least number that is enough, or one larger by at most so small a part; `most` is enough."""
    high = most
    while high > 1 and enough(high // 2):
        high //= 2
    low = high // 2
    while high - low > max(1, high // parts):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
