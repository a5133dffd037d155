from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.config import as_table
from cofactor.crypto.keys import Identity
from cofactor.errors import BudgetExceeded, ConfigError, RunError
from cofactor.federation.books import released
from cofactor.federation.declining import Declining, code_in, code_of
from cofactor.federation.door import COORDINATOR, RoundLost
from cofactor.federation.drive import drive, farewell
from cofactor.federation.folder import read_facts
from cofactor.federation.messages import Letter
from cofactor.federation.verify import verify
from cofactor.network.proposal import Proposal
from cofactor.network.survey_coordinator import Counting, SurveyAtCoordinator
from cofactor.network.survey_party import SurveyAtParty
from cofactor.network.survey_terms import SurveyTold, SurveyWork
from cofactor.network.work import Sitting
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.progress import nobody
from cofactor.randomness import InsecureRandom
from cofactor.survey.asking import ask
from cofactor.survey.halves import Answers, Asking
from cofactor.survey.means import PiecewiseMean
from cofactor.survey.method import Method
from cofactor.survey.people import People
from cofactor.survey.question import Question
from cofactor.survey.reading import read_people
from cofactor.survey.result import Survey
from cofactor.survey.waves import SquareWave
from tests.network.relaying import (
    SESSION,
    Relay,
    Seated,
    agreed,
    conducted,
    extract_of,
    identities,
    plain,
    proposal_of,
    seat_all,
    session_of,
    sitting_of,
)
from tests.survey.making import AGE, METHODS, ages, named

METHOD = SquareWave(epsilon=2.0, buckets=32)
WORK = SurveyWork(question=AGE, method=METHOD)
SIZES = {"north": 300, "south": 200, "west": 100}


def holder(folder: Path, name: str, count: int, seed: int = 0) -> People:
    """Return somebody's people; the file is written once."""
    file = folder / f"{name}.csv"
    if not file.exists():
        numbers = ages(count, seed).round(3)
        lines = [f"{row},{number}\n" for row, number in enumerate(numbers)]
        file.write_text("user,age\n" + "".join(lines))
    return read_people(file, "age", question=AGE, name=name)


def holders(folder: Path) -> dict[str, People]:
    folder.mkdir(exist_ok=True)
    return {name: holder(folder, name, count, seed) for seed, (name, count) in enumerate(SIZES.items())}


class Table:
    """Three parties, who sit down as often as they must."""

    def __init__(self, folder: Path, work: SurveyWork = WORK, **settings: Any) -> None:
        self.folder, self.keys = folder, identities(list(SIZES))
        self.proposal = proposal_of("survey", work.table(), self.keys)
        self.settings = {"insecure": 7, **settings}
        self.coordinator = SurveyAtCoordinator(self.proposal)
        self.seats = {name: self.seat(name) for name in SIZES}

    def seat(self, name: str, **more: Any) -> Seated:
        settings = {**self.settings, **more}
        sitting = sitting_of(self.folder, name, self.proposal, self.keys, split="horizontal", **settings)
        return Seated(sitting, SurveyAtParty(sitting, lambda _: holders(self.folder)[name]))

    def ledger(self, name: str) -> Ledger:
        return Ledger.open(self.folder / f"{name}.csv.ledger")

    def letter(self, round: int, question: str = "age") -> bytes:
        body = Asking(question=question)
        return Letter(session=SESSION, round=round, sender=COORDINATOR, body=body).to_bytes()


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


@pytest.mark.parametrize("method", [METHOD, PiecewiseMean(epsilon=1.0)], ids=named)
def test_the_network_counts_what_one_process_counts(tmp_path: Path, method: Method) -> None:
    work = SurveyWork.of({"question": as_table(AGE), "method": as_table(method)})
    there = Table(tmp_path, work)
    conducted(there.seats, there.coordinator, there.proposal, tmp_path / "run")
    found = Survey.load(tmp_path / "run")
    here = ask(list(holders(tmp_path / "again").values()), AGE, method=method, random=InsecureRandom(7))
    assert np.array_equal(found.tally, here.tally)
    assert found.answered == here.answered == 600
    assert found.guarantee.epsilon == here.guarantee.epsilon
    assert found.guarantee.covers == here.guarantee.covers
    assert found.together.parties.keys() == here.together.parties.keys()
    assert [each.epsilon for each in found.together.parties.values()] == [method.epsilon] * 3
    assert [each.party for each in found.together.approvals] == list(found.together.parties)
    assert verify(tmp_path / "run").holds


def test_the_folders_of_the_coordinator_and_of_each_party_hold_what_they_say(table: Table) -> None:
    conducted(table.seats, table.coordinator, table.proposal, table.folder / "run")
    whole = read_facts(table.folder / "run")
    assert verify(table.folder / "run", ledgers=[table.folder / "north.csv.ledger"]).holds
    for name in SIZES:
        own = table.folder / f"{name}-{SESSION}" / "run"
        facts = read_facts(own)
        assert verify(own).holds, verify(own)
        assert facts["survey"]["estimate"] == whole["survey"]["estimate"]
        assert facts["survey"]["answered"] == 600
        assert np.array_equal(np.load(own / "tally.npy"), np.load(table.folder / "run" / "tally.npy"))
        assert list(facts["together"]["parties"]) == [name]
        assert [path.stem for path in (own / "ledgers").iterdir()] == [name]
        assert any("one party's folder" in each for each in facts["guarantee"]["warnings"])


def test_noise_of_the_operating_system_makes_a_promise_that_holds(tmp_path: Path) -> None:
    there = Table(tmp_path, insecure=None)
    conducted(there.seats, there.coordinator, there.proposal, tmp_path / "run")
    assert Survey.load(tmp_path / "run").guarantee.holds


def test_what_leaves_a_party_in_the_end_tells_of_this_session_only(table: Table) -> None:
    before = ask(
        holders(table.folder)["north"], AGE, epsilon=1.0, budget=Budget(epsilon=9, delta=1e-6, unit="user")
    )
    conducted(table.seats, table.coordinator, table.proposal, table.folder / "run")
    copy = Ledger.from_bytes(extract_of(table.seats["north"]))
    assert {entry.run for entry in copy.entries} == {SESSION}
    assert {entry.run for entry in table.ledger("north").entries} == {SESSION, before.session}


def test_a_party_that_is_gone_is_left_out_and_named(table: Table) -> None:
    conducted(table.seats, table.coordinator, table.proposal, table.folder / "run", away=frozenset({"west"}))
    found = Survey.load(table.folder / "run")
    assert found.answered == 500
    assert found.unanswered == {"west": "is gone"}
    assert found.together.parties["west"].epsilon == 0.0
    own = read_facts(table.folder / f"north-{SESSION}" / "run")
    assert own["survey"]["unanswered"] == {"west": "did not answer"}


def test_planning_tells_what_it_costs_and_writes_nothing(table: Table) -> None:
    holders(table.folder)
    files = sorted(table.folder.rglob("*"))
    found = table.seats["north"].work.planned()
    assert (found.kind, found.what, found.unit, found.rounds) == ("survey", "SquareWave", "user", 1)
    assert found.epsilon == pytest.approx(2.0)
    assert found.in_all == pytest.approx(2.0)
    assert (found.delta, found.adjacency) == (0.0, "replace")
    assert (found.aggregate, found.telling) == ("PlainSum", "nothing")
    assert 300 * 8 <= found.traffic < 300 * 8 + 1000
    assert "one answer about age for each of 300 people" in found.sees[0]
    assert sorted(table.folder.rglob("*")) == files


def test_planning_adds_what_the_ledger_holds_already(table: Table) -> None:
    whole = Budget(epsilon=9, delta=1e-6, unit="user")
    ask(holders(table.folder)["north"], AGE, epsilon=1.0, budget=whole)
    content = (table.folder / "north.csv.ledger").read_bytes()
    (table.folder / "north.csv.ledger").write_bytes(content + b'{"a crash cut')
    found = table.seats["north"].work.planned()
    assert found.epsilon == pytest.approx(2.0)
    assert found.in_all == pytest.approx(3.0, rel=0.01)
    assert (table.folder / "north.csv.ledger").read_bytes().endswith(b"cut")


def test_about_as_many_bytes_leave_as_were_planned(table: Table) -> None:
    planned = {name: seat.work.planned().traffic for name, seat in table.seats.items()}
    conducted(table.seats, table.coordinator, table.proposal, table.folder / "run")
    sent = read_facts(table.folder / "run")["together"]["parties"]
    for name, bytes_planned in planned.items():
        assert sent[name]["bytes_sent"] == pytest.approx(bytes_planned, rel=0.2)


def changed_terms(terms: Any, facts: Any) -> None:
    terms["people"]["south"] += 1


def changed_own(terms: Any, facts: Any) -> None:
    facts["north"]["people"] = terms["people"]["north"] = 299


def changed_other(terms: Any, facts: Any) -> None:
    facts["south"]["people"] = terms["people"]["south"] = "many"


def added(terms: Any, facts: Any) -> None:
    facts["east"] = {"people": 5}
    terms["people"]["east"] = 5


def lost(terms: Any, facts: Any) -> None:
    del facts["west"]
    del terms["people"]["west"]


@pytest.mark.parametrize("change", [changed_terms, changed_own, changed_other, added, lost])
def test_terms_that_do_not_follow_from_what_was_told_are_refused(
    table: Table, change: Callable[[Any, Any], None]
) -> None:
    terms, facts, _ = agreed(table.seats, table.coordinator)
    change(terms, facts)
    with pytest.raises(Declining) as refused:
        table.seats["north"].work.host(terms, facts, None, None)
    assert refused.value.code == "other terms"
    assert not (table.folder / "north.csv.ledger").exists()


def test_a_ledger_without_room_refuses_before_anybody_is_ready(table: Table) -> None:
    ask(holders(table.folder)["north"], AGE, epsilon=1.0)
    terms, facts, _ = agreed(table.seats, table.coordinator)
    with pytest.raises(BudgetExceeded) as refused:
        table.seats["north"].work.host(terms, facts, None, None)
    assert code_of(refused.value) == "over budget"
    assert len(table.ledger("north").entries) == 1


def test_a_policy_limits_what_all_runs_cost_even_if_the_ledger_allows_more(table: Table) -> None:
    whole = Budget(epsilon=9, delta=1e-6, unit="user")
    ask(holders(table.folder)["north"], AGE, epsilon=1.0, budget=whole)
    terms, facts, _ = agreed(table.seats, table.coordinator)
    with pytest.raises(Declining) as refused:
        table.seat("north", most=2.5).work.host(terms, facts, None, None)
    assert refused.value.code == "policy: epsilon in all"
    table.seat("north", most=3.5).work.host(terms, facts, None, None)


def test_a_new_ledger_is_begun_with_what_the_policy_allows(table: Table) -> None:
    terms, facts, _ = agreed(table.seats, table.coordinator)
    table.seat("north", most=5.0).work.host(terms, facts, None, None)
    table.seats["south"].work.host(terms, facts, None, None)
    assert table.ledger("north").budget == Budget(epsilon=5.0, delta=1e-6, unit="user")
    assert table.ledger("south").budget.epsilon == 2.0


def test_a_policy_that_allows_less_than_an_answer_begins_no_ledger(table: Table) -> None:
    terms, facts, _ = agreed(table.seats, table.coordinator)
    with pytest.raises(Declining, match="the policy allows 1"):
        table.seat("north", most=1.0).work.host(terms, facts, None, None)
    assert not (table.folder / "north.csv.ledger").exists()


def test_data_that_changed_since_the_ledger_was_begun_are_refused_unless_they_may_have_grown(
    table: Table,
) -> None:
    whole = Budget(epsilon=9, delta=1e-6, unit="user")
    ask(holders(table.folder)["north"], AGE, epsilon=1.0, budget=whole)
    with (table.folder / "north.csv").open("a") as file:
        file.write("999,50\n")
    seats = {**table.seats, "north": table.seat("north")}
    for step in (seats["north"].work.planned, lambda: seat_all(seats, table.coordinator)):
        with pytest.raises(Declining) as refused:
            step()
        assert refused.value.code == "newer data"
    seat_all({**seats, "north": table.seat("north", newer_data=True)}, table.coordinator)


def test_one_more_round_is_refused_and_charges_nothing(table: Table) -> None:
    seat_all(table.seats, table.coordinator)
    north = table.seats["north"]
    first = north.handle(table.letter(1))
    assert code_in(first) is None
    for round in (2, 3):
        assert code_in(north.handle(table.letter(round))) == "not planned"
    assert len(released(table.ledger("north"), SESSION)) == 1
    assert north.handle(table.letter(1)) == first


def test_another_question_than_the_one_agreed_on_gets_a_code_and_no_words(table: Table) -> None:
    seat_all(table.seats, table.coordinator)
    reply = table.seats["north"].handle(table.letter(1, question="income"))
    assert code_in(reply) == "out of order"
    assert b"agreed" not in reply
    assert not released(table.ledger("north"), SESSION)


def test_a_party_that_was_restarted_sends_the_same_answer_and_is_charged_once(table: Table) -> None:
    terms, facts, _ = agreed(table.seats, table.coordinator)
    seat_all(table.seats, table.coordinator)
    first = table.seats["north"].handle(table.letter(1))
    again = table.seat("north", insecure=99)
    assert code_in(again.handle(table.letter(1))) == "unknown session"
    again.host = again.work.host(terms, facts, None, None)
    assert again.handle(table.letter(1)) == first
    assert len(released(table.ledger("north"), SESSION)) == 1


def test_an_answer_that_was_charged_and_not_stored_is_lost_and_not_made_again(table: Table) -> None:
    terms, facts, _ = agreed(table.seats, table.coordinator)
    seat_all(table.seats, table.coordinator)
    table.seats["north"].handle(table.letter(1))
    (table.folder / f"north-{SESSION}" / "answer.npz").unlink()
    again = table.seat("north")
    again.host = again.work.host(terms, facts, None, None)
    assert code_in(again.handle(table.letter(1))) == "lost"
    with pytest.raises(RoundLost):
        again.host.handle(table.letter(1))
    assert len(released(table.ledger("north"), SESSION)) == 1


def test_a_coordinator_that_was_restarted_goes_on_with_what_it_has_counted(table: Table) -> None:
    seat_all(table.seats, table.coordinator)
    kept = table.folder / "kept"
    kept.mkdir()
    relay = Relay(table.seats, away=frozenset({"west"}))
    drive(
        table.coordinator.begin(),
        relay,
        session_of(table.coordinator, table.proposal, kept),
        table.coordinator.listening(nobody),
    )
    asked = len(relay.asked)
    another = SurveyAtCoordinator(table.proposal)
    agreed(table.seats, another)
    half, session = another.begin(), session_of(another, table.proposal, kept)
    drive(half, relay, session, another.listening(nobody))
    assert len(relay.asked) == asked
    farewell(half, session, tuple(table.seats))
    assert half.answered == 500
    assert half.counted == ("north", "south")


def test_if_nobody_answers_there_is_no_survey_and_nothing_is_kept(table: Table) -> None:
    with pytest.raises(RunError, match="no answer can be used"):
        conducted(table.seats, table.coordinator, table.proposal, table.folder / "run", away=frozenset(SIZES))


def test_a_party_that_does_not_say_what_its_answer_cost_is_named(table: Table) -> None:
    seat_all(table.seats, table.coordinator)
    session, half = session_of(table.coordinator, table.proposal), table.coordinator.begin()
    drive(half, Relay(table.seats), session, table.coordinator.listening(nobody))
    ledgers = {name: extract_of(seat) for name, seat in table.seats.items()}
    with pytest.raises(RunError, match="south did not say what was charged"):
        table.coordinator.save(table.folder / "run", session, half, {**ledgers, "south": b""}, ())
    with pytest.raises(RunError, match="south sent a ledger that is not its own"):
        table.coordinator.save(
            table.folder / "run", session, half, {**ledgers, "south": ledgers["north"]}, ()
        )


def test_an_answer_for_more_people_than_were_told_does_not_count(table: Table) -> None:
    half = Counting(WORK, {"north": 2, "south": 3})
    nothing = np.empty(0, np.uint8)
    reply = Answers(answers=np.zeros(3, np.int64), layers=nothing, rows=nothing, seeds=nothing)
    half.take(1, {"north": reply, "south": reply})
    assert half.counted == ("south",)
    assert half.answered == 3
    assert "there are not 2 answers" in half.refused["north"]


@pytest.mark.parametrize(
    "change",
    [
        {"answered": 601},
        {"answered": 0},
        {"unanswered": '["nobody"]'},
        {"unanswered": "{"},
        {"tally": np.zeros(3, np.int64)},
    ],
    ids=str,
)
def test_a_last_letter_that_cannot_be_true_is_refused(table: Table, change: dict[str, Any]) -> None:
    seat_all(table.seats, table.coordinator)
    half = table.coordinator.begin()
    drive(
        half,
        Relay(table.seats),
        session_of(table.coordinator, table.proposal),
        table.coordinator.listening(nobody),
    )
    body = half.last()
    assert isinstance(body, SurveyTold)
    north = table.seats["north"]
    assert north.host is not None
    good, bad = (
        Letter(session=SESSION, round=2, sender=COORDINATOR, body=each).to_bytes()
        for each in (body, replace(body, **change))
    )
    with pytest.raises(RunError):
        north.work.finish(north.host, bad, ())
    assert not (north.sitting.folder / "run").exists()
    north.work.finish(north.host, good, ())


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_every_survey_is_read_back_from_its_table(method: Method) -> None:
    work = SurveyWork.of({"question": as_table(AGE), "method": as_table(method)})
    assert SurveyWork.of(plain(work.table())) == work
    assert work.method == method


def test_the_usual_method_follows_from_the_question() -> None:
    assert SurveyWork.usual(AGE, 1.0).method == SquareWave(epsilon=1.0, buckets=512)


def test_a_proposal_that_cannot_be_read_is_declined(table: Table, tmp_path: Path) -> None:
    for work in ({}, {"question": as_table(AGE)}, {**WORK.table(), "column": "income"}):
        sitting = replace(table.seats["north"].sitting, proposal=_proposing(work, table.keys))
        with pytest.raises(Declining) as refused:
            SurveyAtParty(sitting, lambda _: holders(tmp_path)["north"])
        assert refused.value.code == "unreadable"
        with pytest.raises(ConfigError):
            SurveyAtCoordinator(sitting.proposal)


def _proposing(work: Mapping[str, Any], keys: Mapping[str, Identity]) -> Proposal:
    return proposal_of("survey", work, keys)


def test_people_without_a_file_do_not_answer_over_a_network(table: Table) -> None:
    sitting: Sitting = table.seats["north"].sitting
    for count in (5, 0):
        with pytest.raises(Declining) as refused:
            SurveyAtParty(sitting, _people_of(count)).planned()
        assert refused.value.code == "no data"


def _people_of(count: int) -> Callable[[Question], People]:
    return lambda _: People(values=ages(count))
