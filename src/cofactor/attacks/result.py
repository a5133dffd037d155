"""`Audit`: what somebody found who tried to break a run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from cofactor.federation.folder import add_audit

Verdict = Literal["succeeded", "resisted", "consistent", "alarm"]
Figure = float | int | str | None
ATTACKS = ("reconstruction", "membership", "canaries", "differencing", "collusion")
"""What can be tried, by name."""
SIMULATION = (
    "SIMULATION: only whoever plays all roles can know these figures. They follow from the data, so where "
    "the data are real they are not for everybody."
)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What an attack found, in numbers that only a simulation can know."""

    attack: str
    """Which attack it was, such as "reconstruction"."""
    seen_by: str
    """Whose view the attacker had; several roles that collude are joined by "+"."""
    verdict: Verdict
    """Whether the attack told more than anybody could have guessed; "consistent" if a proved lower bound
    is not above what was promised, "alarm" if a promise was not kept."""
    headline: str
    """What was found, in one sentence."""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    confidence: float | None = None
    """Probability, at least, that a proved bound is right."""
    notes: tuple[str, ...] = ()
    """What a reader must know to take the figures for what they are."""
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def alarm(self) -> bool:
        """Whether a promise was not kept."""
        return self.verdict == "alarm"

    def as_json(self) -> dict[str, Any]:
        """Return everything, as a run folder keeps it."""
        return {
            "attack": self.attack,
            "seen_by": self.seen_by,
            "verdict": self.verdict,
            "headline": self.headline,
            "figures": {name: _written(value) for name, value in self.figures.items()},
            "confidence": self.confidence,
            "notes": list(self.notes),
            "created": self.created,
        }

    def save(self, folder: str | Path) -> Path:
        """Write it into the folder of the run that it is about; earlier ones stay."""
        who = self.seen_by.replace(":", "-").replace(" ", "-")
        return add_audit(folder, f"{self.attack}-{who}", self.as_json())

    def __str__(self) -> str:
        lines = [f"{name}: {told(value)}" for name, value in self.figures.items()]
        return "\n".join([f"{self.verdict.upper()}. {self.headline}", *lines, *self.notes])


def _written(value: Figure) -> Figure:
    """Return a figure as files have it: what is not finite is none."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def told(value: Figure) -> str:
    """Write a figure for people."""
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
