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

COMPOSED = "fresh noise, all epochs"
SHARE = "fresh noise, one epoch, a user's own message"
MESSAGES, FINAL = "fixed noise, who sees messages", "fixed noise, who sees the last item vectors only"


def composed(delta: float) -> float:
    """Return what a rating of weight 1 loses by all epochs, if user vectors did not depend on it.

    One rating changes an item's gradient by at most 2 sqrt(K) Delta, as a sum of absolute values: the
    noise of Theorem 2 is that over epsilon in every coordinate.
    """
    event = Event(
        what="item gradients",
        by="users",
        to="recommender",
        mechanism=Laplace(noise_multiplier=1 / EPSILON),
        bound=Bound(size=1.0, norm="l1", unit="rating", adjacency="value"),
        count=EPOCHS,
    )
    return spent([event], delta, unit="rating", adjacency="value").epsilon


def share(repeat: Repeat) -> float:
    """Return what the noise in a single user's message is worth, at the item with the median of raters."""
    raters = np.bincount(repeat.train.items, minlength=repeat.train.item_count)
    return EPSILON * math.sqrt(float(np.median(raters[raters > 0])))


def costs(name: str, repeat: Repeat, delta: float) -> list[Row]:
    """Say what is true of both readings of the noise."""
    panel = f"{name}: what a rating of weight 1 truly loses, where Theorem 2 says epsilon {EPSILON:g}"
    ignores = "as if user vectors did not depend on the rating, which they do: a lower bound"
    told = (
        "epsilon sqrt(|R_j|): of an item with |R_j| raters every message carries a part of the noise only; "
        "who drew h knows even its variance"
    )
    rows = [
        Row(line=COMPOSED, panel=panel, column="delta 0", ours=composed(0.0), note=ignores),
        Row(line=COMPOSED, panel=panel, column=f"delta {delta:g}", ours=composed(delta), note=ignores),
        Row(line=SHARE, panel=panel, column="delta 0", ours=share(repeat), note=told),
        Row(
            line=MESSAGES,
            panel=panel,
            column="delta 0",
            ours=None,
            note="no finite epsilon: the noise drops out of differences of epochs",
        ),
        Row(
            line=FINAL,
            panel=panel,
            column="delta 0",
            ours=EPSILON,
            note="under the paper's proof, in which user vectors do not depend on the rating either",
        ),
    ]
    return rows
