"""Errors of OnDeviceMF on real ratings, beside what devices have alone: three splits, or one.

    python -m benchmarks.on_device_accuracy FOLDER [once|tenfold]

FOLDER holds ml-1m.zip. Prints test MSE, mean and spread, at delta 1e-6, and the CPU time of one
training. Tenfold, every user stands for ten: replicas that keep 80% of the user's ratings for training. The
first of them is tested.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cofactor.data.files import read_ratings
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.factors.baselines import UserMean
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.papers.cells import replicated
from cofactor.privacy.budget import Budget
from cofactor.recipes.local_reports import LocalReports, budget_if_shuffled
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.sums import PlainSum
from cofactor.recipes.train import train

DELTA = 1e-6
REPLICAS = 10


def main() -> None:
    folder, *which = sys.argv[1:]
    ratings = read_ratings(Path(folder) / "ml-1m.zip")
    for name, seeds, grown in (("once", (0, 1, 2), same), ("tenfold", (0,), tenfold)):
        if not which or name in which:
            print(name)
            splits = [by_fraction(ratings, 0.1, seed=seed) for seed in seeds]
            tables = [
                rows(grown(learn), test, seed) for seed, (learn, test) in zip(seeds, splits, strict=True)
            ]
            for found in zip(*tables, strict=True):
                errors = [error for _, error, _ in found]
                spread = f"({min(errors):.4f} to {max(errors):.4f})"
                print(
                    f"  {found[0][0]:54s} {np.mean(errors):.4f}  {spread}  {found[0][2]:5.1f} s", flush=True
                )


def rows(learn: Ratings, test: Ratings, seed: int) -> Iterator[tuple[str, float, float]]:
    """Baselines, and all that is trained."""
    federation, published = Federation.on_device(learn), OnDeviceMF.as_published()
    start = time.process_time()
    yield "user's own mean", mse(UserMean().fit(learn), test), time.process_time() - start
    start = time.process_time()
    yield (
        "stage 1 alone",
        mse(published.alone(federation, seed=seed)["devices"], test),
        time.process_time() - start,
    )
    for words, recipe, budget in trained(published, learn.user_count):
        start = time.process_time()
        run = train(recipe, federation, budget=budget, seed=seed)
        yield words, mse(run.homes["devices"], test), time.process_time() - start


def trained(published: OnDeviceMF, users: int) -> Iterator[tuple[str, Any, Budget | None]]:
    """What is trained, and with which budget."""
    budgets = [Budget(epsilon=epsilon, delta=DELTA, unit="user") for epsilon in (1, 4, 10)]
    for words, recipe in (("as published", published), ("defaults", OnDeviceMF())):
        yield f"{words}, no noise", recipe, None
        for budget in budgets:
            yield f"{words}, epsilon {budget.epsilon:g}", recipe, budget
    every, local = replace(published, aggregate=PlainSum()), LocalReports()
    for budget in budgets:
        yield f"as published, all noise at every device, epsilon {budget.epsilon:g}", every, budget
        yield f"local reports, epsilon {budget.epsilon:g}", local, budget
        more = budget_if_shuffled(budget, devices=users, rounds=local.rounds)
        yield f"local reports, epsilon {budget.epsilon:g} if shuffled", local, more


def same(ratings: Ratings) -> Ratings:
    """Let every user stand for one."""
    return ratings


def tenfold(learn: Ratings) -> Ratings:
    """Let every user stand for ten; the first keep their numbers."""
    return replicated(learn, learn, REPLICAS, seed=0)[0]


def mse(model: Factors, test: Ratings) -> float:
    """Return the error on the test ratings, with predictions brought onto the scale."""
    missed = model.predict_rows(test.users, test.items).astype(np.float64) - test.values
    return float(np.mean(missed**2))


if __name__ == "__main__":
    main()
