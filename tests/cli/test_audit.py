"""`cofactor audit` and `--capture`: attacks on runs, surveys and clusterings, as somebody would type them."""

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.cli import main
from cofactor.federation.folder import CAPTURED, read_audits
from cofactor.federation.run import Run
from cofactor.privacy import answer_noise
from tests.cli import worlds

Command = Any
SHOPS = ("north.csv", "south.csv", "west.csv")
PRIVATE = ("--recipe", "shared-biases", "--epsilon", "2", "-q")
PLAIN = ("--recipe", "multi-view", "--sum", "plain", "--not-private", "--rounds", "2", "-q")
TRAININGS = {
    "shops": (*SHOPS, "--split", "horizontal", *PRIVATE),
    "dealt": ("all.csv", "--parties", "3", "--split", "horizontal", *PRIVATE),
    "captured": ("all.csv", "--parties", "3", "--split", "horizontal", *PRIVATE, "--capture", "coordinator"),
    "phones": ("all.csv", "--parties", "60", "--split", "horizontal", *PLAIN, "--capture", "coordinator"),
    "pooled": ("all.csv", "--epochs", "1", "-q"),
}
SURE = ("--confidence", 0.9999999)
"""Alarms are so rare where promises are kept."""
SURVEY = ("all.csv", "--activity", "--range", "1:40", "--epsilon", "1")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs of parties and of make-believe ones, with and without messages, and a survey."""
    folder = worlds.write(tmp_path_factory.mktemp("audits"))
    commands = [("train", *words, "--out", name) for name, words in TRAININGS.items()]
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for words in (*commands, ("survey", *SURVEY, "--out", "activity")):
            patched.setattr("sys.argv", ["cofactor", *words])
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
                main()
    assert all((folder / name / "run.json").exists() for name in (*TRAININGS, "activity"))
    return folder


@pytest.fixture(autouse=True)
def _here(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)


def test_captured_simulation_warns_and_says_how_to_attack_it(cofactor: Command) -> None:
    done = cofactor("train", *TRAININGS["phones"], "--out", "again")
    assert done.code == 0, done.err
    assert (
        f"again/{CAPTURED} holds what coordinator saw, and the ratings themselves: do not share" in done.out
    )
    assert "Next: cofactor audit again --attack reconstruction" in done.out
    assert "1 to 5 in steps of 1" in done.out
    assert "do not share it" in cofactor("show", "again").out
    assert cofactor("show", "again", "--json").json["captured"] == ["coordinator"]


def test_roles_can_be_named_together_or_one_by_one(cofactor: Command) -> None:
    asked = ("--capture", "coordinator,party:party-2", "--capture", "party:party-1")
    done = cofactor("train", *TRAININGS["dealt"], *asked, "--out", "roles", "--json")
    assert done.code == 0, done.err
    assert done.json["captured"] == ["coordinator", "party:party-2", "party:party-1"]
    kept = Run.load("roles").captured
    assert kept is not None
    assert kept.view("party:party-2").seen
    assert "Next: cofactor audit" not in done.out


def test_training_that_is_not_captured_keeps_no_message(cofactor: Command) -> None:
    assert not (Path("dealt") / CAPTURED).exists()
    assert CAPTURED not in cofactor("show", "dealt").out
    assert cofactor("show", "dealt", "--json").json["captured"] == []


def test_canaries_in_the_parties_files_charge_no_ledger(cofactor: Command) -> None:
    ledgers = {name: Path(f"{name}.ledger").read_bytes() for name in SHOPS}
    done = cofactor("audit", "shops", *SHOPS, "--canaries", 60, *SURE, "--quiet")
    assert done.code == 0, done.err
    assert re.search(
        r"^consistent: canaries, as seen by coordinator, confidence 0\.9999999$", done.out, re.MULTILINE
    )
    assert re.search(r"epsilon promised +1\.9", done.out)
    assert re.search(r"canaries +60\b", done.out)
    assert {name: Path(f"{name}.ledger").read_bytes() for name in SHOPS} == ledgers
    assert cofactor("verify", "shops").code == 0


def test_canaries_are_planted_in_a_file_dealt_out_as_before_or_in_what_was_captured(
    cofactor: Command,
) -> None:
    dealt = cofactor("audit", "dealt", "all.csv", "--canaries", 60, *SURE, "--json")
    kept = cofactor("audit", "captured", "--canaries", 60, *SURE, "--json")
    for done in (dealt, kept):
        assert done.code == 0, done.err
        assert (done.json["verdict"], done.json["figures"]["canaries"]) == ("consistent", 60)


def test_audits_of_a_run_stay_side_by_side_and_are_shown_with_it(cofactor: Command) -> None:
    first = cofactor("audit", "activity", "--canaries", 200, *SURE, "--json")
    second = cofactor("audit", "activity", "--canaries", 200, "--repeats", 2, *SURE, "--json")
    assert (first.code, second.code) == (0, 0), second.err
    assert second.json["figures"]["canaries"] == 400
    for done, number in ((first, 1), (second, 2)):
        kept = json.loads(Path(done.json["file"]).read_text())
        assert Path(done.json["file"]).name == f"canaries-coordinator-{number}.json"
        assert {name: done.json[name] for name in ("verdict", "headline", "confidence")} == {
            name: kept[name] for name in ("verdict", "headline", "confidence")
        }
    shown = cofactor("show", "activity")
    assert shown.out.count("audits/canaries-coordinator-") == 2
    assert "consistent. a survey by" in shown.out
    assert set(cofactor("show", "activity", "--json").json["audits"]) == set(read_audits("activity"))


def test_alarm_is_loud_and_exit_code_1(cofactor: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = cofactor("survey", "books.csv", *SURVEY[1:], "--method", "grr", "--out", "told")
    assert asked.code == 0, asked.err
    # A planted bug: people answer with the truth, and it is charged as if they had not.
    monkeypatch.setattr(answer_noise, "randomized_response", lambda values, *_: np.asarray(values, np.int64))
    done = cofactor("audit", "told", "--canaries", 200, "--quiet")
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith("ALARM: canaries, as seen by coordinator")
    assert "does not keep epsilon 1" in done.out
    assert re.search(r"right guesses +100\b", done.out)
    assert "an alarm has probability 0.05 at most. To be surer: --repeats" in done.out
    assert "audits/canaries-coordinator-1: ALARM. " in cofactor("show", "told").out
    assert cofactor("audit", "told", "--canaries", 200, "--json").json["verdict"] == "alarm"


def test_changed_audit_is_not_shown(cofactor: Command) -> None:
    place = Path(cofactor("audit", "activity", "--canaries", 100, *SURE, "--json").json["file"])
    sealed = place.read_text()
    place.write_text(sealed.replace("consistent", "resisted"))
    done = cofactor("show", "activity")
    place.write_text(sealed)
    assert (done.code, "was changed" in done.err) == (2, True)


def test_ratings_are_read_off_plain_gradients_with_guesses_beside(cofactor: Command) -> None:
    done = cofactor("audit", "phones", "--attack", "reconstruction", "--quiet")
    assert done.code == 0, done.err
    assert done.out.startswith("succeeded: reconstruction, as seen by coordinator\n")
    assert re.search(r"found +trivial guess +random guess", done.out)
    shown = re.search(r"rated items right +([\d.]+) +([\d.]+) +0\.2 ", done.out)
    assert shown is not None
    assert float(shown[1]) > 0.99
    assert float(shown[2]) < 0.5
    assert re.search(
        r"^Kept in phones/audits/reconstruction-coordinator-\d+\.json\.$", done.out, re.MULTILINE
    )


def test_members_are_told_from_users_of_another_file(cofactor: Command) -> None:
    settings = ("--recipe", "multi-view", "--not-private", "--rounds", "20", "-q")
    trained = cofactor(
        "train", "north.csv", "--parties", 2, "--split", "horizontal", *settings, "--out", "in"
    )
    assert trained.code == 0, trained.err
    done = cofactor("audit", "in", "north.csv", "south.csv", "--attack", "membership", "--json")
    assert done.code == 0, done.err
    assert (done.json["figures"]["members"], done.json["figures"]["others"]) == (20, 20)
    # It has no messages, whoever asks: what anybody can do from the model.
    assert done.json["seen_by"] == "public"


def test_roles_that_collude_are_joined_by_a_plus(cofactor: Command) -> None:
    roles = ("--capture", "coordinator,party:party-1")
    assert cofactor("train", *TRAININGS["dealt"], *roles, "--out", "told-all").code == 0
    seen_by = ("--seen-by", "coordinator+party:party-1")
    done = cofactor("audit", "told-all", "--attack", "collusion", *seen_by)
    assert done.code == 0, done.err
    assert "collusion, as seen by coordinator and party:party-1" in done.out
    assert re.search(r"colluding parties +1 ", done.out)
    assert len(list(Path("told-all", "audits").glob("collusion-*.json"))) == 1
    other = cofactor("audit", "told-all", "--attack", "collusion", "--seen-by", "party:party-2")
    assert (other.code, "--capture party:party-2" in other.err) == (2, True)
