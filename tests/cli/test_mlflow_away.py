"""`--mlflow` where no server answers, or a URI is wrong: nothing is lost, and no password is printed."""

import re
import sys
from pathlib import Path

import pytest

from cofactor.cli.mlflow_log import NotLogged, Tracking
from cofactor.cli.text import ProgressLine
from cofactor.progress import Progress
from tests.cli.tracked import FIXED, TRAIN, logged, store
from tests.conftest import Command, Outcome

NOWHERE = "http://bob:hun%40ter2@127.0.0.1:9/?token=opensesame"
"""Where nobody listens."""


def silent(done: Outcome) -> bool:
    """Say that no password was printed, as it was written or as it is read."""
    return not [word for word in ("hun", "ter2", "opensesame", "bob") if word in done.out + done.err]


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that goes away after it was looked for."""
    monkeypatch.setattr(Tracking, "check", lambda _: None)


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_training_is_complete_though_the_server_went_away(
    as_json: tuple[str, ...], to_log: Path, cofactor: Command, lost: None
) -> None:
    done = cofactor(*TRAIN, "--epsilon", 2, "--out", "new", "--mlflow", NOWHERE, *as_json)
    assert (done.code, silent(done)) == (1, True)
    assert "no server answers there. The run is complete, in new. To log it again: cofactor exp" in done.err
    assert ('"kind": "NotLogged"' if as_json else "Saved in new.") in done.out
    assert cofactor("verify", "new").code == 0
    assert not (to_log / "new.unfinished").exists()
    assert logged(cofactor, "new").status == "3"


@pytest.mark.parametrize("option", [("--mlflow", NOWHERE), (f"--mlflow={NOWHERE}",)])
def test_commands_that_are_proposed_have_no_password(
    option: tuple[str, ...], to_log: Path, cofactor: Command, lost: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: object, event: Progress) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ProgressLine, "__call__", stop)
    for words, added in (((), "--epsilon 1"), (("--epsilon", 2), "--resume")):
        done = cofactor(*TRAIN, *words, *option, "--out", "new")
        assert re.search(rf": cofactor train all.csv .*http://\*\*\*@.* --out new {added}", done.err), (
            done.err
        )
        assert silent(done)


@pytest.mark.parametrize("words", [("export", "run"), (*TRAIN, "--epsilon", 2, "--out", "new"), ("sweep",)])
def test_server_that_is_not_there_is_found_out_before_anything_is_done(
    words: tuple[object, ...], to_log: Path, cofactor: Command
) -> None:
    swept = (*FIXED, "--epsilons", 1, "--out", "new") if words == ("sweep",) else ()
    done = cofactor(*words, *swept, "--mlflow", NOWHERE)
    assert (done.code, done.out, (to_log / "new").exists()) == (1, "", False)
    assert "http://***@127.0.0.1:9/?*** cannot be used: no server answers there. Nothing was don" in done.err
    assert silent(done)


def test_sweep_is_complete_though_the_server_went_away(to_log: Path, cofactor: Command, lost: None) -> None:
    words = ("sweep", *FIXED, "--rounds", 1, "--out", "sw", "--epsilons", "1,2", "-q")
    done = cofactor(*words, "--mlflow", NOWHERE)
    assert (done.code, silent(done)) == (1, True)
    assert "2 runs were not logged. --mlflow: http://***@127.0.0.1:9/?*** did not take the run" in done.err
    assert len(Path("sw/sweep.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("http://bob:pw@host:5000/x", "http://***@host:5000/x"),
        ("https://token@host", "https://***@host"),
        ("postgresql://bob:p@ss/w?rd@host/db", "postgresql://***@host/db"),
        ("http://host/?token=pw&user=bob", "http://host/?***"),
        ("http://host:5000", "http://host:5000"),
        ("file:///home/bob@work/ml", "file:///home/bob@work/ml"),
        ("mlruns", "mlruns"),
    ],
)
def test_uri_is_shown_without_a_password(uri: str, shown: str) -> None:
    assert Tracking(uri=uri).shown == shown


@pytest.mark.parametrize("uri", ["strange://bob:hunter2@host", "http://bob:hunter2@no such host"])
def test_whatever_is_wrong_with_a_uri_its_password_is_not_told(uri: str) -> None:
    with pytest.raises(NotLogged) as refused:
        Tracking(uri=uri).check()
    assert re.search(r"//\*\*\*@(?!.*hunter2)", str(refused.value))
    assert refused.value.__suppress_context__


def test_password_that_mlflow_spells_otherwise_is_not_told_either(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.tracking import MlflowClient

    def refuse(*_: object) -> None:
        raise OSError("401 at https://bob:hunter2@host/api?token=hunter2\nhunter2")

    monkeypatch.setattr(MlflowClient, "get_experiment_by_name", refuse)
    with pytest.raises(NotLogged, match=r"401 at https://\*\*\*@host/api\?\*\*\*\. (?!.*hunter2)"):
        Tracking(uri="http://localhost:9").check()


@pytest.mark.parametrize("words", [("export", "run"), (*TRAIN, "--epsilon", 2, "--out", "new")])
def test_missing_package_is_named_before_anything_is_done(
    words: tuple[object, ...], to_log: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    done = cofactor(*words, "--mlflow", store())
    assert (done.code, done.out, (to_log / "new").exists()) == (2, "", False)
    assert "--mlflow needs the package mlflow-skinny. Run: pip install 'mlflow-skinny>=3.1,<4'" in done.err
