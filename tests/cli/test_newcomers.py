"""`cofactor recommend` for somebody who has rated nothing, and among items that nobody has rated."""

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cofactor.cli.newcomers import parsed_attributes
from cofactor.data.codes import Groups, Number, Region, Tags
from cofactor.data.coding import Coding
from cofactor.data.ratings import Scale
from cofactor.data.tables import read_items
from cofactor.errors import ConfigError
from cofactor.factors.model import Factors, HomeFit
from cofactor.factors.views import Views
from cofactor.federation.run import DataFacts, Run
from tests.conftest import Command

PEOPLE = Coding.stated(
    {
        "age": Groups((30, 50)),
        "gender": ("F", "M"),
        "occupation": ("doctor", "lawyer, retired", "writer"),
        "zip": Region(),
    }
)
FILMS = Coding.stated({"length": Number(100, 20), "genres": Tags(("comedy", "crime", "drama"))})
FACTORS = 3
NEW_ITEMS = "item,title,length,genres\ni1,Old,99,drama\nn1,Heat,170,crime|drama\nn2,Clue,,comedy|western\n"


def trained() -> Factors:
    random = np.random.default_rng(1)

    def numbers(*shape: int) -> np.ndarray:
        return random.normal(0, 1, shape).astype(np.float32)

    return Factors(
        user_ids=np.array(["ann", "bob"]),
        item_ids=np.array([f"i{row}" for row in range(6)]),
        mean=3.0,
        user_bias=np.zeros(2, np.float32),
        item_bias=np.zeros(6, np.float32),
        user_vectors=numbers(2, FACTORS),
        item_vectors=numbers(6, FACTORS),
        scale=Scale(-20, 20),
        home=HomeFit(np.eye(FACTORS), np.ones(6)),
        titles=np.array([f"film {row}" for row in range(6)]),
        views=Views(
            users=numbers(PEOPLE.width, FACTORS),
            items=numbers(FILMS.width, FACTORS),
            ridge=1.5,
            attributes=PEOPLE,
            features=FILMS.names,
            feature_coding=FILMS,
            feature_means=np.zeros(FILMS.width, np.float32),
        ),
    )


def saved(folder: Path, **parts: object) -> Path:
    facts = DataFacts(users=2, items=6, ratings=9, scale="-20 to 20")
    settings = {"model": trained(), "recipe": {}, "seed": 0, "data": facts, "created": "now", "seconds": 0.0}
    Run(**{**settings, **parts}).save(folder)  # type: ignore[arg-type]
    return folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "new.csv").write_text(NEW_ITEMS)
    return saved(tmp_path / "run")


def digests(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_attributes_on_the_command_line_are_those_in_python(run: Path, cofactor: Command) -> None:
    done = cofactor("recommend", run, "--attributes", "age=31,gender=F,zip=10001", "-n", 4, "--json")
    assert done.code == 0, done.err
    told = {"age": 31, "gender": "F", "zip": "10001"}
    wanted = [vars(best) for best in trained().recommend_for_attributes(told, 4)]
    assert done.json == {"recommendations": [{"user": "new user", "items": wanted}]}
    shown = cofactor("recommend", run, "--attributes", "age=31,gender=F,zip=10001", "-n", 4).out
    assert "for the new user" in shown
    assert all(str(best["title"]) in shown for best in wanted)


def test_run_recommends_for_attributes_from_its_common_model(run: Path) -> None:
    told = {"occupation": "writer"}
    loaded = Run.load(run)
    assert loaded.recommend_for_attributes(told, 3) == trained().recommend_for_attributes(told, 3)


def test_attributes_are_stored_nowhere(run: Path, cofactor: Command) -> None:
    before = digests(run.parent)
    done = cofactor("recommend", run, "--attributes", "gender=F,occupation=writer", "--json")
    assert digests(run.parent) == before
    assert "writer" not in done.out + done.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("age=31", {"age": "31"}),
        (" age = 31 , gender=F", {"age": "31", "gender": "F"}),
        ('"job=lawyer, retired",age=31', {"job": "lawyer, retired", "age": "31"}),
        ("formula=a=b", {"formula": "a=b"}),
    ],
)
def test_pairs_are_read_between_commas(text: str, told: dict[str, str]) -> None:
    assert parsed_attributes(text) == told


@pytest.mark.parametrize(
    "text", ["", " ", ",", "age", "age=", "=31", "age=31,", "age=31,,gender=F", "a=1\nb"]
)
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"NAME=VALUE,NAME=VALUE, for example age=31,gender=F"):
        parsed_attributes(text)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("age=31,age=32", r"names age twice"),
        (
            "gendr=F",
            r'no attribute "gendr"\. Did you mean "gender"\? There are age: a number; gender: one of F',
        ),
        ("colour=red", r'no attribute "colour"\. There are age.*zip: a US zip code'),
        ("age=old", r"age=old means nothing to the model\. Give a number, or leave it out"),
        ("age=nan", r"age=nan means nothing"),
        ("gender=f", r"gender=f means nothing.*Give one of F, M, or leave it out"),
        ("gender=F,occupation=write", r'Did you mean "writer"\?.*doctor, lawyer, retired, writer'),
        ("age", r"must look like NAME=VALUE.*got 'age'"),
    ],
)
def test_mistakes_in_attributes_are_named(
    attributes: str, message: str, run: Path, cofactor: Command
) -> None:
    done = cofactor("recommend", run, "--attributes", attributes)
    assert done.code == 2
    assert done.out == ""
    assert re.search(message, done.err), done.err


@pytest.mark.parametrize("other", [("--user", "ann"), ("--rate", "i1=3")])
def test_attributes_come_instead_of_a_known_user_or_ratings(
    other: tuple[str, str], run: Path, cofactor: Command
) -> None:
    done = cofactor("recommend", run, *other, "--attributes", "age=31")
    assert done.code == 2
    assert "name one of --user" in done.err
    assert "--attributes NAME=VALUE" in done.err


def test_new_items_are_listed_among_all_and_apart(run: Path, cofactor: Command) -> None:
    new = run.parent / "new.csv"
    done = cofactor("recommend", run, "--user", "ann", "--new-items", new, "--json")
    assert done.code == 0, done.err
    [one] = done.json["recommendations"]
    wanted = [vars(best) for best in trained().add_items(read_items(new)).recommend("ann", 10)]
    assert one["items"] == wanted
    assert one["new_items"] == [best for best in wanted if best["item"] in ("n1", "n2")]
    assert {best["title"] for best in one["new_items"]} == {"Heat", "Clue"}
    assert "new.csv: 1 item is in the model already and stays as it is" in done.err
    assert 'new.csv: "genres" of 1 item has a value that the model has never met' in done.err
    shown = cofactor("recommend", run, "--user", "ann", "--new-items", new, "-n", 1).out
    assert str(one["new_items"][0]["title"]) in shown.partition("new items for user ann")[2]
    assert str(one["new_items"][1]["title"]) not in shown.partition("new items for user ann")[2]


def test_new_items_serve_new_users_too(run: Path, cofactor: Command) -> None:
    new = run.parent / "new.csv"
    grown = trained().add_items(read_items(new))
    done = cofactor("recommend", run, "--attributes", "gender=M", "--new-items", new, "--json")
    found = [best["item"] for best in done.json["recommendations"][0]["items"]]
    assert found == [best.item for best in grown.recommend_for_attributes({"gender": "M"})]
    done = cofactor("recommend", run, "--rate", "n1=4", "--new-items", new, "--json")
    found = [best["item"] for best in done.json["recommendations"][0]["items"]]
    assert found == [best.item for best in grown.fold_in({"n1": 4.0}).recommend("new user")]


def test_without_new_items_there_is_one_list(run: Path, cofactor: Command) -> None:
    done = cofactor("recommend", run, "--user", "ann", "--json")
    assert set(done.json["recommendations"][0]) == {"user", "items"}
    assert "new items" not in cofactor("recommend", run, "--user", "ann").out


def test_new_items_that_somebody_has_rated_are_left_out_or_included(run: Path, cofactor: Command) -> None:
    words = ("recommend", run, "--rate", "n1=4", "--new-items", run.parent / "new.csv", "--json")
    for more, items in ((), {"n2"}), (("--include-seen",), {"n1", "n2"}):
        [one] = cofactor(*words, *more).json["recommendations"]
        assert {best["item"] for best in one["new_items"]} == items


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("item,title,length,genres\ni1,Old,99,drama\n", "every item of other.csv is in the model already"),
        ("item,length\nn1,99\n", 'other.csv: there is no column "genres"'),
    ],
)
def test_tables_that_add_nothing_are_refused(
    content: str, message: str, run: Path, cofactor: Command
) -> None:
    (run.parent / "other.csv").write_text(content)
    done = cofactor("recommend", run, "--user", "ann", "--new-items", run.parent / "other.csv")
    assert done.code == 2
    assert message in done.err


def test_new_items_with_something_else_for_a_number_are_told_and_have_the_mean(
    run: Path, cofactor: Command
) -> None:
    lists = []
    for name, length in (("other.csv", "long"), ("empty.csv", "")):
        (run.parent / name).write_text(f"item,title,length,genres\nn1,Heat,{length},crime drama\n")
        lists.append(cofactor("recommend", run, "--user", "ann", "--new-items", run.parent / name, "--json"))
    told = 'other.csv: "length" of 1 item has a value that is not a number, and counts as missing\n'
    assert [done.err for done in lists] == [told, ""]
    assert lists[0].json == lists[1].json


def test_runs_without_views_say_which_recipe_has_them(tmp_path: Path, cofactor: Command) -> None:
    (tmp_path / "new.csv").write_text(NEW_ITEMS)
    run = saved(tmp_path / "run", model=replace(trained(), views=None))
    done = cofactor("recommend", run, "--attributes", "age=31")
    assert done.code == 2
    assert "multi-view" in done.err
    assert "--user-attributes" in done.err
    done = cofactor("recommend", run, "--user", "ann", "--new-items", tmp_path / "new.csv")
    assert done.code == 2
    assert "multi-view" in done.err
    assert "--public-items" in done.err


def test_common_model_serves_newcomers_though_it_cannot_fold_in(tmp_path: Path, cofactor: Command) -> None:
    common = replace(trained(), home=None)
    run = saved(tmp_path / "run", model=common, homes={"north": trained()})
    assert cofactor("recommend", run, "--attributes", "age=31").code == 0
    assert cofactor("recommend", run, "--rate", "i1=3").code == 2
    assert cofactor("recommend", run, "--attributes", "age=31", "--party", "north").code == 0
