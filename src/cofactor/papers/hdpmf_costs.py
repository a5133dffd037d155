"""What HDPMF's releases truly cost, beside what Theorem 2 promises for one of them."""

import math

import numpy as np

from cofactor.papers.hdpmf_method import EPOCHS
from cofactor.papers.hdpmf_numbers import EPSILON
from cofactor.papers.hdpmf_splits import Repeat
from cofactor.papers.results import Row
from cofactor.privacy.accountant import spent
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.mechanisms import Laplace
from cofactor.privacy.weights import taking_part

PROMISED = "promised"
STRETCHED = "HDPMF, fresh noise, all epochs"
SAMPLED = "PDPMF, fresh noise, all epochs"
SHARE = "HDPMF, fresh noise, one epoch, a user's own message"
MESSAGES, FINAL = (
    "HDPMF, fixed noise, who sees messages",
    "HDPMF, fixed noise, who sees the last vectors only",
)
LIBERAL, STRICTEST = "rating of weight 1", "strictest rating"


def composed(promise: float, delta: float) -> float:
    """Return what a rating loses by all epochs of HDPMF, if user vectors did not depend on it.

    One rating of weight W changes an item's gradient by at most 2 W sqrt(K) Delta, as a sum of absolute
    values: the noise of Theorem 2 is that over epsilon W in every coordinate.
    """
    event = Event(
        what="item gradients",
        by="users",
        to="recommender",
        mechanism=Laplace(noise_multiplier=1 / promise),
        bound=Bound(size=1.0, norm="l1", unit="rating", adjacency="value"),
        count=EPOCHS,
    )
    return spent([event], delta, unit="rating", adjacency="value").epsilon


def sampled(promise: float, mean: float) -> float:
    """Return what a rating loses by all epochs of PDPMF: who takes part is drawn once for all of them."""
    chance = float(taking_part(np.array([promise]), 1.0, mean)[0])
    total = EPOCHS * mean
    return total + math.log(chance + (1 - chance) * math.exp(-total))


def share(repeat: Repeat) -> float:
    """Return how many times less noise one user's message has, at the item with the median of raters."""
    raters = np.bincount(repeat.train.items, minlength=repeat.train.item_count)
    return math.sqrt(float(np.median(raters[raters > 0])))


def costs(name: str, repeat: Repeat, delta: float) -> list[Row]:
    """Say what is true of both readings of the noise, for who asks for least and for most."""
    promises = {LIBERAL: EPSILON, STRICTEST: EPSILON * repeat.least_weight}
    mean, parts = EPSILON * repeat.mean_weight, share(repeat)
    rows = []
    for column, promise in promises.items():
        values = {
            PROMISED: promise,
            STRETCHED: composed(promise, 0.0),
            f"{STRETCHED}, delta {delta:g}": composed(promise, delta),
            SAMPLED: sampled(promise, mean),
            SHARE: promise * parts,
            MESSAGES: None,
            FINAL: promise,
        }
        rows += [
            Row(line=line, panel=f"{name}: epsilon", column=column, ours=value, note=_NOTES.get(line, ""))
            for line, value in values.items()
        ]
    return rows


_NOTES = {
    STRETCHED: "proved only if user vectors do not depend on the rating, and they do",
    SAMPLED: "likewise; who takes part is drawn once, and loses the mean promise in every epoch",
    SHARE: "likewise; epsilon sqrt(|R_j|) at the item with the median of |R_j| raters: a message has a part "
    "of the noise only, and who drew h knows even its variance",
    MESSAGES: "no finite epsilon: the noise drops out of differences of epochs",
    FINAL: "under the paper's proof, in which user vectors do not depend on the rating either",
}
