"""What PrivMVMF's tables claim, held against what we measured."""

from collections.abc import Mapping, Sequence

from cofactor.papers.dpmf_rp_findings import Panel, panels
from cofactor.papers.privmvmf_baselines import ITEM_MEAN, NOTES, RANDOM
from cofactor.papers.privmvmf_numbers import (
    COLD_ITEM,
    DEVIATIONS_4,
    EXISTING,
    FED,
    MEASURES,
    NDCG,
    PRECISION,
    PRIV,
    SCENARIOS,
    TABLE_4,
)
from cofactor.papers.results import Row

OURS = "here, with any exact sum"
"""The line of Table IV that is ours: plain, masked and encrypted sums are the same numbers."""
PAPER = {FED: f"the paper's {FED}", PRIV: f"the paper's {PRIV}"}
ALL_UNRATED = "here, all unrated items count"
"""InclUnc instead of decoys: what the paper leaves for being slow under encryption (section V)."""
DIFFERING = "numbers that differ"
"""The column that shows whether encryption changes anything."""
NO_GENOME = "no tag genome"
"""What the note of a line says where items are known by their genres."""
_NEAR, _NEAR_NDCG = 0.1, 0.01
"""How far a number may be from the paper's and still count as reproduced: a part of it; NDCG, absolutely."""
OWN_DATA = "ml-1m"
"""The set that the paper's numbers are of."""


def findings4(rows: Sequence[Row]) -> list[str]:
    """Say of each scenario what reproduces, and what simple models reach there."""
    found = [*_other_data(rows), *_between_columns()]
    for panel in panels(rows):
        if OURS in panel.lines:
            found += [_against_paper(panel), _against_simple(panel)]
        if panel.name.endswith(EXISTING):
            found += [*_weak_target(panel), *_other_weights(panel)]
        if panel.name.endswith(COLD_ITEM):
            found += _other_features(panel)
        if any(row.column == DIFFERING for row in panel.rows):
            found.append(_lossless(panel))
    return found


def _other_data(rows: Sequence[Row]) -> list[str]:
    names = dict.fromkeys(panel.name.split(":")[0] for panel in panels(rows))
    return [
        f"{name}: the paper's numbers are for MovieLens 1M, and those films that the tag genome describes."
        for name in names
        if name != OWN_DATA
    ]


def _between_columns() -> list[str]:
    """Say what the difference of the paper's own two columns can and cannot be."""
    fed, priv = (TABLE_4[EXISTING][which][PRECISION] for which in (FED, PRIV))
    spread = max(DEVIATIONS_4[EXISTING][which][PRECISION] for which in (FED, PRIV))
    return [
        f"The paper says that {FED} and {PRIV} differ trivially, so that encryption is lossless. What is "
        "encrypted are whole numbers, and their sum comes out to the last bit: with the same seed both are "
        f"one training, shown once here. Its own precision of known users differs by {priv - fed:.4f} "
        f"({fed:g} and {priv:g}), {(priv - fed) / spread:.1f} times the larger standard deviation that it "
        "prints: encryption cannot be why."
    ]


def _against_paper(panel: Panel) -> str:
    scenario = next(name for name in SCENARIOS if panel.name.endswith(name))
    theirs = TABLE_4[scenario][PRIV]
    near = "reproduced" if panel.name.startswith(OWN_DATA) else "near the paper's"
    lower, higher = f"not {near}, lower", f"not {near}, higher"
    groups: dict[str, list[str]] = {near: [], lower: [], higher: []}
    for column, paper in theirs.items():
        ours = panel.value(OURS, column)
        if ours is not None:
            verdict = near if _near(column, ours, paper) else higher if ours > paper else lower
            groups[verdict].append(f"{column} ({ours:.3f}, paper {paper:.3f})")
    parts = [f"{verdict}: {', '.join(words)}" for verdict, words in groups.items() if words]
    return f"{panel.name}: {'; '.join(parts)}."


def _near(column: str, ours: float, paper: float) -> bool:
    return abs(ours - paper) <= (_NEAR_NDCG if column == NDCG else _NEAR * paper)


def _against_simple(panel: Panel) -> str:
    """Say which measure beats every simple model, and which of them is ahead in the others."""
    above, below = [], []
    for column in MEASURES:
        ours = panel.value(OURS, column) or 0.0
        ahead = {name: value for name, value in _simple(panel, column).items() if value >= ours}
        if ahead:
            words = ", ".join(f"{name} ({value:.3f})" for name, value in ahead.items())
            below.append(f"{column} {ours:.3f} is not above {words}")
        else:
            above.append(column)
    parts = [f"{', '.join(above)} {'is' if len(above) == 1 else 'are'} above all of them"] if above else []
    return f"{panel.name}, beside simple models: {'; '.join([*parts, *below])}."


def _simple(panel: Panel, column: str) -> Mapping[str, float]:
    found = {line: panel.value(line, column) for line in panel.lines if line in NOTES}
    return {line: value for line, value in found.items() if value is not None}


def _weak_target(panel: Panel) -> list[str]:
    ours, simple = panel.value(OURS, NDCG), _simple(panel, NDCG)
    if ours is None or RANDOM not in simple or ITEM_MEAN not in simple:
        return []
    return [
        f"{panel.name}: {NDCG} ranks a user's own test items only. Chance has {simple[RANDOM]:.3f} there, "
        f"and one number an item, the same for all users, {simple[ITEM_MEAN]:.3f}: {ours:.3f} says little "
        "about anybody's own taste."
    ]


def _other_weights(panel: Panel) -> list[str]:
    """Say what comes out if decoys do not stand for what was not rated."""
    values = {column: panel.value(ALL_UNRATED, column) for column in MEASURES}
    words = [f"{column} {value:.3f}" for column, value in values.items() if value is not None]
    if not words:
        return []
    return [
        f"{panel.name}: if all unrated items count a little, and not only as many decoys as ratings, there "
        f"are {', '.join(words)}. The paper leaves that for its cost; dense sums hold all items anyway."
    ]


def _other_features(panel: Panel) -> list[str]:
    if not any(NO_GENOME in row.note for row in panel.rows):
        return []
    return [
        f"{panel.name}: the paper knows films by 20 components of the tag genome, and here they are known by "
        "genres. Name its file with --genome."
    ]


def _lossless(panel: Panel) -> str:
    counts = {line: own[DIFFERING].ours for line, own in panel.lines.items() if DIFFERING in own}
    same = [line for line, count in counts.items() if count == 0]
    other = [f"{line} ({count:g} numbers)" for line, count in counts.items() if count]
    parts = [f"bit for bit the vectors of plain sums: {'; '.join(same)}"] if same else []
    parts += [f"not the same: {', '.join(other)}"] if other else []
    return f"{panel.name}: {'; '.join(parts)}."
