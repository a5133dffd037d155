"""`Sketches`: memberships counted from registers of hashes, hidden among phantoms (DPFMPS, repaired).

Every two parties share a key that nobody else knows, and send the coordinator, for each of their clusters,
the largest hash of its users in thousands of rows. Clusters with users in common have large hashes in common.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from cofactor.cluster import estimates
from cofactor.cluster.fitting import as_counts, fitted, fitted_additively
from cofactor.cluster.method import NOWHERE, Counter, Facts, Floats, Home, Integers, Member
from cofactor.cluster.sketch_halves import (
    REGISTERS,
    SKETCHES,
    OfferSketchKey,
    Registers,
    SketchCounter,
    SketchKeys,
    SketchMember,
    SketchRegisters,
    numbers_of,
    sketch_of,
)
from cofactor.cluster.sketch_sizes import chosen, usual_local_clusters
from cofactor.cluster.sketching import drawn
from cofactor.config import fraction, one_of, plain_numbers, whole
from cofactor.federation.halves import Promise
from cofactor.federation.hidden_sums import KNOWN_KEYS, SecureSum
from cofactor.federation.messages import Message
from cofactor.privacy import bounding
from cofactor.privacy.assumptions import Assumption
from cofactor.privacy.budget import Budget
from cofactor.privacy.schedule import Release, Schedule
from cofactor.privacy.sketches import PartitionSketch
from cofactor.randomness import Random

Estimator = Literal["likelihood", "ties", "complements"]
Fit = Literal["proportional", "additive"]


_SURE = 4.0
"""By how many deviations fewer hashes must be alike than there are users, to say that some are nowhere."""


@dataclass(frozen=True, kw_only=True)
class Sketches:
    """Count memberships by sketches of all pairs of parties, none of which colludes with the coordinator."""

    rounds: ClassVar[int] = 2
    messages: ClassVar[tuple[type[Message], ...]] = (OfferSketchKey, SketchKeys, SketchRegisters)
    wants_count: ClassVar[bool] = True
    joint: ClassVar[bool] = True

    rows: int = 4096
    """How many hashes every user has: M. Four times as many halve the error, at most, and take four times as
    long."""
    share: float = 0.49
    """The part of epsilon that is meant for sketches."""
    estimator: Estimator = "likelihood"
    """What makes tables of pairs from registers: the most likely table; how often two registers agree; or
    what the thesis does, with unions of all other clusters (BasicEst)."""
    fit: Fit = "proportional"
    """What makes one table of all from those of pairs: proportional fitting, or the additive steps of the
    thesis (2PEst)."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(rows=self.rows)
        fraction(share=self.share)
        one_of(("likelihood", "ties", "complements"), estimator=self.estimator)
        one_of(("proportional", "additive"), fit=self.fit)

    @property
    def aggregate(self) -> SecureSum | None:
        """No sums are made: the largest hashes of two parties must be seen beside each other."""
        return None

    def countable(self, wanted: int, *, users: int, parties: int, budget: Budget) -> int:
        """Return as many local clusters as the sketches' noise does not drown."""
        return usual_local_clusters(
            users=users,
            clusters=wanted,
            parties=parties,
            epsilon=self.share * budget.epsilon,
            delta=budget.delta,
            rows=self.rows,
        )

    def releases(self, facts: Facts, *, epsilon: float, delta: float) -> tuple[Release, ...]:
        """Return the sketches of all pairs, with the fewest phantoms that keep (epsilon, delta) together."""
        sketch = chosen(
            rows=self.rows,
            pairs=len(facts.pairs),
            users=facts.users,
            local_clusters=facts.local_clusters,
            epsilon=epsilon,
            delta=delta,
        )
        release = Release(
            what=SKETCHES,
            mechanism=sketch,
            bound=bounding.MEMBER,
            dimension=numbers_of(facts, sketch.rows),
            times=len(facts.pairs),
            bytes_per_number=1,
            rounds=1,
            first=REGISTERS,
            joint=True,
        )
        return (release,)

    def member(self, home: Home) -> Member:
        """Return a party's half."""
        return SketchMember(home)

    def counter(self, facts: Facts, schedule: Schedule) -> Counter:
        """Return the coordinator's half."""
        return SketchCounter(facts, schedule, partial(self.estimated, facts, sketch_of(schedule)))

    def simulated(
        self,
        facts: Facts,
        ids: Sequence[str],  # noqa: ARG002 (under keys of chance, users are as good as numbers)
        cells: Sequence[Integers],
        schedule: Schedule,
        random: Random,
        count: float | None,
    ) -> Floats:
        """Return a table drawn from the same law, without messages and hashes: for experiments."""
        sketch = sketch_of(schedule)
        found = {
            (one, other): _drawn_pair(cells[one], cells[other], facts.local_clusters, sketch, random)
            for one, other in facts.pairs
        }
        total = float(facts.users) if count is None else max(float(count), 0.0)
        return self.estimated(facts, sketch, found, total)

    def estimated(self, facts: Facts, sketch: PartitionSketch, registers: Registers, total: float) -> Floats:
        """Return the table of all parties that these registers of all pairs tell, of about `total` users."""
        if total <= 0:
            return np.zeros(facts.grid)
        pairs = {pair: self.of_pair(*both, sketch, total) for pair, both in registers.items()}
        fit = fitted if self.fit == "proportional" else fitted_additively
        return fit(pairs, facts.grid, float(np.mean([table.sum() for table in pairs.values()])))

    def of_pair(self, first: Integers, second: Integers, sketch: PartitionSketch, total: float) -> Floats:
        """Return the table of two parties, possible in itself, of `total` users at most."""
        total = _in_both(first, second, sketch, total)
        makers: Mapping[Estimator, Callable[[], Floats]] = {
            "likelihood": lambda: estimates.likelihood(first, second, sketch, total),
            "ties": lambda: estimates.ties(first, second, sketch),
            "complements": lambda: estimates.complements([first, second], sketch.phantoms, total),
        }
        return as_counts(makers[self.estimator](), total)

    def signal(self, facts: Facts, mechanism: PartitionSketch) -> float:
        """Return an average combination of two parties' clusters, over the deviation of its estimate.

        Below 1, sketches tell next to nothing. That of the most likely table, whatever the estimator is.
        """
        average = facts.users / facts.local_clusters**2
        return average / estimates.deviation(mechanism, facts.users, facts.local_clusters)

    def concerns(self, facts: Facts, schedule: Schedule) -> tuple[str, ...]:
        """Say where sketches tell nothing."""
        signal = self.signal(facts, sketch_of(schedule))
        if signal >= 1:
            return ()
        return (
            f"A combination of two parties' local clusters has {facts.users / facts.local_clusters**2:,.0f} "
            f"users on average, and sketches tell that to within {1 / signal:,.1f} times as many: next to "
            "nothing. Use SecureTable(), a larger epsilon, or fewer local clusters.",
        )

    def alone(self, facts: Facts) -> bool:  # noqa: ARG002 (of any)
        """Say that it does not hold if others collude: who tells a key opens all sketches made with it."""
        return False

    def promise(self, facts: Facts) -> Promise:
        """Return what the guarantee says besides its numbers."""
        return Promise(
            against=(
                "the coordinator (as long as no party tells it a key)",
                "everyone else who sees the clusters and is none of the parties",
            ),
            covers=(
                f"The sketches of every two parties (pairs: {len(facts.pairs)}), and what is made of them. "
                "They are accounted together and by their exact law: parties that share a key show the same "
                "hash of a user, so that their costs do not merely add up, as the published theorem has it "
                "(thesis, Theorem 5.3.2).",
            ),
            does_not_cover=(
                "What a party could learn of another with which it shares a key, from registers or from what "
                "is made of them: for each user it can tell whether her hash fits. So the coordinator may "
                "show registers to nobody.",
            ),
            assumptions=(_KEYS, _PHANTOMS, _HASHES, KNOWN_KEYS),
        )


def _in_both(first: Integers, second: Integers, sketch: PartitionSketch, total: float) -> float:
    """Return how many users are in clusters of both parties: all of them, unless far fewer hashes are alike.

    Of some users a party may not know all columns: they are in no cluster of it.
    """
    alike, clusters = float(estimates.ties(first, second, sketch).sum()), first.shape[1]
    chance = _SURE * clusters * estimates.deviation(sketch, max(round(total), 1), clusters)
    return total if alike > total - chance else alike


def _drawn_pair(
    first: Integers, second: Integers, clusters: int, sketch: PartitionSketch, random: Random
) -> tuple[Integers, Integers]:
    """Return registers of two parties as they would release them."""
    # Who is nowhere at the one may be somewhere at the other: an entry more for them.
    one, other = (np.where(cells == NOWHERE, clusters, cells) for cells in (first, second))
    size = clusters + 1
    table = np.bincount(one * size + other, minlength=size**2)
    table[-1] = 0
    found = drawn(table.reshape(size, size), sketch.rows, random)
    noisy = [sketch.noisy(bounding.registers(each[:, :clusters]), random) for each in found]
    return noisy[0], noisy[1]


_KEYS = Assumption(
    what="no party colludes with the coordinator: one that tells its keys opens the sketches of all pairs "
    "that it is in, though none of the others",
    met="keys are fresh, agreed between two parties, signed by their identities, and held in memory only; "
    "that nobody tells them is taken on trust",
)
_PHANTOMS = Assumption(
    what="parties keep to the protocol: one that leaves out its phantoms, or does not clip, uncovers users "
    "of those with whom it shares a key",
    met="it is taken on trust from the parties",
)
_HASHES = Assumption(
    what="nobody without the key can tell hashes from chance",
    met="they are made of ids by BLAKE2b and AES-256 under a key of 256 bits, agreed on by X25519",
)
