"""A training on a network, where no ratings are."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cofactor.config import as_table
from cofactor.data.ids import Ids
from cofactor.errors import ConfigError
from cofactor.federation.approvals import Approved
from cofactor.federation.books import all_released, released
from cofactor.federation.drive import Round, Session, rounds_had
from cofactor.federation.finding import Alignment
from cofactor.federation.halves import Coordinator, Facts, Recipe
from cofactor.federation.host import Host
from cofactor.federation.messages import Message
from cofactor.federation.run import Run
from cofactor.federation.session import told_before
from cofactor.federation.summing import Decryption, Summing
from cofactor.network.assuming import on_a_network
from cofactor.network.own_ledger import books, not_heard
from cofactor.network.proposal import Proposal
from cofactor.network.training_terms import (
    OwnFacts,
    TrainingWork,
    bound,
    facts_of,
    opened_by,
    reading,
    schedules_of,
    shared_ids,
    terms_table,
)
from cofactor.network.work import Search
from cofactor.progress import Listener
from cofactor.recipes.hosts import aggregate_of, role_hosts, summing_of
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.outcome import data_facts, together_of
from cofactor.recipes.promising import guarantee_of
from cofactor.recipes.telling import Phases, told_rounds


class TrainingAtCoordinator:
    """The work where no ratings are."""

    def __init__(self, proposal: Proposal) -> None:
        """Read the proposal."""
        self._proposal, self._work = proposal, TrainingWork.of(proposal.work)
        self._settled: tuple[Recipe, Facts] | None = None
        self._alignment: Alignment | None = None
        self._created, self._phases = datetime.now(UTC), Phases()

    @property
    def messages(self) -> tuple[type[Message], ...]:
        """The kinds of messages of its rounds."""
        return self._work.recipe.messages

    @property
    def search(self) -> Search | None:
        """How users in common are found."""
        if self._work.ids != "psi":
            return None
        return Search(how="psi", among=self._work.among, rule=self._work.rule)

    def terms(
        self, told: Mapping[str, Mapping[str, Any]], shown: Mapping[str, Ids], alignment: Alignment | None
    ) -> dict[str, Any]:
        """Work out the terms from what all parties told."""
        own = {party: OwnFacts.of(table, party) for party, table in told.items()}
        facts = facts_of(self._work, own, shared_ids(self._work, shown, alignment))
        settled = self._work.recipe.settled(facts, self._work.budget)
        self._settled, self._alignment = (settled, facts), alignment
        return terms_table(settled, facts)

    def opened_by(self) -> EncryptedSum | SharedSum | None:
        """Return how sums are opened, if decrypters open them."""
        return opened_by(self._work.recipe, len(self._proposal.parties))

    def summing(self, decryption: Decryption | None) -> Summing | None:
        """Return how sums are made."""
        recipe, facts = self._agreed
        return bound(summing_of(recipe, facts, self._proposal.roster, decryption), recipe, facts)

    def begin(self) -> Coordinator:
        """Return the coordinator's half."""
        recipe, facts = self._agreed
        return recipe.coordinator(facts, self._proposal.seed)

    def roles(self, session: Session) -> Mapping[str, Host]:
        """Return the ends of the wire of those who hold no ratings."""
        recipe, facts = self._agreed
        return role_hosts(recipe, facts, session, self._proposal.seed)

    def listening(self, note: Listener, before: float = 0.0) -> Callable[[Round], None]:
        """Return who turns rounds into progress."""
        recipe, facts = self._agreed
        schedules = schedules_of(recipe, facts, self._work.budget)
        tell = told_rounds(note, self._work.budget, next(iter(schedules.values()), None), before)
        self._phases.over("agreeing")
        self._phases.add("rounds", before)

        def done(round: Round) -> None:
            tell(round)
            self._phases.over("rounds")

        return done

    def save(
        self,
        folder: Path,
        session: Session,
        coordinator: Coordinator,
        ledgers: Mapping[str, bytes],
        approvals: tuple[Approved, ...],
    ) -> None:
        """Write the run folder: released numbers only."""
        (recipe, facts), budget = self._agreed, self._work.budget
        own = (
            {}
            if budget is None
            else books(ledgers, session.name, schedules_of(recipe, facts, budget), budget)
        )
        events = {name: released(each, session.name) for name, each in own.items()}
        together = together_of(
            recipe,
            facts,
            budget,
            session,
            {name: each.content() for name, each in own.items()},
            events,
            rounds=rounds_had(coordinator, session),
            planned=coordinator.rounds,
            roles=tuple(self.roles(replace(session, folder=None))),
            alignment=self._alignment,
        )
        self._phases.over("finishing")
        run = Run(
            model=coordinator.published(),
            recipe=as_table(recipe),
            seed=self._proposal.seed,
            data=data_facts(facts),
            created=self._created.isoformat(timespec="seconds"),
            seconds=sum(self._phases.seconds.values()),
            phases=self._phases.seconds,
            events=tuple(told_before(session.folder)),
            guarantee=on_a_network(
                guarantee_of(
                    recipe,
                    facts,
                    budget,
                    all_released(own, session.name),
                    alignment=self._alignment,
                    doubts=not_heard(own),
                    beside=reading(self._work),
                    ended=together.ended_early,
                ),
                aggregate_of(recipe),
                len(facts.parties),
            ),
            together=replace(together, approvals=approvals),
        )
        run.save(folder)

    @property
    def _agreed(self) -> tuple[Recipe, Facts]:
        if self._settled is None:
            raise ConfigError("the terms are not worked out yet.")
        return self._settled
