from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.data.ratings import Ratings, Scale
from cofactor.data.split import by_fraction
from cofactor.evaluate.ranking import ranking
from cofactor.factors.baselines import Popularity, UserItemBias
from cofactor.papers import dpmf_rp_measures as measures
from cofactor.papers.dpmf_rp_central import CentralMF
from tests.papers.making import material

IDS: dict[str, Any] = {"user_ids": np.arange(2), "item_ids": np.arange(14), "scale": Scale(1, 5, 1)}


def by_hand() -> tuple[Ratings, Ratings]:
    """Popularity recommends items 0 to 9 to both users; of these 0, 2 and 11 are relevant to the first."""
    train = Ratings.from_rows([0, 1], [12, 13], [3.0, 3.0], **IDS)
    test = Ratings.from_rows([0, 0, 0, 0, 1], [0, 1, 2, 11, 10], [4.0, 3.0, 5.0, 4.0, 5.0], **IDS)
    return train, test


def test_precision_recall_f1_and_map_are_as_counted_by_hand() -> None:
    train, test = by_hand()
    model = Popularity().fit(train)
    counts = np.arange(14.0, 0.0, -1.0).astype(np.float32)
    found = measures.ranked(replace(model, item_bias=counts), train, test, 1)
    # The first user has hits at places 1 and 3 of ten, and three relevant items; the second has none.
    assert found[measures.PRECISION].value == pytest.approx(0.2 / 2)
    assert found[measures.RECALL].value == pytest.approx((2 / 3) / 2)
    assert found[measures.F1].value == pytest.approx(2 * 0.1 * (1 / 3) / (0.1 + 1 / 3))
    assert found[measures.MAP].value == pytest.approx((1 + 2 / 3) / 10 / 2)


def test_divisors_of_average_precision_are_the_hits_the_relevant_items_and_the_places() -> None:
    train, test = by_hand()
    counts = np.arange(14.0, 0.0, -1.0).astype(np.float32)
    model = replace(Popularity().fit(train), item_bias=counts)
    total = 1 + 2 / 3
    found = measures.average_precisions(model, train, test, 1)
    assert {name: one.value for name, one in found.items()} == pytest.approx(
        {
            "divided by the hits (equation 56)": total / 2 / 2,
            "divided by min(10, relevant items)": total / 3 / 2,
            "divided by 10": total / 10 / 2,
        }
    )


def test_precision_and_recall_are_those_of_every_other_ranking() -> None:
    train, test = by_fraction(material().ratings, 0.2, seed=1)
    model = UserItemBias().fit(train)
    ours, theirs = measures.ranked(model, train, test, 1), ranking(model, train, test, threshold=4, seed=1)
    assert ours[measures.PRECISION].value == pytest.approx(theirs.precision.value)
    assert ours[measures.RECALL].value == pytest.approx(theirs.recall.value)
    assert ours[measures.F1].value == pytest.approx(theirs.f1.value)


def test_rescaling_undoes_any_line_and_keeps_the_order_of_items() -> None:
    train, test = by_fraction(material().ratings, 0.2, seed=1)
    model = CentralMF(factors=3).fit(train, seed=1)
    bent = replace(
        model,
        mean=2.0,
        user_vectors=3 * model.user_vectors,
        item_bias=np.linspace(-1, 1, train.item_count).astype(np.float32),
    )
    again = measures.rescaled(bent, train)
    scores = replace(bent, scale=None).predict_rows(train.users, train.items).astype(np.float64)
    fitted = replace(again, scale=None).predict_rows(train.users, train.items)
    for user in range(5):
        mine = train.users == user
        x, y = scores[mine] - scores[mine].mean(), train.values[mine].astype(np.float64)
        slope = x @ (y - y.mean()) / (x @ x + 8)
        np.testing.assert_allclose(fitted[mine], y.mean() + slope * x, atol=1e-4)
    raw = measures.rating_error(model, test, 1)[measures.RMSE].value
    assert measures.measured_twice(model, train, test, 1)[measures.RESCALED].value < raw


def test_central_factorization_solves_the_papers_equation_5_for_every_user() -> None:
    train = material().ratings
    model = CentralMF(factors=4, kappa=7.0, user_penalty=0.3, item_penalty=0.6, epochs=3).fit(train, seed=2)
    items = model.item_vectors.astype(np.float64)
    dense = np.zeros((train.user_count, train.item_count))
    dense[train.users, train.items] = train.values
    for user in range(train.user_count):
        weights = np.where(dense[user] > 0, 8.0, 1.0)
        matrix = (items * weights[:, None]).T @ items + 0.3 * np.eye(4)
        expected = np.linalg.solve(matrix, items.T @ (weights * dense[user]))
        np.testing.assert_allclose(model.user_vectors[user], expected, rtol=2e-3, atol=1e-4)


def test_more_epochs_of_central_factorization_lower_the_papers_loss() -> None:
    train = material().ratings
    losses = [_loss(CentralMF(factors=4, epochs=epochs), train) for epochs in (1, 3, 10)]
    assert losses[0] > losses[1] > losses[2]


def _loss(central: CentralMF, train: Ratings) -> float:
    """Equation 4."""
    model = central.fit(train, seed=1)
    dense = np.zeros((train.user_count, train.item_count))
    dense[train.users, train.items] = train.values
    wrong = dense - model.user_vectors.astype(np.float64) @ model.item_vectors.T
    weights = np.where(dense > 0, 1 + central.kappa, 1.0)
    penalties = central.user_penalty * (model.user_vectors**2).sum()
    penalties += central.item_penalty * (model.item_vectors**2).sum()
    return float((weights * wrong**2).sum() + penalties)
