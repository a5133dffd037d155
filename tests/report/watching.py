"""Trainings that are not finished, made by hand, and questions to the page that watches them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Facts = dict[str, Any]
PARTIES = ("north", "south", "west")
BUDGET: Facts = {"kind": "Budget", "epsilon": 4.0, "delta": 1e-6, "unit": "user", "adjacency": "empty"}


@dataclass
class Making:
    """A folder `RUN.unfinished`, written as a training writes it, line by line."""

    run: Path
    parties: Sequence[str] = PARTIES
    budget: Facts | None = field(default_factory=lambda: dict(BUDGET))
    planned: int = 20
    name: str = "0123456789abcdef"

    @property
    def place(self) -> Path:
        return self.run.with_name(f"{self.run.name}.unfinished")

    def begin(self) -> "Making":
        self.place.mkdir(parents=True, exist_ok=True)
        terms = {
            "recipe": {"kind": "HorizontalMF", "factors": 8},
            "budget": self.budget,
            "split": "horizontal",
            "scale": "1 to 5",
            "parties": {
                party: {"fingerprint": "", "ratings": "0" * 64, "budget": None} for party in self.parties
            },
            "seed": 0,
        }
        (self.place / "session.json").write_text(json.dumps({"name": self.name, "terms": terms}, indent=2))
        self._sent({"transcript": self.name, "split": "horizontal"})
        return self

    def round(
        self, step: int, *, lost: Sequence[str] = (), seconds: float | None = None, **more: Any
    ) -> "Making":
        """Let a round go by, with what everybody sent in it."""
        self.asked(step)
        for party in self.parties:
            if party not in lost:
                self.answer(party, step)
        there = len(self.parties) - len(lost)
        numbers = {
            "answered": float(there),
            "parties": float(len(self.parties)),
            "bytes": 77_892.0,
            "seconds": 2.0 * step if seconds is None else seconds,
        }
        if self.budget is not None:
            numbers |= {"epsilon": 3.98 * (step / self.planned) ** 0.5, "epsilon_planned": 3.98}
        note = f"{there}/{len(self.parties)} parties"
        return self.tell("round", step, note=note, numbers=numbers | more)

    def rounds(self, last: int, first: int = 1) -> "Making":
        for step in range(first, last + 1):
            self.round(step)
        return self

    def asked(self, step: int) -> None:
        for party in self.parties:
            self._sent(_letter(step, "coordinator", party, "Vectors", "released before"))

    def answer(self, party: str, step: int) -> None:
        self._sent(_letter(step, party, "coordinator", "Gradients", "noise"))

    def tell(self, stage: str, step: int = 0, *, note: str = "", numbers: Mapping[str, Any] = {}) -> "Making":
        steps = self.planned if step else 0
        event = {"stage": stage, "step": step, "steps": steps, "note": note, "numbers": dict(numbers)}
        self.write(json.dumps(event) + "\n")
        return self

    def write(self, text: str, file: str = "events.jsonl") -> None:
        with (self.place / file).open("a") as opened:
            opened.write(text)

    def _sent(self, facts: Facts) -> None:
        self.write(json.dumps(facts) + "\n", "transcript.jsonl")


@dataclass
class AtCoordinator(Making):
    """The session's folder at the coordinator of a network."""

    kind: str = "training"

    @property
    def place(self) -> Path:
        return self.run

    def begin(self) -> "AtCoordinator":
        self.place.mkdir(parents=True, exist_ok=True)
        from cofactor.network.proposal import Proposal

        table = {"kind": "HorizontalMF", "factors": 8}
        work = (
            {"split": "horizontal", "recipe": table}
            if self.kind == "training"
            else {"method": {"kind": "GRR"}}
        )
        keys = {party: f"{number:064x}" for number, party in enumerate(self.parties, 1)}
        proposal = Proposal(
            kind=self.kind,  # type: ignore[arg-type]
            session=self.name,
            version="0.1.0",
            parties=keys,
            work={**work, "budget": self.budget},
        )
        (self.place / "proposal.json").write_text(proposal.as_json())
        self._sent({"transcript": self.name, "split": proposal.split})
        for party in self.parties:
            self._sent(_letter(0, party, "coordinator", "Agreement", "agreed on"))
        return self


def _letter(round: int, sender: str, receiver: str, kind: str, protection: str) -> Facts:
    told = {"kind": kind, "bytes": 12_982, "protection": protection, "digest": "0" * 64}
    return {"round": round, "sender": sender, "receiver": receiver, **told}


def no_page(folder: Path, script: str) -> str:
    """Stand for the page of a finished run."""
    return f"<!DOCTYPE html><title>{folder.name}</title><script>{script}</script>"
