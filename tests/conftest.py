"""Shared fixtures."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# No deadlines: the first example may have to wait for a compiler. Under CI the examples are always the same.
settings.register_profile("house", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("house")


@pytest.fixture
def real_data() -> Callable[[str], Path]:
    """Find a real data file in the folder that COFACTOR_DATA names; skip without it, fail under CI."""

    def find(name: str) -> Path:
        path = Path(os.environ.get("COFACTOR_DATA", "data")) / name
        if not path.exists():
            reason = f"{name} is not in the folder that COFACTOR_DATA names"
            pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
        return path

    return find


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON value."""
        return json.loads(self.out)


Command = Callable[..., Outcome]


@pytest.fixture(scope="session")
def all_commands() -> Any:
    """Build the commands once, as every process of a user does."""
    from typer.main import get_command

    from cofactor.cli.app import app

    return get_command(app)


@pytest.fixture
def cofactor(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], all_commands: Any
) -> Command:
    """Run the command line in this process, as a user would type it."""
    from cofactor.cli import main

    monkeypatch.setattr("typer.main.get_command", lambda _: all_commands)

    def run(*words: object) -> Outcome:
        monkeypatch.setattr("sys.argv", ["cofactor", *map(str, words)])
        code: object = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        printed = capsys.readouterr()
        return Outcome(int(str(code or 0)), printed.out, printed.err)

    return run
