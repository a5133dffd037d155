"""The methods that the thesis compares, and by what each of them is measured (Table 3.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cofactor.papers.thesis22_data import Numbers
from cofactor.randomness import Random
from cofactor.survey.binning import Binning
from cofactor.survey.haar import HaarHRR
from cofactor.survey.hierarchy import HierarchicalHistogram
from cofactor.survey.means import AnyMean, PiecewiseMean, StochasticRounding, mean_and_variance
from cofactor.survey.method import Gives, Method, report, simulated
from cofactor.survey.metrics import errors
from cofactor.survey.waves import SquareWave

EMS, EM, ADMM = "SW with EMS", "SW with EM", "HH-ADMM"
WEIGHTED = "HH-ADMM, weighted"
"""Ours: layers count by how well they are known. The thesis counts all alike."""
BINS = (16, 32, 64)
FEW_BINS, SOME_BINS, MANY_BINS = BINNED = tuple(f"CFO, {bins} bins" for bins in BINS)
HH, HAAR = "HH", "HaarHRR"
ROUNDING, PIECEWISE = "SR", "PM"

WASSERSTEIN, KS = "Wasserstein distance", "KS distance"
NARROW, WIDE = "range queries, 0.1", "range queries, 0.4"
MEAN, VARIANCE, QUANTILES = "mean", "variance", "quantiles"
MEASURES = {
    "wasserstein": WASSERSTEIN,
    "kolmogorov": KS,
    "range_0.1": NARROW,
    "range_0.4": WIDE,
    "mean": MEAN,
    "variance": VARIANCE,
    "deciles": QUANTILES,
}
"""What the thesis calls the errors that `survey.metrics` knows."""

_EVEN: dict[Gives, tuple[float, ...]] = {
    "distribution": (0.5, 0.5),
    "ranges": (0.5, 0.5),
    "mean": (0.5, 0.0625),
}
"""For each kind of estimate the simplest one: that half of all lies in each of two buckets."""

Errors = dict[str, dict[str, float]]
"""By line and measure."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """Everybody answers once; one or more estimates are made of the same answers."""

    estimators: Mapping[str, Method]
    """By line: methods that ask alike, and make something else of the answers."""

    @property
    def epsilon(self) -> float:
        """What an answer costs."""
        return next(iter(self.estimators.values())).epsilon

    @property
    def gives(self) -> dict[str, Gives]:
        """What each line's estimate is."""
        return {line: method.gives for line, method in self.estimators.items()}

    def errors(self, numbers: Numbers, random: Random) -> Errors:
        """Ask, and say how far each estimate is from the histogram of what people have."""
        first = next(iter(self.estimators.values()))
        tally, truth = first.tally(**report(first, numbers.values, random)), numbers.histogram(first.buckets)
        return {
            line: {
                MEASURES[name]: error
                for name, error in errors(truth, method.estimate(tally), method.gives).items()
            }
            for line, method in self.estimators.items()
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Halves:
    """A mean of everybody's answers; for the variance, everybody answers anew, in two halves."""

    line: str
    method: AnyMean

    @property
    def epsilon(self) -> float:
        """What an answer costs; of either asking, by itself."""
        return self.method.epsilon

    @property
    def gives(self) -> dict[str, Gives]:
        """A mean."""
        return {self.line: self.method.gives}

    def errors(self, numbers: Numbers, random: Random) -> Errors:
        """Ask, and say how far mean and variance are from those of the numbers themselves."""
        mean = float(simulated(self.method, numbers.values, random)[0])
        _, variance = mean_and_variance(self.method, numbers.values, random)
        return {
            self.line: {
                MEAN: abs(mean - float(np.mean(numbers.values))),
                VARIANCE: abs(variance - float(np.var(numbers.values))),
            }
        }


Asking = Answers | Halves


def all_askings(epsilon: float, buckets: int) -> list[Asking]:
    """Return all methods of the thesis; those that only estimate in another way share their answers."""
    wave = SquareWave(epsilon=epsilon, buckets=buckets)
    tree = HierarchicalHistogram(epsilon=epsilon, buckets=buckets, weighted=False)
    return [
        Answers(estimators={EMS: wave, EM: replace(wave, smoothing=False)}),
        Answers(
            estimators={
                ADMM: tree,
                WEIGHTED: replace(tree, weighted=True),
                HH: replace(tree, post="consistent"),
            }
        ),
        *(
            Answers(estimators={line: Binning(epsilon=epsilon, buckets=buckets, bins=bins)})
            for line, bins in zip(BINNED, BINS, strict=True)
        ),
        Answers(estimators={HAAR: HaarHRR(epsilon=epsilon, buckets=buckets)}),
        Halves(line=ROUNDING, method=StochasticRounding(epsilon=epsilon)),
        Halves(line=PIECEWISE, method=PiecewiseMean(epsilon=epsilon)),
    ]


def measured_by(gives: Gives) -> list[str]:
    """Return by what estimates of a kind can be measured."""
    return [MEASURES[name] for name in errors(_EVEN["distribution"], _EVEN[gives], gives)]
