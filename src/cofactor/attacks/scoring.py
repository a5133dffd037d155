"""How good guesses about ratings and attributes are, beside guesses that need no attack.

Accuracies are means over users, as in Mai and Pang, equation (43). As printed it counts all items, of which
most are unrated, so that nothing but zeros is right about nearly all: rated items are counted apart.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.guesses import Guess
from cofactor.attacks.knowledge import Columns, Knowledge
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError
from cofactor.federation.door import SUM
from cofactor.federation.view import Truth

Reals = NDArray[np.float64]

TRIVIAL = (
    "Trivial guesses: nothing is rated (all items); the most common rating, or answer, of the attacked users "
    "themselves (rated items, questions); no attribute is 1. Random ones: any value with the same chance."
)
_CLOSE = 1e-3
"""Difference up to which two numbers are the same: ratings and attributes are stored with 24 bits."""


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """The part that is right: of an attack's guesses, and of guesses that need none."""

    right: float
    trivial: float
    random: float
    deviation: float = 0.0
    """Standard error of right - trivial, over users."""

    @property
    def gain(self) -> float:
        """How much better than trivial guesses."""
        return self.right - self.trivial

    @property
    def better(self) -> bool:
        """Whether it is clearly better than trivial: by more than three standard errors."""
        return self.gain > max(3 * self.deviation, 1e-9)


@dataclass(frozen=True, kw_only=True)
class Reconstruction:
    """How much of what users kept to themselves an attacker has found out."""

    users: int
    """How many users were attacked."""
    single: bool
    """Whether uploads of single users were seen; otherwise guesses are made from sums."""
    rated: Accuracy
    """Of the items that a user has rated: it is found out that they are, and the rating is right."""
    told: Accuracy
    """Of the same items, if somebody tells which they are, as the trivial guess is told."""
    all_items: Accuracy
    """Of all items: the rating, or that there is none, is right. Equation (43) as printed."""
    attributes: Accuracy | None
    """Of all numbers 0 and 1 that attributes became; None if there are none."""
    questions: Accuracy | None
    """Of all questions with several answers, such as the occupation; None if there are none."""
    seconds_each: float
    """Processor time for each upload."""
    source: str
    """What the attacker knew beforehand."""

    def figures(self) -> dict[str, float | int | str | None]:
        """Return everything in a flat table."""
        found: dict[str, float | int | str | None] = {
            "users": self.users,
            "uploads seen": "of single users" if self.single else "sums only",
        }
        for name, each in self._accuracies().items():
            if each is not None:
                found[name] = each.right
                found[f"{name}, trivial guess"] = each.trivial
                found[f"{name}, random guess"] = each.random
        return found | {"seconds each": self.seconds_each, "known beforehand": self.source}

    def __str__(self) -> str:
        who = "uploads of single users" if self.single else "nothing but sums"
        also = "" if self.questions is None else f", and {self.questions.right:.1%} of their attributes"
        return (
            f"From {who}, {self.rated.right:.1%} of what {self.users:,} users rated was read{also}; the "
            f"trivial guess is right in {self.rated.trivial:.1%}."
        )

    def _accuracies(self) -> Mapping[str, Accuracy | None]:
        return {
            "rated items right": self.rated,
            "rated items right if told which": self.told,
            "all items right": self.all_items,
            "attributes right": self.attributes,
            "questions right": self.questions,
        }


class Person(NamedTuple):
    """What is true of one attacked user, and what was guessed."""

    guess: Guess
    rated: NDArray[np.bool_]
    ratings: Reals
    attributes: Reals | None


class Right(NamedTuple):
    """For one user, the part that is right: by an attack, and by the trivial guess."""

    found: float
    trivial: float


def scored(
    guesses: Sequence[Guess], truth: Truth, knowledge: Knowledge, *, parties: Iterable[str] | None = None
) -> Reconstruction:
    """Compare guesses with what is true; a guess from a sum is scored for every user, or those of `parties`.

    `knowledge` names the values that there can be, and the questions.
    """
    people = list(_people(guesses, truth, None if parties is None else set(parties)))
    if not people:
        raise ConfigError("none of the guesses is about a user whose ratings are known. Nothing was scored.")
    values, usual = np.array(knowledge.values), _most_common(people)
    asked = [
        person
        for person in people
        if person.attributes is not None and len(person.attributes) == len(person.guess.attributes)
    ]
    answers = _most_common_answers(asked, knowledge.groups)
    by_chance = float(np.mean([1 / len(group) for group in knowledge.groups or [(0,)]]))
    return Reconstruction(
        users=len(people),
        single=all(guess.sender != SUM and guess.users == 1 for guess in guesses),
        rated=_accuracy([_rated(each, usual) for each in people], 1 / len(values)),
        told=_accuracy([_told(each, usual) for each in people], 1 / len(values)),
        all_items=_accuracy([_all_items(each) for each in people], 1 / (len(values) + 1)),
        attributes=_if_any([_columns(each, knowledge.numbers) for each in asked], 0.5),
        questions=_if_any([_questions(each, knowledge.groups, answers) for each in asked], by_chance),
        seconds_each=float(np.mean([guess.seconds for guess in guesses])),
        source=knowledge.source,
    )


def _people(guesses: Sequence[Guess], truth: Truth, wanted: set[str] | None) -> Iterator[Person]:
    for guess in guesses:
        names = list(truth.ratings) if guess.sender == SUM else [guess.sender]
        for name in names:
            if name in truth.ratings and (wanted is None or name in wanted):
                yield from _of_party(guess, truth.ratings[name], truth.attributes.get(name))


def _of_party(guess: Guess, ratings: Ratings, attributes: NDArray[Any] | None) -> Iterator[Person]:
    """Yield the users of a party who have rated anything: nobody else sends anything."""
    by_user = ratings.by_user
    for user in np.flatnonzero(by_user.sizes):
        part = slice(by_user.ptr[user], by_user.ptr[user + 1])
        rated, true = np.zeros(len(guess.ratings), np.bool_), np.zeros(len(guess.ratings))
        rated[by_user.index[part]], true[by_user.index[part]] = True, by_user.values[part]
        own = None if attributes is None else np.asarray(attributes[user], np.float64)
        yield Person(guess, rated, true, own)


def _most_common(people: Sequence[Person]) -> float:
    values, counts = np.unique(
        np.concatenate([person.ratings[person.rated] for person in people]), return_counts=True
    )
    return float(values[counts.argmax()])


def _most_common_answers(people: Sequence[Person], groups: Columns) -> list[int]:
    """Return the most common answer to each question; -1 where it is none."""
    if not people:
        return []
    table = np.stack([person.attributes for person in people if person.attributes is not None])
    found = []
    for group in groups:
        counts = np.nansum(table[:, list(group)] > 0.5, axis=0)
        found.append(int(counts.argmax()) if counts.any() else -1)
    return found


def _rated(person: Person, usual: float) -> Right:
    guess, true = person.guess, person.ratings[person.rated]
    right = guess.rated[person.rated] & _same(guess.ratings[person.rated], true)
    return Right(float(right.mean()), float(_same(true, usual).mean()))


def _told(person: Person, usual: float) -> Right:
    true = person.ratings[person.rated]
    right = _same(person.guess.if_rated[person.rated], true)
    return Right(float(right.mean()), float(_same(true, usual).mean()))


def _all_items(person: Person) -> Right:
    guess, rated = person.guess, person.rated
    right = (guess.rated == rated) & (~rated | _same(guess.ratings, person.ratings))
    return Right(float(right.mean()), float(1 - rated.mean()))


def _columns(person: Person, numbers: tuple[int, ...]) -> Right | None:
    """Count columns that are 0 or 1 and not missing."""
    assert person.attributes is not None
    counted = np.isfinite(person.attributes)
    counted[list(numbers)] = False
    if not counted.any():
        return None
    true = person.attributes[counted]
    return Right(float(_same(person.guess.attributes[counted], true).mean()), float(_same(true, 0.0).mean()))


def _questions(person: Person, groups: Columns, usual: Sequence[int]) -> Right | None:
    """Count questions of which all columns are right, if they are not missing."""
    assert person.attributes is not None
    right, trivial = [], []
    for group, common in zip(groups, usual, strict=True):
        true = person.attributes[list(group)]
        if np.isfinite(true).all():
            right.append(bool(_same(person.guess.attributes[list(group)], true).all()))
            trivial.append(bool(_same(true, np.arange(len(group)) == common).all()))
    return Right(float(np.mean(right)), float(np.mean(trivial))) if right else None


def _if_any(each: Iterable[Right | None], random: float) -> Accuracy | None:
    known = [one for one in each if one is not None]
    return _accuracy(known, random) if known else None


def _accuracy(each: Sequence[Right], random: float) -> Accuracy:
    right, trivial = np.array(each).T
    deviation = float(np.std(right - trivial, ddof=1) / np.sqrt(len(each))) if len(each) > 1 else 0.0
    return Accuracy(
        right=float(right.mean()), trivial=float(trivial.mean()), random=random, deviation=deviation
    )


def _same(one: Any, other: Any) -> NDArray[np.bool_]:
    return np.asarray(np.abs(one - other) < _CLOSE)
