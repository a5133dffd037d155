"""`Survey`: what people answered, added up, and what may be said about their privacy."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from cofactor.config import as_table, from_table
from cofactor.errors import ConfigError, RunError
from cofactor.federation.books import all_released
from cofactor.federation.folder import FORMAT, digests, read_facts, write_facts, write_whole
from cofactor.federation.run import (
    DataFacts,
    Together,
    together_as_json,
    together_from_json,
    versions,
    write_together,
)
from cofactor.privacy.events import Event
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.ledger import Ledger
from cofactor.survey.bootstrap import Band, band
from cofactor.survey.distribution import Distribution, written
from cofactor.survey.method import NOTHING, Floats, Integers, Method, left_open
from cofactor.survey.methods import method_from_table
from cofactor.survey.question import Question

_CLOSE = 1e-6
"""By how much an estimate may differ that another machine makes of the same answers."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Survey:
    """The result of asking a question. Everything in it but `outside` was released, or follows from it."""

    question: Question
    method: Method
    tally: Integers
    """The answers, added up."""
    answered: int
    """How many people have answered."""
    guarantee: Guarantee
    together: Together
    """Who was asked and what was sent."""
    events: tuple[Event, ...]
    """What was released, holder by holder."""
    created: str
    """When people were asked, in UTC."""
    seconds: float
    unanswered: Mapping[str, str] = field(default_factory=dict)
    """Who did not answer, or nothing that can be used, and why."""
    outside: Mapping[str, int] = field(default_factory=dict, repr=False)
    """By holder, how many numbers lay outside the question's range and were clipped: LOCAL, in no file."""
    others: int = 0
    """In one party's own folder: how many people the other parties asked, whose answers are in the tally."""

    def __post_init__(self) -> None:
        charged = [name for name, party in self.together.parties.items() if party.epsilon]
        told = Counter((event.by, event.mechanism, event.count) for event in self.events)
        if told != Counter((name, self.method.mechanism, 1) for name in charged):
            raise RunError(
                f"the survey of {self.question.name} does not say what was released in it: one answer by its "
                "method, by each who answered."
            )
        asked = sum(self.together.parties[name].users for name in charged) + self.others
        if not 0 < self.answered <= asked:
            raise RunError(f"in the survey of {self.question.name}, more have answered than were asked.")

    def __str__(self) -> str:
        """Say what was asked and what the answers tell, in a few lines."""
        asked = f"{self.question.name}: {self.answered:,} answers by {type(self.method).__name__}"
        told = self.distribution or f"mean {written(self.mean)}"
        return f"{asked}, epsilon {self.method.epsilon:g}\n{told}"

    @property
    def tells_little(self) -> bool:
        """Whether so few answers at this epsilon tell next to nothing, however they come out."""
        return left_open(self.method.epsilon, self.answered) > NOTHING

    @property
    def session(self) -> str:
        """The name under which ledgers know it."""
        return self.together.session

    @cached_property
    def estimate(self) -> Floats:
        """What the method makes of the answers: a number for each bucket, or the place of the mean."""
        return self.method.estimate(self.tally)

    @cached_property
    def distribution(self) -> Distribution | None:
        """How the numbers are spread; None if the method does not tell."""
        if self.method.gives != "distribution":
            return None
        return Distribution(edges=self.edges, probabilities=self.estimate, whole=self.question.whole)

    @property
    def edges(self) -> Floats:
        """Where buckets begin and end."""
        return self.question.edges(self.method.buckets)

    @property
    def mean(self) -> float:
        """The mean of the numbers."""
        if self.distribution is not None:
            return self.distribution.mean
        edges = self.edges
        if self.method.gives == "mean":
            return float(edges[0] + self.estimate[0] * (edges[-1] - edges[0]))
        # Shares add up to 1 only on average: counted from the middle, what they are off by weighs little.
        centre = (edges[0] + edges[-1]) / 2
        return float(centre + self.estimate @ ((edges[:-1] + edges[1:]) / 2 - centre))

    def between(self, low: float, high: float) -> float:
        """Return which part of the numbers lies in a range; of some methods it may come out below 0."""
        if self.distribution is not None:
            return float(self.distribution.between(low, high))
        if self.method.gives == "mean":
            raise ConfigError("this method tells the mean, and no range. Use SquareWave.")
        sums = np.concatenate([[0.0], np.cumsum(self.estimate)])
        below = np.interp([low, high], self.edges, sums)
        return float(below[1] - below[0])

    def band(self, level: float = 0.95, *, repeats: int = 200, seed: int = 0) -> Band:
        """Return what chance leaves open: intervals for buckets, quantiles, mean and deviation.

        It is made of what was released, and costs nothing.
        """
        return band(
            self.method,
            self.tally,
            edges=self.edges,
            whole=self.question.whole,
            log=self.question.log,
            level=level,
            repeats=repeats,
            seed=seed,
        )

    def shuffled(self, delta: float) -> float:
        """Return what an answer would have cost, had somebody whom all trust shuffled them first.

        It counts on all others to keep their answers to themselves. Nobody shuffles here: the guarantee, and
        the ledgers, have the answer's own epsilon.
        """
        from cofactor.privacy.shuffling import shuffled  # it takes a second to load

        return shuffled(self.method.epsilon, self.answered, delta)

    def events_of(self, party: str) -> list[Event]:
        """Return what a holder has released in it."""
        return [event for event in self.events if event.by == party]

    def facts(self) -> dict[str, Any]:
        """Return everything but tally, transcript and ledgers, as the folder's run.json holds it."""
        scale = f"{self.question.low:g} to {self.question.high:g}"
        return {
            "format": FORMAT,
            "created": self.created,
            "seconds": round(self.seconds, 3),
            "recipe": as_table(self.method),
            "seed": 0,
            "data": asdict(DataFacts(users=self.answered, items=0, ratings=0, scale=scale)),
            "guarantee": self.guarantee.as_json(),
            "scores": {},
            "survey": {
                "question": as_table(self.question),
                "answered": self.answered,
                "unanswered": dict(self.unanswered),
                "mean": self.mean,
                "estimate": self.estimate.tolist(),
                "others": self.others,
            },
            "together": together_as_json(self.together),
            "versions": versions(),
        }

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the run folder whole or not at all; an existing one is kept unless told otherwise."""
        return write_whole(folder, self._write, overwrite=overwrite)

    def _write(self, folder: Path) -> None:
        np.save(folder / "tally.npy", self.tally, allow_pickle=False)
        write_together(self.together, folder)
        write_facts(folder, self.facts())

    @classmethod
    def load(cls, folder: str | Path) -> "Survey":
        """Read a survey's run folder; refuse one whose estimate does not follow from its answers."""
        facts, place = read_facts(folder), Path(folder)
        if "survey" not in facts:
            raise RunError(f"{folder} holds no survey but a training. Read it with Run.load.")
        if digests(place) != facts.get("files"):
            raise RunError(f"{folder}: files were changed, added or lost after the survey was saved.")
        try:
            told = facts["survey"]
            together = together_from_json(facts["together"], place)
            ledgers = {path.stem: Ledger.open(path) for path in sorted((place / "ledgers").glob("*.ledger"))}
            found = cls(
                question=from_table(Question, told["question"], "question"),
                method=method_from_table(facts["recipe"], "method"),
                tally=np.load(place / "tally.npy", allow_pickle=False),
                answered=int(told["answered"]),
                guarantee=Guarantee.from_json(facts["guarantee"]),
                together=together,
                events=tuple(all_released(ledgers, together.session)),
                created=facts["created"],
                seconds=facts["seconds"],
                unanswered=dict(told["unanswered"]),
                others=int(told.get("others", 0)),
            )
            stored, anew = np.array([*told["estimate"], told["mean"]]), np.append(found.estimate, found.mean)
        except (KeyError, TypeError, ValueError, OSError, ConfigError, MemoryError) as error:
            why = f"{type(error).__name__}: {error}"
            raise RunError(f"{folder}: the run folder is damaged ({why}). Ask again.") from None
        if stored.shape != anew.shape or not np.allclose(stored, anew, rtol=_CLOSE, atol=_CLOSE):
            raise RunError(f"{folder}: the estimate in run.json does not follow from the answers.")
        return found
