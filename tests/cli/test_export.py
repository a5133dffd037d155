"""`cofactor export --out`: items for other programs, and nothing about users."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from cofactor.data.ratings import Scale
from cofactor.factors.model import Factors
from cofactor.federation.run import NOT_PRIVATE, DataFacts, Run, Together
from cofactor.privacy.guarantee import Guarantee
from tests.conftest import Command

PROMISE = Guarantee(epsilon=2.0, delta=1e-6, unit="user", adjacency="empty")
TOGETHER = Together(
    split="horizontal", session="s", simulated=False, budget=None, parties={}, rounds=1, traffic=1
)
SECRET = "secret-user"


def model(items: Any, factors: int = 3, seed: int = 1) -> Factors:
    random = np.random.default_rng(seed)

    def numbers(*shape: int) -> np.ndarray:
        return random.normal(0, 1, shape).astype(np.float32)

    return Factors(
        user_ids=np.array([SECRET, "bob"]),
        item_ids=np.array(items),
        mean=3.25,
        user_bias=numbers(2),
        item_bias=numbers(len(items)),
        user_vectors=numbers(2, factors),
        item_vectors=numbers(len(items), factors),
        scale=Scale(1, 5),
        titles=np.array([f"film {item}" if k else "" for k, item in enumerate(items)]),
    )


PUBLIC, OWN = model(["i1", "i2", "i 3,x", "i4"]), model([10, 20], seed=2)


def saved(folder: Path, **parts: Any) -> Path:
    data = DataFacts(users=2, items=4, ratings=9, scale="1 to 5")
    given: dict[str, Any] = {
        "model": PUBLIC,
        "guarantee": PROMISE,
        "homes": {"north": OWN},
        "together": TOGETHER,
    }
    Run(**given | parts, recipe={"kind": "SecureALS"}, seed=0, data=data, created="now", seconds=0.0).save(
        folder
    )
    return folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "run")
    return Path("run")


def test_arrays_are_those_of_the_released_model_and_need_no_pickle(run: Path, cofactor: Command) -> None:
    done = cofactor("export", run, "--out", "items.npz", "--json")
    assert done.code == 0, done.err
    assert done.json["protection"] == "RELEASED"
    assert (done.json["items"], done.json["factors"]) == (4, 3)
    with np.load("items.npz", allow_pickle=False) as arrays:
        for name in ("item_ids", "titles", "item_bias", "item_vectors"):
            np.testing.assert_array_equal(arrays[name], getattr(PUBLIC, name))
        assert arrays["mean"] == PUBLIC.mean
        assert arrays["scale"].tolist() == [1, 5]
        assert str(arrays["protection"]) == "RELEASED"


def test_table_has_a_row_for_each_item_and_its_vector_in_one_column(run: Path, cofactor: Command) -> None:
    assert cofactor("export", run, "--out", "items.parquet").code == 0
    table = pl.read_parquet("items.parquet")
    assert table.schema == {
        "item": pl.String, "title": pl.String, "bias": pl.Float32, "vector": pl.Array(pl.Float32, 3)
    }  # fmt: skip
    assert table["item"].to_list() == PUBLIC.item_ids.tolist()
    assert table["title"].to_list() == [None, *PUBLIC.titles[1:].tolist()]  # type: ignore[index]
    np.testing.assert_array_equal(table["bias"], PUBLIC.item_bias)
    np.testing.assert_array_equal(table["vector"].to_numpy(), PUBLIC.item_vectors)


def test_csv_has_a_column_for_each_number_of_a_vector(run: Path, cofactor: Command) -> None:
    assert cofactor("export", run, "--out", "items.csv").code == 0
    table = pl.read_csv("items.csv")
    assert table.columns == ["item", "title", "bias", "vector_1", "vector_2", "vector_3"]
    assert table["item"].to_list() == PUBLIC.item_ids.tolist()
    np.testing.assert_allclose(table.select(table.columns[3:]).to_numpy(), PUBLIC.item_vectors, rtol=1e-6)


def test_exported_items_are_enough_to_predict(run: Path, cofactor: Command) -> None:
    assert cofactor("export", run, "--out", "items.npz").code == 0
    with np.load("items.npz", allow_pickle=False) as arrays:
        ratings = arrays["item_vectors"] @ PUBLIC.user_vectors[1] + arrays["item_bias"]
        ratings = np.clip(ratings + arrays["mean"] + PUBLIC.user_bias[1], *arrays["scale"])
    np.testing.assert_allclose(ratings, PUBLIC.predict("bob", PUBLIC.item_ids.tolist()), rtol=1e-5)


@pytest.mark.parametrize("ending", ["npz", "parquet", "csv"])
@pytest.mark.parametrize("factors", [0, 3])
def test_nothing_of_any_user_is_in_a_file(
    ending: str, factors: int, tmp_path: Path, cofactor: Command
) -> None:
    run = saved(tmp_path / "one", model=model(["i1", "i2"], factors), guarantee=NOT_PRIVATE)
    out = tmp_path / f"items.{ending}"
    assert cofactor("export", run, "--out", out).code == 0
    if ending == "npz":
        with np.load(out, allow_pickle=False) as arrays:
            assert not [name for name in arrays if "user" in name]
            assert arrays["item_vectors"].shape == (2, factors)
    else:
        table = (pl.read_csv if ending == "csv" else pl.read_parquet)(out)
        assert (len(table), "user" in " ".join(table.columns)) == (2, False)
        assert SECRET not in str(table.to_dicts())


def test_party_s_own_model_is_local_and_only_named_parties_are_exported(run: Path, cofactor: Command) -> None:
    done = cofactor("export", run, "--out", "north.npz", "--party", "north")
    assert done.code == 0, done.err
    assert "LOCAL: from north's own model, which no guarantee covers: as private as its ratings." in done.out
    with np.load("north.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["item_vectors"], OWN.item_vectors)
        assert arrays["item_ids"].tolist() == [10, 20]


def test_run_that_published_nothing_names_its_parties(tmp_path: Path, cofactor: Command) -> None:
    run = saved(tmp_path / "run", model=None, homes={"north": OWN, "south": OWN})
    done = cofactor("export", run, "--out", tmp_path / "items.npz")
    assert (done.code, done.out, (tmp_path / "items.npz").exists()) == (2, "", False)
    assert re.search(r"LOCAL, and as private as their ratings.*--party north or south", done.err)


@pytest.mark.parametrize(
    ("promise", "why"),
    [(NOT_PRIVATE, "no noise was added"), (replace(PROMISE, why_not=("No.",)), "guarantee does not hold")],
)
def test_what_no_promise_protects_is_never_called_released(
    promise: Guarantee, why: str, tmp_path: Path, cofactor: Command
) -> None:
    run = saved(tmp_path / "run", guarantee=promise)
    done = cofactor("export", run, "--out", tmp_path / "items.csv", "--json")
    assert done.json["protection"] == "NOT PRIVATE"
    assert why in done.json["from"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), r"name one of --out FILE, for item factors, and --mlflow URI"),
        (("--out", "a.npz", "--mlflow", "file:b"), r"name one of --out"),
        (("--out", "items.pkl"), r"items.pkl must end in .npz, .parquet or .csv"),
        (("--out", "there.npz"), r"there.npz is there already.*--force"),
        (("--out", "run/items.npz"), r"lie in a run folder"),
        (("--out", "a.npz", "--party", "nort"), r"there is no party 'nort'. There are north"),
        (("--mlflow", "file:b", "--party", "north"), r"--party goes with --out"),
    ],
)
def test_mistakes_are_named_and_lose_nothing(
    words: tuple[str, ...], message: str, run: Path, cofactor: Command
) -> None:
    Path("there.npz").write_text("precious")
    before = sorted(map(str, Path().rglob("*")))
    done = cofactor("export", run, *words)
    assert (done.code, done.out) == (2, "")
    assert re.search(message, done.err), done.err
    assert sorted(map(str, Path().rglob("*"))) == before
    assert Path("there.npz").read_text() == "precious"


def test_run_with_one_model_has_no_party_to_export(tmp_path: Path, cofactor: Command) -> None:
    run = saved(tmp_path / "run", homes={}, together=None, guarantee=NOT_PRIVATE)
    done = cofactor("export", run, "--out", tmp_path / "items.csv", "--party", "north")
    assert (done.code, "one model for all" in done.err) == (2, True)


def test_help_says_why_users_stay_where_they_are(cofactor: Command) -> None:
    told = " ".join(cofactor("export", "--help").out.replace("│", " ").split())
    assert "Never a user's vector, which tells what she likes as her ratings do" in told
