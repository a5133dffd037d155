"""How PrivMVMF measures (appendix B), its misprints put right.

NDCG is over a user's own test items: equation 54 sums ten terms, not five, and a rating x gains 2^x - 1, not
2^(x-1). Precision (equation 51) divides by the recommended items. Both and recall are means over the users on
whom they are defined: those with a test item, and with a relevant one.
"""

from dataclasses import replace

import numpy as np

from cofactor.data.ratings import Ratings
from cofactor.evaluate.ranking import PerUser, ndcg_over_tested, precision_at, recall_at, top_lists
from cofactor.factors.model import Factors
from cofactor.papers.privmvmf_numbers import F1, NDCG, PRECISION, RECALL

PLACES = 10
"""How many items are recommended."""
THRESHOLD = 4.0
"""The least rating of an item that was worth recommending."""


def measured(model: Factors, rated: Ratings, test: Ratings, *, seed: int = 0) -> dict[str, float]:
    """Return all four measures of a model of the test's own users and items; `rated` is left out of lists."""
    # Scores rank, and are not clipped: pairs without a rating pull them below the scale.
    ranks = replace(model, scale=None)
    lists, relevant = top_lists(ranks, rated, PLACES), test.where(test.values >= THRESHOLD)
    predicted = ranks.predict_rows(test.users, test.items)
    precision, recall = _mean(precision_at(lists, relevant)), _mean(recall_at(lists, relevant))
    both = precision + recall
    return {
        NDCG: _mean(ndcg_over_tested(predicted, test, PLACES, seed=seed)),
        PRECISION: precision,
        RECALL: recall,
        F1: 2 * precision * recall / both if both else 0.0,
    }


def _mean(scores: PerUser) -> float:
    known = scores[np.isfinite(scores)]
    return float(known.mean()) if len(known) else 0.0
