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

_FEWEST, _MOST = 16, 1024
"""Buckets of a square wave; between them, about the root of the number of people."""


def method_from_table(table: Any, where: str) -> Method:
    """Read a method that `config.as_table` wrote."""
    found: Method = from_table(AnyMethod, table, where)
    return found


def usual_method(question: Question, epsilon: float, people: int) -> Method:
    """Return what serves a question best as a rule: a square wave, or for a few whole numbers their list.

    It follows from public numbers only: how many people are asked is known.
    """
    fine = 2 ** round(math.log2(math.sqrt(max(people, 1))))
    buckets, levels = min(max(fine, _FEWEST), _MOST), question.levels
    if levels is None or levels > 2 * buckets:
        return SquareWave(epsilon=epsilon, buckets=buckets)
    if levels - 2 < 3 * math.exp(epsilon):
        return Binning(epsilon=epsilon, buckets=levels, bins=levels)
    return SquareWave(epsilon=epsilon, buckets=levels, discrete=True)
