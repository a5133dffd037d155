import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.ratings import Scale
from cofactor.factors.model import Factors, HomeFit, Seen
from cofactor.factors.posterior import Posterior

WEIGHTS = np.array([0.2, 5.0, 1.0, 30.0, 0.01])
RATED = {"busy": [0, 1, 3], "new": []}


@pytest.fixture
def model() -> Factors:
    random = np.random.default_rng(0)
    return Factors(
        user_ids=np.array(list(RATED)),
        item_ids=np.arange(5),
        mean=3.0,
        user_bias=np.zeros(2, np.float32),
        item_bias=np.zeros(5, np.float32),
        user_vectors=np.zeros((2, 2), np.float32),
        item_vectors=random.normal(size=(5, 2)).astype(np.float32),
        scale=Scale(1, 5),
        seen=Seen(np.array([0, 3, 3]), np.array(RATED["busy"], np.int32)),
        home=HomeFit(np.array([[2.0, 0.5], [0.5, 1.0]]), WEIGHTS, calibrated=True),
    )


def conditioned(model: Factors, rated: list[int]) -> NDArray[np.float64]:
    """The covariance of a vector once noisy ratings were seen, as for any jointly normal numbers."""
    assert model.home is not None
    before, x = np.linalg.inv(model.home.precision), model.item_vectors[rated].astype(np.float64)
    ratings = x @ before @ x.T + np.diag(1 / WEIGHTS[rated])
    return np.asarray(before - before @ x.T @ np.linalg.solve(ratings, x @ before), np.float64)


@pytest.mark.parametrize("user", RATED)
def test_covariance_weighs_each_rating_by_its_own_item(model: Factors, user: str) -> None:
    found = Posterior(model).covariance(user)
    np.testing.assert_allclose(found, conditioned(model, RATED[user]), rtol=1e-9)


@pytest.mark.parametrize("user", RATED)
def test_deviation_adds_the_items_noise_to_what_is_not_known_of_the_user(model: Factors, user: str) -> None:
    x, covariance = model.item_vectors.astype(np.float64), conditioned(model, RATED[user])
    variances = 1 / WEIGHTS + np.diag(x @ covariance @ x.T)
    np.testing.assert_allclose(Posterior(model).std(user, range(5)), np.sqrt(variances), rtol=1e-6)
