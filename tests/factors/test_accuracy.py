"""Every model with its default settings on real ratings, a tenth of each user's held out, three times."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cofactor.data.files import read_ratings
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.data.tables import side_tables
from cofactor.factors.als import ALS
from cofactor.factors.bayes import Bayes
from cofactor.factors.model import Factors
from cofactor.factors.sgd import SGD

Fit = Callable[[Ratings, int], Factors]

pytestmark = pytest.mark.slow


def mean_rmse(ratings: Ratings, fit: Fit) -> float:
    errors = []
    for seed in (1, 2, 3):
        train, test = by_fraction(ratings, 0.1, seed=seed)
        wrong = fit(train, seed).predict_rows(test.users, test.items) - test.values
        errors.append(np.sqrt(np.mean(wrong.astype(np.float64) ** 2)))
    return float(np.mean(errors))


@pytest.mark.parametrize(
    ("model", "on_1m", "on_100k"),
    [(SGD(), 0.855, 0.915), (SGD(factors=20), 0.855, 0.915), (ALS(), 0.855, 0.915), (Bayes(), 0.840, 0.895)],
    ids=["SGD", "SGD with 20 factors", "ALS", "Bayes"],
)
def test_error_on_movielens_stays_below_the_bar(
    real_data: Callable[[str], Path], model: SGD | ALS | Bayes, on_1m: float, on_100k: float
) -> None:
    for name, bar in (("ml-1m.zip", on_1m), ("ml-100k.inter", on_100k)):
        assert (
            mean_rmse(read_ratings(real_data(name)), lambda train, seed: model.fit(train, seed=seed)) <= bar
        )


def test_genres_and_years_help_on_movielens_1m(real_data: Callable[[str], Path]) -> None:
    path = real_data("ml-1m.zip")
    ratings, table = read_ratings(path), side_tables(path)[1]
    assert table is not None
    known = PublicItems.of_table(table).rows(ratings.item_ids)
    assert mean_rmse(ratings, lambda train, seed: Bayes().fit(train, features=known, seed=seed)) <= 0.835
