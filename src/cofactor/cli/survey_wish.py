"""What a survey is asked to be: mistakes are told before anything is read, and then everybody is asked."""

import math
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from cofactor.cli.budget import rounded_down
from cofactor.cli.interrupt import held_back
from cofactor.cli.parties import Reading
from cofactor.cli.survey_methods import METHODS, chosen_method
from cofactor.cli.survey_text import Told
from cofactor.config import fraction, one_of
from cofactor.errors import BudgetExceeded, ConfigError, DataError

if TYPE_CHECKING:
    from cofactor.privacy.budget import Budget
    from cofactor.survey.people import People
    from cofactor.survey.question import Question
    from cofactor.survey.reading import Missing

_WHY_RANGE = (
    "Between which numbers they lie is agreed on beforehand, and never read off the data: the smallest and "
    "the largest number are somebody's"
)


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is to be asked, of whom, and how."""

    file: Path
    column: str | None
    activity: bool
    rating: bool
    range: tuple[float, float] | None
    epsilon: float
    method: str | None
    buckets: int | None
    whole: bool
    log: bool
    missing: "Missing | None"
    user: str | None
    item: str | None
    member: str | None
    budget: "Budget | None"
    shuffled: float | None
    plots: bool

    def __post_init__(self) -> None:
        """Tell of mistakes before anything is read."""
        from cofactor.survey.reading import Missing

        if self.activity and self.rating:
            raise ConfigError("--activity and --rating are two questions. Ask one at a time.")
        if self.activity and self.column is not None:
            raise ConfigError(
                "--activity asks how many ratings users have: leave out --column, or --activity."
            )
        if self.column is None and not self.activity and not self.rating:
            raise ConfigError(
                "say what is asked for: --column age, or, of a file of ratings, --activity or --rating."
            )
        if self.missing is not None:
            one_of(get_args(Missing), missing=self.missing)
        if self.missing is not None and self._of_ratings:
            raise ConfigError("--missing is for tables with a row for each person. Leave it out.")
        if self.item is not None and not self._of_ratings:
            raise ConfigError("--item is for files of ratings, with --activity or --rating. Leave it out.")
        if self.shuffled is not None:
            fraction(shuffled=self.shuffled)
        if self.method is not None:
            one_of(METHODS, method=self.method)
        if self.range is None:
            raise ConfigError(f"name a range: {self._example()}. {_WHY_RANGE}.")
        chosen_method(self.method, self._question(*self.range), self.epsilon, self.buckets, people=2)

    @property
    def _of_ratings(self) -> bool:
        return self.activity or self.rating

    def asked(self, folder: Path, *, overwrite: bool) -> Told:
        """Read the numbers, ask, and save what came: once somebody was asked, nothing stops in between."""
        from cofactor.survey.asking import ask

        people, question, missing = self._from_ratings() if self._of_ratings else self._from_table()
        chosen = chosen_method(self.method, question, self.epsilon, self.buckets, len(people.values))
        if self.plots and chosen.gives != "distribution":
            raise ConfigError(
                f"{type(chosen).__name__} tells no distribution that could be drawn. Leave out --plot, or "
                "ask with another --method, such as square-wave."
            )
        begun = people.ledger_path is not None and not people.ledger_path.exists()
        with held_back(f"Everybody was asked, and the answers are saved: cofactor show {folder}"):
            try:
                survey = ask(people, question, method=chosen, budget=self.budget)
            except BudgetExceeded as error:
                raise BudgetExceeded(f"{error} {self._what_is_left(people)}") from None
            survey.save(folder, overwrite=overwrite)
        return Told(
            survey=survey,
            folder=folder,
            file=self.file,
            missing=missing,
            begun=begun,
            own_budget=self.budget is not None and not begun,
            shuffled=self.shuffled,
        )

    def _from_table(self) -> "tuple[People, Question, int]":
        from cofactor.survey.reading import read_numbers

        assert self.column is not None
        assert self.range is not None
        question = self._question(*self.range)
        found = read_numbers(self.file, self.column, user=self.user, member=self.member)
        return found.people(question=question, missing=self.missing), question, found.missing

    def _from_ratings(self) -> "tuple[People, Question, int]":
        from cofactor.federation.federation import Federation
        from cofactor.federation.party import Party
        from cofactor.survey.people import activity_of, one_rating_each

        reading = Reading(
            user=self.user, item=self.item, rating=self.column, member=self.member, implicit=self.activity
        )
        party = Party.from_csv(self.file, **reading.settings())
        if self.rating and party.ratings.implicit:
            raise DataError(f"{self.file}: its rows only tell that something happened: there are no ratings.")
        alone = Federation.horizontal([party])
        people = (activity_of if self.activity else one_rating_each)(alone)
        assert self.range is not None
        return people[0], self._question(*self.range), 0

    def _question(self, low: float, high: float) -> "Question":
        from cofactor.survey.before_training import ACTIVITY, RATING
        from cofactor.survey.question import Question

        name = ACTIVITY if self.activity else RATING if self.rating else self.column
        assert name is not None
        # A few users have very many ratings: buckets as wide as their numbers are large tell them apart.
        whole, log = self.whole or self.activity, self.log or self.activity
        return Question(name=name, low=low, high=high, whole=whole, log=log)

    def _example(self) -> str:
        if self.activity:
            return "--range 1:5000, up to as many items as there are"
        return "--range 1:5" if self.rating else "--range 0:120"

    def _what_is_left(self, people: "People") -> str:
        from cofactor.privacy.ledger import Ledger

        path = people.ledger_path
        if path is None or not path.exists():
            return "Use a smaller --epsilon, or a larger --budget-epsilon."
        ledger = Ledger.open(path)
        more = math.ceil(2 * (ledger.spent().epsilon + self.epsilon))
        command = shlex.join(["cofactor", "budget", str(self.file), "--epsilon", str(more)])
        left = rounded_down(ledger.left)
        less = "" if left == "0" else " Ask for less with --epsilon."
        return (
            "All that is ever asked about a file shares one budget, which is fixed when its ledger is begun. "
            f"Left: epsilon {left} of {ledger.budget.epsilon:g}.{less} For a file that nothing was released "
            f"about yet, begin with more: survey it with --budget-epsilon {more}, or open its budget "
            f"beforehand: {command} --delta 1e-6 --unit user."
        )
