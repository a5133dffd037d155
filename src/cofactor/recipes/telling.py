"""What a training tells while it runs: one line a round, in public numbers."""

import time
from collections.abc import Callable

from cofactor.federation.drive import Round
from cofactor.privacy.budget import Budget
from cofactor.privacy.schedule import Schedule
from cofactor.progress import Listener, Progress

_NAMED = 3
"""How many parties that did not answer are named."""
_POINTS = 8
"""How often epsilon is reckoned anew while rounds go by."""


class Phases:
    """Where the time of a training goes, as far as it is known also that of attempts that were cut off."""

    def __init__(self) -> None:
        """Begin with the first phase."""
        self._since = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def over(self, name: str) -> None:
        """Say which phase is over, or a stretch of it; the next one begins."""
        now = time.perf_counter()
        self.add(name, now - self._since)
        self._since = now

    def add(self, name: str, seconds: float) -> None:
        """Add what a phase took in earlier attempts."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds


def told_rounds(
    note: Listener, budget: Budget | None, schedule: Schedule | None, before: float = 0.0
) -> Callable[[Round], None]:
    """Return a listener that turns rounds into progress; epsilon is what all rounds so far cost at most.

    `before` is how many seconds rounds took that earlier attempts finished: the clock goes on from there.
    """
    epsilons = {} if budget is None or schedule is None else _by_round(schedule, budget)
    whole = max(epsilons.values(), default=None)
    start = time.perf_counter() - before

    def tell(done: Round) -> None:
        reached = next((value for number, value in epsilons.items() if number >= done.number), whole)
        numbers = {
            "answered": float(done.answered),
            "parties": float(done.parties),
            "bytes": float(done.traffic),
            "seconds": round(time.perf_counter() - start, 3),
        }
        parts = [f"{done.answered}/{done.parties} parties", f"{done.traffic / 1e6:.3g} MB"]
        if budget is not None and reached is not None:
            numbers |= {"epsilon": reached, "epsilon_planned": whole or reached}
            parts.insert(0, f"epsilon {reached:.2f} of {budget.epsilon:.2f}")
        parts += _reasons(done)
        note(Progress("round", done.number, done.of, "  ".join(parts), numbers))

    return tell


def _reasons(done: Round) -> list[str]:
    """Say who did not answer and why; many with the same reason are counted."""
    by_reason: dict[str, list[str]] = {}
    for party, why in done.missing.items():
        by_reason.setdefault(why.removeprefix(f"{party}: "), []).append(party)
    return [
        f"{', '.join(names) if len(names) <= _NAMED else f'{len(names):,} parties'}: {why}"
        for why, names in by_reason.items()
    ]


def _by_round(schedule: Schedule, budget: Budget) -> dict[int, float]:
    from cofactor.privacy.accountant import spent  # it takes a second to load

    last = schedule.rounds
    wanted = sorted({max(1, round(last * k / _POINTS)) for k in range(1, _POINTS + 1)})
    return {
        number: spent(
            schedule.events(number), budget.delta, unit=budget.unit, adjacency=budget.adjacency
        ).epsilon
        for number in wanted
    }
