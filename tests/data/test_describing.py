from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.data.describing import FEWEST_ITEMS, KNOTS, MOST_COLUMNS, MOST_WORDS, Described, described
from cofactor.data.features import Column


def of(kind: Any, *cells: object, name: str = "c", between: str | None = None) -> Column:
    return Column(name, kind, tuple(map(str, cells)), between)


def column(found: Described, name: str) -> list[float]:
    return [round(float(value), 4) for value in found.matrix[:, found.names.index(name)]]


def test_titles_tell_sequels_alternative_titles_and_years() -> None:
    titles = [f"Film ({1950 + k})" for k in range(30)]
    titles += [f"Rocky {roman} ({1980 + k})" for k, roman in enumerate(("II", "III", "IV", "V", "VI"))]
    titles += [f"Lost Children (Enfants perdus) ({1990 + k})" for k in range(5)]
    found = described([of("text", *titles, name="title")])
    assert found.names[:2] == ("sequel", "alternative title")
    assert column(found, "sequel") == [0] * 30 + [1] * 5 + [0] * 5
    assert column(found, "alternative title") == [0] * 35 + [1] * 5
    assert all(name.startswith("year 19") for name in found.names[2:])
    assert len(found.names) == 2 + KNOTS


def test_a_stated_year_comes_before_that_of_the_title() -> None:
    titles = of("text", *(f"Film ({1900 + k})" for k in range(30)), name="title")
    years = of("category", *(f"{1960 + k}" for k in range(29)), "unkonwn", name="release_year")
    found = described([titles, years])
    assert all(name.startswith("release_year 19") for name in found.names)
    np.testing.assert_allclose(found.matrix[-1], found.matrix[:-1].mean(axis=0), atol=1e-4)


def test_dates_count_by_their_year() -> None:
    dates = of("text", *(f"01-Jan-{1960 + k}" for k in range(30)), name="release_date")
    years = of("number", *(1960 + k for k in range(30)), name="release_date")
    np.testing.assert_array_equal(described([dates]).matrix, described([years]).matrix)


@given(st.lists(st.integers(-10_000, 10_000), min_size=30, max_size=80, unique=True), st.data())
def test_hats_of_a_number_add_up_to_one_and_overlap_in_pairs(numbers: list[int], data: st.DataObject) -> None:
    repeated = numbers + data.draw(st.lists(st.sampled_from(numbers), max_size=40))
    hats = described([of("number", *repeated)]).matrix
    assert hats.shape == (len(repeated), KNOTS)
    np.testing.assert_allclose(hats.sum(axis=1), 1, atol=1e-3)
    assert ((hats > 0).sum(axis=1) <= 2).all()
    assert (hats.max(axis=0) == 1).all()


def test_knots_weigh_a_value_by_the_root_of_its_items() -> None:
    # Forty years of one film each weigh as much as one of 1,600: half of the eight knots are among them.
    years = [*range(40), *[40] * 1600]
    found = described([of("number", *years, name="year")])
    assert found.names == ("year 5", "year 15", "year 25", "year 35", "year 40")


def test_numbers_with_few_values_are_standardised_and_cut_off() -> None:
    numbers = [0] * 98 + [1, 50]
    found = described([of("number", *numbers, "", name="discs")])
    plain = np.array(numbers, float)
    expected = np.minimum((plain - plain.mean()) / plain.std(), 3)
    np.testing.assert_allclose(found.matrix[:-1, 0], expected, atol=1e-4)
    assert found.matrix[-1, 0] == 0
    assert found.names == ("discs",)


def test_tags_have_a_column_each_and_one_for_three_or_more() -> None:
    cells = ["Drama|War|Sci-Fi"] * 6 + ["Drama"] * 6 + ["Sci-Fi"] * 5 + ["War|Rare"] * 4
    found = described([of("tags", *cells, name="genres", between="|")])
    assert found.names == ("genres=Drama", "genres=Sci-Fi", "genres=War", "genres: three or more")
    assert column(found, "genres: three or more") == [1] * 6 + [0] * 15
    assert column(found, "genres=War") == [1] * 6 + [0] * 11 + [1] * 4


@pytest.mark.parametrize(("between", "cells"), [(";", "a;b"), (",", "a, b"), ("|", "a|b")])
def test_values_that_are_lists_are_taken_apart(between: str, cells: str) -> None:
    lists = [cells] * 6 + ["b"] * 6 + ["c"] * 6
    kind = "text" if between == "|" else "category"
    assert described([of(kind, *lists)]).names == ("c=a", "c=b", "c=c")


def test_values_that_too_few_items_have_or_have_not_are_left_out() -> None:
    few = FEWEST_ITEMS - 1
    cells = ["red"] * 20 + ["blue"] * 20 + ["green"] * few
    assert described([of("category", *cells)]).names == ("c=blue", "c=red")
    assert described([of("category", *["red"] * 20, *["blue"] * few)]).names == ()


def test_text_gives_its_most_frequent_words_but_not_the_commonest() -> None:
    words = [f"word{chr(97 + k)}" for k in range(MOST_WORDS + 4)]
    texts = ["Same old"] * 41 + ["Then"] * 159
    for k, word in enumerate(words):
        for text in range(3 * k, 3 * k + 40 - k):
            texts[text] += f" {word.title()}!"
    found = described([of("text", *texts[:200], name="plot")])
    # 40 of 200 texts are a fifth: "same" is in one more. "old" has too few letters.
    assert found.names == tuple(f"plot={word}" for word in words[:MOST_WORDS])


@pytest.mark.parametrize("name", ["imdbId", "tmdb_id", "ISBN", "isbn13", "Unnamed: 0", "image_url"])
def test_columns_that_name_things_are_left_out_and_said(name: str) -> None:
    found = described([of("number", *range(40), name=name)])
    assert found.names == ()
    assert found.left_out == (f'"{name}": it names things, and does not describe them.',)


@pytest.mark.parametrize(
    "name",
    [
        *("rating", "average_rating", "ratingsCount", "vote_average", "stars", "review_count", "popularity"),
        *("avgrating", "numratings", "bayesaverage", "scored_by", "followers", "usersRated", "num_voters"),
        *("imdbScore", "watchers", "favourites", "mean", "users", "wanting", "checkins"),
    ],
)
def test_numbers_that_may_tell_ratings_are_left_out_unless_they_are_chosen(name: str) -> None:
    numbers = of("number", *range(40), name=name)
    assert described([numbers]).names == ()
    assert "reckoned from the ratings" in described([numbers]).left_out[0]
    assert len(described([numbers], chosen=True).names) == KNOTS


@pytest.mark.parametrize(
    "name",
    [
        *("start_year", "price", "pages", "duration", "operating_system", "opening", "generation"),
        *("min_players", "playing_time", "temperature", "meaning"),
    ],
)
def test_other_numbers_are_kept(name: str) -> None:
    assert described([of("number", *range(40), name=name)]).left_out == ()


def test_categories_called_ratings_are_kept() -> None:
    cells = ["PG"] * 6 + ["R"] * 6
    assert described([of("category", *cells, name="content_rating")]).names == (
        "content_rating=PG",
        "content_rating=R",
    )


def test_links_are_left_out_but_not_texts_that_begin_with_one() -> None:
    links = of("text", *(f"https://shop/{k}" for k in range(20)), name="where")
    assert described([links]).left_out == ('"where": it names things, and does not describe them.',)
    texts = of("text", "https://shop says wonderful", *["wonderful", "awful", "", "", "", "", "", ""] * 6)
    assert "c=wonderful" in described([texts]).names


def test_constant_and_duplicate_columns_are_dropped() -> None:
    once = of("number", *([1, 2, 3] * 5), name="a")
    again, constant = of("number", *([1, 2, 3] * 5), name="b"), of("number", *[7] * 15, name="c")
    found = described([once, again, constant])
    assert found.names == ("a",)


def test_of_too_many_columns_the_rarest_are_left_out_and_counted() -> None:
    cells = [f"v{k}" for k in range(80) for _ in range(5 + k)]
    found = described([of("category", *cells), of("number", *([0, 1] * (len(cells) // 2)), name="n")])
    assert len(found.names) == MOST_COLUMNS
    assert "n" in found.names
    kept = {int(name.removeprefix("c=v")) for name in found.names if name != "n"}
    assert kept == set(range(80 - MOST_COLUMNS + 1, 80))
    assert found.left_out[-1].endswith("that vary less than the 64 that were kept.")


@given(
    st.lists(
        st.tuples(st.text(max_size=8), st.sampled_from(["", "a", "a|b", "x, y", "1995"]), st.floats()),
        min_size=1,
        max_size=40,
    )
)
def test_any_table_gives_finite_numbers_that_its_names_fit(rows: list[tuple[str, str, float]]) -> None:
    texts, tags, numbers = zip(*rows, strict=True)
    found = described(
        [
            of("text", *texts, name="title"),
            of("text", *texts, name="plot"),
            of("tags", *tags, name="year"),
            of("category", *tags),
            of("number", *numbers, name="n"),
        ]
    )
    assert found.matrix.shape == (len(rows), len(found.names))
    assert np.isfinite(found.matrix).all()
    assert len(found.names) <= MOST_COLUMNS
