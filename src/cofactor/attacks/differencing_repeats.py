"""Whether noise repeats in any messages at all: what one sender sends twice must differ by fresh noise."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import ConfigError
from cofactor.federation.door import COORDINATOR
from cofactor.federation.sizes import laws_in
from cofactor.federation.summing import Form, SumBegun
from cofactor.federation.view import Seen, View
from cofactor.privacy.laws import AnyLaw, SkellamLaw

_HALF = 0.5
"""Spread, relative to the promised noise, below which noise repeats: that of fresh noise is 1 or more."""
_FEWEST = 30
"""Numbers that a message must have for its spread to tell anything."""


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """How far what somebody sent in two rounds lies apart."""

    sender: str
    kind: str
    array: str
    rounds: tuple[int, int]
    numbers: int
    """How many numbers were compared."""
    spread: float
    """Deviation of the noise that explains the difference: of each message, if both have fresh noise."""
    promised: float | None
    """Deviation of the noise that was promised, where that is known."""

    @property
    def part(self) -> float | None:
        """The spread, relative to the promised noise: 1 or more where noise is fresh."""
        return None if not self.promised else self.spread / self.promised

    @property
    def alarming(self) -> bool:
        """Whether messages differ by less than fresh noise would make them."""
        return self.part is not None and self.part < _HALF


def repeating(view: View, *, promised: Mapping[str, float] | None = None) -> tuple[Repeats, ...]:
    """Compare what everybody sent in consecutive rounds, number by number: sums, and single answers if seen.

    What noise was promised is read off the messages of secure sums, which say it; for others `promised` tells
    the deviation, by name of the array.
    """
    if not view.seen:
        raise ConfigError('no messages were captured. Train a simulation with capture="coordinator".')
    told, said = dict(promised or {}), promised_variances(view)
    series: dict[tuple[str, str, str], list[tuple[int, NDArray[np.float64]]]] = {}
    for each in view.seen:
        if each.receiver != COORDINATOR or each.kind in ("SumBegun", "SumStep"):
            continue
        for name, array in each.arrays.items():
            if array.size >= _FEWEST and array.dtype.kind in "fi":
                series.setdefault((each.sender, each.kind, name), []).append(
                    (each.round, array.astype(float))
                )
    return tuple(
        found
        for (sender, kind, name), rows in series.items()
        for found in _compared(sender, kind, name, rows, _deviation(said.get((kind, name)), told.get(name)))
    )


def _compared(
    sender: str, kind: str, name: str, rows: list[tuple[int, NDArray[np.float64]]], promised: float | None
) -> Iterator[Repeats]:
    for (before, one), (after, other) in pairwise(rows):
        if one.shape == other.shape:
            yield Repeats(
                sender=sender,
                kind=kind,
                array=name,
                rounds=(before, after),
                numbers=one.size,
                spread=float(np.sqrt(np.mean((other - one) ** 2) / 2)),
                promised=promised,
            )


def _deviation(variance: float | None, told: float | None) -> float | None:
    return told if variance is None else math.sqrt(variance)


def promised_variances(view: View) -> dict[tuple[str, str], float]:
    """Return, by kind of message and name of array, the variance of the noise that secure sums are to have.

    Their first messages say it, in public: it is that of all honest parties together.
    """
    return dict(each for begun in view.messages("SumBegun") for each in _said(begun))


def _said(begun: Seen) -> Iterator[tuple[tuple[str, str], float]]:
    form = Form.read(str(begun.plain["form"]))
    message = SumBegun(form=str(form), **begun.arrays)
    for (name, *_), law in zip(form.arrays, laws_in(message, len(form.arrays), begun.sender), strict=True):
        if law is not None:
            yield (form.kind, name), _variance(law)


def _variance(law: AnyLaw) -> float:
    if isinstance(law, SkellamLaw):
        return law.variance
    fall = math.exp(-1 / law.scale)
    return 2 * float(law.shape) * fall / (1 - fall) ** 2
