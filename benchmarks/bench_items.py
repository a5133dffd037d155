"""Five rounds of SecureALS at the shape of ML-10M, every user a device, on one thread: CPU time and memory.

This is all that users and coordinator compute, masks apart: fits at home, messages, noise, sums, the books.
Users have slopes on 16 public columns, and items get 8 factors in the last three rounds.
"""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.bench import FOLDER, Row
from cofactor.data.public_items import PublicItems
from cofactor.data.synthetic import like
from cofactor.federation.federation import Federation
from cofactor.privacy.budget import Budget
from cofactor.recipes.item_rounds import ItemRound
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.train import train

SECONDS, GIGABYTES = 60.0, 2.0
COLUMNS, FACTORS = 16, 8
BUDGET = Budget(epsilon=1.0, delta=1e-7, unit="user")


def rows() -> list[Row]:
    command = [sys.executable, "-m", "benchmarks.bench_items"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=FOLDER.parent)
    seconds, peak = (float(each) for each in done.stdout.split())
    name = "SecureALS, 5 rounds, 8 factors, ml-10m"
    return [
        Row(name, seconds, SECONDS, "limit", SECONDS / seconds, "s"),
        Row(f"{name}: memory", peak, GIGABYTES, "limit", GIGABYTES / peak, "GB"),
    ]


def measured() -> tuple[float, float]:
    ratings = like("ml-10m", seed=0).ratings
    random = np.random.default_rng(0)
    columns = (random.random((ratings.item_count, COLUMNS)) < 0.15).astype(np.float32)
    public = PublicItems.of_numbers(
        ratings.item_ids, columns, names=[f"tag {k}" for k in range(COLUMNS)], source="made up"
    )
    biases = ItemRound(share=0.2, count_weight=0.5, spread_share=0.03)
    factors = ItemRound(share=0.2, count_weight=0.2, factors=FACTORS, spread_share=0.02)
    rounds = (biases, biases, factors, factors, factors)
    federation = Federation.on_device(ratings)
    _train(federation, public, rounds[:1])  # compiles
    start = time.process_time()
    _train(federation, public, rounds)
    seconds = time.process_time() - start
    # What getrusage tells includes the memory of the process that started this one.
    status = Path("/proc/self/status").read_text()
    return seconds, int(status.split("VmHWM:")[1].split()[0]) / 1e6


def _train(federation: Federation, public: PublicItems, rounds: tuple[ItemRound, ...]) -> None:
    train(SecureALS(item_rounds=rounds, public_items=public), federation, budget=BUDGET)


if __name__ == "__main__":
    print(*measured())
