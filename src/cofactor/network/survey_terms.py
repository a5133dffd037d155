"""What a survey on a network is about, and what follows from what its parties told."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cofactor.config import as_table, from_table
from cofactor.errors import RunError
from cofactor.federation.messages import Message
from cofactor.network.proposal import Proposal
from cofactor.privacy.budget import Budget
from cofactor.privacy.schedule import Schedule
from cofactor.survey.answering import SURVEY, check_fits, kept_by, schedule_of
from cofactor.survey.methods import AnyMethod, usual_method
from cofactor.survey.question import Question

SILENT = "did not answer"


@dataclass(frozen=True, kw_only=True)
class SurveyWork:
    """A survey: what everybody is told of it before anybody agrees."""

    question: Question
    method: AnyMethod
    """How people answer: with its own epsilon."""

    def __post_init__(self) -> None:
        check_fits(self.question, self.method)

    @classmethod
    def usual(cls, question: Question, epsilon: float, people: int = 1) -> "SurveyWork":
        """Return a survey by the method that serves a question best as a rule, of about so many people."""
        return cls(question=question, method=cast(AnyMethod, usual_method(question, epsilon, people)))

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> "SurveyWork":
        """Read it from a proposal, whoever wrote that."""
        return from_table(cls, table, "survey")

    def table(self) -> dict[str, Any]:
        """Return it as a proposal holds it."""
        return as_table(self)

    @property
    def schedule(self) -> Schedule:
        """What every holder releases."""
        return schedule_of(self.question, self.method)

    @property
    def budget(self) -> Budget:
        """What an answer keeps by itself."""
        return kept_by(self.method)


@dataclass(frozen=True, kw_only=True, eq=False)
class SurveyTold(Message):
    """The last letter: what all answers came to, which everybody may see."""

    tally: NDArray[np.int64]
    answered: int
    """How many people have answered."""
    unanswered: str
    """The parties of whom nothing could be used: a list as JSON."""


def people_in(told: Mapping[str, Any], proposal: Proposal) -> dict[str, int]:
    """Return how many people each party answers for, as it told; refuse what makes no sense."""
    for party in proposal.parties:
        table = told.get(party)
        count = table.get("people") if isinstance(table, Mapping) and set(table) == {"people"} else None
        if type(count) is not int or not 0 < count < 2**40:
            raise RunError(f"{party} told facts that make no sense. Is it of the same version?")
    if set(told) != set(proposal.parties):
        raise RunError("somebody told facts who does not take part.")
    return {party: told[party]["people"] for party in proposal.parties}


def terms_table(people: Mapping[str, int]) -> dict[str, Any]:
    """Return the terms: how many people are asked, party by party."""
    return {"people": dict(people)}


MESSAGES: tuple[type[Message], ...] = (*SURVEY, SurveyTold)
"""All messages of a survey on a network."""


def names_in(text: str) -> list[str]:
    """Return the parties that the last letter names."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise RunError("the last letter does not say who has not answered.")
    return found
