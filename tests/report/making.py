"""Run folders to make reports of: some that were really made, and what can be made of those by hand."""

import contextlib
import copy
import io
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cofactor.cli import main
from cofactor.federation.folder import add_audit, write_facts
from cofactor.report.beside import Beside
from cofactor.report.folder import Folder
from tests.federation.approving import approved

Facts = dict[str, Any]
PARTIES, ROUNDS, EPSILON = 3, 5, 4.0
BESIDE = Beside()
"""Of whoever asks for nothing besides the folder."""
EVIL = "<script>alert(1)</script>"
QUOTED = "\"'&<b>🎬"
DEALT = ("train", "all.csv", "--parties", PARTIES, "--split", "horizontal", "--test-fraction", "0.2", "-q")
STEPS = ("--recipe", "horizontal-mf", "--rounds", ROUNDS, "--factors", 2)
COUNTS = ("--k", 3, "--method", "independent", "--align", "ids")
COMMANDS: dict[str, tuple[object, ...]] = {
    "private": (*DEALT, *STEPS, "--epsilon", EPSILON),
    "masked": (*DEALT, "--recipe", "shared-biases", "--epsilon", 2),
    "plain": (*DEALT, "--recipe", "multi-view", "--sum", "plain", "--not-private", "--rounds", 1),
    "pooled": ("train", "all.csv", "--epochs", 1, "-q"),
    "survey": ("survey", "all.csv", "--activity", "--range", "1:40", "--epsilon", 1),
    "clustering": ("cluster", "bank.csv", "shop.csv", *COUNTS, "--ranges", "ranges.toml", "--epsilon", 9),
}
"""What makes a run of each kind, on the command line."""


def made(folder: Path, kind: str) -> Path:
    """Make a run of one kind in a folder of its own, and return where it is."""
    from tests.cli import test_cluster, worlds

    folder.mkdir()
    (test_cluster if kind == "clustering" else worlds).write(folder)
    asked(folder, *COMMANDS[kind], "--out", kind)
    assert (folder / kind / "run.json").exists()
    return folder / kind


def asked(folder: Path, *words: object) -> None:
    """Run a command in a folder; whoever uses what it makes finds out whether it worked."""
    before = sys.argv
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        sys.argv = ["cofactor", *map(str, words)]
        try:
            with contextlib.suppress(SystemExit):
                main()
        finally:
            sys.argv = before


def changed(source: Path, target: Path, change: Callable[[Facts], object] = len) -> Path:
    """Copy a run folder, and let `change` change its facts; seals are made anew."""
    shutil.copytree(source, target)
    facts = copy.deepcopy(facts_of(source))
    change(facts)
    facts.pop("files", None)
    write_facts(target, facts)
    return target


def facts_of(folder: Path) -> Facts:
    """Return what run.json holds."""
    facts: Facts = json.loads((folder / "run.json").read_text())
    return facts


def with_events(folder: Path, events: list[Facts]) -> Path:
    """Put more events into a folder of its own."""
    with (folder / "events.jsonl").open("a") as file:
        file.writelines(
            json.dumps({"steps": ROUNDS, "note": "", "numbers": {}, **each}) + "\n" for each in events
        )
    return folder


def stopped(facts: Facts) -> None:
    """Say that twice as many rounds were planned."""
    facts["together"]["planned_rounds"] = 2 * facts["together"]["rounds"]


def measured(source: Path, target: Path) -> Path:
    """Copy a run folder, and add what a simulation may tell of itself: signals, phases, groups, approvals."""

    def tell(facts: Facts) -> None:
        facts["phases"] = [{"name": "rounds", "seconds": 71.0}, {"name": "finishing at home", "seconds": 9.5}]
        own = facts["scores"]["private"]
        spread = {"value": 0.9, "low": 0.8, "high": 1.1}
        own["by_activity"] = [
            {"name": "1 to 9 ratings", "users": 40, "mse": spread, "own_mean": 1.25, "gain": spread},
            {"name": f"10 or more {QUOTED}", "users": 20, "mse": 0.625},
        ]
        session, parties = facts["together"]["session"], list(facts["together"]["parties"])
        facts["together"]["approvals"] = [
            asdict(approved(party, session=session, parties=parties)) for party in parties
        ]

    changed(source, target, tell)
    numbers = {"signal_to_noise": 0.75, "clipped": 0.25, "trimmed": 0.5}
    event = {"stage": "simulation", "note": "made-up release", "numbers": numbers}
    return with_events(target, [{**event, "step": step} for step in range(2, ROUNDS + 2)])


def compared(folder: Path) -> Path:
    """Write what `compare --json` would print of groups, had users had weights."""
    few, many = {"value": 0.875, "low": None, "high": None}, {"value": 0.75, "low": 0.5, "high": 1.0}
    groups = [
        {"name": name, "users": users, "mse": each, "own_mean": each, "gain": each}
        for name, users, each in (("conservative", 9, few), ("liberal", 51, many))
    ]
    facts = facts_of(folder)
    about = {"session": facts["together"]["session"], "data": facts["data"]}
    told = {**about, "groups": {"groups": groups}}
    path = folder.with_suffix(".json")
    path.write_text(json.dumps(told))
    return path


def alarmed(source: Path, target: Path) -> Path:
    """Copy a run folder, and add an audit that found what should not be there."""
    changed(source, target)
    found = {
        "attack": "canaries",
        "seen_by": "coordinator+party:party-1",
        "verdict": "alarm",
        "headline": f"It does not keep epsilon 4 {EVIL}.",
        "notes": ["SIMULATION: only whoever plays all roles can know these figures."],
        "figures": {"epsilon proved at least": 6.5, "epsilon promised": 4.0},
        "confidence": 0.95,
        "created": "2026-11-19T00:00:00+00:00",
    }
    add_audit(target, "canaries-coordinator", found)
    return target


def renamed(source: Path, target: Path, old: str, new: str) -> Path:
    """Copy a run folder in which a party has another name, also one that no party could have."""
    shutil.copytree(source, target)
    written = json.dumps(new)
    for path in (*target.glob("*.json*"), *target.glob("ledgers/*")):
        text = path.read_text().replace(json.dumps(old), written)
        path.write_text(text.replace(f"by {old}", f"by {written[1:-1]}"))
    return target


def crowd(source: Path, target: Path, count: int) -> Path:
    """Copy a run folder, and give it so many parties, each with a ledger and messages."""
    first = next(iter(facts_of(source)["together"]["parties"]))
    names = [f"shop {number}" for number in range(count)]

    def grow(facts: Facts) -> None:
        for at in (facts["together"], *facts["scores"].values()):
            at["parties"] = dict.fromkeys(names, at["parties"][first])
        facts["guarantee"]["by"] = names

    changed(source, target, grow)
    ledger = (source / "ledgers" / f"{first}.ledger").read_text()
    shutil.rmtree(target / "ledgers")
    (target / "ledgers").mkdir()
    for name in names:
        (target / "ledgers" / f"{name}.ledger").write_text(
            ledger.replace(json.dumps(first), json.dumps(name))
        )
    opening, *lines = (source / "transcript.jsonl").read_text().splitlines()
    own = "\n".join(line for line in lines if json.dumps(first) in line)
    messages = [own.replace(json.dumps(first), json.dumps(name)) for name in names]
    (target / "transcript.jsonl").write_text("\n".join([opening, *messages]) + "\n")
    return target


def long(source: Path, target: Path, *, rounds: int, parties: int) -> Path:
    """Copy a run folder, and give it so many rounds and parties."""
    crowd(source, target, parties)
    events = map(json.loads, (source / "events.jsonl").read_text().splitlines())
    last = [event for event in events if event["stage"] == "round"][-1]
    more = range(last["step"] + 1, rounds + 1)
    for path in (*target.glob("ledgers/*"), target / "transcript.jsonl"):
        lines = path.read_text().splitlines(keepends=True)
        marks = (f', round {last["step"]}"', f'"round":{last["step"]},')
        ends = [line for line in lines if any(mark in line for mark in marks)]
        with path.open("a") as file:
            for number in more:
                for line in ends:
                    file.write(
                        line.replace(marks[0], f', round {number}"').replace(marks[1], f'"round":{number},')
                    )
    with_events(target, [{**last, "step": number, "steps": rounds} for number in more])
    facts = facts_of(target)
    facts["together"]["rounds"] = rounds
    (target / "run.json").unlink()
    write_facts(target, facts)
    return target


def unfinished(source: Path, target: Path, *, rounds: int = 3) -> Path:
    """Write what a training has on disk after so many of its rounds, beside where its run will be."""
    facts, place = facts_of(source), target.with_name(f"{target.name}.unfinished")
    place.mkdir()
    asked = facts["together"]
    terms = {name: asked[name] for name in ("split", "budget")}
    terms |= {"recipe": facts["recipe"], "parties": list(asked["parties"])}
    (place / "session.json").write_text(json.dumps({"name": asked["session"], "terms": terms}))
    events = (source / "events.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line in events if json.loads(line).get("stage") == "round"]
    (place / "events.jsonl").write_text("".join(kept[:rounds]))
    opening, *lines = (source / "transcript.jsonl").read_text().splitlines(keepends=True)
    sent = [line for line in lines if json.loads(line)["round"] <= rounds]
    (place / "transcript.jsonl").write_text("".join([opening, *sent]))
    return target


GUARANTEE: Facts = {
    "holds": True,
    "epsilon": 2.0,
    "delta": 1e-6,
    "unit": "user",
    "adjacency": "empty",
    "odds": 0.881,
    "budget_epsilon": 2.0,
    "statement": "Promised. This means: somebody guesses right at most 88.1% of the time; 50% would be pure "
    "chance. More.",
    "assumptions": [{"what": "noise is secret", "met": "it is"}],
    "accountant": "by hand",
}


def told(guarantee: Facts | None = None, name: str = "told", **facts: Any) -> Folder:
    """Return a folder that lies nowhere: what is not named is as in a small private run of two parties."""
    parties = {
        name: {"users": 5, "items": 7, "ratings": 20, "bytes_sent": 1_500, "epsilon": 2.0}
        for name in ("north", "south")
    }
    usual: Facts = {
        "format": 3,
        "created": "2026-11-19T00:00:00+00:00",
        "seconds": 3.0,
        "recipe": {"kind": "HorizontalMF", "aggregate": {"kind": "SecureSum"}},
        "seed": 0,
        "data": {"users": 10, "items": 7, "ratings": 40},
        "guarantee": {**GUARANTEE, **(guarantee or {})},
        "together": {"split": "horizontal", "parties": parties, "rounds": 4, "bytes": 6_000.0},
    }
    return Folder(path=Path("runs") / name, facts={**usual, **facts}, digest="d" * 64)
