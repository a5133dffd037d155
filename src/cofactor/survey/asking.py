"""`ask`: one question, one answer from each person, one estimate."""

import secrets
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from cofactor.config import as_table
from cofactor.errors import BudgetExceeded, ConfigError, DataError, LedgerError, Refused
from cofactor.federation.books import all_released, begin_ledger, ledger_at, released
from cofactor.federation.channel import NO_FAILURES, Failures, InProcess
from cofactor.federation.door import Door
from cofactor.federation.drive import Round, Session, drive
from cofactor.federation.halves import Split
from cofactor.federation.host import Host
from cofactor.federation.run import PartyFacts, Together
from cofactor.federation.transcript import Transcript
from cofactor.federation.view import Capture, Truth, View
from cofactor.privacy.assumptions import Assumption
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Event
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.schedule import Release, Schedule
from cofactor.randomness import Random, SecureRandom, own_random
from cofactor.survey.halves import Adding, Answering, Answers, Asking
from cofactor.survey.method import Method
from cofactor.survey.methods import usual_method
from cofactor.survey.people import People
from cofactor.survey.question import Question
from cofactor.survey.result import Survey

_SECURE = SecureRandom()
_EACH_ANOTHER = Assumption(
    what="every number is another person's",
    met="where a table has a column of ids, nobody is in it twice; otherwise that is taken on trust from "
    "whoever holds the numbers",
)


def ask(
    people: People | Sequence[People],
    question: Question,
    *,
    epsilon: float | None = None,
    method: Method | None = None,
    budget: Budget | None = None,
    random: Random = _SECURE,
    failures: Failures = NO_FAILURES,
    newer_data: bool = False,
    doubts: Sequence[str] = (),
    capture: Capture | None = None,
) -> Survey:
    """Ask everybody once, and return what the answers tell.

    Say what an answer may cost, `epsilon`, or name the `method`, which has its own. A holder with a file has
    a ledger beside it, which is charged; where there is none yet, `budget` says what may be spent in all, by
    default this answer and nothing more. `newer_data` says that files may have grown since. `doubts` are for
    the guarantee: what its reader should know, such as that a range was read off the data. `capture` takes
    down what some roles see, for attacks on made-up people.
    """
    holders = _checked(people)
    if failures.devices:
        raise ConfigError("phones that drop out by chance are no failures of a survey: leave them out of it.")
    chosen = _method(question, epsilon, method, sum(len(holder.values) for holder in holders))
    _check_capture(capture, holders)
    created, start = datetime.now(UTC), time.perf_counter()
    schedule = _schedule(question, chosen)
    ledgers = _ledgers(holders, budget, chosen, schedule, newer_data=newer_data)
    session = replace(_session(holders), capture=capture)
    doors = _doors(ledgers, schedule, session.name, random)
    halves = {each.name: Answering(each, question, chosen, doors[each.name]) for each in holders}
    adding = Adding(question, chosen, {holder.name: len(holder.values) for holder in holders})
    unanswered = _driven(adding, halves, session, ledgers, failures)
    events = tuple(all_released(ledgers, session.name))
    if capture is not None:
        capture.end(_frame(holders, chosen), Truth())
    return Survey(
        question=question,
        method=chosen,
        tally=adding.tally(),
        answered=adding.answered,
        guarantee=_guarantee(chosen, events, adding.answered, doubts),
        together=_together(chosen, session, holders, ledgers),
        events=events,
        created=created.isoformat(timespec="seconds"),
        seconds=time.perf_counter() - start,
        unanswered=unanswered,
        outside={name: half.outside for name, half in halves.items()},
    )


def _checked(people: People | Sequence[People]) -> list[People]:
    holders = [people] if isinstance(people, People) else list(people)
    if not holders or not all(isinstance(holder, People) for holder in holders):
        raise ConfigError("ask takes People, or a list of them.")
    name, times = Counter(holder.name for holder in holders).most_common(1)[0]
    if times > 1:
        raise ConfigError(f"{times} holders are called {name!r}. Give each a name of its own.")
    files = Counter(holder.ledger_path.resolve() for holder in holders if holder.ledger_path is not None)
    if files and max(files.values()) > 1:
        raise ConfigError("two holders have the same file: its people would answer twice. Name it once.")
    empty = next((holder.name for holder in holders if not len(holder.values)), None)
    if empty is not None:
        raise DataError(f"{empty}: there is nobody to ask. Leave it out.")
    return holders


def _method(question: Question, epsilon: float | None, method: Method | None, people: int) -> Method:
    if (epsilon is None) == (method is None):
        raise ConfigError("say either what an answer may cost (epsilon=1.0), or the method, with its own.")
    if method is not None and not hasattr(method, "tally"):
        raise ConfigError(f"method must be a method, such as SquareWave(epsilon=1.0), got {method!r}.")
    chosen = method or usual_method(question, epsilon or 0.0, people)
    if chosen.gives == "mean" and question.log:
        raise ConfigError("the mean of logarithms is not that of the numbers: ask without log.")
    return chosen


def _schedule(question: Question, method: Method) -> Schedule:
    mechanism = method.mechanism
    release = Release(what=question.name, mechanism=mechanism, bound=mechanism.bound, dimension=1)
    return Schedule(releases=(release,), rounds=1)


def _budget(method: Method) -> Budget:
    """Return the budget that an answer keeps by itself."""
    return Budget(epsilon=method.epsilon, delta=0.0, unit="user", adjacency="replace")


def _enough(budget: Budget | None, method: Method) -> Budget:
    """Return with what a new ledger is begun; refuse what does not even pay for this answer."""
    if budget is None:
        return _budget(method)
    if type(budget) is not Budget or budget.personal is not None:
        raise ConfigError("budget must be a Budget that is not personal: a survey asks all alike.")
    if not budget.allows(method.epsilon):
        raise BudgetExceeded(
            f"an answer costs epsilon {method.epsilon:g}, and the budget is {budget.epsilon:g} in all. "
            "Nothing was asked."
        )
    return budget


def _ledgers(
    holders: Sequence[People], budget: Budget | None, method: Method, schedule: Schedule, *, newer_data: bool
) -> dict[str, Ledger]:
    """Open all ledgers, and make sure that all of them have room before anybody answers.

    Those that exist come first: a refusal leaves no new ones behind.
    """
    wanted = {holder.name: _enough(holder.budget or budget, method) for holder in holders}
    ledgers = {}
    for holder in sorted(holders, key=lambda each: not _kept(each)):
        ledger = _existing(holder, newer_data=newer_data)
        if ledger is None:
            ledger = begin_ledger(holder, wanted[holder.name], holder.ledger_path)
        ledger.reserve(replace(event, by=holder.name) for event in schedule.events())
        ledgers[holder.name] = ledger
    return {holder.name: ledgers[holder.name] for holder in holders}


def _kept(holder: People) -> bool:
    return holder.ledger_path is not None and holder.ledger_path.exists()


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


def _doors(
    ledgers: Mapping[str, Ledger], schedule: Schedule, session: str, random: Random
) -> dict[str, Door]:
    """Return everybody's way out, by which one answer passes and no more, whoever asks."""
    return {
        name: Door(
            party=name, ledger=ledger, random=own_random(random, place), run=session, schedule=schedule
        )
        for place, (name, ledger) in enumerate(ledgers.items())
    }


def _session(holders: Sequence[People]) -> Session:
    name = secrets.token_hex(8)
    transcript = Transcript.create(None, session=name, split=_split(holders))
    return Session(name=name, kinds=(Asking, Answers), transcript=transcript, forgiving=True)


def _check_capture(capture: Capture | None, holders: Sequence[People]) -> None:
    """Refuse to take down what real people answer."""
    if capture is None:
        return
    capture.check_roles(holder.name for holder in holders)
    if any(holder.ledger_path is not None for holder in holders):
        raise Refused("answers are captured in simulations only: ask made-up people, without files.")


def _frame(holders: Sequence[People], method: Method) -> View:
    return View(
        roles=(),
        recipe=as_table(method),
        split=_split(holders),
        parties=tuple(holder.name for holder in holders),
        users=tuple(len(holder.values) for holder in holders),
        items=0,
        scale=None,
    )


def _split(holders: Sequence[People]) -> Split:
    return "on-device" if all(len(holder.values) == 1 for holder in holders) else "horizontal"


def _driven(
    adding: Adding,
    halves: Mapping[str, Answering],
    session: Session,
    ledgers: Mapping[str, Ledger],
    failures: Failures,
) -> dict[str, str]:
    """Ask everybody; return who is missing, and why."""
    hosts = {
        name: Host(half, half.door, session=session.name, kinds=session.kinds)
        for name, half in halves.items()
    }
    channel = InProcess(hosts, failures=failures, forgiving=True)
    rounds: list[Round] = []
    try:
        drive(adding, channel, session, rounds.append)
    finally:
        channel.close()
        for ledger in ledgers.values():
            ledger.give_up_reserved()
    return {**rounds[0].missing, **adding.refused}


def _guarantee(method: Method, events: Sequence[Event], people: int, doubts: Sequence[str]) -> Guarantee:
    found = Guarantee.of(
        events,
        _budget(method),
        against=("the aggregator", "everyone who sees a person's answer"),
        covers=("Every answer by itself, and whatever is made of the answers.",),
        does_not_cover=(
            "Who is asked, who answers, what is asked and between which numbers: public.",
            "What holders of several people's numbers see themselves: the numbers are theirs.",
        ),
        assumptions=(_EACH_ANOTHER,),
        shared_units=False,
        units=people,
    )
    return replace(found, warnings=(*found.warnings, *doubts))


def _together(
    method: Method, session: Session, holders: Sequence[People], ledgers: Mapping[str, Ledger]
) -> Together:
    transcript = session.transcript
    sent = transcript.bytes_by_sender()
    parties = {
        holder.name: PartyFacts(
            users=len(holder.values),
            items=0,
            ratings=0,
            bytes_sent=sent[holder.name],
            epsilon=method.epsilon if released(ledgers[holder.name], session.name) else 0.0,
        )
        for holder in holders
    }
    return Together(
        split=_split(holders),
        session=session.name,
        simulated=False,
        budget=as_table(_budget(method)),
        parties=parties,
        rounds=1,
        traffic=transcript.total_bytes,
        transcript=transcript.content(),
        ledgers={name: ledger.content() for name, ledger in ledgers.items()},
    )
