"""Surveys before a training: what they released counts against its budget, and stands in its ledgers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cofactor.errors import ConfigError, LedgerError
from cofactor.federation.books import released
from cofactor.federation.federation import Federation
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger

if TYPE_CHECKING:
    from cofactor.survey.result import Survey

_LEAST = 0.05
"""Part of a budget that settings are chosen for at least, whatever surveys have taken."""


def check_surveys(surveys: Sequence["Survey"], federation: Federation, budget: Budget | None) -> None:
    """Refuse surveys of other parties, and budgets under which they would not be counted right."""
    if not surveys:
        return
    from cofactor.survey.result import Survey  # surveys are seldom, and take half a second to load

    if not all(isinstance(survey, Survey) for survey in surveys):
        raise ConfigError("surveys must be a list of Survey: what ask, rating_histogram or choose_cap give.")
    if len({survey.session for survey in surveys}) < len(surveys):
        raise ConfigError("a survey is named twice. Name each once: it was asked once.")
    if budget is None or budget.personal is not None:
        raise ConfigError("surveys ask all alike: they count against a budget, and one that is not personal.")
    if federation.kind == "vertical":
        raise ConfigError("surveys are for federations in which every user is at one party.")
    strangers = {name for survey in surveys for name in survey.together.parties} - set(
        federation.facts.parties
    )
    if strangers:
        raise ConfigError(f"{min(strangers)} was asked in a survey, and is no party of this federation.")


def left_by(surveys: Sequence["Survey"], budget: Budget | None) -> Budget | None:
    """Return what surveys leave of a budget, simply subtracted: settings are chosen for that."""
    if budget is None or not surveys:
        return budget
    spent = sum(survey.method.epsilon for survey in surveys)
    return replace(budget, epsilon=max(budget.epsilon - spent, _LEAST * budget.epsilon))


def note_surveys(ledger: Ledger, party: str, surveys: Sequence["Survey"]) -> None:
    """Charge a party's answers to its ledger, if they are not in it: one in memory was not there yet."""
    for survey in surveys:
        own = survey.events_of(party)
        known = [event.once() for event in released(ledger, survey.session)]
        if known and known != [event.once() for event in own]:
            raise LedgerError(
                f"{party}: its ledger knows other answers of the survey of {survey.question.name} than the "
                "survey says. Ask again."
            )
        for event in own if not known else ():
            ledger.spend(event, run=survey.session)
