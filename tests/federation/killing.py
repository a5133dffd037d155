"""Train in a process that is killed again and again at random moments, until it is finished; say how often."""

import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from cofactor.randomness import SecureRandom
from tests.federation.making import ItemSums, horizontal, trained

RECIPE = ItemSums(rounds=30)


def train(folder: Path) -> None:
    run = trained(RECIPE, horizontal(3), random=SecureRandom(), folder=folder / "folder")
    run.save(folder / "run")


def killed(folder: Path, seconds: float) -> bool:
    """Train in a process of its own for so long; say whether it had to be killed."""
    child = os.fork()
    if child == 0:
        train(folder)
        os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit("training failed")
    return os.WIFSIGNALED(status)


def main(folder: Path) -> None:
    # Once in this process, so that children have everything loaded and calibrated when they begin.
    trained(RECIPE, horizontal(3), random=SecureRandom())
    chance, kills, longest = random.Random(), 0, 0.05
    while killed(folder, chance.uniform(0, longest)):
        kills += 1
        # Slow machines get further if they are let live longer.
        longest *= 1.0 if kills < 20 else 1.2
    print(kills)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
