from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from cofactor.config import as_table, from_table
from cofactor.data.files import read_ratings
from cofactor.data.public_items import PublicItems, public_items_line, public_items_lines
from cofactor.data.split import by_fraction
from cofactor.data.tables import Table, read_items
from cofactor.errors import ConfigError, DataError
from cofactor.factors.baselines import PersonalRidge, UserMean

ITEMS = PublicItems.of_numbers(
    [10, 20, 30], [[1.0, 0.0], [0.0, 0.0], [0.5, 3.0]], names=("good", "long"), source="a test"
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    public_items: PublicItems | None = None


def table_file(folder: Path, text: str, name: str = "shop.csv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_rows_follow_the_ids_and_unknown_ones_get_the_mean() -> None:
    rows = ITEMS.rows([30, 99, 10])
    np.testing.assert_allclose(rows, [[0.5, 3.0], [0.5, 1.0], [1.0, 0.0]])
    assert rows.dtype == np.float32
    assert ITEMS.known([30, 99, 10]) == 2


def test_ids_match_whether_they_are_numbers_or_text() -> None:
    np.testing.assert_array_equal(ITEMS.rows(np.array(["20", "10"])), ITEMS.rows(np.array([20, 10])))


def test_a_table_that_knows_none_of_the_items_is_refused() -> None:
    with pytest.raises(
        DataError, match=r"a test describes none of the items of north: its ids are 10, 20, 30"
    ):
        ITEMS.matching_rows(["a", "b"], owner="north")
    np.testing.assert_array_equal(ITEMS.matching_rows([10, 7], owner="north"), ITEMS.rows([10, 7]))


def test_a_setting_keeps_which_numbers_were_public_but_not_the_numbers() -> None:
    table = as_table(Settings(public_items=ITEMS))
    assert set(table["public_items"]) == {"kind", "source", "names", "sha256", "left_out"}
    again = from_table(Settings, table, "recipe").public_items
    assert again == ITEMS
    assert hash(again) == hash(ITEMS)
    assert again is not None
    assert not again.has_numbers
    for ask in (again.rows, again.known):
        with pytest.raises(ConfigError, match=r"only named here.*Make them anew from the same file"):
            ask([10])


def test_numbers_cannot_be_written_into_settings() -> None:
    table = as_table(ITEMS) | {"matrix": [[1.0]]}
    with pytest.raises(ConfigError, match='has "matrix"'):
        from_table(PublicItems, table, "public")


def test_the_hash_tells_ids_and_numbers_apart() -> None:
    others = [
        PublicItems.of_numbers([10, 20, 31], ITEMS.matrix, names=ITEMS.names, source="a test"),
        PublicItems.of_numbers(
            [10, 20, 30], ITEMS.matrix + np.float32(1e-3), names=ITEMS.names, source="a test"
        ),
    ]
    for other in others:
        assert other.sha256 != ITEMS.sha256
        assert other != ITEMS
        with pytest.raises(DataError, match="not the numbers that sha256 names"):
            replace(ITEMS, ids=other.ids, matrix=other.matrix)


@pytest.mark.parametrize(
    ("ids", "matrix", "message"),
    [
        ([1, 2], [[1.0]], "2 ids and 1 names for numbers of shape"),
        ([1, 1], [[1.0], [2.0]], "an id occurs twice"),
        ([1, 2], [[1.0], [np.nan]], "missing or not finite"),
        ([1, 2], [1.0, 2.0], "one row an item"),
        ([1, 2], [[], []], "2 ids and 0 names"),
        ([], np.zeros((0, 2)), "a test describes no items"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(ids: list[int], matrix: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        PublicItems.of_numbers(ids, matrix, source="a test")  # type: ignore[arg-type]


def test_numbers_are_as_they_were_when_they_were_declared() -> None:
    given = np.ones((2, 1), np.float32)
    items = PublicItems.of_numbers([1, 2], given, source="a test")
    given[0] = 5
    assert items.rows([1])[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        items.matrix[0] = 5


def test_a_file_is_described_by_its_columns(tmp_path: Path) -> None:
    rows = "".join(f"{k},{'red' if k % 2 else 'blue'},{k % 3}\n" for k in range(12))
    items = PublicItems.from_file(table_file(tmp_path, "item,colour,discs\n" + rows))
    assert items.names == ("colour=blue", "colour=red", "discs")
    assert items.source == "shop.csv"
    named = read_items(tmp_path / "shop.csv")
    assert PublicItems.of_table(named, columns=["discs"]).names == ("discs",)
    assert PublicItems.of_table(named, source="our shop").source == "our shop"
    with pytest.raises(DataError, match=r'no column "disc".*Did you mean "discs"'):
        PublicItems.of_table(named, columns=["disc"])


def test_a_table_that_says_nothing_usable_is_refused_with_the_reasons(tmp_path: Path) -> None:
    file = table_file(tmp_path, "item,average_rating\n1,3.5\n2,4.5\n")
    with pytest.raises(DataError, match=r'shop\.csv: nothing in it.*"average_rating": by its name it may be'):
        PublicItems.from_file(file)
    with pytest.raises(DataError, match="no column but the ids"):
        PublicItems.of_table(Table(np.array([1, 2]), ()))


def test_a_guarantee_lists_them_in_one_sentence() -> None:
    names = ("sequel", "genres=Drama", "genres=War", "genres: three or more", "year 1950", "year 1.5e+03")
    items = PublicItems.of_numbers([1, 2], np.eye(2, 6), names=names, source="movies.dat")
    assert public_items_line(items) == (
        "Item features from movies.dat (6 columns: sequel, genres (2), genres: three or more, year (2); "
        f"sha256 {items.sha256[:12]}): public, declared before training not to be made from "
        "the ratings."
    )
    assert public_items_lines(items) == (public_items_line(items),)
    assert public_items_lines(None) == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ratings", "table", "bar"),
    [("ml-1m.zip", "ml-1m.zip", 0.915), ("ml-100k.inter", "ml-100k.item", 0.93)],
)
def test_films_have_29_columns_that_tell_a_user_about_herself(
    real_data: Callable[[str], Path], ratings: str, table: str, bar: float
) -> None:
    items = PublicItems.from_file(real_data(table))
    assert len(items.names) == 29
    assert items.left_out == ()
    train, test = by_fraction(read_ratings(real_data(ratings)), 0.1, seed=0)
    models = PersonalRidge().fit(train, features=items.rows(train.item_ids)), UserMean().fit(train)
    ridge, mean = (np.mean((m.predict_rows(test.users, test.items) - test.values) ** 2) for m in models)
    assert ridge < bar * mean


FILMS = "item,title,genres,average_rating\n" + "".join(
    f"{row},Film {row} ({1980 + row}),{'Drama|Comedy' if row % 2 else 'Drama'},{row % 5}\n"
    for row in range(12)
)


def test_coded_items_remember_how_and_code_new_ones_alike(tmp_path: Path) -> None:
    items = PublicItems.coded(read_items(table_file(tmp_path, FILMS)))
    assert items.names == ("title (year)", "genres=Comedy", "genres=Drama")
    assert items.left_out == (
        '"average_rating": by its name it may be reckoned from the ratings that are to be protected.',
    )
    assert items.coding is not None
    assert items.coding.names == items.names
    new = read_items(table_file(tmp_path, "item,title,genres\n99,New (1983),Drama|War\n", "new.csv"))
    later = PublicItems.coded(new, coding=items.coding, source="later")
    np.testing.assert_array_equal(later.matrix[0], [items.rows([3])[0, 0], 0, 1])
    assert later.source == "later"
    assert later.coding == items.coding


def test_coded_items_fill_what_is_missing_with_the_mean(tmp_path: Path) -> None:
    holey = FILMS.replace("Film 4 (1984),Drama,", "Film 4,,")
    items = PublicItems.coded(read_items(table_file(tmp_path, holey)))
    others = items.rows([row for row in range(12) if row != 4])
    np.testing.assert_allclose(items.rows([4])[0], others.mean(axis=0), atol=1e-4)
    assert np.isfinite(items.matrix).all()


def test_settings_do_not_hold_the_coding(tmp_path: Path) -> None:
    items = PublicItems.coded(read_items(table_file(tmp_path, FILMS)))
    assert set(as_table(items)) == {"kind", "source", "names", "sha256", "left_out"}
    assert "coding" not in repr(items)


def test_something_else_than_a_table_is_refused_with_what_to_give() -> None:
    for make in (PublicItems.coded, PublicItems.of_table):
        with pytest.raises(ConfigError, match="as read_users and read_items return it, and not a dict"):
            make({"id": [1]})  # type: ignore[arg-type]
