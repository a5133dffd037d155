"""`cofactor budget`: how much may be learned about a party's data, and how much all runs have spent of it."""

import math
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from cofactor.cli import options
from cofactor.cli.text import RED, print_facts, print_json, print_line, print_table
from cofactor.config import as_table, one_of
from cofactor.errors import ConfigError, DataError, LedgerError, Refused, did_you_mean

if TYPE_CHECKING:
    from cofactor.privacy.accountant import Spent
    from cofactor.privacy.budget import Adjacency, Budget, Unit
    from cofactor.privacy.entries import Period
    from cofactor.privacy.ledger import Ledger


def budget(
    party: Annotated[Path, typer.Argument(metavar="PARTY", help="A party's file, or the .ledger beside it.")],
    epsilon: Annotated[float | None, typer.Option(help="Open a ledger: the most that may be spent.")] = None,
    delta: Annotated[float | None, typer.Option(help="Probability that epsilon may fail.")] = None,
    unit: Annotated[str | None, typer.Option(help="Who is protected: user or rating.")] = None,
    adjacency: Annotated[
        str | None, typer.Option(help="Compared with what: empty (if left out), replace or value.")
    ] = None,
    personal: Annotated[
        bool,
        typer.Option("--personal", help="Only for runs with weights (stretching): epsilon is of weight 1."),
    ] = False,
    per: Annotated[
        str | None, typer.Option(help="Renew the budget every month or year; never, if left out.")
    ] = None,
    newer_data: Annotated[
        bool,
        typer.Option("--newer-data", help="The file goes on with newer data, and so does its budget."),
    ] = False,
    recover: Annotated[
        bool, typer.Option("--recover", help="Drop an entry that a crash cut off before it was released.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Show what all runs have spent of a party's budget, or open one with --epsilon, --delta and --unit."""
    data, path = _places(party)
    if personal or any(given is not None for given in (epsilon, delta, unit, adjacency, per)):
        wanted = _budget(epsilon, delta, unit, adjacency or "empty")
        _open_new(data, path, replace(wanted, personal="stretching") if personal else wanted, per)
    elif not path.exists():
        raise LedgerError(f"{data} has no budget yet. Open one: {_example(data)}")
    if newer_data:
        _continue(data, path)
    _show(data, path, recover=recover, as_json=json)


def _continue(data: Path, path: Path) -> None:
    from cofactor.federation.party import fingerprint
    from cofactor.federation.sealing import sealed
    from cofactor.privacy.ledger import Ledger

    if not data.exists():
        raise DataError(f"{data} does not exist: there are no newer data to go on with.")
    Ledger.open(path).extended(sealed(fingerprint(data), path))


def _places(party: Path) -> tuple[Path, Path]:
    """Return the data's path and the ledger's; at least one of them is a file."""
    from cofactor.federation.party import LEDGER_SUFFIX, ledger_path

    name = party.name.removesuffix(LEDGER_SUFFIX)
    if party.is_dir() or not name:
        raise DataError(f"{party} is no file. Name a file of ratings, or the .ledger beside it.")
    data = party.with_name(name)
    path = ledger_path(data)
    if not data.exists() and not path.exists():
        names = [file.name for file in party.parent.iterdir()] if party.parent.is_dir() else []
        raise DataError(f"{party} does not exist.{did_you_mean(party.name, names)}")
    return data, path


def _budget(epsilon: float | None, delta: float | None, unit: str | None, adjacency: str) -> "Budget":
    from cofactor.privacy.budget import Budget

    if epsilon is None or delta is None or unit is None:
        given = {"--epsilon": epsilon, "--delta": delta, "--unit": unit}
        missing = ", ".join(name for name, value in given.items() if value is None)
        raise ConfigError(f"a budget needs --epsilon, --delta and --unit; missing: {missing}.")
    return Budget(
        epsilon=epsilon, delta=delta, unit=cast("Unit", unit), adjacency=cast("Adjacency", adjacency)
    )


def _open_new(data: Path, path: Path, wanted: "Budget", per: str | None) -> None:
    from cofactor.federation.party import fingerprint
    from cofactor.federation.sealing import sealed
    from cofactor.privacy.entries import RENEWED
    from cofactor.privacy.ledger import Ledger

    if per is not None:
        one_of(tuple(RENEWED), per=per)
    if path.exists():
        raise Refused(
            f"{path} holds a budget already: {Ledger.open(path).budget}. It is a promise about data that may "
            "have been used since, so it is never changed. Leave out --epsilon, --delta, --unit and --per to "
            "see it, or open another budget for other data."
        )
    if not data.exists():
        raise DataError(f"{data} does not exist: a budget is opened for data that are there.")
    Ledger.create(
        path,
        party=data.name.split(".")[0] or data.name,
        fingerprint=sealed(fingerprint(data), path),
        budget=wanted,
        per=cast("Period | None", per),
    )


def _show(data: Path, path: Path, *, recover: bool, as_json: bool) -> None:
    from cofactor.federation.party import fingerprint
    from cofactor.federation.sealing import belongs
    from cofactor.privacy.ledger import Ledger

    ledger = Ledger.open(path, recover=recover)
    facts = _facts(ledger, path)
    same = data.exists() and belongs(ledger.fingerprint, fingerprint(data), path)
    facts["data_unchanged"] = same if data.exists() else None
    if facts["data_unchanged"] is False:
        facts["warnings"].append(
            f"{data} has changed since: these are not the data that the budget is for. Put them back, or, if "
            "they were only continued with newer ones, say so with --newer-data."
        )
    print_json(facts) if as_json else _tell(ledger, facts)


def _facts(ledger: "Ledger", path: Path) -> dict[str, Any]:
    from cofactor.privacy.entries import RENEWED

    runs, spent = _runs(ledger), ledger.spent()
    return {
        "ledger": str(path),
        "party": ledger.party,
        "fingerprint": ledger.fingerprint,
        "budget": as_table(ledger.budget),
        "odds": ledger.budget.odds,
        "per": ledger.per,
        "renewed": None if ledger.per is None else RENEWED[ledger.per],
        "spent": _numbers(spent),
        "spent_ever": _numbers(ledger.spent(ever=True) if ledger.per else spent),
        "left": ledger.left,
        "releases": sum(run["releases"] for run in runs),
        "secure_noise": all(run["secure_noise"] for run in runs),
        "runs": runs,
        "count": ledger.count,
        "head": ledger.head,
        "warnings": ledger.budget.concerns(),
    }


def _runs(ledger: "Ledger") -> list[dict[str, Any]]:
    """Return each run with what it cost by itself; all together cost less than the sum."""
    from cofactor.figures import finite

    runs: dict[str, list[Any]] = {}
    for entry in ledger.entries:
        if entry.event is not None:
            runs.setdefault(entry.run, []).append(entry)
    return [
        {
            "run": name,
            "from": entries[0].time.isoformat(),
            "to": entries[-1].time.isoformat(),
            "releases": sum(entry.event.count for entry in entries),
            "epsilon": finite(ledger.cost(entry.event for entry in entries).epsilon),
            "secure_noise": all(entry.event.secure for entry in entries),
        }
        for name, entries in runs.items()
    ]


def _numbers(spent: "Spent") -> dict[str, Any]:
    from cofactor.figures import finite

    return {
        "epsilon": finite(spent.epsilon),
        "delta": spent.delta,
        "method": spent.method,
        "renyi": finite(spent.renyi),
    }


def _tell(ledger: "Ledger", facts: dict[str, Any]) -> None:
    from cofactor.figures import percent

    period = f" this {ledger.per}" if ledger.per else ""
    print_line(f"{facts['ledger']}: what was released about the data of {ledger.party}")
    print_facts(
        {
            "  budget": f"{ledger.budget}; a guesser may be right up to {percent(facts['odds'])} of the time",
            "  renewal": facts["renewed"],
            f"  spent{period}": f"epsilon {_up(facts['spent']['epsilon'])}",
            "  spent ever": f"epsilon {_up(facts['spent_ever']['epsilon'])}" if ledger.per else None,
            f"  left{period}": f"epsilon {rounded_down(facts['left'])}",
        }
    )
    if facts["runs"]:
        rows = [
            (run["run"], run["from"][:10], run["releases"], _up(run["epsilon"]), _noise(run))
            for run in facts["runs"]
        ]
        print_table(("run", "began", "releases", "epsilon alone", "noise"), rows)
    else:
        print_line("Nothing has been released yet.")
    for warning in facts["warnings"]:
        print_line(f"Warning: {warning}", RED)
    if not facts["secure_noise"]:
        print_line("Insecure noise can be taken off again: what was released with it is not private.", RED)


def _noise(run: dict[str, Any]) -> str:
    return "secure" if run["secure_noise"] else "INSECURE"


def _up(epsilon: float | None) -> str:
    from cofactor.figures import rounded_up

    return "infinite" if epsilon is None else rounded_up(epsilon)


def rounded_down(epsilon: float) -> str:
    """Write what is left of an epsilon, never more than it is."""
    return f"{math.floor(epsilon * 1000) / 1000:g}"


def _example(data: Path) -> str:
    return shlex.join(
        ["cofactor", "budget", str(data), "--epsilon", "2", "--delta", "1e-6", "--unit", "user"]
    )
