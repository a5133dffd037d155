"""All methods by name, and which one to use where nobody has chosen."""

import math
from typing import Any

from cofactor.config import from_table
from cofactor.survey.binning import Binning
from cofactor.survey.haar import HaarHRR
from cofactor.survey.hierarchy import HierarchicalHistogram
from cofactor.survey.means import PiecewiseMean, StochasticRounding
from cofactor.survey.method import Method
from cofactor.survey.oracles import GRR, OLH, HadamardResponse
from cofactor.survey.question import Question
from cofactor.survey.waves import GeneralWave, SquareWave

AnyMethod = (
    SquareWave
    | GeneralWave
    | Binning
    | GRR
    | OLH
    | HadamardResponse
    | HierarchicalHistogram
    | HaarHRR
    | StochasticRounding
    | PiecewiseMean
)

_FEW, _MANY, _CROWD = 512, 1024, 1_000_000
"""Buckets of a square wave: more of them for a million people and more."""
_LISTED = 16
"""Of more whole numbers than this a wave tells more than answers from their list."""
SMOOTHABLE = 256
"""Buckets from which on smoothing does good. Of fewer, a step is a large part of the range: with 64 buckets
smoothing makes the error up to five times as large, with 512 it makes it smaller."""


def method_from_table(table: Any, where: str) -> Method:
    """Read a method that `config.as_table` wrote."""
    found: Method = from_table(AnyMethod, table, where)
    return found


def usual_method(question: Question, epsilon: float, people: int) -> Method:
    """Return what serves a question best as a rule: a square wave, or for a few whole numbers their list.

    It follows from public numbers only: how many people are asked is known.
    """
    levels = question.levels
    if levels is not None and levels <= _LISTED and levels - 2 < 3 * math.exp(epsilon):
        return Binning(epsilon=epsilon, buckets=levels, bins=levels)
    return SquareWave(epsilon=epsilon, buckets=_FEW if people < _CROWD else _MANY)
