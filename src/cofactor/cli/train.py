"""`cofactor train`: a file of ratings in, a run folder out."""

import shlex
import sys
import tomllib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from cofactor.cli import options
from cofactor.cli.interrupt import interrupted_between_steps
from cofactor.cli.text import RED, ProgressLine, print_json, print_line, print_scores
from cofactor.config import from_table, one_of
from cofactor.errors import ConfigError, DataError, did_you_mean

if TYPE_CHECKING:
    from cofactor.data.ratings import Ratings, Scale
    from cofactor.data.tables import Features, Table
    from cofactor.federation.run import Run
    from cofactor.recipes.pooled import Pooled


def train(
    file: options.RatingsFile,
    recipe: Annotated[str, typer.Option(help="How to train. So far: pooled.")] = "pooled",
    model: Annotated[
        str | None, typer.Option(help="sgd, als, bayes or implicit; chosen from the data if left out.")
    ] = None,
    factors: Annotated[int | None, typer.Option(help="Length of each vector.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the ratings.")] = None,
    features: Annotated[
        bool, typer.Option("--features", help="Use public item features (bayes only).")
    ] = False,
    config: Annotated[Path | None, typer.Option(help="TOML file with a [recipe] table.")] = None,
    test_fraction: Annotated[
        float | None, typer.Option(help="Share of each user's ratings kept back to measure the error.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/<time> if left out.")] = None,
    items: Annotated[
        Path | None, typer.Option(help="Table of items with titles, if not beside FILE.")
    ] = None,
    member: options.Member = None,
    user: options.UserColumn = None,
    item: options.ItemColumn = None,
    rating: options.RatingColumn = None,
    time: options.TimeColumn = None,
    scale: Annotated[str | None, typer.Option(metavar="LOW:HIGH", help="Rating scale, such as 1:5.")] = None,
    duplicates: Annotated[str, typer.Option(help="Pairs rated twice: error, last or mean.")] = "error",
    implicit: Annotated[
        bool, typer.Option("--implicit", help="Rows only tell that something happened; no ratings.")
    ] = False,
    seed: options.Seed = 0,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Train a model on a file of ratings and save the run."""
    from cofactor.data.duplicates import Duplicates
    from cofactor.data.files import read_ratings
    from cofactor.federation.folder import check_free
    from cofactor.recipes.train import train as run_recipe

    one_of(("pooled",), recipe=recipe)
    one_of(get_args(Duplicates), duplicates=duplicates)
    # Made here to tell of mistakes before anything is read, and again below, when the data are known.
    _recipe(model, factors, epochs, config, implicit=implicit)
    folder = out or Path("runs") / datetime.now().strftime("%Y-%m-%d-%H%M%S")
    check_free(folder, overwrite=force)
    ratings = read_ratings(
        file,
        user=user,
        item=item,
        rating=rating,
        time=time,
        scale=_scale(scale),
        duplicates=cast(Duplicates, duplicates),
        member=member,
        implicit=implicit,
    )
    chosen = _recipe(model, factors, epochs, config, implicit=ratings.implicit)
    table = _item_table(file, items)
    known = _features(table, ratings) if features else None
    train_part, test_part = _split(ratings, test_fraction, seed)
    with interrupted_between_steps(ProgressLine(quiet=quiet or json)) as progress:
        matrix = None if known is None else known.matrix
        run = run_recipe(chosen, train_part, features=matrix, seed=seed, progress=progress)
    run = run.with_titles({} if table is None else table.titles())
    run.save(folder, overwrite=force)
    if test_part is not None:
        # Saved before, so that trouble with measuring does not cost the training.
        run = _with_scores(run, train_part, test_part)
        run.save(folder, overwrite=True)
    _tell(run, folder, as_json=json)


def _recipe(
    model: str | None, factors: int | None, epochs: int | None, config: Path | None, *, implicit: bool
) -> "Pooled":
    """Build the recipe from a file or from the options; both at once is a contradiction."""
    from cofactor.recipes.pooled import Pooled

    given = {"factors": factors, "epochs": epochs}
    settings = {name: value for name, value in given.items() if value is not None}
    if config is None:
        return Pooled(model=_model(model, settings, implicit=implicit))
    if model is not None or settings:
        raise ConfigError(f"{config} already says how to train. Leave out --model, --factors and --epochs.")
    tables = _toml(config)
    for name in tables:
        if name != "recipe":
            raise ConfigError(f'{config.name} has "{name}".{did_you_mean(name, ["recipe"])} Known: recipe.')
    return from_table(Pooled, tables.get("recipe", {}), f"{config.name} [recipe]")


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}.") from None


def _model(name: str | None, settings: dict[str, Any], *, implicit: bool) -> Any:
    from cofactor.factors.als import ALS
    from cofactor.factors.bayes import Bayes
    from cofactor.factors.implicit import ImplicitALS
    from cofactor.factors.sgd import SGD

    models = {"sgd": SGD, "als": ALS, "bayes": Bayes, "implicit": ImplicitALS}
    chosen = name or ("implicit" if implicit else "sgd")
    one_of(tuple(models), model=chosen)
    return models[chosen](**settings)


def _scale(text: str | None) -> "Scale | None":
    from cofactor.data.ratings import Scale

    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise ConfigError(f"--scale must look like 1:5 (lowest, colon, highest), got {text!r}.") from None
    return Scale(low, high)


def _item_table(file: Path, items: Path | None) -> "Table | None":
    from cofactor.data.tables import items_beside, read_items

    if items is not None:
        return read_items(items)
    try:
        return items_beside(file)
    except DataError as error:
        print(f"going on without titles: {error}", file=sys.stderr)
        return None


def _features(table: "Table | None", ratings: "Ratings") -> "Features":
    if table is None:
        raise ConfigError("--features needs a table of items. Name one with --items.")
    from cofactor.data.prepare import item_features

    return item_features(table, ratings.item_ids)


def _split(ratings: "Ratings", fraction: float | None, seed: int) -> "tuple[Ratings, Ratings | None]":
    from cofactor.data.split import by_fraction

    return (ratings, None) if fraction is None else by_fraction(ratings, test=fraction, seed=seed)


def _with_scores(run: "Run", train_part: "Ratings", test_part: "Ratings") -> "Run":
    from cofactor.evaluate.compare import compare

    return run.with_scores(compare(run, train_part, test_part).as_dict())


def _tell(run: "Run", folder: Path, *, as_json: bool) -> None:
    facts = run.facts()
    if as_json:
        print_json(
            {"run": str(folder)} | {name: facts[name] for name in ("guarantee", "scores", "seconds", "data")}
        )
        return
    data = facts["data"]
    size = f"{data['ratings']:,} ratings by {data['users']:,} users of {data['items']:,} items"
    print_line(f"{size}, {data['scale']}; {run.model} in {run.seconds:.1f} s")
    print_scores(facts["scores"])
    print_line(str(run.guarantee), "" if run.guarantee.holds else RED)
    next_words = ("cofactor", "recommend", str(folder), "--user", str(run.model.user_ids[0]))
    print_line(f"Saved in {folder}. Next: {shlex.join(next_words)}")
