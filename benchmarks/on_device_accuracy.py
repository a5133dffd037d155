"""Errors of OnDeviceMF on real ratings, beside what devices have alone: one split.

    python -m benchmarks.on_device_accuracy FOLDER [once|tenfold]

FOLDER holds ml-1m.zip. Prints test MSE at delta 1e-6 and the CPU time of a training. Tenfold, every user
stands for ten: replicas that keep 80% of the user's ratings for training. The first of them is tested.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from cofactor.data.files import read_ratings
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.factors.baselines import UserMean
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.privacy.budget import Budget
from cofactor.randomness import Seeds
from cofactor.recipes.local_reports import LocalReports
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.sums import PlainSum
from cofactor.recipes.train import train

SEED = 0
DELTA = 1e-6
REPLICAS, KEPT = 10, 0.8


def main() -> None:
    folder, *which = sys.argv[1:]
    learn, test = by_fraction(read_ratings(Path(folder) / "ml-1m.zip"), 0.1, seed=SEED)
    for name, ratings in (("once", learn), ("tenfold", tenfold(learn))):
        if not which or name in which:
            print(f"{ratings.user_count:,} users, {len(ratings):,} ratings")
            for words, error, seconds in rows(ratings, test):
                print(f"  {words:52s} {error:.4f}  {seconds:6.1f} s", flush=True)


def rows(learn: Ratings, test: Ratings) -> Iterator[tuple[str, float, float]]:
    """Baselines, and all that is trained."""
    federation, published = Federation.on_device(learn), OnDeviceMF.as_published()
    start = time.process_time()
    yield "user's own mean", mse(UserMean().fit(learn), test), time.process_time() - start
    start = time.process_time()
    yield "stage 1 alone", mse(published.alone(federation)["devices"], test), time.process_time() - start
    for words, recipe in (
        ("as published", published),
        ("defaults", OnDeviceMF()),
        ("as published, all noise at every device", replace(published, aggregate=PlainSum())),
        ("local reports", LocalReports()),
    ):
        for epsilon in (None, 1, 4, 10):
            budget = None if epsilon is None else Budget(epsilon=epsilon, delta=DELTA, unit="user")
            start = time.process_time()
            run = train(recipe, federation, budget=budget, seed=SEED)
            noise = "no noise" if epsilon is None else f"epsilon {epsilon}"
            yield f"{words}, {noise}", mse(run.homes["devices"], test), time.process_time() - start


def tenfold(ratings: Ratings) -> Ratings:
    """Let every user stand for ten; the first keep their numbers."""
    chance = Seeds(SEED).generator("replicas")
    kept = [np.ones(len(ratings), np.bool_)]
    kept += [chance.random(len(ratings)) < KEPT for _ in range(1, REPLICAS)]
    return Ratings.from_rows(
        np.concatenate([ratings.users[mask] + ratings.user_count * k for k, mask in enumerate(kept)]),
        np.concatenate([ratings.items[mask] for mask in kept]),
        np.concatenate([ratings.values[mask] for mask in kept]),
        user_ids=np.arange(REPLICAS * ratings.user_count),
        item_ids=ratings.item_ids,
        scale=ratings.scale,
    )


def mse(model: Factors, test: Ratings) -> float:
    """Return the error on the test ratings, with predictions brought onto the scale."""
    missed = model.predict_rows(test.users, test.items).astype(np.float64) - test.values
    return float(np.mean(missed**2))


if __name__ == "__main__":
    main()
