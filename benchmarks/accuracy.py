"""Test error of every model on a real data set: python -m benchmarks.accuracy ml-1m.zip [ml-100k.inter ...].

A tenth of each user's ratings is held out, three times with different seeds.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import cofactor as cf

SEEDS = (1, 2, 3)


def models() -> dict[str, tuple[object, bool]]:
    """Return name -> (model, whether it gets public item features)."""
    return {
        "global mean": (cf.GlobalMean(), False),
        "user mean": (cf.UserMean(), False),
        "item mean": (cf.ItemMean(), False),
        "user+item bias": (cf.UserItemBias(), False),
        "SGD": (cf.SGD(), False),
        "ALS": (cf.ALS(), False),
        "Bayes": (cf.Bayes(), False),
        "Bayes with features": (cf.Bayes(), True),
    }


def errors(path: Path, model: object, with_features: bool) -> Iterator[tuple[float, float]]:
    """Yield (RMSE, CPU seconds) for each seed."""
    ratings = cf.read_ratings(path)
    for seed in SEEDS:
        train, test = cf.split.by_fraction(ratings, test=0.1, seed=seed)
        more = {"features": features(path, ratings)} if with_features else {}
        start = time.process_time()
        fitted: cf.Factors = model.fit(train, seed=seed, **more)  # type: ignore[attr-defined]
        seconds = time.process_time() - start
        wrong = test.values - fitted.predict_rows(test.users, test.items)
        yield float(np.sqrt(np.mean(wrong.astype(np.float64) ** 2))), seconds


def features(path: Path, ratings: cf.Ratings) -> np.ndarray:
    from cofactor.data.public_items import PublicItems
    from cofactor.data.tables import side_tables

    table = side_tables(path)[1]
    assert table is not None, f"no table of items beside {path}"
    return PublicItems.of_table(table).rows(ratings.item_ids)


def main() -> None:
    for path in map(Path, sys.argv[1:]):
        print(f"\n{path.name}: RMSE of three splits, and their mean\n")
        print("| model | " + " | ".join(f"seed {seed}" for seed in SEEDS) + " | mean | CPU s |")
        print("|---|" + "---|" * (len(SEEDS) + 2))
        for name, (model, with_features) in models().items():
            found = list(errors(path, model, with_features))
            rmse = [error for error, _ in found]
            cells = " | ".join(f"{error:.4f}" for error in rmse)
            print(
                f"| {name} | {cells} | **{np.mean(rmse):.4f}** | {min(s for _, s in found):.1f} |", flush=True
            )


main()
