"""What came out of a clustering: a table of centres and sentences for people, one object for programs."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cofactor.cli.outcome import print_guarantee
from cofactor.cli.text import YELLOW, print_line, print_table
from cofactor.config import as_table
from cofactor.figures import readable

if TYPE_CHECKING:
    from cofactor.cluster.result import Clustering

_ABREAST = 8
"""How many clusters stand beside each other in a table."""
_NOTABLE = 0.01
"""Part of all users by which sizes may be off without a word."""
_FEW = 0.5
"""If no more than this part of the smallest party's users is common, ids may be written differently."""


@dataclass(frozen=True, kw_only=True)
class Own:
    """What only a party itself may know about its file: LOCAL."""

    file: Path
    users: int
    missing: int
    """Users of whom a number is missing: they are in no cluster."""
    outside: Mapping[str, int]
    """By column, how many numbers lie outside the range, and count as its nearer end."""
    left_out: tuple[str, ...]
    """Columns that hold no numbers."""
    unstated: tuple[str, ...]
    """Columns whose ranges nobody stated."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """A clustering, and what may be said beside it."""

    clustering: "Clustering"
    folder: Path
    parties: Mapping[str, Own] = field(default_factory=dict)
    """What parties know of their own files; nothing if only the folder is known."""
    begun: tuple[str, ...] = ()
    """Parties whose ledgers were begun by this clustering."""
    own_budget: bool = False
    """Whether a budget was named that some ledger, which has its own, knows nothing of."""

    def ledgers(self) -> dict[str, dict[str, Any]]:
        """Return what the parties' ledgers say by now."""
        from cofactor.federation.party import ledger_path
        from cofactor.privacy.ledger import Ledger

        paths = {name: ledger_path(own.file) for name, own in self.parties.items()}
        opened = {name: (path, Ledger.open(path)) for name, path in paths.items() if path.exists()}
        return {
            name: {"path": str(path), "left": ledger.left, "budget": as_table(ledger.budget)}
            for name, (path, ledger) in opened.items()
        }


def as_object(told: Told) -> dict[str, Any]:
    """Return all of it as one object with stable keys; `local` holds what must not leave its party."""
    from cofactor.cluster.segments import segment_names

    found = told.clustering
    names = segment_names(found.clusters)
    return {
        "run": str(told.folder),
        "users": found.facts.users,
        "parties": list(found.facts.parties),
        "columns": list(found.columns),
        "ranges": [list(each) for own in found.ranges for each in own],
        "clusters": [
            {"name": name, "users": float(size), "centre": dict(zip(found.columns, centre, strict=True))}
            for name, size, centre in zip(names, found.sizes, found.centres.tolist(), strict=True)
        ],
        "local_clusters": found.facts.local_clusters,
        "settings": dict(found.settings),
        "concerns": list(found.concerns),
        "guarantee": found.guarantee.as_json(),
        "alignment": None if found.together.alignment is None else asdict(found.together.alignment),
        "ledgers": told.ledgers(),
        "rounds": found.together.rounds,
        "bytes": found.together.traffic,
        "seconds": found.seconds,
        "local": {name: asdict(own) for name, own in told.parties.items()} or None,
    }


def print_clustering(told: Told) -> None:
    """Print what was found, in whose columns, and what is promised."""
    _print_made(told)
    _print_centres(told.clustering)
    _print_sum(told.clustering)
    for concern in told.clustering.concerns:
        print_line(f"Warning: {concern}", YELLOW)
    _print_local(told)
    print_guarantee(told.clustering.guarantee.as_json(), told.clustering.as_json()["together"])
    _print_ledgers(told)


def _print_made(told: Told) -> None:
    found = told.clustering
    parties = _listed(found.facts.parties)
    method, local = (found.settings[name]["kind"] for name in ("method", "local"))
    print_line(
        f"{found.clusters} clusters of {found.facts.users:,} users whom {parties} have in common, by "
        f"{len(found.columns)} columns. Each found {found.facts.local_clusters} local clusters ({local}), "
        f"and {method} counted who is in which: {found.promised}, "
        f"{found.together.rounds} rounds, {readable(found.together.traffic)}, {found.seconds:.1f} s."
    )
    common = found.together.alignment
    if common is not None and any(common.left_out.values()):
        left = ", ".join(f"{count:,} of {name}" for name, count in common.left_out.items() if count)
        print_line(f"Left out, since not all have them: {left}.")
        if common.common <= _FEW * min(common.users) and common.rule == "exact":
            print_line(
                "These are few. If ids differ in upper and lower case only, cluster with --id-rule folded.",
                YELLOW,
            )


def _print_sum(found: "Clustering") -> None:
    """Say why sizes do not add up to all users, where they do not."""
    counted, users = float(found.sizes.sum()), found.facts.users
    if abs(counted - users) > _NOTABLE * users:
        print_line(
            f"Sizes add up to about {counted:,.0f} of {users:,} users: there is noise in them, and users of "
            "whom a number is missing are in none."
        )


def _print_centres(found: "Clustering") -> None:
    """Print centres in their own units: a line for each column, a few clusters side by side."""
    from cofactor.cluster.picture import written
    from cofactor.cluster.segments import segment_names

    names = segment_names(found.clusters)
    ranges = [each for own in found.ranges for each in own]
    total = float(np.maximum(found.sizes, 0).sum()) or 1.0
    for first in range(0, found.clusters, _ABREAST):
        shown = range(first, min(first + _ABREAST, found.clusters))
        rows: list[Sequence[str]] = [
            ("about how many users", *(f"{found.sizes[at]:,.0f}" for at in shown)),
            ("", *(f"{max(found.sizes[at], 0) / total:.0%}" for at in shown)),
        ]
        for place, (column, stated) in enumerate(zip(found.columns, ranges, strict=True)):
            rows.append((column, *(written(found.centres[at, place], stated) for at in shown)))
        print_table(("", *(names[at] for at in shown)), rows)


def _print_local(told: Told) -> None:
    """Say what of each file was not used, or not as it stands."""
    for name, own in told.parties.items():
        if own.left_out:
            print_line(
                f"{own.file}: not used, for they hold no numbers: {', '.join(map(repr, own.left_out))}."
            )
        if own.missing:
            print_line(
                f"{own.file}: {own.missing:,} of {own.users:,} users miss a number, and are in no cluster. "
                "LOCAL: this count is in no file.",
                YELLOW,
            )
        for column, count in own.outside.items():
            low, high = _range_of(told.clustering, name, column)
            print_line(
                f"{own.file}: {count:,} numbers of {column} lay outside {low:g} to {high:g}, and counted as "
                "the nearer end. LOCAL: this count is in no file.",
                YELLOW,
            )


def _range_of(found: "Clustering", party: str, column: str) -> tuple[float, float]:
    place = found.facts.parties.index(party)
    return found.ranges[place][found.facts.columns[place].index(column)]


def _print_ledgers(told: Told) -> None:
    from cofactor.cli.budget import rounded_down

    ledgers = told.ledgers()
    for each in ledgers.values():
        left = rounded_down(each["left"])
        print_line(f"Charged to {each['path']}: epsilon {left} of {each['budget']['epsilon']:g} is left.")
    if ledgers:
        print_line("A ledger counts what its party released, and what all released together.")
    if told.own_budget:
        print_line(
            "Some ledgers have a budget of their own already: --budget-epsilon was left aside.", YELLOW
        )
    if any(rounded_down(ledgers[name]["left"]) == "0" for name in told.begun if name in ledgers):
        print_line(
            "This clustering began ledgers for itself alone. To release more about these files later, begin "
            "with more: --budget-epsilon."
        )


def print_ranges_hint(told: Told) -> None:
    """Say what to type so that no range is read off the data."""
    unstated = dict.fromkeys(column for own in told.parties.values() for column in own.unstated)
    if unstated:
        example = " ".join(f"--range {shlex.quote(column)}=LOW:HIGH" for column in list(unstated)[:3])
        more = "" if len(unstated) <= 3 else f" and {len(unstated) - 3} more, or --ranges FILE.toml"
        print_line(
            f"State ranges next time, from what everybody knows and not from the data: {example}{more}.",
            YELLOW,
        )


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
