"""How likely a person's answer is for one value or another: the exact law of every method of a survey.

What goes beside an answer is public and drawn whatever the value is, so it is taken as given.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import ConfigError
from cofactor.privacy.answer_noise import moved_weight, response_weights
from cofactor.privacy.answers import DividedResponse, RandomizedResponse, Wave
from cofactor.privacy.noise import FULL
from cofactor.survey import hashing
from cofactor.survey.binning import Binning
from cofactor.survey.haar import HaarHRR
from cofactor.survey.hadamard import hadamard_signs
from cofactor.survey.hierarchy import HierarchicalHistogram
from cofactor.survey.means import PiecewiseMean, StochasticRounding
from cofactor.survey.method import Floats, Integers, Method, cells_of
from cofactor.survey.oracles import GRR, OLH, HadamardResponse
from cofactor.survey.waves import GeneralWave, SquareWave

Beside = Mapping[str, NDArray[Any]]


def log_odds(method: Method, one: Floats, other: Floats, answers: Integers, beside: Beside) -> Floats:
    """Return by how much each answer speaks for the one position of a person, between 0 and 1, or the other.

    Answers and positions are a row, an entry for each person; `beside` are the method's public arrays.
    """
    chances = (_chances(method, positions, answers, beside) for positions in (one, other))
    first, second = (np.log(each) for each in chances)
    return np.asarray(first - second)


def _chances(method: Method, positions: Floats, answers: Integers, beside: Beside) -> Floats:
    if isinstance(method, StochasticRounding):
        return _rounded(method.mechanism, positions, 1, answers)
    if isinstance(method, PiecewiseMean):
        return _rounded(method.mechanism, positions, method.mechanism.choices - 1, answers)
    truth = _truth(method, positions, beside)
    if isinstance(method, HierarchicalHistogram):
        return _divided(method.mechanism, truth, answers, beside["layers"])
    return chances_of(method.mechanism, truth, answers)


def _truth(method: Method, positions: Floats, beside: Beside) -> Integers:
    """Return what would be true of somebody whose value lies there, for the mechanism to tell by chance."""
    if isinstance(method, Binning):
        return _truth(method.oracle, positions, beside)
    if isinstance(method, SquareWave | GeneralWave):
        return cells_of(positions, method.mechanism.choices)
    cells = cells_of(positions, method.buckets)
    if isinstance(method, GRR):
        return cells
    if isinstance(method, OLH):
        return hashing.hashes(beside["seeds"], cells, method.choices)
    if isinstance(method, HadamardResponse):
        return (hadamard_signs(beside["rows"], cells) + 1) // 2
    if isinstance(method, HaarHRR):
        return method.bits(cells, beside["layers"].astype(np.int64), beside["rows"].astype(np.int64))
    if isinstance(method, HierarchicalHistogram):
        return method.truth(cells, beside["layers"], beside["seeds"])
    raise ConfigError(f"the law of {type(method).__name__} is not known here: its answers cannot be judged.")


def chances_of(mechanism: RandomizedResponse | Wave, truth: Integers, answers: Integers) -> Floats:
    """Return how likely answers are, each for its own truth."""
    if isinstance(mechanism, Wave):
        return _wave(mechanism, truth, answers)
    right, wrong = response_weights(mechanism.choices, mechanism.epsilon)
    return np.where(answers == truth, right / FULL, wrong / FULL)


def _divided(mechanism: DividedResponse, truth: Integers, answers: Integers, questions: Any) -> Floats:
    weights = np.array([response_weights(each, mechanism.epsilon) for each in mechanism.choices], np.float64)
    right, wrong = (weights[questions] / FULL).T
    return np.asarray(np.where(answers == truth, right, wrong))


def _rounded(
    mechanism: RandomizedResponse | Wave, positions: Floats, steps: int, answers: Integers
) -> Floats:
    """Return how likely answers are where a value between two steps is rounded to either by chance."""
    low = np.minimum(np.floor(positions * steps).astype(np.int64), steps - 1)
    up = positions * steps - low
    return (1 - up) * chances_of(mechanism, low, answers) + up * chances_of(mechanism, low + 1, answers)


def _wave(wave: Wave, truth: Integers, answers: Integers) -> Floats:
    """Return the wave's own part, the ways to step from the truth into the report's cells, and the rest."""
    moved, width = moved_weight(wave.cells, wave.wide, wave.epsilon), wave.cells // wave.reports
    first = answers * width - truth
    ways = _ways(wave, first + width - 1) - _ways(wave, first - 1)
    return moved / FULL * (ways / (wave.wide * wave.narrow)) + (FULL - moved) / FULL / wave.reports


def _ways(wave: Wave, most: Integers) -> Integers:
    """Return in how many ways two numbers, below `wide` and below `narrow`, add up to at most so much."""
    if wave.narrow == 1:
        return np.clip(most + 1, 0, wave.wide)
    wide, narrow = wave.wide, wave.narrow
    less = (_triangle(most - each) for each in (0, wide, narrow, wide + narrow))
    neither, one, other, both = less
    return neither - one - other + both


def _triangle(most: Integers) -> Integers:
    """Return in how many ways two numbers from 0 on add up to at most so much."""
    rows = np.maximum(most + 1, 0)
    return np.asarray(rows * (rows + 1) // 2)
