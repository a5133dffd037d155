"""One training of the command line: what goes in, the steps that it takes, and where it goes."""

import math
import sys
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cofactor.cli import choose
from cofactor.cli.attributes import check_attributes, tell_attributes, user_attributes
from cofactor.cli.before_training import Asked, check_surveys, surveyed, with_answers
from cofactor.cli.capturing import with_steps
from cofactor.cli.common_users import checked_alignment, tell_left_out
from cofactor.cli.interrupt import interrupted_between_steps
from cofactor.cli.parties import (
    Gathering,
    Reading,
    checked_failures,
    checked_split,
    item_table,
    public_items,
    split_off,
    tell_public,
)
from cofactor.cli.settings import Wish
from cofactor.cli.sums import tell_slow
from cofactor.cli.text import ProgressLine
from cofactor.cli.unfinished import Unfinished
from cofactor.cli.weights import Stated, check_wish, measured_by_group
from cofactor.errors import BudgetExceeded, ConfigError

if TYPE_CHECKING:
    from cofactor.data.public_items import PublicItems
    from cofactor.data.ratings import Ratings
    from cofactor.evaluate.by_group import ErrorsByGroup
    from cofactor.federation.channel import Failures
    from cofactor.federation.federation import Federation
    from cofactor.federation.run import Run
    from cofactor.privacy.budget import Budget


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What came out of a training."""

    run: "Run"
    by_group: "ErrorsByGroup | None" = None
    """Errors by how much privacy users ask for: shown, and in no folder."""
    asked: tuple[Asked, ...] = ()
    """Surveys that came before, for the sake of settings."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One training: what goes in, and where it goes."""

    files: tuple[Path, ...]
    wish: Wish
    reading: Reading
    test_fraction: float | None
    items: Path | None
    public_items: str | None
    """A file, or "auto"; nothing is declared to be public if left out."""
    user_attributes: str | None
    """A file, or "auto"; users have no attributes if left out."""
    folder: Path
    force: bool
    newer_data: bool
    progress: ProgressLine
    capture: tuple[str, ...] = ()
    """Roles whose messages are kept."""

    def train_pooled(self, resume: bool) -> "Trained":
        """Train in one place."""
        from cofactor.federation.folder import check_free
        from cofactor.recipes.train import train as run_recipe

        if resume:
            raise ConfigError("--resume is for parties that train together; train this file again.")
        # Made here to tell of mistakes before anything is read, and again below, when the data are known.
        planned = choose.pooled_recipe(self.wish.recipe, implicit=self.reading.implicit)
        check_attributes(planned, self.user_attributes, self.wish.coding)
        check_free(self.folder, overwrite=self.force)
        ratings = self.reading.ratings(self.files[0])
        chosen = choose.pooled_recipe(self.wish.recipe, implicit=ratings.implicit)
        table = item_table(self.files[0], self.items)
        public = self._public(ratings.item_ids)
        known = None if public is None else public.matching_rows(ratings.item_ids, owner="the ratings")
        train_part, test_part = split_off(ratings, self.test_fraction, self.wish.seed)
        with interrupted_between_steps(self.progress) as progress:
            run = run_recipe(chosen, train_part, features=known, seed=self.wish.seed, progress=progress)
        run = run.with_titles({} if table is None else table.titles())
        run.save(self.folder, overwrite=self.force)
        return Trained(run=self._measured(run, train_part, test_part, public))

    def train_parties(self, *, resume: bool) -> "Trained":
        """Let parties train together."""
        from cofactor.federation.folder import check_free

        asked = self.wish.federation
        split = checked_split(self.files, asked)
        count = asked.parties or len(self.files)
        recipe = choose.chosen_recipe(self.wish.recipe, split, self.wish.budget.unit, count)
        budget = choose.checked_budget(self.wish, recipe)
        budget, stated = self._weighed(budget, recipe)
        check_surveys(recipe, self.wish.survey, split, budget)
        failures = checked_failures(asked, split, self.files, recipe)
        alignment = checked_alignment(asked, split, self.files)
        check_attributes(recipe, self.user_attributes, self.wish.coding)
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
            alignment=alignment,
        )
        train_part, test_part = gathering.parts(self.reading)
        train_part = with_steps(train_part) if self.capture else train_part
        if not self.progress.quiet:
            tell_left_out(train_part)
        table = item_table(self.files[0], self.items)
        public = self._public(train_part.item_ids, coded=getattr(recipe, "coded_items", False))
        if public is not None:
            train_part = train_part.with_public_items(public)
            _tell_unused(recipe)
        recipe = _with_declared(recipe, public)
        train_part = self._with_attributes(train_part)
        if stated is not None:
            train_part = self._with_weights(train_part, stated)
        if not self.progress.quiet:
            tell_slow(recipe, train_part.facts)
        if budget is not None:
            budget = choose.with_delta(budget, recipe, train_part.facts, self.wish.budget)
        with unfinished.kept(resume=resume) as folder, interrupted_between_steps(self.progress) as progress:
            answers = self._surveyed(train_part, budget, unfinished)
            recipe = with_answers(recipe, answers)
            run = self._trained(recipe, train_part, budget, failures, folder, progress, answers)
        run = run.with_titles({} if table is None else table.titles())
        run.save(self.folder, overwrite=self.force)
        unfinished.remove()
        run = self._measured(run, train_part, test_part, None)
        by_group = measured_by_group(run, train_part, test_part, stated)
        return Trained(run=run, by_group=by_group, asked=tuple(answers))

    def _weighed(self, budget: "Budget | None", recipe: Any) -> "tuple[Budget | None, Stated | None]":
        """Let the budget be personal where weights are named."""
        usual = *getattr(recipe, "takes_weights", ()), "user"
        check_wish(recipe, self.wish.weights, usual[0] if budget is None else budget.unit, len(self.files))
        stated = Stated.read(self.wish.weights, self.wish.seed)
        if stated is None:
            return budget, None
        if budget is None:
            raise ConfigError("weights allow a part of a budget, and --not-private has none. Leave one out.")
        return stated.budget(budget), stated

    def _with_weights(self, federation: "Federation", stated: Stated) -> "Federation":
        """Give the parties their users' weights, and say what is public of them."""
        weighed = stated.given_to(federation)
        if not self.progress.quiet:
            stated.tell(weighed)
        return weighed

    def _with_attributes(self, federation: "Federation") -> "Federation":
        """Give the parties their users' attributes, and say how these are coded."""
        found = user_attributes(self.user_attributes, self.files[0], self.wish.coding)
        if found is None:
            return federation
        described = federation.with_user_attributes(found)
        if not self.progress.quiet:
            tell_attributes(found, described)
        return described

    def _public(self, ids: Any, *, coded: bool = False) -> "PublicItems | None":
        """Return what is declared to be public about the items, and say so."""
        found = public_items(self.public_items, self.files[0], self.items, coded=coded)
        if found is not None and not self.progress.quiet:
            tell_public(found, ids)
        return found

    def _surveyed(
        self, federation: "Federation", budget: "Budget | None", unfinished: Unfinished
    ) -> list[Asked]:
        """Ask users what settings need, unless it was asked before the training was stopped."""
        try:
            place = unfinished.surveys
            return surveyed(self.wish.survey, federation, budget, place, newer_data=self.newer_data)
        except BudgetExceeded as error:
            raise BudgetExceeded(f"{error} {_what_is_left(federation, budget)}") from None

    def _trained(
        self,
        recipe: Any,
        federation: "Federation",
        budget: "Budget | None",
        failures: "Failures",
        folder: Path,
        progress: Any,
        answers: list[Asked],
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
                folder=None if self.capture else folder,
                newer_data=self.newer_data,
                surveys=[each.survey for each in answers],
                capture=self.capture or None,
            )
        except BudgetExceeded as error:
            raise BudgetExceeded(f"{error} {_what_is_left(federation, budget)}") from None

    def _measured(
        self,
        run: "Run",
        train_part: "Ratings | Federation",
        test_part: "Ratings | Federation | None",
        public: "PublicItems | None",
    ) -> "Run":
        """Add scores to a run that is saved already: trouble with measuring must not cost the training."""
        from cofactor.evaluate.compare import compare

        if test_part is None:
            return run
        start = time.perf_counter()
        scores = compare(run, train_part, test_part, public_items=public).as_dict()
        run = run.with_scores(scores, time.perf_counter() - start)
        run.save(self.folder, overwrite=True)
        return run


def _with_declared(recipe: Any, public: "PublicItems | None") -> Any:
    """Give a recipe of an earlier run, which only names what was public, what is declared now."""
    stated = getattr(recipe, "public_items", None)
    if stated is None:
        return recipe
    if public is None:
        raise ConfigError(
            f"this recipe uses what {stated.source} says about the items. Declare it to be public again: "
            f"--public-items {stated.source}, wherever that lies now."
        )
    return replace(recipe, public_items=public)


def _tell_unused(recipe: Any) -> None:
    """Say so if a recipe makes no use of public items: they are then for the comparison only."""
    from cofactor.factors.bayes import Bayes
    from cofactor.recipes.pooled import Pooled

    known = {each.name for each in fields(recipe)}
    uses = "public_items" in known or isinstance(getattr(recipe, "home", None), Bayes)
    if not (uses or isinstance(recipe, Pooled)):
        print(
            f"{type(recipe).__name__} makes no use of public items: --public-items only adds what users have "
            "by themselves to the comparison.",
            file=sys.stderr,
        )


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
    larger += "" if budget.adjacency == "empty" else f" --adjacency {budget.adjacency}"
    larger += " --personal" if budget.personal == "stretching" else ""
    return (
        "All runs on a file share one budget, which is fixed when its ledger is opened. Left: "
        f"{', '.join(left) or 'nothing'}. Ask for less with --epsilon; or, for files that were never trained "
        f"on, open a larger budget beforehand: {larger}."
    )
