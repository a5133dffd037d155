"""What the tables of `recipe_accuracy` share: data with what is public about it, trainings, and cells."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cofactor.data.files import read_ratings
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings
from cofactor.data.tables import items_beside
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.privacy.budget import Budget
from cofactor.randomness import InsecureRandom
from cofactor.recipes.train import train

FILES = {"ml-1m": "ml-1m.zip", "ml-100k": "ml-100k.inter"}
DELTAS = {"ml-1m": 1e-6, "ml-100k": 1e-5}
EPSILONS = (0.5, 1.0, 2.0, 4.0, 10.0)
DEVICES = "devices"


@dataclass(frozen=True, eq=False)
class Material:
    """Ratings, what is public about their items, and the delta that they are protected with."""

    name: str
    ratings: Ratings
    delta: float
    public_items: PublicItems | None = None

    @classmethod
    def read(cls, folder: Path, name: str) -> "Material":
        """Read MovieLens, with the films' titles, years and genres."""
        path = folder / FILES[name]
        table = items_beside(path)
        assert table is not None, f"no table of items beside {path}"
        return cls(name, read_ratings(path), DELTAS[name], PublicItems.of_table(table))


@dataclass(frozen=True)
class Effort:
    """How often everything is trained."""

    seeds: int = 5
    """Trainings, each with noise of its own."""
    epsilons: tuple[float, ...] = EPSILONS


def devices(ratings: Ratings) -> Federation:
    """Make every user a device of one simulation."""
    return Federation.on_device(ratings, scale=ratings.scale)


def server(ratings: Ratings) -> Federation:
    """Put all ratings into one place."""
    return Federation.horizontal([Party(name="server", ratings=ratings)], scale=ratings.scale, simulated=True)


def trained(recipe: Any, federation: Federation, epsilon: float, delta: float, seed: int) -> Run:
    """Train with noise that the seed repeats, which no guarantee survives: for tables only."""
    budget = Budget(epsilon=epsilon, delta=delta, unit="user")
    return train(recipe, federation, budget=budget, random=InsecureRandom(seed), seed=seed)


def mse(model: Factors, test: Ratings) -> float:
    """Return the error on the test ratings, with predictions brought onto the scale."""
    missed = model.predict_rows(test.users, test.items).astype(np.float64) - test.values
    return float(np.mean(missed**2))


def cell(values: Sequence[float]) -> str:
    """Write a mean and, of several values, their standard deviation."""
    spread = f" ({np.std(values, ddof=1):.4f})" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{spread}"


def row(name: str, cells: Sequence[str], since: float | None = None) -> None:
    """Print a row of a table, with the CPU seconds that have passed."""
    seconds = "" if since is None else f"{time.process_time() - since:.0f}"
    print(f"| {name} | " + " | ".join(cells) + f" | {seconds} |", flush=True)


def heading(title: str, columns: Sequence[str]) -> None:
    """Print a title and the head of a table."""
    print(f"\n{title}\n\n| | " + " | ".join(columns) + " | CPU s |")
    print("|---" * (len(columns) + 2) + "|", flush=True)
