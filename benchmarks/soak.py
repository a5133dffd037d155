"""A training that is hit again and again: 100 rounds, 3 parties, 12 kills at random moments.

    python -m benchmarks.soak [rounds=100] [kills=12] [apart=60] [slow=1.5] [seed=1] [keep=FOLDER]

Every `apart` seconds and up to 10 more, something is killed with -9: a party with all of its workers, a
party's worker alone, or the coordinator's server with its own, each as often, in an order left to chance. A
party is started again after a while; all else is up to cofactor. So that the rounds outlast the kills, the
coordinator waits `slow` seconds before each of the five questions of a round. In the end the run must be
finished, and everybody's books must agree (`benchmarks.books`).
"""

import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from benchmarks.books import compared
from benchmarks.real_parties import RealParties, in_background, write_files
from benchmarks.soak_app import SLOW
from cofactor.network.hosting import Hosted
from cofactor.network.jobs import Apps
from cofactor.network.sources import RatingsSource
from cofactor.network.training_terms import TrainingWork
from cofactor.privacy.budget import Budget
from cofactor.progress import Listener, Progress
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.sums import SecureSum

BUDGET = Budget(epsilon=4.0, delta=1e-5, unit="user")
APPS = Apps(coordinator="benchmarks.soak_app.SlowCoordinator")
KINDS = ("a party", "a party's worker", "the coordinator")


def main() -> None:
    said = dict(word.split("=") for word in sys.argv[1:])
    rounds, kills = int(said.get("rounds", 100)), int(said.get("kills", 12))
    apart, chance = float(said.get("apart", 60)), random.Random(int(said.get("seed", 1)))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(said.get("keep", place))
        folder.mkdir(exist_ok=True)
        files = write_files(folder)
        sources = {name: (RatingsSource(file=str(file), scale="1:5"),) for name, file in files.items()}
        recipe = HorizontalMF(factors=8, rounds=rounds, local_steps=2, aggregate=SecureSum(dropout=0.0))
        work = TrainingWork(split="horizontal", recipe=recipe, budget=BUDGET, scale=(1.0, 5.0))
        with RealParties(folder / "federation", sources, classes=("benchmarks.soak_app.",)) as federation:
            hosted = federation.begin(federation.proposal(work.table()), ping_every=1.0, ping_patience=5.0)
            (hosted.folder / SLOW).write_text(said.get("slow", "1.5"))
            start = time.monotonic()
            thread, found = in_background(lambda: federation.run(hosted, apps=APPS, listen=_tell(start)))
            done = _hit(federation, hosted, thread, kills, apart, chance, start)
            thread.join(900)
            print(f"{time.monotonic() - start:.0f} s, {done} kills, outcome {found.get('outcome')}")
        if found.get("outcome") != "finished":
            sys.exit(1)
        lines, wrong = compared(federation, hosted, files)
    print("\n".join(lines))
    sys.exit(1 if wrong or done < kills else 0)


def _hit(
    federation: RealParties,
    hosted: Hosted,
    thread: threading.Thread,
    kills: int,
    apart: float,
    chance: random.Random,
    start: float,
) -> int:
    """Kill what chance says, when chance says; return how often."""
    done, tally = 0, Counter[str]()
    order = [KINDS[number % len(KINDS)] for number in range(kills)]
    chance.shuffle(order)
    while done < kills and thread.is_alive():
        thread.join(apart + chance.uniform(0, 10))
        if not thread.is_alive():
            break
        kind, name = order[done], chance.choice(list(federation.clients))
        print(
            f"{time.monotonic() - start:6.0f} s  round {_rounds(hosted)}: {kind} is killed ({name})",
            flush=True,
        )
        tally[kind] += 1
        done += 1
        if kind == "the coordinator":
            federation.server.crash()
        elif kind == "a party":
            federation.clients[name].stop()
            time.sleep(chance.uniform(0, 5))
            federation.clients[name].start()
        else:
            for process in federation.clients[name].workers:
                os.kill(process, signal.SIGKILL)
    print(", ".join(f"{kind}: {count}" for kind, count in tally.items()))
    return done


def _rounds(hosted: Hosted) -> int:
    file = hosted.folder / "events.jsonl"
    return len(file.read_text().splitlines()) if file.exists() else 0


def _tell(start: float) -> Listener:
    def tell(event: Progress) -> None:
        print(f"{time.monotonic() - start:6.0f} s  {event.note}", flush=True)

    return tell


if __name__ == "__main__":
    main()
