"""Table 5 of dpmf-rp: errors by how many ratings users have, and how unequal they are."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cofactor.data.ratings import Ratings
from cofactor.evaluate.bootstrap import Estimate, estimate, resampled_totals
from cofactor.evaluate.rating_errors import ACTIVITY_BOUNDS, by_user
from cofactor.factors.baselines import UserItemBias
from cofactor.factors.model import Factors
from cofactor.papers import dpmf_rp_measures as measures
from cofactor.papers.cells import Effort
from cofactor.papers.dpmf_rp_cases import BIASES, OWN_MEAN, Case, measured_cases, own_mean
from cofactor.papers.dpmf_rp_findings import Panel, against_paper, claimed, other_data, panels
from cofactor.papers.dpmf_rp_measures import Measured
from cofactor.papers.dpmf_rp_method import central, core, fresh, panel_of, private_case
from cofactor.papers.dpmf_rp_numbers import CENTRAL, DPMF_RP, GROUPS, TABLE_5, VARIANCE
from cofactor.papers.material import Material
from cofactor.papers.results import Row
from cofactor.progress import Listener

MEAN = "mean of groups"
RESCALED = "rescaled"
_PRIVATE = f"{DPMF_RP}, label 1"
_LEAST = 5
"""How many ratings users and businesses have at least."""


def table5(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Measure CentralMF and DPMF-RP by groups of users; as they score, and rescaled at home."""
    shown = core(material, _LEAST)
    models = [
        central(shown, TABLE_5[CENTRAL], by_group),
        private_case(_PRIVATE, fresh(shown), shown, 1.0, measure=by_group, paper=TABLE_5[DPMF_RP]),
    ]
    cases = [
        *models,
        *(replace(case, line=f"{case.line}, {RESCALED}", measure=by_group_rescaled) for case in models),
        Case(line=OWN_MEAN, fit=own_mean, measure=by_group, note="costs no privacy"),
        Case(
            line=BIASES,
            fit=lambda train, _: UserItemBias().fit(train),
            measure=by_group,
            note="not private",
        ),
    ]
    return measured_cases(shown, panel_of(shown), cases, effort, progress)


def by_group(model: Factors, train: Ratings, test: Ratings, seed: int) -> Measured:
    """Return the mean squared error of each group that has test ratings (equation 58), and their variance."""
    squared = by_user(model.predict_rows(test.users, test.items), test)[0]
    group = np.digitize(train.by_user.sizes + test.by_user.sizes, ACTIVITY_BOUNDS)
    members = (group[:, None] == np.arange(len(GROUPS))).astype(np.float64)
    counts = test.by_user.sizes[:, None] * members
    totals = resampled_totals(np.column_stack([squared[:, None] * members, counts]), seed=seed)
    with np.errstate(invalid="ignore"):
        each = totals[:, : len(GROUPS)] / totals[:, len(GROUPS) :]
    there = [place for place in range(len(GROUPS)) if counts[:, place].any()]
    found: dict[str, Estimate] = {GROUPS[place]: estimate(each[:, place]) for place in there}
    # Equation 59 is the variance with each group counted once.
    return found | {
        VARIANCE: estimate(np.nanvar(each[:, there], axis=1)),
        MEAN: estimate(np.nanmean(each[:, there], axis=1)),
    }


def by_group_rescaled(model: Factors, train: Ratings, test: Ratings, seed: int) -> Measured:
    """Return the same where every user rescales scores at home."""
    return by_group(measures.rescaled(model, train), train, test, seed)


def findings5(rows: Sequence[Row]) -> list[str]:
    """Hold numbers and words of appendix I against ours, for scores as they are and rescaled."""
    found = [*other_data(rows), *against_paper(rows)]
    for panel in panels(rows):
        for ending in ("", f", {RESCALED}"):
            found += _claims(panel, f"{CENTRAL}{ending}", f"{_PRIVATE}{ending}")
    return found


def _claims(panel: Panel, one: str, private: str) -> list[str]:
    def risen(column: str) -> float | None:
        before, after = panel.value(one, column), panel.value(private, column)
        return after / before - 1 if before and after is not None else None

    rises = {group: rise for group in GROUPS if (rise := risen(group)) is not None}
    mean, variance = risen(MEAN), risen(VARIANCE)
    told = ", ".join(f"{rise:+.0%} {group}" for group, rise in rises.items())
    most = max(rises.values(), default=0.0)
    return [
        *claimed(
            panel,
            f"errors rise by 7% from {one} to {private}",
            None if mean is None else 0 < mean < 0.15,
            f"{mean or 0:+.0%} in the mean of groups",
        ),
        *claimed(
            panel,
            "they rise most, by 22%, for users with fewer than 25 ratings",
            0 < most == rises.get(GROUPS[0]) if rises else None,
            told,
        ),
        *claimed(
            panel,
            "groups become less equal: their variance rises from 0.23 to 0.31",
            None if variance is None else variance > 0,
            f"{panel.value(one, VARIANCE) or 0:.2f} to {panel.value(private, VARIANCE) or 0:.2f}",
        ),
    ]
