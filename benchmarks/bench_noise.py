"""Cryptographic noise against numpy's generators, which are not cryptographic: one thread, one process."""

from collections.abc import Callable

import numpy as np

from benchmarks.bench import Row, cpu_best, faster
from cofactor.privacy import noise
from cofactor.privacy.gaussian_kernels import fill_gaussian
from cofactor.randomness import SecureRandom

GAUSSIANS = 4_000_000
COUNTS = 1_000_000
TURNS = 10
REPEATS = 3
THETA = 0.25


def rows() -> list[Row]:
    return [
        _gaussian(rounds=12),
        _gaussian(rounds=20),
        *(_poisson_binomial(trials) for trials in (8, 16)),
        *(_skellam(variance) for variance in (2.0, 200.0, 20_000.0)),
    ]


def _gaussian(rounds: int) -> Row:
    out, random, generator = np.empty(GAUSSIANS, np.float32), SecureRandom(), np.random.default_rng()

    def ours() -> None:
        fill_gaussian(out, random.new_key(), np.uint64(0), np.float32(1), rounds)

    def peer() -> None:
        generator.standard_normal(dtype=np.float32, out=out)

    return _compare(f"Gaussian float32 fill, ChaCha{rounds}", ours, peer, "numpy PCG64")


def _poisson_binomial(trials: int) -> Row:
    random, generator = SecureRandom(), np.random.default_rng()
    shares = generator.uniform(-1, 1, COUNTS)
    probabilities = 0.5 + THETA * shares
    return _compare(
        f"Poisson binomial, {trials} trials",
        lambda: noise.poisson_binomial(shares, trials, THETA, random),
        lambda: generator.binomial(trials, probabilities),
        "numpy binomial",
    )


def _skellam(variance: float) -> Row:
    random, generator = SecureRandom(), np.random.default_rng()
    return _compare(
        f"Skellam, variance {variance:g}",
        lambda: noise.skellam(COUNTS, variance, random),
        lambda: generator.poisson(variance / 2, COUNTS) - generator.poisson(variance / 2, COUNTS),
        "numpy Poisson - Poisson",
    )


def _compare(name: str, ours: Callable[[], object], peer: Callable[[], object], peer_name: str) -> Row:
    ours()  # compiles, and makes the table
    # In turns, so that a busy moment of the machine meets both.
    turns = [(cpu_best(ours, REPEATS), cpu_best(peer, 1)) for _ in range(TURNS)]
    best, other = (min(times) for times in zip(*turns, strict=True))
    return faster(name, ours=best, peer=other, peer_name=f"{peer_name} {np.__version__}")
