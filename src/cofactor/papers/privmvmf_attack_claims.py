"""What PrivMVMF claims of the server's attack under noise, and we of defences, held against measurements."""

from collections.abc import Iterable, Mapping, Sequence

from cofactor.papers.dpmf_rp_findings import Panel, panels
from cofactor.papers.privmvmf_attack_defences import BETTER, BY_SOLVER, DEFENCES, PLAIN, TOLD
from cofactor.papers.privmvmf_attack_findings import other_data, scenario_of
from cofactor.papers.privmvmf_attack_noise import RULE, RULE_SIGNED, column_of, panel_of
from cofactor.papers.privmvmf_attack_ways import ONE_ROUND, RANDOM, RATED, USUAL, ZEROS, observed
from cofactor.papers.privmvmf_numbers import ATTRIBUTE, RATING, SEMI_OBS
from cofactor.papers.results import Row

_ABOVE, _FAR_ABOVE = 0.3, 0.5
"""By how much the paper says that accuracy exceeds the baseline."""
_NEAR = 0.1
"""How near to it counts as approaching it."""
_SMALL = 0.5
"""The noise up to which the paper calls the attack effective."""


def findings1(rows: Sequence[Row]) -> list[str]:
    """Hold ratings against the paper's claims."""
    found = other_data(rows)
    for panel in _of(rows, RATING):
        found += _effective(panel)
        found += _approaches(panel) if observed(scenario_of(panel)) else _stable(panel)
    return [*found, *_resilient(rows)]


def findings2(rows: Sequence[Row]) -> list[str]:
    """Hold attributes against the paper's claims."""
    found = other_data(rows)
    for panel in _of(rows, ATTRIBUTE):
        found += _effective(panel)
        found += _below(panel) if scenario_of(panel) == SEMI_OBS else []
        found += [] if observed(scenario_of(panel)) else _stable(panel)
    return found


def findings3(rows: Sequence[Row]) -> list[str]:
    """Hold what is left under much noise against the paper's claims."""
    found = other_data(rows)
    for panel in [*_of(rows, RATING), *_of(rows, ATTRIBUTE)]:
        found += _stable(panel)
    return [*found, *_resilient(rows)]


def _of(rows: Sequence[Row], measure: str) -> list[Panel]:
    return [
        one for one in panels(rows) if one.name == panel_of(one.name.split(":")[0], scenario_of(one), measure)
    ]


def _effective(panel: Panel) -> list[str]:
    """Say whether accuracy is 30% above the baseline under small noise."""
    parts = []
    for line in (RULE, RULE_SIGNED, ONE_ROUND):
        gains = [gain for column, gain in _gains(panel, line).items() if _scale(column) <= _SMALL]
        if gains:
            verdict = "found" if min(gains) > _ABOVE else "not found"
            parts.append(f"{verdict}, {_short(line)} ({min(gains):+.2f} at least)")
    if not parts:
        return []
    return [
        f"{panel.name}: the paper says that accuracy is more than 30% above random for b up to 0.5: "
        f"{'; '.join(parts)}."
    ]


def _approaches(panel: Panel) -> list[str]:
    """Say whether accuracy is near the baseline under the largest noise."""
    values = _values(panel, RULE)
    if not values:
        return []
    last = max(values, key=_scale)
    random, usual, best = (_values(panel, line).get(last, 0.0) for line in (RANDOM, USUAL, ONE_ROUND))
    found = "Found" if abs(values[last] - random) <= _NEAR else "Not found"
    return [
        f"{panel.name}: the paper says that accuracy approaches random at b = 2. {found}, its way ({last}: "
        f"{values[last]:.3f}, random {random:.3f}); from one round it is {best:.3f}, and the commonest has "
        f"{usual:.3f}."
    ]


def _below(panel: Panel) -> list[str]:
    """Say whether accuracy of attributes falls below the baseline under noise above 1."""
    large = {column: gain for column, gain in _gains(panel, RULE).items() if _scale(column) > 1}
    if not large:
        return []
    words = ", ".join(f"{column}: {gain:+.3f}" for column, gain in large.items())
    found = "Found" if max(large.values()) < 0 else "Not found"
    return [
        f"{panel.name}: the paper says that accuracy is below random when b exceeds 1. {found} ({words} "
        "beside random)."
    ]


def _stable(panel: Panel) -> list[str]:
    """Say whether accuracy stays far above the baseline, and what guessing zeros has."""
    values, gains = _values(panel, RULE), list(_gains(panel, RULE).values())
    zeros = list(_values(panel, ZEROS).values())
    if not values or not zeros:
        return []
    found = "Found" if min(gains) > _FAR_ABOVE else "Not found"
    above = [column for column, value in values.items() if value > zeros[0]]
    return [
        f"{panel.name}: the paper says that accuracy is more than 50% above random under all noise. {found}, "
        f"its way ({min(gains):+.2f} to {max(gains):+.2f}). Zeros everywhere, which tell nothing, have "
        f"{zeros[0]:.3f}; its way has more at {', '.join(above) or 'no b'}."
    ]


def _resilient(rows: Sequence[Row]) -> list[str]:
    """Say what is left of rated items where the paper calls the attack resilient."""
    found = []
    for panel in _of(rows, RATED):
        parts = []
        for line in (RULE_SIGNED, ONE_ROUND):
            words = [f"{value:.3f} at {column}" for column, value in _values(panel, line).items()]
            parts += [f"{_short(line)}: {', '.join(words)}"] if words else []
        if parts:
            usual = max(_values(panel, USUAL).values(), default=0.0)
            found.append(
                f"{panel.name}: the paper says that counting unrated items makes the attack resilient. What "
                f"is left of rated items: {'; '.join(parts)}. The commonest rating, told which are rated, "
                f"has {usual:.3f}."
            )
    return found


def findings_defences(rows: Sequence[Row]) -> list[str]:
    """Say whether anything behind a defence is clearly better than guesses that need no attack."""
    return [*(sentence for panel in panels(rows) for sentence in _beside_guesses(panel)), *_resisted(rows)]


def _beside_guesses(panel: Panel) -> list[str]:
    told, zeros = panel.value(USUAL, TOLD), panel.value(ZEROS, RATING)
    if told is None or zeros is None:
        return []
    groups: dict[str, list[str]] = {"Clearly better": [], "Not": []}
    for line in _attacks(DEFENCES):
        ours, every, better = (panel.value(line, column) for column in (TOLD, RATING, BETTER))
        if ours is not None and every is not None:
            groups["Clearly better" if better else "Not"].append(f"{line} ({ours:.3f}, {every:.3f})")
    words = " ".join(f"{verdict}: {', '.join(lines) or 'nothing'}." for verdict, lines in groups.items())
    return [
        f"{panel.name}: ratings if told which, and of all items, beside {told:.3f} (the commonest) and "
        f"{zeros:.3f} (zeros). {words}"
    ]


def _resisted(rows: Sequence[Row]) -> list[str]:
    hidden = [name for name in DEFENCES if name != PLAIN]
    found = [
        better
        for panel in panels(rows)
        for line in _attacks(hidden)
        if (better := panel.value(line, BETTER)) is not None
    ]
    if not found:
        return []
    count = sum(one > 0 for one in found)
    return [
        f"Behind {', '.join(hidden)}: {count} of {len(found)} attacks are clearly better than guesses, by "
        "more than three standard errors over users."
    ]


def _attacks(names: Iterable[str]) -> list[str]:
    return [line for name in names for line in (name, f"{name}{BY_SOLVER}")]


def _values(panel: Panel, line: str) -> Mapping[str, float]:
    return {column: row.ours for column, row in panel.lines.get(line, {}).items() if row.ours is not None}


def _gains(panel: Panel, line: str) -> Mapping[str, float]:
    """Return by how much a line is above random."""
    random = _values(panel, RANDOM)
    return {column: value - random.get(column, 0.0) for column, value in _values(panel, line).items()}


def _scale(column: str) -> float:
    return float(column.removeprefix(column_of(0.0).removesuffix("0")))


def _short(line: str) -> str:
    return line.removeprefix("here, ")
