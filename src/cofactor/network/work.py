"""One kind of work that parties do together, at a party and at the coordinator: in the order it is called.

    party:        asked -> planned -> (showing -> shown, or ids -> found) -> told -> host -> ... -> finish
    coordinator:  terms -> begin -> ... -> save

A training, a survey and a clustering each have both. The seat and the conductor know no more of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto.keys import Identity
from cofactor.crypto.psi import Rule
from cofactor.data.ids import Ids
from cofactor.federation.approvals import Approved
from cofactor.federation.drive import Round, Session
from cofactor.federation.finding import Alignment, Among, How
from cofactor.federation.halves import Coordinator
from cofactor.federation.host import Host
from cofactor.federation.messages import Message
from cofactor.federation.opening import Key
from cofactor.federation.summing import Decryption, Summing
from cofactor.network.proposal import Kind, Proposal
from cofactor.privacy.ledger import Ledger
from cofactor.progress import Listener
from cofactor.randomness import Random
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum

Telling = Literal["union", "intersection", "catalogue", "psi", "nothing"]
"""How ids become known: all are told, only common ones are kept, a public list is used, or none are told."""


WORKED = "worked"
"""The number of a party's progress that says how many seconds it has worked in rounds so far."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a party is asked to agree to, as the proposal alone tells: its policy judges that first.

    The party's data are not read before, so that nobody learns of them by proposing.
    """

    kind: Kind
    what: str
    """The recipe's or method's name, such as "HorizontalMF"."""
    epsilon: float | None
    """What it costs at most; None where there is no budget, and nothing is promised."""
    delta: float
    unit: str
    parties: tuple[str, ...]
    aggregate: str
    """How answers are added up: "PlainSum", "SecureSum", ..."""
    telling: Telling
    fewest: int | None = None
    """Of how many parties at least a sum is opened; None where answers are not summed, or of all."""
    adjacency: str = "empty"
    """Compared with what epsilon is promised: "value" says nothing of who rated what."""
    most_ratings: int | None = None
    """How many ratings of a user count at most, if the recipe says."""
    rests_on: tuple[str, ...] = ()
    """What the promise assumes of others: a sentence each."""
    on_trust: tuple[str, ...] = ()
    """Those of them that assume a coordinator which keeps to the protocol."""


@dataclass(frozen=True, kw_only=True)
class Planned(Asked):
    """The same, worked out with the party's own data: its policy and its people judge it."""

    in_all: float | None
    """What all that the ledger holds would cost, with this; None without a budget."""
    allowed: float | None = None
    """What the ledger was begun with, if there is one: no yes makes more of it."""
    rounds: int
    traffic: int
    """About how many bytes this party sends in all."""
    sees: tuple[str, ...] = ()
    """Who sees what: a sentence each."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """How users in common are to be found."""

    how: How
    among: Among
    rule: Rule


@dataclass(frozen=True, kw_only=True, eq=False)
class Sitting:
    """What a party brings to one session, whatever the work."""

    name: str
    proposal: Proposal
    identity: Identity
    folder: Path
    """The party's own, for this session only."""
    random: Random
    most: float | None = None
    """What all runs on its data may cost together, by its policy: with that a new ledger is begun."""
    max_delta: float = 1.0
    """With which probability epsilon may fail, by its policy."""
    newer_data: bool = False
    """Whether its file may have grown since its ledger was begun."""

    @property
    def transcript_path(self) -> Path:
        """Where what the party saw and sent is written down."""
        return self.folder / "transcript.jsonl"


class AtParty(Protocol):
    """The work, where the data are."""

    @property
    def ledger(self) -> Ledger | None:
        """What was and will be charged; None without a budget. From `host` on."""

    def asked(self) -> Asked:
        """Return what is asked for, without a look at the party's data."""

    def planned(self) -> Planned:
        """Return what is asked for, worked out with them. Tells nobody anything, and writes nothing."""

    def showing(self) -> Ids | None:
        """Return the ids that it shows to everybody, as was proposed; None if none are."""

    def shown(self, ids: Mapping[str, Ids]) -> None:
        """Take what all parties have shown."""

    def told(self) -> dict[str, Any]:
        """Return what this party tells, once it is known what all share: a table for JSON."""

    def ids(self) -> Ids | None:
        """Return the ids that are searched for common ones; None if nothing is searched for."""

    def found(self, rows: NDArray[np.int64], ids: Ids, alignment: Alignment) -> None:
        """Keep the users of these rows, in this order, under these ids."""

    def opened_by(self, terms: Mapping[str, Any]) -> EncryptedSum | SharedSum | None:
        """Return how sums are opened, if decrypters open them: keys are dealt then. After `found`."""

    def host(
        self,
        terms: Mapping[str, Any],
        facts: Mapping[str, Any],
        decryption: Decryption | None,
        key: Key | None,
    ) -> Host:
        """Check the terms against what was agreed, make room in the ledger, and return the end of the wire.

        `facts` are what all parties told, each signed by its party. Called again after a restart: it takes
        the session up where the party's own folder says.
        """

    def finish(self, host: Host, last: bytes, approvals: tuple[Approved, ...]) -> None:
        """Finish at home: write the party's own run folder, which never leaves."""


class AtCoordinator(Protocol):
    """The work, where nobody's data are."""

    @property
    def messages(self) -> tuple[type[Message], ...]:
        """The kinds of messages of its rounds."""

    @property
    def search(self) -> Search | None:
        """How users in common are found; None if they are not searched for."""

    def terms(
        self,
        told: Mapping[str, Mapping[str, Any]],
        shown: Mapping[str, Ids],
        alignment: Alignment | None,
    ) -> dict[str, Any]:
        """Work out the terms from what all parties told: the same at every party. Refuse what does not fit.

        Errors name the party, and what to do there.
        """

    def opened_by(self) -> EncryptedSum | SharedSum | None:
        """Return how sums are opened, if decrypters open them. After `terms`."""

    def summing(self, decryption: Decryption | None) -> Summing | None:
        """Return how sums are made. After `terms`."""

    def begin(self) -> Coordinator:
        """Return the coordinator's half, new. After `terms`."""

    def roles(self, session: Session) -> Mapping[str, Host]:
        """Return the ends of the wire of those who hold no ratings: they live with the coordinator."""

    def listening(self, note: Listener, before: float = 0.0) -> Callable[[Round], None]:
        """Return who turns rounds into progress; `before` is how many seconds they took in earlier jobs."""

    def save(
        self,
        folder: Path,
        session: Session,
        coordinator: Coordinator,
        ledgers: Mapping[str, bytes],
        approvals: tuple[Approved, ...],
    ) -> None:
        """Write the run folder: released numbers only. `ledgers` hold what each party charged here."""
