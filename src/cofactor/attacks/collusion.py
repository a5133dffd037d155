"""Collusion: what some parties and the coordinator know when they put together all they have seen.

`colluded` says it of any view of several roles: whose answers lay open, what is left of sums without the
colluders' own answers, and what their keys open. `noise_left` measures the noise that still protects the
others, beside what was promised for so many colluding parties.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.collusion_keys import opened_uploads, quorum_of
from cofactor.attacks.differencing_repeats import promised_variances
from cofactor.config import from_table
from cofactor.errors import ConfigError, TooFew
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.view import PARTY, Seen, Truth, View
from cofactor.privacy.layers import Layers
from cofactor.recipes.sums import AnySum

Reals = NDArray[np.float64]

_STEPS = ("SumBegun", "SumStep")


@dataclass(frozen=True, kw_only=True, eq=False)
class Rest:
    """A sum without the answers of those who collude: what the honest parties sent, and nobody was to see."""

    round: int
    kind: str
    honest: tuple[str, ...]
    """Whose answers are in it; of one party it is the answer itself."""
    arrays: Mapping[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Collusion:
    """What some roles see together."""

    roles: tuple[str, ...]
    honest: int
    """Parties that do not collude."""
    alone: Mapping[str, int]
    """Answers of single honest parties that lay open, by what protected them."""
    rests: int
    """Sums of which they know what the honest parties added, all of them together."""
    promised: int | None
    """How many colluding parties noise is made for, where parties share it."""
    keys: int
    """Keys of sums that they hold."""
    quorum: int | None
    """How many keys open a sum, where keys hide answers."""
    opened: int
    """Hidden uploads of single honest parties that these keys opened."""

    @property
    def colluding(self) -> int:
        """How many parties collude."""
        return sum(role.startswith(PARTY) for role in self.roles)

    def __str__(self) -> str:
        """Say it in a sentence."""
        who = f"{', '.join(self.roles)} together"
        keys = "" if self.quorum is None else f"{self.keys} keys, where {self.quorum} open a sum"
        if self.opened:
            return f"{who} hold {keys}, and opened {self.opened:,} uploads of single honest parties."
        if any(self.alone.values()):
            words = ", ".join(f"{count:,} with {what}" for what, count in self.alone.items())
            return f"{who} saw answers of single honest parties: {words}."
        if self.rests and self.honest == 1:
            return (
                f"{who} took their own answers off {self.rests:,} sums and had those of the one that is left."
            )
        beside = f"; their {keys}, opened nothing else" if keys else ""
        return f"{who} saw {self.rests:,} sums of the answers of {self.honest} honest parties{beside}."


@dataclass(frozen=True, kw_only=True)
class NoiseLeft:
    """The noise that protects honest parties from those who collude."""

    colluding: int
    promised: int
    """How many colluding parties it is made for."""
    numbers: int
    """How many numbers were measured: sums about items that no honest user has rated, which are noise."""
    left: float
    """Their variance, relative to what was promised."""
    expected: float
    """What it should be, with so many honest parties."""
    reckoned_off: float = 0.0
    """Variance of the colluders' own layers that the sum is without, and their answers are not: they know
    these numbers, and here only their variance is taken off."""

    @property
    def error(self) -> float:
        """The deviation by which `left` may be off by chance: that of Laplace noise, which is the largest."""
        return (self.expected + self.reckoned_off) * math.sqrt(5 / self.numbers)

    @property
    def kept(self) -> bool:
        """Whether the promised noise is there, but for chance."""
        return self.left >= 1 - 5 * self.error

    def __str__(self) -> str:
        """Say it in a sentence."""
        return (
            f"With {self.colluding} colluding parties, where noise is made for {self.promised}, "
            f"{self.left:.0%} of the promised variance is left ({self.expected:.0%} expected)."
        )


def colluded(view: View) -> Collusion:
    """Say what the roles of a view know together."""
    honest = _honest(view)
    alone = Counter(
        each.protection
        for each in view.seen
        if each.receiver == COORDINATOR and each.sender in honest and each.kind not in _STEPS
    )
    try:
        opened = sum(each.sender in honest for each in opened_uploads(view)) if view.keys else 0
    except TooFew:
        opened = 0
    layers = _layers(view)
    return Collusion(
        roles=view.roles,
        honest=len(honest),
        alone=dict(alone),
        rests=sum(1 for _ in rests(view)),
        promised=None if layers is None else layers.colluding,
        keys=len(view.keys),
        quorum=quorum_of(view),
        opened=opened,
    )


def rests(view: View) -> Iterator[Rest]:
    """Yield every opened sum without the answers of those who collude, as far as these took part in it.

    Only what they know is taken off: their own answers, with all of their noise.
    """
    honest = _honest(view)
    own = {(each.round, each.kind, each.sender): each for each in view.seen if each.receiver == SUM}
    for total in view.seen:
        if total.sender != SUM:
            continue
        mine = [each for (round, kind, _), each in own.items() if (round, kind) == (total.round, total.kind)]
        arrays = {name: array - _summed(mine, name) for name, array in total.arrays.items()}
        yield Rest(round=total.round, kind=total.kind, honest=honest, arrays=arrays)


def noise_left(view: View, truth: Truth) -> NoiseLeft:
    """Measure the noise that is left in sums without the answers of those who collude.

    Sums about items that no honest user has rated hold nothing else; which these are, only the truth says.
    Colluding parties also know those layers of their noise that a secure sum takes off again.
    """
    layers, said = _layers(view), promised_variances(view)
    if layers is None or not said:
        raise ConfigError(
            "noise that parties share is in secure sums of a run with a budget. This run has none: look at "
            "colluded(view)."
        )
    count, honest = len(view.parties), _honest(view)
    colluding = count - len(honest)
    excess = colluding * float(layers.variances(1.0)[layers.kept(count) :].sum())
    bare = _unrated(view, truth, honest)
    found = [
        np.asarray(rest.arrays[name], np.float64)[: view.items][bare] / math.sqrt(variance)
        for rest in rests(view)
        for (kind, name), variance in said.items()
        if kind == rest.kind and len(rest.arrays[name]) >= view.items
    ]
    if not found or not bare.any():
        raise ConfigError("no sum has a row for each item, or honest users have rated them all.")
    squares = np.concatenate([each.ravel() for each in found]) ** 2
    return NoiseLeft(
        colluding=colluding,
        promised=layers.colluding,
        numbers=squares.size,
        left=float(squares.mean()) - excess,
        expected=len(honest) * layers.remaining(count, 1.0),
        reckoned_off=excess,
    )


def _honest(view: View) -> tuple[str, ...]:
    return tuple(party for party in view.parties if PARTY + party not in view.roles)


def _summed(answers: list[Seen], name: str) -> NDArray[Any]:
    return np.asarray(sum((each.arrays[name] for each in answers), np.int64(0)))


def _unrated(view: View, truth: Truth, honest: tuple[str, ...]) -> NDArray[np.bool_]:
    found = np.ones(view.items, np.bool_)
    for party in honest:
        found[truth.ratings[party].items] = False
    return found


def _layers(view: View) -> Layers | None:
    """Return how parties share noise, as everybody knows it; None where each adds all of its own."""
    table = view.recipe.get("aggregate")
    if not isinstance(table, Mapping):
        return None
    aggregate: AnySum = from_table(AnySum, table, "aggregate")
    return aggregate.layers(len(view.parties))
