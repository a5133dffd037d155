"""`cofactor segments`: to which cluster each of a party's own users belongs."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from cofactor.cli import options
from cofactor.cli.text import YELLOW, print_json, print_line, print_table
from cofactor.errors import ConfigError

if TYPE_CHECKING:
    from cofactor.cluster.records import Records
    from cofactor.cluster.result import Clustering


def segments(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, as 'cofactor cluster' makes it.")],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A party's table of its users, with the same columns.")
    ],
    party: Annotated[
        str | None, typer.Option(help="Which party FILE belongs to; the one of its name, if left out.")
    ] = None,
    id_: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Column with the ids; found by its name, if left out."),
    ] = None,
    member: options.Member = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv", help="Where to write; beside FILE, as NAME-segments.csv, if left out."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is already there.")] = False,
    json: options.Json = False,
) -> None:
    """Write to which cluster each of a party's users belongs, by the party's own columns: at no cost."""
    from cofactor.cluster.result import Clustering
    from cofactor.cluster.segments import segments_table

    found = Clustering.load(run)
    records = _records(found, run, file, party, id_, member)
    target = out or file.with_name(f"{records.name}-segments.csv")
    _check_target(target, run, file, force=force)
    _write_like(target, segments_table(found, records), file)
    counts = _counts(found, records)
    if json:
        print_json({"run": str(run), "party": records.name, "file": str(target), "local": counts})
        return
    print_table(("", "users"), list(counts.items()), title=f"users of {records.name} (LOCAL)")
    print_line(f"Written to {target}.")
    print_line(
        f"A user's segment follows from her own columns: {target.name} is as private as {file.name}. Keep "
        "it. Training may use it, and charges for it: cofactor train ... --recipe multi-view "
        f"--user-attributes {target}",
        YELLOW,
    )


def _check_target(target: Path, run: Path, file: Path, *, force: bool) -> None:
    """Refuse to write over anything that is not such a file, whatever was asked for."""
    place = target.resolve()
    if target.suffix != ".csv" or place == file.resolve() or run.resolve() in place.parents:
        raise ConfigError(
            f"--out: segments go to a .csv file, not over {file.name} and not into {run}, got {target}."
        )
    if target.exists() and not force:
        raise ConfigError(f"{target} is there already. Name another file with --out, or add --force.")
    if not target.parent.is_dir():
        raise ConfigError(f"--out: there is no folder {target.parent} to write {target.name} to.")


def _write_like(target: Path, text: str, source: Path) -> None:
    """Write a file that nobody else may read than may read the source."""
    mode = source.stat().st_mode & 0o666
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as opened:
        os.fchmod(opened.fileno(), mode)
        opened.write(text)


def _records(
    found: "Clustering", run: Path, file: Path, party: str | None, id: str | None, member: str | None
) -> "Records":
    from cofactor.cluster.records import read_records
    from cofactor.federation.party import named_after

    name, known = party or named_after(file), found.facts.parties
    if name not in known:
        raise ConfigError(
            f"{run} knows no party {name!r}. Say which of {', '.join(known)} {file} belongs to: --party "
            f"{known[0]}."
        )
    place = known.index(name)
    columns = found.facts.columns[place]
    ranges = dict(zip(columns, found.ranges[place], strict=True))
    return read_records(file, id=id, columns=columns, ranges=ranges, name=name, member=member)


def _counts(found: "Clustering", records: "Records") -> dict[str, Any]:
    from cofactor.cluster.method import NOWHERE
    from cofactor.cluster.segments import segment_names

    labels = found.assign(records)
    counts = np.bincount(labels[labels != NOWHERE], minlength=found.clusters).tolist()
    unknown = int((labels == NOWHERE).sum())
    named = dict(zip(segment_names(found.clusters), counts, strict=True))
    return named | ({"none: a number is missing": unknown} if unknown else {})
