"""Table 3 of HDPMF: errors of four methods, both readings of the noise, and what is honest."""

import math
from collections.abc import Sequence

from scipy.stats import ttest_rel

from cofactor.factors.model import Factors
from cofactor.papers.cells import Effort
from cofactor.papers.hdpmf_costs import costs
from cofactor.papers.hdpmf_lines import (
    CO_RATING,
    COUNTS_PROTECTED,
    VALUES_PROTECTED,
    Scores,
    global_mean,
    honest,
    own_mean,
    published,
    scored,
    settings,
)
from cofactor.papers.hdpmf_method import (
    HDPMF_FIXED,
    HDPMF_FRESH,
    PDPMF_FIXED,
    PDPMF_FRESH,
    VARIANTS,
    Measured,
    Variant,
    measured,
)
from cofactor.papers.hdpmf_numbers import DIMENSIONS, HDPMF, MEASURES, Printed, printed
from cofactor.papers.hdpmf_splits import Repeat, enough
from cofactor.papers.material import Material
from cofactor.papers.results import Row
from cofactor.progress import Listener

TEST = "one-sided paired t-test"
NO_STARS = "no star"
_LEVELS = ((0.01, "***"), (0.05, "**"), (0.1, "*"))


def panel_name(data: str, factors: int) -> str:
    """Return what a part of a table or figure is called."""
    return f"{data}, K = {factors}"


def repeats_of(material: Material, effort: Effort) -> list[Repeat]:
    """Return the repeated evaluations at the default specification."""
    ratings = enough(material.ratings)
    return [Repeat.of(ratings, seed) for seed in range(1, effort.seeds + 1)]


def table3(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Tune, train and measure everything; what has no vectors is the same for every K."""
    repeats = repeats_of(material, effort)
    rows = costs(material.name, repeats[0], effort.delta)
    simple = [
        *(honest(kind) for kind in (VALUES_PROTECTED, CO_RATING, COUNTS_PROTECTED)),
        own_mean(),
        global_mean(),
    ]
    beside = scored(simple, repeats, errors, progress, material.name)
    for factors in DIMENSIONS:
        chosen = settings(VARIANTS, factors, repeats[0], progress, quick=effort.quick)
        lines = [published(variant, factors, chosen[variant]) for variant in VARIANTS]
        found = scored(lines, repeats, errors, progress, panel_name(material.name, factors))
        rows += _rows(material.name, factors, [*found, *beside])
        rows += tested(material.name, factors, found)
    return rows


def errors(model: Factors, repeat: Repeat) -> Measured:
    """Measure a model on what a repeat holds back."""
    return measured(model, repeat.test)


def _rows(data: str, factors: int, found: Sequence[Scores]) -> list[Row]:
    rows = []
    for scores in found:
        for column in MEASURES:
            theirs = printed(data, column, factors, scores.line.method)
            rows.append(
                scores.row(panel_name(data, factors), column, None if theirs is None else theirs.mean)
            )
    return rows


def tested(data: str, factors: int, found: Sequence[Scores]) -> list[Row]:
    """Test whether HDPMF is below PDPMF, as often as there are repeats of both; stars are in the notes."""
    panel = f"{panel_name(data, factors)}: HDPMF below PDPMF, p of a {TEST}"
    rows = []
    for ours, other in ((HDPMF_FRESH, PDPMF_FRESH), (HDPMF_FIXED, PDPMF_FIXED)):
        for column in MEASURES:
            pair = [_values(found, variant, column) for variant in (ours, other)]
            if len(pair[0]) == len(pair[1]) >= 2:
                theirs = printed(data, column, factors, HDPMF)
                rows.append(_tested(f"{ours.noise} noise", panel, column, pair, theirs))
    return rows


def _tested(
    line: str, panel: str, column: str, pair: Sequence[Sequence[float]], paper: Printed | None
) -> Row:
    chance = below(*pair)
    beside = "" if paper is None else f" (the paper: {paper.stars or NO_STARS})"
    return Row(line=line, panel=panel, column=column, ours=chance, note=f"{stars(chance)}{beside}")


def _values(found: Sequence[Scores], variant: Variant, column: str) -> list[float]:
    return next((one.values.get(column, []) for one in found if one.line.name == variant.line), [])


def below(ours: Sequence[float], others: Sequence[float]) -> float:
    """Return the p-value of "ours is lower": the paper's t-test for means of paired samples."""
    if len({a - b for a, b in zip(ours, others, strict=True)}) == 1:
        return 0.0 if ours[0] < others[0] else 1.0
    return float(ttest_rel(ours, others, alternative="less").pvalue)


def stars(chance: float) -> str:
    """Return the stars of a p-value as Table 3 has them."""
    if math.isnan(chance):
        return NO_STARS
    return next((sign for level, sign in _LEVELS if chance < level), NO_STARS)
