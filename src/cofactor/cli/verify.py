"""`cofactor verify`: does a run folder bear out what it promises?"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cofactor.cli import options
from cofactor.cli.text import RED, print_json, print_line, print_table
from cofactor.errors import CofactorError, DataError

if TYPE_CHECKING:
    from cofactor.federation.verify import Check, Verdict


def verify(
    run: options.RunFolder,
    ledger: Annotated[
        list[Path] | None,
        typer.Option("--ledger", metavar="FILE", help="A party's file of ratings, or the ledger beside it."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Reckon epsilon anew from the ledgers of a run, and check that nothing in its folder was changed."""
    from cofactor.federation.folder import read_facts

    verdict = examined(run, [_ledger_of(path) for path in ledger or ()])
    guarantee = read_facts(run)["guarantee"]
    if json:
        checks = [asdict(check) for check in verdict.checks]
        promised = {name: guarantee.get(name) for name in ("holds", "epsilon", "delta", "unit", "adjacency")}
        print_json({"run": str(run), "holds": verdict.holds, "guarantee": promised, "checks": checks})
    else:
        rows = [("yes" if check.holds else "NO", check.name, check.detail) for check in verdict.checks]
        print_table(("holds", "check", "what was found"), rows)
        _conclude(verdict.holds, promised=guarantee["holds"])
    raise typer.Exit(0 if verdict.holds else 1)


def examined(run: Path, ledgers: Sequence[Path] = ()) -> "Verdict":
    """Check a run, a survey or a clustering."""
    from cofactor.federation.folder import read_facts
    from cofactor.federation.verify import verify as examine

    verdict, facts = examine(run, ledgers=ledgers), read_facts(run)
    if "survey" in facts:
        verdict = replace(verdict, checks=(*verdict.checks, _survey(run)))
    if "clustering" in facts:
        verdict = replace(verdict, checks=(*verdict.checks, _clustering(run)))
    return verdict


def _survey(run: Path) -> "Check":
    """Check that a survey's estimate follows from its answers, and its answers from what was released."""
    from cofactor.federation.verify import Check
    from cofactor.survey.result import Survey

    try:
        found = Survey.load(run)
    except CofactorError as error:
        return Check("survey", False, str(error))
    return Check("survey", True, f"What it says follows from the answers of {found.answered:,} people.")


def _clustering(run: Path) -> "Check":
    """Check that what a folder says of its clusters follows from what parties released."""
    from cofactor.cluster.result import Clustering
    from cofactor.federation.verify import Check

    try:
        found = Clustering.load(run)
        found.check()
    except CofactorError as error:
        return Check("clusters", False, str(error))
    return Check(
        "clusters", True, f"What it says of {found.clusters} clusters follows from what was released."
    )


def _conclude(holds: bool, *, promised: bool) -> None:
    if not holds:
        print_line("The folder does not bear out what it says. Do not rely on it.", RED)
    elif promised:
        print_line("Everything is as the folder says.")
    else:
        print_line("Everything is as the folder says, and it promises no privacy.", RED)


def _ledger_of(path: Path) -> Path:
    """Return the ledger that is meant by the name of a ledger or of a party's file."""
    from cofactor.federation.party import LEDGER_SUFFIX, ledger_path

    found = path if path.name.endswith(LEDGER_SUFFIX) else ledger_path(path)
    if not found.is_file():
        raise DataError(f"{found} does not exist. Name a party's file of ratings, or the ledger beside it.")
    return found
