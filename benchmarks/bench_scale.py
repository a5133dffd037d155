"""Does training stay small and fast when the ratings grow: peak memory at 25M, time per rating against 1M."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench import FOLDER, Row, cpu_best
from benchmarks.shapes import file_of, ratings_like
from cofactor.data import synthetic
from cofactor.data.ratings import Ratings
from cofactor.factors.als import ALS
from cofactor.factors.sgd import SGD

LARGE, SMALL = "ml-25m", "ml-1m"
EPOCHS = {"sgd": 5, "als": 2}
REPEATS = {LARGE: 2, SMALL: 10}
MOST_MEMORY = 2.5
"""GB that loading the ratings and training on them may take."""
MOST_SLOWDOWN = 3.0
"""How many times longer a rating may take when there are 25 times as many."""


def rows() -> list[Row]:
    return [row for algorithm in EPOCHS for row in _rows_of(algorithm)]


def _rows_of(algorithm: str) -> list[Row]:
    large, small = (_in_a_process_of_its_own("train", name, algorithm) for name in (LARGE, SMALL))
    memory = large["gigabytes"]
    slowdown = large["seconds_per_rating"] / small["seconds_per_rating"]
    name = algorithm.upper()
    return [
        Row(f"{name} peak memory, {LARGE} shape", memory, MOST_MEMORY, "bar", MOST_MEMORY / memory, "GB"),
        Row(
            f"{name} time per rating, {LARGE} to {SMALL}",
            slowdown, MOST_SLOWDOWN, "bar", MOST_SLOWDOWN / slowdown, "times",
        ),
    ]  # fmt: skip


def _in_a_process_of_its_own(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.bench_scale", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=FOLDER.parent)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _data(name: str) -> Path:
    """Return the file of a shape, made in a process of its own so that making it costs nothing here."""
    if not file_of(name).exists():
        _in_a_process_of_its_own("make", name)
    return file_of(name)


def _make(name: str) -> dict[str, Any]:
    ratings, _ = ratings_like(name)
    return {"ratings": len(ratings)}


def _train(name: str, algorithm: str) -> dict[str, Any]:
    ratings = _load(_data(name), synthetic.PRESETS[name])
    epochs = EPOCHS[algorithm]
    model = SGD if algorithm == "sgd" else ALS
    model(factors=20, epochs=1, threads=1).fit(ratings.select(users=slice(0, 200)))
    one_thread = model(factors=20, epochs=epochs, threads=1)
    seconds = cpu_best(lambda: one_thread.fit(ratings, seed=0), REPEATS[name])
    # Once more as users run it, with as many threads as there are, for the memory.
    model(factors=20, epochs=1).fit(ratings, seed=0)
    return {"seconds_per_rating": seconds / epochs / len(ratings), "gigabytes": _peak_gigabytes()}


def _load(path: Path, shape: synthetic.Shape) -> Ratings:
    with np.load(path) as file:
        return Ratings.from_rows(
            file["users"], file["items"], file["values"],
            user_ids=np.arange(shape.users), item_ids=np.arange(shape.items), scale=shape.scale,
        )  # fmt: skip


def _peak_gigabytes() -> float:
    # Not getrusage: its ru_maxrss survives exec, so that a large parent would count as our own.
    status = Path("/proc/self/status").read_text()
    [kilobytes] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(kilobytes) * 1024 / 1e9


if __name__ == "__main__":
    print(json.dumps(_make(*sys.argv[2:]) if sys.argv[1] == "make" else _train(*sys.argv[2:])))
