"""A run folder, read for people: nothing but files, and nothing in them is believed to be well-formed."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from cofactor.errors import DAMAGES, RunError
from cofactor.report.exchange import Exchange, read_transcript

KNOWN_FORMAT = 3
"""The newest layout of run.json that this reads; docs/run-folder.md describes it."""
Facts = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Release:
    """What one party released with noise, once or several times alike, as its ledger has it."""

    what: str
    """Its round apart."""
    round: int | None
    by: str
    mechanism: Facts
    bound: Facts
    dimension: int
    count: int
    secure: bool
    joint: bool

    @property
    def alike(self) -> tuple[object, ...]:
        """All but who made it and when: releases of which this is equal can be told together."""
        return (self.what, str(self.mechanism), str(self.bound), self.dimension, self.secure, self.joint)


@dataclass(frozen=True, kw_only=True)
class Folder:
    """Everything that a report is made of."""

    path: Path
    facts: Facts
    """run.json."""
    events: tuple[Facts, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    """Messages that are alike, each with how many there were."""
    last_heard: Mapping[str, int] = field(default_factory=dict)
    """In which round each party was last heard of."""
    releases: tuple[Release, ...] = ()
    audits: Mapping[str, Facts] = field(default_factory=dict)
    digest: str = ""
    """The hash of run.json."""

    @classmethod
    def read(cls, path: Path) -> "Folder":
        """Read a run, a survey or a clustering; refuse what is none, or is damaged."""
        file = path / "run.json"
        if not file.is_file():
            raise RunError(
                f"{path} is not a run folder: it has no run.json. Make one with 'cofactor train', 'cofactor "
                "survey' or 'cofactor cluster'."
            )
        with _reading(path, "run.json"):
            content = file.read_bytes()
            facts = json.loads(content)
            _check(path, facts)
            together = facts.get("together") or {}
            parties = frozenset(together.get("parties", ()))
            sessions = frozenset((together.get("session"), *together.get("surveys", {})))
        with _reading(path, "transcript.jsonl"):
            exchanges, last_heard = read_transcript(path / "transcript.jsonl", parties)
        with _reading(path, "events.jsonl"):
            events = tuple(_lines(path / "events.jsonl"))
        return cls(
            path=path,
            facts=facts,
            events=events,
            exchanges=exchanges,
            last_heard=last_heard,
            releases=tuple(_releases(path, sessions)),
            audits=_audits(path),
            digest=sha256(content).hexdigest(),
        )

    @property
    def name(self) -> str:
        """What it is called: by its own name, not by where it lies."""
        return self.path.resolve().name

    @property
    def kind(self) -> str:
        """What is in it: "survey", "clustering" or "training"."""
        return next((kind for kind in ("survey", "clustering") if kind in self.facts), "training")

    @property
    def together(self) -> Facts | None:
        """Who took part; None where everything was pooled."""
        found: Facts | None = self.facts.get("together") or None
        return found

    @property
    def guarantee(self) -> Facts:
        """What is promised."""
        found: Facts = self.facts["guarantee"]
        return found

    @property
    def budget(self) -> Facts | None:
        """What the run was allowed to spend."""
        return None if self.together is None else self.together.get("budget")

    @property
    def parties(self) -> Mapping[str, Facts]:
        """Who took part, in public numbers."""
        return {} if self.together is None else self.together["parties"]

    @property
    def ended_early(self) -> tuple[int, int] | None:
        """How many rounds there were, and how many were planned, if somebody ended it before the last one."""
        rounds, planned = (int((self.together or {}).get(name) or 0) for name in ("rounds", "planned_rounds"))
        return (rounds, planned) if rounds < planned else None

    @property
    def scores(self) -> Mapping[str, Facts]:
        """Errors by name, where they were measured."""
        return self.facts.get("scores") or {}

    def rounds(self, stage: str = "round") -> list[Facts]:
        """Return the events of one stage."""
        return [event for event in self.events if event.get("stage") == stage]


def damaged(path: Path, error: BaseException, file: str = "") -> RunError:
    """Say that a folder cannot be shown, and which file of it is to blame, if that is known."""
    why = f"{file and f'{file}: '}{type(error).__name__}: {error}"[:200]
    return RunError(f"{path}: the run folder is damaged ({why}). Restore it from a copy, or train again.")


@contextmanager
def _reading(folder: Path, file: str) -> Iterator[None]:
    """Refuse the folder if this file of it is damaged."""
    try:
        yield
    except (*DAMAGES, OSError) as error:
        raise damaged(folder, error, file) from None


def _check(path: Path, facts: Any) -> None:
    if not isinstance(facts, dict):
        raise TypeError("run.json is no table")
    if facts["format"] > KNOWN_FORMAT:
        raise RunError(
            f"{path} was written by a newer cofactor (format {facts['format']}). Upgrade cofactor."
        )
    for name in ("guarantee", "recipe", "data"):
        if not isinstance(facts[name], dict):
            raise TypeError(f"{name} is no table")


def _lines(path: Path) -> Iterator[Facts]:
    """Yield the lines of a file, if it is there; a line that is not complete is passed over."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as opened:
        for line in opened:
            if line.endswith("\n") and line.strip():
                found = json.loads(line)
                if not isinstance(found, dict):
                    raise TypeError("a line is no table")
                yield found


def _releases(folder: Path, sessions: frozenset[object]) -> Iterator[Release]:
    """Yield what the parties' ledgers have of this run, and of surveys that were made for it."""
    for path in sorted((folder / "ledgers").glob("*.ledger")):
        with _reading(folder, f"ledgers/{path.name}"):
            events = [line.get("event") for line in _lines(path) if line.get("run") in sessions]
            yield from [_release(event) for event in events if event is not None]


def _release(event: Facts) -> Release:
    what, mark, number = event["what"].rpartition(", round ")
    return Release(
        what=what if mark else event["what"],
        round=int(number) if mark and number.isdigit() else None,
        by=event["by"],
        mechanism=event["mechanism"],
        bound=event["bound"],
        dimension=int(event.get("dimension", 1)),
        count=int(event.get("count", 1)),
        secure=bool(event.get("secure", True)),
        joint=bool(event.get("joint", False)),
    )


def _audits(folder: Path) -> dict[str, Facts]:
    found: dict[str, Facts] = {}
    for path in sorted((folder / "audits").glob("*.json")):
        with _reading(folder, f"audits/{path.name}"):
            if not path.is_file():
                raise TypeError("it is no file")
            found[path.stem] = json.loads(path.read_text())
            if not isinstance(found[path.stem]["figures"], dict):
                raise TypeError("an audit has no figures")
    return found


def together_releases(releases: tuple[Release, ...]) -> list[tuple[Release, list[int], int, int]]:
    """Return releases that are alike: one of them, its rounds, how many parties, and how many releases."""
    groups: dict[tuple[object, ...], list[Release]] = {}
    for each in releases:
        groups.setdefault(each.alike, []).append(each)
    return [
        (
            group[0],
            sorted({each.round for each in group if each.round is not None}),
            len({each.by for each in group}),
            sum(each.count for each in group),
        )
        for group in groups.values()
    ]
