"""Reading private numbers from a table: one row for each person, one number in it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from cofactor.config import one_of
from cofactor.data.person_tables import counted, read_person_table
from cofactor.errors import ConfigError, DataError
from cofactor.federation.party import fingerprint, named_after
from cofactor.privacy.noise import below
from cofactor.randomness import Random, SecureRandom
from cofactor.survey.method import Floats
from cofactor.survey.people import People
from cofactor.survey.question import Question

Missing = Literal["skip", "random"]
"""What becomes of people without a number: they do not answer, and that is then known; or they answer with a
number drawn from the range, so that nobody sees who has none, and the estimate is pulled towards evenness."""

_SECURE = SecureRandom()
_PLACES = 2**40
"""Numbers that are drawn lie at one of so many places of the range."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """A column of numbers, one for each person, as a file holds it."""

    file: Path
    label: str
    """What errors call the file."""
    column: str
    values: Floats = field(repr=False)
    """NaN where somebody has none."""
    rows: Sequence[int] = field(repr=False)
    """The rows of the file that they stand in."""

    @property
    def missing(self) -> int:
        """How many people have none: LOCAL."""
        return int(np.isnan(self.values).sum())

    def people(
        self,
        *,
        question: Question | None = None,
        missing: Missing | None = None,
        name: str | None = None,
        random: Random = _SECURE,
    ) -> People:
        """Return the people who answer; what becomes of those without a number must be said."""
        values = self._filled(question, missing, random) if self.missing else self.values
        if not len(values):
            raise DataError(f'{self.label}, column "{self.column}": nobody has a number. Nobody can answer.')
        return People(
            name=name or named_after(self.file),
            values=values,
            file=self.file,
            fingerprint=fingerprint(self.file),
        )

    def _filled(self, question: Question | None, missing: Missing | None, random: Random) -> Floats:
        if missing is None:
            empty = [row for row, value in zip(self.rows, self.values, strict=True) if math.isnan(value)]
            raise DataError(
                f'{self.label}, column "{self.column}": {counted(empty, "is empty", "are empty")}. Say what '
                "becomes of people without a number: --missing skip (they do not answer: how many those are "
                "is then known) or --missing random (they answer with a number drawn from the range: nobody "
                "sees who has none)."
            )
        one_of(get_args(Missing), missing=missing)
        if missing == "skip":
            return self.values[~np.isnan(self.values)]
        if question is None:
            raise ConfigError('missing="random" draws numbers from a range: name the question, too.')
        return np.where(np.isnan(self.values), drawn_from(question, len(self.values), random), self.values)


def read_people(
    path: str | Path,
    column: str,
    *,
    question: Question | None = None,
    user: str | None = None,
    missing: Missing | None = None,
    name: str | None = None,
    member: str | None = None,
    random: Random = _SECURE,
) -> People:
    """Read who holds which number from csv, tsv, parquet, MovieLens or RecBole files; plain, .gz or .zip.

    One row is one person: where there is a column of ids, which `user` may name, each must occur once. The
    ledger lies beside the file. `missing` says what becomes of people without a number; to draw one it takes
    the `question`. `member` names the file inside a .zip that holds several.
    """
    found = read_numbers(path, column, user=user, member=member)
    return found.people(question=question, missing=missing, name=name, random=random)


def read_numbers(
    path: str | Path, column: str, *, user: str | None = None, member: str | None = None
) -> Numbers:
    """Read a column of numbers; errors name rows, and nothing that stands in them."""
    table = read_person_table(path, columns=[column], user=user, member=member)
    table.check_once(
        why="everybody answers once",
        remedy="Keep one row of each, or name the right column of ids with --user. Of a file of ratings, ask "
        "each user for one of hers with --rating, or for how many she has with --activity.",
    )
    return Numbers(
        file=Path(path),
        label=table.label,
        column=column,
        values=table.finite(column, instead="name another column with --column"),
        rows=table.rows,
    )


def drawn_from(question: Question, count: int, random: Random = _SECURE) -> Floats:
    """Return numbers that lie anywhere in a question's range, evenly over its buckets."""
    low, high = question.edges(1).tolist()
    part: Floats = below(count, _PLACES, random) / _PLACES
    found: Floats = low * (high / low) ** part if question.log else low + part * (high - low)
    found = np.rint(found) if question.whole else found
    clipped: Floats = np.clip(found, question.low, question.high)
    return clipped
