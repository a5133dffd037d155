"""What PrivMVMF claims of the server's attack (section VI.B), held against what we measured."""

from collections.abc import Mapping, Sequence

from cofactor.papers.dpmf_rp_findings import Panel, panels
from cofactor.papers.privmvmf_attack_tables import CONVERGED, NAMES, SIGN, started
from cofactor.papers.privmvmf_attack_ways import (
    CHOSEN,
    ONE_ROUND,
    QUESTION,
    RATED,
    SECONDS,
    SIGNED,
    SOLVED,
    ZEROS,
    observed,
)
from cofactor.papers.privmvmf_findings import OWN_DATA
from cofactor.papers.privmvmf_numbers import (
    ATTACKED,
    ATTRIBUTE,
    RATING,
    SEMI_INCL,
    SEMI_OBS,
    SGD_INCL,
    SGD_OBS,
    TABLE_3,
    TABLE_6,
)
from cofactor.papers.results import Row

_NEAR = 0.05
"""How far an accuracy may be from the paper's and still count as reproduced."""
_ABOVE = 0.8
"""What the paper says that accuracies exceed in all scenarios."""
_SAME = 0.01
"""Differences of accuracies that count as none."""
_HARDER = {
    "counting unrated items": ((SEMI_OBS, SEMI_INCL), (SGD_OBS, SGD_INCL)),
    "moving vectors by steps": ((SEMI_OBS, SGD_OBS), (SEMI_INCL, SGD_INCL)),
}
"""What the paper says makes the attack worse: pairs of scenarios, the easier first."""


def scenario_of(panel: Panel) -> str:
    """Return the scenario that a panel shows."""
    return next(name for name in ATTACKED if name in panel.name)


def other_data(rows: Sequence[Row]) -> list[str]:
    """Say where the paper's numbers are of other data."""
    names = dict.fromkeys(panel.name.split(":")[0] for panel in panels(rows))
    return [f"{name}: the paper's numbers are for MovieLens 1M." for name in names if name != OWN_DATA]


def findings3(rows: Sequence[Row]) -> list[str]:
    """Say of each scenario what reproduces, what it is worth, and what one round tells."""
    found = other_data(rows)
    for panel in panels(rows):
        found += [*_against_paper(panel), *_worth(panel), *_from_one_round(panel)]
    for name in dict.fromkeys(panel.name.split(":")[0] for panel in panels(rows)):
        own = {scenario_of(one): one for one in panels(rows) if one.name.startswith(f"{name}:")}
        if set(own) == set(ATTACKED):
            found += [_above_80(name, own), *_harder(name, own)]
    return found


def _against_paper(panel: Panel) -> list[str]:
    parts = []
    for column, paper in TABLE_3[scenario_of(panel)].items():
        ours = panel.value(SOLVED, column)
        if ours is not None:
            parts.append(f"{column} {_verdict(ours, paper)} ({ours:.3f}, paper {paper:g})")
    rated, signed = panel.value(SOLVED, RATED), panel.value(SIGNED, RATED)
    if not parts or rated is None or signed is None:
        return []
    return [
        f"{panel.name}, the paper's way: {', '.join(parts)}. Of rated items {rated:.3f}, and with signs put "
        f"right {signed:.3f}."
    ]


def _verdict(ours: float, paper: float) -> str:
    if abs(ours - paper) <= _NEAR:
        return "reproduced"
    return "not reproduced, higher" if ours > paper else "not reproduced, lower"


def _worth(panel: Panel) -> list[str]:
    """Say where guessing that nothing was rated beats the paper's own number."""
    zeros, paper = panel.value(ZEROS, RATING), TABLE_3[scenario_of(panel)][RATING]
    if observed(scenario_of(panel)) or zeros is None or zeros <= paper:
        return []
    return [
        f"{panel.name}: equation 43 counts all items, and zeros everywhere are right about {zeros:.3f} of "
        f"them: the paper's {paper:g} is below a guess that tells nothing. Rated items must be counted apart."
    ]


def _from_one_round(panel: Panel) -> list[str]:
    values = {column: panel.value(ONE_ROUND, column) for column in (RATED, ATTRIBUTE, QUESTION, SECONDS)}
    known = {column: value for column, value in values.items() if value is not None}
    if RATED not in known or SECONDS not in known:
        return []
    words = [f"{name}s {known[name]:.4f}" for name in (ATTRIBUTE, QUESTION) if name in known]
    return [
        f"{panel.name}: an upload is rank one and shows the user's vector but for its length, which possible "
        f"ratings tell. From one round: rated items {', '.join([f'{known[RATED]:.4f}', *words])}, in "
        f"{known[SECONDS]:.2g} s."
    ]


def _above_80(name: str, own: Mapping[str, Panel]) -> str:
    def count(line: str, column: str) -> int:
        return sum((panel.value(line, column) or 0.0) > _ABOVE for panel in own.values())

    return (
        f"{name}: the paper says that accuracy exceeds 80% in all scenarios. Its way: in "
        f"{count(SOLVED, RATING)} of {len(own)}; of rated items, signs put right, in {count(SIGNED, RATED)}. "
        f"From one round, of rated items, in {count(ONE_ROUND, RATED)}."
    )


def _harder(name: str, own: Mapping[str, Panel]) -> list[str]:
    """Say whether what the paper says is harder is: for its solvers, and for what uploads tell."""
    found = []
    for what, pairs in _HARDER.items():
        words = []
        for line, way in ((SIGNED, "its way, signs put right"), (ONE_ROUND, "from one round")):
            falls = [
                (own[easy].value(line, RATED) or 0.0) - (own[hard].value(line, RATED) or 0.0)
                for easy, hard in pairs
            ]
            changes = ", ".join(f"{round(-fall, 3) + 0.0:+.3f}" for fall in falls)
            verdict = (
                "found" if min(falls) > _SAME else "not found" if max(falls) <= _SAME else "found in part"
            )
            words.append(f"{verdict} {way} ({changes})")
        found.append(
            f"{name}: the paper says that {what} makes the attack worse. Of rated items: {'; '.join(words)}."
        )
    return found


def findings6(rows: Sequence[Row]) -> list[str]:
    """Say of each scenario which method is best, what the sign costs, and what the paper found."""
    found = other_data(rows)
    for panel in panels(rows):
        lines = [line for line, own in panel.lines.items() if CONVERGED in own]
        if lines:
            found += [_best(panel, lines), *_upside_down(panel, lines), *_same_methods(panel)]
    return found


def _best(panel: Panel, lines: Sequence[str]) -> str:
    scenario = scenario_of(panel)
    theirs = max(TABLE_6[scenario], key=lambda name: TABLE_6[scenario][name][RATING])
    best, rated = (max(lines, key=lambda line: panel.value(line, column) or 0.0) for column in (RATING, SIGN))
    chosen = f"{CHOSEN[scenario].method} from {started(CHOSEN[scenario])}"
    return (
        f"{panel.name}: highest rating accuracy with {best} ({panel.value(best, RATING) or 0:.3f}); of rated "
        f"items, signs put right, with {rated} ({panel.value(rated, SIGN) or 0:.3f}). The paper's best is "
        f"{theirs} ({TABLE_6[scenario][theirs][RATING]:g}). Table III takes {chosen} "
        f"({panel.value(chosen, RATING) or 0:.3f})."
    )


def _upside_down(panel: Panel, lines: Sequence[str]) -> list[str]:
    gains = {line: (panel.value(line, SIGN) or 0.0) - (panel.value(line, RATED) or 0.0) for line in lines}
    most = max(gains, key=lambda line: gains[line])
    if gains[most] < _NEAR:
        return []
    return [
        f"{panel.name}: solutions are often upside down. With {most}, {panel.value(most, RATED) or 0:.3f} of "
        f"rated items are right as found, and {panel.value(most, SIGN) or 0:.3f} with signs put right."
    ]


def _same_methods(panel: Panel) -> list[str]:
    """Say how far the paper's methods are from ours, from ones, where it may have begun."""
    parts = []
    for name, numbers in TABLE_6[scenario_of(panel)].items():
        for method in NAMES[name]:
            ours = panel.value(f"{method} from ones", RATING)
            if ours is not None:
                parts.append(f"{name} {numbers[RATING]:g}, {method} {ours:.2f}")
    if not parts:
        return []
    return [
        f"{panel.name}: the paper does not say where solvers begin. From ones, rating accuracy, the paper's "
        f"first: {'; '.join(parts)}."
    ]
