import numpy as np
import pytest

from cofactor.data.ratings import Ratings, Scale
from cofactor.factors.bayes_known import Known


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    """Item k has 3 k ratings: the first has none."""
    items = np.repeat(np.arange(8), 3 * np.arange(8))
    users = np.concatenate([np.arange(3 * k) for k in range(8)])
    return Ratings.from_rows(
        users, items, 1.0 + (users + items) % 5, user_ids=np.arange(21), item_ids=np.arange(8),
        scale=Scale(1, 5),
    )  # fmt: skip


def test_features_are_centred_and_only_wide_ones_are_brought_to_unit_spread(ratings: Ratings) -> None:
    signs = np.array([1, 1, 1, 1, -1, -1, -1, -1.0])
    known = Known.of(ratings, np.column_stack([1990 + 100 * signs, 7 + 0.5 * signs]), latent=0)
    np.testing.assert_allclose(known.features, np.column_stack([signs, 0.5 * signs]), atol=1e-12)


def test_expected_bias_is_a_ridge_regression_in_which_biases_with_few_ratings_count_less(
    ratings: Ratings,
) -> None:
    random = np.random.default_rng(1)
    known = Known.of(ratings, random.normal(0, 0.5, (8, 2)), latent=3)
    bias = random.normal(0, 0.4, 8)
    x = np.column_stack([np.ones(8), known.features, known.popularity, known.popularity**2])
    counts = 3.0 * np.arange(8)
    # Ridge as least squares: each penalty is one more observation of 0.
    roots = np.sqrt(counts / (counts + 8))
    rows = np.vstack([roots[:, None] * x, np.diag(np.sqrt([1e-3, 3, 3, 3, 3]))])
    slopes = np.linalg.lstsq(rows, np.concatenate([roots * bias, np.zeros(5)]), rcond=None)[0]
    np.testing.assert_allclose(known.expected_bias(bias), x @ slopes, rtol=1e-8)
