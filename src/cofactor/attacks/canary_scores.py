"""From what a role saw to a score for each canary.

Who sees answers plays the participants again on the questions that were asked, with one half of the canaries
present, and with the other: the difference is what each adds. Who sees only questions, or the model, plays
the whole training again. Canaries are scored by how well what was seen fits with the difference.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.canary_evidence import Apart, Law, Overlapping, Reals, Rows
from cofactor.attacks.canary_planting import Planted
from cofactor.attacks.canary_reports import report_odds
from cofactor.attacks.replay import Replay, Setting, added, rehearsed, rounds_of
from cofactor.errors import ConfigError
from cofactor.federation.door import COORDINATOR, SUM
from cofactor.federation.messages import Message
from cofactor.federation.party import Party
from cofactor.federation.view import View
from cofactor.privacy.mechanisms import DiscreteLaplace, Laplace, SampledGaussian
from cofactor.recipes.local_reports import LocalReports
from cofactor.recipes.projected import ProjectedMF
from cofactor.recipes.projected_halves import asked_in

Arrays = Mapping[str, NDArray[Any]]

_MOSTLY = 0.5
"""Part of a difference that must lie on the canaries' own rows for them to be told apart there."""
_MODEL = ("item_bias", "item_vectors", "user_bias", "user_vectors")


@dataclass(frozen=True, kw_only=True, eq=False)
class Scoring:
    """Canaries, and what is public of the training that they were planted in."""

    planted: Planted
    setting: Setting

    def scores(self, view: View) -> Reals:
        """Return a score for each canary, larger if it seems to be present, from what was seen alone."""
        if COORDINATOR not in view.roles:
            found = self._by_hearsay(view)
        elif isinstance(self.setting.recipe, LocalReports):
            found = report_odds(self.planted, self.setting, view)
        else:
            found = self._by_mixtures(view) if self._mixes else self._by_answers(view)
        if not np.any(found != found[0]):
            raise ConfigError(
                f"{' and '.join(view.roles)} saw nothing in which canaries could show. Audit another role, "
                'such as seen_by="coordinator".'
            )
        return found

    def _by_answers(self, view: View) -> Reals:
        """Score from answers, or their sums, of which each row depends on one canary at most."""
        replays = [Replay(self.setting, parties) for parties in self._halves]
        total = np.zeros(self.planted.canaries)
        for round, question, answers in rounds_of(view, self.setting):
            expected = [each.answers(round, question) for each in replays]
            for seen in answers:
                one, other = (_by(seen.sender, each) for each in expected)
                total += self._told(seen.arrays, one, other, seen.sender, self._law)
        return total

    def _by_mixtures(self, view: View) -> Reals:
        """Score from sums in which all canaries are mixed: each is played by itself, round by round."""
        canaries = range(self.planted.canaries)
        together, without = Overlapping(len(canaries)), Replay(self.setting, self._alone(False))
        full, empty = (
            [Replay(self.setting, each) for each in self._singles(state)] for state in (True, False)
        )
        for round, question, answers in rounds_of(view, self.setting):
            nothing = without.answers(round, question)
            for seen in answers:
                base = _by(seen.sender, nothing)
                for name in (each for each in base if 2 * base[each].size >= len(canaries)):
                    other = [added(each.answers(round, question).values()).arrays[name] for each in empty]
                    alone = [added(each.answers(round, question).values()).arrays[name] for each in full]
                    # Whoever has no ratings is like everybody else who has none.
                    apart = [(alone[at] - other[at % len(other)]).ravel() for at in canaries]
                    expected = np.array(apart, np.float64) * self._asked(round)[:, None]
                    together.take(np.asarray(seen.arrays[name] - base[name], np.float64).ravel(), expected)
        return together.log_odds()

    def _by_hearsay(self, view: View) -> Reals:
        """Score from the model, or from the last question that a party was asked."""
        last = max(
            (each for each in view.seen if each.sender == COORDINATOR and self.setting.message(each)),
            key=lambda each: each.round,
            default=None,
        )
        if last is None and view.model is None:
            raise ConfigError(
                f"{' and '.join(view.roles)} saw no message, and no model was published, so canaries cannot "
                'show. Use seen_by="coordinator".'
            )
        one, other = (rehearsed(self.setting, parties) for parties in self._halves)
        if last is not None:
            asked = one.asked[last.round].arrays, other.asked[last.round].arrays
            return self._told(last.arrays, *asked, SUM, Law())
        models = [
            {name: getattr(model, name) for name in _MODEL} for model in (view.model, one.model, other.model)
        ]
        return self._told(models[0], models[1], models[2], SUM, Law())

    def _told(self, seen: Arrays, one: Arrays, other: Arrays, sender: str, law: Law) -> Reals:
        """Return what arrays say for each canary, as far as canaries lie apart in them.

        `one` is what they would be with all canaries of even numbers present, `other` with all others.
        """
        total = np.zeros(self.planted.canaries)
        for name in one:
            even, odd = one[name].astype(np.float64), other[name].astype(np.float64)
            chosen = self._own_rows(even - odd, sender)
            if chosen is not None:
                canary, rows = chosen
                shape = len(rows), -1
                sign = 1.0 - 2.0 * (canary % 2)[:, None]
                present, absent = even[rows].reshape(shape), odd[rows].reshape(shape)
                without = np.where(sign > 0, absent, present)
                total += Apart(
                    canary=canary,
                    seen=seen[name][rows].reshape(shape) - without,
                    expected=sign * (present - absent),
                ).log_odds(self.planted.canaries, law)
        return total

    def _own_rows(self, difference: Reals, sender: str) -> tuple[Rows, Rows] | None:
        """Return rows that hold most of a difference, and whose each is; None if canaries share them."""
        if difference.ndim == 0 or not difference.any():
            return None
        squares = (difference**2).reshape(len(difference), -1).sum(axis=1)
        fitting = [each for each in self._places(sender) if len(each[1]) and each[1].max() < len(squares)]
        best = max(fitting, key=lambda each: squares[each[1]].sum(), default=None)
        if best is None or squares[best[1]].sum() < _MOSTLY * squares.sum():
            return None
        return best

    def _places(self, sender: str) -> Iterator[tuple[Rows, Rows]]:
        """Yield what may be the rows of canaries: of their items, or of their users."""
        own, facts = self.planted.ratings, self.setting.facts
        yield own.canary, own.column
        if facts.split != "vertical":
            return
        here = np.ones(len(own.party), np.bool_) if sender == SUM else own.party == facts.place(sender)
        if sender != SUM:
            yield own.canary[here], own.item[here]
        canary, first = np.unique(own.canary[here], return_index=True)
        yield canary, own.user[here][first]

    @cached_property
    def _halves(self) -> tuple[tuple[Party, ...], tuple[Party, ...]]:
        """All parties with canaries' ratings only: those of even numbers present, and the others.

        About as many are present as in a run, so that what they do together to means and the like is alike.
        """
        even = np.arange(self.planted.canaries) % 2 == 0
        one, other = (self.planted.federation(half, alone=True).parties for half in (even, ~even))
        return one, other

    def _alone(self, present: bool) -> tuple[Party, ...]:
        """Return all parties with canaries' ratings only: all canaries present, or none."""
        return self.planted.federation(np.full(self.planted.canaries, present), alone=True).parties

    def _singles(self, present: bool) -> list[Sequence[Party]]:
        """Return each canary by itself; one for all, if they have no ratings."""
        alike = not present and bool(np.isnan(self.planted.ratings.other).all())
        canaries = range(1 if alike else self.planted.canaries)
        if self.setting.unit is not None:
            return [self.planted.only(canary, present=present) for canary in canaries]
        # Without a budget nothing is opened for so few.
        one = np.eye(self.planted.canaries, dtype=np.bool_)
        return [self.planted.federation(one[at] & present, alone=True).parties for at in canaries]

    def _asked(self, round: int) -> Reals:
        """Return 1 for canaries that were asked in a round, 0 for others: public."""
        recipe, own = self.setting.recipe, self.planted.ratings
        if not (isinstance(recipe, ProjectedMF) and self.setting.facts.cohort):
            return np.ones(self.planted.canaries)
        asked = asked_in(round, recipe, self.setting.home(self.planted.ground.parties[0]))
        _, first = np.unique(own.canary, return_index=True)
        return asked[own.user[first]].astype(np.float64)

    @property
    def _mixes(self) -> bool:
        """Whether items are mixed with each other before anything leaves."""
        recipe = self.setting.recipe
        return isinstance(recipe, ProjectedMF) or getattr(recipe, "reduction", 1.0) > 1

    @cached_property
    def _law(self) -> Law:
        """What is public about the noise of answers."""
        setting = self.setting
        if setting.unit is None:
            return Law()
        main = setting.recipe.schedule(setting.facts, setting.unit, setting.facts.parties[0]).releases[0]
        if isinstance(main.mechanism, SampledGaussian):
            return Law(sampling=main.mechanism.sampling, steps=main.times)
        return Law(shape="laplace" if isinstance(main.mechanism, Laplace | DiscreteLaplace) else "normal")


def _by(sender: str, answers: Mapping[str, Message]) -> Arrays:
    return (added(answers.values()) if sender == SUM else answers[sender]).arrays
