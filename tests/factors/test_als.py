from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.data.synthetic import Shape, make
from cofactor.errors import ConfigError, DataError
from cofactor.factors.als import ALS, Training, start
from cofactor.factors.implicit import ImplicitALS
from cofactor.factors.least_squares import BIAS, Weighing, solve_side
from cofactor.factors.model import Factors
from cofactor.factors.simd import cells
from cofactor.factors.team import Team
from cofactor.progress import Progress


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return make(Shape(users=120, items=90, ratings=4_000, minimum=10), seed=1).ratings


def rmse(model: Factors, test: Ratings) -> float:
    return float(np.sqrt(np.mean((model.predict_rows(test.users, test.items) - test.values) ** 2)))


def solve_items(training: Training) -> None:
    weighing = Weighing(training.units.mean, training.units.spread)
    solve_side(
        training.ratings.by_item, training.users, training.items,
        training.item_ridge, training.prior, weighing, Team(1),
    )  # fmt: skip


def items_by_numpy(settings: ALS, ratings: Ratings, users: NDArray[np.float32]) -> NDArray[np.float64]:
    """Each item's bias and vector by a dense solver in float64."""
    rows = np.zeros((ratings.item_count, 1 + settings.factors))
    standard = (ratings.by_item.values.astype(np.float64) - ratings.mean) / np.std(
        ratings.values, dtype=float
    )
    for item in range(ratings.item_count):
        mine = slice(*ratings.by_item.ptr[item : item + 2])
        raters = users[ratings.by_item.index[mine]].astype(np.float64)
        x = np.column_stack([np.full(len(raters), float(settings.biases)), raters[:, : settings.factors]])
        ridge = settings.regularization * np.sqrt(max(1, len(x))) * np.eye(x.shape[1])
        rows[item] = np.linalg.solve(x.T @ x + ridge, x.T @ (standard[mine] - raters[:, BIAS]))
    return rows


@pytest.mark.parametrize("biases", [True, False])
@pytest.mark.parametrize(
    "factors", [1, 6, 7, 14, *(pytest.param(k, marks=pytest.mark.slow) for k in (15, 30, 45, 70))]
)
def test_every_item_solves_its_normal_equations(ratings: Ratings, factors: int, biases: bool) -> None:
    part = ratings.where(ratings.items != 4)
    settings = ALS(factors=factors, biases=biases)
    training = start(settings, part, seed=factors)
    if biases:
        cells(training.users)[:, BIAS] = np.random.default_rng(0).normal(0, 0.3, part.user_count)
    solve_items(training)
    expected = items_by_numpy(settings, part, cells(training.users))
    solved = cells(training.items)
    np.testing.assert_allclose(solved[:, BIAS], expected[:, 0], atol=1e-5)
    np.testing.assert_allclose(solved[:, :factors], expected[:, 1:], atol=1e-5)
    assert not solved[4, :factors].any()
    assert not solved[:, factors:-2].any()
    assert (solved[:, -2] == biases).all()


def test_items_with_more_ratings_than_are_gathered_at_a_time_are_solved_too() -> None:
    values = np.random.default_rng(0).integers(1, 6, 900)
    many = Ratings.from_arrays(np.repeat(np.arange(300), 3), np.tile([1, 2, 3], 300), values)
    training = start(ALS(factors=5), many, seed=0)
    solve_items(training)
    expected = items_by_numpy(ALS(factors=5), many, cells(training.users))
    np.testing.assert_allclose(cells(training.items)[:, BIAS], expected[:, 0], atol=1e-5)
    np.testing.assert_allclose(cells(training.items)[:, :5], expected[:, 1:], atol=1e-5)


@pytest.mark.parametrize("threads", [1, 3])
def test_last_users_and_items_get_zero_rows_where_they_have_no_ratings(
    ratings: Ratings, threads: int
) -> None:
    part = ratings.where((ratings.users < 110) & (ratings.items < 85))
    training = start(ALS(factors=6), part, seed=0)
    cells(training.users)[:, :6] = cells(training.items)[:, :6] = 1
    with Team(threads) as team:
        training.run_epoch(team)
    assert not cells(training.users)[110:, [*range(6), BIAS]].any()
    assert not cells(training.items)[85:, [*range(6), BIAS]].any()
    assert cells(training.users)[:110, :6].any()


def test_seed_decides_the_model_and_threads_do_not(ratings: Ratings) -> None:
    one, same, other = (
        ALS(factors=6, epochs=2, threads=threads).fit(ratings, seed=seed)
        for seed, threads in ((1, 1), (1, 3), (2, 1))
    )
    assert np.array_equal(one.user_vectors, same.user_vectors)
    assert np.array_equal(one.item_bias, same.item_bias)
    assert not np.array_equal(one.user_vectors, other.user_vectors)


def test_learns_more_than_the_mean(ratings: Ratings) -> None:
    train, test = by_fraction(ratings, seed=2)
    assert rmse(ALS(factors=6).fit(train), test) < 0.95 * float(np.std(test.values))


def test_every_epoch_brings_the_penalized_error_down(ratings: Ratings) -> None:
    training = start(ALS(factors=6), ratings, seed=0)
    losses = []
    for _ in range(6):
        training.run_epoch(Team(1))
        users, items = cells(training.users).astype(np.float64), cells(training.items).astype(np.float64)
        x, y = users[ratings.users], items[ratings.items]
        standard = (ratings.values - training.units.mean) / training.units.spread
        errors = standard - np.einsum("rk,rk->r", x[:, :-2], y[:, :-2]) - x[:, BIAS] - y[:, BIAS]
        penalty = sum(
            (ridge * (rows**2).sum(axis=1)).sum() - ridge.sum()  # The constant column costs nothing.
            for ridge, rows in ((training.user_ridge, users), (training.item_ridge, items))
        )
        losses.append(errors @ errors + penalty)
    assert (np.diff(losses) < 0).all()


def test_folding_a_known_user_in_gives_the_row_of_training(ratings: Ratings) -> None:
    model = ALS(factors=6).fit(ratings)
    for row in (int(ratings.by_user.sizes.argmin()), int(ratings.by_user.sizes.argmax())):
        mine = ratings.by_user.window(row, row + 1)
        known = dict(zip(ratings.item_ids[mine.index].tolist(), mine.values.tolist(), strict=True))
        folded = model.fold_in(known)
        np.testing.assert_allclose(folded.user_vectors[0], model.user_vectors[row], atol=1e-4)
        assert folded.user_bias[0] == pytest.approx(model.user_bias[row], abs=1e-4)


def test_progress_tells_of_every_epoch(ratings: Ratings) -> None:
    heard: list[Progress] = []
    ALS(epochs=3, factors=4).fit(ratings, progress=heard.append)
    assert [(event.stage, event.step, event.steps) for event in heard] == [("als", n, 3) for n in (1, 2, 3)]


def test_no_ratings_are_refused(ratings: Ratings) -> None:
    with pytest.raises(DataError, match="no ratings to learn from"):
        ALS().fit(ratings.where(np.zeros(len(ratings), bool)))


def test_ratings_without_values_are_sent_to_the_implicit_model() -> None:
    with pytest.raises(DataError, match=r"Fit ImplicitALS\(\)"):
        ALS().fit(Ratings.from_arrays([1, 1, 2], [1, 2, 1]))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"factors": 0}, "factors must be at least 1"),
        ({"epochs": -1}, "epochs must be at least 1"),
        ({"regularization": 0.0}, "regularization must be greater than 0"),
        ({"threads": 0}, "threads must be at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ALS(**wrong)


@pytest.mark.parametrize("model", [ALS(regularization=1e-7), ImplicitALS(regularization=1e-9)])
def test_breakdown_is_an_error_with_a_remedy(ratings: Ratings, model: ALS | ImplicitALS) -> None:
    few = ratings.select(items=slice(0, 12))
    large = Ratings.from_rows(
        few.users, few.items, few.values * 1e7, user_ids=few.user_ids, item_ids=few.item_ids
    )
    with pytest.raises(ConfigError, match=r"broke down in epoch \d+: regularization is too small"):
        model.fit(few if isinstance(model, ALS) else large)
