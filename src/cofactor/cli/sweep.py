"""`cofactor sweep`: one file, many trainings, by budget and by seed, and one table of them all."""

import json as to_json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from cofactor.cli import choose, options
from cofactor.cli.mlflow_log import Logged, NotLogged, Tracking, checked_tracking
from cofactor.cli.parties import Reading
from cofactor.cli.settings import BudgetWish, FederationWish, RecipeWish, Wish, with_file
from cofactor.cli.sweep_folder import SweepFolder
from cofactor.cli.sweep_grid import Cell, cells_of, check_simulated, check_wish, wish_of
from cofactor.cli.sweep_text import Rows, print_sweep, sweep_as_object
from cofactor.cli.task import Task
from cofactor.cli.text import ProgressLine, print_json
from cofactor.cli.unfinished import Unfinished
from cofactor.config import fraction


def sweep(
    files: options.PartyFiles,
    epsilons: Annotated[
        str,
        typer.Option(
            metavar="LIST", help="Budgets to train with, such as 0.5,1,2,none; none: without noise."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for a run folder of each training, and the table.")],
    seeds: Annotated[
        str, typer.Option(metavar="LIST", help="Seeds for splits and initial factors, such as 0,1,2.")
    ] = "0",
    split: options.Split = None,
    parties: options.Parties = None,
    drop: options.Drop = None,
    delta: options.Delta = None,
    unit: options.Unit = None,
    adjacency: options.Adjacency = None,
    recipe: options.Recipe = None,
    published: options.Published = False,
    sum_: options.Sum = None,
    dropout: options.Dropout = None,
    colluding: options.Colluding = None,
    decrypters: options.Decrypters = None,
    scheme: options.Scheme = None,
    model: options.Model = None,
    factors: options.Factors = None,
    rounds: options.Rounds = None,
    local_steps: options.LocalSteps = None,
    epochs: options.Epochs = None,
    public_items: options.PublicItems = None,
    user_attributes: options.UserAttributes = None,
    config: options.Config = None,
    test_fraction: Annotated[
        float, typer.Option(help="Share of each user's ratings kept back to measure the error.")
    ] = 0.1,
    mlflow: options.MLflow = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with a sweep: what is done is not done again. Lists may grow."),
    ] = False,
    items: options.Items = None,
    member: options.Member = None,
    user: options.UserColumn = None,
    item: options.ItemColumn = None,
    rating: options.RatingColumn = None,
    time: options.TimeColumn = None,
    scale: options.Scale = None,
    duplicates: options.Duplicates = "error",
    implicit: options.Implicit = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Train on one file with each budget and each seed, as 'cofactor train' does, and put all errors into one
    table. A simulation: nobody's ledger is charged, and which run is best is not covered by any guarantee.
    """
    check_simulated(files)
    given = {"factors": factors, "rounds": rounds, "local_steps": local_steps, "epochs": epochs}
    wish = Wish(
        recipe=RecipeWish(
            recipe=recipe,
            model=model,
            numbers={name: value for name, value in given.items() if value is not None},
            published=published,
            sum=sum_,
            dropout=dropout,
            colluding=colluding,
            decrypters=decrypters,
            scheme=scheme,
        ),
        budget=BudgetWish(delta=delta, unit=unit, adjacency=adjacency),
        federation=FederationWish(split=split, parties=parties, drop=drop, scale=scale),
    )
    wish = wish if config is None else with_file(config, wish)
    reading = Reading(
        user=user,
        item=item,
        rating=rating,
        time=time,
        scale=wish.federation.scale,
        duplicates=duplicates,
        member=member,
        implicit=implicit,
    )
    task = Task(
        files=tuple(files),
        wish=wish,
        reading=reading,
        test_fraction=test_fraction,
        items=items,
        public_items=public_items,
        user_attributes=user_attributes,
        folder=out,
        force=False,
        newer_data=False,
        progress=ProgressLine(quiet=quiet or json),
    )
    run_sweep(
        Sweep(task=task, cells=cells_of(epsilons, seeds), folder=SweepFolder(path=out), tracking_uri=mlflow),
        resume=resume,
        as_json=json,
    )


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """All trainings of a sweep, and where they go."""

    task: Task
    """One of them, budget, seed and folder apart."""
    cells: Sequence[Cell]
    folder: SweepFolder
    tracking_uri: str | None

    def asked(self) -> dict[str, Any]:
        """Return what all trainings have in common, as sweep.json keeps it."""
        wish, file = self.task.wish, self.task.files[0]
        seen = file.stat() if file.exists() else None
        stated = {
            "file": [file.name, seen and seen.st_size, seen and seen.st_mtime_ns],
            "recipe": {name: value for name, value in vars(wish.recipe).items() if name != "where"},
            **{name: vars(getattr(wish, name)) for name in ("budget", "federation", "weights", "survey")},
            "attributes": wish.coding,
            "reading": vars(self.task.reading),
            **{
                name.replace("_", "-"): getattr(self.task, name)
                for name in ("test_fraction", "items", "public_items", "user_attributes")
            },
        }
        found: dict[str, Any] = to_json.loads(to_json.dumps(stated, default=_plain))
        return found

    def train(self, cell: Cell) -> None:
        """Do one training, or go on with it; its run folder is complete when this returns."""
        place = self.folder.place(cell)
        wish = wish_of(self.task.files, self.task.wish, cell)
        # A run whose errors were not measured any more is trained again: nobody has seen it.
        task = replace(self.task, wish=wish, folder=place, force=(place / "run.json").exists())
        if choose.is_federated(task.files, wish):
            task.train_parties(resume=Unfinished(place).exists)
        else:
            task.train_pooled(resume=False)


def run_sweep(sweep: Sweep, *, resume: bool, as_json: bool) -> None:
    """Do what is not done yet, keep the table up to date, and tell what came out."""
    task, folder = sweep.task, sweep.folder
    assert task.test_fraction is not None
    fraction(test_fraction=task.test_fraction)
    check_wish(task.files, task.wish, sweep.cells)
    tracking = checked_tracking(sweep.tracking_uri)
    folder.begin(sweep.asked(), sweep.cells, resume=resume)
    logged: list[Logged] = []
    lost: list[NotLogged] = []
    rows: Rows = ()
    with folder.kept():
        for number, cell in enumerate(sweep.cells, 1):
            if not folder.done(cell):
                _say(f"{cell} ({number} of {len(sweep.cells)})", task)
                sweep.train(cell)
            rows = folder.write_table().to_dicts()
            _log(tracking, folder.place(cell), logged, lost)
    _tell(folder, rows, logged if tracking else None, lost, as_json=as_json)


def _tell(
    folder: SweepFolder,
    rows: Rows,
    logged: Sequence[Logged] | None,
    lost: Sequence[NotLogged],
    *,
    as_json: bool,
) -> None:
    """Print the table; that some run did not reach MLflow is an error, but not before that."""
    if not as_json:
        print_sweep(folder, rows, logged)
    if lost:
        raise NotLogged(f"{len(lost):,} runs were not logged. {lost[0]}")
    if as_json:
        print_json(sweep_as_object(folder, rows, logged))


def _log(tracking: Tracking | None, run: Path, logged: list[Logged], lost: list[NotLogged]) -> None:
    """Log a run; what MLflow does not take must not cost the trainings that are still to come."""
    if tracking is None:
        return
    try:
        logged.append(tracking.log(run))
    except NotLogged as error:
        lost.append(error)


def _say(text: str, task: Task) -> None:
    if not task.progress.quiet:
        print(text, file=sys.stderr, flush=True)


def _plain(value: object) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)
