"""A training that is not finished, followed by its files alone."""

import html
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from cofactor.errors import RunError
from cofactor.federation.session import alone_in
from cofactor.report.live_part import live_body, live_head, live_state, underway_page
from cofactor.report.underway import Underway, Watch
from tests.report.watching import PARTIES, Making


@pytest.fixture
def making(tmp_path: Path) -> Making:
    """A training of three shops and twenty rounds, not begun."""
    return Making(tmp_path / "private")


def words_of(page: str) -> str:
    """Return what somebody reads of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def words(found: Underway) -> str:
    """Return what somebody reads of a training."""
    return words_of(f"{live_head(found)} {live_body(found)}")


def damage(run: Path) -> str:
    """Return what is said of files that cannot be read."""
    with pytest.raises(RunError) as raised:
        Watch(run).look()
    return str(raised.value)


def test_where_nothing_has_begun_it_waits_and_says_for_what(tmp_path: Path) -> None:
    found = Watch(tmp_path / "private").look()
    assert live_state(found) == ("waiting", "plain")
    assert "cofactor train ... --out private" in words(found)
    assert not found.stoppable


def test_before_the_first_message_it_says_that_data_are_read(making: Making) -> None:
    found = Watch(making.begin().run).look()
    assert (live_state(found)[0], found.parties, found.begun) == ("waiting", PARTIES, False)
    assert "HorizontalMF, 3 parties" in words(found)
    assert "ratings are read" in words(found)


def test_the_first_round_is_going_on_once_something_was_asked(making: Making) -> None:
    making.begin().asked(1)
    found = Watch(making.run).look()
    assert "The first round is going on." in words(found)
    assert not found.stoppable


def test_progress_and_time_left_follow_from_the_last_rounds(making: Making) -> None:
    making.begin().round(1)
    watch = Watch(making.run)
    assert watch.look().left is None  # one round has no length yet
    for step in range(2, 13):
        making.round(step, seconds=100 if step == 2 else 100 + 3 * (step - 2))  # the start was slow
    found = watch.look()
    assert (found.done, found.planned, found.bytes) == (12, 20, 12 * 77_892)
    assert found.left == pytest.approx(3 * 8)
    assert live_state(found) == ("training", "plain")
    for told in ("Round 12 of 20", "60%", "About 24 s left", "935 kB in all messages"):
        assert told in words(found)
    assert found.stoppable


def test_the_gauge_shows_what_is_spent_and_what_will_be(making: Making) -> None:
    found = Watch(making.begin().rounds(5).run).look()
    for told in ("Epsilon 1.99 of 4", "At most, at delta 1e-06, for each user.", "RELEASED", "50%"):
        assert told in words(found)
    assert "It will be 3.98 after all 20 rounds." in words(found)
    gauge = re.findall(r'<rect[^>]* width="([\d.]+)"[^>]* class="([^"]+)"', str(live_head(found)))
    assert [(float(width), kind) for width, kind in gauge[-3:]] == [
        (400.0, "track"),
        (pytest.approx(398.0), "ahead fill plain"),
        (pytest.approx(199.0), "fill plain"),
    ]
    assert 'aria-label="Of the budget: 50%' in str(live_head(found))
    assert "if it goes on" in words(found)


def test_a_budget_that_is_used_up_is_called_reached(making: Making) -> None:
    watch = Watch(making.begin().rounds(19).run)
    assert "reached" not in words(watch.look())
    making.round(20)
    found = watch.look()
    assert live_state(found) == ("finishing", "plain")
    assert "All rounds are done; the run is being written." in words(found)
    assert "reached" in words(found)
    assert "It will be" not in words(found)
    assert 'class="answer doubt"' in str(live_head(found))
    assert not found.stoppable


def test_without_a_budget_it_is_not_private(tmp_path: Path) -> None:
    found = Watch(Making(tmp_path / "plain", budget=None).begin().rounds(2).run).look()
    assert "NOT PRIVATE" in words(found)
    assert "Everything that is sent" in words(found)
    assert "Epsilon spent" not in words(found)


def test_who_was_lost_and_when_everybody_was_last_heard_of(making: Making) -> None:
    making.begin().rounds(2)
    watch = Watch(making.run)
    assert watch.look().last_time == {}  # nobody watched when those came
    making.round(3, lost=["south"]).round(4, lost=["south"]).round(5)
    making.answer("north", 6)
    found = watch.look()
    assert found.answered == {"north": 5, "south": 3, "west": 5}
    assert found.last_round == {"north": 6, "south": 5, "west": 5}
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d", found.last_time[party]) for party in PARTIES)
    assert "3 of 3 answered" in words(found)
    assert "In 2 of 5 rounds somebody was lost." in words(found)
    rows = re.findall(r"<tr>.*?</tr>", str(live_body(found)), flags=re.DOTALL)
    own = [row for row in rows if ">south<" in row or ">north<" in row]
    assert ">south<" in own[0]  # who was lost most often comes first
    assert "round 5" in own[0]
    assert own[0].endswith(">2</td></tr>")


def test_a_round_in_which_somebody_is_lost_is_no_good_news(making: Making) -> None:
    found = Watch(making.begin().round(1).round(2, lost=["west", "north"]).run).look()
    assert "1 of 3 answered" in words(found)
    assert 'class="answer doubt"' in str(live_head(found))
    assert "Parties that answered" in words(found)


def test_whoever_is_no_party_is_not_listed(making: Making) -> None:
    making.begin().rounds(1)
    making.answer("somebody else", 1)
    assert "somebody else" not in words(Watch(making.run).look())


def test_half_a_line_is_read_when_it_is_whole(making: Making) -> None:
    making.begin().rounds(2)
    whole = (making.place / "events.jsonl").read_text().splitlines()[-1].replace('"step": 2', '"step": 3')
    watch = Watch(making.run)
    making.write(whole[:40])
    assert watch.look().done == 2
    making.write(whole[40:])
    assert watch.look().done == 2  # a number may yet grow
    making.write("\n")
    assert watch.look().done == 3


def test_a_line_that_a_crash_cut_off_is_passed_over(making: Making) -> None:
    making.begin().rounds(2).write('{"stage": "round", "ste')
    making.tell("resumed", 2).rounds(4, first=3)
    assert Watch(making.run).look().done == 4


DAMAGES = {
    "session.json": ["{", "[1]", '{"name": "x"}', '{"name": "x", "terms": 5}'],
    "transcript.jsonl": ["no message\n", "[1, 2]\n", '{"sender": "north", "round": "first"}\n'],
    "events.jsonl": [
        '{"stage": "round", "step": 1}\n',
        '{"stage": "round", "step": "one", "steps": 2, "numbers": {}}\n',
        '{"stage": "round", "step": 1, "steps": 2, "numbers": 7}\n',
        '{"stage": "round", "step": 1, "steps": 2, "numbers": {"epsilon": "many"}}\n',
    ],
}


@pytest.mark.parametrize(("file", "text"), [(file, text) for file in DAMAGES for text in DAMAGES[file]])
def test_damaged_files_are_called_so(file: str, text: str, making: Making) -> None:
    making.begin()
    (making.place / file).write_text(text)
    assert re.fullmatch(
        r"\S*private\.unfinished: the run folder is damaged \(.+\)\. Restore it .*", damage(making.run)
    )


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf"), "four"])
def test_a_budget_that_cannot_be_drawn_is_a_damage(epsilon: object, tmp_path: Path) -> None:
    budget = {"epsilon": epsilon, "delta": 1e-6, "unit": "user"}
    assert "damaged" in damage(Making(tmp_path / "private", budget=budget).begin().rounds(1).run)


def test_what_was_damaged_once_stays_so_until_another_training_begins(making: Making) -> None:
    making.begin().write("no message\n", "transcript.jsonl")
    watch = Watch(making.run)
    for _ in range(2):
        with pytest.raises(RunError, match="damaged"):
            watch.look()
    (making.place / "transcript.jsonl").unlink()
    making.name = "f" * 16
    making.begin().rounds(1)
    assert watch.look().done == 1


def test_a_resumed_training_goes_on_where_it_was(making: Making) -> None:
    making.begin().rounds(8).tell("interrupted")
    watch = Watch(making.run)
    found = watch.look()
    assert (live_state(found), found.stoppable) == (("interrupted", "doubt"), False)
    assert "add --resume" in words(found)
    making.tell("resumed", 8)
    for step in (9, 10, 11):
        making.round(step, seconds=5.0 * (step - 8))  # its clock begins anew
    found = watch.look()
    assert live_state(found) == ("training, after it was resumed", "plain")
    assert (found.done, found.stoppable) == (11, True)
    assert found.left == pytest.approx(45)


def test_numbers_that_were_not_released_are_not_read(making: Making) -> None:
    making.begin().round(1, mean=4.2, clipped=0.5).tell("local", 2, numbers={"epsilon": 0.1})
    (only,) = Watch(making.run).look().rounds
    assert set(only) == {"step", "answered", "parties", "bytes", "seconds", "epsilon", "epsilon_planned"}


def test_a_round_that_is_gone_through_again_counts_once(making: Making) -> None:
    making.begin().rounds(3).tell("resumed", 2).round(3)
    found = Watch(making.run).look()
    assert [each["step"] for each in found.rounds] == [1, 2, 3]
    assert found.bytes == 3 * 77_892


def test_another_training_in_the_same_place_is_read_from_its_beginning(making: Making) -> None:
    making.begin().rounds(9)
    watch = Watch(making.run)
    assert watch.look().done == 9
    for file in making.place.iterdir():  # as --force clears it away
        file.unlink()
    assert live_state(watch.look())[0] == "waiting"
    other = Making(making.run, name="f" * 16, planned=5, parties=("east",))
    other.begin().rounds(2)
    found = watch.look()
    assert (found.done, found.planned, found.parties, set(found.answered)) == (2, 5, ("east",), {"east"})


@pytest.mark.parametrize("stage", ["failed", "refused"])
def test_what_failed_is_said_to_have_failed(stage: str, making: Making) -> None:
    found = Watch(making.begin().rounds(4).tell(stage).run).look()
    assert live_state(found) == (stage, "bad")
    assert "stays charged" in words(found)
    assert "It will be" not in words(found)
    assert "left." not in words(found)
    assert not found.stoppable


def test_a_wish_to_stop_is_a_file_that_the_training_looks_for(making: Making) -> None:
    making.begin().rounds(4)
    watch = Watch(making.run)
    watch.wish_to_stop()
    assert (making.place / "stop").exists()
    found = watch.look()
    assert (live_state(found), found.stoppable) == (("stopping", "doubt"), False)
    assert "It ends as soon as it can" in words(found)
    assert "It would be 3.98 after all 20 rounds." in words(found)
    assert "left." not in words(found)


def test_nothing_that_does_not_train_can_be_stopped(making: Making) -> None:
    with pytest.raises(RunError, match="There is no training that could end"):
        Watch(making.run).wish_to_stop()
    assert not making.place.exists()
    making.run.mkdir()
    (making.run / "run.json").write_text("{}")
    with pytest.raises(RunError, match="There is no training"):
        Watch(making.run).wish_to_stop()
    assert list(making.run.iterdir()) == [making.run / "run.json"]


def test_a_run_is_finished_when_nothing_unfinished_lies_beside_it(making: Making) -> None:
    watch = Watch(making.run)
    making.begin().rounds(1).run.mkdir()
    (making.run / "run.json").write_text("{}")
    assert watch.finished is None  # an older one, that is made anew
    (making.place / "session.json").unlink()
    assert watch.finished == making.run


def test_a_long_silence_is_told(making: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    clock = SimpleNamespace(monotonic=lambda: now, strftime=lambda _: "12:00:00")
    monkeypatch.setattr("cofactor.report.underway.time", clock)
    watch = Watch(making.begin().rounds(2).run)
    assert watch.look().silent == 0
    now += 59
    assert watch.look().silent == 0
    now += 130
    assert "No sign of life for 3 min." in words(watch.look())
    making.asked(3)
    assert watch.look().silent == 0


def test_a_page_that_does_not_change_says_how_to_watch(making: Making) -> None:
    page = underway_page(Watch(making.begin().rounds(5).run).look())
    assert "cofactor report RUN --live" in page
    assert "Round 5 of 20" in page


def test_a_training_that_was_killed_is_interrupted_and_one_that_lives_is_not(making: Making) -> None:
    watch = Watch(making.begin().rounds(5).run)
    (making.place / "session.lock").touch()
    with alone_in(making.place):
        assert live_state(watch.look())[0] == "training"
    found = watch.look()
    assert live_state(found)[0] == "interrupted"
    assert "add --resume to its command" in words(found)
    assert "left." not in words(found)
    assert not found.stoppable
    with alone_in(making.place):
        assert live_state(watch.look())[0] == "training", "it was taken up again"
    making.rounds(20, first=6)
    assert live_state(watch.look())[0] == "finishing", "the run is being written, by somebody else"


def test_a_budget_that_is_gone_before_the_last_round_is_a_state(making: Making) -> None:
    making.begin().rounds(3)
    making.round(4, epsilon=4.0)
    assert live_state(Watch(making.run).look()) == ("budget reached", "doubt")


@pytest.mark.parametrize(
    "name", ["events.jsonl", "transcript.jsonl", "outcome.json", "waiting", "session.lock"]
)
def test_nobody_waits_for_a_pipe_in_place_of_a_file(name: str, making: Making) -> None:
    making.begin().rounds(2)
    (making.place / name).unlink(missing_ok=True)
    os.mkfifo(making.place / name)
    assert Watch(making.run).look().parties == PARTIES
