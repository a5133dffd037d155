"""`cofactor cluster`: parties that know different things about the same users find segments of them."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cofactor.cli import options
from cofactor.cli.cluster_files import Tables, parsed_ranges
from cofactor.cli.cluster_methods import LOCALS, METHODS
from cofactor.cli.cluster_plan import PlanWish, print_plan
from cofactor.cli.cluster_text import as_object, print_clustering, print_ranges_hint
from cofactor.cli.cluster_wish import Wish
from cofactor.cli.outcome import print_next
from cofactor.cli.places import free_folder, ledger_budget
from cofactor.cli.text import print_json, print_line
from cofactor.config import positive
from cofactor.errors import ConfigError, Refused

if TYPE_CHECKING:
    pass


def cluster(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="A table for each party, with a row for each user: csv, tsv, parquet, MovieLens or RecBole; "
            "plain, .gz or .zip. The parties have different columns of the same users.",
            show_default=False,
        ),
    ] = None,
    k: Annotated[int | None, typer.Option("--k", help="How many clusters are wanted.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The most that may be learned about a user.")] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="Probability that epsilon may fail; if left out 1e-6, 0.1 / users if less."),
    ] = None,
    id_: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column with the ids of users: once for all files, or once for each; found by its name, if "
            "left out.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME", help="Columns to use; all that hold numbers, if left out."),
    ] = None,
    range_: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="COLUMN=LOW:HIGH",
            help="Between which numbers a column lies, such as age=0:120, or bank/age=0:120 of one party. "
            "Public: if left out, it is read off the data, and tells somebody's numbers.",
        ),
    ] = None,
    ranges: Annotated[
        Path | None,
        typer.Option(metavar="FILE.toml", help="The same from a file: lines such as age = [0, 120]."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help=f"How memberships are counted: {', '.join(METHODS)}; the first is usual."),
    ] = None,
    local: Annotated[
        str | None,
        typer.Option(help=f"How each party clusters alone: {', '.join(LOCALS)}; the first is usual."),
    ] = None,
    local_k: Annotated[
        int | None, typer.Option(help="How many clusters each party finds alone; chosen if left out.")
    ] = None,
    align: Annotated[
        str,
        typer.Option(
            help="How users in common are found: psi (private set intersection) or ids (parties show each "
            "other all ids)."
        ),
    ] = "psi",
    among: Annotated[
        str,
        typer.Option(
            help="With psi and more than two files: leader (the first learns whom it shares with each other) "
            "or chain (each learns who is common to all before it and itself)."
        ),
    ] = "leader",
    id_rule: Annotated[
        str, typer.Option(help="How ids are compared: exact, or folded (upper and lower case are the same).")
    ] = "exact",
    member: options.Member = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Read no data: say what noise it takes, with --users and --widths.")
    ] = False,
    users: Annotated[int | None, typer.Option(help="With --plan: how many users are common.")] = None,
    widths: Annotated[
        str | None, typer.Option(metavar="N,N", help="With --plan: how many columns each party has.")
    ] = None,
    budget_epsilon: Annotated[
        float | None,
        typer.Option(
            help="Where a file has no ledger yet: all that its party may ever spend; what this clustering "
            "takes of it, if left out."
        ),
    ] = None,
    budget_delta: Annotated[
        float | None, typer.Option(help="The delta of that budget; 1e-6 if left out.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw the clusters.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/<time> if left out.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of public chance: never of noise.", min=0)] = 0,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Let parties with different columns of the same users find clusters of them, privately."""
    spent = _checked_epsilon(epsilon, plan=plan)
    if k is None:
        raise ConfigError("say how many clusters are wanted: --k 5.")
    if plan:
        if files:
            raise ConfigError(
                "--plan reads no data. Leave out the files, and say --users 20000 --widths 4,4."
            )
        wish = PlanWish(
            clusters=k, local_clusters=local_k, epsilon=spent, delta=delta, method=method, local=local,
            users=users, widths=widths,
        )  # fmt: skip
        print_plan(wish.made(), as_json=json)
        return
    if users is not None or widths is not None:
        raise ConfigError("--users and --widths are for --plan: from files they are read. Leave them out.")
    asked = Wish(
        tables=Tables(
            files=tuple(files or ()),
            ids=tuple(id_ or ()),
            columns=None if columns is None else _listed(columns),
            ranges=parsed_ranges(range_ or (), ranges),
            member=member,
        ),
        clusters=k,
        local_clusters=local_k,
        epsilon=spent,
        delta=delta,
        method=method,
        local=local,
        align=align,
        among=among,
        id_rule=id_rule,
        seed=seed,
        budget=ledger_budget(budget_epsilon, budget_delta),
    )
    folder = free_folder(out, plot, force=force)
    told = asked.found(folder, overwrite=force)
    if plot is not None:
        plot.write_text(told.clustering.svg(), encoding="utf-8")
    if json:
        print_json(as_object(told))
        return
    print_clustering(told)
    print_ranges_hint(told)
    if plot is not None:
        print_line(f"Drawn in {plot}.")
    print_line(f"Saved in {folder}.")
    print_next("verify", folder)
    print_next("segments", folder, asked.tables.files[0])


def _listed(text: str) -> tuple[str, ...]:
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    if not found:
        raise ConfigError("--columns must look like age,income; it is empty.")
    return found


def _checked_epsilon(epsilon: float | None, *, plan: bool) -> float:
    if epsilon is None:
        from cofactor.figures import percent
        from cofactor.privacy.budget import odds

        given = sys.argv[1:]
        more = [] if any(word.startswith("--k") for word in given) else ["--k", "5"]
        command = shlex.join(["cofactor", *given, *more, "--epsilon", "1"])
        raise Refused(
            "say what may be learned about a user: --epsilon 1 (who guesses whether a user's columns are in "
            f"the data is right at most {percent(odds(1.0, 1e-6))} of the time), or less. Nothing was "
            f"{'planned' if plan else 'released'}. For example: {command}"
        )
    positive(epsilon=epsilon)
    return epsilon
