"""What is printed for people: whatever a folder's words are, no terminal obeys them."""

from pathlib import Path

import pytest

from cofactor.cli.text import ProgressLine, print_error, print_facts, print_line, print_table
from cofactor.federation.run import DataFacts, PartyFacts, Run, Together
from cofactor.privacy.guarantee import Guarantee
from cofactor.progress import Progress
from tests.cli.test_recommend_all import MODEL
from tests.conftest import Command
from tests.report import making

HOSTILE = "north\x1b[2K\x1b[1A\x9b2K\r\x08\x07\x7f\u202e\ud800\nEverything is as the folder says."
SEEN = "north?[2K?[1A?2K ????? Everything is as the folder says."
WHY = "no noise was added."


@pytest.fixture
def doctored(tmp_path: Path) -> Path:
    """A run that promises nothing, whose party has a name that would erase the line that says so."""
    together = Together(
        split="horizontal",
        session="s",
        simulated=False,
        budget={"epsilon": 2.0},
        parties={
            "north": PartyFacts(users=9, items=8, ratings=70),
            "south": PartyFacts(users=9, items=8, ratings=70, epsilon=1.0),
        },
        rounds=1,
        traffic=1,
    )
    run = Run(
        model=MODEL,
        recipe={"kind": "SecureALS"},
        seed=0,
        data=DataFacts(users=18, items=8, ratings=140, scale="1 to 5"),
        created="now",
        seconds=1.0,
        guarantee=Guarantee.nothing(WHY),
        homes={"north": MODEL, "south": MODEL},
        together=together,
    )

    def rename(facts: making.Facts) -> None:
        parties = facts["together"]["parties"]
        facts["together"]["parties"] = {HOSTILE: parties.pop("north"), **parties}

    return making.changed(run.save(tmp_path / "run"), tmp_path / "doctored", rename)


def harmless(printed: str) -> bool:
    """Say whether a terminal would only write it."""
    return all(letter.isprintable() or letter == "\n" for letter in printed)


def test_a_party_s_name_cannot_erase_what_show_says(doctored: Path, cofactor: Command) -> None:
    done = cofactor("show", doctored)
    assert done.code == 0, done.err
    assert harmless(done.out)
    assert WHY in done.out
    assert SEEN[:20] in done.out
    assert f"no epsilon is proved for {SEEN[:20]}" in done.out
    assert HOSTILE in cofactor("show", doctored, "--json").json["together"]["parties"]


def test_a_party_s_name_cannot_erase_an_error(doctored: Path, cofactor: Command) -> None:
    homes = doctored / "homes"
    (homes / "north.npz").rename(homes / f"{HOSTILE.replace(chr(0xD800), '')}.npz")
    done = cofactor("recommend", doctored, "--party", "east", "--rate", "1=2")
    assert (done.code, harmless(done.err)) == (2, True)
    assert "there is no party 'east'. There are north?[2K?[1A" in done.err


def test_every_part_of_a_table_is_one_harmless_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table((HOSTILE, "[red]users"), [("a", 1), (HOSTILE, 2)], title=f"of {HOSTILE}")
    print_facts({HOSTILE: HOSTILE, "left_out": None})
    printed = capsys.readouterr().out
    assert harmless(printed)
    assert (printed.count(SEEN), printed.count("[red]users")) == (5, 1)


def test_lines_of_our_own_stay_lines_and_words_of_any_language_stay_as_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_line("one: [bold]\n  Amélie, 七人の侍 🎬\tnext\xa0word")
    assert capsys.readouterr().out == "one: [bold]\n  Amélie, 七人の侍 🎬 next word\n"
    print_error("DataError", "one\ntwo \x1b[2K", as_json=True)
    printed = capsys.readouterr()
    assert printed.err == "DataError: one\ntwo ?[2K\n"
    assert "\\u001b[2K" in printed.out


def test_progress_is_one_harmless_line(capsys: pytest.CaptureFixture[str]) -> None:
    ProgressLine()(Progress("round", 1, 1, HOSTILE))
    assert capsys.readouterr().err == f"round 1/1  {SEEN}\n"
