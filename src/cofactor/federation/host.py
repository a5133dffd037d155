"""A party's end of the wire: bytes in, bytes out.

It stores its answer, and what the participant must remember, before the answer is sent. Asked again, after a
crash anywhere, it sends the stored bytes; noise is never drawn twice for one round.
"""

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from cofactor.errors import RunError
from cofactor.factors.model import Factors
from cofactor.federation.door import Door
from cofactor.federation.halves import Participant, State
from cofactor.federation.messages import Letter, Message

_REPLY, _FACTS = "reply bytes", "reply facts"


class Host:
    """One participant, for one session."""

    def __init__(
        self,
        participant: Participant,
        door: Door,
        *,
        session: str,
        kinds: tuple[type[Message], ...],
        file: Path | None = None,
    ) -> None:
        """Take up the work where `file` says it was left, if it exists."""
        self._participant = participant
        self._door = door
        self._session = session
        self._kinds = kinds
        self._file = file
        self._answered = 0
        self._reply = b""
        if file is not None and file.exists():
            self._recall(file)

    @property
    def party(self) -> str:
        """Whose end it is."""
        return self._door.party

    def handle(self, data: bytes) -> bytes:
        """Answer a letter of the coordinator with a letter."""
        letter = self._opened(data)
        if letter.round < max(self._answered, 1):
            raise RunError(f"{self.party}: round {letter.round} is over; this party is at {self._answered}.")
        if letter.round == self._answered:
            return self._reply
        self._door.begin(letter.round)
        answer = self._participant.handle(letter.round, letter.body)
        reply = Letter(
            session=self._session,
            round=letter.round,
            sender=self.party,
            body=answer,
            protection=self._protection(answer),
        ).to_bytes()
        self._keep(letter.round, reply)
        return reply

    def finish(self, data: bytes) -> Factors:
        """Let the participant finish its own model, on the coordinator's last letter. It stays here."""
        return self._participant.finish(self._opened(data).body)

    def _opened(self, data: bytes) -> Letter:
        letter = Letter.from_bytes(data, self._kinds)
        if letter.session != self._session:
            raise RunError(f"{self.party}: a letter of another session. Start the parties together.")
        return letter

    def _protection(self, answer: Message) -> str:
        """Return the weakest protection of an answer's parts; refuse what did not go through the door."""
        if answer.plain:
            raise RunError(f"{self.party}: an answer holds only arrays that went through the door.")
        found = {self._door.protection(array) for array in answer.arrays.values()}
        order = ("nothing", "a share of noise", "noise", "public")
        return next((word for word in order if word in found), "public")

    def _keep(self, round: int, reply: bytes) -> None:
        if self._file is not None:
            facts = {"session": self._session, "round": round}
            write_arrays(
                self._file,
                self._participant.state(),
                **{_REPLY: np.frombuffer(reply, np.uint8), _FACTS: np.array(json.dumps(facts))},
            )
        # Only now: an answer that could not be stored is not sent, however often one asks.
        self._answered, self._reply = round, reply

    def _recall(self, file: Path) -> None:
        state = read_arrays(file, _REPLY, _FACTS)
        facts: dict[str, Any] = json.loads(str(state.pop(_FACTS)))
        if facts["session"] != self._session:
            raise RunError(f"{file} belongs to another session. Remove the folder, or resume that session.")
        self._answered = int(facts["round"])
        self._reply = state.pop(_REPLY).tobytes()
        self._participant.restore(state)


def write_arrays(file: Path, state: State, **more: Any) -> None:
    """Write arrays to a file, whole or not at all, and on disk when this returns."""
    memory = io.BytesIO()
    np.savez(memory, allow_pickle=False, **dict(state), **more)
    write_bytes(file, memory.getvalue())


def write_bytes(file: Path, content: bytes) -> None:
    """Write a file, whole or not at all, and on disk when this returns."""
    draft = file.with_name(f".{file.name}.part")
    with draft.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    draft.replace(file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_arrays(file: Path, *needed: str) -> dict[str, Any]:
    """Read what `write_arrays` wrote; what is needed must be there."""
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            return {name: stored[name] for name in (*needed, *stored.files)}
    except Exception as error:
        raise RunError(
            f"{file}: cannot be read ({type(error).__name__}). Train again without --resume."
        ) from None
