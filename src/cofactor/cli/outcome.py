"""What came out of a run: tables and sentences for people, one object for programs."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.cli.promises import promised, promised_lines
from cofactor.cli.text import RED, YELLOW, print_line, print_scores, print_table
from cofactor.figures import number_of, readable

if TYPE_CHECKING:
    from cofactor.evaluate.by_group import ErrorsByGroup

SIMULATION = (
    "These errors can be seen because one process plays all parties; they are not released, and the "
    "guarantee does not cover them."
)
_ASIDE = ("parties", "joining")
_SHOWN = ("user_mean", "personal_ridge", "stage_1", "bias", "alone", "private", "together", "pooled")
"""What a table of parties shows; where a party can fit biases, means are left out."""


def as_object(facts: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a run's facts as one object with stable keys."""
    together = facts.get("together") or {}
    return {
        "run": str(folder),
        "guarantee": facts["guarantee"],
        "promised": promised(facts["guarantee"]),
        **scores_as_object(facts["scores"], together.get("parties", {})),
        "seconds": facts["seconds"],
        "rounds": together.get("rounds", 0),
        "bytes": together.get("bytes", 0),
        "data": facts["data"],
    }


def scores_as_object(scores: Mapping[str, Any], parties: Mapping[str, Any]) -> dict[str, Any]:
    """Return overall scores by name, and beside them those of each party with what is public about it."""
    found: dict[str, Any] = {party: {**public, "scores": {}} for party, public in parties.items()}
    for name, score in scores.items():
        for party, own in score.get("parties", {}).items():
            entry = found.setdefault(party, {"scores": {}})
            entry["scores"][name] = _plain(own)
            if "joining" in own:
                entry |= {"joining": own["joining"], "sentence": own["joining"]["sentence"]}
    return {
        "scores": {name: _plain(score) for name, score in scores.items()},
        "parties": found,
        "joining": _joined(scores).get("joining"),
    }


def print_comparison(scores: Mapping[str, Any]) -> None:
    """Print overall scores, and what joining changed for each party and for all."""
    print_scores(scores)
    first: Mapping[str, Any] = next(iter(scores.values()), {})
    parties, joined = first.get("parties", {}), _joined(scores)
    if parties:
        _print_parties(parties, scores, joined.get("parties", {}))
    for score in scores.values():
        print_scores(score.get("rankings", {}), title="the ten items shown first; popularity is not private")
    if joined:
        print_line(f"All together: {joined['joining']['sentence']}.")
    if parties or joined:
        print_line(SIMULATION)


def _print_parties(
    parties: Mapping[str, Any], scores: Mapping[str, Any], by_party: Mapping[str, Any]
) -> None:
    names = [name for name in _SHOWN if name in scores]
    if "bias" in names:
        names.remove("user_mean")
    told = {party: _in_short(by_party.get(party, {})) for party in parties}
    last = ("joining",) if any(told.values()) else ()
    rows = [
        (party, *(scores[name]["parties"][party]["mse"] for name in names), *(told[party] for _ in last))
        for party in parties
    ]
    print_table(("party", *names, *last), rows, title="mse by party")


def print_guarantee(guarantee: Mapping[str, Any], together: Mapping[str, Any] | None) -> None:
    """Print what is promised, in red if it does not hold, and what is left if all others collude."""
    warnings = guarantee.get("warnings", ())
    told = guarantee["statement"].removesuffix(" ".join(["", *(f"Warning: {each}" for each in warnings)]))
    print_line(told, "" if guarantee["holds"] else RED)
    for line in promised_lines(guarantee):
        print_line(line, "" if guarantee["holds"] else RED)
    for each in warnings:
        print_line(f"Warning: {each}", YELLOW)
    if together and together["budget"] and not played(together):
        print_line(f"If the coordinator and all other parties collude: {_colluding(together['parties'])}.")


def print_groups(found: "ErrorsByGroup | None") -> None:
    """Print errors by group of users: who pays for privacy."""
    if found is not None:
        print_line(f"Who pays for privacy, by group of users:\n{found.text()}")


def groups_as_object(found: "ErrorsByGroup | None") -> dict[str, Any] | None:
    """Return errors by group of users; None if nothing is known of groups."""
    return None if found is None else found.as_dict()


def print_next(*words: object) -> None:
    """Say what to type next."""
    print_line(f"Next: {shlex.join(['cofactor', *map(str, words)])}")


def size_of(facts: Mapping[str, Any]) -> str:
    """Say how large the data were, and how they were divided."""
    data, together = facts["data"], facts.get("together")
    size = (
        f"{data['ratings']:,} ratings by {data['users']:,} users of {data['items']:,} items, {data['scale']}"
    )
    if not together:
        return size
    if together["split"] == "on-device" and not together["simulated"]:
        size = f"about {size}"
    count = len(together["parties"])
    parties = number_of(count, "party", "parties")
    if together["split"] == "on-device":
        parties = f"{data['users']:,} devices"
    believed = ", make-believe" if together["simulated"] else ""
    return f"{size}; {parties} ({together['split']}{believed})"


def played(together: Mapping[str, Any]) -> bool:
    """Say whether one participant played all devices: nothing is known of a single one."""
    return bool(together["simulated"] and together["split"] == "on-device")


def traffic_of(together: Mapping[str, Any]) -> str:
    """Say how much was sent, and by whom if that is not all."""
    sent = f"{readable(together['bytes'])} in all messages"
    return f"{sent} of the one who plays all devices" if played(together) else sent


def _joined(scores: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the score that says what joining changed: the run's own, if parties trained together."""
    return next((score for score in scores.values() if "joining" in score), {})


def _plain(score: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in score.items() if name not in _ASIDE}


def _in_short(score: Mapping[str, Any]) -> str:
    """Leave the errors out of the sentence: they stand beside it."""
    sentence: str = score.get("joining", {}).get("sentence", "")
    return sentence.partition(" (MSE")[0]


def _colluding(parties: Mapping[str, Any]) -> str:
    from cofactor.figures import rounded_up

    losses = {
        party: "no epsilon is proved"
        if facts["epsilon"] is None
        else f"epsilon {rounded_up(facts['epsilon'])}"
        for party, facts in parties.items()
    }
    if len(set(losses.values())) == 1:
        return f"{next(iter(losses.values()))} for each party"
    return ", ".join(f"{loss} for {party}" for party, loss in losses.items())
