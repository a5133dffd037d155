"""The door: everything that leaves a party goes through it, bounded, noisy, and charged to the ledger.

    noisy = door.release(mechanism, bounded, what="item sums")     # bound -> noise -> event -> ledger

What a fused kernel makes, with noise inside, goes out by `made`, with its event. An answer may hold nothing
that did not go through here: the host compares. Sums that hide their parts are not here yet; where they are
simulated, noise may be a share.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cofactor.config import fraction
from cofactor.errors import CofactorError, Refused, RunError
from cofactor.federation.books import released
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Event
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import Gaussian
from cofactor.privacy.schedule import Schedule
from cofactor.randomness import Random

Protection = Literal["noise", "a share of noise", "public", "nothing"]
"""What stands between a number on the wire and the ratings it came from."""

COORDINATOR = "coordinator"
SUM = "the sum of all answers"
"""Who receives an answer of which nobody sees more than the sum."""


class RoundLost(CofactorError):
    """A round was charged before a crash, and its answer never stored: it is not made, nor charged, again."""


class Door:
    """One party's way out."""

    def __init__(
        self,
        *,
        party: str,
        ledger: Ledger | None,
        random: Random,
        run: str,
        schedule: Schedule | None = None,
        shares: bool = True,
    ) -> None:
        """Open the door; without a ledger nothing noisy can leave, and nothing beyond the schedule.

        With `shares` False the party asks for more noise than the others have, and adds all of it itself.
        """
        self.party = party
        self.random = random
        self._ledger = ledger
        self._schedule = schedule
        self._run = run
        self._shares = shares
        self._round = 0
        self._passed: list[tuple[NDArray[Any], Protection]] = []

    def begin(self, round: int) -> None:
        """Begin a round: what passed in earlier ones may not go out again under another name."""
        self._round = round
        self._passed.clear()
        if self._ledger is not None and any(
            round_of(event) == round for event in released(self._ledger, self._run)
        ):
            raise RoundLost(
                f"{self.party}: round {round} was charged before a crash. It is left out, not repeated."
            )

    def release(
        self, mechanism: Any, bounded: Bounded, *, what: str, share: float = 1.0
    ) -> NDArray[np.float64]:
        """Add noise to a bounded value, charge it, and let it out.

        With `share` below 1 the noise has only that part of its variance, and protects nothing alone: the
        event is that of a sum in which the honest parties' shares add up to 1. Such an answer is only summed.
        """
        if share != 1.0 and not self._shares:
            raise RunError(f"{self.party} has a budget of its own: it adds all of its noise itself.")
        drawn = mechanism if share == 1.0 else _with_share(mechanism, share)
        noisy, event = drawn.release(bounded, random=self.random, **self.label(what))
        self._charge(replace(event, mechanism=mechanism))  # refused, the noisy value is dropped here
        return self._passes(noisy, "noise" if share == 1.0 else "a share of noise")

    def made(self, event: Event, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Charge what a fused kernel will release; then let it be made, and out.

        Nothing is made that the ledger refuses: noisy numbers that stayed behind could leave later, unpaid.
        The event has the `label` of this round, by which a crash in it is noticed later.
        """
        if event.by != self.party or round_of(event) != self._round:
            raise RunError(f"{self.party}: {event.what} by {event.by} is no release of round {self._round}.")
        if event.secure and not self.random.secure:
            raise RunError(f"{self.party}: {event.what} says that its noise is secure, and it is not.")
        self._charge(event)
        return self._passes(make(), "noise")

    def label(self, what: str) -> dict[str, str]:
        """Return what, by and to for an event of this round: what a fused kernel needs to make one."""
        return {"what": f"{what}, round {self._round}", "by": self.party, "to": COORDINATOR}

    def public(self, values: NDArray[Any]) -> NDArray[Any]:
        """Let out numbers that do not depend on ratings, or that were released before."""
        return self._passes(values, "public")

    def unprotected(self, values: NDArray[Any]) -> NDArray[Any]:
        """Let out numbers as they are, in a run without a budget; with one, that is refused."""
        if self._ledger is not None:
            raise RunError(f"{self.party}: a run with a budget releases nothing without noise.")
        return self._passes(values, "nothing")

    def protection(self, values: NDArray[Any]) -> Protection:
        """Say how an array that leaves in this round is protected; refuse one that did not pass."""
        for passed, protection in self._passed:
            if values is passed:
                return protection
        raise RunError(f"{self.party}: an answer holds numbers that did not go through the door.")

    def _charge(self, event: Event) -> None:
        if self._ledger is None:
            raise RunError(f"{self.party}: nothing noisy leaves without a ledger.")
        self._check_scheduled(event, self._ledger)
        self._ledger.spend(event, run=self._run)

    def _check_scheduled(self, event: Event, ledger: Ledger) -> None:
        """Refuse more of a release than was planned, whoever asks for it."""
        if self._schedule is None:
            return
        what = release_of(event)
        done = sum(each.count for each in released(ledger, self._run) if release_of(each) == what)
        planned = [each.count(self._schedule.rounds) for each in self._schedule.releases if each.what == what]
        if done + event.count > sum(planned):
            raise Refused(
                f"{self.party}: {what} would be released {done + event.count:,} times, and {sum(planned):,} "
                "were planned. Nothing was released."
            )

    def _passes(self, values: NDArray[Any], protection: Protection) -> NDArray[Any]:
        # A copy of its own: what is changed afterwards at home does not change what goes out.
        passed = np.array(values)
        passed.flags.writeable = False
        self._passed.append((passed, protection))
        return passed


def release_of(event: Event) -> str:
    """Return which release an event is of, its round apart."""
    what, mark, _ = event.what.rpartition(", round ")
    return what if mark else event.what


def round_of(event: Event) -> int | None:
    """Return the round that an event's label tells, if it has one."""
    _, mark, number = event.what.rpartition(", round ")
    return int(number) if mark and number.isascii() and number.isdigit() else None


def _with_share(mechanism: Any, share: float) -> Any:
    fraction(share=share)
    if not isinstance(mechanism, Gaussian):
        raise RunError(f"noise of {type(mechanism).__name__} has no shares here.")
    return mechanism.scaled(math.sqrt(share))
