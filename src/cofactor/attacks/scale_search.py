"""How long the user's vector is, once its direction is known: ratings lie on a scale, and fit at one length.

All lengths are tried, on a grid so fine that ratings are missed by a small part of a step between two of
them. The best peaks are looked at closer and closer.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from cofactor.attacks.upload_posterior import Posterior

Reals = NDArray[np.float64]

_FINE = 0.05
"""Relative distance of neighbouring lengths, as a part of a step between ratings beside the highest one."""
_SOFT = 0.03
"""How far off ratings may be on that grid, as a part of a step."""
_PEAKS, _STARTS = 6, 2
"""How many peaks are looked at closer, and from how many of them the whole vector is fitted."""
_ROWS = 400
"""How many rows of items are looked at on the grid."""
_CLOSER, _TIMES = 8, 5
"""By how much each look is closer than the one before, and how often."""
_SURE = 0.01
"""Noise, as a part of the vector's length and of a step, below which its direction is as good as exact."""


def found_vector(posterior: Posterior, direction: Reals) -> Reals:
    """Return the user's vector that explains an upload best, of those in a direction or near it."""
    lengths = _grid(posterior, direction)
    soft = _SOFT * posterior.knowledge.step
    scores = _scores(posterior, direction, lengths, soft)
    peaks = _peaks(scores)[:_PEAKS]
    close = [_closer(posterior, direction, lengths[at], soft) for at in peaks]
    best = max(close, key=lambda each: each[0])[1]
    if posterior.noise < _SURE * abs(best) * posterior.knowledge.step:
        return best * direction
    starts = sorted(((posterior.log(length * direction), length) for _, length in close), reverse=True)
    # However much worse the second one is: fitting from there often makes up for it.
    fits = [_fitted(posterior, length * direction) for _, length in starts[:_STARTS]]
    return max(fits, key=posterior.log)


def _grid(posterior: Posterior, direction: Reals) -> Reals:
    """Return all lengths that can be, with both signs: no rating is missed by more than twice the highest."""
    rows, highest = posterior.items, posterior.knowledge.highest
    seen = np.quantile(np.abs(rows.rows @ direction), 0.9)
    told = np.quantile(np.abs(rows.vectors @ direction), 0.9)
    longest = 2 * highest / max(float(told), 1e-9)
    shortest = min(float(seen) / (2 * highest), longest / 10)
    longest = min(longest, shortest * 1e4)
    apart = _FINE * posterior.knowledge.step / highest
    count = int(np.ceil(np.log(longest / shortest) / apart)) + 1
    lengths = np.geomspace(shortest, longest, count)
    return np.concatenate([-lengths, lengths])


def _scores(posterior: Posterior, direction: Reals, lengths: Reals, soft: float) -> Reals:
    """Return how well each length explains what lies along the direction."""
    spread = np.sqrt(2 * posterior.noise**2 + (soft * lengths) ** 2)
    items = posterior.items.largest(_ROWS)
    size = len(items.rows) * len(items.values) + 2 * len(posterior.attributes.rows)
    # So many lengths at once as need some megabytes.
    parts = np.array_split(np.arange(len(lengths)), max(1, len(lengths) * size // 2**19))
    found = [
        items.along(direction, lengths[part], spread[part])
        + posterior.attributes.along(direction, lengths[part], spread[part])
        for part in parts
    ]
    return np.concatenate(found)


def _peaks(scores: Reals) -> NDArray[np.int64]:
    """Return where scores are higher than beside it, the highest first."""
    wide = np.concatenate([[-np.inf], scores, [-np.inf]])
    peaks = np.flatnonzero((scores >= wide[:-2]) & (scores >= wide[2:]))
    return np.asarray(peaks[np.argsort(-scores[peaks], kind="stable")])


def _closer(posterior: Posterior, direction: Reals, length: float, soft: float) -> tuple[float, float]:
    """Look at a length closer and closer; return how good the best one near it is, and that length."""
    apart = _FINE * posterior.knowledge.step / posterior.knowledge.highest
    score = -np.inf
    for _ in range(_TIMES):
        apart, soft = apart / _CLOSER, soft / _CLOSER
        near = length * np.exp(apart * np.arange(-_CLOSER, _CLOSER + 1))
        scores = _scores(posterior, direction, near, soft)
        length, score = float(near[scores.argmax()]), float(scores.max())
    return score, length


def _fitted(posterior: Posterior, start: Reals) -> Reals:
    """Return the most likely vector near one: noise has turned the direction as well."""
    size = float(np.linalg.norm(start))
    found = minimize(
        lambda scaled: -posterior.log(scaled * size),
        start / size,
        method="BFGS",
        options={"maxiter": 40, "gtol": 0.02},
    )
    fitted = np.asarray(found.x * size)
    return fitted if np.isfinite(fitted).all() else start
