import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.data.codes import Category, Groups, Number, Region, Tags, Year
from cofactor.data.coding import Coding, published_coding
from cofactor.data.features import Column, Kind
from cofactor.data.tables import Table, items_beside, read_items, read_users, users_beside
from cofactor.errors import ConfigError, DataError

STATED = Coding.stated(
    {
        "age": Groups.between(0, 70),
        "gender": ("F", "M"),
        "zip": Region(),
        "income": Number(100.0, 50.0),
        "likes": Tags(("film", "music")),
    }
)


def table(**columns: tuple[Kind, list[str]]) -> Table:
    rows = {len(cells) for _, cells in columns.values()}
    made = tuple(
        Column(name, kind, tuple(cells), "|" if kind == "tags" else None)
        for name, (kind, cells) in columns.items()
    )
    return Table(np.arange(rows.pop()), made, "a test")


def code_of(kind: Kind, cells: list[str], name: str = "column", **settings: Any) -> Any:
    """Return how one column is coded beside another that always can be, or None if it is left out."""
    beside = ["a", "b"] * (len(cells) // 2) + ["a"] * (len(cells) % 2)
    coding = Coding.of_table(
        table(beside=("category", beside), **{name: (kind, cells)}), fewest=1, **settings
    )
    return dict(zip(coding.columns, coding.codes, strict=True)).get(name)


def test_numbers_follow_the_ids_and_what_is_unknown_is_missing() -> None:
    known = Table(
        np.array(["ann", "bob"]),
        (Column("gender", "category", ("F", "")), Column("age", "number", ("35", "12"))),
    )
    coding = Coding.stated({"age": Groups.between(0, 40, 2), "gender": ("F", "M")})
    assert coding.names == ("age=below 20", "age=20 and above", "gender=F", "gender=M")
    assert coding.width == 4
    nothing = [np.nan, np.nan]
    np.testing.assert_array_equal(
        coding.encoded(known, ["bob", "cy", "ann"]), [[1, 0, *nothing], [*nothing, *nothing], [0, 1, 1, 0]]
    )


def test_ids_match_whether_they_are_numbers_or_text() -> None:
    known = table(gender=("category", ["F", "M"]))
    coding = Coding.stated({"gender": ("F", "M")})
    np.testing.assert_array_equal(coding.encoded(known, ["1", "0"]), coding.encoded(known, np.array([1, 0])))


def test_a_table_without_a_column_is_refused() -> None:
    coding = Coding.stated({"gender": ("F", "M")})
    other = table(genders=("category", ["F", "M"]))
    message = r'^a test: there is no column "gender".*Did you mean "genders".*Add it'
    for ask in (lambda: coding.encoded(other, [0]), lambda: coding.unseen(other)):
        with pytest.raises(DataError, match=message):
            ask()


@pytest.mark.parametrize(("name", "why"), [("age", "is not a number"), ("born", "names no year")])
def test_what_is_no_number_is_refused_of_one_user_and_not_shown(name: str, why: str) -> None:
    coding = Coding.stated({"age": Groups.between(0, 70), "born": Year(1980.0, 10.0)})
    with pytest.raises(DataError, match=rf'given as "{name}" {why}\. Correct it, or leave it out') as told:
        coding.one({name: "old"})
    assert "old" not in str(told.value)
    assert np.isnan(coding.one({name: float("nan")})).all()


def test_what_is_no_number_is_missing_in_a_table_and_counted() -> None:
    coding = Coding.stated({"age": Groups((30,)), "income": Number(100.0, 50.0)})
    some = table(age=("text", ["20", "old", ""]), income=("text", ["150", "low", "high"]))
    nothing = [np.nan] * 3
    np.testing.assert_array_equal(coding.encoded(some, [0, 1, 2]), [[1, 0, 1], nothing, nothing])
    assert coding.unseen(some) == {"age": 1, "income": 2}


def test_columns_of_which_nothing_is_known_are_named() -> None:
    coding = Coding.stated(
        {"age": Groups((30,)), "gender": ("F", "M"), "note": ("x",), "income": Number(100.0, 50.0),
         "born": Year(1980.0, 10.0)}
    )  # fmt: skip
    cells: dict[str, tuple[Kind, list[str]]] = {
        "age": ("text", ["old", ""]), "gender": ("category", ["M", "x"]), "note": ("category", ["y", ""]),
        "income": ("number", ["100", ""]), "born": ("text", ["soon", ""]),
    }  # fmt: skip
    assert coding.unknown(coding.encoded(table(**cells), [0, 1])) == ("age", "note", "born")


@pytest.mark.parametrize("given", [{"age": [31]}, "users.csv", [["a", 1]], None])
def test_only_tables_are_coded(given: Any) -> None:
    for ask in (lambda: Coding.of_table(given), lambda: STATED.encoded(given, [0])):
        with pytest.raises(ConfigError, match=rf"read_users.* not a {type(given).__name__}\. Read it from"):
            ask()


@pytest.mark.parametrize("given", ["age=31", [("age", 31)], 31])
def test_only_a_mapping_tells_attributes(given: Any) -> None:
    for ask in (STATED.one, STATED.not_coded):
        with pytest.raises(ConfigError, match=rf'"age": 31.* not as a {type(given).__name__}'):
            ask(given)


def test_one_row_is_made_from_plain_values() -> None:
    row = STATED.one({"age": 31, "zip": 94105, "income": 150.0, "likes": ["music"]})
    np.testing.assert_array_equal(row, [0, 0, 0, 1, 0, 0, 0, np.nan, np.nan, 0, 0, 0, 1, 0, 1, 0, 1])
    as_text = {"age": "31", "zip": "94105", "income": "150", "likes": "music", "gender": None}
    np.testing.assert_array_equal(row, STATED.one(as_text))
    assert np.isnan(STATED.one({})).all()
    assert row.dtype == np.float32


def test_one_row_equals_the_row_of_a_table() -> None:
    cells: dict[str, tuple[Kind, list[str]]] = {
        "age": ("number", ["31"]), "gender": ("category", ["F"]), "zip": ("text", ["02139"]),
        "income": ("number", ["90"]), "likes": ("tags", ["film|music"]),
    }  # fmt: skip
    one = STATED.one({"age": 31, "gender": "F", "zip": "02139", "income": 90, "likes": {"film", "music"}})
    np.testing.assert_array_equal(STATED.encoded(table(**cells), [0])[0], one)


def test_codes_that_are_whole_numbers_are_found_however_they_are_written() -> None:
    coding = Coding.stated({"occupation": ("4", "12")})
    for same in (4, 4.0, "4", np.int64(4), np.float32(4)):
        np.testing.assert_array_equal(coding.one({"occupation": same}), [1, 0])


def test_unknown_names_are_refused_with_a_hint() -> None:
    with pytest.raises(DataError, match=r'no "gendre".*Did you mean "gender".*age, gender, zip'):
        STATED.one({"gendre": "F"})


def test_values_that_nobody_has_met_are_zero_and_counted() -> None:
    coding = Coding.stated({"gender": ("F", "M"), "likes": Tags(("film",))})
    met = table(gender=("category", ["F", "x", "y", ""]), likes=("tags", ["film", "film|golf", "", "film"]))
    np.testing.assert_array_equal(coding.encoded(met, [1]), [[0, 0, 1]])
    assert coding.unseen(met) == {"gender": 2, "likes": 1}
    assert coding.not_coded({"gender": "x", "likes": "film"}) == ("gender",)
    assert coding.not_coded({"gender": "F"}) == ()


@pytest.mark.parametrize("header", ["likes", "likes:token_seq"])
@pytest.mark.parametrize("between", [" ", "|", ", ", ";"])
def test_tags_are_the_same_whatever_stands_between_them(between: str, header: str, tmp_path: Path) -> None:
    coding = Coding.stated({"likes": Tags(("film", "music"))})
    id = "item_id:token" if ":" in header else "item_id"
    (tmp_path / "items.tsv").write_text(f"{id}\t{header}\n7\tmusic{between}film\n8\tfilm\n")
    items = read_items(tmp_path / "items.tsv")
    np.testing.assert_array_equal(coding.encoded(items, [7, 8]), [[1, 1], [1, 0]])
    assert coding.unseen(items) == {}


def test_json_brings_back_the_same() -> None:
    read = Coding.of_table(
        table(
            age=("number", [str(20 + row) for row in range(40)]),
            title=("text", [f"Film ({1950 + row})" for row in range(40)]),
            note=("text", ["something"] * 40),
        )
    )
    assert read.left_out == ('"note": it is text.',)
    for coding in (STATED, read):
        again = Coding.from_json(coding.as_json())
        assert again == coding
        assert hash(again) == hash(coding)
        assert again.names == coding.names
    assert read.read_off
    assert not STATED.read_off
    assert read != STATED


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: "{",
        lambda _: "[]",
        lambda told: json.dumps(told | {"columns": [{"kind": "Region"}]}),
        lambda told: json.dumps({key: value for key, value in told.items() if key != "read_off"}),
        lambda told: json.dumps(told | {"format": 99}),
    ],
)
def test_damaged_json_is_refused(damage: Callable[[dict[str, Any]], str]) -> None:
    with pytest.raises(DataError, match=r"cannot be read|format 99"):
        Coding.from_json(damage(json.loads(STATED.as_json())))


def test_settings_of_a_file_state_a_coding() -> None:
    told = {
        "age": {"kind": "Groups", "edges": [18, 35, 50]},
        "gender": ["F", "M"],
        "occupation": [0, 1, 2],
        "zip": {"kind": "Region"},
    }
    coding = Coding.of_settings(told)
    assert coding == Coding.stated(
        {"age": Groups((18, 35, 50)), "gender": ("F", "M"), "occupation": ("0", "1", "2"), "zip": Region()}
    )
    assert not coding.read_off


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"age": {"kind": "Group", "edges": [3]}}, r"attributes\.age: kind.*Did you mean"),
        ({"age": {"kind": "Groups", "edge": [3]}}, r'attributes\.age has "edge".*Did you mean "edges"'),
        ({"age": {"kind": "Groups", "edges": [3, 2]}}, "must increase"),
        ({"age": "F"}, "age must be a list of its values"),
        ({"age": 7}, "age must be a list of its values"),
        ({}, r"^\[attributes\] is empty\. Name columns in it"),
        ({"age": {"edges": [3]}}, r"^attributes\.age needs a kind, such as .*Number, Year, Groups"),
        ({"gender": []}, r"^attributes\.gender: values must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(told: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Coding.of_settings(told)


def test_a_coding_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="a coding names no column"):
        Coding.stated({})


def test_values_that_are_too_rare_are_left_out_with_what_to_do() -> None:
    rare = table(work=("category", ["a", "b"]), likes=("tags", ["a|b", "c"]), size=("number", ["1", "2"]))
    with pytest.raises(DataError) as told:
        Coding.of_table(rare)
    assert str(told.value).count("no value that at least 5 rows share; Coding.stated, or [attributes]") == 2
    assert '"size": fewer than 5 rows have a number there.' in str(told.value)


def test_text_that_may_be_tags_is_left_out_with_what_would_make_tags_of_it() -> None:
    words = [f"word{at}" for at in range(30)]
    several = [f"{one}, {other}" for one in words[:15] for other in words[15:]]
    read = Coding.of_table(
        table(several=("text", several), names=("text", [f"name {at} {-at}" for at in range(225)]),
              beside=("category", ["a", "b", "c"] * 75))
    )  # fmt: skip
    assert read.left_out == (
        '"several": it is text; write | between values, if a cell has several.',
        '"names": it is text.',
    )


def test_values_that_few_rows_have_get_no_number() -> None:
    read = Coding.of_table(table(work=("category", ["a"] * 6 + ["b"] * 5 + ["c"] * 4)))
    assert read.codes == (Category(("a", "b")),)
    read = Coding.of_table(table(likes=("tags", ["a|b"] * 5 + ["b|c"] * 4)))
    assert read.codes == (Tags(("a", "b")),)


def test_one_row_cannot_set_the_ends_of_age_groups() -> None:
    usual = [str(age) for age in range(20, 60)]
    old = Coding.of_table(table(age=("number", [*usual, "60"])))
    for odd in ("117", "-4"):
        # One more row may move an end to the next age that somebody has, and no further.
        moved = Coding.of_table(table(age=("number", [*usual, odd])))
        assert isinstance(moved.codes[0], Groups)
        assert isinstance(old.codes[0], Groups)
        np.testing.assert_allclose(moved.codes[0].edges, old.codes[0].edges, atol=1)
    assert isinstance(old.codes[0], Groups)
    assert len(old.codes[0].edges) == 6


@pytest.mark.parametrize(
    ("kind", "name", "cells", "code"),
    [
        ("category", "age", ["7", "73"] * 3, Groups.between(7, 73)),
        ("number", "userAge", ["7", "73"] * 3, Groups.between(7, 73)),
        ("number", "age", ["1", "18", "25", "56"], Groups((18, 25, 35, 45, 50, 56))),
        ("category", "age_group", ["18-24", "25-34"], Category(("18-24", "25-34"))),
        ("number", "occupation", ["10", "9", "9"], Category(("9", "10"))),
        ("number", "language", ["1", "3"], Number(2.0, 1.0)),
        ("text", "zip_code", ["94105", "10001", "V0R"], Region()),
        ("number", "postcode", ["94105", "10001"], Region()),
        ("text", "zip", ["V0R", "X1A"], None),
        ("number", "user_id", ["1", "2"], None),
        ("category", "email", ["a@b", "c@d"], None),
        ("text", "remark", ["good", "bad"], None),
        ("number", "height", ["170", "170"], None),
        ("category", "gender", ["F", "F"], None),
        ("number", "empty", ["", ""], None),
        ("number", "years_of_membership", ["1", "3"], Number(2.0, 1.0)),
        ("text", "title", ["Heat (1995)", "Big (1985)"], Year(1990.0, 5.0)),
        ("text", "release_date", ["01-Jan-1995", "05-May-1985"], Year(1990.0, 5.0)),
        ("text", "title", ["Heat", "Big"], None),
    ],
)
def test_columns_are_coded_by_what_they_are(kind: Kind, name: str, cells: list[str], code: Any) -> None:
    assert code_of(kind, cells, name) == code


def test_numbers_that_are_codes_can_be_named() -> None:
    assert code_of("number", ["3", "11", "3"]) == Number(5.667, 3.771)
    assert code_of("number", ["3", "11", "3"], as_category=("column",)) == Category(("3", "11"))
    with pytest.raises(DataError, match='no column "colum"'):
        code_of("number", ["3", "11"], as_category=("colum",))


def test_a_title_is_left_out_if_another_column_tells_the_year() -> None:
    read = Coding.of_table(
        table(title=("text", [f"Film ({1950 + row})" for row in range(9)]),
              year=("number", [str(1950 + row) for row in range(9)]))
    )  # fmt: skip
    assert read.columns == ("year",)
    assert read.left_out == ('"title": another column tells the year.',)


def test_a_table_that_says_nothing_of_use_is_refused() -> None:
    with pytest.raises(DataError, match=r'a test: nothing in it can be used\. "remark": it is text'):
        Coding.of_table(table(remark=("text", ["good", "bad"])))
    with pytest.raises(DataError, match="It has no column but the ids"):
        Coding.of_table(Table(np.arange(2), ()))


def test_only_named_columns_are_used() -> None:
    both = table(gender=("category", ["F", "M"] * 5), work=("category", ["a", "b"] * 5))
    assert Coding.of_table(both, ["work"]).columns == ("work",)
    with pytest.raises(DataError, match='no column "wrk"'):
        Coding.of_table(both, ["wrk"])


def test_a_coding_says_in_words_what_it_does() -> None:
    assert STATED.lines() == (
        "age: 7 groups, divided at 10, 20, 30, 40, 50, 60",
        "gender: one of 2 values",
        "zip: US region: Northeast, Midwest, South, West, other",
        "income: standardised about 100 by 50",
        "likes: any of 2 values",
    )


def test_the_published_coding_needs_the_published_columns(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("user_id,age,gender,language\n1,30,F,en\n2,40,M,de\n")
    with pytest.raises(DataError, match=r"users\.csv has no occupation and no zip"):
        published_coding(read_users(tmp_path / "users.csv"))
    (tmp_path / "users.csv").write_text("user_id,age,gender,occupation,zip\n1,30,F,3,10001\n2,65,M,4,94105\n")
    coding = published_coding(read_users(tmp_path / "users.csv"))
    assert coding.codes == (Groups.between(30, 65), Category(("F", "M")), Category(("3", "4")), Region())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ml-100k.inter", "ml-1m.zip"])
def test_users_of_movielens_become_35_numbers(name: str, real_data: Callable[[str], Path]) -> None:
    users = users_beside(real_data(name))
    assert users is not None
    for coding in (published_coding(users), Coding.of_table(users)):
        assert coding.width == 35
        assert coding.left_out == ()
        rows = coding.encoded(users, users.ids)
        np.testing.assert_array_equal(rows.sum(axis=1), 4)
        # Everyone lives somewhere, and hardly anyone outside of the four regions.
        assert rows[:, -1].mean() < 0.03
        assert rows[:, -5:-1].mean(axis=0).min() > 0.15


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ml-100k.inter", "ml-1m.zip"])
def test_films_of_movielens_become_a_year_and_18_genres(name: str, real_data: Callable[[str], Path]) -> None:
    items = items_beside(real_data(name))
    assert items is not None
    coding = Coding.of_table(items)
    assert [type(code) for code in coding.codes] == [Year, Tags]
    assert coding.width == 19
