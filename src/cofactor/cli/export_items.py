"""Items of a model as a table or as arrays: what other programs need to predict, and nothing about users."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cofactor.cli.places import written_whole

if TYPE_CHECKING:
    import polars as pl

    from cofactor.factors.model import Factors

ENDINGS = (".npz", ".parquet", ".csv")


@dataclass(frozen=True, kw_only=True)
class Items:
    """The items of one model, and who may see them."""

    model: "Factors"
    protection: str
    """RELEASED, LOCAL or NOT PRIVATE."""
    told: str
    """From what they are, and what that means."""

    @property
    def titles(self) -> list[str]:
        """A title for each item; empty where there is none."""
        count = len(self.model.item_ids)
        return [""] * count if self.model.titles is None else [str(title) for title in self.model.titles]

    def arrays(self) -> dict[str, Any]:
        """Return arrays by the names that model.npz has for them; none needs pickle."""
        model = self.model
        scale = () if model.scale is None else (model.scale.low, model.scale.high)
        return {
            "item_ids": model.item_ids,
            "titles": np.array(self.titles, np.str_),
            "item_bias": model.item_bias.astype(np.float32),
            "item_vectors": model.item_vectors.astype(np.float32),
            "mean": np.float64(model.mean),
            "scale": np.array(scale, np.float64),
            "protection": np.array(self.protection),
        }

    def table(self) -> "pl.DataFrame":
        """Return a row for each item; its vector is one column of arrays, all of the same length."""
        import polars as pl

        vectors = self.model.item_vectors.astype(np.float32)
        kind = pl.Array(pl.Float32, vectors.shape[1]) if vectors.shape[1] else pl.List(pl.Float32)
        return pl.DataFrame(
            {
                "item": pl.Series(self.model.item_ids),
                "title": pl.Series([title or None for title in self.titles], dtype=pl.String),
                "bias": pl.Series(self.model.item_bias, dtype=pl.Float32),
                "vector": pl.Series(vectors if vectors.shape[1] else [[]] * len(vectors), dtype=kind),
            }
        )


def write_items(items: Items, target: Path) -> None:
    """Write a file whole or not at all: arrays, or a table."""
    with written_whole(target) as draft:
        if target.suffix.lower() == ".npz":
            with draft.open("wb") as file:
                np.savez_compressed(file, **items.arrays())
        elif target.suffix.lower() == ".parquet":
            items.table().write_parquet(draft)
        else:
            _in_columns(items.table()).write_csv(draft)


def _in_columns(table: "pl.DataFrame") -> "pl.DataFrame":
    """Give each number of a vector a column of its own: a cell of a CSV file holds one number."""
    vectors = np.array(table["vector"].to_list(), np.float32).reshape(len(table), -1)
    numbers = {f"vector_{k}": vectors[:, k - 1] for k in range(1, vectors.shape[1] + 1)}
    return table.drop("vector").hstack(type(table)(numbers)) if numbers else table.drop("vector")
