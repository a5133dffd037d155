"""Lower bounds that canaries prove for everything private in the box, beside what it promises.

    python -m benchmarks.audit_table [WORD ...] [epsilons=1,8] [seed=1]

Delta is 1e-6, confidence 0.95, and the coordinator looks. Words choose rows by what their names hold.
"proved" is a lower bound without any assumption about the noise; mu is that of Gaussian differential privacy,
which is the fairer measure where noise is normal or nearly so. A p-value says how likely so many right
guesses are at most, if the promise is kept: up to 0.05 it is an alarm. None of the rows should be one, but
chance may make one of a survey, whose answers say exactly as much as epsilon allows: for 1 seed in 20 at
most, each. Noise repeats with the seed, and so does the table. CPU seconds are those of all runs of a row.
All rows go into audit_table.json.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.audit_targets import Case, cases
from benchmarks.bench import FOLDER
from cofactor.attacks.auditing import audited
from cofactor.federation.door import COORDINATOR
from cofactor.randomness import InsecureRandom

RESULTS = FOLDER / "audit_table.json"
EPSILONS = (1.0, 8.0)
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Row:
    """What canaries proved of one thing at one epsilon."""

    name: str
    epsilon: float
    epsilon_promised: float | None
    epsilon_proved: float
    mu_promised: float
    mu_proved: float
    canaries: int
    guesses: int
    right: int
    p_value: float
    alarm: bool
    seconds: float


def main() -> None:
    words = [word for word in sys.argv[1:] if "=" not in word]
    said = dict(word.split("=") for word in sys.argv[1:] if "=" in word)
    epsilons = [float(each) for each in said["epsilons"].split(",")] if "epsilons" in said else EPSILONS
    wanted = [case for case in cases() if not words or any(word in case.name for word in words)]
    print(_HEAD, flush=True)
    rows = []
    for case in wanted:
        for epsilon in epsilons:
            rows.append(audited_row(case, epsilon, int(said.get("seed", 1))))
            print(told(rows[-1]), flush=True)
    keep(rows, RESULTS)
    above = [row for row in rows if row.alarm]
    print(f"\n{len(rows)} audits, {len(above)} above the claim, {sum(row.seconds for row in rows):.0f} CPU s")


def audited_row(case: Case, epsilon: float, seed: int) -> Row:
    """Audit one thing at one epsilon."""
    start, target = time.process_time(), case.target(epsilon)
    found = audited(
        target,
        seen_by=COORDINATOR,
        repeats=case.repeats,
        confidence=CONFIDENCE,
        random=InsecureRandom(seed),
    )
    figures: dict[str, Any] = dict(found.figures)
    return Row(
        name=case.name,
        epsilon=epsilon,
        epsilon_promised=figures["epsilon promised"],
        epsilon_proved=figures["epsilon proved at least"],
        mu_promised=figures["mu promised"],
        mu_proved=figures["mu proved at least"],
        canaries=figures["canaries"],
        guesses=figures["guesses"],
        right=figures["right guesses"],
        p_value=figures["p-value of the promise"],
        alarm=found.alarm,
        seconds=round(time.process_time() - start, 2),
    )


_HEAD = (
    "| | epsilon proved / promised | mu proved / promised | canaries | right | p-value | | CPU s |\n"
    "|---|---|---|---|---|---|---|---|"
)


def told(row: Row) -> str:
    """Return a row of the table."""
    promised = "?" if row.epsilon_promised is None else f"{row.epsilon_promised:.2f}"
    return (
        f"| {row.name} | {row.epsilon_proved:.2f} / {promised} | {row.mu_proved:.2f} / {row.mu_promised:.2f} "
        f"| {row.canaries:,} | {row.right} of {row.guesses} | {row.p_value:.2g} "
        f"| {'ALARM' if row.alarm else 'consistent'} | {row.seconds:.1f} |"
    )


def keep(rows: Sequence[Any], path: Path) -> None:
    """Write rows; those of an earlier, partial run stay that are about something else."""
    old = json.loads(path.read_text()) if path.exists() else []
    new = [asdict(row) for row in rows]
    found = {_about(row) for row in new}
    kept = [row for row in old if _about(row) not in found]
    path.write_text(json.dumps(kept + new, indent=1) + "\n")


def _about(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["name"], row["epsilon"], row.get("bug")


if __name__ == "__main__":
    main()
