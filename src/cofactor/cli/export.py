"""`cofactor export`: what a run knows of its items, for other programs; or the whole run, for MLflow."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cofactor.cli import options
from cofactor.cli.export_items import ENDINGS, Items, write_items
from cofactor.cli.places import check_file, one_of_these
from cofactor.cli.text import GREEN, RED, YELLOW, print_json, print_line
from cofactor.errors import ConfigError, RunError

if TYPE_CHECKING:
    from cofactor.federation.run import Run

_COLOURS = {"RELEASED": GREEN, "LOCAL": YELLOW, "NOT PRIVATE": RED}


def export(
    run: options.RunFolder,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the items' ids, titles, biases and vectors: a name that ends in .npz, .parquet or "
            ".csv. Never a user's vector, which tells what she likes as her ratings do.",
        ),
    ] = None,
    party: Annotated[
        str | None,
        typer.Option(
            "--party", help="From this party's own model, which is LOCAL: as private as its ratings."
        ),
    ] = None,
    mlflow: options.MLflow = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace a file that is already there; log a run that is logged already."
        ),
    ] = False,
    json: options.Json = False,
) -> None:
    """Write item factors to a file (--out), from the model that everyone may see or from a party's own; or
    log a run to MLflow (--mlflow), as 'cofactor train --mlflow' does.
    """
    if (out is None) == (mlflow is None):
        raise ConfigError("name one of --out FILE, for item factors, and --mlflow URI, for the run's facts.")
    if out is None:
        _log(run, mlflow, party, again=force, as_json=json)
        return
    from cofactor.federation.run import Run

    check_file(out, force=force, endings=ENDINGS)
    items = items_of(Run.load(run), party)
    write_items(items, out)
    _tell(items, out, as_json=json)


def items_of(run: "Run", party: str | None) -> Items:
    """Return the items of the model that everyone may see, or of a party's own, and how private they are."""
    if party is not None:
        return _own_items(run, party)
    if run.model is None:
        raise RunError(
            "this run published no model: what its parties have is LOCAL, and as private as their ratings. "
            f"If you may read those, name a party: --party {one_of_these(list(run.homes)[:5])}."
        )
    if run.guarantee.holds:
        told = "the model that everyone may see. The run's guarantee covers it."
        return Items(model=run.model, protection="RELEASED", told=told)
    why = "no noise was added" if run.guarantee.epsilon is None else "the run's guarantee does not hold"
    told = f"a model that may tell of the ratings: {why}. Treat it as private as they are."
    return Items(model=run.model, protection="NOT PRIVATE", told=told)


def _own_items(run: "Run", party: str) -> Items:
    if not run.homes:
        raise ConfigError("this run has one model for all, and none of a party's own. Leave out --party.")
    told = f"{party}'s own model, which no guarantee covers: as private as its ratings."
    return Items(model=run.model_of("", party), protection="LOCAL", told=told)


def _tell(items: Items, out: Path, *, as_json: bool) -> None:
    count, factors = items.model.item_vectors.shape
    if as_json:
        facts: dict[str, Any] = {"out": str(out), "items": count, "factors": factors}
        print_json(facts | {"protection": items.protection, "from": items.told})
        return
    print_line(f"Written to {out}: {count:,} items, {factors:,} factors each.")
    print_line(f"{items.protection}: from {items.told}", _COLOURS[items.protection])


def _log(run: Path, uri: str | None, party: str | None, *, again: bool, as_json: bool) -> None:
    from cofactor.cli.mlflow_log import checked_tracking, print_logged

    if party is not None:
        raise ConfigError(
            "--party goes with --out: what a party has for itself is never logged. Leave it out."
        )
    tracking = checked_tracking(uri)
    assert tracking is not None
    logged = tracking.log(run, again=again)
    if as_json:
        print_json({"run": str(run), "mlflow": vars(logged)})
    else:
        print_logged(logged)
