"""Differential Privacy in Distributed Settings (Li 2022), chapters 3 (distributions) and 5 (clusters)."""

from collections.abc import Sequence
from pathlib import Path

from cofactor.papers import thesis22_chapter5 as chapter5
from cofactor.papers import thesis22_figures as figures
from cofactor.papers import thesis22_findings as findings
from cofactor.papers import thesis22_methods as methods
from cofactor.papers.figure import Figure
from cofactor.papers.thesis22_cluster_data import Crowd, read_crowds
from cofactor.papers.thesis22_data import BETA, INCOME, NAMES, Numbers, read_numbers

REPEATS, QUICK_REPEATS = 20, 3
"""How often everybody is asked anew; 100 times in the thesis."""
_NOISE = (
    "Everybody answers anew in every repeat. SW with EM and SW with EMS make their estimates of the same "
    "answers, and so do HH and HH-ADMM. Behind a number stands its standard error; a claim holds at a point "
    "if errors differ by more than chance would make them in 0.3% of cases (Student's test)."
)
_DISTANCES = "Distances are those of the unit interval, into which all numbers are mapped."
_DECIMALS = 5

FIGURES = {
    "figure3.2": Figure(
        title="Distances of distributions",
        measure="distance",
        rows=figures.by_epsilon((methods.WASSERSTEIN, methods.KS)),
        findings=findings.findings2,
        data=NAMES,
        reading=f"{_DISTANCES} {_NOISE}",
        decimals=_DECIMALS,
        log=True,
    ),
    "figure3.3": Figure(
        title="Errors of range queries",
        measure="mean absolute error",
        rows=figures.by_epsilon((methods.NARROW, methods.WIDE)),
        findings=findings.findings3,
        data=NAMES,
        reading=f"Ranges 0.1 or 0.4 wide begin anywhere; the mean is over all of them. {_NOISE}",
        decimals=_DECIMALS,
        log=True,
    ),
    "figure3.4": Figure(
        title="Errors of mean, variance and quantiles",
        measure="mean absolute error",
        rows=figures.by_epsilon((methods.MEAN, methods.VARIANCE, methods.QUANTILES)),
        findings=findings.findings4,
        data=NAMES,
        reading="Quantiles are 10%, 20%, ... 90%. For a variance SR and PM ask half of the people for the "
        f"mean, and the others how far they are from it. {_NOISE}",
        decimals=_DECIMALS,
        log=True,
    ),
    "figure3.5": Figure(
        title=f"Shapes of waves at epsilon {figures.SHAPES_EPSILON:g}, by b",
        measure="Wasserstein distance",
        rows=figures.shapes,
        findings=findings.findings5,
        data=(BETA, INCOME),
        reading="A ratio is that of a trapezoid's upper side to its lower one, which is 2 b long. "
        f"{_DISTANCES} {_NOISE}",
        decimals=_DECIMALS,
        log=True,
    ),
    "figure3.6": Figure(
        title="SW with EMS, by b",
        measure="Wasserstein distance",
        rows=figures.widths,
        findings=findings.findings6,
        data=NAMES,
        reading=f"The b that epsilon settles (section 3.5.3) has a star. {_DISTANCES} {_NOISE}",
        decimals=_DECIMALS,
        log=True,
    ),
    "figure3.7": Figure(
        title="SW with EMS, by the number of buckets",
        measure="Wasserstein distance",
        rows=figures.granularities,
        findings=findings.findings7,
        data=NAMES,
        reading="The thesis does not say against what it measures: here against the histogram with as many "
        f"buckets, and against the finest, over which an estimate's buckets are spread evenly. {_NOISE}",
        decimals=_DECIMALS,
        log=True,
    ),
    "table3.2": Figure(
        title="Methods and what they are measured by",
        measure="1: measured",
        rows=figures.what_is_measured,
        findings=findings.findings_table,
        data=(BETA,),
        reading="It follows from what a method's estimate is: a distribution, sums over ranges, or a mean.",
        decimals=0,
    ),
    **chapter5.FIGURES,
}
"""What can be made again, by its name in the thesis."""


def people(item: str, place: Path | None, *, quick: bool) -> Sequence[Numbers] | Sequence[Crowd]:
    """Return the sets that a figure shows: numbers of people, or people to be clustered."""
    names = FIGURES[item].data
    if item in chapter5.FIGURES:
        return read_crowds(place, names, quick=quick)
    return read_numbers(place, names, quick=quick)
