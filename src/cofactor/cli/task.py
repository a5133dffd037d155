"""One training of the command line: what goes in, the steps that it takes, and where it goes."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.cli import choose
from cofactor.cli.interrupt import interrupted_between_steps
from cofactor.cli.parties import (
    Gathering,
    Reading,
    checked_failures,
    checked_split,
    features_of,
    item_table,
    split_off,
    with_features,
)
from cofactor.cli.settings import Wish
from cofactor.cli.text import ProgressLine
from cofactor.cli.unfinished import Unfinished
from cofactor.errors import BudgetExceeded, ConfigError

if TYPE_CHECKING:
    from cofactor.data.ratings import Ratings
    from cofactor.federation.channel import Failures
    from cofactor.federation.federation import Federation
    from cofactor.federation.run import Run
    from cofactor.privacy.budget import Budget


@dataclass(frozen=True, kw_only=True)
class Task:
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
        split = checked_split(self.files, asked)
        count = asked.parties or len(self.files)
        recipe = choose.chosen_recipe(self.wish.recipe, split, self.wish.budget.unit, count)
        budget = choose.checked_budget(self.wish, recipe)
        failures = checked_failures(asked, split, self.files, recipe)
        unfinished = Unfinished(self.folder)
        check_free(self.folder, overwrite=self.force)
        unfinished.check(resume=resume, force=self.force)
        gathering = Gathering(
            files=self.files,
            split=split,
            parties=asked.parties,
            test_fraction=self.test_fraction,
            seed=self.wish.seed,
            ratings_each=asked.ratings_each,
        )
        train_part, test_part = gathering.parts(self.reading)
        table = item_table(self.files[0], self.items)
        if self.features:
            train_part = with_features(train_part, table)
        if budget is not None:
            budget = choose.with_usual_delta(budget, train_part.facts, self.wish.budget)
        with unfinished.kept(resume=resume) as folder, interrupted_between_steps(self.progress) as progress:
            run = self._trained(recipe, train_part, budget, failures, folder, progress)
        run = run.with_titles({} if table is None else table.titles())
        run.save(self.folder, overwrite=self.force)
        unfinished.remove()
        return self._measured(run, train_part, test_part)

    def _trained(
        self,
        recipe: Any,
        federation: "Federation",
        budget: "Budget | None",
        failures: "Failures",
        folder: Path,
        progress: Any,
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
                failures=failures,
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
