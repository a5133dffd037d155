"""How surely an audit finds bugs that are planted on purpose, and how often it cries wolf without any.

    python -m benchmarks.audit_power [WORD ...] [repeats=20] [seed=1]

Every row is audited so many times with a bug of `planted_bugs` and as often without, with 1,000 canaries at
most, each time with other canaries present and other noise, by whoever sees what the coordinator sees; the
confidence is 0.95. That ledgers are charged for the same events either way is checked. Words choose rows by
what their names hold. Rows out of reach come last: they are measured, and no bar is set for them.

Honest code raises an alarm with a chance of at most 1 in 20. Trainings stay far below that; surveys, whose
answers say exactly as much as epsilon allows, do not, so that two or three of 20 are no rarity for them:
`falsely_alarmed` counts them over as many surveys as it takes. All rows go into audit_power.json.
"""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from benchmarks.audit_table import CONFIDENCE, keep
from benchmarks.audit_targets import Case, cases
from benchmarks.bench import FOLDER
from benchmarks.planted_bugs import Bug, Faulty, forgotten_clip, honest, little_noise, unsampled_batch
from cofactor.attacks.auditing import audited
from cofactor.federation.door import COORDINATOR
from cofactor.privacy.events import Event
from cofactor.randomness import InsecureRandom

RESULTS = FOLDER / "audit_power.json"
REPEATS = 20
POWER, FALSE_ALARMS = 0.9, 0.05
"""What must be reached: how many of the bugs are found, at least, and how many alarms are false, at most."""
BUGS: dict[str, Bug] = {
    "noise x 0.3": little_noise,
    "forgotten clip": forgotten_clip,
    "unsampled batch": unsampled_batch,
}
_NOISE, _CLIP, _BATCH = BUGS
_NORMAL = ("HorizontalMF", "VerticalMF, ratings", "VerticalMF, users", "CentralDPSGD", "VerticalTaste")
_SKELLAM = ("SharedBiases", "SecureALS", "OnDeviceMF", "MultiViewMF")
_SUMS = ("HorizontalMF, sum", "VerticalMF, ratings, sum", "VerticalTaste, sum")
_PURE = ("HDPMF", "PersonalBiases", "LocalReports", "survey: GRR", "survey: SquareWave")
_CLIPPED = ("HorizontalMF", "HorizontalMF, sum", "CentralDPSGD", *_SKELLAM)
_SAMPLED = ("HorizontalMF, sampled", "VerticalMF, ratings, sampled", "DPSGLD, ratings")


class Trial(NamedTuple):
    """A bug in something, at an epsilon."""

    name: str
    epsilon: float
    bug: str


WITHIN_REACH = (
    *(Trial(name, epsilon, _NOISE) for name in (*_NORMAL, *_SKELLAM, *_SUMS) for epsilon in (1.0, 8.0)),
    *(Trial(name, 1.0, _NOISE) for name in _PURE),
    *(Trial(name, epsilon, _CLIP) for name in _CLIPPED for epsilon in (1.0, 8.0)),
    *(Trial(name, epsilon, _BATCH) for name in _SAMPLED for epsilon in (1.0, 8.0)),
)
"""What an audit with so few canaries must find."""
OUT_OF_REACH = (
    *(Trial(name, 8.0, _NOISE) for name in _PURE),
    Trial("DPSGLD, ratings", 8.0, _NOISE),
    Trial("ProjectedMF", 8.0, _NOISE),
)
"""An epsilon of 8 without delta takes tens of thousands of canaries to refute; and where a bound is far above
all that anybody contributes, much of the noise can be missing before a promise is broken."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """How audits of one thing went, with a bug and without."""

    name: str
    epsilon: float
    bug: str
    canaries: int
    repeats: int
    power: float
    false_alarms: int
    mu_promised: float
    mu_proved: float
    """Half of the audits proved more, with the bug."""
    mu_proved_without: float
    within_reach: bool
    seconds: float

    @property
    def passes(self) -> bool:
        """Whether the bar is met."""
        return self.power >= POWER and self.false_alarms <= FALSE_ALARMS * self.repeats


class Audits(NamedTuple):
    """Several audits of the same thing."""

    figures: list[dict[str, Any]]
    alarms: int
    charged: Counter[Event]


def main() -> None:
    words = [word for word in sys.argv[1:] if "=" not in word]
    said = dict(word.split("=") for word in sys.argv[1:] if "=" in word)
    repeats, seed = int(said.get("repeats", REPEATS)), int(said.get("seed", 1))
    rows: list[Row] = []
    print(_HEAD, flush=True)
    for trials in (WITHIN_REACH, OUT_OF_REACH):
        for name, epsilon in dict.fromkeys((trial.name, trial.epsilon) for trial in trials):
            if not words or any(word in name for word in words):
                bugs = [trial.bug for trial in trials if (trial.name, trial.epsilon) == (name, epsilon)]
                rows += measured(name, epsilon, bugs, repeats, seed, within_reach=trials is WITHIN_REACH)
    keep(rows, RESULTS)
    missed = [row for row in rows if row.within_reach and not row.passes]
    print(f"\n{len(rows)} rows, {len(missed)} of those within reach below the bar")


def measured(
    name: str, epsilon: float, bugs: Sequence[str], repeats: int, seed: int, *, within_reach: bool = True
) -> list[Row]:
    """Audit one thing without a bug and with each of some; print and return the rows."""
    case = next(each for each in cases() if each.name == name)
    start = time.process_time()
    without, rows = audits(case, epsilon, honest, repeats, seed), []
    for bug in bugs:
        found = audits(case, epsilon, BUGS[bug], repeats, seed + repeats)
        if found.charged != without.charged:
            raise RuntimeError(f"{bug} in {name}: what is charged for is not what honest code charges for.")
        rows.append(
            Row(
                name=name,
                epsilon=epsilon,
                bug=bug,
                canaries=found.figures[0]["canaries"],
                repeats=repeats,
                power=found.alarms / repeats,
                false_alarms=without.alarms,
                mu_promised=found.figures[0]["mu promised"],
                mu_proved=_median(found),
                mu_proved_without=_median(without),
                within_reach=within_reach,
                seconds=round(time.process_time() - start, 1),
            )
        )
        print(told(rows[-1]), flush=True)
    return rows


def falsely_alarmed(name: str, epsilon: float, times: int, seed: int) -> int:
    """Return how many of so many audits raise an alarm without a bug."""
    case = next(each for each in cases() if each.name == name)
    return audits(case, epsilon, honest, times, seed).alarms


def audits(case: Case, epsilon: float, bug: Bug, repeats: int, seed: int) -> Audits:
    """Audit something several times, with a bug; what each run is charged for must be the same."""
    target = Faulty(target=case.target(epsilon), bug=bug)
    found = [
        audited(
            target,
            seen_by=COORDINATOR,
            repeats=case.repeats,
            confidence=CONFIDENCE,
            random=InsecureRandom(seed + turn),
        )
        for turn in range(repeats)
    ]
    charged = [Counter(events) for events in target.charged]
    if any(each != charged[0] for each in charged):
        raise RuntimeError(f"{case.name}: two runs were charged for different events.")
    return Audits([dict(each.figures) for each in found], sum(each.alarm for each in found), charged[0])


def _median(found: Audits) -> float:
    return float(median(each["mu proved at least"] for each in found.figures))


_HEAD = (
    "| bug | in | epsilon | canaries | found | false alarms | mu proved / promised | without the bug | |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def told(row: Row) -> str:
    """Return a row of the table."""
    bar = ("passes" if row.passes else "MISSES") if row.within_reach else "out of reach"
    return (
        f"| {row.bug} | {row.name} | {row.epsilon:g} | {row.canaries:,} "
        f"| {round(row.power * row.repeats)} of {row.repeats} | {row.false_alarms} of {row.repeats} "
        f"| {row.mu_proved:.2f} / {row.mu_promised:.2f} | {row.mu_proved_without:.2f} | {bar} |"
    )


if __name__ == "__main__":
    main()
