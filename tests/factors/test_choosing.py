from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import logsumexp

from cofactor.data.grouping import Index, Offsets
from cofactor.errors import ConfigError
from cofactor.factors import choosing
from cofactor.factors.choosing import TOLERANCE, Choice

Array = NDArray[np.float64]


def grouped(rated: Sequence[Sequence[int] | Index]) -> tuple[Offsets, Index]:
    ptr = np.concatenate([[0], np.cumsum([len(items) for items in rated])]).astype(np.int64)
    return ptr, np.array([item for items in rated for item in items], np.int32)


def world(seed: int, users: int, items: int, width: int, spread: float = 1.0) -> tuple[Choice, list[Index]]:
    """Invent items, and users who rate from none to all of them."""
    random = np.random.default_rng(seed)
    choice = Choice.from_counts(
        random.gamma(0.5, 100, items), 0.5, random.normal(0.3, spread, (items, width - 1))
    )
    sizes = np.concatenate([[0, items, 1], random.integers(1, items, users)])[:users]
    return choice, [random.choice(items, size, replace=False).astype(np.int32) for size in sizes]


def objective(choice: Choice, rated: Index, taste: Array) -> float:
    """Write the definition down; columns need not be centred for it."""
    logits = choice.log_counts + choice.columns.astype(np.float64) @ taste
    likely = float((logits[rated] - logsumexp(logits)).sum())
    return likely - float(taste @ taste) / (2 * choice.variance)


def plain_newton(choice: Choice, rated: Index) -> Array:
    """Climb to the top with the whole Hessian of one user, and steps that are halved until they help."""
    columns, taste = choice.columns.astype(np.float64), np.zeros(choice.columns.shape[1])
    prior = np.eye(len(taste)) / choice.variance
    for _ in range(200):
        logits = choice.log_counts + columns @ taste
        chances = np.exp(logits - logsumexp(logits))
        away = columns - chances @ columns
        gradient = away[rated].sum(axis=0) - prior @ taste
        step = np.linalg.solve(len(rated) * (away.T * chances) @ away + prior, gradient)
        if np.linalg.norm(step) < 1e-9:
            break
        while objective(choice, rated, taste + step) < objective(choice, rated, taste) - 1e-9:
            step = step / 2
        taste = taste + step
    return taste


def test_tastes_are_those_of_plain_newton_steps() -> None:
    choice, rated = world(0, users=40, items=60, width=6)
    found = choice.tastes(*grouped(rated))
    for taste, own in zip(found, rated, strict=True):
        assert np.linalg.norm(taste - plain_newton(choice, own)) <= 1.01 * TOLERANCE


@given(
    seed=st.integers(0, 10_000),
    items=st.integers(2, 30),
    width=st.integers(1, 8),
    spread=st.sampled_from([0.01, 1.0, 30.0]),
    variance=st.sampled_from([0.01, 0.1, 10.0]),
)
@settings(max_examples=60)
def test_tastes_are_optimal_whatever_the_columns_and_the_prior(
    seed: int, items: int, width: int, spread: float, variance: float
) -> None:
    made, rated = world(seed, users=5, items=items, width=width, spread=spread)
    choice = Choice(made.log_counts, made.columns, variance)
    for taste, own in zip(choice.tastes(*grouped(rated)), rated, strict=True):
        best = plain_newton(choice, own)
        # Tastes are float32, whose digits may end before the tolerance does.
        assert np.linalg.norm(taste - best) <= 1.01 * TOLERANCE + 1e-6 * np.linalg.norm(best)


def test_taste_climbs_where_full_steps_would_overshoot(monkeypatch: pytest.MonkeyPatch) -> None:
    # Everybody takes the one item that this user does not: seen from there, the others have no variance.
    columns = np.array([[0.0], [4.0], [4.5], [5.0]])
    choice = Choice(np.array([25.0, 0, 0, 0]), columns, variance=10.0)
    rated = [np.array([1, 2, 3], np.int32)]
    lengths: list[float] = []
    improve = choosing._improve

    def watched(search: choosing._Search, *others: object) -> None:
        improve(search, *others)  # type: ignore[arg-type]
        lengths.extend(search.lengths)

    monkeypatch.setattr(choosing, "_improve", watched)
    found = choice.tastes(*grouped(rated))[0]
    assert min(lengths) < 1
    assert np.linalg.norm(found - plain_newton(choice, rated[0])) <= 1.01 * TOLERANCE


def test_user_without_ratings_chooses_as_everybody_does() -> None:
    choice, _ = world(1, users=1, items=20, width=4)
    tastes = choice.tastes(*grouped([[], []]))
    assert not tastes.any()
    np.testing.assert_array_equal(choice.scores(tastes), np.tile(choice.log_counts, (2, 1)))


def test_choice_without_columns_is_popularity() -> None:
    choice = Choice(np.log([3.0, 1.0, 2.0]), np.zeros((3, 0)))
    items, scores = choice.top_items(*grouped([[1], []]), n=2)
    assert items.tolist() == [[0, 2], [0, 2]]
    np.testing.assert_allclose(scores, np.log([[3, 2], [3, 2]]), rtol=1e-6)


def test_taste_does_not_depend_on_who_else_is_fitted_and_blocks_are_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choice, rated = world(2, users=23, items=50, width=5)
    ptr, index = grouped(rated)
    together = choice.tastes(ptr, index)
    monkeypatch.setattr(choosing, "_CELLS", 4 * 50 + 7)
    blocks = list(choice.blocks(23))
    assert [part.stop - part.start for part in blocks] == [4, 4, 4, 4, 4, 3]
    assert [row for part in blocks for row in range(part.start, part.stop)] == list(range(23))
    np.testing.assert_allclose(choice.tastes(ptr, index), together, rtol=1e-6, atol=1e-9)
    wide = Choice(np.zeros(5), np.zeros((5, 40)))
    assert len(list(wide.blocks(3))) == 3


def test_shifting_columns_or_log_counts_changes_no_taste() -> None:
    choice, rated = world(3, users=12, items=40, width=5)
    moved = Choice(choice.log_counts + 7, choice.columns + np.float32(64))
    np.testing.assert_allclose(
        moved.tastes(*grouped(rated)), choice.tastes(*grouped(rated)), atol=2.5 * TOLERANCE
    )


def test_scores_add_log_count_taste_and_weighted_rating() -> None:
    columns = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0]])
    choice = Choice(np.array([2.0, 1.0, 0.0]), columns, rating_weight=0.25)
    tastes = np.array([[1.0, -2.0], [0.0, 0.5]], np.float32)
    wanted = np.array([2.0, 1.0, 0.0]) + tastes @ (columns - [0, 1]).T
    np.testing.assert_allclose(choice.scores(tastes), wanted, rtol=1e-6)
    ratings = np.array([[1, 5, 3], [4, 4, 1]], np.float32)
    np.testing.assert_allclose(choice.scores(tastes, ratings), wanted + 0.25 * ratings, rtol=1e-6)


def test_top_items_are_the_best_unrated_ones_by_score(monkeypatch: pytest.MonkeyPatch) -> None:
    choice, rated = world(4, users=9, items=30, width=4)
    monkeypatch.setattr(choosing, "_CELLS", 2 * 30)
    ptr, index = grouped(rated)
    ratings = np.random.default_rng(5).uniform(1, 5, (9, 30)).astype(np.float32)
    wanted = choice.scores(choice.tastes(ptr, index), ratings)
    items, scores = choice.top_items(ptr, index, 6, ratings=lambda users: ratings[users])
    for user, own in enumerate(rated):
        best = [item for item in np.argsort(-wanted[user]) if item not in own][:6]
        padding = [-1] * (6 - len(best))
        assert items[user].tolist() == best + padding
        np.testing.assert_allclose(scores[user, : len(best)], wanted[user, best], rtol=1e-5)
        assert np.isneginf(scores[user, len(best) :]).all()
    assert items[1].tolist() == [-1] * 6


def test_rated_items_may_be_included_and_still_tell_the_taste() -> None:
    choice, rated = world(6, users=5, items=12, width=4)
    ptr, index = grouped(rated)
    items, _ = choice.top_items(ptr, index, 15, include_rated=True)
    wanted = np.argsort(-choice.scores(choice.tastes(ptr, index)), axis=1)
    assert items[:, :12].tolist() == wanted.tolist()
    assert (items[:, 12:] == -1).all()


def test_liking_one_kind_brings_up_the_rest_of_it() -> None:
    kinds = np.repeat(np.eye(2), 20, axis=0)
    choice = Choice.from_counts(np.full(40, 10.0), 0.5, kinds)
    items, _ = choice.top_items(*grouped([[0, 1, 2, 3], [20, 21, 22, 23]]), n=10)
    assert set(items[0].tolist()) <= set(range(4, 20))
    assert set(items[1].tolist()) <= set(range(24, 40))


def test_noisy_counts_become_log_counts_and_a_column() -> None:
    features = np.array([[1.0], [0.0], [2.0]])
    choice = Choice.from_counts(np.array([7.5, -3.0, 0.5]), np.array([0.5, 1.0, 0.5]), features)
    np.testing.assert_allclose(choice.log_counts, np.log([8, 1, 1]), atol=1e-7)
    np.testing.assert_array_equal(choice.columns, np.column_stack([features, choice.log_counts]))
    assert Choice.from_counts(np.ones(3), 0.5).columns.shape == (3, 1)


@pytest.mark.parametrize("size", [1e6, 1e-30])
def test_columns_of_absurd_size_give_finite_scores(size: float) -> None:
    random = np.random.default_rng(7)
    log_counts = random.uniform(-1e6, 1e6, 20)
    choice = Choice(log_counts, size * random.choice([-1.0, 1.0], (20, 3)), variance=1e3)
    tastes = choice.tastes(*grouped([[0, 1, 2], [5], [], list(range(20))]))
    assert np.isfinite(choice.scores(tastes)).all()


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_sums_of_columns_are_those_of_numpy(seed: int) -> None:
    choice, rated = world(seed, users=6, items=15, width=3)
    columns = choice.columns.astype(np.float64)
    found = choosing._sums(columns, *grouped(rated))
    np.testing.assert_allclose(found, [columns[own].sum(axis=0) for own in rated], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("log_counts", "columns", "settings", "message"),
    [
        (np.zeros(3), np.zeros((2, 4)), {}, r"got shapes \(3,\) and \(2, 4\)"),
        (np.zeros((3, 1)), np.zeros((3, 4)), {}, "one log count and one row"),
        (np.zeros(3), np.zeros(3), {}, "one log count and one row"),
        (np.zeros(0), np.zeros((0, 2)), {}, "at least one item"),
        (np.array([0, -np.inf]), np.zeros((2, 1)), {}, "log_counts of a choice must be numbers between"),
        (np.zeros(2), np.array([[0], [np.nan]]), {}, "columns of a choice must be numbers between"),
        (np.zeros(2), np.array([[0], [2e6]]), {}, "columns of a choice must be numbers between"),
        (np.zeros(2), np.zeros((2, 1)), {"variance": 0.0}, "variance must be greater than 0"),
        (np.zeros(2), np.zeros((2, 1)), {"rating_weight": -1.0}, "rating_weight must be 0 or more"),
    ],
)
def test_mistakes_in_a_choice_are_named(
    log_counts: Array, columns: Array, settings: dict[str, float], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Choice(log_counts, columns, **settings)


def test_mistakes_in_counts_are_named() -> None:
    with pytest.raises(ConfigError, match="floor must be greater than 0"):
        Choice.from_counts(np.ones(2), 0.0)
    with pytest.raises(ConfigError, match=r"2 counts need as many rows of features, got \(3, 1\)"):
        Choice.from_counts(np.ones(2), 0.5, np.ones((3, 1)))
    with pytest.raises(ConfigError, match="log_counts of a choice must be numbers"):
        Choice.from_counts(np.array([1.0, np.nan]), 0.5)
    with pytest.raises(ConfigError, match="n must be at least 1"):
        Choice.from_counts(np.ones(2), 0.5).top_items(*grouped([[0]]), n=0)
