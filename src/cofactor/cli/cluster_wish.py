"""What a clustering is asked to be: mistakes are told before anything is read, and then parties cluster."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

import numpy as np

from cofactor.cli.budget import rounded_down
from cofactor.cli.cluster_files import Tables
from cofactor.cli.cluster_methods import LOCALS, METHODS, check_installed, chosen_local, chosen_method
from cofactor.cli.cluster_text import Own, Told
from cofactor.cli.interrupt import held_back
from cofactor.config import one_of, whole
from cofactor.errors import BudgetExceeded, ConfigError

if TYPE_CHECKING:
    from cofactor.cluster.records import Records
    from cofactor.crypto.psi import Rule
    from cofactor.federation.finding import Among, How
    from cofactor.privacy.budget import Budget


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is to be found, in whose columns, and how."""

    tables: Tables
    clusters: int
    local_clusters: int | None
    epsilon: float
    delta: float | None
    method: str | None
    local: str | None
    align: str
    among: str
    id_rule: str
    seed: int
    budget: "Budget | None"
    """What may ever be spent, where a ledger is begun."""

    def __post_init__(self) -> None:
        """Tell of mistakes before anything is read."""
        check_settings(self.clusters, self.local_clusters, self.method, self.local)
        check_alignment(self.align, self.among, self.id_rule, parties=len(self.tables.files))
        check_installed(self.method, self.align)

    def found(self, folder: Path, *, overwrite: bool) -> Told:
        """Read the tables, cluster, and save what came: once something was charged, nothing stops it."""
        from cofactor.cluster.clustering import find_clusters

        records = self.tables.records()
        begun = [each.name for each in records if each.ledger_path and not each.ledger_path.exists()]
        with held_back(f"The clusters were found, and are saved: cofactor show {folder}"):
            try:
                clustering = find_clusters(
                    records,
                    clusters=self.clusters,
                    budget=budget_of(self.epsilon, self.delta, min(map(len, records))),
                    method=chosen_method(self.method),
                    local=chosen_local(self.local),
                    local_clusters=self.local_clusters,
                    align=cast("How", self.align),
                    among=cast("Among", self.among),
                    rule=cast("Rule", self.id_rule),
                    seed=self.seed,
                    ledger_budget=self.budget,
                )
            except BudgetExceeded as error:
                raise BudgetExceeded(f"{error} {self._what_is_left(records)}") from None
            clustering.save(folder, overwrite=overwrite)
        return Told(
            clustering=clustering,
            folder=folder,
            parties={each.name: _own(each) for each in records},
            begun=tuple(begun),
            own_budget=self.budget is not None and len(begun) < len(records),
        )

    def _what_is_left(self, records: "Sequence[Records]") -> str:
        """Say what every file has left, and what to do."""
        from cofactor.privacy.ledger import Ledger

        ledgers: Mapping[Path, Ledger] = {
            cast("Path", each.file): Ledger.open(each.ledger_path)
            for each in records
            if each.ledger_path is not None and each.ledger_path.exists()
        }
        if not ledgers:
            return "Use a smaller --epsilon, or a larger --budget-epsilon."
        file, least = min(ledgers.items(), key=lambda pair: pair[1].left)
        left = [
            f"{path}: epsilon {rounded_down(own.left)} of {own.budget.epsilon:g}"
            for path, own in ledgers.items()
        ]
        less = "" if rounded_down(least.left) == "0" else " Ask for less with --epsilon."
        more = math.ceil(2 * (least.spent().epsilon + self.epsilon))
        command = shlex.join(["cofactor", "budget", str(file), "--epsilon", str(more)])
        return (
            "All that is ever released about a file shares one budget, which is fixed when its ledger is "
            f"begun. Left of {'; '.join(left)}.{less} For files that nothing was released about yet, begin "
            f"with more: --budget-epsilon {more}, or open a budget beforehand: {command} --delta 1e-6 --unit "
            "user."
        )


def check_settings(clusters: int, local_clusters: int | None, method: str | None, local: str | None) -> None:
    """Refuse what makes no clustering."""
    whole(k=clusters)
    whole(local_k=local_clusters)
    if clusters < 2:
        raise ConfigError("--k 1 is one cluster of all users: nothing to find. Ask for at least 2.")
    if method is not None:
        one_of(METHODS, method=method)
    if local is not None:
        one_of(LOCALS, local=local)


def check_alignment(align: str, among: str, id_rule: str, *, parties: int) -> None:
    """Refuse a way to find common users that is none."""
    from cofactor.crypto.psi import RULES
    from cofactor.federation.finding import Among, How

    one_of(get_args(How), align=align)
    one_of(get_args(Among), among=among)
    one_of(RULES, **{"id-rule": id_rule})
    if among != "leader" and (align != "psi" or parties < 3):
        raise ConfigError("--among is for --align psi and more than two files. Leave it out.")


def budget_of(epsilon: float, delta: float | None, users: int) -> "Budget":
    """Return the budget; delta, if it was left out, as training chooses it: 1e-6, or 0.1 / users if less."""
    from cofactor.privacy.budget import Budget

    digit = Context(prec=1, rounding=ROUND_FLOOR)
    usual = min(1e-6, float(digit.create_decimal(repr(0.1 / max(users, 1)))))
    return Budget(epsilon=epsilon, delta=usual if delta is None else delta, unit="user")


def _own(records: "Records") -> Own:
    """Return what only a party itself may know."""
    known = ~np.isnan(records.values)
    outside = {}
    for at, (column, (low, high)) in enumerate(records.ranges.items()):
        own = records.values[known[:, at], at]
        count = int(((own < low) | (own > high)).sum())
        if count:
            outside[column] = count
    assert records.file is not None
    return Own(
        file=records.file,
        users=len(records),
        missing=int((~known.all(axis=1)).sum()),
        outside=outside,
        left_out=records.left_out,
        unstated=records.unstated,
    )
