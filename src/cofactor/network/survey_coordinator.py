"""A survey on a network, where nobody's numbers are."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from cofactor.data.ids import Ids
from cofactor.errors import ConfigError, RunError
from cofactor.federation.approvals import Approved
from cofactor.federation.books import all_released, released
from cofactor.federation.drive import Round, Session
from cofactor.federation.finding import Alignment
from cofactor.federation.halves import Coordinator, State
from cofactor.federation.host import Host
from cofactor.federation.messages import Message
from cofactor.federation.summing import Decryption, Summing
from cofactor.network.own_ledger import books, not_heard
from cofactor.network.proposal import Proposal
from cofactor.network.survey_terms import MESSAGES, SILENT, SurveyTold, SurveyWork, people_in, terms_table
from cofactor.network.work import Search
from cofactor.privacy.ledger import Ledger
from cofactor.progress import Listener
from cofactor.recipes.telling import told_rounds
from cofactor.survey.halves import Adding
from cofactor.survey.method import Integers
from cofactor.survey.result import Survey
from cofactor.survey.telling import guarantee_of, together_of


class Counting:
    """The coordinator's half, which remembers what answers came to, and tells all of it in the end."""

    rounds = 1

    def __init__(self, work: SurveyWork, people: Mapping[str, int]) -> None:
        """Know how many people each party answers for."""
        self._adding, self._people = Adding(work.question, work.method, people), people
        self._tally: Integers | None = None
        self.refused: dict[str, str] = {}
        """Who answered nothing that can be used, and why."""
        self.counted: tuple[str, ...] = ()
        """Whose answers were."""

    def ask(self, round: int) -> Message:
        """Ask the question."""
        return self._adding.ask(round)

    def sums(self, round: int) -> bool:
        """Every answer is seen by itself, and is private by itself."""
        return self._adding.sums(round)

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Add up what came; there must be something that can be used."""
        self._adding.take(round, replies)
        self._tally, self.refused = self._adding.tally(), dict(self._adding.refused)
        self.counted = tuple(
            party for party in self._people if party in replies and party not in self.refused
        )

    @property
    def tally(self) -> Integers:
        """All answers, added up."""
        return self._adding.tally() if self._tally is None else self._tally

    @property
    def answered(self) -> int:
        """How many people have answered."""
        return sum(self._people[party] for party in self.counted)

    def last(self) -> Message:
        """Return what everybody may see."""
        silent = [party for party in self._people if party not in self.counted]
        return SurveyTold(tally=self.tally, answered=self.answered, unanswered=json.dumps(silent))

    def published(self) -> None:
        """Return nothing: there is no model."""

    def state(self) -> State:
        """Return what it must remember: nobody who has answered is asked again."""
        who = json.dumps({"counted": self.counted, "refused": self.refused})
        return {"tally": self.tally, "who": np.array(who)}

    def restore(self, state: State) -> None:
        """Go on from there."""
        who = json.loads(str(state["who"]))
        self._tally = np.asarray(state["tally"], np.int64)
        self.counted, self.refused = tuple(who["counted"]), dict(who["refused"])


class SurveyAtCoordinator:
    """The work where nobody's numbers are."""

    search: Search | None = None

    def __init__(self, proposal: Proposal) -> None:
        """Read the proposal."""
        self._proposal, self._work = proposal, SurveyWork.of(proposal.work)
        self._people: dict[str, int] = {}
        self._missing: dict[str, str] = {}
        self._started = datetime.now(UTC), time.perf_counter()

    @property
    def messages(self) -> tuple[type[Message], ...]:
        """The kinds of messages of its rounds, and the last letter."""
        return MESSAGES

    def terms(
        self, told: Mapping[str, Mapping[str, Any]], shown: Mapping[str, Ids], alignment: Alignment | None
    ) -> dict[str, Any]:
        """Return how many people are asked, party by party."""
        if shown or alignment is not None:
            raise ConfigError("a survey neither shows ids nor searches for users.")
        self._people = people_in(told, self._proposal)
        return terms_table(self._people)

    def opened_by(self) -> None:
        """Return nothing: no sum hides anything here."""

    def summing(self, decryption: Decryption | None) -> Summing | None:  # noqa: ARG002
        """Return nothing: every answer is private by itself."""
        return None

    def begin(self) -> Counting:
        """Return the coordinator's half. After `terms`."""
        if not self._people:
            raise ConfigError("the terms are not worked out yet.")
        return Counting(self._work, self._people)

    def roles(self, session: Session) -> Mapping[str, Host]:  # noqa: ARG002
        """Return nobody."""
        return {}

    def listening(self, note: Listener, before: float = 0.0) -> Callable[[Round], None]:
        """Return who turns rounds into progress, and keeps why somebody is missing."""
        tell = told_rounds(note, self._work.budget, self._work.schedule, before)

        def listen(done: Round) -> None:
            self._missing = dict(done.missing)
            tell(done)

        return listen

    def save(
        self,
        folder: Path,
        session: Session,
        coordinator: Coordinator,
        ledgers: Mapping[str, bytes],
        approvals: tuple[Approved, ...],
    ) -> None:
        """Write the run folder: released numbers only."""
        assert isinstance(coordinator, Counting)
        method, (created, start) = self._work.method, self._started
        schedules = dict.fromkeys(coordinator.counted, self._work.schedule)
        copies = books(ledgers, session.name, schedules, self._work.budget)
        _check_charged(coordinator.counted, copies, session.name)
        events = tuple(all_released(copies, session.name))
        why = self._missing | coordinator.refused
        survey = Survey(
            question=self._work.question,
            method=method,
            tally=coordinator.tally,
            answered=coordinator.answered,
            guarantee=guarantee_of(method, events, coordinator.answered, not_heard(copies)),
            together=replace(
                together_of(method, session.transcript, self._people, copies), approvals=approvals
            ),
            events=events,
            created=created.isoformat(timespec="seconds"),
            seconds=time.perf_counter() - start,
            unanswered={
                name: why.get(name, SILENT) for name in self._people if name not in coordinator.counted
            },
        )
        survey.save(folder)


def _check_charged(counted: tuple[str, ...], ledgers: Mapping[str, Ledger], session: str) -> None:
    """Refuse a result of which somebody has not said what it cost."""
    silent = [name for name in counted if name not in ledgers or not released(ledgers[name], session)]
    if silent:
        raise RunError(
            f"{', '.join(silent)} answered, and did not say what that cost: no guarantee can be written. "
            "Finish again when they are back."
        )
