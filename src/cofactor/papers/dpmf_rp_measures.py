"""How dpmf-rp measures (appendix H): the ten best of all unseen items, threshold 4, every user counted once.

Its average precision (equation 56) divides by the hits, which would put mAP far above what its tables print;
dividing by the ten places fits them, and is what is shown.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.evaluate.bootstrap import Estimate, estimate, resampled_totals
from cofactor.evaluate.ranking import PerUser, average_precision_at, precision_at, recall_at, top_lists
from cofactor.evaluate.rating_errors import errors
from cofactor.factors.model import Factors

RMSE, PRECISION, RECALL, F1, MAP = "RMSE", "precision", "recall", "F1", "mAP"
RESCALED = "rescaled"
"""The error of ratings that every user rescales at home."""
RANKING = (PRECISION, RECALL, F1, MAP)
MEASURES = (RMSE, *RANKING)
PLACES = 10
"""How many items are recommended."""
THRESHOLD = 4.0
"""The least rating of an item that was worth recommending."""
_DAMPING = 8.0
"""What a user's own slope is damped with, in squared units of the scores: the best of four values for the
error of CentralMF."""
DIVISORS = ("the hits (equation 56)", "min(10, relevant items)", "10")

Measured = dict[str, Estimate]
"""By measure; what a model does not do is left out."""


def rating_error(model: Factors, test: Ratings, seed: int) -> Measured:
    """Return the mean of every user's own RMSE (equation 52)."""
    return {RMSE: errors(model, test, seed=seed).rmse_by_user}


def ranked(model: Factors, train: Ratings, test: Ratings, seed: int) -> Measured:
    """Return precision, recall, F1 and mAP (equations 53 to 57), over users with a relevant test item."""
    lists, relevant = top_lists(model, train, PLACES), test.where(test.values >= THRESHOLD)
    average = average_precision_at(lists, relevant)
    columns = [
        precision_at(lists, relevant),
        recall_at(lists, relevant),
        divided_by(DIVISORS[2], average, relevant, precision_at(lists, relevant)),
    ]
    precision, recall, mean_average = _means(columns, seed)
    both = precision + recall
    f1 = np.divide(2 * precision * recall, both, out=np.zeros_like(both), where=both > 0)
    found = {PRECISION: precision, RECALL: recall, F1: f1, MAP: mean_average}
    return {name: estimate(samples) for name, samples in found.items()}


def measured(model: Factors, train: Ratings, test: Ratings, seed: int) -> Measured:
    """Return all five measures."""
    return rating_error(model, test, seed) | ranked(model, train, test, seed)


def measured_twice(model: Factors, train: Ratings, test: Ratings, seed: int) -> Measured:
    """Return all five, and besides the error of ratings that every user rescales at home.

    Pairs without a rating pull the scores of these models towards 0, so that they are no ratings as they are.
    """
    again = errors(rescaled(model, train), test, seed=seed).rmse_by_user
    return rating_error(model, test, seed) | {RESCALED: again} | ranked(model, train, test, seed)


def rescaled(model: Factors, train: Ratings) -> Factors:
    """Return the model with each user's own mean and slope, from her own ratings: it costs no privacy."""
    scores = replace(model, scale=None).predict_rows(train.users, train.items).astype(np.float64)
    users, count = train.users, np.maximum(train.by_user.sizes, 1)

    def summed(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(users, values, minlength=train.user_count).astype(np.float64)

    means, own = summed(scores) / count, summed(train.values.astype(np.float64)) / count
    apart, wanted = scores - means[users], train.values - own[users]
    slope = summed(apart * wanted) / (summed(apart**2) + _DAMPING)
    return replace(
        model,
        mean=0.0,
        user_bias=(own + slope * (model.mean + model.user_bias - means)).astype(np.float32),
        item_bias=np.zeros_like(model.item_bias),
        user_vectors=np.column_stack([slope[:, None] * model.user_vectors, slope]).astype(np.float32),
        item_vectors=np.column_stack([model.item_vectors, model.item_bias]).astype(np.float32),
        home=None,
    )


def average_precisions(model: Factors, train: Ratings, test: Ratings, seed: int) -> Measured:
    """Return mAP with each of the divisors that equation 56 might mean."""
    lists, relevant = top_lists(model, train, PLACES), test.where(test.values >= THRESHOLD)
    average, precision = average_precision_at(lists, relevant), precision_at(lists, relevant)
    columns = [divided_by(name, average, relevant, precision) for name in DIVISORS]
    found = zip(DIVISORS, _means(columns, seed), strict=True)
    return {f"divided by {name}": estimate(samples) for name, samples in found}


def divided_by(divisor: str, average: PerUser, relevant: Ratings, precision: PerUser) -> PerUser:
    """Return the sum of the precisions at all hits, divided as asked; `average` divides by the second."""
    total = average * np.minimum(relevant.by_user.sizes, PLACES)
    places = np.full(len(total), PLACES)
    by = {DIVISORS[0]: np.maximum(precision * PLACES, 1), DIVISORS[2]: places}
    return average if divisor == DIVISORS[1] else total / by[divisor]


def _means(columns: list[PerUser], seed: int) -> list[NDArray[np.float64]]:
    """Return each column's mean, first as measured, then over users drawn again."""
    table = np.column_stack(columns)
    table = table[np.isfinite(table).all(axis=1)]
    totals = resampled_totals(np.column_stack([table, np.ones(len(table))]), seed=seed)
    return list((totals[:, :-1] / totals[:, -1:]).T)
