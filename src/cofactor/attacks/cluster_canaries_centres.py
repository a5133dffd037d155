"""What local centres tell of one user: compared with those of shadows in which she was there, or not.

Centres are made of noisy sums by k-means, and have no law that could be written down. But all that makes them
is public: whoever looks can play a party over and over, with canaries by coins and noise of the same kind
(likelihood ratios in the manner of Carlini et al. 2022). How near a centre comes to a canary is what counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.cluster.method import Floats, LocalClustering
from cofactor.config import whole
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.schedule import Schedule
from cofactor.randomness import Random, Seeds

_LEAST = 1e-9
"""A deviation below which there is none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shadow:
    """A party as whoever looks can play it: its method and what it releases are public."""

    local: LocalClustering
    schedule: Schedule
    canaries: Floats
    """Where canaries are in the party's columns, scaled to [-1, 1], if they are there."""
    others: Floats
    """The points of all other users."""
    clusters: int
    users: int
    """How many users there are in public."""
    seed: int
    """That of public chance."""

    def centres(self, present: NDArray[np.bool_], random: Random) -> Floats:
        """Return the local centres that the party could have found with these canaries."""

        def let(what: str, bounded: Bounded) -> NDArray[np.int64]:
            return np.asarray(self.schedule.noise_of(what).noisy(bounded, random), np.int64)

        return self.local.centres(
            np.concatenate([self.others, self.canaries[present]]),
            clusters=self.clusters,
            users=self.users,
            schedule=self.schedule,
            let=let,
            seed=self.seed,
        )

    def nearness(self, centres: Floats) -> Floats:
        """Return how far each canary is from the nearest centre."""
        apart = np.square(self.canaries[:, None] - centres).sum(axis=2)
        return np.asarray(np.sqrt(apart.min(axis=1)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Shadowed:
    """What a party's shadow showed: how near centres come, with and without a canary.

    Canaries differ in how near centres come anyhow, and that is taken off; what presence does beyond that is
    taken to be normal, and alike for all of them.
    """

    party: Shadow
    middle: Floats
    spread: Floats
    there: tuple[float, float]
    """Mean and deviation of those present, in spreads from the middle."""
    away: tuple[float, float]

    def evidence(self, centres: Floats) -> Floats:
        """Return how much centres that were seen speak for the presence of each canary, in log-odds."""
        found = (self.party.nearness(centres) - self.middle) / self.spread
        return _log_normal(found, *self.there) - _log_normal(found, *self.away)


def shadowed(party: Shadow, times: int, random: Random, seed: int) -> Shadowed:
    """Play a party so many times, each with coins of its own."""
    whole(times=times)
    coins = Seeds(seed).generator("coins of shadows").random((times, len(party.canaries))) < 0.5
    found = np.stack([party.nearness(party.centres(present, random)) for present in coins])
    middle, spread = found.mean(axis=0), np.maximum(found.std(axis=0), _LEAST)
    scaled = (found - middle) / spread
    return Shadowed(
        party=party,
        middle=middle,
        spread=spread,
        there=_moments(scaled[coins]),
        away=_moments(scaled[~coins]),
    )


def centres_evidence(parties: Sequence[Shadowed], centres: Sequence[Floats]) -> Floats:
    """Return how much all parties' centres speak for the presence of each canary, in log-odds."""
    pairs = zip(parties, centres, strict=True)
    return np.asarray(np.sum([party.evidence(seen) for party, seen in pairs], axis=0))


def _moments(values: Floats) -> tuple[float, float]:
    return float(values.mean()), max(float(values.std()), _LEAST)


def _log_normal(values: Floats, mean: float, deviation: float) -> Floats:
    return np.asarray(-np.square((values - mean) / deviation) / 2 - np.log(deviation))
