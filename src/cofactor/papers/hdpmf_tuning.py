"""How settings are chosen: by cross-validation in the training part, over grids (section 5.1.2)."""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.papers.hdpmf_method import Setting, Variant, squared
from cofactor.papers.hdpmf_splits import FOLDS, Repeat, folds
from cofactor.progress import Listener, Progress

PENALTIES = (0.01, 0.001)
RATES = (0.05, 0.01, 0.005, 0.001)
STRICT_RATES = (0.005, 0.001, 0.0005, 0.0001)
"""Of DPMF, whose noise is the largest."""
LARGE = 300_000
"""With more training ratings than this, one fold and the first of the penalties have to do."""
_USUAL = {"mf": 0.01, "hdpmf": 0.005, "pdpmf": 0.005, "dpmf": 0.0005}
_USUAL_PENALTY = 0.01
"""Where nothing is tuned."""


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """A setting, and how it was chosen."""

    setting: Setting
    how: str
    """In words."""

    def __str__(self) -> str:
        return f"{self.setting} ({self.how})"


def grid(variant: Variant, *, large: bool = False) -> list[Setting]:
    """Return all settings that the paper tries; for large data, half of them."""
    rates = STRICT_RATES if variant.method == "dpmf" else RATES
    penalties = PENALTIES[:1] if large else PENALTIES
    return [Setting(rate=rate, penalty=penalty) for rate, penalty in product(rates, penalties)]


def usual(variant: Variant) -> Tuned:
    """Return a setting without tuning."""
    return Tuned(setting=Setting(rate=_USUAL[variant.method], penalty=_USUAL_PENALTY), how="not tuned, quick")


def tuned(variant: Variant, factors: int, repeat: Repeat, progress: Listener, what: str) -> Tuned:
    """Return the setting with the lowest squared error on the folds of a repeat's training ratings."""
    large = len(repeat.train) > LARGE
    count, settings = 1 if large else FOLDS, grid(variant, large=large)
    errors = {}
    for number, setting in enumerate(settings, 1):
        errors[setting] = validated(variant, factors, repeat, setting, count)
        progress(Progress(f"tuning {variant.line}", number, len(settings), f"{what}, {setting}"))
    best = min(errors, key=lambda setting: errors[setting])
    return Tuned(setting=best, how=f"best of {len(settings)} on {count} of {FOLDS} folds")


def validated(variant: Variant, factors: int, repeat: Repeat, setting: Setting, count: int) -> float:
    """Return the mean over folds of what users have; infinite where a training breaks down."""
    found = []
    for train, kept in folds(repeat.train, count, seed=repeat.seed):
        model = variant.fitted_to(train, repeat, factors, setting)
        if model is None:
            return math.inf
        found.append(by_user(squared(model, kept), kept))
    return math.fsum(found) / len(found)


def by_user(errors: NDArray[np.float64], kept: Ratings) -> float:
    """Return the mean error of the mean user: as in the test, everybody counts alike."""
    counts = kept.by_user.sizes
    there = counts > 0
    return float((np.bincount(kept.users, errors, minlength=len(counts))[there] / counts[there]).mean())
