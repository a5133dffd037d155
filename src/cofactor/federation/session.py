"""A session: one training, from its beginning to its end, however often it is interrupted."""

import fcntl
import json
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from cofactor.config import as_table
from cofactor.errors import CofactorError, RunError
from cofactor.federation.drive import Session
from cofactor.federation.federation import Federation
from cofactor.federation.host import write_bytes
from cofactor.federation.messages import Message
from cofactor.federation.party import Party
from cofactor.federation.transcript import Transcript
from cofactor.privacy.budget import Budget
from cofactor.progress import Progress

_ATTEMPTS = 4
"""How often it is tried to be alone in a folder."""


def terms_of(recipe: object, budget: Budget | None, federation: Federation, seed: int) -> dict[str, Any]:
    """Return all that must be the same when a training goes on."""
    terms = {
        "recipe": as_table(recipe),
        "budget": None if budget is None else as_table(budget),
        "split": federation.kind,
        "scale": str(federation.scale),
        "parties": {party.name: _party_terms(party) for party in federation.parties},
        "seed": seed,
        "public items": None if federation.public_items is None else federation.public_items.sha256,
        "attributes": None if federation.attributes is None else federation.attributes.as_json(),
        "weights": None if federation.weights is None else federation.weights.as_table(),
    }
    plain: dict[str, Any] = json.loads(json.dumps(terms))
    return plain


def _party_terms(party: Party) -> dict[str, Any]:
    ratings = party.ratings.by_user
    digest = sha256()
    for array in (ratings.ptr, ratings.index, ratings.values):
        digest.update(np.ascontiguousarray(array).data)
    for private in (party.attributes, party.weights):
        if private is not None and len(party.ratings):
            # In one hash with the ratings: they take few values, and could be guessed from their own.
            digest.update(np.ascontiguousarray(private).data)
    budget = None if party.budget is None else as_table(party.budget)
    return {"fingerprint": party.fingerprint, "ratings": digest.hexdigest(), "budget": budget}


def begun(folder: Path | None, terms: Mapping[str, Any], kinds: tuple[type[Message], ...]) -> Session:
    """Begin a session, or take up the one in the folder if it is of the same training."""
    if folder is None:
        name = secrets.token_hex(8)
        return Session(
            name=name, kinds=kinds, transcript=Transcript.create(None, session=name, split=terms["split"])
        )
    name = _name(folder, terms)
    lines = folder / "transcript.jsonl"
    # Where nobody has answered yet, a crash may have come before the transcript's first line.
    if not lines.exists() and not any(folder.glob("*.npz")):
        Transcript.create(lines, session=name, split=terms["split"])
    transcript = Transcript.open(lines, recover=True)
    return Session(name=name, kinds=kinds, transcript=transcript, folder=folder)


def _name(folder: Path, terms: Mapping[str, Any]) -> str:
    """Return the session's name, which is new if the folder has none."""
    file = folder / "session.json"
    if not file.exists():
        new = {"name": secrets.token_hex(8), "terms": terms}
        write_bytes(file, json.dumps(new, indent=2).encode())
    try:
        stored = json.loads(file.read_text())
        name, before = str(stored["name"]), dict(stored["terms"])
    except (ValueError, KeyError, TypeError):
        raise RunError(f"{file}: cannot be read. Train anew under another name.") from None
    differs = [key for key in terms if before.get(key) != terms[key]]
    if differs:
        raise RunError(
            f"{folder} holds an unfinished training that differs in {' and '.join(differs)}. Resume it with "
            "the same settings and data, or train anew under another name."
        )
    return name


def told_before(folder: Path | None) -> list[Progress]:
    """Return the progress of earlier attempts; a line that a crash cut off, or wrote over, is left out."""
    file = None if folder is None else folder / "events.jsonl"
    if file is None or not file.exists():
        return []
    lines = file.read_text(errors="replace").splitlines(keepends=True)
    return [event for line in lines if line.endswith("\n") and (event := _read(line)) is not None]


def seconds_in_rounds(events: Iterable[Progress], number: str = "seconds") -> float:
    """Return how long rounds took that were finished, in all attempts: each tells it of all so far.

    What an attempt did after its last finished round, before it was cut off, is not known.
    """
    told = (event.numbers.get(number, 0.0) for event in events if event.stage == "round")
    return max(told, default=0.0)


def _read(line: str) -> Progress | None:
    try:
        return Progress(**json.loads(line))
    except (ValueError, TypeError):
        return None


def tell(folder: Path | None, event: Progress) -> None:
    """Note progress, for the run that will be finished later."""
    if folder is not None:
        with (folder / "events.jsonl").open("a") as file:
            file.write(json.dumps(asdict(event)) + "\n")


@contextmanager
def end_told(folder: Path | None) -> Iterator[None]:
    """Note why a training came to rest, in a word, for whoever watches its folder."""
    try:
        yield
    except BaseException as error:
        tell(folder, Progress(_why(error), 0, 0))
        raise


def _why(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return "interrupted"
    return "refused" if isinstance(error, CofactorError) else "failed"


@contextmanager
def alone_in(folder: Path | None) -> Iterator[None]:
    """Make the folder, and keep every other process out of it: two would answer the same round twice."""
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "session.lock").open("w") as lock:
        for attempt in range(_ATTEMPTS):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if attempt + 1 == _ATTEMPTS:
                    raise RunError(
                        f"{folder}: another process is training here. Wait for it, or stop it."
                    ) from None
                time.sleep(0.05)  # whoever watches the training holds it for a moment, to see if it is held
        yield
