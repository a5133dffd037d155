"""What is captured of a simulation: by whom it was seen, on disk, and never where data are real."""

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cofactor.errors import ConfigError, Refused, RunError
from cofactor.federation.channel import Failures
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.federation import Federation
from cofactor.federation.folder import AUDITS, CAPTURED, add_audit, read_audits, read_facts
from cofactor.federation.run import Run
from cofactor.federation.verify import verify
from cofactor.federation.view import OPENED, Capture, Truth, View
from cofactor.recipes.opened_sums import SharedSum
from cofactor.recipes.sums import IdealSum, SecureSum
from tests.federation.making import ItemSums, Off, OffInAll, on_disk, trained

NORTH = "party:north"


def sums(run: Run, *roles: str) -> View:
    assert run.captured is not None
    return run.captured.view(*roles)


@pytest.fixture(scope="module")
def plain() -> Run:
    return trained(capture=[COORDINATOR, NORTH])


@pytest.fixture(
    scope="module", params=[IdealSum(), SecureSum(), SharedSum()], ids=lambda each: type(each).__name__
)
def summed(request: pytest.FixtureRequest) -> Run:
    return trained(ItemSums(aggregate=request.param), capture=[COORDINATOR, NORTH, "party:south"])


def test_coordinator_sees_all_questions_and_answers(plain: Run) -> None:
    view = sums(plain, COORDINATOR)
    assert plain.together is not None
    rounds = plain.together.rounds
    assert Counter(each.sender for each in view.messages("Off")) == dict.fromkeys(view.parties, rounds)
    assert len(list(view.messages("Guess", receiver="south"))) == rounds + 1  # and the last word
    assert {each.round for each in view.messages("Off", sender="west")} == set(range(1, rounds + 1))
    assert next(view.messages("Guess", round=1)).plain == {"words": "how far off?"}


def test_party_sees_its_own_letters_only(plain: Run) -> None:
    view = sums(plain, NORTH)
    assert view.seen
    assert all("north" in (each.sender, each.receiver) for each in view.seen)
    assert len(sums(plain, COORDINATOR).seen) == 3 * len(view.seen)


def test_public_sees_the_model_and_no_message(plain: Run) -> None:
    view = sums(plain, "public")
    assert view.seen == ()
    assert view.model is plain.model
    assert (view.parties, view.items) == (("north", "south", "west"), 5)


def test_coordinator_sees_sums_and_nobody_elses_part(summed: Run) -> None:
    view = sums(summed, COORDINATOR)
    assert {(each.sender, each.protection) for each in view.messages("OffInAll")} == {(SUM, OPENED)}
    assert not list(view.messages("SumPart"))


def test_those_who_collude_see_the_rest_of_a_sum(summed: Run) -> None:
    """The coordinator and two of three parties know what the third has sent."""
    rounds = 0
    for total in sums(summed, COORDINATOR).messages("OffInAll"):
        view = sums(summed, NORTH, "party:south")
        own = [each.arrays["hundredths"] for each in view.messages("OffInAll", round=total.round)]
        assert len(own) == 2
        rest = total.arrays["hundredths"] - sum(own)
        assert rest.shape == own[0].shape
        assert np.any(rest != 0)
        rounds += 1
    assert rounds == 3


def test_own_answer_in_a_sum_is_seen_by_its_party_alone(summed: Run) -> None:
    view = sums(summed, NORTH)
    assert {(each.sender, each.receiver) for each in view.messages("OffInAll")} == {("north", SUM)}
    assert not list(view.messages("SumPart"))
    assert not list(sums(summed, COORDINATOR).messages("OffInAll", sender="north"))


def test_keys_are_seen_by_those_who_hold_them(summed: Run) -> None:
    for role in (NORTH, "party:south"):
        name = role.removeprefix("party:")
        assert set(sums(summed, role).keys) <= {name}
    assert not sums(summed, COORDINATOR).keys


def test_some_rounds_only() -> None:
    capture = Capture(COORDINATOR, rounds=[2])
    trained(capture=capture)
    assert {each.round for each in capture.view(COORDINATOR).seen} == {2}


def test_captured_arrays_stay_as_they_were_sent() -> None:
    body, capture = Off(sums=np.arange(3.0)), Capture(COORDINATOR)
    capture.take(body, round=1, sender="north", receivers=[COORDINATOR], protection="nothing")
    body.sums[:] = 7
    frame = sums(trained(capture=COORDINATOR), "public")
    kept = next(capture.end(frame, Truth()).view(COORDINATOR).messages("Off"))
    assert kept.arrays["sums"].tolist() == [0, 1, 2]


def test_what_was_captured_comes_back_from_disk(summed: Run, tmp_path: Path) -> None:
    folder = summed.save(tmp_path / "run")
    again = Run.load(folder)
    assert "UNSAFE" in (folder / CAPTURED / "README.txt").read_text()
    assert read_facts(folder)["captured"] == [COORDINATOR, NORTH, "party:south"]
    assert again.captured is not None
    assert summed.captured is not None
    before, after = summed.captured.whole, again.captured.whole
    assert len(after.seen) == len(before.seen) > 10
    for one, other in zip(before.seen, after.seen, strict=True):
        assert (one.round, one.sender, one.receiver, one.kind, one.protection, one.plain) == (
            other.round, other.sender, other.receiver, other.kind, other.protection, other.plain,
        )  # fmt: skip
        assert one.arrays.keys() == other.arrays.keys()
        assert all(np.array_equal(one.arrays[name], other.arrays[name]) for name in one.arrays)
    assert (after.roles, after.parties, after.users, after.items, after.scale, after.recipe) == (
        before.roles, before.parties, before.users, before.items, before.scale, dict(before.recipe),
    )  # fmt: skip
    for party, ratings in summed.captured.truth.ratings.items():
        told = again.captured.truth.ratings[party]
        for name in ("users", "items", "values", "user_ids", "item_ids"):
            assert np.array_equal(getattr(told, name), getattr(ratings, name))


def test_keys_are_never_written(summed: Run, tmp_path: Path) -> None:
    again = Run.load(summed.save(tmp_path / "run"))
    assert again.captured is not None
    assert again.captured.whole.keys == {}


def test_unsafe_folder_may_be_removed_and_not_be_changed(plain: Run, tmp_path: Path) -> None:
    folder = plain.save(tmp_path / "run")
    assert verify(folder).holds
    (folder / CAPTURED / "view.json").write_text("{}")
    assert not verify(folder).holds
    with pytest.raises(RunError, match="cannot be read"):
        Run.load(folder)
    shutil.rmtree(folder / CAPTURED)
    assert verify(folder).holds
    assert Run.load(folder).captured is None


def test_without_capture_there_is_none(tmp_path: Path) -> None:
    folder = trained().save(tmp_path / "run")
    assert Run.load(folder).captured is None
    assert not (folder / CAPTURED).exists()
    assert read_facts(folder)["captured"] == []


def test_parties_with_files_are_never_captured(tmp_path: Path) -> None:
    real = Federation.horizontal(on_disk(tmp_path))
    with pytest.raises(Refused, match="has a file of its own"):
        trained(federation=real, capture=COORDINATOR)
    assert not list(tmp_path.glob("*.ledger"))


@pytest.mark.parametrize(
    ("capture", "words"),
    [
        ("the boss", "is no role"),
        ("party:nobody", "there is no party:nobody to capture. The parties are north, south, west"),
        ([], "say whose messages"),
        (7, "must be a role"),
    ],
)
def test_mistakes_are_told(capture: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        trained(capture=capture)


def test_role_that_was_not_captured_is_told(plain: Run) -> None:
    with pytest.raises(RunError, match=r"party:west saw was not captured.*--capture party:west"):
        sums(plain, "party:west")


def test_capture_is_for_one_training() -> None:
    capture = Capture(COORDINATOR)
    trained(capture=capture)
    with pytest.raises(ConfigError, match="another training"):
        trained(capture=capture)


def test_nothing_can_be_seen_before_the_end() -> None:
    with pytest.raises(RunError, match="has not ended"):
        Capture(COORDINATOR).view(COORDINATOR)


def test_training_that_goes_on_after_a_crash_is_not_captured(tmp_path: Path) -> None:
    away = Failures(absent=frozenset({("north", 2), ("south", 2), ("west", 2)}))
    recipe = ItemSums(aggregate=IdealSum())
    with pytest.raises(Refused, match="did not answer"):
        trained(recipe, folder=tmp_path / "work", failures=away)
    with pytest.raises(RunError, match="before a crash was not captured"):
        trained(recipe, folder=tmp_path / "work", capture=COORDINATOR)


def test_audits_lie_beside_each_other_and_are_sealed(plain: Run, tmp_path: Path) -> None:
    folder = plain.save(tmp_path / "run")
    first = add_audit(folder, "membership-public", {"verdict": "resisted"})
    second = add_audit(folder, "membership-public", {"verdict": "succeeded"})
    assert (first.name, second.name) == ("membership-public-1.json", "membership-public-2.json")
    assert [each["verdict"] for each in read_audits(folder).values()] == ["resisted", "succeeded"]
    assert verify(folder).holds
    told = json.loads(second.read_text())
    second.write_text(json.dumps({**told, "verdict": "resisted"}))
    with pytest.raises(RunError, match="was changed, or is about another run"):
        read_audits(folder)
    assert not verify(folder).holds


def test_audit_of_another_run_is_found_out(plain: Run, tmp_path: Path) -> None:
    one = plain.save(tmp_path / "one")
    other = trained(seed=8).save(tmp_path / "other")
    add_audit(one, "canaries-coordinator", {"verdict": "consistent"})
    shutil.copytree(one / AUDITS, other / AUDITS)
    assert not verify(other).holds


def test_alarm_makes_verify_fail(plain: Run, tmp_path: Path) -> None:
    folder = plain.save(tmp_path / "run")
    add_audit(folder, "canaries-coordinator", {"verdict": "alarm", "figures": {}, "confidence": 0.95})
    checks = {check.name: check for check in verify(folder).checks}
    assert not checks["audits"].holds
    assert "canaries-coordinator-1" in checks["audits"].detail
    assert checks["files"].holds


def test_alarm_that_many_audits_explain_is_none(plain: Run, tmp_path: Path) -> None:
    """One of twenty honest audits may say so, at a confidence of 95%."""
    folder = plain.save(tmp_path / "run")
    alarm = {"verdict": "alarm", "figures": {"p-value of the promise": 0.02}, "confidence": 0.95}
    add_audit(folder, "canaries-coordinator", alarm)
    assert not verify(folder).holds
    for _ in range(2):
        add_audit(folder, "canaries-public", {"verdict": "consistent"})
    assert verify(folder).holds


def test_audit_that_is_gone_or_none_is_found_out(plain: Run, tmp_path: Path) -> None:
    folder = plain.save(tmp_path / "run")
    first, _ = (add_audit(folder, "membership-public", {"verdict": "resisted"}) for _ in range(2))
    (folder / AUDITS / "notes.txt").write_text("nothing")
    with pytest.raises(RunError, match=r"notes\.txt is no audit"):
        read_audits(folder)
    (folder / AUDITS / "notes.txt").unlink()
    assert len(read_audits(folder)) == 2
    first.unlink()
    with pytest.raises(RunError, match="one before it is gone"):
        read_audits(folder)


def test_audits_are_read_in_their_order(plain: Run, tmp_path: Path) -> None:
    folder = plain.save(tmp_path / "run")
    for number in range(12):
        add_audit(folder, "membership-public", {"verdict": "resisted", "number": number})
    assert [facts["number"] for facts in read_audits(folder).values()] == list(range(12))


def test_ideal_answers_are_whole_hundredths() -> None:
    """A party's own answer in the view is the one that was summed."""
    run = trained(ItemSums(aggregate=IdealSum()), capture=[COORDINATOR, NORTH, "party:south", "party:west"])
    for total in sums(run, COORDINATOR).messages(OffInAll.__name__):
        own = sums(run, NORTH, "party:south", "party:west").messages(OffInAll.__name__, round=total.round)
        parts = [each.arrays["hundredths"] for each in own]
        assert len(parts) == 3
        # All three took part, so nothing of the noise is excess.
        assert np.array_equal(sum(parts), total.arrays["hundredths"])
