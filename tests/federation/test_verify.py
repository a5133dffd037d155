"""Every kind of tampering with a run folder is found out, and an honest one is not accused."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from cofactor.errors import RunError
from cofactor.factors.baselines import UserItemBias
from cofactor.federation.channel import Failures
from cofactor.federation.federation import Federation
from cofactor.federation.run import DataFacts, Run
from cofactor.federation.verify import verify
from cofactor.privacy.budget import Budget
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.ledger import Ledger
from cofactor.randomness import SecureRandom
from cofactor.recipes.sums import IdealSum, SecureSum
from tests.federation.forging import (
    Facts,
    change_facts,
    failed,
    forge_ledger,
    forge_transcript,
    last_answer,
)
from tests.federation.making import BUDGET, ItemSums, RatingSums, on_disk, ratings, trained, vertical


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two parties, of which one answer was lost on its way; their files lie beside it."""
    place = tmp_path_factory.mktemp("honest")
    failures = Failures(lost=frozenset({("south", 2)}))
    run = trained(federation=Federation.horizontal(on_disk(place)), random=SecureRandom(), failures=failures)
    run.save(place / "run")
    return place


@pytest.fixture
def folder(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest, tmp_path / "copy")) / "run"


def test_honest_run_is_borne_out(folder: Path) -> None:
    verdict = verify(folder)
    assert not failed(verdict)
    details = {check.name: check.detail for check in verdict.checks}
    assert list(details) == [
        "ledger of north",
        "ledger of south",
        "transcript",
        "answers",
        "releases",
        "guarantee",
        "files",
    ]
    assert "3 entries in 3 rounds" in details["ledger of south"]
    assert "5 answers left" in details["answers"]
    assert "1 more were charged and never arrived" in details["answers"]
    assert "6 releases" in details["releases"]
    assert "add up to epsilon 3.9" in details["guarantee"]


@pytest.mark.parametrize(
    ("recipe", "federation", "budget"),
    [
        (ItemSums(aggregate=IdealSum()), None, BUDGET),
        (ItemSums(aggregate=SecureSum()), None, BUDGET),
        (ItemSums(aggregate=SecureSum()), None, None),
        (ItemSums(), None, None),
        (RatingSums(), vertical(), BUDGET),
        (RatingSums(), vertical(), Budget(epsilon=4.0, delta=1e-6, unit="rating")),
    ],
    ids=[
        "ideal sum",
        "secure sum",
        "secure sum, not private",
        "not private",
        "vertical users",
        "vertical ratings",
    ],
)
def test_all_kinds_of_honest_runs_are_borne_out(
    recipe: ItemSums, federation: Federation | None, budget: Budget | None, tmp_path: Path
) -> None:
    folder = trained(recipe, federation, budget=budget).save(tmp_path / "run")
    assert not failed(verify(folder))


def test_pooled_run_promised_nothing(tmp_path: Path) -> None:
    data = ratings(1)
    run = Run(
        model=UserItemBias().fit(data),
        recipe={"kind": "Pooled"},
        seed=0,
        data=DataFacts.of(data),
        created="2026-01-01T00:00:00+00:00",
        seconds=1.0,
    )
    (check,) = verify(run.save(tmp_path / "run")).checks
    assert check.holds
    assert "Nothing was promised" in check.detail
    promising = Guarantee(epsilon=1.0, delta=1e-6, unit="user", adjacency="empty", secure_noise=True)
    (check,) = verify(replace(run, guarantee=promising).save(tmp_path / "other")).checks
    assert not check.holds
    assert "neither ledgers nor a transcript" in check.detail


def test_what_is_no_run_folder_is_refused(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(RunError, match="not a run folder"):
        verify(tmp_path)
    change_facts(folder, lambda facts: facts.update(format=99))
    with pytest.raises(RunError, match="newer cofactor"):
        verify(folder)


@pytest.mark.parametrize("damage", [{"parties": 3}, {"rounds": 1}, 7], ids=str)
def test_damaged_facts_are_refused(damage: object, folder: Path) -> None:
    change_facts(folder, lambda facts: facts.update(together=damage))
    with pytest.raises(RunError, match="damaged"):
        verify(folder)


@pytest.mark.parametrize("name", ["ledgers/north.ledger", "transcript.jsonl"])
def test_changed_byte_is_found_out(name: str, folder: Path) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    wrong = failed(verify(folder))
    assert "is not the file that the run stored" in wrong[_check_of(name)]
    change_facts(folder, lambda facts: _set_digest(facts, name, bytes(content)))
    assert "was changed" in failed(verify(folder))[_check_of(name)]


@pytest.mark.parametrize("name", ["ledgers/north.ledger", "transcript.jsonl"])
@pytest.mark.parametrize("order", [slice(None, -1), slice(None, None, -1)], ids=["cut", "turned"])
def test_cut_and_reordered_lines_are_found_out(name: str, order: slice, folder: Path) -> None:
    first, *lines = (folder / name).read_bytes().splitlines(keepends=True)
    (folder / name).write_bytes(b"".join([first, *lines[order]]))
    assert _check_of(name) in failed(verify(folder))


@pytest.mark.parametrize("name", ["ledgers/north.ledger", "transcript.jsonl"])
def test_missing_file_is_found_out(name: str, folder: Path) -> None:
    (folder / name).unlink()
    assert "is missing" in failed(verify(folder))[_check_of(name)]


def _check_of(name: str) -> str:
    return "transcript" if name.startswith("transcript") else "ledger of north"


def _set_digest(facts: Facts, name: str, content: bytes) -> None:
    digests = facts["together"]["sha256"]
    (digests if name.startswith("transcript") else digests["ledgers"]).update(
        {"transcript" if name.startswith("transcript") else "north": sha256(content).hexdigest()}
    )


def test_ledger_without_its_last_charge_is_found_out_even_with_matching_seals(folder: Path) -> None:
    forge_ledger(folder, "north", lambda event: None if event.what.endswith("round 3") else event)
    wrong = failed(verify(folder))
    assert "north, round 3: an answer left, and the party's ledger knows nothing" in wrong["answers"]
    assert "releases" in wrong["guarantee"]
    assert "ledger of north" not in wrong


def test_ledger_with_more_noise_than_there_was_is_found_out(folder: Path) -> None:
    for party in ("north", "south"):
        forge_ledger(folder, party, lambda event: replace(event, mechanism=event.mechanism.scaled(2.0)))
    assert "the guarantee says 3.9" in failed(verify(folder))["guarantee"]


def test_ledger_with_less_noise_than_was_promised_is_found_out(folder: Path) -> None:
    # One of six releases with a little less noise: within the ledger's budget, and above the guarantee.
    def quieter(event: Any) -> Any:
        third = event.what.endswith("round 3")
        return replace(event, mechanism=event.mechanism.scaled(0.995)) if third else event

    forge_ledger(folder, "north", quieter)
    assert "add up to epsilon" in failed(verify(folder))["guarantee"]


def test_noise_that_was_not_secure_is_found_out(folder: Path) -> None:
    forge_ledger(folder, "north", lambda event: replace(event, secure=False))
    assert "secure_noise" in failed(verify(folder))["guarantee"]


@pytest.mark.parametrize(
    "change", [{"by": "south"}, {"what": "item sums, round 7"}, {"what": "item sums"}], ids=str
)
def test_release_of_others_or_of_no_round_is_found_out(change: Facts, folder: Path) -> None:
    forge_ledger(
        folder, "north", lambda event: replace(event, **change) if event.what.endswith("round 3") else event
    )
    assert "releases of others, or of rounds that there were not" in failed(verify(folder))["releases"]


def test_answer_without_protection_is_found_out(folder: Path) -> None:
    forge_transcript(folder, lambda lines: last_answer(lines).update(protection="nothing"))
    assert failed(verify(folder)) == {"answers": "south, round 3: an answer left without any protection."}


def test_share_of_noise_that_somebody_saw_is_found_out(folder: Path) -> None:
    forge_transcript(folder, lambda lines: last_answer(lines).update(protection="a share of noise"))
    wrong = failed(verify(folder))
    assert "coordinator saw an answer that had only a share of the noise" in wrong["answers"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"protection": "hope"}, "nobody knows what 'hope' protects"),
        ({"sender": "east"}, "no such party or round"),
        ({"round": 4}, "no such party or round"),
        ({"round": 0}, "no such party or round"),
    ],
    ids=str,
)
def test_answer_that_makes_no_sense_is_found_out(change: Facts, words: str, folder: Path) -> None:
    forge_transcript(folder, lambda lines: last_answer(lines).update(change))
    assert words in failed(verify(folder))["answers"]


def test_two_different_answers_to_one_question_are_found_out(folder: Path) -> None:
    forge_transcript(folder, lambda lines: lines.append(last_answer(lines) | {"digest": "0" * 64}))
    assert failed(verify(folder)) == {"answers": "south, round 3: two different answers left the party."}


def test_same_answer_sent_again_is_fine(folder: Path) -> None:
    forge_transcript(folder, lambda lines: lines.append(dict(last_answer(lines))))
    assert not failed(verify(folder))


@pytest.mark.parametrize(
    "change",
    [
        lambda together: together.update(bytes=5),
        lambda together: together["parties"]["north"].update(bytes_sent=5),
    ],
    ids=["all", "north"],
)
def test_other_sizes_are_found_out(change: Callable[[Facts], None], folder: Path) -> None:
    change_facts(folder, lambda facts: change(facts["together"]))
    assert "other sizes" in failed(verify(folder))["transcript"]


def test_other_session_is_found_out(folder: Path) -> None:
    change_facts(folder, lambda facts: facts["together"].update(session="other"))
    wrong = failed(verify(folder))
    assert wrong["transcript"] == "It tells of another session."
    assert "knows nothing of it" in wrong["answers"]


def test_party_that_loses_more_than_it_was_told_is_found_out(folder: Path) -> None:
    change_facts(folder, lambda facts: facts["together"]["parties"]["north"].update(epsilon=1.0))
    assert "north loses at least epsilon 3.99" in failed(verify(folder))["releases"]


EDITS: dict[str, Callable[[Facts], object]] = {
    "epsilon": lambda promise: promise.update(epsilon=1.0),
    "slightly": lambda promise: promise.update(epsilon=promise["epsilon"] * 0.999),
    "delta": lambda promise: promise.update(delta=1e-9),
    "unit": lambda promise: promise.update(unit="rating"),
    "adjacency": lambda promise: promise.update(adjacency="replace"),
    "budget": lambda promise: promise.update(budget_epsilon=100.0),
    "releases": lambda promise: promise.update(releases=2),
    "parties": lambda promise: promise.update(by=["north"]),
    "statement": lambda promise: promise.update(statement="All is well."),
    "assumptions": lambda promise: promise.update(assumptions=[]),
    "odds": lambda promise: promise.update(odds=0.5),
    "gone": lambda promise: promise.clear(),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_edited_promise_is_found_out(edit: Callable[[Facts], object], folder: Path) -> None:
    change_facts(folder, lambda facts: edit(facts["guarantee"]))
    assert set(failed(verify(folder))) == {"guarantee"}


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 1.0},
        {"epsilon": 3.985},
        {"delta": 1e-9},
        {"unit": "rating"},
        {"adjacency": "replace"},
        {"budget_epsilon": 100.0},
        {"releases": 2},
        {"by": ("north",)},
        {"secure_noise": None},
    ],
    ids=str,
)
def test_promise_forged_with_words_to_match_is_found_out(change: Facts, folder: Path) -> None:
    def forge(facts: Facts) -> None:
        facts["guarantee"] = replace(Guarantee.from_json(facts["guarantee"]), **change).as_json()

    change_facts(folder, forge)
    (wrong,) = failed(verify(folder)).items()
    assert wrong[0] == "guarantee"
    assert "words" not in wrong[1]


def test_words_of_another_version_are_not_compared(folder: Path) -> None:
    def other(facts: Facts) -> None:
        facts["versions"]["cofactor"] = "0.0.0"
        facts["guarantee"]["statement"] = "In other words."

    change_facts(folder, other)
    assert not failed(verify(folder))


def test_insecure_run_edited_to_hold_is_found_out(tmp_path: Path) -> None:
    folder = trained(ItemSums(rounds=1)).save(tmp_path / "run")
    assert not failed(verify(folder))

    def hold(facts: Facts) -> None:
        promise = Guarantee.from_json(facts["guarantee"])
        facts["guarantee"] = replace(promise, why_not=(), secure_noise=True).as_json()

    change_facts(folder, hold)
    assert "secure_noise" in failed(verify(folder))["guarantee"]


def test_run_without_a_budget_that_promises_privacy_is_found_out(folder: Path, tmp_path: Path) -> None:
    bare = trained(budget=None).save(tmp_path / "bare")
    promise = json.loads((folder / "run.json").read_text())["guarantee"]
    change_facts(bare, lambda facts: facts.update(guarantee=promise))
    assert "promises privacy all the same" in failed(verify(bare))["guarantee"]
    shutil.copy(folder / "ledgers" / "north.ledger", bare / "ledgers" / "north.ledger")
    assert "the run had no budget" in failed(verify(bare))["ledger of north"]


def test_ledgers_beside_the_data_still_hold_all_of_it(folder: Path) -> None:
    live = [folder.parent / f"{name}.csv.ledger" for name in ("north", "south")]
    Ledger.open(live[0]).extended("newer data")
    verdict = verify(folder, ledgers=live)
    assert not failed(verdict)
    assert verdict.checks[-2].name == str(live[0])
    assert "north's copy holds, and 1 entries more" in verdict.checks[-2].detail


def test_ledger_beside_the_data_that_lost_entries_is_found_out(folder: Path) -> None:
    live = folder.parent / "north.csv.ledger"
    live.write_bytes(b"".join(live.read_bytes().splitlines(keepends=True)[:-1]))
    assert "lost entries" in failed(verify(folder, ledgers=[live]))[str(live)]
    live.unlink()
    assert "cannot be opened" in failed(verify(folder, ledgers=[live]))[str(live)]


def test_forged_folder_is_found_out_by_the_ledger_beside_the_data(folder: Path) -> None:
    forge_ledger(folder, "north", lambda event: replace(event, mechanism=event.mechanism.scaled(2.0)))
    live = folder.parent / "north.csv.ledger"
    assert "lost entries that this run remembers" in failed(verify(folder, ledgers=[live]))[str(live)]


def edit(file: Path, old: str, new: str) -> None:
    file.write_text(file.read_text().replace(old, new))


@pytest.mark.parametrize(
    "tamper",
    [
        lambda run: (run / "model.npz").write_bytes(b""),
        lambda run: (run / "events.jsonl").write_text("{}"),
        lambda run: next((run / "homes").iterdir()).unlink(),
        lambda run: (run / "more.txt").write_text("x"),
        lambda run: (run / "run.json").write_text(
            (run / "run.json").read_text().replace('"seed": ', '"seed": 1')
        ),
    ],
)
def test_files_that_were_changed_added_or_lost_are_found_out(
    folder: Path, tamper: Callable[[Path], object]
) -> None:
    tamper(folder)
    assert list(failed(verify(folder))) == ["files"]


def test_parties_that_relate_otherwise_are_found_out(folder: Path) -> None:
    change_facts(folder, lambda facts: facts["together"].update(split="vertical"))
    assert "relate otherwise" in failed(verify(folder))["transcript"]


@pytest.mark.parametrize("name", ["odds", "replaced_odds"])
def test_odds_that_do_not_follow_are_found_out_whichever_version_is_said_to_have_written_them(
    name: str, folder: Path
) -> None:
    def change(facts: Facts) -> None:
        facts["versions"]["cofactor"] = "0.0.1"
        facts["guarantee"][name] = 0.501

    change_facts(folder, change)
    assert "guarantee" in failed(verify(folder))


def test_words_of_another_version_are_said_not_to_be_compared(folder: Path) -> None:
    change_facts(folder, lambda facts: facts["versions"].update(cofactor="0.0.1"))
    verdict = verify(folder)
    assert verdict.holds
    (told,) = (check.detail for check in verdict.checks if check.name == "guarantee")
    assert told.endswith("Its words are those of cofactor 0.0.1: nobody compared them with its numbers.")


def test_a_loss_that_is_no_number_is_found_out(folder: Path) -> None:
    change_facts(folder, lambda facts: facts["together"]["parties"]["north"].update(epsilon=float("nan")))
    assert "north loses at least" in failed(verify(folder))["releases"]


@pytest.mark.parametrize("name", ["transcript.jsonl", "ledgers/north.ledger", "audits/canaries-1.json"])
def test_what_is_no_file_is_not_waited_for(name: str, folder: Path) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).parent.mkdir(exist_ok=True)
    os.mkfifo(folder / name)
    assert not verify(folder).holds


@pytest.mark.parametrize("value", [1e29, float("inf"), [], "x"])
@pytest.mark.parametrize("name", ["rounds", "replaced_odds"])
def test_strange_numbers_are_damage_and_no_fault_of_ours(name: str, value: Any, folder: Path) -> None:
    def change(facts: Facts) -> None:
        facts["together" if name == "rounds" else "guarantee"][name] = value

    change_facts(folder, change)
    unknown = (name, value) == ("rounds", 1e29)  # of rounds without answers nobody knows
    assert verify(folder).holds == unknown


@pytest.mark.parametrize(
    ("name", "check", "words"),
    [
        ("transcript.jsonl", "transcript", "transcript.jsonl is cut off: its last line is not whole."),
        ("ledgers/north.ledger", "ledger of north", "It is cut off: its last line is not whole."),
    ],
)
def test_a_copy_that_is_cut_off_is_called_so_and_nobody_is_sent_to_mend_it(
    name: str, check: str, words: str, folder: Path
) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes()[:-20])
    digest = sha256(path.read_bytes()).hexdigest()

    def change(facts: Facts) -> None:
        hashes = facts["together"]["sha256"]
        hashes.update(transcript=digest) if check == "transcript" else hashes["ledgers"].update(north=digest)

    change_facts(folder, change)
    assert failed(verify(folder))[check] == words


def test_what_parties_release_together_is_counted_once(folder: Path) -> None:
    for party in ("north", "south"):
        forge_ledger(folder, party, lambda event: replace(event, by=event.by, joint=True))
    told = {check.name: check.detail for check in verify(folder).checks}
    assert told["releases"] == "3 releases, 3 for each party."
