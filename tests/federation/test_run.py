import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cofactor.data.ratings import Ratings
from cofactor.errors import RunError
from cofactor.factors.baselines import UserItemBias
from cofactor.federation.folder import check_free, read_facts
from cofactor.federation.run import DataFacts, Run
from cofactor.privacy.guarantee import Guarantee
from cofactor.progress import Progress


@pytest.fixture
def run() -> Run:
    ratings = Ratings.from_arrays(["a", "a", "b"], [1, 2, 1], [5.0, 1.0, 3.0])
    return Run(
        model=UserItemBias().fit(ratings),
        recipe={"kind": "Pooled", "model": {"kind": "SGD", "factors": 3}},
        seed=4,
        data=DataFacts.of(ratings),
        created="2026-01-01T00:00:00+00:00",
        seconds=1.5,
        events=(Progress("sgd", 1, 2), Progress("sgd", 2, 2, "done")),
    )


def test_saved_run_comes_back_the_same(run: Run, tmp_path: Path) -> None:
    scored = run.with_scores({"pooled": {"mse": 0.5}})
    again = Run.load(scored.save(tmp_path / "deep" / "run"))
    assert again.facts() == scored.facts()
    assert again.events == run.events
    assert again.model is not None
    assert run.model is not None
    assert np.array_equal(again.model.user_bias, run.model.user_bias)
    assert again.model.user_ids.tolist() == ["a", "b"]


def test_pooled_run_promises_nothing(run: Run) -> None:
    assert run.guarantee.holds is False
    assert run.guarantee.epsilon is None
    assert "Not private" in str(run.guarantee)


def test_guarantee_is_saved_with_the_run(run: Run, tmp_path: Path) -> None:
    promised = Guarantee(epsilon=1.0, delta=1e-6, unit="user", adjacency="empty", secure_noise=True)
    folder = replace(run, guarantee=promised).save(tmp_path / "run")
    assert Run.load(folder).guarantee == promised
    assert read_facts(folder)["guarantee"]["statement"] == str(promised)


def test_folder_from_before_there_was_any_privacy_still_loads(run: Run, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "run")
    facts = json.loads((folder / "run.json").read_text())
    facts["guarantee"] = {"holds": False, "epsilon": None, "delta": None, "statement": "Not private: pooled."}
    (folder / "run.json").write_text(json.dumps(facts))
    assert str(Run.load(folder).guarantee) == "Not private: pooled."


def test_guarantee_that_was_edited_to_hold_is_damage(run: Run, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "run")
    facts = json.loads((folder / "run.json").read_text())
    facts["guarantee"]["holds"] = True
    (folder / "run.json").write_text(json.dumps(facts))
    with pytest.raises(RunError, match="contradicts itself"):
        Run.load(folder)


def test_existing_run_is_kept_unless_told_otherwise(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run")
    with pytest.raises(RunError, match="already holds a run"):
        run.with_scores({"x": {}}).save(tmp_path / "run")
    assert Run.load(tmp_path / "run").scores == {}
    run.with_scores({"x": {}}).save(tmp_path / "run", overwrite=True)
    assert Run.load(tmp_path / "run").scores == {"x": {}}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_folder_that_is_no_run_is_never_replaced(run: Run, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(RunError, match="not a run folder"):
        run.save(tmp_path, overwrite=True)
    assert (tmp_path / "thesis.txt").exists()


def test_failed_save_leaves_the_old_run_alone(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.save(tmp_path / "run")
    monkeypatch.setattr("json.dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run.save(tmp_path / "run", overwrite=True)
    monkeypatch.undo()
    assert Run.load(tmp_path / "run").seed == 4


@pytest.mark.parametrize("damage", ["", "[]", '{"seed": 1}', "{"])
def test_damaged_facts_are_reported_as_such(damage: str, run: Run, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "run")
    (folder / "run.json").write_text(damage)
    with pytest.raises(RunError, match="damaged"):
        Run.load(folder)


@pytest.mark.parametrize("name", ["events.jsonl", "model.npz"])
def test_missing_file_is_reported_as_such(name: str, run: Run, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "run")
    (folder / name).unlink()
    with pytest.raises(RunError, match=name.split(".")[0]):
        Run.load(folder)


def test_newer_folder_is_refused(run: Run, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "run")
    facts = json.loads((folder / "run.json").read_text()) | {"format": 99}
    (folder / "run.json").write_text(json.dumps(facts))
    with pytest.raises(RunError, match="newer cofactor"):
        read_facts(folder)


def test_saving_touches_no_neighbour(run: Run, tmp_path: Path) -> None:
    for name in ("run.old", "run.part"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes.txt").write_text("precious")
    run.save(tmp_path / "run")
    run.save(tmp_path / "run", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.old", "run.part"]
    assert (tmp_path / "run.old" / "notes.txt").read_text() == "precious"


def test_failed_swap_puts_the_old_run_back(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run.save(tmp_path / "run")
    rename = Path.rename

    def broken(self: Path, target: Path) -> Path:
        if self.suffix == ".part":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", broken)
    with pytest.raises(RunError, match="No space left"):
        run.with_scores({"x": {}}).save(tmp_path / "run", overwrite=True)
    monkeypatch.undo()
    assert Run.load(tmp_path / "run").scores == {}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_folder_below_a_file_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text("")
    with pytest.raises(RunError, match=r"no writing to .*ratings\.csv"):
        check_free(tmp_path / "ratings.csv" / "run", overwrite=True)


def test_folder_one_is_in_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunError, match="the folder you are in"):
        check_free(Path(), overwrite=True)


def test_empty_folder_may_be_filled(run: Run, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert Run.load(run.save(tmp_path / "run")).seed == 4


def test_seconds_are_kept(run: Run, tmp_path: Path) -> None:
    assert Run.load(run.save(tmp_path / "run")).seconds == 1.5
