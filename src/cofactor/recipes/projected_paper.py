"""The numbers of DPMF-RP as its paper counts them, beside what they are.

The paper's epsilon is a Renyi divergence of order 2 and has a constant C_0 that is not told. The number of
rounds T, also not told, is part of "the entire training process". Both have a stated value here.
"""

import math

from cofactor.config import positive, whole
from cofactor.federation.door import OVERFLOW
from cofactor.privacy.accountant import Spent, spent
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.mechanisms import PoissonBinomial
from cofactor.recipes.projected_steps import padded

PUBLISHED_ROUNDS = 60
"""T: ours."""
PUBLISHED_CONSTANT = 1.0
"""C_0: ours, the reading with the least noise. At order 2 and for coins hardly bent, 4 is what is true."""
PUBLISHED_ORDER = 2.0
"""alpha in the paper's experiments."""
LARGEST_BEND = 0.25
"""The most that theta may be."""
MOST_TRIALS = 1024


def paper_epsilon(
    *,
    theta: float,
    trials: int,
    rows: int,
    factors: int,
    participants: int,
    rounds: int = PUBLISHED_ROUNDS,
    order: float = PUBLISHED_ORDER,
    constant: float = PUBLISHED_CONSTANT,
) -> float:
    """Return epsilon by eq. 18, of all rounds together; rows are p, without padding, participants beta n."""
    bend = theta**2 / (1 - 2 * theta) ** 4
    numbers = rounds * trials * rows * factors / participants
    return constant * bend * order**2 / (order - 1) * numbers


def coins_of_label(
    epsilon: float,
    *,
    rows: int,
    factors: int,
    participants: int,
    rounds: int = PUBLISHED_ROUNDS,
    order: float = PUBLISHED_ORDER,
    constant: float = PUBLISHED_CONSTANT,
) -> PoissonBinomial:
    """Return the coins that the paper tosses where it says `epsilon`: section 4.3.1 with eq. 18."""
    positive(epsilon=epsilon)
    whole(rows=rows, factors=factors, participants=participants, rounds=rounds)
    numbers = rounds * rows * factors / participants
    bend = epsilon / (constant * order**2 / (order - 1) * numbers)
    theta = _unbent(bend)
    if theta < LARGEST_BEND:
        return PoissonBinomial(trials=1, theta=theta, participants=participants)
    at_most = LARGEST_BEND**2 / (1 - 2 * LARGEST_BEND) ** 4
    trials = min(max(1, math.floor(bend / at_most)), MOST_TRIALS)
    return PoissonBinomial(trials=trials, theta=LARGEST_BEND, participants=participants)


def true_loss(
    coins: PoissonBinomial, *, rows: int, factors: int, delta: float, rounds: int = PUBLISHED_ROUNDS
) -> Spent:
    """Return what such coins cost a user in truth, by the exact law of the sum: rows are padded here.

    Every coordinate is taken to be clipped; a user is taken to join all rounds.
    """
    event = Event(
        what="coins",
        by="a device",
        to="coordinator",
        mechanism=coins,
        bound=Bound(size=1.0, norm="max", unit="user", adjacency="replace"),
        dimension=padded(rows) * factors,
        count=rounds,
        slack=OVERFLOW,
    )
    return spent([event], delta, unit="user", adjacency="replace")


def optimal_rows(
    *,
    epsilon: float,
    items: int,
    factors: int,
    participants: int,
    theta: float = 0.0,
    rounds: int = PUBLISHED_ROUNDS,
    order: float = PUBLISHED_ORDER,
    constant: float = PUBLISHED_CONSTANT,
) -> int:
    """Return p by eq. 40, with the largest gradient that there can be (eq. 41), which is public.

    Epsilon is the paper's, of all rounds; never more rows than items.
    """
    each_round = epsilon / rounds * (1 - 2 * theta) ** 4 * (order - 1) / (constant * order**2)
    squared = 8 * participants**2 * each_round / factors**2 * (items * participants / 4)
    return min(max(1, round(math.sqrt(squared))), items)


def _unbent(bend: float) -> float:
    """Return theta with theta^2 / (1 - 2 theta)^4 = bend, or 1/4 if that is less."""
    # theta = root (1 - 2 theta)^2 is quadratic: 4 root theta^2 - (4 root + 1) theta + root = 0.
    root = math.sqrt(bend)
    half = 4 * root + 1
    # The smaller of both solutions, written so that nothing cancels where it is small.
    theta = 2 * root / (half + math.sqrt(half**2 - 16 * bend))
    return min(theta, LARGEST_BEND)
