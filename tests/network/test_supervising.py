"""What needs no engine: one worker at a time, the two files of a run, and settings that make no sense."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from cofactor.errors import ConfigError, RunError
from cofactor.network.alone import AloneInKit
from cofactor.network.outcomes import OUTCOME, PAUSE, read_outcome, write_outcome
from cofactor.network.supervising import Waiting, supervise

HOLD = """
import sys, time
from pathlib import Path
from cofactor.network.alone import AloneInKit
alone = AloneInKit()
alone.take(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def holding(kit: Path, name: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", HOLD, str(kit), name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_worker_that_outlived_its_job_is_ended_by_the_next(tmp_path: Path) -> None:
    with holding(tmp_path, "nvflare") as old:
        new = AloneInKit(patience=0.2)
        began = time.monotonic()
        new.take(tmp_path)
        assert old.wait(timeout=5) == -9
        assert time.monotonic() - began >= 0.2
        new.give_back()


def test_process_that_is_no_worker_is_left_alone(tmp_path: Path) -> None:
    with holding(tmp_path, "something else") as other:
        with pytest.raises(RunError, match="another worker does not end"):
            AloneInKit(patience=0.1).take(tmp_path)
        assert other.poll() is None
        other.kill()


def test_kit_is_free_once_it_was_given_back(tmp_path: Path) -> None:
    first, second = AloneInKit(), AloneInKit(patience=0.1)
    first.take(tmp_path)
    first.give_back()
    second.take(tmp_path)
    second.give_back()


def test_outcome_is_nothing_until_it_is_written_whole(tmp_path: Path) -> None:
    assert read_outcome(tmp_path) == {}
    (tmp_path / OUTCOME).write_text('{"outcome": "fin')
    assert read_outcome(tmp_path) == {}
    write_outcome(tmp_path, "finished", words="all done")
    assert read_outcome(tmp_path) == {"outcome": "finished", "words": "all done"}


@pytest.mark.parametrize("fewest", [0, 3])
def test_number_of_parties_that_cannot_come_is_refused(fewest: int, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="fewest must lie between 1 and 2, the number of parties"):
        supervise(tmp_path, tmp_path / "run", parties=["north", "south"], fewest=fewest)


def test_waiting_no_time_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="gather must be greater than 0"):
        Waiting(gather=0)


class FakeServer:
    """A server that is lost just after it has said that its first job runs."""

    memory: int = 0

    def __init__(self, kit: Path) -> None:
        self.kit, self.running, self.starts = kit, False, 0

    def start(self) -> None:
        self.running, self.starts = True, self.starts + 1

    def stop(self) -> None:
        self.running = False

    def wait(self) -> None:
        assert self.running


def test_job_of_a_server_that_was_lost_between_two_looks_is_not_watched_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, jobs = FakeServer(tmp_path), list[str]()

    class Submitted:
        def __init__(self, _: Path) -> None:
            assert server.running

        def registered(self) -> dict[str, str]:
            return {"north": "a"} if server.running else {}

        def submit(self, parties: list[str], **_: object) -> str:
            jobs.append(f"job of start {server.starts} with {', '.join(parties)}")
            if len(jobs) == 2:
                write_outcome(tmp_path / "run", "finished")
            return jobs[-1]

        def status(self, _: str) -> str:
            server.running = server.starts > 1
            return "RUNNING"  # what a server that was started again says of jobs that were lost

        def close(self) -> None:
            return

    (tmp_path / "local").mkdir()
    monkeypatch.setattr("cofactor.network.supervising.Submitter", Submitted)
    waiting = Waiting(look=0.01, rest=0.01)
    found = supervise(tmp_path, tmp_path / "run", parties=["north"], fewest=1, server=server, waiting=waiting)  # type: ignore[arg-type]
    assert found == {"outcome": "finished"}
    assert jobs == ["job of start 1 with north", "job of start 2 with north"]


def test_an_engine_that_has_grown_is_paused_and_begun_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, jobs, sizes = FakeServer(tmp_path), list[str](), list[int]()

    class Submitted:
        def __init__(self, _: Path) -> None:
            assert server.running

        def registered(self) -> dict[str, str]:
            return {"north": "a"}

        def submit(self, parties: list[str], **_: object) -> str:
            jobs.append(f"job {len(jobs) + 1} with {', '.join(parties)}")
            server.memory = 1_000
            if len(jobs) == 2:
                write_outcome(tmp_path / "run", "finished")
            return jobs[-1]

        def status(self, _: str) -> str:
            if (tmp_path / "run" / PAUSE).exists():
                write_outcome(tmp_path / "run", "paused")
            else:
                server.memory += 100
                sizes.append(server.memory)
            return "RUNNING"

        def close(self) -> None:
            return

    (tmp_path / "local").mkdir()
    monkeypatch.setattr("cofactor.network.supervising.Submitter", Submitted)
    waiting = Waiting(look=0.01, rest=0.01, growth=250)
    found = supervise(tmp_path, tmp_path / "run", parties=["north"], fewest=1, server=server, waiting=waiting)  # type: ignore[arg-type]
    assert found == {"outcome": "finished"}
    assert jobs == ["job 1 with north", "job 2 with north"]
    assert sizes[:4] == [1_100, 1_200, 1_300, 1_400]
