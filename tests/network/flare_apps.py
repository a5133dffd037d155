"""Apps for tests of the engine alone: parties that answer with what they were sent, and who asks them."""

import json
import os
import time
from pathlib import Path
from typing import Any

from nvflare.collab import collab

from cofactor.errors import RunError
from cofactor.federation.channel import Channel
from cofactor.network.apps import CoordinatorApp, PartyApp, PartyEnd
from cofactor.network.outcomes import PAUSE, write_outcome

PARTIES = ("north", "south", "east")
WAIT = "wait until all are there"


class EchoParty(PartyApp):
    """Answers with its folder's name and what it was sent; is slow, fails or calls a neighbour if told to."""

    def open(self, site: Path) -> PartyEnd:
        return Echo(site.name)


class Echo:
    def __init__(self, name: str) -> None:
        self._name = name

    def handle(self, data: bytes) -> bytes:
        word, _, rest = data.partition(b" ")
        if word == b"sleep":
            time.sleep(float(rest))
        if word == b"fail":
            raise ValueError(f"secret rating {9 / 2}")
        if word == b"call":
            (other,) = (client for client in collab.other_clients if client.name == self._next())
            heard: bytes = other.handle(data)
            return b"heard " + heard
        return self._name.encode() + b":" + data

    def _next(self) -> str:
        return PARTIES[(PARTIES.index(self._name) + 1) % len(PARTIES)]

    def close(self) -> None:
        self._name = "closed"


class EchoCoordinator(CoordinatorApp):
    """Asks what `asks.json` in the run's folder lists, and writes down what came back, and when."""

    def conduct(self, folder: Path, channel: Channel) -> None:
        done = folder / "answers.jsonl"
        begun = len(done.read_text().splitlines()) if done.exists() else 0
        for round, data in list(enumerate(json.loads((folder / "asks.json").read_text())))[begun:]:
            (folder / f"asking-{round}").touch()
            if data == "break":
                raise RunError("the coordinator broke.")
            line = ask(channel, round, data)
            while data == WAIT and line["missing"] and not (folder / PAUSE).exists():
                time.sleep(0.1)
                line = ask(channel, round, data)
            if (folder / PAUSE).exists():
                write_outcome(folder, "paused")
                return
            with done.open("a") as file:
                file.write(json.dumps(line) + "\n")
        write_outcome(folder, "finished")


def ask(channel: Channel, round: int, data: str) -> dict[str, Any]:
    start = time.time()
    told = channel.ask(round, dict.fromkeys(PARTIES, data.encode()))
    return {
        "answers": {party: answer.decode(errors="replace") for party, answer in told.by_party.items()},
        "missing": dict(told.missing),
        "start": start,
        "seconds": time.time() - start,
        "process": os.getpid(),
    }
