"""`cofactor reproduce`: a published figure made again, the paper's claims beside what we find."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cofactor.cli import options
from cofactor.cli.text import ProgressLine, print_json, print_line, print_table

if TYPE_CHECKING:
    from cofactor.papers.results import Baseline, Reproduction, Row


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="Which paper: pvldb22.")],
    item: Annotated[str, typer.Argument(metavar="ITEM", help="What of it, such as figure4.")],
    data: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Folder with ml-10m.zip, ml-1m.zip or other known data; or one file of ratings.",
        ),
    ],
    seeds: Annotated[
        int, typer.Option(help="How often everything is done anew: 3 give intervals that include the noise.")
    ] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer epsilons.")] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw the figure.")] = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Make a published figure again, with your data and an epsilon that is proved."""
    from cofactor.papers.cells import Effort
    from cofactor.papers.drawing import chart
    from cofactor.papers.reproduce import reproduce as make

    effort = Effort(seeds=seeds, quick=quick)
    made = make(paper, item, data, effort=effort, progress=ProgressLine(quiet=quiet or json))
    if plot is not None:
        plot.write_text(chart(made).svg(), encoding="utf-8")
    if json:
        print_json(made.as_json())
    else:
        _print(made)


def _print(made: "Reproduction") -> None:
    data = made.data
    print_line(
        f"{made.paper} {made.item}: {made.title}. {data['name']}, {data['ratings']:,} ratings by "
        f"{data['users']:,} users of {data['items']:,} items, {data['scale']}; {made.measure}, "
        f"{made.seconds:.0f} s"
    )
    columns = ("row", "column", "paper", "ours", "95% interval", "epsilon", "note")
    print_table(columns, [_cells(row.name, row.column, row) for row in made.rows])
    if made.baselines:
        print_table(columns, [_cells(name, "", one) for name, one in made.baselines.items()])
    for sentence in made.findings:
        print_line(f"- {sentence}")


def _cells(name: str, column: str, row: "Row | Baseline") -> tuple[object, ...]:
    from cofactor.privacy.figures import rounded_up

    epsilon = getattr(row, "epsilon", None)
    interval = "" if row.low is None or row.high is None else f"{row.low:.4f} to {row.high:.4f}"
    return (
        name,
        column,
        "-" if row.paper is None else f"{row.paper:g}",
        "-" if row.ours is None else f"{row.ours:.4f}",
        interval,
        "-" if epsilon is None else rounded_up(epsilon),
        row.note,
    )
