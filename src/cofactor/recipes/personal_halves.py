"""The two halves of `PersonalBiases`: sums over ratings, once, and all else at home."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings
from cofactor.errors import RunError, TooFew
from cofactor.factors.bayes import Bayes
from cofactor.factors.model import Factors, seen_in
from cofactor.federation.door import COORDINATOR
from cofactor.federation.halves import Facts, Home, State, array_of
from cofactor.federation.messages import Message
from cofactor.randomness import Seeds
from cofactor.recipes.device_steps import left_in
from cofactor.recipes.home_fit import fit_best
from cofactor.recipes.item_beliefs import Beliefs
from cofactor.recipes.item_letters import ItemsFinal
from cofactor.recipes.item_models import Units, choice_of, features_of, model_of
from cofactor.recipes.item_sums import Known
from cofactor.recipes.personal_beliefs import Portion, Told, believed
from cofactor.recipes.personal_co_rating import (
    LARGEST,
    asked_along,
    co_rated,
    columns_of,
    first_directions,
    settled_along,
)
from cofactor.recipes.personal_letters import (
    CoRatingAsked,
    CoRatingSums,
    CountsAndValues,
    Halves,
    RatingsAsked,
)
from cofactor.recipes.personal_sums import table_of
from cofactor.recipes.summing_mode import into_sum, only_sums

if TYPE_CHECKING:
    from cofactor.recipes.personal_biases import PersonalBiases

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]


class PersonalParticipant:
    """One device, a party of many users, or a cohort of devices. Weights never leave it."""

    def __init__(self, recipe: "PersonalBiases", home: Home) -> None:
        """Bring ratings to the usual units."""
        self._recipe, self._home = recipe, home
        self._units, self._features = Units(home.facts), features_of(home.facts)
        self._ratings = self._units.inward(home.party.ratings.by_user)

    def handle(self, round: int, message: Message) -> Message:
        """Add up ratings; or, where that is public, who rated what."""
        left = left_in(round, self._home)
        if isinstance(message, RatingsAsked) and round == 1:
            return self._ratings_of(left)
        if isinstance(message, CoRatingAsked) and 2 <= round <= self._recipe.rounds:
            return self._co_rating_of(message, left)
        raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")

    def finish(self, message: Message) -> Factors:
        """Fit users to all of their ratings; a party of many users may have learned more than it was told."""
        party, recipe, facts = self._home.party, self._recipe, self._home.facts
        known = Known.of(message, self._features, recipe.co_rating)

        def shared(ratings: Ratings) -> Factors:
            tastes = known.fit(self._units.inward(ratings.by_user)).tastes @ known.root.T
            seen = seen_in(ratings)
            return model_of(facts, message, known, self._features, ratings.user_ids, tastes, seen)

        if facts.split != "horizontal" or not isinstance(recipe.home, Bayes):
            return shared(party.ratings)
        co_rating = known.plain[:, self._features.shape[1] + 3 :]
        told = np.column_stack([known.expected, co_rating]).astype(np.float32)
        model = fit_best(recipe.home, party, told, self._home.seed, shared)
        return replace(model, choice=choice_of(message, self._features, facts))

    def state(self) -> State:
        """Return nothing: every round is asked by itself."""
        return {}

    def restore(self, state: State) -> None:
        """Go on from there."""

    def _ratings_of(self, left: NDArray[np.bool_]) -> Message:
        home, recipe = self._home, self._recipe
        kept = self._ratings.keep(np.repeat(left, self._ratings.sizes))
        bounded = table_of(
            kept,
            home.party.weights,
            home.facts.weights,
            items=home.facts.item_count,
            span=recipe.span,
            grains=recipe.steps,
            adjacency=recipe.adjacency,
            random=home.door.random,
        )
        # A party of many users adds noise once; in a cohort every device adds its own.
        devices = int(left.sum()) if home.facts.cohort else 1
        most = home.facts.user_count * recipe.steps
        sums = into_sum(home, recipe, recipe.what, bounded, largest_sum=most, devices=devices)
        if not recipe.counts_public:
            return Halves(halves=sums)
        counts = np.bincount(kept.index, minlength=home.facts.item_count).astype(np.int64)
        return CountsAndValues(counts=self._choices(counts, home.facts.user_count, left), values=sums)

    def _co_rating_of(self, message: Message, left: NDArray[np.bool_]) -> Message:
        home, ratings = self._home, self._ratings
        shape = self._recipe.directions(home.facts)
        directions = np.clip(array_of(message, "directions", shape, COORDINATOR), -1.0, 1.0)
        sums = co_rated(ratings.ptr, ratings.index, directions.astype(np.float64), left)
        return CoRatingSums(sums=self._choices(sums, home.facts.user_count * LARGEST, left))

    def _choices(self, sums: Integers, most: int, left: NDArray[np.bool_]) -> Integers:
        """Let sums out that depend on who rated what, and on no value: public where that is."""
        home, layers = self._home, self._recipe.aggregate.layers(self._home.facts.summed)
        if home.facts.cohort and layers is not None and left.sum() < layers.fewest:
            raise TooFew(f"{left.sum():,} devices are left, and {layers.fewest:,} must be.")
        if home.schedule is None:
            return home.door.unprotected(sums, largest_sum=most)
        if not self._recipe.counts_public:
            raise RunError(f"{home.party.name}: who rated what is not public here.")
        return home.door.public(sums, largest_sum=most)


class PersonalCoordinator:
    """Makes the best of noisy sums."""

    def __init__(self, recipe: "PersonalBiases", facts: Facts, seed: int) -> None:
        """Begin with what is public."""
        self._recipe, self._facts = recipe, facts
        self._features, self._portion = (
            features_of(facts),
            Portion.of(facts.weights, facts.item_count, recipe.steps),
        )
        items = facts.item_count
        self._counts, self._sums = np.zeros(items), np.zeros((items, recipe.columns))
        random = Seeds(seed).generator("directions of co-rating")
        self._basis = first_directions(items, recipe.co_rating, random)
        self._sizes = np.zeros(self._basis.shape[1])

    @property
    def rounds(self) -> int:
        """One, and some about co-rating if that is asked for."""
        return self._recipe.rounds

    def ask(self, round: int) -> Message:
        """Ask about ratings, then about who rates what."""
        if round == 1:
            return RatingsAsked()
        return CoRatingAsked(directions=asked_along(self._basis, self._counts))

    def sums(self, round: int) -> bool:  # noqa: ARG002 (the same in all rounds)
        """Only sums are wanted, unless every party adds all of the noise."""
        return only_sums(self._recipe, self._facts)

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Take in sums; without answers everything stays as it was."""
        if not replies:
            return
        if round > 1:
            sums = _total(replies, "sums", self._basis.shape)
            self._basis, self._sizes = settled_along(sums, self._counts)
        elif self._recipe.counts_public:
            self._counts = _total(replies, "counts", self._counts.shape)
            self._sums = _total(replies, "values", self._sums.shape)
        else:
            self._sums = _total(replies, "halves", self._sums.shape)

    def last(self) -> Message:
        """Return all that is known."""
        return final_of(self._beliefs())

    def published(self) -> Factors:
        """Return a model of items; users who bring their own ratings can be folded in."""
        last = self.last()
        known = Known.of(last, self._features, self._recipe.co_rating)
        nobody = np.zeros((0, known.columns.shape[1]))
        return model_of(self._facts, last, known, self._features, self._facts.catalogue[:0], nobody, None)

    def state(self) -> State:
        """Return what is known."""
        return {"counts": self._counts, "sums": self._sums, "basis": self._basis, "sizes": self._sizes}

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._counts, self._sums = state["counts"], state["sums"]
        self._basis, self._sizes = state["basis"], state["sizes"]

    def _beliefs(self) -> Beliefs:
        recipe, facts = self._recipe, self._facts
        sums, noise = self._sums / recipe.steps, recipe.noise_of(facts)
        if recipe.counts_public:
            told = Told.of_values(self._counts, sums[:, 0], noise, portion=self._portion, span=recipe.span)
        else:
            told = Told.of_halves(sums, noise, span=recipe.span)
        columns = columns_of(self._basis, self._sizes, self._counts, recipe.co_rating)
        return believed(
            told,
            self._portion,
            self._features,
            columns,
            users=facts.user_count,
            exact=bool(recipe.counts_public),
        )


def final_of(beliefs: Beliefs) -> ItemsFinal:
    """Return what everybody is told in the end."""
    first = 1 + beliefs.features.shape[1]
    return ItemsFinal(
        mean=np.array(beliefs.mean),
        bias=beliefs.bias,
        variance=beliefs.uncertainty,
        learned=np.ascontiguousarray(beliefs.columns[:, first : first + 2]),
        importance=np.ones(len(beliefs.bias)),
        covariance=beliefs.covariance,
        factors=beliefs.factors,
        told=np.zeros((0, 0)),
        counts=np.column_stack([beliefs.counts, np.sqrt(beliefs.count_variance)]),
    )


def _total(replies: Mapping[str, Message], name: str, shape: tuple[int, ...]) -> Any:
    """Return the sum of what all have sent."""
    return sum((array_of(reply, name, shape, who) for who, reply in replies.items()), np.zeros(shape))
