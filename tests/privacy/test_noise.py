"""Each statistical check has a false-alarm rate below 1e-7 a run: see ODDS and DEVIATIONS."""

import math
import secrets
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from cofactor.errors import ConfigError
from cofactor.privacy import answer_noise, noise, tables
from cofactor.privacy.answers import UnaryEncoding
from cofactor.randomness import InsecureRandom, Random, SecureRandom

ODDS = 1e-8
"""Least p-value that passes."""
DEVIATIONS = 5.8
"""Most standard deviations that pass: a normal number is beyond with probability 7e-9."""
SECURE = SecureRandom()
MANY = 1 << 20


def assert_mean(sample: NDArray[Any], mean: float, deviation: float) -> None:
    error = sample.mean(dtype=np.float64) - mean
    assert abs(error) < DEVIATIONS * deviation / math.sqrt(sample.size)


def assert_law(sample: NDArray[Any], pmf: Callable[[NDArray[np.int64]], NDArray[np.float64]]) -> None:
    """Compare counts with a law by chi-square; values expected fewer than 20 times are taken together."""
    values = np.arange(sample.min() - 1, sample.max() + 2)
    expected = pmf(values) * sample.size
    frequent = expected >= 20
    observed = np.array([(sample == value).sum() for value in values[frequent]])
    rest = sample.size - expected[frequent].sum()
    counts, laws = observed, expected[frequent]
    if rest >= 20:
        counts, laws = np.append(observed, sample.size - observed.sum()), np.append(laws, rest)
    else:
        # Poisson with a mean below 20: 60 or more have a chance below 1e-10.
        assert sample.size - observed.sum() < 60
    statistic = ((counts - laws) ** 2 / laws).sum()
    assert stats.chi2.sf(statistic, max(len(counts) - 1, 1)) > ODDS


def assert_uncorrelated(first: NDArray[Any], second: NDArray[Any]) -> None:
    for one, two in ((first, second), (first**2, second**2)):
        assert abs(np.corrcoef(one, two)[0, 1]) < DEVIATIONS / math.sqrt(first.size)


def discrete_gaussian_pmf(sigma: float) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    reach = np.arange(-20 * math.ceil(sigma), 20 * math.ceil(sigma) + 1)
    total = np.exp(-(reach**2) / (2 * sigma**2)).sum()
    return lambda k: np.exp(-(k**2) / (2 * sigma**2)) / total


# Real numbers: normal ones have a file of their own.


def test_laplace_and_exponential_numbers_follow_their_laws() -> None:
    drawn = noise.laplace(MANY, 3.0, SECURE)
    assert_mean(drawn, 0, 3 * math.sqrt(2))
    assert_mean(np.abs(drawn), 3, 3)
    assert stats.kstest(drawn, stats.laplace(scale=3).cdf).pvalue > ODDS
    drawn = noise.exponential((1 << 10, 1 << 10), SECURE).reshape(-1)
    assert_mean(drawn, 1, 1)
    assert stats.kstest(drawn, stats.expon().cdf).pvalue > ODDS


def test_logarithms_keep_their_digits_at_both_ends() -> None:
    words = np.array([0, 1, 2**62 - 1, 2**62, 2**63 - 2, 2**63 - 1], np.uint64)
    exact = [float(-mpmath.log((mpmath.mpf(int(word)) + 0.5) / 2**63)) for word in words]
    assert noise._minus_logarithm(words) == pytest.approx(exact, rel=1e-15)


@pytest.mark.parametrize("parties", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("scale", [0.1, 2.0])
def test_published_shares_add_up_to_laplace_noise_but_are_known_once_the_common_part_is(
    scale: float, parties: int
) -> None:
    count = min(MANY // 4, 10**7 // parties)
    common, total = noise.exponential(count, SECURE), np.zeros(count)
    for _ in range(parties):
        total += noise.published_laplace_share(common, scale, parties, SECURE)
    assert stats.kstest(total, stats.laplace(scale=scale).cdf).pvalue > ODDS
    known = total / (scale * np.sqrt(2 * common))
    assert stats.kstest(known, stats.norm().cdf).pvalue > ODDS


def test_published_share_without_the_root_would_be_noticed() -> None:
    common = noise.exponential(MANY, SECURE)
    literal = 2.0 * np.sqrt(2) * common * noise.gaussian(MANY, 1.0, SECURE)
    assert stats.kstest(literal, stats.laplace(scale=2).cdf).pvalue < ODDS


@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    size=st.floats(1e-3, 1e3),
)
def test_snapped_values_are_the_nearest_multiples_of_a_power_of_two(values: list[float], size: float) -> None:
    grid = 2.0 ** math.floor(math.log2(size / 16))
    assert size / 32 < grid <= size / 16
    result = noise.snapped(np.array(values), size)
    assert np.all(result / grid == np.rint(result / grid))
    assert np.all(np.abs(result - values) <= grid / 2)


@pytest.mark.parametrize(("size", "grid"), [(1.0, 1 / 16), (1.999, 1 / 16), (2.0, 1 / 8), (0.999, 1 / 32)])
def test_snapping_grid_at_the_ends_of_its_range(size: float, grid: float) -> None:
    assert noise.snapped(np.array([0.51 * grid, 1.4 * grid]), size).tolist() == [grid, grid]


def test_snapped_zero_does_not_tell_its_side() -> None:
    assert not np.signbit(noise.snapped(np.array([-0.001, 0.001, -0.0]), 1.0)).any()


@pytest.mark.parametrize("bad", [1e30, math.inf, math.nan])
def test_values_that_drown_their_noise_are_refused_without_being_told(bad: float) -> None:
    with pytest.raises(ConfigError, match="Subtract a public constant, or bound them") as refusal:
        noise.snapped(np.array([1.0, bad]), 1.0)
    assert "e+30" not in str(refusal.value)


# Sampling of units


def test_units_are_chosen_independently_with_their_probability() -> None:
    drawn = np.zeros((2, MANY), np.int64)
    for row in drawn:
        row[noise.chosen(MANY, 0.3, SECURE)] = 1
    assert_mean(drawn, 0.3, math.sqrt(0.3 * 0.7))
    assert_uncorrelated(drawn[0], drawn[1])
    assert_uncorrelated(drawn[0, 1:], drawn[0, :-1])


@pytest.mark.parametrize("probability", [1 / 3, 0.9999, 1e-7, 2.0**-64, 1.5 * 2.0**-64])
def test_probability_of_being_chosen_is_rounded_down(
    monkeypatch: pytest.MonkeyPatch, probability: float
) -> None:
    limit = math.floor(Fraction(probability) * 2**64)
    words = np.array([limit, limit - 1, 0, limit + 1], np.uint64)
    monkeypatch.setattr(noise, "uniform_words", lambda *_: words)
    assert noise.chosen(4, probability, SECURE).tolist() == [1, 2]


def test_hardly_anybody_or_nobody_is_chosen() -> None:
    assert noise.chosen(MANY, 2.0**-70, SECURE).size == 0
    assert noise.chosen(0, 0.5, SECURE).size == 0


# Whole numbers


@pytest.mark.parametrize("sigma", [0.4, 1.0, 7.5, 60.0])
def test_discrete_gaussian_follows_its_law(sigma: float) -> None:
    sample = noise.discrete_gaussian(MANY, sigma, SECURE)
    assert_law(sample, discrete_gaussian_pmf(sigma))
    assert_mean(sample, 0, sigma)


@pytest.mark.parametrize("scale", [0.3, 1.0, 20.0])
def test_discrete_laplace_follows_its_law(scale: float) -> None:
    sample = noise.discrete_laplace(MANY, scale, SECURE)
    assert_law(sample, stats.dlaplace(1 / scale).pmf)
    assert_mean(sample, 0, stats.dlaplace(1 / scale).std())


@pytest.mark.parametrize("variance", [0.02, 1.0, 90.0])
def test_skellam_follows_its_law(variance: float) -> None:
    sample = noise.skellam(MANY, variance, SECURE)
    assert_law(sample, stats.skellam(variance / 2, variance / 2).pmf)
    assert_mean(sample, 0, math.sqrt(variance))


def test_noise_of_a_key_is_the_same_again_and_follows_its_law() -> None:
    key = secrets.token_bytes(32)
    sample = noise.skellam_of_key((4, MANY // 4), 12.0, key)
    assert np.array_equal(sample, noise.skellam_of_key((4, MANY // 4), 12.0, key))
    assert_law(sample.reshape(-1), stats.skellam(6, 6).pmf)
    other = noise.skellam_of_key(MANY, 12.0, secrets.token_bytes(32))
    assert_uncorrelated(sample.reshape(-1), other)


def test_noise_of_a_key_is_that_of_a_source_which_gives_the_key() -> None:
    key = InsecureRandom(3).new_key()
    assert np.array_equal(
        noise.skellam_of_key(500, 7.5, key.astype("<u4").tobytes()),
        noise.skellam(500, 7.5, InsecureRandom(3)),
    )
    # Both sides of a federation must draw the same, on any machine and in any version.
    assert noise.skellam_of_key(8, 40.0, bytes(range(32))).tolist() == [2, -7, -1, 2, 3, 2, -7, -10]


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), "a" * 32, None])
def test_a_key_has_32_bytes(key: Any) -> None:
    with pytest.raises(ConfigError, match="must be 32 bytes"):
        noise.skellam_of_key(3, 1.0, key)


@pytest.mark.parametrize("parties", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("scale", [0.5, 3.0, 40.0])
def test_polya_shares_add_up_to_a_discrete_laplace_number(scale: float, parties: int) -> None:
    count = min(MANY // 4, 10**7 // parties)
    first, second, total = (np.zeros(count, np.int64) for _ in range(3))
    for _ in range(parties):
        first, second = noise.polya(count, scale, Fraction(1, parties), SECURE), first
        total += first
    assert_law(total, stats.dlaplace(1 / scale).pmf)
    deviation = stats.dlaplace(1 / scale).std()
    assert_mean(total, 0, deviation)
    if 1 < parties < 1000:
        assert_uncorrelated(first, second)
        assert_uncorrelated(first[1:], first[:-1])


@pytest.mark.parametrize("scale", [0.5, 100.0, 2048.0])
@pytest.mark.parametrize("part", [Fraction(1, 50), Fraction(7, 10), Fraction(1), Fraction(12, 5)])
def test_parts_of_discrete_laplace_noise_have_their_part_of_the_variance(
    scale: float, part: Fraction
) -> None:
    drawn = noise.polya(MANY, scale, part, SECURE)
    variance = float(part) * stats.dlaplace(1 / scale).var()
    assert_mean(drawn, 0, math.sqrt(variance))
    # The fourth moment: of a Laplace law, shared out by cumulants, at most 6 / part + 1 / variance above 3.
    spread = math.sqrt(2 + 6 / float(part) + 1 / variance)
    assert abs(drawn.var() / variance - 1) < DEVIATIONS * spread / math.sqrt(MANY)


def test_more_than_all_of_the_noise_is_all_of_it_and_more() -> None:
    drawn = noise.polya(MANY, 3.0, Fraction(5, 2), SECURE)
    one = stats.nbinom(2.5, -np.expm1(-1 / 3)).pmf(np.arange(4096))
    pmf = np.fft.ifft(np.abs(np.fft.fft(one, 8192)) ** 2).real
    assert_law(drawn, lambda k: pmf[np.abs(k)])


def test_parts_of_a_key_are_the_same_again_and_of_their_own() -> None:
    key = secrets.token_bytes(32)
    drawn = noise.polya_of_key((4, 50_000), 9.0, Fraction(5, 4), key)
    assert np.array_equal(drawn, noise.polya_of_key((4, 50_000), 9.0, Fraction(5, 4), key))
    # What is drawn for a whole and for the rest, and on either side of where a block of jumps ends.
    whole = noise.polya_of_key(200_000, 9.0, Fraction(1), key)
    rest = drawn.reshape(-1) - whole
    assert_uncorrelated(whole, rest)
    assert_uncorrelated(rest[: 2**16], rest[2**16 : 2**17])
    assert_uncorrelated(rest, noise.polya_of_key(200_000, 9.0, Fraction(1, 4), secrets.token_bytes(32)))
    # Both sides of a federation must draw the same, on any machine and in any version.
    assert noise.polya_of_key(8, 20.0, Fraction(4, 3), bytes(range(32))).tolist() == [
        16,
        -25,
        3,
        -52,
        4,
        -2,
        -2,
        -53,
    ]
    for bad in (b"", bytes(31)):
        with pytest.raises(ConfigError, match="must be 32 bytes"):
            noise.polya_of_key(3, 1.0, Fraction(1), bad)


@pytest.mark.parametrize("part", [Fraction(0), Fraction(-1, 2), Fraction(2**16 + 1)])
def test_parts_that_cannot_be_drawn_are_refused(part: Fraction) -> None:
    with pytest.raises(ConfigError, match="cannot be drawn"):
        noise.polya(3, 1.0, part, SECURE)


def test_one_share_too_few_is_noticed() -> None:
    total = np.sum([noise.polya(MANY // 4, 3.0, Fraction(1, 20), SECURE) for _ in range(19)], axis=0)
    with pytest.raises(AssertionError):
        assert_law(total, stats.dlaplace(1 / 3).pmf)


@pytest.mark.parametrize("law", [noise.discrete_gaussian, noise.skellam, noise.discrete_laplace])
def test_neighbours_and_calls_are_independent(law: Callable[..., NDArray[np.int64]]) -> None:
    first, second = law(MANY, 4.0, SECURE), law(MANY, 4.0, SECURE)
    assert_uncorrelated(first, second)
    for lag in (1, 1024):
        assert_uncorrelated(first[lag:], first[:-lag])


# Coins


@pytest.mark.parametrize("trials", [1, 5, 16])
def test_counts_of_heads_are_binomial(trials: int) -> None:
    theta = 0.2
    shares = np.repeat([-1.0, -0.3, 0.0, 1.0], MANY // 4).reshape(4, -1)
    counts = noise.poisson_binomial(shares, trials, theta, SECURE)
    assert counts.dtype == np.int32
    for row, share in zip(counts, shares[:, 0], strict=True):
        assert_law(row, stats.binom(trials, 0.5 + theta * share).pmf)
    assert_uncorrelated(counts[2, 1:], counts[2, :-1])
    assert_uncorrelated(counts[2], counts[3])


def test_heads_are_independent_between_calls() -> None:
    shares = np.zeros(MANY)
    first, second = (noise.poisson_binomial(shares, 4, 0.1, SECURE) for _ in range(2))
    assert_uncorrelated(first, second)


@pytest.mark.parametrize("bad", [1.0001, -1.5, math.nan, math.inf])
def test_shares_beyond_the_bound_are_refused(bad: float) -> None:
    with pytest.raises(ConfigError, match="Clip the values to their bound first"):
        noise.poisson_binomial(np.array([0.0, bad, 1.0]), 4, 0.1, SECURE)


# Answers


@pytest.mark.parametrize(("choices", "epsilon"), [(2, 1.0), (5, 0.5), (3, 4.0)])
def test_randomized_responses_follow_their_law(choices: int, epsilon: float) -> None:
    truth = 1 / (1 + (choices - 1) * math.exp(-epsilon))
    for answer in (0, choices - 1):
        reports = answer_noise.randomized_response(np.full(MANY // 4, answer), choices, epsilon, SECURE)
        law = np.where(np.arange(-1, choices + 1) == answer, truth, (1 - truth) / (choices - 1))
        law[[0, -1]] = 0
        assert_law(reports, lambda k, law=law: law[np.clip(k + 1, 0, choices + 1)])  # type: ignore[misc]


@given(choices=st.integers(2, 10**6), epsilon=st.floats(1e-6, 60))
def test_rounded_responses_never_exceed_epsilon(choices: int, epsilon: float) -> None:
    truth, other = answer_noise.response_weights(choices, epsilon)
    assert truth + (choices - 1) * other == 2**64
    with mpmath.workdps(60):
        most = mpmath.exp(mpmath.mpf(epsilon))
        assert 1 <= mpmath.mpf(truth) / other <= most
        # One word less for each lie would be too few.
        assert 2**64 - (choices - 1) * (other - 1) > most * (other - 1)


def test_epsilon_too_small_for_the_words_is_refused() -> None:
    with pytest.raises(ConfigError, match="too small for 3 answers"):
        answer_noise.response_weights(3, 1e-25)


def test_unary_bits_follow_their_law() -> None:
    values = np.tile([0, 2, 3], MANY // 16)
    bits = answer_noise.unary_encoding(values, 4, 0.5, 0.2, SECURE)
    assert bits.shape == (*values.shape, 4)
    assert bits.dtype == np.uint8
    own = values[:, None] == np.arange(4)
    assert_mean(bits[own], 0.5, 0.5)
    assert_mean(bits[~own], 0.2, 0.4)
    nobodys = bits[:, 1].astype(float)
    assert_uncorrelated(nobodys[1:], nobodys[:-1])
    assert_uncorrelated(*bits[values == 2][:, [1, 2]].T.astype(float))


def test_unary_rows_drawn_in_parts_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_noise, "_ANSWERS_AT_ONCE", 64)
    rows = answer_noise.unary_encoding(np.zeros(64, np.int64), 32, 0.5, 0.5 - 1e-9, SECURE)
    # 2,016 pairs of rows of 32 even bits: two alike by chance have a probability of 5e-7.
    assert len({row.tobytes() for row in rows}) == 64


@given(epsilon=st.floats(1e-6, 40), optimized=st.booleans())
def test_rounded_bits_never_exceed_epsilon(epsilon: float, optimized: bool) -> None:
    mechanism = UnaryEncoding(choices=2, epsilon=epsilon, optimized=optimized)
    high, low = answer_noise.bit_limits(mechanism.kept, mechanism.raised)
    with mpmath.workdps(60):
        odds = mpmath.mpf(high) * (2**64 - low) / (mpmath.mpf(low) * (2**64 - high))
        assert 0 <= mpmath.log(odds) <= epsilon
        # Two roundings, each by one word of 2^64 or by a part in 2^50.
        smallest = min(mechanism.raised, 1 - mechanism.kept)
        assert mpmath.log(odds) > epsilon - 4 * (2**-64 + 2**-50) / smallest


@pytest.mark.parametrize("values", [[0, 3], [-1, 0], [0.5, 1.0], [True, False]])
def test_answers_that_are_none_are_refused(values: list[Any]) -> None:
    with pytest.raises(ConfigError, match="answer"):
        answer_noise.randomized_response(np.array(values), 3, 1.0, SECURE)
    with pytest.raises(ConfigError, match="answer"):
        answer_noise.unary_encoding(np.array(values), 3, 0.5, 0.2, SECURE)


# All of them

CALLS: dict[str, Callable[[int, Random], NDArray[Any]]] = {
    "gaussian": lambda n, random: noise.gaussian(n, 1.0, random),
    "laplace": lambda n, random: noise.laplace(n, 1.0, random),
    "exponential": lambda n, random: noise.exponential(n, random),
    "chosen": lambda n, random: noise.chosen(n, 0.5, random),
    "discrete Gaussian": lambda n, random: noise.discrete_gaussian(n, 5.0, random),
    "discrete Laplace": lambda n, random: noise.discrete_laplace(n, 5.0, random),
    "Skellam": lambda n, random: noise.skellam(n, 25.0, random),
    "Polya": lambda n, random: noise.polya(n, 5.0, Fraction(1, 2), random),
    "published": lambda n, random: noise.published_laplace_share(np.ones(n), 1.0, 2, random),
    "coins": lambda n, random: noise.poisson_binomial(np.zeros(n), 16, 0.1, random),
    "responses": lambda n, random: answer_noise.randomized_response(np.zeros(n, np.int64), 9, 0.1, random),
    "bits": lambda n, random: answer_noise.unary_encoding(np.zeros(n, np.int64), 9, 0.5, 0.4, random),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_noise_repeats_with_an_insecure_seed_only(call: Callable[[int, Random], NDArray[Any]]) -> None:
    insecure = InsecureRandom(1)
    first, second = call(500, insecure), call(500, insecure)
    assert np.array_equal(first, call(500, InsecureRandom(1)))
    # The poorest law here has 500 values that agree with probability below 0.9 each: 1e-23 for all of them.
    assert not np.array_equal(first, second)
    assert not np.array_equal(call(500, SECURE), call(500, SECURE))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_every_call_takes_one_key_even_for_no_noise(call: Callable[[int, Random], NDArray[Any]]) -> None:
    used, fresh = InsecureRandom(1), InsecureRandom(1)
    assert call(0, used).size == 0
    fresh.new_key()
    assert np.array_equal(used.new_key(), fresh.new_key())


@pytest.mark.parametrize("shape", [(), 3, (2, 3), (2, 0), (1, 2, 3)])
def test_noise_has_the_shape_that_was_asked_for(shape: int | tuple[int, ...]) -> None:
    expected = shape if isinstance(shape, tuple) else (shape,)
    assert noise.gaussian(shape, 1.0, SECURE).shape == expected
    assert noise.laplace(shape, 1.0, SECURE).shape == expected
    assert noise.skellam(shape, 1.0, SECURE).shape == expected
    assert noise.polya(shape, 1.0, Fraction(1, 2), SECURE).shape == expected
    assert noise.poisson_binomial(np.zeros(shape), 3, 0.1, SECURE).shape == expected
    assert answer_noise.randomized_response(np.zeros(shape, int), 3, 1.0, SECURE).shape == expected
    assert answer_noise.unary_encoding(np.zeros(shape, int), 3, 0.5, 0.1, SECURE).shape == (*expected, 3)
    assert noise.snapped(np.zeros(shape), 1.0).shape == expected


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 1e-40, 1e40])
def test_sizes_that_make_no_real_noise_are_refused(bad: float) -> None:
    for refused in (
        lambda: noise.gaussian(3, bad, SECURE),
        lambda: noise.laplace(3, bad, SECURE),
        lambda: noise.snapped(np.zeros(3), bad),
        lambda: noise.published_laplace_share(np.ones(3), bad, 2, SECURE),
    ):
        with pytest.raises(ConfigError, match="must"):
            refused()


@pytest.mark.parametrize(
    "refused",
    [
        lambda: noise.chosen(3, 1.0, SECURE),
        lambda: noise.chosen(3, 0.0, SECURE),
        lambda: noise.poisson_binomial(np.zeros(3), 0, 0.1, SECURE),
        lambda: noise.poisson_binomial(np.zeros(3), 2**16, 0.1, SECURE),
        lambda: noise.poisson_binomial(np.zeros(3), 3, 0.5, SECURE),
        lambda: noise.poisson_binomial(np.zeros(3), 3, math.nan, SECURE),
        lambda: answer_noise.randomized_response(np.zeros(3, int), 1, 1.0, SECURE),
        lambda: answer_noise.randomized_response(np.zeros(3, int), 3, 0.0, SECURE),
        lambda: answer_noise.unary_encoding(np.zeros(3, int), 3, 0.2, 0.5, SECURE),
        lambda: answer_noise.unary_encoding(np.zeros(3, int), 3, 1.0, 0.5, SECURE),
        lambda: noise.discrete_gaussian(3, 2 * tables.LARGEST_DEVIATION, SECURE),
        lambda: noise.gaussian(3, 1.0, SECURE, rounds=8),
    ],
)
def test_settings_that_make_no_sense_are_refused(refused: Callable[[], object]) -> None:
    with pytest.raises(ConfigError):
        refused()


def test_few_of_very_many_are_chosen_by_coins_of_their_own() -> None:
    units, probability, draws = 200_000, 0.01, 40
    found = [noise.chosen(units, probability, SecureRandom()) for _ in range(draws)]
    for each in found:
        assert np.all(np.diff(each) > 0)
        assert each[0] >= 0
        assert each[-1] < units
    # 80,000 coins in all: their number within 6 deviations, and so in each tenth of the places.
    total, spread = draws * units * probability, math.sqrt(draws * units * probability)
    assert sum(map(len, found)) == pytest.approx(total, abs=6 * spread)
    places = np.histogram(np.concatenate(found), bins=10, range=(0, units))[0]
    np.testing.assert_allclose(places, total / 10, atol=6 * spread / math.sqrt(10))
    # Neighbours are chosen together as often as coins are: 20 times expected per draw, 800 in all.
    together = sum(int((np.diff(each) == 1).sum()) for each in found)
    assert together == pytest.approx(draws * units * probability**2, abs=6 * math.sqrt(800))


def test_what_has_a_chance_comes_true_as_often_as_it_says() -> None:
    chances = np.repeat([0.0, 1e-3, 0.3, 0.5, 0.999, 1.0], 100_000)
    happened = noise.came_true(chances, InsecureRandom(5)).reshape(6, -1).mean(axis=1)
    for chance, found in zip(chances[::100_000], happened, strict=True):
        # Six standard errors: a false alarm in less than one of 10^8 runs; never and always are exact.
        assert abs(found - chance) <= 6 * np.sqrt(chance * (1 - chance) / 100_000)
