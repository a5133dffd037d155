from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cofactor.errors import (
    BudgetExceeded,
    ConfigError,
    LedgerError,
)
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Event
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.weights import Weights
from cofactor.survey.asking import ask
from cofactor.survey.halves import Adding
from cofactor.survey.people import People
from tests.survey.making import AGE, ages, asked


@pytest.fixture
def people(tmp_path: Path) -> People:
    file = tmp_path / "ages.csv"
    file.write_text("age\n" + "".join(f"{value:.2f}\n" for value in ages(200)))
    return People(name="ages", values=ages(200), file=file, fingerprint="sha256:1")


def entries(people: People) -> list[Event]:
    assert people.ledger_path is not None
    return [entry.event for entry in Ledger.open(people.ledger_path).entries if entry.event is not None]


def test_the_ledger_beside_a_file_is_begun_charged_and_refuses_a_second_survey(people: People) -> None:
    survey = ask(people, AGE, epsilon=1.0)
    assert [event.what for event in entries(people)] == ["age, round 1"]
    with pytest.raises(BudgetExceeded):
        ask(people, AGE, epsilon=0.1)
    assert len(entries(people)) == 1
    assert survey.guarantee.holds


def test_a_budget_leaves_room_for_more(people: People) -> None:
    budget = Budget(epsilon=2.0, delta=1e-6, unit="user")
    ask(people, AGE, epsilon=1.0, budget=budget)
    assert people.ledger_path is not None
    assert Ledger.open(people.ledger_path).budget == budget
    assert Ledger.open(people.ledger_path).left == pytest.approx(1.0, abs=1e-4)
    ask(people, AGE, epsilon=1.0)
    with pytest.raises(BudgetExceeded):
        ask(people, AGE, epsilon=0.1)


@pytest.mark.parametrize("unit", ["user", "rating"])
@pytest.mark.parametrize("adjacency", ["empty", "replace", "value"])
def test_an_answer_is_charged_to_whatever_ledger_there_is(people: People, unit: Any, adjacency: Any) -> None:
    budget = Budget(epsilon=1.5, delta=1e-6, unit=unit, adjacency=adjacency)
    Ledger.create(people.ledger_path, party="ages", fingerprint="sha256:1", budget=budget)
    ask(people, AGE, epsilon=1.0)
    assert people.ledger_path is not None
    assert Ledger.open(people.ledger_path).spent().epsilon == pytest.approx(1.0, abs=1e-4)


def test_a_survey_that_its_own_budget_does_not_allow_begins_no_ledger(people: People) -> None:
    budget = Budget(epsilon=0.5, delta=1e-6, unit="user")
    with pytest.raises(BudgetExceeded, match=r"costs epsilon 1, and the budget is 0\.5"):
        ask(people, AGE, epsilon=1.0, budget=budget)
    assert people.ledger_path is not None
    assert not people.ledger_path.exists()


def test_one_holder_without_room_keeps_all_from_being_asked(people: People, tmp_path: Path) -> None:
    ask(people, AGE, epsilon=1.0)
    fresh = People(name="more", values=ages(10), file=tmp_path / "more.csv", fingerprint="sha256:2")
    with pytest.raises(BudgetExceeded):
        ask([fresh, people], AGE, epsilon=1.0)
    assert fresh.ledger_path is not None
    assert not fresh.ledger_path.exists()


def test_a_ledger_of_other_data_is_refused_unless_they_have_grown(people: People) -> None:
    ask(people, AGE, epsilon=1.0, budget=Budget(epsilon=3.0, delta=0.0, unit="user"))
    grown = replace(people, fingerprint="sha256:2")
    with pytest.raises(LedgerError, match="other data"):
        ask(grown, AGE, epsilon=1.0)
    ask(grown, AGE, epsilon=1.0, newer_data=True)
    assert len(entries(grown)) == 2


def test_a_personal_ledger_is_refused(people: People) -> None:
    personal = PersonalBudget(epsilon=2.0, users=Weights.equal())
    Ledger.create(people.ledger_path, party="ages", fingerprint="sha256:1", budget=personal.public)
    with pytest.raises(LedgerError, match="personal"):
        ask(people, AGE, epsilon=1.0)
    assert not entries(people)


def test_a_personal_budget_is_refused() -> None:
    with pytest.raises(ConfigError, match="not personal"):
        asked(budget=PersonalBudget(epsilon=2.0, users=Weights.equal()))


def test_people_answer_once_whoever_asks_again(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Adding, "rounds", 3)
    survey = ask(people, AGE, epsilon=1.0, budget=Budget(epsilon=9.0, delta=0.0, unit="user"))
    assert len(entries(people)) == 1
    assert survey.answered == 200


def test_a_holder_with_a_smaller_budget_of_its_own_keeps_it(people: People) -> None:
    careful = replace(people, budget=Budget(epsilon=0.3, delta=1e-6, unit="user"))
    run = Budget(epsilon=9.0, delta=1e-6, unit="user")
    with pytest.raises(BudgetExceeded, match=r"the budget is 0\.3"):
        ask(careful, AGE, epsilon=0.5, budget=run)
    ask(careful, AGE, epsilon=0.2, budget=run)
    assert people.ledger_path is not None
    assert Ledger.open(people.ledger_path).budget == careful.budget
    with pytest.raises(BudgetExceeded):
        ask(careful, AGE, epsilon=0.2, budget=run)


def test_two_holders_of_one_file_are_refused(people: People) -> None:
    assert people.file is not None
    other = replace(people, name="other", file=people.file.parent / "." / people.file.name)
    with pytest.raises(ConfigError, match="same file"):
        ask([people, other], AGE, epsilon=1.0)
