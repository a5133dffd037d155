"""`Run`: the immutable result of training, and its folder, which is all that anybody reads later."""

import json
import os
import platform
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cofactor.data.ids import Id
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, RunError
from cofactor.factors.model import Factors
from cofactor.privacy.guarantee import Guarantee
from cofactor.progress import Progress

FORMAT = 1
"""Version of the run folder's layout; docs/run-folder.md describes it."""

_FACTS = ("created", "seconds", "recipe", "seed", "data", "guarantee", "scores")

NOT_PRIVATE = Guarantee.nothing("Not private: the ratings were pooled in one place and no noise was added.")


@dataclass(frozen=True)
class DataFacts:
    """The size of what a run was trained on."""

    users: int
    items: int
    ratings: int
    scale: str

    @classmethod
    def of(cls, ratings: Ratings) -> "DataFacts":
        """Count the ratings."""
        scale = "implicit" if ratings.scale is None else str(ratings.scale)
        return cls(ratings.user_count, ratings.item_count, len(ratings), scale)


@dataclass(frozen=True, kw_only=True)
class Run:
    """What training produced: the model, how it was made, and what may be said about it."""

    model: Factors
    recipe: Mapping[str, Any]
    """The recipe's settings as a table: what `cofactor.config.from_table` reads."""
    seed: int
    data: DataFacts
    created: str
    """When training began, in UTC."""
    seconds: float
    events: tuple[Progress, ...] = ()
    scores: Mapping[str, Any] = field(default_factory=dict)
    """Errors by name, each with its interval, if they were measured."""
    guarantee: Guarantee = NOT_PRIVATE
    """What is promised about privacy; a pooled run promises nothing."""

    def with_scores(self, scores: Mapping[str, Any]) -> "Run":
        """Return the same run with measured scores beside it."""
        return replace(self, scores=dict(scores))

    def with_titles(self, titles: Mapping[Id, str]) -> "Run":
        """Return the same run with titles for its items; without any titles it stays as it is."""
        return replace(self, model=self.model.with_titles(titles)) if titles else self

    def facts(self) -> dict[str, Any]:
        """Return everything but the model and the events, as the folder's run.json holds it."""
        return {
            "format": FORMAT,
            "created": self.created,
            "seconds": round(self.seconds, 3),
            "recipe": dict(self.recipe),
            "seed": self.seed,
            "data": asdict(self.data),
            "guarantee": self.guarantee.as_json(),
            "scores": dict(self.scores),
            "versions": {name: version(name) for name in ("cofactor", "numpy", "numba")}
            | {"python": platform.python_version()},
        }

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the run folder whole or not at all; an existing one is kept unless told otherwise."""
        target = Path(folder).resolve()
        check_free(target, overwrite=overwrite)
        # A name that nobody else has: what is cleared away below is always our own.
        draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        try:
            draft.mkdir(parents=True)
            self._write(draft)
            _put_in_place(draft, target)
        except OSError as error:
            raise RunError(
                f"{folder}: cannot be written ({error.strerror}). Name another with --out."
            ) from None
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return Path(folder)

    def _write(self, folder: Path) -> None:
        self.model.save(folder / "model.npz")
        (folder / "run.json").write_text(json.dumps(self.facts(), indent=2) + "\n")
        lines = [json.dumps(asdict(event)) + "\n" for event in self.events]
        (folder / "events.jsonl").write_text("".join(lines))

    @classmethod
    def load(cls, folder: str | Path) -> "Run":
        """Read a run folder."""
        facts = read_facts(folder)
        try:
            lines = (Path(folder) / "events.jsonl").read_text().splitlines()
            return cls(
                model=Factors.load(Path(folder) / "model.npz"),
                recipe=facts["recipe"],
                seed=facts["seed"],
                data=DataFacts(**facts["data"]),
                created=facts["created"],
                seconds=facts["seconds"],
                events=tuple(Progress(**json.loads(line)) for line in lines),
                scores=facts["scores"],
                guarantee=Guarantee.from_json(facts["guarantee"]),
            )
        except (KeyError, TypeError, ValueError, OSError, ConfigError) as error:
            why = f"{type(error).__name__}: {error}"
            raise RunError(f"{folder}: the run folder is damaged ({why}). Train again.") from None


def _put_in_place(draft: Path, target: Path) -> None:
    """Swap the finished folder in; what stood there before is removed only afterwards."""
    if not target.exists():
        draft.rename(target)
        return
    old = draft.with_suffix(".old")
    target.rename(old)
    try:
        draft.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def check_free(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that cannot be written or would be lost, before any work is done."""
    target = folder.resolve()
    if target == Path.cwd():
        raise RunError("the run folder cannot be the folder you are in. Name a new one with --out.")
    nearest = next(place for place in (target, *target.parents) if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise RunError(f"{folder} cannot be made: no writing to {nearest}. Name another folder with --out.")
    if nearest != target or not any(target.iterdir()):
        return
    if not (target / "run.json").exists():
        raise RunError(f"{folder} exists and is not a run folder. Name another folder with --out.")
    if not overwrite:
        raise RunError(f"{folder} already holds a run. Name another folder with --out, or add --force.")


def read_facts(folder: str | Path) -> dict[str, Any]:
    """Read a run folder's run.json."""
    path = Path(folder) / "run.json"
    if not path.exists():
        raise RunError(f"{folder} is not a run folder: it has no run.json. Make one with 'cofactor train'.")
    try:
        facts: dict[str, Any] = json.loads(path.read_text())
        newer = facts["format"] > FORMAT
        whole = newer or all(name in facts for name in _FACTS)
    except (ValueError, KeyError, TypeError, OSError):
        raise RunError(f"{path}: cannot be read. The folder is damaged; train again.") from None
    if newer:
        raise RunError(
            f"{folder} was written by a newer cofactor (format {facts['format']}). Upgrade cofactor."
        )
    if not whole:
        raise RunError(f"{path}: facts are missing. The folder is damaged; train again.")
    return facts
