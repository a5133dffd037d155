"""`plan`: what a schedule will cost, before anything is released. Reads no data."""

import math
from dataclasses import dataclass
from typing import Any

from cofactor.config import as_table
from cofactor.errors import ConfigError, Refused
from cofactor.figures import finite, percent, readable, rounded_up
from cofactor.privacy.accountant import Spent, spent
from cofactor.privacy.budget import Adjacency, Budget, Unit, odds
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.mechanisms import PoissonBinomial, SampledGaussian
from cofactor.privacy.schedule import Release, Schedule

_ROUNDS_SHOWN = 12
_SMALL_CROWD = 20


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A schedule with its noise settled, and what follows from it."""

    schedule: Schedule
    budget: Budget
    spent: Spent
    """After the last round."""
    by_round: tuple[tuple[int, float], ...]
    """Rounds, and epsilon after each of them; a dozen of them if there are many."""
    bytes_per_round: int
    """What one party sends in the round in which it sends most; about as much is counted for the way back."""
    signal_to_noise: tuple[float | None, ...]
    """For each release, over all rounds together, the signal divided by the noise at best: if all users
    pulled the same way all the time."""
    warnings: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether the schedule keeps within the budget."""
        return self.budget.allows(self.spent.epsilon)

    @property
    def odds(self) -> float:
        """How often a guesser with even prior odds is right at best."""
        return odds(self.spent.epsilon, self.spent.delta)

    @property
    def total_bytes(self) -> int:
        """All traffic, both ways."""
        rounds = self.schedule.rounds
        sent = sum(_size(release) * (release.rounds or rounds) for release in self.schedule.releases)
        return 2 * math.ceil(sent) * self.schedule.parties

    def as_json(self) -> dict[str, Any]:
        """Return the plan for programs."""
        return {
            "holds": self.holds,
            "budget": as_table(self.budget),
            "epsilon": finite(self.spent.epsilon),
            "delta": self.spent.delta,
            "odds": self.odds,
            "accountant": self.spent.method,
            "rounds": self.schedule.rounds,
            "parties": self.schedule.parties,
            "releases": [
                {"what": release.what, "mechanism": _table(release), "signal_to_noise": ratio}
                for release, ratio in zip(self.schedule.releases, self.signal_to_noise, strict=True)
            ],
            "by_round": [{"round": number, "epsilon": finite(epsilon)} for number, epsilon in self.by_round],
            "bytes_per_round": self.bytes_per_round,
            "total_bytes": self.total_bytes,
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        """Write the plan in a few lines."""
        kept = "within" if self.holds else "ABOVE"
        rounds = ", ".join(f"{number}: {rounded_up(epsilon)}" for number, epsilon in self.by_round)
        lines = [
            f"epsilon {rounded_up(self.spent.epsilon, 4)} at delta {self.spent.delta:g}, after "
            f"{self.schedule.rounds:,} round(s), by {self.spent.method}",
            f"{kept} the budget: {self.budget}",
            f"who guesses between two possibilities is right at most {percent(self.odds)} of the time",
            *(f"{release.what}: {_noise(release)}" for release in self.schedule.releases),
            *(
                _signal(release, ratio, self.schedule)
                for release, ratio in zip(self.schedule.releases, self.signal_to_noise, strict=True)
            ),
            f"epsilon by round: {rounds}",
            f"traffic: {readable(self.bytes_per_round)} up and down for each party in its largest round, "
            f"{readable(self.total_bytes)} in all",
            f"assuming that no {self.budget.unit} is at two parties" if _apart(self.schedule) else "",
            *(f"warning: {text}" for text in self.warnings),
        ]
        return "\n".join(line for line in lines if line)


def plan(schedule: Schedule, budget: Budget, *, keep_noise: bool = False) -> Plan:
    """Settle the noise of a schedule, unless it is to be kept, and say what follows from it."""
    if not isinstance(schedule, Schedule) or not isinstance(budget, Budget):
        raise ConfigError("plan takes a Schedule and a Budget, in this order.")
    settled = schedule if keep_noise else calibrated(schedule, budget)
    for release in settled.releases:
        _check_drawable(release)
    by_round = tuple((number, _spent(settled, budget, number).epsilon) for number in _rounds(settled.rounds))
    signal = tuple(_signal_to_noise(release, settled) for release in settled.releases)
    total = _spent(settled, budget, settled.rounds)
    return Plan(
        schedule=settled,
        budget=budget,
        spent=total,
        by_round=by_round,
        bytes_per_round=_largest_round(settled),
        signal_to_noise=signal,
        warnings=(*_budget_warnings(settled, budget, total), *_crowd_warnings(settled, signal)),
    )


def needed(schedule: Schedule, *, delta: float, unit: Unit, adjacency: Adjacency = "empty") -> Budget:
    """Return the least budget that lets a schedule run with the noise it states."""
    total = spent(schedule.events(), delta, unit=unit, adjacency=adjacency)
    if math.isinf(total.epsilon):
        raise Refused(f"no epsilon can be proved for this schedule at delta {delta:g}. Add noise, or delta.")
    return Budget(epsilon=max(total.epsilon, 1e-6), delta=delta, unit=unit, adjacency=adjacency)


def _size(release: Release) -> float:
    return release.dimension * release.bytes_per_number


def _largest_round(schedule: Schedule) -> int:
    """Return the bytes of the round in which a party sends most."""
    rounds = range(1, schedule.rounds + 1)
    sizes = (
        sum(_size(each) for each in schedule.releases if each.count(number) > each.count(number - 1))
        for number in rounds
    )
    return math.ceil(max(sizes))


def _check_drawable(release: Release) -> None:
    mechanism: Any = release.mechanism
    largest = getattr(mechanism, "largest_noise", math.inf)
    size = mechanism.noise_size(release.bound) if largest < math.inf else 0.0
    if size > largest:
        raise ConfigError(
            f"{release.what}: it takes noise of {size:,.0f} steps of the grid, and at most {largest:,} can "
            "be drawn. Use a coarser grid, and so a smaller bound."
        )


def _spent(schedule: Schedule, budget: Budget, rounds: int) -> Spent:
    return spent(schedule.events(rounds), budget.delta, unit=budget.unit, adjacency=budget.adjacency)


def _rounds(last: int) -> list[int]:
    if last <= _ROUNDS_SHOWN:
        return list(range(1, last + 1))
    return sorted({1, *(round(last * k / (_ROUNDS_SHOWN - 1)) for k in range(1, _ROUNDS_SHOWN))})


def _signal_to_noise(release: Release, schedule: Schedule) -> float | None:
    """Return the largest possible norm of all sums added up, divided by the expected norm of their noise."""
    mechanism: Any = release.mechanism
    # The signal adds up, the noise of independent sums only by the root of their number.
    sums = math.sqrt(release.count(schedule.rounds) * schedule.parties)
    if isinstance(mechanism, PoissonBinomial):
        # Tosses have variance 1/4, and each participant moves their mean by theta at most.
        return 2 * mechanism.theta * math.sqrt(mechanism.participants * mechanism.trials) * sums
    if schedule.users is None or release.bound.norm in ("max", "choice", "member"):
        return None
    spread = release.dimension if release.bound.norm == "l1" else math.sqrt(release.dimension)
    multiplier: float = mechanism.noise_multiplier
    return _crowd(mechanism, schedule, _units(release, schedule)[0]) / (multiplier * spread) * sums


def _units(release: Release, schedule: Schedule) -> tuple[int, str]:
    """Return how many there are of whatever pulls at a release, and what that is."""
    if release.bound.unit == "rating" and schedule.ratings is not None:
        return schedule.ratings, "ratings"
    return schedule.users or 0, "users"


def _crowd(mechanism: Any, schedule: Schedule, units: int) -> float:
    """Return how many users, or ratings, are behind one noisy sum, on average."""
    at_one_party = units if schedule.shared_units else units / schedule.parties
    return at_one_party * (mechanism.sampling if isinstance(mechanism, SampledGaussian) else 1.0)


def _budget_warnings(schedule: Schedule, budget: Budget, total: Spent) -> list[str]:
    found = budget.concerns(schedule.users if budget.unit == "user" else None)
    if not budget.allows(total.epsilon):
        found.append(f"epsilon {total.epsilon:.4g} is above the budget of {budget.epsilon:g}.")
    elif total.epsilon < 0.99 * budget.epsilon:
        found.append(f"only epsilon {rounded_up(total.epsilon)} of {budget.epsilon:g} is spent.")
    if schedule.shared_units and schedule.parties > 1 and budget.unit == "user":
        found.append(
            f"each user is at {schedule.parties} parties, whose releases add up; user vectors released this "
            "way carry little."
        )
    return found


def _crowd_warnings(schedule: Schedule, signal: tuple[float | None, ...]) -> list[str]:
    found = [
        f"the noise will drown {release.what}: even if all {_units(release, schedule)[1]} pulled the same "
        f"way in all rounds, the signal would be {ratio:.2g} times the noise. Use more users, fewer numbers, "
        "or a larger epsilon."
        for release, ratio in zip(schedule.releases, signal, strict=True)
        if ratio is not None and ratio < 1
    ]
    if schedule.parties == 2:
        found.append(
            "of two parties, each can subtract its own part from the sum and see the other's: noise must "
            "protect it alone."
        )
    if schedule.users is None:
        return found
    crowd = min(_crowd(release.mechanism, schedule, schedule.users) for release in schedule.releases)
    if crowd < _SMALL_CROWD:
        found.append(
            f"only about {crowd:.3g} users are behind each noisy sum: an item that one of them rated is "
            "that user's rating and noise, nothing else."
        )
    return found


def _noise(release: Release) -> str:
    settings = ", ".join(f"{name} {value:.10g}" for name, value in _table(release).items() if name != "kind")
    return f"{type(release.mechanism).__name__}, {settings}"


def _apart(schedule: Schedule) -> bool:
    return schedule.parties > 1 and not schedule.shared_units


def _signal(release: Release, ratio: float | None, schedule: Schedule) -> str:
    if ratio is None:
        return ""
    units = _units(release, schedule)[1]
    return f"{release.what}: if all {units} always pulled the same way, signal / noise would be {ratio:.3g}"


def _table(release: Release) -> dict[str, Any]:
    return as_table(release.mechanism)
