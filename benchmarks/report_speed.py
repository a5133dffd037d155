"""How long `cofactor report` takes for a run of 100 rounds and 10 parties, and how large the page is.

    python -m benchmarks.report_speed [rounds=100] [parties=10] [repeats=5]

Trains once on synthetic ratings, in a folder that is removed, and then makes the report again and again: by
the command with and without its checks, each in a process of its own, and the page alone, in a process that
has done it before. Seconds are of the processor, since other work on the machine changes those of the clock.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from cofactor.data.ratings import Ratings
from cofactor.data.synthetic import Shape, make

MOST_SECONDS, MOST_BYTES = 2.0, 1.5e6


def main() -> int:
    said = dict(word.split("=") for word in sys.argv[1:])
    rounds, parties, repeats = (
        int(said.get(name, usual)) for name, usual in (("rounds", 100), ("parties", 10), ("repeats", 5))
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        trained(folder, rounds=rounds, parties=parties)
        whole = repeated(lambda: command(folder, "report", "run"), repeats)
        unchecked = repeated(lambda: command(folder, "report", "run", "--no-verify"), repeats)
        alone = repeated(lambda: page_alone(folder / "run"), repeats)
        size = (folder / "run.html").stat().st_size
    print(f"{rounds} rounds, {parties} parties; processor seconds, median of {repeats} (least to most)")
    for name, seconds in (("cofactor report", whole), ("... --no-verify", unchecked), ("the page", alone)):
        print(f"{name:18s} {statistics.median(seconds):6.2f} ({min(seconds):.2f} to {max(seconds):.2f})")
    print(f"{'size':18s} {size / 1e6:6.2f} MB")
    return int(statistics.median(whole) > MOST_SECONDS or size > MOST_BYTES)


def trained(folder: Path, *, rounds: int, parties: int) -> None:
    """Train once, with everything that a report can show."""
    made = make(Shape(users=1_000, items=300, ratings=30_000, minimum=10), seed=1).ratings
    write_ratings(made, folder / "ratings.csv")
    dealt = ("--parties", parties, "--split", "horizontal", "--test-fraction", 0.1)
    steps = ("--recipe", "horizontal-mf", "--rounds", rounds, "--factors", 8)
    command(folder, "train", "ratings.csv", *dealt, *steps, "--epsilon", 4, "--out", "run", "-q")


def write_ratings(ratings: Ratings, path: Path) -> None:
    triples = zip(ratings.users, ratings.items, ratings.values, strict=True)
    lines = [f"{user},{item},{value:g}" for user, item, value in triples]
    path.write_text("\n".join(["user,item,rating", *lines]) + "\n")


def command(folder: Path, *words: object) -> float:
    """Run a command in a folder, and return how long the processor worked."""
    before = os.times()
    subprocess.run(
        [sys.executable, "-m", "cofactor", *map(str, words)],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def page_alone(run: Path) -> float:
    """Make the page in this process."""
    from cofactor.report.folder import Folder
    from cofactor.report.page import page

    before = time.process_time()
    page(Folder.read(run))
    return time.process_time() - before


def repeated(once: Callable[[], float], repeats: int) -> list[float]:
    once()  # whatever is done only the first time
    return [once() for _ in range(repeats)]


if __name__ == "__main__":
    sys.exit(main())
