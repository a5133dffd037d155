"""`Party`: a name, and ratings that never leave it."""

import hashlib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.files import read_ratings
from cofactor.data.ids import Ids
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, DataError
from cofactor.privacy.budget import Budget
from cofactor.privacy.weights import LEAST_WEIGHT, Weights

LEDGER_SUFFIX = ".ledger"
"""A ledger lies beside the file it belongs to, under the same name and this."""

_NAME = re.compile(r"[\w][\w. -]{0,63}", re.ASCII)


@dataclass(frozen=True, kw_only=True, eq=False)
class Party:
    """A company, a hospital, a phone: somebody who holds ratings."""

    name: str
    """Letters, digits, dots, dashes and spaces: it names files, too."""
    ratings: Ratings = field(repr=False)
    """What never leaves the party except through its door."""
    features: NDArray[np.float32] | None = field(default=None, repr=False)
    """Public numbers about the items, one row each, in the order of the ratings' `item_ids`."""
    attributes: NDArray[np.float32] | None = field(default=None, repr=False)
    """Private numbers about the users, one row each, in the order of the ratings' `user_ids`; NaN is missing.
    They never leave the party except through its door."""
    weights: NDArray[np.float64] | None = field(default=None, repr=False)
    """How much of epsilon each user allows, in the order of the ratings' `user_ids`: private, too."""
    budget: Budget | None = None
    """A smaller budget of its own, if it asks for more privacy than the others do."""
    file: Path | None = None
    """Where the ratings came from; its ledger lies beside it. Without a file the ledger is the run's own."""
    fingerprint: str = field(default="", repr=False)
    """Which data these are: the hash of the file's bytes. It never leaves: see `sealing`."""

    def __post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.ratings, Ratings):
            raise ConfigError(f"party {self.name}: ratings must be Ratings. Read them with read_ratings.")
        given, items = self.features, self.ratings.item_count
        if given is not None and (given.ndim != 2 or len(given) != items):
            raise ConfigError(
                f"party {self.name}: features have shape {given.shape} for {items:,} items. Give one row for "
                "each of ratings.item_ids."
            )
        told, users = self.attributes, self.ratings.user_count
        if told is not None and (told.ndim != 2 or len(told) != users):
            raise ConfigError(
                f"party {self.name}: attributes have shape {told.shape} for {users:,} users. Give one row "
                "for each of ratings.user_ids."
            )
        if self.weights is not None and self.weights.shape != (users,):
            raise ConfigError(
                f"party {self.name}: weights have shape {self.weights.shape} for {users:,} users. Give one "
                "for each of ratings.user_ids."
            )
        if self.budget is not None and type(self.budget) is not Budget:
            raise ConfigError(f"party {self.name}: its own budget must be a Budget; weights are of users.")
        if self.weights is not None and not ((self.weights >= LEAST_WEIGHT) & (self.weights <= 1)).all():
            raise ConfigError(f"party {self.name}: weights must lie between {LEAST_WEIGHT:g} and 1.")

    @classmethod
    def from_csv(cls, path: str | Path, *, name: str | None = None, **columns: Any) -> "Party":
        """Read a party's file, of any kind that `read_ratings` reads; it is named after the file."""
        file = Path(path)
        ratings = read_ratings(file, **columns)
        return cls(name=name or named_after(file), ratings=ratings, file=file, fingerprint=fingerprint(file))

    @property
    def ledger_path(self) -> Path | None:
        """Where its ledger lies, if it has a file."""
        return None if self.file is None else ledger_path(self.file)

    @property
    def has_ledger(self) -> bool:
        """Whether a ledger lies beside its file."""
        return self.ledger_path is not None and self.ledger_path.exists()

    def with_ratings(self, ratings: Ratings) -> "Party":
        """Return the party with other ratings of the same items; attributes and weights follow their users.

        Users who are new to it have no attributes (NaN), and the least weight.
        """
        users = ratings.user_ids
        attributes = self._following(self.attributes, users, np.nan)
        weights = self._following(self.weights, users, LEAST_WEIGHT)
        return replace(self, ratings=ratings, attributes=attributes, weights=weights)

    def with_weights(self, weights: Weights) -> "Party":
        """Return the party with a weight for each of its users; errors name the party, and nobody."""
        try:
            return replace(self, weights=weights.of(self.ratings.user_ids))
        except DataError as error:
            raise DataError(f"weights of the users of {self.name}: {error}") from None

    def _following(self, numbers: NDArray[Any] | None, users: Ids, unknown: float) -> NDArray[Any] | None:
        """Return numbers about the party's users, a row each, in the order of other users."""
        own = self.ratings.user_ids
        if numbers is None or np.array_equal(users, own):
            return numbers
        places = {user: row for row, user in enumerate(own.tolist())}
        rows = np.array([places.get(user, -1) for user in users.tolist()], np.int64)
        nothing = np.full((1, *numbers.shape[1:]), unknown, numbers.dtype)
        return np.concatenate([numbers, nothing])[rows]


def check_name(name: str) -> None:
    """Refuse a name that could not name a file."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            "a party's name must begin with a letter or digit, and hold up to 64 letters, digits, dots, "
            f"dashes or spaces, got {name!r}. A party is called after its file, if nothing else is said."
        )


def named_after(file: Path) -> str:
    """Return a party's name, made of its file's."""
    return re.sub(r"[^\w. -]", "-", file.name.split(".")[0], flags=re.ASCII)[:64] or "party"


def ledger_path(file: Path) -> Path:
    """Return where the ledger of a file lies."""
    return file.with_name(file.name + LEDGER_SUFFIX)


def fingerprint(file: Path) -> str:
    """Say which data these are: the hash of the file's bytes."""
    with file.open("rb") as opened:
        return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"
