"""Runs in which every user is a device: simulated from one file, or with a file each."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from cofactor.cli import choose, main
from cofactor.cli.parties import checked_failures
from cofactor.cli.settings import FederationWish, RecipeWish
from cofactor.errors import ConfigError
from cofactor.federation.channel import Failures
from cofactor.federation.folder import read_facts
from cofactor.federation.run import Run
from cofactor.recipes.local_reports import LocalReports
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.secure_als import SecureALS
from tests.cli import worlds

Command = Any
PHONES = tuple(f"phone{number}.csv" for number in range(5))
FEW = ("--factors", "2", "--rounds", "2", "-q")
OWN = ("--recipe", "on-device-mf", *FEW)
"""A recipe of a few rounds, which begins with a first stage."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of simulated devices, and one of five phones with a file each."""
    folder = worlds.write(tmp_path_factory.mktemp("devices"))
    for number, file in enumerate(PHONES):
        own = worlds.RATINGS.where(worlds.RATINGS.users == number)
        (folder / file).write_text(worlds.text(own))
    shared = ("--split", "on-device", "--epsilon", "4", "--test-fraction", "0.2", *OWN)
    played = ("all.csv", *shared, "--drop", "0.1", "--items", "table.csv", "--out", "played")
    phones = (*PHONES, *shared, "--scale", "1:5", "--out", "phones")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for words in (played, phones):
            patched.setattr("sys.argv", ["cofactor", "train", *words])
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
                main()
            (folder / f"{words[-1]}.txt").write_text(out.getvalue())
    return folder


@pytest.fixture(autouse=True)
def _here(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)


def test_every_user_of_one_file_is_a_device_and_nobody_has_a_ledger(world: Path) -> None:
    said, facts = Path("played.txt").read_text(), read_facts("played")
    assert "60 devices (on-device, make-believe)" in said
    assert "in all messages of the one who plays all devices" in said
    assert facts["recipe"]["kind"] == "OnDeviceMF"
    assert facts["together"]["parties"]["devices"]["users"] == 60
    assert facts["guarantee"]["unit"] == "user"
    assert not (world / "all.csv.ledger").exists()


def test_rounds_that_were_lost_to_dropouts_are_told(cofactor: Command, tmp_path: Path) -> None:
    words = ("all.csv", "--split", "on-device", "--not-private", *OWN[:-3], "--rounds", 6, "-q")
    done = cofactor("train", *words, "--dropout", 0.3, "--drop", 0.29, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert "each device was made to drop out with probability 0.29." in done.out
    events = Run.load(tmp_path / "run").rounds
    lost = sum(event.numbers["answered"] == 0 for event in events)
    assert 0 < lost < 6
    assert f"{lost} of 6 rounds brought nothing: too few were left." in done.out
    assert "brought nothing" not in Path("played.txt").read_text()


def test_played_devices_are_not_said_to_be_safe_if_all_others_collude() -> None:
    assert "other parties collude" not in Path("played.txt").read_text()
    assert "other parties collude: epsilon" in Path("phones.txt").read_text()


def test_devices_are_compared_with_what_they_have_of_their_own() -> None:
    for run in ("played", "phones"):
        scores = read_facts(run)["scores"]
        assert list(scores) == ["user_mean", "stage_1", "private", "pooled"]
        said = Path(f"{run}.txt").read_text()
        assert re.search(r"All together: joining .* the users.*by own mean, \d\.\d+ together\)\.", said)
    assert "mse by party" not in Path("played.txt").read_text()
    by_party = Path("phones.txt").read_text().partition("mse by party")[2]
    assert re.search(r"party +user_mean +stage_1 +private +pooled *\n", by_party)


def test_every_file_of_one_user_is_a_device_with_a_ledger(cofactor: Command) -> None:
    facts = read_facts("phones")
    assert list(facts["together"]["parties"]) == [file.removesuffix(".csv") for file in PHONES]
    assert facts["recipe"]["aggregate"]["kind"] == "SecureSum"
    assert facts["guarantee"]["holds"] is True
    shown = cofactor("budget", PHONES[0], "--json").json
    assert len(shown["runs"]) == 1
    assert "about 250 ratings by 5 users" in cofactor("show", "phones").out
    assert "5 devices (on-device)" in cofactor("show", "phones").out


def test_devices_tell_a_guess_of_how_many_ratings_they_have(cofactor: Command, tmp_path: Path) -> None:
    for name in PHONES:
        (tmp_path / name).write_text(Path(name).read_text())
    files = [tmp_path / name for name in PHONES]
    shared = ("--split", "on-device", "--not-private", "--scale", "1:5", "--ratings-each", 20)
    done = cofactor("train", *files, *shared, *OWN, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    parties = read_facts(tmp_path / "run")["together"]["parties"]
    assert {own["ratings"] for own in parties.values()} == {20}
    again = cofactor("train", *files, "--from", tmp_path / "run", "-q", "--out", tmp_path / "again")
    assert again.code == 0, again.err
    assert read_facts(tmp_path / "again")["together"]["parties"] == parties


def test_both_runs_can_be_verified(cofactor: Command) -> None:
    done = cofactor("verify", "phones", "--ledger", PHONES[0])
    assert (done.code, "Everything is as the folder says." in done.out) == (0, True)
    done = cofactor("verify", "played")
    assert (done.code, "it promises no privacy" in done.out) == (0, True)


def test_show_does_not_know_what_one_of_many_played_devices_loses(cofactor: Command) -> None:
    assert re.search(r"devices +60 +40 +\d+ +[\d.]+ kB +- ", cofactor("show", "played").out)
    assert re.search(r"phone0 +1 +\d+ +\d+ +[\d.]+ kB +\d", cofactor("show", "phones").out)


def test_measured_again_they_are_as_they_were(cofactor: Command) -> None:
    again = cofactor("compare", "played", "all.csv", "--test-fraction", 0.2, "--json")
    assert again.code == 0, again.err
    for name, score in read_facts("played")["scores"].items():
        assert again.json["scores"][name]["mse"] == pytest.approx(score["mse"], rel=1e-4), name
    assert again.json["joining"]["sentence"].startswith("joining ")
    words = ("compare", "phones", *PHONES, "--test-fraction", 0.2, "--scale", "1:5", "--json")
    found = cofactor(*words)
    assert found.code == 0, found.err
    assert set(found.json["parties"]) == set(read_facts("phones")["together"]["parties"])
    other = cofactor("compare", "played", "all.csv", "--test-fraction", 0.3)
    assert (other.code, "training ratings" in other.err) == (2, True)


@pytest.mark.parametrize("run", ["played", "phones"])
def test_user_is_served_by_her_own_device(run: str, cofactor: Command) -> None:
    done = cofactor("recommend", run, "--user", "u3", "-n", 2, "--json")
    assert done.code == 0, done.err
    [one] = done.json["recommendations"]
    wanted = Run.load(run).recommend("u3", 2)
    assert [best["item"] for best in one["items"]] == [best.item for best in wanted]
    stranger = cofactor("recommend", run, "--user", "u77")
    assert (stranger.code, "no user 'u77'" in stranger.err) == (2, True)


def test_new_user_is_folded_in(cofactor: Command) -> None:
    done = cofactor("recommend", "played", "--rate", "i1=5", "--rate", "i2=1", "-n", 3, "--json")
    assert done.code == 0, done.err
    assert len(done.json["recommendations"][0]["items"]) == 3


def test_simulation_is_trained_again_from_its_run(cofactor: Command, tmp_path: Path) -> None:
    words = ("all.csv", "--from", "played", "--drop", 0.2, "-q", "--out", tmp_path / "again")
    done = cofactor("train", *words)
    assert done.code == 0, done.err
    assert (
        read_facts(tmp_path / "again")["recipe"]["aggregate"] == read_facts("played")["recipe"]["aggregate"]
    )


def test_local_reports_are_a_recipe_for_devices(cofactor: Command, tmp_path: Path) -> None:
    words = ("all.csv", "--split", "on-device", "--recipe", "local-reports", "--epsilon", 4, *FEW)
    done = cofactor("train", *words, "--drop", 0.4, "--test-fraction", 0.2, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    facts = read_facts(tmp_path / "run")
    assert facts["recipe"]["kind"] == "LocalReports"
    assert list(facts["scores"]) == ["user_mean", "private", "pooled"]
    assert facts["guarantee"]["holds"] is True


def test_without_a_name_devices_get_the_recipe_for_them() -> None:
    def chosen(**said: Any) -> Any:
        return choose.chosen_recipe(RecipeWish(**said), "on-device", None, 1)

    assert chosen() == SecureALS()
    assert chosen(recipe="local-reports") == LocalReports()
    assert chosen(published=True) == OnDeviceMF.as_published()


def failures(drop: float | None, recipe: Any = None, *, split: Any = "on-device", files: int = 1) -> Failures:
    paths = [Path(f"{number}.csv") for number in range(files)]
    return checked_failures(FederationWish(drop=drop), split, paths, recipe or OnDeviceMF())


def test_so_many_devices_drop_out_as_was_asked_for() -> None:
    assert failures(None) == failures(0.0) == Failures()
    assert failures(0.2) == Failures(devices=0.2)
    assert failures(0.7, LocalReports()) == Failures(devices=0.7)


def test_dropouts_reach_the_training(
    cofactor: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    heard: list[Failures] = []

    def stop(*_: object, failures: Failures, **__: object) -> None:
        heard.append(failures)
        raise ConfigError("enough")

    monkeypatch.setattr("cofactor.recipes.train.train", stop)
    words = ("all.csv", "--split", "on-device", "--epsilon", 1, "--dropout", 0.5, "--drop", 0.4)
    assert cofactor("train", *words, "--out", tmp_path / "run").code == 2
    table = (
        '[federation]\nsplit = "on-device"\ndrop = 0.4\n[recipe.aggregate]\nkind = "SecureSum"\ndropout = 0.5'
    )
    (tmp_path / "train.toml").write_text(table)
    config = ("--config", tmp_path / "train.toml", "--epsilon", 1)
    assert cofactor("train", "all.csv", *config, "--out", tmp_path / "run").code == 2
    assert heard == [Failures(devices=0.4)] * 2


def test_dropouts_that_leave_nothing_to_open_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"nothing is opened if more than 0\.3 are"):
        failures(0.3)
    with pytest.raises(ConfigError, match="drop must lie between 0 and 1"):
        failures(-0.1)
    with pytest.raises(ConfigError, match="one file and --split on-device"):
        failures(0.1, split="horizontal")
    with pytest.raises(ConfigError, match="one file and --split on-device"):
        failures(0.1, files=2)
