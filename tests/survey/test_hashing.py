"""Hash functions of which any three values' hashes are independent, and the kernel that counts by them."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cofactor.errors import RunError
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.survey import hashing
from cofactor.survey.hashing import FIELD, Words
from cofactor.survey.method import Integers

FALSE_ALARM = 1e-7
places = st.integers(0, FIELD - 1)


def through(points: list[tuple[int, int]]) -> list[int]:
    """Return the one polynomial over the field, of degree two, that goes through three points (Lagrange)."""
    total = [0, 0, 0]
    for at, (value, place) in enumerate(points):
        (u, _), (w, _) = points[:at] + points[at + 1 :]
        scale = place * pow((value - u) * (value - w), -1, FIELD)
        for power, factor in enumerate((u * w, -(u + w), 1)):
            total[power] = (total[power] + scale * factor) % FIELD
    return total


@given(st.lists(st.integers(0, 2**16 - 1), min_size=3, max_size=3, unique=True), places, places, places)
def test_any_three_places_of_three_values_belong_to_exactly_one_seed(
    values: list[int], one: int, two: int, three: int
) -> None:
    # There are as many seeds as triples of places, and each triple has its seed: none can have two.
    seed = np.array([through(list(zip(values, (one, two, three), strict=True)))], np.uint32)
    found = [int(hashing.hashes(seed, np.array([value]), FIELD)[0]) for value in values]
    assert found == [one, two, three]


@pytest.mark.parametrize("cells", [2, 3, 4, 17])
def test_hashes_of_every_pair_of_values_are_even_and_independent(cells: int) -> None:
    people, values = 200_000, 8
    seeds = hashing.drawn_seeds(people, SecureRandom())
    found = [hashing.hashes(seeds, np.full(people, value), cells) for value in range(values)]
    pairs = list(combinations(found, 2))
    limit = stats.chi2.isf(FALSE_ALARM / len(pairs), cells**2 - 1)
    for one, other in pairs:
        counts = np.bincount(cells * one + other, minlength=cells**2)
        assert np.sum((counts - people / cells**2) ** 2) / (people / cells**2) < limit


@pytest.mark.parametrize("cells", [2, 3, 4, 149, 65_536])
def test_the_chance_of_a_collision_is_that_of_the_cells_sizes(cells: int) -> None:
    sizes = np.diff(hashing.first_places(cells)).tolist()
    assert sum(sizes) == FIELD
    exact = sum(Fraction(size, FIELD) ** 2 for size in sizes)
    assert hashing.collision(cells) == pytest.approx(float(exact), rel=1e-15, abs=0)
    assert hashing.collision(cells) * cells == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("cells", [2, 3, 4, 149, 65_536])
def test_cells_begin_where_the_hash_says(cells: int) -> None:
    first = hashing.first_places(cells)
    for place, expected in ((first[:-1], np.arange(cells)), (first[1:] - 1, np.arange(cells))):
        seeds = np.zeros((cells, 3), np.uint32)
        seeds[:, 0] = place
        assert np.array_equal(hashing.hashes(seeds, np.full(cells, 77), cells), expected)


def supports_twin(seeds: Words, answers: Integers, cells: int, values: int) -> Integers:
    """Hash every value with everybody's function."""
    each = (hashing.hashes(seeds, np.full(len(seeds), value), cells) for value in range(values))
    return np.array([np.count_nonzero(found == answers) for found in each])


@given(st.integers(0, 1300), st.integers(2, 300), st.integers(1, 40), st.integers(0, 2**32))
def test_the_kernel_counts_what_hashing_every_value_counts(
    people: int, cells: int, values: int, seed: int
) -> None:
    seeds = hashing.drawn_seeds(people, InsecureRandom(seed))
    answers = np.random.default_rng(seed).integers(0, cells, people)
    expected = supports_twin(seeds, answers, cells, values)
    assert np.array_equal(hashing.supports(seeds, answers, cells, values), expected)


def test_the_kernel_is_right_at_the_ends_of_the_field_and_for_the_most_values() -> None:
    ends = [0, 1, 2**30, FIELD - 2, FIELD - 1]
    seeds = np.array(np.meshgrid(ends, ends, ends), np.uint32).reshape(3, -1).T
    answers = np.arange(len(seeds)) % 65_536
    counted = hashing.supports(seeds, answers, 65_536, 2**16)
    some = np.r_[0:50, 2**16 - 50 : 2**16]
    places = np.array(
        [[(c * v * v + b * v + a) % FIELD for a, b, c in seeds.tolist()] for v in some.tolist()]
    )
    assert np.array_equal(counted[some], np.sum(places * 65_536 // FIELD == answers, axis=1))


@pytest.mark.parametrize("cells", [2, 3, 149, 65_536])
def test_the_kernel_counts_the_first_and_the_last_place_of_a_cell_and_no_more(cells: int) -> None:
    first, answers = hashing.first_places(cells), np.arange(cells)
    for place, expected in ((first[:-1], 1), (first[1:] - 1, 1), (first[1:] % FIELD, 0), (first[:-1] - 1, 0)):
        seeds = np.zeros((cells, 3), np.uint32)
        seeds[:, 0] = place % FIELD
        assert hashing.supports(seeds, answers, cells, 3).tolist() == [cells * expected] * 3


def test_seeds_are_public_chance_from_the_key_alone() -> None:
    one, same = (hashing.drawn_seeds(100, InsecureRandom(3)) for _ in range(2))
    assert np.array_equal(one, same)
    assert np.array_equal(hashing.checked_seeds(one.astype(np.int64), 100), one)
    assert not np.array_equal(one, hashing.drawn_seeds(100, SecureRandom()))


@pytest.mark.parametrize(
    "seeds",
    [
        np.zeros((4, 3), np.uint32),
        np.zeros((5, 2), np.uint32),
        np.zeros(15, np.uint32),
        np.zeros((5, 3)),
        np.full((5, 3), FIELD, np.uint32),
        np.full((5, 3), -1),
        np.full((5, 3), 2**40),
        np.zeros((5, 3), bool),
        None,
        "seeds",
    ],
)
def test_seeds_that_cannot_be_are_refused(seeds: object) -> None:
    with pytest.raises(RunError, match="seeds are not three whole numbers"):
        hashing.checked_seeds(seeds, 5)
