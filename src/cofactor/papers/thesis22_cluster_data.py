"""People to be clustered: numbers made here, letters, taxi trips and a census, all mapped to [-1, 1].

The thesis has a mixture of Gaussians, letters, taxi trips and applicants for loans. The loans cannot be had:
a census stands in for them where the text is about real people, and letters, which have as many columns,
where it is about the number of columns.
"""

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cofactor.cluster.method import Floats, Integers
from cofactor.errors import DataError
from cofactor.randomness import Seeds

GAUSSIAN, LETTER, TAXI, ADULT = "gaussian", "letter", "taxi", "adult"
CLUSTER_NAMES = (GAUSSIAN, TAXI, ADULT, LETTER)
FILES = {LETTER: "letter.npz", TAXI: "nyc-taxi-yellow-sample.npz", ADULT: "adult.npz"}
"""What a folder holds; each a file of arrays."""
CLUSTERS = 5
"""k in the thesis: how many centres there are, and how many are looked for."""
SPREAD = 0.25
"""Standard deviation about a centre; the thesis does not say."""

_USERS, _COLUMNS = 20_000, 8
"""Of the mixture."""
_TRIPS = 100_000
_FEW = 20_000
"""Users, where few must do."""
_WEEK = 60 * 60 * 24 * 7
_HIGHEST = 0.95
"""Larger numbers than this quantile are brought down to it, as the thesis does with loans."""
_TIMES = ("pickup", "dropoff")
_ZONES = 265
"""Of New York's taxis, by number."""
_TAXI_COLUMNS = (
    "pickup", "pickup_location_id", "passenger_count", "trip_distance",
    "dropoff", "dropoff_location_id", "fare_amount", "tip_amount",
)  # fmt: skip
"""Four about where a trip begins and how far it goes, four about where it ends and what it costs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Points:
    """Numbers of users, a row for each, in [-1, 1]."""

    values: Floats
    labels: Integers | None = None
    """From which centre each user was drawn, where that is known."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Crowd:
    """A set of users, of whom some are drawn anew for every repeat."""

    name: str
    users: int
    columns: int
    drawn: Callable[[int], Points]
    """Returns the users of a repeat."""
    anew: bool = False
    """Whether repeats have different users."""


def read_crowds(place: Path | None, names: Sequence[str], *, quick: bool = False) -> list[Crowd]:
    """Return the mixture, which is made here, and those sets whose files a folder holds."""
    if place is not None and not place.is_dir():
        raise DataError(f"{place}: there is no such folder. Name one that holds {', '.join(FILES.values())}.")
    found = []
    for name in names:
        if name == GAUSSIAN:
            found.append(mixture())
        elif place is not None and (file := place / FILES[name]).is_file():
            found.append(_fixed(name, _READ[name](file), quick=quick))
    return found


def mixture(users: int = _USERS) -> Crowd:
    """Return the thesis' synthetic set; every repeat has centres of its own."""
    return Crowd(
        name=GAUSSIAN,
        users=users,
        columns=_COLUMNS,
        drawn=lambda repeat: gaussian(users, seed=repeat),
        anew=True,
    )


def gaussian(users: int = _USERS, *, seed: int) -> Points:
    """Draw centres anywhere in [-1, 1]^8, and users about them, who are kept within."""
    chance = Seeds(seed).generator("mixture of Gaussians")
    centres = chance.uniform(-1, 1, (CLUSTERS, _COLUMNS))
    labels = chance.integers(CLUSTERS, size=users)
    values = centres[labels] + SPREAD * chance.standard_normal((users, _COLUMNS))
    return Points(values=np.clip(values, -1, 1), labels=labels)


def scaled(values: Floats, low: float, high: float) -> Floats:
    """Map a column from its range to [-1, 1]; what lies outside is brought to an end of it."""
    return np.asarray(2 * (np.clip(values, low, high) - low) / (high - low) - 1, np.float64)


def _fixed(name: str, values: Floats, *, quick: bool) -> Crowd:
    most = _FEW if quick else len(values)
    kept = Points(values=values[:: -(-len(values) // most)])
    return Crowd(name=name, users=len(kept.values), columns=values.shape[1], drawn=lambda _: kept)


def _letters(file: Path) -> Floats:
    """Whole numbers from 0 to 15."""
    return scaled(_arrays(file, ["X"])["X"], 0, 15)


def _census(file: Path) -> Floats:
    """Columns below their 95% quantiles; one that is the same for nearly everybody has nothing left."""
    table = _arrays(file, ["X"])["X"]
    ends = [(float(column.min()), float(np.quantile(column, _HIGHEST))) for column in table.T]
    kept = [scaled(column, *end) for column, end in zip(table.T, ends, strict=True) if end[0] < end[1]]
    return np.stack(kept, axis=1)


def _trips(file: Path) -> Floats:
    """Times of week, zones by their numbers, and amounts from 0 to their 95% quantiles."""
    arrays = _arrays(file, _TAXI_COLUMNS)
    table = np.stack(list(arrays.values()), axis=1)
    known = table[np.isfinite(table).all(axis=1)]
    if not len(known):
        raise DataError(f"{file} holds nobody of whom all is known. Fetch it again.")
    chosen = known[np.linspace(0, len(known) - 1, min(_TRIPS, len(known))).astype(int)]
    return np.stack([_trip(name, column) for name, column in zip(arrays, chosen.T, strict=True)], axis=1)


def _trip(name: str, column: Floats) -> Floats:
    if name in _TIMES:
        return scaled(column % _WEEK, 0, _WEEK)
    if name.endswith("location_id"):
        return scaled(column, 1, _ZONES)
    return scaled(column, 0, float(np.quantile(column, _HIGHEST)))


_READ: dict[str, Callable[[Path], Floats]] = {LETTER: _letters, TAXI: _trips, ADULT: _census}


def _arrays(file: Path, names: Sequence[str]) -> Mapping[str, Floats]:
    try:
        with zipfile.ZipFile(file), np.load(file, allow_pickle=False) as stored:
            found = {name: np.asarray(stored[name], np.float64) for name in names}
    except (KeyError, ValueError, OSError, zipfile.BadZipFile):
        raise DataError(
            f"{file} does not hold arrays of numbers {', '.join(names)}. Fetch it again."
        ) from None
    if not all(len(array) for array in found.values()):
        raise DataError(f"{file} holds nobody. Fetch it again.")
    return found
