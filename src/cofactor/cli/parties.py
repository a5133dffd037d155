"""From files to the two parts of a federation, for training and for testing."""

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from cofactor.cli.settings import scale_of
from cofactor.config import fraction, one_of, whole
from cofactor.errors import ConfigError, DataError

if TYPE_CHECKING:
    from cofactor.cli.settings import FederationWish
    from cofactor.data.public_items import PublicItems
    from cofactor.data.ratings import Ratings, Scale
    from cofactor.data.tables import Table
    from cofactor.federation.channel import Failures
    from cofactor.federation.federation import Federation
    from cofactor.federation.party import Party
    from cofactor.federation.splits import Split


SPLITS = (
    "horizontal: the parties hold different users and rate the same items, as shops in different towns do; "
    "vertical: the parties hold different items of the same users, as a book shop and a film service do; "
    "on-device: every user is a party, as with phones"
)


def checked_split(files: Sequence[Path], asked: "FederationWish") -> "Split":
    """Return how the parties' ratings relate; refuse what makes no federation."""
    from cofactor.federation.splits import Split

    several = len(files) > 1
    if not several and asked.split is None and asked.parties is None:
        raise ConfigError(
            "this asks for parties that train together, and names one file. Name a file for each party, deal "
            "this one out to make-believe parties with --parties 5 --split horizontal (or vertical), or make "
            "every user a device with --split on-device."
        )
    if asked.split is None:
        raise ConfigError(f"name --split horizontal, --split vertical or --split on-device. {SPLITS}.")
    one_of(get_args(Split), split=asked.split)
    if several and asked.parties is not None:
        raise ConfigError("several files are several parties. Leave out --parties: it deals out one file.")
    if asked.ratings_each is not None and not (several and asked.split == "on-device"):
        raise ConfigError("--ratings-each is for devices with a file each. Leave it out.")
    whole(ratings_each=asked.ratings_each)
    if asked.split == "on-device":
        if asked.parties is not None:
            raise ConfigError("on-device makes every user of the file a party. Leave out --parties.")
    elif not several and asked.parties is None:
        raise ConfigError(
            f"--split {asked.split} needs parties: name a file for each, or deal this one out with "
            "--parties 5, for a simulation."
        )
    return cast("Split", asked.split)


def checked_failures(
    asked: "FederationWish", split: "Split", files: Sequence[Path], recipe: Any
) -> "Failures":
    """Return which devices of a simulation drop out; refuse what leaves too few to open anything."""
    from cofactor.federation.channel import Failures

    if asked.drop is None:
        return Failures()
    if split != "on-device" or len(files) > 1:
        raise ConfigError(
            "--drop simulates devices that drop out: it takes one file and --split on-device. Leave it out."
        )
    if asked.drop == 0:
        return Failures()
    fraction(drop=asked.drop)
    allowed = getattr(getattr(recipe, "aggregate", None), "dropout", 1.0)
    if asked.drop >= allowed:
        raise ConfigError(
            f"a part of {asked.drop:g} of the devices would be lost in each round, and nothing is opened if "
            f"more than {allowed:g} are. Allow more with --dropout, or lose fewer with --drop."
        )
    return Failures(devices=asked.drop)


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
    ratings_each: int | None = None
    """About how many ratings a device with a file of its own has; as is usual, if left out."""
    alignment: Mapping[str, Any] = field(default_factory=dict)
    """How `Federation.vertical` finds users in common; all users of all parties, if left out."""

    def parts(self, reading: Reading) -> "tuple[Federation, Federation | None]":
        """Read the files; returns what to train on and what to test on."""
        if len(self.files) > 1:
            parties = [_party(*each, reading) for each in self._named()]
            whole = joined(self.split, parties, reading.scale, self.ratings_each, self.alignment)
            fraction = self.test_fraction
            return (whole, None) if fraction is None else whole.split(fraction, seed=self.seed)
        train, test = split_off(reading.ratings(self.files[0]), self.test_fraction, self.seed)
        return self._dealt(train, reading), None if test is None else self._dealt(test, reading)

    def _dealt(self, ratings: "Ratings", reading: Reading) -> "Federation":
        from cofactor.federation.federation import Federation

        scale = scale_of(reading.scale)
        if self.split == "on-device":
            return Federation.on_device(ratings, scale=scale)
        assert self.parties is not None
        return dealt(ratings, self.split, self.parties, seed=self.seed, scale=scale)

    def _named(self) -> list[tuple[Path, str | None]]:
        """Name parties after their files, and after the folders, too, where files are called the same."""
        for path, count in Counter(file.resolve() for file in self.files).items():
            if count > 1:
                raise ConfigError(f"{path.name} is named {count} times. Name each party's file once.")
        stems = [file.name.split(".")[0] for file in self.files]
        return [
            (file, None if stems.count(stem) == 1 else _plain_name(f"{file.resolve().parent.name}-{stem}"))
            for file, stem in zip(self.files, stems, strict=True)
        ]


def _plain_name(text: str) -> str:
    """Put a dash where a party's name may not have a letter."""
    return re.sub(r"[^\w. -]", "-", text, flags=re.ASCII).lstrip("-. ")


def joined(
    split: "Split",
    parties: "list[Party]",
    scale: str | None,
    ratings_each: int | None = None,
    alignment: Mapping[str, Any] | None = None,
) -> "Federation":
    """Bring parties together."""
    from cofactor.federation.federation import Federation

    if split == "on-device":
        guess: dict[str, Any] = {} if ratings_each is None else {"ratings_each": ratings_each}
        return Federation.on_device(parties, scale=scale_of(scale), **guess)
    if split == "horizontal":
        return Federation.horizontal(parties, scale=scale_of(scale))
    return Federation.vertical(parties, scale=scale_of(scale), **(alignment or {}))


def dealt(
    ratings: "Ratings",
    split: "Split",
    parties: int,
    *,
    seed: int,
    scale: "Scale | None" = None,
    skew: float = 0.0,
) -> "Federation":
    """Deal ratings out to make-believe parties; the same seed deals both parts of a split alike."""
    from cofactor.data import partition
    from cofactor.federation.federation import Federation
    from cofactor.federation.party import Party

    horizontal = split == "horizontal"
    deal = partition.horizontal if horizontal else partition.vertical
    make = Federation.horizontal if horizontal else Federation.vertical
    parts = enumerate(deal(ratings, parties, seed=seed, skew=skew), 1)
    named = [Party(name=f"party-{number}", ratings=part) for number, part in parts]
    return make(named, scale=scale, simulated=True)


def _party(file: Path, name: str | None, reading: Reading) -> "Party":
    from cofactor.federation.party import Party

    return Party.from_csv(file, name=name, **reading.settings())


def split_off(ratings: "Ratings", fraction: float | None, seed: int) -> "tuple[Ratings, Ratings | None]":
    """Hold back a fraction of each user's ratings, if one is named."""
    from cofactor.data.split import by_fraction

    return (ratings, None) if fraction is None else by_fraction(ratings, test=fraction, seed=seed)


def item_table(file: Path, items: Path | None) -> "Table | None":
    """Read the table of items, or the one beside the ratings if there is one that can be read."""
    from cofactor.data.tables import items_beside, read_items

    if items is not None:
        return read_items(items)
    try:
        return items_beside(file)
    except DataError as error:
        print(f"going on without titles: {error}", file=sys.stderr)
        return None


def public_items(
    wanted: str | None, file: Path, items: Path | None, *, coded: bool = False
) -> "PublicItems | None":
    """Return what `--public-items` declares to be public; nothing if it was left out.

    `coded` items remember how, so that a model can take in new ones later.
    """
    from cofactor.data.public_items import PublicItems
    from cofactor.data.tables import items_beside, read_items
    from cofactor.data.tag_genome import is_tag_genome

    make = PublicItems.coded if coded else PublicItems.of_table
    if wanted is None:
        return None
    if wanted != "auto":
        genome = is_tag_genome(wanted)
        return PublicItems.of_tag_genome(wanted) if genome else make(read_items(wanted))
    table = items_beside(file) if items is None else read_items(items)
    if table is None:
        raise ConfigError(
            f"--public-items auto takes the table of items that came with the ratings, and none is beside "
            f"{file}. Name it: --public-items movies.csv."
        )
    return make(table)


def tell_public(found: "PublicItems", ids: Any) -> None:
    """Say on standard error what is public, of how many items, and what was left out."""
    from cofactor.data.public_items import public_items_line

    print(public_items_line(found), file=sys.stderr)
    missing = len(ids) - found.known(ids)
    if missing:
        print(f"{missing:,} of {len(ids):,} items are not in it: they get the mean.", file=sys.stderr)
    for each in found.left_out:
        print(f"left out: {each}", file=sys.stderr)
