"""Private gradient steps at the shape of ML-10M, as published, against straightforward numpy: one thread.

A step is one step of every party: 20 factors, each user chosen with probability 0.01, noise on all vectors.
Ten parties have a copy of the users' vectors each, and a tenth of the items.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.bench import FOLDER, Row, cpu_best, faster
from benchmarks.naive_private import NaiveDescent
from benchmarks.shapes import file_of, ratings_like
from cofactor.data.partition import vertical
from cofactor.data.ratings import Ratings
from cofactor.privacy.mechanisms import SampledGaussian
from cofactor.randomness import SecureRandom
from cofactor.recipes.clipping import EmbeddingClipping
from cofactor.recipes.private_descent import PrivateDescent

FACTORS = 20
MECHANISM = SampledGaussian(noise_multiplier=1.0, sampling=0.01)
RATE = 1e-4
HIGHEST = 5.0
STEPS = 1000
"""What times are scaled to: the steps of a published training."""
LOCAL_STEPS = 10
"""Steps between two rounds, as published: ours takes them in one call."""
TURNS = 8


def rows() -> list[Row]:
    ratings, _ = ratings_like("ml-10m")
    return [_speed(ratings, 1), _speed(ratings, 10), _memory()]


def _speed(ratings: Ratings, parties: int) -> Row:
    held = vertical(ratings, parties)
    ours = [_ours(part) for part in held]
    naive = [_naive(part) for part in held]
    _our_steps(ours)  # compiles
    # In turns, so that a busy moment of the machine meets both.
    turns = [
        (cpu_best(lambda: _our_steps(ours), 2) / LOCAL_STEPS, cpu_best(lambda: _naive_step(naive), 2))
        for _ in range(TURNS)
    ]
    best, peer = (STEPS * min(times) for times in zip(*turns, strict=True))
    name = f"{STEPS:,} private steps, ml-10m, {parties} part{'y' if parties == 1 else 'ies'}"
    return faster(name, ours=best, peer=peer, peer_name=f"numpy {np.__version__}")


def _memory() -> Row:
    """Measure a process of its own, which reads the ratings from a file, with ten parties."""
    command = [sys.executable, "-m", "benchmarks.bench_private"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=FOLDER.parent)
    peak = float(done.stdout)
    return Row("private steps, ml-10m, 10 parties: memory", peak, 1.0, "limit", 1.0 / peak, "GB")


def _peak_with_ten_parties() -> float:
    with np.load(file_of("ml-10m")) as file:
        arrays = [file[name] for name in ("users", "items", "values")]
    users, items = (np.arange(rows.max() + 1) for rows in arrays[:2])
    ratings = Ratings.from_rows(*arrays, user_ids=users, item_ids=items)
    ours = [_ours(part) for part in vertical(ratings, 10)]
    _our_steps(ours)
    # What getrusage tells includes the memory of the process that started this one.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1e6


def _ours(part: Ratings) -> PrivateDescent:
    users, items = _start(part)
    return PrivateDescent(
        part.by_user, users, items, clipping=EmbeddingClipping(), unit="rating", highest=HIGHEST
    )


def _naive(part: Ratings) -> NaiveDescent:
    users, items = _start(part)
    return NaiveDescent(part.by_user, users, items, highest=HIGHEST)


def _start(part: Ratings) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(0)
    users, items = (chance.uniform(0.3, 0.5, (n, FACTORS)) for n in (part.user_count, part.item_count))
    return users.astype(np.float32), items.astype(np.float32)


def _our_steps(parties: list[PrivateDescent]) -> None:
    for party in parties:
        party.take(
            LOCAL_STEPS, mechanism=MECHANISM, rate_users=RATE, rate_items=RATE, random=SecureRandom(),
            what="vectors", by="party", to="coordinator",
        )  # fmt: skip


def _naive_step(parties: list[NaiveDescent]) -> None:
    for party in parties:
        party.take(1, noise_multiplier=MECHANISM.noise_multiplier, sampling=MECHANISM.sampling, rate=RATE)


if __name__ == "__main__":
    print(_peak_with_ten_parties())
