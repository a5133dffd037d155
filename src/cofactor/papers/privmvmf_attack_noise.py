"""Figures 1 to 3 of PrivMVMF: what Laplace noise on uploads leaves of the server's attack."""

from collections.abc import Sequence
from dataclasses import dataclass

from cofactor.attacks.scoring import Reconstruction
from cofactor.papers.cells import Effort
from cofactor.papers.material import Material
from cofactor.papers.privmvmf_attack_material import Attacked, attacked
from cofactor.papers.privmvmf_attack_tables import Lines, add, rows_of
from cofactor.papers.privmvmf_attack_ways import (
    ONE_ROUND,
    RANDOM,
    RATED,
    USUAL,
    ZEROS,
    accuracies,
    observed,
    one_round,
    solved,
    trivial,
    under_noise,
)
from cofactor.papers.privmvmf_numbers import ATTACKED, ATTRIBUTE, RATING, SEMI_INCL, SGD_INCL
from cofactor.papers.privmvmf_sides import Sided
from cofactor.papers.results import Row
from cofactor.progress import Listener, Progress

SCALES, FEW_SCALES = (0.0, 0.1, 0.5, 1.0, 2.0), (0.0, 0.5, 2.0)
"""Of the noise: b in Figures 1 and 2."""
LARGE, FEW_LARGE = (1.0, 10.0, 100.0, 1e3, 1e4), (1.0, 100.0, 1e4)
"""The same in Figure 3."""
RULE, RULE_SIGNED = "here, the paper's rule", "here, the paper's rule, sign put right"
ITEMS = 10
"""Items that are fixed in turn where vectors move by steps."""


@dataclass(frozen=True, kw_only=True)
class Users:
    """How many users are attacked: from one round, where only ratings are sent and otherwise; by solvers."""

    observed: int
    all_items: int
    solvers: int

    def at(self, scenario: str) -> int:
        """Return how many are attacked from one round in a scenario."""
        return self.observed if observed(scenario) else self.all_items


MANY, FEW = Users(observed=100, all_items=40, solvers=15), Users(observed=20, all_items=8, solvers=4)


def figure1(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Attack ratings under noise."""
    return _figure(material, effort, progress, ATTACKED, effort.shown(SCALES, FEW_SCALES), (RATING, RATED))


def figure2(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Attack attributes under noise."""
    return _figure(material, effort, progress, ATTACKED, effort.shown(SCALES, FEW_SCALES), (ATTRIBUTE,))


def figure3(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Attack both under much noise, where all items are sent."""
    scenarios, columns = (SEMI_INCL, SGD_INCL), (RATING, RATED, ATTRIBUTE)
    return _figure(material, effort, progress, scenarios, effort.shown(LARGE, FEW_LARGE), columns)


def _figure(
    material: Material,
    effort: Effort,
    progress: Listener,
    scenarios: Sequence[str],
    scales: Sequence[float],
    measures: Sequence[str],
) -> list[Row]:
    assert isinstance(material, Sided)
    rows, users = [], FEW if effort.quick else MANY
    steps, done = len(scenarios) * effort.seeds * len(scales), 0
    for scenario in scenarios:
        shown = [one for one in measures if one != RATED or not observed(scenario)]  # the same as all there
        found: dict[str, Lines] = {measure: {} for measure in shown}
        for seed in range(1, effort.seeds + 1):
            own = attacked(material, scenario, users=users.at(scenario), seed=seed)
            for scale in scales:
                _measure(own.noisy(scale, seed), users.solvers, scale, seed, found)
                done += 1
                progress(Progress("noises", done, steps, f"{material.name}, {scenario}, b = {scale:g}"))
        notes = _notes(scenario, users)
        for measure, lines in found.items():
            rows += rows_of(panel_of(material.name, scenario, measure), lines, {}, notes)
    return rows


def _measure(own: Attacked, users: int, scale: float, seed: int, found: dict[str, Lines]) -> None:
    """Attack one noise, and add what is right to lines by measure."""
    scenario, best = own.scenario, one_round(own.knowing_habits())
    tried = solved(own.only(slice(users)), under_noise(scenario, items=ITEMS), seed)
    lines: dict[str, Reconstruction] = {ONE_ROUND: best, RULE: tried.as_found, RULE_SIGNED: tried.signed}
    numbers = {line: accuracies(one, scenario) for line, one in lines.items()} | trivial(best, scenario)
    for measure, own_lines in found.items():
        shown = {line: values[measure] for line, values in numbers.items() if measure in values}
        add(own_lines, {line: {column_of(scale): value} for line, value in shown.items()})


def _notes(scenario: str, users: Users) -> dict[str, str]:
    fixed = f"{ITEMS} items" if scenario.startswith("SGD") else "every factor"
    return {
        ONE_ROUND: f"{users.at(scenario)} users; how common ratings and answers are among others is known",
        RULE: f"solved with {fixed} fixed in turn, averaged; {users.solvers} users",
        ZEROS: "right about all that is 0",
        USUAL: "the rating that most have given",
        RANDOM: "the paper's baseline",
    }


def panel_of(name: str, scenario: str, measure: str) -> str:
    """Return what the part of a figure is called that shows a scenario by one measure."""
    what = {RATING: "rating", RATED: "rating, rated items only", ATTRIBUTE: "attribute"}[measure]
    return f"{name}: {scenario}: {what}"


def column_of(scale: float) -> str:
    """Return what a column is called."""
    return f"b = {scale:g}"
