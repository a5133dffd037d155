"""A party's seat, and coordinators that ask for more than was agreed on, or for something else."""

import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.crypto.keys import Identity
from cofactor.errors import DataError
from cofactor.federation.approvals import approved_text
from cofactor.federation.declining import WORDS, code_in
from cofactor.federation.door import COORDINATOR
from cofactor.federation.messages import Letter, Message, heading
from cofactor.federation.summing import SumStep
from cofactor.network import kept, seat
from cofactor.network.agreement import known_of, told_text
from cofactor.network.approval import answer, decisions, pending
from cofactor.network.dealing import DealingPost
from cofactor.network.letters import (
    HANDSHAKE,
    Accepted,
    Agree,
    Begin,
    Begun,
    Finish,
    Finished,
    Propose,
    Ready,
    Tell,
    Told,
)
from cofactor.network.proposal import Proposal
from cofactor.network.searching import SearchPost
from cofactor.network.seat import Seat
from cofactor.network.site import PEERS, POLICY, Site
from cofactor.network.training_coordinator import TrainingAtCoordinator
from cofactor.privacy.budget import Budget
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.horizontal_halves import HorizontalParticipant
from cofactor.recipes.sums import PlainSum, SecureSum
from cofactor.recipes.vertical import VerticalMF
from tests.network.making import (
    NAMES,
    POLICY_TEXT,
    SESSION,
    Killed,
    SeatChannel,
    channel_to,
    conducted,
    entries,
    proposal_of,
    sites,
    training,
)

BUDGET = Budget(epsilon=4.0, delta=1e-5, unit="user")
PLAIN = HorizontalMF(factors=2, rounds=2, local_steps=2, aggregate=PlainSum())
LAST = 3
"""The last round: the first one adds up totals."""


@dataclass
class Table:
    """Parties with their seats, and a coordinator that says what it likes."""

    folder: Path
    known: dict[str, Site]
    proposal: Proposal
    channel: SeatChannel

    def send(self, body: Message, *, to: str = "north", round: int = 0, **more: Any) -> bytes:
        head = {"session": self.proposal.session, "sender": COORDINATOR, **more}
        return self.channel.seats[to].handle(Letter(round=round, body=body, **head).to_bytes())

    def code(self, body: Message, **more: Any) -> str | None:
        return code_in(self.send(body, **more))

    def propose(self, proposal: Proposal | None = None, **more: Any) -> str | None:
        return self.code(Propose(proposal=(proposal or self.proposal).as_json()), **more)

    def conduct_until(self, kind: str, round: int = 0) -> None:
        """Conduct until the first letter of a kind, and die."""

        def look(_: str, head: Any) -> None:
            if (head.kind, head.round) == (kind, round):
                raise Killed

        self.channel.before = look
        with pytest.raises(Killed):
            conducted(self.folder / "host", self.proposal, self.channel)
        self.channel.before = lambda *_: None

    def asked(self, round: int, party: str = "north") -> Letter:
        """Return the question of a round, as it was asked."""
        data = next(
            data
            for (name, _, number), data in self.channel.letters.items()
            if (name, number) == (party, round)
        )
        return Letter.from_bytes(data, PLAIN.messages)

    def said(self, kind: type[Any], party: str = "north") -> Any:
        """Return what the coordinator said before the first round."""
        return Letter.from_bytes(self.channel.letters[party, kind.__name__, 0], HANDSHAKE).body

    def restart(self, party: str = "north") -> None:
        self.channel.restart(party, self.known[party])

    def charged(self, party: str = "north") -> int:
        return len(entries(self.known[party]))

    def log(self, party: str = "north") -> str:
        return (self.known[party].folder / "cofactor.log").read_text()

    def sessions(self, party: str = "north") -> Path:
        return self.known[party].folder / "sessions" / SESSION

    def forget(self, party: str = "north") -> None:
        """Lose all that a party kept of its session, and that it ever began one."""
        shutil.rmtree(self.sessions(party))
        for mark in self.known[party].approvals.glob("*.opened"):
            mark.unlink()
        self.restart(party)


def table(
    folder: Path,
    recipe: Any = PLAIN,
    *,
    policy: str = POLICY_TEXT,
    budget: Budget | None = BUDGET,
    **more: Any,
) -> Table:
    known = sites(folder, policy=policy)
    return Table(
        folder, known, proposal_of(known, training(recipe, budget=budget, **more)), channel_to(known)
    )


def repeated(found: Table, until: Callable[[str | None], bool], **more: Any) -> str | None:
    """Propose again and again, as coordinators do, until something changes."""
    end = time.monotonic() + 20
    while not until(code := found.propose(**more)) and time.monotonic() < end:
        time.sleep(0.02)
    return code


# What was not agreed on.


@pytest.mark.parametrize("budget", [BUDGET, None])
def test_one_more_round_than_was_planned_is_refused_and_nothing_is_charged(
    budget: Budget | None, tmp_path: Path
) -> None:
    found = table(tmp_path, budget=budget)
    found.conduct_until("Finish")
    before = found.charged()
    more = replace(found.asked(LAST), round=LAST + 1).to_bytes()
    assert code_in(found.channel.seats["north"].handle(more)) == "not planned"
    found.restart()
    for body in (Propose(proposal=found.proposal.as_json()), found.said(Tell), found.said(Agree), Begin()):
        assert found.code(body) is None
    assert code_in(found.channel.seats["north"].handle(more)) == "not planned"
    assert found.charged() == before
    assert WORDS["not planned"].startswith("refused: that is more than was agreed on")


def test_the_same_round_with_other_bytes_gets_the_same_bytes_and_no_new_noise(tmp_path: Path) -> None:
    found = table(tmp_path)
    found.conduct_until("Shared", LAST)
    question = found.asked(2)
    last = next(
        data for name, head, data in reversed(found.channel.answers) if (name, head.round) == ("north", 2)
    )
    before = found.charged()
    vectors = {name: np.asarray(array + 1) for name, array in question.body.arrays.items()}
    other = replace(question, body=replace(question.body, **vectors)).to_bytes()
    assert other != question.to_bytes()
    assert found.channel.seats["north"].handle(other) == last
    assert found.channel.seats["north"].handle(question.to_bytes()) == last
    assert code_in(found.channel.seats["north"].handle(found.asked(1).to_bytes())) == "out of order"
    assert found.charged() == before


def test_another_question_than_the_recipes_is_refused_and_nothing_is_charged(tmp_path: Path) -> None:
    found = table(tmp_path)
    found.conduct_until("Shared", 2)
    before = found.charged()
    handle = found.channel.seats["north"].handle
    assert code_in(handle(replace(found.asked(1), round=2).to_bytes())) == "not planned"  # totals, once more
    assert found.code(Propose(proposal=found.proposal.as_json()), round=2) == "out of order"
    assert found.code(SumStep(data=np.zeros(3, np.uint8)), round=2) == "lost"
    assert found.code(Begun(), round=-1) == "out of order"
    assert found.charged() == before


def test_rounds_of_other_sessions_and_letters_of_others_are_refused(tmp_path: Path) -> None:
    found = table(tmp_path)
    found.conduct_until("Finish")
    before = found.charged()
    handle = found.channel.seats["north"].handle
    assert code_in(handle(replace(found.asked(LAST), session="f" * 16).to_bytes())) == "unknown session"
    assert code_in(handle(replace(found.asked(LAST), sender="south").to_bytes())) == "out of order"
    assert code_in(handle(b"no letter")) == "unreadable"
    assert code_in(handle(b"")) == "unreadable"
    accepted = Accepted(shown="null", how="by hand", when="", signature=np.zeros(64, np.uint8))
    assert found.code(accepted) == "out of order"
    assert found.code(SearchPost.of(0, [])) == "out of order"
    assert found.code(DealingPost.of(0, [])) == "out of order"
    assert found.charged() == before


def test_steps_that_are_left_out_are_refused(tmp_path: Path) -> None:
    found = table(tmp_path)
    found.conduct_until("Begin")
    tell, agree = found.said(Tell), found.said(Agree)
    found.forget()
    question = Letter(session=SESSION, round=1, sender=COORDINATOR, body=Begin()).to_bytes()
    for body in (tell, agree, Begin(), Finish(last=np.zeros(1, np.uint8))):
        assert found.code(body) == "unknown session"
    assert code_in(found.channel.seats["north"].handle(question)) == "unknown session"
    assert found.propose() is None
    for body in (agree, Begin()):
        assert found.code(body) == "out of order"
    assert found.code(Finish(last=np.zeros(1, np.uint8))) == "unknown session"
    assert found.code(tell) is None
    assert found.code(Begin()) == "out of order"
    assert code_in(found.channel.seats["north"].handle(question)) == "unknown session"
    assert found.code(agree) is None
    assert code_in(found.channel.seats["north"].handle(question)) == "unknown session"
    assert found.charged() == 0
    assert found.code(Begin()) is None


@pytest.mark.parametrize("restarted", [False, True])
def test_another_proposal_under_the_name_of_a_session_is_refused_also_after_a_restart(
    restarted: bool, tmp_path: Path
) -> None:
    found = table(tmp_path)
    found.conduct_until("Finish")
    before = found.charged()
    if restarted:
        found.restart()
    louder = training(replace(PLAIN, rounds=4), budget=replace(BUDGET, epsilon=8.0))
    assert found.propose(replace(found.proposal, work=louder)) == "other terms"
    assert found.propose(replace(found.proposal, seed=8)) == "other terms"
    assert found.propose(replace(found.proposal, session="f" * 16), session=SESSION) == "out of order"
    assert found.propose() is None
    assert found.charged() == before


def test_a_session_whose_folder_was_lost_is_not_begun_again(tmp_path: Path) -> None:
    found = table(tmp_path)
    found.conduct_until("Finish")
    before = found.charged()
    assert before
    shutil.rmtree(found.sessions())
    found.restart()
    assert found.propose() == "unknown session"
    assert "what had left by then is not known any more" in found.log()
    found.sessions().mkdir()
    found.forget()
    for body in (Propose(proposal=found.proposal.as_json()), found.said(Tell), found.said(Agree)):
        assert found.code(body) is None
    assert found.code(Begin()) == "unknown session"
    assert found.code(Begin()) == "unknown session"
    assert "the ledger has charges of this session" in found.log()
    assert found.charged() == before


def test_ids_that_came_after_a_yes_are_not_shown_by_it(tmp_path: Path) -> None:
    found = table(tmp_path, policy=POLICY_TEXT + "newer_data = true\n")
    assert conducted(tmp_path / "host", found.proposal, found.channel).outcome == "finished"
    with (tmp_path / "north.csv").open("a") as file:
        file.write("u0-0,999,5\n")
    found.restart()
    assert found.propose() == "other terms"
    assert "other ids would be shown than before" in found.log()


def test_letters_that_no_round_has_are_not_even_written_down(tmp_path: Path) -> None:
    found = table(tmp_path)
    found.conduct_until("Finish")
    lines = (found.sessions() / "transcript.jsonl").read_bytes()
    for round, body in ((1, found.said(Tell)), (LAST + 1, found.asked(LAST).body)):
        assert found.code(body, round=round) is not None
    assert (found.sessions() / "transcript.jsonl").read_bytes() == lines


def test_one_party_cannot_be_given_other_terms_than_follow_from_what_all_told(tmp_path: Path) -> None:
    found = table(tmp_path)
    found.conduct_until("Begin")
    agree = found.said(Agree)
    found.forget()
    terms = json.loads(agree.terms)
    other = replace(agree, terms=json.dumps({**terms, "users": [1, 1, 1]}))
    for body in (Propose(proposal=found.proposal.as_json()), found.said(Tell), other):
        assert found.code(body) is None
    assert found.code(Begin()) == "other terms"
    assert found.code(agree) == "other terms"  # it has heard others before
    assert found.charged() == 0


def test_facts_that_nobody_signed_are_refused(tmp_path: Path) -> None:
    found = table(tmp_path)
    found.conduct_until("Begin")
    agree = found.said(Agree)
    facts, signatures = json.loads(agree.facts), json.loads(agree.signatures)
    fewer = json.loads(facts["south"]) | {"users": 3}
    for other in (
        replace(agree, facts=json.dumps(facts | {"south": json.dumps(fewer)})),
        replace(agree, facts=json.dumps({name: facts[name] for name in ("north", "south")})),
        replace(agree, signatures=json.dumps(signatures | {"south": signatures["west"]})),
        replace(agree, signatures=json.dumps(signatures | {"south": ""})),
    ):
        assert found.code(other) == "other terms"
    assert found.code(replace(agree, signatures=json.dumps(signatures | {"south": "no digits"}))) == "failed"
    assert found.code(replace(agree, facts="[")) == "unreadable"
    assert found.code(replace(agree, terms="[" * 100_000)) == "unreadable"
    assert found.charged() == 0


def test_that_others_agreed_is_believed_only_if_they_signed_it_with_pinned_keys(tmp_path: Path) -> None:
    found = table(tmp_path)
    found.conduct_until("Begin")
    agree = found.said(Agree)
    north, south, west = json.loads(agree.approvals)
    stranger = Identity.generate()
    plan = found.proposal
    text = approved_text(plan.session, plan.roster, plan.digest, south["how"], south["when"])
    signature = stranger.sign(text).hex()
    others: tuple[object, ...] = (
        [north, south],
        [north, south, west, west],
        [north, south | {"how": "by hand"}, west],
        [north, south | {"signature": west["signature"]}, west],
        [north, south | {"identity": stranger.public.hex(), "signature": signature}, west],
        [north, south, west | {"party": "east"}],
        [],
        {},
        7,
        [7],
    )
    for other in others:
        assert found.code(replace(agree, approvals=json.dumps(other))) == "other terms"
    assert found.code(replace(agree, approvals="[" * 100_000)) == "other terms"
    assert found.charged() == 0


def test_a_yes_to_another_proposal_is_none_to_this_one(tmp_path: Path) -> None:
    found = table(tmp_path)
    found.conduct_until("Begin")
    agree = found.said(Agree)
    digest = replace(found.proposal, session="f" * 16).digest
    others = []
    for each in json.loads(agree.approvals):
        text = approved_text(found.proposal.session, found.proposal.roster, digest, each["how"], each["when"])
        signature = found.known[each["party"]].identity.sign(text).hex()
        others.append(each | {"proposal": digest, "signature": signature})
    assert found.code(replace(agree, approvals=json.dumps(others))) == "other terms"


@pytest.mark.parametrize("restarted", [False, True])
def test_what_all_know_is_said_once(restarted: bool, tmp_path: Path) -> None:
    found = table(tmp_path, ids="intersection")
    found.conduct_until("Agree")
    tell = found.said(Tell)
    if restarted:
        found.restart()
        assert found.propose() is None
    known = json.loads(tell.known)
    shown = dict(known["shown"])
    for other in (shown | {"south": [1, 2]}, shown | {"north": [1]}, {"north": shown["north"]}):
        text = json.dumps(known | {"shown": list(other.items())})
        assert found.code(Tell(known=text)) == "other terms"
    assert found.code(Tell(known="{")) == "unreadable"
    assert found.code(Tell(known=json.dumps(known | {"alignment": {"parties": ["north"]}}))) == "unreadable"
    if restarted:
        found.restart()
        assert found.propose() is None
    assert found.code(tell) is None


def test_a_party_that_tells_others_different_facts_is_found_out_before_anything_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One who colludes could have the noise of one party's share made for other sizes than the rest's."""
    recipe = replace(PLAIN, local_steps=1, aggregate=SecureSum(dropout=0.0))
    found = table(tmp_path, recipe)
    found.conduct_until("Agree")
    known, agreed = found.said(Tell).known, json.loads((tmp_path / "host" / "agreed.json").read_text())
    lie = json.dumps(json.loads(agreed["facts"]["west"]) | {"users": 31}, sort_keys=True)
    signed = found.known["west"].identity.sign(told_text(found.proposal, known, lie)).hex()
    facts = agreed["facts"] | {"west": lie}
    shown, _ = known_of(known)
    told = {name: json.loads(text) for name, text in facts.items()}
    terms = TrainingAtCoordinator(found.proposal).terms(told, shown, None)
    other = Agree(
        approvals=json.dumps(agreed["approvals"]),
        facts=json.dumps(facts),
        signatures=json.dumps(agreed["signatures"] | {"west": signed}),
        terms=json.dumps(terms),
    )

    class Splitting(SeatChannel):
        def bring(self, party: str, data: bytes) -> bytes:
            head = heading(data)
            if (party, head.kind) == ("south", "Agree"):
                data = replace(Letter.from_bytes(data, (Agree,)), body=other).to_bytes()
            return super().bring(party, data)

    channel = Splitting(found.channel.seats)
    monkeypatch.setattr("cofactor.network.agreeing.verified", lambda *_: True)  # it does not care
    conducted(tmp_path / "host", found.proposal, channel)
    assert any(head.kind == "SumBegun" for _, head, _ in channel.answers)
    assert not any("masked" in head.protection for _, head, _ in channel.answers)


def test_the_same_question_that_comes_several_times_at_once_is_answered_once(tmp_path: Path) -> None:
    found = table(tmp_path)
    found.conduct_until("Shared", 2)
    question, before = found.channel.letters["north", "Shared", 2], found.charged()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(found.channel.seats["north"].handle, [question] * 8))
    assert len(set(answers)) == 1
    assert code_in(answers[0]) is None
    assert found.charged() == before + 1


def test_what_a_party_tells_does_not_depend_on_what_others_are_said_to_have_shown(tmp_path: Path) -> None:
    """A coordinator that makes others' lists up could ask how many ratings each item has, one by one."""
    found = table(tmp_path, ids="intersection")
    told = []
    for item in (1, 2, 3):
        proposal = replace(found.proposal, session=f"{item:016x}")
        assert found.propose(proposal, session=proposal.session) is None
        shown = [["north", list(range(1, 13))], ["south", [item]], ["west", [item]]]
        body = Tell(known=json.dumps({"shown": shown, "alignment": None}))
        answer = Letter.from_bytes(found.send(body, session=proposal.session), (Told,)).body
        assert isinstance(answer, Told)
        told.append(json.loads(answer.facts))
    assert {each["ratings"] for each in told} == {150}
    assert {each["users"] for each in told} == {30}


def test_whether_a_party_has_items_beyond_a_catalogue_is_told_to_nobody(tmp_path: Path) -> None:
    found = table(tmp_path)
    for number, catalogue in enumerate([np.arange(1, 13), np.arange(1, 3), np.arange(50, 60)]):
        work = training(PLAIN, budget=BUDGET, ids="catalogue", catalogue=catalogue)
        proposal = replace(found.proposal, session=f"{number:016x}", work=work)
        assert found.propose(proposal, session=proposal.session) is None
        body = Tell(known=json.dumps({"shown": [], "alignment": None}))
        answer = Letter.from_bytes(found.send(body, session=proposal.session), (Told,)).body
        assert isinstance(answer, Told)
        assert json.loads(answer.facts)["ratings"] == 150


def test_after_the_last_letter_nothing_leaves_and_no_other_last_letter_counts(tmp_path: Path) -> None:
    found = table(tmp_path)
    found.conduct_until("Shared", LAST)
    question = Letter.from_bytes(found.channel.letters["north", "Shared", 2], PLAIN.messages)
    found.channel.before = lambda *_: None
    assert conducted(tmp_path / "host", found.proposal, found.channel).outcome == "finished"
    finish, before = found.said(Finish), found.charged()
    again = Letter.from_bytes(found.send(finish), (Finished,)).body
    assert isinstance(again, Finished)
    content = (found.sessions() / "run" / "run.json").read_bytes()
    assert found.code(Finish(last=np.frombuffer(question.to_bytes(), np.uint8))) == "other terms"
    assert (found.sessions() / "run" / "run.json").read_bytes() == content
    assert (
        code_in(found.channel.seats["north"].handle(replace(question, round=LAST).to_bytes()))
        == "not planned"
    )
    assert found.charged() == before


def test_an_end_that_comes_early_is_an_end(tmp_path: Path) -> None:
    found = table(tmp_path)
    found.conduct_until("Finish")
    conducted(tmp_path / "host", found.proposal, found.channel)
    finish = found.said(Finish)
    (tmp_path / "b").mkdir()
    other = table(tmp_path / "b")
    other.conduct_until("Shared", 2)
    assert other.code(finish) is None
    before = other.charged()
    question = Letter.from_bytes(found.channel.letters["north", "Shared", 2], PLAIN.messages).to_bytes()
    assert code_in(other.channel.seats["north"].handle(question)) == "not planned"
    assert other.charged() == before == 1


def test_a_search_for_common_users_is_begun_few_times_however_often_parties_restart(tmp_path: Path) -> None:
    """Every search tells others who is common to all, and a coordinator can break each off."""
    found = table(tmp_path, VerticalMF(factors=2, rounds=1), ids="psi")
    codes = []
    for _ in range(2):
        assert found.propose() is None
        codes += [found.code(SearchPost.of(0, [])), found.code(SearchPost.of(0, []))]
        found.restart()
    assert codes == [None, None, None, "out of order"]


# Two processes, and one that has ended.


def test_of_two_processes_of_one_party_the_second_waits_and_answers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_OTHERS", 0.1)
    found = table(tmp_path)
    found.conduct_until("Shared", 2)
    first, found.channel.seats["north"] = found.channel.seats["north"], Seat(found.known["north"])
    assert found.propose() == "waiting"
    question = found.asked(1).to_bytes()
    assert code_in(found.channel.seats["north"].handle(question)) == "unknown session"
    before = found.charged()
    first.close()
    assert found.propose() is None
    assert code_in(first.handle(question)) == "unknown session"
    assert code_in(first.handle(found.channel.letters["north", "Propose", 0])) == "unknown session"
    assert found.charged() == before


def test_after_a_restart_in_a_secure_sum_its_steps_are_lost_and_its_keys_never_used_again(
    tmp_path: Path,
) -> None:
    recipe = replace(PLAIN, local_steps=1, aggregate=SecureSum(dropout=0.0))
    found = table(tmp_path, recipe)
    found.conduct_until("SumStep", 2)
    begun = found.channel.letters["north", "Shared", 2]
    step = SumStep(data=np.zeros(10, np.uint8))
    handle = found.channel.seats["north"].handle
    first = handle(begun)
    assert code_in(first) is None
    assert found.code(step, round=2) == "out of order"
    assert code_in(handle(begun)) == "lost"  # a step was taken: the sum is not begun a second time
    before = found.charged()
    found.restart()
    for body in (Propose(proposal=found.proposal.as_json()), found.said(Tell), found.said(Agree), Begin()):
        assert found.code(body) is None
    assert code_in(found.channel.seats["north"].handle(begun)) == "lost"
    assert found.code(step, round=2) == "lost"
    assert found.charged() == before


# The party decides.


def changed(old: str, new: str) -> str:
    assert old in POLICY_TEXT
    return POLICY_TEXT.replace(old, new)


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        (changed('"HorizontalMF", ', ""), "policy: recipe"),
        (changed("max_epsilon_per_run = 8.0", "max_epsilon_per_run = 3.9"), "policy: epsilon of a run"),
        (changed("max_epsilon = 9.0", "max_epsilon = 3.9"), "policy: epsilon in all"),
        (POLICY_TEXT + "max_delta = 1e-6\n", "policy: epsilon of a run"),
        (POLICY_TEXT + 'units = ["rating"]\n', "policy: epsilon of a run"),
        (changed("minimum_parties = 2", "minimum_parties = 4"), "policy: parties"),
        (POLICY_TEXT + 'aggregates = ["SecureSum"]\n', "policy: aggregate"),
        (changed('"union", ', ""), "policy: ids"),
        (changed('"training", ', ""), "policy: kind"),
    ],
)
def test_a_policy_that_does_not_allow_it_says_which_limit_and_nothing_is_told(
    policy: str, code: str, tmp_path: Path
) -> None:
    found = table(tmp_path)
    (found.known["north"].folder / POLICY).write_text(policy)
    assert found.propose() == code
    assert found.code(found_tell()) == "unknown session"
    assert found.charged() == 0
    assert "policy.toml" in found.log()
    assert decisions(found.known["north"]) == []


def found_tell() -> Tell:
    return Tell(known=json.dumps({"shown": [], "alignment": None}))


def test_without_a_budget_or_with_a_weaker_promise_a_policy_must_say_that_it_is_allowed(
    tmp_path: Path,
) -> None:
    found = table(tmp_path, budget=None)
    assert found.propose() is None
    (found.known["south"].folder / POLICY).write_text(
        changed("without_budget = true", "without_budget = false")
    )
    assert found.propose(to="south") == "policy: no budget"
    weaker = training(PLAIN, budget=replace(BUDGET, adjacency="value"))
    proposal = replace(found.proposal, session="f" * 16, work=weaker)
    assert found.propose(proposal, to="west", session="f" * 16) == "policy: epsilon of a run"
    assert "adjacencies" in found.log("west")


def test_keys_that_are_not_pinned_and_other_versions_are_refused_before_the_file_is_read(
    tmp_path: Path,
) -> None:
    found = table(tmp_path)
    (tmp_path / "north.csv").unlink()
    (tmp_path / "south.csv").unlink()
    assert found.propose(replace(found.proposal, version="0.0.1\x1b[31m")) == "version"
    assert "\x1b" not in found.log()
    strange = {**found.proposal.parties, "west": "ab" * 32}
    assert found.propose(replace(found.proposal, parties=strange)) == "unknown keys"
    mine = {**found.proposal.parties, "north": "ab" * 32}
    assert found.propose(replace(found.proposal, parties=mine)) == "unknown keys"
    (found.known["south"].folder / PEERS).unlink()
    assert found.propose(to="south") == "unknown keys"
    assert found.propose(to="north") == "no data"
    assert str(tmp_path) not in found.send(Propose(proposal=found.proposal.as_json())).decode()


BY_HAND = POLICY_TEXT.replace('"within limits"', '"by hand"') + "patience = 5.0\n"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seat, "_WAIT", 0.05)
    monkeypatch.setattr("cofactor.network.approval._POLL", 0.02)


@pytest.mark.usefixtures("quick")
def test_a_plan_waits_for_a_person_whose_yes_is_kept_across_a_restart(tmp_path: Path) -> None:
    found = table(tmp_path, policy=BY_HAND)
    north = found.known["north"]
    assert repeated(found, lambda _: bool(pending(north))) == "waiting"
    assert found.code(found_tell()) == "unknown session"
    (asked,) = pending(north)
    assert any("epsilon 4" in line for line in asked.lines)
    answer(north, asked, yes=True, who="Ada")
    assert repeated(found, lambda code: code != "waiting") is None
    assert pending(north) == []
    found.restart()
    assert repeated(found, lambda code: code != "waiting") is None
    (said,) = decisions(north)
    assert (said.who, said.approved, said.proposal) == ("Ada", True, found.proposal.digest)
    louder = replace(found.proposal, session="f" * 16)
    assert found.propose(louder, session="f" * 16) == "waiting"
    for each in pending(north):
        answer(north, each, yes=False)


@pytest.mark.usefixtures("quick")
def test_a_person_who_says_no_says_no_for_good(tmp_path: Path) -> None:
    found = table(tmp_path, policy=BY_HAND)
    north = found.known["north"]
    assert repeated(found, lambda _: bool(pending(north))) == "waiting"
    answer(north, pending(north)[0], yes=False, who="Ada")
    assert repeated(found, lambda code: code != "waiting") == "not approved"
    found.restart()
    assert repeated(found, lambda code: code != "waiting") == "not approved"
    assert found.charged() == 0
    assert b"Ada" not in found.send(Propose(proposal=found.proposal.as_json()))


@pytest.mark.usefixtures("quick")
def test_a_person_who_says_nothing_has_not_agreed(tmp_path: Path) -> None:
    found = table(tmp_path, policy=BY_HAND.replace("5.0\n", "0.3\n"))
    assert repeated(found, lambda code: code == "not approved") == "not approved"
    assert found.charged() == 0


@pytest.mark.usefixtures("quick")
def test_few_plans_wait_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seat, "_MOST", 2)
    found = table(tmp_path, policy=BY_HAND.replace("5.0\n", "1.0\n"))
    codes = [
        found.propose(replace(found.proposal, session=f"{number:016x}"), session=f"{number:016x}")
        for number in range(3)
    ]
    assert codes == ["waiting", "waiting", "not approved"]


# What is never told.


@pytest.mark.parametrize("kind", [ValueError, DataError, KeyError])
def test_words_of_errors_stay_at_home_and_of_those_that_may_quote_data_not_even_the_log_has_them(
    kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = table(tmp_path)

    def fail(*_: Any) -> Any:
        raise kind("user 4711 gave item 12 the rating 3")

    monkeypatch.setattr(HorizontalParticipant, "handle", fail)
    outcome = conducted(tmp_path / "host", found.proposal, found.channel)
    assert outcome.outcome == "paused"
    assert "user 4711" not in outcome.words
    assert not any(b"user 4711" in data for _, _, data in found.channel.answers)
    assert {code_in(data) for _, head, data in found.channel.answers if head.round} == {
        "no data" if kind is DataError else "failed"
    }
    for name in NAMES:
        assert "user 4711" not in found.log(name)
        assert f"{kind.__name__} at test_seat.py:" in found.log(name)
        assert found.charged(name) == 0
    for path in (tmp_path / "host").rglob("*"):
        assert not path.is_file() or b"user 4711" not in path.read_bytes()


def test_a_file_that_cannot_be_read_is_no_data_and_no_row_of_it_is_told(tmp_path: Path) -> None:
    found = table(tmp_path)
    file = tmp_path / "north.csv"
    file.write_text(file.read_text() + "u4711,12,five\n")
    reply = found.send(Propose(proposal=found.proposal.as_json()))
    assert code_in(reply) == "no data"
    assert b"five" not in reply
    assert "five" not in found.log()
    assert "DataError at" in found.log()


def test_signatures_serve_for_nothing_else(tmp_path: Path) -> None:
    """What a party signed in one session, or as one thing, is not taken for another."""
    found = table(tmp_path)
    found.conduct_until("Begin")
    agree = found.said(Agree)
    signatures = json.loads(agree.signatures)
    ready = Letter.from_bytes(found.send(agree, to="south"), (Ready,)).body
    assert isinstance(ready, Ready)
    passed_off = signatures | {"south": ready.signature.tobytes().hex()}
    assert found.code(replace(agree, signatures=json.dumps(passed_off))) == "other terms"
    other = replace(found.proposal, session="f" * 16)
    for name in NAMES:
        assert found.propose(other, to=name, session="f" * 16) is None
        assert found.code(found.said(Tell), to=name, session="f" * 16) is None
    assert found.code(agree, session="f" * 16) == "other terms"
    assert found.charged() == 0
