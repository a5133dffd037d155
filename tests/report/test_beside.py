"""What is told beside a folder, gathered: nothing that does not follow from it."""

import shutil
from pathlib import Path

import pytest

from cofactor.cli.report_beside import beside_of
from cofactor.report.beside import Beside
from cofactor.report.folder import Folder
from tests.cli import worlds
from tests.report import making
from tests.report.conftest import Made

WEIGHTS = "user,weight\n" + "".join(f"u{user},{0.3 + 0.01 * user:g}\n" for user in worlds.RATINGS.user_ids)


@pytest.fixture(scope="module")
def weighted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of users with weights; nobody may change it."""
    folder = worlds.write(tmp_path_factory.mktemp("weighted"))
    (folder / "weights.csv").write_text(WEIGHTS)
    steps = ("--split", "on-device", "--recipe", "personal-biases", "--epsilon", 1, "--scale", "1:5", "-q")
    making.asked(folder, "train", "all.csv", *steps, "--user-weights", "weights.csv", "--out", "run")
    return folder / "run"


def gathered(folder: Path) -> Beside:
    return beside_of(Folder.read(folder), verified=True, policy=None)


def broken(source: Path, target: Path) -> Path:
    """Copy a folder, and lose what neither a spread nor a promise is reckoned from."""
    shutil.copytree(source, target)
    (target / "transcript.jsonl").unlink()
    assert gathered(target).broken
    return target


def test_the_spread_of_a_survey_is_drawn_only_if_its_folder_bears_it_out(made: Made, tmp_path: Path) -> None:
    assert gathered(made("survey")).spread is not None
    assert gathered(broken(made("survey"), tmp_path / "copy")).spread is None


def test_groups_are_promised_only_what_the_folder_bears_out(weighted: Path, tmp_path: Path) -> None:
    assert gathered(weighted).promised == (
        "conservative users (weights 0.1 to 0.5): epsilon at most 0.5",
        "moderate users (weights 0.5 to 1): epsilon at most 1",
        "liberal users (weights 1): epsilon at most 1",
    )
    assert gathered(broken(weighted, tmp_path / "copy")).promised == ()
