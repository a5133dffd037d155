"""A plan folder, read for people: nothing in it is believed to be well-formed."""

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cofactor.errors import DAMAGES, RunError
from cofactor.report.folder import Facts

KNOWN_FORMAT = 1
"""The newest layout of plan.json that this reads; docs/planning.md describes it."""
AXES = ("users", "ratings_each", "rounds", "epsilon")
"""What can be chosen, in the order of a cell's place."""


@dataclass(frozen=True, kw_only=True)
class PlanFolder:
    """Everything that a planner's page is made of."""

    path: Path
    facts: Facts
    """plan.json."""

    @classmethod
    def read(cls, path: Path) -> "PlanFolder":
        """Read a plan folder; refuse what is none, or is damaged."""
        file = path / "plan.json"
        if not file.is_file():
            raise RunError(
                f"{path} is not a plan folder: it has no plan.json. Make one with 'cofactor plan "
                f"--out {path}'."
            )
        try:
            facts = json.loads(file.read_bytes(), parse_constant=_refuse_constant)
            _check(path, facts)
            return cls(path=path, facts=facts)
        except (*DAMAGES, OSError) as error:
            raise unreadable(path, error) from None

    @property
    def cells(self) -> list[Facts]:
        """Everything that can be chosen, the last axis the fastest."""
        found: list[Facts] = self.facts["cells"]
        return found

    @property
    def asked(self) -> Facts:
        """The cell that was asked for."""
        return self.cells[self.facts["asked"]]

    def axis(self, name: str) -> list[Any]:
        """Return the values of an axis."""
        return list(self.facts["axes"][name])

    def training(self, cell: Facts) -> Facts | None:
        """Return what was trained of a cell's shape, if anything was."""
        at = cell["training"]
        return None if at is None else self.facts["trainings"][at]


def unreadable(path: Path, error: BaseException) -> RunError:
    """Say that a plan folder cannot be shown."""
    why = f"{type(error).__name__}: {error}"[:200]
    return RunError(f"{path}: the plan folder is damaged ({why}). Make it again with 'cofactor plan --out'.")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"plan.json holds {name}, which is no number")


def _check(path: Path, facts: Any) -> None:
    if not isinstance(facts, dict):
        raise TypeError("plan.json is no table")
    if facts["format"] > KNOWN_FORMAT:
        raise RunError(
            f"{path} was written by a newer cofactor (format {facts['format']}). Upgrade cofactor."
        )
    if facts["seal"] != _seal(facts):
        raise ValueError("plan.json was changed after it was made")
    count = 1
    for name in AXES:
        count *= len(facts["axes"][name])
    if len(facts["cells"]) != count or not 0 <= facts["asked"] < count:
        raise ValueError(f"plan.json has {len(facts['cells'])} plans, and its axes make {count}")


def _seal(facts: Facts) -> str:
    """Return the hash over everything but itself, as it was made."""
    content = {name: value for name, value in facts.items() if name != "seal"}
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
