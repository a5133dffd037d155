from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as numbers

from cofactor.cluster.fitting import (
    Pairs,
    as_counts,
    fitted,
    fitted_additively,
    independent,
    projected,
    sizes_of,
)
from cofactor.cluster.method import Floats
from cofactor.errors import DataError

ANY = st.floats(-1e9, 1e9)


def pairs_of(table: Floats) -> Pairs:
    return {pair: projected(table, pair) for pair in combinations(range(table.ndim), 2)}


def a_table(parties: int, clusters: int = 3, seed: int = 0) -> Floats:
    chance = np.random.default_rng(seed)
    return 1000 * chance.dirichlet(np.full(clusters**parties, 0.3)).reshape((clusters,) * parties)


@given(numbers.arrays(np.float64, (2, 3), elements=ANY), st.floats(1e-3, 1e9))
def test_counts_are_never_negative_and_add_up(table: Floats, total: float) -> None:
    found = as_counts(table, total)
    assert found.shape == (2, 3)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total)


def test_counts_are_the_nearest_that_are_possible() -> None:
    found = as_counts(np.array([[10.0, 4.0], [-3.0, 1.0]]), 10)
    np.testing.assert_allclose(found, [[8.0, 2.0], [0.0, 0.0]])
    np.testing.assert_allclose(as_counts(np.array([3.0, 7.0]), 10), [3.0, 7.0])


def test_nobody_has_a_table_of_zeros() -> None:
    assert not as_counts(np.ones((2, 2)), 0).any()
    assert not as_counts(np.ones((2, 2)), -5).any()
    assert not fitted(pairs_of(a_table(3)), (3, 3, 3), -1).any()
    assert not fitted_additively(pairs_of(a_table(3)), (3, 3, 3), 0).any()


def test_of_two_parties_the_table_is_their_own() -> None:
    table = a_table(2)
    np.testing.assert_allclose(fitted({(0, 1): table}, (3, 3), 1000), table)
    np.testing.assert_allclose(fitted_additively({(0, 1): table}, (3, 3), 1000), table, atol=1e-9)


@pytest.mark.parametrize("parties", [3, 4])
def test_a_fitted_table_has_the_pairs_that_it_was_fitted_to(parties: int) -> None:
    table = a_table(parties)
    found = fitted(pairs_of(table), table.shape, 1000)
    for pair, wanted in pairs_of(table).items():
        assert np.abs(projected(found, pair) - wanted).sum() < 0.04 * 1000


def test_independent_clusters_are_fitted_as_such() -> None:
    sizes = [np.array([500.0, 300.0, 200.0]), np.array([100.0, 0.0, 900.0]), np.array([400.0, 400.0, 200.0])]
    table = independent(sizes, 1000)
    np.testing.assert_allclose(fitted(pairs_of(table), table.shape, 1000), table, atol=1e-9)


def test_fitting_beats_the_additive_steps_of_the_thesis() -> None:
    table = a_table(4, seed=5)
    both = (fit(pairs_of(table), table.shape, 1000) for fit in (fitted, fitted_additively))
    proportional, additive = (np.abs(found - table).sum() for found in both)
    assert proportional < 0.8 * additive


def test_additive_steps_come_to_the_pairs_where_nothing_becomes_negative() -> None:
    chance = np.random.default_rng(2)
    table = 10 + chance.random((3, 3, 3))
    found = fitted_additively(pairs_of(table), table.shape, table.sum())
    for pair, wanted in pairs_of(table).items():
        np.testing.assert_allclose(projected(found, pair), wanted, rtol=1e-6)


@given(numbers.arrays(np.float64, (3, 2, 2), elements=ANY), st.floats(1e-3, 1e6))
def test_pairs_that_contradict_each_other_still_give_a_possible_table(values: Floats, total: float) -> None:
    pairs = dict(zip(combinations(range(3), 2), values, strict=True))
    for fit in (fitted, fitted_additively):
        found = fit(pairs, (2, 2, 2), total)
        assert np.isfinite(found).all()
        assert found.min() >= 0
        assert found.sum() == pytest.approx(total)


def test_a_cluster_that_one_table_holds_for_empty_is_not_lost() -> None:
    there, empty = np.array([[500.0, 0.0], [0.0, 500.0]]), np.array([[500.0, 500.0], [0.0, 0.0]])
    found = fitted({(0, 1): there, (0, 2): empty, (1, 2): there}, (2, 2, 2), 1000)
    assert 100 < found[1].sum() < 500


def test_sizes_are_the_mean_over_all_tables_that_a_party_is_in() -> None:
    pairs = {
        (0, 1): np.array([[4.0, 0.0], [0.0, 6.0]]),
        (0, 2): np.array([[2.0, 0.0], [8.0, 0.0]]),
        (1, 2): np.array([[4.0, 0.0], [6.0, 0.0]]),
    }
    first, second, third = sizes_of(pairs, (2, 2, 2))
    np.testing.assert_allclose(first, [3, 7])
    np.testing.assert_allclose(second, [4, 6])
    np.testing.assert_allclose(third, [10, 0])


def test_sizes_below_0_count_as_none_and_no_sizes_as_equal_ones() -> None:
    np.testing.assert_allclose(
        independent([np.array([3.0, -1.0]), np.array([-1.0, -2.0])], 8), [[4, 4], [0, 0]]
    )


def test_missing_tables_and_those_of_other_shapes_are_refused() -> None:
    table = np.ones((2, 2))
    for pairs in ({(0, 1): table, (0, 2): table}, {(1, 0): table}, {(0, 1): np.ones((2, 3))}, {}):
        for fit in (fitted, fitted_additively):
            with pytest.raises(DataError, match="every pair"):
                fit(pairs, (2, 2, 2) if len(pairs) == 2 else (2, 2), 10)


def test_numbers_that_are_not_finite_are_refused() -> None:
    for table, total in ((np.array([np.nan, 1.0]), 1.0), (np.ones(2), np.inf)):
        with pytest.raises(DataError, match="finite"):
            as_counts(table, total)
