import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.data.features import Column, encoded
from cofactor.data.tables import Table, read_items, read_users, side_tables
from cofactor.errors import DataError

MOVIES = (
    "1::Toy Story (1995)::Animation|Comedy\n2::Alien: The Return (1979)::Horror\n3::Amélie (2001)::Comedy\n"
)
USERS = "1::F::1::10::48067\n2::M::56::16::70072\n"
ITEM_100K = "1|Toy Story (1995)|01-Jan-1995||http://x|0|0|0|1|1|1" + "|0" * 13 + "\n"
USER_100K = "1|24|M|technician|85711\n2|53|F|other|94043\n"
RECBOLE_ITEM = (
    "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
    '1\tToy "Story\t1995\tAnimation Comedy\n2\tHeat\t1995\tCrime\n'
)


def test_movies_of_1m_have_titles_with_colons_and_several_genres(tmp_path: Path) -> None:
    (tmp_path / "movies.dat").write_bytes(MOVIES.encode("latin-1"))
    table = read_items(tmp_path / "movies.dat")
    assert table.titles() == {1: "Toy Story (1995)", 2: "Alien: The Return (1979)", 3: "Amélie (2001)"}
    features = table.features([3, 1])
    assert features.names == ("genres=Animation", "genres=Comedy", "genres=Horror")
    assert features.matrix.tolist() == [[0, 1, 0], [1, 1, 0]]
    assert features.matrix.dtype == np.float32


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_utf8_is_tried_before_latin1(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "movies.dat").write_bytes(MOVIES.encode(encoding))
    assert read_items(tmp_path / "movies.dat").titles()[3] == "Amélie (2001)"


def test_users_of_1m_are_categories_though_they_look_like_numbers(tmp_path: Path) -> None:
    (tmp_path / "users.dat").write_text(USERS)
    features = read_users(tmp_path / "users.dat").features([1, 2])
    assert features.names == ("gender=F", "gender=M", "age=1", "age=56", "occupation=10", "occupation=16")
    assert features.matrix.tolist() == [[1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1]]


def test_tables_of_100k_are_known_by_their_shape(tmp_path: Path) -> None:
    (tmp_path / "u.item").write_bytes(ITEM_100K.encode())
    (tmp_path / "u.user").write_text(USER_100K)
    items, users = read_items(tmp_path / "u.item"), read_users(tmp_path / "u.user")
    assert items.column("genres").values(0) == ["Animation", "Children's", "Comedy"]
    assert items.titles() == {1: "Toy Story (1995)"}
    assert users.features([2], ["age"]).matrix.tolist() == [[1.0]]
    assert users.names == ("age", "gender", "occupation", "zip")


def test_recbole_types_are_believed(tmp_path: Path) -> None:
    (tmp_path / "a.item").write_text(RECBOLE_ITEM)
    table = read_items(tmp_path / "a.item")
    assert table.titles() == {1: 'Toy "Story', 2: "Heat"}
    assert [column.kind for column in table.columns] == ["text", "category", "tags"]
    assert table.features([1], ["class"]).matrix.tolist() == [[1, 1, 0]]


def test_any_table_with_an_id_column_reads(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('sku,name,price,maker\nx1,"A, b",2,acme\nx2,c,4,\nx3,d,,zeta\n')
    table = read_items(tmp_path / "a.csv", id="sku")
    assert table.titles() == {"x1": "A, b", "x2": "c", "x3": "d"}
    features = table.features(["x3", "x2", "x1"])
    assert features.names == ("price", "maker=acme", "maker=zeta")
    assert features.matrix.tolist() == [[0, 0, 1], [1, 0, 0], [-1, 1, 0]]


def test_csv_gz_and_parquet_give_the_same_table(tmp_path: Path) -> None:
    text = "movieId,title,genres\n1,Toy Story (1995),Animation|Comedy\n2,Heat (1995),Crime\n"
    (tmp_path / "movies.csv").write_text(text)
    (tmp_path / "movies.csv.gz").write_bytes(gzip.compress(text.encode()))
    pl.read_csv(text.encode()).write_parquet(tmp_path / "movies.parquet")
    one, two, three = (read_items(tmp_path / f"movies.{end}") for end in ("csv", "csv.gz", "parquet"))
    assert one.columns == two.columns == three.columns
    assert one.ids.tolist() == two.ids.tolist() == three.ids.tolist() == [1, 2]


def test_ids_absent_from_the_table_are_zero_throughout(tmp_path: Path) -> None:
    (tmp_path / "users.dat").write_text(USERS)
    assert not read_users(tmp_path / "users.dat").features([99]).matrix.any()


def test_text_and_integer_ids_find_each_other(tmp_path: Path) -> None:
    (tmp_path / "users.dat").write_text(USERS)
    table = read_users(tmp_path / "users.dat")
    assert np.array_equal(table.features(np.array(["2"])).matrix, table.features([2]).matrix)


def test_columns_with_too_many_words_are_left_out_unless_named(tmp_path: Path) -> None:
    rows = "".join(f"{k},town {k}\n" for k in range(300))
    (tmp_path / "a.csv").write_text("user_id,town\n" + rows)
    table = read_users(tmp_path / "a.csv")
    assert table.features([1]).matrix.shape == (1, 0)
    assert table.features([1], ["town"]).matrix.sum() == 1


def test_table_cannot_be_changed(tmp_path: Path) -> None:
    (tmp_path / "users.dat").write_text(USERS)
    with pytest.raises(ValueError, match="read-only"):
        read_users(tmp_path / "users.dat").ids[0] = 5


@given(st.lists(st.one_of(st.just(""), st.floats(-1e6, 1e6).map(str)), min_size=1, max_size=30))
def test_numbers_are_standardised_and_missing_ones_are_zero(cells: list[str]) -> None:
    column = encoded(Column("x", "number", tuple(cells))).matrix[:, 0]
    known = np.array([bool(cell) for cell in cells])
    assert not column[~known].any()
    if known.any():
        values = column[known].astype(np.float64)
        assert abs(values.mean()) < 1e-4
        assert values.std() == pytest.approx(1, abs=1e-3) or np.ptp(values) < 1e-3


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=4, unique=True), min_size=1, max_size=20))
def test_tags_are_one_exactly_where_they_stand(cells: list[list[str]]) -> None:
    features = encoded(Column("t", "tags", tuple("|".join(cell) for cell in cells), "|"))
    for row, cell in zip(features.matrix, cells, strict=True):
        present = {name[2:] for name, value in zip(features.names, row, strict=True) if value == 1}
        assert present == set(cell)


BAD_TABLES = [
    (
        "a.csv",
        "thing,other\n1,2\n",
        "no column looks like the ids of the items: thing, other. Call the right",
    ),
    ("a.csv", "item_id,x\n1,2\n1,3\n", "rows 2 and 3: the id '1' occurs twice"),
    ("a.csv", "item_id,x\n1,2\n,3\n", "row 3: the id is missing"),
    ("a.csv", "item_id,x\n1,2\n2,3,4\n", "row 3: 3 fields where there are 2 columns"),
    ("a.csv", "item_id,x\n", "has a header but no rows"),
    ("a.csv", "1,2,3\n", "has no header. Add a first line"),
    ("a.csv", "", "is empty"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD_TABLES)
def test_bad_table_is_reported(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as caught:
        read_items(tmp_path / name)
    assert message in str(caught.value)
    assert name in str(caught.value)


def test_unknown_columns_are_answered_with_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "users.dat").write_text(USERS)
    with pytest.raises(DataError, match=r'no column "gendr".* Did you mean "gender"'):
        read_users(tmp_path / "users.dat").features([1], ["gendr"])
    (tmp_path / "a.csv").write_text("item_id,x\n1,2\n")
    with pytest.raises(DataError, match=r'no column "itemid".* Did you mean "item_id"'):
        read_items(tmp_path / "a.csv", id="itemid")


def lengths(tables: tuple[Table | None, Table | None]) -> tuple[int | None, int | None]:
    users, items = tables
    return None if users is None else len(users), None if items is None else len(items)


def test_side_tables_are_found_beside_the_ratings(tmp_path: Path) -> None:
    (tmp_path / "ratings.dat").write_text("1::1::5::9\n")
    assert lengths(side_tables(tmp_path / "ratings.dat")) == (None, None)
    (tmp_path / "movies.dat").write_bytes(MOVIES.encode("latin-1"))
    (tmp_path / "users.dat").write_text(USERS)
    assert lengths(side_tables(tmp_path / "ratings.dat")) == (2, 3)


def test_side_tables_of_another_set_are_not_taken(tmp_path: Path) -> None:
    (tmp_path / "a.item").write_text(RECBOLE_ITEM)
    (tmp_path / "u.user").write_text(USER_100K)
    assert lengths(side_tables(tmp_path / "a.inter")) == (None, 2)
    assert lengths(side_tables(tmp_path / "u.data")) == (2, None)
    assert lengths(side_tables(tmp_path / "north.csv")) == (None, None)
    (tmp_path / "b.item.gz").write_bytes(gzip.compress(RECBOLE_ITEM.encode()))
    assert lengths(side_tables(tmp_path / "b.inter.gz")) == (None, 2)


def test_genders_of_libimseti_are_a_table_of_users(tmp_path: Path) -> None:
    (tmp_path / "gender.dat").write_text("1,F\n2,U\n")
    users, _ = side_tables(tmp_path / "ratings.dat")
    assert users is not None
    assert users.features([2, 1]).matrix.tolist() == [[0, 1], [1, 0]]


def test_side_tables_are_found_in_the_same_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "ml.zip", "w") as archive:
        archive.writestr("ml/ratings.dat", "1::1::5::9\n")
        archive.writestr("ml/movies.dat", MOVIES.encode("latin-1"))
        archive.writestr("ml/users.dat", USERS)
    assert lengths(side_tables(tmp_path / "ml.zip")) == (2, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "users", "items"), [("ml-1m.zip", 6_040, 3_883), ("ml-100k.inter", 943, 1_682)]
)
def test_real_side_tables_have_their_published_counts(
    name: str, users: int, items: int, real_data: Callable[[str], Path]
) -> None:
    assert lengths(side_tables(real_data(name))) == (users, items)
