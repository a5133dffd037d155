"""What is left of sums that decrypters open: run folders that are borne out, and crashes."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from cofactor.errors import RunError
from cofactor.federation import opening
from cofactor.federation.channel import Failures
from cofactor.federation.door import RoundLost
from cofactor.federation.host import Host
from cofactor.federation.messages import Letter
from cofactor.federation.run import Run
from cofactor.federation.summing import SUM_MESSAGES, SumBegun
from cofactor.federation.transcript import Transcript
from cofactor.federation.verify import verify
from cofactor.randomness import SecureRandom
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from tests.crypto.fixed_primes import fixed_primes
from tests.federation.crashing import Left, charged
from tests.federation.forging import Facts, failed, forge_transcript, last_answer
from tests.federation.making import Averager, ItemSums, horizontal, trained
from tests.federation.summing_parties import prepared, question
from tests.federation.test_opening import step
from tests.federation.test_summing_resumed import stopped

NAMES = ("north", "south", "west")


@pytest.fixture(autouse=True, scope="module")
def fixed() -> Any:
    with fixed_primes():
        yield


@pytest.fixture(scope="module", params=[SharedSum(dropout=0.25), EncryptedSum(dropout=0.25)], ids=["s", "e"])
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four parties, of which one leaves in the second round."""
    run = trained(
        ItemSums(rounds=2, aggregate=request.param),
        horizontal(4),
        random=SecureRandom(),
        failures=Failures(lost=frozenset({("east", 2)})),
    )
    return run.save(tmp_path_factory.mktemp("stored") / "run")


@pytest.fixture
def folder(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "copy"))


def test_honest_sums_are_borne_out(folder: Path) -> None:
    verdict = verify(folder)
    assert not failed(verdict)
    details = {check.name: check.detail for check in verdict.checks}
    assert "7 answers left the parties" in details["answers"]
    assert "1 more were charged and never arrived" in details["answers"]
    run = Run.load(folder)
    assert run.guarantee.holds
    assert run.model is not None


def test_answer_that_somebody_saw_is_found_out(folder: Path) -> None:
    def in_the_clear(lines: list[Facts]) -> None:
        for line in lines:
            line["protection"] = line["protection"].removesuffix(", encrypted")

    forge_transcript(folder, in_the_clear)
    assert "saw an answer that had only a share of the noise" in failed(verify(folder))["answers"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("nothing, encrypted", "without any protection"),
        ("noise, scrambled", "nobody knows what 'noise, scrambled' protects"),
        ("a part in opening the sum, encrypted, twice", "nobody knows"),
        ("encrypted", "nobody knows what 'encrypted' protects"),
        ("a share of noise, SIMULATION", "only a simulation hid an answer"),
    ],
)
def test_protection_that_is_none_is_found_out(folder: Path, words: str, says: str) -> None:
    def change(lines: list[Facts]) -> None:
        next(line for line in lines if line["protection"].endswith(", encrypted"))["protection"] = words

    forge_transcript(folder, change)
    assert says in failed(verify(folder))["answers"]


def test_two_uploads_in_one_round_are_found_out(folder: Path) -> None:
    def twice(lines: list[Facts]) -> None:
        first = next(line for line in lines if line["protection"].endswith(", encrypted"))
        lines.append({**first, "digest": "0" * 64})

    forge_transcript(folder, twice)
    assert "two different answers left the party" in failed(verify(folder))["answers"]


def test_upload_that_no_ledger_knows_of_is_found_out(folder: Path) -> None:
    def later(lines: list[Facts]) -> None:
        first = next(line for line in lines if line["protection"].endswith(", encrypted"))
        first["round"] = 3 - first["round"]
        first["sender"] = "stranger"

    forge_transcript(folder, later)
    assert "there was no such party" in failed(verify(folder))["answers"]


def test_part_in_opening_by_a_stranger_is_found_out(folder: Path) -> None:
    forge_transcript(folder, lambda lines: last_answer(lines).update(sender="stranger"))
    assert "there was no such party" in failed(verify(folder))["answers"]


def test_something_else_than_a_step_that_is_said_to_open_a_sum_is_found_out(folder: Path) -> None:
    # What opens a sum is not compared with a ledger, so nothing else may go by that name.
    def change(lines: list[Facts]) -> None:
        first = next(line for line in lines if line["protection"].endswith(", encrypted"))
        first["protection"] = "a part in opening the sum"

    forge_transcript(folder, change)
    assert "answers" in failed(verify(folder))


def test_run_without_a_budget_is_borne_out_and_promises_nothing(tmp_path: Path) -> None:
    run = trained(ItemSums(rounds=1, aggregate=SharedSum()), horizontal(3), budget=None)
    assert not failed(verify(run.save(tmp_path / "run")))
    assert not run.guarantee.holds
    assert "is no differential privacy" in str(run.guarantee)


@pytest.mark.parametrize("aggregate", [SharedSum(dropout=0.4), EncryptedSum(dropout=0.4)], ids=["s", "e"])
@pytest.mark.usefixtures("quick")
def test_party_that_starts_again_never_uploads_under_another_key(aggregate: Any, tmp_path: Path) -> None:
    played = prepared(ItemSums(aggregate=aggregate), horizontal(5), folder=tmp_path)
    host = played.hosts["north"]
    reply = host.handle(question())
    assert host.handle(question()) == reply
    fresh = prepared(ItemSums(aggregate=aggregate), horizontal(5), folder=None)
    again = Host(
        host._participant, host._door, session="s", kinds=ItemSums.messages, file=tmp_path / "north.npz",
        summing=fresh.session.summing, identity=fresh.hosts["north"]._identity, key=fresh.hosts["north"]._key,
    )  # fmt: skip
    for data in (question(), step(b"anything")):
        with pytest.raises(RoundLost, match="keys of the secure sum of round 1 are gone"):
            again.handle(data)
    later = Letter.from_bytes(again.handle(question(2)), SUM_MESSAGES)
    assert (later.round, type(later.body)) == (2, SumBegun)


WHERE = {
    "uploads": (opening.CoordinatorOpening, "__init__", 1),
    "parts": (opening.CoordinatorOpening, "take", 1),
    "opening": (opening.CoordinatorOpening, "opened", 1),
    "sum": (Averager, "take", 1),
    "begun": (opening.PartyOpening, "begun", 1),
    "step": (opening.PartyOpening, "step", 1),
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("where", WHERE.values(), ids=WHERE)
def test_crash_in_the_middle_of_a_sum_loses_that_round_only(
    where: tuple[Any, str, int], when: str, sent: Left, tmp_path: Path
) -> None:
    recipe = ItemSums(rounds=3, aggregate=SharedSum())
    stopped(recipe, tmp_path, where, when)
    run = trained(recipe, horizontal(3), folder=tmp_path)
    assert [event.numbers["answered"] for event in run.rounds] == [3.0, 0.0, 3.0]
    assert all(len(replies) == 1 for replies in sent.values())
    for party in NAMES:
        assert charged(tmp_path, party) == [1, 2, 3]
    lines = Transcript.open(tmp_path / "transcript.jsonl").sent
    uploads = [(each.sender, each.round) for each in lines if each.kind == "SumBegun"]
    assert len(set(uploads)) == len(uploads)
    assert not failed(verify(run.save(tmp_path / "run"))).get("answers")


@pytest.mark.usefixtures("quick")
def test_unfinished_training_does_not_go_on_with_another_sum(tmp_path: Path) -> None:
    stopped(ItemSums(rounds=3, aggregate=SharedSum()), tmp_path, WHERE["sum"])
    for other in (SharedSum(decrypters=2), EncryptedSum(), SharedSum(dropout=0.34)):
        with pytest.raises(RunError, match="differs in recipe"):
            trained(ItemSums(rounds=3, aggregate=other), horizontal(3), folder=tmp_path)
