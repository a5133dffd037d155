"""How questions reach parties and answers come back. `InProcess` needs no network: every party is a thread.

Whoever does not answer is missing, with the reason; that is normal and no error. Failures can be scripted, to
see what a recipe makes of them.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from cofactor.config import positive
from cofactor.federation.door import RoundLost
from cofactor.federation.host import Host


@dataclass(frozen=True)
class Answers:
    """What came back in a round."""

    by_party: Mapping[str, bytes]
    missing: Mapping[str, str] = field(default_factory=dict)
    """Who did not answer, and why."""
    lost: frozenset[str] = frozenset()
    """Who of them never will, however often one asks: a crash took the answer."""


class Channel(Protocol):
    """A way to ask parties."""

    @property
    def parties(self) -> tuple[str, ...]:
        """All who can be asked."""

    def ask(self, round: int, data: bytes) -> Answers:
        """Send the same bytes to all parties and return what came back in time."""


@dataclass(frozen=True, kw_only=True)
class Failures:
    """What goes wrong, and when: pairs of a party and a round."""

    absent: frozenset[tuple[str, int]] = frozenset()
    """The question never arrives: nothing is computed, nothing charged."""
    lost: frozenset[tuple[str, int]] = frozenset()
    """The answer is made and charged, and lost on its way."""
    delays: Mapping[tuple[str, int], float] = field(default_factory=dict)
    """Seconds by which an answer is late. Nobody sleeps: the clock is imagined."""
    patience: float = 60.0
    """Seconds after which an answer no longer counts."""

    def __post_init__(self) -> None:
        positive(patience=self.patience)

    def before(self, party: str, round: int) -> str | None:
        """Say why a question does not arrive, if it does not."""
        return "did not get the question" if (party, round) in self.absent else None

    def after(self, party: str, round: int) -> str | None:
        """Say why an answer does not arrive in time, if it does not."""
        if (party, round) in self.lost:
            return "its answer was lost"
        late = self.delays.get((party, round), 0.0)
        return f"answered after {late:g} s" if late > self.patience else None


NO_FAILURES = Failures()


class InProcess:
    """All parties in this process, side by side in threads. Bytes pass between them, and nothing else."""

    def __init__(
        self, hosts: Mapping[str, Host], *, failures: Failures = NO_FAILURES, threads: int | None = None
    ) -> None:
        """Take the parties' ends; by default all work at the same time."""
        self._hosts = dict(hosts)
        self._failures = failures
        self._pool = ThreadPoolExecutor(threads or max(1, len(self._hosts)))

    @property
    def parties(self) -> tuple[str, ...]:
        """All who can be asked."""
        return tuple(self._hosts)

    def ask(self, round: int, data: bytes) -> Answers:
        """Ask all parties at the same time; an error at a party ends the round for all."""
        futures = {
            party: self._pool.submit(self._one, host, round, data) for party, host in self._hosts.items()
        }
        found = {party: future.result() for party, future in futures.items()}
        return Answers(
            by_party={party: answer for party, answer in found.items() if isinstance(answer, bytes)},
            missing={party: str(why) for party, why in found.items() if not isinstance(why, bytes)},
            lost=frozenset(party for party, why in found.items() if isinstance(why, RoundLost)),
        )

    def close(self) -> None:
        """Let the threads go."""
        self._pool.shutdown()

    def _one(self, host: Host, round: int, data: bytes) -> bytes | str | RoundLost:
        before = self._failures.before(host.party, round)
        if before is not None:
            return before
        try:
            reply = host.handle(data)
        except RoundLost as lost:
            return lost
        return self._failures.after(host.party, round) or reply
