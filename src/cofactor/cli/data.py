"""`cofactor data`: data sets to fetch, and a first look at a file."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cofactor.cli import options
from cofactor.cli.text import ProgressLine, print_facts, print_json, print_line, print_table

app = typer.Typer(no_args_is_help=True, help="Data sets to fetch, and a first look at a file.")


def default_folder() -> Path:
    """Where data sets are kept: COFACTOR_DATA, or the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("COFACTOR_DATA") or cache / "cofactor")


@app.command("list")
def list_known(json: options.Json = False) -> None:
    """List the data sets that cofactor knows, and how each is had."""
    from cofactor.data.datasets import known

    if json:
        print_json({"datasets": [asdict(one) for one in known()]})
        return
    rows = [
        (one.name, one.holds, "cofactor data get" if one.url else "by hand", one.licence) for one in known()
    ]
    print_table(("name", "holds", "how", "licence"), rows)


@app.command("get")
def get_one(
    name: Annotated[str, typer.Argument(help="A name from 'cofactor data list'.")],
    folder: Annotated[Path | None, typer.Option(help="Where to keep it.")] = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Download a data set from its publisher, check it and keep it."""
    from cofactor.data.datasets import find, get

    path = get(name, folder or default_folder(), progress=ProgressLine(quiet=quiet or json))
    if json:
        print_json({"name": name, "path": str(path), "licence": find(name).licence})
    else:
        print_line(f"{path}\nLicence: {find(name).licence}\nNext: cofactor data info {path}")


@app.command("info")
def describe(
    file: options.RatingsFile,
    member: options.Member = None,
    user: options.UserColumn = None,
    item: options.ItemColumn = None,
    rating: options.RatingColumn = None,
    time: options.TimeColumn = None,
    json: options.Json = False,
) -> None:
    """Say what a file of ratings holds."""
    from cofactor.data.datasets import info

    summary = info(file, member=member, user=user, item=item, rating=rating, time=time)
    if json:
        print_json(asdict(summary))
    else:
        facts = asdict(summary) | {
            "density": f"{summary.density:.2%}",
            "ratings_per_user": "least {}, quartiles {}, {}, {}, most {}".format(*summary.ratings_per_user),
        }
        print_facts(facts)
