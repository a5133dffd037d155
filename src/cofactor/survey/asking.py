"""`ask`: one question, one answer from each person, one estimate."""

import secrets
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from cofactor.config import as_table
from cofactor.errors import ConfigError, DataError, Refused
from cofactor.federation.books import all_released
from cofactor.federation.channel import NO_FAILURES, Failures, InProcess
from cofactor.federation.drive import Round, Session, drive
from cofactor.federation.transcript import Transcript
from cofactor.federation.view import Capture, Truth, View
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.randomness import Random, SecureRandom, own_random
from cofactor.survey.answering import (
    SURVEY,
    answering,
    begun_with,
    check_fits,
    has_ledger,
    host_of,
    ledger_of,
    schedule_of,
)
from cofactor.survey.halves import Adding, Answering
from cofactor.survey.method import Method
from cofactor.survey.methods import usual_method
from cofactor.survey.people import People
from cofactor.survey.question import Question
from cofactor.survey.result import Survey
from cofactor.survey.telling import guarantee_of, split_of, together_of

_SECURE = SecureRandom()


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
    people_at = {holder.name: len(holder.values) for holder in holders}
    session = replace(_session(people_at), capture=capture)
    ledgers = _ledgers(holders, budget, question, chosen, session.name, newer_data=newer_data)
    halves = {
        each.name: answering(
            each,
            question,
            chosen,
            ledger=ledgers[each.name],
            session=session.name,
            random=own_random(random, place),
        )
        for place, each in enumerate(holders)
    }
    adding = Adding(question, chosen, people_at)
    unanswered = _driven(adding, halves, session, ledgers, failures)
    events = tuple(all_released(ledgers, session.name))
    if capture is not None:
        capture.end(_frame(holders, chosen), Truth())
    return Survey(
        question=question,
        method=chosen,
        tally=adding.tally(),
        answered=adding.answered,
        guarantee=guarantee_of(chosen, events, adding.answered, doubts),
        together=together_of(chosen, session.transcript, people_at, ledgers),
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
    check_fits(question, chosen)
    return chosen


def _ledgers(
    holders: Sequence[People],
    budget: Budget | None,
    question: Question,
    method: Method,
    session: str,
    *,
    newer_data: bool,
) -> dict[str, Ledger]:
    """Open all ledgers, and make sure that all of them have room before anybody answers.

    Those that exist come first: a refusal leaves no new ones behind.
    """
    schedule = schedule_of(question, method)
    wanted = {holder.name: begun_with(holder.budget or budget, method) for holder in holders}
    ledgers = {
        holder.name: ledger_of(holder, wanted[holder.name], schedule, session, newer_data=newer_data)
        for holder in sorted(holders, key=lambda each: not has_ledger(each))
    }
    return {holder.name: ledgers[holder.name] for holder in holders}


def _session(people: Mapping[str, int]) -> Session:
    name = secrets.token_hex(8)
    transcript = Transcript.create(None, session=name, split=split_of(people.values()))
    return Session(name=name, kinds=SURVEY, transcript=transcript, forgiving=True)


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
        split=split_of([len(holder.values) for holder in holders]),
        parties=tuple(holder.name for holder in holders),
        users=tuple(len(holder.values) for holder in holders),
        items=0,
        scale=None,
    )


def _driven(
    adding: Adding,
    halves: Mapping[str, Answering],
    session: Session,
    ledgers: Mapping[str, Ledger],
    failures: Failures,
) -> dict[str, str]:
    """Ask everybody; return who is missing, and why."""
    hosts = {name: host_of(half, session.name) for name, half in halves.items()}
    channel = InProcess(hosts, failures=failures, forgiving=True)
    rounds: list[Round] = []
    try:
        drive(adding, channel, session, rounds.append)
    finally:
        channel.close()
        for ledger in ledgers.values():
            ledger.give_up_reserved()
    return {**rounds[0].missing, **adding.refused}
