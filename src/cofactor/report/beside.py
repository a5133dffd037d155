"""What a report shows besides the folder: all of it follows from the folder, or is said by whoever asks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Checked:
    """One thing that `cofactor verify` looked at."""

    name: str
    holds: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How the numbers of a survey are spread, reckoned from its tally."""

    edges: tuple[float, ...]
    """Where buckets begin and end."""
    shares: tuple[float, ...]
    """Of people in each bucket."""
    bands: tuple[tuple[float, float], ...] = ()
    """Between which shares the truth lies; none if that is not known."""
    figures: Mapping[str, tuple[float, tuple[float, float] | None]]
    """Means and quantiles by name, each with its interval."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What the reader's organisation allows, by the names of `policy.toml`."""

    source: str
    """What it is called: a file's name."""
    terms: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Errors by how much privacy users ask for: private, so that no run folder holds them."""

    source: str
    """What it was read from: a file's name."""
    rows: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class Beside:
    """All of that; what is left out is not shown."""

    checks: tuple[Checked, ...] | None = None
    """What `verify` found; None if it was not asked."""
    spread: Spread | None = None
    policy: Policy | None = None
    groups: Groups | None = None
    promised: tuple[str, ...] = ()
    """What groups of users were promised, in sentences, where users have weights."""

    again: str | None = None
    """The command that does it again, on files that the reader has to name."""

    @property
    def broken(self) -> tuple[Checked, ...]:
        """What the folder does not bear out."""
        return tuple(each for each in self.checks or () if not each.holds)
