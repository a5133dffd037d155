"""Numbers of people: made here, or from a sample of taxi trips.

The thesis has Beta(5, 2), times of day at which taxis were taken, incomes and retirement plans. The last two
cannot be had; incomes are made up here, spiky as the thesis describes them, and taxi fares, which are real,
are spiky for the same reason: amounts of money are round.
"""

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cofactor.errors import DataError
from cofactor.randomness import Seeds
from cofactor.survey.method import Floats, cells_of

BETA, TAXI, INCOME, FARES = "beta", "taxi", "income-like", "fares"
NAMES = (BETA, TAXI, INCOME, FARES)
SMOOTH, SPIKY = (BETA, TAXI), (INCOME, FARES)
TRIPS = "nyc-taxi-yellow-sample.npz"
"""A file of arrays `pickup`, in seconds, and `fare_amount`, in dollars."""

_DAY = 86_400
_INCOMES = 2**19
"""Those at or above are left out, as in the thesis."""
_MEDIAN, _SPREAD = 32_000.0, 1.0
"""Of incomes before they are rounded: lognormal."""
_ROUNDED = {1_000: 0.5, 500: 0.15, 100: 0.2, 1: 0.15}
"""To how many dollars people round their incomes, and which part of them does. The parts are ours."""
_FARES = 60.0
"""Dollars; fares below 0 or from here on, about 1% of all, are left out. Multiples of 50 cents then lie
anywhere in their buckets; with 64 they would all lie at the lower ends."""
_FEW = 100_000
"""People, where few must do."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """A number of each of many people, mapped to [0, 1]."""

    name: str
    values: Floats
    buckets: int
    """Into how many parts histograms divide [0, 1]."""

    def histogram(self, buckets: int) -> Floats:
        """Return which part of the people is in each bucket: what is to be found out."""
        counts = np.bincount(cells_of(self.values, buckets), minlength=buckets)
        return np.asarray(counts / len(self.values), np.float64)

    def fewer(self) -> "Numbers":
        """Return some of the people, evenly from all."""
        return replace(self, values=self.values[:: -(-len(self.values) // _FEW)])


def read_numbers(place: Path | None, names: Sequence[str], *, quick: bool = False) -> list[Numbers]:
    """Return the sets that are made here, and those of the file of trips, where a folder holds it."""
    file = None if place is None else _trips(place)
    made = [_MADE[name]() for name in names if name in _MADE]
    read = [] if file is None else [_READ[name](file) for name in names if name in _READ]
    if empty := [one.name for one in read if not len(one.values)]:
        raise DataError(f"{file} holds nobody's number for {', '.join(empty)}. Fetch it again.")
    found = sorted([*made, *read], key=lambda one: names.index(one.name))
    return [one.fewer() for one in found] if quick else found


def beta(people: int = 100_000) -> Numbers:
    """Return the thesis' synthetic set."""
    values = Seeds().generator("Beta(5, 2)").beta(5, 2, people)
    return Numbers(name=BETA, values=values, buckets=256)


def income(people: int = 1_000_000) -> Numbers:
    """Return made-up incomes of this many people, less the few above the thesis' limit."""
    chance = Seeds().generator("incomes")
    exact = _MEDIAN * np.exp(_SPREAD * chance.standard_normal(people))
    unit = chance.choice(list(_ROUNDED), size=people, p=list(_ROUNDED.values()))
    rounded = unit * np.rint(exact / unit)
    return Numbers(name=INCOME, values=rounded[rounded < _INCOMES] / _INCOMES, buckets=1024)


def _taxi(file: Path) -> Numbers:
    """Times of day."""
    return Numbers(name=TAXI, values=(_array(file, "pickup") % _DAY) / _DAY, buckets=1024)


def _fares(file: Path) -> Numbers:
    """Most are a multiple of 50 cents."""
    dollars = _array(file, "fare_amount")
    kept = dollars[(dollars >= 0) & (dollars < _FARES)]
    return Numbers(name=FARES, values=kept / _FARES, buckets=1024)


_MADE: dict[str, Callable[[], Numbers]] = {BETA: beta, INCOME: income}
_READ: dict[str, Callable[[Path], Numbers]] = {TAXI: _taxi, FARES: _fares}


def _trips(place: Path) -> Path | None:
    if not place.exists():
        raise DataError(f"{place}: there is no such folder. Name one that holds {TRIPS}, or leave it out.")
    file = place / TRIPS if place.is_dir() else place
    return file if file.is_file() else None


def _array(file: Path, name: str) -> Floats:
    try:
        with zipfile.ZipFile(file), np.load(file, allow_pickle=False) as stored:
            found = np.asarray(stored[name], np.float64).ravel()
    except (KeyError, ValueError, OSError, zipfile.BadZipFile):
        raise DataError(f"{file} does not hold an array of numbers {name}. Fetch it again.") from None
    return found[np.isfinite(found)]
