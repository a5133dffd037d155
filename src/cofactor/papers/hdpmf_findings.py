"""What HDPMF claims, held against what we measured."""

from collections.abc import Callable, Mapping, Sequence

from cofactor.papers.claims import Claim, lower
from cofactor.papers.claims import Line as Shown
from cofactor.papers.dpmf_rp_findings import Panel, claimed, panels
from cofactor.papers.hdpmf_groups import ALL, LESS
from cofactor.papers.hdpmf_lines import CO_RATING, COUNTS_PROTECTED, OWN_MEAN, VALUES_PROTECTED
from cofactor.papers.hdpmf_method import (
    DPMF_FRESH,
    HDPMF_FIXED,
    HDPMF_FRESH,
    MF_LINE,
    PDPMF_FRESH,
    UNSCALED,
    VARIANTS,
)
from cofactor.papers.hdpmf_numbers import MSE, OTHER_SAMPLES
from cofactor.papers.hdpmf_tables import TEST
from cofactor.papers.results import ANY_EPSILON, Row

_NEAR = 0.05
"""The part by which a number may differ from the paper's and still count as reproduced."""
_OURS, _OTHER = HDPMF_FRESH.line, PDPMF_FRESH.line


def findings3(rows: Sequence[Row]) -> list[str]:
    """Say what of Table 3 reproduces, with which reading, at which cost, and what is better."""
    found = _other_data(rows)
    for panel in panels(rows):
        if TEST in panel.name:
            found += _significance(panel)
        elif _OURS in panel.lines:
            found += [*_against_paper(panel), *_strictest(panel), *_relative(panel), *_beside(panel, MSE)]
    return found


def _other_data(rows: Sequence[Row]) -> list[str]:
    names = dict.fromkeys(row.panel.split(":")[0].split(",")[0] for row in rows)
    return [
        f"{name}: another sample than the paper's. Only the order of methods can be compared."
        for name in names
        if name in OTHER_SAMPLES
    ]


def _against_paper(panel: Panel) -> list[str]:
    """Say which lines are near the paper's numbers."""
    if panel.name.split(",")[0] in OTHER_SAMPLES:
        return []
    near: list[str] = []
    far: list[str] = []
    for variant in VARIANTS:
        for column, row in panel.lines.get(variant.line, {}).items():
            if row.ours is not None and row.paper is not None:
                words = f"{variant.line}, {column} ({row.ours:.3f}, paper {row.paper:.3f})"
                (near if abs(row.ours - row.paper) <= _NEAR * row.paper else far).append(words)
    parts = [f"within {_NEAR:.0%} of the paper: {'; '.join(near)}"] if near else []
    parts += [f"not: {'; '.join(far)}"] if far else []
    return [f"{panel.name}: {'. '.join(parts)}."] if parts else []


def _significance(panel: Panel) -> list[str]:
    return [
        f"{panel.name}: {line}, "
        + ", ".join(f"{c} {row.ours:.3g}, {row.note}" for c, row in own.items())
        + "."
        for line, own in panel.lines.items()
        if line.startswith(HDPMF_FRESH.noise)
    ]


def _strictest(panel: Panel) -> list[str]:
    ours, strict = (panel.value(line, MSE) for line in (_OURS, DPMF_FRESH.line))
    if ours is None or strict is None:
        return []
    says = "DPMF performs much worse than HDPMF and PDPMF"
    return claimed(panel, says, lower(ours, strict), f"{strict:.3f} against {ours:.3f}")


def _relative(panel: Panel) -> list[str]:
    """Say by which part HDPMF differs from PDPMF, here and there."""
    rows = [panel.lines.get(line, {}).get(MSE) for line in (_OURS, _OTHER)]
    values = [(row.ours, row.paper) for row in rows if row is not None]
    if len(values) < 2 or any(ours is None for ours, _ in values):
        return []
    (ours, theirs), (other, their_other) = values
    assert ours is not None
    assert other is not None
    paper = f"; in the paper, {theirs / their_other - 1:+.1%}" if theirs and their_other else ""
    return [f"{panel.name}: HDPMF's {MSE} beside PDPMF's, fresh noise: {ours / other - 1:+.1%}{paper}."]


def _beside(panel: Panel, column: str) -> list[str]:
    """Say what costs nothing, and what is honest, beside the paper's method."""
    ours, mean = panel.value(_OURS, column), panel.value(OWN_MEAN, column)
    if ours is None or mean is None:
        return []
    row = panel.lines[_OURS][column]
    verdict = "below" if lower(ours, mean) else "not below"
    cost = f"truly epsilon {row.epsilon:g}, not {row.epsilon_label:g}"
    found = [
        f"{panel.name}: HDPMF with fresh noise ({cost}) has {ours:.3f}, {verdict} the user's own mean "
        f"({mean:.3f}), for which nothing leaves her."
    ]
    others = {line: panel.value(line, column) for line in (VALUES_PROTECTED, CO_RATING, COUNTS_PROTECTED)}
    known = [f"{line} {value:.3f}" for line, value in others.items() if value is not None]
    fixed = panel.value(HDPMF_FIXED.line, column)
    beside = f" Noise drawn once, as Theorem 2 has it: {fixed:.3f}." if fixed is not None else ""
    return [*found, f"{panel.name}: at the promised total, {', '.join(known)}.{beside}"] if known else found


def _claims(says: str) -> Callable[[Sequence[Row]], list[str]]:
    """Return what holds "HDPMF is below PDPMF" against the rows of every panel."""

    def found(rows: Sequence[Row]) -> list[str]:
        return [
            Claim(says=says, lower=Shown(line=_OURS, panel=name), than=Shown(line=_OTHER, panel=name)).found(
                rows
            )
            for name in dict.fromkeys(row.panel for row in rows)
        ]

    return found


_most = _claims("HDPMF has lower errors than PDPMF in most cases, above all where eps_uc is small")
_always = _claims("HDPMF has lower errors than PDPMF at every f_uc")
_sparse = _claims("HDPMF has lower errors than PDPMF at every sparsity, except in very few cases on Yelp")


def findings_least(rows: Sequence[Row]) -> list[str]:
    """Hold what is said of Figures 2 and 3 against ours."""
    return [*_other_data(rows), *_most(rows), *_levels(rows)]


def findings_conservative(rows: Sequence[Row]) -> list[str]:
    """Hold what is said of Figures 4 and 5 against ours."""
    grows = _gap(rows, "the gap between them tends to become larger with a higher f_uc", widest=-1)
    return [*_other_data(rows), *_always(rows), *grows, *_levels(rows)]


def findings_sparsity(rows: Sequence[Row]) -> list[str]:
    """Hold what is said of Figures 6 and 7 against ours."""
    grows = _gap(rows, "the gap between HDPMF and PDPMF tends to enlarge as data become sparser", widest=0)
    return [*_other_data(rows), *_sparse(rows), *grows, *_degrading(rows), *_levels(rows)]


def _gap(rows: Sequence[Row], says: str, *, widest: int) -> list[str]:
    """Compare by how much HDPMF is below PDPMF at both ends; `widest` is where the paper has it larger."""
    found = []
    for panel in panels(rows):
        ours, other = (_columns(panel, line) for line in (_OURS, _OTHER))
        gaps = [other[column] - ours[column] for column in ours if column in other]
        if len(gaps) > 1:
            wide, narrow = (gaps[-1], gaps[0]) if widest == -1 else (gaps[0], gaps[-1])
            found += claimed(panel, says, wide > narrow, f"from {gaps[0]:+.3f} to {gaps[-1]:+.3f}")
    return found


def _degrading(rows: Sequence[Row]) -> list[str]:
    found = []
    says = "the performance of all three methods degrades when the data become sparser"
    for panel in panels(rows):
        lines = {line: list(_columns(panel, line).values()) for line in (_OURS, _OTHER, MF_LINE.line)}
        known = {line: values for line, values in lines.items() if len(values) > 1}
        holds = all(lower(values[-1], values[0]) for values in known.values())
        numbers = "; ".join(f"{line} {values[0]:.3f} to {values[-1]:.3f}" for line, values in known.items())
        found += claimed(panel, says, holds if known else None, numbers)
    return found


def _columns(panel: Panel, line: str) -> dict[str, float]:
    own = panel.lines.get(line, {})
    return {column: row.ours for column, row in own.items() if row.ours is not None}


def _levels(rows: Sequence[Row]) -> list[str]:
    """Say how HDPMF stands beside the user's own mean and our default, over all columns."""
    found = []
    for panel in panels(rows):
        ours, level = _columns(panel, _OURS), _columns(panel, OWN_MEAN)
        means = {column: level.get(column, level.get(ANY_EPSILON, float("nan"))) for column in ours}
        below = sum(lower(value, means[column]) for column, value in ours.items())
        text = f"{panel.name}: HDPMF is below the user's own mean at {below} of {len(ours)} points"
        default = _columns(panel, VALUES_PROTECTED)
        if default:
            under = sum(lower(value, means[column]) for column, value in default.items())
            text += f"; PersonalBiases, at the promised total, at {under} ({_ends(default)})"
        found.append(f"{text}.")
    return found


def _ends(values: Mapping[str, float]) -> str:
    return f"{min(values.values()):.3f} to {max(values.values()):.3f}"


def findings8(rows: Sequence[Row]) -> list[str]:
    """Hold the ablation against ours."""
    found = _other_data(rows)
    for panel in panels(rows):
        lines = (_OURS, UNSCALED.line, DPMF_FRESH.line)
        scaled, plain, strict = (panel.value(line, MSE) for line in lines)
        if scaled is None or plain is None:
            continue
        says = "removing the rescaling causes a dramatic increase of the error"
        found += claimed(panel, says, lower(scaled, plain), f"{plain:.3f} against {scaled:.3f}")
        if strict is not None:
            says = "without rescaling HDPMF is even worse than DPMF"
            found += claimed(panel, says, lower(strict, plain), f"{plain:.3f} against {strict:.3f}")
        found += _beside(panel, MSE)
    return found


def findings_groups(rows: Sequence[Row]) -> list[str]:
    """Say who pays: by how much each group's error is above or below what it has by itself."""
    found = _other_data(rows)
    for panel in panels(rows):
        if panel.name.endswith(LESS):
            found += [_who_pays(panel, line, own) for line, own in panel.lines.items()]
    return found


def _who_pays(panel: Panel, line: str, own: Mapping[str, Row]) -> str:
    groups = {column: row for column, row in own.items() if column != ALL and row.ours is not None}
    words = ", ".join(f"{column} {_signed(row)}" for column, row in groups.items())
    lose = [column for column, row in groups.items() if row.low is not None and row.low > 0]
    gain = [column for column, row in groups.items() if row.high is not None and row.high < 0]
    verdict = f"lose: {', '.join(lose) or 'none'}; gain: {', '.join(gain) or 'none'}"
    if len(groups) in (len(lose), len(gain)):
        verdict = "all groups lose" if lose else "all groups gain"
    return f"{panel.name}: {line}: {words}; {verdict}."


def _signed(row: Row) -> str:
    width = "" if row.low is None or row.high is None else f" +- {(row.high - row.low) / 2:.3f}"
    return f"{row.ours:+.3f}{width}"
