"""`LocalReports`: devices that trust nobody, not even a sum (GD-DR; Shin, Kim, Shin and Xiao 2018).

In each round every device reports one coordinate, drawn by chance, of its gradient, as one bit that may be
wrong. Items are mixed down to a few rows beforehand, by random signs that are public: the error of the mean
grows with the number of coordinates that there are to choose from. What `OnDeviceMF` is compared to.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cofactor.config import plain_numbers, positive, whole
from cofactor.data.grouping import Grouped
from cofactor.errors import Refused, RunError
from cofactor.factors.model import Factors
from cofactor.federation.halves import Facts, Home, Promise, State, array_of
from cofactor.federation.messages import Message
from cofactor.federation.splits import Split
from cofactor.privacy.answers import RandomizedResponse
from cofactor.privacy.bounding import categories
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.events import Bound
from cofactor.privacy.fixed_point import rounded_by_chance
from cofactor.privacy.plan import needed
from cofactor.privacy.schedule import Release, Schedule
from cofactor.privacy.shuffling import shuffled_rounds
from cofactor.randomness import Seeds
from cofactor.recipes.device_steps import left_in, moved
from cofactor.recipes.local_steps import release_of
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.on_device_halves import DeviceCoordinator, DeviceParticipant
from cofactor.recipes.shared_vectors import Finished, Shared
from cofactor.recipes.sums import PlainSum

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

REPORTS = "one bit of a device's gradient"
"""The release, as ledgers and plans name it."""
_WALK = 0.1
"""How far the noise of all rounds together may carry a coordinate, as a part of where it begins."""
_BIT = Bound(size=1, norm="choice", unit="user", adjacency="replace")


@dataclass(frozen=True, kw_only=True, eq=False)
class Reports(Message):
    """What devices report in a round: an entry for each."""

    places: Integers
    """Which coordinate, counted row by row: drawn by chance, whatever the ratings are."""
    bits: NDArray[Any]
    """Whether it is positive, rather: 0 or 1, and often wrong."""
    weight: NDArray[np.float64]
    """What a bit counts for, so that the mean is right on average: one number."""


@dataclass(frozen=True, kw_only=True)
class LocalReports:
    """Matrix factorization from single bits: the guarantee needs no secure sum.

    What is left out is chosen when the federation is known, from public numbers only.
    """

    split: ClassVar[Split] = "on-device"
    units: ClassVar[tuple[Unit, ...]] = ("user",)
    messages: ClassVar[tuple[type[Message], ...]] = (Shared, Finished, Reports)

    factors: int = 20
    """Length of each user's and item's vector."""
    rounds: int = 10
    """How often devices report."""
    rows: int = 64
    """How many rows the items are mixed down to."""
    learning_rate: float | None = None
    """What multiplies the estimated mean of the devices' gradients in each round."""
    centre: float | None = None
    """The mean rating, if it is public: there predictions begin."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(factors=self.factors, rounds=self.rounds, rows=self.rows)
        positive(learning_rate=self.learning_rate, centre=self.centre)

    def settled(self, facts: Facts, budget: Budget | None) -> Self:
        """Return the recipe with all choices made, from public numbers only."""
        if budget is not None and budget.unit != "user":
            raise Refused('LocalReports bounds what a device tells in all: protect users, unit "user".')
        plain = self.fitting().settled(facts, None)
        assert plain.learning_rate is not None
        weight = 1.0
        if budget is not None:
            weight = _weight(calibrated(self.schedule(facts, "user", facts.parties[0]), budget).releases[0])
        noise = weight * math.sqrt(self.rows * self.factors / facts.user_count)
        way = _WALK * plain.steps().level(plain.beginning) / (noise * math.sqrt(self.rounds))
        rate = self.learning_rate or min(way, plain.learning_rate)
        return replace(self, centre=plain.centre, learning_rate=rate)

    def schedule(self, facts: Facts, unit: Unit, party: str) -> Schedule:  # noqa: ARG002 (all send the same)
        """Return everything that a device will release; noise is relative."""
        return _schedule(1.0, self.rounds, len(facts.parties))

    def participant(self, home: Home) -> "ReportingParticipant":
        """Return the half of a device, or of a cohort of them."""
        return ReportingParticipant(self, home)

    def coordinator(self, facts: Facts, seed: int) -> "ReportCoordinator":
        """Return the coordinator's half."""
        return ReportCoordinator(self, facts, seed)

    def promise(self, facts: Facts, budget: Budget) -> Promise:  # noqa: ARG002 (the same for all)
        """Return what the guarantee says besides its numbers."""
        return Promise(
            against=("the coordinator", "the other devices", "everyone who sees a device's reports"),
            covers=("Every report by itself, and item vectors.",),
            does_not_cover=(
                "Which items there are, about how many ratings a device has, who takes part, and who answers "
                "in which round: public.",
                "What a device shows to its own user: made from raw ratings, it stays there.",
            ),
        )

    def fitting(self) -> OnDeviceMF:
        """Return the recipe by which vectors begin, and users are fitted at home."""
        return OnDeviceMF(
            factors=self.factors,
            rounds=self.rounds,
            most_ratings=1,
            centre=self.centre,
            learning_rate=self.learning_rate,
            aggregate=PlainSum(),
        )

    def signs(self, items: int, seed: int) -> Floats:
        """Return how items are mixed down to rows, and back by the transpose: columns of length 1."""
        chance = Seeds(seed).generator("mixed items")
        signs = 2 * chance.integers(0, 2, (self.rows, items), np.int8) - 1
        return (signs / math.sqrt(self.rows)).astype(np.float32)


class ReportingParticipant:
    """One device, or a cohort of them, that reports single bits; at home it is one of `OnDeviceMF`."""

    def __init__(self, recipe: LocalReports, home: Home) -> None:
        """Prepare ratings, and how items are mixed."""
        self._recipe, self._home = recipe, home
        self._device = DeviceParticipant(recipe.fitting().settled(home.facts, None), home)
        self._signs = recipe.signs(home.facts.item_count, home.seed)

    def handle(self, round: int, message: Message) -> Message:
        """Report a coordinate of each device."""
        if not isinstance(message, Shared):
            raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")
        items, users = self._device.fitted(message)
        left, door = left_in(round, self._home), self._home.door
        # Not from the seed: were it known whose turn is which coordinate, shuffling would hide less.
        chance = np.random.default_rng(door.random.new_key())
        places = chance.integers(0, self._recipe.rows * self._recipe.factors, len(left))
        bits = self._bits(places, items, users)[left]
        release = release_of(self._home, REPORTS)
        weight = 1.0 if release is None else _weight(release)
        return Reports(
            places=door.public(places[left]),
            bits=door.unprotected(bits)
            if release is None
            else door.release(release.mechanism, categories(bits, choices=2), what=REPORTS),
            weight=door.public(np.array([weight])),
        )

    def finish(self, message: Message) -> Factors:
        """Fit every user to all of the user's ratings."""
        return self._device.finish(message)

    def state(self) -> State:
        """Return nothing: users are fitted anew in every round."""
        return {}

    def restore(self, state: State) -> None:
        """Go on from there."""

    def _bits(self, places: Integers, items: Floats, users: Floats) -> Integers:
        """Round each device's coordinate, limited to between -1 and 1, to one of both, right on average."""
        rows, factors = np.divmod(places, self._recipe.factors)
        found = coordinates_of(self._device.ratings, users, items, self._signs, rows, factors)
        return rounded_by_chance((1 + np.clip(found, -1.0, 1.0)) / 2, self._home.door.random)


class ReportCoordinator(DeviceCoordinator):
    """Moves the items against the mean gradient that the devices' bits tell."""

    def __init__(self, recipe: LocalReports, facts: Facts, seed: int) -> None:
        """Begin with item vectors that depend on nothing private."""
        super().__init__(recipe.fitting().settled(facts, None), facts, seed)
        self._reports = recipe
        self._signs = recipe.signs(facts.item_count, seed)

    def sums(self, round: int) -> bool:  # noqa: ARG002 (never)
        """Every report is seen by itself."""
        return False

    def take(self, round: int, replies: Mapping[str, Message]) -> None:  # noqa: ARG002
        """Take a step; without answers everything stays as it was."""
        shape = self._reports.rows, self._reports.factors
        read = [_read(reply, sender, math.prod(shape)) for sender, reply in replies.items()]
        count = sum(len(places) for places, _ in read)
        if count < 1:
            return
        total = sum(np.bincount(places, values, math.prod(shape)) for places, values in read)
        mixed = np.reshape(total, shape) * (math.prod(shape) / count)
        mean = self._signs.T.astype(np.float64) @ mixed
        self._items = moved(
            self._items, mean, self._steps.learning_rate, self._steps, self._facts, self._recipe.beginning
        )


def coordinates_of(
    ratings: Grouped, users: Floats, items: Floats, signs: Floats, rows: Integers, factors: Integers
) -> NDArray[np.float64]:
    """Return one coordinate of each user's gradient, by items that are mixed down to rows by `signs`."""
    owners, each = ratings.members(), np.arange(len(users))
    errors = ratings.values - np.einsum("ij,ij->i", users[owners], items[ratings.index])
    mixed = np.bincount(owners, signs[rows[owners], ratings.index] * errors, len(users))
    return np.asarray(-2 * users[each, factors] * mixed)


def budget_if_shuffled(central: Budget, *, devices: int, rounds: int) -> Budget:
    """Return the local budget that would keep the central one, if a trusted shuffler stood between.

    A training with it has the local guarantee only: nobody shuffles here. For comparisons at equal epsilon,
    as in Li et al. (2022), section 6.3.
    """
    low, high = 1e-6, 32.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        fits = shuffled_rounds(middle, devices, rounds, central.delta) <= central.epsilon
        low, high = (middle, high) if fits else (low, middle)
    return needed(
        _schedule(low, rounds, 1), delta=central.delta, unit=central.unit, adjacency=central.adjacency
    )


def _schedule(report_epsilon: float, rounds: int, parties: int) -> Schedule:
    release = Release(
        what=REPORTS,
        mechanism=RandomizedResponse(choices=2, epsilon=report_epsilon),
        bound=_BIT,
        dimension=1,
    )
    return Schedule(releases=(release,), rounds=rounds, parties=parties)


def _weight(release: Release) -> float:
    """Return one over how much more often than not a bit is right, less how often it is wrong."""
    assert isinstance(release.mechanism, RandomizedResponse)
    return 1 / (2 * release.mechanism.truth - 1)


def _read(reply: Message, sender: str, most: int) -> tuple[Integers, NDArray[np.float64]]:
    """Return where reports belong, and what they count for."""
    count = reply.arrays.get("places", np.empty(0)).size
    places: Any = array_of(reply, "places", (count,), sender).astype(np.int64)
    bits = array_of(reply, "bits", (count,), sender)
    if np.any((places < 0) | (places >= most)) or not np.isin(bits, (0, 1)).all():
        raise RunError(f"{sender} reports a coordinate that there is not, or no bit.")
    weight = float(array_of(reply, "weight", (1,), sender)[0])
    return places, weight * (2.0 * bits - 1)
