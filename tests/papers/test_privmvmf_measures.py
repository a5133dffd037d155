import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.data.ratings import Ratings, Scale
from cofactor.data.split import by_fraction
from cofactor.evaluate.ranking import ranking
from cofactor.factors.baselines import Popularity, UserItemBias
from cofactor.factors.model import Factors
from cofactor.papers.privmvmf_measures import measured
from cofactor.papers.privmvmf_numbers import (
    COLD_ITEM,
    COLD_USER,
    DEVIATIONS_4,
    EXISTING,
    F1,
    FED,
    MEASURES,
    NDCG,
    PHASES,
    PRECISION,
    PRIV,
    RECALL,
    SCENARIOS,
    TABLE_4,
    TABLE_5,
)
from cofactor.papers.privmvmf_splits import parts
from tests.papers.making import material

IDS: dict[str, Any] = {"user_ids": np.arange(3), "item_ids": np.arange(14), "scale": Scale(1, 5, 1)}


def in_order(train: Ratings) -> Factors:
    """Ranks item 0 first, and item 13 last."""
    return replace(Popularity().fit(train), item_bias=np.arange(14.0, 0.0, -1.0).astype(np.float32))


def by_hand() -> tuple[Ratings, Ratings]:
    train = Ratings.from_rows([0, 1, 2], [12, 13, 0], [3.0, 3.0, 5.0], **IDS)
    rows = [(0, 0, 4), (0, 1, 3), (0, 2, 5), (0, 11, 4), (1, 10, 5), (2, 1, 2), (2, 3, 3)]
    users, items, values = np.array(rows).T
    return train, Ratings.from_rows(users, items, values.astype(float), **IDS)


def test_precision_recall_and_f1_are_as_counted_by_hand() -> None:
    train, test = by_hand()
    found = measured(in_order(train), train, test)
    # The first user has 0 and 2 of her three relevant items among her ten; the second, 10, which is eleventh;
    # to the third nothing is relevant.
    assert found[PRECISION] == pytest.approx((2 / 10 + 0) / 2)
    assert found[RECALL] == pytest.approx((2 / 3 + 0) / 2)
    assert found[F1] == pytest.approx(2 * 0.1 * (1 / 3) / (0.1 + 1 / 3))


def test_ndcg_is_over_a_users_own_test_items_with_gains_of_two_to_the_rating_less_one() -> None:
    train, test = by_hand()
    first = (15 / 1 + 7 / math.log2(3) + 31 / 2 + 15 / math.log2(5)) / (
        31 / 1 + 15 / math.log2(3) + 15 / 2 + 7 / math.log2(5)
    )
    third = (3 + 7 / math.log2(3)) / (7 + 3 / math.log2(3))
    assert measured(in_order(train), train, test)[NDCG] == pytest.approx((first + 1 + third) / 3)


def test_ndcg_sums_ten_terms() -> None:
    values = [5.0] * 10 + [1.0] * 4
    test = Ratings.from_rows([0] * 14, range(14), values, **IDS)
    none = test.where(np.zeros(14, np.bool_))
    backwards = replace(in_order(none), item_bias=np.arange(14.0).astype(np.float32))
    discounts = 1 / np.log2(np.arange(2, 12))
    gains = np.array([1.0] * 4 + [31.0] * 6)
    expected = gains @ discounts / (31 * discounts.sum())
    assert measured(backwards, none, test)[NDCG] == pytest.approx(expected)


def test_scores_below_the_scale_still_rank() -> None:
    train, test = by_hand()
    low = replace(in_order(train), mean=-20.0, scale=Scale(1, 5, 1))
    assert measured(low, train, test) == pytest.approx(measured(in_order(train), train, test))


def test_nobody_with_a_relevant_item_counts_as_nothing() -> None:
    train, _ = by_hand()
    test = Ratings.from_rows([0], [1], [2.0], **IDS)
    assert measured(in_order(train), train, test) == {NDCG: 1.0, PRECISION: 0.0, RECALL: 0.0, F1: 0.0}


def test_measures_of_known_users_are_those_of_every_other_ranking() -> None:
    train, test = by_fraction(material().ratings, 0.2, seed=1)
    model = replace(UserItemBias().fit(train), scale=None)
    ours, theirs = measured(model, train, test, seed=1), ranking(model, train, test, threshold=4, seed=1)
    assert ours == pytest.approx(
        {
            NDCG: theirs.ndcg_over_tested.value,
            PRECISION: theirs.precision.value,
            RECALL: theirs.recall.value,
            F1: theirs.f1.value,
        }
    )


def test_known_users_give_a_fifth_of_their_ratings() -> None:
    ratings = material().ratings
    found = parts(ratings, EXISTING, 3)
    assert len(found.train) + len(found.test) == len(ratings)
    sizes = ratings.by_user.sizes
    np.testing.assert_array_equal(found.test.by_user.sizes, np.floor(0.2 * sizes + 0.5))
    assert found.rated is found.train


@pytest.mark.parametrize(("scenario", "side"), [(COLD_USER, "user"), (COLD_ITEM, "item")])
def test_training_never_meets_a_tenth_of_the_users_or_of_the_items(scenario: str, side: str) -> None:
    ratings = material().ratings
    found = parts(ratings, scenario, 3)
    old, new, every = (
        set(getattr(each, f"{side}_ids").tolist()) for each in (found.train, found.test, ratings)
    )
    assert not old & new
    assert old | new == every
    assert len(new) == round(0.1 * len(every))
    other = "item" if side == "user" else "user"
    for part in (found.train, found.test, found.rated):
        np.testing.assert_array_equal(getattr(part, f"{other}_ids"), getattr(ratings, f"{other}_ids"))
    assert len(found.train) + len(found.test) == len(ratings)
    assert len(found.rated) == 0
    rows = {
        (found.test.user_ids[u], found.test.item_ids[i]) for u, i in zip(*_pairs(found.test), strict=True)
    }
    whole = {(ratings.user_ids[u], ratings.item_ids[i]) for u, i in zip(*_pairs(ratings), strict=True)}
    assert rows < whole


def _pairs(ratings: Ratings) -> tuple[Any, Any]:
    return ratings.users, ratings.items


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_repeats_hold_back_different_ratings(scenario: str) -> None:
    held = [parts(material().ratings, scenario, seed) for seed in (1, 1, 2)]
    keys = [
        {(p.test.user_ids[u], p.test.item_ids[i]) for u, i in zip(*_pairs(p.test), strict=True)} for p in held
    ]
    assert keys[0] == keys[1] != keys[2]


def test_the_papers_tables_are_whole_and_fit_together() -> None:
    assert tuple(TABLE_4) == tuple(DEVIATIONS_4) == SCENARIOS
    for scenario in SCENARIOS:
        for numbers in TABLE_4[scenario].values():
            assert tuple(numbers) == MEASURES
            both = numbers[PRECISION] + numbers[RECALL]
            # Its F1 is that of its mean precision and recall.
            assert numbers[F1] == pytest.approx(2 * numbers[PRECISION] * numbers[RECALL] / both, abs=0.002)
        assert set(TABLE_4[scenario]) == set(DEVIATIONS_4[scenario]) == {FED, PRIV}
    assert tuple(TABLE_5[PRIV]) == PHASES
    assert set(TABLE_5[FED]) == set(PHASES) - {"decryption"}
