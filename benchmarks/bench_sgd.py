"""An epoch of SGD with biases, against cornac's MF: the same updates, 20 factors, float32, one thread.

Cornac takes the ratings as they come; they come ordered by user, which is its fastest order. It also adds up
the loss, ours does not. Ours orders the ratings once a fit, which an epoch's time leaves out.
"""

from collections.abc import Callable

from benchmarks.bench import Row, ask_peer, cpu_best, faster, wall_best
from benchmarks.shapes import SHAPES, ratings_like
from cofactor.data.ratings import Ratings
from cofactor.factors.sgd import SGD, start
from cofactor.factors.team import Team

FACTORS = 20
REPEATS = 20
ROUNDS = 2
"""Ours and the peer take turns this often."""


def rows() -> list[Row]:
    epochs = [_against_cornac(shape) for shape in SHAPES]
    fits = [_whole_fit(shape, row) for shape, row in zip(SHAPES, epochs, strict=True)]
    return [*epochs, *fits, _two_threads("ml-1m"), _two_threads("ml-10m")]


def _whole_fit(shape: str, epoch: Row) -> Row:
    """Compare a fit, ordering and making of the model included, with as many of the peer's epochs."""
    ratings, _ = ratings_like(shape)
    settings = SGD(factors=FACTORS, threads=1)
    ours = cpu_best(lambda: settings.fit(ratings, seed=0), 3)
    name = f"SGD fit of {settings.epochs} epochs, {shape} shape"
    return faster(name, ours=ours, peer=settings.epochs * epoch.peer, peer_name=epoch.peer_name)


def _against_cornac(shape: str) -> Row:
    ratings, path = ratings_like(shape)
    epoch = _epoch(ratings, threads=1)
    ours, peer = [], []
    for _ in range(ROUNDS):
        ours.append(cpu_best(epoch, REPEATS))
        answer = ask_peer("cornac", ["cornac==3.0.1"], "cornac_sgd.py", path, FACTORS, REPEATS)
        peer.append(float(answer["seconds"]))
    return faster(f"SGD epoch, {shape} shape", ours=min(ours), peer=min(peer), peer_name="cornac 3.0.1")


def _two_threads(shape: str) -> Row:
    """Compare wall times of our own epoch: means little unless both cores are free."""
    ratings, _ = ratings_like(shape)
    one, two = _epoch(ratings, threads=1), _epoch(ratings, threads=2)
    alone, together = [], []
    # More rounds than elsewhere: a core that has idled while one thread ran takes a while to come back.
    for _ in range(5 * ROUNDS):
        alone.append(wall_best(one, REPEATS))
        together.append(wall_best(two, REPEATS))
    return faster(
        f"SGD two threads, {shape} shape",
        ours=min(together),
        peer=min(alone),
        peer_name="one thread",
        unit="wall s",
    )


def _epoch(ratings: Ratings, *, threads: int) -> Callable[[], None]:
    """Return a call that trains for one epoch; it has been called once, to compile."""
    training, team = start(SGD(factors=FACTORS), ratings, seed=0), Team(threads)

    def epoch() -> None:
        training.run_epoch(0.01, team)

    epoch()
    return epoch
