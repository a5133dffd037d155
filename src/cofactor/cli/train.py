"""`cofactor train`: files of ratings in, a run folder out."""

import math
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cofactor.cli import choose, options
from cofactor.cli.interrupt import interrupted_between_steps
from cofactor.cli.outcome import (
    as_object,
    print_comparison,
    print_guarantee,
    print_next,
    readable,
    size_of,
)
from cofactor.cli.parties import Gathering, Reading, features_of, item_table, split_off, with_features
from cofactor.cli.settings import BudgetWish, FederationWish, RecipeWish, Wish, with_file, with_run
from cofactor.cli.text import ProgressLine, print_json, print_line
from cofactor.cli.unfinished import Unfinished
from cofactor.errors import BudgetExceeded, ConfigError

if TYPE_CHECKING:
    from cofactor.data.ratings import Ratings
    from cofactor.federation.federation import Federation
    from cofactor.federation.run import Run
    from cofactor.privacy.budget import Budget


def train(
    files: options.PartyFiles,
    split: options.Split = None,
    parties: options.Parties = None,
    epsilon: Annotated[float | None, typer.Option(help="The most that may be learned: the budget.")] = None,
    delta: Annotated[
        float | None,
        typer.Option(help="Probability that epsilon may fail; if left out 1e-6, or 0.1 / units if less."),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Who is protected: user or rating; the recipe's usual, if left out.")
    ] = None,
    adjacency: Annotated[
        str | None, typer.Option(help="Compared with what: empty (if left out), replace or value.")
    ] = None,
    not_private: Annotated[
        bool, typer.Option("--not-private", help="Train parties without noise: nothing is promised.")
    ] = False,
    recipe: Annotated[
        str | None,
        typer.Option(help=f"How to train: {', '.join(choose.RECIPES)}; the recommended one, if left out."),
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="The recipe as its paper sets it, not what works best.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(help="Pooled: sgd, als, bayes or implicit; chosen from the data if left out."),
    ] = None,
    factors: Annotated[int | None, typer.Option(help="Length of each vector.")] = None,
    rounds: Annotated[int | None, typer.Option(help="How often the parties exchange messages.")] = None,
    local_steps: Annotated[int | None, typer.Option(help="Steps of a party between two rounds.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Pooled: passes over the ratings.")] = None,
    features: options.Features = False,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with tables recipe, budget and federation.")
    ] = None,
    from_run: Annotated[
        Path | None,
        typer.Option("--from", metavar="RUN", help="Train as that run did, on newer data; ledgers go on."),
    ] = None,
    test_fraction: Annotated[
        float | None, typer.Option(help="Share of each user's ratings kept back to measure the error.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/<time> if left out.")] = None,
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
        recipe=RecipeWish(recipe=recipe, model=model, numbers=numbers, published=published),
        budget=BudgetWish(epsilon=epsilon, delta=delta, unit=unit, adjacency=adjacency),
        federation=FederationWish(split=split, parties=parties, scale=scale),
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
    task = _Task(
        files=tuple(files),
        wish=wish,
        reading=reading,
        test_fraction=test_fraction,
        items=items,
        features=features,
        folder=out or Path("runs") / datetime.now().strftime("%Y-%m-%d-%H%M%S"),
        force=force,
        newer_data=from_run is not None,
        progress=ProgressLine(quiet=quiet or json),
    )
    run = task.train_parties(resume=resume) if choose.is_federated(files, wish) else task.train_pooled(resume)
    _tell(run, task, as_json=json)


@dataclass(frozen=True, kw_only=True)
class _Task:
    """One training: what goes in, and where it goes."""

    files: tuple[Path, ...]
    wish: Wish
    reading: Reading
    test_fraction: float | None
    items: Path | None
    features: bool
    folder: Path
    force: bool
    newer_data: bool
    progress: ProgressLine

    def train_pooled(self, resume: bool) -> "Run":
        """Train in one place."""
        from cofactor.federation.folder import check_free
        from cofactor.recipes.train import train as run_recipe

        if resume:
            raise ConfigError("--resume is for parties that train together; train this file again.")
        # Made here to tell of mistakes before anything is read, and again below, when the data are known.
        choose.pooled_recipe(self.wish.recipe, implicit=self.reading.implicit)
        check_free(self.folder, overwrite=self.force)
        ratings = self.reading.ratings(self.files[0])
        chosen = choose.pooled_recipe(self.wish.recipe, implicit=ratings.implicit)
        table = item_table(self.files[0], self.items)
        known = features_of(table, ratings.item_ids) if self.features else None
        train_part, test_part = split_off(ratings, self.test_fraction, self.wish.seed)
        with interrupted_between_steps(self.progress) as progress:
            run = run_recipe(chosen, train_part, features=known, seed=self.wish.seed, progress=progress)
        run = run.with_titles({} if table is None else table.titles())
        run.save(self.folder, overwrite=self.force)
        return self._measured(run, train_part, test_part)

    def train_parties(self, *, resume: bool) -> "Run":
        """Let parties train together."""
        from cofactor.federation.folder import check_free

        asked = self.wish.federation
        split = choose.checked_split(self.files, asked)
        count = asked.parties or len(self.files)
        recipe = choose.chosen_recipe(self.wish.recipe, split, self.wish.budget.unit, count)
        budget = choose.checked_budget(self.wish, recipe)
        unfinished = Unfinished(self.folder)
        check_free(self.folder, overwrite=self.force)
        unfinished.check(resume=resume, force=self.force)
        gathering = Gathering(
            files=self.files,
            split=split,
            parties=asked.parties,
            test_fraction=self.test_fraction,
            seed=self.wish.seed,
        )
        train_part, test_part = gathering.parts(self.reading)
        table = item_table(self.files[0], self.items)
        if self.features:
            train_part = with_features(train_part, table)
        if budget is not None:
            budget = choose.with_usual_delta(budget, train_part.facts, self.wish.budget)
        with unfinished.kept(resume=resume) as folder, interrupted_between_steps(self.progress) as progress:
            run = self._trained(recipe, train_part, budget, folder, progress)
        run = run.with_titles({} if table is None else table.titles())
        run.save(self.folder, overwrite=self.force)
        unfinished.remove()
        return self._measured(run, train_part, test_part)

    def _trained(
        self, recipe: Any, federation: "Federation", budget: "Budget | None", folder: Path, progress: Any
    ) -> "Run":
        from cofactor.evaluate.joining import pooled_features
        from cofactor.recipes.pooled import Pooled
        from cofactor.recipes.train import train as run_recipe

        try:
            return run_recipe(
                recipe,
                federation,
                budget=budget,
                features=pooled_features(federation) if isinstance(recipe, Pooled) else None,
                seed=self.wish.seed,
                progress=progress,
                folder=folder,
                newer_data=self.newer_data,
            )
        except BudgetExceeded as error:
            raise BudgetExceeded(f"{error} {_what_is_left(federation, budget)}") from None

    def _measured(
        self,
        run: "Run",
        train_part: "Ratings | Federation",
        test_part: "Ratings | Federation | None",
    ) -> "Run":
        """Add scores to a run that is saved already: trouble with measuring must not cost the training."""
        from cofactor.evaluate.compare import compare

        if test_part is None:
            return run
        run = run.with_scores(compare(run, train_part, test_part).as_dict())
        run.save(self.folder, overwrite=True)
        return run


def _what_is_left(federation: "Federation", budget: "Budget | None") -> str:
    """Say what the parties' ledgers still allow, and what to do."""
    from cofactor.privacy.ledger import Ledger

    assert budget is not None
    paths = {party.file: party.ledger_path for party in federation.parties}
    left = [
        f"{file} has epsilon {math.floor(ledger.left * 1000) / 1000:g} of {ledger.budget.epsilon:g}"
        for file, path in paths.items()
        if path is not None and path.exists() and (ledger := Ledger.open(path))
    ]
    larger = f"cofactor budget FILE --epsilon 8 --delta {budget.delta:g} --unit {budget.unit}"
    return (
        "All runs on a file share one budget, which is fixed when its ledger is opened. Left: "
        f"{', '.join(left) or 'nothing'}. Ask for less with --epsilon; or, for files that were never trained "
        f"on, open a larger budget beforehand: {larger}."
    )


def _tell(run: "Run", task: _Task, *, as_json: bool) -> None:
    facts, folder = run.facts(), task.folder
    if as_json:
        print_json(as_object(facts, folder))
        return
    together = facts["together"]
    made = facts["recipe"]["kind"] if together else run.model
    print_line(f"{size_of(facts)}; {made} in {run.seconds:.1f} s")
    if together and together["rounds"]:
        print_line(f"{together['rounds']:,} rounds, {readable(together['bytes'])} in all messages")
    print_comparison(facts["scores"])
    print_guarantee(facts["guarantee"], together)
    if together and together["budget"] and not together["simulated"]:
        print_line(f"What all runs spend is in the ledger beside each file, such as {task.files[0]}.ledger.")
    print_line(f"Saved in {folder}.")
    print_next(*_next_command(run, folder))


def _next_command(run: "Run", folder: Path) -> tuple[object, ...]:
    if run.together is not None and run.together.budget is not None:
        return ("verify", folder)
    party = next(iter(run.homes), None)
    model = run.model if party is None else run.homes[party]
    assert model is not None
    shared = run.together is not None and run.together.split == "vertical"
    return ("recommend", folder, "--user", model.user_ids[0], *(("--party", party) if shared else ()))
