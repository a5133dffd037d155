"""`SecureTable`: how many users two parties' clusters have in common, counted under encryption.

Of every pair of parties, the first offers who is in which of its clusters, encrypted, and the second adds up
what it cannot read (`cofactor.crypto.products`): they end with numbers that tell nothing, and add up to the
pair's table. All parties add noise to theirs, in a secure sum, which opens all tables at once and nothing
else. Fitting makes one table of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cofactor.cluster.method import Facts, Floats, Home, Integers
from cofactor.cluster.table_halves import (
    SUMMED,
    TABLES,
    NoisyTables,
    OfferTables,
    TableAnswers,
    TableCounter,
    TableMember,
    TableOffers,
    bound_of,
    fitted_tables,
)
from cofactor.config import fraction, not_negative, plain_numbers, whole
from cofactor.crypto.gmp import gmp
from cofactor.crypto.neighbours import Neighbourhood
from cofactor.crypto.paillier import exponent_bits, security
from cofactor.crypto.products import Layout, most_slots
from cofactor.errors import ConfigError
from cofactor.federation.door import slack_of
from cofactor.federation.halves import Promise
from cofactor.federation.hidden_sums import SecureSum
from cofactor.federation.messages import Message
from cofactor.privacy.assumptions import Assumption
from cofactor.privacy.budget import Budget
from cofactor.privacy.laws import PolyaLaw
from cofactor.privacy.mechanisms import DiscreteLaplace
from cofactor.privacy.schedule import Release, Schedule
from cofactor.randomness import Random

_BITS = range(2048, 8193, 64)
_ALL_NOISE = (
    "Every party adds all of the noise to what is opened: whoever takes the own off, or that of all but one, "
    "is left with all of another's."
)
_ALL_OTHERS = 0.99
"""Of fewer than a hundred parties, all but one."""


@dataclass(frozen=True, kw_only=True)
class TableSum(SecureSum):
    """The secure sum that opens tables: nobody may drop out, and all other parties may collude."""

    dropout: float = 0.0
    """Nobody: who does not answer holds shares without which tables mean nothing."""
    colluding: float = _ALL_OTHERS
    """The part of the parties that may tell the coordinator all they know; at least one party always may."""

    def neighbourhood(self, parties: int) -> Neighbourhood | None:
        """Return who helps whom.

        Masks hide a party's numbers as long as one other is honest. If none is, the numbers are the sum less
        what the others know, and all of the party's noise is in them: there is nothing to hide.
        """
        layers = self.layers(parties)
        if layers is None:
            return None
        colluding = min(layers.colluding, parties - 2)
        return Neighbourhood.of(parties, dropout=self.dropout, colluding=(colluding + 0.5) / parties)


@dataclass(frozen=True, kw_only=True)
class SecureTable:
    """Count memberships under encryption, and open the counts with noise: the most exact way there is.

    Parties are taken to keep to the protocol, and may tell each other, and the coordinator, all they know.
    """

    rounds: ClassVar[int] = 3
    messages: ClassVar[tuple[type[Message], ...]] = (OfferTables, TableOffers, TableAnswers, NoisyTables)
    wants_count: ClassVar[bool] = False
    joint: ClassVar[bool] = True

    share: float = 0.3
    """The part of epsilon that is meant for the tables: local clusters need more."""
    bits: int = 3072
    """Size of every party's key: a multiple of 64 from 2048 (112 bits of security) to 8192; 3072 is 128."""
    colluding: float | None = None
    """The part of the parties that may collude; None is all others, so that everybody adds all of the noise.
    With three parties or more and fewer colluding, they share the noise, and there is less of it."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(bits=self.bits)
        fraction(share=self.share)
        if self.bits not in _BITS:
            raise ConfigError(
                f"bits must be a multiple of {_BITS.step} from {_BITS[0]} to {_BITS[-1]}, got {self.bits}: "
                "shorter keys can be broken today or soon, longer ones take too long."
            )
        if self.colluding is not None:
            not_negative(colluding=self.colluding)
        self.aggregate  # noqa: B018 (it refuses what cannot be)

    @property
    def aggregate(self) -> TableSum:
        """How the tables are opened."""
        return TableSum() if self.colluding is None else TableSum(colluding=self.colluding)

    def layout(self, facts: Facts) -> Layout:
        """Return how a pair's table is counted; refuse more clusters than a key has room for."""
        clusters = facts.local_clusters
        return Layout(users=facts.users, rows=clusters, columns=clusters, bits=self.bits)

    def countable(self, wanted: int, *, users: int, parties: int, budget: Budget) -> int:
        """Return as many local clusters as a key has room for, and half of them where noise drowns more."""
        pairs = math.comb(parties, 2)
        deviation = math.sqrt(2 * parties) * pairs / (self.share * budget.epsilon)
        clear = math.isqrt(int(users / (2 * deviation)))
        fewest = -(-wanted // 2) if parties == 2 else wanted
        return min(max(min(wanted, clear), fewest), most_slots(self.bits))

    def releases(self, facts: Facts, *, epsilon: float, delta: float) -> tuple[Release, ...]:  # noqa: ARG002
        """Return the one release: all pairs' tables, in the last round."""
        gmp()  # refuse, if it is missing, before anything is released
        self.layout(facts)
        mechanism = DiscreteLaplace(noise_multiplier=1 / epsilon)
        return (
            Release(
                what=TABLES,
                mechanism=mechanism,
                bound=bound_of(facts),
                dimension=len(facts.pairs) * facts.local_clusters**2,
                bytes_per_number=8,
                rounds=1,
                first=SUMMED,
                slack=slack_of(mechanism, self.aggregate.layers(len(facts.parties))),
            ),
        )

    def member(self, home: Home) -> TableMember:
        """Return a party's half."""
        return TableMember(home, self.layout(home.facts))

    def counter(self, facts: Facts, schedule: Schedule) -> TableCounter:  # noqa: ARG002 (noise adds no bias)
        """Return the coordinator's half."""
        return TableCounter(facts, self.layout(facts))

    def simulated(
        self,
        facts: Facts,
        ids: Sequence[str],  # noqa: ARG002
        cells: Sequence[Integers],
        schedule: Schedule,
        random: Random,
        count: float | None,  # noqa: ARG002
    ) -> Floats:
        """Return the true tables with the noise of all parties, fitted."""
        tables = pair_tables(cells, facts)
        drawn = self._noise(facts, schedule).drawn(tables.shape, random)
        return fitted_tables(tables + drawn, facts)

    def _noise(self, facts: Facts, schedule: Schedule) -> PolyaLaw:
        """Return the law of the noise of all parties together."""
        parties = len(facts.parties)
        layers = self.aggregate.layers(parties)
        assert layers is not None
        one = PolyaLaw(scale=schedule.noise_of(TABLES).noise_size(bound_of(facts)))
        return one.part(layers.part(parties, devices=parties))

    def concerns(self, facts: Facts, schedule: Schedule) -> tuple[str, ...]:
        """Say where noise drowns counts."""
        noise, cell = self._noise(facts, schedule), facts.users / facts.local_clusters**2
        # That of discrete Laplace noise, and so of its parts, is a little less.
        deviation = noise.scale * math.sqrt(2 * noise.shape)
        if deviation <= cell / 2:
            return ()
        return (
            f"Noise of about {deviation:,.0f} users hides much of the tables, whose cells hold {cell:,.0f} "
            "users on average. Find fewer local clusters, or give the tables a larger share of epsilon.",
        )

    def alone(self, facts: Facts) -> bool:
        """Say whether a party's own noise is all of the noise."""
        layers = self.aggregate.layers(len(facts.parties))
        return layers is None or layers.parties - layers.colluding == 1

    def promise(self, facts: Facts) -> Promise:
        """Return what the guarantee says besides its numbers."""
        parties = len(facts.parties)
        layers = self.aggregate.layers(parties)
        assert layers is not None
        return Promise(
            against=("the coordinator", "the other parties", "everyone who sees the clusters"),
            covers=(
                "The tables of all pairs of parties, and whatever is made of them.",
                *((_ALL_NOISE,) if self.alone(facts) else ()),
            ),
            assumptions=(*self.aggregate.assumptions(parties), *_encryption(self.bits)),
            shared={TABLES: min(1.0, layers.remaining(parties, 1.0))},
        )


def pair_tables(cells: Sequence[Integers], facts: Facts) -> Integers:
    """Return how many users two parties' clusters have in common, of all pairs, but for those nowhere."""
    clusters = facts.local_clusters
    tables = []
    for first, second in facts.pairs:
        somewhere = (cells[first] >= 0) & (cells[second] >= 0)
        both = clusters * cells[first][somewhere] + cells[second][somewhere]
        tables.append(np.bincount(both, minlength=clusters**2).reshape(clusters, clusters))
    return np.stack(tables)


def _encryption(bits: int) -> tuple[Assumption, ...]:
    """Return what counting under encryption rests on."""
    return (
        Assumption(
            what="parties keep to the protocol: one that encrypts anything else than one cluster for each "
            "user, or adds a user up more than once, counts users many times over, which the noise does not "
            "cover",
            met="it is taken on trust from the parties; the coordinator can change nothing, because what "
            "parties have for each other is signed",
        ),
        Assumption(
            what=f"composite residues modulo {bits:,} bits are hard to tell from others (Paillier 1999)",
            met=f"keys of that size are taken to have about {security(bits)} bits of security, and none "
            "against a quantum computer; every party draws its own, for this session only",
        ),
        Assumption(
            what=f"powers of a secret number with exponents of {exponent_bits(bits, 'short')} bits look like "
            "any others",
            met="it is taken on trust; the length is that of Ma, Han and Wang (2021), and the number, unlike "
            "theirs, is not published",
        ),
    )
