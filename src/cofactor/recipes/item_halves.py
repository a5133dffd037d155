"""The two halves of `SharedBiases` and `SecureALS`: sums about items, a few times, and all else at home."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped
from cofactor.data.ratings import Ratings
from cofactor.errors import RunError
from cofactor.factors.bayes import Bayes
from cofactor.factors.model import Factors, seen_in
from cofactor.federation.halves import Facts, Home, State, array_of
from cofactor.federation.messages import Message
from cofactor.privacy.bounding import Bounded
from cofactor.randomness import Seeds
from cofactor.recipes.device_steps import left_in
from cofactor.recipes.home_fit import fit_best
from cofactor.recipes.item_beliefs import Beliefs
from cofactor.recipes.item_factors import Told, told_of, with_factors_begun, with_idle_factors
from cofactor.recipes.item_letters import (
    GAIN_SUM,
    USER_SUMS,
    GainAsked,
    GainSum,
    ItemAndSpreadSums,
    ItemsFinal,
    ItemsKnown,
    ItemSums,
    UsersAsked,
    UserSums,
    item_sums_of,
    spread_sums_of,
    without_items,
)
from cofactor.recipes.item_models import Units, choice_of, choosing_model, features_of, model_of
from cofactor.recipes.item_rounds import item_columns
from cofactor.recipes.item_sums import Known, bounded_total, gains, summed, told_in
from cofactor.recipes.item_updates import with_counts, with_gain, with_items, with_spread, with_users
from cofactor.recipes.item_weights import drawn_to_take_part, mean_part, own_weights, samples, stretches
from cofactor.recipes.projected_steps import Sketch
from cofactor.recipes.summing_mode import into_sum, only_sums

if TYPE_CHECKING:
    from cofactor.recipes.shared_biases import SharedBiases

Reals = NDArray[np.float64]

_TAKING_PART = "taking part"
"""Under which name a party remembers who takes part."""


class ItemParticipant:
    """One device, a party of many users, or a cohort of devices: tastes never leave it."""

    def __init__(self, recipe: "SharedBiases", home: Home) -> None:
        """Bring ratings to the usual units, and draw who takes part where not all do."""
        self._recipe, self._home = recipe, home
        self._units = Units(home.facts)
        self._ratings = self._units.inward(home.party.ratings.by_user)
        self._features = features_of(home.facts)
        # Who does not take part has weight 0, and works as long as others: time tells nobody.
        sampled = samples(home.facts.weights)
        self._weights = drawn_to_take_part(home).astype(np.float64) if sampled else own_weights(home)

    def handle(self, round: int, message: Message) -> Message:
        """Add up what the party's users tell."""
        left = left_in(round, self._home)
        ratings = self._ratings.keep(np.repeat(left, self._ratings.sizes))
        if isinstance(message, UsersAsked):
            return UserSums(sums=self._out(USER_SUMS, self._users(ratings), left))
        if type(message) is ItemsKnown and 2 <= round <= 1 + len(self._recipe.steps):
            return self._items(round - 2, message, ratings, left)
        if isinstance(message, GainAsked) and round == self._recipe.gain_round:
            return GainSum(gain=self._out(GAIN_SUM, self._gain(message, ratings), left))
        raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")

    def finish(self, message: Message) -> Factors:
        """Fit users to all of their ratings; a party of many users may have learned more than it was told."""
        if self._home.facts.implicit:
            return choosing_model(self._home.facts, message, self._features, self._home.party.ratings)
        party, recipe = self._home.party, self._recipe
        known = Known.of(message, self._features, recipe.factor_count)

        def shared(ratings: Ratings) -> Factors:
            tastes = known.fit(self._units.inward(ratings.by_user)).tastes @ known.root.T
            return self._model(message, known, tastes, ratings)

        if self._home.facts.split != "horizontal" or not isinstance(recipe.home, Bayes):
            return shared(party.ratings)
        factors = known.plain[:, self._features.shape[1] + 3 :]
        told = np.column_stack([known.expected, factors]).astype(np.float32)
        model = fit_best(recipe.home, party, told, self._home.seed, shared)
        return replace(model, choice=choice_of(message, self._features, self._home.facts))

    def _model(self, message: Message, known: Known, tastes: Reals, ratings: Ratings) -> Factors:
        return model_of(
            self._home.facts, message, known, self._features, ratings.user_ids, tastes, seen_in(ratings)
        )

    def state(self) -> State:
        """Return who takes part where chance decided it; all else that there is to know comes with questions.

        Not drawn anew after a crash: the proof is for users who are in all rounds, or in none.
        """
        if self._weights is None or not samples(self._home.facts.weights):
            return {}
        return {_TAKING_PART: np.asarray(self._weights > 0)}

    def restore(self, state: State) -> None:
        """Go on from there."""
        if samples(self._home.facts.weights):
            self._weights = np.asarray(state[_TAKING_PART], np.float64)

    def _users(self, ratings: Grouped) -> Bounded:
        """Return 1 for each user with ratings, and the user's mean on a scale from -1 to 1."""
        sizes = ratings.sizes
        totals = np.bincount(ratings.members(), ratings.values, minlength=len(sizes))
        rows = np.column_stack([sizes > 0, totals / (2.0 * np.maximum(sizes, 1))])
        grid = self._recipe.grid(USER_SUMS, self._home.facts)
        return bounded_total(rows, self._weights, grid, limit=math.sqrt(2), random=self._home.door.random)

    def _gain(self, message: GainAsked, ratings: Grouped) -> Bounded:
        recipe, factors = self._recipe, self._recipe.factor_count
        known = Known.of(message, self._features, factors)
        alone = Known.of(without_items(message), self._features, factors)
        grid = recipe.grid(GAIN_SUM, self._home.facts)
        return gains(ratings, known, alone, grid, self._home.door.random, self._weights)

    def _items(self, step: int, message: Message, ratings: Grouped, left: NDArray[np.bool_]) -> Message:
        recipe, facts = self._recipe, self._home.facts
        plan, what = recipe.steps[step], item_sums_of(step + 1)
        found = summed(
            ratings,
            Known.of(message, self._features, plan.factors),
            None if facts.implicit else told_in(message, plan.factors),
            count_weight=plan.count_weight,
            sketch=recipe.sketch(facts, self._home.seed, step),
            items=recipe.grid(what, facts),
            spread=recipe.grid(spread_sums_of(step + 1), facts) if plan.spread_share else None,
            random=self._home.door.random,
            weights=self._weights,
        )
        items = self._out(what, found.items, left)
        if found.spread is None:
            return ItemSums(items=items)
        return ItemAndSpreadSums(items=items, spread=self._out(spread_sums_of(step + 1), found.spread, left))

    def _out(self, what: str, bounded: Bounded, left: NDArray[np.bool_]) -> NDArray[np.int64]:
        facts = self._home.facts
        # Noise is made for those who take part, not for their weight.
        bound = replace(bounded.bound, weighed=stretches(facts.weights))
        bounded = Bounded(value=bounded.value, bound=bound)
        most = facts.user_count * math.ceil(bound.size)
        # A party of many users adds noise once; in a cohort every device adds its own.
        devices = int(left.sum()) if facts.cohort else 1
        return into_sum(self._home, self._recipe, what, bounded, largest_sum=most, devices=devices)


class ItemCoordinator:
    """Makes the best of noisy sums."""

    def __init__(self, recipe: "SharedBiases", facts: Facts, seed: int) -> None:
        """Begin with what public features tell."""
        self._recipe, self._facts, self._seed = recipe, facts, seed
        self._features = features_of(facts)
        self._beliefs = Beliefs.beginning(self._features, facts.user_count)

    @property
    def rounds(self) -> int:
        """One about users, the others about items, and one that asks whether it helped."""
        return self._recipe.gain_round or 1 + len(self._recipe.steps)

    def ask(self, round: int) -> Message:
        """Ask about users, then about items."""
        if round == 1:
            return UsersAsked()
        if round == self._recipe.gain_round:
            return GainAsked(**self._known(self._beliefs, told_of(self._beliefs, 0)))
        self._begin_factors(round)
        return ItemsKnown(**self._known(self._beliefs, self._told(round)))

    def sums(self, round: int) -> bool:  # noqa: ARG002 (the same in all rounds)
        """Only sums are wanted, unless every party adds all of the noise."""
        return only_sums(self._recipe, self._facts)

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Take in sums; without answers everything stays as it was."""
        if not replies:
            return
        if round == 1:
            sums, noise = self._total(replies, USER_SUMS, "sums", (2,))
            most = self._facts.user_count / mean_part(self._facts.weights)
            self._beliefs = with_users(self._beliefs, sums, noise, most)
            return
        if round == self._recipe.gain_round:
            gain, noise = self._total(replies, GAIN_SUM, "gain", (1,))
            self._beliefs = with_gain(self._beliefs, float(gain[0]), noise)
            return
        step = self._recipe.steps[round - 2]
        told = self._told(round)
        sketch = self._recipe.sketch(self._facts, self._seed, round - 2)
        shape = (sketch.count, item_columns(step, self._facts))
        mixed, chance = self._total(replies, item_sums_of(round - 1), "items", shape)
        sums, deviations = sketch.spread(mixed), noise_of_items(mixed, chance, sketch)
        if self._facts.implicit:
            self._beliefs = with_counts(self._beliefs, sums[:, 0], float(deviations[0]))
            return
        self._beliefs = with_items(self._beliefs, sums, deviations, step.count_weight, told)
        if step.spread_share:
            width = len(self._beliefs.covariance)
            numbers = width * (width + 1) // 2
            spread, _ = self._total(replies, spread_sums_of(round - 1), "spread", (numbers,))
            self._beliefs = with_spread(self._beliefs, spread)

    def last(self) -> Message:
        """Return all that is known; of factors that no round has told of yet, nothing."""
        beliefs = with_idle_factors(self._beliefs, self._recipe.factor_count)
        counts = np.column_stack([beliefs.counts, np.sqrt(beliefs.count_variance)])
        known = ItemsFinal(**self._known(beliefs, told_of(beliefs, 0)), counts=counts)
        return known if beliefs.helps else without_items(known)

    def published(self) -> Factors:
        """Return a model of items; users who bring their own ratings can be folded in."""
        last = self.last()
        if self._facts.implicit:
            return choosing_model(self._facts, last, self._features, None)
        known = Known.of(last, self._features, self._recipe.factor_count)
        nobody = np.zeros((0, known.columns.shape[1]))
        return model_of(self._facts, last, known, self._features, self._facts.catalogue[:0], nobody, None)

    def state(self) -> State:
        """Return what is known."""
        return self._beliefs.arrays()

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._beliefs = Beliefs.from_arrays(dict(state))

    def _begin_factors(self, round: int) -> None:
        """Add columns for factors when a round first tells of them."""
        wanted = self._recipe.steps[round - 2].factors
        if wanted and self._beliefs.factors.shape[1] == 0:
            random = Seeds(self._seed).generator("factors begin")
            self._beliefs = with_factors_begun(self._beliefs, wanted, random)

    def _told(self, round: int) -> Told:
        return told_of(self._beliefs, self._recipe.steps[round - 2].factors)

    def _known(self, beliefs: Beliefs, told: Told) -> dict[str, Any]:
        first = 1 + self._features.shape[1]
        return {
            "mean": np.array(beliefs.mean),
            "bias": beliefs.bias,
            "variance": beliefs.uncertainty,
            "learned": np.ascontiguousarray(beliefs.columns[:, first : first + 2]),
            "importance": beliefs.importance,
            "covariance": beliefs.covariance,
            "factors": beliefs.factors,
            "told": told.whitening,
        }

    def _total(
        self, replies: Mapping[str, Message], what: str, name: str, shape: tuple[int, ...]
    ) -> tuple[Reals, float]:
        """Return a sum over all users, and the deviation of its noise: as if all of each user were in it."""
        recipe, facts, part = self._recipe, self._facts, mean_part(self._facts.weights)
        total = sum((array_of(reply, name, shape, who) for who, reply in replies.items()), np.zeros(shape))
        return np.asarray(total * recipe.grid(what, facts).step / part), recipe.noise_of(what, facts) / part


def noise_of_items(mixed: Reals, chance: float, sketch: Sketch) -> Reals:
    """Return the deviation of each column of sums about items: noise, and other items in the same row."""
    if sketch.count == len(sketch.rows):
        return np.full(mixed.shape[1], chance)
    return np.asarray(np.sqrt(np.maximum(np.square(mixed).mean(axis=0), chance**2)))
