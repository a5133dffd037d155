"""`cofactor recommend --out`: one table with the lists of all users."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from cofactor.cli import recommend_all
from cofactor.data import partition
from cofactor.data.ratings import Ratings
from cofactor.data.synthetic import Shape, make
from cofactor.factors.als import ALS
from cofactor.factors.baselines import Popularity
from cofactor.factors.model import Factors, HomeFit
from cofactor.federation.run import NOT_PRIVATE, DataFacts, Run, Together
from cofactor.privacy.guarantee import Guarantee
from tests.conftest import Command

RATINGS = make(Shape(users=30, items=25, ratings=300, minimum=5), seed=2).ratings
TITLES: dict[Any, str] = {item: f"Film {item}" for item in RATINGS.item_ids.tolist()[1:]}
MODEL = ALS(factors=3, epochs=2).fit(RATINGS)
TOGETHER = Together(
    split="horizontal", session="s", simulated=True, budget=None, parties={}, rounds=1, traffic=1
)


def saved(folder: Path, model: Factors | None = MODEL, **parts: Any) -> Path:
    settings: dict[str, Any] = {"recipe": {}, "seed": 0, "created": "now", "seconds": 0.0}
    Run(model=model, data=DataFacts.of(RATINGS), **settings | parts).with_titles(TITLES).save(folder)
    return folder


def homes(parts: list[Ratings]) -> dict[str, Factors]:
    """Fit a model for each party; they are named so that files sort them as they are dealt."""
    return {f"shop-{number}": ALS(factors=2, epochs=1).fit(part) for number, part in enumerate(parts)}


def rows_of(
    run: Run, n: int = 10, *, party: str | None = None, include_seen: bool = False
) -> list[tuple[Any, ...]]:
    """Return the table as `recommend` would make it, a user at a time."""
    models = run.homes if party is None and run.homes else {party: run.model_of("", party)}
    return [
        (owner, user, rank, best.item, best.title, best.score, best.rating)
        for owner, model in models.items()
        for user in model.user_ids.tolist()
        for rank, best in enumerate(model.recommend(user, n, include_seen=include_seen), 1)
    ]


def same(table: pl.DataFrame, rows: list[tuple[Any, ...]]) -> None:
    """Compare: words exactly, scores as far as their type reaches."""
    wanted = pl.DataFrame(
        rows, schema=["party", "user", "rank", "item", "title", "score", "rating"], orient="row"
    )
    for name in set(table.columns) - {"score", "rating"}:
        assert table[name].to_list() == wanted[name].to_list(), name
    for name in ("score", "rating"):
        np.testing.assert_allclose(table[name], wanted[name].to_numpy(), rtol=1e-5)


@pytest.mark.parametrize("n", [3, 100])
@pytest.mark.parametrize("seen", [(), ("--include-seen",)])
def test_each_list_is_what_recommend_gives_that_user(
    n: int, seen: tuple[str, ...], tmp_path: Path, cofactor: Command
) -> None:
    run = saved(tmp_path / "run")
    done = cofactor("recommend", run, "--out", tmp_path / "recs.parquet", "-n", n, *seen)
    assert done.code == 0, done.err
    table = pl.read_parquet(tmp_path / "recs.parquet")
    assert table.columns == ["user", "rank", "item", "title", "score", "rating"]
    same(table, rows_of(Run.load(run), n, include_seen=bool(seen)))
    assert f"30 lists, {len(table):,} rows" in done.out
    assert "Treat it as private as they are" in done.out


def test_items_without_a_title_have_none(tmp_path: Path, cofactor: Command) -> None:
    run, out = saved(tmp_path / "run"), tmp_path / "recs.parquet"
    assert cofactor("recommend", run, "--out", out, "-n", 25).code == 0
    table = pl.read_parquet(out)
    untitled = table.filter(pl.col("title").is_null())["item"].unique().to_list()
    assert untitled == [RATINGS.item_ids[0].item()]


def test_csv_holds_the_same_rows_as_parquet(tmp_path: Path, cofactor: Command) -> None:
    run = saved(tmp_path / "run")
    for ending in ("csv", "parquet"):
        assert cofactor("recommend", run, "--out", tmp_path / f"recs.{ending}", "-n", 4).code == 0
    table, text = pl.read_parquet(tmp_path / "recs.parquet"), pl.read_csv(tmp_path / "recs.csv")
    assert text.columns == table.columns
    for name in text.columns:
        if name in ("score", "rating"):
            np.testing.assert_allclose(text[name], table[name], rtol=1e-5)
        else:
            assert text[name].to_list() == table[name].to_list(), name


def test_horizontal_parties_are_told_apart_and_titles_are_there(tmp_path: Path, cofactor: Command) -> None:
    own = homes(partition.horizontal(RATINGS, 3))
    run, out = saved(tmp_path / "run", None, homes=own, together=TOGETHER), tmp_path / "recs.parquet"
    assert cofactor("recommend", run, "--out", out, "-n", 4).code == 0
    table = pl.read_parquet(out)
    assert table["party"].unique().sort().to_list() == list(own)
    assert table["user"].n_unique() == 30
    same(table, rows_of(Run.load(run), 4))


def test_vertical_parties_each_have_a_list_for_every_user(tmp_path: Path, cofactor: Command) -> None:
    own = homes(partition.vertical(RATINGS, 3))
    together = replace(TOGETHER, split="vertical")
    run, out = saved(tmp_path / "run", None, homes=own, together=together), tmp_path / "recs.csv"
    assert cofactor("recommend", run, "--out", out, "-n", 2).code == 0
    same(pl.read_csv(out), rows_of(Run.load(run), 2))
    done = cofactor("recommend", run, "--out", out, "--party", "shop-1", "-n", 2, "--force", "--json")
    assert done.json["users"] == len(own["shop-1"].user_ids)
    table = pl.read_csv(out)
    assert table["party"].unique().to_list() == ["shop-1"]
    same(table, rows_of(Run.load(run), 2, party="shop-1"))


def test_devices_that_one_participant_plays_are_no_parties(tmp_path: Path, cofactor: Command) -> None:
    together = replace(TOGETHER, split="on-device")
    run = saved(tmp_path / "run", None, homes={"devices": MODEL}, together=together)
    assert cofactor("recommend", run, "--out", tmp_path / "recs.csv").code == 0
    assert "party" not in pl.read_csv(tmp_path / "recs.csv").columns


def test_ids_are_text_if_any_party_has_words(tmp_path: Path, cofactor: Command) -> None:
    north, south = homes(partition.horizontal(RATINGS, 2)).values()
    named = replace(south, user_ids=np.array([f"u{user}" for user in south.user_ids]))
    own = {"north": north, "south": named}
    run, out = saved(tmp_path / "run", None, homes=own, together=TOGETHER), tmp_path / "recs.parquet"
    assert cofactor("recommend", run, "--out", out).code == 0
    users = pl.read_parquet(out)["user"].unique().to_list()
    assert set(users) == {str(user) for model in own.values() for user in model.user_ids.tolist()}


def test_implicit_models_have_scores_and_no_ratings(tmp_path: Path, cofactor: Command) -> None:
    run = saved(tmp_path / "run", Popularity().fit(RATINGS))
    assert cofactor("recommend", run, "--out", tmp_path / "recs.parquet", "-n", 3).code == 0
    table = pl.read_parquet(tmp_path / "recs.parquet")
    assert table["rating"].is_null().all()
    assert table["score"].is_not_null().all()


def test_lists_of_new_users_are_made_from_their_ratings(tmp_path: Path, cofactor: Command) -> None:
    run = saved(tmp_path / "run")
    items = RATINGS.item_ids.tolist()
    (tmp_path / "new.csv").write_text(
        f"user,item,rating\nann,{items[0]},5\nbob,{items[3]},2\nann,{items[1]},4\nbob,no-such-film,1\n"
    )
    done = cofactor(
        "recommend", run, "--ratings", tmp_path / "new.csv", "--out", tmp_path / "recs.csv", "-n", 3
    )
    assert done.code == 0, done.err
    assert "1 ratings of items the model does not know are left out" in done.err
    table = pl.read_csv(tmp_path / "recs.csv")
    model = Run.load(run).model
    assert model is not None
    rated: dict[str, dict[Any, float]] = {"ann": {items[0]: 5, items[1]: 4}, "bob": {items[3]: 2}}
    for user, ratings in rated.items():
        best = model.fold_in(ratings, user=user).recommend(user, 3)
        assert table.filter(pl.col("user") == user)["item"].to_list() == [each.item for each in best]


def test_table_is_made_in_parts_that_are_put_together_in_order(
    tmp_path: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = saved(tmp_path / "run")
    assert cofactor("recommend", run, "--out", tmp_path / "whole.parquet", "-n", 4).code == 0
    monkeypatch.setattr(recommend_all, "_ROWS", 12)
    written: list[int] = []
    write = pl.DataFrame.write_parquet

    def counted(self: pl.DataFrame, *words: Any) -> None:
        written.append(len(self))
        write(self, *words)

    monkeypatch.setattr(pl.DataFrame, "write_parquet", counted)
    assert cofactor("recommend", run, "--out", tmp_path / "parts.parquet", "-n", 4).code == 0
    assert written == [12] * 10
    assert pl.read_parquet(tmp_path / "parts.parquet").equals(pl.read_parquet(tmp_path / "whole.parquet"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "recs.xlsx"), r"recs.xlsx must end in .parquet or .csv"),
        (("--out", "nowhere/recs.csv"), r"there is no folder nowhere to write recs.csv to"),
        (("--out", "run/recs.csv"), r"would lie in a run folder, whose files are sealed"),
        (("--out", "folder.csv"), r"folder.csv is a folder. Name a file"),
        (("--out", "there.csv"), r"there.csv is there already. Name another file, or add --force"),
        (("--out", "recs.csv", "--user", "1"), r"Leave out --user, or --out"),
        (("--out", "recs.csv", "--rate", "1=2", "--new-items", "x.csv"), r"Leave out --rate, --new-items"),
        (("--out", "recs.csv", "--party", "north"), r"one model for all.*Leave out --party"),
        (("--user", "1", "--force"), r"--force replaces a table, and none is written without --out"),
        ((), r"or --out FILE for lists of all users"),
    ],
)
def test_mistakes_are_named_before_anything_is_written(
    words: tuple[str, ...], message: str, tmp_path: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "run")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "there.csv").write_text("precious")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    done = cofactor("recommend", "run", *words)
    assert (done.code, done.out) == (2, "")
    assert re.search(message, done.err), done.err
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert (tmp_path / "there.csv").read_text() == "precious"


def test_force_replaces_a_table_and_a_failure_leaves_it_as_it_was(
    tmp_path: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, out = saved(tmp_path / "run"), tmp_path / "recs.csv"
    out.write_text("precious")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(recommend_all, "_join", full)
        done = cofactor("recommend", run, "--out", out, "--force")
    assert (done.code, "recs.csv: cannot be written (No space left" in done.err) == (2, True)
    assert out.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["recs.csv", "run"]
    assert cofactor("recommend", run, "--out", out, "--force").code == 0
    assert len(pl.read_csv(out)) == 300


def test_run_without_users_says_what_it_can_do(tmp_path: Path, cofactor: Command) -> None:
    arrays = {name: getattr(MODEL, name)[:0] for name in ("user_ids", "user_bias", "user_vectors")}
    nobody = replace(MODEL, **arrays, seen=None)
    run = saved(tmp_path / "run", nobody, together=TOGETHER)
    done = cofactor("recommend", run, "--out", tmp_path / "recs.csv")
    assert (done.code, "and no users" in done.err, "--ratings FILE" in done.err) == (2, True, True)


HOLDS = Guarantee(epsilon=2.0, delta=1e-6, unit="user", adjacency="empty")
BROKEN = replace(HOLDS, why_not=("The noise can be repeated.",))
RELEASED = "the model that everyone may see. The run's guarantee covers it."
NO_NOISE = "a model that may tell of the ratings: no noise was added. Treat it as private as they are."
NOT_HELD = NO_NOISE.replace("no noise was added", "the run's guarantee does not hold")
OWN = "shop-1's own model, which no guarantee covers: as private as its ratings."
OF_ALL = "the parties' own models, which no guarantee covers: as private as their ratings."
NEW = "these users' ratings: as private as those."
NEW_AND = "these users' ratings, as private as those, and from "
TO_SHARE = replace(MODEL, home=HomeFit(np.eye(3), np.ones(25)))
"""What everyone may see beside the parties' own models; new users can be fitted to it."""


def told_of(cofactor: Command, run: Path, *words: object) -> tuple[str, str]:
    """Return what is said of lists, and check that people and programs are told the same."""
    out = run.parent / "recs.csv"
    facts = cofactor("recommend", run, "--out", out, *words, "--force", "--json").json
    told = facts["warning"].removeprefix("The lists are made from ")
    shown = cofactor("recommend", run, "--out", out, *words, "--force")
    assert shown.out.splitlines()[-1] == f"{facts['protection']}: made from {told}"
    return facts["protection"], told


@pytest.mark.parametrize(
    ("promise", "protection", "told"),
    [
        (HOLDS, "RELEASED", RELEASED),
        (NOT_PRIVATE, "NOT PRIVATE", NO_NOISE),
        (BROKEN, "NOT PRIVATE", NOT_HELD),
    ],
)
def test_who_may_see_the_lists_follows_from_the_model_they_are_made_from(
    promise: Guarantee, protection: str, told: str, tmp_path: Path, cofactor: Command
) -> None:
    run = saved(tmp_path / "run", together=TOGETHER, guarantee=promise)
    assert told_of(cofactor, run) == (protection, told)


@pytest.mark.parametrize("promise", [HOLDS, NOT_PRIVATE, BROKEN])
def test_lists_of_parties_own_models_are_local_whatever_is_promised(
    promise: Guarantee, tmp_path: Path, cofactor: Command
) -> None:
    own = homes(partition.horizontal(RATINGS, 3))
    run = saved(tmp_path / "run", TO_SHARE, homes=own, together=TOGETHER, guarantee=promise)
    assert told_of(cofactor, run) == ("LOCAL", OF_ALL)
    assert told_of(cofactor, run, "--party", "shop-1") == ("LOCAL", OWN)


@pytest.mark.parametrize(
    ("promise", "words", "protection", "told"),
    [
        (HOLDS, (), "LOCAL", NEW),
        (NOT_PRIVATE, (), "NOT PRIVATE", NEW_AND + NO_NOISE),
        (BROKEN, (), "NOT PRIVATE", NEW_AND + NOT_HELD),
        (HOLDS, ("--party", "shop-1"), "LOCAL", NEW_AND + OWN),
        (NOT_PRIVATE, ("--party", "shop-1"), "LOCAL", NEW_AND + OWN),
    ],
)
def test_lists_of_new_users_tell_of_their_ratings_and_of_what_the_model_tells(
    promise: Guarantee, words: tuple[str, ...], protection: str, told: str, tmp_path: Path, cofactor: Command
) -> None:
    own = homes(partition.horizontal(RATINGS, 3))
    run = saved(tmp_path / "run", TO_SHARE, homes=own, together=TOGETHER, guarantee=promise)
    new = tmp_path / "new.csv"
    new.write_text(f"user,item,rating\nann,{RATINGS.item_ids[0]},5\n")
    assert told_of(cofactor, run, "--ratings", new, *words) == (protection, told)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_table_or_folder_may_be_called_like_a_pattern(
    ending: str, tmp_path: Path, cofactor: Command
) -> None:
    run, folder = saved(tmp_path / "run"), tmp_path / "all[1] of {2}?"
    folder.mkdir()
    out = folder / f"recs[1]*.{ending}"
    done = cofactor("recommend", run, "--out", out, "-n", 4)
    assert done.code == 0, done.err
    assert [path.name for path in folder.iterdir()] == [out.name]
    table = pl.read_parquet(out.read_bytes()) if ending == "parquet" else pl.read_csv(out.read_bytes())
    assert len(table) == 120
