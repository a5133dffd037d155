"""What came out of a sweep: one table for people, one object for programs."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from cofactor.cli.mlflow_log import Logged
from cofactor.cli.sweep_folder import TABLES, SweepFolder
from cofactor.cli.text import YELLOW, print_line, print_table
from cofactor.figures import lasting, rounded_up

CAVEAT = (
    "these errors are measured with the file's own ratings, and no noise hides them. Whoever chooses a run "
    "by them makes a choice from private data that no guarantee covers, not even that of the run that is "
    "chosen. Choose settings on public or made-up ratings, or keep the table and the choice to yourself."
)
_BESIDE = ("user_mean", "alone", "pooled", "popularity")
"""What is shown beside a run's own errors."""
Rows = Sequence[Mapping[str, Any]]


def sweep_as_object(folder: SweepFolder, rows: Rows, logged: Sequence[Logged] | None) -> dict[str, Any]:
    """Return what programs are told."""
    told: dict[str, Any] = {
        "sweep": str(folder.path),
        "tables": [str(folder.path / name) for name in TABLES],
        "runs": [dict(row) for row in rows],
        "warnings": [CAVEAT],
    }
    return told if logged is None else told | {"mlflow": [vars(each) for each in logged]}


def print_sweep(folder: SweepFolder, rows: Rows, logged: Sequence[Logged] | None) -> None:
    """Print a row for each run, where the table is, and what must not be done with it."""
    measure = "rmse" if any("own_rmse" in row for row in rows) else "ndcg_over_unseen"
    beside = [name for name in _BESIDE if any(row.get(f"{name}_{measure}") is not None for row in rows)]
    heads = ("epsilon", "seed", "proved", "promise", measure, "95% interval", *beside, "rounds", "time")
    print_table(heads, [_row(row, measure, beside) for row in rows])
    if logged is not None:
        sent = sum(each.sent for each in logged)
        print_line(f"Logged to MLflow: {sent:,} runs; {len(logged) - sent:,} were there already.")
    print_line(f"Warning: {CAVEAT}", YELLOW)
    print_line(
        "A simulation: no ledger was charged. Parties with files of their own are trained once, by train."
    )
    print_line(f"Saved in {folder.path}, and as a table in {' and '.join(TABLES)} there.")
    print_line(f"Next: {shlex.join(['cofactor', 'report', str(folder.path)])}")


def _row(row: Mapping[str, Any], measure: str, beside: Sequence[str]) -> tuple[object, ...]:
    low, high = row.get(f"own_{measure}_low"), row.get(f"own_{measure}_high")
    return (
        "none" if row["epsilon"] is None else f"{row['epsilon']:g}",
        row["seed"],
        "-" if row["epsilon_proved"] is None else rounded_up(row["epsilon_proved"]),
        "holds" if row["holds"] else "NOT PRIVATE" if row["epsilon_proved"] is None else "does not hold",
        _number(row.get(f"own_{measure}")),
        "" if low is None or high is None else f"{low:.4f} to {high:.4f}",
        *(_number(row.get(f"{name}_{measure}")) for name in beside),
        row["rounds"],
        lasting(row["seconds"]),
    )


def _number(value: float | None) -> float | str:
    return "-" if value is None else value
