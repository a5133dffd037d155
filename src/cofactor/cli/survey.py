"""`cofactor survey`: how private numbers are spread, from one noisy answer of each person."""

import shlex
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from cofactor.cli import options
from cofactor.cli.budget import rounded_down
from cofactor.cli.outcome import print_next
from cofactor.cli.parties import Reading
from cofactor.cli.survey_methods import METHODS, chosen_method
from cofactor.cli.survey_text import Told, as_object, print_survey
from cofactor.cli.text import print_json, print_line
from cofactor.config import fraction, one_of, positive
from cofactor.errors import BudgetExceeded, ConfigError, DataError, Refused

if TYPE_CHECKING:
    from cofactor.privacy.budget import Budget
    from cofactor.survey.people import People
    from cofactor.survey.question import Question
    from cofactor.survey.reading import Missing

_WHY_RANGE = (
    "Between which numbers they lie is agreed on beforehand, and never read off the data: the smallest and "
    "the largest number are somebody's"
)


def survey(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A table with a row for each person: csv, tsv, parquet, MovieLens or RecBole; plain, .gz or "
            ".zip. With --activity or --rating, a file of ratings.",
        ),
    ],
    column: Annotated[
        str | None, typer.Option(help="The column with the numbers that are asked for.")
    ] = None,
    activity: Annotated[
        bool, typer.Option("--activity", help="Of ratings: ask how many ratings each user has.")
    ] = False,
    rating: Annotated[
        bool,
        typer.Option(
            "--rating",
            help="Of ratings: ask each user for one of hers, drawn by chance; --column may name them.",
        ),
    ] = False,
    range_: Annotated[
        str | None,
        typer.Option(
            "--range",
            metavar="LOW:HIGH",
            help="Between which numbers answers lie, such as 0:120. Who lies outside answers as the nearer "
            "end; with --activity, 1 to the number of items if left out.",
        ),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="The most that an answer may tell.")] = None,
    method: Annotated[
        str | None, typer.Option(help=f"How to ask: {', '.join(METHODS)}; chosen if left out.")
    ] = None,
    buckets: Annotated[
        int | None, typer.Option(help="How finely numbers are told apart; chosen if left out.")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Only whole numbers make sense.")] = False,
    log: Annotated[
        bool, typer.Option("--log", help="Buckets as wide as their numbers are large, where a few are huge.")
    ] = False,
    missing: Annotated[
        str | None,
        typer.Option(
            help="People without a number: skip (that they have none is then known) or random (they answer "
            "with one drawn from the range)."
        ),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="COLUMN", help="Column with the ids of people: each once.")
    ] = None,
    item: options.ItemColumn = None,
    member: options.Member = None,
    shuffled: Annotated[
        float | None,
        typer.Option(
            metavar="DELTA",
            help="Tell what answers would cost with this delta if a trusted shuffler stood in between.",
        ),
    ] = None,
    budget_epsilon: Annotated[
        float | None,
        typer.Option(help="If FILE has no ledger yet: all that may ever be spent; --epsilon if left out."),
    ] = None,
    budget_delta: Annotated[
        float | None, typer.Option(help="The delta of that budget; 1e-6 if left out.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.svg", help="Draw the distribution.")] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/<time> if left out.")] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Ask each person in a table for a number, privately, and tell how the numbers are spread."""
    wish = Wish(
        file=file,
        column=column,
        activity=activity,
        rating=rating,
        range=_range(range_),
        epsilon=_checked_epsilon(epsilon),
        method=method,
        buckets=buckets,
        whole=whole or activity,
        log=log,
        missing=cast("Missing | None", missing),
        user=user,
        item=item,
        member=member,
        budget=_budget(budget_epsilon, budget_delta),
        shuffled=shuffled,
        plots=plot is not None,
    )
    folder = out or Path("runs") / datetime.now().strftime("%Y-%m-%d-%H%M%S")
    _check_places(folder, plot, force=force)
    told = wish.asked(folder)
    told.survey.save(folder, overwrite=force)
    if plot is not None:
        plot.write_text(told.svg(), encoding="utf-8")
    if json:
        print_json(as_object(told))
        return
    print_survey(told)
    if plot is not None:
        print_line(f"Drawn in {plot}.")
    print_line(f"Saved in {folder}.")
    print_next("verify", folder)


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
        if self.range is None and not self.activity:
            raise ConfigError(f"name a range: {self._example()}. {_WHY_RANGE}.")
        if self.range is not None:
            chosen_method(self.method, self._question(*self.range), self.epsilon, self.buckets, people=2)
        elif self.method is not None:
            one_of(METHODS, method=self.method)

    @property
    def _of_ratings(self) -> bool:
        return self.activity or self.rating

    def asked(self, folder: Path) -> Told:
        """Read the numbers, and ask."""
        from cofactor.survey.asking import ask

        people, question, missing = self._from_ratings() if self._of_ratings else self._from_table()
        chosen = chosen_method(self.method, question, self.epsilon, self.buckets, len(people.values))
        if self.plots and chosen.gives != "distribution":
            raise ConfigError(
                f"{type(chosen).__name__} tells no distribution that could be drawn. Leave out --plot, or "
                "ask with another --method, such as square-wave."
            )
        begun = people.ledger_path is not None and not people.ledger_path.exists()
        try:
            survey = ask(people, question, method=chosen, budget=self.budget)
        except BudgetExceeded as error:
            raise BudgetExceeded(f"{error} {self._what_is_left(people)}") from None
        return Told(
            survey=survey,
            folder=folder,
            file=self.file,
            missing=missing,
            begun=begun,
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
        low, high = self.range or (1, max(2, party.ratings.item_count))
        return people[0], self._question(low, high), 0

    def _question(self, low: float, high: float) -> "Question":
        from cofactor.survey.question import Question

        name = "ratings of a user" if self.activity else self.column or "rating"
        return Question(name=name, low=low, high=high, whole=self.whole, log=self.log)

    def _example(self) -> str:
        return "--range 1:5" if self.rating else "--range 0:120"

    def _what_is_left(self, people: "People") -> str:
        from cofactor.privacy.ledger import Ledger

        path = people.ledger_path
        ledger = None if path is None or not path.exists() else Ledger.open(path)
        more = shlex.join(["cofactor", "budget", str(self.file), "--epsilon", "4", "--delta", "1e-6"])
        if ledger is None:
            return "Use a smaller --epsilon, or a larger --budget-epsilon."
        return (
            "All that is ever asked about a file shares one budget, which is fixed when its ledger is begun. "
            f"Left: epsilon {rounded_down(ledger.left)} of {ledger.budget.epsilon:g}. Ask for less with "
            "--epsilon; or, for a file that nothing was released about yet, begin with more: survey it with "
            f"--budget-epsilon 4, or open its budget beforehand: {more} --unit user."
        )


def _range(text: str | None) -> tuple[float, float] | None:
    """Read 0:120."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise ConfigError(f"--range must look like 0:120 (lowest, colon, highest), got {text!r}.") from None
    if not low < high:
        raise ConfigError(f"--range must begin below its end, such as 0:120, got {text!r}.")
    return low, high


def _checked_epsilon(epsilon: float | None) -> float:
    if epsilon is None:
        from cofactor.privacy.budget import odds
        from cofactor.privacy.figures import percent

        command = shlex.join(["cofactor", *sys.argv[1:], "--epsilon", "1"])
        raise Refused(
            "say what an answer may tell: --epsilon 1 (who guesses between two numbers of a person is right "
            f"at most {percent(odds(1.0, 0.0))} of the time), or less. Nothing was asked. For example: "
            f"{command}"
        )
    positive(epsilon=epsilon)
    return epsilon


def _budget(epsilon: float | None, delta: float | None) -> "Budget | None":
    """Return with what a new ledger is begun: the terms that training has, too."""
    from cofactor.privacy.budget import Budget

    if epsilon is None:
        if delta is not None:
            raise ConfigError("--budget-delta goes with --budget-epsilon. Name both, or neither.")
        return None
    return Budget(epsilon=epsilon, delta=1e-6 if delta is None else delta, unit="user")


def _check_places(folder: Path, plot: Path | None, *, force: bool) -> None:
    """Refuse places that cannot be written to, before anybody is asked."""
    from cofactor.federation.folder import check_free

    check_free(folder, overwrite=force)
    if plot is not None and not plot.parent.is_dir():
        raise ConfigError(f"--plot: there is no folder {plot.parent} to write {plot.name} to.")
    if plot is not None and plot.suffix.lower() != ".svg":
        raise ConfigError(f"--plot draws SVG. Name {plot.with_suffix('.svg').name} instead of {plot.name}.")
