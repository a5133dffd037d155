"""Known data sets: what they hold, how they are had, and a first look at any file of ratings."""

from dataclasses import dataclass
from pathlib import Path

from cofactor.data.download import fetch
from cofactor.data.summary import Summary as Summary
from cofactor.data.summary import info as info
from cofactor.errors import DataError, DownloadError, did_you_mean
from cofactor.progress import Listener, nobody

GROUPLENS = "https://files.grouplens.org/datasets/movielens/"

_MOVIELENS_LICENCE = "research; not commercial, not to be passed on, to be cited; see its README"


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One known data set."""

    name: str
    holds: str
    """What is in it, in a few words."""
    licence: str
    url: str | None = None
    """Where the publisher has it; None when it must be had by hand."""
    md5: str | None = None
    """Its checksum; None where the publisher changes the file from time to time."""
    megabytes: int | None = None
    """How much there is to download, about."""
    by_hand: str = ""
    """How to get what may not be fetched."""


def _movielens(name: str, md5: str | None, megabytes: int, holds: str) -> Dataset:
    url = f"{GROUPLENS}{name}.zip"
    return Dataset(name=name, holds=holds, licence=_MOVIELENS_LICENCE, url=url, md5=md5, megabytes=megabytes)


_MOVIELENS = (
    _movielens(
        "ml-100k", "0e33842e24a9c977be4e0107933c0723", 5, "100,000 ratings by 943 users of 1,682 films"
    ),
    _movielens(
        "ml-1m", "c4d9eecfca2ab87c1945afe126590906", 6, "1 million ratings by 6,040 users of 3,706 films"
    ),
    _movielens("ml-10m", "ce571fd55effeba0271552578f2648bd", 66, "10 million ratings by 69,878 users"),
    _movielens("ml-20m", "cd245b17a1ae2cc31bb14903e1204af3", 199, "20 million ratings by 138,493 users"),
    _movielens("ml-25m", "6b51fb2759a8657d3bfcbfc42b592ada", 262, "25 million ratings by 162,541 users"),
    _movielens("ml-32m", "d472be332d4daa821edc399621853b57", 239, "32 million ratings by 200,948 users"),
    _movielens("ml-latest-small", None, 1, "about 100,000 recent ratings; changes from time to time"),
)

_YELP = Dataset(
    name="yelp",
    holds="reviews of businesses with 1 to 5 stars",
    licence="Yelp's own terms, to be accepted on its site",
    by_hand=(
        "Accept the terms at https://www.yelp.com/dataset, download the JSON files, then make a table:\n"
        "  python -c \"import polars; polars.scan_ndjson('yelp_academic_dataset_review.json')"
        ".select('user_id', 'business_id', 'stars', 'date').sink_parquet('yelp.parquet')\"\n"
        'Some users reviewed a business twice: read it with duplicates="last".'
    ),
)

_DOUBAN = Dataset(
    name="douban",
    holds="ratings of books, films and music from 1 to 5",
    licence="as stated on Kaggle; an account is needed",
    by_hand=(
        "Download it with your account from https://www.kaggle.com/datasets/fengzhujoey/"
        "douban-datasetratingreviewside-information and name its file of book reviews."
    ),
)

_LIBIMSETI = Dataset(
    name="libimseti",
    holds="17 million ratings of 168,791 profiles by 135,359 users",
    licence="research; ask its publisher",
    by_hand=(
        "Get it from http://www.occamslab.com/petricek/data/ and name its ratings.dat; "
        "gender.dat beside it is the table of users."
    ),
)


def known() -> tuple[Dataset, ...]:
    """Return all known data sets."""
    return (*_MOVIELENS, _YELP, _DOUBAN, _LIBIMSETI)


def find(name: str) -> Dataset:
    """Return a known data set."""
    for dataset in known():
        if dataset.name == name.lower():
            return dataset
    names = [dataset.name for dataset in known()]
    raise DataError(
        f'there is no data set "{name}".{did_you_mean(name, names)} There are: {", ".join(names)}.'
    )


def how_to_get(name: str) -> str:
    """Say how a data set is had."""
    dataset = find(name)
    if dataset.url is None:
        return f"{dataset.name} may not be fetched for you. {dataset.by_hand}"
    return f"cofactor data get {dataset.name}, or by hand from {dataset.url}."


def get(name: str, folder: str | Path, *, progress: Listener = nobody, base: str = GROUPLENS) -> Path:
    """Download a data set from its publisher into a folder, unless it is there; return where it is.

    `base` is where the publisher's files are: a mirror of your own, or a test's.
    """
    dataset = find(name)
    if dataset.url is None:
        raise DownloadError(how_to_get(name))
    file = dataset.url.removeprefix(GROUPLENS)
    return fetch(base + file, Path(folder) / file, md5=dataset.md5, progress=progress)
