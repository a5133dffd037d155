"""Frequency oracles: unbiased, exactly epsilon, as noisy as theory says, and deaf to nonsense."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cofactor.config import as_table, from_table
from cofactor.errors import ConfigError, DataError, RunError
from cofactor.privacy.answer_noise import response_weights
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.survey import hashing
from cofactor.survey.hadamard import hadamard_signs
from cofactor.survey.method import Floats, Integers, Method, report, simulated
from cofactor.survey.oracles import GRR, OLH, HadamardResponse, best_oracle, chances

FALSE_ALARM = 1e-7
SIGMAS = 6.0
"""Beyond so many deviations lie 2e-9 of a normal law."""
SECURE = SecureRandom()
KINDS: list[Any] = [GRR, OLH, HadamardResponse]
AnyOracle = GRR | OLH | HadamardResponse


def middles(cells: Any, buckets: int) -> Floats:
    """Return positions in [0, 1] that lie in these buckets."""
    return (np.asarray(cells) + 0.5) / buckets


def true_answer(method: AnyOracle, cell: int, *beside: int) -> int:
    """Return what somebody would answer if there were no noise: by definition, not by the client's half."""
    if isinstance(method, GRR):
        return cell
    if isinstance(method, OLH):
        a, b, c = beside
        return (c * cell * cell + b * cell + a) % hashing.FIELD * method.choices // hashing.FIELD
    return bin(beside[0] & cell).count("1") % 2 ^ 1


def besides(method: AnyOracle) -> list[tuple[int, ...]]:
    """Return all that can go beside an answer; of seeds, some."""
    if isinstance(method, GRR):
        return [()]
    if isinstance(method, OLH):
        seeds = hashing.drawn_seeds(50, SECURE).tolist()
        return [(0, 0, 0), (5, 1, 0), (hashing.FIELD - 1,) * 3, *map(tuple, seeds)]
    return [(row,) for row in range(1, method.order)]


def theory(method: AnyOracle, shares: Floats) -> Floats:
    """Return each estimate's variance, times the number of people, where everybody's value is fixed."""
    truth, other, surplus = chances(method.mechanism)
    if isinstance(method, GRR):
        return (shares * truth * (1 - truth) + (1 - shares) * other * (1 - other)) / surplus**2
    if isinstance(method, OLH):
        same = hashing.collision(method.choices)
        wrong = other + surplus * same
        spread = shares * truth * (1 - truth) + (1 - shares) * wrong * (1 - wrong)
        return spread / (surplus * (1 - same)) ** 2
    # One person adds +-(order - 1) / (order surplus) to every value, on average 1 - 1 / order to the own one.
    single = ((method.order - 1) / (method.order * surplus)) ** 2
    return single - shares * (1 - 1 / method.order) ** 2 - (1 - shares) / method.order**2


def assert_same_spread(found: Any, expected: Any, freedom: int, known: bool = True) -> None:
    """Compare variances of so many draws with those of theory, or (not known) of as many draws."""
    law = stats.chi2(freedom, scale=1 / freedom) if known else stats.f(freedom, freedom)
    ratios, alarm = np.atleast_1d(found / expected), FALSE_ALARM / 2 / np.size(found)
    assert np.all((law.ppf(alarm) < ratios) & (ratios < law.isf(alarm))), ratios


# Exactly unbiased


@pytest.mark.parametrize("epsilon", [1e-8, 0.3, 1.0, 4.0, 50.0])
@pytest.mark.parametrize("buckets", [2, 5])
@pytest.mark.parametrize("kind", [GRR, HadamardResponse])
def test_over_all_chances_one_persons_estimate_is_the_truth(kind: Any, buckets: int, epsilon: float) -> None:
    method = kind(epsilon=epsilon, buckets=buckets)
    choices = method.mechanism.choices
    truth, other = response_weights(choices, epsilon)
    every = besides(method)
    for cell in range(buckets):
        total = np.zeros(buckets)
        for beside, answer in product(every, range(choices)):
            named = {name: np.array([each]) for name, each in zip(method.beside, beside, strict=True)}
            tally = method.tally(np.array([answer]), **named)
            chance = (truth if answer == true_answer(method, cell, *beside) else other) / 2**64 / len(every)
            total += chance * method.estimate(tally)
        # Chances add up to 1, and single estimates are as large as one over their surplus.
        tolerance = 1e-14 / chances(method.mechanism)[2]
        np.testing.assert_allclose(total, np.arange(buckets) == cell, rtol=0, atol=tolerance + 1e-12)


@pytest.mark.parametrize(("choices", "epsilon"), [(2, 1e-9), (2, 1.0), (5, 0.5), (256, 1e-8), (1024, 50.0)])
def test_columns_of_the_transform_add_up_to_one(choices: int, epsilon: float) -> None:
    truth, other, surplus = chances(GRR(epsilon=epsilon, buckets=choices).mechanism)
    assert truth + (choices - 1) * other == pytest.approx(1, abs=1e-12)
    exact = [Fraction(weight, 2**64) for weight in response_weights(choices, epsilon)]
    assert [truth, other] == pytest.approx([float(each) for each in exact], rel=1e-15, abs=0)
    assert surplus == pytest.approx(float(exact[0] - exact[1]), rel=1e-15, abs=0)


@pytest.mark.parametrize("hashed", [None, 2, 7])
def test_hashed_estimates_are_right_on_average_over_seeds(hashed: int | None) -> None:
    # The chance of the answer is put in exactly; only seeds are drawn.
    method, people, cell = OLH(epsilon=1.0, buckets=6, hashed=hashed), 100_000, 2
    truth, other, _ = chances(method.mechanism)
    seeds = hashing.drawn_seeds(people, SECURE)
    hashes = np.array([hashing.hashes(seeds, np.full(people, v), method.choices) for v in range(6)])
    expected = np.where(hashes == hashes[cell], truth, other)
    tally = np.append(np.rint(1e9 * expected.mean(axis=1)).astype(np.int64), 10**9)
    error = np.std(expected, axis=1) / math.sqrt(people) / (truth - other) / (1 - 1 / method.choices)
    assert np.all(np.abs(method.estimate(tally) - (np.arange(6) == cell)) < SIGMAS * error + 1e-7)


# As noisy as theory says

PEOPLE, REPEATS = 4000, 800


@pytest.mark.parametrize("kind", KINDS)
def test_estimates_are_unbiased_and_vary_as_theory_says(kind: Any) -> None:
    method = kind(epsilon=1.0, buckets=32)
    cells = np.minimum(np.arange(PEOPLE) % 64, 31)
    shares = np.bincount(cells, minlength=32) / PEOPLE
    found = np.array([simulated(method, middles(cells, 32)) for _ in range(REPEATS)])
    expected = theory(method, shares) / PEOPLE
    z = (found.mean(axis=0) - shares) / np.sqrt(expected / REPEATS)
    assert np.all(np.abs(z) < stats.norm.isf(FALSE_ALARM / 2 / 32))
    assert_same_spread(found.var(axis=0, ddof=1), expected, REPEATS - 1)
    # All 32 together tell it to within 1%.
    assert np.mean(found.var(axis=0, ddof=1) / expected) == pytest.approx(1, abs=0.06)


def test_hashed_ranges_vary_as_if_every_value_had_a_hash_of_its_own() -> None:
    # With lines in place of parabolas, values on both sides of 31 go together: the variance doubles.
    method, cells = OLH(epsilon=3.0, buckets=64), np.full(PEOPLE, 31)
    found = np.array([simulated(method, middles(cells, 64))[16:48].sum() for _ in range(REPEATS)])
    shares = (np.arange(64) == 31).astype(float)
    expected = theory(method, shares)[16:48].sum() / PEOPLE
    assert_same_spread(found.var(ddof=1), expected, REPEATS - 1)


@pytest.mark.parametrize("epsilon", [0.25, math.log(2), math.log(3), math.log(9)])
def test_exact_variances_agree_with_those_of_the_thesis(epsilon: float) -> None:
    much, none = math.exp(epsilon), np.zeros(1)
    grr = (100 - 2 + much) / (much - 1) ** 2
    assert theory(GRR(epsilon=epsilon, buckets=100), none)[0] == pytest.approx(grr, rel=1e-9)
    if much == pytest.approx(round(much)):  # the formula is for g = e^epsilon + 1
        olh = 4 * much / (much - 1) ** 2
        assert theory(OLH(epsilon=epsilon), none)[0] == pytest.approx(olh, rel=1e-6)


@given(epsilon=st.floats(0.05, 6), choices=st.integers(2, 2000))
def test_the_best_oracle_has_the_least_variance(epsilon: float, choices: int) -> None:
    best = best_oracle(epsilon, choices)
    assert isinstance(best, GRR) == (choices - 2 < 3 * math.exp(epsilon))
    assert (best.epsilon, best.buckets) == (epsilon, choices)
    other = (OLH if isinstance(best, GRR) else GRR)(epsilon=epsilon, buckets=choices)
    # g is rounded to a whole number, which costs a few percent at small epsilon.
    assert theory(best, np.zeros(1))[0] <= 1.1 * theory(other, np.zeros(1))[0]


# Exactly epsilon


@pytest.mark.parametrize("epsilon", [1e-8, 0.5, 1.0, 3.0, 50.0])
@pytest.mark.parametrize("kind", KINDS)
def test_no_report_is_more_than_e_to_the_epsilon_times_as_likely(kind: Any, epsilon: float) -> None:
    method = kind(epsilon=epsilon, buckets=5)
    choices = method.mechanism.choices
    truth, other = response_weights(choices, epsilon)
    worst = 1.0
    for beside, (one, two) in product(besides(method), permutations(range(5), 2)):
        # The chance of what goes beside is the same for all values: it cancels.
        told, else_told = (true_answer(method, cell, *beside) for cell in (one, two))
        for answer in {told, else_told, 0}:
            ratio = (truth if answer == told else other) / (truth if answer == else_told else other)
            worst = max(worst, ratio)
    with localcontext() as context:
        context.prec = 60
        assert Decimal(truth) / Decimal(other) <= Decimal(epsilon).exp()
    assert worst == truth / other
    if epsilon < 40:  # beyond, a word of 64 bits cannot be as unlikely as epsilon allows
        assert math.log(worst) == pytest.approx(epsilon, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_what_goes_beside_does_not_depend_on_values(kind: Any) -> None:
    method = kind(epsilon=1.0, buckets=16)
    one, other = (method.asked(values, InsecureRandom(1)) for values in (np.zeros(99), np.ones(99)))
    assert tuple(one.beside) == tuple(other.beside) == method.beside
    for name in method.beside:
        assert len(one.beside[name]) == 99
        assert np.array_equal(one.beside[name], other.beside[name])


@pytest.mark.parametrize("buckets", [2, 3, 16, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_people_prepare_the_answer_that_the_definition_says(kind: Any, buckets: int) -> None:
    method = kind(epsilon=2.0, buckets=buckets)
    cells = np.arange(200) % buckets
    asked = method.asked(middles(cells, buckets), SECURE)
    beside = [asked.beside[name].reshape(200, -1).tolist() for name in method.beside]
    rows = beside[0] if beside else [[]] * 200
    expected = [true_answer(method, int(cell), *row) for cell, row in zip(cells, rows, strict=True)]
    assert asked.bounded.value.tolist() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_reports_show_epsilon_and_no_more(kind: Any) -> None:
    method, people, epsilon = kind(epsilon=1.0, buckets=4), 400_000, 1.0
    counts = []
    for cell in (0, 3):
        sent = report(method, np.full(people, middles(cell, 4)), SECURE)
        rest = [sent[name] for name in method.beside]
        first, last = (_true_answers(method, which, *rest) for which in (0, 3))
        # The worst event: what speaks for the first value and not for the last.
        counts.append(np.count_nonzero((sent["answers"] == first) & (first != last)))
    shown = math.log(counts[0] / counts[1])
    error = math.sqrt(1 / counts[0] + 1 / counts[1])
    assert abs(shown - epsilon) < SIGMAS * error
    assert error < 0.01


def _true_answers(method: AnyOracle, cell: int, *beside: Any) -> Integers:
    if isinstance(method, OLH):
        return hashing.hashes(beside[0], np.full(len(beside[0]), cell), method.choices)
    if isinstance(method, HadamardResponse):
        return (1 + hadamard_signs(beside[0], cell)) // 2
    return np.array(cell)


# Tallies


@pytest.mark.parametrize("kind", KINDS)
def test_tallies_of_parties_add_up(kind: Any) -> None:
    method = kind(epsilon=1.0, buckets=20)
    sent = report(method, np.random.default_rng(0).random(1000), SECURE)
    parts = [{name: rows[some] for name, rows in sent.items()} for some in (slice(0, 333), slice(333, None))]
    together, one, other = (method.tally(**each) for each in (sent, *parts))
    assert together.dtype == np.int64
    assert np.array_equal(one + other, together)
    empty = method.tally(**{name: rows[:0] for name, rows in sent.items()})
    assert empty.shape == together.shape
    assert not empty.any()


@pytest.mark.parametrize("kind", KINDS)
def test_tallies_are_plain_counts(kind: Any) -> None:
    method = kind(epsilon=1.0, buckets=5)
    sent = report(method, np.random.default_rng(0).random(300), SECURE)
    tally = method.tally(**sent)
    if kind is GRR:
        assert tally.tolist() == [list(sent["answers"]).count(cell) for cell in range(5)]
    elif kind is OLH:
        pairs = list(zip(sent["answers"].tolist(), sent["seeds"].tolist(), strict=True))
        told = [sum(true_answer(method, v, *seed) == a for a, seed in pairs) for v in range(5)]
        assert tally.tolist() == [*told, 300]
    else:
        pairs = list(zip(sent["rows"].tolist(), sent["answers"].tolist(), strict=True))
        assert tally.tolist() == [[pairs.count((row, bit)) for bit in (0, 1)] for row in range(8)]


@pytest.mark.parametrize("answers", [[-1, 0], [0, 5], [0.0, 1.0], [[0, 1]], [True, False], ["0", "1"], 3])
def test_answers_that_cannot_be_are_refused(answers: Any) -> None:
    with pytest.raises(RunError, match="answers are not a row of whole numbers from 0 to 4"):
        GRR(epsilon=1.0, buckets=5).tally(np.array(answers))


HOSTILE: list[tuple[AnyOracle, dict[str, Any]]] = [
    (OLH(epsilon=1.0), {"answers": [4, 0], "seeds": np.zeros((2, 3), np.uint32)}),
    (OLH(epsilon=1.0), {"answers": [1, 0], "seeds": np.zeros((3, 3), np.uint32)}),
    (OLH(epsilon=1.0), {"answers": [1, 0], "seeds": np.zeros((2, 3))}),
    (OLH(epsilon=1.0), {"answers": [1, 0], "seeds": np.full((2, 3), 2**31 - 1)}),
    (OLH(epsilon=1.0), {"answers": [1, 0]}),
    (OLH(epsilon=1.0), {"answers": [1, 0], "seeds": np.zeros((2, 3), np.uint32), "rows": [1, 1]}),
    (HadamardResponse(epsilon=1.0), {"answers": [0, 2], "rows": [1, 1]}),
    (HadamardResponse(epsilon=1.0), {"answers": [0, 1], "rows": [0, 1]}),
    (HadamardResponse(epsilon=1.0), {"answers": [0, 1], "rows": [1, 256]}),
    (HadamardResponse(epsilon=1.0), {"answers": [0, 1], "rows": [1, -1]}),
    (HadamardResponse(epsilon=1.0), {"answers": [0, 1], "rows": [1]}),
    (HadamardResponse(epsilon=1.0), {"answers": [0, 1], "rows": [1.0, 2.0]}),
    (HadamardResponse(epsilon=1.0), {"answers": [0, 1]}),
    (GRR(epsilon=1.0), {"answers": [0, 1], "seeds": np.zeros((2, 3), np.uint32)}),
]


@pytest.mark.parametrize(("method", "sent"), HOSTILE)
def test_reports_that_cannot_be_are_refused(method: AnyOracle, sent: dict[str, Any]) -> None:
    with pytest.raises(RunError):
        method.tally(**{name: np.array(rows) for name, rows in sent.items()})


@pytest.mark.parametrize("tally", [[1, 2], [1, 2, -1], [1.0, 2.0, 3.0], [[1, 2, 3]]])
def test_tallies_that_cannot_be_are_refused(tally: Any) -> None:
    for method in (GRR(epsilon=1.0, buckets=3), OLH(epsilon=1.0, buckets=2)):
        with pytest.raises(RunError, match="tally"):
            method.estimate(np.array(tally))
        with pytest.raises(RunError, match="tally"):
            method.resampled(np.array(tally), np.random.default_rng(0))


def test_more_support_than_people_is_refused() -> None:
    with pytest.raises(RunError, match="more people for a value than have answered"):
        OLH(epsilon=1.0, buckets=2).estimate(np.array([3, 5, 4]))


# The ends


@pytest.mark.parametrize("kind", KINDS)
def test_without_people_there_is_a_clear_error(kind: Any) -> None:
    method = kind(epsilon=1.0, buckets=8)
    tally = method.tally(**report(method, [], SECURE))
    with pytest.raises(DataError, match="nobody has answered"):
        method.estimate(tally)
    with pytest.raises(DataError, match="nobody has answered"):
        method.resampled(tally, np.random.default_rng(0))


@pytest.mark.parametrize("people", [1, 2, 513])
@pytest.mark.parametrize("buckets", [2, 3, 1000])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-8, 1.0, 50.0, 64.0])
@pytest.mark.parametrize("kind", KINDS)
def test_all_settings_give_finite_estimates(kind: Any, epsilon: float, buckets: int, people: int) -> None:
    method = kind(epsilon=epsilon, buckets=buckets)
    found = simulated(method, np.linspace(0, 1, people), SECURE)
    assert found.shape == (buckets,)
    assert np.all(np.isfinite(found))
    assert found.dtype == np.float64


def test_without_noise_shares_come_out_right() -> None:
    cells = np.repeat(np.arange(10), np.arange(1, 11) * 40)
    shares = np.arange(1, 11) / 55
    exact = simulated(GRR(epsilon=50.0, buckets=10), middles(cells, 10))
    np.testing.assert_allclose(exact, shares, rtol=0, atol=1e-12)
    # Of 2,200 people and 10 values, hardly a pair shares one of 65,536 answers: a count is off by a few.
    hashed = simulated(OLH(epsilon=50.0, buckets=10), middles(cells, 10))
    np.testing.assert_allclose(hashed, shares, rtol=0, atol=10 / 2200)


def test_two_buckets_by_hadamard_are_plain_randomized_response() -> None:
    method, plain = HadamardResponse(epsilon=1.0, buckets=2), GRR(epsilon=1.0, buckets=2)
    tally = np.array([[0, 0], [30, 70]])  # plus stands for the first of two values
    np.testing.assert_allclose(method.estimate(tally), plain.estimate(np.array([70, 30])), atol=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "choices"),
    [(1e-9, 2), (0.4, 2), (0.5, 3), (1.0, 4), (math.log(9), 10), (12.0, 2**16), (64.0, 2**16)],
)
def test_values_are_hashed_to_about_e_to_the_epsilon_and_one_more(epsilon: float, choices: int) -> None:
    assert OLH(epsilon=epsilon).choices == choices
    assert OLH(epsilon=epsilon).mechanism.choices == choices
    assert OLH(epsilon=epsilon, hashed=5).choices == 5


# Tallies that could have been


@pytest.mark.parametrize("kind", KINDS)
def test_resampled_tallies_spread_as_those_of_other_people_would(kind: Any) -> None:
    # Other people: their values are drawn anew, too. Only then is a count binomial.
    method, shares = kind(epsilon=1.0, buckets=8), np.arange(1, 9) / 36
    chance, people = np.random.default_rng(5), 2000
    drawn = [middles(chance.choice(8, people, p=shares), 8) for _ in range(1000)]
    true = np.array([method.tally(**report(method, values, SECURE)) for values in drawn])
    again = np.array([method.resampled(tally, chance) for tally in true[:50] for _ in range(20)])
    assert again.dtype == np.int64
    assert again[0].shape == true[0].shape
    spread, expected = (np.var(each, axis=0) for each in (again - np.repeat(true[:50], 20, axis=0), true))
    varies = expected > 0
    assert np.array_equal(varies, spread > 0)
    assert_same_spread(spread[varies], expected[varies], 999, known=False)


@pytest.mark.parametrize("kind", KINDS)
def test_resampled_tallies_have_the_same_number_of_people(kind: Any) -> None:
    method = kind(epsilon=1.0, buckets=8)
    tally = method.tally(**report(method, middles(np.arange(100) % 8, 8)))
    again = method.resampled(tally, np.random.default_rng(1))
    assert (again[-1] if kind is OLH else again.sum()) == 100


def test_resampled_counts_follow_the_binomial_law() -> None:
    chance, tally = np.random.default_rng(2), np.array([40, 10, 100])
    drawn = np.array([OLH(epsilon=1.0, buckets=2).resampled(tally, chance) for _ in range(4000)])
    for value, likely in ((0, 0.4), (1, 0.1)):
        counts = np.bincount(drawn[:, value], minlength=101)
        law = 4000 * stats.binom.pmf(np.arange(101), 100, likely)
        many = law > 20
        statistic = np.sum((counts[many] - law[many]) ** 2 / law[many])
        assert statistic < stats.chi2.isf(FALSE_ALARM, np.count_nonzero(many))


# Settings


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be greater than 0"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": 65.0}, "epsilon must lie between 1e-9 and 64"),
        ({"epsilon": 1.0, "buckets": 1}, "buckets must lie between 2 and 65,536"),
        ({"epsilon": 1.0, "buckets": 2**16 + 1}, "buckets must lie between 2 and 65,536"),
        ({"epsilon": 1.0, "buckets": 2.5}, "buckets must be a whole number"),
    ],
)
def test_settings_that_make_no_sense_are_refused(kind: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        kind(**settings)


@pytest.mark.parametrize("hashed", [1, 2**16 + 1, 2.5, True])
def test_hashing_to_too_few_or_too_many_answers_is_refused(hashed: Any) -> None:
    with pytest.raises(ConfigError, match="hashed must"):
        OLH(epsilon=1.0, hashed=hashed)


@pytest.mark.parametrize("values", [[-0.1], [1.1], [np.nan], [[0.5]]])
@pytest.mark.parametrize("kind", KINDS)
def test_values_outside_are_refused(kind: Any, values: Any) -> None:
    with pytest.raises(DataError, match="between 0 and 1"):
        report(kind(epsilon=1.0), values)


def test_methods_survive_a_table() -> None:
    methods: list[Method] = [
        GRR(epsilon=1.0, buckets=7),
        OLH(epsilon=0.5),
        OLH(epsilon=0.5, hashed=9),
        HadamardResponse(epsilon=np.float64(2), buckets=5),
    ]
    for method in methods:
        assert from_table(GRR | OLH | HadamardResponse, as_table(method), "method") == method
