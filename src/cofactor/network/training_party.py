"""A training on a network, where the ratings are."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import as_table
from cofactor.data.ids import Ids
from cofactor.errors import ConfigError
from cofactor.federation.aligning import only, placed
from cofactor.federation.approvals import Approved
from cofactor.federation.books import open_ledger, released, reserve
from cofactor.federation.declining import Declining
from cofactor.federation.drive import Session, last_answered
from cofactor.federation.finding import Alignment
from cofactor.federation.halves import Facts, Recipe
from cofactor.federation.host import Host
from cofactor.federation.messages import heading
from cofactor.federation.opening import Key
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.session import seconds_in_rounds, told_before
from cofactor.federation.splits import shared_units
from cofactor.federation.summing import Decryption
from cofactor.federation.transcript import Transcript
from cofactor.network.assuming import assumed, on_a_network
from cofactor.network.own_ledger import ONLY_OWN, allowed, check_most, in_all, looked_at
from cofactor.network.training_terms import (
    OwnFacts,
    TrainingWork,
    bound,
    facts_of,
    opened_by,
    reading,
    schedules_of,
    searched,
    shared_ids,
    sizes_told,
    terms_table,
)
from cofactor.network.work import WORKED, Asked, Planned, Sitting
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.plan import Plan, needed
from cofactor.privacy.schedule import Schedule
from cofactor.recipes.hosts import aggregate_of, host_of, noise_beside_own, summing_of
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum
from cofactor.recipes.outcome import data_facts, together_of
from cofactor.recipes.plan import plan
from cofactor.recipes.promising import guarantee_of

_HEAD_BYTES, _SUM_BYTES, _AGREED_BYTES = 250, 650, 2_500
"""The head of a letter; in a secure sum, keys, shares of keys and signatures for each party; and round 0."""


class TrainingAtParty:
    """The work where the ratings are."""

    def __init__(self, sitting: Sitting, read: Callable[[TrainingWork], Party]) -> None:
        """Read the proposal; `read` gives the party's own ratings, once they are needed."""
        try:
            self._sitting, self._work = sitting, TrainingWork.of(sitting.proposal.work)
        except ConfigError as error:
            raise Declining("unreadable", str(error)) from None
        self._read = read
        self._alignment: Alignment | None = None
        self._common: tuple[Ids, Party] | None = None
        self._shared: Ids | None = None
        self._held: Party | None = None
        self._settled: tuple[Recipe, Facts] | None = None
        self._session: Session | None = None
        self.ledger: Ledger | None = None

    @cached_property
    def _whole(self) -> Party:
        """The party with all that its file holds."""
        party = self._read(self._work)
        if self._work.split == "on-device" and party.ratings.user_count != 1:
            raise Declining("no data", "a device has the ratings of one user.")
        return party

    @property
    def _party(self) -> Party:
        """The party, with the users alone whom all have, where these were searched for."""
        return self._whole if self._common is None else self._common[1]

    def asked(self) -> Asked:
        """Return what is asked for, without a look at anybody's ratings."""
        work, recipe, parties = self._work, self._work.recipe, tuple(self._sitting.proposal.parties)
        budget, aggregate = work.budget, aggregate_of(recipe)
        why_not, layers = aggregate.why_not(len(parties)), aggregate.layers(len(parties))
        if why_not and budget is not None:
            raise Declining("policy: aggregate", f"{why_not[0]} Ledgers would be charged too little.")
        return Asked(
            kind="training",
            what=type(recipe).__name__,
            epsilon=None if budget is None else budget.epsilon,
            delta=0.0 if budget is None else budget.delta,
            unit=recipe.units[0] if budget is None else budget.unit,
            adjacency="empty" if budget is None else budget.adjacency,
            parties=parties,
            aggregate=type(aggregate).__name__,
            fewest=None if layers is None else layers.fewest,
            telling=work.ids,
            most_ratings=getattr(recipe, "max_ratings_per_user", None),
            rests_on=tuple(each.what for each in assumed(aggregate, len(parties))),
            on_trust=tuple(each.what for each in aggregate.on_trust(len(parties)) if budget is not None),
        )

    def planned(self) -> Planned:
        """Return what is asked for, worked out with the party's own sizes for those of all."""
        work, ratings, proposal = self._work, self._party.ratings, self._sitting.proposal
        count = len(proposal.parties)
        budget, recipe = work.budget, work.recipe
        vertical = work.split == "vertical"
        found = None
        if budget is not None:
            found = plan(
                recipe,
                budget,
                users=max(ratings.user_count, 1) * (1 if vertical else count),
                items=max(ratings.item_count, 1) * (count if vertical else 1),
                ratings=max(len(ratings), 1) * count,
                parties=1 if work.split == "on-device" else count,
                public_items=work.items,
            )
        return Planned(
            **vars(self.asked()),
            in_all=None if found is None else self._in_all(found.schedule),
            allowed=None if found is None else allowed(self._looked_at()),
            rounds=0 if found is None else found.schedule.rounds,
            traffic=self._traffic(found),
            sees=(*self._sees(), *reading(work), *searched(work, proposal.parties), *self._left_out()),
        )

    def _traffic(self, found: Plan | None) -> int:
        """Return about how many bytes this party sends: its answers, their letters, and what is agreed on."""
        count, shown = len(self._sitting.proposal.parties), self.showing()
        ids = () if shown is None else shown.tolist()
        before = _AGREED_BYTES + len(json.dumps(ids))
        if found is None:
            return before
        summed = aggregate_of(self._work.recipe).layers(count) is not None
        each = _HEAD_BYTES + (count * _SUM_BYTES if summed else 0)
        return before + each * found.schedule.rounds + found.total_bytes // (2 * count)

    def _in_all(self, schedule: Schedule) -> float:
        """Return what the ledger would hold with this, too; what was charged in this session is in both."""
        budget, sitting = self._work.budget, self._sitting
        assert budget is not None
        own = [replace(event, by=sitting.name) for event in replace(schedule, parties=1).events()]
        return in_all(self._looked_at(), own, budget, sitting.proposal.session)

    def _looked_at(self) -> Ledger | None:
        return looked_at(self._party, newer_data=self._sitting.newer_data)

    def _left_out(self) -> tuple[str, ...]:
        """Say, to the people here, what a catalogue leaves out; to others that would tell what is held."""
        if self._work.catalogue is None:
            return ()
        known = np.isin(self._party.ratings.item_ids, self._work.catalogue)
        missing = int((~known).sum())
        if missing == len(known):
            return (f"NONE of this party's {missing:,} items is in the catalogue: are ids written alike?",)
        return (f"Nobody sees ratings of {missing:,} items that the catalogue lacks.",) if missing else ()

    def _sees(self) -> tuple[str, ...]:
        work, count = self._work, len(self._sitting.proposal.parties)
        alone = aggregate_of(work.recipe).layers(count) is None
        noise = "no noise in it" if work.budget is None else "all of its noise in it"
        return (
            f"The coordinator sees each answer of this party, with {noise}."
            if alone
            else "The coordinator sees sums of all parties' answers, and no answer by itself.",
            *sizes_told(work),
        )

    def showing(self) -> Ids | None:
        """Return the ids that it shows to everybody; None if none are."""
        if self._work.ids not in ("union", "intersection"):
            return None
        ratings = self._party.ratings
        return ratings.user_ids if self._work.split == "vertical" else ratings.item_ids

    def shown(self, ids: Mapping[str, Ids]) -> None:
        """Take what all parties have shown."""
        self._shared = shared_ids(self._work, ids, None)

    def ids(self) -> Ids | None:
        """Return the ids that are searched for common ones."""
        return self._whole.ratings.user_ids if self._work.ids == "psi" else None

    def found(self, rows: NDArray[np.int64], ids: Ids, alignment: Alignment) -> None:
        """Keep the users of these rows, in this order, under these ids."""
        self._alignment, self._common = alignment, (ids, only(self._whole, ids, rows))
        self._shared = shared_ids(self._work, {}, alignment)

    def told(self) -> dict[str, Any]:
        """Return what this party tells: how much it has.

        Of what is shared others decide, or say that they do: of how many ratings that is must not be told.
        """
        held = self._holding()
        own = OwnFacts(
            users=held.ratings.user_count,
            items=held.ratings.item_count,
            ratings=self._work.ratings_each or len(self._whole.ratings),
            others=held.ratings.item_ids if self._work.split == "vertical" else None,
            implicit=held.ratings.implicit,
        )
        return own.table()

    def _holding(self) -> Party:
        """Return the party with everything in the places that all agreed on."""
        if self._held is None:
            shared = self._shared if self._common is None else self._common[0]
            if shared is None:
                shared = shared_ids(self._work, {}, None)
            side = "user" if self._work.split == "vertical" else "item"
            self._held = placed(self._party, shared, side)
            if self._work.items is not None:
                ids = self._held.ratings.item_ids
                features = self._work.items.matching_rows(ids, owner=self._sitting.name)
                self._held = replace(self._held, features=features)
        return self._held

    def opened_by(self, terms: Mapping[str, Any]) -> EncryptedSum | SharedSum | None:  # noqa: ARG002
        """Return how sums are opened, if decrypters open them."""
        return opened_by(self._work.recipe, len(self._sitting.proposal.parties))

    def host(
        self,
        terms: Mapping[str, Any],
        facts: Mapping[str, Any],
        decryption: Decryption | None,
        key: Key | None,
    ) -> Host:
        """Check the terms, make room in the ledger, and return the end of the wire."""
        name, work, proposal = self._sitting.name, self._work, self._sitting.proposal
        if facts.get(name) != json.loads(json.dumps(self.told())):
            raise Declining("other terms", "what this party told is not what the coordinator says it told.")
        told = {party: OwnFacts.of(facts[party], party) for party in proposal.parties}
        shared = self._shared if self._shared is not None else shared_ids(work, {}, self._alignment)
        public = facts_of(work, told, shared)
        settled = work.recipe.settled(public, work.budget)
        if terms_table(settled, public) != terms:
            raise Declining("other terms", "the coordinator's terms do not follow from what parties told.")
        own = public if self._common is None else replace(public, shared_ids=self._common[0])
        schedules = schedules_of(settled, own, work.budget)
        self.ledger = self._opened_ledger(schedules, own)
        self._settled = settled, own
        self._session = Session(
            name=proposal.session,
            kinds=settled.messages,
            transcript=Transcript.open(self._sitting.transcript_path, recover=True),
            folder=self._sitting.folder,
            summing=bound(summing_of(settled, own, proposal.roster, decryption), settled, public),
        )
        return host_of(
            settled,
            self._holding(),
            own,
            self._session,
            schedule=schedules.get(name),
            ledger=self.ledger,
            random=self._sitting.random,
            identity=self._sitting.identity,
            key=key,
            loudest=noise_beside_own(settled, own, schedules).get(name, 1.0),
            seed=proposal.seed,
            rounds=settled.coordinator(own, proposal.seed).rounds,
        )

    def _opened_ledger(self, schedules: Mapping[str, Schedule], facts: Facts) -> Ledger | None:
        """Open the ledger, or begin it with what the policy allows in all, and make room for the schedule."""
        budget, sitting = self._work.budget, self._sitting
        if budget is None:
            return None
        own = replace(schedules[sitting.name], parties=1)
        check_most(self._in_all(own), sitting.most)
        if sitting.most is not None:
            terms = replace(budget, epsilon=sitting.most)
        elif shared_units(facts.split, budget.unit):
            terms = needed(own, delta=budget.delta, unit=budget.unit, adjacency=budget.adjacency)
        else:
            terms = budget
        ledger = open_ledger(self._party, terms, sitting.folder, newer_data=sitting.newer_data)
        ledger.limit(sitting.most)
        reserve(ledger, schedules[sitting.name], sitting.proposal.session)
        return ledger

    def finish(self, host: Host, last: bytes, approvals: tuple[Approved, ...]) -> None:
        """Write the party's own run folder: its model, what it charged, what it saw and sent."""
        assert self._settled is not None
        assert self._session is not None
        name, (recipe, facts), budget = self._sitting.name, self._settled, self._work.budget
        session, start = self._session, time.perf_counter()
        model, progress = host.finish(last), told_before(self._sitting.folder)
        phases = {
            "rounds": seconds_in_rounds(progress, WORKED),
            "finishing at home": time.perf_counter() - start,
        }
        planned = recipe.coordinator(facts, self._sitting.proposal.seed).rounds
        transcript = Transcript.open(self._sitting.transcript_path)
        events, copies = {}, {}
        if self.ledger is not None and budget is not None:
            self.ledger.give_up_reserved()
            events = {name: released(self.ledger, session.name)}
            copies = {name: self.ledger.extract(session.name, party=name, budget=budget)}
        together = together_of(
            recipe,
            facts,
            budget,
            replace(session, transcript=transcript),
            copies,
            events,
            parties=[name],
            # The last letter comes after all rounds, but a coordinator could write any number on it.
            rounds=min(heading(last).round - 1, last_answered(transcript), planned),
            planned=planned,
            alignment=self._alignment,
        )
        run = Run(
            model=None,
            recipe=as_table(recipe),
            seed=self._sitting.proposal.seed,
            data=data_facts(facts),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=sum(phases.values()),
            phases=phases,
            events=tuple(progress),
            guarantee=on_a_network(
                guarantee_of(
                    recipe,
                    facts,
                    budget,
                    events.get(name, []),
                    alignment=self._alignment,
                    doubts=ONLY_OWN,
                    beside=reading(self._work),
                    ended=together.ended_early,
                ),
                aggregate_of(recipe),
                len(facts.parties),
            ),
            homes={name: model},
            together=replace(together, approvals=approvals),
        )
        run.save(self._sitting.folder / "run", overwrite=True)
