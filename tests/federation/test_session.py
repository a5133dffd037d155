"""One training, however often it is interrupted; and only one at a time."""

import fcntl
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from cofactor.errors import RunError
from cofactor.federation.host import write_bytes
from cofactor.federation.session import alone_in, begun, tell, terms_of, told_before
from cofactor.federation.transcript import Transcript
from cofactor.progress import Progress
from tests.federation.making import BUDGET, ItemSums, horizontal

TERMS: dict[str, Any] = {"seed": 3, "split": "horizontal"}


def test_session_is_begun_and_taken_up_again(tmp_path: Path) -> None:
    first = begun(tmp_path, TERMS, ItemSums.messages)
    again = begun(tmp_path, dict(TERMS), ItemSums.messages)
    assert first.name == again.name == first.transcript.session == again.transcript.session
    assert first.folder == tmp_path
    assert begun(None, TERMS, ()).name != begun(None, TERMS, ()).name


def test_crash_before_the_transcript_is_begun_can_be_mended(tmp_path: Path) -> None:
    first = begun(tmp_path, TERMS, ())
    (tmp_path / "transcript.jsonl").unlink()
    assert begun(tmp_path, TERMS, ()).transcript.session == first.name


def test_transcript_that_was_removed_after_the_first_answer_is_missed(tmp_path: Path) -> None:
    begun(tmp_path, TERMS, ())
    (tmp_path / "transcript.jsonl").unlink()
    (tmp_path / "north.npz").write_bytes(b"")
    with pytest.raises(RunError, match=r"transcript\.jsonl"):
        begun(tmp_path, TERMS, ())


def test_torn_line_of_the_transcript_is_dropped(tmp_path: Path) -> None:
    session = begun(tmp_path, TERMS, ())
    session.transcript.note(b"x", round=1, sender="a", receivers=["b"], kind="K", protection="noise")
    lines = tmp_path / "transcript.jsonl"
    lines.write_bytes(lines.read_bytes()[:-5])
    assert not begun(tmp_path, TERMS, ()).transcript.sent
    assert Transcript.open(lines).count == 1


def test_torn_line_of_progress_is_left_out_wherever_it_stands(tmp_path: Path) -> None:
    before, after = Progress("round", 1, 2), Progress("round", 2, 2)
    tell(tmp_path, before)
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(b'{"stage": "rou\xff\n')
    tell(tmp_path, after)
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(b'{"stage"')
    assert told_before(tmp_path) == [before, after]


def test_what_differs_is_named(tmp_path: Path) -> None:
    begun(tmp_path, TERMS, ())
    with pytest.raises(RunError, match="that differs in seed and split"):
        begun(tmp_path, {"seed": 4, "split": "vertical"}, ())


@pytest.mark.parametrize("damage", [b"", b"[]", b"{", b'{"name": "x"}', b'{"name": "x", "terms": 3}'])
def test_damaged_session_is_named(damage: bytes, tmp_path: Path) -> None:
    write_bytes(tmp_path / "session.json", damage)
    with pytest.raises(RunError, match=r"session\.json: cannot be read"):
        begun(tmp_path, TERMS, ())


def test_terms_tell_ratings_apart_without_telling_them() -> None:
    def terms(seed: int) -> dict[str, Any]:
        return terms_of(ItemSums(), BUDGET, horizontal(2, seed=seed), 0)

    assert terms(1) == terms(1)
    assert terms(1)["parties"] != terms(2)["parties"]
    assert json.loads(json.dumps(terms(1))) == terms(1)


def test_folder_is_made_and_can_be_used_again(tmp_path: Path) -> None:
    for _ in range(2):
        with alone_in(tmp_path / "deep" / "run"):
            assert (tmp_path / "deep" / "run").is_dir()
    with alone_in(None):
        pass


def test_whoever_looks_for_a_moment_whether_somebody_trains_keeps_nobody_out(tmp_path: Path) -> None:
    (tmp_path / "session.lock").touch()
    with (tmp_path / "session.lock").open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        threading.Timer(0.07, fcntl.flock, (looking, fcntl.LOCK_UN)).start()
        with alone_in(tmp_path):  # it would be refused
            assert looking.readable()


def test_second_process_is_kept_out(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys\n"
        "from cofactor.errors import RunError\n"
        "from cofactor.federation.session import alone_in\n"
        "try:\n"
        "    with alone_in(pathlib.Path(sys.argv[1])): print('alone')\n"
        "except RunError as error: print(error)\n"
    )

    def other() -> str:
        command = [sys.executable, "-c", code, str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    with alone_in(tmp_path):
        assert "another process is training here" in other()
