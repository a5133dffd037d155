"""What section 3.6 of the thesis says of figures 3.2 to 3.4 and 3.7.

Of incomes it says what is held here against all spiky sets, of taxis and Beta(5, 2) what they are held
against themselves.
"""

from collections.abc import Sequence
from typing import NamedTuple

from cofactor.papers.thesis22_claims import Claim
from cofactor.papers.thesis22_data import BETA, FARES, INCOME, NAMES, SMOOTH, SPIKY, TAXI
from cofactor.papers.thesis22_figures import FINEST, GRANULARITIES, OWN, buckets_line
from cofactor.papers.thesis22_methods import (
    ADMM,
    BINNED,
    EM,
    EMS,
    FEW_BINS,
    HAAR,
    HH,
    KS,
    MANY_BINS,
    MEAN,
    NARROW,
    PIECEWISE,
    QUANTILES,
    ROUNDING,
    SOME_BINS,
    VARIANCE,
    WASSERSTEIN,
    WIDE,
)


class Said(NamedTuple):
    """Something that is said of some sets by one measure."""

    names: Sequence[str]
    measure: str
    claim: Claim


_DISTRIBUTIONS = (EMS, EM, ADMM, *BINNED)


def _others(line: str, lines: Sequence[str] = _DISTRIBUTIONS) -> list[str]:
    return [other for other in lines if other != line]


def _first(columns: Sequence[str]) -> Sequence[str]:
    return columns[:1]


def _last(columns: Sequence[str]) -> Sequence[str]:
    return columns[-1:]


_BEST = Claim(says="SW with EMS performs best in most cases", lines=(EMS,), than=_others(EMS), most=True)
_EM_NEXT = Claim(says="EM follows EMS in most cases", lines=(EM,), than=(ADMM, *BINNED), most=True)
_TREE_NEXT = Claim(says="HH-ADMM comes before binning in most cases", lines=(ADMM,), than=BINNED, most=True)
_BEST_OF_BINS = Claim(
    says="even the best number of bins, if it were known, would be worse than SW with EMS",
    lines=(EMS,),
    than=BINNED,
)
_FEWER_BINS = Claim(
    says="fewer bins are better where epsilon is small",
    lines=(FEW_BINS,),
    than=(SOME_BINS, MANY_BINS),
    columns=_first,
)
_MORE_BINS = Claim(
    says="more bins become better where epsilon is large",
    lines=(SOME_BINS, MANY_BINS),
    than=(FEW_BINS,),
    best=True,
    columns=_last,
)
_LARGE_BINS = "large bins perform poorly on incomes"
FIGURE_2 = (
    Said(NAMES, WASSERSTEIN, _BEST),
    Said(NAMES, WASSERSTEIN, _EM_NEXT),
    Said(NAMES, WASSERSTEIN, _TREE_NEXT),
    Said(NAMES, WASSERSTEIN, _BEST_OF_BINS),
    Said(NAMES, WASSERSTEIN, _FEWER_BINS),
    Said(NAMES, WASSERSTEIN, _MORE_BINS),
    Said(NAMES, WASSERSTEIN, Claim(says="SW with EMS is better than HH-ADMM", lines=(EMS,), than=(ADMM,))),
    Said(SMOOTH, KS, _BEST),
    Said(SMOOTH, KS, _EM_NEXT),
    Said(SPIKY, KS, Claim(says="HH-ADMM performs better than EMS on incomes", lines=(ADMM,), than=(EMS,))),
    Said(SPIKY, KS, Claim(says="HH-ADMM performs better than EM on incomes", lines=(ADMM,), than=(EM,))),
    Said(SPIKY, KS, Claim(says=_LARGE_BINS, lines=(MANY_BINS,), than=(FEW_BINS,))),
)


def _ranges(measure: str) -> list[Said]:
    hierarchies = "SW with EMS outperforms HH and HaarHRR"
    repaired = "HH-ADMM is significantly better than HH and HaarHRR"
    large = "HH-ADMM performs best on incomes where epsilon is large"
    return [
        Said(NAMES, measure, Claim(says=hierarchies, lines=(EMS,), than=(HH, HAAR))),
        Said(NAMES, measure, Claim(says=repaired, lines=(ADMM,), than=(HH, HAAR))),
        Said((BETA,), measure, _BEST),
        Said(SPIKY, measure, Claim(says=large, lines=(ADMM,), than=_others(ADMM), columns=_last)),
    ]


_TREES = "SW with EMS outperforms all hierarchies on taxis"
FIGURE_3 = (
    *_ranges(NARROW),
    *_ranges(WIDE),
    Said((TAXI,), NARROW, Claim(says=_TREES, lines=(EMS,), than=(ADMM, HH, HAAR))),
    Said((TAXI,), WIDE, _BEST),
)

_SMALL = "SR is better than PM where epsilon is small"
_LARGE = "PM is better than SR where epsilon is large"
FIGURE_4 = (
    Said(NAMES, MEAN, Claim(says=_SMALL, lines=(ROUNDING,), than=(PIECEWISE,), columns=_first)),
    Said(NAMES, MEAN, Claim(says=_LARGE, lines=(PIECEWISE,), than=(ROUNDING,), columns=_last)),
    Said(
        NAMES,
        MEAN,
        Claim(
            says="SW with EMS is comparable to the better of SR and PM (here: not seen to be higher)",
            lines=(EMS,),
            than=(ROUNDING, PIECEWISE),
            no_higher=True,
        ),
    ),
    Said(NAMES, MEAN, Claim(says="HH-ADMM is better than binning", lines=(ADMM,), than=BINNED)),
    Said(NAMES, MEAN, Claim(says="HH-ADMM is inferior to SW with EMS", lines=(EMS,), than=(ADMM,))),
    Said(
        NAMES,
        VARIANCE,
        Claim(
            says="errors of SR and PM are larger than those of EM and EMS in most cases",
            lines=(EM, EMS),
            than=(ROUNDING, PIECEWISE),
            most=True,
        ),
    ),
    Said(SMOOTH, QUANTILES, _BEST),
    Said(SMOOTH, QUANTILES, Claim(says="HH-ADMM is worse than SW", lines=(EMS, EM), than=(ADMM,))),
    Said(SMOOTH, QUANTILES, _FEWER_BINS),
    Said(SPIKY, QUANTILES, Claim(says="HH-ADMM is best on incomes", lines=(ADMM,), than=_others(ADMM))),
    Said(
        SPIKY,
        QUANTILES,
        Claim(
            says="large bins are worse than other methods on incomes by one or two orders of magnitude, even "
            "where epsilon is small",
            lines=(EMS, EM, ADMM),
            than=(FEW_BINS,),
            times=10.0,
            columns=_first,
        ),
    ),
)

_GRANULARITIES = [buckets_line(buckets) for buckets in GRANULARITIES]


def _buckets(names: Sequence[str], buckets: int, measure: str) -> Said:
    line = buckets_line(buckets)
    claim = Claim(
        says=f"{line} are best in most cases", lines=(line,), than=_others(line, _GRANULARITIES), most=True
    )
    return Said(names, measure, claim)


FIGURE_7 = tuple(
    said
    for measure in (OWN, FINEST)
    for said in (_buckets((BETA,), 256, measure), _buckets((TAXI, INCOME, FARES), 1024, measure))
)
