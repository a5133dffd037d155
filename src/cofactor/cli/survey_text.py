"""What came out of a survey: numbers with their intervals for people, one object for programs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cofactor.cli.outcome import print_guarantee
from cofactor.cli.text import YELLOW, print_line, print_table
from cofactor.config import as_table
from cofactor.figures import number_of, readable

if TYPE_CHECKING:
    from cofactor.survey.bootstrap import Band, Interval
    from cofactor.survey.result import Survey

_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_NAMED = {0.25: "a quarter is at most", 0.5: "half is at most (median)", 0.75: "three quarters are at most"}
_DECILES = tuple(tenth / 10 for tenth in range(1, 10))
_PARTS, _MOST_NUMBERS = 8, 16
"""How many parts of the range a table has; so many whole numbers have a line each."""
_WIDE = 0.5
"""An interval that is wider than this part of the range says next to nothing."""
_FEW = 30
"""Of fewer answers, others that are drawn from them say nothing about chance."""

_CLIPPED = 0.02
"""Part of all numbers from which on clipped ones are worth a word about the ends."""
Ends = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Told:
    """A survey, and what may be said beside it."""

    survey: "Survey"
    folder: Path
    file: Path | None = None
    """What was asked about; None if only its folder is known."""
    missing: int = 0
    """How many people have no number: LOCAL."""
    begun: bool = False
    """Whether the file's ledger was begun by this survey."""
    own_budget: bool = False
    """Whether a budget was named that the file's ledger, which has its own, knows nothing of."""
    shuffled: float | None = None
    """The delta of a trusted shuffler, if somebody asks what it would change."""

    @cached_property
    def band(self) -> "Band | None":
        """What chance leaves open; None of so few answers that nobody knows, or where nothing is known."""
        known = self.survey.answered >= _FEW and not self.survey.tells_little
        return self.survey.band() if known else None

    def around(self, pick: "Callable[[Band], Interval]") -> Ends | None:
        """Return between which numbers something lies, if that is known."""
        if self.band is None:
            return None
        found = pick(self.band)
        return float(found.low), float(found.high)

    @property
    def warnings(self) -> list[str]:
        """Say so if hardly anything was learned."""
        if self.survey.tells_little:
            return [
                "So few answers at this epsilon tell next to nothing: what stands here is hardly more than "
                "what was assumed beforehand. Ask more people, or allow more."
            ]
        if self.band is None:
            return [f"Of fewer than {_FEW} people next to nothing is known, nor how far it may be off."]
        low, high = self.around(lambda band: band.mean) or (0.0, 0.0)
        if high - low > _WIDE * (self.survey.question.high - self.survey.question.low):
            return [
                "That says next to nothing at this epsilon. Ask more people, allow more, or leave out "
                "--method and --buckets."
            ]
        return []

    @cached_property
    def ledger(self) -> dict[str, Any] | None:
        """What the file's ledger says by now."""
        from cofactor.federation.party import ledger_path
        from cofactor.privacy.ledger import Ledger

        path = None if self.file is None else ledger_path(self.file)
        if path is None or not path.exists():
            return None
        ledger = Ledger.open(path)
        return {"path": str(path), "left": ledger.left, "budget": as_table(ledger.budget)}

    @property
    def local(self) -> dict[str, Any]:
        """Return what stays with whoever holds the data, and is in no file."""
        return {"outside": sum(self.survey.outside.values()), "missing": self.missing}

    def svg(self) -> str:
        """Draw the distribution."""
        found, name = self.survey.distribution, self.survey.question.name
        assert found is not None
        title = f"{name}, {self.survey.answered:,} answers, epsilon {self.survey.method.epsilon:g}"
        return found.svg(band=self.band, title=title, name=name)


def as_object(told: Told) -> dict[str, Any]:
    """Return all of it as one object with stable keys; `local` holds what must not leave."""
    survey, known = told.survey, told.survey.distribution
    quantiles = {} if known is None else _quantiles(told, sorted({*_QUANTILES, *_DECILES}))
    spread = None if known is None else (known.deviation, told.around(lambda band: band.deviation))
    return {
        "run": str(told.folder),
        "question": as_table(survey.question),
        "method": as_table(survey.method),
        "gives": survey.method.gives,
        "answered": survey.answered,
        "mean": _as_pair(survey.mean, told.around(lambda band: band.mean)),
        "deviation": None if spread is None else _as_pair(*spread),
        "quantiles": {f"{q:g}": _as_pair(*found) for q, found in quantiles.items()},
        "edges": survey.question.edges(survey.method.buckets).tolist(),
        "estimate": survey.estimate.tolist(),
        "intervals": _of_buckets(told),
        "warnings": told.warnings,
        "guarantee": survey.guarantee.as_json(),
        "shuffled": _shuffled(told),
        "ledger": told.ledger,
        "bytes": survey.together.traffic,
        "seconds": survey.seconds,
        "local": told.local if told.file is not None else None,
    }


def print_survey(told: Told) -> None:
    """Print what was asked, what it tells, and what is promised."""
    survey = told.survey
    print_line(_asked(told))
    _print_numbers(told)
    _print_shape(told)
    _print_local(told)
    print_guarantee(survey.guarantee.as_json(), None)
    _print_shuffled(told)
    _print_ledger(told)


def _asked(told: Told) -> str:
    survey, question = told.survey, told.survey.question
    people = number_of(survey.answered, "person", "people")
    where = "" if told.file is None else f" in {told.file}"
    kind = "whole numbers " if question.whole else ""
    scale = ", in logarithms" if question.log else ""
    buckets = "" if survey.method.gives == "mean" else f" in {survey.method.buckets:,} buckets"
    silent = len(survey.unanswered)
    some = f" {silent:,} more did not answer, or nothing of use." if silent else ""
    return (
        f"{question.name}, {kind}{question.low:g} to {question.high:g}{scale}, asked of {people}{where}. "
        f"Everybody answered once: {type(survey.method).__name__}{buckets}, epsilon "
        f"{survey.method.epsilon:g}, {readable(survey.together.traffic)}.{some}"
    )


def _print_numbers(told: Told) -> None:
    survey, known = told.survey, told.survey.distribution
    rows = [("mean", survey.mean, told.around(lambda band: band.mean))]
    if known is not None:
        rows.append(("standard deviation", known.deviation, told.around(lambda band: band.deviation)))
        for q, found in _quantiles(told, list(_QUANTILES)).items():
            rows.append((_NAMED.get(q, f"{q:.0%} are at most"), *found))
    print_table(_columns(told, "", "estimate"), [_row(*row, _number) for row in rows])
    for warning in told.warnings:
        print_line(warning, YELLOW)


def _print_shape(told: Told) -> None:
    """Draw a distribution with letters; of estimates that may be negative, list parts of the range."""
    from cofactor.survey.plotting import bars

    survey = told.survey
    if survey.distribution is not None:
        print_line(bars(survey.distribution))
    elif survey.method.gives == "ranges":
        rows = [_row(*part, _percent) for part in _parts(told)]
        print_table(_columns(told, survey.question.name, "part"), rows)
        print_line("This method tells sums over ranges; noise makes some of them negative.")


def _parts(told: Told) -> list[tuple[str, float, Ends | None]]:
    """Return parts of the range by name, with how much lies in each, and between which numbers that is."""
    question, levels = told.survey.question, told.survey.question.levels
    single = levels is not None and levels <= _MOST_NUMBERS
    edges = question.edges(levels if single and levels is not None else _PARTS)
    names = [
        f"{(low + high) / 2:g}" if single else f"{low:.4g} to {high:.4g}"
        for low, high in pairwise(edges.tolist())
    ]
    return [_part(told, name, *ends) for name, ends in zip(names, pairwise(edges.tolist()), strict=True)]


def _part(told: Told, name: str, low: float, high: float) -> tuple[str, float, Ends | None]:
    return name, told.survey.between(low, high), told.around(lambda band: band.between(low, high))


def _print_local(told: Told) -> None:
    """Say what only the holder of the data may know."""
    if told.file is None:
        return
    outside, missing, answered = told.local["outside"], told.missing, told.survey.answered
    question = told.survey.question
    if outside:
        print_line(
            f"{outside:,} of {answered:,} numbers lay outside {question.low:g} to {question.high:g} and "
            "answered as the nearer end. LOCAL: this count is private, and in no file."
            + (" So many make its ends, and what lies near them, look fuller." if _many(told) else ""),
            YELLOW,
        )
    if missing:
        people = "1 person has" if missing == 1 else f"{missing:,} people have"
        print_line(f"{people} no number. LOCAL: this count is in no file.", YELLOW)


def _many(told: Told) -> bool:
    return bool(told.local["outside"] > _CLIPPED * told.survey.answered)


def _print_shuffled(told: Told) -> None:
    found = _shuffled(told)
    if found is not None:
        from cofactor.figures import rounded_up

        print_line(
            "Had somebody whom all trust shuffled the answers first, who then sees all of them would learn "
            f"epsilon {rounded_up(found['epsilon'])} at delta {found['delta']:g}. Nobody did: promise and "
            "ledger say what an answer costs by itself."
        )


def _print_ledger(told: Told) -> None:
    from cofactor.cli.budget import rounded_down

    if told.ledger is None:
        return
    path, left, whole = told.ledger["path"], told.ledger["left"], told.ledger["budget"]["epsilon"]
    print_line(f"Charged to {path}: epsilon {rounded_down(left)} of {whole:g} is left.")
    if told.own_budget:
        print_line("The ledger has a budget of its own already: --budget-epsilon was left aside.", YELLOW)
    if told.begun and rounded_down(left) == "0":
        print_line(
            "This survey began the ledger, for itself alone. To ask or train again later, begin with more: "
            "--budget-epsilon."
        )


def _shuffled(told: Told) -> dict[str, float] | None:
    if told.shuffled is None:
        return None
    return {"delta": told.shuffled, "epsilon": told.survey.shuffled(told.shuffled)}


def _quantiles(told: Told, parts: list[float]) -> Mapping[float, tuple[float, Ends | None]]:
    assert told.survey.distribution is not None
    found = told.survey.distribution.quantile(np.array(parts)).tolist()
    around = None if told.band is None else told.band.quantile(np.array(parts))
    ends = [None] * len(parts) if around is None else list(zip(around.low, around.high, strict=True))
    return {q: (found[at], ends[at]) for at, q in enumerate(parts)}


def _of_buckets(told: Told) -> dict[str, list[float]] | None:
    if told.band is None or told.survey.method.gives == "mean":
        return None
    found = told.band.probabilities
    return {"low": found.low.tolist(), "high": found.high.tolist()}


def _as_pair(value: float, ends: Ends | None) -> dict[str, Any]:
    return {"value": value, "interval": None if ends is None else [float(end) for end in ends]}


def _columns(told: Told, *names: str) -> tuple[str, ...]:
    return (*names, "" if told.band is None else f"{told.band.level:.0%} interval")


def _row(name: str, value: float, ends: Ends | None, write: Callable[[float], str]) -> tuple[str, ...]:
    return name, write(value), "" if ends is None else f"{write(ends[0])} to {write(ends[1])}"


def _number(value: float) -> str:
    from cofactor.survey.distribution import written

    return written(value)


def _percent(part: float) -> str:
    return f"{part:.1%}"
