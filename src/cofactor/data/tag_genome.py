"""The tag genome of MovieLens: how well each of 1,128 tags fits each film, as a few principal components."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cofactor.config import whole
from cofactor.data.ids import Ids
from cofactor.data.sources import Source, open_source, zip_names
from cofactor.errors import DataError

HEADER = ("movieId", "tagId", "relevance")
"""The first line of genome-scores.csv; the first edition, tag_relevance.dat, has tabs and no such line."""
_FILES = ("genome-scores.csv", "tag_relevance.dat")
DIGITS = 4
"""Components are rounded to so many decimals: the last digits of sums may differ from machine to machine."""


@dataclass(frozen=True, eq=False)
class TagComponents:
    """Films, and how far each lies along the directions in which films differ most."""

    source: str
    names: tuple[str, ...]
    ids: Ids
    matrix: NDArray[np.float32]


def is_tag_genome(path: str | Path) -> bool:
    """Say whether a file is a tag genome: by its first line, or by the name of the first edition."""
    place = Path(path)
    if not place.is_file() or place.suffix.lower() == ".zip":
        return False
    source = open_source(place, "items")
    return _names(source) == HEADER or source.name == _FILES[1]


def tag_components(path: str | Path, components: int = 20) -> TagComponents:
    """Return the first principal components of a tag genome; a .zip may hold it.

    Relevances are centred tag by tag over all films of the file; a film without a relevance for some tag has
    the tag's mean. Each direction points to where its largest weight is positive.
    """
    whole(components=components)
    source = _source(Path(path))
    films, relevance = _table(source, _scores(source))
    if components > min(relevance.shape):
        raise DataError(
            f"{source.label}: {relevance.shape[0]:,} films and {relevance.shape[1]:,} tags have fewer than "
            f"{components} principal components. Ask for fewer."
        )
    matrix = np.round(_projected(relevance, components), DIGITS).astype(np.float32)
    names = tuple(f"tag genome {number}" for number in range(1, components + 1))
    return TagComponents(source.name, names, films, matrix)


def _source(path: Path) -> Source:
    if path.suffix.lower() != ".zip":
        return open_source(path, "items")
    inside = [name for name in zip_names(path) if name.endswith(_FILES)]
    if not inside:
        raise DataError(f"{path} holds no tag genome: no {' and no '.join(_FILES)}. Name a file that does.")
    return open_source(path, "items", inside[0])


def _names(source: Source) -> tuple[str, ...]:
    first = source.head(200).decode("utf-8", "replace").removeprefix("\ufeff").splitlines()[:1]
    return tuple(name.strip() for name in first[0].split(",")) if first else ()


def _scores(source: Source) -> pl.DataFrame:
    header = _names(source) == HEADER
    types = {"film": pl.Int64(), "tag": pl.Int32(), "relevance": pl.Float32()}
    try:
        return pl.read_csv(
            source.data,
            has_header=False,
            skip_rows=1 if header else 0,
            separator="," if header else "\t",
            schema=types,
        )
    except pl.exceptions.PolarsError:
        raise DataError(
            f"{source.label}: cannot be read as a tag genome, with a film, a tag and a relevance in a row. "
            "Fetch it again."
        ) from None


def _table(source: Source, scores: pl.DataFrame) -> tuple[Ids, NDArray[np.float64]]:
    """Return the films, and a centred row of relevances for each."""
    relevance = scores["relevance"].to_numpy()
    if scores.height == 0 or scores.null_count().sum_horizontal()[0] or not np.isfinite(relevance).all():
        raise DataError(f"{source.label}: a film, a tag or a relevance is missing. Fetch it again.")
    films, rows = np.unique(scores["film"].to_numpy(), return_inverse=True)
    tags, columns = np.unique(scores["tag"].to_numpy(), return_inverse=True)
    table = np.full((len(films), len(tags)), np.nan)
    table[rows, columns] = relevance
    known = np.isfinite(table)
    if int(known.sum()) < scores.height:
        raise DataError(f"{source.label}: a film has two relevances for one tag. Fetch it again.")
    table -= np.nanmean(table, axis=0)
    return films, np.where(known, table, 0.0)


def _projected(centred: NDArray[np.float64], components: int) -> NDArray[np.float64]:
    """Return the films along the right singular vectors with the largest singular values."""
    # Directions from the small matrix of tags by tags: the same as by an SVD of all films, and much faster.
    _, vectors = np.linalg.eigh(centred.T @ centred)
    directions = vectors[:, ::-1][:, :components]
    largest = directions[np.abs(directions).argmax(axis=0), np.arange(components)]
    found: NDArray[np.float64] = centred @ (directions * np.sign(largest))
    return found
