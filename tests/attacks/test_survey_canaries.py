from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cofactor.attacks.survey_canaries import SurveyTarget
from cofactor.attacks.survey_canaries_law import log_odds
from cofactor.errors import ConfigError
from cofactor.privacy import answer_noise
from cofactor.privacy.one_run import OneRun, judged
from cofactor.randomness import InsecureRandom, Random
from cofactor.survey.binning import Binning
from cofactor.survey.haar import HaarHRR
from cofactor.survey.hierarchy import HierarchicalHistogram
from cofactor.survey.means import PiecewiseMean, StochasticRounding
from cofactor.survey.method import Method, report
from cofactor.survey.oracles import GRR, OLH, HadamardResponse
from cofactor.survey.people import People
from cofactor.survey.question import Question
from cofactor.survey.waves import GeneralWave, SquareWave

CONFIDENCE = 0.999
"""Of an audit that must not cry wolf; noise here repeats, so it does not from one day to the next, either."""
METHODS: dict[str, Callable[[float], Method]] = {
    "square wave": lambda epsilon: SquareWave(epsilon=epsilon),
    "discrete square wave": lambda epsilon: SquareWave(epsilon=epsilon, discrete=True, buckets=16),
    "triangle": lambda epsilon: GeneralWave(epsilon=epsilon, buckets=32),
    "trapezoid": lambda epsilon: GeneralWave(epsilon=epsilon, buckets=32, ratio=0.5),
    "few bins": lambda epsilon: Binning(epsilon=epsilon, bins=4),
    "hashed bins": lambda epsilon: Binning(epsilon=epsilon, bins=256),
    "randomized response": lambda epsilon: GRR(epsilon=epsilon, buckets=2),
    "local hashing": lambda epsilon: OLH(epsilon=epsilon),
    "Hadamard response": lambda epsilon: HadamardResponse(epsilon=epsilon),
    "tree": lambda epsilon: HierarchicalHistogram(epsilon=epsilon),
    "Haar": lambda epsilon: HaarHRR(epsilon=epsilon),
    "rounded mean": lambda epsilon: StochasticRounding(epsilon=epsilon),
    "piecewise mean": lambda epsilon: PiecewiseMean(epsilon=epsilon),
}


def audited(target: SurveyTarget, seed: int = 1) -> OneRun:
    present = np.random.default_rng(seed).random(target.canaries) < 0.5
    played = target.play(present, InsecureRandom(seed))
    return judged(played.scores, present, played.promised, confidence=CONFIDENCE)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_keeps_its_promise_and_canaries_come_close_to_it(name: str, epsilon: float) -> None:
    found = audited(SurveyTarget(method=METHODS[name](epsilon), canaries=2000))
    assert not found.refuted
    assert 0.6 * epsilon < found.epsilon_at_least <= epsilon


@pytest.mark.parametrize("name", METHODS)
def test_no_answer_says_more_than_epsilon(name: str) -> None:
    method = METHODS[name](2.0)
    found = odds(method, *np.random.default_rng(3).random((2, 500)))
    assert np.abs(found).max() <= 2.0 + 1e-9
    assert np.abs(found).max() > 1.0


@pytest.mark.parametrize("name", METHODS)
def test_laws_add_up_to_what_answers_do(name: str) -> None:
    """On average over answers to the other value, exp(log-odds) is 1: only the true law has that."""
    method, people = METHODS[name](1.0), 20_000
    one, other = np.full(people, 0.9), np.full(people, 0.1)
    found = np.exp(-odds(method, one, other))
    assert abs(found.mean() - 1) < 6 * found.std() / np.sqrt(people)
    wrong = np.exp(-1.3 * odds(method, one, other))
    assert abs(wrong.mean() - 1) > 6 * wrong.std() / np.sqrt(people)


def odds(method: Method, one: Any, other: Any) -> Any:
    """Return log-odds for people who have the first position."""
    beside = report(method, one, InsecureRandom(5))
    return log_odds(method, one, other, beside.pop("answers"), beside)


@pytest.mark.parametrize("name", METHODS)
def test_answers_at_three_times_the_epsilon_trip_the_audit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_response, true_wave = answer_noise.randomized_response, answer_noise.wave

    def loud_response(values: Any, choices: int, epsilon: float, random: Random) -> Any:
        return true_response(values, choices, 3 * epsilon, random)

    def loud_wave(values: Any, choices: int, wide: int, narrow: int, epsilon: float, random: Random) -> Any:
        return true_wave(values, choices, wide, narrow, 3 * epsilon, random)

    monkeypatch.setattr(answer_noise, "randomized_response", loud_response)
    monkeypatch.setattr(answer_noise, "wave", loud_wave)
    assert audited(SurveyTarget(method=METHODS[name](1.0), canaries=1000)).refuted


def test_whole_numbers_and_other_people_do_no_harm() -> None:
    question = Question(name="children", low=0, high=4, whole=True)
    others = People(name="others", values=np.arange(5.0))
    for method in (SquareWave(epsilon=2.0), StochasticRounding(epsilon=2.0), PiecewiseMean(epsilon=2.0)):
        found = audited(SurveyTarget(method=method, question=question, canaries=1000, others=others))
        assert not found.refuted
        assert found.epsilon_at_least > 0.5


def test_the_promise_is_that_of_the_method() -> None:
    target = SurveyTarget(method=GRR(epsilon=1.5, buckets=2), canaries=20)
    played = target.play(np.ones(20, np.bool_), InsecureRandom(1))
    assert played.promised is not None
    assert max(epsilon for epsilon, _ in played.promised.lines) == pytest.approx(1.5)
    assert played.guarantee.epsilon == pytest.approx(1.5)
    assert target.name == "a survey by GRR"


def test_only_the_coordinator_sees_answers() -> None:
    with pytest.raises(ConfigError, match="not by 'public'"):
        SurveyTarget(method=GRR(epsilon=1.0), seen_by="public")
    with pytest.raises(ConfigError, match="another name"):
        SurveyTarget(method=GRR(epsilon=1.0), others=People(name="canaries", values=np.zeros(1)))
