"""What MLflow has of runs, read from the folder `ml` here, in which it keeps them."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import Command

FIXED = ("all.csv", "--parties", 2, "--split", "horizontal", "--recipe", "horizontal-mf", "--factors", 2)
ROUNDS = 2
TRAIN = ("train", *FIXED, "--rounds", ROUNDS, "--test-fraction", 0.2, "-q")


@dataclass(frozen=True, kw_only=True)
class Told:
    """One run."""

    place: Path

    @property
    def status(self) -> str:
        """ "3" if it is finished, "4" if it failed."""
        return str(re.findall(r"^status: (\d)", (self.place / "meta.yaml").read_text(), re.MULTILINE)[0])

    @property
    def name(self) -> str:
        return self.tags["mlflow.runName"]

    @property
    def params(self) -> dict[str, str]:
        return self._texts("params")

    @property
    def tags(self) -> dict[str, str]:
        return self._texts("tags")

    @property
    def metrics(self) -> dict[str, list[tuple[int, float]]]:
        """By name, each step with its value."""
        found = {name: map(str.split, text.splitlines()) for name, text in self._texts("metrics").items()}
        return {
            name: [(int(step), float(value)) for _, value, step in lines] for name, lines in found.items()
        }

    @property
    def files(self) -> dict[str, str]:
        return self._texts("artifacts")

    @property
    def everything(self) -> str:
        """All that is in the store, names of files as well; the store's own description comes last."""
        files = [path for path in sorted(self.place.rglob("*")) if path.is_file()]
        files.sort(key=lambda path: path.name == "meta.yaml")
        return "".join(f"{path.relative_to(self.place)} {path.read_text()}\n" for path in files)

    def _texts(self, kind: str) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted((self.place / kind).iterdir())}


def told() -> list[Told]:
    """Return all runs."""
    return [Told(place=path.parent) for path in sorted(Path("ml").glob("*/*/meta.yaml"))]


def store() -> str:
    """Name the store by where it really lies: MLflow keeps in mind what it has met."""
    return Path("ml").resolve().as_uri()


def logged(cofactor: Command, run: object = "run", *words: object) -> Told:
    """Log a run that is not there yet."""
    done = cofactor("export", run, "--mlflow", store(), "--json", *words)
    assert done.code == 0, done.err
    assert done.json["mlflow"]["sent"]
    (found,) = [each for each in told() if each.place.name == done.json["mlflow"]["id"]]
    return found
