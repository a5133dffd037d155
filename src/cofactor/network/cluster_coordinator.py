"""A clustering on a network, where nobody's columns are."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from cofactor.cluster.halves import Gathering
from cofactor.cluster.planning import Plan
from cofactor.cluster.session import summing_of
from cofactor.cluster.telling import clustering_of, guarantee_of, together_of
from cofactor.data.ids import Ids
from cofactor.errors import ConfigError, RunError
from cofactor.federation.approvals import Approved
from cofactor.federation.books import all_released
from cofactor.federation.drive import Round, Session
from cofactor.federation.finding import Alignment, find_common
from cofactor.federation.halves import Coordinator, State
from cofactor.federation.host import Host
from cofactor.federation.messages import Message
from cofactor.federation.summing import Decryption, Summing
from cofactor.network.assuming import on_a_network
from cofactor.network.cluster_terms import Agreed, ClusteringWork, ClustersFound, check_kind
from cofactor.network.own_ledger import books, not_heard
from cofactor.network.proposal import Proposal
from cofactor.network.work import Search
from cofactor.progress import Listener
from cofactor.recipes.telling import told_rounds


class Finding:
    """The coordinator's half, which tells all parties in the end what was found.

    Parties hold keys in memory only, so it goes on after a restart only if all rounds were over.
    """

    def __init__(self, plan: Plan, seed: int) -> None:
        """Begin."""
        self.rounds = plan.rounds
        self._gathering, self._plan, self._seed = Gathering(plan), plan, seed
        self._found: ClustersFound | None = None

    def ask(self, round: int) -> Message:
        """Return the question of a round."""
        return self._gathering.ask(round)

    def sums(self, round: int) -> bool:
        """Say whether only the sum of the answers is wanted."""
        return self._gathering.sums(round)

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Take in the answers of all parties; those of the last round complete it."""
        self._gathering.take(round, replies)
        if round == self.rounds:
            found = self._gathering.found()
            self._found = ClustersFound.of(found, self._plan.facts.clusters, self._seed)

    @property
    def found(self) -> ClustersFound:
        """What everybody may see."""
        if self._found is None:
            raise RunError("the clustering is not over.")
        return self._found

    def last(self) -> Message:
        """Return what everybody may see."""
        return self.found

    def published(self) -> None:
        """Return nothing: there is no model."""

    def state(self) -> State:
        """Return what was found, once it was: in between, nothing helps."""
        return {} if self._found is None else self._found.arrays

    def restore(self, state: State) -> None:
        """Go on, if there is nothing left to ask."""
        if not state:
            raise RunError(
                "a clustering that was interrupted between its first and its last round is not taken up: "
                "parties hold keys for it in memory only. What was charged stays charged. Begin a new "
                "session."
            )
        self._found = ClustersFound(**{name: np.asarray(array) for name, array in state.items()})
        self._found.released(self._plan)


class ClusteringAtCoordinator:
    """The work where nobody's columns are."""

    def __init__(self, proposal: Proposal) -> None:
        """Read the proposal."""
        check_kind(proposal)
        self._proposal, self._work = proposal, ClusteringWork.of(proposal.work)
        self._settled: Agreed | None = None
        self._started = datetime.now(UTC), time.perf_counter()

    @property
    def messages(self) -> tuple[type[Message], ...]:
        """The kinds of messages of its rounds, and the last letter."""
        return self._work.messages

    @property
    def search(self) -> Search | None:
        """How users in common are found; nobody searches where ids are shown."""
        work = self._work
        return None if work.align == "ids" else Search(how="psi", among=work.among, rule=work.rule)

    def terms(
        self, told: Mapping[str, Mapping[str, Any]], shown: Mapping[str, Ids], alignment: Alignment | None
    ) -> dict[str, Any]:
        """Work out the terms from what all parties told."""
        found = alignment if self._work.align == "psi" else self._shown(shown)
        if found is None or (shown and self._work.align == "psi"):
            raise ConfigError("users in common were found otherwise than was proposed.")
        self._settled = Agreed.of(self._work, self._proposal, told, found)
        return self._settled.terms()

    def _shown(self, shown: Mapping[str, Ids]) -> Alignment:
        if tuple(shown) != tuple(self._proposal.parties):
            raise RunError("somebody has not shown ids who was to. Is it of the same version?")
        return find_common(shown, how="ids", rule=self._work.rule).alignment

    @property
    def _agreed(self) -> Agreed:
        if self._settled is None:
            raise ConfigError("the terms are not worked out yet.")
        return self._settled

    def opened_by(self) -> None:
        """Return nothing: keys are the parties' own, and none are dealt."""

    def summing(self, decryption: Decryption | None) -> Summing | None:  # noqa: ARG002
        """Return how sums are made."""
        return summing_of(self._agreed.plan, self._proposal.roster, agreed=self._agreed.digest)

    def begin(self) -> Finding:
        """Return the coordinator's half."""
        return Finding(self._agreed.plan, self._proposal.seed)

    def roles(self, session: Session) -> Mapping[str, Host]:  # noqa: ARG002
        """Return nobody."""
        return {}

    def listening(self, note: Listener, before: float = 0.0) -> Callable[[Round], None]:
        """Return who turns rounds into progress."""
        return told_rounds(note, self._work.budget, self._agreed.plan.whole, before)

    def save(
        self,
        folder: Path,
        session: Session,
        coordinator: Coordinator,
        ledgers: Mapping[str, bytes],
        approvals: tuple[Approved, ...],
    ) -> None:
        """Write the run folder: released numbers only."""
        assert isinstance(coordinator, Finding)
        agreed, (created, start) = self._agreed, self._started
        copies = books(ledgers, session.name, agreed.plan.schedules, agreed.plan.budget)
        together = together_of(agreed.plan, session.transcript, copies, agreed.alignment)
        clustering = clustering_of(
            agreed.plan,
            coordinator.found.released(agreed.plan),
            agreed.ranges,
            seed=self._proposal.seed,
            guarantee=on_a_network(
                guarantee_of(
                    agreed.plan,
                    all_released(copies, session.name),
                    agreed.alignment,
                    agreed.unstated,
                    beside=self._work.beside,
                    doubts=not_heard(copies),
                )
            ),
            together=replace(together, approvals=approvals),
            created=created.isoformat(timespec="seconds"),
            seconds=time.perf_counter() - start,
            scaled=coordinator.found.scaled,
        )
        clustering.save(folder)
