"""A guarantee in words: a paragraph for people who sign, Markdown for people who look things up."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cofactor.figures import percent, rounded_up
from cofactor.privacy.entries import RENEWED

if TYPE_CHECKING:
    from cofactor.privacy.guarantee import Guarantee

_POSSIBILITIES = {
    ("user", "empty"): "a user's ratings are in the data, or that the user rated nothing at all (how many "
    "users there are is public)",
    ("user", "replace"): "a user's data are what they are, or that they are any others",
    ("user", "value"): "a user's ratings have the values they have, or that they have any others (who rated "
    "what is public)",
    ("rating", "empty"): "a rating is in the data, or that it was never given (how many users there are is "
    "public)",
    ("rating", "replace"): "a rating is what it is, or that it is any other one",
    ("rating", "value"): "a rating has the value it has, or any other (who rated what is public)",
}
_NOTHING_KNOWN = (
    "a user's {about} are in the data, or that nothing is known of the user (how many users there are is "
    "public)"
)

_NAMED = 12
"""Of more parties than this only their number is told."""


def paragraph(guarantee: "Guarantee") -> str:
    """Say everything in one paragraph."""
    if guarantee.epsilon is None:
        return " ".join([*guarantee.why_not, *guarantee.does_not_cover])
    parts = [*_breach(guarantee), _promise(guarantee), _meaning(guarantee)]
    parts += _listed("It covers the following.", guarantee.covers)
    parts += _listed("It does not cover the following.", guarantee.does_not_cover)
    parts += [f"It assumes that {each.what}; {each.met}." for each in guarantee.assumptions]
    parts += [_noise(guarantee), _reckoning(guarantee)]
    if guarantee.per is not None:
        parts.append(f"The budget is {RENEWED[guarantee.per]}.")
    parts += [f"Warning: {each}" for each in guarantee.warnings]
    return " ".join(part for part in parts if part)


def markdown(guarantee: "Guarantee") -> str:
    """Say everything point by point."""
    if guarantee.epsilon is None:
        return f"**No privacy guarantee.** {paragraph(guarantee)}\n"
    parts = [f"**{each}**" for each in _breach(guarantee)]
    parts += [_promise(guarantee), _meaning(guarantee)]
    parts += _points("It covers", guarantee.covers)
    parts += _points("It does not cover", guarantee.does_not_cover)
    parts += _points("It assumes", [f"that {each.what}; {each.met}." for each in guarantee.assumptions])
    renewed = [] if guarantee.per is None else [f"The budget is {RENEWED[guarantee.per]}."]
    parts += _points("Also", [_noise(guarantee), _reckoning(guarantee), *renewed])
    parts += _points("Warnings", guarantee.warnings)
    return "\n\n".join(parts) + "\n"


def _breach(guarantee: "Guarantee") -> list[str]:
    if guarantee.holds:
        return []
    reasons = " ".join(guarantee.why_not)
    return [f"This guarantee does not hold. {reasons} What follows is what it would say otherwise."]


def _promise(guarantee: "Guarantee") -> str:
    assert guarantee.epsilon is not None
    assert guarantee.delta is not None
    allowed = "" if guarantee.budget_epsilon is None else f" (the budget allows {guarantee.budget_epsilon:g})"
    count = "the one release" if guarantee.releases == 1 else f"all {guarantee.releases:,} releases together"
    released = f"{count} by {_some(guarantee.by)}" if guarantee.by else "nothing was released, which"
    verb = "is" if guarantee.releases < 2 else "are"
    return (
        f"Against {_joined(guarantee.against)}: {released} {verb} differentially private for "
        f'{_whom(guarantee)} (adjacency "{guarantee.adjacency}"), with epsilon '
        f"{rounded_up(guarantee.epsilon)}{allowed} and delta {rounded_up(guarantee.delta)}, the probability "
        "with which epsilon may fail."
        f"{_weights(guarantee)}"
    )


def _whom(guarantee: "Guarantee") -> str:
    if guarantee.whom is None:
        return f"each {guarantee.unit}"
    by_rating = guarantee.unit == "rating" and not guarantee.whom.startswith("a rating")
    return f"each rating of {guarantee.whom}" if by_rating else guarantee.whom


def _weights(guarantee: "Guarantee") -> str:
    """Say what those who ask for more privacy get."""
    told = guarantee.personal
    if told is None:
        return ""
    part = "its weight" if guarantee.unit == "user" else "the weights of its user and of its item"
    words = f"a {guarantee.unit} is promised epsilon {told.epsilon:g} times {part}"
    if told.threshold is None:
        words = f" That is for weight 1: {words}, and what it contributes shrinks with it."
    else:
        words = f" That is for whoever takes part: {words}, if that is less, and takes part by chance."
    if told.groups:
        words += f" At most, by group of users: {_joined(_by_group(guarantee))}."
    return words


def _by_group(guarantee: "Guarantee") -> list[str]:
    assert guarantee.personal is not None
    found = []
    for group in guarantee.personal.groups:
        epsilon = guarantee.for_group(group.name).epsilon
        found.append(f"{group.name} {'nothing proved' if epsilon is None else rounded_up(epsilon)}")
    return found


def _meaning(guarantee: "Guarantee") -> str:
    assert guarantee.odds is not None
    assert guarantee.unit is not None
    assert guarantee.adjacency is not None
    possibilities = _POSSIBILITIES[guarantee.unit, guarantee.adjacency]
    if guarantee.about is not None and guarantee.adjacency == "empty":
        possibilities = _NOTHING_KNOWN.format(about=guarantee.about)
    return (
        f"This means: somebody who thinks it equally likely that {possibilities}, and who then sees all of "
        f"it, will guess right at most {percent(guarantee.odds)} of the time, whatever else they know; 50% "
        f"would be pure chance.{_other_ratings(guarantee)}"
    )


def _other_ratings(guarantee: "Guarantee") -> str:
    if guarantee.replaced_odds is None:
        return ""
    own = f"sets of {guarantee.about or 'ratings'} of one user"
    what = own if guarantee.unit == "user" else "values or items of one rating"
    return f" Between any two {what} they guess right at most {percent(guarantee.replaced_odds)} of the time."


def _noise(guarantee: "Guarantee") -> str:
    if not guarantee.secure_noise:
        return ""
    return "The noise came from a cryptographic generator with keys from the operating system."


def _reckoning(guarantee: "Guarantee") -> str:
    if guarantee.accountant is None:
        return ""
    beside = "" if guarantee.renyi is None else f"; by Renyi divergences alone: {rounded_up(guarantee.renyi)}"
    return f"How epsilon was reckoned: {guarantee.accountant}{beside}."


def _some(names: Sequence[str]) -> str:
    """Name a few parties; count many."""
    return _joined(names) if len(names) <= _NAMED else f"{len(names):,} parties"


def _joined(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else "".join(names)


def _listed(title: str, sentences: Sequence[str]) -> list[str]:
    return [title, *sentences] if sentences else []


def _points(title: str, sentences: Sequence[str]) -> list[str]:
    points = "\n".join(f"- {each}" for each in sentences if each)
    return [f"{title}:\n\n{points}"] if points else []
