"""Tables III and VI of PrivMVMF: how much of single users a server reconstructs, and by which method."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cofactor.attacks.solvers import METHODS, STARTS, Solver
from cofactor.papers.cells import Effort
from cofactor.papers.material import Material
from cofactor.papers.privmvmf_attack_material import Attacked, attacked
from cofactor.papers.privmvmf_attack_ways import (
    CHOSEN,
    ONE_ROUND,
    RATED,
    SECONDS,
    SIGNED,
    SOLVED,
    Tried,
    accuracies,
    one_round,
    solved,
    trivial,
)
from cofactor.papers.privmvmf_numbers import (
    ANDERSON,
    ATTACKED,
    ATTRIBUTE,
    BROYDEN,
    HYBR,
    RATING,
    SCALAR,
    SEMI_INCL,
    TABLE_3,
    TABLE_6,
)
from cofactor.papers.privmvmf_sides import Sided
from cofactor.papers.privmvmf_tables import spread
from cofactor.papers.results import Row
from cofactor.progress import Listener, Progress

Lines = dict[str, dict[str, list[float]]]
"""By line and column, one number for each repeat."""

PAPER = "the paper"
NAMES = {
    HYBR: ("hybr",),
    BROYDEN: ("broyden2",),
    SCALAR: ("df-sane", "linearmixing"),
    ANDERSON: ("anderson",),
}
"""What the paper calls methods. Its word for Scalar is scipy's for linearmixing, its reference df-sane's."""
SIGN = "sign put right"
"""The column of Table VI for rated items, after signs were put right."""
CONVERGED = "solved"
"""The column for the part of the systems that were solved."""
USERS, QUICK_USERS = 200, 40
"""How many are attacked; of them the last half chose methods for Table VI."""
_SLOW, _QUICK_SLOW = 25, 5
"""How many are attacked by solvers where a system has an unknown for every item."""
_HYBR = 2
"""And by hybr there, which needs a table of as many rows as columns as there are unknowns."""


@dataclass(frozen=True, kw_only=True)
class Users:
    """How many users each part of a table attacks."""

    all: int
    solvers: int
    """By solvers: of all, the first for Table III, the last for Table VI."""
    slow: int
    """By solvers, where they are slow."""

    @classmethod
    def of(cls, effort: Effort) -> "Users":
        """Return how many that are."""
        every = QUICK_USERS if effort.quick else USERS
        return cls(all=every, solvers=every // 2, slow=_QUICK_SLOW if effort.quick else _SLOW)

    def of_solvers(self, scenario: str) -> int:
        """Return how many solvers attack in a scenario."""
        return self.slow if scenario == SEMI_INCL else self.solvers


def table3(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Attack single users in all scenarios: from one round, as the paper does, and by guesses."""
    assert isinstance(material, Sided)
    rows, users = [], Users.of(effort)
    for at, scenario in enumerate(ATTACKED):
        found: Lines = {}
        for seed in range(1, effort.seeds + 1):
            own = attacked(material, scenario, users=users.all, seed=seed)
            _attack(own, users.of_solvers(scenario), seed, found)
            done = at * effort.seeds + seed
            progress(
                Progress("scenarios", done, len(ATTACKED) * effort.seeds, f"{material.name}, {scenario}")
            )
        notes = _notes(scenario, users)
        rows += rows_of(f"{material.name}: {scenario}", found, TABLE_3[scenario], notes)
    return rows


def _attack(own: Attacked, users: int, seed: int, found: Lines) -> None:
    best = one_round(own)
    tried = solved(own.only(slice(users)), CHOSEN[own.scenario], seed)
    lines = {ONE_ROUND: best, SOLVED: tried.as_found, SIGNED: tried.signed}
    numbers = {line: accuracies(one, own.scenario) for line, one in lines.items()}
    add(found, numbers | trivial(best, own.scenario))


def _notes(scenario: str, users: Users) -> dict[str, str]:
    solver = CHOSEN[scenario]
    count = users.of_solvers(scenario)
    return {
        ONE_ROUND: f"{users.all} users",
        SOLVED: f"{solver.method} from {started(solver)}, {count} users",
        SIGNED: "equations leave one sign open, which the paper does not mention",
    }


def table6(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Attack single users by all methods, from all starts."""
    assert isinstance(material, Sided)
    rows, users, done = [], Users.of(effort), 0
    steps = effort.seeds * sum(len(solvers_of(scenario)) for scenario in ATTACKED)
    for scenario in ATTACKED:
        found: Lines = {}
        solvers = solvers_of(scenario)
        for seed in range(1, effort.seeds + 1):
            own = attacked(material, scenario, users=users.all, seed=seed)
            for line, solver in solvers.items():
                tried = solved(own.only(_sample(solver, scenario, users)), solver, seed)
                add(found, {line: _columns(tried, scenario)})
                done += 1
                progress(Progress("solvers", done, steps, f"{material.name}, {scenario}, {line}"))
        usual = users.of_solvers(scenario)
        counts = {line: _count(solver, scenario, users) for line, solver in solvers.items()}
        notes = {line: f"{count} users only" for line, count in counts.items() if count != usual}
        panel = f"{material.name}: {scenario}, {usual} users"
        rows += [*rows_of(panel, found, {}, notes), *_published6(panel, scenario)]
    return rows


def _sample(solver: Solver, scenario: str, users: Users) -> slice:
    """Return the last of all attacked users: Table III takes the first."""
    return slice(users.all - _count(solver, scenario, users), users.all)


def _count(solver: Solver, scenario: str, users: Users) -> int:
    if scenario == SEMI_INCL and solver.method == "hybr":
        return _HYBR
    return users.slow if solver.printed else users.of_solvers(scenario)


def solvers_of(scenario: str) -> dict[str, Solver]:
    """Return by name all that Table VI compares in a scenario."""
    found = {}
    for method in METHODS:
        for start in STARTS:
            if scenario == SEMI_INCL and (start == "random" or (method == "hybr" and start != "tenths")):
                continue
            solver = replace(CHOSEN[scenario], method=method, start=start)
            found[f"{method} from {started(solver)}"] = solver
            if "InclUnc" in scenario and start in ("ones", "tenths") and method != "hybr":
                printed = replace(solver, printed=True)
                found[f"{method} from {started(solver)}, (42) as printed"] = printed
    return found


def started(solver: Solver) -> str:
    """Say where a solver begins."""
    if solver.start == "random":
        return f"{solver.tries} random starts"
    return {"ones": "ones", "tenths": "tenths", "direction": "the upload's direction"}[solver.start]


def _columns(tried: Tried, scenario: str) -> dict[str, float]:
    as_found, signed = (accuracies(one, scenario) for one in (tried.as_found, tried.signed))
    kept = {column: value for column, value in as_found.items() if column in (RATING, RATED, ATTRIBUTE)}
    return kept | {SIGN: signed[RATED], CONVERGED: tried.converged, SECONDS: as_found[SECONDS]}


def _published6(panel: str, scenario: str) -> list[Row]:
    return [
        Row(line=f"{PAPER}: {name}", panel=panel, column=column, ours=None, paper=numbers[column])
        for name, numbers in TABLE_6[scenario].items()
        for column in (RATING, ATTRIBUTE)
    ]


def add(found: Lines, numbers: Mapping[str, Mapping[str, float]]) -> None:
    """Add what one repeat has shown."""
    for line, columns in numbers.items():
        for column, value in columns.items():
            found.setdefault(line, {}).setdefault(column, []).append(value)


def rows_of(
    panel: str,
    found: Mapping[str, Mapping[str, Sequence[float]]],
    paper: Mapping[str, float],
    notes: Mapping[str, str],
) -> list[Row]:
    """Return lines as rows; what the paper has stands beside what is done its way."""
    return [
        Row(
            line=line,
            panel=panel,
            column=column,
            paper=paper.get(column) if line == SOLVED else None,
            note=notes.get(line, ""),
            at_home=False,
            **spread(values),
        )
        for line, columns in found.items()
        for column, values in columns.items()
    ]
