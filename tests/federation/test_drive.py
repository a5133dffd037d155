"""The rounds: what the coordinator gets to see, and what it refuses."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.errors import Refused, RunError
from cofactor.federation.channel import Answers, Failures
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.drive import Round, Session, drive, farewell
from cofactor.federation.host import write_arrays
from cofactor.federation.messages import Letter, Message
from cofactor.federation.summing import Summing, SumPart
from cofactor.federation.transcript import Transcript
from cofactor.recipes.hosts import summing_of
from cofactor.recipes.sums import IdealSum, SecureSum
from tests.federation.making import Averager, Guess, ItemSums, Off, horizontal, trained

FACTS = horizontal(2).facts
PARTIES = ("north", "south")
SUMMED = ItemSums(rounds=1, aggregate=IdealSum())


class Canned:
    """A channel whose parties answer what a test says."""

    parties = PARTIES

    def __init__(self, answer: Callable[[str, int], Any], lost: frozenset[str] = frozenset()) -> None:
        self.answer, self.lost, self.asked = answer, lost, 0

    def ask(self, round: int, letters: Mapping[str, bytes], step: int | None = None) -> Answers:  # noqa: ARG002
        self.asked += 1
        found = {party: self.answer(party, round) for party in letters}
        answered = {party: answer for party, answer in found.items() if isinstance(answer, bytes)}
        missing = {party: "is silent" for party, answer in found.items() if not isinstance(answer, bytes)}
        return Answers(by_party=answered, missing=missing, lost=self.lost)


def reply(party: str, round: int, /, *, body: Message | None = None, **changes: Any) -> bytes:
    usual: dict[str, Any] = {"session": "s", "round": round, "sender": party, "protection": "noise"}
    return Letter(**usual | changes, body=body or Off(sums=np.full(5, 8.0))).to_bytes()


FORM = '["OffInAll",[["hundredths",0,[5]]],32]'


def part(party: str, round: int, /, **changes: Any) -> bytes:
    """Return a party's answer to a sum that is simulated."""
    usual: dict[str, Any] = {"form": FORM, "values": np.full(5, 800, np.int64)}
    usual |= {"variances": np.zeros(1), "scales": np.zeros(1)}
    body = SumPart(**usual | {"secrets": np.zeros((0, 32), np.uint8)} | changes)
    return reply(party, round, body=body, protection="a share of noise, SIMULATION")


def session(folder: Path | None = None, *, summing: Summing | None = None) -> Session:
    transcript = Transcript.create(None, session="s")
    return Session(name="s", kinds=ItemSums.messages, transcript=transcript, folder=folder, summing=summing)


def summing(recipe: ItemSums) -> Session:
    return session(summing=summing_of(recipe, FACTS, {}))


def driven(
    channel: Any, *, recipe: ItemSums | None = None, of: Session | None = None
) -> tuple[Averager, Session, list[Round]]:
    coordinator, rounds = Averager(recipe or ItemSums(rounds=2), FACTS), list[Round]()
    of = of or session()
    drive(coordinator, channel, of, rounds.append)
    return coordinator, of, rounds


def test_every_round_is_asked_taken_and_told() -> None:
    coordinator, _, rounds = driven(Canned(reply))
    assert coordinator.taken == [(1, ["north", "south"]), (2, ["north", "south"])]
    assert [(each.number, each.of, each.answered, each.parties) for each in rounds] == [
        (1, 2, 2, 2),
        (2, 2, 2, 2),
    ]
    assert coordinator.mean.tolist() == pytest.approx([3 + 2 * 16 / 80] * 5)


def test_traffic_of_a_round_is_all_letters_both_ways() -> None:
    _, used, rounds = driven(Canned(reply))
    question = Letter(session="s", round=1, sender=COORDINATOR, body=Guess(mean=np.zeros(5))).to_bytes()
    assert rounds[0].traffic == 2 * len(question) + sum(len(reply(party, 1)) for party in PARTIES)
    assert sum(each.traffic for each in rounds) == used.transcript.total_bytes


def test_transcript_tells_who_saw_what() -> None:
    _, used, _ = driven(Canned(reply), recipe=ItemSums(rounds=1))
    told = [(each.sender, each.receiver, each.kind, each.protection) for each in used.transcript.sent]
    assert told == [
        (COORDINATOR, "north", "Guess", "released before"),
        (COORDINATOR, "south", "Guess", "released before"),
        ("north", COORDINATOR, "Off", "noise"),
        ("south", COORDINATOR, "Off", "noise"),
    ]


def test_nobody_sees_more_than_the_sum_where_only_sums_are_wanted() -> None:
    coordinator, used, _ = driven(Canned(part), recipe=SUMMED, of=summing(SUMMED))
    assert coordinator.taken == [(1, [SUM])]
    assert coordinator.mean.tolist() == pytest.approx([3 + 16 / 80] * 5)
    assert [(each.receiver, each.protection) for each in used.transcript.sent[2:]] == [
        (SUM, "a share of noise, SIMULATION")
    ] * 2


def test_share_of_noise_that_is_not_summed_is_refused() -> None:
    with pytest.raises(RunError, match="protects nothing unless it is summed"):
        driven(Canned(lambda party, round: reply(party, round, protection="a share of noise")))


def test_part_of_a_sum_is_no_answer_where_answers_are_seen() -> None:
    with pytest.raises(RunError, match="north began a sum in round 1, and no sum was wanted"):
        driven(Canned(part))


@pytest.mark.parametrize("aggregate", [IdealSum(), SecureSum()], ids=["ideal", "secure"])
def test_answer_that_is_seen_is_no_part_of_a_sum(aggregate: Any) -> None:
    recipe = ItemSums(rounds=1, aggregate=aggregate)
    with pytest.raises(RunError, match="north answered with Off in the middle of a sum"):
        driven(Canned(reply), recipe=recipe, of=summing(recipe))


def test_sum_that_nobody_knows_how_to_make_is_refused() -> None:
    with pytest.raises(RunError, match="nobody has said how it is made"):
        driven(Canned(part), recipe=SUMMED)


def test_sum_is_not_opened_while_a_party_is_missing() -> None:
    channel = Canned(lambda party, round: part(party, round) if party == "north" else None)
    coordinator = Averager(SUMMED, FACTS)
    with pytest.raises(Refused, match=r"south did not answer.*at least 2 of 2.*sum was not opened"):
        drive(coordinator, channel, summing(SUMMED), lambda _: None)
    assert not coordinator.taken


def test_sum_that_can_never_be_complete_is_left_out() -> None:
    channel = Canned(
        lambda party, round: part(party, round) if party == "north" or round > 1 else None,
    )
    channel.lost = frozenset({"south"})
    coordinator = Averager(SUMMED, FACTS)
    drive(coordinator, channel, summing(SUMMED), lambda _: None)
    assert coordinator.taken == [(1, [])]


@pytest.mark.parametrize(
    "other",
    [
        '["OffInAll",[["hundredths",0,[1]]],32]',
        '["OffInAll",[["hundredths",0,[5,1]]],32]',
        '["OffInAll",[["hundredths",1,[5]]],32]',
        '["OffInAll",[["hundredths",0,[5]]],33]',
        '["OffInAll",[["sums",0,[5]]],32]',
        '["Guess",[["hundredths",0,[5]]],32]',
    ],
    ids=["1", "5x1", "number", "bits", "name", "kind"],
)
def test_answers_of_different_form_have_no_sum(other: str) -> None:
    channel = Canned(lambda party, round: part(party, round, form=other if party == "south" else FORM))
    with pytest.raises(RunError, match="differ in kind, shape or size of numbers"):
        driven(channel, recipe=SUMMED, of=summing(SUMMED))


@pytest.mark.parametrize(
    "change",
    [{"session": "t"}, {"round": 1}, {"round": 3}, {"sender": "south"}, {"sender": COORDINATOR}],
    ids=str,
)
def test_letter_that_answers_something_else_is_refused(change: Mapping[str, Any]) -> None:
    def answer(party: str, round: int) -> bytes:
        return reply(party, round, **(change if (party, round) == ("north", 2) else {}))

    with pytest.raises(RunError, match="north answered something else than round 2"):
        driven(Canned(answer))


@pytest.mark.parametrize(
    "sums",
    [np.full(5, np.nan), np.full(5, np.inf), np.zeros(4), np.zeros((1, 5))],
    ids=["nan", "inf", "4", "1x5"],
)
def test_answer_that_does_not_fit_is_refused(sums: Any) -> None:
    with pytest.raises(RunError, match="north sent sums that are missing, not finite or not of shape"):
        driven(Canned(lambda party, round: reply(party, round, body=Off(sums=sums))))


def test_nonsense_from_a_party_is_refused() -> None:
    with pytest.raises(RunError, match="a message cannot be read"):
        driven(Canned(lambda *_: b"nonsense"))


def test_finished_rounds_are_not_asked_again(tmp_path: Path) -> None:
    first = Canned(reply)
    coordinator, _, _ = driven(first, of=session(tmp_path))
    second = Canned(reply)
    again, _, rounds = driven(second, of=session(tmp_path))
    assert (first.asked, second.asked) == (2, 0)
    assert not rounds
    assert np.array_equal(again.mean, coordinator.mean)


def test_crash_while_answers_are_taken_in_asks_the_round_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = Averager.take

    def crashing(self: Averager, round: int, replies: Mapping[str, Message]) -> None:
        taken(self, round, replies)
        if round == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Averager, "take", crashing)
    with pytest.raises(KeyboardInterrupt):
        driven(Canned(reply), of=session(tmp_path))
    monkeypatch.undo()
    channel = Canned(reply)
    again, _, _ = driven(channel, of=session(tmp_path))
    assert channel.asked == 1
    assert again.mean.tolist() == pytest.approx([3 + 2 * 16 / 80] * 5)


def test_memory_of_another_session_is_refused(tmp_path: Path) -> None:
    driven(Canned(reply), of=session(tmp_path))
    other = Session(name="t", kinds=(), transcript=Transcript.create(None, session="t"), folder=tmp_path)
    with pytest.raises(RunError, match="another session"):
        driven(Canned(reply), of=other)


def test_damaged_memory_is_named(tmp_path: Path) -> None:
    write_arrays(tmp_path / "coordinator.npz", {"mean": np.zeros(5)})
    with pytest.raises(RunError, match=r"coordinator\.npz: cannot be read"):
        driven(Canned(reply), of=session(tmp_path))


def test_last_letter_is_sent_and_written_down_like_all_others() -> None:
    coordinator, used, _ = driven(Canned(reply), recipe=ItemSums(rounds=1))
    before = used.transcript.total_bytes
    data = farewell(coordinator, used, PARTIES)
    body = Letter.from_bytes(data, ItemSums.messages).body
    assert isinstance(body, Guess)
    assert body.words == "done"
    assert used.transcript.total_bytes == before + 2 * len(data)
    assert [each.receiver for each in used.transcript.sent[-2:]] == list(PARTIES)


def taken_of(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[str]]]:
    """Return what all coordinators from now on take in."""
    found: list[tuple[int, list[str]]] = []
    take = Averager.take

    def watched(self: Averager, round: int, replies: Mapping[str, Message]) -> None:
        found.append((round, sorted(replies)))
        take(self, round, replies)

    monkeypatch.setattr(Averager, "take", watched)
    return found


def test_training_with_sums_ends_while_a_party_is_away_and_goes_on_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, taken = ItemSums(aggregate=IdealSum()), taken_of(monkeypatch)
    with pytest.raises(Refused, match="north did not answer"):
        trained(recipe, folder=tmp_path, failures=Failures(absent=frozenset({("north", 2)})))
    with pytest.raises(Refused, match="south did not answer"):
        trained(recipe, folder=tmp_path, failures=Failures(lost=frozenset({("south", 2)})))
    run = trained(recipe, folder=tmp_path)
    assert run.guarantee.releases == 9
    assert taken == [(1, [SUM]), (2, [SUM]), (3, [SUM])]


def test_secure_sum_that_began_without_a_party_is_lost_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, taken = ItemSums(aggregate=SecureSum()), taken_of(monkeypatch)
    with pytest.raises(Refused, match="north did not answer"):
        trained(recipe, folder=tmp_path, failures=Failures(absent=frozenset({("north", 2)})))
    # The others' keys are gone with the process; they have been charged, so that north is, too.
    run = trained(recipe, folder=tmp_path)
    assert run.guarantee.releases == 9
    assert taken == [(1, [SUM]), (2, []), (3, [SUM])]
    assert "south, west: the keys of the secure sum of round 2 are gone" in run.rounds[1].note
