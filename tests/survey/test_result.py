import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.errors import (
    ConfigError,
    RunError,
)
from cofactor.federation.run import Run
from cofactor.federation.verify import verify
from cofactor.randomness import InsecureRandom
from cofactor.survey.asking import ask
from cofactor.survey.means import PiecewiseMean
from cofactor.survey.method import Method
from cofactor.survey.people import People
from cofactor.survey.question import Question
from cofactor.survey.result import Survey
from cofactor.survey.waves import SquareWave
from tests.survey.making import AGE, METHODS, ages, asked, named


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_a_survey_is_saved_read_and_verified(method: Method, tmp_path: Path) -> None:
    survey = ask(People(values=ages(200)), AGE, method=method)
    read = Survey.load(survey.save(tmp_path / "run"))
    np.testing.assert_array_equal(read.tally, survey.tally)
    np.testing.assert_allclose(read.estimate, survey.estimate)
    assert (read.method, read.question, read.answered) == (method, AGE, 200)
    assert read.guarantee == survey.guarantee
    assert read.events == survey.events
    assert verify(tmp_path / "run").holds, verify(tmp_path / "run")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return ask(People(values=ages(200)), AGE, epsilon=1.0).save(tmp_path / "run")


def changed(folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    file = folder / "run.json"
    facts = json.loads(file.read_text())
    change(facts)
    file.write_text(json.dumps(facts))
    return folder


def test_an_estimate_that_does_not_follow_from_the_answers_is_refused(folder: Path) -> None:
    def flatter(facts: dict[str, Any]) -> None:
        facts["survey"]["estimate"][0] += 0.01

    with pytest.raises(RunError, match="does not follow from the answers"):
        Survey.load(changed(folder, flatter))


def test_a_changed_tally_is_found(folder: Path) -> None:
    tally = np.load(folder / "tally.npy")
    np.save(folder / "tally.npy", tally[::-1])
    assert not verify(folder).holds


@pytest.mark.parametrize("missing", ["tally.npy", "ledgers/people.ledger"])
def test_a_survey_with_a_part_missing_is_refused_or_found_out(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    assert not verify(folder).holds


def test_a_damaged_survey_says_so(folder: Path) -> None:
    with pytest.raises(RunError, match="damaged"):
        Survey.load(changed(folder, lambda facts: facts["survey"].pop("question")))


def test_surveys_and_trainings_are_not_taken_for_each_other(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds a survey"):
        Run.load(folder)
    other = changed(shutil.copytree(folder, tmp_path / "other"), lambda facts: facts.pop("survey"))
    with pytest.raises(RunError, match="no survey"):
        Survey.load(other)


def test_an_existing_survey_is_kept_unless_told_otherwise(folder: Path) -> None:
    with pytest.raises(RunError, match="already holds a run"):
        asked(50).save(folder)
    asked(50).save(folder, overwrite=True)
    assert Survey.load(folder).answered == 50


def test_bands_and_shuffling_come_with_the_survey() -> None:
    survey = asked(2000)
    band = survey.band(repeats=40)
    assert band.mean.low < survey.mean < band.mean.high
    assert survey.shuffled(1e-6) < survey.method.epsilon


def test_a_mean_tells_no_range() -> None:
    survey = asked(method=PiecewiseMean(epsilon=1.0))
    assert survey.distribution is None
    with pytest.raises(ConfigError, match="no range"):
        survey.between(0, 10)


@pytest.mark.parametrize(
    "change",
    [
        lambda survey: replace(survey, events=()),
        lambda survey: replace(survey, events=survey.events * 2),
        lambda survey: replace(survey, method=SquareWave(epsilon=0.1)),
        lambda survey: replace(survey, events=tuple(replace(e, by="nobody") for e in survey.events)),
        lambda survey: replace(survey, answered=10**7),
        lambda survey: replace(survey, answered=0),
    ],
)
def test_a_survey_that_contradicts_what_was_released_cannot_be_made(
    change: Callable[[Survey], Survey],
) -> None:
    survey = asked(50)
    with pytest.raises(RunError, match="survey of age"):
        change(survey)


def test_a_survey_without_its_ledgers_is_not_read(folder: Path) -> None:
    shutil.rmtree(folder / "ledgers")
    with pytest.raises(RunError, match="changed, added or lost"):
        Survey.load(folder)


def test_next_to_no_answers_are_known_to_tell_nothing() -> None:
    assert asked(900, epsilon=0.01).tells_little
    assert not asked(900, epsilon=0.5).tells_little


def test_intervals_of_logarithmic_questions_are_alike_in_logarithms() -> None:
    question = Question(name="ratings", low=1, high=2000, log=True)
    values = np.exp(np.random.default_rng(1).normal(4, 1, 1000))
    found = ask(People(values=values), question, epsilon=1.0, random=InsecureRandom(2))
    middle, around = found.distribution.quantile(0.5), found.band(repeats=60).quantile(0.5)  # type: ignore[union-attr]
    assert around.low > 1
    assert middle / around.low == pytest.approx(around.high / middle, rel=1e-6)


def test_a_survey_prints_as_a_few_lines() -> None:
    words = str(asked(100))
    assert "age: 100 answers by SquareWave, epsilon 1" in words
    assert len(words) < 400
    assert "sha256" not in repr(People(values=ages(3), fingerprint="sha256:1"))


def test_clipped_values_are_counted_at_home_and_told_to_nobody(tmp_path: Path) -> None:
    values = np.concatenate([ages(500), [-3.0, 400.0, 1e9]])
    survey = ask(People(values=values), AGE, epsilon=1.0)
    assert survey.outside == {"people": 3}
    survey.save(tmp_path / "run")
    for file in (tmp_path / "run").rglob("*"):
        assert not file.is_file() or b"outside" not in file.read_bytes()
    assert Survey.load(tmp_path / "run").outside == {}
