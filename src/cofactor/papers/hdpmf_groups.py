"""Who pays for privacy: errors of users, and of items, by how much they ask for. Not in the paper."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cofactor.evaluate.bootstrap import Estimate, estimate, resampled_totals
from cofactor.papers.cells import Effort, summary
from cofactor.papers.hdpmf_lines import CO_RATING, OWN_MEAN, Line, honest, own_mean, published, settings
from cofactor.papers.hdpmf_method import HDPMF_FRESH, PDPMF_FRESH, squared
from cofactor.papers.hdpmf_numbers import DIMENSIONS
from cofactor.papers.hdpmf_splits import Repeat
from cofactor.papers.hdpmf_tables import repeats_of
from cofactor.papers.material import Material
from cofactor.papers.results import Row
from cofactor.privacy.weights import groups_of
from cofactor.progress import Listener, Progress

USERS, ITEMS = "users", "items by how sensitive they are"
ALL = "all"
LESS = "MSE less that of the user's own mean"

Found = dict[tuple[str, str, str], list[Estimate]]
"""By panel, line and group, one estimate for each repeat."""


def groups(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Measure errors by group, and pair them with those of the user's own mean on the same ratings."""
    repeats = repeats_of(material, effort)
    lines = _lines(repeats[0], effort, progress)
    found: Found = {}
    notes = {line.name: line.note for line in lines}
    for at, repeat in enumerate(repeats):
        mean = own_mean().fit(repeat).model
        assert mean is not None
        base = squared(mean, repeat.test)
        for number, line in enumerate(lines, 1):
            model = line.fit(repeat).model
            if model is not None:
                _note(found, material.name, line.name, repeat, squared(model, repeat.test), base)
            step = at * len(lines) + number
            progress(Progress("trainings", step, len(lines) * len(repeats), f"{material.name}, {line.name}"))
    order = list(dict.fromkeys(panel for panel, _, _ in found))
    return [
        Row(line=line, panel=panel, column=group, note=notes[line], at_home=False, **summary(estimates))
        for (panel, line, group), estimates in sorted(found.items(), key=lambda each: order.index(each[0][0]))
    ]


def _lines(repeat: Repeat, effort: Effort, progress: Listener) -> list[Line]:
    """Return everything that is compared; of the paper's methods, the reading that fits its table."""
    found = []
    for factors in DIMENSIONS:
        variants = (HDPMF_FRESH, PDPMF_FRESH)
        chosen = settings(variants, factors, repeat, progress, quick=effort.quick)
        for variant in variants:
            line = published(variant, factors, chosen[variant])
            found.append(Line(name=f"{variant.line}, K = {factors}", fit=line.fit, note=line.note))
    return [*found, honest(), honest(CO_RATING), own_mean()]


def _note(
    found: Found,
    data: str,
    line: str,
    repeat: Repeat,
    errors: NDArray[np.float64],
    base: NDArray[np.float64],
) -> None:
    test = repeat.test
    budget = repeat.budget()
    sides = {
        USERS: (budget.users, repeat.user_weights[test.users]),
        ITEMS: (budget.items, repeat.item_weights[test.items]),
    }
    for side, (weights, asked) in sides.items():
        member = groups_of(weights.groups, asked)
        names = [group.name.removesuffix(" sensitive") for group in weights.groups]
        measured = {"MSE": errors} if line == OWN_MEAN else {"MSE": errors, LESS: errors - base}
        for what, values in measured.items():
            for group, one in by_group(values, member, names, test.users, seed=repeat.seed).items():
                found.setdefault((f"{data}, {side}: {what}", line, group), []).append(one)


def by_group(
    values: NDArray[np.float64],
    member: NDArray[np.int64],
    names: Sequence[str],
    users: NDArray[np.integer],
    *,
    seed: int,
) -> dict[str, Estimate]:
    """Return the mean over ratings of each group that has any, and of all; users are resampled."""
    masks = {name: member == place for place, name in enumerate(names)} | {ALL: np.ones(len(values), bool)}
    there = {name: mask for name, mask in masks.items() if mask.any()}
    columns = [
        np.bincount(users, weights, minlength=int(users.max()) + 1)
        for mask in there.values()
        for weights in (values * mask, mask.astype(np.float64))
    ]
    totals = resampled_totals(np.column_stack(columns), seed=seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        return {name: estimate(totals[:, 2 * at] / totals[:, 2 * at + 1]) for at, name in enumerate(there)}
