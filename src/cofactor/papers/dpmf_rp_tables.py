"""Tables 2 and 7 of dpmf-rp: its method, what it compares with, and what each of its parts does."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cofactor.papers import dpmf_rp_measures as measures
from cofactor.papers.cells import Effort
from cofactor.papers.dpmf_rp_cases import Case, Loss, measured_cases, trivial
from cofactor.papers.dpmf_rp_findings import (
    Panel,
    against_paper,
    against_trivial,
    claimed,
    other_data,
    panels,
)
from cofactor.papers.dpmf_rp_measures import F1, MAP, PRECISION, RECALL, RMSE
from cofactor.papers.dpmf_rp_method import (
    central,
    core,
    facts_of,
    fresh,
    labelled,
    noiseless_case,
    panel_of,
    private_case,
    published,
)
from cofactor.papers.dpmf_rp_numbers import (
    CASES,
    CENTRAL,
    DPMF_RP,
    STANDS_FOR,
    TABLE_2,
    TABLE_7,
)
from cofactor.papers.material import Material
from cofactor.papers.results import Row
from cofactor.progress import Listener
from cofactor.recipes.sums import PlainSum

ALGORITHM_2, FRESH = f"{DPMF_RP}, Algorithm 2", f"{DPMF_RP}, fresh sketches"
LABEL, LARGE_LABEL = 1.0, 100.0
"""What the paper calls epsilon in both tables, and what it would have to be for its ranking to show."""
_LEAST_2, _LEAST_7 = 5, 10
"""Of Yelp: how many ratings users and businesses have at least. Table 7 trains without projection, too."""
_SIMILAR = 0.15
"""The part by which numbers may differ that the paper calls similar."""


def table2(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Measure CentralMF and DPMF-RP, with one sketch and with fresh ones."""
    shown = core(material, _LEAST_2)
    paper = TABLE_2.get(STANDS_FOR.get(material.name, ""), {})
    own = paper.get(DPMF_RP, {})
    loss = labelled(published(shown), facts_of(shown.ratings), LABEL)[1]
    cases = [
        central(shown, paper.get(CENTRAL, {}), measures.measured_twice),
        private_case(f"{ALGORITHM_2}, label 1", published(shown), shown, LABEL, paper=own),
        private_case(f"{FRESH}, label 1", fresh(shown), shown, LABEL, paper=own),
        private_case(f"{FRESH}, label 100", fresh(shown), shown, LARGE_LABEL),
        noiseless_case(f"{FRESH}, no noise", fresh(shown), paper=own),
        *trivial(loss),
    ]
    found = measured_cases(shown, panel_of(shown), cases, effort, progress)
    return [*found, *_divided(shown, paper.get(CENTRAL, {}), effort, progress)]


def _divided(shown: Material, paper: Mapping[str, float], effort: Effort, progress: Listener) -> list[Row]:
    """Show by what average precision must be divided to come out as the paper's."""
    case = central(shown, {}, measures.average_precisions)
    found = measured_cases(shown, f"{shown.name}, mAP", [case], effort, progress)
    return [replace(row, paper=paper.get(MAP)) for row in found]


def table7(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Leave out coins, secure sum and projection in turn (Table 6); sketches are fresh."""
    shown = core(material, _LEAST_7)
    cases, loss = _ablation(shown, TABLE_7.get(STANDS_FOR.get(material.name, ""), {}))
    cases = [*cases, *trivial(loss)]
    return measured_cases(shown, panel_of(shown), cases, effort, progress)


def _ablation(shown: Material, paper: dict[str, dict[str, float]]) -> tuple[list[Case], Loss]:
    recipe = fresh(shown)
    whole = TABLE_2.get(STANDS_FOR.get(shown.name, ""), {}).get(DPMF_RP, {})
    own = [paper.get(case, {}) for case in CASES]
    return [
        private_case(f"{DPMF_RP}, label 1", recipe, shown, LABEL, paper=whole),
        noiseless_case(CASES[0], replace(recipe, reduction=1, aggregate=PlainSum()), paper=own[0]),
        private_case(
            f"{CASES[1]}, label 1", replace(recipe, aggregate=PlainSum()), shown, LABEL, paper=own[1]
        ),
        private_case(f"{CASES[2]}, label 1", replace(recipe, reduction=1), shown, LABEL, paper=own[2]),
        noiseless_case(CASES[3], recipe, paper=own[3]),
    ], labelled(recipe, facts_of(shown.ratings), LABEL)[1]


def findings2(rows: Sequence[Row]) -> list[str]:
    """Hold numbers and words of section 6.2.1 against ours."""
    private, claims = f"{FRESH}, label 1", []
    for panel in panels(rows):
        claims += claimed(
            panel,
            "RMSE and mAP of DPMF-RP are similar to those of CentralMF",
            _alike(panel, private, CENTRAL, (RMSE, MAP)),
            _shown(panel, (RMSE, MAP), (private, CENTRAL)),
        )
        claims += claimed(
            panel,
            "its recall is higher, and its precision lower",
            _traded(panel, private, CENTRAL),
            _shown(panel, (RECALL, PRECISION), (private, CENTRAL)),
        )
    return [*other_data(rows), *against_paper(rows), *claims, *against_trivial(rows)]


def findings7(rows: Sequence[Row]) -> list[str]:
    """Hold numbers and words of appendix J against ours."""
    local, others = f"{CASES[1]}, label 1", (CASES[0], f"{CASES[2]}, label 1", CASES[3])
    whole, claims = f"{DPMF_RP}, label 1", []
    for panel in panels(rows):
        claims += claimed(
            panel,
            "without a secure sum results are much worse than in all other cases",
            _worse(panel, local, (whole, *others)),
            _shown(panel, (F1,), (local, whole, *others)),
        )
        claims += claimed(
            panel,
            "F1 and mAP of the other cases are similar to those of DPMF-RP",
            _all_alike(panel, whole, others),
            _shown(panel, (F1, MAP), (whole, *others)),
        )
    return [*other_data(rows), *against_paper(rows), *claims, *against_trivial(rows)]


def _alike(panel: Panel, line: str, other: str, columns: Sequence[str]) -> bool | None:
    pairs = [(panel.value(line, column), panel.value(other, column)) for column in columns]
    known = [(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]
    return None if len(known) < len(pairs) else all(abs(a - b) <= _SIMILAR * b for a, b in known)


def _all_alike(panel: Panel, line: str, others: Sequence[str]) -> bool | None:
    found = [_alike(panel, other, line, (F1, MAP)) for other in others]
    return None if None in found else all(found)


def _traded(panel: Panel, line: str, other: str) -> bool | None:
    recall, theirs = panel.value(line, RECALL), panel.value(other, RECALL)
    precision, others = panel.value(line, PRECISION), panel.value(other, PRECISION)
    if recall is None or theirs is None or precision is None or others is None:
        return None
    return recall > theirs and precision < others


def _worse(panel: Panel, line: str, others: Sequence[str]) -> bool | None:
    """Say whether F1 is lower than that of all others, intervals included."""
    rows = [panel.lines.get(each, {}).get(F1) for each in (line, *others)]
    ends = [(row.low, row.high) for row in rows if row is not None and row.ours is not None]
    if len(ends) < len(rows):
        return None
    return all((ends[0][1] or 0.0) < (low or 0.0) for low, _ in ends[1:])


def _shown(panel: Panel, columns: Sequence[str], lines: Sequence[str]) -> str:
    return "; ".join(
        f"{column}: " + ", ".join(f"{line} {panel.value(line, column) or 0:.3f}" for line in lines)
        for column in columns
    )
