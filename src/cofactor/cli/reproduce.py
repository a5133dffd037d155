"""`cofactor reproduce`: a published figure made again, the paper's claims beside what we find."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cofactor.cli import options
from cofactor.cli.text import ProgressLine, print_json, print_line, print_table
from cofactor.errors import ConfigError

if TYPE_CHECKING:
    from cofactor.papers.results import Baseline, Reproduction, Row


_MANY = 4
"""With more columns the paper's numbers have a line of their own."""


def reproduce(
    paper: Annotated[
        str,
        typer.Argument(metavar="PAPER", help="Which paper: pvldb22, dpmf-rp, privmvmf, hdpmf or thesis22."),
    ],
    item: Annotated[str, typer.Argument(metavar="ITEM", help="What of it, such as figure4 or table2.")],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder with ml-1m.zip, ml-100k.zip or other known data; or one file of ratings. "
            "For thesis22, with nyc-taxi-yellow-sample.npz, and for its chapter 5 letter.npz and adult.npz; "
            "it makes its other data itself.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="How often everything is done anew: 3 give intervals that include the noise. Left out: 1, "
            "or 5 where the paper prints standard deviations (privmvmf, hdpmf), 20 for thesis22 (10 for its "
            "chapter 5).",
            show_default=False,
        ),
    ] = None,
    genome: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For privmvmf: genome-scores.csv, tags of films; they have genres without it.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer columns; for hdpmf also one repeat, and no tuning.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw the figure.")] = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Make a published figure again, with your data and an epsilon that is proved."""
    from cofactor.papers.cells import Effort
    from cofactor.papers.drawing import chart
    from cofactor.papers.reproduce import reproduce as make
    from cofactor.papers.reproduce import usual_seeds

    if plot is not None and not plot.parent.is_dir():
        raise ConfigError(f"--plot: there is no folder {plot.parent} to write {plot.name} to.")
    if plot is not None and plot.suffix.lower() != ".svg":
        raise ConfigError(f"--plot draws SVG. Name {plot.with_suffix('.svg').name} instead of {plot.name}.")
    effort = Effort(seeds=usual_seeds(paper, item, quick=quick) if seeds is None else seeds, quick=quick)
    progress = ProgressLine(quiet=quiet or json)
    made = make(paper, item, data, effort=effort, progress=progress, genome=genome)
    if plot is not None:
        plot.write_text(chart(made).svg(), encoding="utf-8")
    if json:
        print_json(made.as_json())
    else:
        _print(made)


def _print(made: "Reproduction") -> None:
    sets = "; ".join(_described(data) for data in (made.data, *made.more_data))
    print_line(f"{made.paper} {made.item}: {made.title}. {sets}; {made.measure}, {made.seconds:.0f} s")
    if made.reading:
        print_line(made.reading)
    for panel in dict.fromkeys(row.panel for row in made.rows):
        _print_panel(panel, [row for row in made.rows if row.panel == panel], made.decimals)
    if made.baselines:
        rows = [(name, _number(one, made.decimals), one.note) for name, one in made.baselines.items()]
        print_table(("baseline", made.measure, "note"), rows)
    for sentence in made.findings:
        print_line(f"- {sentence}")


def _described(data: Mapping[str, Any]) -> str:
    if "columns" in data:
        return f"{data['name']}, {data['people']:,} people, {data['columns']} columns"
    if "people" in data:
        return f"{data['name']}, {data['people']:,} people, {data['buckets']:,} buckets"
    return (
        f"{data['name']}, {data['ratings']:,} ratings by {data['users']:,} users of {data['items']:,} items, "
        f"{data['scale']}"
    )


def _print_panel(panel: str, rows: "list[Row]", decimals: int) -> None:
    """Print one line of the figure a row; the half of its interval stands behind a number."""
    columns = list(dict.fromkeys(row.column for row in rows))
    by_line: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_line.setdefault(row.line, {})[row.column] = row
    costs = {line: _cost(list(own.values())) for line, own in by_line.items()} if _mislabelled(rows) else {}
    apart = len(columns) > _MANY
    cells = []
    for line, own in by_line.items():
        numbers = [
            _number(own[column], decimals, paper=not apart) if column in own else "" for column in columns
        ]
        cells.append((line, *([costs[line]] if costs else []), *numbers))
        if apart and any(row.paper is not None for row in own.values()):
            theirs = [_published(own.get(column)) for column in columns]
            cells.append(("  the paper", *([""] if costs else []), *theirs))
    print_table(("", *(["true epsilon, delta"] if costs else []), *columns), cells, title=panel)
    for note, about in _notes(rows).items():
        print_line(f"  {about}: {note}")


def _published(row: "Row | None") -> str:
    return "" if row is None or row.paper is None else f"{row.paper:g}"


def _mislabelled(rows: "list[Row]") -> bool:
    """Say whether what the paper calls epsilon is less than what is proved of it."""
    return any(row.epsilon is not None and not row.private for row in rows)


def _cost(rows: "list[Row]") -> str:
    """Return what a line costs; a range, where its columns differ."""
    found = [row.epsilon for row in rows if row.epsilon is not None]
    if not found:
        return ""
    ends = dict.fromkeys(f"{end:.3g}" for end in (min(found), max(found)))
    return f"{' to '.join(ends)}, {max(row.delta or 0.0 for row in rows):g}"


def _notes(rows: "list[Row]") -> dict[str, str]:
    """Return each note once, with what it is about: all rows, whole lines, or single columns."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.note:
            found.setdefault(row.note, []).append(row)
    return {note: "all" if len(about) == len(rows) else _about(about, rows) for note, about in found.items()}


def _about(some: "list[Row]", rows: "list[Row]") -> str:
    whole = [
        line
        for line in dict.fromkeys(row.line for row in some)
        if all(row in some for row in rows if row.line == line)
    ]
    single = [f"{row.line}, {row.column}" for row in some if row.line not in whole]
    return "; ".join([*whole, *single])


def _number(row: "Row | Baseline", decimals: int, *, paper: bool = True) -> str:
    ours = "-" if row.ours is None else f"{row.ours:.{decimals}f}"
    if row.low is not None and row.high is not None:
        ours += f" +- {(row.high - row.low) / 2:.{decimals}f}"
    return ours if row.paper is None or not paper else f"{ours} (paper {row.paper:g})"
