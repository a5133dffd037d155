import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from cofactor.errors import RunError
from cofactor.report.exchange import PARTIES, read_transcript
from cofactor.report.folder import Folder, together_releases
from tests.report import making


def test_a_folder_is_read_as_it_was_written(small_run: Path) -> None:
    folder, facts = Folder.read(small_run), json.loads((small_run / "run.json").read_text())
    assert folder.kind == "training"
    assert len(folder.parties) == making.PARTIES
    assert len(folder.rounds()) == facts["together"]["rounds"]
    assert sum(each.count for each in folder.releases) == facts["guarantee"]["releases"]


def test_messages_that_are_alike_are_counted_together(small_run: Path) -> None:
    folder = Folder.read(small_run)
    vectors = next(each for each in folder.exchanges if each.kind == "Vectors")
    assert (vectors.sender, vectors.receiver, vectors.protection) == (PARTIES, "coordinator", "noise")
    assert vectors.messages == making.PARTIES * making.ROUNDS
    assert set(folder.last_heard.values()) == {(folder.together or {})["rounds"]}


def test_releases_that_are_alike_are_told_together(small_run: Path) -> None:
    groups = {
        each.what: (rounds, parties)
        for each, rounds, parties, _ in together_releases(Folder.read(small_run).releases)
    }
    steps = next(value for name, value in groups.items() if "mean" not in name)
    assert steps == (list(range(2, making.ROUNDS + 2)), making.PARTIES)


def test_only_releases_of_this_run_are_shown(small_run: Path, tmp_path: Path) -> None:
    copy = making.changed(small_run, tmp_path / "copy")
    path = next((copy / "ledgers").iterdir())
    other = json.dumps({**json.loads(path.read_text().splitlines()[1]), "run": "another"})
    path.write_text(path.read_text() + other + "\n")
    assert len(Folder.read(copy).releases) == len(Folder.read(small_run).releases)


def test_a_line_that_is_not_complete_is_passed_over(small_run: Path, tmp_path: Path) -> None:
    copy = making.changed(small_run, tmp_path / "copy")
    for name in ("events.jsonl", "transcript.jsonl"):
        with (copy / name).open("a") as file:
            file.write('{"stage": "rou')
    assert len(Folder.read(copy).events) == len(Folder.read(small_run).events)
    assert Folder.read(copy).exchanges == Folder.read(small_run).exchanges


def test_a_role_that_holds_no_ratings_is_not_a_party(tmp_path: Path) -> None:
    line = {"round": 1, "bytes": 5, "kind": "A", "protection": "public", "receiver": "coordinator"}
    file = tmp_path / "transcript.jsonl"
    file.write_text(
        "{}\n" + "".join(json.dumps({**line, "sender": who}) + "\n" for who in ("north", "items"))
    )
    exchanges, _ = read_transcript(file, frozenset({"north"}))
    assert [each.sender for each in exchanges] == [PARTIES, "items"]


def test_of_each_message_is_known_what_had_been_sent_before(tmp_path: Path) -> None:
    sent = [("coordinator", "first"), ("north", "noise"), ("coordinator", "second"), ("north", "nothing")]
    lines = [
        {"round": 1, "bytes": 5, "kind": "A", "protection": how, "receiver": "-", "sender": who}
        for who, how in [*sent, ("coordinator", "second")]
    ]
    file = tmp_path / "transcript.jsonl"
    file.write_text("{}\n" + "".join(json.dumps(line) + "\n" for line in lines))
    found, _ = read_transcript(file, frozenset({"north"}))
    assert [(each.protection, sorted(each.after)) for each in found] == [
        ("first", []),
        ("noise", []),
        ("second", ["noise", "nothing"]),
        ("nothing", ["noise"]),
    ]


def damage(name: str, value: Any) -> Any:
    def change(facts: dict[str, Any]) -> dict[str, Any]:
        *way, last = name.split(".")
        at = facts
        for step in way:
            at = at[step]
        if value is ...:
            del at[last]
        else:
            at[last] = value
        return facts

    return change


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("guarantee", ...),
        ("guarantee", 3),
        ("recipe", []),
        ("data", ...),
        ("format", "x"),
        ("format", ...),
        ("together.surveys", math.nan),
    ],
)
def test_a_damaged_folder_is_refused_with_its_name(
    small_run: Path, tmp_path: Path, name: str, value: Any
) -> None:
    copy = making.changed(small_run, tmp_path / "copy", damage(name, value))
    with pytest.raises(RunError, match=r"copy: the run folder is damaged \(.*\). Restore it"):
        Folder.read(copy)


@pytest.mark.parametrize("name", ["run.json", "events.jsonl", "transcript.jsonl", "ledgers/party-1.ledger"])
def test_a_file_that_is_no_json_is_refused(small_run: Path, tmp_path: Path, name: str) -> None:
    copy = making.changed(small_run, tmp_path / "copy")
    assert (copy / name).exists()
    (copy / name).write_bytes(b"\xff\xfe{]\n\x00{{\n")
    with pytest.raises(RunError, match="the run folder is damaged"):
        Folder.read(copy)


@pytest.mark.parametrize("name", ["events.jsonl", "transcript.jsonl", "ledgers/party-1.ledger"])
def test_nobody_waits_for_a_pipe_in_place_of_a_file(small_run: Path, tmp_path: Path, name: str) -> None:
    copy = making.changed(small_run, tmp_path / "copy")
    (copy / name).unlink()
    without = Folder.read(copy)
    os.mkfifo(copy / name)
    assert Folder.read(copy) == without


def test_a_pipe_in_place_of_an_audit_is_refused(small_run: Path, tmp_path: Path) -> None:
    copy = making.changed(small_run, tmp_path / "copy")
    (copy / "audits").mkdir()
    os.mkfifo(copy / "audits" / "canaries-1.json")
    with pytest.raises(RunError, match=r"damaged \(audits/canaries-1\.json: TypeError: it is no file\)"):
        Folder.read(copy)


def test_what_is_no_run_folder_says_how_one_is_made(tmp_path: Path) -> None:
    with pytest.raises(
        RunError, match=r"is not a run folder: it has no run\.json\. Make one with 'cofactor train'"
    ):
        Folder.read(tmp_path)


def test_a_newer_folder_asks_for_a_newer_cofactor(small_run: Path, tmp_path: Path) -> None:
    copy = making.changed(small_run, tmp_path / "copy", damage("format", 99))
    with pytest.raises(RunError, match=r"newer cofactor \(format 99\). Upgrade cofactor"):
        Folder.read(copy)
