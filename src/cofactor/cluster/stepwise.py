"""What halves with keys have in common: one step a round, in their order, each once."""

from collections.abc import Callable, Sequence
from typing import NoReturn

from cofactor.cluster.method import FIRST_ROUND, Home
from cofactor.errors import Refused, RunError
from cofactor.federation.messages import Message

Step = tuple[type[Message], Callable[[Message], Message]]
"""Which question is expected, and what answers it."""


class Stepwise:
    """A party's half of counting that holds keys. A step that fails, or was taken, is not taken again."""

    def __init__(self, home: Home) -> None:
        """Begin with the first round of counting."""
        self._home = home
        self._next = FIRST_ROUND

    def __reduce__(self) -> NoReturn:
        raise Refused("A party's half of counting holds keys, and is neither copied nor pickled.")

    @property
    def _party(self) -> str:
        return self._home.facts.parties[self._home.place]

    def _steps(self) -> Sequence[Step]:
        """Return the steps, from the first round on."""
        raise NotImplementedError

    def answer(self, round: int, message: Message) -> Message:
        """Answer the coordinator: the rounds come one after the other, and each once."""
        steps = self._steps()
        if round != self._next:
            raise RunError(
                f"{self._party}: round {round} of counting cannot be now: rounds come in their order, and "
                "the keys are gone after a crash. Begin anew."
            )
        self._next = FIRST_ROUND + len(steps)
        kind, take = steps[round - FIRST_ROUND]
        if not isinstance(message, kind):
            raise RunError(
                f"{self._party}: {type(message).__name__} came where {kind.__name__} was expected."
            )
        reply = take(message)
        self._next = round + 1
        return reply
