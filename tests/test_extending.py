"""The page for researchers says what happens: all of its code is run as it stands there, and what it prints.

Blocks are written to files under the names above them, so that they import each other as on the page.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copy

import numpy as np
import pytest

import cofactor as cf
from cofactor.errors import ConfigError
from cofactor.federation.drive import Session, drive, farewell
from cofactor.federation.federation import Federation
from cofactor.federation.transcript import Transcript
from cofactor.federation.verify import verify
from cofactor.privacy.budget import Budget
from cofactor.progress import Progress
from cofactor.randomness import InsecureRandom
from cofactor.recipes.train import train
from cofactor.report.folder import Folder
from cofactor.report.page import page
from tests.federation.making import on_disk
from tests.federation.subprocess_channel import SubprocessChannel, setups

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text()
BLOCK = re.compile(r'```(?:python|diff) title="([^"]+)"\n(.*?)```(?:\n\n```text\n(.*?)```)?', re.DOTALL)
NUMBER = re.compile(r"\d[\d,.]*\d|\d")
PRIVACY = "src/cofactor/privacy"
# In this place the package takes its modules from, if it has them there.
PATCHED = "import cofactor.privacy as room, sys; room.__path__.insert(0, sys.argv.pop(1)); "
RUN = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All files of the page."""
    folder, written = tmp_path_factory.mktemp("extending"), dict[str, list[str]]()
    for name, code, _ in BLOCK.findall(PAGE):
        written.setdefault(name, []).append(code)
    for name, parts in written.items():
        (folder / name).write_text("\n\n".join(parts))
    return folder


@pytest.fixture
def beside(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The same, where they are imported from and work; what was imported is forgotten afterwards."""
    monkeypatch.syspath_prepend(place)
    monkeypatch.chdir(place)
    yield place
    for path in place.glob("*.py"):
        sys.modules.pop(path.stem, None)


def run(name: str) -> None:
    exec(compile(Path(name).read_text(), name, "exec"), {"__name__": "__main__"})


def promised(name: str) -> str:
    """Return what the page says that a file prints."""
    return "".join(told for title, _, told in BLOCK.findall(PAGE) if title == name)


def figures_apart(text: str) -> str:
    """Return a text without its numbers, of which chance decides the last digits."""
    return NUMBER.sub("#", text)


def printed_as_promised(name: str, printed: str) -> None:
    assert promised(name)
    assert figures_apart(printed) == figures_apart(promised(name))


@pytest.mark.parametrize(
    "name",
    ["check_mechanism.py", "refused.py", "check_recipe.py", "refused_recipe.py", "letters.py"],
)
def test_a_file_of_the_page_prints_what_the_page_says(
    name: str, beside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(name)
    printed_as_promised(name, capsys.readouterr().out)


def test_the_first_mistake_is_told_with_the_numbers_of_the_page(
    beside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("check_mechanism.py")
    run("check_recipe.py")
    assert capsys.readouterr().out == promised("check_mechanism.py") + promised("check_recipe.py")


def test_an_own_recipe_trains_is_verified_attacked_and_reported(
    beside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("train_own.py")
    printed_as_promised("train_own.py", capsys.readouterr().out)
    run("attack_own.py")
    assert capsys.readouterr().out == promised("attack_own.py")
    folder = beside / "runs" / "offsets"
    verdict = verify(folder)
    assert verdict.holds
    assert "audits" in {check.name for check in verdict.checks}
    shown = page(Folder.read(folder))
    assert "ItemOffsets" in shown
    assert "consistent" in shown


def test_an_own_recipe_is_unknown_to_audits_that_read_it_from_a_folder(beside: Path) -> None:
    """As the page says; if this fails because it works, the page has to say so."""
    from own_parties import budget, train  # type: ignore[import-not-found]
    from own_recipe import ItemOffsets  # type: ignore[import-not-found]

    run = cf.train(ItemOffsets(), train, budget=budget)
    with pytest.raises(ConfigError, match=r"kind must be one of SecureALS.*got 'ItemOffsets'"):
        cf.audit(run, data=train)


def test_an_own_recipe_goes_on_after_a_crash(beside: Path, tmp_path: Path) -> None:
    from own_parties import budget, train
    from own_recipe import ItemOffsets

    class Crash(Exception):
        pass

    def crash(event: Progress) -> None:
        if event.stage == "round" and event.step == 3:
            raise Crash

    chance = InsecureRandom(5)
    whole = cf.train(ItemOffsets(), train, budget=budget, random=chance, folder=tmp_path / "whole")
    with pytest.raises(Crash):
        cf.train(ItemOffsets(), train, budget=budget, folder=tmp_path / "crashed", progress=crash)
    resumed = cf.train(ItemOffsets(), train, budget=budget, folder=tmp_path / "crashed")
    assert resumed.guarantee.releases == whole.guarantee.releases == 15
    rounds = [event.step for event in resumed.events if event.stage == "round"]
    assert rounds == [1, 2, 3, 4, 5]


def test_the_same_halves_give_the_same_model_in_processes_of_their_own(
    beside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from own_recipe import ItemOffsets

    monkeypatch.setenv("PYTHONPATH", str(beside))
    budget = Budget(epsilon=4, delta=1e-6, unit="user")
    for name in ("one", "many"):
        (tmp_path / name).mkdir()
    federation = Federation.horizontal(on_disk(tmp_path / "one"))
    alone = train(ItemOffsets(rounds=2), federation, budget=budget, random=InsecureRandom(5))

    federation = Federation.horizontal(on_disk(tmp_path / "many"))
    recipe, facts = ItemOffsets(rounds=2).settled(federation.facts, budget), federation.facts
    session = Session(name="s", kinds=recipe.messages, transcript=Transcript.create(None, session="s"))
    coordinator = recipe.coordinator(facts, 0)
    with SubprocessChannel(facts.parties, recipes=["own_recipe:ItemOffsets"]) as channel:
        told = setups(federation, recipe, budget, session="s", roster=channel.roster(), insecure=5)
        channel.begin(told)
        drive(coordinator, channel, session, lambda _: None)
        homes = channel.finish(farewell(coordinator, session, facts.parties))
    published = coordinator.published()
    assert alone.model is not None
    assert published is not None
    np.testing.assert_array_equal(published.item_bias, alone.model.item_bias)
    assert np.abs(published.item_bias).sum() > 0
    for party, home in homes.items():
        np.testing.assert_array_equal(home["user_bias"], alone.homes[party].user_bias)


@pytest.fixture(scope="module")
def patched(place: Path) -> Path:
    """Those modules of the package that the page changes, changed as it says."""
    room = place / "patched" / PRIVACY
    room.mkdir(parents=True)
    for name in ("mechanisms", "pairs", "losses"):
        copy(ROOT / PRIVACY / f"{name}.py", room)
    copy(place / "fair_coins.py", room)
    # One line around each change is enough to find it: others may change those files, too.
    subprocess.run(
        [
            "git",
            "apply",
            "-C1",
            "--unsafe-paths",
            f"--directory={place / 'patched'}",
            place / "fair_coins.diff",
        ],
        cwd=place,
        check=True,
    )
    return room


def test_a_mechanism_whose_law_is_told_is_composed_calibrated_charged_and_borne_out_by_evidence(
    place: Path, patched: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PATCHED + RUN, patched, "check_evidence.py"],
        cwd=place,
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed_as_promised("check_evidence.py", done.stdout)
    claimed, proved = re.findall(r"(?:claimed: epsilon|epsilon is at least) ([0-9.]+)", done.stdout)
    assert 0.75 * float(claimed) < float(proved) < float(claimed)
    ours = re.findall(r"20 rounds .*|charged: .*", done.stdout)
    assert ours == re.findall(r"20 rounds .*|charged: .*", promised("check_evidence.py"))
