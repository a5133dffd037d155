"""From counts of reports to the distribution that most likely led to them."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from cofactor.config import positive, whole
from cofactor.survey.banded import likelihood_steps
from cofactor.survey.method import Floats, Integers, checked_tally, some_people
from cofactor.survey.transforms import BandTransform, Transform


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """A distribution fitted to counts."""

    probabilities: Floats = field(repr=False)
    """One for each bucket; not negative, and together 1."""
    steps: int
    """Steps taken from the uniform start."""
    log_likelihood: float
    """Of all counts, in nats, at these probabilities."""
    converged: bool
    """Whether the last step changed the likelihood by less than the tolerance."""


def expectation_maximisation(
    transform: Transform,
    counts: ArrayLike,
    *,
    tolerance: float,
    smoothing: bool = False,
    most_steps: int = 10_000,
) -> Fitted:
    """Fit a distribution to counts of reports by EM, or with smoothing by EMS (Li et al. 2020, Algorithm 1).

    It starts from the uniform distribution, and stops when a step changes the log-likelihood of all counts by
    less than `tolerance`: an absolute number of nats, whatever the number of reports, as in the authors'
    program. Without smoothing the likelihood never falls, and its limit is the maximum.

    Smoothing mixes each probability after each step with its neighbours, (1, 2, 1) / 4. What lies beyond an
    end is taken to be as at the end: the first and the last one become (3, 1) / 4, and their sum remains.
    """
    positive(tolerance=tolerance)
    whole(most_steps=most_steps)
    checked = checked_counts(counts, transform.reports).astype(np.float64)
    how = (checked, float(tolerance), bool(smoothing), int(most_steps))
    if isinstance(transform, BandTransform):
        probabilities, steps, found, converged = likelihood_steps(transform.rows, transform.columns, *how)
    else:
        probabilities, steps, found, converged = plain_steps(transform, *how)
    return Fitted(
        probabilities=probabilities, steps=steps, log_likelihood=float(found), converged=bool(converged)
    )


def checked_counts(counts: ArrayLike, reports: int) -> Integers:
    """Return how often each report was made; refuse what cannot be, and that nobody answered."""
    found = checked_tally(counts, reports)
    some_people(found.any())
    return found


def smoothed(probabilities: Floats) -> Floats:
    """Mix each number with its neighbours, (1, 2, 1) / 4; beyond an end lies the same as at the end."""
    wider = np.pad(probabilities, 1, mode="edge")
    return 0.25 * (wider[:-2] + wider[2:]) + 0.5 * probabilities


def plain_steps(
    transform: Transform, counts: Floats, tolerance: float, smoothing: bool, most_steps: int
) -> tuple[Floats, int, float, bool]:
    """Climb step by step with any transform: a dense one, and the twin of the compiled steps."""
    x = np.full(transform.buckets, 1 / transform.buckets)
    people = counts.sum()
    shares = counts / people
    last, step = -np.inf, 0
    while True:
        likely = transform.forward(x)
        found = people * (shares @ np.log(likely))
        settled = abs(found - last) < tolerance
        if settled or step == most_steps:
            return x, step, found, settled
        last, step = found, step + 1
        x = x * transform.backward(shares / likely)
        x = smoothed(x) if smoothing else x
