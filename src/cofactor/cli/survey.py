"""`cofactor survey`: how private numbers are spread, from one noisy answer of each person."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from cofactor.cli import options
from cofactor.cli.outcome import print_next
from cofactor.cli.places import free_folder, ledger_budget
from cofactor.cli.survey_methods import METHODS
from cofactor.cli.survey_text import as_object, print_survey
from cofactor.cli.survey_wish import Wish
from cofactor.cli.text import print_json, print_line
from cofactor.config import positive
from cofactor.errors import ConfigError, Refused

if TYPE_CHECKING:
    from cofactor.survey.reading import Missing


def survey(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A table with a row for each person: csv, tsv, parquet, MovieLens or RecBole; plain, .gz or "
            ".zip. With --activity or --rating, a file of ratings.",
        ),
    ],
    column: Annotated[
        str | None, typer.Option(help="The column with the numbers that are asked for.")
    ] = None,
    activity: Annotated[
        bool, typer.Option("--activity", help="Of ratings: ask how many ratings each user has.")
    ] = False,
    rating: Annotated[
        bool,
        typer.Option(
            "--rating",
            help="Of ratings: ask each user for one of hers, drawn by chance; --column may name them.",
        ),
    ] = False,
    range_: Annotated[
        str | None,
        typer.Option(
            "--range",
            metavar="LOW:HIGH",
            help="Between which numbers answers lie, such as 0:120. Who lies outside answers as the nearer "
            "end; with --activity, from 1 to how many items there are.",
        ),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="The most that an answer may tell.")] = None,
    method: Annotated[
        str | None, typer.Option(help=f"How to ask: {', '.join(METHODS)}; chosen if left out.")
    ] = None,
    buckets: Annotated[
        int | None, typer.Option(help="How finely numbers are told apart; chosen if left out.")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Only whole numbers make sense.")] = False,
    log: Annotated[
        bool, typer.Option("--log", help="Buckets as wide as their numbers are large, where a few are huge.")
    ] = False,
    missing: Annotated[
        str | None,
        typer.Option(
            help="People without a number: skip (that they have none is then known) or random (they answer "
            "with one drawn from the range)."
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="COLUMN", help="Column with the ids of people: each once.")
    ] = None,
    item: options.ItemColumn = None,
    member: options.Member = None,
    shuffled: Annotated[
        float | None,
        typer.Option(
            metavar="DELTA",
            help="Tell what answers would cost with this delta if a trusted shuffler stood in between.",
        ),
    ] = None,
    budget_epsilon: Annotated[
        float | None,
        typer.Option(help="If FILE has no ledger yet: all that may ever be spent; --epsilon if left out."),
    ] = None,
    budget_delta: Annotated[
        float | None, typer.Option(help="The delta of that budget; 1e-6 if left out.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw the distribution.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/<time> if left out.")] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Ask each person in a table for a number, privately, and tell how the numbers are spread."""
    wish = Wish(
        file=file,
        column=column,
        activity=activity,
        rating=rating,
        range=_range(range_),
        epsilon=_checked_epsilon(epsilon),
        method=method,
        buckets=buckets,
        whole=whole or activity,
        log=log,
        missing=cast("Missing | None", missing),
        user=user,
        item=item,
        member=member,
        budget=ledger_budget(budget_epsilon, budget_delta),
        shuffled=shuffled,
        plots=plot is not None,
    )
    folder = free_folder(out, plot, force=force)
    told = wish.asked(folder, overwrite=force)
    if plot is not None:
        plot.write_text(told.svg(), encoding="utf-8")
    if json:
        print_json(as_object(told))
        return
    print_survey(told)
    if plot is not None:
        print_line(f"Drawn in {plot}.")
    print_line(f"Saved in {folder}.")
    print_next("verify", folder)


def _range(text: str | None) -> tuple[float, float] | None:
    """Read 0:120."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise ConfigError(f"--range must look like 0:120 (lowest, colon, highest), got {text!r}.") from None
    if not low < high:
        raise ConfigError(f"--range must begin below its end, such as 0:120, got {text!r}.")
    return low, high


def _checked_epsilon(epsilon: float | None) -> float:
    if epsilon is None:
        from cofactor.figures import percent
        from cofactor.privacy.budget import odds

        given = sys.argv[1:]
        ranged = any(word.startswith("--range") for word in given)
        named = any(word.startswith(("--column", "--activity", "--rating")) for word in given)
        more = [*([] if named else ["--column", "age"]), *([] if ranged else ["--range", "0:120"])]
        command = shlex.join(["cofactor", *given, *more, "--epsilon", "1"])
        raise Refused(
            "say what an answer may tell: --epsilon 1 (who guesses between two numbers of a person is right "
            f"at most {percent(odds(1.0, 0.0))} of the time), or less. Nothing was asked. For example: "
            f"{command}"
        )
    positive(epsilon=epsilon)
    return epsilon
