"""Run every benchmark, or those named: python -m benchmarks [sgd als topk files noise private ...]."""

import json
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from benchmarks.bench import FOLDER, Row

ALL = (
    "files",
    "sgd",
    "als",
    "topk",
    "scale",
    "noise",
    "accounting",
    "private",
    "sums",
    "items",
    "encryption",
    "survey",
    "psi",
    "cluster",
)
RESULTS = FOLDER / "results.json"


def main(names: list[str]) -> None:
    rows: list[Row] = []
    for name in names or ALL:
        for row in import_module(f"benchmarks.bench_{name}").rows():
            show(row)
            rows.append(row)
    keep(rows, RESULTS)


def show(row: Row) -> None:
    figures = f"ours {row.ours:10.4g}   {row.peer_name} {row.peer:10.4g} {row.unit}"
    print(f"{row.name:40s} {figures:55s} ratio {row.ratio:6.2f}", flush=True)


def keep(rows: list[Row], path: Path) -> None:
    """Write the rows; rows of other names from an earlier, partial run stay."""
    old = json.loads(path.read_text()) if path.exists() else []
    new = [asdict(row) for row in rows]
    names = {row.name for row in rows}
    path.write_text(json.dumps([row for row in old if row["name"] not in names] + new, indent=2) + "\n")


main(sys.argv[1:])
