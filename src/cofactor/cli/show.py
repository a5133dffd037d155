"""`cofactor show`: what a run folder holds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cofactor.cli import options
from cofactor.cli.audit_text import print_audits
from cofactor.cli.capturing import print_captured
from cofactor.cli.outcome import (
    played,
    print_comparison,
    print_guarantee,
    size_of,
    traffic_of,
)
from cofactor.cli.survey_text import Told, print_survey
from cofactor.cli.text import print_json, print_line, print_table
from cofactor.figures import readable

_MOST_PARTIES, _FIRST_PARTIES = 30, 10
"""How many parties are all shown, and how many of more."""


def show(run: options.RunFolder, json: options.Json = False) -> None:
    """Show what a run, a survey or a clustering is, who took part, how it was made and how well it does."""
    from cofactor.federation.folder import read_audits, read_facts

    facts = read_facts(run)
    if json:
        print_json({"run": str(run)} | facts | {"audits": read_audits(run)})
        return
    if "survey" in facts:
        _show_survey(run)
    elif "clustering" in facts:
        _show_clustering(run)
    else:
        _show_run(run, facts)
    print_captured(facts, run)
    print_audits(run)


def _show_run(run: Path, facts: Mapping[str, Any]) -> None:
    together = facts.get("together")
    print_line(f"{run}: trained {facts['created']} in {facts['seconds']:.1f} s, seed {facts['seed']}")
    print_line(f"  data    {size_of(facts)}")
    print_line(f"  recipe  {_words(facts['recipe'])}")
    if together and together.get("surveys"):
        print_line(f"  surveys {', '.join(together['surveys'].values())}: asked before, and counted")
    if together:
        print_line(f"  rounds  {together['rounds']:,}, {traffic_of(together)}")
        _print_parties(together)
    print_comparison(facts["scores"])
    print_guarantee(facts["guarantee"], together)


def _show_survey(run: Path) -> None:
    from cofactor.survey.result import Survey

    survey = Survey.load(run)
    print_line(f"{run}: asked {survey.created} in {survey.seconds:.1f} s")
    print_survey(Told(survey=survey, folder=run))


def _show_clustering(run: Path) -> None:
    from cofactor.cli import cluster_text
    from cofactor.cluster.result import Clustering

    found = Clustering.load(run)
    print_line(f"{run}: clustered {found.created} in {found.seconds:.1f} s, seed {found.seed}")
    cluster_text.print_clustering(cluster_text.Told(clustering=found, folder=run))


def _print_parties(together: Mapping[str, Any]) -> None:
    columns, rows = _parties(together)
    shown = rows if len(rows) <= _MOST_PARTIES else rows[:_FIRST_PARTIES]
    print_table(columns, shown)
    if len(shown) < len(rows):
        print_line(f"  and {len(rows) - len(shown):,} more; show --json tells of all")


def _parties(together: Mapping[str, Any]) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Return the columns and rows of a table of the parties."""
    from cofactor.figures import rounded_up

    columns = ("party", "users", "items", "ratings", "sent", "epsilon if all others collude")
    rows: list[tuple[object, ...]] = []
    for name, own in together["parties"].items():
        unknown = own["epsilon"] is None or played(together)
        loss = "-" if unknown else rounded_up(own["epsilon"])
        rows.append((name, own["users"], own["items"], own["ratings"], readable(own["bytes_sent"]), loss))
    return columns, rows


def _words(table: Mapping[str, Any]) -> str:
    """Write a settings table as it would be typed in Python."""
    settings = [
        f"{name}={_words(value) if isinstance(value, dict) else value}"
        for name, value in table.items()
        if name != "kind"
    ]
    return f"{table['kind']}({', '.join(settings)})"
