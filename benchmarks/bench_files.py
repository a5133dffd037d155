"""Reading a file with the shape of ML-10M, against polars reading the same typed columns."""

from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.bench import CACHE, Row, cpu_best, faster
from cofactor.data.files import read_ratings
from cofactor.data.synthetic import like

TURNS = 6
LAST_USER, LAST_ITEM = 71_567, 65_133
"""The largest ids in ML-10M: about as many users, but six times as many numbers as films."""
COLUMNS = {"column_0": pl.Int64, "column_2": pl.Int64, "column_4": pl.Float32, "column_6": pl.Int64}


def rows() -> list[Row]:
    path = _data()
    assert len(read_ratings(path)) == len(_by_polars(path))
    # In turns, so that a busy moment of the machine meets both.
    turns = [
        (cpu_best(lambda: read_ratings(path), 1), cpu_best(lambda: _by_polars(path), 1)) for _ in range(TURNS)
    ]
    ours, peer = (min(times) for times in zip(*turns, strict=True))
    return [faster("read ml-10m shape", ours=ours, peer=peer, peer_name=f"polars {pl.__version__}")]


def _by_polars(path: Path) -> pl.DataFrame:
    schema = {f"column_{place}": pl.String for place in range(7)} | COLUMNS
    return pl.read_csv(
        path, separator=":", has_header=False, schema=schema, columns=list(COLUMNS), quote_char=None
    )


def _data() -> Path:
    """Write the file once; 10 million rows, about 250 MB."""
    path = CACHE / "ml-10m.dat"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        ratings = like("ml-10m", seed=0).ratings
        user_ids = np.linspace(1, LAST_USER, ratings.user_count).astype(np.int64)
        item_ids = np.linspace(1, LAST_ITEM, ratings.item_count).astype(np.int64)
        rated = pl.Series(ratings.values).cast(pl.String).str.strip_suffix(".0")
        columns = [user_ids[ratings.users], item_ids[ratings.items], rated, ratings.times]
        lines = pl.DataFrame({str(place): column for place, column in enumerate(columns)})
        part = path.with_suffix(".part")
        joined = lines.select(pl.concat_str(pl.all().cast(pl.String), separator="::"))
        joined.write_csv(part, include_header=False, quote_style="never")
        part.replace(path)
    return path
