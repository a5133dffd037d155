"""`cofactor train`: files of ratings in, a run folder out."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cofactor.cli import choose, options
from cofactor.cli.capturing import audit_of, captured_roles, check_capture, print_captured
from cofactor.cli.mlflow_log import Tracking, checked_tracking, print_logged
from cofactor.cli.outcome import (
    as_object,
    groups_as_object,
    print_comparison,
    print_groups,
    print_guarantee,
    print_next,
    size_of,
    traffic_of,
)
from cofactor.cli.parties import Reading
from cofactor.cli.settings import (
    BudgetWish,
    FederationWish,
    RecipeWish,
    SurveyWish,
    WeightsWish,
    Wish,
    number_or_word,
    with_file,
    with_run,
)
from cofactor.cli.task import Task, Trained
from cofactor.cli.text import YELLOW, ProgressLine, print_json, print_line
from cofactor.errors import ConfigError

if TYPE_CHECKING:
    from cofactor.federation.run import Run


def train(
    files: options.PartyFiles,
    split: options.Split = None,
    parties: options.Parties = None,
    drop: options.Drop = None,
    ratings_each: Annotated[
        int | None,
        typer.Option(
            help="Devices with a file each: about how many ratings one has. A guess, so that none tells; 50 "
            "if left out."
        ),
    ] = None,
    align: options.Align = None,
    among: options.Among = None,
    id_rule: options.IdRule = None,
    epsilon: Annotated[float | None, typer.Option(help="The most that may be learned: the budget.")] = None,
    delta: options.Delta = None,
    unit: options.Unit = None,
    adjacency: options.Adjacency = None,
    not_private: Annotated[
        bool, typer.Option("--not-private", help="Train parties without noise: nothing is promised.")
    ] = False,
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
    user_weights: options.UserWeights = None,
    item_weights: options.ItemWeights = None,
    other_weights: options.OtherWeights = None,
    personal: options.Personal = None,
    threshold: options.Threshold = None,
    choose_cap: options.ChooseCap = None,
    survey_mean: options.SurveyMean = None,
    capture: options.Capture = None,
    config: options.Config = None,
    from_run: Annotated[
        Path | None,
        typer.Option("--from", metavar="RUN", help="Train as that run did, on newer data; ledgers go on."),
    ] = None,
    test_fraction: Annotated[
        float | None, typer.Option(help="Share of each user's ratings kept back to measure the error.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/<time> if left out.")] = None,
    mlflow: options.MLflow = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with a training that was stopped; same options, same files."),
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
    seed: Annotated[
        int | None, typer.Option(help="Seed for splits and initial factors; 0 if left out.", min=0)
    ] = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Train on a file of ratings, or let several parties train together, and save the run."""
    given = {"factors": factors, "rounds": rounds, "local_steps": local_steps, "epochs": epochs}
    numbers = {name: value for name, value in given.items() if value is not None}
    wish = Wish(
        recipe=RecipeWish(
            recipe=recipe,
            model=model,
            numbers=numbers,
            published=published,
            sum=sum_,
            dropout=dropout,
            colluding=colluding,
            decrypters=decrypters,
            scheme=scheme,
        ),
        budget=BudgetWish(epsilon=epsilon, delta=delta, unit=unit, adjacency=adjacency),
        federation=FederationWish(
            split=split,
            parties=parties,
            drop=drop,
            ratings_each=ratings_each,
            align=align,
            among=among,
            id_rule=id_rule,
            scale=scale,
        ),
        weights=WeightsWish(
            users=tuple(user_weights) if user_weights else None,
            items=item_weights,
            personal=personal,
            threshold=threshold,
            otherwise=None if other_weights is None else number_or_word(other_weights),
        ),
        survey=SurveyWish(cap=choose_cap, mean=survey_mean),
        not_private=not_private,
        seed=seed or 0,
    )
    if config is not None and from_run is not None:
        raise ConfigError(f"--from {from_run} already says how to train. Leave out --config.")
    if config is not None:
        wish = with_file(config, wish)
    if from_run is not None:
        wish = with_run(from_run, wish, seed)
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
        folder=out or Path("runs") / datetime.now().strftime("%Y-%m-%d-%H%M%S"),
        force=force,
        newer_data=from_run is not None,
        capture=captured_roles(capture),
        progress=ProgressLine(quiet=quiet or json),
    )
    federated = choose.is_federated(files, wish)
    check_capture(task.capture, files, federated=federated, resume=resume)
    tracking = checked_tracking(mlflow)
    done = task.train_parties(resume=resume) if federated else task.train_pooled(resume)
    _tell(done, task, tracking, as_json=json)


def _tell(done: Trained, task: Task, tracking: Tracking | None, *, as_json: bool) -> None:
    run, folder = done.run, task.folder
    facts = run.facts()
    if as_json:
        beside = {
            "groups": groups_as_object(done.by_group),
            "surveys": [each.as_object() for each in done.asked],
            "captured": facts["captured"],
        }
        if tracking is not None:
            beside["mlflow"] = vars(tracking.log(folder))
        print_json(as_object(facts, folder) | beside)
        return
    together = facts["together"]
    made = facts["recipe"]["kind"] if together else run.model
    print_line(f"{size_of(facts)}; {made} in {run.seconds:.1f} s")
    if together and together["rounds"]:
        print_line(f"{together['rounds']:,} rounds, {traffic_of(together)}")
        _tell_ended(together)
        _tell_lost(run, task.wish.federation.drop)
    for each in done.asked:
        print_line(each.told)
    print_comparison(facts["scores"])
    print_groups(done.by_group)
    print_guarantee(facts["guarantee"], together)
    if together and together["budget"] and not together["simulated"]:
        print_line(f"What all runs spend is in the ledger beside each file, such as {task.files[0]}.ledger.")
    print_line(f"Saved in {folder}.")
    print_captured(facts, folder)
    if tracking is not None:
        print_logged(tracking.log(folder))
    print_next("report", folder, "--open")
    print_next(*_next_command(run, folder))


def _tell_ended(together: Mapping[str, Any]) -> None:
    """Say that somebody ended it before its last round."""
    if together["rounds"] < together["planned_rounds"]:
        planned = together["planned_rounds"]
        print_line(f"It was ended before round {planned:,}, the last one that was planned.", YELLOW)


def _tell_lost(run: "Run", drop: float | None) -> None:
    """Say what was made to go wrong, and which rounds that cost."""
    if drop:
        print_line(f"In each round each device was made to drop out with probability {drop:g}.")
    lost = sum(event.numbers.get("answered") == 0 for event in run.rounds)
    if lost:
        print_line(f"{lost:,} of {len(run.rounds):,} rounds brought nothing: too few were left.", YELLOW)


def _next_command(run: "Run", folder: Path) -> tuple[object, ...]:
    if run.captured is not None:
        return audit_of(run.recipe["kind"], folder)
    if run.together is not None and run.together.budget is not None:
        return ("verify", folder)
    party = next(iter(run.homes), None)
    model = run.model if party is None else run.homes[party]
    assert model is not None
    shared = run.together is not None and run.together.split == "vertical"
    return ("recommend", folder, "--user", model.user_ids[0], *(("--party", party) if shared else ()))
