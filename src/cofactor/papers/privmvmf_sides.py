"""Ratings with what is known about their users and items: what PrivMVMF trains on (section VI.A)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from cofactor.data.attributes import UserAttributes
from cofactor.data.coding import Coding, published_coding
from cofactor.data.prepare import only_items
from cofactor.data.public_items import PublicItems
from cofactor.data.tables import Table, items_beside, users_beside
from cofactor.errors import DataError
from cofactor.papers.material import Material

_CATEGORIES = ("genres", "genre", "class", "category", "categories")


@dataclass(frozen=True, kw_only=True, eq=False)
class Sided(Material):
    """Ratings with a table of their users, and one of their items or the tag genome of films."""

    users: Table | None = None
    items: Table | None = None
    genome: PublicItems | None = None

    @classmethod
    def _read(cls, name: str, file: Path) -> "Sided":
        plain = Material._read(name, file)
        return cls(
            name=name,
            ratings=plain.ratings,
            categories=plain.categories,
            users=users_beside(file),
            items=items_beside(file),
        )

    @classmethod
    def read_sides(cls, place: Path, names: Sequence[str]) -> list["Sided"]:
        """Read those of some known sets that a folder holds, or a file, with the tables beside them."""
        return [one for one in cls.read_all(place, names) if isinstance(one, Sided)]

    def with_genome(self, file: Path) -> "Sided":
        """Return the films that a tag genome describes, by the first 20 principal components of tags."""
        genome = PublicItems.of_tag_genome(file)
        kept = only_items(self.ratings, genome.ids.tolist())
        if len(kept) == 0:
            raise DataError(f"{file} describes none of the items of {self.name}. Films of MovieLens it does.")
        return replace(self, ratings=kept, genome=genome)

    @cached_property
    def attributes(self) -> UserAttributes:
        """Age in seven groups, gender, occupation and region: private to each user."""
        if self.users is None:
            raise DataError(_missing(self.name, "users", "age, gender, occupation and zip code"))
        return UserAttributes.of_table(self.users, coding=published_coding(self.users))

    @cached_property
    def features(self) -> PublicItems:
        """The tag genome if it was named, and genres otherwise: public."""
        if self.genome is not None:
            return self.genome
        genres = next((n for n in self.items.names if n in _CATEGORIES), None) if self.items else None
        if self.items is None or genres is None:
            raise DataError(_missing(self.name, "items", "genres"))
        return PublicItems.coded(self.items, coding=Coding.of_table(self.items, [genres], fewest=1))


def _missing(name: str, kind: str, columns: str) -> str:
    return (
        f"{name} has no table of {kind} with {columns} beside its ratings, and this paper's method needs it. "
        "Use MovieLens 1M or 100K, or put such a table beside the ratings."
    )
