"""What is said before the first round, and after the last one. All of it is round 0 of its session.

Tables travel as JSON text: what they may hold is checked by whoever reads them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.federation.messages import Message
from cofactor.network.dealing import DealingPost
from cofactor.network.searching import SearchPost, SearchReport

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True, eq=False)
class Propose(Message):
    """The coordinator proposes a piece of work; before a party agrees, it tells nothing."""

    proposal: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Accepted(Message):
    """A party has agreed to the proposal, and shows the ids that it was asked to show."""

    shown: str
    """A list of ids as JSON, or null where none are shown."""
    how: str
    """"by hand", or "by policy"."""
    when: str
    signature: Bytes
    """Of the proposal's hash, of how and of when, by the party's identity."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tell(Message):
    """What all parties have shown, or how common users were found: now each can count what it has of it."""

    known: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Told(Message):
    """A party tells what must be public: how much it has of what all share."""

    facts: str
    signature: Bytes
    """Of the proposal's hash, of what is known, and of the facts, by the party's identity."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Agree(Message):
    """What all parties have told, with their signatures: each works the terms out again for itself."""

    approvals: str
    """How all parties have agreed, a table for each."""
    facts: str
    signatures: str
    terms: str
    """The terms, as the coordinator has worked them out."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ready(Message):
    """A party has found everybody's facts to be signed; it works the terms out again before it begins."""

    signature: Bytes
    """Of the terms' hash, by the party's identity."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Begin(Message):
    """All are ready: make room in the ledger, and be ready for the first round."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Begun(Message):
    """A party can be asked."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Finish(Message):
    """The last letter of the coordinator's half, with which a party finishes its own model."""

    last: Bytes


@dataclass(frozen=True, kw_only=True, eq=False)
class Finished(Message):
    """What a party has charged in this session, and nothing else of its ledger."""

    ledger: Bytes
    signature: Bytes
    """Of the ledger's hash, by the party's identity."""


HANDSHAKE = (Propose, Accepted, Tell, Told, Agree, Ready, Begin, Begun, Finish, Finished)
ROUND_0 = (*HANDSHAKE, SearchPost, SearchReport, DealingPost)
"""All that is said outside rounds."""
