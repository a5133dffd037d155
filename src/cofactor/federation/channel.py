"""How questions reach parties and answers come back. `InProcess` needs no network: every party is a thread.

Whoever does not answer is missing, with the reason; that is normal and no error. Failures can be scripted, to
see what a recipe makes of them.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from cofactor.config import fraction, positive
from cofactor.errors import CofactorError, TooFew
from cofactor.federation.door import RoundLost
from cofactor.federation.host import Host

ANSWER = 2
"""The step of a secure sum in which the answer itself is sent, masked; before it, only keys are."""


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
        """All who hold ratings. Others who take part are asked by their names, too."""

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:
        """Send parties their letters and return what came back in time; a secure sum takes several steps."""


@dataclass(frozen=True, kw_only=True)
class Failures:
    """What goes wrong, and when: pairs of a party and a round."""

    absent: frozenset[tuple[str, int]] = frozenset()
    """The question never arrives: nothing is computed, nothing charged."""
    lost: frozenset[tuple[str, int]] = frozenset()
    """The answer is made and charged, and lost on its way."""
    silent: frozenset[tuple[str, int]] = frozenset()
    """The answer arrives, and the party is not heard of again in that round: in sums, others must help."""
    devices: float = 0.0
    """Part of all devices, by chance, whose answers are lost in each round of an on-device simulation."""
    delays: Mapping[tuple[str, int], float] = field(default_factory=dict)
    """Seconds by which an answer is late. Nobody sleeps: the clock is imagined."""
    patience: float = 60.0
    """Seconds after which an answer no longer counts."""

    def __post_init__(self) -> None:
        positive(patience=self.patience)
        if self.devices != 0:
            fraction(devices=self.devices)

    def before(self, party: str, round: int, step: int | None = None) -> str | None:
        """Say why a question does not arrive, if it does not; `step` is that of a secure sum."""
        if (party, round) in self.absent:
            return "did not get the question"
        gone = step is not None and step > ANSWER and (party, round) in self.silent
        return "was not heard of again" if gone else None

    def after(self, party: str, round: int, step: int | None = None) -> str | None:
        """Say why an answer does not arrive in time, if it does not."""
        if step is not None and step < ANSWER:
            return None
        if (party, round) in self.lost:
            return "its answer was lost"
        late = self.delays.get((party, round), 0.0)
        return f"answered after {late:g} s" if late > self.patience else None


NO_FAILURES = Failures()


class InProcess:
    """All parties in this process, side by side in threads. Bytes pass between them, and nothing else."""

    def __init__(
        self,
        hosts: Mapping[str, Host],
        *,
        roles: Mapping[str, Host] | None = None,
        failures: Failures = NO_FAILURES,
        threads: int | None = None,
        forgiving: bool = False,
    ) -> None:
        """Take the parties' ends, and those of others who take part; up to 64 work at the same time.

        If it is `forgiving`, a party that refuses is missing; otherwise its error ends the round for all.
        """
        self._parties = tuple(hosts)
        self._hosts = dict(hosts) | dict(roles or {})
        self._failures, self._forgiving = failures, forgiving
        self._pool = ThreadPoolExecutor(threads or min(max(1, len(self._hosts)), 64))

    @property
    def parties(self) -> tuple[str, ...]:
        """All who hold ratings."""
        return self._parties

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:
        """Ask parties at the same time."""
        futures = {
            party: self._pool.submit(self._one, self._hosts[party], round, data, step)
            for party, data in letters.items()
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

    def _one(self, host: Host, round: int, data: bytes, step: int | None) -> bytes | str | RoundLost:
        before = self._failures.before(host.party, round, step)
        if before is not None:
            return before
        try:
            reply = host.handle(data)
        except RoundLost as lost:
            return lost
        except TooFew as few:
            return str(few)
        except CofactorError as error:
            if not self._forgiving:
                raise
            return str(error)
        return self._failures.after(host.party, round, step) or reply
