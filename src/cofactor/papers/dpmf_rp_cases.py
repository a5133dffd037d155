"""What stands side by side in a table of dpmf-rp: its method, what it compares with, and what is trivial."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.errors import PrivacyWarning
from cofactor.evaluate.bootstrap import Estimate
from cofactor.evaluate.joining import own_means
from cofactor.factors.baselines import Popularity, UserItemBias
from cofactor.factors.model import Factors
from cofactor.papers import dpmf_rp_measures as measures
from cofactor.papers.cells import Effort, summary
from cofactor.papers.dpmf_rp_measures import Measured
from cofactor.papers.material import Material
from cofactor.papers.results import Row
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.events import Bound
from cofactor.privacy.mechanisms import Gaussian
from cofactor.privacy.schedule import Release, Schedule
from cofactor.privacy.trimming import trimmed
from cofactor.progress import Listener, Progress
from cofactor.randomness import Random, SecureRandom

TEST_FRACTION = 0.2
"""The split is not in the paper; a fifth of each user's ratings fits its precision and recall."""
POPULARITY, PRIVATE_POPULARITY = "popularity", "private popularity"
OWN_MEAN, BIASES = "user's own mean", "user and item biases"
_MOST_ITEMS = 50
"""How many of her items a user counts for where popularity is private."""


Measure = Callable[[Factors, Ratings, Ratings, int], Measured]
"""Measures a model on what was held back: model, training ratings, test ratings, seed."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What the paper calls epsilon, and what is true of it."""

    label: float
    """The paper's: a Renyi divergence of order 2, for one rating."""
    epsilon: float
    """What the exact accountant proves for each user."""
    delta: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One line of a table: a model, how it is measured, and the paper's numbers."""

    line: str
    fit: Callable[[Ratings, int], Factors]
    """Makes the model from ratings and a seed."""
    measure: Measure
    paper: Mapping[str, float] = field(default_factory=dict)
    """By column."""
    label: float | None = None
    """What the paper would call epsilon; None where it is not its method, or not private."""
    epsilon: float | None = None
    delta: float | None = None
    note: str = ""


def measured_cases(
    material: Material, panel: str, cases: Sequence[Case], effort: Effort, progress: Listener
) -> list[Row]:
    """Fit and measure every case on the same splits, as often as there are seeds."""
    found: list[dict[str, list[Estimate]]] = [{} for _ in cases]
    steps = len(cases) * effort.seeds
    for seed in range(1, effort.seeds + 1):
        train, test = by_fraction(material.ratings, TEST_FRACTION, seed=seed)
        for number, (case, own) in enumerate(zip(cases, found, strict=True), 1):
            for column, one in case.measure(case.fit(train, seed), train, test, seed).items():
                own.setdefault(column, []).append(one)
            done = (seed - 1) * len(cases) + number
            progress(Progress("trainings", done, steps, f"{material.name}, {case.line}"))
    return [row for case, own in zip(cases, found, strict=True) for row in _rows(panel, case, own)]


def _rows(panel: str, case: Case, found: Mapping[str, list[Estimate]]) -> list[Row]:
    return [
        Row(
            line=case.line,
            panel=panel,
            column=column,
            paper=case.paper.get(column),
            epsilon_label=case.label,
            epsilon=case.epsilon,
            delta=case.delta,
            note=case.note,
            at_home=False,
            **summary(estimates),
        )
        for column, estimates in found.items()
    ]


def trivial(loss: Loss | None) -> list[Case]:
    """Return what any method should beat; popularity is private, too, at a true epsilon and delta."""
    found = [
        Case(
            line=POPULARITY,
            fit=lambda train, _: Popularity().fit(train),
            measure=measures.ranked,
            note="how many users rated an item; not private",
        ),
        Case(
            line=OWN_MEAN,
            fit=own_mean,
            measure=lambda model, _, test, seed: measures.rating_error(model, test, seed),
            note="costs no privacy; ranks nothing",
        ),
        Case(
            line=BIASES,
            fit=lambda train, _: UserItemBias().fit(train),
            measure=measures.measured,
            note="not private",
        ),
    ]
    return found if loss is None else [*found, private_popularity_at(loss)]


def private_popularity_at(loss: Loss) -> Case:
    """Return popularity that costs each user no more than a training does."""
    return Case(
        line=f"{PRIVATE_POPULARITY}, label {loss.label:g}",
        fit=lambda train, _: private_popularity(train, epsilon=loss.epsilon, delta=loss.delta),
        measure=measures.ranked,
        epsilon=loss.epsilon,
        delta=loss.delta,
        note=f"counts with noise, as private as label {loss.label:g} truly is",
    )


def own_mean(train: Ratings, seed: int) -> Factors:  # noqa: ARG001 (nothing is random)
    """Return each user's own mean."""
    assert train.scale is not None
    return own_means(train, train.scale)


def private_popularity(
    train: Ratings, *, epsilon: float, delta: float, random: Random | None = None
) -> Factors:
    """Rank items by noisy counts: each user counts for at most 50 of her items, drawn by chance."""
    chance = SecureRandom() if random is None else random
    counts = bounded_counts(train, chance)
    noisy = _noise(counts.bound, train.item_count, epsilon, delta).noisy(counts, chance)
    return replace(Popularity().fit(train), item_bias=noisy.astype(np.float32))


def bounded_counts(train: Ratings, random: Random) -> Bounded:
    """Count who has an item among the 50 she counts for.

    Replacing a user by any other takes off at most 50 ones and adds 50 elsewhere.
    """
    kept = train.where(trimmed(train.by_user.ptr, _MOST_ITEMS, random))
    return Bounded(
        value=np.bincount(kept.items, minlength=train.item_count).astype(np.float64),
        bound=Bound(size=math.sqrt(2 * _MOST_ITEMS), norm="l2", unit="user", adjacency="replace"),
    )


def _noise(bound: Bound, dimension: int, epsilon: float, delta: float) -> Gaussian:
    release = Release(what="counts of items", mechanism=Gaussian(), bound=bound, dimension=dimension)
    with warnings.catch_warnings():
        # What a label truly costs may promise next to nothing: the table shows it.
        warnings.simplefilter("ignore", PrivacyWarning)
        budget = Budget(epsilon=epsilon, delta=delta, unit="user", adjacency="replace")
    mechanism = calibrated(Schedule(releases=(release,), rounds=1), budget).releases[0].mechanism
    assert isinstance(mechanism, Gaussian)
    return mechanism


def delta_for(users: int) -> float:
    """Return the delta that goes with so many users: the power of ten just below a hundredth of each."""
    return float(10.0 ** math.floor(-math.log10(100 * users)))
