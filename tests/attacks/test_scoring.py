import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.attacks.guesses import Guess
from cofactor.attacks.knowledge import Knowledge
from cofactor.attacks.scoring import TRIVIAL, Accuracy, scored
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import ConfigError
from cofactor.federation.door import SUM
from cofactor.federation.view import Truth

KNOWN = Knowledge(values=(1, 2, 3), groups=((0, 1), (2, 3, 4)), numbers=(5,), source="a test")


def guess(
    sender: str, ratings: list[float], attributes: list[float] | None = None, *, users: int = 1
) -> Guess:
    whole = np.array(ratings, np.float64)
    return Guess(
        sender=sender,
        round=1,
        ratings=whole,
        rated=whole > 0,
        if_rated=np.where(whole > 0, whole, 3.0),
        attributes=np.array([] if attributes is None else attributes, np.float64),
        vector=np.zeros(2),
        noise=0.0,
        users=users,
        seconds=0.5,
    )


def ratings(rows: list[list[float]]) -> Ratings:
    table = np.array(rows)
    users, items = np.nonzero(table)
    return Ratings.from_rows(
        users,
        items,
        table[users, items].astype(np.float32),
        user_ids=np.arange(len(table)),
        item_ids=np.arange(table.shape[1]),
        scale=Scale(1, 3, 1),
    )


def attributes(*rows: list[float]) -> NDArray[np.float32]:
    return np.array(rows, np.float32)


def test_rated_items_and_all_items_are_counted_apart() -> None:
    truth = Truth(ratings={"a": ratings([[3, 3, 1, 0, 0, 0, 0, 0]])})
    found = scored([guess("a", [3, 2, 0, 0, 0, 0, 0, 1])], truth, KNOWN)
    assert found.rated.right == pytest.approx(1 / 3)  # a zero is a wrong guess about what was rated
    assert found.told.right == pytest.approx(1 / 3)  # 3, 2, 3 instead of 3, 3, 1
    assert found.all_items.right == pytest.approx(5 / 8)
    assert found.rated.trivial == pytest.approx(2 / 3)  # threes are the most common
    assert found.all_items.trivial == pytest.approx(5 / 8)
    assert found.rated.random == pytest.approx(1 / 3)
    assert found.all_items.random == 1 / 4
    assert found.attributes is None
    assert found.questions is None


def test_a_rating_of_zero_is_not_the_same_as_none() -> None:
    zero = Ratings.from_rows(
        [0, 0], [0, 1], [0.0, 2.0], user_ids=np.arange(1), item_ids=np.arange(3), scale=Scale(0, 2, 1)
    )
    found = scored([guess("a", [0, 2, 0])], Truth(ratings={"a": zero}), Knowledge(values=(0, 1, 2)))
    assert found.rated.right == 1 / 2
    assert found.all_items.right == pytest.approx(2 / 3)


def test_accuracies_are_means_over_users() -> None:
    truth = Truth(ratings={"a": ratings([[1, 1, 1, 1]]), "b": ratings([[2, 0, 0, 0]])})
    found = scored([guess("a", [1, 1, 1, 1]), guess("b", [1, 0, 0, 0])], truth, KNOWN)
    assert found.rated.right == pytest.approx(1 / 2)
    assert found.all_items.right == pytest.approx((1 + 3 / 4) / 2)
    assert (found.users, found.single, found.seconds_each) == (2, True, 0.5)


def test_attributes_and_questions_are_counted_where_they_are_not_missing() -> None:
    nan = float("nan")
    truth = Truth(
        ratings={"a": ratings([[1, 2]]), "b": ratings([[1, 2]])},
        attributes={"a": attributes([1, 0, 0, 1, 0, 0.7]), "b": attributes([nan, nan, 0, 0, 1, nan])},
    )
    guesses = [guess("a", [1, 2], [1, 0, 1, 0, 0, 9.0]), guess("b", [1, 2], [nan, nan, 0, 0, 1, nan])]
    found = scored(guesses, truth, KNOWN)
    assert found.attributes is not None
    assert found.questions is not None
    assert found.attributes.right == pytest.approx((3 / 5 + 1) / 2)
    assert found.attributes.trivial == pytest.approx((3 / 5 + 2 / 3) / 2)
    assert found.questions.right == pytest.approx((1 / 2 + 1) / 2)
    assert found.questions.trivial == pytest.approx((2 / 2 + 0) / 2)
    assert found.questions.random == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_a_guess_from_a_sum_is_scored_for_every_user() -> None:
    truth = Truth(ratings={"a": ratings([[1, 2], [1, 0], [0, 0]]), "b": ratings([[2, 2]])})
    found = scored([guess(SUM, [1, 2], users=4)], truth, KNOWN)
    assert (found.users, found.single) == (3, False)  # who has rated nothing sends nothing
    assert found.rated.right == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert "nothing but sums" in str(found)
    some = scored([guess(SUM, [1, 2], users=4)], truth, KNOWN, parties=["b"])
    assert (some.users, some.rated.right) == (1, 1 / 2)


def test_nobody_to_compare_with_is_an_error() -> None:
    truth = Truth(ratings={"a": ratings([[1, 2]])})
    with pytest.raises(ConfigError, match="Nothing was scored"):
        scored([guess("x", [1, 2])], truth, KNOWN)


def test_clearly_better_than_trivial_needs_more_than_chance() -> None:
    assert Accuracy(right=0.5, trivial=0.3, random=0.2, deviation=0.05).better
    assert not Accuracy(right=0.5, trivial=0.3, random=0.2, deviation=0.08).better
    assert not Accuracy(right=0.3, trivial=0.3, random=0.2).better


def test_figures_say_all_of_it() -> None:
    truth = Truth(ratings={"a": ratings([[3, 0]])}, attributes={"a": attributes([1, 0, 0, 1, 0, 0.7])})
    found = scored([guess("a", [3, 0], [1, 0, 0, 1, 0, 0.7])], truth, KNOWN)
    figures = found.figures()
    for name in ("rated items", "all items", "attributes", "questions"):
        assert figures[f"{name} right"] == 1.0
        assert f"{name} right, trivial guess" in figures
        assert f"{name} right, random guess" in figures
    assert figures["known beforehand"] == "a test"
    assert "100.0% of what 1 users rated" in str(found)
    assert "most common rating, or answer, of the attacked users" in TRIVIAL
