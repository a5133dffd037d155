import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.errors import (
    CofactorError,
    ConfigError,
    DataError,
    PrivacyWarning,
)
from cofactor.federation.channel import Failures
from cofactor.federation.door import COORDINATOR
from cofactor.federation.transcript import Transcript
from cofactor.randomness import InsecureRandom
from cofactor.survey.asking import ask
from cofactor.survey.means import PiecewiseMean
from cofactor.survey.method import Method
from cofactor.survey.oracles import GRR
from cofactor.survey.people import People
from cofactor.survey.question import Question
from cofactor.survey.waves import SquareWave
from tests.survey.making import AGE, METHODS, ages, asked, named


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_every_method_finds_the_mean_and_charges_its_epsilon_once(method: Method) -> None:
    values = ages(20_000)
    survey = ask(People(values=values), AGE, method=method, random=InsecureRandom(2))
    assert survey.mean == pytest.approx(values.mean(), abs=6 if method.gives == "ranges" else 2.5)
    assert survey.answered == 20_000
    assert survey.guarantee.epsilon == pytest.approx(2.0)
    assert survey.guarantee.delta == 0.0
    assert [event.mechanism for event in survey.events] == [method.mechanism]
    if method.gives != "mean":
        assert survey.between(20, 60) == pytest.approx(np.mean((values > 20) & (values < 60)), abs=0.08)


def test_the_promise_holds_with_secure_noise_and_not_without() -> None:
    assert ask(People(values=ages(50)), AGE, epsilon=1.0).guarantee.holds
    assert not asked(50).guarantee.holds


@pytest.mark.slow
def test_a_thousand_phones_answer_with_one_message_each(tmp_path: Path) -> None:
    values = ages(1000)
    phones = [People(name=f"phone {k}", values=np.array([value])) for k, value in enumerate(values)]
    method = SquareWave(epsilon=4.0, buckets=32)
    survey = ask(phones, AGE, method=method, failures=Failures(absent=frozenset({("phone 7", 1)})))
    assert survey.answered == 999
    assert survey.together.split == "on-device"
    assert survey.mean == pytest.approx(values.mean(), abs=5)
    sent = Transcript.open(survey.save(tmp_path / "run") / "transcript.jsonl").sent
    by_phone = Counter(each.sender for each in sent if each.sender != COORDINATOR)
    assert set(by_phone.values()) == {1}
    assert len(by_phone) == 999
    assert survey.guarantee.epsilon == pytest.approx(
        4.0
    )  # each answers for itself: epsilon does not add up over phones
    assert survey.together.parties["phone 7"].epsilon == 0.0


def test_tallies_of_several_holders_are_those_of_all_people_in_one_place() -> None:
    values, method = ages(400), GRR(epsilon=64.0, buckets=10)
    apart = [People(name=f"h{k}", values=part) for k, part in enumerate(np.split(values, 4))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # so large an epsilon is as good as the truth
        together, parts = (ask(each, AGE, method=method) for each in (People(values=values), apart))
    np.testing.assert_array_equal(parts.tally, together.tally)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: ask([], AGE, epsilon=1.0), ConfigError, "takes People"),
        (lambda: ask(ages(5), AGE, epsilon=1.0), ConfigError, "takes People"),  # type: ignore[arg-type]
        (lambda: ask(People(values=np.empty(0)), AGE, epsilon=1.0), DataError, "nobody to ask"),
        (lambda: ask(People(values=np.array([np.nan])), AGE, epsilon=1.0), DataError, "finite"),
        (lambda: ask([People(values=ages(2))] * 2, AGE, epsilon=1.0), ConfigError, "2 holders are called"),
        (lambda: ask(People(values=ages(2)), AGE), ConfigError, "say either"),
        (lambda: ask(People(values=ages(2)), AGE, method="em"), ConfigError, "must be a method"),  # type: ignore[arg-type]
        (lambda: asked(method=METHODS[0], epsilon=1.0), ConfigError, "say either"),
        (lambda: asked(epsilon=0.0), ConfigError, "epsilon"),
        (lambda: asked(failures=Failures(devices=0.1)), ConfigError, "drop out by chance"),
        (lambda: asked(epsilon=1e-7), ConfigError, "epsilon must lie between 1e-6"),
        (
            lambda: asked(
                method=PiecewiseMean(epsilon=1.0), question=Question(name="x", low=1, high=9, log=True)
            ),
            ConfigError,
            "without log",
        ),
        (lambda: People(name="a/b", values=ages(2)), ConfigError, "name must be"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    make: Callable[[], Any], error: type[CofactorError], match: str
) -> None:
    with pytest.raises(error, match=match):
        make()


@pytest.mark.parametrize("values", [["secret-17"], [10**400], [None], "secret-17"])
def test_values_that_are_no_numbers_are_told_without_telling_them(values: Any) -> None:
    with pytest.raises(DataError, match="must be") as caught:
        People(values=values)
    assert "17" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_small_epsilon_does_not_give_the_even_beginning_for_a_result() -> None:
    values = np.clip(np.random.default_rng(3).normal(30, 8, 200_000), 0, 100)
    survey = ask(People(values=values), AGE, epsilon=0.03, random=InsecureRandom(4))
    assert survey.mean == pytest.approx(30, abs=15)  # the middle of the range is 50
    assert isinstance(survey.method, SquareWave)
    assert survey.method.fitted(survey.tally).steps > 100
    band = survey.band(repeats=20)
    assert band.mean.high - band.mean.low > 5


def test_a_guarantee_of_many_phones_counts_them() -> None:
    phones = [People(name=f"phone {k}", values=np.array([40.0])) for k in range(30)]
    statement = str(ask(phones, AGE, epsilon=1.0).guarantee)
    assert "30 parties" in statement
    assert "phone 7" not in statement


def test_the_guarantee_says_that_everybody_is_taken_for_another_person() -> None:
    assert "every number is another person's" in str(asked(10).guarantee)
