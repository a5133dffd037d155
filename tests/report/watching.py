"""Trainings that are not finished, made by hand, and questions to the page that watches them."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Facts = dict[str, Any]
PARTIES = ("north", "south", "west")
BUDGET: Facts = {"kind": "Budget", "epsilon": 4.0, "delta": 1e-6, "unit": "user", "adjacency": "empty"}
SECONDS = 20.0
"""After which whatever is waited for will not come."""


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


@dataclass(frozen=True)
class Asking:
    """Somebody on this machine who asks at an address."""

    address: str

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 80

    @property
    def home(self) -> str:
        """The path of the page, with its token."""
        return urlsplit(self.address).path

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, method: str = "GET", **headers: str | Sequence[str]) -> tuple[HTTPResponse, str]:
        """Ask for a path; headers are added, or stand in place of what a browser would send."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)) as connection:
            connection.putrequest(method, path, skip_host=True)
            for name, values in {"Host": f"127.0.0.1:{self.port}", **headers}.items():
                for value in [values] if isinstance(values, str) else values:
                    connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer, answer.read().decode()

    def status(self, path: str, method: str = "GET", **headers: str | Sequence[str]) -> int:
        return self.ask(path, method, **headers)[0].status

    @contextmanager
    def watching(self) -> Iterator[Callable[[], Facts]]:
        """Watch as a page does; what is yielded waits for the next news."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)) as connection:
            connection.request("GET", f"{self.home}events")
            with connection.getresponse() as answer:
                assert answer.status == 200
                yield lambda: _news(answer)


def _news(answer: HTTPResponse) -> Facts:
    end = time.monotonic() + SECONDS
    while not (line := answer.readline()).startswith(b"data: "):
        assert line, "it said no more"
        assert time.monotonic() < end, "there is nothing new"
    found: Facts = json.loads(line.removeprefix(b"data: "))
    return found


def until(holds: Callable[[], bool]) -> None:
    """Wait for something."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
