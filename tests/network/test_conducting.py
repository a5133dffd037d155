"""A coordinator, its parties, and what happens when either goes away and comes back."""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.federation.books import open_ledger
from cofactor.federation.declining import code_in
from cofactor.federation.drive import STOP
from cofactor.federation.host import Host
from cofactor.federation.labels import round_of
from cofactor.federation.messages import Heading, Letter
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.verify import verify
from cofactor.network import conducting
from cofactor.network.agreement import charged_text
from cofactor.network.conducting import Outcome
from cofactor.network.letters import Accepted, Finished, Told
from cofactor.network.outcomes import PAUSE, read_outcome, write_fewest
from cofactor.network.proposal import Proposal
from cofactor.network.site import Site
from cofactor.privacy.accountant import spent
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.opened_sums import SharedSum
from cofactor.recipes.sums import PlainSum, SecureSum
from cofactor.recipes.vertical import VerticalMF
from tests.federation.forging import change_facts
from tests.network.making import (
    NAMES,
    SESSION,
    Killed,
    SeatChannel,
    channel_to,
    conducted,
    entries,
    proposal_of,
    rows,
    sites,
    training,
    vertical_rows,
)

BUDGET = Budget(epsilon=4.0, delta=1e-5, unit="user")
SECURE = HorizontalMF(factors=2, rounds=2, local_steps=1, aggregate=SecureSum(dropout=0.0))
PLAIN = replace(SECURE, rounds=3, local_steps=2, aggregate=PlainSum())
SAID = "by policy"
"""How these parties agree: their policy asks nobody."""
When = Callable[[str, Heading], bool]


@dataclass
class World:
    """Parties, a channel to them, and a coordinator's folder that outlives its processes."""

    folder: Path
    known: dict[str, Site]
    proposal: Proposal
    channel: SeatChannel

    def conduct(self) -> Outcome:
        return conducted(self.folder / "host", self.proposal, self.channel)

    def killed(self) -> None:
        """Conduct until the coordinator dies, and see that it did."""
        with pytest.raises(Killed):
            self.conduct()
        self.channel.before = self.channel.after = lambda *_: None

    def restart(self, party: str) -> None:
        self.channel.restart(party, self.known[party])

    def once(self, when: When, do: Callable[[str], None]) -> Callable[[str, Heading], None]:
        """Return what does something the first time that it is so."""
        done: list[str] = []

        def look(party: str, head: Heading) -> None:
            if not done and when(party, head):
                done.append(party)
                do(party)

        return look

    @property
    def run(self) -> Run:
        return Run.load(self.folder / "host" / "run")


def world(folder: Path, recipe: Any = SECURE, budget: Budget | None = BUDGET, **settings: Any) -> World:
    make = settings.pop("make", rows)
    known = sites(folder, make=make)
    proposal = proposal_of(known, training(recipe, budget=budget, **settings))
    return World(folder, known, proposal, channel_to(known))


def die(_: str) -> None:
    raise Killed


def letter(number: int) -> When:
    """Say when so many letters were brought to parties."""
    count = [0]

    def is_it(_: str, __: Heading) -> bool:
        count[0] += 1
        return count[0] == number

    return is_it


def assert_sound(found: World, rounds: int) -> None:
    """See that every charge is there once, and that all folders and the guarantee say so."""
    costs = []
    agreed = [(name, site.identity.public.hex(), SAID) for name, site in found.known.items()]
    for site in found.known.values():
        charged = entries(site)
        assert {run for run, _ in charged} == {SESSION}
        times = Counter((event.what, round_of(event)) for _, event in charged)
        assert set(times.values()) == {1}
        assert {round for _, round in times} <= set(range(1, rounds + 1))
        events = [event for _, event in charged]
        costs.append(spent(events, BUDGET.delta, unit="user", adjacency="empty").epsilon)
        verdict = verify(site.folder / "sessions" / SESSION / "run")
        assert verdict.holds, verdict
        assert approvals_in(site.folder / "sessions" / SESSION / "run") == agreed
    verdict = verify(found.folder / "host" / "run")
    assert verdict.holds, verdict
    assert approvals_in(found.folder / "host" / "run") == agreed
    guarantee = found.run.guarantee
    assert guarantee.holds
    assert guarantee.epsilon == pytest.approx(max(costs), rel=1e-9)
    assert_answered_once(found.channel)


def approvals_in(folder: Path) -> list[tuple[str, str, str]]:
    """Return who agreed to take part, with which key, and how."""
    together = Run.load(folder).together
    assert together is not None
    assert all(each.signed(SESSION, NAMES) for each in together.approvals)
    return [(each.party, each.identity, each.how) for each in together.approvals]


def assert_answered_once(channel: SeatChannel) -> None:
    """See that no party has ever answered the same thing in two ways."""
    said: dict[tuple[str, int, str, str], bytes] = {}
    for party, head, answer in channel.answers:
        if head.round == 0 or head.kind == "Declined":
            continue
        assert said.setdefault((party, head.round, head.kind, head.protection), answer) == answer


# Of 60 letters: 12 of the handshake, then 15 for each of three sums, of which 12 are steps, and 3 in the end.
STEPS = [
    8,
    17,
    23,
    34,
    58,
    *(pytest.param(at, marks=pytest.mark.slow) for at in (2, 5, 11, 13, 20, 26, 29, 45)),
]


def test_these_are_the_letters_of_a_training(tmp_path: Path) -> None:
    found = world(tmp_path)
    assert found.conduct().outcome == "finished"
    asked = [kind for round, kind in found.channel.kinds if round == 0]
    assert asked == [kind for kind in ("Propose", "Tell", "Agree", "Begin", "Finish") for _ in NAMES]
    assert [kind for round, kind in found.channel.kinds if round == 2] == ["Shared"] * 3 + ["SumStep"] * 12
    assert len(found.channel.kinds) == 60
    assert_sound(found, 3)


@pytest.mark.parametrize("number", STEPS)
def test_a_coordinator_that_dies_at_any_step_goes_on_and_nothing_is_charged_or_answered_twice(
    number: int, tmp_path: Path
) -> None:
    found = world(tmp_path)
    found.channel.after = found.once(letter(number), die)
    found.killed()
    assert read_outcome(tmp_path / "host") == {}
    outcome = found.conduct()
    assert outcome.outcome == "finished", outcome
    assert read_outcome(tmp_path / "host")["outcome"] == "finished"
    assert_sound(found, 3)


def test_a_training_that_is_over_can_be_conducted_again_and_changes_nothing(tmp_path: Path) -> None:
    found = world(tmp_path)
    assert found.conduct().outcome == "finished"
    before = {name: entries(site) for name, site in found.known.items()}
    content = (tmp_path / "host" / "run" / "run.json").read_bytes()
    for name in NAMES:
        found.restart(name)
    assert found.conduct().outcome == "finished"
    assert {name: entries(site) for name, site in found.known.items()} == before
    assert (tmp_path / "host" / "run" / "run.json").read_bytes() == content


@pytest.mark.parametrize(
    "number",
    [6, 14, 20, 26, 58, *(pytest.param(at, marks=pytest.mark.slow) for at in (3, 9, 17, 23, 29, 44))],
)
def test_a_party_that_is_restarted_at_any_step_is_waited_for_and_comes_back(
    number: int, tmp_path: Path
) -> None:
    found = world(tmp_path)
    found.channel.before = found.once(letter(number), found.restart)
    outcome, times = found.conduct(), 1
    while outcome.outcome == "paused" and times < 5:
        assert set(outcome.missing) <= set(NAMES)
        outcome, times = found.conduct(), times + 1
    assert outcome.outcome == "finished", outcome
    assert times <= 2
    assert_sound(found, 3)


@pytest.mark.parametrize("deaths", [(), (3,), (2, 4)])
def test_the_time_of_all_jobs_adds_up_at_the_coordinator_and_at_each_party(
    deaths: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, now = world(tmp_path, PLAIN), [0.0]

    def taking(seconds: float, work: Callable[..., Any]) -> Callable[..., Any]:
        def slow(*given: Any) -> Any:
            now[0] += seconds
            return work(*given)

        return slow

    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    monkeypatch.setattr(SeatChannel, "bring", taking(1, SeatChannel.bring))
    monkeypatch.setattr(Host, "handle", taking(2, Host.handle))
    monkeypatch.setattr(Host, "finish", taking(5, Host.finish))
    for death in deaths:
        found.channel.before = found.once(lambda _, head, death=death: head.round == death, die)  # type: ignore[misc]
        found.killed()
        for name in NAMES:
            found.restart(name)
    assert found.conduct().outcome == "finished"
    assert found.run.phases == {"agreeing": 4 * 3, "rounds": 4 * 3 * (1 + 2), "finishing": 3 * (1 + 5)}
    assert found.run.seconds == 66
    for site in found.known.values():
        own = Run.load(site.folder / "sessions" / SESSION / "run")
        assert own.phases == {"rounds": 4 * 2, "finishing at home": 5}
        assert own.seconds == 13


def test_of_a_sum_that_needs_all_parties_a_missing_one_makes_a_pause_and_not_an_end(tmp_path: Path) -> None:
    found = world(tmp_path)
    found.channel.lose = lambda party, round, _: party == "south" and round >= 2
    outcome = found.conduct()
    assert (outcome.outcome, outcome.missing) == ("paused", ("south",))
    assert "at least 3 of 3 parties" in outcome.words
    charged = {name: len(entries(site)) for name, site in found.known.items()}
    assert charged["south"] < charged["north"]
    assert found.conduct().outcome == "paused"
    assert {name: len(entries(site)) for name, site in found.known.items()} == charged
    found.channel.lose = lambda *_: False
    outcome = found.conduct()
    assert outcome.outcome == "finished", outcome
    assert_sound(found, 3)


def test_all_parties_must_be_there_to_agree_and_nothing_is_told_before(tmp_path: Path) -> None:
    found = world(tmp_path)
    whole = found.channel
    found.channel = SeatChannel({name: whole.seats[name] for name in ("north", "west")})
    outcome = found.conduct()
    assert (outcome.outcome, outcome.missing) == ("paused", ("south",))
    assert "is not connected" in outcome.words
    assert {kind for _, kind in found.channel.kinds} == {"Propose"}
    assert not any(entries(site) for site in found.known.values())
    found.channel = whole
    assert found.conduct().outcome == "finished"
    assert_sound(found, 3)


def test_answers_that_each_have_all_of_their_noise_go_on_without_one_and_it_rejoins(tmp_path: Path) -> None:
    found = world(tmp_path, PLAIN)
    found.channel.lose = lambda party, round, _: party == "west" and round == 3
    outcome = found.conduct()
    assert outcome.outcome == "finished", outcome
    assert_sound(found, 4)
    rounds = {name: {round_of(event) for _, event in entries(site)} for name, site in found.known.items()}
    assert rounds["north"] - rounds["west"] == {3}
    assert 4 in rounds["west"]


def test_when_nobody_answers_it_waits_for_all(tmp_path: Path) -> None:
    found = world(tmp_path, PLAIN)
    found.channel.lose = lambda _, round, __: round >= 2
    outcome = found.conduct()
    assert (outcome.outcome, set(outcome.missing)) == ("paused", set(NAMES))
    found.channel.lose = lambda *_: False
    assert found.conduct().outcome == "finished"
    assert_sound(found, 4)


def test_a_pause_that_is_asked_for_comes_after_a_round_and_is_over_when_it_goes_on(tmp_path: Path) -> None:
    found = world(tmp_path)

    def ask(_: str) -> None:
        (tmp_path / "host" / PAUSE).touch()

    found.channel.before = found.once(lambda _, head: head.round == 2, ask)
    outcome = found.conduct()
    assert (outcome.outcome, outcome.missing) == ("paused", ())
    assert not (tmp_path / "host" / PAUSE).exists()
    assert max(round for round, _ in found.channel.kinds) == 2
    for name in NAMES:
        found.restart(name)
    assert found.conduct().outcome == "finished"
    assert_sound(found, 3)
    assert len(found.channel.kinds) == 60 + 12


@pytest.mark.parametrize("recipe", [SECURE, PLAIN], ids=["secure sum", "each by itself"])
def test_a_training_ends_early_if_that_is_wanted_and_everybodys_folder_says_so(
    recipe: Any, tmp_path: Path
) -> None:
    found = world(tmp_path, recipe)

    def ask(_: str) -> None:
        (tmp_path / "host" / STOP).touch()

    found.channel.before = found.once(lambda _, head: head.round == 2, ask)
    assert found.conduct().outcome == "finished"
    assert max(round for round, _ in found.channel.kinds) == 2
    folders = [
        tmp_path / "host" / "run",
        *(site.folder / "sessions" / SESSION / "run" for site in found.known.values()),
    ]
    for folder in folders:
        together = Run.load(folder).together
        assert together is not None
        assert (together.rounds, together.planned_rounds) == (2, 1 + recipe.rounds)
    assert (found.run.guarantee.epsilon or 9) < BUDGET.epsilon * 0.95
    assert_sound(found, 2)


def test_parties_do_not_take_a_coordinators_word_for_it_that_nobody_ended_a_training_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = world(tmp_path, PLAIN)

    def ask(_: str) -> None:
        (tmp_path / "host" / STOP).touch()

    found.channel.before = found.once(lambda _, head: head.round == 2, ask)
    monkeypatch.setattr(conducting, "rounds_had", lambda coordinator, _: coordinator.rounds)
    found.conduct()
    for site in found.known.values():
        run = Run.load(site.folder / "sessions" / SESSION / "run")
        assert run.together is not None
        assert run.together.ended_early == (2, 4)
        assert any("nobody ended it" in each.what for each in run.guarantee.assumptions)


def test_everybody_may_die_at_once_within_a_sum_and_that_round_is_lost_and_no_other(tmp_path: Path) -> None:
    found = world(tmp_path)
    found.channel.before = found.once(letter(36), die)
    found.killed()
    for name in NAMES:
        found.restart(name)
    outcome = found.conduct()
    assert outcome.outcome == "finished", outcome
    assert_sound(found, 3)
    rounds = {round for round, kind in found.channel.kinds if kind == "SumStep"}
    assert rounds == {1, 2, 3}
    lost = [head for _, head, _ in found.channel.answers if head.kind == "Declined"]
    assert {head.round for head in lost} == {2}


@pytest.mark.parametrize(
    ("number", "restarted"),
    [
        (14, False),
        (23, True),
        (29, False),
        *(pytest.param(at, how, marks=pytest.mark.slow) for at in range(11, 37, 3) for how in (False, True)),
    ],
)
def test_sums_of_shares_survive_a_coordinator_that_dies_while_keys_are_dealt_or_later(
    number: int, restarted: bool, tmp_path: Path
) -> None:
    found = world(tmp_path, replace(SECURE, rounds=1, aggregate=SharedSum()))
    found.channel.after = found.once(letter(number), die)
    found.killed()
    for name in NAMES if restarted else ():
        found.restart(name)
    outcome = found.conduct()
    assert outcome.outcome == "finished", outcome
    assert_sound(found, 2)


def test_a_search_for_common_users_that_is_broken_off_can_be_made_again_and_then_never_more(
    tmp_path: Path,
) -> None:
    recipe = VerticalMF(factors=2, rounds=1)
    found = world(tmp_path, recipe, make=vertical_rows, ids="psi")
    found.channel.after = found.once(letter(6), die)
    found.killed()
    found.restart("south")
    assert found.conduct().outcome == "finished"
    assert verify(tmp_path / "host" / "run").holds
    assert np.array_equal(found.run.model.user_ids, np.arange(40))  # type: ignore[union-attr]
    for name in NAMES:
        found.restart(name)
    assert found.conduct().outcome == "finished"
    last = len(found.channel.answers)
    answer = found.channel.bring("south", found.channel.letters["south", "SearchPost", 0])
    assert code_in(answer) == "out of order"
    assert len(found.channel.answers) == last + 1


class Lying(SeatChannel):
    """Parties of which one answers something else."""

    lies: Callable[[str, Heading, bytes], bytes] = staticmethod(lambda _, __, answer: answer)

    def bring(self, party: str, data: bytes) -> bytes:
        answer = super().bring(party, data)
        return self.lies(party, self.answers[-1][1], answer)


def lying(found: World, lie: Callable[[str, Heading, bytes], bytes]) -> World:
    channel = Lying(found.channel.seats)
    channel.lies = lie
    return replace(found, channel=channel)


def reworded(answer: bytes, kind: Any, **fields: Any) -> bytes:
    found = Letter.from_bytes(answer, (kind,))
    return replace(found, body=replace(found.body, **fields)).to_bytes()


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (lambda head, answer: b"nonsense" if head.kind == "Told" else answer, "cannot be read"),
        (
            lambda head, answer: (
                reworded(answer, Accepted, shown="[1, {}]") if head.kind == "Accepted" else answer
            ),
            "shows ids that are none",
        ),
        (
            lambda head, answer: (
                reworded(answer, Accepted, shown=DEEP) if head.kind == "Accepted" else answer
            ),
            "shows ids that are none",
        ),
        (
            lambda head, answer: (
                reworded(answer, Accepted, shown="null") if head.kind == "Accepted" else answer
            ),
            "shows no ids, and was to",
        ),
        (
            lambda head, answer: (
                reworded(answer, Accepted, how="by policy, or so") if head.kind == "Accepted" else answer
            ),
            "Is it of the same version",
        ),
        (
            lambda head, answer: (
                reworded(answer, Accepted, when="2026-11-19T08:00:00+00:00")
                if head.kind == "Accepted"
                else answer
            ),
            "its yes is not signed by it",
        ),
        (
            lambda head, answer: reworded(answer, Told, facts="{}") if head.kind == "Told" else answer,
            "is not signed by it",
        ),
        (
            lambda head, answer: (
                answer.replace(b'"sender":"south"', b'"sender":"north"') if head.kind == "Ready" else answer
            ),
            "answered something else than this session asks",
        ),
    ],
    ids=["nonsense", "ids", "deep ids", "no ids", "no yes", "another yes", "unsigned", "another's name"],
)
def test_a_party_that_lies_is_named_and_the_coordinator_does_not_fall(
    lie: Callable[[Heading, bytes], bytes], words: str, tmp_path: Path
) -> None:
    found = world(tmp_path)
    told = lying(found, lambda party, head, answer: lie(head, answer) if party == "south" else answer)
    outcome = told.conduct()
    assert outcome.outcome == "refused"
    assert words in outcome.words
    assert not any(entries(site) for site in found.known.values())


def test_a_yes_that_was_changed_or_taken_out_later_is_found_out_whatever_seals_say(tmp_path: Path) -> None:
    found = world(tmp_path)
    assert found.conduct().outcome == "finished"
    run = tmp_path / "host" / "run"
    own = found.known["north"].folder / "sessions" / SESSION / "run"

    def wrong(folder: Path, change: Callable[[dict[str, Any]], None]) -> dict[str, str]:
        change_facts(folder, lambda facts: change(facts["together"]))
        return {each.name: each.detail for each in verify(folder).checks if not each.holds}

    def only_own(together: dict[str, Any]) -> None:
        together["approvals"] = [each for each in together["approvals"] if each["party"] == "north"]

    otherwise = "this approval is not what its key signed, or not for this session, or others agreed than are"
    assert wrong(own, only_own)["approvals"].startswith(f"north: {otherwise}")
    told = wrong(run, lambda together: together["approvals"][1].update(how="by hand"))
    assert list(told) == ["approvals"]
    assert told["approvals"].startswith(f"south: {otherwise}")
    told = wrong(run, lambda together: together.update(approvals=[]))
    assert told == {"approvals": "Real parties agreed beforehand, and none of their approvals is here."}
    change_facts(run, lambda facts: facts.update(format=2) or facts["together"].pop("approvals"))
    (told_of,) = (each for each in verify(run).checks if each.name == "approvals")
    assert told_of.holds
    assert told_of.detail == "Folders of format 2 keep no approvals: ask the parties for theirs."


def test_facts_that_another_party_signed_are_not_taken_for_ones_own(tmp_path: Path) -> None:
    found = world(tmp_path)
    norths: list[Told] = []

    def lie(party: str, head: Heading, answer: bytes) -> bytes:
        if head.kind != "Told":
            return answer
        body = Letter.from_bytes(answer, (Told,)).body
        assert isinstance(body, Told)
        if party == "north":
            norths.append(body)
            return answer
        return reworded(answer, Told, facts=norths[0].facts, signature=norths[0].signature)

    outcome = lying(found, lie).conduct()
    assert outcome.outcome == "refused"
    assert "south: what it told is not signed by it" in outcome.words


def test_an_answer_that_cannot_be_read_in_a_round_is_none_and_the_rest_go_on(tmp_path: Path) -> None:
    found = world(tmp_path, PLAIN)

    def lie(party: str, head: Heading, answer: bytes) -> bytes:
        return b"nonsense" if party == "south" and head.round == 2 else answer

    told = lying(found, lie)
    outcome = told.conduct()
    assert outcome.outcome == "finished", outcome
    # The coordinator's transcript lacks an answer that it could not read; the party's ledger does not.
    assert verify(tmp_path / "host" / "run").holds
    assert {round_of(event) for _, event in entries(found.known["south"])} == {1, 2, 3, 4}


def test_a_ledger_of_another_session_or_party_is_no_ledger_of_this_one(tmp_path: Path) -> None:
    found = world(tmp_path, PLAIN)
    ledgers: list[Any] = []

    def lie(party: str, head: Heading, answer: bytes) -> bytes:
        if head.kind != "Finished" or head.round:
            return answer
        body = Letter.from_bytes(answer, (Finished,)).body
        assert isinstance(body, Finished)
        ledgers.append(body)
        return reworded(answer, Finished, ledger=ledgers[0].ledger, signature=ledgers[0].signature)

    outcome = lying(found, lie).conduct()
    assert outcome.outcome == "refused"
    assert "south: what it charged is not signed by it" in outcome.words
    assert not (tmp_path / "host" / "run" / "run.json").exists()


def test_a_ledger_that_was_begun_under_another_name_is_told_of_under_the_partys(tmp_path: Path) -> None:
    """Commands name a party after its file: cofactor budget ratings.csv."""
    found = world(tmp_path)
    file = tmp_path / "north.csv"
    open_ledger(Party.from_csv(file, name="ratings"), replace(BUDGET, epsilon=9.0), tmp_path)
    assert Ledger.open(tmp_path / "north.csv.ledger").party == "ratings"
    assert found.conduct().outcome == "finished"
    assert_sound(found, 3)
    assert verify(tmp_path / "host" / "run", ledgers=[tmp_path / "north.csv.ledger"]).holds


def test_a_run_ends_without_a_party_that_is_gone_for_good_if_it_may(tmp_path: Path) -> None:
    found = world(tmp_path, PLAIN)
    (tmp_path / "host").mkdir()
    write_fewest(tmp_path / "host", 3)
    gone = found.once(lambda _, head: head.kind == "Finish", lambda _: setattr(found.channel, "lose", south))
    found.channel.before = gone
    waiting = found.conduct()
    assert (waiting.outcome, waiting.missing) == ("paused", ("south",))
    assert "--resume --fewest 2" in waiting.words
    write_fewest(tmp_path / "host", 2)
    waiting = found.conduct()
    assert (waiting.outcome, waiting.missing) == ("paused", ())
    assert found.conduct().outcome == "finished"
    promise = found.run.guarantee
    assert any("Not heard of in the end: south" in each for each in promise.warnings)
    costs = [
        spent([event for _, event in entries(site)], BUDGET.delta, unit="user", adjacency="empty").epsilon
        for site in found.known.values()
    ]
    assert promise.epsilon == pytest.approx(max(costs), rel=1e-9)
    verdict = verify(tmp_path / "host" / "run")
    assert verdict.holds, [each for each in verdict.checks if not each.holds]


def south(party: str, _: int, __: int | None) -> bool:
    return party == "south"


def test_a_party_that_lost_its_sessions_folder_is_missing_from_the_rest(tmp_path: Path) -> None:
    found = world(tmp_path, PLAIN)
    (tmp_path / "host").mkdir()
    write_fewest(tmp_path / "host", 2)
    found.channel.before = found.once(lambda _, head: head.round == 2, die)
    found.killed()
    shutil.rmtree(found.known["south"].session_folder(SESSION))
    found.restart("south")
    assert [found.conduct().outcome for _ in range(2)] == ["paused", "finished"]
    assert {round_of(event) for _, event in entries(found.known["north"])} == {1, 2, 3, 4}
    assert {round_of(event) for _, event in entries(found.known["south"])} == {1}
    verdict = verify(tmp_path / "host" / "run")
    assert verdict.holds, [each for each in verdict.checks if not each.holds]


def test_a_party_with_a_budget_that_says_nothing_of_its_charges_is_no_free_one(tmp_path: Path) -> None:
    found = world(tmp_path, PLAIN)
    north = found.known["north"]

    def hide(party: str, head: Heading, answer: bytes) -> bytes:
        if head.kind != "Finished" or party != "north":
            return answer
        signature = north.identity.sign(charged_text(found.proposal, b""))
        return reworded(
            answer, Finished, ledger=np.zeros(0, np.uint8), signature=np.frombuffer(signature, np.uint8)
        )

    outcome = lying(found, hide).conduct()
    assert outcome.outcome == "refused"
    assert "north did not say what was charged" in outcome.words
