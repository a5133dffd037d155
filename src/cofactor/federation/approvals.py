"""That parties agreed to take part: what each has signed before the first round, as a run folder keeps it."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from cofactor.config import from_table
from cofactor.crypto.keys import verified
from cofactor.errors import ConfigError, RunError
from cofactor.federation.party import check_name
from cofactor.figures import number_of

How = Literal["by hand", "by policy"]
_CONTEXT = b"cofactor: a party takes part\n"
_HASH, _SIGNATURE = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{128}")
_WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")


@dataclass(frozen=True, kw_only=True)
class Approved:
    """One party's yes. Who said it stays with the party."""

    party: str
    identity: str
    """Its public key, as 64 hexadecimal digits."""
    proposal: str
    """The hash of what it agreed to."""
    how: How
    when: str
    """By the party's clock, in UTC."""
    signature: str

    def __post_init__(self) -> None:
        check_name(self.party)
        for name, form in (
            ("identity", _HASH),
            ("proposal", _HASH),
            ("when", _WHEN),
            ("signature", _SIGNATURE),
        ):
            value = getattr(self, name)
            if not isinstance(value, str) or not form.fullmatch(value):
                raise ConfigError(f"{self.party}: {name} of its approval is none.")
        if self.how not in get_args(How):
            raise ConfigError(f"{self.party}: nobody approves {self.how!r}.")

    def signed(self, session: str, parties: Collection[str]) -> bool:
        """Say whether whoever has this key has signed that, for this session with these parties."""
        text = approved_text(session, parties, self.proposal, self.how, self.when)
        return verified(bytes.fromhex(self.identity), text, bytes.fromhex(self.signature))


def approved_text(session: str, parties: Collection[str], proposal: str, how: str, when: str) -> bytes:
    """Return what a party signs: to what it agreed, how and when, in which session and with whom.

    The proposal's hash says all that, but only to those who have the proposal: a run folder does not.
    """
    return _CONTEXT + json.dumps([session, sorted(parties), proposal, how, when]).encode()


def approvals_from(tables: Sequence[Mapping[str, Any]]) -> tuple[Approved, ...]:
    """Read approvals from a run folder."""
    return tuple(from_table(Approved, each, "approval") for each in tables)


def check_approvals(approvals: Sequence[Approved], parties: Sequence[str], session: str) -> str:
    """Check that these parties, and all who agreed with them, signed one proposal of this session; say so."""
    by_party = {each.party: each.proposal for each in approvals}
    silent = [party for party in parties if party not in by_party]
    if silent:
        raise RunError(f"{', '.join(silent[:5])}: took part, and no approval says so.")
    if len(by_party) < len(approvals) or len(set(by_party.values())) > 1:
        raise RunError("The approvals are not of one proposal, one for each party.")
    for each in approvals:
        if not each.signed(session, by_party):
            raise RunError(
                f"{each.party}: this approval is not what its key signed, or not for this session, or others "
                "agreed than are named here."
            )
    count, proposal = number_of(len(approvals), "party", "parties"), approvals[0].proposal[:16]
    return f"{count} signed proposal {proposal}; compare keys with those that you know."
