"""A training that is not finished, as the files say that it needs to go on: RELEASED numbers, and no others.

On a command line that folder is RUN.unfinished, beside where the run will be; at the coordinator of a network
it is the session's own. Whoever wants the training to end makes a file `stop` in it.
"""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from os.path import abspath
from pathlib import Path
from typing import Any

from cofactor.errors import DAMAGES, RunError
from cofactor.report.exchange import COORDINATOR
from cofactor.report.folder import Facts, damaged
from cofactor.report.growing import Growing, free, table, text, version

SUFFIX = ".unfinished"
STOP = "stop"
"""If this file is there, the training ends after the round that is going on."""
_TERMS, _PROPOSAL, _OUTCOME, _WAITING = "session.json", "proposal.json", "outcome.json", "waiting"
_LOCK = "session.lock"
_ENDS = ("interrupted", "refused", "failed", "paused")
"""Why a training came to rest, in a word."""
_RELEASED = ("answered", "parties", "bytes", "seconds", "epsilon", "epsilon_planned")
"""The numbers of a round that are in the ledger, or public; whatever else a file may hold is not shown."""
_LATE = 60.0
"""Seconds without a sign of life from which on a page says so."""


@dataclass(frozen=True, kw_only=True)
class Underway:
    """How far a training is."""

    name: str
    recipe: str = ""
    kind: str = "training"
    """What it is: at the coordinator of a network also "survey" or "clustering"."""
    split: str = ""
    budget: Facts | None = None
    parties: tuple[str, ...] = ()
    rounds: tuple[Facts, ...] = ()
    """The numbers of every finished round, the oldest first, each with its `step`."""
    planned: int = 0
    """How many rounds there are to be; 0 if that is not known yet."""
    answered: Mapping[str, int] = field(default_factory=dict)
    """By party, in how many of the finished rounds it was heard of."""
    last_round: Mapping[str, int] = field(default_factory=dict)
    last_time: Mapping[str, str] = field(default_factory=dict)
    """By party, the time of day at which it was last heard of, if somebody watched."""
    begun: bool = False
    ended: str = ""
    """Why it came to rest, in a word, if it did."""
    why: str = ""
    """The same in the words of the coordinator of a network."""
    waiting: str = ""
    """Whose decision a network waits for, before the first round."""
    resumed: bool = False
    stopping: bool = False
    silent: int = 0
    """Minutes since the last sign of life."""

    @property
    def done(self) -> int:
        """How many rounds are finished."""
        return int(self.rounds[-1]["step"]) if self.rounds else 0

    @property
    def number(self) -> Facts:
        """The last round's numbers."""
        return self.rounds[-1] if self.rounds else {}

    @property
    def stoppable(self) -> bool:
        """Whether it would end earlier if that were asked for now."""
        going = 0 < self.done < self.planned and not self.stopping
        return going and self.kind == "training" and self.ended in ("", "paused")

    @property
    def bytes(self) -> float:
        """The size of all messages so far."""
        return float(sum(each.get("bytes", 0.0) for each in self.rounds))

    @property
    def left(self) -> float | None:
        """About how many seconds the other rounds take, by the last ones; None while nobody can know."""
        recent: list[tuple[int, float]] = []
        for each in reversed(self.rounds[-11:]):
            if "seconds" not in each or (recent and each["seconds"] > recent[-1][1]):
                break  # a resumed clock begins anew
            recent.append((int(each["step"]), each["seconds"]))
        if len(recent) < 2:
            return None
        (last, now), (first, before) = recent[0], recent[-1]
        return float((now - before) / (last - first) * (self.planned - self.done))


class Watch:
    """Follows one training's files, from whenever it is looked at first."""

    def __init__(self, run: Path) -> None:
        """Watch what will be the run folder `run`, or the session of a network that lies there."""
        self.run = Path(abspath(run))  # "." has a name only where it lies
        self._followed: tuple[Path, str] | None = None
        self._read: tuple[object, Facts | None] = (None, None)
        self._damage: RunError | None = None
        self._forget()

    @property
    def name(self) -> str:
        """What the run is called."""
        return self.run.resolve().name

    @property
    def place(self) -> Path:
        """Where a training keeps what it needs to go on."""
        return self.run if (self.run / _PROPOSAL).exists() else self.run.with_name(self.run.name + SUFFIX)

    @property
    def finished(self) -> Path | None:
        """The run folder, if there is one, and nothing that is not finished."""
        if self.place == self.run:
            found = self.run / "run"
            return found if (found / "run.json").exists() else None
        there = (self.run / "run.json").exists()
        return self.run if there and not (self.place / _TERMS).exists() else None

    def look(self) -> Underway:
        """Read what is new, and return how far the training is; once damaged, files stay so."""
        try:
            terms = self._terms()
            following = None if terms is None else (self.place, str(terms["name"]))
            if following != self._followed:  # another training began in the same place
                self._forget()
                self._followed = following
            if self._damage is not None:
                raise self._damage
            return Underway(name=self.name) if terms is None else self._looked(terms)
        except (*DAMAGES, OSError) as error:
            self._damage = damaged(self.place, error)
            raise self._damage from None

    def wish_to_stop(self) -> None:
        """Ask the training to end after this round."""
        terms = self._terms()
        if terms is None or self.finished is not None:
            raise RunError("There is no training that could end.")
        if terms["kind"] != "training":
            raise RunError(f"A {terms['kind']} has no rounds that could be left out.")
        (self.place / STOP).touch()

    def _terms(self) -> Facts | None:
        """Return what is to be done, read anew where its file is another one: it may be long."""
        place = self.place
        found = [(path, version(path)) for path in (place / _TERMS, place / _PROPOSAL)]
        if self._read[0] != found:
            self._read = found, _terms(place)
        return self._read[1]

    def _forget(self) -> None:
        self._damage = None
        self._events = Growing(self.place / "events.jsonl")
        self._transcript = Growing(self.place / "transcript.jsonl")
        self._rounds: dict[int, Facts] = {}
        self._planned, self._ended, self._resumed = 0, "", False
        self._heard: dict[str, set[int]] = {}
        self._times: dict[str, str] = {}
        self._begun, self._alive, self._first = False, time.monotonic(), True

    def _looked(self, terms: Facts) -> Underway:
        self._take_events()
        parties = tuple(map(str, terms["parties"]))
        self._take_messages(frozenset(parties))
        self._first = False
        silent = time.monotonic() - self._alive
        rounds = tuple(self._rounds.values())
        ended, why = _outcome(self.place)
        ended = ended or self._ended or ("interrupted" if self._deserted(silent) else "")
        return Underway(
            name=self.name,
            recipe=str(terms["recipe"]),
            kind=str(terms["kind"]),
            split=str(terms["split"]),
            budget=_checked(terms["budget"]),
            parties=parties,
            rounds=rounds,
            planned=self._planned,
            answered={who: len(heard & self._rounds.keys()) for who, heard in self._heard.items()},
            last_round={who: max(heard) for who, heard in self._heard.items()},
            last_time=dict(self._times),
            begun=self._begun,
            ended=ended,
            why=why,
            waiting="" if self._rounds else text(self.place / _WAITING),
            resumed=self._resumed,
            stopping=(self.place / STOP).exists(),
            silent=int(silent // 60) if silent > _LATE else 0,
        )

    def _deserted(self, silent: float) -> bool:
        """Say whether whoever trained here is gone without a word: killed, say.

        On a network jobs come and go. Between the last round and the run folder nobody need be here, either.
        """
        if self.place == self.run or not free(self.place / _LOCK):
            return False
        ending = (self.place / STOP).exists() or 0 < self._planned <= max(self._rounds, default=0)
        return not ending or silent > _LATE

    def _take_events(self) -> None:
        for line in self._events.lines():
            self._alive = time.monotonic()
            event = _event(line)
            stage = event.get("stage")
            if stage == "round":
                step = int(event["step"])
                self._rounds[step] = {**_numbers(event["numbers"]), "step": step}
                self._planned = max(int(event["steps"]), step)
            self._resumed = self._resumed or stage == "resumed"
            self._ended = str(stage) if stage in _ENDS else ""

    def _take_messages(self, parties: frozenset[str]) -> None:
        now = time.strftime("%H:%M:%S")
        for line in self._transcript.lines():
            self._alive = time.monotonic()
            sent = dict(json.loads(line))
            sender = sent.get("sender")
            if sender is None:
                continue  # the first line names the session
            self._begun = True
            if sender == COORDINATOR or sender not in parties:
                continue
            self._heard.setdefault(sender, set()).add(int(sent["round"]))
            if not self._first:
                self._times[sender] = now


def _event(line: bytes) -> Facts:
    """Read an event; a line that a crash cut off, and the next one wrote on, is none, as for the training."""
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError):
        return {}


def _numbers(told: Mapping[str, Any]) -> dict[str, float]:
    """Return the released numbers of a round, as far as they are numbers."""
    found = {name: float(told[name]) for name in _RELEASED if name in told}
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _checked(budget: Facts | None) -> Facts | None:
    """Return a budget that can be drawn."""
    if budget is None:
        return None
    numbers = {name: float(budget[name]) for name in ("epsilon", "delta")}
    if not all(math.isfinite(each) for each in numbers.values()) or numbers["epsilon"] <= 0:
        raise ValueError("a budget that is none")
    return {**numbers, "unit": str(budget["unit"])}


def _terms(place: Path) -> dict[str, Any] | None:
    """Return what is to be done, in public words; None while there is nothing."""
    stored = table(place / _TERMS)
    if stored is not None:
        terms = stored["terms"]
        shown = {name: terms[name] for name in ("split", "budget", "parties")}
        return {"name": stored["name"], "kind": "training", "recipe": terms["recipe"]["kind"], **shown}
    proposal = table(place / _PROPOSAL)
    if proposal is None:
        return None
    work = proposal["work"]
    recipe = work.get("recipe") or work.get("method") or {}
    return {
        "name": proposal["session"],
        "kind": proposal["kind"],
        "recipe": recipe.get("kind", proposal["kind"]) if isinstance(recipe, dict) else recipe,
        "split": work.get("split", ""),
        "budget": work.get("budget"),
        "parties": [name for name, _ in proposal["parties"]],
    }


def _outcome(place: Path) -> tuple[str, str]:
    """Return why a network's session came to rest, if it did, and the coordinator's words for it."""
    found = table(place / _OUTCOME) or {}
    ended = str(found.get("outcome", ""))
    return (ended, str(found.get("words", ""))) if ended in _ENDS else ("", "")
