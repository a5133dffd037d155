from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.errors import (
    BudgetExceeded,
    RunError,
)
from cofactor.federation.channel import Failures, InProcess
from cofactor.federation.door import Door
from cofactor.federation.messages import Letter, Message
from cofactor.privacy.answers import Wave
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Event
from cofactor.privacy.evidence import evidence
from cofactor.privacy.ledger import Ledger
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.survey import asking
from cofactor.survey.asking import ask
from cofactor.survey.halves import Adding, Answering, Answers, Asking
from cofactor.survey.hierarchy import HierarchicalHistogram
from cofactor.survey.method import Method
from cofactor.survey.people import People
from tests.survey.making import AGE, METHODS, ages, asked, named


def answering(method: Method, count: int = 20) -> Answering:
    budget = Budget(epsilon=4 * method.epsilon, delta=0.0, unit="user", adjacency="replace")
    ledger = Ledger.create(None, party="p", fingerprint="x", budget=budget)
    door = Door(party="p", ledger=ledger, random=SecureRandom(), run="s")
    door.begin(1)
    return Answering(People(values=ages(count), name="p"), AGE, method, door)


def test_people_answer_the_question_that_was_agreed_on_and_no_other() -> None:
    with pytest.raises(RunError, match="agreed to answer about age"):
        answering(METHODS[0]).handle(1, Asking(question="income"))


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_answers_that_cannot_be_are_left_out_and_the_others_count(method: Method) -> None:
    honest = answering(method).handle(1, Asking(question="age"))
    assert isinstance(honest, Answers)
    forged: list[Message] = [
        replace(honest, answers=honest.answers[:-1]),
        replace(honest, answers=np.concatenate([honest.answers, honest.answers])),
        replace(honest, answers=honest.answers + 10**9),
        replace(honest, answers=np.full(20, -1)),
        replace(honest, answers=honest.answers.astype(np.float64)),
        replace(honest, answers=honest.answers.reshape(-1, 1)),
        replace(honest, answers=np.array(3)),
        Asking(question="age"),
    ]
    for name in method.beside:
        good = getattr(honest, name)
        forged += [
            replace(honest, **{name: wrong})
            for wrong in (good[:-1], np.full_like(good, np.iinfo(good.dtype).max), good.astype(np.float32))
        ]
    senders = [f"liar {k}" for k in range(len(forged))]
    adding = Adding(AGE, method, dict.fromkeys([*senders, "p"], 20))
    adding.take(1, dict(zip(senders, forged, strict=True)) | {"p": honest})
    assert set(adding.refused) == set(senders)
    assert adding.answered == 20
    told = {name: array for name, array in honest.arrays.items() if name in ("answers", *method.beside)}
    np.testing.assert_array_equal(adding.tally(), method.tally(**told))


def test_a_survey_in_which_nobody_can_be_used_says_so() -> None:
    with pytest.raises(RunError, match="no answer can be used"):
        asked(failures=Failures(lost=frozenset({("people", 1)})))


def test_answers_travel_as_bytes() -> None:
    reply = answering(HierarchicalHistogram(epsilon=1.0, buckets=64)).handle(1, Asking(question="age"))
    letter = Letter(session="s", round=1, sender="p", body=reply)
    read = Letter.from_bytes(letter.to_bytes(), (Answers,)).body
    for name, array in reply.arrays.items():
        np.testing.assert_array_equal(read.arrays[name], array)


class Rubbish:
    """A channel on which one phone sends something else."""

    def __init__(self, channel: Any, data: bytes) -> None:
        self._channel, self._data, self.parties = channel, data, channel.parties

    def ask(self, round: int, letters: Any, step: int | None = None) -> Any:
        answers = self._channel.ask(round, letters, step)
        return replace(answers, by_party={**answers.by_party, "phone 3": self._data})

    def close(self) -> None:
        self._channel.close()


@pytest.mark.parametrize(
    "data",
    [
        b"rubbish",
        Letter(session="other", round=1, sender="phone 3", body=Asking(question="age")).to_bytes(),
    ],
)
def test_one_phone_that_sends_rubbish_does_not_stop_the_others(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    phones = [People(name=f"phone {k}", values=np.array([40.0])) for k in range(5)]
    monkeypatch.setattr(
        asking, "InProcess", lambda hosts, **settings: Rubbish(InProcess(hosts, **settings), data)
    )
    survey = ask(phones, AGE, epsilon=1.0)
    assert survey.answered == 4
    assert set(survey.unanswered) == {"phone 3"}
    assert len(survey.events) == 5  # it was charged: what it sent is its own affair


def test_a_phone_whose_budget_is_spent_meanwhile_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    phones = [People(name=f"phone {k}", values=np.array([40.0])) for k in range(4)]
    spend = Ledger.spend

    def refuse(self: Ledger, event: Event, *, run: str = "") -> Any:
        if self.party == "phone 2":
            raise BudgetExceeded("somebody else was faster.")
        return spend(self, event, run=run)

    monkeypatch.setattr(Ledger, "spend", refuse)
    survey = ask(phones, AGE, epsilon=1.0)
    assert survey.unanswered == {"phone 2": "somebody else was faster."}
    assert {event.by for event in survey.events} == {"phone 0", "phone 1", "phone 3"}


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_what_goes_beside_the_answers_does_not_depend_on_the_values(method: Method) -> None:
    first, last = (method.asked(np.full(50, value), InsecureRandom(5)).beside for value in (0.0, 1.0))
    assert tuple(sorted(first)) == tuple(sorted(method.beside))
    for name in method.beside:
        np.testing.assert_array_equal(first[name], last[name])
        assert first[name].dtype == last[name].dtype


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_an_audit_of_whole_reports_finds_epsilon_and_no_more(method: Method) -> None:
    """With the same public chance beside, an answer is true of the one value, of the other, or of neither."""
    count, keys = 60_000, InsecureRandom(7)
    truths = [method.asked(np.full(count, value), InsecureRandom(keys.seed)).bounded for value in (0.0, 1.0)]
    told = [method.mechanism.noisy(truth, SecureRandom()) for truth in truths]
    one, other = (true_of(method.mechanism, truth.value) for truth in truths)
    scores = [one(answers).astype(np.float64) - other(answers) for answers in told]
    found = evidence(scores[0], scores[1], kind="epsilon", confidence=1 - 1e-8, delta=0.0)
    assert found.lower_bound <= method.epsilon, found
    # A hash that puts both values to the same answer tells nothing: those people dilute what can be seen.
    assert found.lower_bound > 0.7 * method.epsilon, found


def true_of(mechanism: Any, truth: Any) -> Callable[[Any], Any]:
    if isinstance(mechanism, Wave):
        each, peak = mechanism.cells // mechanism.reports, mechanism.narrow - 1
        first, last = truth + peak, truth + mechanism.wide - 1
        return lambda answers: (answers * each >= first) & (answers * each + each - 1 <= last)
    return lambda answers: answers == (truth[:, 1] if truth.ndim == 2 else truth)
