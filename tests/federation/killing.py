"""Train in a process that is killed again and again, until it is finished; print how often it was killed."""

import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from cofactor.progress import Progress
from cofactor.randomness import SecureRandom
from cofactor.recipes.sums import SecureSum
from tests.federation.making import ItemSums, horizontal, trained

RECIPES = {"plain": ItemSums(rounds=8), "secure": ItemSums(rounds=8, aggregate=SecureSum())}


def train(folder: Path, recipe: ItemSums, progress: Callable[[Progress], None]) -> None:
    run = trained(recipe, horizontal(3), random=SecureRandom(), folder=folder / "folder", progress=progress)
    run.save(folder / "run")


def bomb(seconds: float) -> None:
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()


def killed(folder: Path, recipe: ItemSums, *, early: bool, seconds: float) -> bool:
    """Train in a process of its own that is killed soon after it began, or after its first round."""
    child = os.fork()
    if child == 0:
        if early:
            bomb(seconds)
        train(folder, recipe, lambda _: None if early else bomb(seconds))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit("training failed")
    return os.WIFSIGNALED(status)


def main(folder: Path, recipe: ItemSums) -> None:
    # Once in this process, so that children have everything loaded and calibrated when they begin.
    trained(recipe, horizontal(3), random=SecureRandom())
    chance, kills = random.Random(), 0
    while killed(folder, recipe, early=chance.random() < 0.3, seconds=chance.uniform(0, 0.03)):
        kills += 1
    print(kills)


if __name__ == "__main__":
    main(Path(sys.argv[1]), RECIPES[sys.argv[2]])
