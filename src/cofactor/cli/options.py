"""Options that several commands share, said once."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Seed = Annotated[int, typer.Option(help="Seed for splits and initial factors.", min=0)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress lines.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a run folder that is already there.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, as 'cofactor train' makes it.")]
RatingsFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Ratings: csv, tsv, parquet, MovieLens or RecBole; plain, .gz or .zip."
    ),
]
Member = Annotated[str | None, typer.Option(help="The right file in a .zip that holds several.")]
UserColumn = Annotated[str | None, typer.Option("--user", metavar="COLUMN", help="Column with the user ids.")]
ItemColumn = Annotated[str | None, typer.Option("--item", metavar="COLUMN", help="Column with the item ids.")]
RatingColumn = Annotated[
    str | None, typer.Option("--rating", metavar="COLUMN", help="Column with the ratings.")
]
TimeColumn = Annotated[str | None, typer.Option("--time", metavar="COLUMN", help="Column with the times.")]
Unit = Annotated[str, typer.Option(help="Who is protected: user (all of somebody's ratings) or rating.")]
Adjacency = Annotated[
    str,
    typer.Option(
        help="Compared with what: empty (the ratings become nothing), replace (any others), "
        "value (other values; who rated what is public)."
    ),
]
