"""What a party signs before it takes part, made by hand."""

from cofactor.crypto.keys import Identity
from cofactor.federation.approvals import Approved, approved_text

PROPOSAL = "cd" * 32
WHEN = "2026-11-19T08:00:00+00:00"


def approved(party: str, *, proposal: str = PROPOSAL, key: Identity | None = None) -> Approved:
    """Let a party agree, with a key of its own if none is named."""
    key = key or Identity.generate()
    return Approved(
        party=party,
        identity=key.public.hex(),
        proposal=proposal,
        how="by hand",
        when=WHEN,
        signature=key.sign(approved_text(proposal, "by hand", WHEN)).hex(),
    )
