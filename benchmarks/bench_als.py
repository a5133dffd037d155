"""An iteration of ALS over both sides, against lenskit's BiasedMF: 20 factors, float32, one thread.

Lenskit subtracts biases beforehand and solves for 20 unknowns a row; ours solves for the bias as well, 21.
"""

from collections.abc import Callable

from benchmarks.bench import Row, ask_peer, cpu_best, faster
from benchmarks.shapes import SHAPES, ratings_like
from cofactor.data.ratings import Ratings
from cofactor.factors.als import ALS, start
from cofactor.factors.team import Team

FACTORS = 20
REPEATS = 5
ROUNDS = 2
"""Ours and the peer take turns this often."""


def rows() -> list[Row]:
    return [_against_lenskit(shape) for shape in SHAPES]


def _against_lenskit(shape: str) -> Row:
    ratings, path = ratings_like(shape)
    iteration = _iteration(ratings)
    ours, peer = [], []
    for _ in range(ROUNDS):
        ours.append(cpu_best(iteration, REPEATS))
        answer = ask_peer("lenskit", ["lenskit==2025.8.1"], "lenskit_als.py", path, FACTORS, REPEATS)
        peer.append(float(answer["seconds"]))
    return faster(f"ALS iteration, {shape} shape", ours=min(ours), peer=min(peer), peer_name="lenskit 2025.8")


def _iteration(ratings: Ratings) -> Callable[[], None]:
    """Return a call that solves for all items, then for all users; it has been called once, to compile."""
    training, team = start(ALS(factors=FACTORS), ratings, seed=0), Team(1)

    def iteration() -> None:
        training.run_epoch(team)

    iteration()
    return iteration
