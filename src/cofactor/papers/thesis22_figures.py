"""Section 3.6 of the thesis, figure by figure: who asks what, and how the answers stand side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cofactor.papers import thesis22_methods as methods
from cofactor.papers.cells import Effort
from cofactor.papers.results import Row
from cofactor.papers.thesis22_data import Numbers
from cofactor.papers.thesis22_methods import Answers, Errors, all_askings, measured_by
from cofactor.papers.thesis22_rows import Column, rows_of
from cofactor.progress import Listener
from cofactor.randomness import Random
from cofactor.survey.method import simulated
from cofactor.survey.metrics import wasserstein
from cofactor.survey.waves import GeneralWave, SquareWave, half_width

EPSILONS, FEW_EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5), (0.5, 1.5, 2.5)
SHAPES = {
    "square": 1.0,
    "ratio 0.8": 0.8,
    "ratio 0.6": 0.6,
    "ratio 0.4": 0.4,
    "ratio 0.2": 0.2,
    "triangle": 0.0,
}
"""Waves, by the length of their upper side over that of the lower one."""
SHAPES_EPSILON = 1.0
SHAPES_WIDTHS, FEW_SHAPES_WIDTHS = (0.05, 0.15, 0.25, 0.38), (0.05, 0.25)
WIDTHS, FEW_WIDTHS = (0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.38), (0.01, 0.1, 0.25, 0.38)
"""Half widths b that are tried."""
WIDTHS_EPSILONS = (0.5, 1.0, 2.0)
GRANULARITIES = (256, 512, 1024, 2048)
OWN, FINEST = "by its own buckets", f"by {GRANULARITIES[-1]:,} buckets"
STAR = "*"
"""Stands before the b that epsilon alone settles."""

Rows = Callable[[Numbers, Effort, Listener], list[Row]]


def by_epsilon(measures: Sequence[str]) -> Rows:
    """Return figures 3.2 to 3.4: all methods that can be measured so, for a range of epsilons."""

    def rows(numbers: Numbers, effort: Effort, progress: Listener) -> list[Row]:
        columns = [
            Column(name=epsilon_column(epsilon), askings=_measured_so(measures, epsilon, numbers.buckets))
            for epsilon in effort.shown(EPSILONS, FEW_EPSILONS)
        ]
        found = rows_of(numbers, columns, effort, progress)
        return [
            replace(row, panel=panel_of(numbers.name, measure))
            for measure in measures
            for row in found
            if row.panel == measure
        ]

    return rows


def shapes(numbers: Numbers, effort: Effort, progress: Listener) -> list[Row]:
    """Return figure 3.5: waves of several shapes, as b grows."""
    columns = [
        Column(
            name=f"{width:g}",
            askings=[_wave(line, ratio, width, numbers.buckets) for line, ratio in SHAPES.items()],
        )
        for width in effort.shown(SHAPES_WIDTHS, FEW_SHAPES_WIDTHS)
    ]
    found = rows_of(numbers, columns, effort, progress)
    return [
        replace(row, panel=panel_of(numbers.name, row.panel))
        for row in found
        if row.panel == methods.WASSERSTEIN
    ]


def widths(numbers: Numbers, effort: Effort, progress: Listener) -> list[Row]:
    """Return figure 3.6: square waves, as b grows, with the b that each epsilon settles among the others."""
    tried = effort.shown(WIDTHS, FEW_WIDTHS)
    places = [(width, epsilon, f"{width:g}") for width in tried for epsilon in WIDTHS_EPSILONS]
    settled = [(half_width(epsilon), epsilon) for epsilon in WIDTHS_EPSILONS]
    places += [(width, epsilon, f"{STAR}{width:.3f}") for width, epsilon in settled]
    columns = [
        Column(
            name=name,
            askings=[
                Answers(
                    estimators={
                        epsilon_column(epsilon): SquareWave(
                            epsilon=epsilon, buckets=numbers.buckets, half_width=width
                        )
                    }
                )
            ],
        )
        for width, epsilon, name in sorted(places)
    ]
    found = rows_of(numbers, columns, effort, progress)
    return [
        replace(row, panel=row.line, line=numbers.name) for row in found if row.panel == methods.WASSERSTEIN
    ]


def granularities(numbers: Numbers, effort: Effort, progress: Listener) -> list[Row]:
    """Return figure 3.7: SW with EMS, with more or fewer buckets."""
    columns = [
        Column(
            name=epsilon_column(epsilon),
            askings=[_Granularity(epsilon=epsilon, buckets=buckets) for buckets in GRANULARITIES],
        )
        for epsilon in effort.shown(EPSILONS, FEW_EPSILONS)
    ]
    found = rows_of(numbers, columns, effort, progress)
    return [replace(row, panel=panel_of(numbers.name, row.panel)) for row in found]


def what_is_measured(numbers: Numbers, effort: Effort, progress: Listener) -> list[Row]:  # noqa: ARG001
    """Return Table 3.2: 1 where a method can be measured so, whatever it is asked."""
    return [
        Row(
            line=line,
            panel="what is measured",
            column=column,
            ours=1.0 if set(measures) <= set(measured_by(gives)) else None,
            paper=1.0 if column in CHECKED[line] else None,
        )
        for asking in all_askings(1.0, numbers.buckets)
        for line, gives in asking.gives.items()
        if line in CHECKED
        for column, measures in COLUMNS.items()
    ]


COLUMNS = {
    "W1 and KS": (methods.WASSERSTEIN, methods.KS),
    "ranges": (methods.NARROW, methods.WIDE),
    "mean, variance": (methods.MEAN, methods.VARIANCE),
    "quantiles": (methods.QUANTILES,),
}
"""Of Table 3.2."""
CHECKED = {
    **dict.fromkeys((methods.EMS, methods.EM, methods.ADMM, *methods.BINNED), tuple(COLUMNS)),
    **dict.fromkeys((methods.HH, methods.HAAR), ("ranges",)),
    **dict.fromkeys((methods.ROUNDING, methods.PIECEWISE), ("mean, variance",)),
}
"""What the thesis' table says."""


def panel_of(name: str, measure: str) -> str:
    """Return what the part of a figure is called that shows a set of numbers by one measure."""
    return f"{name}: {measure}"


def epsilon_column(epsilon: float) -> str:
    """Return what a column is called."""
    return f"epsilon {epsilon:g}"


def buckets_line(buckets: int) -> str:
    """Return what a line is called that shows so many buckets."""
    return f"{buckets:,} buckets"


@dataclass(frozen=True, kw_only=True)
class _Granularity:
    """One number of buckets, measured by these and by the finest."""

    epsilon: float
    buckets: int

    def errors(self, numbers: Numbers, random: Random) -> Errors:
        found = simulated(SquareWave(epsilon=self.epsilon, buckets=self.buckets), numbers.values, random)
        parts = GRANULARITIES[-1] // self.buckets
        return {
            buckets_line(self.buckets): {
                OWN: wasserstein(numbers.histogram(self.buckets), found),
                FINEST: wasserstein(numbers.histogram(GRANULARITIES[-1]), np.repeat(found / parts, parts)),
            }
        }


def _measured_so(measures: Sequence[str], epsilon: float, buckets: int) -> list[methods.Asking]:
    return [
        asking
        for asking in all_askings(epsilon, buckets)
        if any(set(measures) & set(measured_by(gives)) for gives in asking.gives.values())
    ]


def _wave(line: str, ratio: float, width: float, buckets: int) -> Answers:
    if ratio == 1:
        return Answers(
            estimators={line: SquareWave(epsilon=SHAPES_EPSILON, buckets=buckets, half_width=width)}
        )
    return Answers(
        estimators={line: GeneralWave(epsilon=SHAPES_EPSILON, buckets=buckets, half_width=width, ratio=ratio)}
    )
