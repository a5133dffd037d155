"""How good the recommended items are.

There are two NDCGs, and they must not be confused: `ndcg_over_unseen` asks whether the held-back items come
first among everything the user has not seen, as a recommender must; `ndcg_over_tested` only whether her
held-back items are in the right order among themselves, which is far easier.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.config import whole
from cofactor.data.grouping import Index, Offsets, Values
from cofactor.data.ratings import Ratings
from cofactor.errors import DataError
from cofactor.evaluate.bootstrap import Estimate, estimate, resampled_totals
from cofactor.evaluate.rating_errors import check_numbering
from cofactor.factors.model import Factors, seen_in
from cofactor.randomness import Seeds

PerUser = NDArray[np.float64]
"""One number a user; NaN for users on whom it is not defined."""
_MEASURES = ("precision", "recall", "f1", "map", "ndcg_over_unseen", "ndcg_over_tested")


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Quality of each user's k best unseen items, with intervals over users.

    A test item is relevant when its rating reaches the threshold. Precision, recall and map are means
    over the users with a relevant test item, both NDCGs over those with a test item of any gain.
    """

    precision: Estimate
    recall: Estimate
    f1: Estimate
    """Of the mean precision and the mean recall."""
    map: Estimate
    ndcg_over_unseen: Estimate
    ndcg_over_tested: Estimate
    coverage: float
    """Share of the items that are recommended to anybody."""
    k: int
    threshold: float | None
    """Least rating of a relevant item; None when all are, as in implicit ratings."""
    users: int
    """Users with a relevant test item."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers by name, their intervals beside them."""
        found: dict[str, Estimate] = {name: getattr(self, name) for name in _MEASURES}
        return {
            **{name: one.value for name, one in found.items()},
            "coverage": self.coverage,
            "settings": {"k": self.k, "threshold": self.threshold},
            "intervals": {name: [one.low, one.high] for name, one in found.items()},
        }


def ranking(
    model: Factors,
    train: Ratings,
    test: Ratings,
    *,
    k: int = 10,
    threshold: float | None = None,
    seed: int = 0,
    resamples: int = 1000,
) -> Ranking:
    """Measure a model's recommendations; without a threshold, the upper quarter of the scale is relevant."""
    check_numbering(model, test)
    lists, predicted = top_lists(model, train, k), model.predict_rows(test.users, test.items)
    return ranking_of_lists(lists, predicted, test, threshold=threshold, seed=seed, resamples=resamples)


def ranking_of_lists(
    lists: Index,
    predicted: Values,
    test: Ratings,
    *,
    threshold: float | None = None,
    seed: int = 0,
    resamples: int = 1000,
) -> Ranking:
    """Measure lists of items, a row for each user, and what was predicted of the test ratings."""
    least, k = default_threshold(test) if threshold is None else threshold, lists.shape[1]
    relevant = _relevant(test, least)
    columns = [
        precision_at(lists, relevant),
        recall_at(lists, relevant),
        average_precision_at(lists, relevant),
        ndcg_over_unseen(lists, test),
        ndcg_over_tested(predicted, test, k, seed=seed),
    ]
    precision, recall, mean_average, unseen, tested = _means(columns, resamples, seed)
    both = precision + recall
    return Ranking(
        precision=estimate(precision),
        recall=estimate(recall),
        f1=estimate(np.divide(2 * precision * recall, both, out=np.zeros_like(both), where=both > 0)),
        map=estimate(mean_average),
        ndcg_over_unseen=estimate(unseen),
        ndcg_over_tested=estimate(tested),
        coverage=coverage(lists, test.item_count),
        k=k,
        threshold=least,
        users=int(np.count_nonzero(relevant.by_user.sizes)),
    )


def default_threshold(test: Ratings) -> float | None:
    """Return where the upper quarter of the scale begins: 4 on the scale from 1 to 5."""
    if test.scale is None:
        return None
    return test.scale.low + 0.75 * (test.scale.high - test.scale.low)


def top_lists(model: Factors, train: Ratings, k: int = 10) -> Index:
    """Return each user's k best items among those she has no training rating of; -1 where items run out.

    Where the model knows how items are chosen, her taste is fitted to her training ratings alone.
    """
    whole(k=k)
    check_numbering(model, train)
    lists, _ = replace(model, seen=seen_in(train)).top_items(slice(None), k)
    return lists


def released_popularity(model: Factors, log_counts: Values | None = None) -> Factors:
    """Return the model that ranks by the counts in a model's choice alone: the same items for everybody.

    What tastes and predicted ratings add to counts of the same quality is measured against it. Other counts
    may be named.
    """
    if log_counts is None and model.choice is None:
        raise DataError("this model has no counts of its own. Compare it with Popularity().")
    users, items = len(model.user_ids), len(model.item_ids)
    counts = model.choice.log_counts if log_counts is None and model.choice is not None else log_counts
    assert counts is not None
    return Factors(
        user_ids=model.user_ids,
        item_ids=model.item_ids,
        mean=0.0,
        user_bias=np.zeros(users, np.float32),
        item_bias=counts,
        user_vectors=np.zeros((users, 0), np.float32),
        item_vectors=np.zeros((items, 0), np.float32),
        seen=model.seen,
        titles=model.titles,
    )


def precision_at(lists: Index, relevant: Ratings) -> PerUser:
    """Return the share of each user's list that is relevant to her: t_p / (t_p + f_p)."""
    hits = (_found(lists, relevant) >= 0).sum(axis=1)
    return _where(relevant, hits / np.maximum((lists >= 0).sum(axis=1), 1))


def recall_at(lists: Index, relevant: Ratings) -> PerUser:
    """Return the share of each user's relevant items that is in her list: t_p / (t_p + f_n)."""
    hits = (_found(lists, relevant) >= 0).sum(axis=1)
    return _where(relevant, hits / np.maximum(relevant.by_user.sizes, 1))


def average_precision_at(lists: Index, relevant: Ratings) -> PerUser:
    """Return the mean of the precision at each hit, where missed items count 0: a perfect list has 1.

    The mean is over min(k, relevant items). (Equation 56 of dpmf-rp divides by the hits, which would put
    map above precision; the numbers in its tables do not.)
    """
    hit = _found(lists, relevant) >= 0
    precision = np.cumsum(hit, axis=1) / np.arange(1, lists.shape[1] + 1)
    possible = np.minimum(relevant.by_user.sizes, lists.shape[1])
    return _where(relevant, (precision * hit).sum(axis=1) / np.maximum(possible, 1))


def ndcg_over_unseen(lists: Index, test: Ratings) -> PerUser:
    """Return the NDCG of each user's list among all unseen items; what is not in the test gains nothing."""
    # A place that hits nothing has position -1, where a gain of 0 stands.
    gains = np.append(_gains(test), 0.0)[_found(lists, test)]
    return _normalized(gains, test)


def ndcg_over_tested(predicted: Values, test: Ratings, k: int = 10, *, seed: int = 0) -> PerUser:
    """Return the NDCG@k of each user's own test items in the order of their predictions.

    Equal predictions, as clipping to the scale makes them, are put in random order.
    """
    whole(k=k)
    ties = Seeds(seed).generator("ranking ties").random(len(test))
    return _normalized(_first_gains(test, predicted, ties, k), test)


def coverage(lists: Index, item_count: int) -> float:
    """Return the share of all items that are in at least one list."""
    return len(np.unique(lists[lists >= 0])) / item_count


def _relevant(test: Ratings, threshold: float | None) -> Ratings:
    relevant = test if threshold is None else test.where(test.values >= threshold)
    if len(relevant) == 0:
        wanted = "" if threshold is None else f" of {threshold:g} or more"
        raise DataError(
            f"there is no test rating{wanted} among {len(test):,}. "
            "Hold back more ratings, or choose a lower threshold."
        )
    return relevant


def _where(relevant: Ratings, scores: PerUser) -> PerUser:
    return np.where(relevant.by_user.sizes > 0, scores, np.nan)


def _means(columns: list[PerUser], resamples: int, seed: int) -> list[NDArray[np.float64]]:
    """Return each column's mean over the users on whom it is defined, first measured, then resampled."""
    table = np.column_stack(columns)
    defined = np.isfinite(table)
    rows = np.column_stack([np.where(defined, table, 0.0), defined])[defined.any(axis=1)]
    totals = resampled_totals(rows, resamples=resamples, seed=seed)
    with np.errstate(invalid="ignore"):
        return list((totals[:, : len(columns)] / totals[:, len(columns) :]).T)


def _gains(test: Ratings) -> NDArray[np.float64]:
    """Return 2^rating - 1, in units that cannot overflow; negative scales are moved up to begin at 0."""
    lowest = min(test.scale.low, 0.0) if test.scale is not None else 0.0
    ratings = test.values.astype(np.float64) - lowest
    # NDCG divides gains by gains, so that their unit is free.
    highest = ratings.max(initial=0.0)
    gains: NDArray[np.float64] = np.exp2(ratings - highest) - np.exp2(-highest)
    return gains


def _normalized(gains: NDArray[np.float64], test: Ratings) -> PerUser:
    """Divide the discounted gains by those of the best possible list of the same length."""
    k = gains.shape[1]
    discounts = 1 / np.log2(np.arange(2, k + 2))
    ideal = _first_gains(test, test.values, np.zeros(len(test)), k) @ discounts
    undefined = np.full(len(ideal), np.nan)
    normalized: PerUser = np.divide(gains @ discounts, ideal, out=undefined, where=ideal > 0)
    return normalized


def _first_gains(test: Ratings, scores: Values, ties: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Return the gains of each user's k test items with the best scores, 0 where she has fewer."""
    order = np.lexsort((ties, -scores, test.users))
    users = test.users[order]
    rank = np.arange(len(order)) - test.by_user.ptr[users]
    kept = rank < k
    gains = np.zeros((test.user_count, k))
    gains[users[kept], rank[kept]] = _gains(test)[order[kept]]
    return gains


def _found(lists: Index, test: Ratings) -> NDArray[np.int64]:
    """Return, for each place of each list, the position of the test rating it hits, or -1."""
    return _positions(lists, test.by_user.ptr, test.by_user.index, test.item_count)


@kernel
def _positions(lists: Index, ptr: Offsets, index: Index, item_count: int) -> NDArray[np.int64]:
    found = np.full(lists.shape, -1, np.int64)
    position_of = np.full(item_count, -1, np.int64)
    for user in range(lists.shape[0]):
        for position in range(ptr[user], ptr[user + 1]):
            position_of[index[position]] = position
        for place in range(lists.shape[1]):
            item = lists[user, place]
            # What is left over from earlier users lies before this user's own positions.
            if item >= 0 and position_of[item] >= ptr[user]:
                found[user, place] = position_of[item]
    return found
