"""What things are called on a page: one name for one thing, whatever files call it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cofactor.report.folder import Folder

SENDS_NOTHING = ("user_mean", "personal_ridge", "popularity")
"""What somebody has who sends nothing to anybody, the simplest first."""
OWN = ("private", "together")
"""What the run's own models are called among the scores, where several parties trained."""
MODELS = {
    "global_mean": "the mean of all ratings",
    "user_mean": "sends nothing",
    "personal_ridge": "sends nothing, knows items",
    "item_mean": "each item's mean",
    "bias": "users' and items' means",
    "stage_1": "after the first stage",
    "alone": "alone",
    "private": "private, together",
    "together": "together, not private",
    "pooled": "pooled, not private",
    "popularity": "what is popular",
    "released counts": "what is popular, as released",
}
EXPLAINED = {
    "user_mean": "each user's own mean: what one has who sends nothing to anybody",
    "personal_ridge": "what one has who sends nothing, from own ratings and public features of items",
    "bias": "means of users and items, fitted in one place",
    "alone": "each party with its own ratings only",
    "private": "this run: the parties together, with noise",
    "together": "this run: the parties together, without noise",
    "pooled": "all ratings in one place, which nobody should have to do",
}
"""What these names mean, for a reader who sees them for the first time."""
MEASURES = {
    "ndcg_over_unseen": "NDCG",
    "precision": "precision",
    "recall": "recall",
    "map": "mean average precision",
}
"""How good lists are, in numbers that a run keeps."""
_SPLITS = {
    "horizontal": "different users (horizontal)",
    "vertical": "different items of the same users (vertical)",
    "on-device": "one user each (on-device)",
}
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def model(name: str) -> str:
    """Return what a score is about, in words."""
    return MODELS.get(name, name.replace("_", " "))


def split(name: object) -> str:
    """Return how parties relate."""
    return _SPLITS.get(str(name), str(name))


def spaced(name: str) -> str:
    """Write a class's name as words: SecureSum becomes "Secure sum"."""
    words = _WORD.sub(" ", name).split(" ")
    return " ".join([words[0], *(word if word.isupper() else word.lower() for word in words[1:])])


def message(kind: str, protection: str) -> str:
    """Return what a message is called; steps of a sum are told apart by what hides them."""
    return f"{spaced(kind)}: {protection}" if kind == "SumStep" else spaced(kind)


def metric(scores: Mapping[str, Mapping[str, Any]]) -> tuple[str, str, bool]:
    """Return which number scores are compared by, what it is called, and whether less is better."""
    if "rmse" in next(iter(scores.values()), {}):
        return "rmse", "root mean squared error", True
    return "ndcg_over_unseen", "quality of lists (NDCG)", False


def own_name(folder: Folder) -> str | None:
    """Return the name of the run's own models among its scores: where nobody trained together, "alone"."""
    return next((name for name in (*OWN, "alone", "pooled") if name in folder.scores), None)


def interval(score: Mapping[str, Any], name: str) -> tuple[float, float] | tuple[None, None]:
    """Return where a number lies with 95% confidence, if that is known."""
    found: Sequence[float] | None = (score.get("intervals") or {}).get(name)
    return (None, None) if found is None else (float(found[0]), float(found[1]))


def played(folder: Folder) -> bool:
    """Say whether one participant played all devices, so that nothing is known of a single one."""
    together = folder.together or {}
    return bool(together.get("simulated")) and together.get("split") == "on-device"


def mechanism(table: Mapping[str, Any]) -> str:
    """Write a mechanism in words: its kind, and what it depends on."""
    numbers = ", ".join(
        f"{name.replace('_', ' ')} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in table.items()
        if name not in ("kind", "noise_multiplier")
    )
    noise = table.get("noise_multiplier")
    told = f"{spaced(str(table.get('kind', '?')))} noise" if noise is not None else spaced(str(table["kind"]))
    told += "" if noise is None else f", {noise:.4g} times the bound"
    return f"{told} ({numbers})" if numbers else told


def stretches(numbers: Sequence[int]) -> str:
    """Write whole numbers as stretches: 1 to 4, 7."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{low:,}" if low == high else f"{low:,} to {high:,}" for low, high in found)


def unit_of(sizes: Iterable[float]) -> tuple[str, float]:
    """Return a unit in which numbers of bytes are not all about 0, and what they are to be multiplied by."""
    return ("MB", 1e-6) if max(sizes, default=0.0) >= 1e6 else ("kB", 1e-3)
