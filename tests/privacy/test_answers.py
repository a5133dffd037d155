from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from cofactor.config import as_table
from cofactor.errors import CofactorError, ConfigError
from cofactor.privacy import answer_noise, noise
from cofactor.privacy.accountant import spent
from cofactor.privacy.answers import DividedResponse, RandomizedResponse, UnaryEncoding, Wave
from cofactor.privacy.bounding import categories, divided_answers
from cofactor.privacy.mechanisms import event_from_table
from cofactor.randomness import InsecureRandom, SecureRandom

SECURE = SecureRandom()
ANSWERS = (
    RandomizedResponse(choices=5, epsilon=0.7),
    UnaryEncoding(choices=5, epsilon=0.7),
    DividedResponse(choices=(4, 16, 3), epsilon=0.7),
    Wave(choices=12, epsilon=0.7, wide=5, buckets=4),
)


def law_of(wave: Wave) -> list[list[Fraction]]:
    """Return the exact probability of each report for each true cell, from the words that are drawn."""
    moved = Fraction(answer_noise.moved_weight(wave.cells, wave.wide, wave.epsilon), 2**64)
    laws = []
    for truth in range(wave.choices):
        cells = [(1 - moved) / wave.cells] * wave.cells
        for step, more in product(range(wave.wide), range(wave.narrow)):
            cells[truth + step + more] += moved / (wave.wide * wave.narrow)
        each = wave.cells // wave.reports
        laws.append([sum(cells[at : at + each], Fraction(0)) for at in range(0, wave.cells, each)])
    return laws


def odds(laws: list[list[Fraction]]) -> Fraction:
    """Return the most that any report says for any truth against any other."""
    return max((max(column) / min(column) for column in zip(*laws, strict=True)), default=Fraction(1))


def exponential(epsilon: float) -> Fraction:
    with localcontext() as context:
        context.prec = 80
        return Fraction(Decimal(epsilon).exp())


waves = st.builds(
    lambda choices, epsilon, widths: Wave(
        choices=choices, epsilon=epsilon, wide=max(widths), narrow=min(widths)
    ),
    st.integers(2, 12),
    st.floats(1e-9, 60),
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
)


@given(waves)
def test_no_report_of_a_wave_says_more_than_epsilon(wave: Wave) -> None:
    laws = law_of(wave)
    assert all(sum(law) == 1 for law in laws)
    assert odds(laws) <= exponential(wave.epsilon)


@given(st.integers(2, 9), st.floats(1e-6, 20), st.integers(1, 5))
def test_a_square_wave_uses_all_of_epsilon_if_cells_can_lie_outside(
    extra: int, epsilon: float, wide: int
) -> None:
    found = odds(law_of(Wave(choices=wide + extra, epsilon=epsilon, wide=wide)))
    assert float(found - 1) == pytest.approx(np.expm1(epsilon), rel=1e-9)


@pytest.mark.parametrize(("d", "b", "epsilon"), [(4, 1, 1.0), (7, 2, 0.5), (16, 3, 2.0)])
def test_on_a_list_of_values_a_square_wave_is_the_discrete_one_of_the_paper(
    d: int, b: int, epsilon: float
) -> None:
    p = np.exp(epsilon) / ((2 * b + 1) * np.exp(epsilon) + d - 1)
    q = 1 / ((2 * b + 1) * np.exp(epsilon) + d - 1)
    wave = Wave(choices=d, epsilon=epsilon, wide=2 * b + 1)
    assert wave.cells == d + 2 * b
    for truth, law in enumerate(law_of(wave)):
        expected = [p if abs(cell - b - truth) <= b else q for cell in range(d + 2 * b)]
        assert [float(each) for each in law] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    "wave",
    [
        Wave(choices=5, epsilon=1.0, wide=3),
        Wave(choices=9, epsilon=0.5, wide=4, buckets=4),
        Wave(choices=6, epsilon=2.0, wide=4, narrow=2),
        Wave(choices=4, epsilon=0.1, wide=3, narrow=3),
        Wave(choices=3, epsilon=30.0, wide=1),
    ],
)
def test_reports_of_a_wave_follow_their_law(wave: Wave) -> None:
    for truth, law in enumerate(law_of(wave)):
        values = np.full(40_000, truth)
        drawn = wave.noisy(categories(values, choices=wave.choices), SECURE)
        counts = np.bincount(drawn, minlength=wave.reports)
        expected = len(values) * np.array([float(each) for each in law])
        common = expected > 5
        assert counts[~common].sum() <= 40
        rest = max(len(values) - expected[common].sum(), 1e-9)
        chi = stats.chisquare(
            [*counts[common], counts[~common].sum()], [*expected[common], rest], sum_check=False
        )
        assert np.isnan(chi.pvalue) or chi.pvalue > 1e-8  # fewer than one in a million runs of all cells fail


def test_the_wave_is_drawn_with_the_stated_probability() -> None:
    wave = Wave(choices=100, epsilon=1.3, wide=21, narrow=4)
    words = answer_noise.moved_weight(wave.cells, wave.wide, wave.epsilon)
    assert words / 2**64 == pytest.approx(wave.moved, rel=1e-14)


def test_numbers_below_a_limit_are_even_where_words_do_not_divide() -> None:
    limit = 2**61 + 2**60 + 1  # it goes into all words five times and a third
    drawn = noise.below(40_000, limit, SECURE)
    assert drawn.min() >= 0
    assert drawn.max() < limit
    # Without drawing words of the last third again, the lowest third would hold 3/8 of all numbers.
    third = np.count_nonzero(drawn < limit // 3)
    assert stats.binomtest(third, 40_000, 1 / 3).pvalue > 1e-8


def test_numbers_below_one_are_all_nothing() -> None:
    assert not noise.below(5, 1, SECURE).any()


def test_numbers_below_a_limit_that_words_cannot_reach_are_refused() -> None:
    with pytest.raises(ConfigError, match="at most 2\\^62"):
        noise.below(5, 2**62 + 1, SECURE)


def test_reports_keep_the_shape_of_the_values() -> None:
    values = np.arange(6).reshape(2, 3)
    assert answer_noise.wave(values, 6, 3, 1, 1.0, SECURE).shape == (2, 3)


def test_each_question_of_divided_answers_has_its_own_law() -> None:
    mechanism = DividedResponse(choices=(2, 5, 9), epsilon=1.2)
    questions = np.repeat([0, 1, 2], 30_000)
    truth = np.repeat([1, 3, 8], 30_000)
    told = mechanism.noisy(divided_answers(questions, truth, choices=mechanism.choices), SECURE)
    for question, (true, choices) in enumerate(zip((1, 3, 8), mechanism.choices, strict=True)):
        own = told[questions == question]
        chance = RandomizedResponse(choices=choices, epsilon=1.2).truth
        assert set(np.unique(own)) == set(range(choices))
        assert stats.binomtest(int(np.sum(own == true)), len(own), chance).pvalue > 1e-8


@pytest.mark.parametrize("mechanism", ANSWERS, ids=lambda each: type(each).__name__)
def test_an_answer_costs_its_epsilon_under_every_adjacency(mechanism: Any) -> None:
    event = mechanism.event(mechanism.bound, dimension=1, random=SECURE, what="age", by="a", to="b")
    assert event_from_table(as_table(event), "event") == event
    for unit, adjacency in product(("user", "rating"), ("empty", "replace", "value")):
        assert spent([event], 0.0, unit=unit, adjacency=adjacency).epsilon == pytest.approx(0.7)  # type: ignore[arg-type]
    assert spent([event, event], 0.0, unit="user").epsilon == pytest.approx(1.4)


@pytest.mark.parametrize("mechanism", ANSWERS, ids=lambda each: type(each).__name__)
def test_a_bound_is_that_of_the_values_it_is_made_for(mechanism: Any) -> None:
    bounded = (
        divided_answers([0, 1, 2], [3, 15, 2], choices=mechanism.choices)
        if isinstance(mechanism, DividedResponse)
        else categories([0, mechanism.choices - 1], choices=mechanism.choices)
    )
    assert bounded.bound == mechanism.bound


@given(st.lists(st.floats(0.01, 3), min_size=1, max_size=3), st.floats(1e-6, 1e-2))
@settings(max_examples=25, deadline=None)
def test_waves_and_divided_answers_compose_as_the_worst_answer_does(
    epsilons: list[float], delta: float
) -> None:
    """Whatever never tells more than epsilon costs no more than the truth or a lie, composed."""
    worst = [RandomizedResponse(choices=2, epsilon=epsilon) for epsilon in epsilons]
    wave = [Wave(choices=9, epsilon=epsilon, wide=3) for epsilon in epsilons]

    def cost(mechanisms: Any) -> float:
        events = [m.event(m.bound, dimension=1, random=SECURE, what="", by="", to="") for m in mechanisms]
        return spent(events, delta, unit="user").epsilon

    assert cost(wave) == pytest.approx(cost(worst))


def refused(make: Any, match: str) -> None:
    with pytest.raises(CofactorError, match=match):
        make()


def test_waves_that_cannot_be_are_refused() -> None:
    refused(lambda: Wave(choices=1, epsilon=1, wide=2), "at least 2")
    refused(lambda: Wave(choices=4, epsilon=1, wide=2, narrow=3), "at most wide")
    refused(lambda: Wave(choices=4, epsilon=1, wide=0), "at least 1")
    refused(lambda: Wave(choices=4, epsilon=1, wide=3, buckets=4), "equal buckets")
    refused(lambda: Wave(choices=2**40, epsilon=1, wide=2**39), "finer than")
    refused(lambda: Wave(choices=4, epsilon=65.0, wide=1), "between 1e-9 and 64")


def test_divided_questions_that_cannot_be_are_refused() -> None:
    refused(lambda: DividedResponse(choices=(), epsilon=1), "at least one question")
    refused(lambda: DividedResponse(choices=(3, 1), epsilon=1), "at least 2")


@pytest.mark.parametrize(
    ("questions", "answers", "match"),
    [
        ([0, 2], [0, 0], "between 0 and 1"),
        ([-1, 0], [0, 0], "between 0 and 1"),
        ([0, 1], [0, 3], "among the choices"),
        ([0, 1], [-1, 0], "among the choices"),
        ([0], [0, 1], "same length"),
    ],
)
def test_divided_answers_that_cannot_be_are_refused(
    questions: list[int], answers: list[int], match: str
) -> None:
    refused(lambda: divided_answers(questions, answers, choices=(4, 3)), match)


def test_answers_of_other_questions_than_agreed_are_not_drawn() -> None:
    bounded = divided_answers([2], [0], choices=(2, 2, 2))
    refused(lambda: DividedResponse(choices=(2, 2), epsilon=1).noisy(bounded, SECURE), "from 0 to 1")


def test_scaling_divides_epsilon() -> None:
    assert [each.scaled(2.0).epsilon for each in ANSWERS] == [0.35] * 4


def test_repeatable_chance_repeats_reports() -> None:
    def once() -> NDArray[Any]:
        wave = Wave(choices=50, epsilon=1.0, wide=9)
        return np.asarray(wave.noisy(categories(np.arange(50), choices=50), InsecureRandom(3)))

    np.testing.assert_array_equal(once(), once())
