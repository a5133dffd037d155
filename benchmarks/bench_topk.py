"""Top-10 unseen items for every user, against implicit's top-k: same arrays, one thread each."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench import CACHE, FOLDER, Row, ask_peer, cpu_best, faster
from cofactor.factors.topk import top_items

USERS, ITEMS, FACTORS = 8_192, 10_677, 20
"""The shape of ML-10M with a sample of its 69,878 users."""
REPEATS = 5


def rows() -> list[Row]:
    path = _data()
    ours = _ask_ours(path)
    peer = ask_peer("implicit", ["implicit>=0.7,<0.8"], "implicit_topk.py", path, 10, REPEATS)
    assert ours["items"] == peer["items"], "ours and implicit disagree about the best items"
    scale = 69_878 / USERS
    return [
        faster(
            "top-10 for all users, ml-10m shape",
            ours=ours["seconds"] * scale,
            peer=peer["seconds"] * scale,
            peer_name="implicit 0.7",
        )
    ]


def _data() -> Path:
    """Write vectors and what each user has seen: 143 items on average, as in ML-10M."""
    random = np.random.default_rng(7)
    sizes = np.clip(random.lognormal(4.4, 1.0, USERS), 20, 2_000).astype(np.int64)
    seen = [np.sort(random.choice(ITEMS, size, replace=False)) for size in sizes]
    path = CACHE / "topk.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(
        path,
        user_vectors=random.normal(size=(USERS, FACTORS)).astype(np.float32),
        item_vectors=random.normal(size=(ITEMS, FACTORS)).astype(np.float32),
        seen_ptr=np.concatenate([[0], np.cumsum(sizes)]),
        seen_index=np.concatenate(seen).astype(np.int32),
    )
    return path


def _ask_ours(path: Path) -> dict[str, Any]:
    """Time ours in a process of its own, because BLAS reads its number of threads only when it starts."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.bench_topk", str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment, cwd=FOLDER.parent
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _time_ours(path: str) -> None:
    data = dict(np.load(path))
    no_bias = np.zeros(len(data["item_vectors"]), np.float32)

    def call() -> np.ndarray:
        return top_items(
            data["user_vectors"], data["item_vectors"], no_bias, data["seen_ptr"], data["seen_index"], 10
        )[0]

    items = call()
    print(json.dumps({"seconds": cpu_best(call, REPEATS), "items": items[:100].tolist()}))


if __name__ == "__main__":
    _time_ours(sys.argv[1])
