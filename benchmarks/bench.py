"""What every benchmark shares: rows, CPU time, and peers that live in environments of their own."""

import json
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
CACHE = FOLDER.parent / ".bench"
"""Peer environments and generated data: kept between runs, never committed."""


@dataclass(frozen=True)
class Row:
    """One comparison; `ratio` is above 1 where ours is better."""

    name: str
    ours: float
    peer: float
    peer_name: str
    ratio: float
    unit: str


def faster(name: str, *, ours: float, peer: float, peer_name: str, unit: str = "CPU s") -> Row:
    """Compare two times."""
    return Row(name, ours, peer, peer_name, peer / ours, unit)


def cpu_best(call: Callable[[], object], repeats: int) -> float:
    """Return the least CPU time of several calls; machines are noisy, the least is the most honest."""
    return min(_timed(call, time.process_time) for _ in range(repeats))


def wall_best(call: Callable[[], object], repeats: int) -> float:
    """Return the least wall time of several calls."""
    return min(_timed(call, time.perf_counter) for _ in range(repeats))


def _timed(call: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    call()
    return clock() - start


def ask_peer(peer: str, requirements: list[str], script: str, *arguments: object) -> dict[str, Any]:
    """Run benchmarks/peers/SCRIPT in the peer's environment; it prints one JSON object as its last line."""
    python = _environment(peer, requirements)
    command = [str(python), str(FOLDER / "peers" / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_one_thread())
    if done.returncode != 0:
        raise RuntimeError(f"peer {peer} failed:\n{done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def _one_thread() -> dict[str, str]:
    import os

    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    return os.environ | dict.fromkeys((*names, "POLARS_MAX_THREADS"), "1")


def _environment(peer: str, requirements: list[str]) -> Path:
    """Make the peer's environment once; a file that lists its requirements marks it as complete."""
    folder = CACHE / "peers" / peer
    python, mark = folder / "bin" / "python", folder / "requirements.txt"
    if not mark.exists() or mark.read_text().split() != requirements:
        print(f"installing {', '.join(requirements)} ...", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *requirements], check=True)
        mark.write_text("\n".join(requirements))
    return python
