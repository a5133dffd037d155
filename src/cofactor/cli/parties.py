"""From files to the two parts of a federation, for training and for testing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from cofactor.cli.settings import scale_of
from cofactor.config import one_of
from cofactor.errors import ConfigError, DataError

if TYPE_CHECKING:
    from cofactor.data.ratings import Ratings
    from cofactor.data.tables import Table
    from cofactor.federation.federation import Federation
    from cofactor.federation.halves import Split
    from cofactor.federation.party import Party


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files of ratings are read."""

    user: str | None = None
    item: str | None = None
    rating: str | None = None
    time: str | None = None
    scale: str | None = None
    duplicates: str = "error"
    member: str | None = None
    implicit: bool = False

    def __post_init__(self) -> None:
        from cofactor.data.duplicates import Duplicates

        one_of(get_args(Duplicates), duplicates=self.duplicates)

    def settings(self) -> dict[str, Any]:
        """Return what `read_ratings` takes."""
        return vars(self) | {"scale": scale_of(self.scale)}

    def ratings(self, file: Path) -> "Ratings":
        """Read one file."""
        from cofactor.data.files import read_ratings

        return read_ratings(file, **self.settings())


@dataclass(frozen=True, kw_only=True)
class Gathering:
    """Which files become which parties, and what is held back."""

    files: Sequence[Path]
    split: "Split"
    parties: int | None
    """How many make-believe parties one file is dealt out to."""
    test_fraction: float | None
    seed: int

    def parts(self, reading: Reading) -> "tuple[Federation, Federation | None]":
        """Read the files; returns what to train on and what to test on."""
        if len(self.files) > 1:
            whole = self._federation([_party(*named, reading) for named in self._named()], reading)
            fraction = self.test_fraction
            return (whole, None) if fraction is None else whole.split(fraction, seed=self.seed)
        train, test = split_off(reading.ratings(self.files[0]), self.test_fraction, self.seed)
        return self._dealt(train, reading), None if test is None else self._dealt(test, reading)

    def _federation(self, parties: "list[Party]", reading: Reading, **more: Any) -> "Federation":
        from cofactor.federation.federation import Federation

        make = Federation.horizontal if self.split == "horizontal" else Federation.vertical
        return make(parties, scale=scale_of(reading.scale), **more)

    def _dealt(self, ratings: "Ratings", reading: Reading) -> "Federation":
        """Deal ratings out to make-believe parties; the same seed deals both parts of a split alike."""
        from cofactor.data import partition
        from cofactor.federation.federation import Federation
        from cofactor.federation.party import Party

        if self.split == "on-device":
            return Federation.on_device(ratings, scale=scale_of(reading.scale))
        assert self.parties is not None
        deal = partition.horizontal if self.split == "horizontal" else partition.vertical
        named = enumerate(deal(ratings, self.parties, seed=self.seed), 1)
        parties = [Party(name=f"party-{number}", ratings=part) for number, part in named]
        return self._federation(parties, reading, simulated=True)

    def _named(self) -> list[tuple[Path, str | None]]:
        """Name parties after their files, and after the folders, too, where files are called the same."""
        for path, count in Counter(file.resolve() for file in self.files).items():
            if count > 1:
                raise ConfigError(f"{path.name} is named {count} times. Name each party's file once.")
        alike = Counter(file.name.split(".")[0] for file in self.files)
        return [
            (file, None if alike[(stem := file.name.split(".")[0])] == 1 else f"{file.parent.name}-{stem}")
            for file in self.files
        ]


def _party(file: Path, name: str | None, reading: Reading) -> "Party":
    from cofactor.federation.party import Party

    return Party.from_csv(file, name=name, **reading.settings())


def split_off(ratings: "Ratings", fraction: float | None, seed: int) -> "tuple[Ratings, Ratings | None]":
    """Hold back a fraction of each user's ratings, if one is named."""
    from cofactor.data.split import by_fraction

    return (ratings, None) if fraction is None else by_fraction(ratings, test=fraction, seed=seed)


def item_table(file: Path, items: Path | None) -> "Table | None":
    """Read the table of items, or the one beside the ratings if there is one that can be read."""
    import sys

    from cofactor.data.tables import items_beside, read_items

    if items is not None:
        return read_items(items)
    try:
        return items_beside(file)
    except DataError as error:
        print(f"going on without titles: {error}", file=sys.stderr)
        return None


def features_of(table: "Table | None", ids: Any) -> Any:
    """Return public numbers about items, one row each."""
    from cofactor.data.prepare import item_features

    if table is None:
        raise ConfigError("--features needs a table of items. Name one with --items.")
    return item_features(table, ids).matrix


def with_features(federation: "Federation", table: "Table | None") -> "Federation":
    """Give all parties public numbers about their items."""
    return federation.with_features(lambda ids: cast(Any, features_of(table, ids)))
