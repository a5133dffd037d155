"""`People`: somebody who holds private numbers, one for each person, or a person herself."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cofactor.errors import DataError
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party, check_name, ledger_path
from cofactor.privacy.budget import Budget
from cofactor.privacy.fixed_point import rounded_by_chance
from cofactor.privacy.noise import below
from cofactor.randomness import Random, SecureRandom
from cofactor.survey.method import Floats

_SECURE = SecureRandom()


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """Private numbers, one for each person: those at a company, or the one on a phone."""

    values: Floats = field(repr=False)
    """What never leaves except by an answer."""
    name: str = "people"
    """Letters, digits, dots, dashes and spaces: it names files, too."""
    file: Path | None = None
    """Where the numbers came from; the ledger lies beside it."""
    fingerprint: str = field(default="", repr=False)
    """Which data these are: the hash of the file's bytes. It never leaves."""
    budget: Budget | None = None
    """A smaller budget of their own, if they ask for more privacy than others do."""

    def __post_init__(self) -> None:
        check_name(self.name)
        try:
            found = np.array(self.values, np.float64)
        except (ValueError, TypeError, OverflowError):
            raise DataError(f"{self.name}: values must be numbers, one for each person.") from None
        if found.ndim != 1 or not np.isfinite(found).all():
            raise DataError(f"{self.name}: values must be a row of finite numbers, one for each person.")
        found.flags.writeable = False
        object.__setattr__(self, "values", found)

    @property
    def ledger_path(self) -> Path | None:
        """Where its ledger lies, if it has a file."""
        return None if self.file is None else ledger_path(self.file)


def activity_of(federation: Federation) -> list[People]:
    """Return how many ratings each user has, party by party."""
    return [_people(party, np.diff(party.ratings.by_user.ptr)) for party in federation.parties]


def one_rating_each(federation: Federation, random: Random = _SECURE, *, whole: bool = False) -> list[People]:
    """Return one rating of each user, drawn by chance; the middle of the scale for who has none.

    If they are to be `whole` numbers, others are rounded by chance, right on average.
    """
    middle = (federation.scale.low + federation.scale.high) / 2
    found = []
    for party in federation.parties:
        values = _drawn(party, middle, random)
        values = rounded_by_chance(values, random).astype(np.float64) if whole else values
        found.append(_people(party, values))
    return found


def _drawn(party: Party, middle: float, random: Random) -> Floats:
    ratings = party.ratings.by_user
    sizes = np.diff(ratings.ptr)
    # 2^40 is far above any number of ratings: dividing leaves no rating noticeably likelier.
    place = ratings.ptr[:-1] + below(len(sizes), 2**40, random) % np.maximum(sizes, 1)
    values = np.append(ratings.values, np.float32(middle)).astype(np.float64)
    return np.where(sizes > 0, values[np.minimum(place, len(values) - 1)], middle)


def _people(party: Party, values: Floats) -> People:
    return People(
        name=party.name,
        values=values,
        file=party.file,
        fingerprint=party.fingerprint,
        budget=party.budget,
    )
