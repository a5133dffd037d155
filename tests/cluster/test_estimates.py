"""What registers tell. Chance is repeatable here: the same draws in every run."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import optimize

from cofactor.cluster import estimates
from cofactor.cluster.estimates import (
    complements,
    deviation,
    harmonic,
    harmonic_as_written,
    likelihood,
    sizes,
    ties,
)
from cofactor.cluster.fitting import as_counts
from cofactor.cluster.method import Floats, Integers
from cofactor.cluster.register_law import RegisterLaw
from cofactor.cluster.sketching import LARGEST_HASH, drawn
from cofactor.privacy import bounding
from cofactor.privacy.sketches import PartitionSketch
from cofactor.randomness import InsecureRandom

SKETCH = PartitionSketch(rows=4096, phantoms=1231, low=10, high=18)
WIDE = PartitionSketch(rows=4096, phantoms=3401, low=13, high=LARGEST_HASH)
TABLE = np.array([[3800, 20, 0], [150, 4200, 900], [0, 10, 2600]])


def noisy(table: Integers, sketch: PartitionSketch, seed: int = 0) -> list[Integers]:
    random = InsecureRandom(seed)
    return [sketch.noisy(bounding.registers(each), random) for each in drawn(table, sketch.rows, random)]


def alike(users: int, sketch: PartitionSketch, clusters: int = 100) -> Integers:
    """Return registers of many clusters of the same size."""
    return noisy(np.full((clusters, 1), users), sketch)[0]


def slope_of(function: Callable[[float], Floats], at: float) -> Floats:
    return (function(at + 0.01) - function(at - 0.01)) / 0.02


# The law.


def test_the_law_of_one_register_is_that_of_the_largest_hash_clipped() -> None:
    chances, slopes = RegisterLaw(SKETCH).one(np.array([2000.0]))
    values = np.arange(SKETCH.low, SKETCH.high + 1)
    below = np.append((1 - 2.0 ** -values[:-1]) ** 2000, 1)
    np.testing.assert_allclose(chances[0], np.diff(below, prepend=0), rtol=1e-9)
    by_hand = slope_of(lambda n: RegisterLaw(SKETCH).one(np.array(n))[0], 2000.0)
    np.testing.assert_allclose(slopes[0], by_hand, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("elements", [(700.0, 1500.0, 900.0), (700.0, 1500.0, 0.0), (0.0, 300.0, 40.0)])
def test_the_law_of_two_registers_adds_up_to_that_of_all_below(elements: tuple[float, ...]) -> None:
    own, other, common = elements
    found = RegisterLaw(SKETCH).two(*map(np.array, elements)).at
    values = np.arange(SKETCH.low, SKETCH.high + 1)
    below = np.append(1 - 2.0 ** -values[:-1], 1)
    smaller = np.minimum(below[:, None], below)
    expected = below[:, None] ** own * below**other * smaller**common
    np.testing.assert_allclose(found.cumsum(axis=0).cumsum(axis=1), expected, rtol=1e-9)
    assert found.min() >= 0


def test_slopes_of_the_law_of_two_are_those_of_small_steps() -> None:
    law, at = RegisterLaw(SKETCH), [700.0, 1500.0, 900.0]
    found = law.two(*map(np.array, at))
    for place, slopes in enumerate((found.own, found.other, found.common)):

        def moved(value: float, place: int = place) -> Floats:
            return law.two(*(np.array(value if each == place else at[each]) for each in range(3))).at

        np.testing.assert_allclose(slopes, slope_of(moved, at[place]), rtol=1e-4, atol=1e-12)


# Sizes and unions.


def test_the_harmonic_mean_is_unbiased_and_as_exact_as_it_should_be() -> None:
    registers = drawn(np.full((400, 1), 47_000), 4096, InsecureRandom(1))[0]
    found = harmonic(registers, 0)
    assert found.mean() == pytest.approx(47_000, rel=0.01)
    assert 0.98 < found.std() / 47_000 * np.sqrt(4096) < 1.1


def test_the_harmonic_mean_taken_at_its_word_more_than_doubles_everything() -> None:
    registers = drawn(np.full((50, 1), 47_000), 4096, InsecureRandom(1))[0]
    assert 2.15 < harmonic_as_written(registers, 0).mean() / 47_000 < 2.28


def test_unions_of_two_parties_clusters_with_phantoms_are_unbiased() -> None:
    """The mean of 200 unions deviates by 0.12%; the seed is fixed."""
    sketch = PartitionSketch(rows=4096, phantoms=1000, low=6, high=33)
    sizes = []
    for seed in range(200):
        random = InsecureRandom(seed)
        both = drawn(np.array([[0, 20_000], [20_000, 10_000]]), 4096, random)
        first, second = (sketch.noisy(bounding.registers(each), random) for each in both)
        sizes.append(harmonic(np.maximum(first[:, 1], second[:, 1])[:, None], 2000)[0])
    assert np.mean(sizes) == pytest.approx(50_000, rel=0.01)


@pytest.mark.parametrize("sketch", [SKETCH, WIDE])
@pytest.mark.parametrize("users", [0, 500, 4000, 20_000])
def test_sizes_are_unbiased_whatever_is_clipped(users: int, sketch: PartitionSketch) -> None:
    found = sizes(alike(users, sketch), sketch)
    elements = users + sketch.phantoms
    assert abs(found.mean() - users) < 0.012 * elements
    assert found.std() * np.sqrt(sketch.rows) < 2.6 * elements


def test_clipping_biases_the_harmonic_mean_of_one_cluster() -> None:
    assert harmonic(alike(500, WIDE), WIDE.phantoms).mean() > 3000


def test_registers_all_at_an_end_give_an_end_and_nothing_fails() -> None:
    lowest, highest = (np.full((64, 1), end) for end in (SKETCH.low, SKETCH.high))
    assert -SKETCH.phantoms <= sizes(lowest, SKETCH)[0] < 0
    assert 2**SKETCH.high < sizes(highest, SKETCH)[0] < np.inf
    for one in (lowest, highest):
        for other in (lowest, highest):
            for table in (ties(one, other, SKETCH), likelihood(one, other, SKETCH, 1000)):
                assert np.isfinite(table).all()


# Tables.


def test_complements_are_unbiased_where_nothing_is_clipped() -> None:
    sketch = PartitionSketch(rows=4096, phantoms=50, low=1, high=LARGEST_HASH)
    found = [complements(noisy(TABLE, sketch, seed), 50, TABLE.sum()) for seed in range(40)]
    deviations = 1.04 * TABLE.sum() / np.sqrt(4096 * 40)
    assert np.abs(np.mean(found, axis=0) - TABLE).max() < 5 * deviations


def test_complements_of_three_parties_are_those_of_a_loop() -> None:
    registers = [np.random.default_rng(place).integers(3, 20, (16, 2 + place)) for place in range(3)]
    found = complements(registers, 7, 1000)
    assert found.shape == (2, 3, 4)
    for cell in np.ndindex(2, 3, 4):
        others = [np.delete(each, own, axis=1) for each, own in zip(registers, cell, strict=True)]
        union = np.concatenate(others, axis=1).max(axis=1)
        expected = 1000 - (0.5 / np.log(2) / np.mean(2.0**-union) - 6 * 7)
        assert found[cell] == pytest.approx(expected)


def test_ties_and_the_most_likely_table_are_unbiased() -> None:
    drawn_often = [noisy(TABLE, SKETCH, seed) for seed in range(40)]
    for found in (
        np.array([ties(first, second, SKETCH) for first, second in drawn_often]),
        np.array([likelihood(first, second, SKETCH, 1.3 * TABLE.sum()) for first, second in drawn_often]),
    ):
        assert np.abs(found.mean(axis=0) - TABLE).max() < 60
        assert found.std(axis=0).max() < 150


def test_the_most_likely_table_beats_ties_and_ties_beat_complements() -> None:
    # The most likely table gains a quarter on five clusters, and a tenth on three: with few draws of a small
    # table, chance is larger than that.
    table = 40 + np.diag([3600, 2900, 4100, 3300, 5000]) + np.diag([700, 0, 300, 0], 1)
    total, errors = float(table.sum()), []
    for seed in range(20):
        first, second = noisy(table, SKETCH, seed)
        tables = (
            likelihood(first, second, SKETCH, total),
            ties(first, second, SKETCH),
            complements([first, second], SKETCH.phantoms, total),
        )
        errors.append([np.abs(as_counts(each, total) - table).sum() / total for each in tables])
    likely, tied, complement = np.mean(errors, axis=0)
    assert likely < 0.95 * tied
    assert tied < 0.6 * complement


def test_the_slope_of_the_likelihood_is_that_of_small_steps() -> None:
    first, second = noisy(TABLE, SKETCH)
    law = RegisterLaw(SKETCH)
    shares = estimates._two_way(first, second, law)
    np.testing.assert_allclose(shares.sum(axis=(2, 3)), 1)
    assert shares[1, 2, 4, 3] == np.mean((first[:, 1] == law.values[4]) & (second[:, 2] == law.values[3]))

    def value(flat: Floats) -> float:
        return estimates._log_likelihood(flat.reshape(3, 3), shares, law, SKETCH.phantoms)[0]

    def slope(flat: Floats) -> Floats:
        return estimates._log_likelihood(flat.reshape(3, 3), shares, law, SKETCH.phantoms)[1].reshape(-1)

    at = TABLE.reshape(-1) + 100.0
    np.testing.assert_allclose(slope(at), optimize.approx_fprime(at, value, 0.01), rtol=1e-3, atol=1e-8)


def test_the_deviation_is_about_that_of_estimates() -> None:
    table = np.full((3, 3), 1000)
    drawn_often = [noisy(table, SKETCH, seed) for seed in range(30)]
    found = np.array([likelihood(first, second, SKETCH, 9000) for first, second in drawn_often])
    assert 0.7 < found.std(axis=0).mean() / deviation(SKETCH, 9000, 3) < 1.3


def test_where_registers_tell_nothing_the_deviation_is_huge() -> None:
    drowned = PartitionSketch(rows=64, phantoms=2**30, low=5, high=13)
    assert deviation(drowned, 100, 3) > 1e6
