"""A channel over a network: every party gets its bytes at the same time, and has until a deadline to answer.

The engine does not tell when a party is gone, so whoever has not answered yet is pinged; a party that answers
no ping for a while is given up for this question, and pinged on beside the later ones: it may only have
stalled. What the engine says of failures is not passed on: it may quote what a party holds.
"""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Protocol

from cofactor.config import positive
from cofactor.federation.channel import Answers
from cofactor.federation.declining import answers_from

NOT_REACHED = "was not reached"
_OPEN = 2
"""Questions of one party that may be unanswered at the same time."""


class Ended(Exception):
    """The engine ended the job under us: no error of anybody's. Whoever supervises it begins another."""


class Wire(Protocol):
    """What an engine must offer. Both may raise anything; only `Ended` is more than a lost answer."""

    def send(self, party: str, data: bytes, seconds: float) -> bytes:
        """Bring bytes to a party, and return its answer."""

    def ping(self, party: str, seconds: float) -> None:
        """Return once the party has shown that it lives."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to wait for whom, in seconds."""

    deadline: float = 600.0
    """For an answer, however alive its party is."""
    ping_every: float = 2.0
    """Between two pings, and for the answer to one."""
    ping_patience: float = 10.0
    """After which a party that answers no ping is given up."""
    first_ping: float = 0.5
    """For a sign of life of a party that was given up before."""

    def __post_init__(self) -> None:
        positive(
            deadline=self.deadline,
            ping_every=self.ping_every,
            ping_patience=self.ping_patience,
            first_ping=self.first_ping,
        )


class FlareChannel:
    """Parties behind a wire."""

    def __init__(self, wire: Wire, parties: Iterable[str], *, patience: Patience | None = None) -> None:
        """Take the wire, and who is reached by it."""
        self._wire, self._parties = wire, tuple(parties)
        self._patience = patience or Patience()
        # A question that is not answered keeps its thread until the deadline: each party has so many, and
        # pings have their own, so that one party's silence keeps nobody else waiting.
        count = max(1, len(self._parties))
        self._pool = ThreadPoolExecutor(_OPEN * count, thread_name_prefix="asking")
        self._pings = ThreadPoolExecutor(2 * count, thread_name_prefix="pinging")
        self._given_up: dict[str, Future[None]] = {}
        self._sent: dict[str, list[Future[bytes]]] = {party: [] for party in self._parties}

    @property
    def parties(self) -> tuple[str, ...]:
        """All who were there when the job began."""
        return self._parties

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:  # noqa: ARG002
        """Send parties their letters, and return what came back in time."""
        asked = [
            _Question(self, party, data) for party, data in letters.items() if self._may_be_reached(party)
        ]
        replies: dict[str, bytes | str] = dict.fromkeys(letters, NOT_REACHED)
        open_questions = {question.party: question for question in asked}
        while open_questions:
            wait(
                _futures(open_questions.values()),
                timeout=self._patience.ping_every / 8,
                return_when=FIRST_COMPLETED,
            )
            for party, question in list(open_questions.items()):
                found = question.look()
                if found is not None:
                    replies[party] = found
                    del open_questions[party]
        return answers_from(replies)

    def close(self) -> None:
        """Let the threads go; those that still wait for an answer end by themselves."""
        for pool in (self._pool, self._pings):
            pool.shutdown(wait=False, cancel_futures=True)

    def _may_be_reached(self, party: str) -> bool:
        """Say whether to ask a party: one that was given up must show a sign of life first."""
        if party not in self._parties:
            return False
        self._sent[party] = [sent for sent in self._sent[party] if not sent.done()]
        if len(self._sent[party]) == _OPEN:
            return False
        if party not in self._given_up:
            return True
        wait([self._given_up[party]], timeout=self._patience.first_ping)
        sign = self._given_up[party]
        if not sign.done():
            return False
        if _raised(sign) is None:
            del self._given_up[party]
            return True
        self._give_up(party)
        return False

    def _give_up(self, party: str) -> None:
        self._given_up[party] = self._ping(party)

    def _ping(self, party: str) -> "Future[None]":
        return self._pings.submit(self._wire.ping, party, self._patience.ping_every)

    def _send(self, party: str, data: bytes) -> "Future[bytes]":
        sent = self._pool.submit(self._wire.send, party, data, self._patience.deadline)
        self._sent[party].append(sent)
        return sent


class _Question:
    """A letter that was sent, and the pings that go after it."""

    def __init__(self, channel: FlareChannel, party: str, data: bytes) -> None:
        self._channel, self.party = channel, party
        self._patience = channel._patience
        self._answer = channel._send(party, data)
        self._ping: Future[None] | None = None
        self._began = self._heard = self._pinged = time.monotonic()

    @property
    def futures(self) -> "list[Future[Any]]":
        """What may end the waiting."""
        return [self._answer] if self._ping is None else [self._answer, self._ping]

    def look(self) -> bytes | str | None:
        """Return the answer, or why there is none; None means to go on waiting."""
        if self._answer.done():
            return self._outcome()
        now = time.monotonic()
        self._ping_on(now)
        if now - self._heard > self._patience.ping_patience:
            self._channel._give_up(self.party)
            return f"showed no sign of life for {self._patience.ping_patience:g} s"
        late = now - self._began > self._patience.deadline
        return f"did not answer within {self._patience.deadline:g} s" if late else None

    def _outcome(self) -> bytes | str:
        error = _raised(self._answer)
        if error is None:
            data: object = self._answer.result()
            return data if isinstance(data, bytes) else "sent something else than an answer"
        if isinstance(error, TimeoutError):
            return f"did not answer within {self._patience.deadline:g} s"
        self._channel._give_up(self.party)
        return NOT_REACHED

    def _ping_on(self, now: float) -> None:
        if self._ping is not None and self._ping.done():
            if _raised(self._ping) is None:
                self._heard = now
            self._ping = None
        if self._ping is None and now - self._pinged >= self._patience.ping_every:
            self._ping, self._pinged = self._channel._ping(self.party), now


def _futures(questions: Iterable[_Question]) -> "list[Future[Any]]":
    return [future for question in questions for future in question.futures]


def _raised(future: "Future[bytes] | Future[None]") -> BaseException | None:
    """Return what went wrong; the end of the job is raised at once."""
    error = future.exception()
    if isinstance(error, Ended):
        raise error
    return error
