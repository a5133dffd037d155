"""What released counts tell of one user, by their exact law: sizes, tables, registers and answers.

Whoever looks is taken to know everybody but the canaries, as the guarantee allows. Local centres are seen, so
that it is known in which local cluster a canary is if she is there at all; other canaries are there or not,
by a coin that nobody knows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.survey_canaries_law import chances_of
from cofactor.cluster.halves import LocalCentres
from cofactor.cluster.method import NOWHERE, Floats, Integers
from cofactor.cluster.planning import COUNT, COUNTED, Plan
from cofactor.cluster.register_law import RegisterLaw
from cofactor.cluster.simple_halves import ONE_CLUSTER, SIZES, ClusterSizes, NoisyMemberships, oracle_in
from cofactor.cluster.sketch_halves import SketchRegisters, sketch_of
from cofactor.cluster.table_halves import TABLES, NoisyTables, bound_of
from cofactor.errors import ConfigError
from cofactor.federation.door import SUM
from cofactor.federation.view import Seen, View
from cofactor.privacy.events import Bound
from cofactor.privacy.laws import PolyaLaw
from cofactor.privacy.schedule import Schedule
from cofactor.survey import hashing
from cofactor.survey.oracles import GRR

_REACH = 64.0
"""In bits, how unlikely noise is beyond which it is taken never to happen."""
_NEVER = 1e-300


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """What is known to whoever looks: the settings, where canaries would be, and where all others are."""

    plan: Plan
    rows: Integers
    """Which of the common users the canaries are, in the order of all."""
    canaries: tuple[Integers, ...]
    """By party, the local cluster that each canary is in, if she is there."""
    others: tuple[Integers, ...]
    """By party, the local cluster of each other user, or NOWHERE."""


def counts_evidence(view: View, known: Known) -> Floats:
    """Return how much all that was counted speaks for the presence of each canary, in log-odds."""
    found = [part for part in (each(view, known) for each in _PARTS) if part is not None]
    if not found:
        raise ConfigError("no memberships were seen. Capture what the coordinator sees of the clustering.")
    return np.asarray(np.sum([*found, _total(view, known)], axis=0))


def _sizes(view: View, known: Known) -> Floats | None:
    """Judge by noisy sizes of local clusters, party by party."""
    found = []
    for place, seen in _by_party(view, known, ClusterSizes.__name__):
        law = _law(known.plan.schedules[seen.sender], SIZES, ONE_CLUSTER)
        clusters = known.plan.facts.local_clusters
        own, others = known.canaries[place], known.others[place]
        found.append(_presence(seen.arrays["sizes"], own, others[others != NOWHERE], clusters, law))
    return np.sum(found, axis=0) if found else None


def _tables(view: View, known: Known) -> Floats | None:
    """Judge by noisy tables of all pairs of parties, which a sum has opened."""
    seen = next(view.messages(NoisyTables.__name__, sender=SUM), None)
    if seen is None:
        return None
    facts, clusters = known.plan.facts, known.plan.facts.local_clusters
    aggregate, parties = known.plan.method.aggregate, len(facts.parties)
    layers = None if aggregate is None else aggregate.layers(parties)
    assert layers is not None
    law = _law(known.plan.whole, TABLES, bound_of(facts)).part(layers.part(parties, devices=parties))
    found = np.zeros(len(known.rows))
    for table, (first, second) in zip(seen.arrays["counts"], facts.pairs, strict=True):
        own = clusters * known.canaries[first] + known.canaries[second]
        somewhere = (known.others[first] != NOWHERE) & (known.others[second] != NOWHERE)
        others = clusters * known.others[first][somewhere] + known.others[second][somewhere]
        found += _presence(table.reshape(-1), own, others, clusters**2, law)
    return found


def _registers(view: View, known: Known) -> Floats | None:
    """Judge by the registers that a canary touches: one of each party, for each pair of them.

    Rows are independent for who has no key. Other canaries count by half.
    """
    sent = _by_party(view, known, SketchRegisters.__name__)
    told = {place: seen.arrays["registers"] for place, seen in sent}
    if not told:
        return None
    sketch = sketch_of(known.plan.whole)
    law, found = RegisterLaw(sketch), np.zeros(len(known.rows))
    for first, second in known.plan.facts.pairs:
        own, other, common = _elements(known, first, second)
        own, other = (each - common + sketch.phantoms for each in (own, other))
        there, away = (np.log(law.two(own, other, common + more).at + _NEVER) for more in (1.0, 0.0))
        one = told[first][second - 1].astype(np.int64) - sketch.low
        two = told[second][first].astype(np.int64) - sketch.low
        for number, (at, odds) in enumerate(zip(_places(known, first, second), there - away, strict=True)):
            found[number] += odds[one[:, at[0]], two[:, at[1]]].sum()
    return found


def _elements(known: Known, first: int, second: int) -> tuple[Floats, Floats, Floats]:
    """Return how many other users a canary's clusters hold, about: at either party, and at both."""
    sides = []
    for place in (first, second):
        own = known.canaries[place]
        sides.append((own[:, None] == known.others[place], own[:, None] == own))
    (one_known, one_own), (two_known, two_own) = sides
    pairs = ((one_known, one_own), (two_known, two_own), (one_known & two_known, one_own & two_own))
    found = [others.sum(axis=1) + (canaries.sum(axis=1) - 1) / 2 for others, canaries in pairs]
    return found[0], found[1], found[2]


def _places(known: Known, first: int, second: int) -> NDArray[np.int64]:
    return np.stack([known.canaries[first], known.canaries[second]], axis=1)


def _answers(view: View, known: Known) -> Floats | None:
    """Judge by the canaries' own answers at every party; who is absent has a cluster drawn by lot."""
    found = []
    for place, seen in _by_party(view, known, NoisyMemberships.__name__):
        oracle = oracle_in(known.plan.schedules[seen.sender], known.plan.facts)
        answers = seen.arrays["answers"][known.rows]
        clusters = np.repeat(np.arange(oracle.buckets)[:, None], len(answers), axis=1)
        if not isinstance(oracle, GRR):
            seeds = seen.arrays["seeds"][known.rows]
            clusters = np.stack([hashing.hashes(seeds, each, oracle.choices) for each in clusters])
        chances = np.stack([chances_of(oracle.mechanism, truth, answers) for truth in clusters])
        there = chances[known.canaries[place], np.arange(len(answers))]
        found.append(np.log(there) - np.log(chances.mean(axis=0)))
    return np.sum(found, axis=0) if found else None


def _total(view: View, known: Known) -> Floats:
    """Judge by the noisy number of all users, where the first party tells it."""
    first = known.plan.facts.parties[0]
    for seen in view.messages(LocalCentres.__name__, sender=first):
        if seen.arrays["count"].size:
            law = _law(known.plan.schedules[first], COUNT, COUNTED)
            own, others = np.zeros(len(known.rows), np.int64), known.others[0]
            here = np.zeros(int((others != NOWHERE).sum()), np.int64)
            return _presence(seen.arrays["count"], own, here, 1, law)
    return np.zeros(len(known.rows))


_PARTS: tuple[Callable[[View, Known], Floats | None], ...] = (_sizes, _tables, _registers, _answers)


def _by_party(view: View, known: Known, kind: str) -> list[tuple[int, Seen]]:
    parties = known.plan.facts.parties
    return [(parties.index(seen.sender), seen) for seen in view.messages(kind) if seen.sender in parties]


def _law(schedule: Schedule, what: str, bound: Bound) -> PolyaLaw:
    """Return the law of a release's whole noise, which is discrete Laplace noise."""
    return PolyaLaw(scale=schedule.noise_of(what).noise_size(bound))


def _presence(
    counts: NDArray[np.int64], own: Integers, others: Integers, cells: int, law: PolyaLaw
) -> Floats:
    """Return log-odds of presence from noisy counts of cells, each canary by that of her own.

    `others` are the cells of those who are known to be there. Of further canaries in a cell, any number is
    there, by their coins.
    """
    from scipy.stats import binom

    chances, reach = _chances(law)
    unexplained = counts - np.bincount(others, minlength=cells)
    crowd = np.bincount(own, minlength=cells)
    odds = np.zeros(cells)
    for cell in np.flatnonzero(crowd):
        coins = np.arange(crowd[cell])
        likely = binom.pmf(coins, crowd[cell] - 1, 0.5)
        away, there = (
            likely @ _at(chances, unexplained[cell] - coins - more + reach) + _NEVER for more in (0, 1)
        )
        odds[cell] = np.log(there) - np.log(away)
    return odds[own]


def _chances(law: PolyaLaw) -> tuple[Floats, int]:
    """Return the probabilities of noise from -reach to reach: differences of two negative binomials."""
    from scipy.stats import nbinom

    reach = max(law.reach(_REACH), 1)
    one_side = nbinom.pmf(np.arange(reach + 1), float(law.shape), -np.expm1(-1 / law.scale))
    return np.convolve(one_side, one_side[::-1]), reach


def _at(chances: Floats, places: Integers) -> Floats:
    inside = (places >= 0) & (places < len(chances))
    return np.where(inside, chances[np.clip(places, 0, len(chances) - 1)], 0.0)
