"""Fixtures of runs that MLflow is told of."""

import shutil
from pathlib import Path

import pytest

from tests.cli import worlds
from tests.cli.tracked import TRAIN
from tests.report import making


@pytest.fixture(scope="session")
def run_to_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ratings, and a run; nobody may change it."""
    folder = worlds.write(tmp_path_factory.mktemp("world"))
    making.asked(folder, *TRAIN, "--epsilon", 2, "--out", "run")
    return folder


@pytest.fixture
def to_log(run_to_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, to be worked in."""
    there = shutil.copytree(run_to_log, tmp_path / "there")
    monkeypatch.chdir(there)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    return there
