"""Run folders changed as a careful forger would change them."""

import json
from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from cofactor.federation.door import COORDINATOR
from cofactor.federation.folder import digests, seal
from cofactor.federation.transcript import Sent, Transcript
from cofactor.federation.verify import Verdict
from cofactor.privacy.ledger import Ledger

Facts = dict[str, Any]


def failed(verdict: Verdict) -> dict[str, str]:
    assert verdict.holds == all(check.holds for check in verdict.checks)
    return {check.name: check.detail for check in verdict.checks if not check.holds}


def change_facts(folder: Path, change: Callable[[Facts], object]) -> None:
    """Change run.json, and its hashes with it, as a careful forger would."""
    facts = json.loads((folder / "run.json").read_text())
    change(facts)
    (folder / "run.json").write_text(json.dumps(seal({**facts, "files": digests(folder)})))


def resealed(folder: Path) -> None:
    """Make run.json's hashes and sizes fit the files, as a careful forger would."""
    transcript = Transcript.open(folder / "transcript.jsonl")

    def fit(facts: Facts) -> None:
        together = facts["together"]
        together["bytes"] = transcript.total_bytes
        together["sha256"]["transcript"] = sha256(transcript.content()).hexdigest()
        for party, stored in together["parties"].items():
            stored["bytes_sent"] = transcript.bytes_by_sender()[party]
            path = folder / "ledgers" / f"{party}.ledger"
            together["sha256"]["ledgers"][party] = sha256(path.read_bytes()).hexdigest()

    change_facts(folder, fit)


def forge_transcript(folder: Path, change: Callable[[list[Facts]], object]) -> None:
    """Write the transcript anew with other lines, and seals that fit."""
    path = folder / "transcript.jsonl"
    old = Transcript.open(path)
    lines = [asdict(sent) for sent in old.sent]
    change(lines)
    path.unlink()
    new = Transcript.create(path, session=old.session, split=old.split)
    with new._chain.locked():
        for line in lines:
            new._chain.append(asdict(Sent(**line)))
    resealed(folder)


def forge_ledger(folder: Path, party: str, change: Callable[[Any], Any]) -> None:
    """Write a ledger's copy anew with other events, and seals that fit; None leaves one out."""
    path = folder / "ledgers" / f"{party}.ledger"
    old = Ledger.open(path)
    path.unlink()
    new = Ledger.create(path, party=old.party, fingerprint=old.fingerprint, budget=old.budget)
    for entry in old.entries:
        event = change(entry.event)
        if event is not None:
            new.spend(event, run=entry.run)
    resealed(folder)


def last_answer(lines: list[Facts]) -> Facts:
    return next(line for line in reversed(lines) if line["sender"] != COORDINATOR)
