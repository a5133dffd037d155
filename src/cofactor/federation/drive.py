"""The rounds: ask, take in, remember, tell. Written once, for every recipe and every channel."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from cofactor.errors import Refused, RunError, TooFew
from cofactor.federation.channel import ANSWER, Channel
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.halves import AsksRoles, Coordinator
from cofactor.federation.host import read_arrays, write_arrays
from cofactor.federation.messages import Letter, Message
from cofactor.federation.opening import CoordinatorOpening
from cofactor.federation.summing import (
    SUM_MESSAGES,
    CoordinatorSum,
    SumBegun,
    Summing,
    SumPart,
    SumStep,
    simulated,
)
from cofactor.federation.transcript import Transcript
from cofactor.federation.view import OPENED, Capture

T = TypeVar("T")

STOP = "stop"
"""If this file is in a session's folder, its training ends after the round that is going on."""

_NAME, _FINISHED, _CLOSING = "session name", "finished round", "ends with the next round"
_BEFORE, _SHARE = "released before", "a share of noise"


@dataclass(frozen=True, kw_only=True)
class Round:
    """What happened in a round, in public numbers."""

    number: int
    of: int
    answered: int
    parties: int
    missing: Mapping[str, str]
    """Who did not answer, and why."""
    traffic: int
    """Bytes of all messages of the round, both ways."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """One training: its name, the messages it knows, and where it keeps what it needs to go on."""

    name: str
    kinds: tuple[type[Message], ...]
    transcript: Transcript
    folder: Path | None = None
    """Where the coordinator remembers the last finished round; None if a restart begins anew."""
    summing: Summing | None = None
    """How sums are made of which nobody sees the parts, if there are any."""
    forgiving: bool = False
    """Whether an answer that cannot be read is none, rather than the end of all."""
    capture: Capture | None = None
    """Who takes down what messages hold, in a simulation."""
    may_stop: bool = False
    """Whether it may end before its last round: if somebody puts a file `stop` into its folder."""

    @property
    def stopped(self) -> bool:
        """Whether somebody wants it to end."""
        return self.may_stop and self.folder is not None and (self.folder / STOP).exists()


def drive(
    coordinator: Coordinator, channel: Channel, session: Session, listen: Callable[[Round], None]
) -> None:
    """Run the rounds that are left; fewer if it is stopped."""
    file = None if session.folder is None else session.folder / "coordinator.npz"
    number, closing = _recalled(coordinator, file, session.name)
    if number and session.capture is not None:
        raise RunError("what was seen before a crash was not captured. Train anew, or without capture.")
    last = _ends_after(coordinator, number) if closing else coordinator.rounds
    while (end := _last(coordinator, session, number, last)) > number:
        if end < last:  # whoever goes on after a crash must ask the same again
            _remember(coordinator, session, file, number, closing=True)
        last, number = end, number + 1
        asking = _Asking(channel, session, number)
        _ask_roles(coordinator, asking)
        question = dict.fromkeys(channel.parties, coordinator.ask(number))
        answers = _summed if coordinator.sums(number) else _one_by_one
        coordinator.take(number, answers(asking, question))
        _remember(coordinator, session, file, number)
        missing = asking.missing
        listen(
            Round(
                number=number,
                of=coordinator.rounds,
                answered=len(channel.parties) - len(missing),
                parties=len(channel.parties),
                missing=missing,
                traffic=asking.traffic,
            )
        )


def rounds_had(coordinator: Coordinator, session: Session) -> int:
    """Return how many rounds there were: all that were planned; if it was stopped, up to the last answer."""
    if not session.stopped:
        return coordinator.rounds
    return last_answered(session.transcript)


def last_answered(transcript: Transcript) -> int:
    """Return the last round in which anybody answered, as far as this transcript's keeper knows."""
    return max((sent.round for sent in transcript.sent if sent.sender != COORDINATOR), default=0)


def _last(coordinator: Coordinator, session: Session, finished: int, last: int) -> int:
    """Return after which round it ends: what was planned, or what it takes to end after this one.

    A round that a crash cut off is gone through first: parties may have answered it.
    """
    if not 0 < finished < last or not session.stopped:
        return last
    asked = (sent.round for sent in session.transcript.sent if sent.sender == COORDINATOR)
    if any(finished < round <= coordinator.rounds for round in asked):
        return last
    return min(_ends_after(coordinator, finished), last)


def _ends_after(coordinator: Coordinator, finished: int) -> int:
    """Tell the coordinator's half that it ends, and return its last round."""
    ends_after = getattr(coordinator, "ends_after", None)
    return finished if ends_after is None else int(ends_after(finished))


def farewell(
    coordinator: Coordinator, session: Session, parties: tuple[str, ...], rounds: int | None = None
) -> bytes:
    """Return the letter with which every party finishes at home, after so many rounds; else after all."""
    body, number = coordinator.last(), 1 + (coordinator.rounds if rounds is None else rounds)
    data = Letter(session=session.name, round=number, sender=COORDINATOR, body=body).to_bytes()
    _note(session, data, number, COORDINATOR, parties, body, _BEFORE)
    return data


def _ask_roles(coordinator: Coordinator, asking: "_Asking") -> None:
    """Ask those who hold no ratings, if there are any; whoever does not answer is no missing party."""
    if not hasattr(coordinator, "roles"):
        return
    asks = cast(AsksRoles, coordinator)
    questions = {role: asks.ask_role(role, asking.number) for role in asks.roles}
    for role, answer in _one_by_one(asking, questions).items():
        asks.take_role(role, asking.number, answer)
    asking.missing, asking.lost = {}, frozenset()


class _Asking:
    """The questions and answers of one round, written down as they come and go."""

    def __init__(self, channel: Channel, session: Session, number: int) -> None:
        self.channel, self.session, self.number = channel, session, number
        self.missing: dict[str, str] = {}
        self.lost: frozenset[str] = frozenset()
        self.traffic = 0
        self.asked = ""
        """Hash of the question of the round, the same for all parties: what they sum is bound to it."""

    def ask(self, questions: Mapping[str, Message], step: int | None = None) -> dict[str, Message]:
        """Ask some parties and return what they answered."""
        answers = self.channel.ask(self.number, self._sent(questions), step)
        self.missing |= answers.missing
        self.lost |= answers.lost
        found = {}
        for party, data in answers.by_party.items():
            try:
                found[party] = self._opened(data, party)
            except RunError as error:
                if not self.session.forgiving:
                    raise
                self.missing[party] = str(error)
        return found

    def _sent(self, questions: Mapping[str, Message]) -> dict[str, bytes]:
        """Write letters; the same question is one letter to all who get it."""
        letters: dict[str, bytes] = {}
        for body in {id(body): body for body in questions.values()}.values():
            receivers = [party for party, own in questions.items() if own is body]
            letter = Letter(session=self.session.name, round=self.number, sender=COORDINATOR, body=body)
            data = letter.to_bytes()
            protection = "between parties" if isinstance(body, SumStep) or body.relays else _BEFORE
            _note(self.session, data, self.number, COORDINATOR, receivers, body, protection)
            letters |= dict.fromkeys(receivers, data)
            self.asked = self.asked if isinstance(body, SumStep) else sha256(data).hexdigest()
            self.traffic += len(data) * len(receivers)
        return letters

    def _opened(self, data: bytes, party: str) -> Message:
        """Open an answer; one of another round, session or party is no answer."""
        letter = Letter.from_bytes(data, (*self.session.kinds, *SUM_MESSAGES))
        if (letter.session, letter.round, letter.sender) != (self.session.name, self.number, party):
            raise RunError(f"{party} answered something else than round {self.number} of this session.")
        # What a simulation adds up in plain sight stands for what nobody sees.
        receiver = SUM if isinstance(letter.body, SumPart) else COORDINATOR
        _note(self.session, data, self.number, party, [receiver], letter.body, letter.protection)
        self.traffic += len(data)
        if letter.protection == _SHARE:
            raise RunError(f"{party} sent {_SHARE}, which protects nothing unless it is summed.")
        return letter.body


def _note(
    session: Session,
    data: bytes,
    number: int,
    sender: str,
    receivers: Iterable[str],
    body: Message,
    protection: str,
) -> None:
    session.transcript.note(
        data,
        round=number,
        sender=sender,
        receivers=receivers,
        kind=type(body).__name__,
        protection=protection,
    )
    if session.capture is not None and not isinstance(body, SumPart):  # nobody would see that one
        session.capture.take(body, round=number, sender=sender, receivers=receivers, protection=protection)


def _one_by_one(asking: _Asking, question: Mapping[str, Message]) -> dict[str, Message]:
    """Return what each party has answered by itself."""
    answers = asking.ask(question)
    for party, answer in answers.items():
        if isinstance(answer, SUM_MESSAGES):
            raise RunError(f"{party} began a sum in round {asking.number}, and no sum was wanted.")
    return answers


def _summed(asking: _Asking, question: Mapping[str, Message]) -> dict[str, Message]:
    """Return the sum of all answers, and nothing else of them; nothing at all if too few have answered."""
    summing = asking.session.summing
    if summing is None:
        raise RunError("only the sum of answers is wanted, and nobody has said how it is made.")
    begun = asking.ask(question, None if summing.neighbourhood is None else 0)  # masks: keys come first
    fewest = 1 if summing.layers is None else summing.layers.fewest
    if len(begun) < fewest:
        if summing.goes_on or asking.lost:
            return {}
        away = ", ".join(asking.missing)
        raise Refused(
            f"round {asking.number}: {away} did not answer, and at least {fewest} of {len(question)} parties "
            "must. The sum was not opened. Run again when they are back."
        )
    try:
        opened = _opened(asking, summing, begun)
    except TooFew as few:
        asking.missing |= {party: asking.missing.get(party, str(few)) for party in question}
        return {}
    if asking.session.capture is not None:
        asking.session.capture.take(
            opened, round=asking.number, sender=SUM, receivers=[COORDINATOR], protection=OPENED
        )
    return {SUM: opened}


def _opened(asking: _Asking, summing: Summing, begun: Mapping[str, Message]) -> Message:
    if summing.simulated:
        form, total = simulated(summing, _all_of(SumPart, begun))
        return form.message(total, asking.session.kinds)
    return _secure(asking, summing, _all_of(SumBegun, begun))


def _secure(asking: _Asking, summing: Summing, begun: Mapping[str, SumBegun]) -> Message:
    """Take all steps of a sum that masks or keys hide."""
    masked = summing.decryption is None
    kind = CoordinatorSum if masked else CoordinatorOpening
    end = kind(summing, begun, f"{asking.session.name} {asking.asked}", asking.number)
    # With keys the answer itself was sent already; what follows comes after it.
    step = 1 if masked else ANSWER + 1
    try:
        while not end.finished:
            end.take(_all_of(SumStep, asking.ask(end.asks(), step)))
            step += 1
        total = end.opened()
    finally:
        asking.missing |= end.refused
    return end.form.message(total, asking.session.kinds)


def _all_of(kind: type[T], messages: Mapping[str, Message]) -> dict[str, T]:
    for party, message in messages.items():
        if not isinstance(message, kind):
            raise RunError(f"{party} answered with {type(message).__name__} in the middle of a sum.")
    return cast("dict[str, T]", dict(messages))


def _remember(
    coordinator: Coordinator, session: Session, file: Path | None, finished: int, *, closing: bool = False
) -> None:
    """Write down what is needed to go on after this round, and whether only a closing one is left."""
    if file is not None:
        marks = {_NAME: session.name, _FINISHED: finished, _CLOSING: closing}
        write_arrays(file, coordinator.state(), **{name: np.array(mark) for name, mark in marks.items()})


def _recalled(coordinator: Coordinator, file: Path | None, name: str) -> tuple[int, bool]:
    """Go on after the last finished round, if there was one; return its number, and whether it closes."""
    if file is None or not file.exists():
        return 0, False
    state = read_arrays(file, _NAME, _FINISHED)
    if str(state.pop(_NAME)) != name:
        raise RunError(f"{file} belongs to another session.")
    finished, closing = int(state.pop(_FINISHED)), bool(state.pop(_CLOSING, False))
    coordinator.restore(state)
    return finished, closing
