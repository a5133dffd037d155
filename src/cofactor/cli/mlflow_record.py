"""What MLflow is told of a run: settled beforehand, from the run folder alone.

Never what is in `homes`, `ledgers`, `captured-UNSAFE` or `model.npz`, nor anybody's id. Parties are named in
texts, and where parties are people, texts are left out.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.errors import DAMAGES
from cofactor.report.folder import Folder, damaged

if TYPE_CHECKING:
    from cofactor.report.beside import Beside

_LONGEST = 5_999
"""Characters of a value that MLflow takes."""
_BY_ROUND = ("epsilon", "answered", "bytes", "seconds")
"""Of a round, what is public or in the ledger; how large signals were beside noise is neither."""
_AS_NUMBERS = ("epsilon_proved", "delta", "odds", "rounds", "seconds", "bytes")
_AS_TAGS = ("unit", "adjacency", "recipe")
MEASURED = (
    "Errors were measured with test ratings. They are private, no noise was added, and the guarantee does "
    "not cover them."
)
NAMELESS = "The report, the card and the guarantee's text name the parties, who are people here."


@dataclass(frozen=True, kw_only=True)
class Record:
    """All that leaves: settings, numbers, words and files."""

    name: str
    seal: str
    """Which run it is: a hash over its run.json."""
    began: int | None
    """In milliseconds since 1970, as MLflow has times; None if that is not known."""
    params: Mapping[str, str]
    metrics: Mapping[str, float]
    by_round: tuple[tuple[int, str, float], ...]
    """Numbers of rounds: which round, of what, and the number."""
    tags: Mapping[str, str]
    files: Mapping[str, str]
    """Texts by name: the guarantee, the privacy card and the report."""
    measured: bool
    """Whether errors are among the numbers."""


def record_of(path: Path) -> Record:
    """Read a run folder, a survey's or a clustering's; a damaged one is refused before anything leaves."""
    try:
        return _record(_without_simulation(Folder.read(path)))
    except DAMAGES as error:
        raise damaged(path, error) from None


def _record(folder: Folder) -> Record:
    from cofactor.cli.report_beside import beside_of
    from cofactor.evaluate.sweep import row_of

    facts, beside = folder.facts, beside_of(folder, verified=True, policy=None)
    row = row_of(facts)
    return Record(
        name=folder.name,
        seal=str(facts.get("seal") or folder.digest),
        began=_began(facts),
        params=_params(facts),
        metrics=_metrics(row, facts["scores"]),
        by_round=tuple(_rounds(folder)),
        tags=_tags(row, folder, beside),
        files={} if _of_people(folder) else _files(folder, beside),
        measured=bool(facts["scores"]),
    )


def _without_simulation(folder: Folder) -> Folder:
    """Leave out what a simulation measures of itself in each round: no noise is in it."""
    from cofactor.federation.gauge import STAGE

    return replace(folder, events=tuple(event for event in folder.events if event.get("stage") != STAGE))


def _of_people(folder: Folder) -> bool:
    """Say whether parties are called after people, as devices with a file each may be."""
    alone = any(own.get("users") == 1 for own in folder.parties.values())
    return alone and not (folder.together or {}).get("simulated")


def _params(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return settings by name: the recipe's as they were settled, the budget, and who took part."""
    together = facts.get("together") or {}
    found = _flat("recipe", facts["recipe"]) | _flat("budget", together.get("budget") or {})
    found |= _flat("data", facts["data"]) | {"seed": facts["seed"]}
    if together:
        found |= {name: together[name] for name in ("split", "simulated")}
        found["parties"] = len(together["parties"])
    return {name: _short(value) for name, value in found.items()}


def _flat(name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Write tables within a table with dots between names; lists stay together."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        place = f"{name}.{key}"
        found |= _flat(place, value) if isinstance(value, Mapping) else {place: value}
    return found


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _metrics(row: Mapping[str, Any], scores: Mapping[str, Any]) -> dict[str, float]:
    from cofactor.evaluate.sweep import score_figures

    known = {name: row[name] for name in _AS_NUMBERS if row[name] is not None}
    return {name: float(value) for name, value in {**known, **score_figures(scores)}.items()}


def _rounds(folder: Folder) -> list[tuple[int, str, float]]:
    return [
        (int(event["step"]), f"round_{name}", float(event["numbers"][name]))
        for event in folder.rounds()
        for name in _BY_ROUND
        if event.get("numbers", {}).get(name) is not None
    ]


def _tags(row: Mapping[str, Any], folder: Folder, beside: "Beside") -> dict[str, str]:
    """Return what runs are searched by; a promise that the folder does not bear out does not hold."""
    from cofactor.report.card import card

    found = {name: row[name] for name in _AS_TAGS if row[name] is not None}
    found["holds"] = "true" if card(folder, beside)["holds"] else "false"
    found["version"] = folder.facts.get("versions", {}).get("cofactor", "unknown")
    if folder.facts["scores"]:
        found["measured"] = MEASURED
    if _of_people(folder):
        found["left_out"] = NAMELESS
    return {f"cofactor.{name}": str(value) for name, value in found.items()}


def _files(folder: Folder, beside: "Beside") -> dict[str, str]:
    from cofactor.report.card import card_json, card_markdown
    from cofactor.report.page import page

    return {
        "guarantee.txt": f"{folder.guarantee['statement']}\n",
        "privacy-card.json": card_json(folder, beside),
        "privacy-card.md": card_markdown(folder, beside),
        "report.html": page(folder, beside),
    }


def _began(facts: Mapping[str, Any]) -> int | None:
    try:
        return int(datetime.fromisoformat(facts["created"]).timestamp() * 1000)
    except (TypeError, ValueError):
        return None
