"""With how many others a party of a secure sum shares its secrets, and how many of those open them.

Every party draws its own `chosen` neighbours at random from the whole roster, so that nobody can steer an
honest party's choice (Bell et al. 2020, against a malicious server). Two parties mask each other if either
chose the other. A party's secrets are shared among those that it chose, and `threshold` of these open them.
Where there are few parties, all choose each other.

What chance decides goes wrong with a chance of at most 2^-40 where privacy is at stake, and of 1/1000 where a
sum would merely fail.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, rel_entr

from cofactor.config import not_negative, whole
from cofactor.errors import ConfigError

Array = NDArray[np.float64] | NDArray[np.int64]

_MAY_FAIL = 1e-3
_MAY_LEAK = 2.0**-40
_FEW = 200
"""Up to so many parties all choose all: it costs little, and nothing is left to chance."""


@dataclass(frozen=True, kw_only=True)
class Neighbourhood:
    """Who shares secrets with how many, so that dropouts do no harm and colluding parties learn nothing."""

    parties: int
    """How many take part."""
    chosen: int
    """How many others each party chooses, at random; all others if `chosen` is `parties` - 1."""
    threshold: int
    """How many of these open the party's secrets; fewer learn nothing."""
    fewest: int
    """With fewer survivors than this a sum is not opened."""
    colluding: int
    """How many parties may tell the coordinator all they know."""
    active: bool
    """Whether single values stay hidden even from a coordinator that lies about who dropped out."""

    @classmethod
    def of(cls, parties: int, *, dropout: float, colluding: float) -> "Neighbourhood":
        """Plan for the part of the parties that may drop out and the part that may collude."""
        whole(parties=parties)
        not_negative(dropout=dropout, colluding=colluding)
        fewest = parties - _part(dropout, parties)
        colluders = _part(colluding, parties)
        _check(parties, fewest, colluders)
        chosen, threshold, active = _settled(parties, fewest, colluders)
        return cls(
            parties=parties,
            chosen=chosen,
            threshold=threshold,
            fewest=fewest,
            colluding=colluders,
            active=active,
        )

    @property
    def least_honest(self) -> int:
        """How many honest parties are in any sum that a coordinator can open which lies about dropouts.

        If it keeps to the protocol there are `fewest` - `colluding`, and no fewer if it lies to parties that
        all chose all. Where neighbours are chosen at random only more than half of the honest are certain;
        where the neighbourhood is not `active`, one.
        """
        if not self.active:
            return 1
        honest = self.fewest - self.colluding
        if self.chosen == self.parties - 1:
            return honest
        return min(honest, _smallest_sum(self.parties, self.colluding, self.chosen, self.threshold))


def _part(part: float, parties: int) -> int:
    """Round down what is meant by the decimals: 0.29 of 100 is 29, although 0.29 * 100 < 29."""
    return int(Fraction(repr(float(part))) * parties)


def _check(parties: int, fewest: int, colluding: int) -> None:
    """Those who open a party's secrets must be more than those who may collude."""
    if parties < 2:
        raise ConfigError(f"A secure sum needs at least 2 parties, got {parties}.")
    if fewest - 1 > colluding:
        return
    remedies = []
    if parties - colluding >= 2:
        remedies.append(f"dropout <= {parties - colluding - 2}/{parties}")
    if fewest >= 2:
        remedies.append(f"colluding < {fewest - 1}/{parties}")
    raise ConfigError(
        f"Of {parties} parties only {max(fewest, 0)} may be left, and {colluding} may collude: they could "
        f"open a single party's numbers. Use {' or '.join(remedies) or 'less of both'}."
    )


@lru_cache(maxsize=256)
def _settled(parties: int, fewest: int, colluding: int) -> tuple[int, int, bool]:
    """Return chosen, threshold and active: sparse if that saves anything, otherwise all choose all.

    A party has almost twice as many neighbours as it chose, because others choose it.
    """
    sparse = _Sparse(parties=parties, fewest=fewest, colluding=colluding)
    too_few, enough, most = 0, 1, (parties - 1) // 2
    while enough < most and not sparse.safe(enough):
        too_few, enough = enough, min(2 * enough, most)
    if parties <= _FEW or not sparse.safe(enough):
        return _complete(parties, fewest, colluding)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if sparse.safe(middle) else (middle, enough)
    return enough, sparse.threshold(enough), sparse.active


def _complete(parties: int, fewest: int, colluding: int) -> tuple[int, int, bool]:
    """All survivors but the party itself open its secrets.

    A lying coordinator needs `threshold` shares of both of a party's secrets. An honest holder gives out a
    share of one of them, a colluding one of both: too few if 2 threshold > holders + colluding.
    """
    holders, threshold = parties - 1, fewest - 1
    return holders, threshold, 2 * threshold > holders + colluding


@dataclass(frozen=True, kw_only=True)
class _Sparse:
    """The conditions on a graph in which every party chooses some of the others at random."""

    parties: int
    fewest: int
    colluding: int

    @property
    def active(self) -> bool:
        """Whether protection from a lying coordinator is possible: in the mean it is as in `_complete`."""
        return 2 * self.fewest > self.parties + self.colluding

    def safe(self, chosen: int) -> bool:
        """Say whether privacy is as good as promised with the largest threshold that sums mostly reach."""
        threshold = self.threshold(chosen)
        if threshold < 1 or not self._secret(chosen, threshold):
            return False
        return self._undivided(chosen, threshold) if self.active else self._connected(chosen)

    def threshold(self, chosen: int) -> int:
        """Return how many of its chosen neighbours every party keeps, but for a chance of 1/1000.

        As many parties as may drop out do, at random; a survivor chose among the other survivors and these.
        """
        left = np.cumsum(self._chances(self.fewest - 1, chosen))
        return int(np.searchsorted(left, _MAY_FAIL / self.parties))

    def _secret(self, chosen: int, threshold: int) -> bool:
        """Say whether no honest party chose so many colluding ones that its secrets can be opened.

        By themselves these need to be `threshold`. If the coordinator lies 2 threshold - chosen are enough:
        some of the honest ones give out the one secret, the rest the other, and the colluding ones both.
        """
        enough = max(2 * threshold - chosen if self.active else threshold, 0)
        chance = self._chances(self.colluding, chosen)[enough:].sum()
        return bool((self.parties - self.colluding) * chance <= _MAY_LEAK)

    def _undivided(self, chosen: int, threshold: int) -> bool:
        """Say whether a coordinator that tells parties different survivors cannot open two different sums.

        The difference of two sums is a sum, so there would be two without a common honest party, and one of
        them with at most half of the honest.
        """
        half = (self.parties - self.colluding) // 2
        return _smallest_sum(self.parties, self.colluding, chosen, threshold) > half

    def _connected(self, chosen: int) -> bool:
        """Say whether masks hold all honest survivors together, if those who drop out do so by chance.

        Otherwise even a coordinator that keeps to the protocol could open the sum of a part. The expected
        number of parts of r among s survivors that chose none of the rest, nor were chosen by one, is
        C(s, r) P[choose none of s - r]^r P[choose none of r]^(s - r).
        """
        survivors = self.fewest - self.colluding
        part = np.arange(1, survivors // 2 + 1)
        rest = survivors - part
        chances = part * self._log_none_of(rest, chosen) + rest * self._log_none_of(part, chosen)
        return bool(np.exp(_log_choose(survivors, part) + chances).sum() <= _MAY_LEAK)

    def _log_none_of(self, others: Array, chosen: int) -> Array:
        """Return an upper bound, as if the same could be chosen twice: that finds fewer of the others."""
        return chosen * np.log1p(-others / (self.parties - 1))

    def _chances(self, some: int, chosen: int) -> Array:
        """Return the chances that 0, 1, ... of those that a party chose are among some of the others."""
        count, others = np.arange(chosen + 1), self.parties - 1
        ways = _log_choose(some, count) + _log_choose(others - some, chosen - count)
        return np.exp(ways - _log_choose(others, np.array(chosen)))


@lru_cache(maxsize=256)
def _smallest_sum(parties: int, colluding: int, chosen: int, threshold: int) -> int:
    """Return how many honest parties are at least in any sum that opens, but for a chance of 2^-40.

    The own mask of each honest party in it was given away by `threshold` of those it chose. These collude, or
    are in the sum too: who gives away shares has seen that its own masking key stays secret, so that the
    masks they have in common vanish only if both are added. The expected number of such sets of r honest
    parties is C(honest, r) P[at least `threshold` of the chosen are among r - 1 + colluding]^r, and the
    chance at most exp(-chosen KL(threshold / chosen, part)) (Hoeffding 1963).
    """
    honest = parties - colluding
    size = np.arange(1, honest + 1)
    part = np.minimum((size - 1 + colluding) / (parties - 1), threshold / chosen)
    wanted = threshold / chosen
    log_chance = -chosen * (rel_entr(wanted, part) + rel_entr(1 - wanted, 1 - part))
    expected = np.cumsum(np.exp(np.minimum(_log_choose(honest, size) + size * log_chance, 0.0)))
    return 1 + int(np.searchsorted(expected, _MAY_LEAK, side="right"))


def _log_choose(n: int, r: Array) -> Array:
    """Return the logarithm of how many ways there are to choose r of n: -inf for none."""
    choices: Array = gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1)
    return choices
