"""Poisoning: what somebody dishonest changes for everybody else.

A user can change a released sum by no more than the bound that the noise is made for, whatever he rates: that
is the same bound. `poisoned` measures it, and what becomes of the item that he praises. A party that lies
about its answers is bound by nothing but the numbers that a sum can hold: no upload comes with a proof.
"""

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.poisoning_halves import Lie, boosted, few_ratings, lying, turned
from cofactor.attacks.replay import Replay, Setting, added, questions
from cofactor.config import plain_numbers, positive, whole
from cofactor.data.ids import Id
from cofactor.errors import ConfigError
from cofactor.factors.model import Factors
from cofactor.federation.books import released
from cofactor.federation.door import SUM
from cofactor.federation.federation import Federation
from cofactor.federation.labels import round_of
from cofactor.federation.messages import Message
from cofactor.federation.run import Run
from cofactor.federation.summing import Form
from cofactor.federation.view import View
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Bound
from cofactor.privacy.ledger import Ledger
from cofactor.randomness import InsecureRandom
from cofactor.recipes.train import train

_MOST_USERS = 200
"""Users whose predictions are looked at, at most."""


@dataclass(frozen=True, kw_only=True)
class Poisoner:
    """Somebody who wants everybody to like an item."""

    party: str
    """Where: a party, or the name of the cohort of devices."""
    users: int = 1
    """How many of its users praise the item, and nothing else. Those with the fewest ratings: they count
    most where an answer is bounded as a whole."""
    boost: float = 1.0
    """By how much the party multiplies what it tells of the item, as far as a sum can hold it; 1 is honest
    about what its users rated. infinity is as much as can be."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        whole(users=self.users)
        if self.boost != math.inf:
            positive(boost=self.boost)


@dataclass(frozen=True, kw_only=True)
class SumChange:
    """By how much a sum of one round changed, noise apart."""

    round: int
    change: float
    """The length of the difference, in the norm of its bound."""
    allowed: float | None
    """What the bound allows, if users are replaced by dishonest ones; None where nothing bounds them."""


@dataclass(frozen=True, kw_only=True)
class Poisoning:
    """What became of an item, and of the sums that everything follows from."""

    by: Poisoner
    epsilon: float | None
    """Of the budget; None if there was none."""
    honest_users: int
    """Users whose predictions were looked at: none of them is dishonest, nor at the party that lies."""
    rating_before: float
    """What is predicted for the item, on average over these users."""
    rating_after: float
    rank_before: float
    """The place of the item among all, by what is predicted: 1 is first."""
    rank_after: float
    sums: tuple[SumChange, ...]
    """Of all rounds, each for the questions of the honest training."""

    @property
    def change(self) -> float:
        """By how much the item's predicted rating rose."""
        return self.rating_after - self.rating_before

    @property
    def most_of_bound(self) -> float | None:
        """The largest change of a sum, relative to what its bound allows."""
        parts = [each.change / each.allowed for each in self.sums if each.allowed]
        return max(parts, default=None)

    @property
    def bounded(self) -> bool:
        """Whether no sum changed by more than its bound allows."""
        return self.most_of_bound is not None and self.most_of_bound <= 1

    def __str__(self) -> str:
        """Say it in a sentence."""
        part, most = self.most_of_bound, max((each.change for each in self.sums), default=0.0)
        beside = "and no bound was promised" if part is None else f"{part:.2g} times what the bound allows"
        who = f"{self.by.users} dishonest {'user' if self.by.users == 1 else 'users'} at {self.by.party}"
        lies = "" if self.by.boost == 1 else f", told {self.by.boost:g} times,"
        return (
            f"{who}{lies} moved the item from {self.rating_before:.2f} to {self.rating_after:.2f} and from "
            f"place {self.rank_before:.0f} to {self.rank_after:.0f}; sums changed by up to {most:.3g}, "
            f"{beside}."
        )


def poisoned(
    recipe: Any,
    federation: Federation,
    *,
    item: Id,
    by: Poisoner,
    budget: Budget | None = None,
    seed: int = 0,
    noise: int = 1,
) -> Poisoning:
    """Train twice, with the same repeatable noise: as everybody is, and with the poisoner.

    Dishonest users keep the number of their ratings, which is public.
    """
    party, facts = federation.party(by.party), federation.facts
    place = int(party.ratings.item_row(item))
    if by.boost != 1 and facts.cohort:
        raise ConfigError(
            f"{by.party} plays all devices, so nobody would be left who does not lie. Make each device a "
            "party: Federation.on_device([Party(...), ...])."
        )
    users = few_ratings(party.ratings, by.users)
    if len(users) < by.users:
        raise ConfigError(f"{by.party} has {len(users):,} users with two ratings or more, not {by.users:,}.")
    worse = replace(party, ratings=turned(party.ratings, users, place, facts.scale))
    spoiled = replace(federation, parties=tuple(worse if p is party else p for p in federation.parties))
    lie = boosted(place, facts.item_count, by.boost)
    dishonest = recipe if by.boost == 1 else lying(recipe, by.party, lie)

    def trained(how: Any, who: Federation) -> Run:
        random = InsecureRandom(noise)
        return train(how, who, budget=budget, seed=seed, random=random, capture="coordinator")

    before, after = trained(recipe, federation), trained(dishonest, spoiled)
    unit = None if budget is None else budget.unit
    setting = Setting(recipe=recipe.settled(facts, budget), facts=facts, unit=unit, seed=seed)
    assert before.captured is not None
    view = before.captured.view("coordinator")
    honest = _others(federation, by, users)
    ratings = [_predicted(run, honest, place) for run in (before, after)]
    return Poisoning(
        by=by,
        epsilon=None if budget is None else budget.epsilon,
        honest_users=sum(len(rows) for rows in honest.values()),
        rating_before=ratings[0][0],
        rating_after=ratings[1][0],
        rank_before=ratings[0][1],
        rank_after=ratings[1][1],
        sums=_changes(setting, view, (federation, spoiled), by, lie, _bounds(before, by.party)),
    )


def _others(
    federation: Federation, by: Poisoner, dishonest: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """Return the users to look at, by party: all who are not dishonest, nor with a party that may lie."""
    found, left = {}, _MOST_USERS
    for party in federation.parties:
        rows = np.arange(party.ratings.user_count)
        if party.name == by.party:
            rows = np.setdiff1d(rows, dishonest) if len(federation.parties) == 1 else rows[:0]
        found[party.name] = rows[:left]
        left -= len(found[party.name])
    return {name: rows for name, rows in found.items() if len(rows)}


def _predicted(run: Run, honest: Mapping[str, NDArray[np.int64]], item: int) -> tuple[float, float]:
    """Return what is predicted for an item, and its place among all items, on average over users."""
    scores = np.concatenate([_scores(run.homes[party], rows) for party, rows in honest.items()])
    own = scores[:, item]
    places = 1 + (scores > own[:, None]).sum(axis=1) + ((scores == own[:, None]).sum(axis=1) - 1) / 2
    return float(own.mean()), float(places.mean())


def _scores(model: Factors, users: NDArray[np.int64]) -> NDArray[np.float64]:
    count = len(model.item_ids)
    rows, items = np.repeat(users, count), np.tile(np.arange(count), len(users))
    found = model.predict_rows(rows.astype(np.int32), items.astype(np.int32))
    return found.reshape(len(users), count).astype(np.float64)


def _changes(
    setting: Setting,
    view: View,
    federations: tuple[Federation, Federation],
    by: Poisoner,
    lie: Lie,
    bounds: Mapping[int, Sequence[Bound]],
) -> tuple[SumChange, ...]:
    """Return by how much the sums of each round change, noise apart, for the questions of the honest run."""
    honest, dishonest = (Replay(setting, who.parties) for who in federations)
    last, found = setting.recipe.coordinator(setting.facts, setting.seed).rounds, []
    for round, question in sorted(questions(view, setting).items()):
        if round > last:
            continue
        answers = dishonest.answers(round, question)
        if by.boost != 1:
            answers[by.party] = _lied(answers[by.party], lie, _largest(view, round, by.party))
        before, after = (added(each.values()).arrays for each in (honest.answers(round, question), answers))
        missed = np.concatenate([np.ravel(after[name] - before[name]) for name in before]).astype(np.float64)
        # Bounds are those of sums; parties that send vectors after some steps of their own add up nothing.
        summed = any(each.sender == SUM and each.round == round for each in view.seen)
        own = bounds.get(round, ()) if summed else ()
        order = 1 if own and all(bound.norm == "l1" for bound in own) else 2
        # A user who is replaced changes by twice what one who is left out does.
        allowed = 2 * by.users * math.hypot(*(bound.size for bound in own)) if own else None
        found.append(SumChange(round=round, change=float(np.linalg.norm(missed, order)), allowed=allowed))
    return tuple(found)


def _lied(answer: Message, lie: Lie, largest: int | None) -> Message:
    return type(answer)(**answer.plain, **{name: lie(each, largest) for name, each in answer.arrays.items()})


def _largest(view: View, round: int, party: str) -> int | None:
    """Return the largest number that a hidden sum of the round can hold; None if there was none."""
    begun = next(view.messages("SumBegun", round=round, sender=party), None)
    return None if begun is None else int(2 ** (Form.read(str(begun.plain["form"])).bits - 1) - 1)


def _bounds(run: Run, party: str) -> dict[int, list[Bound]]:
    """Return, by round, the bounds of all that a party was charged for; nothing without a budget."""
    found: dict[int, list[Bound]] = {}
    if run.together is None or party not in run.together.ledgers:
        return found
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "copy.ledger"
        path.write_bytes(run.together.ledgers[party])
        for event in released(Ledger.open(path), run.together.session):
            found.setdefault(round_of(event) or 0, []).append(event.bound)
    return found
