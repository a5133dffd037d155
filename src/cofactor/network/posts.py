"""What parties have written for each other, as the coordinator carries it; and how it asks them."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto.boxes import hashed
from cofactor.errors import ProtocolError, RunError
from cofactor.federation.messages import Message

Entries = list[tuple[str, bytes]]
"""Bytes with names."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Post(Message):
    """Bytes with names: who wrote them, on the way to a party, and on the way back for whom they are."""

    relays: ClassVar[bool] = True

    step: int
    """How far those who talk are."""
    names: str
    """A JSON list of names."""
    lengths: NDArray[np.int64]
    """How many bytes belong to each of them."""
    data: NDArray[np.uint8]

    @classmethod
    def of(cls, step: int, entries: Iterable[tuple[str, bytes]]) -> Self:
        """Write entries one behind the other."""
        pairs = list(entries)
        return cls(
            step=step,
            names=json.dumps([name for name, _ in pairs]),
            lengths=np.array([len(data) for _, data in pairs], np.int64),
            data=np.frombuffer(b"".join(data for _, data in pairs), np.uint8),
        )

    def entries(self) -> Entries:
        """Read them again; ProtocolError if they are none."""
        names, lengths, data = _names(self.names), self.lengths, self.data
        fits = lengths.dtype == np.int64 and lengths.shape == (len(names),) and data.dtype == np.uint8
        # Python's numbers: sums of numpy's wrap around.
        sizes: list[int] = lengths.tolist() if fits else [-1]
        if data.ndim != 1 or min(sizes, default=0) < 0 or sum(sizes) != len(data):
            raise ProtocolError("A post has other bytes than it says.")
        ends = np.cumsum([0, *sizes]).tolist()
        return [
            (name, data[start:end].tobytes())
            for name, start, end in zip(names, ends[:-1], ends[1:], strict=True)
        ]


def _names(text: str) -> list[str]:
    try:
        names = json.loads(text)
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            "".join(names).encode()  # which half a character cannot
            return names
    except (ValueError, RecursionError):
        pass
    raise ProtocolError("A post has no list of names.")


def by_name(entries: Entries) -> dict[str, bytes]:
    """Return entries of which there is one for each name."""
    if len(dict(entries)) != len(entries):
        raise ProtocolError("A post has two entries of one party.")
    return dict(entries)


AnyPost = TypeVar("AnyPost", bound=Post)
AskAll = Callable[[dict[str, Message]], Mapping[str, Message]]
"""Asks parties, each its own question, and returns their answers."""


class Turns:
    """A party's memory of what it was asked: it goes forward only, and not on after it has refused."""

    def __init__(self) -> None:
        self._question = b""
        self._answer: Post | None = None
        self._over = False

    def take(self, post: AnyPost, answered: Callable[[int, Entries], Entries]) -> AnyPost:
        """Answer a question; the same one, if it comes again, gets the same answer."""
        entries, latest = post.entries(), self._answer
        question = _named(post.step, entries)
        if isinstance(latest, type(post)) and question == self._question:
            return latest
        if self._over or (latest is not None and post.step <= latest.step):
            raise ProtocolError("What parties talk about is over, or further on. Begin a new session.")
        self._over = True  # unless an answer is made
        answer = type(post).of(post.step, answered(post.step, entries))
        self._question, self._answer, self._over = question, answer, False
        return answer


def _named(step: int, entries: Entries) -> bytes:
    flat = [part for name, data in entries for part in (name.encode(), data)]
    return hashed(str(step).encode(), *flat)


def asked(ask_all: AskAll, questions: Mapping[str, AnyPost]) -> dict[str, Entries]:
    """Ask parties, of whom all must answer with a post of the same kind and step; return what is in each."""
    answers = ask_all(dict(questions))
    missing = [party for party in questions if party not in answers]
    if missing:
        raise RunError(
            f"{', '.join(missing)} did not answer, and all parties must agree before the first round. "
            "Nothing was begun: see to it that all of them are there, and start again."
        )
    return {party: _read(party, question, answers[party]) for party, question in questions.items()}


def notes_in(answers: Mapping[str, Entries]) -> dict[str, bytes]:
    """Return by party the note that it has written."""
    return {party: note for party, entries in answers.items() for _, note in entries}


def _read(party: str, question: Post, answer: Message) -> Entries:
    if isinstance(answer, type(question)) and answer.step == question.step:
        try:
            return answer.entries()
        except ProtocolError:
            pass
    raise RunError(
        f"{party} answered something that makes no sense here. Does it run the same version of cofactor? "
        "Nothing was begun."
    )
