import re
from pathlib import Path
from typing import Any

import pytest

from cofactor.privacy.events import Bound, Event
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import Laplace

Command = Any
OPEN = ("--epsilon", 2, "--delta", "1e-6", "--unit", "user")


@pytest.fixture
def north(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir()
    path = Path("north.csv")
    path.write_text("user,item,rating\n1,1,5\n")
    return path


def spend(cost: float, count: int, run: str, *, secure: bool = True) -> None:
    bound = Bound(size=3.0, norm="l1", unit="user")
    mechanism = Laplace(noise_multiplier=1 / cost)
    event = Event(
        what="sums",
        by="north",
        to="coordinator",
        mechanism=mechanism,
        bound=bound,
        count=count,
        secure=secure,
    )
    Ledger.open("north.csv.ledger").spend(event, run=run)


def test_budget_is_opened_beside_the_data_and_shown(north: Path, cofactor: Command) -> None:
    done = cofactor("budget", north, *OPEN)
    assert done.code == 0, done.err
    assert Path("north.csv.ledger").exists()
    assert 'epsilon 2, delta 1e-06 for each user, adjacency "empty"' in done.out
    assert "up to 88.1% of the time" in done.out
    assert "Nothing has been released yet" in done.out
    assert Ledger.open("north.csv.ledger").party == "north"


@pytest.mark.parametrize("name", ["north.csv", "north.csv.ledger"])
def test_spending_of_all_runs_is_shown_together_and_each_alone(
    name: str, north: Path, cofactor: Command
) -> None:
    cofactor("budget", north, *OPEN)
    spend(0.1, 3, "first")
    spend(0.25, 2, "second")
    shown = cofactor("budget", name, "--json").json
    assert shown["spent"]["epsilon"] == pytest.approx(0.8, rel=1e-4)
    assert shown["left"] == pytest.approx(1.2, rel=1e-4)
    assert [(run["run"], run["releases"]) for run in shown["runs"]] == [("first", 3), ("second", 2)]
    assert [run["epsilon"] for run in shown["runs"]] == pytest.approx([0.3, 0.5], rel=1e-4)
    assert (shown["data_unchanged"], shown["secure_noise"]) == (True, True)
    assert shown["budget"]["unit"] == "user"
    ledger = Ledger.open("north.csv.ledger")
    assert (shown["count"], shown["head"]) == (ledger.count, ledger.head)
    said = cofactor("budget", name).out
    assert re.search(r"spent +epsilon 0\.8\b", said), said
    assert re.search(r"left +epsilon 1\.2\b", said), said
    assert re.search(r"first .* 3 .*0\.3 .*secure", said), said


def test_budget_is_never_changed(north: Path, cofactor: Command) -> None:
    cofactor("budget", north, *OPEN)
    before = Path("north.csv.ledger").read_bytes()
    done = cofactor("budget", north, "--epsilon", 3, "--delta", "1e-6", "--unit", "user")
    assert done.code == 1
    assert re.search(
        r"Refused: north\.csv\.ledger holds a budget already: epsilon 2.*never changed", done.err
    )
    assert Path("north.csv.ledger").read_bytes() == before


def test_insecure_noise_is_shouted_about(north: Path, cofactor: Command) -> None:
    cofactor("budget", north, *OPEN)
    spend(0.1, 1, "demo", secure=False)
    assert cofactor("budget", north, "--json").json["secure_noise"] is False
    said = cofactor("budget", north).out
    assert "INSECURE" in said
    assert "is not private" in said


def test_renewal_is_stated_wherever_the_budget_is(north: Path, cofactor: Command) -> None:
    done = cofactor("budget", north, *OPEN, "--per", "month")
    assert "renewed every month: over a year twelve times as much may be learned" in done.out
    shown = cofactor("budget", north, "--json").json
    assert (shown["per"], "twelve times" in shown["renewed"]) == ("month", True)
    assert "spent this month" in cofactor("budget", north).out
    assert "spent ever" in cofactor("budget", north).out


def test_changed_data_are_noticed(north: Path, cofactor: Command) -> None:
    cofactor("budget", north, *OPEN)
    north.write_text("user,item,rating\n1,1,4\n")
    assert "has changed since" in cofactor("budget", north).out
    assert cofactor("budget", north, "--json").json["data_unchanged"] is False
    assert "--newer-data" in cofactor("budget", north, "--json").json["warnings"][0]
    assert "has changed since" not in cofactor("budget", north, "--newer-data").out
    assert "has changed since" not in cofactor("budget", north).out
    north.unlink()
    assert cofactor("budget", north, "--json").json["data_unchanged"] is None


def test_entry_cut_off_by_a_crash_is_dropped_when_asked_for(north: Path, cofactor: Command) -> None:
    cofactor("budget", north, *OPEN)
    spend(0.1, 1, "first")
    with Path("north.csv.ledger").open("ab") as file:
        file.write(b'{"event":{"bo')
    refused = cofactor("budget", north)
    assert (refused.code, "--recover" in refused.err) == (2, True)
    assert cofactor("budget", north, "--recover").code == 0
    assert cofactor("budget", north, "--json").json["spent"]["epsilon"] == pytest.approx(0.1, rel=1e-4)


def test_large_epsilon_is_warned_about_without_a_stack_of_words(north: Path, cofactor: Command) -> None:
    done = cofactor("budget", north, "--epsilon", 12, "--delta", "1e-6", "--unit", "user")
    assert "Warning: epsilon 12 is above 10" in done.out
    assert "PrivacyWarning" not in done.err


MISTAKES: list[tuple[str, int, str]] = [
    ("budget north.csv", 2, r"north\.csv has no budget yet.*cofactor budget north\.csv --epsilon 2 --delta"),
    ("budget north.csv.ledger", 2, r"north\.csv has no budget yet"),
    ("budget nosuch.csv", 2, r"nosuch\.csv does not exist"),
    ("budget nort.csv", 2, r'Did you mean "north\.csv"'),
    ("budget nowhere/north.csv", 2, r"nowhere/north\.csv does not exist"),
    ("budget .", 2, r"is no file"),
    ("budget .ledger", 2, r"is no file"),
    ("budget notes", 2, r"notes is no file"),
    ("budget nosuch.csv --epsilon 2 --delta 1e-6 --unit user", 2, r"nosuch\.csv does not exist"),
    ("budget north.csv --epsilon 2", 2, r"missing: --delta, --unit"),
    ("budget north.csv --per month", 2, r"missing: --epsilon, --delta, --unit"),
    (
        "budget north.csv --epsilon -1 --delta 1e-6 --unit user",
        2,
        r"0 or more, got -1",
    ),
    ("budget north.csv --epsilon 0 --delta 1e-6 --unit user", 2, r"epsilon must lie between 1e-6"),
    (
        "budget north.csv --epsilon nan --delta 1e-6 --unit user",
        2,
        r"a finite number, got nan",
    ),
    ("budget north.csv --epsilon 2 --delta 0.5 --unit user", 2, r"delta must be below 0\.01, got 0\.5"),
    ("budget north.csv --epsilon 2 --delta 1e-6 --unit usr", 2, r'unit must be .*Did you mean "user"'),
    (
        "budget north.csv --epsilon 2 --delta 1e-6 --unit user --per week",
        2,
        r"per must be one of month, year",
    ),
    ("budget north.csv --epsilon 2 --delta 1e-6 --unit user --adjacency x", 2, r"adjacency must be one of"),
    ("budget north.csv --epsilon two --delta 1e-6 --unit user", 2, r"'--epsilon'.*(number|float)"),
    ("budget", 2, r"Missing argument"),
]


@pytest.mark.parametrize(("command", "code", "message"), MISTAKES, ids=[words for words, _, _ in MISTAKES])
def test_mistake_gets_one_clear_message(
    command: str, code: int, message: str, north: Path, cofactor: Command
) -> None:
    before = sorted(Path().rglob("*"))
    done = cofactor(*command.split())
    said = re.sub(r"\s+", " ", done.err)
    assert done.code == code, said
    assert re.search(message, said), said
    assert "Traceback" not in said
    assert sorted(Path().rglob("*")) == before, "a mistake must leave nothing behind"


def test_damaged_ledger_is_no_bug(north: Path, cofactor: Command) -> None:
    Path("north.csv.ledger").write_text("hello\n")
    done = cofactor("budget", north, "--json")
    assert (done.code, done.json["error"]["kind"]) == (2, "LedgerError")
