from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.data.prepare import (
    active_users,
    first_halves,
    item_features,
    libimseti_core,
    movie_features,
    only_items,
    yelp_subset,
)
from cofactor.data.ratings import Ratings
from cofactor.data.tables import Table, read_items
from cofactor.errors import ConfigError, DataError


def block(users: int, items: int) -> Ratings:
    """Every user has rated every item."""
    rows, columns = np.divmod(np.arange(users * items), items)
    return Ratings.from_arrays(rows + 1, columns + 1, 1 + (rows + columns) % 5)


def triangle(size: int) -> Ratings:
    """User k has rated items 1 to k."""
    pairs = [(user, item) for user in range(1, size + 1) for item in range(1, user + 1)]
    return Ratings.from_arrays([u for u, _ in pairs], [i for _, i in pairs], [1 + i % 5 for _, i in pairs])


def test_active_users_have_enough_ratings_and_unrated_items_go() -> None:
    kept = active_users(triangle(30), at_least=20)
    assert kept.user_ids.tolist() == list(range(20, 31))
    assert kept.item_count == 30
    assert active_users(triangle(19)).item_count == 0


def test_active_users_keep_their_ratings() -> None:
    ratings = triangle(25)
    kept = active_users(ratings, at_least=24)
    assert kept.values.tolist() == ratings.values[-49:].tolist()


def test_first_halves_have_half_of_each_count() -> None:
    half = first_halves(block(9, 7))
    assert half.user_ids.tolist() == [1, 2, 3, 4]
    assert half.item_ids.tolist() == [1, 2, 3]
    assert len(half) == 12


def test_yelp_subset_has_the_asked_shape_and_repeats_under_a_seed() -> None:
    ratings = triangle(40)
    one = yelp_subset(ratings, users=5, items=20, at_least=10, seed=3)
    assert (one.user_count, one.item_count) == (5, 20)
    assert one.item_ids.tolist() == list(range(1, 21))
    assert one.by_user.sizes.min() >= 10
    again = yelp_subset(ratings, users=5, items=20, at_least=10, seed=3)
    other = yelp_subset(ratings, users=5, items=20, at_least=10, seed=4)
    assert one.user_ids.tolist() == again.user_ids.tolist() != other.user_ids.tolist()


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1), st.integers(1, 5))
def test_libimseti_core_is_the_largest_part_where_all_have_enough(
    pairs: set[tuple[int, int]], at_least: int
) -> None:
    users, items = np.array(sorted(pairs)).T
    core = libimseti_core(Ratings.from_arrays(users, items), at_least=at_least)
    found = set(zip(core.user_ids[core.users].tolist(), core.item_ids[core.items].tolist(), strict=True))
    left = set(pairs)
    while True:  # the plain definition: strike out one weak user or item at a time
        weak = next(
            (
                (side, one)
                for side in (0, 1)
                for one in range(10)
                if 0 < sum(pair[side] == one for pair in left) < at_least
            ),
            None,
        )
        if weak is None:
            break
        left = {pair for pair in left if pair[weak[0]] != weak[1]}
    assert found == left


def test_only_items_keeps_the_named_items_and_all_users() -> None:
    kept = only_items(triangle(5), [2, "3", 99])
    assert kept.item_ids.tolist() == [2, 3]
    assert kept.user_count == 5
    assert len(kept) == 7


def test_preparations_refuse_senseless_numbers() -> None:
    with pytest.raises(ConfigError, match="at_least must be at least 1"):
        active_users(triangle(3), at_least=0)


def films(tmp_path: Path, text: str, name: str = "movies.csv") -> Table:
    (tmp_path / name).write_text(text)
    return read_items(tmp_path / name)


CSV = (
    "movieId,title,genres\n"
    "1,Toy Story 2 (1999),Animation|Children|Comedy\n"
    '2,"City of Lost Children, The (Cité des enfants perdus, La) (1995)",Adventure\n'
    "3,Metropolis (1926),Sci-Fi|IMAX\n"
    "4,No Year,(no genres listed)\n"
    "5,Rocky IV (1985),Drama\n"
)


def named(table: Table, film: int) -> dict[str, float]:
    features = movie_features(table, [film])
    return {n: v for n, v in zip(features.names, features.matrix[0].tolist(), strict=True) if v}


def test_movie_features_by_hand(tmp_path: Path) -> None:
    table = films(tmp_path, CSV)
    assert named(table, 1) == {
        "Animation": 1, "Children's": 1, "Comedy": 1, "year 1998": 1, "sequel": 1, "three genres": 1,
    }  # fmt: skip
    assert named(table, 2) == {"Adventure": 1, "year 1995": 1, "alternative title": 1}
    assert named(table, 3) == {"Sci-Fi": 1, "year 1930": 1}
    assert named(table, 4) == {"year 1990": pytest.approx(0.2), "year 1995": pytest.approx(0.8)}
    assert named(table, 5) == {
        "Drama": 1, "year 1982": pytest.approx(0.625), "year 1990": pytest.approx(0.375), "sequel": 1,
    }  # fmt: skip


def test_movie_features_are_29_and_unknown_films_are_zero(tmp_path: Path) -> None:
    features = movie_features(films(tmp_path, CSV), [5, 99, 1])
    assert features.matrix.shape == (3, 29)
    assert len(set(features.names)) == 29
    assert features.matrix.any(axis=1).tolist() == [True, False, True]


def test_year_hats_add_up_to_one_for_every_year(tmp_path: Path) -> None:
    rows = "".join(f"{year},Film ({year}),Drama\n" for year in range(1900, 2030))
    hats = movie_features(films(tmp_path, "movieId,title,genres\n" + rows), range(1900, 2030)).matrix[
        :, 18:26
    ]
    assert np.allclose(hats.sum(axis=1), 1)
    assert ((hats > 0).sum(axis=1) <= 2).all()


def test_the_three_kinds_of_film_tables_agree(tmp_path: Path) -> None:
    one = films(tmp_path, "1::Babe (1995)::Children's|Comedy\n", "movies.dat")
    two = films(tmp_path, "movieId,title,genres\n1,Babe (1995),Children|Comedy\n")
    three = films(
        tmp_path,
        "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
        "1\tBabe\t1995\tChildren's Comedy\n",
        "a.item",
    )
    assert named(one, 1) == named(two, 1) == named(three, 1)


def test_a_table_without_genres_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="needs titles and genres; its columns are: title"):
        movie_features(films(tmp_path, "movieId,title\n1,Babe (1995)\n"), [1])


def test_item_features_describe_films_as_films_and_others_by_their_columns(tmp_path: Path) -> None:
    film = films(tmp_path, "movieId,title,genres\n1,Heat (1995),Action|Crime\n")
    shop = films(tmp_path, "item,colour,price\n1,red,3.5\n2,blue,4.5\n", "shop.csv")
    assert item_features(film, [1]).names == movie_features(film, [1]).names
    assert item_features(shop, [1, 2]).names == shop.features([1, 2]).names
    assert item_features(shop, [1, 2]).matrix.shape[1] == 3
