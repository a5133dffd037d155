"""What several parties' releases cost a user they share: python -m benchmarks.composition prints the table.

Every party calibrates its own noise to (epsilon, delta) for 1,000 Poisson-sampled Gaussian steps. Theorem 4
of Li et al. (2022) takes the root of the sum of the squares of the parties' epsilons, at the delta of one.
"""

import math

from cofactor.privacy.accountant import spent
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.events import Bound
from cofactor.privacy.mechanisms import SampledGaussian
from cofactor.privacy.schedule import Release, Schedule

STEPS, SAMPLING, DELTA = 1_000, 0.01, 1e-6
PARTIES, EPSILONS = (2, 5, 10), (0.5, 1.0, 2.0)

HEAD = """\
| each party | parties | Theorem 4 at delta | the accountant at delta | Theorem 4 / accountant \
| basic composition, at parties x delta |
|---:|---:|---:|---:|---:|---:|"""

FOOT = """
Theorem 4's figure is an approximation and no bound: where the ratio is below 1 it promises a shared user more
than holds, the more so the more parties there are and the less each of them spends.
The accountant's figure is a bound: it composes the steps of all parties, whose noise it knows, at one delta.
Basic composition is a bound too, and needs to know nothing of the noise: it is up to three times as much."""


def main() -> None:
    print(HEAD)
    for epsilon in EPSILONS:
        for parties in PARTIES:
            print(row(epsilon, parties))
    print(FOOT)


def row(epsilon: float, parties: int) -> str:
    theorem = epsilon * math.sqrt(parties)
    composed = together(epsilon, parties)
    cells = (f"{epsilon:g}", f"{parties}", f"{theorem:.3f}", f"{composed:.3f}", f"{theorem / composed:.3f}")
    return f"| {' | '.join(cells)} | {parties * epsilon:g} |"


def together(epsilon: float, parties: int) -> float:
    """Return what all parties' releases cost a user they share, each having spent all of its own budget."""
    release = Release(
        what="gradients",
        mechanism=SampledGaussian(sampling=SAMPLING),
        bound=Bound(size=2.5, norm="l2", unit="user"),
        dimension=1,
    )
    alone = Schedule(releases=(release,), rounds=STEPS)
    made = calibrated(alone, Budget(epsilon=epsilon, delta=DELTA, unit="user"))
    events = [event.times(parties) for event in made.events()]
    return spent(events, DELTA, unit="user").epsilon


if __name__ == "__main__":
    main()
