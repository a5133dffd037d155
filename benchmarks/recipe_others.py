"""SecureALS on other data than MovieLens: a table of `recipe_accuracy`.

Cells are test MSEs, and by how much the best of what sends nothing is worse, with the 95% interval of a
paired bootstrap over users: a recipe may lose to it by chance, but never by more than the interval.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.recipe_material import Effort, devices, heading, mse, row, trained
from cofactor.data.ratings import Ratings, Scale
from cofactor.data.split import by_fraction
from cofactor.data.synthetic import Shape, make
from cofactor.evaluate.joining import joining_of, own_means
from cofactor.factors.baselines import PersonalRidge
from cofactor.factors.model import Factors
from cofactor.recipes.secure_als import SecureALS

EPSILONS = (0.5, 1.0, 4.0)
FILES = {"Yelp": "yelp-hin.npz", "Douban": "douban-monti3k.npz"}
SHAPES = {
    "few users": Shape(users=300, items=400, ratings=15_000),
    "few ratings each": Shape(users=8000, items=2000, ratings=60_000, minimum=3),
    "many items": Shape(users=2000, items=20_000, ratings=150_000),
    "few items": Shape(users=20_000, items=100, ratings=600_000, minimum=5),
    "half stars": Shape(users=3000, items=1500, ratings=200_000, scale=Scale(0.5, 5, 0.5)),
    "zero to one hundred": Shape(
        users=3000, items=1500, ratings=200_000, scale=Scale(0, 100, 1), mean=68, user_spread=11,
        item_spread=16, taste=12, noise=21,
    ),
    "popularity tells nothing": Shape(users=3000, items=1500, ratings=200_000, quality=0.0),
    "items are alike": Shape(
        users=3000, items=1500, ratings=200_000, item_spread=0.0, taste=0.0, quality=0.0
    ),
    "tastes matter most": Shape(
        users=30_000, items=1000, ratings=2_000_000, item_spread=0.2, taste=0.9, factors=4
    ),
}  # fmt: skip
"""Synthetic ratings."""


def others(folder: Path, effort: Effort) -> None:  # noqa: ARG001 (one training each: there are many data)
    """Print one row for each set of ratings."""
    heading(
        "other data, SecureALS without features; in brackets the gain over what sends nothing",
        ["users", "best that sends nothing", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)],
    )
    for name, ratings in _all(folder):
        start = time.process_time()
        learn, test = by_fraction(ratings, 0.1, seed=0)
        best = min(_sends_nothing(learn), key=lambda pair: mse(pair[1], test))
        delta = 10.0 ** -np.ceil(np.log10(10 * learn.user_count))
        cells = [_cell(learn, test, best[1], epsilon, delta) for epsilon in EPSILONS]
        row(name, [f"{learn.user_count:,}", f"{mse(best[1], test):.4f} {best[0]}", *cells], start)


def _all(folder: Path) -> Iterator[tuple[str, Ratings]]:
    for name, file in FILES.items():
        arrays = np.load(folder / file)
        columns = (arrays["user"], arrays["item"], arrays["rating"])
        yield name, Ratings.from_arrays(*columns, scale=Scale(1, 5, 1), duplicates="mean")
    for name, shape in SHAPES.items():
        yield f"synthetic: {name}", make(shape, seed=0).ratings


def _sends_nothing(learn: Ratings) -> Iterator[tuple[str, Factors]]:
    """Yield what users have of their own: their means, and the same drawn towards the middle of the scale."""
    assert learn.scale is not None
    yield "own mean", own_means(learn, learn.scale)
    nothing = np.zeros((learn.item_count, 0), np.float32)
    yield "own level", PersonalRidge().fit(learn, features=nothing)


def _cell(learn: Ratings, test: Ratings, best: Factors, epsilon: float, delta: float) -> str:
    run = trained(SecureALS(), devices(learn), epsilon, delta, seed=0)
    ours = next(iter(run.homes.values()))
    before, after = (model.predict_rows(test.users, test.items) for model in (best, ours))
    gain = joining_of(before, after, test).gain
    word = " WORSE" if gain.high < 0 else ""
    return f"{mse(ours, test):.4f} ({gain.value:+.4f}, {gain.low:+.4f} to {gain.high:+.4f}){word}"
