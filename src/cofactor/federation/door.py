"""The door: everything that leaves a party goes through it, bounded, noisy, and charged to the ledger.

    noisy = door.release(mechanism, bounded, what="item sums")     # bound -> noise -> event -> ledger

What a fused kernel makes, with noise inside, goes out by `made`, with its event. What only has its part of
the noise of a sum goes out by `share`, and only into that sum. An answer may hold nothing that did not go
through here: the host compares.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto.keys import chain
from cofactor.errors import CofactorError, ConfigError, Refused, RunError, TooFew
from cofactor.federation.books import released
from cofactor.federation.gauge import Gauge, deviation_of
from cofactor.federation.labels import in_round, release_of, round_of
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.laws import AnyLaw, law_of
from cofactor.privacy.layers import Layers
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import DiscreteLaplace, PoissonBinomial, Skellam
from cofactor.privacy.schedule import Schedule
from cofactor.randomness import Random

Protection = Literal["nothing", "a share of noise", "noise", "sealed for other parties", "public"]
"""What stands between a number on the wire and the ratings it came from, the weakest first."""

OVERFLOW = 2.0**-38
"""Probability, at most, that a sum does not fit the numbers it is counted in, or that chance puts a party
among neighbours who collude. It is charged to delta."""

COORDINATOR = "coordinator"
SUM = "the sum of all answers"
"""Who receives an answer of which nobody sees more than the sum."""


class RoundLost(CofactorError):
    """A round was charged before a crash, and its answer never stored: it is not made, nor charged, again."""


@dataclass(frozen=True, kw_only=True)
class Summand:
    """What must be known of whole numbers that are added to those of other parties."""

    array: int
    """Its number among all that passed in this round: noise in layers is drawn by it."""
    largest: int
    """The largest absolute value that the sum of all parties can have, noise apart."""
    noise: AnyLaw | None = None
    """The most noise that sum can have; None if it has none."""
    layered: AnyLaw | None = None
    """The noise of the sum, before any excess, if this party's part of it lies in layers."""


@dataclass(frozen=True)
class Passed:
    """An array that went through the door in this round."""

    values: NDArray[Any]
    protection: Protection
    summand: Summand | None = None
    """None if it is not for a sum."""


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
        layers: Layers | None = None,
        loudest: float = 1.0,
        cohort: bool = False,
        shares: bool = True,
        gauge: Gauge | None = None,
    ) -> None:
        """Open the door; without a ledger nothing noisy can leave, and nothing beyond the schedule.

        `layers` divide the noise of sums among parties; without them each adds all of it. No party's noise is
        more than `loudest` times that of a whole sum. A `cohort` plays all devices of a simulation. With
        `shares` False the party asks for more noise than the others have, and adds all of it itself. A
        `gauge` reads values without noise: a simulation may have one, and nobody else.
        """
        self.party = party
        self.random = random
        self.gauge = gauge
        self._ledger = ledger
        self._schedule = schedule
        self._run = run
        self._layers, self._loudest, self._cohort, self._shares = layers, loudest, cohort, shares
        self._round = 0
        self._seeds: list[bytes] = []
        self._passed: list[Passed] = []

    def begin(self, round: int) -> None:
        """Begin a round: what passed in earlier ones may not go out again under another name."""
        self._round = round
        self._passed.clear()
        if self._layers is not None and not self._cohort:
            self._seeds = chain(self.random.new_key().tobytes(), len(self._layers.grid))
        if self._ledger is not None and any(
            round_of(event) == round for event in released(self._ledger, self._run)
        ):
            raise RoundLost(
                f"{self.party}: round {round} was charged before a crash. It is left out, not repeated."
            )

    def release(self, mechanism: Any, bounded: Bounded, *, what: str) -> NDArray[np.float64]:
        """Add noise to a bounded value, charge it, and let it out."""
        if hasattr(mechanism, "participants"):
            raise RunError(
                f"{self.party}: {type(mechanism).__name__} adds one participant's part of the noise, which "
                "protects nothing unless it is summed."
            )
        noisy, event = mechanism.release(bounded, random=self.random, **self.label(what))
        self._charge(event)  # refused, the noisy value is dropped here
        if self.gauge is not None:
            self.gauge.released(what, bounded, mechanism)
        return self._passes(noisy, "noise")

    def share(
        self,
        mechanism: Skellam | DiscreteLaplace,
        bounded: Bounded,
        *,
        what: str,
        largest_sum: int,
        devices: int = 1,
        beside: int = 0,
        joint: bool = False,
    ) -> NDArray[np.int64]:
        """Add this party's part of the noise of a sum to bounded whole numbers, charge all of it, let it out.

        Alone it protects next to nothing: the event is that of the sum of all parties, in which the honest
        survivors' parts make up all of the noise. `largest_sum` is public: the largest absolute value that
        the sum of all parties can have. A cohort says how many of its devices survive. `beside` counts
        numbers under the same bound that stay at home and get all of the noise there. Where parties hold
        parts of the same users, their sum is a `joint` release.
        """
        if type(mechanism) not in (Skellam, DiscreteLaplace):
            raise RunError(f"{type(mechanism).__name__} noise has no shares. Use Skellam or DiscreteLaplace.")
        if devices != 1 and not self._cohort:
            raise RunError(f"{self.party}: only a cohort adds the noise of several devices.")
        if bounded.value.dtype.kind != "i":
            raise ConfigError(f"a sum needs whole numbers, got {bounded.value.dtype}. Round first.")
        event = mechanism.event(
            bounded.bound, dimension=bounded.value.size + beside, random=self.random, **self.label(what)
        )
        values, law = bounded.value.astype(np.int64), law_of(mechanism, bounded.bound)
        added = self._added(values.shape, law, devices)  # before it is paid for: noise may be undrawable
        layers, summand = self._layers, self._summand(largest_sum, law)
        self._charge(replace(event, slack=slack_of(mechanism, layers), joint=joint))
        if added is None:
            raise TooFew(
                f"round {self._round}: {devices:,} devices are left, and "
                f"{0 if layers is None else layers.fewest:,} must be."
            )
        self._read_share(what, bounded, mechanism, devices)
        noisy = values + added
        if layers is None or not self._shares:
            return self._passes(noisy, "noise", summand)
        # Where a single honest party may be left, everybody's share is all of the noise.
        share: Protection = "noise" if layers.parties - layers.colluding == 1 else "a share of noise"
        return self._passes(noisy, share, replace(summand, layered=law) if summand else None)

    def coins(
        self,
        mechanism: PoissonBinomial,
        parts: Iterable[Bounded],
        *,
        bound: Bound,
        shape: tuple[int, ...],
        what: str,
        devices: int = 1,
        layers: Layers | None = None,
    ) -> NDArray[np.int64]:
        """Toss coins for bounded numbers, charge those of the whole sum, and let how many fell heads out.

        Each part holds the numbers of some devices, device by device; one device has one part, a cohort as
        many as it likes, made as they are wanted. Every device tosses coins of its own, from 0 to `trials`
        heads for each number. The event is that of the sum over the fewest honest survivors, and no noise
        lies in layers: nothing is taken off. A cohort that does not ask all of its devices says by `layers`
        among how many they sum.
        """
        layers = self._summing_among(layers)
        self._check_coins(mechanism, layers)
        if devices != 1 and not self._cohort:
            raise RunError(f"{self.party}: only a cohort tosses the coins of several devices.")
        event = mechanism.event(bound, dimension=math.prod(shape), random=self.random, **self.label(what))
        self._charge(replace(event, slack=OVERFLOW))
        if self._cohort and layers is not None and devices < layers.fewest:
            raise TooFew(f"round {self._round}: {devices:,} devices are left, and {layers.fewest:,} must be.")
        heads, tossed, total = np.zeros(shape, np.int64), 0, np.zeros(shape)
        for part in parts:
            if part.bound != bound or part.value.shape[1:] != shape:
                raise RunError(f"{self.party}: numbers differ from what was charged. Nothing was released.")
            heads += mechanism.noisy(part, self.random).sum(axis=0, dtype=np.int64)
            total += part.value.sum(axis=0)
            tossed += len(part.value)
        if tossed != devices:
            raise RunError(f"{self.party}: {tossed:,} devices are not {devices:,}. Nothing was released.")
        if self.gauge is not None:
            variance = devices * (deviation_of(mechanism, bound) or 0.0) ** 2
            self.gauge.tossed(what, total, variance, layers, cohort=self._cohort)
        most = mechanism.trials * (devices if layers is None else layers.parties)
        alone: Protection = "noise" if mechanism.participants == 1 else "a share of noise"
        return self._passes(heads, alone, self._summand(most))

    def made(
        self, event: Event, make: Callable[[], NDArray[Any]], *, largest_sum: int | None = None
    ) -> NDArray[Any]:
        """Charge what a fused kernel will release; then let it be made, and out.

        Nothing is made that the ledger refuses: noisy numbers that stayed behind could leave later, unpaid.
        The event has the `label` of this round, by which a crash in it is noticed later.
        """
        if event.by != self.party or round_of(event) != self._round:
            raise RunError(f"{self.party}: {event.what} by {event.by} is no release of round {self._round}.")
        if event.secure and not self.random.secure:
            raise RunError(f"{self.party}: {event.what} says that its noise is secure, and it is not.")
        self._charge(event)
        return self._passes(make(), "noise", self._summand(largest_sum))

    def label(self, what: str) -> dict[str, str]:
        """Return what, by and to for an event of this round: what a fused kernel needs to make one."""
        return {"what": in_round(what, self._round), "by": self.party, "to": COORDINATOR}

    def public(self, values: NDArray[Any], *, largest_sum: int | None = None) -> NDArray[Any]:
        """Let out numbers that do not depend on ratings, or that were released before."""
        return self._passes(values, "public", self._summand(largest_sum))

    def derived(self, values: NDArray[Any]) -> NDArray[Any]:
        """Let out what was made of noisy numbers of this round, and of public ones, alone."""
        if not any(each.protection == "noise" for each in self._passed):
            raise RunError(
                f"{self.party}: nothing noisy was made in round {self._round} to derive this from."
            )
        return self._passes(values, "noise")

    def sealed(self, values: NDArray[Any]) -> NDArray[Any]:
        """Let out what is encrypted for another party, and tells nobody else anything."""
        return self._passes(values, "sealed for other parties")

    def unprotected(self, values: NDArray[Any], *, largest_sum: int | None = None) -> NDArray[Any]:
        """Let out numbers as they are, in a run without a budget; with one, that is refused."""
        if self._ledger is not None:
            raise RunError(f"{self.party}: a run with a budget releases nothing without noise.")
        return self._passes(values, "nothing", self._summand(largest_sum))

    def passed(self, values: NDArray[Any]) -> Passed:
        """Return what is known of an array that leaves in this round; refuse one that did not pass."""
        for each in self._passed:
            if values is each.values:
                return each
        raise RunError(f"{self.party}: an answer holds numbers that did not go through the door.")

    @property
    def extra_secrets(self) -> list[bytes]:
        """The seeds of those layers of this round's noise that may be excess, each the image of the last."""
        return self._seeds[1:]

    def _added(self, shape: tuple[int, ...], law: AnyLaw, devices: int) -> NDArray[np.int64] | None:
        """Return this party's part of the noise of a sum; None if too few of a cohort's devices are left."""
        layers = self._layers
        if layers is None or not self._shares:
            return law.part(Fraction(devices)).drawn(shape, self.random)
        if not self._cohort:
            return layers.added(shape, law, self._seeds, array=len(self._passed))
        if devices < layers.fewest:
            return None
        return law.part(layers.part(devices, devices=devices)).drawn(shape, self.random)

    def _read_share(self, what: str, bounded: Bounded, mechanism: object, devices: int) -> None:
        """Let the gauge of a simulation read a part of a sum."""
        if self.gauge is None:
            return
        if self._layers is None:
            self.gauge.released(what, bounded, mechanism)
            return
        played = devices if self._cohort else None
        self.gauge.shared(what, bounded, mechanism, self._layers, devices=played, alone=not self._shares)

    def _summing_among(self, layers: Layers | None) -> Layers | None:
        """Return among whom coins are summed; only a cohort may ask fewer than all."""
        if layers is None or layers == self._layers:
            return self._layers
        if not self._cohort or self._layers is None or layers.parties > self._layers.parties:
            raise RunError(f"{self.party}: a sum is made among all of the parties, here.")
        return layers

    def _check_coins(self, mechanism: PoissonBinomial, layers: Layers | None) -> None:
        """Refuse coins that need more honest company than is sure, or that others do not toss."""
        honest = 1 if layers is None else layers.fewest - layers.colluding
        if type(mechanism) is not PoissonBinomial:
            raise RunError(f"{type(mechanism).__name__} tosses no coins. Use PoissonBinomial.")
        if mechanism.participants > honest:
            raise Refused(
                f"{self.party}: coins for {mechanism.participants:,} participants hide too little where as "
                f"few as {honest:,} honest ones may be left. Nothing was released."
            )
        if not self._shares:
            raise Refused(
                f"{self.party} has a budget of its own, and coins must be bent alike at all parties. Train "
                "with the strictest budget for all."
            )

    def _summand(self, largest: int | None, law: AnyLaw | None = None) -> Summand | None:
        """Return what a sum must know of an array; None outside of sums."""
        layers = self._layers
        if largest is None or layers is None:
            return None
        honest = layers.fewest - layers.colluding
        most = None if law is None else law.most(layers.parties, honest, self._loudest)
        return Summand(array=len(self._passed), largest=largest, noise=most)

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

    def _passes(
        self, values: NDArray[Any], protection: Protection, summand: Summand | None = None
    ) -> NDArray[Any]:
        # A copy of its own: what is changed afterwards at home does not change what goes out.
        passed = np.array(values)
        passed.flags.writeable = False
        self._passed.append(Passed(passed, protection, summand))
        return passed


def slack_of(mechanism: Skellam | DiscreteLaplace, layers: Layers | None) -> float | None:
    """Return what a share of a sum charges to delta, beside its mechanism.

    Noise that needs no delta has none either where nothing is hidden, so that nothing can fail to be.
    """
    return None if type(mechanism) is DiscreteLaplace and layers is None else OVERFLOW


def weakest(passed: Mapping[str, Passed]) -> Protection:
    """Return the weakest protection of an answer's parts."""
    found = {each.protection for each in passed.values()}
    return next((word for word in get_args(Protection) if word in found), "public")
