"""Keeps a run going until it is done: starts the server, submits jobs, and submits again after a crash.

The engine ends a whole job when one party's worker crashes, and lets no party join a job that runs. So a job
is only a stretch of a run: the run's own folder says how far it is, and its own file says how it ended. What
the engine says of a job never counts as the run's outcome.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cofactor.config import positive, whole
from cofactor.errors import ConfigError, RunError
from cofactor.network.jobs import OUR_APPS, Apps, Submitter
from cofactor.network.kit_policies import write_site
from cofactor.network.outcomes import OUTCOME, PAUSE, read_outcome, write_fewest
from cofactor.network.processes import Server
from cofactor.progress import Listener, Progress, nobody

FINAL: Final = ("finished", "refused")
"""Outcomes after which no further job is needed; others are "paused", "interrupted" and "failed"."""
_FAILURES: Final = 3
"""How many jobs in a row may fail by an error of the coordinator's own."""
_SHORT: Final = 30.0
"""Seconds below which a job got nowhere."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """How long to wait for what, in seconds."""

    gather: float = 60.0
    """For parties that are still missing when there are enough to begin."""
    come: float = 86_400.0
    """For enough parties to begin."""
    again: int = 100
    """How many jobs a run may take."""
    look: float = 0.25
    """Between two looks."""
    growth: int = 2**31
    """Bytes by which the engine's own process may grow before the run pauses and takes a fresh one."""
    rest: float = 30.0
    """At most, between jobs that end soon after they began."""

    def __post_init__(self) -> None:
        positive(gather=self.gather, come=self.come, look=self.look, rest=self.rest)
        whole(again=self.again, growth=self.growth)


def supervise(
    host: Path,
    run: Path,
    *,
    parties: Sequence[str],
    fewest: int,
    server: Server | None = None,
    waiting: Waiting | None = None,
    apps: Apps = OUR_APPS,
    listen: Listener = nobody,
) -> Mapping[str, Any]:
    """See a run through, and return what its outcome file says.

    At least `fewest` of the parties must be there to begin, and as many in the end; those who come later, or
    come back, are let in between two rounds. A server that is given is used and left running; otherwise one
    is started and stopped.
    """
    if not 1 <= fewest <= len(parties):
        raise ConfigError(
            f"fewest must lie between 1 and {len(parties)}, the number of parties; got {fewest}."
        )
    run.mkdir(parents=True, exist_ok=True)
    write_fewest(run, fewest)
    own = Server(host) if server is None else server
    supervision = _Supervision(host, run, tuple(parties), fewest, own, waiting or Waiting(), apps, listen)
    try:
        return supervision.see_through()
    finally:
        supervision.close()
        if server is None:
            own.stop()


class _Supervision:
    def __init__(
        self,
        host: Path,
        run: Path,
        parties: tuple[str, ...],
        fewest: int,
        server: Server,
        waiting: Waiting,
        apps: Apps,
        listen: Listener,
    ) -> None:
        self._host, self._run, self._parties, self._fewest = host, run, parties, fewest
        self._server, self._waiting, self._apps, self._listen = server, waiting, apps, listen
        self._session: Submitter | None = None
        self._awaited: tuple[str, ...] = ()

    def see_through(self) -> Mapping[str, Any]:
        rest, failures = self._waiting.look, 0
        for number in range(1, self._waiting.again + 1):
            began = time.monotonic()
            outcome = self._stretch(number)
            if outcome.get("outcome") in FINAL:
                return outcome
            failures = failures + 1 if outcome.get("outcome") == "failed" else 0
            if failures == _FAILURES:
                raise RunError(
                    f"the coordinator failed: {outcome.get('words')} See log.txt in {self._server.kit}."
                )
            # Whom the run waits for must be there, too, before the next job.
            self._awaited = tuple(outcome.get("missing", ()))
            short = time.monotonic() - began < _SHORT
            rest = min(2 * rest, self._waiting.rest) if short else self._waiting.look
            time.sleep(rest)
        raise RunError(
            f"the run took {self._waiting.again} jobs and is not finished; what was done is kept in "
            f"{self._run}. See {self._server.kit / 'log.txt'}."
        )

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _stretch(self, number: int) -> Mapping[str, Any]:
        """Run one job to its end, whatever that is."""
        outcome = read_outcome(self._run)
        if outcome.get("outcome") in FINAL:
            return outcome
        there = self._gather()
        for name in (PAUSE, OUTCOME):
            (self._run / name).unlink(missing_ok=True)
        write_site(self._server.kit, self._run)
        job = self._submitted(there)
        self._say(f"job {number} begins with {', '.join(there)}")
        return self._watch(job, there) if job is not None else {}

    def _gather(self) -> dict[str, str]:
        """Wait for enough parties, and then a while for the others."""
        began, enough, shown = time.monotonic(), None, -1
        while True:
            self._start_server()
            there = self._there()
            now = time.monotonic()
            if len(there) == len(self._parties):
                return there
            if not self._enough(there):
                enough = None
            elif enough is None:
                enough = now
            elif now - enough > self._waiting.gather:
                return there
            if now - began > self._waiting.come:
                missing = ", ".join(party for party in self._parties if party not in there)
                raise RunError(f"parties did not come within {self._waiting.come:g} s: {missing}.")
            if len(there) != shown:
                shown = len(there)
                self._say(f"{shown} of {len(self._parties)} parties are there; {self._fewest} are needed")
            time.sleep(self._waiting.look)

    def _enough(self, there: Mapping[str, str]) -> bool:
        return len(there) >= self._fewest and all(party in there for party in self._awaited)

    def _submitted(self, there: Mapping[str, str]) -> str | None:
        try:
            return self._open().submit(sorted(there), apps=self._apps)
        except RunError:
            self.close()
            return None

    def _watch(self, job: str, there: Mapping[str, str]) -> Mapping[str, Any]:
        """Wait until the run says how it ended, or the job is over without a word."""
        smallest = 0
        while True:
            over = self._over(job)
            outcome = read_outcome(self._run)
            if outcome:
                self._say(f"the job ended: {outcome.get('outcome')}")
                return outcome
            if over:
                self._say("the job ended before the run did; it is taken up again")
                return {}
            if any(there.get(party) != mark for party, mark in self._there().items()):
                self._ask_to_pause("a party has come back")
            # What the engine keeps of each question is never given back: some hundred kilobytes.
            now = self._server.memory
            smallest = min(smallest, now) or now
            if now - smallest > self._waiting.growth:
                self._ask_to_pause("the engine has grown large")
            time.sleep(self._waiting.look)

    def _over(self, job: str) -> bool:
        """Say whether a job has ended; a server that was lost takes its jobs along."""
        if not self._server.running:
            return True
        try:
            return self._open().status(job).startswith("FINISHED")
        except RunError:
            self.close()
            return not self._server.running

    def _ask_to_pause(self, why: str) -> None:
        if not (self._run / PAUSE).exists():
            self._say(f"{why}; the run pauses before its next round")
            (self._run / PAUSE).touch()

    def _start_server(self) -> None:
        """Start the server if it is not running. Not while a job is watched: it would seem to run on."""
        if not self._server.running:
            self.close()
            self._server.stop()
            self._server.start()
            self._server.wait()

    def _there(self) -> dict[str, str]:
        """Return who of the parties is there; nobody, if the server does not say."""
        try:
            found = self._open().registered()
        except RunError:
            self.close()
            return {}
        return {party: mark for party, mark in found.items() if party in self._parties}

    def _open(self) -> Submitter:
        if self._session is None:
            self._session = Submitter(self._host)
        return self._session

    def _say(self, words: str) -> None:
        self._listen(Progress("federation", 0, 0, words))
