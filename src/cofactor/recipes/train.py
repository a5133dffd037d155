"""`train`: a recipe and data in, a run out."""

import secrets
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import as_table
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError
from cofactor.federation.channel import NO_FAILURES, Failures
from cofactor.federation.federation import Federation
from cofactor.federation.run import DataFacts, PartyFacts, Run, Together
from cofactor.federation.transcript import Transcript
from cofactor.privacy.budget import Budget
from cofactor.progress import Listener, Progress, nobody
from cofactor.randomness import Random, SecureRandom
from cofactor.recipes.alone import NOTHING_LEFT, Alone
from cofactor.recipes.capturing import AnyCapture
from cofactor.recipes.pooled import Pooled
from cofactor.recipes.together import Training, train_together

if TYPE_CHECKING:
    from cofactor.survey.result import Survey

_SECURE = SecureRandom()


def train(
    recipe: Any,
    data: Ratings | Federation,
    *,
    budget: Budget | None = None,
    features: NDArray[np.float32] | None = None,
    seed: int = 0,
    progress: Listener = nobody,
    random: Random = _SECURE,
    failures: Failures = NO_FAILURES,
    folder: str | Path | None = None,
    newer_data: bool = False,
    surveys: Sequence["Survey"] = (),
    capture: AnyCapture | None = None,
) -> Run:
    """Train a model, or the parties of a federation together, and return the run.

    The seed serves splits and initial factors; it never touches noise, which comes from `random`. Without a
    budget parties send their models as they are: not private. With a `folder` a training that was killed goes
    on where it was; `newer_data` says that files may have grown since their ledgers were begun. `failures`
    scripts parties that do not answer. `features` are public, one row an item, for Pooled only: parties of a
    federation bring their own. `surveys` are those that the recipe's settings came from: they count against
    the budget, and noise is made for what they leave of it. `capture` names a role, "coordinator" or
    "party:NAME", or several: what they see is kept for attacks, in simulations only.
    """
    if not isinstance(surveys, Sequence):
        raise ConfigError("surveys must be a list of Survey: surveys=[survey].")
    if surveys and (budget is None or not hasattr(recipe, "participant")):
        raise ConfigError("surveys count against a budget: give the one that all of it must keep.")
    if capture is not None and not hasattr(recipe, "participant"):
        raise ConfigError(f"{type(recipe).__name__} sends no messages, so there are none to capture.")
    if isinstance(recipe, Pooled):
        if budget is not None:
            raise ConfigError("Pooled has no privacy, so it takes no budget. Choose another recipe.")
        ratings = data.pooled() if isinstance(data, Federation) else data
        return _train_pooled(recipe, ratings, features, seed, progress)
    if isinstance(recipe, Alone):
        if budget is not None or not isinstance(data, Federation):
            raise ConfigError("Alone takes a Federation and no budget: nothing leaves a party.")
        return _train_alone(recipe, data, seed)
    if not hasattr(recipe, "participant"):
        raise ConfigError(f"train takes a recipe, such as Pooled(model=SGD()), got {recipe!r}.")
    if features is not None:
        raise ConfigError("parties of a federation bring their own features: Federation.with_public_items.")
    training = Training(
        seed=seed,
        progress=progress,
        random=random,
        failures=failures,
        folder=None if folder is None else Path(folder),
        newer_data=newer_data,
        surveys=tuple(surveys),
        capture=capture,
    )
    return train_together(recipe, data, budget, training)  # type: ignore[arg-type]


def _train_pooled(
    recipe: Pooled,
    ratings: Ratings,
    features: NDArray[np.float32] | None,
    seed: int,
    progress: Listener,
) -> Run:
    events: list[Progress] = []

    def note(event: Progress) -> None:
        events.append(event)
        progress(event)

    created, start = datetime.now(UTC), time.perf_counter()
    model = recipe.fit(ratings, features=features, seed=seed, progress=note)
    seconds = time.perf_counter() - start
    return Run(
        model=model,
        recipe=as_table(recipe.settled(ratings)),
        seed=seed,
        data=DataFacts.of(ratings),
        created=created.isoformat(timespec="seconds"),
        seconds=seconds,
        phases={"fitting": seconds},
        events=tuple(events),
    )


def _train_alone(recipe: Alone, federation: Federation, seed: int) -> Run:
    created, start, facts = datetime.now(UTC), time.perf_counter(), federation.facts
    homes, session = recipe.fit(federation, seed=seed), secrets.token_hex(8)
    return Run(
        model=None,
        recipe=as_table(recipe),
        seed=seed,
        data=DataFacts(facts.user_count, facts.item_count, facts.rating_count, str(facts.scale)),
        created=created.isoformat(timespec="seconds"),
        seconds=time.perf_counter() - start,
        guarantee=NOTHING_LEFT,
        homes=homes,
        together=Together(
            split=facts.split,
            session=session,
            simulated=federation.simulated,
            budget=None,
            parties={
                name: PartyFacts(users=facts.users[at], items=facts.items[at], ratings=facts.ratings[at])
                for at, name in enumerate(facts.parties)
            },
            rounds=0,
            traffic=0,
            transcript=Transcript.create(None, session=session, split=facts.split).content(),
        ),
    )
