import gzip
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.cluster.records import Records, read_records, to_points, to_units
from cofactor.errors import CofactorError, DataError
from cofactor.federation.party import fingerprint

TABLE = "user_id,town,age,income\na,here,31,100\nb,there,,250\nc,here,64,400\n"
SECRET = "4711"
"""Stands in cells that are refused: it must show in no message."""
RANGES = {"age": (0, 120), "income": (0.0, 1_000.0)}


def written(folder: Path, content: str, name: str = "bank.csv") -> Path:
    (folder / name).write_text(content)
    return folder / name


def refused(path: Path, **settings: Any) -> str:
    with pytest.raises(CofactorError) as told:
        read_records(path, **settings)
    assert SECRET not in str(told.value)
    return str(told.value)


def made(values: Any, **settings: Any) -> Records:
    count, width = np.shape(values) if np.ndim(values) == 2 else (3, 2)
    names = {"ids": [f"u{k}" for k in range(count)], "columns": [f"c{k}" for k in range(width)]}
    return Records(**{"name": "bank", "values": values, **names, **settings})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bank.csv", TABLE),
        ("bank.tsv", TABLE.replace(",", "\t")),
        ("bank.txt", TABLE.replace(",", ";")),
        ("bank.csv", "\ufeff" + TABLE.replace("\n", "\r\n")),
        ("bank.csv", TABLE.replace("a,", '" a ",').replace(",31", ', "31"').replace(', "31"', ',"31 "')),
        (
            "bank.user",
            "user_id:token\tage:float\tincome:float\na\t31\t100\nb\t\t250\nc\t64\t400\n",
        ),
    ],
)
def test_the_same_records_are_read_from_tables_of_any_form(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode())
    found = read_records(path, ranges=RANGES)
    assert found.ids == ("a", "b", "c")
    assert found.columns == ("age", "income")
    np.testing.assert_array_equal(found.values, [[31, 100], [np.nan, 250], [64, 400]])
    assert (found.name, found.file, found.fingerprint) == ("bank", path, fingerprint(path))
    assert found.ledger_path == tmp_path / (name + ".ledger")


def test_packed_files_and_parquet_are_read(tmp_path: Path) -> None:
    (tmp_path / "bank.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    for name, members in (("bank.zip", ["bank.csv"]), ("two.zip", ["bank.csv", "shop.csv"])):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member in members:
                archive.writestr(member, TABLE)
    frame = pl.DataFrame({"user_id": ["a", "b ", "c"], "age": [31.0, None, 64.0], "income": [100, 250, 400]})
    frame.write_parquet(tmp_path / "bank.parquet")
    wanted = read_records(written(tmp_path, TABLE))
    for name in ("bank.csv.gz", "bank.zip", "bank.parquet"):
        found = read_records(tmp_path / name)
        assert (found.name, found.ids, found.columns) == ("bank", wanted.ids, wanted.columns)
        np.testing.assert_array_equal(found.values, wanted.values)
    assert read_records(tmp_path / "two.zip", member="bank.csv").ids == wanted.ids
    assert "bank.csv, shop.csv" in refused(tmp_path / "two.zip")


def test_whole_numbers_stored_as_decimals_are_the_same_users(tmp_path: Path) -> None:
    path = tmp_path / "bank.parquet"
    pl.DataFrame({"user": [1.0, 20.0, 3.0], "age": [1.5, 2.0, 3.0]}).write_parquet(path)
    assert read_records(path).ids == ("1", "20", "3")
    pl.DataFrame({"user": [1.0, float("nan")], "age": [1.5, 2.0]}).write_parquet(path)
    assert "row 2: the id is missing" in refused(path)


def test_ids_are_text_and_only_stripped(tmp_path: Path) -> None:
    path = written(tmp_path, "user,x\n007,1\n7,2\n A ,3\na,4\n")
    assert read_records(path).ids == ("007", "7", "A", "a")
    assert Records(name="x", ids=(7, np.int64(8)), columns=("c",), values=[[1], [2]]).ids == ("7", "8")  # type: ignore[arg-type]


def test_columns_without_numbers_are_left_out_and_named(tmp_path: Path) -> None:
    path = written(tmp_path, "id,town,age,empty,,Unnamed: 5\n1,here,31,,0,0\n2,there,27,,1,1\n")
    found = read_records(path)
    assert found.columns == ("age",)
    assert found.left_out == ("town", "empty", "", "Unnamed: 5")


def test_only_named_columns_are_used_in_their_order(tmp_path: Path) -> None:
    path = written(tmp_path, TABLE)
    found = read_records(path, columns=["income", "age"])
    assert found.columns == ("income", "age")
    assert found.values[2].tolist() == [400, 64]
    assert list(found.ranges) == ["income", "age"]


@pytest.mark.parametrize("cell", [SECRET + " years", "x" + SECRET, SECRET + ",5", "inf", "-Infinity"])
def test_words_among_numbers_are_refused_by_their_rows(cell: str, tmp_path: Path) -> None:
    rows = [f'{at},"{cell if at in (2, 5) else 30}"\n' for at in range(1, 8)]
    told = refused(written(tmp_path, "user,age\n" + "".join(rows)))
    assert 'bank.csv, column "age": rows 3, 6 are no numbers' in told
    assert "--columns" in told


@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        (TABLE, {"id": "usr"}, r'has no column "usr"'),
        ("age,income\n3,4\n", {}, r'no column looks like the ids of users: "age", "income"\. Name .* --id'),
        ("age,income\n3,4\n", {"id": "age", "columns": ["age"]}, r'"age" cannot hold both'),
        ("user,town\n1,here\n2,there\n", {}, r'no column holds numbers: "town"\.'),
        ("user\n1\n2\n", {"id": "user"}, r"no column holds numbers\. "),
        ("user,town\n1,here\n", {"columns": ["town"]}, r'column "town": row 2 is no number'),
        (f"user,x\n{SECRET},1\nb,2\n{SECRET},3\n", {}, r"1 person has several rows, such as rows 2 and 4"),
        ("user,x\n1,1\n ,2\n", {}, r"row 3: the id is missing"),
        ("user,x\n", {}, r"no rows below"),
        ("", {}, r"is empty"),
        ("user,x,x\n1,2,3\n", {}, r'2 columns "x"'),
        ("user,x\n1,2,3\n", {}, r"row 2: 3 fields where there are 2 columns"),
        (TABLE, {"columns": ["agge"]}, r'no column "agge"\. Did you mean "age"'),
        (TABLE, {"columns": "age"}, r'columns must be a list of names, such as \["age", "income"\]'),
        (TABLE, {"columns": ["age", "age"]}, r"names the same column twice"),
        (TABLE, {"ranges": {"agge": (0, 1)}}, r'range is stated for "agge".*Did you mean "age"'),
        (TABLE, {"ranges": {"town": (0, 1)}}, r'range is stated for "town", which is no column'),
        (TABLE, {"ranges": {"income": (0, 1)}, "columns": ["age"]}, r'stated for "income"'),
        (TABLE, {"ranges": {"age": (5, 5)}}, r'the range of "age" must be.*such as \(0, 120\)'),
        (TABLE, {"ranges": {"age": (9, 1)}}, r'the range of "age" must be'),
        (TABLE, {"ranges": {"age": 9}}, r'the range of "age" must be'),
        (TABLE, {"ranges": {"age": (0, float("inf"))}}, r'the range of "age" must be'),
        (TABLE, {"ranges": {"age": (0, float("nan"))}}, r'the range of "age" must be'),
        (TABLE, {"ranges": {"age": (-1e308, 1e308)}}, r'the range of "age" must be'),
        (TABLE, {"ranges": {"age": ("0", "1")}}, r'the range of "age" must be'),
        (TABLE, {"ranges": {"age": (0, 10**400)}}, r'the range of "age" must be'),
        ("user,x\n1,\n2,\n", {"columns": ["x"]}, r'nobody has a number in column "x"'),
        (TABLE, {"name": "../bank"}, r"a party's name must be"),
    ],
)
def test_mistakes_are_told_where_they_are(
    content: str, settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    assert re.search(message, refused(written(tmp_path, content), **settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ids": ["a", "b", "a"]}, r"rows 1 and 3: the same id"),
        ({"ids": ["a", " ", "c"]}, r"row 2: the id is missing"),
        ({"ids": [1.0, 2.0, 3.0]}, r"ids must be text or whole numbers"),
        ({"ids": ["a", "b"]}, r"values have shape \(3, 2\) for 2 ids and 2 columns"),
        ({"columns": ["a"]}, r"values have shape"),
        ({"columns": ["a", "a"]}, r"the same name"),
        ({"columns": ["a", " "]}, r"needs a name"),
        ({"values": [[1, 2], [3, np.inf], [5, 6]]}, r"row 2: an infinite number"),
        ({"values": [1, 2, 3]}, r"a row for each user"),
        ({"values": "abc"}, r"must be numbers"),
        ({"values": np.zeros((3, 0)), "columns": ()}, r"no column"),
        ({"values": [[1e308, 1], [-1e308, 2], [0, 0]]}, r"too far apart"),
        ({"ranges": {"c2": (0, 1)}}, r"no column of it"),
    ],
)
def test_records_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(CofactorError, match=message):
        made(**{"values": [[1, 2], [3, 4], [5, 6]], **settings})


def test_ranges_that_are_not_stated_are_read_off_the_data_and_known_to_be() -> None:
    some = made([[1, 5], [3, np.nan], [2, 9]], ranges={"c0": (0, 10)})
    assert dict(some.ranges) == {"c0": (0, 10), "c1": (5, 9)}
    assert some.unstated == ("c1",)
    every = some.with_ranges({"c1": (0, 20)})
    assert every.unstated == ()
    assert every.points()[0].tolist() == pytest.approx([-0.8, -0.5])
    assert made([[4.0], [4.0]]).points().tolist() == [[0], [0]]
    assert made([[1e300], [1e300]]).points().tolist() == [[0], [0]]


def test_points_are_scaled_by_the_ranges_and_cut_off() -> None:
    found = made([[0, 5], [10, -70], [5, np.nan], [999, 10]], ranges={"c0": (0, 10), "c1": (0, 20)}).points()
    np.testing.assert_allclose(found, np.array([[-1, -0.5], [1, -1], [0, np.nan], [1, 0]]))


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=5), finite, finite)
def test_points_lie_in_the_cube_whatever_the_numbers(
    rows: list[tuple[float, float]], one: float, other: float
) -> None:
    low, high = sorted((one, other))
    if not (low < high and np.isfinite(high - low)):
        return
    found = to_points(np.array(rows), [(low, high)] * 2)
    assert ((found >= -1) & (found <= 1)).all()


def test_the_way_back_from_points_is_the_way_there_reversed() -> None:
    values: NDArray[np.float64] = np.array([[0.0, -7.0], [55.0, 3.0], [120.0, 13.0]])
    ranges = [(0.0, 120.0), (-7.0, 13.0)]
    np.testing.assert_allclose(to_units(to_points(values, ranges), ranges), values)


def test_nothing_private_shows_in_words_and_nothing_can_be_written_to() -> None:
    records = made([[4711.0], [4712.0]], ids=["anna4711", "bert"])
    assert "471" not in repr(records)
    assert "anna" not in repr(records)
    with pytest.raises(ValueError, match="read-only"):
        records.values[0, 0] = 1
    with pytest.raises(TypeError):
        records.ranges["c0"] = (0, 1)  # type: ignore[index]


@pytest.mark.parametrize("cell", ["3,5", "1,200", "12%", "-0,5"])
def test_numbers_that_are_written_otherwise_are_not_left_out_in_silence(tmp_path: Path, cell: str) -> None:
    file = tmp_path / "bank.csv"
    file.write_text(f'user,age,rate\nu1,3,"{cell}"\nu2,4,"{cell}"\n')
    with pytest.raises(DataError, match='column "rate": its numbers are written with commas'):
        read_records(file, id="user")
    assert read_records(file, id="user", columns=["age"]).columns == ("age",)
