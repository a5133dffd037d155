"""`PublicItems`: what everybody may know about the items, in numbers, declared before training."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor.data.coding import Coding, check_table
from cofactor.data.describing import described, unfit
from cofactor.data.grouping import read_only
from cofactor.data.ids import Ids, plain_ids
from cofactor.data.tables import Table, read_items
from cofactor.data.tag_genome import is_tag_genome, tag_components
from cofactor.errors import ConfigError, DataError

_NOT_IN_TABLES = {"table": False}


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicItems:
    """Public numbers about items: a row for each item, a column for each name. Nothing protects them.

    Public means: known to everybody, and not computed from the users whose ratings are to be protected.
    Whoever makes them declares that; it cannot be checked. A model may use them freely, and its guarantee
    lists them.

    `of_table` makes them from a table by these rules, which look at nothing but the table:

    - a title: is it a sequel, has it an alternative title in brackets, and the year that ends it
    - years and other numbers: eight hat functions, their knots at quantiles where each value weighs the root
      of how many items have it; standardised if there are fewer than 20 values; the mean where missing
    - categories and tags: one column for each that at least 5 items have and at least 5 have not; and
      whether an item has three or more tags
    - other text: the 16 most frequent words of at least four letters among those that at least 5 items have
      and at most a fifth of them
    - left out, and listed in `left_out`: ids and links; numbers that by their names may be reckoned from
      ratings, such as average_rating; what no rule can use
    - constant and duplicate columns are dropped; of more than 64 those that vary the most are kept
    """

    source: str
    """The file they come from, or what their maker calls them."""
    names: tuple[str, ...]
    """One for each column."""
    sha256: str
    """Of ids and numbers: which ones were public."""
    left_out: tuple[str, ...] = ()
    """Columns of the table that were left out, and why: one sentence each."""
    ids: Ids = field(default_factory=lambda: np.zeros(0, np.int64), repr=False, metadata=_NOT_IN_TABLES)
    """The items, one a row; empty if this was read from a run's settings, which name the numbers only."""
    matrix: NDArray[np.float32] = field(
        default_factory=lambda: np.zeros((0, 0), np.float32), repr=False, metadata=_NOT_IN_TABLES
    )
    """A row for each of the ids, a column for each of the names."""
    coding: Coding | None = field(default=None, repr=False, metadata=_NOT_IN_TABLES)
    """How a table became them, if `coded` made them: items that are new later can be coded likewise."""

    def __post_init__(self) -> None:
        if not self.has_numbers:
            return
        if self.matrix.shape != (len(self.ids), len(self.names)) or not self.names:
            raise DataError(
                f"public items: {len(self.ids):,} ids and {len(self.names)} names for numbers of shape "
                f"{self.matrix.shape}. Give one row for each item and one column for each name."
            )
        if not np.isfinite(self.matrix).all():
            raise DataError("public items: some numbers are missing or not finite. Fill them in first.")
        if len(self._places) < len(self.ids):
            raise DataError("public items: an id occurs twice. Give each item one row.")
        if self.sha256 != _digest(self.ids, self.matrix):
            raise DataError("public items: these are not the numbers that sha256 names.")

    @classmethod
    def of_table(
        cls, table: Table, *, source: str | None = None, columns: Sequence[str] | None = None
    ) -> "PublicItems":
        """Describe the items of a table by the rules above; the source is the table's file, if left out.

        Only the named `columns` are used, if any are named; none of them is left out for its name then.
        """
        check_table(table)
        source = source or table.source or "a table"
        chosen = table.columns if columns is None else [table.column(name) for name in columns]
        found = described(chosen, chosen=columns is not None)
        if not found.names:
            reasons = " ".join(found.left_out) or "It has no column but the ids."
            raise DataError(f"{source}: nothing in it describes items in a way that can be used. {reasons}")
        return _made(source, found.names, table.ids, found.matrix, found.left_out)

    @classmethod
    def coded(cls, table: Table, *, coding: Coding | None = None, source: str | None = None) -> "PublicItems":
        """Describe the items of a table by a coding, and remember it, so that new items can be coded alike.

        If none is given, it is read off the table by the rules of `Coding`; columns that by their names are
        ids, or may be reckoned from ratings, are left out first. A missing value becomes its column's mean.
        """
        check_table(table)
        source = source or table.source or "a table"
        used = coding or _usual_coding(table)
        numbers = used.encoded(table, table.ids)
        known = np.isfinite(numbers)
        sums = np.where(known, numbers, 0).sum(axis=0, dtype=np.float64)
        # Sums may differ in their last digits from machine to machine; what is public must not.
        means = np.round(sums / np.maximum(known.sum(axis=0), 1), 4).astype(np.float32)
        filled = np.where(known, numbers, means)
        return replace(_made(source, used.names, table.ids, filled, used.left_out), coding=used)

    @classmethod
    def of_numbers(
        cls, ids: ArrayLike, matrix: ArrayLike, *, names: Sequence[str] = (), source: str
    ) -> "PublicItems":
        """Take numbers as they are: a row for each id."""
        numbers = np.array(matrix, np.float32)
        if numbers.ndim != 2:
            raise DataError(f"public items: the numbers have shape {numbers.shape}. Give one row an item.")
        called = tuple(names) or tuple(f"column {at + 1}" for at in range(numbers.shape[1]))
        return _made(source, called, plain_ids(ids), numbers, ())

    @classmethod
    def from_file(
        cls, path: str | Path, *, id: str | None = None, columns: Sequence[str] | None = None
    ) -> "PublicItems":
        """Read a table of items; `id` names the column of their ids. A tag genome is known by its header."""
        if id is None and columns is None and is_tag_genome(path):
            return cls.of_tag_genome(path)
        return cls.of_table(read_items(path, id=id), columns=columns)

    @classmethod
    def of_tag_genome(cls, path: str | Path, *, components: int = 20) -> "PublicItems":
        """Describe films by the first principal components of MovieLens' tag genome, genome-scores.csv.

        The publisher computed it from what its own users did: whoever uses it declares that these are not
        the users to be protected.
        """
        found = tag_components(path, components)
        return _made(found.source, found.names, found.ids, found.matrix, ())

    @property
    def has_numbers(self) -> bool:
        """Whether the numbers are here; a run's settings only say which they were."""
        return len(self.ids) > 0

    def known(self, ids: Sequence[Any] | Ids) -> int:
        """Return how many of the ids are described."""
        return int((self._places_of(ids) >= 0).sum())

    def rows(self, ids: Sequence[Any] | Ids) -> NDArray[np.float32]:
        """Return a row for each id; one that is not described gets the mean of every column."""
        places = self._places_of(ids)
        usual = self.matrix.mean(axis=0, dtype=np.float64).astype(np.float32)
        return np.concatenate([self.matrix, usual[None]])[places]

    def matching_rows(self, ids: Sequence[Any] | Ids, *, owner: str) -> NDArray[np.float32]:
        """Return a row for each id of the owner's items; refuse if not one of them is described."""
        if not self.known(ids):
            ours, theirs = (
                ", ".join(str(one) for one in np.asarray(some)[:3].tolist()) for some in (self.ids, ids)
            )
            raise DataError(
                f"{self.source} describes none of the items of {owner}: its ids are {ours} ..., and theirs "
                f"are {theirs} ... Name a table with the same ids."
            )
        return self.rows(ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicItems) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[object, ...]:
        return (self.source, self.names, self.sha256, self.left_out)

    def _places_of(self, ids: Sequence[Any] | Ids) -> NDArray[np.int64]:
        """Return the row of each id, -1 where there is none."""
        if not self.has_numbers:
            raise ConfigError(
                f"the public items of {self.source} are only named here; their numbers are not kept with a "
                "run. Make them anew from the same file: PublicItems.from_file, or --public-items."
            )
        return np.array([self._places.get(str(one), -1) for one in np.asarray(ids).tolist()], np.int64)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {str(one): row for row, one in enumerate(self.ids.tolist())}


def public_items_lines(items: PublicItems | None) -> tuple[str, ...]:
    """Return what a guarantee says about public items: nothing if none were declared."""
    return () if items is None else (public_items_line(items),)


def public_items_line(items: PublicItems) -> str:
    """Return the sentence by which a guarantee lists them as public."""
    # Columns made of one column of the table share its name: "genres=Drama", "year 1995".
    made_of = Counter(re.sub(r"(=.*| -?[\d.]+(e[+-]?\d+)?)$", "", name) for name in items.names)
    words = ", ".join(name if count == 1 else f"{name} ({count})" for name, count in made_of.items())
    return (
        f"Item features from {items.source} ({len(items.names)} columns: {words}; sha256 "
        f"{items.sha256[:12]}): public, declared before training not to be made from the ratings."
    )


def _usual_coding(table: Table) -> Coding:
    reasons = {column.name: unfit(column) for column in table.columns}
    coding = Coding.of_table(table, [name for name, reason in reasons.items() if reason is None])
    left_out = tuple(f'"{name}": {reason}.' for name, reason in reasons.items() if reason is not None)
    return replace(coding, left_out=(*coding.left_out, *left_out))


def _made(
    source: str, names: tuple[str, ...], ids: Ids, matrix: NDArray[np.float32], left_out: tuple[str, ...]
) -> PublicItems:
    if len(ids) == 0:
        raise DataError(f"{source} describes no items. Name a table that does.")
    numbers = read_only(np.ascontiguousarray(matrix))
    return PublicItems(
        source=source, names=names, sha256=_digest(ids, numbers), left_out=left_out, ids=ids, matrix=numbers
    )


def _digest(ids: Ids, matrix: NDArray[np.float32]) -> str:
    digest = sha256("\n".join(str(one) for one in ids.tolist()).encode())
    digest.update(f"\n{matrix.shape}\n".encode())
    digest.update(np.ascontiguousarray(matrix).astype("<f4").tobytes())
    return digest.hexdigest()
