"""What somebody who holds numbers needs to answer a survey: the plan, a ledger with room, a door, a host."""

from pathlib import Path

from cofactor.errors import BudgetExceeded, ConfigError, LedgerError
from cofactor.federation.books import begin_ledger, ledger_at, reserve
from cofactor.federation.door import Door
from cofactor.federation.host import Host
from cofactor.federation.messages import Message
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.schedule import Release, Schedule
from cofactor.randomness import Random
from cofactor.survey.halves import Answering, Answers, Asking
from cofactor.survey.method import Method
from cofactor.survey.people import People
from cofactor.survey.question import Question

SURVEY: tuple[type[Message], ...] = (Asking, Answers)
"""The messages of a survey."""


def check_fits(question: Question, method: Method) -> None:
    """Refuse a method that does not tell what is asked."""
    if method.gives == "mean" and question.log:
        raise ConfigError("the mean of logarithms is not that of the numbers: ask without log.")


def schedule_of(question: Question, method: Method) -> Schedule:
    """Return what every holder releases: one answer for each person, once."""
    mechanism = method.mechanism
    release = Release(what=question.name, mechanism=mechanism, bound=mechanism.bound, dimension=1)
    return Schedule(releases=(release,), rounds=1)


def kept_by(method: Method) -> Budget:
    """Return the budget that an answer keeps by itself."""
    return Budget(epsilon=method.epsilon, delta=0.0, unit="user", adjacency="replace")


def begun_with(budget: Budget | None, method: Method) -> Budget:
    """Return with what a new ledger is begun; refuse what does not even pay for this answer."""
    if budget is None:
        return kept_by(method)
    if type(budget) is not Budget or budget.personal is not None:
        raise ConfigError("budget must be a Budget that is not personal: a survey asks all alike.")
    if not budget.allows(method.epsilon):
        raise BudgetExceeded(
            f"an answer costs epsilon {method.epsilon:g}, and the budget is {budget.epsilon:g} in all. "
            "Nothing was asked."
        )
    return budget


def has_ledger(holder: People) -> bool:
    """Say whether a ledger lies beside somebody's file."""
    return holder.ledger_path is not None and holder.ledger_path.exists()


def ledger_of(
    holder: People, budget: Budget, schedule: Schedule, session: str, *, newer_data: bool
) -> Ledger:
    """Open a holder's ledger, or begin it, and make sure that it has room for what is not yet answered."""
    ledger = _existing(holder, newer_data=newer_data)
    if ledger is None:
        ledger = begin_ledger(holder, budget, holder.ledger_path)
    reserve(ledger, schedule, session)
    return ledger


def _existing(holder: People, *, newer_data: bool) -> Ledger | None:
    """Open the ledger beside a file, whatever it is for: an answer's cost is the same for all budgets."""
    if holder.ledger_path is None or not holder.ledger_path.exists():
        return None
    ledger = ledger_at(holder.ledger_path, holder, newer_data=newer_data)
    if ledger.budget.personal is not None:
        raise LedgerError(
            f"{holder.ledger_path}: its budget is personal: some users were promised less than others, and a "
            "survey asks all alike. Survey data whose ledger is not personal."
        )
    return ledger


def answering(
    holder: People,
    question: Question,
    method: Method,
    *,
    ledger: Ledger,
    session: str,
    random: Random,
) -> Answering:
    """Return a holder's half, with a door by which one answer passes and no more, whoever asks."""
    door = Door(
        party=holder.name,
        ledger=ledger,
        random=random,
        run=session,
        schedule=schedule_of(question, method),
    )
    return Answering(holder, question, method, door)


def host_of(half: Answering, session: str, file: Path | None = None) -> Host:
    """Return a holder's end of the wire; with a file, it sends the same answer again after a restart."""
    return Host(half, half.door, session=session, kinds=SURVEY, file=file)
