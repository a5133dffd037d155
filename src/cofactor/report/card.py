"""The privacy card: what is promised, on a page that is kept with the model, for people and for programs."""

import json
from typing import Any

from cofactor.report.answers import Answer, alarms, answers
from cofactor.report.beside import Beside
from cofactor.report.folder import Folder

FORMAT = 1
"""Version of the card's layout."""
_NUMBERS = ("epsilon", "delta", "unit", "adjacency", "odds", "budget_epsilon", "releases", "secure_noise")
_SENTENCES = ("against", "covers", "does_not_cover", "warnings")


def card(folder: Folder, beside: Beside) -> dict[str, Any]:
    """Return the card as a table."""
    given, facts = folder.guarantee, folder.facts
    private, useful, cost = answers(folder, beside)
    return {
        "card": "cofactor",
        "format": FORMAT,
        "run": folder.name,
        "created": facts.get("created"),
        "recipe": facts["recipe"].get("kind"),
        "holds": bool(given.get("holds")) and not alarms(folder, beside),
        "verdict": private.verdict,
        "guarantee": {
            name: given.get(name) for name in (*_NUMBERS, *_SENTENCES, "assumptions", "accountant")
        },
        "why_not": alarms(folder, beside),
        "policy": None if beside.policy is None else beside.policy.source,
        "audits": [
            {name: audit.get(name) for name in ("attack", "seen_by", "verdict", "headline", "confidence")}
            for audit in folder.audits.values()
        ],
        "verified": None if beside.checks is None else not beside.broken,
        "useful": {"verdict": useful.verdict, "sentences": list(useful.sentences)},
        "cost": {"verdict": cost.verdict, "sentences": list(cost.sentences)},
        "versions": facts.get("versions", {}),
        "seal": facts.get("seal"),
        "sha256": folder.digest,
    }


def card_json(folder: Folder, beside: Beside) -> str:
    """Return the card for programs."""
    return json.dumps(card(folder, beside), indent=2) + "\n"


def card_markdown(folder: Folder, beside: Beside) -> str:
    """Return the card for people."""
    made, given = card(folder, beside), folder.guarantee
    lines = [f"# Privacy card: {_plain(folder.name)}", "", _plain(f"{made['recipe']}, {made['created']}")]
    for answer in answers(folder, beside):
        lines += ["", *_answered(answer)]
    for title, name in (
        ("Against whom", "against"),
        ("It covers", "covers"),
        ("It does not cover", "does_not_cover"),
        ("Warnings", "warnings"),
    ):
        lines += _points(title, given.get(name) or ())
    rests = [f"{each['what']}: {each['met']}" for each in given.get("assumptions") or ()]
    lines += _points("It rests on", rests)
    tried = [
        f"{each['attack']} as {each['seen_by']}: {each['verdict']}. {each['headline']}"
        for each in made["audits"]
    ]
    lines += _points("Attempts to break it", tried or ("None yet.",))
    verified = {None: "not asked", True: "all checks hold", False: "SOME CHECKS FAIL"}[made["verified"]]
    lines += _points(
        "To check it",
        (
            f"cofactor verify: {verified}",
            f"accountant: {given.get('accountant') or 'none'}",
            f"cofactor {made['versions'].get('cofactor', '?')}",
            f"seal {made['seal']}",
        ),
    )
    return "\n".join(lines) + "\n"


def _answered(answer: Answer) -> list[str]:
    return [f"## {answer.question}", "", f"**{answer.verdict}.**", "", *map(_plain, answer.sentences)]


def _points(title: str, sentences: Any) -> list[str]:
    points = [f"- {_plain(str(each))}" for each in sentences]
    return ["", f"## {title}", "", *points] if points else []


def _plain(text: str) -> str:
    """Keep what a folder says from becoming markup of the card."""
    one_line = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "\\`*_<>[]#|" else letter for letter in one_line)
