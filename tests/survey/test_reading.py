import gzip
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.errors import CofactorError
from cofactor.federation.party import fingerprint
from cofactor.survey.question import Question
from cofactor.survey.reading import drawn_from, read_numbers, read_people

AGES = [31.0, 27.5, 64.0, 18.0]
TABLE = "user_id,town,age\n" + "".join(f"p{at},here,{age:g}\n" for at, age in enumerate(AGES))
AGE = Question(name="age", low=0, high=120, whole=True)
SECRET = "4711"
"""Stands in cells that are refused: it must show in no message."""


def written(folder: Path, content: str, name: str = "people.csv") -> Path:
    (folder / name).write_text(content)
    return folder / name


def refused(path: Path, column: str = "age", **settings: Any) -> str:
    with pytest.raises(CofactorError) as told:
        read_people(path, column, **settings)
    assert SECRET not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("people.csv", TABLE),
        ("people.tsv", TABLE.replace(",", "\t")),
        ("people.txt", TABLE.replace(",", ";")),
        (
            "people.csv",
            '"user_id","town","age"\n' + "".join(f'"p{k}","a, b","{a}"\n' for k, a in enumerate(AGES)),
        ),
        (
            "people.user",
            "user_id:token\tage:float\n" + "".join(f"p{k}\t{age}\n" for k, age in enumerate(AGES)),
        ),
        ("people.csv", "age\n" + "".join(f"{age}\n" for age in AGES)),
        ("people.user", "age:float\n" + "".join(f"{age}\n" for age in AGES)),
        ("people.csv", "\ufeff" + TABLE),
        ("people.csv", TABLE.replace("\n", "\r\n")),
        ("people.csv", "\ufeffage\r\n" + "".join(f"{age}\r\n" for age in AGES) + "\r\n\r\n"),
        ("u.user", "".join(f"{k}|{age}|F|writer|12345\n" for k, age in enumerate(AGES))),
    ],
)
def test_the_same_numbers_are_read_from_tables_of_any_form(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode())
    assert read_people(path, "age").values.tolist() == AGES


def test_people_are_named_after_their_file_and_know_which_it_is(tmp_path: Path) -> None:
    path = written(tmp_path, TABLE, "north ålesund.users.csv")
    people = read_people(path, "age")
    assert (people.name, people.file) == ("north -lesund", path)
    assert people.fingerprint == fingerprint(path)
    assert people.ledger_path == tmp_path / "north ålesund.users.csv.ledger"
    assert read_people(path, "age", name="north").name == "north"


def test_packed_files_and_parquet_are_read(tmp_path: Path) -> None:
    (tmp_path / "people.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("ratings.csv", "user,item,rating\n1,1,5\n")
        archive.writestr("users.csv", TABLE)
    frame = pl.DataFrame({"user": ["a", "b", "c", "d"], "age": AGES, "when": [None, 1, 2, 3]})
    frame.write_parquet(tmp_path / "people.parquet")
    for name in ("people.csv.gz", "all.zip", "people.parquet"):
        assert read_people(tmp_path / name, "age").values.tolist() == AGES
    assert read_people(tmp_path / "people.parquet", "when", missing="skip").values.tolist() == [1, 2, 3]
    assert "rows 1" not in refused(tmp_path / "all.zip", "age", member="nosuch.csv")


def test_missing_numbers_are_refused_by_their_rows_unless_somebody_says_what_becomes_of_them(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, "user,age\n1,31\n2,\n3,27\n4,nan\n5, \n")
    told = refused(path)
    assert "rows 3, 5, 6 are empty" in told
    assert "--missing skip" in told
    assert "--missing random" in told
    assert read_people(path, "age", missing="skip").values.tolist() == [31, 27]
    filled = read_people(path, "age", missing="random", question=AGE).values
    assert len(filled) == 5
    assert filled[[0, 2]].tolist() == [31, 27]
    assert np.all((filled >= 0) & (filled <= 120) & (filled == np.rint(filled)))
    assert "name the question" in refused(path, missing="random")
    assert "missing must be one of skip, random" in refused(path, missing="zero")


def test_an_empty_line_of_a_single_column_is_somebody_without_a_number(tmp_path: Path) -> None:
    path = written(tmp_path, "age\n31\n\n27\n\n\n")
    assert "row 3 is empty" in refused(path)
    found = read_numbers(path, "age")
    assert (found.missing, len(found.values)) == (1, 3)


def test_nobody_without_numbers_can_be_asked(tmp_path: Path) -> None:
    path = written(tmp_path, "user,age\n1,\n2,\n")
    assert "nobody has a number" in refused(path, missing="skip")
    assert len(read_people(path, "age", missing="random", question=AGE).values) == 2


@pytest.mark.parametrize("cell", [SECRET + " years", "x" + SECRET, SECRET + ",5", "inf", "-Infinity"])
def test_words_are_refused_by_their_rows_and_never_shown(cell: str, tmp_path: Path) -> None:
    rows = [f'{at},"{cell if at in (2, 5) else 30}"\n' for at in range(1, 8)]
    told = refused(written(tmp_path, "user,age\n" + "".join(rows)))
    assert 'people.csv, column "age": rows 3, 6 are no numbers' in told
    assert "--column" in told


def test_many_wrong_rows_are_counted(tmp_path: Path) -> None:
    told = refused(written(tmp_path, "age\n" + f"none{SECRET}\n" * 1_234))
    assert "rows 2, 3, 4, 5, 6 and 1,229 more are no numbers" in told


@pytest.mark.parametrize(
    ("content", "column", "settings", "message"),
    [
        (
            TABLE,
            "agge",
            {},
            r'has no column "agge"\. Did you mean "age"\? Its columns: "user_id", "town", "age"',
        ),
        (TABLE, "age", {"user": "usr"}, r'no column "usr"\.'),
        (TABLE, "age", {"user": "age"}, r'"age" cannot hold both'),
        ("age\n31\n", "years", {}, r'no column "years"\. Its columns: "age"'),
        ("age\n31\n", "age", {"user": "id"}, r'no column "id"'),
        ("31\n27\n", "age", {}, r"no header"),
        ("1,31\n2,27\n3,4\n", "age", {}, r'no column "age"'),
        ("1;31;4;5\n", "age", {}, r"no header"),
        ("user,age,age\n1,31,30\n", "age", {}, r'2 columns "age"'),
        ("", "age", {}, r"is empty"),
        ("user,age\n", "age", {}, r"no rows below"),
        ("age\n", "age", {}, r"no rows below"),
        ("user,age\n1,31\n2,27,5\n", "age", {}, r"row 3: 3 fields where there are 2 columns"),
        ("user,age\n1,31\n,4711\n", "age", {}, r"row 3: the id is missing"),
    ],
)
def test_mistakes_say_where_and_what_to_do(
    content: str, column: str, settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    told = refused(written(tmp_path, content), column, **settings)
    assert re.search(message, told), told


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    written(tmp_path, TABLE)
    assert 'Did you mean "people.csv"' in refused(tmp_path / "poeple.csv")
    assert "is a folder" in refused(tmp_path)


def test_nobody_answers_twice(tmp_path: Path) -> None:
    path = written(tmp_path, "movie,userId,rating\n1,7,4\n2,8,3\n2,7,5\n3,7,1\n3,8,2\n4,9,2\n")
    told = refused(path, "rating")
    assert "2 people have several rows, such as rows 2 and 4" in told
    assert "--rating" in told
    assert "--activity" in told
    told = refused(written(tmp_path, "person,age\nx,1\ny,2\nx,3\n"), user="person")
    assert "1 person has several rows, such as rows 2 and 4" in told


def test_another_column_of_ids_may_be_named(tmp_path: Path) -> None:
    path = written(tmp_path, "user,badge,age\nsmith,1,30\nsmith,2,40\n")
    assert "several rows" in refused(path)
    assert read_people(path, "age", user="badge").values.tolist() == [30, 40]


@settings(max_examples=40)
@given(whole=st.booleans(), log=st.booleans(), low=st.integers(1, 50), width=st.integers(1, 10_000))
def test_drawn_numbers_lie_in_the_range_and_count_as_inside(
    whole: bool, log: bool, low: int, width: int
) -> None:
    question = Question(name="x", low=low, high=low + width, whole=whole, log=log)
    values = drawn_from(question, 300)
    positions, outside = question.positions(values)
    assert outside == 0
    assert np.all((positions >= 0) & (positions <= 1))
    assert not whole or np.array_equal(values, np.rint(values))


@pytest.mark.parametrize("log", [False, True])
def test_drawn_numbers_are_even_over_the_buckets(log: bool) -> None:
    question = Question(name="income", low=10, high=100_000, log=log)
    positions, _ = question.positions(drawn_from(question, 200_000))
    counts = np.histogram(positions, 8, (0, 1))[0]
    # Six standard deviations of a binomial with 200,000 draws: eight false alarms in a billion tests.
    assert np.abs(counts - 25_000).max() < 6 * np.sqrt(25_000 * 7 / 8)


def test_ends_of_whole_numbers_are_drawn_as_often_as_others() -> None:
    counts = np.bincount(drawn_from(Question(name="x", low=0, high=3, whole=True), 80_000).astype(int))
    assert len(counts) == 4
    assert np.abs(counts - 20_000).max() < 6 * np.sqrt(20_000 * 3 / 4)
