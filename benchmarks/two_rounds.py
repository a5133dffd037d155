"""What two rounds of noise really spend, and what layers keep: python -m benchmarks.two_rounds prints tables.

The published variant (Li et al. 2022, Theorem 5) lets the coordinator combine what it sees in both rounds.
Noise in layers keeps what was promised; the second table says at what price.
"""

import math
from collections.abc import Iterable

from cofactor.privacy.layers import Layers
from cofactor.privacy.two_rounds import least_variance, really_spent

DELTA, EPSILONS = 1e-6, (0.5, 1.0, 2.0, 5.0, 10.0)
PATTERNS = ((0.3, 0.0), (0.3, 0.2), (0.3, 0.3), (0.6, 0.0), (0.6, 0.3), (0.6, 0.5), (0.6, 0.6))
FEDERATIONS = ((40, 0.3, 0.0), (40, 0.3, 0.1), (1_000, 0.3, 0.1), (1_000, 0.6, 0.1), (100_000, 0.3, 0.1))


def main() -> None:
    print(f"Published: the epsilon that is really spent, at delta {DELTA:g}\n")
    claims = (f"claimed {epsilon:g}" for epsilon in EPSILONS)
    table(("may drop out", "dropped out", "noise left", *claims), map(published, PATTERNS))
    print("\nIn layers: the variance that stays, relative to what is promised\n")
    heads = ("parties", "may drop out", "collude", "layers", "least", "most", "before removal", "in the sum")
    table(heads, map(layered, FEDERATIONS))


def published(pattern: tuple[float, float]) -> tuple[str, ...]:
    omega, dropped = pattern
    left = (1 - dropped) * least_variance(1 / (1 - omega), 1 / (1 - dropped))
    spent = (f"{really_spent(each, DELTA, omega=omega, dropped=dropped):.2f}" for each in EPSILONS)
    return f"{omega:.0%}", f"{dropped:.0%}", f"{left:.0%}", *spent


def layered(federation: tuple[int, float, float]) -> tuple[str, ...]:
    parties, omega, gamma = federation
    # The small part taken off is for 700.0000000001 of 1,000.
    layers = Layers(
        parties=parties,
        fewest=math.ceil((1 - omega) * parties - 1e-6),
        colluding=max(1, math.ceil(gamma * parties - 1e-6)),
    )
    counts = range(layers.fewest, parties + 1)
    stays = [(count - layers.colluding) * layers.remaining(count, 1.0) for count in counts]
    added = parties * layers.remaining(layers.fewest, 1.0)
    cells = (f"{parties:,}", f"{omega:.0%}", f"{layers.colluding:,}", f"{len(layers.grid)}")
    spread = (min(stays), max(stays), added, layers.together(parties, parties, 1.0))
    return *cells, *(f"{each:.3f}" for each in spread)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    print(f"| {' | '.join(head)} |\n|{'---:|' * len(head)}")
    for cells in rows:
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
