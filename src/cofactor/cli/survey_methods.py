"""`--method` and `--buckets` of a survey: from a name to a method, with as many buckets as suit it."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from cofactor.config import one_of
from cofactor.errors import ConfigError

if TYPE_CHECKING:
    from cofactor.survey.method import Method
    from cofactor.survey.question import Question

METHODS = (
    "square-wave",
    "em",
    "binning",
    "hierarchy",
    "haar",
    "grr",
    "olh",
    "hadamard",
    "stochastic-rounding",
    "piecewise",
)
MEANS = ("stochastic-rounding", "piecewise")
"""Those that tell the mean, and nothing else."""
_AT_MOST = {"binning": 32, "grr": 16, "olh": 64, "hadamard": 64}
"""How finely methods that do not know which numbers are neighbours tell them apart, unless somebody says."""


def chosen_method(
    name: str | None, question: "Question", epsilon: float, buckets: int | None, people: int
) -> "Method":
    """Return the method that was asked for, or the usual one; all of it follows from public numbers."""
    from cofactor.survey.methods import SMOOTHABLE, usual_method

    usual = usual_method(question, epsilon, people)
    if name is None and buckets is None:
        return usual
    if name is None:
        name = "square-wave" if (buckets or 0) >= SMOOTHABLE else "em"
    one_of(METHODS, method=name)
    if name in MEANS and buckets is not None:
        raise ConfigError(f"{name} tells the mean, and has no buckets. Leave out --buckets.")
    return _makers(question, epsilon)[name](buckets or _suiting(name, usual.buckets))


def _makers(question: "Question", epsilon: float) -> dict[str, Callable[[int], "Method"]]:
    from cofactor.survey.binning import Binning
    from cofactor.survey.haar import HaarHRR
    from cofactor.survey.hierarchy import HierarchicalHistogram
    from cofactor.survey.means import PiecewiseMean, StochasticRounding
    from cofactor.survey.oracles import GRR, OLH, HadamardResponse
    from cofactor.survey.waves import SquareWave

    def wave(buckets: int, *, smoothing: bool) -> "Method":
        discrete = buckets == question.levels
        return SquareWave(epsilon=epsilon, buckets=buckets, smoothing=smoothing, discrete=discrete)

    return {
        "square-wave": lambda buckets: wave(buckets, smoothing=True),
        "em": lambda buckets: wave(buckets, smoothing=False),
        "binning": lambda buckets: Binning(epsilon=epsilon, buckets=buckets, bins=buckets),
        "hierarchy": lambda buckets: HierarchicalHistogram(epsilon=epsilon, buckets=buckets),
        "haar": lambda buckets: HaarHRR(epsilon=epsilon, buckets=buckets),
        "grr": lambda buckets: GRR(epsilon=epsilon, buckets=buckets),
        "olh": lambda buckets: OLH(epsilon=epsilon, buckets=buckets),
        "hadamard": lambda buckets: HadamardResponse(epsilon=epsilon, buckets=buckets),
        "stochastic-rounding": lambda _: StochasticRounding(epsilon=epsilon),
        "piecewise": lambda _: PiecewiseMean(epsilon=epsilon),
    }


def _suiting(name: str, usual: int) -> int:
    """Return how many buckets a method has if nobody says: near the usual number, as its tree needs them."""
    if name in _AT_MOST:
        return min(usual, _AT_MOST[name])
    base = {"hierarchy": 4, "haar": 2}.get(name)
    return usual if base is None else int(base ** max(1, round(math.log(usual, base))))
