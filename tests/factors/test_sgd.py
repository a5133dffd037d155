from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings, Scale
from cofactor.data.split import by_fraction
from cofactor.data.synthetic import Shape, make
from cofactor.errors import ConfigError, DataError
from cofactor.factors.descent import ITEM_BIAS, ITEM_ONE, USER_BIAS, USER_ONE
from cofactor.factors.model import Factors
from cofactor.factors.schedule import GRID
from cofactor.factors.sgd import SGD, Nonnegative, Training, start
from cofactor.factors.simd import cells
from cofactor.factors.team import Team
from cofactor.progress import Progress

Matrix = NDArray[np.float64]


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(Shape(users=120, items=90, ratings=4_000, minimum=10), seed=1).ratings


def rmse(model: Factors, test: Ratings) -> float:
    return float(np.sqrt(np.mean((model.predict_rows(test.users, test.items) - test.values) ** 2)))


def epoch_by_numpy(training: Training, rate: float) -> tuple[Matrix, Matrix]:
    """The same steps in the same order, in float64, one column after the other written out."""
    users, items = (cells(rows.table).astype(np.float64) for rows in (training.users, training.items))
    order = training.order
    blocks = [g * GRID + (g ^ turn) for turn in range(GRID) for g in range(GRID)]
    for at in np.concatenate([np.arange(order.ptr[block], order.ptr[block + 1]) for block in blocks]):
        u, i = order.users[at], order.items[at]
        user, item = users[u].copy(), items[i].copy()
        error = order.values[at] - user[:-2] @ item[:-2] - user[USER_BIAS] * item[ITEM_ONE] - item[ITEM_BIAS]
        users[u] += rate * (error * item - training.users.pull[u] * user)
        items[i] += rate * (error * user - training.items.pull[i] * item)
        users[u, USER_ONE], items[i, ITEM_ONE] = user[USER_ONE], item[ITEM_ONE]
        if training.highest is not None:
            users[u], items[i] = clipped(users[u], training.highest), clipped(items[i], training.highest)
    return users, items


def clipped(row: Matrix, highest: float) -> Matrix:
    row = np.maximum(row, 0)
    scaled: Matrix = row / max(1.0, float(np.linalg.norm(row)) / np.sqrt(highest))
    return scaled


@settings(max_examples=25)
@given(st.integers(1, 70), st.booleans(), st.integers(0, 1_000))
def test_epoch_equals_its_numpy_twin_for_any_number_of_factors(
    ratings: Ratings, factors: int, biases: bool, seed: int
) -> None:
    few = ratings.select(users=slice(0, 25))
    training = start(SGD(factors=factors, biases=biases), few, seed)
    users, items = epoch_by_numpy(training, 0.05)
    training.run_epoch(0.05, Team(1))
    np.testing.assert_allclose(cells(training.users.table), users, atol=5e-6)
    np.testing.assert_allclose(cells(training.items.table), items, atol=5e-6)


def test_steps_become_smaller_from_epoch_to_epoch(ratings: Ratings) -> None:
    settings = SGD(factors=7, epochs=2, learning_rate=0.05)
    training, notes = start(settings, ratings, 3), list[str]()
    for rate in (0.05, 0.025):
        users, items = epoch_by_numpy(training, rate)
        cells(training.users.table)[:], cells(training.items.table)[:] = users, items
    wanted = training.finished(settings)
    found = settings.fit(ratings, seed=3, progress=lambda event: notes.append(event.note))
    for name in ("user_vectors", "item_vectors", "user_bias", "item_bias"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=2e-5)
    assert notes == ["learning rate 0.0500", "learning rate 0.0250"]


def test_users_and_items_start_from_chances_of_their_own(ratings: Ratings) -> None:
    training = start(SGD(factors=6), ratings, 0)
    users = cells(training.users.table)[training.user_seats.rows, :6]
    items = cells(training.items.table)[training.item_seats.rows, :6]
    # The correlation of 540 independent pairs has a standard deviation of 0.043: six are rarer than 1e-8.
    assert abs(np.corrcoef(users[:90].ravel(), items.ravel())[0, 1]) < 0.26


def test_clipped_epoch_equals_its_numpy_twin(ratings: Ratings) -> None:
    training = start(SGD(factors=7, nonnegative=Nonnegative()), ratings, 3)
    users, items = epoch_by_numpy(training, 0.3)
    training.run_epoch(0.3, Team(1))
    assert (users[:, :7] == 0).any()
    assert np.isclose(np.linalg.norm(items, axis=1), np.sqrt(5)).any()
    np.testing.assert_allclose(cells(training.users.table), users, atol=1e-4)
    np.testing.assert_allclose(cells(training.items.table), items, atol=1e-4)


def test_seed_decides_the_model_and_threads_do_not(ratings: Ratings) -> None:
    one, other = (SGD(epochs=3, threads=1).fit(ratings, seed=seed) for seed in (1, 2))
    assert not np.array_equal(one.user_vectors, other.user_vectors)
    for threads in (2, 3, 4, 8):
        same = SGD(epochs=3, threads=threads).fit(ratings, seed=1)
        assert np.array_equal(one.user_vectors, same.user_vectors)
        assert np.array_equal(one.item_bias, same.item_bias)


def test_learns_more_than_the_mean(ratings: Ratings) -> None:
    train, test = by_fraction(ratings, seed=2)
    assert rmse(SGD().fit(train), test) < 0.95 * float(np.std(test.values))


def test_model_is_the_same_on_another_scale(ratings: Ratings) -> None:
    scale = ratings.scale
    assert scale is not None
    wide = Ratings.from_rows(
        ratings.users, ratings.items, 10 * ratings.values + 7,
        user_ids=ratings.user_ids, item_ids=ratings.item_ids,
        scale=Scale(10 * scale.low + 7, 10 * scale.high + 7),
    )  # fmt: skip
    narrow_model, wide_model = SGD(epochs=5).fit(ratings), SGD(epochs=5).fit(wide)
    predicted = narrow_model.predict_rows(ratings.users, ratings.items)
    np.testing.assert_allclose(wide_model.predict_rows(wide.users, wide.items), 10 * predicted + 7, atol=1e-2)


def test_without_biases_there_are_none(ratings: Ratings) -> None:
    model = SGD(epochs=2, biases=False).fit(ratings)
    assert not model.user_bias.any()
    assert not model.item_bias.any()
    assert model.user_vectors.any()


def test_users_and_items_without_ratings_get_the_mean(ratings: Ratings) -> None:
    part = ratings.where((ratings.users != 5) & (ratings.items != 7))
    model = SGD(epochs=2).fit(part)
    assert not model.user_vectors[5].any()
    assert not model.item_vectors[7].any()
    assert model.predict_rows(np.array([5], np.int32), np.array([7], np.int32))[0] == pytest.approx(part.mean)


@settings(max_examples=15)
@given(st.floats(0.001, 5), st.integers(0, 1_000))
def test_nonnegative_rows_stay_within_their_bounds(ratings: Ratings, rate: float, seed: int) -> None:
    settings = SGD(factors=6, epochs=1, learning_rate=rate, nonnegative=Nonnegative())
    model = settings.fit(ratings, seed=seed)
    assert model.mean == 0
    assert not model.user_bias.any()
    assert ratings.scale is not None
    for vectors in (model.user_vectors, model.item_vectors):
        assert vectors.min() >= 0
        assert np.linalg.norm(vectors.astype(np.float64), axis=1).max() <= np.sqrt(ratings.scale.high)


def test_nonnegative_learns_more_than_the_mean(ratings: Ratings) -> None:
    train, test = by_fraction(ratings, seed=2)
    model = SGD(factors=5, nonnegative=Nonnegative()).fit(train)
    assert rmse(model, test) < 0.97 * float(np.std(test.values))


def test_folding_a_known_user_in_predicts_about_what_training_did(ratings: Ratings) -> None:
    model = SGD(epochs=60).fit(ratings)
    row = int(np.argsort(ratings.by_user.sizes)[ratings.user_count // 2])
    mine = ratings.by_user.window(row, row + 1)
    known = dict(zip(ratings.item_ids[mine.index].tolist(), mine.values.tolist(), strict=True))
    folded, items = model.fold_in(known), ratings.item_ids.tolist()
    difference = folded.predict("new user", items) - model.predict(ratings.user_ids[row].item(), items)
    assert np.abs(difference).max() < 0.15


def test_progress_tells_of_every_epoch(ratings: Ratings) -> None:
    heard: list[Progress] = []
    SGD(epochs=3, factors=4).fit(ratings, progress=heard.append)
    assert [(event.stage, event.step, event.steps) for event in heard] == [("sgd", n, 3) for n in (1, 2, 3)]


def test_divergence_is_an_error_with_a_remedy(ratings: Ratings) -> None:
    with pytest.raises(ConfigError, match=r"in epoch \d+: learning_rate=80 is too large.* Use 20 or less"):
        SGD(learning_rate=80.0).fit(ratings)


def test_no_ratings_are_refused(ratings: Ratings) -> None:
    with pytest.raises(DataError, match="no ratings to learn from"):
        SGD().fit(ratings.where(np.zeros(len(ratings), bool)))


def test_ratings_without_values_are_sent_to_the_implicit_model() -> None:
    with pytest.raises(DataError, match=r"Fit ImplicitALS\(\)"):
        SGD().fit(Ratings.from_arrays([1, 1, 2], [1, 2, 1]))


@pytest.mark.parametrize(
    ("values", "highest", "message"),
    [([-1.0, 2.0], None, "cannot predict a rating of -1"), ([1.0, 5.0], 4.0, "ratings of 5, above .*=4")],
)
def test_ratings_that_nonnegative_vectors_cannot_reach_are_refused(
    values: list[float], highest: float | None, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        SGD(nonnegative=Nonnegative(highest=highest)).fit(Ratings.from_arrays([1, 2], [1, 1], values))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"factors": 0}, "factors must be at least 1"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate must be greater than 0"),
        ({"regularization": float("nan")}, "regularization must be greater than 0"),
        ({"threads": 0}, "threads must be at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SGD(**wrong)
