"""The same attacks on the same data where gradients are hidden in sums, or noise is added for a budget."""

from collections.abc import Mapping
from dataclasses import dataclass

from cofactor.attacks.scoring import Reconstruction
from cofactor.attacks.solvers import Solver
from cofactor.crypto.lattice import Lattice
from cofactor.errors import ConfigError
from cofactor.papers.cells import Effort
from cofactor.papers.material import Material
from cofactor.papers.privmvmf_attack_material import Attacked, attacked
from cofactor.papers.privmvmf_attack_tables import Lines, add, rows_of
from cofactor.papers.privmvmf_attack_ways import (
    QUESTION,
    RATED,
    USUAL,
    ZEROS,
    accuracies,
    one_round,
    solved,
    trivial,
)
from cofactor.papers.privmvmf_numbers import ATTACKED, ATTRIBUTE, RATING
from cofactor.papers.privmvmf_sides import Sided
from cofactor.papers.results import Row
from cofactor.privacy.budget import Budget
from cofactor.progress import Listener, Progress
from cofactor.recipes.opened_sums import EncryptedSum
from cofactor.recipes.sums import AnySum, PlainSum, SecureSum

TOLD = "rating, if told which"
"""The column for items of which the attacker is told that they were rated."""
BETTER = "clearly better"
"""The column for how many of three measures are better than guesses by more than three standard errors over
users: ratings if told which, ratings of all items, questions."""
EPSILON = 8.0
PLAIN, SECURE, ENCRYPTED = "nothing hidden", "secure sum", "encrypted sum"
BUDGET = f"budget of epsilon {EPSILON:g}"
BY_SOLVER = ", the paper's way"
"""What follows the name of a defence where the attack is the paper's."""
_SOLVER = Solver(method="df-sane", start="tenths")
"""The method that ends soon also where every item has an unknown."""


@dataclass(frozen=True, kw_only=True)
class Defence:
    """What stands between users and the server."""

    aggregate: AnySum
    budget: Budget | None = None
    note: str


DEFENCES = {
    PLAIN: Defence(aggregate=PlainSum(), note="the server sees what each user sends"),
    SECURE: Defence(
        aggregate=SecureSum(), note="it sees the sum of all; what that tells is guessed of each attacked user"
    ),
    ENCRYPTED: Defence(aggregate=EncryptedSum(scheme=Lattice()), note="BFV; it sees the same sum"),
    BUDGET: Defence(
        aggregate=PlainSum(),
        budget=Budget(epsilon=EPSILON, delta=1e-6, unit="user"),
        note="it sees what each user sends, who adds all of the noise; delta 1e-6",
    ),
}
"""By name, and nothing at all first."""
USERS, QUICK_USERS = 30, 10
"""How many are attacked; the sum is that of all users."""


def defences(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Attack uploads in all scenarios behind each defence."""
    assert isinstance(material, Sided)
    rows: list[Row] = []
    users = QUICK_USERS if effort.quick else USERS
    for at, scenario in enumerate(ATTACKED):
        found, guessed = Lines(), Lines()
        panel = f"{material.name}: {scenario}, {users} users"
        for number, (name, defence) in enumerate(DEFENCES.items(), 1):
            try:
                for seed in range(1, effort.seeds + 1):
                    _attack(name, _behind(defence, material, scenario, users, seed), seed, found, guessed)
            except ConfigError as why:  # a library is not installed
                rows.append(Row(line=name, panel=panel, column=RATED, ours=None, note=str(why)))
            done = at * len(DEFENCES) + number
            text = f"{material.name}, {scenario}, {name}"
            progress(Progress("defences", done, len(ATTACKED) * len(DEFENCES), text))
        notes = {name: defence.note for name, defence in DEFENCES.items()}
        rows += rows_of(panel, found | guessed, {}, notes)
    return rows


def _behind(defence: Defence, sides: Sided, scenario: str, users: int, seed: int) -> Attacked:
    return attacked(
        sides, scenario, users=users, seed=seed, aggregate=defence.aggregate, budget=defence.budget
    )


def _attack(name: str, own: Attacked, seed: int, found: Lines, guessed: Lines) -> None:
    best = one_round(own)
    tried = solved(own, _SOLVER, seed)
    lines = {name: best, f"{name}{BY_SOLVER}": tried.signed}
    add(found, {line: _columns(one, own.scenario) for line, one in lines.items()})
    if name == PLAIN:
        add(guessed, _trivial(best, own.scenario))


def _columns(found: Reconstruction, scenario: str) -> dict[str, float]:
    """Return all accuracies; where rated items are hidden, equation 43 counts all items in any scenario."""
    own = accuracies(found, scenario)
    judged = [one for one in (found.told, found.all_items, found.questions) if one is not None]
    shown = {RATING: found.all_items.right, RATED: own[RATED], TOLD: found.told.right}
    shown |= {column: own[column] for column in (ATTRIBUTE, QUESTION) if column in own}
    return shown | {BETTER: float(sum(one.better for one in judged))}


def _trivial(found: Reconstruction, scenario: str) -> Mapping[str, dict[str, float]]:
    own = trivial(found, scenario)
    zeros = own[ZEROS] | {RATING: found.all_items.trivial}
    usual = {column: value for column, value in own[USUAL].items() if column == QUESTION}
    return {ZEROS: zeros, USUAL: {TOLD: found.told.trivial} | usual}
