"""A run as a row of a table: what was promised, what it cost and how well it does."""

from collections.abc import Iterator, Mapping
from typing import Any

OWN = "own"
"""What a run's own models are called in every row, whatever its scores call them."""
_OWN_NAMES = ("private", "together", "alone", "pooled")
"""What scores call them: the first that is there. What parties have alone is beside their own wherever they
joined, so that it is a run's own only where nobody did; and what pooling would give is beside both."""
_PROMISED = ("holds", "delta", "unit", "adjacency", "odds")
_SIZES = ("users", "items", "ratings")


def row_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run as a row of plain values, from what its run.json holds; what is not known is None.

    Errors and their intervals are in it as `score_figures` names them.
    """
    promised, together = facts["guarantee"], facts.get("together") or {}
    return {
        "seed": facts["seed"],
        "recipe": facts["recipe"].get("kind"),
        "epsilon_proved": promised.get("epsilon"),
        **{name: promised.get(name) for name in _PROMISED},
        "parties": len(together.get("parties", ())),
        "rounds": together.get("rounds", 0),
        "seconds": facts["seconds"],
        "bytes": together.get("bytes", 0),
        **{name: facts["data"][name] for name in _SIZES},
        **score_figures(facts["scores"]),
    }


def score_figures(scores: Mapping[str, Any]) -> dict[str, float]:
    """Return each measure of each model as "model_measure", with "_low" and "_high" where its interval ends.

    The run's own models come first, as "own"; then what joining changed; then what they are compared with.
    """
    own = next((name for name in _OWN_NAMES if name in scores), None)
    ordered = dict.fromkeys([*([own] if own else []), *scores])
    found: dict[str, float] = {}
    for name in ordered:
        found |= _figures(OWN if name == own else name, scores[name])
        found |= _joining(scores[name].get("joining"))
        for ranked, lists in scores[name].get("rankings", {}).items():
            found |= _figures(OWN if ranked == own else ranked, lists)
    return found


def _figures(model: str, score: Mapping[str, Any]) -> dict[str, float]:
    return dict(_with_ends(f"{_plain(model)}_{{}}", score))


def _with_ends(name: str, score: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for measure, (low, high) in score.get("intervals", {}).items():
        yield name.format(measure), score[measure]
        yield name.format(f"{measure}_low"), low
        yield name.format(f"{measure}_high"), high


def _joining(joining: Mapping[str, Any] | None) -> dict[str, float]:
    """Return by how much the parties' error fell since they train together."""
    if joining is None:
        return {}
    low, high = joining["interval"]
    return {"joining_gain": joining["gain"], "joining_gain_low": low, "joining_gain_high": high}


def _plain(name: str) -> str:
    return name.replace(" ", "_")
