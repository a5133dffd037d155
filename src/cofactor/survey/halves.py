"""The two halves of a survey. They know no transport, as those of all recipes: letters come and go.

Every holder of numbers, down to a phone with one, answers through its own door.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import RunError
from cofactor.federation.door import Door
from cofactor.federation.halves import State
from cofactor.federation.messages import Message
from cofactor.survey.method import Method
from cofactor.survey.people import People
from cofactor.survey.question import Question


@dataclass(frozen=True, kw_only=True, eq=False)
class Asking(Message):
    """What everybody is asked; by which method was agreed on beforehand."""

    question: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers(Message):
    """What people answer, an entry for each of them; beside the answers, public chance.

    What a method has no use for is empty.
    """

    answers: NDArray[np.int64]
    layers: NDArray[Any]
    rows: NDArray[Any]
    seeds: NDArray[Any]


BESIDE = ("layers", "rows", "seeds")


class Answering:
    """The half that lives with the numbers."""

    def __init__(self, people: People, question: Question, method: Method, door: Door) -> None:
        """Find out where in the question's range the numbers lie."""
        self.door = door
        self._question, self._method = question, method
        self._positions, self.outside = question.positions(people.values)

    def handle(self, round: int, message: Message) -> Message:  # noqa: ARG002 (there is one)
        """Answer for each person."""
        if not isinstance(message, Asking) or message.question != self._question.name:
            raise RunError(f"{self.door.party}: agreed to answer about {self._question.name}, and no other.")
        asked = self._method.asked(self._positions, self.door.random)
        answers: Any = self.door.release(self._method.mechanism, asked.bounded, what=self._question.name)
        beside = {name: self.door.public(asked.beside.get(name, np.empty(0, np.uint8))) for name in BESIDE}
        return Answers(answers=answers, **beside)

    def finish(self, message: Message) -> Any:  # noqa: ARG002 (there is no model)
        """Refuse: a survey leaves no model behind."""
        raise RunError("a survey leaves no model at home.")

    def state(self) -> State:
        """Return nothing: there is one answer, and it is stored as it was sent."""
        return {}

    def restore(self, state: State) -> None:
        """Go on from there."""


class Adding:
    """The half that nobody trusts: it adds answers up."""

    rounds = 1

    def __init__(self, question: Question, method: Method, people: Mapping[str, int]) -> None:
        """Know how many people each holder answers for: that is public."""
        self._question, self._method, self._people = question, method, people
        self._tally: NDArray[np.int64] | None = None
        self.answered = 0
        self.refused: dict[str, str] = {}

    def ask(self, round: int) -> Message:  # noqa: ARG002
        """Ask the question."""
        return Asking(question=self._question.name)

    def sums(self, round: int) -> bool:  # noqa: ARG002
        """Every answer is seen by itself, and is private by itself."""
        return False

    def take(self, round: int, replies: Mapping[str, Message]) -> None:  # noqa: ARG002
        """Add up what came; answers that cannot be are left out, whoever sent them."""
        for party, reply in replies.items():
            try:
                own = self._counted(reply, self._people[party])
            except (RunError, TypeError) as error:
                self.refused[party] = str(error)
                continue
            self._tally = own if self._tally is None else self._tally + own
            self.answered += self._people[party]

    def _counted(self, reply: Message, people: int) -> NDArray[np.int64]:
        if not isinstance(reply, Answers):
            raise RunError(f"{type(reply).__name__} is no answer.")
        needed = ("answers", *self._method.beside)
        told = {name: array for name, array in reply.arrays.items() if name in needed}
        if any(array.ndim == 0 or len(array) != people for array in told.values()):
            raise RunError(f"there are not {people:,} answers.")
        return self._method.tally(**told)

    def tally(self) -> NDArray[np.int64]:
        """Return all answers, added up; there must be some."""
        if self._tally is None:
            why = next(iter(self.refused.values()), "nobody was heard of")
            raise RunError(
                f"{self._question.name}: no answer can be used ({why}). What was charged stays so."
            )
        return self._tally

    def last(self) -> Message:
        """Return the question again: nobody needs anything to finish."""
        return self.ask(1)

    def published(self) -> None:
        """Return nothing: there is no model."""

    def state(self) -> State:
        """Return nothing: after a crash, who has answered is not asked again."""
        return {}

    def restore(self, state: State) -> None:
        """Go on from there."""
