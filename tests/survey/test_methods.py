import pytest

from cofactor.survey.binning import Binning
from cofactor.survey.method import Method
from cofactor.survey.methods import usual_method
from cofactor.survey.question import Question
from cofactor.survey.waves import SquareWave
from tests.survey.making import AGE


@pytest.mark.parametrize(
    ("question", "people", "expected"),
    [
        (AGE, 10**6 - 1, SquareWave(epsilon=1.0, buckets=512)),
        (AGE, 10**6, SquareWave(epsilon=1.0, buckets=1024)),
        (AGE, 3, SquareWave(epsilon=1.0, buckets=512)),
        (Question(name="x", low=1, high=5, whole=True), 1000, Binning(epsilon=1.0, buckets=5, bins=5)),
        (
            Question(name="x", low=0, high=120, whole=True),
            10_000,
            SquareWave(epsilon=1.0, buckets=512),
        ),
        (
            Question(name="x", low=1, high=12, whole=True),
            10_000,
            SquareWave(epsilon=1.0, buckets=512),
        ),
        (Question(name="x", low=0, high=39, whole=True), 50, SquareWave(epsilon=1.0, buckets=512)),
        (Question(name="x", low=0, high=10**6, whole=True), 10_000, SquareWave(epsilon=1.0, buckets=512)),
        (
            Question(name="x", low=1, high=5, whole=True, log=True),
            1000,
            SquareWave(epsilon=1.0, buckets=512),
        ),
    ],
)
def test_the_usual_method_follows_from_public_numbers(
    question: Question, people: int, expected: Method
) -> None:
    assert usual_method(question, 1.0, people) == expected


def test_many_whole_numbers_are_not_answered_from_their_list_even_where_epsilon_is_large() -> None:
    question = Question(name="x", low=0, high=39, whole=True)  # 38 < 3 e^4
    assert usual_method(question, 4.0, 1000) == SquareWave(epsilon=4.0, buckets=512)
