"""Figures 2 to 8 of HDPMF: who asks for how much, how sparse ratings are, and what rescaling is worth."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cofactor.data.ratings import Ratings
from cofactor.papers.cells import Effort
from cofactor.papers.hdpmf_lines import CO_RATING, Line, honest, own_mean, published, scored, settings
from cofactor.papers.hdpmf_method import (
    DPMF_FRESH,
    HDPMF_FRESH,
    MF_LINE,
    PDPMF_FRESH,
    UNSCALED,
    Variant,
)
from cofactor.papers.hdpmf_numbers import DIMENSIONS, MSE, printed
from cofactor.papers.hdpmf_splits import Repeat, enough, thinned, users_with
from cofactor.papers.hdpmf_tables import errors, panel_name, repeats_of
from cofactor.papers.material import Material
from cofactor.papers.results import ANY_EPSILON, Row
from cofactor.progress import Listener


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What a figure changes."""

    symbol: str
    values: tuple[float, ...]
    published: float | None = None
    """Where Table 3 stands, if it is among the values."""
    repeat: Callable[[Ratings, int, float], Repeat]
    """Makes a repeat from ratings, a seed and a value."""
    variants: tuple[Variant, ...] = (HDPMF_FRESH, PDPMF_FRESH)
    level: bool = True
    """Whether users' own means are the same everywhere."""

    def column(self, value: float) -> str:
        """Return what stands below a value's points."""
        return f"{self.symbol} = {value:g}"


def _least(ratings: Ratings, seed: int, value: float) -> Repeat:
    return Repeat.of(ratings, seed, users_with(least=value))


def _conservative(ratings: Ratings, seed: int, value: float) -> Repeat:
    return Repeat.of(ratings, seed, users_with(conservative=value))


def _sparse(ratings: Ratings, seed: int, value: float) -> Repeat:
    whole = Repeat.of(ratings, seed, tested=1)
    return replace(whole, train=thinned(whole.train, value, seed=seed))


LEAST = Sweep(symbol="eps_uc", values=(0.1, 0.2, 0.3, 0.4), published=0.1, repeat=_least)
CONSERVATIVE = Sweep(symbol="f_uc", values=(0.1, 0.2, 0.3, 0.4, 0.54), published=0.54, repeat=_conservative)
SPARSITY = Sweep(
    symbol="fraction",
    values=(0.2, 0.4, 0.6, 0.8, 1.0),
    repeat=_sparse,
    variants=(HDPMF_FRESH, PDPMF_FRESH, MF_LINE),
    level=False,
)
"""Leave-one-out, of which nothing is in Table 3."""


def figure(sweep: Sweep, factors: int) -> Callable[[Material, Effort, Listener], list[Row]]:
    """Return what makes a figure that changes one thing."""

    def rows(material: Material, effort: Effort, progress: Listener) -> list[Row]:
        return swept(sweep, factors, material, effort, progress)

    return rows


def swept(sweep: Sweep, factors: int, material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Train and measure everything at all values, with settings that suit the default specification."""
    ratings, panel = enough(material.ratings), panel_name(material.name, factors)
    chosen = settings(sweep.variants, factors, Repeat.of(ratings, 1), progress, quick=effort.quick)
    lines = [published(variant, factors, chosen[variant]) for variant in sweep.variants]
    rows = []
    for value in effort.shown(sweep.values, (sweep.values[0], sweep.values[-1])):
        repeats = [sweep.repeat(ratings, seed, value) for seed in range(1, effort.seeds + 1)]
        shown = [*lines, honest(), honest(CO_RATING), *([] if sweep.level else [own_mean()])]
        what = f"{panel}, {sweep.column(value)}"
        for scores in scored(shown, repeats, errors, progress, what):
            paper = printed(material.name, MSE, factors, scores.line.method)
            theirs = paper.mean if paper is not None and value == sweep.published else None
            rows.append(replace(scores.row(panel, MSE, theirs), column=sweep.column(value)))
    if sweep.level:
        level = scored([own_mean()], repeats_of(material, effort), errors, progress, panel)
        rows += [replace(one.row(panel, MSE), column=ANY_EPSILON) for one in level]
    return rows


def figure8(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Train and measure all methods, and HDPMF without rescaling; that has HDPMF's own setting."""
    repeats = repeats_of(material, effort)
    rows = []
    for factors in DIMENSIONS:
        panel = panel_name(material.name, factors)
        lines = _compared(factors, repeats[0], effort, progress)
        for scores in scored(
            [*lines, honest(), honest(CO_RATING), own_mean()], repeats, errors, progress, panel
        ):
            paper = printed(material.name, MSE, factors, scores.line.method)
            rows.append(scores.row(panel, MSE, None if paper is None else paper.mean))
    return rows


def _compared(factors: int, repeat: Repeat, effort: Effort, progress: Listener) -> Sequence[Line]:
    variants = (HDPMF_FRESH, PDPMF_FRESH, DPMF_FRESH, MF_LINE)
    chosen = settings(variants, factors, repeat, progress, quick=effort.quick)
    chosen[UNSCALED] = chosen[HDPMF_FRESH]
    order = (HDPMF_FRESH, UNSCALED, DPMF_FRESH, PDPMF_FRESH, MF_LINE)
    return [published(variant, factors, chosen[variant]) for variant in order]
