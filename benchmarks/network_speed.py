"""Asks over the network beside asks in one process, a whole training, and what processes grow to.

    python -m benchmarks.network_speed [asks=1000] [rounds=100]

One server and three parties, each a process of its own with certificates, on this machine's loopback; the
recipe is HorizontalMF with SecureSum on ratings of the shape of MovieLens 1M. An ask is one question to all
three parties and their answers: a round of a secure sum has five. Seconds are of the clock, memory is what
stays in RAM (RSS) of each process when its job is about to end.
"""

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.bench import FOLDER
from benchmarks.real_parties import RealParties, in_background, write_files
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.network.hosting import Hosted
from cofactor.network.processes import EngineProcess
from cofactor.network.sources import RatingsSource
from cofactor.network.training_terms import TrainingWork
from cofactor.privacy.budget import Budget
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.sums import SecureSum
from cofactor.recipes.train import train

RESULTS = FOLDER / "network.json"
BUDGET = Budget(epsilon=4.0, delta=1e-6, unit="user")
ASKS_A_ROUND = 5


def main() -> None:
    said = dict(word.split("=") for word in sys.argv[1:])
    rounds, asks = int(said.get("rounds", 100)), int(said.get("asks", 1000))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files = write_files(folder, "ml-1m")
        found = {"in one process": _here(files, rounds)}
        small = write_files(folder / "small", "ml-100k")
        sources = {name: (RatingsSource(file=str(file), scale="1:5"),) for name, file in files.items()}
        with RealParties(folder / "federation", sources) as federation:
            found["over the network"] = _there(federation, recipe_of(rounds))
            for name, site in federation.sites.items():
                site.bringing(RatingsSource(file=str(small[name]), scale="1:5")).write()
            found["memory"] = _there(federation, recipe_of(asks // ASKS_A_ROUND, factors=4))
    _show(found)
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")


def recipe_of(rounds: int, factors: int = 20) -> HorizontalMF:
    return HorizontalMF(factors=factors, rounds=rounds, aggregate=SecureSum(dropout=0.0))


def _here(files: Mapping[str, Path], rounds: int) -> dict[str, float]:
    """Train in this process; what is timed is from the first round to the last."""
    federation = Federation.horizontal([Party.from_csv(file, name=name) for name, file in files.items()])
    seconds: list[float] = []
    clock = lambda _: seconds.append(time.perf_counter())  # noqa: E731
    train(recipe_of(rounds), _without_files(federation), budget=BUDGET, progress=clock)
    took = seconds[-1] - seconds[0]
    return {"rounds": rounds, "seconds": took, "seconds an ask": took / (rounds - 1) / ASKS_A_ROUND}


def _without_files(federation: Federation) -> Federation:
    """Leave no ledgers beside files: the same budget is spent again, over the network."""
    return replace(
        federation, parties=tuple(replace(party, file=None, fingerprint="") for party in federation.parties)
    )


def _there(federation: RealParties, recipe: HorizontalMF) -> dict[str, float]:
    """Train over the network; memory is looked at again and again until the end."""
    work = TrainingWork(split="horizontal", recipe=recipe, budget=BUDGET, scale=(1.0, 5.0))
    hosted = federation.begin(federation.proposal(work.table()), deadline=120.0)
    start, first, memory = time.monotonic(), 0.0, dict[str, float]()
    thread, outcome = in_background(lambda: federation.run(hosted))
    while thread.is_alive():
        thread.join(0.25)
        if not first and _events(hosted):
            first = time.monotonic() - start
            memory |= {f"{name} at first": size for name, size in _memory(federation).items()}
        memory |= {f"{name} at last": size for name, size in _memory(federation).items() if size}
    assert outcome["outcome"] == "finished", outcome
    events = [json.loads(line)["numbers"]["seconds"] for line in _events(hosted)]
    took, rounds = events[-1] - events[0], len(events)
    return {
        "rounds": rounds,
        "seconds from submitting to the first answer": first,
        "seconds": took,
        "seconds in all": time.monotonic() - start,
        "seconds an ask": took / (rounds - 1) / ASKS_A_ROUND,
        **{f"MB, {name}": size for name, size in memory.items()},
    }


def _events(hosted: Hosted) -> list[str]:
    file = hosted.folder / "events.jsonl"
    return file.read_text().splitlines() if file.exists() else []


def _memory(federation: RealParties) -> dict[str, float]:
    ends: dict[str, EngineProcess] = {"server": federation.server, "a party": federation.clients["north"]}
    found = {}
    for name, end in ends.items():
        found[name] = _resident(end.process)
        found[f"{name}'s worker"] = max((_resident(number) for number in end.workers), default=0.0)
    return found


def _resident(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmRSS")), 0.0)


def _show(found: Mapping[str, Mapping[str, float]]) -> None:
    for title, numbers in found.items():
        print(title)
        for name, value in numbers.items():
            print(f"    {name:50s} {value:10.4g}")


if __name__ == "__main__":
    main()
