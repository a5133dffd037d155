import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cofactor.data.ratings import Ratings
from cofactor.errors import RunError, UnknownId
from cofactor.factors.baselines import UserItemBias
from cofactor.federation.federation import Federation
from cofactor.federation.folder import check_free, read_facts
from cofactor.federation.run import DataFacts, Run
from cofactor.privacy.guarantee import Guarantee
from cofactor.progress import Progress
from cofactor.randomness import SecureRandom
from tests.federation.making import RatingSums, parties, trained, vertical


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


@pytest.fixture(scope="module")
def together() -> Run:
    return trained(random=SecureRandom())


def test_run_of_several_parties_comes_back_the_same(together: Run, tmp_path: Path) -> None:
    folder = together.save(tmp_path / "run")
    again = Run.load(folder)
    assert again.facts() == together.facts()
    assert again.facts()["format"] == 3
    assert again.events == together.events
    assert again.together == together.together
    assert again.guarantee == together.guarantee
    assert again.guarantee.holds
    assert set(again.homes) == {"north", "south", "west"}
    assert again.model is not None
    assert together.model is not None
    assert np.array_equal(again.model.item_bias, together.model.item_bias)
    for party, home in together.homes.items():
        assert again.homes[party].user_ids.tolist() == home.user_ids.tolist()


def test_progress_keeps_its_numbers(together: Run, tmp_path: Path) -> None:
    last = Run.load(together.save(tmp_path / "run")).events[-1]
    assert last.numbers["answered"] == 3.0
    assert last.numbers["epsilon"] == pytest.approx(4.0, rel=0.01)
    assert last.numbers["bytes"] > 0


def test_parties_may_have_dots_in_their_names(tmp_path: Path) -> None:
    named = [replace(party, name=f"{party.name} no. 1") for party in parties(2)]
    run = trained(federation=Federation.horizontal(named))
    again = Run.load(run.save(tmp_path / "run"))
    assert set(again.homes) == {"north no. 1", "south no. 1"}
    assert again.together == run.together


def test_run_without_a_budget_has_no_ledgers(tmp_path: Path) -> None:
    run = trained(budget=None)
    again = Run.load(run.save(tmp_path / "run"))
    assert again.together == run.together
    assert again.together is not None
    assert not again.together.ledgers
    assert again.together.budget is None


def test_run_without_a_common_model_comes_back(together: Run, tmp_path: Path) -> None:
    again = Run.load(replace(together, model=None).save(tmp_path / "run"))
    assert again.model is None
    assert set(again.homes) == set(together.homes)


def test_folder_of_the_first_format_still_loads(run: Run, tmp_path: Path) -> None:
    folder = run.save(tmp_path / "run")
    facts = json.loads((folder / "run.json").read_text()) | {"format": 1}
    del facts["together"]
    (folder / "run.json").write_text(json.dumps(facts))
    old = [{"stage": "sgd", "step": 1, "steps": 2, "note": ""}]
    (folder / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in old))
    again = Run.load(folder)
    assert again.together is None
    assert not again.homes
    assert again.events == (Progress("sgd", 1, 2),)


@pytest.mark.parametrize("name", ["transcript.jsonl", "homes/north.npz", "events.jsonl", "model.npz"])
def test_damaged_piece_of_a_common_run_is_named(name: str, together: Run, tmp_path: Path) -> None:
    folder = together.save(tmp_path / "run")
    (folder / name).unlink()
    if name in ("homes/north.npz", "model.npz"):
        (folder / name).write_bytes(b"PK nonsense")
    with pytest.raises(RunError, match=name):
        Run.load(folder)


@pytest.mark.parametrize("damage", [{"parties": {"north": {"colour": 1}}}, {"rounds": 1}, 5], ids=str)
def test_damaged_facts_of_a_common_run_are_reported_as_such(
    damage: object, together: Run, tmp_path: Path
) -> None:
    folder = together.save(tmp_path / "run")
    facts = json.loads((folder / "run.json").read_text()) | {"together": damage}
    (folder / "run.json").write_text(json.dumps(facts))
    with pytest.raises(RunError, match="damaged"):
        Run.load(folder)


def test_user_is_served_by_her_own_party(together: Run) -> None:
    north = int(together.homes["north"].user_ids[0])
    assert together.model_of(north) is together.homes["north"]
    assert together.recommend(north, 2) == together.homes["north"].recommend(north, 2)
    assert together.model_of(north, "south") is together.homes["south"]
    with pytest.raises(UnknownId, match="no user 999 at any of the parties"):
        together.model_of(999)
    with pytest.raises(UnknownId, match="no party 'east'"):
        together.model_of(north, "east")


def test_user_at_several_parties_must_name_one() -> None:
    run = trained(RatingSums(), vertical(), budget=None)
    with pytest.raises(UnknownId, match="user 3 is at 3 parties"):
        run.model_of(3)
    assert run.model_of(3, "west") is run.homes["west"]


def test_titles_reach_all_models(together: Run) -> None:
    titled = together.with_titles({0: "Zero"})
    assert titled.model is not None
    for model in (titled.model, *titled.homes.values()):
        assert model.titles is not None
        assert model.titles[0] == "Zero"
    assert together.with_titles({}) is together


def test_run_that_kept_no_model_says_so(run: Run) -> None:
    with pytest.raises(RunError, match="kept no model"):
        replace(run, model=None).recommend("a")
