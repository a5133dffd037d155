"""A clustering on a network, where the columns are."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.cluster.kmeans import check_installed
from cofactor.cluster.planning import Plan
from cofactor.cluster.records import Records
from cofactor.cluster.session import host_of
from cofactor.cluster.settling import begun_with, in_order, ledger_of, within
from cofactor.cluster.tables import SecureTable
from cofactor.cluster.telling import clustering_of, guarantee_of, together_of
from cofactor.crypto.gmp import gmp
from cofactor.crypto.psi import normalised
from cofactor.data.ids import Ids, plain_ids
from cofactor.errors import CofactorError, ConfigError, RunError
from cofactor.federation.approvals import Approved
from cofactor.federation.books import open_ledger, released
from cofactor.federation.declining import LOST, Declining
from cofactor.federation.door import COORDINATOR
from cofactor.federation.finding import Alignment, find_common
from cofactor.federation.host import Host
from cofactor.federation.labels import round_of
from cofactor.federation.messages import Letter
from cofactor.federation.opening import Key
from cofactor.federation.summing import Decryption
from cofactor.federation.transcript import Transcript
from cofactor.network.assuming import on_a_network, pinned
from cofactor.network.cluster_sight import sentences_of, traffic_of
from cofactor.network.cluster_terms import Agreed, ClusteringWork, ClustersFound, OwnColumns, check_kind
from cofactor.network.own_ledger import ONLY_OWN, allowed, check_most, in_all, looked_at
from cofactor.network.work import Asked, Planned, Sitting
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Event
from cofactor.privacy.ledger import Ledger


class ClusteringAtParty:
    """The work where the columns are. It holds keys: after a restart it is not taken up, but begun anew."""

    def __init__(self, sitting: Sitting, read: Callable[[], Records]) -> None:
        """Read the proposal; `read` gives the party's own columns, once they are needed."""
        try:
            check_kind(sitting.proposal)
            self._work = ClusteringWork.of(sitting.proposal.work)
        except ConfigError as error:
            raise Declining("unreadable", str(error)) from None
        self._sitting, self._read = sitting, read
        self._common: tuple[Records, Alignment] | None = None
        self._agreed: Agreed | None = None
        self._started = datetime.now(UTC), time.perf_counter()
        self.ledger: Ledger | None = None

    @cached_property
    def _records(self) -> Records:
        return replace(self._read(), name=self._sitting.name)

    @property
    def budget(self) -> Budget:
        """The most that all parties' releases may tell about a user."""
        return self._work.budget

    def asked(self) -> Asked:
        """Return what is asked for, without a look at anybody's columns."""
        work = self._work
        return Asked(
            kind="clustering",
            what=type(work.method).__name__,
            epsilon=work.budget.epsilon,
            delta=work.budget.delta,
            unit=work.budget.unit,
            adjacency=work.budget.adjacency,
            parties=tuple(self._sitting.proposal.parties),
            aggregate="PlainSum" if work.method.aggregate is None else "SecureSum",
            telling=work.telling,
        )

    def planned(self) -> Planned:
        """Return what is asked for, worked out as if all parties had the same users and columns."""
        work, sitting = self._work, self._sitting
        self._check_possible()
        plan = self._guessed()
        ledger = looked_at(self._records, newer_data=sitting.newer_data)
        return Planned(
            **{**vars(self.asked()), "rests_on": self._rests_on(plan)},
            in_all=in_all(ledger, self._events(plan), work.budget, sitting.proposal.session),
            allowed=allowed(ledger),
            rounds=plan.rounds,
            traffic=traffic_of(plan, plan.facts.parties.index(sitting.name)),
            sees=sentences_of(work, plan),
        )

    def _rests_on(self, plan: Plan) -> tuple[str, ...]:
        return tuple(each.what for each in pinned(self._work.method.promise(plan.facts).assumptions))

    def _check_possible(self) -> None:
        """Refuse what this party cannot do, before it tells anything."""
        own, work = self._records.budget, self._work
        if own is not None and not within(own, work.budget):
            raise Declining("policy: epsilon of a run", f"it has {work.budget}, and the data allow {own}.")
        try:
            check_installed()
            if isinstance(work.method, SecureTable):
                gmp()
        except ConfigError as error:
            raise Declining("missing extra", str(error)) from None

    def _guessed(self) -> Plan:
        columns = dict.fromkeys(self._sitting.proposal.parties, self._records.columns)
        try:
            # As if there were enough users: a refusal would tell, before a yes, how many there are.
            return self._work.plan(columns, max(len(self._records), self._work.clusters, 1))
        except ConfigError as error:
            raise Declining("no data", str(error)) from None

    def _events(self, plan: Plan) -> list[Event]:
        name = self._sitting.name
        return [replace(event, by=name) for event in plan.schedules[name].events()]

    def showing(self) -> Ids | None:
        """Return the ids that all parties show each other, if they agreed to do so."""
        return plain_ids(list(self._records.ids)) if self._work.align == "ids" else None

    def shown(self, ids: Mapping[str, Ids]) -> None:
        """Take what all parties have shown, and find the users in common among it."""
        own = self.showing()
        if own is None or tuple(ids) != tuple(self._sitting.proposal.parties):
            raise Declining("other terms", "ids are shown by others than was agreed on.")
        if ids[self._sitting.name].tolist() != own.tolist():
            raise Declining("other terms", "other ids are said to be shown than this party has shown.")
        common = find_common(ids, how="ids", rule=self._work.rule)
        self._keep(common.rows[self._sitting.name], common.ids, common.alignment)

    def ids(self) -> Ids | None:
        """Return the ids that are searched for common ones, if they are searched for."""
        return plain_ids(list(self._records.ids)) if self._work.align == "psi" else None

    def found(self, rows: NDArray[np.int64], ids: Ids, alignment: Alignment) -> None:
        """Keep the users of these rows, in this order, under these ids, if that was agreed on."""
        if self._work.align != "psi":
            raise Declining("not planned", "users in common were searched for, and ids are shown here.")
        self._keep(rows, ids, alignment)

    def _keep(self, rows: NDArray[np.int64], ids: Ids, alignment: Alignment) -> None:
        work, name, own = self._work, self._sitting.name, self._records
        texts = normalised(own.ids, work.rule, name)
        if [texts[row] for row in rows.tolist()] != ids.tolist() or len(set(rows.tolist())) < len(rows):
            raise Declining("other terms", "users are said to be common who are not those of this party.")
        expected = Alignment(
            how=work.align,
            rule=work.rule,
            parties=tuple(self._sitting.proposal.parties),
            users=alignment.users,
            common=len(rows),
            among=work.among if work.align == "psi" else alignment.among,
            meetings=alignment.meetings,
            traffic=alignment.traffic,
        )
        place = expected.parties.index(name)
        if alignment != expected or alignment.users[place] != len(own):
            raise Declining("other terms", "users in common were found otherwise than was agreed on.")
        self._common = in_order(own, ids, rows), alignment

    def told(self) -> dict[str, Any]:
        """Return what the columns are called, and between which numbers they lie: all of it is public."""
        return OwnColumns.at(self._records).table()

    def opened_by(self, terms: Mapping[str, Any]) -> None:
        """Return nothing: keys are the parties' own, and none are dealt."""

    def host(
        self,
        terms: Mapping[str, Any],
        facts: Mapping[str, Any],
        decryption: Decryption | None,
        key: Key | None,
    ) -> Host:
        """Check the terms, make room in the ledger, and return the end of the wire, which keeps to the plan.

        Between the first and the last round it is not taken up: keys were lost with the process that held
        them. After the last one it is finished, and no round is answered again.
        """
        if decryption is not None or key is not None:
            raise Declining("other terms", "keys were dealt, and a clustering needs none.")
        sitting, proposal = self._sitting, self._sitting.proposal
        if proposal.roster.get(sitting.name) != sitting.identity.public:
            raise Declining("unknown keys", "the proposal has another key for this party than its own.")
        self._agreed = self._worked_out(terms, facts)
        self.ledger = self._opened_ledger(self._agreed.plan)
        return host_of(
            self._agreed.plan,
            self._held[0],
            ledger=self.ledger,
            session=proposal.session,
            identity=sitting.identity,
            roster=proposal.roster,
            seed=proposal.seed,
            random=sitting.random,
            agreed=self._agreed.digest,
        )

    @property
    def _held(self) -> tuple[Records, Alignment]:
        if self._common is None:
            raise Declining("out of order", "terms before users in common were found.")
        return self._common

    def _worked_out(self, terms: Mapping[str, Any], facts: Mapping[str, Any]) -> Agreed:
        """Work the terms out again, and compare."""
        if facts.get(self._sitting.name) != self.told():
            raise Declining("other terms", "what this party told is not what the coordinator says it told.")
        try:
            agreed = Agreed.of(self._work, self._sitting.proposal, facts, self._held[1])
        except Declining:
            raise
        except CofactorError as error:
            raise Declining("other terms", str(error)) from None
        if agreed.terms() != terms:
            raise Declining("other terms", "the coordinator's terms do not follow from what parties told.")
        return agreed

    def _opened_ledger(self, plan: Plan) -> Ledger:
        """Open the ledger, or begin it with what the policy allows in all, and make room for the schedule."""
        sitting, session = self._sitting, self._sitting.proposal.session
        before = looked_at(self._records, newer_data=sitting.newer_data)
        done = [] if before is None else released(before, session)
        if done and all(round_of(event) != plan.rounds for event in done):
            raise Declining(
                LOST,
                "this clustering was charged before a restart, and its keys are gone: it is not taken up, "
                "and nothing is charged twice. Begin a new session.",
            )
        check_most(in_all(before, self._events(plan), plan.budget, session), sitting.most)
        if done:  # all rounds that charge are over: it can be finished, and each of them is lost to who asks
            return open_ledger(self._records, plan.budget, None, newer_data=sitting.newer_data)
        schedule, most, terms = plan.schedules[sitting.name], sitting.most, plan.budget
        if before is None:
            whole = None if most is None else replace(plan.budget, epsilon=most)
            terms = begun_with(self._records, schedule, plan.budget, whole)
        ledger = ledger_of(self._records, terms, schedule, newer_data=sitting.newer_data)
        ledger.limit(most)
        return ledger

    def finish(
        self,
        host: Host,  # noqa: ARG002 (the half leaves nothing)
        last: bytes,
        approvals: tuple[Approved, ...],
    ) -> None:
        """Write the party's own run folder: the clusters, what it charged, what it saw and sent."""
        assert self._agreed is not None
        assert self.ledger is not None
        agreed, sitting, session = self._agreed, self._sitting, self._sitting.proposal.session
        told, (created, start) = self._told_last(last), self._started
        self.ledger.give_up_reserved()
        charged = self.ledger.extract(session, party=sitting.name, budget=self.budget)
        own = {sitting.name: Ledger.from_bytes(charged)}
        transcript = Transcript.open(sitting.transcript_path, recover=True)
        together = together_of(agreed.plan, transcript, own, agreed.alignment, parties=tuple(own))
        clustering = clustering_of(
            agreed.plan,
            told.released(agreed.plan),
            agreed.ranges,
            seed=sitting.proposal.seed,
            guarantee=on_a_network(
                guarantee_of(
                    agreed.plan,
                    released(own[sitting.name], session),
                    agreed.alignment,
                    agreed.unstated,
                    beside=self._work.beside,
                    doubts=ONLY_OWN,
                )
            ),
            together=replace(together, approvals=approvals),
            created=created.isoformat(timespec="seconds"),
            seconds=time.perf_counter() - start,
            scaled=told.scaled,
        )
        clustering.check()
        clustering.save(sitting.folder / "run", overwrite=True)

    def _told_last(self, last: bytes) -> ClustersFound:
        letter = Letter.from_bytes(last, (ClustersFound,))
        if (letter.session, letter.sender) != (self._sitting.proposal.session, COORDINATOR):
            raise RunError(f"{self._sitting.name}: a last letter of another session.")
        assert isinstance(letter.body, ClustersFound)
        return letter.body
