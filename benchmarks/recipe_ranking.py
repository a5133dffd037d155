"""Rankings by SecureALS beside popularity, private and not: a table of `recipe_accuracy`.

A fifth of each user's ratings is the test part; an item is relevant if its rating there is 4 or more. Cells
are precision / recall of the ten best unseen items, means over splits; noise differs with the split. Private
popularity has the whole budget to itself: every user adds 1 / sqrt(k) to each of her k items.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recipe_material import Effort, Material, devices, heading, row, trained
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.evaluate import ranking as measures
from cofactor.factors.baselines import Popularity
from cofactor.factors.model import Factors
from cofactor.privacy import noise
from cofactor.privacy.budget import Budget
from cofactor.randomness import InsecureRandom
from cofactor.recipes.central_steps import counted
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.usual_steps import one_release

EPSILONS = (0.5, 1.0, 4.0)
SPLITS = {"ml-100k": (0, 1, 2), "ml-1m": (0,)}

Parts = list[tuple[Ratings, Ratings]]


def ranking(folder: Path, effort: Effort) -> None:  # noqa: ARG001 (splits take the place of seeds)
    """Print one table for each release of MovieLens."""
    for name, seeds in SPLITS.items():
        material = Material.read(folder, name)
        parts = [by_fraction(material.ratings, 0.2, seed=seed) for seed in seeds]
        heading(
            f"ranking, {name}, delta {material.delta:g}, precision / recall of ten, {len(parts)} splits",
            [f"epsilon {epsilon:g}" for epsilon in EPSILONS],
        )
        _popularity(parts)
        _private_popularity(material, parts)
        for words, recipe in (
            ("SecureALS, no features", SecureALS()),
            ("SecureALS, public features", SecureALS(public_items=material.public_items)),
        ):
            _ours(words, recipe, material, parts)


def _popularity(parts: Parts) -> None:
    start = time.process_time()
    found = [_measured(Popularity().fit(learn), learn, test) for learn, test in parts]
    row("popularity, no privacy", [_cell(found)] * len(EPSILONS), start)


def _private_popularity(material: Material, parts: Parts) -> None:
    start, cells = time.process_time(), []
    for epsilon in EPSILONS:
        budget = Budget(epsilon=epsilon, delta=material.delta, unit="user")
        found = []
        for seed, (learn, test) in enumerate(parts):
            deviation = one_release(budget, devices(learn).facts)
            counts = counted(learn.by_user, learn.item_count).value[:, 0]
            noisy = counts + noise.gaussian(counts.shape, deviation, InsecureRandom(seed))
            found.append(_measured(_ranked_by(noisy, learn), learn, test))
        cells.append(_cell(found))
    row("private popularity", cells, start)


def _ranked_by(counts: Any, learn: Ratings) -> Factors:
    return replace(Popularity().fit(learn), item_bias=np.asarray(counts, np.float32))


def _ours(words: str, recipe: Any, material: Material, parts: Parts) -> None:
    start, cells = time.process_time(), []
    for epsilon in EPSILONS:
        found = []
        for seed, (learn, test) in enumerate(parts):
            run = trained(recipe, devices(learn), epsilon, material.delta, seed)
            found.append(_measured(next(iter(run.homes.values())), learn, test))
        cells.append(_cell(found))
    row(words, cells, start)


def _measured(model: Factors, learn: Ratings, test: Ratings) -> tuple[float, float]:
    found = measures.ranking(model, learn, test, k=10, threshold=4.0, resamples=1)
    return found.precision.value, found.recall.value


def _cell(found: list[tuple[float, float]]) -> str:
    precision, recall = np.mean(found, axis=0)
    return f"{precision:.3f} / {recall:.3f}"
