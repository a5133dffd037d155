import json
import shutil
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.errors import (
    BudgetExceeded,
    CofactorError,
    ConfigError,
    DataError,
    LedgerError,
    PrivacyWarning,
    RunError,
)
from cofactor.federation.channel import Failures, InProcess
from cofactor.federation.door import COORDINATOR, Door
from cofactor.federation.messages import Letter, Message
from cofactor.federation.run import Run
from cofactor.federation.transcript import Transcript
from cofactor.federation.verify import verify
from cofactor.privacy.answers import Wave
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Event
from cofactor.privacy.evidence import evidence
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.weights import Weights
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.survey import asking
from cofactor.survey.asking import ask
from cofactor.survey.binning import Binning
from cofactor.survey.haar import HaarHRR
from cofactor.survey.halves import Adding, Answering, Answers, Asking
from cofactor.survey.hierarchy import HierarchicalHistogram
from cofactor.survey.means import PiecewiseMean, StochasticRounding
from cofactor.survey.method import Method
from cofactor.survey.methods import usual_method
from cofactor.survey.oracles import GRR, OLH, HadamardResponse
from cofactor.survey.people import People
from cofactor.survey.question import Question
from cofactor.survey.result import Survey
from cofactor.survey.waves import GeneralWave, SquareWave
from tests.survey.making import AGE, ages, asked

METHODS: tuple[Method, ...] = (
    SquareWave(epsilon=2.0, buckets=64),
    SquareWave(epsilon=2.0, buckets=64, smoothing=False),
    SquareWave(epsilon=2.0, buckets=64, discrete=True),
    GeneralWave(epsilon=2.0, buckets=64, ratio=0.4),
    Binning(epsilon=2.0, buckets=64, bins=16),
    GRR(epsilon=2.0, buckets=16),
    OLH(epsilon=2.0, buckets=64),
    HadamardResponse(epsilon=2.0, buckets=64),
    HierarchicalHistogram(epsilon=2.0, buckets=64),
    HierarchicalHistogram(epsilon=2.0, buckets=64, post="consistent"),
    HaarHRR(epsilon=2.0, buckets=64),
    StochasticRounding(epsilon=2.0),
    PiecewiseMean(epsilon=2.0),
)


def named(method: Any) -> str:
    return type(method).__name__


# What is learned


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


def test_clipped_values_are_counted_at_home_and_told_to_nobody(tmp_path: Path) -> None:
    values = np.concatenate([ages(500), [-3.0, 400.0, 1e9]])
    survey = ask(People(values=values), AGE, epsilon=1.0)
    assert survey.outside == {"people": 3}
    survey.save(tmp_path / "run")
    for file in (tmp_path / "run").rglob("*"):
        assert not file.is_file() or b"outside" not in file.read_bytes()
    assert Survey.load(tmp_path / "run").outside == {}


# Which method


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


# Ledgers


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


# What is refused


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


# Strangers


def answering(method: Method, count: int = 20) -> Answering:
    budget = Budget(epsilon=4 * method.epsilon, delta=0.0, unit="user", adjacency="replace")
    ledger = Ledger.create(None, party="p", fingerprint="x", budget=budget)
    door = Door(party="p", ledger=ledger, random=SecureRandom(), run="s")
    door.begin(1)
    return Answering(People(values=ages(count), name="p"), AGE, method, door)


def test_people_answer_the_question_that_was_agreed_on_and_no_other() -> None:
    with pytest.raises(RunError, match="agreed to answer about age"):
        answering(METHODS[0]).handle(1, Asking(question="income"))


def test_people_answer_once_whoever_asks_again(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Adding, "rounds", 3)
    survey = ask(people, AGE, epsilon=1.0, budget=Budget(epsilon=9.0, delta=0.0, unit="user"))
    assert len(entries(people)) == 1
    assert survey.answered == 200


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


# Folders


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


# Who else is there


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


@pytest.mark.parametrize("values", [["secret-17"], [10**400], [None], "secret-17"])
def test_values_that_are_no_numbers_are_told_without_telling_them(values: Any) -> None:
    with pytest.raises(DataError, match="must be") as caught:
        People(values=values)
    assert "17" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


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


def test_ends_too_close_to_tell_anything_apart_are_refused() -> None:
    with pytest.raises(ConfigError, match="too close"):
        Question(name="x", low=1e10, high=float(np.nextafter(1e10, 2e10)), log=True)


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


def test_next_to_no_answers_are_known_to_tell_nothing() -> None:
    assert asked(900, epsilon=0.01).tells_little
    assert not asked(900, epsilon=0.5).tells_little


def test_small_epsilon_does_not_give_the_even_beginning_for_a_result() -> None:
    values = np.clip(np.random.default_rng(3).normal(30, 8, 200_000), 0, 100)
    survey = ask(People(values=values), AGE, epsilon=0.1, random=InsecureRandom(4))
    assert survey.mean == pytest.approx(30, abs=4)  # the middle of the range is 50
    band = survey.band(repeats=20)
    assert band.mean.high - band.mean.low > 1


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


def test_a_guarantee_of_many_phones_counts_them() -> None:
    phones = [People(name=f"phone {k}", values=np.array([40.0])) for k in range(30)]
    statement = str(ask(phones, AGE, epsilon=1.0).guarantee)
    assert "30 parties" in statement
    assert "phone 7" not in statement


def test_the_guarantee_says_that_everybody_is_taken_for_another_person() -> None:
    assert "every number is another person's" in str(asked(10).guarantee)


def test_many_whole_numbers_are_not_answered_from_their_list_even_where_epsilon_is_large() -> None:
    question = Question(name="x", low=0, high=39, whole=True)  # 38 < 3 e^4
    assert usual_method(question, 4.0, 1000) == SquareWave(epsilon=4.0, buckets=512)
