"""A million people asked once, 1,024 values, epsilon 1: oracles beside two packages, and EMS beside BLAS.

An oracle's time is that of everybody's report, of the tally and of the estimate. The packages' OLH hashes
every value for every report in Python: it is timed on a thousand reports, and its figure is that of one
report times a million. Their FastLH, which draws from a thousand hash functions only and is less accurate for
it, is timed on all of them, and so is their GRR.

EMS starts from the tally of a million reports by a square wave. The same steps with the matrix written down
and multiplied by one thread of BLAS, with the same rule to stop, give the same distribution.
"""

import math

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.bench import Row, ask_peer, cpu_best, faster
from cofactor.survey.likelihood import expectation_maximisation
from cofactor.survey.method import Floats, report, simulated
from cofactor.survey.oracles import GRR, OLH
from cofactor.survey.transforms import DenseTransform
from cofactor.survey.waves import SquareWave

MULTI_FREQ = ["multi-freq-ldpy==0.2.5", "xxhash==3.8.2"]
PURE = ["pure-ldp==1.2.0", "xxhash==3.8.2", "statsmodels==0.15.0", "scikit-learn==1.9.1"]
"""Both fail to hash with the newest xxhash; pure-ldp does not say that it needs the other two."""
PEOPLE, BUCKETS, EPSILON = 1_000_000, 1024, 1.0
SAMPLE = 1000
FUNCTIONS = 1000
REPEATS = 5
LIMITS = {"EMS": 0.040, "GRR": 0.05, "OLH": 0.4}
"""CPU seconds."""


def rows() -> list[Row]:
    values = np.random.default_rng(0).beta(5, 2, PEOPLE)
    settings = (EPSILON, BUCKETS, PEOPLE, SAMPLE)
    multi_freq = ask_peer("multi-freq-ldpy", MULTI_FREQ, "multi_freq_ldpy_oracles.py", *settings)
    pure = ask_peer("pure-ldp", PURE, "pure_ldp_oracles.py", *settings, FUNCTIONS)
    grr, olh = (_oracle(kind(epsilon=EPSILON, buckets=BUCKETS), values) for kind in (GRR, OLH))
    extrapolated = f"extrapolated from {SAMPLE:,} reports"
    return [
        _limit("GRR", grr),
        _beside("GRR", grr, multi_freq["grr"], "multi-freq-ldpy 0.2.5"),
        _beside("GRR", grr, pure["grr"], "pure-ldp 1.2.0"),
        _limit("OLH", olh),
        _beside("OLH", olh, PEOPLE * multi_freq["olh"], f"multi-freq-ldpy 0.2.5, {extrapolated}"),
        _beside("OLH", olh, PEOPLE * pure["olh"], f"pure-ldp 1.2.0, {extrapolated}"),
        _beside("OLH", olh, pure["fast"], f"pure-ldp 1.2.0 FastLH of {FUNCTIONS:,}"),
        *_ems(values),
    ]


def _oracle(method: GRR | OLH, values: Floats) -> float:
    """Return what all of it takes, and check that the estimate is as good as it must be."""
    shares = np.histogram(values, BUCKETS, (0, 1))[0] / PEOPLE
    error = math.sqrt(np.mean((simulated(method, values) - shares) ** 2))
    much = math.exp(EPSILON)
    spread = BUCKETS - 2 + much if isinstance(method, GRR) else 4 * much
    if not 0.8 < error / math.sqrt(spread / ((much - 1) ** 2 * PEOPLE)) < 1.2:
        raise RuntimeError(f"the estimate by {type(method).__name__} is wrong")
    return cpu_best(lambda: simulated(method, values), REPEATS)


def _ems(values: Floats) -> list[Row]:
    method = SquareWave(epsilon=EPSILON, buckets=BUCKETS)
    tally = method.tally(**report(method, values))
    found = method.fitted(tally)
    dense = DenseTransform(entries=method.transform.matrix())
    with threadpool_limits(1):
        plain = expectation_maximisation(dense, tally, tolerance=method.tolerance, smoothing=True)
        peer = cpu_best(
            lambda: expectation_maximisation(dense, tally, tolerance=method.tolerance, smoothing=True), 2
        )
    if found.steps != plain.steps or np.max(np.abs(found.probabilities - plain.probabilities)) > 1e-12:
        raise RuntimeError("both ways must take the same steps to the same distribution")
    own = cpu_best(lambda: method.estimate(tally), REPEATS)
    return [_limit("EMS", own), _beside("EMS", own, peer, f"dense EMS, numpy {np.__version__}")]


def _limit(name: str, own: float) -> Row:
    return _beside(name, own, LIMITS[name], "limit")


def _beside(name: str, own: float, peer: float, peer_name: str) -> Row:
    return faster(f"{name}, 1e6 people, {BUCKETS:,} values", ours=own, peer=peer, peer_name=peer_name)
