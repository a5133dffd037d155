from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.data.codes import Category, Code, Groups, Number, Region, Tags, Year, unseen, why_missing
from cofactor.errors import ConfigError

CODES: tuple[Code, ...] = (
    Number(10.0, 2.0),
    Year(1990.0, 10.0),
    Groups.between(0, 70),
    Category(("F", "M")),
    Tags(("Comedy", "Drama")),
    Region(),
)


def test_numbers_are_standardised_and_cut_off() -> None:
    found = Number(10.0, 2.0).encoded(["10", "13", "-1e9", "1e9", "", "nan", "inf", "1e300"])
    np.testing.assert_allclose(found[:, 0], [0, 1.5, -3, 3, np.nan, np.nan, np.nan, np.nan])


def test_the_last_year_of_a_text_counts() -> None:
    cells = ["2001: A Space Odyssey (1968)", "01-Jan-1995", "Heat", "19950 miles", ""]
    found = Year(1990.0, 10.0).encoded(cells)
    np.testing.assert_allclose(found[:, 0], [-2.2, 0.5, np.nan, np.nan, np.nan], rtol=1e-6)


def test_groups_have_equal_width_and_the_ends_take_what_lies_beyond() -> None:
    groups = Groups.between(0, 70)
    assert list(groups.edges) == [10, 20, 30, 40, 50, 60]
    found = groups.encoded(["-5", "0", "9.9", "10", "59.9", "60", "70", "1000"])
    np.testing.assert_array_equal(found.argmax(axis=1), [0, 0, 0, 1, 5, 6, 6, 6])
    np.testing.assert_array_equal(found.sum(axis=1), 1)
    assert groups.suffixes() == (
        "=below 10", "=10 to 20", "=20 to 30", "=30 to 40", "=40 to 50", "=50 to 60", "=60 and above",
    )  # fmt: skip
    assert np.isnan(groups.encoded([""])).all()


def test_categories_are_one_and_tags_any() -> None:
    np.testing.assert_array_equal(
        Category(("F", "M")).encoded(["M", "F", "x", ""]), [[0, 1], [1, 0], [0, 0], [np.nan, np.nan]]
    )
    np.testing.assert_array_equal(
        Tags(("Comedy", "Drama")).encoded(["Drama | Comedy", "Drama|War", "War", ""]),
        [[1, 1], [0, 1], [0, 0], [np.nan, np.nan]],
    )


def test_zip_codes_become_regions() -> None:
    found = Region().encoded(["94105", "K7L5J", ""])
    np.testing.assert_array_equal(found, [[0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [np.nan] * 5])


def test_values_without_a_number_are_counted() -> None:
    assert unseen(Category(("F", "M")), ["F", "x", "", "y"]) == 2
    assert unseen(Tags(("a", "b")), ["a|b", "a|c", "", "c|d"]) == 2
    assert unseen(Number(0.0, 1.0), ["7"]) == unseen(Region(), ["K7L5J"]) == 0


@pytest.mark.parametrize("code", [Number(0.0, 1.0), Groups((3.0,)), Year(1990.0, 5.0)])
def test_what_is_no_number_is_missing_and_counted_where_a_number_is_coded(code: Code) -> None:
    cells = ["1995", "soon", "", "1996", "later"]
    found = code.encoded(cells)
    np.testing.assert_array_equal(np.isnan(found).any(axis=1), [False, True, True, False, True])
    assert unseen(code, cells) == 2
    assert unseen(code, []) == 0
    assert why_missing(code)


@pytest.mark.parametrize("code", [Category(("F",)), Tags(("F",)), Region()])
def test_any_text_is_something_where_no_number_is_coded(code: Code) -> None:
    assert not np.isnan(code.encoded(["soon"])).any()
    assert why_missing(code) == ""


@pytest.mark.parametrize(
    ("cell", "parts"),
    [
        ("Drama|Film Noir", ["Drama", "Film Noir"]),
        ("Film Noir", ["Film Noir"]),
        ("Drama Sci-Fi", ["Drama", "Sci-Fi"]),
        ("Drama, Film Noir", ["Drama", "Film Noir"]),
        ("Drama;Sci-Fi", ["Drama", "Sci-Fi"]),
        ("Drama ,Sci-Fi | Film Noir", ["Drama", "Sci-Fi", "Film Noir"]),
        ("Drama, Anime", ["Drama, Anime"]),
        ("Drama Sci-Fi|Anime", ["Drama Sci-Fi", "Anime"]),
        ("", []),
        (" | ", []),
    ],
)
def test_tags_are_divided_by_any_usual_separator_that_leaves_known_ones(cell: str, parts: list[str]) -> None:
    assert Tags(("Drama", "Film Noir", "Sci-Fi")).parts(cell) == parts


@given(st.sampled_from(CODES), st.lists(st.text(max_size=12), max_size=5))
def test_whatever_stands_in_a_table_is_bounded(code: Code, cells: list[str]) -> None:
    found = code.encoded(cells)
    assert found.shape == (len(cells), len(code.suffixes()))
    assert found.dtype == np.float32
    assert not (np.abs(found) > 3).any()
    # A column is known as a whole or missing as a whole.
    np.testing.assert_array_equal(np.isnan(found).any(axis=1), np.isnan(found).all(axis=1))


@pytest.mark.parametrize(
    ("make", "values"),
    [
        (Number, (0.0, 0.0)),
        (Number, (float("nan"), 1.0)),
        (Number, (True, 1.0)),
        (Year, (1990.0, -1.0)),
        (Groups, ((),)),
        (Groups, ((3.0, 3.0),)),
        (Groups, ((float("inf"),),)),
        (Groups.between, (70, 0)),
        (Groups.between, (0, 70, 1)),
        (Category, ((),)),
        (Category, (("F", "F"),)),
        (Category, ("FM",)),
        (Category, (("F", " "),)),
        (Tags, ((1, 2),)),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Any, values: tuple[Any, ...]) -> None:
    with pytest.raises(ConfigError):
        make(*values)
