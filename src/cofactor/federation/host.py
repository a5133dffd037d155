"""A party's end of the wire: bytes in, bytes out.

It stores its answer, and what the participant must remember, before the answer is sent. Asked again, after a
crash anywhere, it sends the stored bytes; noise is never drawn twice for one round. The keys of a secure sum
are never stored: a crash in the middle of one loses the round.
"""

import io
import json
import os
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from cofactor.crypto.keys import Identity
from cofactor.errors import Refused, RunError
from cofactor.factors.model import Factors
from cofactor.federation.door import SUM, Door, Passed, RoundLost, weakest
from cofactor.federation.halves import Participant, State
from cofactor.federation.messages import Heading, Letter, Message, heading
from cofactor.federation.opening import Key, PartyOpening
from cofactor.federation.summing import PartySum, Summing, SumStep
from cofactor.federation.view import Capture

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
        summing: Summing | None = None,
        identity: Identity | None = None,
        key: Key | None = None,
        capture: Capture | None = None,
        rounds: int | None = None,
    ) -> None:
        """Take up the work where `file` says it was left, if it exists; answer `rounds` at most, if said.

        `summing` says how sums are made that hide their parts; `identity` is the party's key in them, and
        `key` what it opens sums with, if it is a decrypter; `capture` takes down its own answers.
        """
        self._participant = participant
        self._door = door
        self._session = session
        self._kinds = (*kinds, SumStep)
        self._file = file
        self._summing, self._identity = summing, identity
        self._key, self._capture, self._rounds = key, capture, rounds
        self._sum: PartySum | PartyOpening | None = None
        self._keys_gone = False
        self._busy = threading.Lock()
        self._answered = 0
        self._reply = b""
        if file is not None and file.exists():
            self._recall(file)

    @property
    def party(self) -> str:
        """Whose end it is."""
        return self._door.party

    @property
    def rounds(self) -> int | None:
        """How many rounds it answers at most, if that was said."""
        return self._rounds

    def check_asked(self, head: Heading) -> None:
        """Refuse, by its heading alone, what is no question of a round that there is."""
        if head.kind not in {kind.__name__ for kind in self._kinds}:
            raise RunError(f"{self.party}: a letter of a kind that these rounds do not have.")
        if head.round < 1:
            raise RunError(f"{self.party}: round {head.round} is over; rounds begin with 1.")
        if self._rounds is not None and head.round > self._rounds:
            raise Refused(
                f"{self.party}: there are {self._rounds:,} rounds, and {head.round:,} is asked for."
            )

    def handle(self, data: bytes) -> bytes:
        """Answer a letter of the coordinator with a letter; one at a time, so that no noise serves twice."""
        with self._busy:
            self.check_asked(heading(data))
            return self._handle(self._opened(data), sha256(data).hexdigest())

    def _handle(self, letter: Letter, asked: str) -> bytes:
        if letter.round < self._answered:
            raise RunError(f"{self.party}: round {letter.round} is over; this party is at {self._answered}.")
        if isinstance(letter.body, SumStep):
            return self._step(letter.round, letter.body)
        if letter.round == self._answered:
            return self._again(letter.round)
        self._door.begin(letter.round)
        self._sum, self._keys_gone = None, False
        answer = self._participant.handle(letter.round, letter.body)
        passed = self._passed(answer)
        if any(each.summand is not None for each in passed.values()):
            reply = self._summed(answer, passed, letter.round, asked)
        else:
            reply = self._letter(letter.round, answer, weakest(passed))
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

    def _passed(self, answer: Message) -> dict[str, Passed]:
        """Return what is known of an answer's parts; refuse what did not go through the door."""
        if answer.plain:
            raise RunError(f"{self.party}: an answer holds only arrays that went through the door.")
        return {name: self._door.passed(array) for name, array in answer.arrays.items()}

    def _summed(self, answer: Message, passed: dict[str, Passed], round: int, asked: str) -> bytes:
        """Begin a sum with an answer; return the party's first letter in it.

        Signatures and masks hold for the hash of what was asked, too: answers to different questions, which
        could be told apart in their sum, have none.
        """
        if self._summing is None or any(each.summand is None for each in passed.values()):
            raise RunError(f"{self.party}: an answer that is summed is summed as a whole.")
        if self._capture is not None:
            self._capture.take(
                answer, round=round, sender=self.party, receivers=[SUM], protection=weakest(passed)
            )
        if self._summing.decryption is None:
            self._sum = PartySum(self._summing, answer, passed, self._door)
        else:
            self._sum = PartyOpening(self._summing, answer, passed, self._door, self._key)
        return self._letter(
            round,
            *self._sum.begun(self.party, self._identity, session=f"{self._session} {asked}", round=round),
        )

    def _step(self, round: int, message: SumStep) -> bytes:
        """Go on with the secure sum of this round."""
        if self._sum is None or round != self._answered:
            raise RoundLost(f"{self.party}: the keys of the secure sum of round {round} are gone.")
        return self._letter(round, *self._sum.step(message))

    def _again(self, round: int) -> bytes:
        """Send the stored answer; not if it began a secure sum of which steps were taken, by whomever."""
        if self._keys_gone or (self._sum is not None and self._sum.underway):
            raise RoundLost(f"{self.party}: the keys of the secure sum of round {round} are gone.")
        return self._reply

    def _letter(self, round: int, body: Message, protection: str) -> bytes:
        return Letter(
            session=self._session, round=round, sender=self.party, body=body, protection=protection
        ).to_bytes()

    def _keep(self, round: int, reply: bytes) -> None:
        if self._file is not None:
            secure = self._sum is not None and self._sum.secure
            facts = {"session": self._session, "round": round, "secure sum": secure}
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
        self._answered, self._keys_gone = int(facts["round"]), bool(facts["secure sum"])
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
