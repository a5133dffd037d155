import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.errors import ConfigError, DataError
from cofactor.survey.distribution import Distribution

Floats = NDArray[np.float64]

TWO = Distribution(edges=np.array([0.0, 1.0, 3.0]), probabilities=np.array([0.25, 0.75]))
DICE = Distribution(edges=np.arange(0.5, 7), probabilities=np.full(6, 1 / 6), whole=True)


def some(seed: int, *, buckets: int = 9, whole: bool = False, empty: float = 0.3) -> Distribution:
    chance = np.random.default_rng(seed)
    weights = chance.exponential(size=buckets) * (chance.random(buckets) > empty)
    weights[chance.integers(buckets)] += 1
    edges = np.cumsum(0.05 + 3 * chance.random(buckets + 1)) - 5
    return Distribution(edges=edges, probabilities=weights / weights.sum(), whole=whole)


def slowly(of: Distribution, whole: bool) -> tuple[Floats, Floats]:
    """Values, and how much of the distribution each stands for, by many even steps within buckets."""
    steps = (np.arange(20_000) + 0.5) / 20_000
    values = of.edges[:-1, None] + steps * np.diff(of.edges)[:, None]
    masses = np.repeat(of.probabilities / len(steps), len(steps))
    return np.floor(values + 0.5).ravel() if whole else values.ravel(), masses


def test_two_buckets_by_hand() -> None:
    assert TWO.mean == pytest.approx(0.25 * 0.5 + 0.75 * 2)
    assert TWO.variance == pytest.approx(0.25 / 3 + 0.75 * (1 + 9 + 3) / 3 - TWO.mean**2)
    assert TWO.deviation == pytest.approx(TWO.variance**0.5)
    assert TWO.density.tolist() == [0.25, 0.375]
    assert TWO.below(0.5) == 0.125
    assert TWO.below(np.array([-1.0, 0.0, 1.0, 2.0, 3.0, np.inf])).tolist() == [0, 0, 0.25, 0.625, 1, 1]
    assert TWO.between(0.5, 2.0) == 0.5
    assert TWO.quantile(0.125) == 0.5
    assert TWO.quantile(np.array([0.0, 0.25, 0.625, 1.0])).tolist() == [0, 1, 2, 3]
    assert TWO.mean_below_cap(1.0) == pytest.approx(0.25 * 0.5 + 0.75)


def test_a_die_sits_on_its_numbers() -> None:
    assert DICE.mean == pytest.approx(3.5)
    assert DICE.variance == pytest.approx(35 / 12)
    assert DICE.below(np.array([0, 1, 1.5, 3, 6])) == pytest.approx(np.array([0, 1, 1, 3, 6]) / 6)
    assert DICE.between(2, 4) == pytest.approx(0.5)
    assert DICE.between(3, 3) == pytest.approx(1 / 6)
    assert DICE.between(3.2, 3.8) == 0
    assert [DICE.quantile(k / 6) for k in range(7)] == [1, 1, 2, 3, 4, 5, 6]
    assert DICE.quantile(0.5 + 1e-6) == 4
    assert DICE.deciles.tolist() == [1, 2, 2, 3, 3, 4, 5, 5, 6]
    assert DICE.mean_below_cap(np.array([0, 2, 2.5, 6, 9])) == pytest.approx([0, 11 / 6, 13 / 6, 3.5, 3.5])


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_everything_agrees_with_many_small_steps(seed: int, whole: bool) -> None:
    of = some(seed, whole=whole)
    values, masses = slowly(of, whole)
    mean = float(masses @ values)
    assert of.mean == pytest.approx(mean, abs=1e-3)
    assert of.variance == pytest.approx(float(masses @ (values - mean) ** 2), abs=1e-2)
    for x in np.linspace(of.edges[0] - 1, of.edges[-1] + 1, 23):
        assert of.below(x) == pytest.approx(masses[values <= x].sum(), abs=1e-4)
        assert of.mean_below_cap(x) == pytest.approx(float(masses @ np.minimum(values, x)), abs=1e-3)
        assert of.between(x, x + 2.3) == pytest.approx(
            masses[(values >= x) & (values <= x + 2.3)].sum(), abs=2e-4
        )


def test_large_numbers_lose_no_digits() -> None:
    # Seconds since 1970, in days: squares have 19 digits, the variance does not.
    edges = 1.1e9 + 86_400.0 * np.arange(8.0) - 0.5
    for whole in (False, True):
        of = Distribution(edges=edges, probabilities=np.full(7, 1 / 7), whole=whole)
        assert of.mean == pytest.approx(edges.mean(), abs=1e-5)
        exact = ((7 * 86_400.0) ** 2 - whole) / 12
        assert of.variance == pytest.approx(exact, rel=1e-9)


@given(st.integers(0, 10**6), st.booleans(), st.floats(0, 1))
def test_a_quantile_is_the_first_value_with_so_much_below(seed: int, whole: bool, q: float) -> None:
    of = some(seed, whole=whole)
    found = of.quantile(q)
    assert of.edges[0] - 0.5 <= found <= of.edges[-1] + 0.5
    assert of.below(found) >= q - 1e-9
    before = found - 1 if whole else found - 1e-6
    assert of.below(before) < max(q, 1e-9)
    if whole:
        assert found == round(found)


@given(st.integers(0, 10**6), st.booleans())
def test_a_cap_takes_off_more_the_lower_it_is(seed: int, whole: bool) -> None:
    of = some(seed, whole=whole)
    caps = np.linspace(of.edges[0] - 2, of.edges[-1] + 2, 50)
    means = of.mean_below_cap(caps)
    assert np.all(np.diff(means) >= -1e-9)
    assert np.all(means <= np.minimum(caps, of.mean) + 1e-9)
    assert means[-1] == pytest.approx(of.mean)
    assert means[0] == pytest.approx(caps[0])


def test_empty_buckets_at_the_ends_have_no_quantiles() -> None:
    of = Distribution(edges=np.arange(6.0), probabilities=np.array([0, 0.4, 0, 0.6, 0]))
    assert of.quantile(np.array([0.0, 0.4, 1.0])).tolist() == [1, 2, 4]
    assert of.below(4.0) == 1.0
    assert of.quantile(0.4 + 1e-9) > 3


def test_known_values_are_counted_and_the_last_edge_belongs_to_the_last_bucket() -> None:
    of = Distribution.from_values([0.0, 0.5, 1.0, 2.9, 3.0], [0.0, 1.0, 3.0])
    assert of.probabilities.tolist() == [0.4, 0.6]


def test_a_file_gives_back_every_digit() -> None:
    for seed in range(20):
        of = some(seed, buckets=300, whole=bool(seed % 2))
        again = Distribution.from_json(json.loads(json.dumps(of.as_json())))
        assert np.array_equal(again.edges, of.edges)
        assert np.array_equal(again.probabilities, of.probabilities)
        assert again.whole is of.whole


def test_almost_one_is_made_one_and_arrays_cannot_be_changed() -> None:
    edges, given_ = np.array([0.0, 1.0, 2.0]), np.array([0.5, 0.5 + 5e-10])
    of = Distribution(edges=edges, probabilities=given_)
    assert of.probabilities.sum() == 1.0
    given_[0], edges[0] = 9, 9  # a copy was made
    assert of.edges[0] == 0
    for array in (of.edges, of.probabilities, of.cumulative):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_people_read_mean_deviation_and_quarters() -> None:
    assert str(DICE).splitlines() == [
        "mean 3.5, standard deviation 1.708",
        "quarters end at 2, 3, 5; four of five lie between 1 and 6",
        "6 buckets from 0.5 to 6.5",
    ]


@pytest.mark.parametrize(
    ("edges", "probabilities", "words"),
    [
        ([0, 1], [0.5, 0.5], "2 edges do not go with 2 probabilities"),
        ([0], [], "1 edges do not go with 0"),
        ([0, 1, 1], [0.5, 0.5], "edges must increase"),
        ([0, 1, np.inf], [0.5, 0.5], "edges must be a row of finite numbers"),
        ([0, 1, 2], [0.5, np.nan], "probabilities must be a row of finite numbers"),
        ([0, 1, 2], [1.5, -0.5], "must not be negative"),
        ([0, 1, 2], [0.5, 0.4], "add up to 1"),
        ([0, 1, 2], ["a", "b"], "probabilities must be a row of numbers"),
    ],
)
def test_what_is_no_distribution_is_refused(
    edges: list[float], probabilities: list[float], words: str
) -> None:
    with pytest.raises(DataError, match=words):
        Distribution(edges=np.array(edges), probabilities=np.array(probabilities))


def test_questions_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        TWO.quantile(1.1)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        TWO.quantile([0.5, np.nan])
    with pytest.raises(ConfigError, match="NaN"):
        TWO.below(np.nan)
    with pytest.raises(ConfigError, match="low before high"):
        TWO.between(2, 1)
    with pytest.raises(ConfigError, match="finite"):
        TWO.mean_below_cap(np.inf)
    with pytest.raises(DataError, match="2 values lie outside"):
        Distribution.from_values([-1.0, 0.5, 4.0], [0.0, 1.0])
    with pytest.raises(DataError, match="at least one value"):
        Distribution.from_values([], [0.0, 1.0])
    with pytest.raises(DataError, match="no distribution"):
        Distribution.from_json({"edges": [0, 1]})
