"""`cofactor recommend`: the best items for a user the model knows, for one it has never met, or for all."""

import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cofactor.cli import newcomers, options
from cofactor.cli.places import check_file
from cofactor.cli.recommend_all import ENDINGS, Lists, lists_of_all, lists_of_new, write_lists
from cofactor.cli.text import print_json, print_line, print_table
from cofactor.errors import ConfigError, DataError

if TYPE_CHECKING:
    from cofactor.data.ids import Id
    from cofactor.factors.model import Factors, Recommendation
    from cofactor.federation.run import Run

Best = Mapping["Id", list["Recommendation"]]
NEW = "new user"
HOW_CHOSEN = (
    "In order of the score: how likely she is to choose the item (how many did, and what kinds of items she "
    "has rated)"
)
AND_RATED = ", plus a part for the predicted rating. By the rating alone, what few have seen comes first."


def recommend(
    run: options.RunFolder,
    user: Annotated[str | None, typer.Option("--user", help="Id of a user the model knows.")] = None,
    rate: Annotated[
        list[str] | None,
        typer.Option("--rate", metavar="ITEM=RATING", help="A rating by a new user; repeat for more."),
    ] = None,
    ratings: Annotated[Path | None, typer.Option(metavar="FILE", help="Ratings by new users.")] = None,
    attributes: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=VALUE,...",
            help="What a new user tells about herself, such as age=31,gender=F. It is stored nowhere.",
        ),
    ] = None,
    new_items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A table of items that nobody has rated: the best of them are shown as well."
        ),
    ] = None,
    party: Annotated[
        str | None,
        typer.Option("--party", help="The party whose own model to use, where users are at several."),
    ] = None,
    n: Annotated[int, typer.Option("-n", "--n", help="How many items.", min=1)] = 10,
    include_seen: Annotated[bool, typer.Option("--include-seen", help="Items already rated, too.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the lists of all users (or of all new ones, with --ratings) to a table: a name that "
            "ends in .parquet or .csv.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a table that is already there.")] = False,
    json: options.Json = False,
) -> None:
    """Recommend items to a known user (--user) or to a new one: from her ratings (--rate or --ratings), or
    from her attributes (--attributes); or to all users, into a table (--out).
    """
    from cofactor.federation.run import Run

    if out is not None:
        one = {"--user": user, "--rate": rate, "--attributes": attributes, "--new-items": new_items}
        said = [name for name, value in one.items() if value]
        if said:
            raise ConfigError(f"--out writes lists of all users. Leave out {', '.join(said)}, or --out.")
        check_file(out, force=force, endings=ENDINGS)
        write_lists(_all_lists(Run.load(run), party, ratings, n, include_seen), out, as_json=json)
        return
    if force:
        raise ConfigError("--force replaces a table, and none is written without --out. Leave it out.")
    if sum(choice is not None for choice in (user, rate or None, ratings, attributes)) != 1:
        raise ConfigError(
            "name one of --user ID, --rate ITEM=RATING (as often as needed), --ratings FILE or --attributes "
            "NAME=VALUE,...; or --out FILE for lists of all users"
        )
    loaded = Run.load(run)
    if user is not None:
        model = _model_of(loaded, user, party)
    else:
        model = _model_for_strangers(loaded, party, rated=attributes is None)
    new: frozenset[str] | None = None
    if new_items is not None:
        model, new = newcomers.with_new_items(model, new_items)
    models = _models_by_user(model, user, rate, ratings, attributes)
    lists = {name: own.recommend(name, n, include_seen=include_seen) for name, own in models.items()}
    of_new: Best = {}
    if new is not None:
        of_new = {
            name: newcomers.best_new(own, name, new, n, include_seen=include_seen)
            for name, own in models.items()
        }
    _tell(lists, of_new, as_json=json, chosen=model.choice is not None)


def _all_lists(run: "Run", party: str | None, ratings: Path | None, n: int, include_seen: bool) -> Lists:
    if ratings is None:
        return lists_of_all(run, party, n=n, include_seen=include_seen)
    model = _model_for_strangers(run, party, rated=True)
    return lists_of_new(run, party, model, _from_file(model, ratings), n=n, include_seen=include_seen)


def _models_by_user(
    model: "Factors", user: str | None, rate: list[str] | None, ratings: Path | None, attributes: str | None
) -> dict["Id", "Factors"]:
    """Return, for each of those to recommend to, a model that knows her."""
    if user is not None:
        return {model.user_ids[model.user_row(user)].item(): model}
    if attributes is not None:
        return {NEW: newcomers.person(model, attributes, NEW)}
    new_users = {NEW: _parsed(rate)} if rate else _from_file(model, ratings)
    return {name: model.fold_in(own, user=name) for name, own in new_users.items()}


def _model_of(run: "Run", user: str, party: str | None) -> "Factors":
    if party is None and run.together is not None and run.together.split == "vertical":
        raise ConfigError(f"all parties have the same users. Name one with --party: {', '.join(run.homes)}.")
    return run.model_of(user, party)


def _model_for_strangers(run: "Run", party: str | None, *, rated: bool) -> "Factors":
    """Return the common model, or one party's own; new users may come to any, some with ratings."""
    if party is not None:
        return run.model_of("", party)
    if run.model is None or (rated and run.homes and run.model.home is None):
        raise ConfigError(
            f"this run has no common model for new users. Name one with --party: {', '.join(run.homes)}."
        )
    return run.model


def _parsed(pairs: list[str]) -> dict["Id", float]:
    ratings: dict[Id, float] = {}
    for pair in pairs:
        item, _, value = pair.rpartition("=")
        if item in ratings:
            raise ConfigError(f"--rate names item {item} twice. Give one rating an item.")
        try:
            ratings[item] = float(value)
        except ValueError:
            item = ""
        if not item:
            raise ConfigError(f"--rate must look like ITEM=RATING, for example 17=4.5; got {pair!r}.")
    return ratings


def _from_file(model: "Factors", path: Path | None) -> dict["Id", dict["Id", float]]:
    """Read new users' ratings; items the model does not know cannot help and are counted."""
    from cofactor.data.files import read_ratings

    assert path is not None
    ratings = read_ratings(path, scale=model.scale)
    known = {str(item): item for item in model.item_ids.tolist()}
    by_user: dict[Id, dict[Id, float]] = defaultdict(dict)
    unknown = 0
    for row, column, value in zip(ratings.users, ratings.items, ratings.values, strict=True):
        item = str(ratings.item_ids[column])
        if item in known:
            by_user[ratings.user_ids[row].item()][known[item]] = float(value)
        unknown += item not in known
    if unknown:
        print(
            f"{path.name}: {unknown:,} ratings of items the model does not know are left out", file=sys.stderr
        )
    if not by_user:
        raise DataError(f"{path} holds no rating of an item that the model knows. Check its ids.")
    return by_user


def _tell(lists: Best, of_new: Best, *, as_json: bool, chosen: bool) -> None:
    if as_json:
        print_json({"recommendations": [_facts(user, lists, of_new) for user in lists]})
        return
    for user, items in lists.items():
        whom = "the new user" if user == NEW else f"user {user}"
        _print(f"for {whom}", items, chosen=chosen)
        if user in of_new:
            _print(f"new items for {whom}", of_new[user], chosen=chosen)
    shown = [best for items in lists.values() for best in items]
    if chosen and shown:
        print_line(HOW_CHOSEN + ("." if shown[0].rating is None else AND_RATED))


def _facts(user: "Id", lists: Best, of_new: Best) -> dict[str, object]:
    told: dict[str, object] = {"user": user, "items": [vars(best) for best in lists[user]]}
    return told | ({"new_items": [vars(best) for best in of_new[user]]} if user in of_new else {})


def _print(title: str, items: list["Recommendation"], *, chosen: bool) -> None:
    """Print the best items for somebody: with what they are in order of, and how she would rate them."""
    if not items:
        print_line(f"{title}: every item has been rated already. Add --include-seen to see them.")
        return
    # Without a choice, the score of an explicit model is the predicted rating.
    rated = items[0].rating is not None
    names = [name for name, shown in (("score", chosen or not rated), ("rating", rated)) if shown]
    rows = [
        (rank, str(best.item), best.title or "", *(getattr(best, name) for name in names))
        for rank, best in enumerate(items, 1)
    ]
    print_table(("", "item", "title", *names), rows, title=title)
