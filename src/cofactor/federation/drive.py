"""The rounds: ask, take in, remember, tell. Written once, for every recipe and every channel."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cofactor.errors import Refused, RunError
from cofactor.federation.channel import Answers, Channel
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.halves import Coordinator
from cofactor.federation.host import read_arrays, write_arrays
from cofactor.federation.messages import Letter, Message
from cofactor.federation.transcript import Transcript

_NAME, _FINISHED = "session name", "finished round"


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


def drive(
    coordinator: Coordinator, channel: Channel, session: Session, listen: Callable[[Round], None]
) -> None:
    """Run the rounds that are left."""
    file = None if session.folder is None else session.folder / "coordinator.npz"
    for number in range(_recalled(coordinator, file, session.name) + 1, coordinator.rounds + 1):
        question = _sent(coordinator.ask(number), session, number, channel.parties)
        answers = channel.ask(number, question)
        letters = {party: _letter(data, party, session, number) for party, data in answers.by_party.items()}
        _note(letters, answers.by_party, coordinator.sums(number), session, number)
        coordinator.take(number, _opened(letters, coordinator.sums(number), answers, number))
        if file is not None:
            marks = {_NAME: np.array(session.name), _FINISHED: np.array(number)}
            write_arrays(file, coordinator.state(), **marks)
        listen(
            Round(
                number=number,
                of=coordinator.rounds,
                answered=len(letters),
                parties=len(channel.parties),
                missing=answers.missing,
                traffic=len(question) * len(channel.parties) + sum(map(len, answers.by_party.values())),
            )
        )


def farewell(coordinator: Coordinator, session: Session, parties: tuple[str, ...]) -> bytes:
    """Return the letter with which every party finishes at home."""
    return _sent(coordinator.last(), session, coordinator.rounds + 1, parties)


def _sent(body: Message, session: Session, number: int, parties: tuple[str, ...]) -> bytes:
    data = Letter(session=session.name, round=number, sender=COORDINATOR, body=body).to_bytes()
    session.transcript.note(
        data,
        round=number,
        sender=COORDINATOR,
        receivers=parties,
        kind=type(body).__name__,
        protection="released before",
    )
    return data


def _letter(data: bytes, party: str, session: Session, number: int) -> Letter:
    """Open an answer; one of another round, session or party is no answer."""
    letter = Letter.from_bytes(data, session.kinds)
    if (letter.session, letter.round, letter.sender) != (session.name, number, party):
        raise RunError(f"{party} answered something else than round {number} of this session.")
    return letter


def _note(
    letters: Mapping[str, Letter], data: Mapping[str, bytes], only_sum: bool, session: Session, number: int
) -> None:
    for party, letter in letters.items():
        if letter.protection == "a share of noise" and not only_sum:
            raise RunError(f"{party} sent a share of noise, which protects nothing unless it is summed.")
        session.transcript.note(
            data[party],
            round=number,
            sender=party,
            receivers=[SUM if only_sum else COORDINATOR],
            kind=type(letter.body).__name__,
            protection=letter.protection,
        )


def _opened(
    letters: Mapping[str, Letter], only_sum: bool, answers: Answers, number: int
) -> dict[str, Message]:
    """Return what the coordinator gets to see: all answers, or nothing but their sum.

    Adding up in this process stands for a secure sum; shares of noise are sized for all parties. A sum that
    can never be complete is left out.
    """
    if not only_sum:
        return {party: letter.body for party, letter in letters.items()}
    if answers.lost:
        return {}
    if answers.missing:
        raise Refused(
            f"round {number}: {', '.join(answers.missing)} did not answer, and noise was shared among all "
            "parties. The sum was not opened. Run again when they are back."
        )
    return {SUM: _added([letter.body for letter in letters.values()], number)}


def _added(bodies: Sequence[Message], number: int) -> Message:
    first = bodies[0]
    forms = {(type(body), *((name, array.shape) for name, array in body.arrays.items())) for body in bodies}
    if len(forms) > 1:
        raise RunError(f"round {number}: the parties' answers differ in kind or shape, so they have no sum.")
    totals = {
        name: np.sum([body.arrays[name] for body in bodies], axis=0, dtype=np.float64)
        for name in first.arrays
    }
    return type(first)(**totals)


def _recalled(coordinator: Coordinator, file: Path | None, name: str) -> int:
    """Go on after the last finished round, if there was one, and return its number."""
    if file is None or not file.exists():
        return 0
    state = read_arrays(file, _NAME, _FINISHED)
    if str(state.pop(_NAME)) != name:
        raise RunError(f"{file} belongs to another session.")
    finished = int(state.pop(_FINISHED))
    coordinator.restore(state)
    return finished
