"""A survey on a network, where the numbers are."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ids import Ids
from cofactor.errors import ConfigError, RunError
from cofactor.federation.approvals import Approved
from cofactor.federation.books import released
from cofactor.federation.declining import Declining
from cofactor.federation.door import COORDINATOR
from cofactor.federation.finding import Alignment
from cofactor.federation.host import Host
from cofactor.federation.messages import Letter
from cofactor.federation.opening import Key
from cofactor.federation.summing import Decryption
from cofactor.federation.transcript import Transcript
from cofactor.network.own_ledger import ONLY_OWN, allowed, check_most, in_all, looked_at
from cofactor.network.survey_terms import (
    SILENT,
    SurveyTold,
    SurveyWork,
    names_in,
    people_in,
    terms_table,
)
from cofactor.network.work import Asked, Planned, Sitting
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Event
from cofactor.privacy.ledger import Ledger
from cofactor.survey.answering import answering, begun_with, host_of, ledger_of
from cofactor.survey.people import People
from cofactor.survey.question import Question
from cofactor.survey.result import Survey
from cofactor.survey.telling import guarantee_of, together_of

_DELTA = 1e-6
"""Of a ledger that is begun with what a policy allows: that of trainings, too."""
_HEAD_BYTES, _NUMBER_BYTES = 250, 8


class SurveyAtParty:
    """The work where the numbers are."""

    def __init__(self, sitting: Sitting, read: Callable[[Question], People]) -> None:
        """Read the proposal; `read` gives the party's own numbers, once they are needed."""
        try:
            self._work = SurveyWork.of(sitting.proposal.work)
        except ConfigError as error:
            raise Declining("unreadable", str(error)) from None
        self._sitting, self._read = sitting, read
        self._all: dict[str, int] | None = None
        self._started = datetime.now(UTC), time.perf_counter()
        self.ledger: Ledger | None = None

    @cached_property
    def _people(self) -> People:
        people = replace(self._read(self._work.question), name=self._sitting.name)
        if not len(people.values):
            raise Declining("no data", f"{self._sitting.name}: there is nobody to ask.")
        return people

    @property
    def budget(self) -> Budget:
        """What an answer keeps by itself: that of an extract of the ledger."""
        return self._work.budget

    def asked(self) -> Asked:
        """Return what is asked for, without a look at anybody's number."""
        work = self._work
        return Asked(
            kind="survey",
            what=type(work.method).__name__,
            epsilon=in_all(None, self._events(), work.budget, ""),
            delta=work.budget.delta,
            unit=work.budget.unit,
            adjacency=work.budget.adjacency,
            parties=tuple(self._sitting.proposal.parties),
            aggregate="PlainSum",
            telling="nothing",
        )

    def planned(self) -> Planned:
        """Return what is asked for. Tells nobody anything, and writes nothing."""
        work, sitting, count = self._work, self._sitting, len(self._people.values)
        ledger = looked_at(self._people, newer_data=sitting.newer_data)
        numbers = 1 + len(work.method.beside)
        return Planned(
            **vars(self.asked()),
            in_all=in_all(ledger, self._events(), work.budget, sitting.proposal.session),
            allowed=allowed(ledger),
            rounds=work.schedule.rounds,
            traffic=_HEAD_BYTES + numbers * _NUMBER_BYTES * count,
            sees=(
                f"The coordinator sees one answer about {work.question.name} for each of {count:,} people, "
                "with all of its noise in it, in the order of the file.",
                "The coordinator and all parties see how many people this party answers for, and what all "
                "answers came to.",
            ),
        )

    def _events(self) -> list[Event]:
        return [replace(event, by=self._sitting.name) for event in self._work.schedule.events()]

    def showing(self) -> Ids | None:
        """Return nothing: nobody's id is shown."""
        return None

    def shown(self, ids: Mapping[str, Ids]) -> None:  # noqa: ARG002
        """Refuse: nobody's id is shown."""
        raise Declining("not planned", "ids are shown, and a survey needs none.")

    def told(self) -> dict[str, Any]:
        """Return how many people answer."""
        return {"people": len(self._people.values)}

    def ids(self) -> Ids | None:
        """Return nothing: nobody is searched for."""
        return None

    def found(self, rows: NDArray[np.int64], ids: Ids, alignment: Alignment) -> None:  # noqa: ARG002
        """Refuse: nobody is searched for."""
        raise Declining("not planned", "users in common were searched for, and a survey needs none.")

    def opened_by(self, terms: Mapping[str, Any]) -> None:
        """Return nothing: no sum hides anything here."""

    def host(
        self,
        terms: Mapping[str, Any],
        facts: Mapping[str, Any],
        decryption: Decryption | None,
        key: Key | None,
    ) -> Host:
        """Check the terms, make room in the ledger, and return the end of the wire: one answer passes by it.

        After a restart the stored answer is sent again; one that was charged and not stored is lost.
        """
        if decryption is not None or key is not None:
            raise Declining("other terms", "keys were dealt, and a survey needs none.")
        self._all = self._agreed(terms, facts)
        self.ledger = self._opened_ledger()
        half = answering(
            self._people,
            self._work.question,
            self._work.method,
            ledger=self.ledger,
            session=self._sitting.proposal.session,
            random=self._sitting.random,
        )
        return host_of(half, self._sitting.proposal.session, file=self._sitting.folder / "answer.npz")

    def _agreed(self, terms: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, int]:
        """Work the terms out again, and compare."""
        if facts.get(self._sitting.name) != self.told():
            raise Declining("other terms", "what this party told is not what the coordinator says it told.")
        try:
            people = people_in(facts, self._sitting.proposal)
        except RunError as error:
            raise Declining("other terms", str(error)) from None
        if terms != terms_table(people):
            raise Declining("other terms", "the coordinator's terms do not follow from what parties told.")
        return people

    def _opened_ledger(self) -> Ledger:
        """Open the ledger, or begin it with what the policy allows in all, and make room for the answer."""
        sitting, session = self._sitting, self._sitting.proposal.session
        before = looked_at(self._people, newer_data=sitting.newer_data)
        check_most(in_all(before, self._events(), self._work.budget, session), sitting.most)
        limits = (sitting.most, getattr(self._people.budget, "epsilon", None))
        known = [each for each in limits if each is not None]
        delta = min(_DELTA, sitting.max_delta)
        whole = Budget(epsilon=min(known), delta=delta, unit="user") if known else None
        terms = begun_with(whole, self._work.method)
        ledger = ledger_of(self._people, terms, self._work.schedule, session, newer_data=sitting.newer_data)
        ledger.limit(sitting.most)
        return ledger

    def finish(
        self,
        host: Host,  # noqa: ARG002 (the half leaves nothing)
        last: bytes,
        approvals: tuple[Approved, ...],
    ) -> None:
        """Write the party's own run folder: what answers came to, what it charged, what it saw and sent."""
        assert self.ledger is not None
        assert self._all is not None
        name, session, method = self._sitting.name, self._sitting.proposal.session, self._work.method
        told = self._told_last(last)
        self.ledger.give_up_reserved()
        own = Ledger.from_bytes(self.ledger.extract(session, party=name, budget=self.budget))
        transcript = Transcript.open(self._sitting.transcript_path, recover=True)
        events, (created, start) = tuple(released(own, session)), self._started
        together = together_of(method, transcript, {name: self._all[name]}, {name: own})
        survey = Survey(
            question=self._work.question,
            method=method,
            tally=told.tally,
            answered=told.answered,
            guarantee=guarantee_of(method, events, told.answered, ONLY_OWN),
            together=replace(together, approvals=approvals),
            events=events,
            created=created.isoformat(timespec="seconds"),
            seconds=time.perf_counter() - start,
            unanswered=dict.fromkeys(names_in(told.unanswered), SILENT),
            others=sum(self._all.values()) - self._all[name],
        )
        survey.save(self._sitting.folder / "run", overwrite=True)

    def _told_last(self, last: bytes) -> SurveyTold:
        """Read the last letter; refuse numbers that no answers can have come to."""
        letter = Letter.from_bytes(last, (SurveyTold,))
        told, proposal = letter.body, self._sitting.proposal
        assert isinstance(told, SurveyTold)
        assert self._all is not None
        if (letter.session, letter.sender) != (proposal.session, COORDINATOR):
            raise RunError(f"{self._sitting.name}: a last letter of another session.")
        names = names_in(told.unanswered)
        if not set(names) <= set(proposal.parties) or not 0 < told.answered <= sum(self._all.values()):
            raise RunError(f"{self._sitting.name}: the last letter tells of people who were not asked.")
        self._work.method.estimate(told.tally)  # which refuses what cannot be a tally
        return told
