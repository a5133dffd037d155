from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, ndcg_score

from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import ConfigError, DataError
from cofactor.evaluate.ranking import (
    average_precision_at,
    coverage,
    default_threshold,
    ndcg_over_tested,
    ndcg_over_unseen,
    precision_at,
    ranking,
    recall_at,
    released_popularity,
    top_lists,
)
from cofactor.factors.baselines import Popularity
from cofactor.factors.choosing import Choice
from cofactor.factors.model import Factors, seen_in
from tests.evaluate.conftest import World

K = 10


def ratings_of(rows: dict[int, dict[int, float]], users: int, items: int) -> Ratings:
    triples = [(user, item, value) for user, row in rows.items() for item, value in row.items()]
    columns = list(zip(*triples, strict=True))
    return Ratings.from_rows(
        columns[0], columns[1], columns[2], user_ids=np.arange(users), item_ids=np.arange(items),
        scale=Scale(1, 5, 1),
    )  # fmt: skip


def brute_force_scores(world: World, user: int) -> NDArray[np.float64]:
    model = world.model
    return np.asarray(model.user_vectors[user] @ model.item_vectors.T + model.item_bias, np.float64)


def test_all_measures_by_hand() -> None:
    lists = np.array([[3, 1, 4, 0], [0, 1, -1, -1], [0, 1, 2, 3]], np.int32)
    test = ratings_of({0: {1: 5, 0: 4, 2: 5, 4: 2}, 1: {1: 4}, 2: {4: 3}}, 3, 5)
    relevant = test.where(test.values >= 4)
    assert precision_at(lists, relevant)[:2].tolist() == [2 / 4, 1 / 2]
    assert recall_at(lists, relevant)[:2].tolist() == [2 / 3, 1]
    assert average_precision_at(lists, relevant)[:2].tolist() == [(1 / 2 + 2 / 4) / 3, 1 / 2]
    # Nothing is relevant to the third user: she does not count.
    assert np.isnan(precision_at(lists, relevant)[2])
    assert np.isnan(recall_at(lists, relevant)[2])
    assert np.isnan(average_precision_at(lists, relevant)[2])
    gained = 31 / np.log2(3) + 3 / np.log2(4) + 15 / np.log2(5)
    best = 31 / np.log2(2) + 31 / np.log2(3) + 15 / np.log2(4) + 3 / np.log2(5)
    assert ndcg_over_unseen(lists, test).tolist() == pytest.approx([gained / best, 1 / np.log2(3), 0])
    assert coverage(lists, 5) == 1.0
    assert coverage(lists[1:2], 5) == 0.4


def test_ndcg_over_tested_by_hand() -> None:
    test = ratings_of({0: {0: 5, 1: 1, 2: 3}, 1: {2: 2}}, 2, 3)
    predicted = np.array([2.0, 3.0, 1.0, 4.0], np.float32)
    found = ndcg_over_tested(predicted, test, 2)
    assert found.tolist() == pytest.approx([(1 + 31 / np.log2(3)) / (31 + 7 / np.log2(3)), 1.0])


def test_dcg_sums_all_k_terms_and_no_more() -> None:
    test = ratings_of({0: dict.fromkeys(range(12), 1.0)}, 1, 12)
    for k in (1, 5, 10):
        lists = np.arange(12, dtype=np.int32)[None, :k]
        assert ndcg_over_unseen(lists, test)[0] == pytest.approx(1.0)
        missed_last = np.where(np.arange(k) == k - 1, -1, lists).astype(np.int32)
        discounts = 1 / np.log2(np.arange(2, k + 2))
        assert ndcg_over_unseen(missed_last, test)[0] == pytest.approx(1 - discounts[-1] / discounts.sum())


def test_both_ndcgs_equal_those_of_scikit_learn(world: World) -> None:
    test = world.test
    lists = top_lists(world.model, world.train, K)
    scores = np.random.default_rng(0).permutation(len(test)).astype(np.float32)
    unseen, tested = ndcg_over_unseen(lists, test), ndcg_over_tested(scores, test, K)
    for user in range(0, 150, 7):
        mine = test.users == user
        gains = np.zeros(80)
        gains[test.items[mine]] = 2.0 ** test.values[mine] - 1
        allowed = np.ones(80, np.bool_)
        allowed[world.train.items[world.train.users == user]] = False
        own = brute_force_scores(world, user)
        wanted = ndcg_score([gains[allowed]], [own[allowed]], k=K)
        assert unseen[user] == pytest.approx(wanted), user
        if mine.sum() > 1:
            wanted = ndcg_score([gains[test.items[mine]]], [scores[mine]], k=K)
            assert tested[user] == pytest.approx(wanted), user


def test_average_precision_over_the_whole_list_equals_that_of_scikit_learn(world: World) -> None:
    lists = top_lists(world.model, world.train, 80)
    relevant = world.test.where(world.test.values >= 4)
    found = average_precision_at(lists, relevant)
    for user in np.flatnonzero(relevant.by_user.sizes)[::9]:
        allowed = np.ones(80, np.bool_)
        allowed[world.train.items[world.train.users == user]] = False
        truth = np.isin(np.arange(80), relevant.items[relevant.users == user])
        wanted = average_precision_score(truth[allowed], brute_force_scores(world, user)[allowed])
        assert found[user] == pytest.approx(wanted), user


def test_perfect_list_has_average_precision_one_even_if_more_is_relevant() -> None:
    relevant = ratings_of({0: dict.fromkeys(range(6), 5.0)}, 1, 6)
    assert average_precision_at(np.array([[4, 2, 0]], np.int32), relevant)[0] == 1.0


def test_ranking_averages_over_users_and_combines_f1(world: World) -> None:
    found = ranking(world.model, world.train, world.test, k=K, threshold=4)
    lists, relevant = top_lists(world.model, world.train, K), world.test.where(world.test.values >= 4)
    precision, recall = np.nanmean(precision_at(lists, relevant)), np.nanmean(recall_at(lists, relevant))
    assert found.precision.value == pytest.approx(precision)
    assert found.recall.value == pytest.approx(recall)
    assert found.f1.value == pytest.approx(2 * precision * recall / (precision + recall))
    assert found.map.value == pytest.approx(np.nanmean(average_precision_at(lists, relevant)))
    assert found.ndcg_over_unseen.value == pytest.approx(np.nanmean(ndcg_over_unseen(lists, world.test)))
    assert found.ndcg_over_unseen.value < 0.5 < found.ndcg_over_tested.value
    assert found.users == np.count_nonzero(relevant.by_user.sizes) < 150
    assert found.precision.low < found.precision.value < found.precision.high


def test_lists_are_the_best_unseen_items(world: World) -> None:
    lists = top_lists(world.model, world.train, K)
    for user in range(0, 150, 10):
        scores = brute_force_scores(world, user)
        scores[world.train.items[world.train.users == user]] = -np.inf
        assert lists[user].tolist() == np.argsort(-scores)[:K].tolist()


def test_training_items_are_left_out_even_if_the_model_does_not_know_them(world: World) -> None:
    assert world.model.seen is None
    lists = top_lists(world.model, world.train, 80)
    for user in range(0, 150, 10):
        assert not np.isin(lists[user], world.train.items[world.train.users == user]).any()


def with_choice(world: World) -> Factors:
    """Return the model with counts of the training ratings, and its item vectors as public columns."""
    counts = world.train.by_item.sizes
    return replace(world.model, choice=Choice.from_counts(counts, 0.5, world.model.item_vectors))


def test_taste_of_measured_lists_is_fitted_to_training_ratings_alone(world: World) -> None:
    model = with_choice(world)
    found = top_lists(replace(model, seen=seen_in(world.test)), world.train, K)
    wanted, _ = replace(model, seen=seen_in(world.train)).top_items(slice(None), K)
    np.testing.assert_array_equal(found, wanted)
    assert not np.array_equal(found, top_lists(world.model, world.train, K))


def test_choice_does_not_change_the_order_of_tested_items(world: World) -> None:
    plain = ranking(world.model, world.train, world.test, resamples=2)
    chosen = ranking(with_choice(world), world.train, world.test, resamples=2)
    assert chosen.ndcg_over_tested == plain.ndcg_over_tested
    assert chosen.ndcg_over_unseen.value > plain.ndcg_over_unseen.value


def test_counts_of_a_choice_alone_rank_by_popularity(world: World) -> None:
    found = top_lists(released_popularity(with_choice(world)), world.train, K)
    np.testing.assert_array_equal(found, top_lists(Popularity().fit(world.train), world.train, K))
    with pytest.raises(DataError, match="no counts of its own"):
        released_popularity(world.model)


def test_predictions_that_differ_by_little_keep_their_order() -> None:
    # Were they equal, all of forty coins would have to fall the right way.
    test = ratings_of({user: {0: 1, 1: 5} for user in range(40)}, 40, 2)
    predicted = np.tile(np.array([3.0, 3.00001], np.float32), 40)
    assert ndcg_over_tested(predicted, test, 2).tolist() == [1.0] * 40


def test_equal_predictions_are_put_in_random_order() -> None:
    # The first test item of everybody is the best: file order would give an NDCG of 1.
    test = ratings_of({user: {0: 5, 1: 1} for user in range(2000)}, 2000, 2)
    found = ndcg_over_tested(np.full(4000, 3.0, np.float32), test, 2, seed=0)
    worst = (1 + 31 / np.log2(3)) / (31 + 1 / np.log2(3))
    first = np.isclose(found, 1).sum()
    # Binomial with standard deviation 22; six of them are exceeded once in 5e8 runs.
    assert abs(first - 1000) < 134
    assert found.mean() == pytest.approx((1 + worst) / 2, abs=0.03)


@given(st.integers(0, 10_000), st.integers(1, 15))
@settings(max_examples=40)
def test_measures_lie_between_zero_and_one(seed: int, k: int) -> None:
    random = np.random.default_rng(seed)
    lists = np.array([random.permutation(12) for _ in range(5)], np.int32)[:, :k]
    users, items = np.nonzero(random.random((5, 12)) < 0.4)
    values = random.integers(1, 6, len(users)).astype(np.float32)
    test = Ratings.from_rows(
        users, items, values, user_ids=np.arange(5), item_ids=np.arange(12), scale=Scale(1, 5, 1)
    )
    measures = [measure(lists, test) for measure in (precision_at, recall_at, average_precision_at)]
    for found in (*measures, ndcg_over_unseen(lists, test), ndcg_over_tested(test.values, test, k)):
        assert np.array_equal(np.isnan(found), test.by_user.sizes == 0)
        assert (np.nan_to_num(found) >= 0).all()
        assert (np.nan_to_num(found) <= 1 + 1e-12).all()


def test_perfect_order_has_ndcg_one(world: World) -> None:
    found = ndcg_over_tested(world.test.values, world.test, K)
    assert np.allclose(found, 1)


def test_scale_with_negative_ratings_has_no_negative_gains() -> None:
    test = Ratings.from_rows(
        [0, 0], [0, 1], [-10, 10], user_ids=np.arange(1), item_ids=np.arange(2), scale=Scale(-10, 10)
    )
    assert ndcg_over_unseen(np.array([[0, -1]], np.int32), test)[0] == 0
    assert ndcg_over_unseen(np.array([[1, -1]], np.int32), test)[0] == 1


def test_default_threshold_is_the_upper_quarter_of_the_scale(world: World) -> None:
    assert default_threshold(world.test) == 4.0
    assert ranking(world.model, world.train, world.test, resamples=2).threshold == 4.0


def test_implicit_ratings_are_all_relevant(world: World) -> None:
    train, test = (
        Ratings.from_rows(part.users, part.items, user_ids=part.user_ids, item_ids=part.item_ids)
        for part in (world.train, world.test)
    )
    found = ranking(replace(world.model, scale=None), train, test, k=K)
    assert found.threshold is None
    assert found.users == 150
    lists = top_lists(world.model, train, K)
    hits = [np.isin(lists[user], test.items[test.users == user]).mean() for user in range(150)]
    assert found.precision.value == pytest.approx(np.mean(hits))


def test_mistakes_are_named(world: World) -> None:
    model, train, test = world.model, world.train, world.test
    with pytest.raises(DataError, match="no test rating of 6 or more among"):
        ranking(model, train, test, threshold=6)
    with pytest.raises(ConfigError, match="k must be at least 1"):
        ranking(model, train, test, k=0)
    with pytest.raises(DataError, match="number their users differently"):
        ranking(model, train, test.select(users=slice(0, 9)))
    with pytest.raises(DataError, match="number their users differently"):
        ranking(model, train.select(users=slice(0, 9)), test)


def test_ndcg_of_large_counts_is_that_of_the_definition() -> None:
    test = Ratings.from_arrays([1, 1, 1], [1, 2, 3], [1100.0, 1099.0, 1090.0])
    # Predicted in the order 2, 1, 3; with gains 2^1100 - 1 and so on, divided by 2^1100 throughout.
    gains = np.array([0.5, 1.0, 2.0**-10])
    discounts = 1 / np.log2([2, 3, 4])
    [found] = ndcg_over_tested(np.array([2, 3, 1], np.float32), test, 3)
    assert found == pytest.approx((gains @ discounts) / (np.sort(gains)[::-1] @ discounts))
