"""Errors of SharedBiases and SecureALS where some users ask for more privacy than others.

    python -m benchmarks.personal_users FOLDER [ml-100k|ml-1m] [seeds=5] [epsilons=1,4]

FOLDER holds ml-100k.inter and .item, or ml-1m.zip. All is at user level, delta 1e-6, every user a device of
one cohort. Weights are drawn from Table 2 of HDPMF: 54% of the users are conservative (0.1 to 0.5), 37%
moderate (0.5 to 1) and 9% liberal (1). Beside what they ask for stands what all would get if all were as
liberal, or as strict, as the one at the end. A tenth of each user's ratings is the test part, and weights are
others, for every seed. Cells are test MSEs, the mean over seeds: of all users, with the standard deviation
over seeds in brackets, and of each group. CPU seconds are those of a whole row.
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.recipe_material import Effort, Material, cell, devices, heading, row
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.evaluate.joining import own_means
from cofactor.factors.model import Factors
from cofactor.privacy.budget import Budget
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.weights import HDPMF_USERS, Weights
from cofactor.randomness import InsecureRandom
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.train import train

DELTA = 1e-6
STRICTEST = min(group.low for group in HDPMF_USERS)
THRESHOLDS = (0.3, 0.75, 1.0)
"""Of sampling, as parts of epsilon, beside the mean."""

Asking = Callable[[float, Weights], Budget]


def main() -> None:
    folder, *words = sys.argv[1:]
    said = dict(word.split("=") for word in words if "=" in word)
    effort = Effort(
        seeds=int(said.get("seeds", Effort.seeds)),
        epsilons=tuple(float(each) for each in said.get("epsilons", "1,4").split(",")),
    )
    for name in [word for word in words if "=" not in word] or ["ml-100k", "ml-1m"]:
        table(Material.read(Path(folder), name), effort)


def table(material: Material, effort: Effort) -> None:
    """Print what everybody gets, by each recipe and however much they ask for."""
    groups = ", ".join(group.name for group in HDPMF_USERS)
    title = f"{material.name}: {material.ratings.user_count:,} users, {effort.seeds} seeds; all: {groups}"
    heading(title, [f"epsilon {each:g}" for each in effort.epsilons])
    assert material.ratings.scale is not None
    alone = [
        _errors(own_means(learn, material.ratings.scale), test, users)
        for learn, test, users in _halves(material, effort)
    ]
    row("sends nothing: user's own mean", [_cell(alone)] * len(effort.epsilons))
    for words, recipe in (
        ("SharedBiases, no features", SharedBiases()),
        ("SecureALS, public features", SecureALS(public_items=material.public_items)),
    ):
        for asked, budget_of in _askings():
            _row(f"{words}: {asked}", recipe, budget_of, material, effort)


def _askings() -> Iterator[tuple[str, Asking]]:
    yield "all allow epsilon", lambda epsilon, _: _same(epsilon)
    yield "stretching", lambda epsilon, users: _personal(epsilon, users)
    yield "sampling, threshold at the mean", lambda epsilon, users: _personal(epsilon, users, "sampling")
    for part in THRESHOLDS:
        yield f"sampling, threshold {part:g} epsilon", partial(_sampled, part)
    yield f"all allow {STRICTEST:g} epsilon", lambda epsilon, _: _same(STRICTEST * epsilon)


def _sampled(part: float, epsilon: float, users: Weights) -> Budget:
    return _personal(epsilon, users, "sampling", threshold=part * epsilon)


def _same(epsilon: float) -> Budget:
    return Budget(epsilon=epsilon, delta=DELTA, unit="user")


def _personal(
    epsilon: float, users: Weights, mechanism: Any = "stretching", threshold: float | None = None
) -> PersonalBudget:
    return PersonalBudget(
        epsilon=epsilon,
        delta=DELTA,
        unit="user",
        adjacency="empty",
        users=users,
        mechanism=mechanism,
        threshold=threshold,
    )


def _row(words: str, recipe: Any, budget_of: Asking, material: Material, effort: Effort) -> None:
    start, cells = time.process_time(), []
    for epsilon in effort.epsilons:
        errors = []
        for seed, (learn, test, users) in enumerate(_halves(material, effort)):
            # Noise that the seed repeats, which no guarantee survives: for tables only.
            chance = InsecureRandom(seed)
            run = train(recipe, devices(learn), budget=budget_of(epsilon, users), random=chance, seed=seed)
            errors.append(_errors(run.homes["devices"], test, users))
        cells.append(_cell(errors))
    row(words, cells, start)


def _halves(material: Material, effort: Effort) -> Iterator[tuple[Ratings, Ratings, Weights]]:
    for seed in range(effort.seeds):
        yield *by_fraction(material.ratings, 0.1, seed=seed), Weights.drawn(HDPMF_USERS, seed=seed)


def _errors(model: Factors, test: Ratings, users: Weights) -> NDArray[np.float64]:
    """Return the error over all test ratings, and over those of each group."""
    missed = (model.predict_rows(test.users, test.items) - test.values).astype(np.float64) ** 2
    group = users.groups_of(test.user_ids)[test.users]
    return np.array([missed.mean(), *(missed[group == at].mean() for at in range(len(HDPMF_USERS)))])


def _cell(errors: list[NDArray[np.float64]]) -> str:
    found = np.array(errors)
    return f"{cell(found[:, 0].tolist())}: " + ", ".join(f"{each:.4f}" for each in found[:, 1:].mean(axis=0))


if __name__ == "__main__":
    main()
