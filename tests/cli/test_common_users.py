"""Training on users in common: options, what is said, and that later commands find the same users again."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

Command = Any
BOOKS, FILMS = range(20), range(5, 30)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, users in (("books", BOOKS), ("films", FILMS), ("music", range(3, 25))):
        spelled = str.upper if name == "films" else str
        rows = [
            f"{spelled(f'u{user}')},{name}{item},{(user + item) % 5 + 1}"
            for user in users
            for item in range(6)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(["user,item,rating", *rows]))
    return tmp_path


def typed(text: str) -> list[str]:
    return text.split()


def words(text: str) -> list[str]:
    return typed(
        f"train books.csv films.csv --split vertical --epsilon 4 --scale 1:5 {text} --recipe vertical-mf"
    )


def test_only_users_whom_all_parties_have_are_trained_on(cofactor: Command, files: Path) -> None:
    done = cofactor(*words("--rounds 2 --align psi --id-rule folded --test-fraction 0.2 --out runs/a"))
    assert done.code == 0, done.err
    assert "15 users are common to books, films." in done.err
    assert "books: 5 of its users are not, and stay out (LOCAL)." in done.err
    assert "films: 10 of its users are not, and stay out (LOCAL)." in done.err
    assert "by 15 users" in done.out
    facts = json.loads(Path("runs/a/run.json").read_text())
    told = facts["together"]["alignment"]
    assert (told["how"], told["rule"], told["users"], told["common"]) == ("psi", "folded", [20, 25], 15)
    assert any("not differentially private" in each for each in facts["guarantee"]["does_not_cover"])
    assert cofactor("verify", "runs/a").code == 0
    again = cofactor("compare", "runs/a", "books.csv", "films.csv", "--test-fraction", 0.2, "--json")
    assert again.code == 0, again.err
    assert again.json["scores"]["private"]["mse"] == pytest.approx(facts["scores"]["private"]["mse"])


def test_an_earlier_run_says_how_users_are_found(cofactor: Command, files: Path) -> None:
    three = "train books.csv music.csv films.csv"
    how = "--split vertical --align psi --among chain --id-rule folded --scale 1:5"
    done = cofactor(*typed(f"{three} {how} --recipe vertical-mf --not-private --rounds 1 --out runs/a"))
    assert done.code == 0, done.err
    again = cofactor(*typed(f"{three} --from runs/a --out runs/b"))
    assert again.code == 0, again.err
    first, second = (json.loads(Path(f"runs/{name}/run.json").read_text()) for name in "ab")
    assert first["together"]["alignment"] == second["together"]["alignment"]
    assert first["together"]["alignment"]["among"] == "chain"
    assert first["data"]["users"] == 15


def test_quiet_and_json_say_nothing_beside(cofactor: Command, files: Path) -> None:
    done = cofactor(*words("--rounds 1 --align psi --id-rule folded --quiet --out runs/a"))
    assert done.code == 0
    assert "LOCAL" not in done.err


@pytest.mark.parametrize(
    ("command", "match"),
    [
        (words("--align psi"), 'books and films have no user in common.*"folded"'),
        (words("--align both"), "align must be one of union, psi"),
        (words("--align psi --among ring"), "among must be one of leader, chain"),
        (words("--align psi --id-rule lower"), "id-rule must be one of exact, folded"),
        (words("--id-rule folded"), "add --align psi"),
        (words("--among chain --align union"), "add --align psi"),
        (
            typed("train books.csv films.csv --split horizontal --epsilon 1 --align psi"),
            "--split vertical and several files",
        ),
        (
            typed("train books.csv --parties 2 --split vertical --epsilon 1 --align psi"),
            "--split vertical and several files",
        ),
    ],
)
def test_mistakes_are_explained_before_anything_is_trained(
    cofactor: Command, files: Path, command: list[str], match: str
) -> None:
    done = cofactor(*command, "--out", "runs/a")
    assert done.code == 2
    assert re.search(match, done.err.replace("\n", " ")), done.err
    assert not Path("runs/a").exists()
    assert not list(files.glob("*.ledger"))
