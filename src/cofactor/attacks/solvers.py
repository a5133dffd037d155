"""Reconstruction as Mai and Pang try it (PrivMVMF, sections IV and VI.B): by solving nonlinear equations.

The equations are those of `solver_systems`. The paper does not say where its solvers begin. Here they begin
where a server can: nothing but uploads, questions and the recipe's settings is looked at. What a method has
found when it stops, or is stopped, is the best point that it has visited, by its own equations; of several
beginnings, that one counts which explains best all that was sent.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root

from cofactor.attacks.guesses import Guess
from cofactor.attacks.knowledge import Knowledge
from cofactor.attacks.solver_systems import (
    Sent,
    Steps,
    System,
    Told,
    best_system,
    direction,
)
from cofactor.attacks.uploads import Upload
from cofactor.config import one_of, plain_numbers, positive, whole
from cofactor.errors import ConfigError

Reals = NDArray[np.float64]
Method = Literal["hybr", "broyden2", "df-sane", "linearmixing", "anderson"]
Start = Literal["ones", "tenths", "random", "direction"]

METHODS: tuple[Method, ...] = get_args(Method)
"""Of `scipy.optimize.root`. In the paper's words: modified Powell, Broyden's bad method, two that take one
number for the Jacobian, and Anderson mixing."""
STARTS: tuple[Start, ...] = get_args(Start)
_CLOSE = 1e-8
"""How near to 0 methods try to bring equations."""
_SOLVED = 1e-5
"""How far from 0 equations may be that count as solved: numbers are sent in grains of that order."""
_ALIKE = 1e-6
"""Relative difference of what is unexplained below which two solutions are alike."""
_EACH = {"hybr": 5}
"""Further evaluations for each unknown."""
_OPTIONS: dict[Method, dict[str, Any]] = {
    "hybr": {"xtol": _CLOSE},
    "broyden2": {"fatol": _CLOSE},
    "df-sane": {"fatol": _CLOSE, "ftol": _CLOSE},
    "linearmixing": {"fatol": _CLOSE},
    "anderson": {"fatol": _CLOSE},
}


@dataclass(frozen=True, kw_only=True)
class Solver:
    """How equations are solved, where from, and for how long."""

    method: Method = "hybr"
    start: Start = "ones"
    """Where to begin: everything 1, or 0.1; by chance; or, which is ours, at a vector in the direction of the
    upload's rows, whose length is the root of the highest rating, with both signs."""
    tries: int = 5
    """How often to begin by chance."""
    fixed: int | None = 1
    """How many factors (SemiALS) or items (SGD) are fixed, one after the other, drawn by chance; all of them
    if None. What they tell is brought to what is possible, and averaged: the paper's rule under noise."""
    printed: bool = False
    """Whether weights are smoothed from 0, as equation 42 is printed; otherwise from alpha."""
    evaluations: int = 1_000
    """How often equations may be evaluated from one start; by hybr, which needs as many as there are unknowns
    before its first step, 5 times for each unknown more."""
    seconds: float = 10.0
    """How much processor time a method may take from one start."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        one_of(METHODS, method=self.method)
        one_of(STARTS, start=self.start)
        whole(tries=self.tries, fixed=self.fixed, evaluations=self.evaluations)
        positive(seconds=self.seconds)


class Solved(NamedTuple):
    """What solutions tell of one user."""

    guess: Guess
    """With the sign that explains most, or that makes ratings positive: most systems do not tell it, and the
    paper does not mention it."""
    as_found: Guess
    """With the sign that the method happened to find."""
    converged: float
    """The part of the systems whose equations came out."""


def solve_uploads(
    uploads: Sequence[Upload],
    knowledge: Knowledge,
    solver: Solver,
    random: np.random.Generator,
    *,
    user_rate: float = 1.0,
) -> Solved:
    """Solve for the ratings and attributes of the user who sent one upload, or two if vectors move by steps.

    The attacker knows the uploads, the questions that they answer, the recipe's settings (`user_rate` is one
    of them) and which ratings there can be. Chance picks beginnings and what is fixed.
    """
    begun, sent, highest = time.process_time(), _sent(uploads), knowledge.highest
    ends, signed, converged = [], [], []
    for each, starts in _systems(sent, knowledge, solver, random, user_rate):
        best = min((_end(each, start, solver) for start in starts), key=each.unexplained)
        converged.append(np.abs(each.equations(best)).max() <= _SOLVED)
        ends.append((each, best))
        signed.append((each, _upright(each, best, highest)))
    seconds = time.process_time() - begun
    guess, as_found = (
        replace(_averaged(own, uploads[0], sent[0], knowledge), seconds=seconds) for own in (signed, ends)
    )
    return Solved(guess, as_found, float(np.mean(converged)))


def _sent(uploads: Sequence[Upload]) -> list[Sent]:
    """Return what was sent: one upload if vectors are best, two if they moved by a step."""
    kind = uploads[-1].known.update
    if kind == "at home" or len(uploads) != (2 if kind == "sgd" else 1):
        raise ConfigError(
            "solvers take one upload of MultiViewMF with semi-als, or two of consecutive rounds with sgd, "
            f"the earlier first; got {len(uploads)} with {kind}. Give them so, or use the one-round attack."
        )
    found = [Sent.of(own, beside=other) for own, other in zip(uploads, reversed(uploads), strict=True)]
    if len(found[0].items) == 0:
        raise ConfigError(
            "nothing was sent for any item, so that nothing can be solved. Attack another upload."
        )
    return found


def _systems(
    sent: Sequence[Sent], knowledge: Knowledge, solver: Solver, random: np.random.Generator, rate: float
) -> Iterator[tuple[System, list[Reals]]]:
    """Yield systems with something fixed, and beginnings for each."""
    first, last, values = sent[0], sent[-1], np.array(knowledge.values)
    floor = 0.0 if solver.printed or first.alpha is None else first.alpha
    for fixed in _drawn(first.width if len(sent) == 1 else len(first.items), solver.fixed, random):
        if len(sent) == 1:
            yield best_system(first, fixed, floor), _beginnings(first, knowledge.highest, solver, random)
        else:
            steps = Steps(first, last, fixed, rate=rate, floor=floor, values=values)
            yield steps, _vectors(first, knowledge.highest, solver, random)


def _drawn(count: int, wanted: int | None, random: np.random.Generator) -> list[int]:
    return [int(one) for one in random.permutation(count)[: wanted or count]]


def _vectors(sent: Sent, highest: float, solver: Solver, random: np.random.Generator) -> list[Reals]:
    """Return vectors of the user to begin with."""
    if solver.start == "direction":
        found = direction(sent) * np.sqrt(highest)
        return [found, -found]
    if solver.start == "random":
        return list(random.standard_normal((solver.tries, sent.width)))
    return [np.full(sent.width, 1.0 if solver.start == "ones" else 0.1)]


def _beginnings(sent: Sent, highest: float, solver: Solver, random: np.random.Generator) -> list[Reals]:
    """Return ratings and attributes to begin with."""
    rows, vectors = (
        np.vstack(pair) for pair in ((sent.item_rows, sent.attribute_rows), (sent.items, sent.attributes))
    )
    if solver.start == "direction":
        users = _vectors(sent, highest, solver, random)
        return [np.asarray((rows / (user @ user) + vectors) @ user) for user in users]
    if solver.start == "random":
        return list(random.random((solver.tries, len(rows))))
    return [np.full(len(rows), 1.0 if solver.start == "ones" else 0.1)]


class _Stopped(Exception):
    """A method has had all that it may have, or left what can be computed with."""


class _Watched:
    """Evaluates equations as long as it may, and remembers where they failed least."""

    def __init__(self, equations: Callable[[Reals], Reals], start: Reals, solver: Solver) -> None:
        self._equations, self._left = equations, solver.evaluations + _EACH.get(solver.method, 0) * len(start)
        self._until = time.process_time() + solver.seconds
        self._least, self.best = np.inf, start

    def __call__(self, guess: Reals) -> Reals:
        if self._left < 1 or time.process_time() > self._until:
            raise _Stopped
        self._left -= 1
        failed = self._equations(guess)
        length = float(np.linalg.norm(failed))
        if not np.isfinite(length):
            raise _Stopped
        if length < self._least:
            self._least, self.best = length, guess.copy()
        return failed


def _end(equations: System, start: Reals, solver: Solver) -> Reals:
    """Return the best point that a method visits from one start."""
    watched = _Watched(equations.equations, start, solver)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # methods that go astray say so in many ways
        with suppress(_Stopped, ArithmeticError, ValueError, np.linalg.LinAlgError):
            root(watched, start, method=solver.method, options=_OPTIONS[solver.method])
    return watched.best


def _upright(equations: System, guess: Reals, highest: float) -> Reals:
    """Return a solution or its mirror image: the one that explains more, or has ratings above 0."""
    this, mirrored = (equations.unexplained(one) for one in (guess, -guess))
    if abs(this - mirrored) > _ALIKE * max(this, mirrored):
        return guess if this < mirrored else -guess
    ratings = np.clip(np.nan_to_num(equations.told(guess).ratings), -highest, highest)
    return -guess if ratings.sum() < 0 else guess


def _possible(told: Told, highest: float) -> Told:
    """Bring numbers into their domains: ratings up to the highest, attributes up to 1."""
    ratings, attributes = (np.nan_to_num(one, posinf=0.0, neginf=0.0) for one in told)
    return Told(np.clip(ratings, 0.0, highest), np.clip(attributes, 0.0, 1.0))


def _averaged(
    ends: Sequence[tuple[System, Reals]], upload: Upload, sent: Sent, knowledge: Knowledge
) -> Guess:
    """Average what solutions tell, take what is nearest of what is possible, and put it in its place."""
    told = [_possible(each.told(end), knowledge.highest) for each, end in ends]
    ratings, attributes = (np.mean(own, axis=0) for own in zip(*told, strict=True))
    whole, if_rated = np.zeros(len(upload.items)), np.full(len(upload.items), knowledge.values[0])
    whole[sent.item_places] = _nearest(ratings, (0.0, *knowledge.values))
    if_rated[sent.item_places] = _nearest(ratings, knowledge.values)
    answers = np.full(len(upload.attributes), np.nan)
    answers[sent.attribute_places] = np.rint(attributes)
    return Guess(
        sender=upload.sender,
        round=upload.round,
        ratings=whole,
        rated=whole != 0,
        if_rated=if_rated,
        attributes=answers,
        vector=np.mean([each.user(end) for each, end in ends], axis=0),
        noise=upload.noise or 0.0,
        users=upload.users,
    )


def _nearest(numbers: Reals, values: Sequence[float]) -> Reals:
    """Return the one of some values that is nearest to each number."""
    known = np.sort(values)
    return np.asarray(known[np.searchsorted((known[1:] + known[:-1]) / 2, numbers)])
