"""The nearest tree of probabilities to layers that were estimated apart: HH-ADMM (thesis, section 3.4.3)."""

from collections.abc import Sequence

import numpy as np

from cofactor.survey.consistency import nearest_consistent
from cofactor.survey.method import Floats

_TOLERANCE = 1e-9
_MOST_STEPS = 3_000


def nearest_probabilities(tree: Floats, sizes: Sequence[int], weights: Sequence[float]) -> Floats:
    """Return the tree that is consistent and nowhere negative whose squared distance is least (3.3).

    Each layer has a weight; those of the thesis are all 1. By ADMM: in turn the nearest consistent tree, and
    no number below 0, until both are the same to 1e-9 of the largest number. That takes a few hundred steps;
    after 3,000 it ends in any case, which is where noise is far larger than all there is to see. No number of
    the result is below 0; its layers add up to about 1.
    """
    # The penalty (rho) is 1, and so is the largest weight.
    share = np.asarray(weights, np.float64) / max(weights)
    together, weight = (share + 1).tolist(), np.repeat(share, sizes)
    drawn, kept = tree * weight / (weight + 1), 1 / (weight + 1)
    tolerance = _TOLERANCE * max(1.0, float(np.abs(tree).max()))
    positive, off = np.maximum(tree, 0.0), np.zeros_like(tree)
    for _ in range(_MOST_STEPS):
        agreeing = nearest_consistent(drawn + kept * (positive - off), sizes, together)
        before, positive = positive, np.maximum(agreeing + off, 0.0)
        off += agreeing - positive
        if max(np.abs(agreeing - positive).max(), np.abs(positive - before).max()) <= tolerance:
            break
    return positive
