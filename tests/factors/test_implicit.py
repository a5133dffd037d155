from typing import Any

import numpy as np
import pytest

from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, DataError
from cofactor.factors.implicit import ImplicitALS
from cofactor.progress import Progress


@pytest.fixture(scope="module")
def clicks() -> Ratings:
    """Two groups of users, each with items of its own."""
    generator = np.random.default_rng(0)
    users, items = np.divmod(np.arange(40 * 30), 30)
    likes = np.where(users % 2 == items % 2, 0.7, 0.03)
    chosen = generator.random(len(users)) < likes
    return Ratings.from_arrays(users[chosen], items[chosen])


def counted(clicks: Ratings) -> Ratings:
    """The same pairs, but some more often than once."""
    return Ratings.from_rows(
        clicks.users, clicks.items, 1 + np.arange(len(clicks)) % 4,
        user_ids=clicks.user_ids, item_ids=clicks.item_ids,
    )  # fmt: skip


def test_users_solve_the_papers_equation_for_the_final_items(clicks: Ratings) -> None:
    counts = counted(clicks)
    model = ImplicitALS(factors=5, epochs=3, regularization=2.0, confidence=1.5).fit(counts)
    y = model.item_vectors.astype(np.float64)
    for user in (0, 7, 39):
        mine = counts.by_user.window(user, user + 1)
        weights, wanted = np.ones(len(y)), np.zeros(len(y))
        weights[mine.index], wanted[mine.index] = 1 + 1.5 * mine.values, 1
        # Equation 4 of Hu, Koren and Volinsky.
        x = np.linalg.solve((y.T * weights) @ y + 2.0 * np.eye(5), (y.T * weights) @ wanted)
        np.testing.assert_allclose(model.user_vectors[user], x, atol=1e-4)


def test_scores_rank_and_are_no_ratings(clicks: Ratings) -> None:
    model = ImplicitALS(factors=4).fit(clicks)
    assert model.scale is None
    assert model.mean == 0
    assert not model.user_bias.any()
    assert not model.item_bias.any()


def test_recommends_what_the_users_group_likes(clicks: Ratings) -> None:
    model = ImplicitALS(factors=4, regularization=1.0).fit(clicks)
    for user in range(10):
        best = model.recommend(user, 3)
        assert all(entry.item % 2 == user % 2 for entry in best if isinstance(entry.item, int))


def test_folding_a_known_user_in_gives_the_row_of_training(clicks: Ratings) -> None:
    counts = counted(clicks)
    model = ImplicitALS(factors=4).fit(counts)
    mine = counts.by_user.window(3, 4)
    known = dict(zip(counts.item_ids[mine.index].tolist(), mine.values.tolist(), strict=True))
    folded = model.fold_in(known)
    np.testing.assert_allclose(folded.user_vectors[0], model.user_vectors[3], atol=1e-5)


def test_seed_decides_the_model_and_threads_do_not(clicks: Ratings) -> None:
    one, same, other = (
        ImplicitALS(factors=4, epochs=2, threads=threads).fit(clicks, seed=seed)
        for seed, threads in ((1, 1), (1, 3), (2, 1))
    )
    assert np.array_equal(one.user_vectors, same.user_vectors)
    assert not np.array_equal(one.user_vectors, other.user_vectors)


def test_progress_tells_of_every_epoch(clicks: Ratings) -> None:
    heard: list[Progress] = []
    ImplicitALS(epochs=2, factors=4).fit(clicks, progress=heard.append)
    assert [(event.stage, event.step) for event in heard] == [("implicit als", 1), ("implicit als", 2)]


def test_no_ratings_are_refused(clicks: Ratings) -> None:
    with pytest.raises(DataError, match="no ratings to learn from"):
        ImplicitALS().fit(clicks.where(np.zeros(len(clicks), bool)))


def test_values_that_are_no_amounts_are_refused_with_a_remedy() -> None:
    disliked = Ratings.from_arrays([1, 1, 2], [1, 2, 1], [0, 1, 2])
    with pytest.raises(DataError, match=r"lowest is 0\. Keep those above 0: ratings\.where"):
        ImplicitALS().fit(disliked)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"factors": 0}, "factors must be at least 1"),
        ({"confidence": 0.0}, "confidence must be greater than 0"),
        ({"regularization": -1.0}, "regularization must be greater than 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ImplicitALS(**wrong)
