"""Calibration and composition: CPU time against dp-accounting's own calibration and against fixed bars."""

import math

import dp_accounting
from dp_accounting.pld import PLDAccountant

from benchmarks.bench import Row, cpu_best, faster
from cofactor.privacy import calibrate, losses
from cofactor.privacy.accountant import spent
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.mechanisms import PoissonBinomial, SampledGaussian
from cofactor.privacy.schedule import Release, Schedule

STEPS, SAMPLING = 1_000, 0.01
BUDGET = Budget(epsilon=1.0, delta=1e-6, unit="user")
MOST_CALIBRATION = 5.0
"""CPU seconds that calibration may take."""
COORDINATES = 1_700_000
COINS = PoissonBinomial(trials=16, theta=0.005, participants=1_000)
MOST_COMPOSITION = 10.0
"""CPU seconds that composing all coordinates may take."""
REPEATS = 3


def rows() -> list[Row]:
    assert math.isclose(_calibrate(), _calibrate_peer(), rel_tol=0.01), "ours and dp-accounting disagree"
    ours = cpu_best(_calibrate, REPEATS)
    peer = cpu_best(_calibrate_peer, REPEATS)
    composition = cpu_best(_compose_coins, REPEATS)
    name = f"calibrate {STEPS:,} sampled steps to 1%"
    return [
        faster(name, ours=ours, peer=peer, peer_name="dp-accounting"),
        faster(f"{name}, bar", ours=ours, peer=MOST_CALIBRATION, peer_name="bar"),
        faster("compose 1.7M coin sums", ours=composition, peer=MOST_COMPOSITION, peer_name="bar"),
    ]


def _calibrate() -> float:
    _forget()
    release = Release(
        what="gradients",
        mechanism=SampledGaussian(sampling=SAMPLING),
        bound=Bound(size=2.5, norm="l2", unit="user"),
        dimension=1,
    )
    [made] = calibrated(Schedule(releases=(release,), rounds=STEPS), BUDGET).releases
    assert isinstance(made.mechanism, SampledGaussian)
    return made.mechanism.noise_multiplier


def _calibrate_peer() -> float:
    """Search to the same precision: 1% of epsilon is about 0.5% of the noise."""

    def event(multiplier: float) -> dp_accounting.DpEvent:
        sampled = dp_accounting.PoissonSampledDpEvent(SAMPLING, dp_accounting.GaussianDpEvent(multiplier))
        return dp_accounting.SelfComposedDpEvent(sampled, STEPS)

    found: float = dp_accounting.calibrate_dp_mechanism(
        lambda: PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_SPECIAL),
        event,
        BUDGET.epsilon,
        BUDGET.delta,
        dp_accounting.LowerEndpointAndGuess(0.0, 1.0),
        tol=5e-3,
    )
    return found


def _compose_coins() -> float:
    _forget()
    bound = Bound(size=0.5, norm="max", unit="user", adjacency="replace")
    event = Event(
        what="sums", by="everyone", to="coordinator", mechanism=COINS, bound=bound, dimension=COORDINATES
    )
    return spent([event], 1e-5, unit="user", adjacency="replace").epsilon


def _forget() -> None:
    """Start each repetition without what earlier ones left in memory."""
    calibrate._calibrated.cache_clear()
    losses._loss.cache_clear()
