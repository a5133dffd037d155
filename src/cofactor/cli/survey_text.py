"""What came out of a survey: numbers with their intervals for people, one object for programs."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cofactor.cli.outcome import print_guarantee, readable
from cofactor.cli.text import YELLOW, print_line, print_table
from cofactor.config import as_table

if TYPE_CHECKING:
    from cofactor.survey.bootstrap import Band, Interval
    from cofactor.survey.result import Survey

_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_NAMED = {0.25: "a quarter is at most", 0.5: "half is at most (median)", 0.75: "three quarters are at most"}
_DECILES = tuple(tenth / 10 for tenth in range(1, 10))
_PARTS, _MOST_NUMBERS = 8, 16
"""How many parts of the range a table has; so many whole numbers have a line each."""
_NARROW = 0.5
"""An interval that is wider than this part of the range says next to nothing."""


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
    shuffled: float | None = None
    """The delta of a trusted shuffler, if somebody asks what it would change."""

    @cached_property
    def band(self) -> "Band":
        """What chance leaves open."""
        return self.survey.band()

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
    survey, band = told.survey, told.band
    numbers: dict[str, Any] = {"mean": _with_interval(survey.mean, band.mean)}
    if survey.distribution is not None:
        numbers["deviation"] = _with_interval(survey.distribution.deviation, band.deviation)
    quantiles = {} if survey.distribution is None else _quantiles(told, sorted({*_QUANTILES, *_DECILES}))
    return {
        "run": str(told.folder),
        "question": as_table(survey.question),
        "method": as_table(survey.method),
        "gives": survey.method.gives,
        "answered": survey.answered,
        **numbers,
        "quantiles": {f"{q:g}": _with_interval(*found) for q, found in quantiles.items()},
        "edges": survey.question.edges(survey.method.buckets).tolist(),
        "estimate": survey.estimate.tolist(),
        "intervals": None if survey.method.gives == "mean" else _listed(band.probabilities),
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
    people = "1 person" if survey.answered == 1 else f"{survey.answered:,} people"
    where = "" if told.file is None else f" in {told.file}"
    kind = "whole numbers " if question.whole else ""
    scale = ", in logarithms" if question.log else ""
    buckets = "" if survey.method.gives == "mean" else f" in {survey.method.buckets:,} buckets"
    return (
        f"{question.name}, {kind}{question.low:g} to {question.high:g}{scale}, asked of {people}{where}. "
        f"Everybody answered once: {type(survey.method).__name__}{buckets}, epsilon "
        f"{survey.method.epsilon:g}, {readable(survey.together.traffic)}."
    )


def _print_numbers(told: Told) -> None:
    survey, band = told.survey, told.band
    rows = [("mean", _number(survey.mean), _interval(band.mean))]
    if survey.distribution is not None:
        spread = survey.distribution.deviation
        rows.append(("standard deviation", _number(spread), _interval(band.deviation)))
        for q, (found, interval) in _quantiles(told, list(_QUANTILES)).items():
            rows.append((_NAMED.get(q, f"{q:.0%} are at most"), _number(found), _interval(interval)))
    print_table(("", "estimate", f"{band.level:.0%} interval"), rows)
    width = survey.question.high - survey.question.low
    if float(band.mean.high - band.mean.low) > _NARROW * width:
        print_line(
            "So few people say next to nothing at this epsilon. Ask more people, or allow more.", YELLOW
        )


def _print_shape(told: Told) -> None:
    """Draw a distribution with letters; of estimates that may be negative, list parts of the range."""
    from cofactor.survey.plotting import bars

    survey = told.survey
    if survey.distribution is not None:
        print_line(bars(survey.distribution))
    elif survey.method.gives == "ranges":
        rows = [(name, f"{part:.1%}", f"{low:.1%} to {high:.1%}") for name, part, low, high in _parts(told)]
        print_table((survey.question.name, "part", f"{told.band.level:.0%} interval"), rows)
        print_line("This method tells sums over ranges; noise makes some of them negative.")


def _parts(told: Told) -> list[tuple[str, float, float, float]]:
    """Return parts of the range by name, with how much lies in each, and between which numbers that is."""
    question, levels = told.survey.question, told.survey.question.levels
    single = levels is not None and levels <= _MOST_NUMBERS
    edges = question.edges(levels if single and levels is not None else _PARTS)
    found = []
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        name = f"{(low + high) / 2:g}" if single else f"{low:.4g} to {high:.4g}"
        around = told.band.between(low, high)
        found.append((name, told.survey.between(low, high), float(around.low), float(around.high)))
    return found


def _print_local(told: Told) -> None:
    """Say what only the holder of the data may know."""
    if told.file is None:
        return
    outside, missing, answered = told.local["outside"], told.missing, told.survey.answered
    question = told.survey.question
    if outside:
        print_line(
            f"{outside:,} of {answered:,} numbers lay outside {question.low:g} to {question.high:g} and "
            "answered as the nearer end. LOCAL: this count is private, and in no file.",
            YELLOW,
        )
    if missing:
        people = "1 person has" if missing == 1 else f"{missing:,} people have"
        print_line(f"{people} no number. LOCAL: this count is in no file.", YELLOW)


def _print_shuffled(told: Told) -> None:
    found = _shuffled(told)
    if found is not None:
        from cofactor.privacy.figures import rounded_up

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
    if told.begun and not left:
        print_line(
            "This survey began the ledger, for itself alone. To ask or train again later, begin with more: "
            "--budget-epsilon."
        )


def _shuffled(told: Told) -> dict[str, float] | None:
    if told.shuffled is None:
        return None
    return {"delta": told.shuffled, "epsilon": told.survey.shuffled(told.shuffled)}


def _quantiles(told: Told, parts: list[float]) -> Mapping[float, tuple[float, "Interval"]]:
    from cofactor.survey.bootstrap import Interval

    assert told.survey.distribution is not None
    found = told.survey.distribution.quantile(np.array(parts))
    around = told.band.quantile(np.array(parts))
    return {
        q: (float(found[at]), Interval(low=float(around.low[at]), high=float(around.high[at])))
        for at, q in enumerate(parts)
    }


def _with_interval(value: float, interval: "Interval") -> dict[str, Any]:
    return {"value": value, "interval": [float(interval.low), float(interval.high)]}


def _listed(interval: "Interval") -> dict[str, list[float]]:
    return {"low": interval.low.tolist(), "high": interval.high.tolist()}


def _interval(interval: "Interval") -> str:
    return f"{_number(interval.low)} to {_number(interval.high)}"


def _number(value: float) -> str:
    return f"{value:,.1f}" if abs(value) >= 10_000 else f"{value:.4g}"
