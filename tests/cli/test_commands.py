import signal
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.data.ratings import Ratings
from cofactor.data.synthetic import Shape, make
from cofactor.federation.run import Run

Command = Any


def write_csv(path: Path, ratings: Ratings) -> Path:
    rows = zip(ratings.users, ratings.items, ratings.values, strict=True)
    lines = [f"u{ratings.user_ids[u]},i{ratings.item_ids[i]},{value:g}\n" for u, i, value in rows]
    path.write_text("user,item,rating\n" + "".join(lines))
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = Shape(users=80, items=60, ratings=2_000, minimum=10)
    folder = tmp_path_factory.mktemp("data")
    (folder / "titles.csv").write_text("item,title\n" + "".join(f"i{k},Film [{k}]\n" for k in range(1, 61)))
    return write_csv(folder / "ratings.csv", make(shape, seed=1).ratings)


@pytest.fixture
def trained(file: Path, tmp_path: Path, cofactor: Command) -> Path:
    folder = tmp_path / "run"
    outcome = cofactor(
        "train", file, "--items", file.with_name("titles.csv"), "--epochs", 3, "--out", folder, "-q"
    )
    assert outcome.code == 0, outcome.err
    return folder


def test_train_saves_a_run_that_can_be_shown(trained: Path, cofactor: Command) -> None:
    shown = cofactor("show", trained)
    assert shown.code == 0
    assert "2,000 ratings by 80 users of 60 items" in shown.out
    assert "epochs=3" in shown.out
    assert "Not private" in shown.out


def test_train_with_json_prints_one_object_with_stable_keys(
    file: Path, tmp_path: Path, cofactor: Command
) -> None:
    done = cofactor("train", file, "--test-fraction", 0.1, "--epochs", 3, "--out", tmp_path / "run", "--json")
    assert done.code == 0, done.err
    assert {"run", "guarantee", "scores", "seconds"} <= set(done.json)
    assert set(done.json["scores"]) == {"global_mean", "user_mean", "item_mean", "bias", "pooled"}
    assert {"mse", "rmse", "mae"} <= set(done.json["scores"]["pooled"])
    assert done.json["guarantee"]["holds"] is False
    run = Run.load(tmp_path / "run")
    assert list(run.phases) == ["fitting", "measuring"]
    assert run.seconds == run.phases["fitting"]


def test_train_scores_equal_those_of_the_library(file: Path, tmp_path: Path, cofactor: Command) -> None:
    import cofactor as cf

    done = cofactor(
        "train", file, "--test-fraction", 0.2, "--epochs", 3, "--seed", 5, "--out", tmp_path / "run", "--json"
    )
    train, test = cf.split.by_fraction(cf.read_ratings(file), test=0.2, seed=5)
    run = cf.train(cf.Pooled(model=cf.SGD(epochs=3)), train, seed=5)
    assert run.model is not None
    wrong = test.values - run.model.predict_rows(test.users, test.items)
    assert done.json["scores"]["pooled"]["mse"] == pytest.approx(float(np.mean(wrong**2)), rel=1e-4)


@pytest.mark.parametrize("model", ["sgd", "als", "bayes"])
def test_each_model_can_be_chosen_by_name(model: str, file: Path, tmp_path: Path, cofactor: Command) -> None:
    done = cofactor("train", file, "--model", model, "--out", tmp_path / "run", "-q")
    assert done.code == 0, done.err
    assert Run.load(tmp_path / "run").recipe["model"]["kind"].lower() == model


def test_train_takes_its_recipe_from_a_toml_file(file: Path, tmp_path: Path, cofactor: Command) -> None:
    config = tmp_path / "train.toml"
    config.write_text('[recipe]\n[recipe.model]\nkind = "ALS"\nfactors = 4\n')
    done = cofactor("train", file, "--config", config, "--out", tmp_path / "run", "-q")
    assert done.code == 0, done.err
    assert Run.load(tmp_path / "run").recipe["model"]["factors"] == 4


def test_file_without_ratings_column_trains_an_implicit_model(tmp_path: Path, cofactor: Command) -> None:
    path = tmp_path / "clicks.csv"
    path.write_text("user,item\n" + "".join(f"{u},{i}\n" for u in range(9) for i in range(u, 9)))
    done = cofactor("train", path, "--test-fraction", 0.3, "--out", tmp_path / "run", "-q")
    assert done.code == 0, done.err
    model = Run.load(tmp_path / "run").model
    assert model is not None
    assert model.scale is None
    assert "popularity" in done.out
    assert "ndcg_over_unseen" in done.out


def test_recommend_names_items_with_titles_and_leaves_seen_ones_out(trained: Path, cofactor: Command) -> None:
    done = cofactor("recommend", trained, "--user", "u1", "--n", 5, "--json")
    assert done.code == 0, done.err
    [one] = done.json["recommendations"]
    model = Run.load(trained).model
    assert model is not None
    row = model.user_row("u1")
    assert model.seen is not None
    seen = model.item_ids[model.seen.index[model.seen.ptr[row] : model.seen.ptr[row + 1]]]
    assert len(one["items"]) == 5
    assert not {best["item"] for best in one["items"]} & set(seen.tolist())
    assert one["items"][0]["title"] == f"Film [{one['items'][0]['item'][1:]}]"


def test_titles_with_brackets_are_printed_as_they_are(trained: Path, cofactor: Command) -> None:
    assert "Film [" in cofactor("recommend", trained, "--user", "u1").out


def test_new_user_gets_recommendations_from_her_ratings_alone(trained: Path, cofactor: Command) -> None:
    done = cofactor("recommend", trained, "--rate", "i1=5", "--rate", "i2=1", "--json")
    assert done.code == 0, done.err
    items = {best["item"] for best in done.json["recommendations"][0]["items"]}
    assert len(items) == 10
    assert not items & {"i1", "i2"}


def test_new_users_can_come_from_a_file(trained: Path, tmp_path: Path, cofactor: Command) -> None:
    new = tmp_path / "new.csv"
    new.write_text("user,item,rating\nann,i1,5\nann,i3,2\nbob,i2,4\nbob,unheard-of,1\n")
    done = cofactor("recommend", trained, "--ratings", new, "--json")
    assert [one["user"] for one in done.json["recommendations"]] == ["ann", "bob"]
    assert "1 ratings of items the model does not know" in done.err


def test_doctor_finds_this_machine_fit(cofactor: Command) -> None:
    done = cofactor("doctor", "--json")
    assert done.code == 0
    assert all(check["fine"] for check in done.json["checks"])
    assert {"numpy", "dp-accounting", "cryptography"} <= {check["what"] for check in done.json["checks"]}


@pytest.mark.parametrize("name", ["gmpy2", "tenseal"])
def test_doctor_loads_what_encryption_needs(
    name: str, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    done = cofactor("doctor", "--json")
    [found] = [check for check in done.json["checks"] if check["what"] == name]
    assert done.code == 1
    assert "cannot be loaded" in found["found"]
    assert found["remedy"] == f"pip install --force-reinstall {name}"


def test_doctor_says_how_to_get_what_encryption_needs(
    cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name == "tenseal":
            raise PackageNotFoundError
        return "1"

    monkeypatch.setattr("cofactor.cli.doctor.version", version)
    done = cofactor("doctor", "--json")
    [found] = [check for check in done.json["checks"] if check["what"] == "tenseal"]
    assert done.code == 0
    assert found["found"] == "not installed"
    assert "pip install tenseal (or, in a clone, pip install '.[he]')" in found["remedy"]


def test_data_list_names_what_can_be_had_and_how(cofactor: Command) -> None:
    names = [one["name"] for one in cofactor("data", "list", "--json").json["datasets"]]
    assert {"ml-100k", "ml-1m", "ml-25m"} <= set(names)
    assert "by hand" in cofactor("data", "list").out


def test_data_info_counts_a_file(file: Path, cofactor: Command) -> None:
    facts = cofactor("data", "info", file, "--json").json
    assert facts["ratings"] == 2_000
    assert facts["users"] == 80


def test_progress_lines_go_to_standard_error_only(file: Path, tmp_path: Path, cofactor: Command) -> None:
    done = cofactor("train", file, "--epochs", 2, "--out", tmp_path / "run")
    assert "2/2" in done.err
    assert "2/2" not in done.out


def test_version_is_printed(cofactor: Command) -> None:
    import cofactor as cf

    assert cofactor("--version").out == f"cofactor {cf.__version__}\n"


def test_our_own_bug_exits_with_70(
    monkeypatch: pytest.MonkeyPatch, cofactor: Command, tmp_path: Path
) -> None:
    def broken(_: object) -> dict[str, Any]:
        raise ZeroDivisionError

    monkeypatch.setattr("cofactor.federation.folder.read_facts", broken)
    done = cofactor("show", tmp_path)
    assert done.code == 70
    assert "bug in cofactor" in done.err


def test_included_seen_items_are_recommended_too(trained: Path, cofactor: Command) -> None:
    done = cofactor("recommend", trained, "--user", "u1", "--n", 1000, "--include-seen", "--json")
    assert len(done.json["recommendations"][0]["items"]) == 60


def test_number_of_items_may_exceed_what_there_is(trained: Path, cofactor: Command) -> None:
    done = cofactor("recommend", trained, "--user", "u1", "--n", 10**12, "--json")
    assert done.code == 0, done.err
    assert 0 < len(done.json["recommendations"][0]["items"]) < 60


def test_counts_are_trained_on_and_measured_as_implicit(tmp_path: Path, cofactor: Command) -> None:
    random = np.random.default_rng(0)
    pairs = {(int(u), int(i)) for u, i in random.integers(0, 30, (500, 2))}
    counts = np.exp(random.normal(2, 2, len(pairs))).astype(int) + 1
    rows = "".join(f"{u},{i},{n}\n" for (u, i), n in zip(sorted(pairs), counts, strict=True))
    (tmp_path / "plays.csv").write_text("user,item,rating\n" + rows)
    done = cofactor(
        "train", tmp_path / "plays.csv", "--model", "implicit", "--test-fraction", 0.2,
        "--out", tmp_path / "run", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert 0 < done.json["scores"]["pooled"]["ndcg_over_unseen"] <= 1


def test_titles_are_found_though_one_id_of_the_table_is_text(tmp_path: Path, cofactor: Command) -> None:
    (tmp_path / "r.csv").write_text(
        "user,item,rating\n"
        + "".join(f"{u},{i},{(u + i) % 5 + 1}\n" for u in range(5) for i in range(5) if u != i)
    )
    (tmp_path / "t.csv").write_text("item,title\nx9,Strange\n" + "".join(f"{i},Film {i}\n" for i in range(5)))
    cofactor(
        "train", tmp_path / "r.csv", "--items", tmp_path / "t.csv", "--epochs", 2, "--out", tmp_path / "run"
    )
    [one] = cofactor("recommend", tmp_path / "run", "--user", 3, "--json").json["recommendations"]
    assert [best["title"] for best in one["items"]] == ["Film 3"]


def test_table_nobody_named_cannot_stop_training(file: Path, tmp_path: Path, cofactor: Command) -> None:
    (tmp_path / "ratings.csv").write_bytes(file.read_bytes())
    (tmp_path / "users.csv").write_text("user,age\nu1,3\nu1,4\n")
    (tmp_path / "items.csv").write_text("item,title\ni1,One\ni1,Uno\n")
    done = cofactor("train", tmp_path / "ratings.csv", "--epochs", 1, "--out", tmp_path / "run", "-q")
    assert done.code == 0
    assert "going on without titles" in done.err
    assert "cannot be used" in cofactor("data", "info", tmp_path / "ratings.csv").out


def test_new_users_whose_items_are_all_unknown_are_an_error(
    trained: Path, tmp_path: Path, cofactor: Command
) -> None:
    (tmp_path / "new.csv").write_text("user,item,rating\nann,nothing,5\nann,nowhere,4\n")
    done = cofactor("recommend", trained, "--ratings", tmp_path / "new.csv")
    assert (done.code, "Check its ids" in done.err) == (2, True)


def test_data_is_kept_where_cofactor_data_says(
    tmp_path: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[Path] = []

    def get(name: str, folder: Path, **_: object) -> Path:
        folders.append(folder)
        return folder / name

    monkeypatch.setenv("COFACTOR_DATA", str(tmp_path / "mine"))
    monkeypatch.setattr("cofactor.data.datasets.get", get)
    assert cofactor("data", "get", "ml-1m").code == 0
    assert folders == [tmp_path / "mine"]


def test_interrupt_is_no_bug(monkeypatch: pytest.MonkeyPatch, cofactor: Command, tmp_path: Path) -> None:
    def stopped(_: object) -> dict[str, Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr("cofactor.federation.folder.read_facts", stopped)
    assert cofactor("show", tmp_path).code == 130


def test_damaged_run_is_no_bug_either(trained: Path, cofactor: Command) -> None:
    (trained / "run.json").write_text('{"format": 1}')
    done = cofactor("show", trained)
    assert (done.code, "damaged" in done.err) == (2, True)


def test_options_apply_to_the_model_that_the_data_choose(tmp_path: Path, cofactor: Command) -> None:
    pairs = "".join(f"{u},{i}\n" for u in range(5) for i in range(u, 5))
    (tmp_path / "clicks.csv").write_text("user,item\n" + pairs)
    done = cofactor("train", tmp_path / "clicks.csv", "--factors", 3, "--out", tmp_path / "run", "-q")
    assert done.code == 0, done.err
    model = Run.load(tmp_path / "run").recipe["model"]
    assert (model["kind"], model["factors"]) == ("ImplicitALS", 3)


def test_demo_replaces_nothing_but_its_own_folder(trained: Path, cofactor: Command) -> None:
    done = cofactor("demo", "--out", trained)
    assert (done.code, "already holds a run" in done.err) == (2, True)


def test_user_who_rated_everything_is_told_so(tmp_path: Path, cofactor: Command) -> None:
    (tmp_path / "a b.csv").write_text("user,item,rating\nthe one,1,5\nthe one,2,3\n")
    done = cofactor("train", tmp_path / "a b.csv", "--epochs", 1, "--out", tmp_path / "my run", "-q")
    assert "my run' --user 'the one'" in done.out
    assert "every item has been rated" in cofactor("recommend", tmp_path / "my run", "--user", "the one").out


def test_ctrl_c_stops_after_the_step_and_leaves_nothing(file: Path, tmp_path: Path) -> None:
    words = ["train", str(file), "--epochs", "1000000", "--out", str(tmp_path / "run")]
    with subprocess.Popen(
        [sys.executable, "-m", "cofactor", *words], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("sgd 1/")
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(20) == 130
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []
