"""What a party signs before it takes part, made by hand."""

from collections.abc import Collection

from cofactor.crypto.keys import Identity
from cofactor.federation.approvals import Approved, approved_text

SESSION, PROPOSAL = "5e" * 8, "cd" * 32
BOTH = ("north", "south")
WHEN = "2026-11-19T08:00:00+00:00"


def approved(
    party: str,
    *,
    session: str = SESSION,
    parties: Collection[str] = BOTH,
    proposal: str = PROPOSAL,
    key: Identity | None = None,
) -> Approved:
    """Let a party agree, with a key of its own if none is named."""
    key = key or Identity.generate()
    return Approved(
        party=party,
        identity=key.public.hex(),
        proposal=proposal,
        how="by hand",
        when=WHEN,
        signature=key.sign(approved_text(session, parties, proposal, "by hand", WHEN)).hex(),
    )
