"""What an audit is given beside a run: parties' files for canaries, candidates' ratings for membership."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cofactor.cli.common_users import checked_alignment
from cofactor.cli.parties import Gathering, Reading, checked_split
from cofactor.cli.settings import FederationWish, federation_of, scale_of
from cofactor.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from cofactor.data.duplicates import Duplicates
    from cofactor.data.ratings import Ratings
    from cofactor.federation.federation import Federation

CANARIES, MEMBERSHIP = "canaries", "membership"


def check_roles(seen_by: str, facts: Mapping[str, Any]) -> None:
    """Refuse somebody who took no part in a run."""
    from cofactor.federation.door import COORDINATOR
    from cofactor.federation.view import PARTY, PUBLIC

    parties = [f"{PARTY}{name}" for name in (facts.get("together") or {}).get("parties", {})]
    known = (COORDINATOR, PUBLIC, *parties)
    for role in seen_by.split("+"):
        if role not in known:
            shown = ", ".join(known[:6]) + (" ..." if len(known) > 6 else "")
            raise ConfigError(
                f"nobody called {role!r} took part.{did_you_mean(role, known)} --seen-by takes {shown}."
            )


@dataclass(frozen=True, kw_only=True)
class Given:
    """A run, and the files that were named beside it."""

    run: Path
    facts: Mapping[str, Any]
    """Its run.json."""
    files: tuple[Path, ...]
    reading: Reading

    def data(self, attack: str) -> "Federation | Ratings | None":
        """Read the files for the attack that needs them; refuse files that no attack reads."""
        kind = next((each for each in ("survey", "clustering") if each in self.facts), None)
        if kind is not None and self.files:
            raise ConfigError(f"canaries of a {kind} are made-up people. Leave out the files.")
        if kind is None and attack in (CANARIES, MEMBERSHIP):
            return self._federation() if attack == CANARIES else self._candidates()
        if self.files:
            raise ConfigError(f"{attack} reads messages that {self.run} keeps, and no files. Leave them out.")
        return None

    def _federation(self) -> "Federation | None":
        """Read files as parties that relate as those of the run did; None if the run keeps their ratings."""
        from cofactor.federation.folder import CAPTURED

        together = self.facts.get("together")
        if not together:
            raise ConfigError(
                f"{self.run} was trained in one place, and promises nothing that canaries could test. Audit "
                "a run of parties."
            )
        if not self.files and (self.run / CAPTURED).exists():
            return None
        self._check_count(together)
        asked = federation_of(together, self.facts["data"]["scale"], FederationWish(scale=self.reading.scale))
        split = checked_split(self.files, asked)
        gathering = Gathering(
            files=self.files,
            split=split,
            parties=asked.parties,
            test_fraction=None,
            seed=self.facts["seed"],
            ratings_each=asked.ratings_each,
            alignment=checked_alignment(asked, split, self.files),
        )
        return gathering.parts(replace(self.reading, scale=asked.scale))[0]

    def _check_count(self, together: Mapping[str, Any]) -> None:
        """Refuse other files than those of the training, as far as their number tells."""
        dealt, names = together["simulated"], list(together["parties"])
        if len(self.files) == (1 if dealt else len(names)):
            return
        trained = f"{self.run} was trained on {'one file, dealt out' if dealt else f'{len(names):,} files'}"
        if self.files:
            raise ConfigError(f"{trained}. Name the same.")
        shown = ["ratings.csv"] if dealt else [f"{name}.csv" for name in names[:3]]
        more = " ..." if not dealt and len(names) > 3 else ""
        raise ConfigError(
            f"canaries are planted among ratings, and {trained}, which it does not keep. Name the same: "
            f"{shlex.join(['cofactor', 'audit', str(self.run), *shown])}{more}"
        )

    def _candidates(self) -> "Ratings":
        """Read ratings of users, some of whom were in; several files are taken for one."""
        import numpy as np

        from cofactor.data.ratings import Ratings

        if not self.files:
            raise ConfigError(
                "membership tells users who were in from others who were not. Name a file with ratings of "
                f"both: cofactor audit {shlex.quote(str(self.run))} candidates.csv --attack membership"
            )
        parts = [self.reading.ratings(file) for file in self.files]
        if len(parts) == 1:
            return parts[0]
        implicit = any(part.implicit for part in parts)
        return Ratings.from_arrays(
            np.concatenate([part.user_ids[part.users] for part in parts]),
            np.concatenate([part.item_ids[part.items] for part in parts]),
            None if implicit else np.concatenate([part.values for part in parts]),
            scale=scale_of(self.reading.scale),
            duplicates=cast("Duplicates", self.reading.duplicates),
        )
