"""`train`: a recipe and data in, a run out."""

import time
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from cofactor.config import as_table
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError
from cofactor.federation.run import DataFacts, Run
from cofactor.progress import Listener, Progress, nobody
from cofactor.recipes.pooled import Pooled


def train(
    recipe: Pooled,
    ratings: Ratings,
    *,
    features: NDArray[np.float32] | None = None,
    seed: int = 0,
    progress: Listener = nobody,
) -> Run:
    """Train a model and return the run; the same seed gives the same model."""
    if not isinstance(recipe, Pooled):
        raise ConfigError(f"train takes a recipe, such as Pooled(model=SGD()), got {recipe!r}.")
    events: list[Progress] = []

    def note(event: Progress) -> None:
        events.append(event)
        progress(event)

    created, start = datetime.now(UTC), time.perf_counter()
    model = recipe.fit(ratings, features=features, seed=seed, progress=note)
    return Run(
        model=model,
        recipe=as_table(recipe.settled(ratings)),
        seed=seed,
        data=DataFacts.of(ratings),
        created=created.isoformat(timespec="seconds"),
        seconds=time.perf_counter() - start,
        events=tuple(events),
    )
