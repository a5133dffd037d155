"""`Transcript`: who saw which message, how it was protected, how many bytes it had.

Every line is sealed with the hash of the one before, as a ledger's are. It holds no message, only its hash.
"""

import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cofactor.errors import LedgerError, RunError
from cofactor.privacy.chain import Chain, TornLine

AGREED = "agreed beforehand"
"""What protects messages of round 0, on a network: nothing but what parties have agreed to tell."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """One message that somebody saw."""

    round: int
    sender: str
    receiver: str
    kind: str
    bytes: int
    protection: str
    """"noise", "public", "released before" or "nothing"; in a sum "a share of noise, masked" or
    "..., encrypted" (nobody sees it), "..., SIMULATION" (nobody would), "sealed for other parties", "shares
    of keys" and "a part in opening the sum"."""
    digest: str
    """SHA-256 of its bytes."""


class Transcript:
    """All messages of a run, the oldest first."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._guard = threading.Lock()

    @classmethod
    def create(cls, path: Path | None, *, session: str, split: str = "") -> "Transcript":
        """Begin a transcript; with path None it lives in memory. `split` says how the parties relate."""
        return cls(Chain.create(path, {"transcript": session, "split": split}))

    @classmethod
    def open(cls, path: Path, *, recover: bool = False) -> "Transcript":
        """Read a transcript and check all of it; `recover` drops a line that a crash cut off."""
        try:
            if recover:
                Chain.mend(path)
            transcript = cls(Chain.open(path))
            _ = transcript.session, transcript.sent
            return transcript
        except TornLine:
            raise RunError(f"{path.name} is cut off: its last line is not whole.") from None
        except (LedgerError, KeyError, TypeError) as error:
            raise RunError(f"{path}: the transcript was changed or cut ({error})") from None

    @property
    def session(self) -> str:
        """Which training it tells of."""
        return str(self._chain.links[0].facts["transcript"])

    @property
    def split(self) -> str:
        """How the parties relate."""
        return str(self._chain.links[0].facts["split"])

    @property
    def sent(self) -> tuple[Sent, ...]:
        """All messages."""
        return tuple(Sent(**link.facts) for link in self._chain.links[1:])

    @property
    def count(self) -> int:
        """How many lines there are, the first one included."""
        return len(self._chain.links)

    @property
    def head(self) -> str:
        """The seal of the last line, which depends on all lines before."""
        return self._chain.head

    def content(self) -> bytes:
        """Return the file's bytes, whether or not there is a file."""
        return self._chain.content()

    def note(
        self, data: bytes, *, round: int, sender: str, receivers: Iterable[str], kind: str, protection: str
    ) -> None:
        """Write down that these bytes were sent."""
        digest = sha256(data).hexdigest()
        with self._guard, self._chain.locked():
            for receiver in receivers:
                line: dict[str, Any] = asdict(
                    Sent(
                        round=round,
                        sender=sender,
                        receiver=receiver,
                        kind=kind,
                        bytes=len(data),
                        protection=protection,
                        digest=digest,
                    )
                )
                self._chain.append(line)

    def bytes_by_sender(self) -> Counter[str]:
        """Return how many bytes everybody has sent."""
        found: Counter[str] = Counter()
        for each in self.sent:
            found[each.sender] += each.bytes
        return found

    @property
    def total_bytes(self) -> int:
        """All traffic, both ways."""
        return sum(each.bytes for each in self.sent)
