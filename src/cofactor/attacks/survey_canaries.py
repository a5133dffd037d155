"""Canaries in a survey: people of whom a coin decides which of two values they have.

Everybody answers for herself, so that thousands of canaries share one survey: it is as if the mechanism had
been tried as often. The two values are the ends of the question's range, which are as far apart as any two:
waves overlap least, and in trees and halves of halves every layer tells them apart that tells any two.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.survey_canaries_law import log_odds
from cofactor.attacks.target import Played
from cofactor.config import whole
from cofactor.errors import ConfigError
from cofactor.federation.door import COORDINATOR
from cofactor.federation.view import Capture, View
from cofactor.privacy.one_run import Curve
from cofactor.randomness import Random
from cofactor.survey.asking import ask
from cofactor.survey.halves import Answers
from cofactor.survey.method import Floats, Method
from cofactor.survey.people import People
from cofactor.survey.question import Question

_NAME = "canaries"
_ANYTHING = Question(name="something", low=0.0, high=1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class SurveyTarget:
    """A survey in which some people are canaries: present ones have the highest value, others the lowest."""

    method: Method
    """How they answer, with its epsilon."""
    question: Question = _ANYTHING
    """What they are asked, and between which numbers it lies."""
    canaries: int = 2000
    """How many there are."""
    others: People | None = None
    """Who is asked besides. Their answers say nothing of a canary's."""
    seen_by: str = COORDINATOR
    """Who looks: only the coordinator sees answers of others."""

    def __post_init__(self) -> None:
        whole(canaries=self.canaries)
        if self.seen_by != COORDINATOR:
            raise ConfigError(
                f"answers of a survey are seen by the {COORDINATOR}, and by nobody else, not by "
                f"{self.seen_by!r}."
            )
        if self.others is not None and self.others.name == _NAME:
            raise ConfigError(f"others may not be called {_NAME!r}. Give them another name.")

    @property
    def name(self) -> str:
        """What is audited."""
        return f"a survey by {type(self.method).__name__}"

    def play(self, present: NDArray[np.bool_], random: Random) -> Played:
        """Ask everybody once, and score canaries by how likely their answers are for both values."""
        values = np.where(present, self.question.high, self.question.low).astype(np.float64)
        people = [People(name=_NAME, values=values), *([] if self.others is None else [self.others])]
        capture = Capture(self.seen_by)
        survey = ask(people, self.question, method=self.method, random=random, capture=capture)
        return Played(
            scores=self.scores(capture.view(self.seen_by)),
            promised=Curve.of(survey.events, unit="user", adjacency="replace", apart=True),
            guarantee=survey.guarantee,
        )

    def scores(self, view: View) -> Floats:
        """Return how much each canary's answer speaks for the highest value, in log-odds.

        That is the most that anybody can make of it: the law of answers is public.
        """
        seen = next(view.messages(Answers.__name__, sender=_NAME), None)
        if seen is None:
            raise ConfigError("no answers of canaries were seen. Capture what the coordinator sees.")
        ends = np.array([self.question.high, self.question.low], np.float64)
        high, low = self.question.positions(ends)[0]
        one, other = (np.full(self.canaries, each) for each in (high, low))
        beside = {name: seen.arrays[name] for name in self.method.beside}
        return log_odds(self.method, one, other, seen.arrays["answers"], beside)
