"""`Proposal`: what a coordinator proposes. Every party reads and judges it before it tells anything."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from cofactor.errors import ConfigError
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.party import check_name

Kind = Literal["training", "survey", "clustering"]
KINDS: tuple[Kind, ...] = ("training", "survey", "clustering")
KEY = re.compile(r"[0-9a-f]{64}")
"""How a public key is written."""
_SESSION = re.compile(r"[0-9a-f]{16,64}")
_PLAIN: Mapping[str, type] = {"kind": str, "session": str, "version": str, "work": dict, "seed": int}


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """One piece of work: who takes part, known by which keys, and what they are to do."""

    kind: Kind
    session: str
    """The name under which ledgers will know it."""
    version: str
    """Of cofactor, at the coordinator: everybody's must be the same."""
    parties: Mapping[str, str]
    """By name, the public identity key of each party, as 64 hexadecimal digits. The order counts."""
    work: Mapping[str, Any] = field(repr=False)
    """What is to be done: the table of that kind of work."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}.")
        check_session(self.session)
        for name, key in self.parties.items():
            check_name(name)
            if name in (COORDINATOR, SUM):
                raise ConfigError(f"no party can be called {name!r}: reports use the word otherwise.")
            if not isinstance(key, str) or not KEY.fullmatch(key):
                raise ConfigError(f"{name}: a public key has 64 hexadecimal digits.")
        if len(set(self.parties.values())) < len(self.parties) or not self.parties:
            raise ConfigError("every party has a name and a key of its own, and there is one at least.")

    @property
    def split(self) -> str:
        """What parties share, in the words of trainings."""
        if self.kind == "training":
            return str(self.work.get("split", ""))
        return "vertical" if self.kind == "clustering" else "horizontal"

    @property
    def roster(self) -> dict[str, bytes]:
        """The parties' public keys, in the order of their places."""
        return {name: bytes.fromhex(key) for name, key in self.parties.items()}

    def as_json(self) -> str:
        """Return all of it as text, always the same for the same proposal."""
        told = {name: getattr(self, name) for name in _PLAIN}
        return json.dumps({**told, "parties": list(self.parties.items())}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Proposal":
        """Read a proposal, from whomever it came."""
        try:
            table = dict(json.loads(text))
            fits = all(type(table[name]) is kind for name, kind in _PLAIN.items())
            parties = {str(name): str(key) for name, key in table.pop("parties")}
        except (ValueError, KeyError, TypeError, RecursionError):
            fits = False
        if not fits or set(table) != set(_PLAIN):
            raise ConfigError("a proposal that cannot be read. Is it of the same version?")
        return cls(**table, parties=parties)

    @property
    def digest(self) -> str:
        """The hash of all of it: what parties approve and sign."""
        return sha256(self.as_json().encode()).hexdigest()


def check_session(name: str) -> None:
    """Refuse what is no session's name: folders are named after it."""
    if not _SESSION.fullmatch(name):
        raise ConfigError("a session's name has 16 to 64 hexadecimal digits.")
