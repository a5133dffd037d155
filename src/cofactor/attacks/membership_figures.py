"""How well scores tell members from others, and what that proves.

Without a coin for each user, figures say how well these members are told from these others, and no more: the
two groups may differ by themselves, and users of one run are no independent trials. With coins they are
canaries, and what guesses prove about the promise holds whatever users have to do with each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.membership import FEWEST
from cofactor.attacks.result import Figure
from cofactor.config import fraction
from cofactor.errors import DataError
from cofactor.privacy.one_run import Curve, OneRun, judged

Floats = NDArray[np.float64]

NO_COINS = (
    "Who is in was not decided by coins, so that nothing follows about epsilon: the groups may differ by "
    "themselves, in activity or in when they came."
)


@dataclass(frozen=True, kw_only=True)
class ToldApart:
    """How well members are told from others by their scores."""

    members: int
    others: int
    auc: float
    """How often a member has a larger score than somebody else: 1/2 is chance."""
    auc_low: float
    auc_high: float
    """Between what it lies, with the confidence, if members and others are drawn anew."""
    found_at_1: float
    """The part of members found where 1% of others are taken for members."""
    found_at_5: float
    """The same where 5% are."""
    advantage: float
    """The most by which members are found more often than others are taken for members."""
    confidence: float
    one_run: OneRun | None = None
    """What is proved about the promise; None if no coins decided who is in."""

    @property
    def succeeded(self) -> bool:
        """Whether members are told apart better than by chance, with the confidence."""
        return self.auc_low > 0.5

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know."""
        return () if self.one_run is not None else (NO_COINS,)

    def figures(self) -> Mapping[str, Figure]:
        """Return all numbers by name."""
        proved: dict[str, Figure] = {}
        if self.one_run is not None:
            proved = {
                "mu at least": self.one_run.mu_at_least,
                "epsilon at least": self.one_run.epsilon_at_least,
                "p-value": self.one_run.p_value,
            }
        return {
            "members": self.members,
            "others": self.others,
            "AUC": self.auc,
            "AUC at least": self.auc_low,
            "AUC at most": self.auc_high,
            "found at 1% false alarms": self.found_at_1,
            "found at 5% false alarms": self.found_at_5,
            "advantage": self.advantage,
            **proved,
        }

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"Of {self.members:,} members and {self.others:,} others a member has the larger score "
            f"{100 * self.auc:.1f}% of the time ({100 * self.auc_low:.1f}% to {100 * self.auc_high:.1f}%; by "
            f"chance 50%), and {100 * self.found_at_5:.1f}% of members are found at 5% false alarms."
        )


def told_apart(
    scores: Floats,
    members: NDArray[np.bool_],
    *,
    confidence: float = 0.95,
    by_coins: bool = False,
    promised: Curve | None = None,
    delta: float = 0.0,
) -> ToldApart:
    """Compare members' scores with those of others.

    `by_coins` says that a fair coin of her own decided of every candidate whether she is in: only then is
    anything proved, against what was `promised`, if anything was.
    """
    fraction(confidence=confidence)
    values, truth = np.asarray(scores, np.float64), np.asarray(members, np.bool_)
    if values.shape != truth.shape or values.ndim != 1 or np.isnan(values).any():
        raise DataError(f"there must be one score for each candidate and no NaN, got {values.shape}.")
    own, others = values[truth], values[~truth]
    if min(len(own), len(others)) < FEWEST:
        raise DataError(
            f"{len(own):,} members and {len(others):,} others are too few: give {FEWEST} or more of either."
        )
    area, low, high = _area(own, others, confidence)
    found, wrong = _rates(own, others)
    return ToldApart(
        members=len(own),
        others=len(others),
        auc=area,
        auc_low=low,
        auc_high=high,
        found_at_1=float(found[wrong <= 0.01].max()),
        found_at_5=float(found[wrong <= 0.05].max()),
        advantage=float((found - wrong).max()),
        confidence=confidence,
        one_run=judged(values, truth, promised, confidence=confidence, delta=delta) if by_coins else None,
    )


def _area(own: Floats, others: Floats, confidence: float) -> tuple[float, float, float]:
    """Return the area under the curve and its limits (DeLong et al. 1988, in log-odds of the area)."""
    from scipy.special import expit, logit, ndtri

    above = _part_below(others, own)
    below = 1 - _part_below(own, others)
    area = float(above.mean())
    # Where one kind is above all of the other, the sample has no spread: half a pair stands for it.
    least = 0.5 / (len(own) * len(others))
    middle = min(max(area, least), 1 - least)
    variance = above.var(ddof=1) / len(own) + below.var(ddof=1) / len(others)
    far = float(ndtri((1 + confidence) / 2)) * np.sqrt(max(variance, least**2)) / (middle * (1 - middle))
    return area, float(expit(logit(middle) - far)), float(expit(logit(middle) + far))


def _part_below(values: Floats, at: Floats) -> Floats:
    """Return the part of values that lies below each number; what is equal counts by half."""
    ordered = np.sort(values)
    less, most = np.searchsorted(ordered, at, "left"), np.searchsorted(ordered, at, "right")
    return np.asarray((less + most) / (2 * len(values)))


def _rates(own: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Return for every threshold which part of members, and of others, reaches it."""
    thresholds = np.append(np.unique(np.concatenate([own, others])), np.inf)
    found, wrong = (
        (len(each) - np.searchsorted(np.sort(each), thresholds, "left")) / len(each) for each in (own, others)
    )
    return np.asarray(found), np.asarray(wrong)
