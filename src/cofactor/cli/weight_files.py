"""Where weights come from: files, or chance. Errors name files and counts, never somebody and a weight."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cofactor.cli.promises import ranged
from cofactor.errors import ConfigError, DataError

if TYPE_CHECKING:
    from cofactor.privacy.weights import Group, Weights

DRAWN = "hdpmf"
"""Instead of a file: draw weights as the paper's Table 2 says."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where weights come from, and whom it knows."""

    name: str
    whose: str
    """"users" or "items"."""
    weights: "Weights"
    stated: "Callable[[Any], Any]"
    """What it says of an id; nothing of those whom it leaves out."""
    complete: bool
    """Whether something is said of those whom it leaves out."""

    @property
    def drawn(self) -> bool:
        """Whether it is a simulation."""
        return self.name == DRAWN

    def missing(self, ids: Any) -> int:
        """Return of how many ids it says nothing."""
        return sum(self.stated(one) is None for one in np.asarray(ids).tolist())

    def check(self, ids: Any) -> None:
        """Refuse a source of other ids, or one that leaves some out of whom nothing is said."""
        missing, count = self.missing(ids), len(ids)
        if missing == count:
            raise DataError(
                f"{self.name} has a weight for none of these {count:,} {self.whose}. Are its ids the same?"
            )
        if missing and not self.complete:
            raise DataError(
                f"{self.name} has no weight for {missing:,} of {count:,} {self.whose}. Add them, or say "
                "what all others have: --other-weights 0.1."
            )

    def lines(self, ids: Any) -> list[str]:
        """Say what it is, what is public of it, and how many of the ids it leaves out."""
        missing = self.missing(ids)
        left_out = f"{missing:,} of {len(ids):,} {self.whose} are not in it: they have --other-weights."
        strange = int((self.weights.groups_of(ids) == -1).sum()) if self.weights.groups else 0
        apart = f"{strange:,} of {len(ids):,} {self.whose} have weights that lie in none of these groups."
        return [self._line(), *([left_out] if missing else []), *([apart] if strange else [])]

    def _line(self) -> str:
        groups = ", ".join(f"{each.name} {ranged(each.low, each.high)}" for each in self.weights.groups)
        if self.drawn:
            return (
                f"Weights of {self.whose} are drawn by the seed, as HDPMF's Table 2 says ({groups}): a "
                "simulation. Whoever knows the seed can draw them again."
            )
        if self.whose == "items":
            return f"Weights of items from {self.name} are public: everybody who rates must know them."
        return (
            f"Weights of users from {self.name} are private: they stay with their party, and no run folder "
            f"holds any. Public are the groups ({groups}), and that weights are about "
            f"{self.weights.expected:.2g} on average. Who only names a group has its least weight."
        )


@dataclass(frozen=True, kw_only=True)
class Reader:
    """How sources of weights are read."""

    otherwise: float | str | None
    expected: float | None
    seed: int

    def source(self, name: str, whose: str, groups: "tuple[Group, ...]") -> Source:
        """Read a file, or draw."""
        if name == DRAWN:
            from cofactor.privacy.personal import PersonalBudget

            drawn = getattr(PersonalBudget.as_published(seed=self.seed), whose)
            return Source(name=name, whose=whose, weights=drawn, stated=drawn.look_up, complete=True)
        return self._file(name, whose, groups)

    def _file(self, name: str, whose: str, groups: "tuple[Group, ...]") -> Source:
        from cofactor.data.tables import read_items, read_users
        from cofactor.federation.weights import read_weights
        from cofactor.privacy.weights import Weights

        others = self._others(whose, groups)
        found = read_weights(name, of=whose, groups=groups)
        table = (read_users if whose == "users" else read_items)(name)
        ids = [one for one in table.ids.tolist() if found.look_up(one) is not None]
        if not ids:
            raise DataError(f"{name} holds no weights: all cells are empty.")
        try:
            known = found.of(ids)
        except DataError as error:
            raise DataError(f"{name}: {error}") from None
        # Of items everybody knows all weights; of users nothing may be read off them.
        expected = self.expected if whose == "users" else float(known.mean())
        return Source(
            name=name,
            whose=whose,
            weights=Weights.by(found.look_up, groups=groups, expected=expected, otherwise=others),
            stated=found.look_up,
            complete=others is not None,
        )

    def _others(self, whose: str, groups: "tuple[Group, ...]") -> float | str | None:
        """Return the weight of those whom a file leaves out; groups that are named are those of users."""
        from cofactor.privacy.weights import Weights

        if self.otherwise is None or (whose == "items" and isinstance(self.otherwise, str)):
            return None
        try:
            Weights.by({}, groups=groups, otherwise=self.otherwise).of(["anybody"])
        except DataError as error:
            raise ConfigError(f"--other-weights: {error}") from None
        return self.otherwise
