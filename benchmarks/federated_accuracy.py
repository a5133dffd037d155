"""Errors of VerticalMF and HorizontalMF on real ratings: three splits, or one where parties fit much at home.

    python -m benchmarks.federated_accuracy FOLDER [vertical|horizontal|sums]

FOLDER holds ml-1m.zip. Prints test MSE, mean and spread over seeds, at delta 1e-6.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cofactor.data import partition
from cofactor.data.files import read_ratings
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.factors.bayes import Bayes
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.privacy.budget import Budget
from cofactor.recipes.alone import Alone
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.sums import PlainSum, SecureSum
from cofactor.recipes.train import train
from cofactor.recipes.vertical import VerticalMF

SEEDS = (0, 1, 2)
DELTA = 1e-6


def main() -> None:
    folder, *which = sys.argv[1:]
    ratings = read_ratings(Path(folder) / "ml-1m.zip")
    for name, table in (("vertical", vertical), ("horizontal", horizontal), ("sums", sums)):
        if not which or name in which:
            for words, errors in table(ratings):
                low, high = min(errors), max(errors)
                print(f"{words:90s} {np.mean(errors):.4f}  ({low:.4f} to {high:.4f})", flush=True)


def vertical(ratings: Ratings) -> Iterator[tuple[str, list[float]]]:
    """VerticalMF, unit rating: what is published."""
    for parties in (1, 10):
        for epsilon in (1, 4, 10):
            budget = Budget(epsilon=epsilon, delta=DELTA, unit="rating")
            for name, recipe in (
                ("as published", VerticalMF.as_published(parties)),
                ("defaults", VerticalMF()),
            ):
                yield (
                    f"VerticalMF {name}, {parties} parties, epsilon {epsilon}",
                    [_error(ratings, partition.vertical, parties, recipe, budget, seed) for seed in SEEDS],
                )


def horizontal(ratings: Ratings) -> Iterator[tuple[str, list[float]]]:
    """HorizontalMF, unit user, and what the parties have alone."""
    for parties in (10, 40):
        alone = [_error(ratings, partition.horizontal, parties, Alone(), None, seed) for seed in SEEDS[:1]]
        yield f"Alone, {parties} horizontal parties", alone
        for epsilon in (1, 4, 10):
            budget = Budget(epsilon=epsilon, delta=DELTA, unit="user")
            yield (
                f"HorizontalMF defaults, {parties} parties, epsilon {epsilon}",
                [
                    _error(ratings, partition.horizontal, parties, HorizontalMF(), budget, seed)
                    for seed in SEEDS[:1]
                ],
            )


def sums(ratings: Ratings) -> Iterator[tuple[str, list[float]]]:
    """One step a round, with every answer seen or only sums: what is released, and what homes make of it."""
    for home, words in ((UsersOnly(), "users fitted to what is released"), (Bayes(), "home models")):
        for epsilon in (1, 4, 10):
            budget = Budget(epsilon=epsilon, delta=DELTA, unit="user")
            for name, aggregate in (("each answer seen", PlainSum()), ("SecureSum", SecureSum())):
                recipe = HorizontalMF(local_steps=1, home=home, aggregate=aggregate)
                yield (
                    f"HorizontalMF, 40 parties, {name}, epsilon {epsilon}, {words}",
                    [_error(ratings, partition.horizontal, 40, recipe, budget, seed) for seed in SEEDS[:1]],
                )


def _error(
    ratings: Ratings,
    divide: Callable[..., list[Ratings]],
    parties: int,
    recipe: Any,
    budget: Budget | None,
    seed: int,
) -> float:
    learn, test = by_fraction(ratings, 0.1, seed=seed)
    make = Federation.vertical if divide is partition.vertical else Federation.horizontal
    federations = [
        make(
            [
                Party(name=f"party-{k}", ratings=part)
                for k, part in enumerate(divide(whole, parties, seed=seed))
            ]
        )
        for whole in (learn, test)
    ]
    run = train(recipe, federations[0], budget=budget, seed=seed)
    return _mse(run, federations[1])


def _mse(run: Run, test: Federation) -> float:
    missed = [
        run.homes[party.name].predict_rows(party.ratings.users, party.ratings.items) - party.ratings.values
        for party in test.parties
    ]
    return float(np.mean(np.concatenate(missed) ** 2))


if __name__ == "__main__":
    main()
