import math

import pytest

from cofactor.config import as_table, from_table
from cofactor.errors import ConfigError
from cofactor.privacy.budget import Unit
from cofactor.recipes.clipping import Clipping, EmbeddingClipping, GradientClipping, Reach, reach

R = 5.0


def embedding(unit: Unit, *, both: bool, most_ratings: int | None = None) -> Reach:
    return reach(EmbeddingClipping(), highest=R, unit=unit, most_ratings=most_ratings, both=both)


def test_a_rating_reaches_as_far_as_the_paper_says() -> None:
    assert embedding("rating", both=True).bound.size == pytest.approx(2 * math.sqrt(2) * R**1.5)
    assert embedding("rating", both=False).bound.size == pytest.approx(2 * R**1.5)


def test_a_users_item_rows_are_disjoint_and_reach_only_the_root_as_far() -> None:
    assert embedding("user", both=False, most_ratings=9).bound.size == pytest.approx(3 * 2 * R**1.5)


@pytest.mark.parametrize("most_ratings", [1, 2, 10, 1000])
def test_both_sums_divided_by_their_factors_change_by_no_more_than_the_bound(most_ratings: int) -> None:
    found = embedding("user", both=True, most_ratings=most_ratings)
    assert found.users is not None
    on_users, on_items = most_ratings * 2 * R**1.5, math.sqrt(most_ratings) * 2 * R**1.5
    assert math.hypot(on_users / found.users, on_items / found.items) == pytest.approx(found.bound.size)
    # 1/z_U^2 + 1/z_V^2 = 1/z^2, where z_U and z_V are noise divided by what one user changes.
    z_users, z_items = found.bound.size * found.users / on_users, found.bound.size * found.items / on_items
    assert 1 / z_users**2 + 1 / z_items**2 == pytest.approx(1)
    assert z_users == pytest.approx(z_items)


@pytest.mark.parametrize("unit", ["rating", "user"])
@pytest.mark.parametrize("both", [True, False])
def test_a_limit_on_gradients_is_the_bound(unit: Unit, both: bool) -> None:
    found = reach(GradientClipping(limit=1.5), highest=R, unit=unit, most_ratings=None, both=both)
    assert (found.bound.size, found.bound.unit, found.bound.norm) == (1.5, unit, "l2")
    assert (found.users, found.items) == (1.0 if both else None, 1.0)


def test_bounds_are_about_a_unit_that_becomes_empty() -> None:
    assert embedding("user", both=True, most_ratings=3).bound.adjacency == "empty"


def test_a_user_without_a_most_number_of_ratings_has_no_bound_under_embedding_clipping() -> None:
    with pytest.raises(ConfigError, match="needs most_ratings"):
        embedding("user", both=True)


def test_embedding_clipping_refuses_a_centre_and_negative_ratings() -> None:
    EmbeddingClipping().check_scale(lowest=0.5)
    with pytest.raises(ConfigError, match="Use centre 0"):
        EmbeddingClipping().check_scale(lowest=0.5, centre=3.5)
    with pytest.raises(ConfigError, match="from -10"):
        EmbeddingClipping().check_scale(lowest=-10)
    GradientClipping().check_scale(lowest=-10, centre=3.5)


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan, math.inf, 1e9])
def test_a_limit_must_be_a_number_to_compute_with(limit: float) -> None:
    with pytest.raises(ConfigError, match="limit must"):
        GradientClipping(limit=limit)


@pytest.mark.parametrize("clipping", [EmbeddingClipping(), GradientClipping(limit=2.0, nonnegative=True)])
def test_a_clipping_survives_the_way_through_a_settings_file(clipping: Clipping) -> None:
    assert from_table(EmbeddingClipping | GradientClipping, as_table(clipping), "clipping") == clipping
