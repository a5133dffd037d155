"""The two halves of `ProjectedMF`. The same participant is one device, or plays all of a simulation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cofactor.errors import RunError, TooFew
from cofactor.factors.model import Factors, HomeFit, seen_in
from cofactor.federation.door import COORDINATOR
from cofactor.federation.halves import Facts, Home, State, array_of
from cofactor.federation.messages import Message
from cofactor.privacy.bounding import Bounded, coordinates
from cofactor.privacy.mechanisms import PoissonBinomial
from cofactor.privacy.schedule import Release
from cofactor.randomness import Seeds
from cofactor.recipes.device_steps import left_in
from cofactor.recipes.local_steps import prepared, release_of
from cofactor.recipes.models import without_biases
from cofactor.recipes.projected_steps import Adam, Reals, as_ratings, flat_gradients
from cofactor.recipes.shared_vectors import Finished, Shared
from cofactor.recipes.summing_mode import only_sums

if TYPE_CHECKING:
    from cofactor.recipes.projected import ProjectedMF

COINS = "projected gradients"
"""The release, as ledgers and plans name it."""
_FINE = 2**30
"""Steps from 0 to the largest coordinate that there can be, where no coins are tossed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Heads(Message):
    """What devices add to the sum of a round."""

    heads: NDArray[np.int64]
    """For every coordinate of a flattened gradient how many coins fell heads; without a budget the coordinate
    itself, in fine steps. A row for each row of the sketch, padding included."""
    count: NDArray[np.int64]
    """How many devices that are: one number."""


class ProjectedParticipant:
    """One device, or a cohort of them: users' vectors never leave it."""

    def __init__(self, recipe: "ProjectedMF", home: Home) -> None:
        """Prepare the ratings."""
        self._recipe, self._home = recipe, home
        # A copy that may be written to, as those of a round are: kernels are compiled once for both.
        self.ratings = prepared(home, None).take(np.arange(home.party.ratings.user_count))

    def handle(self, round: int, message: Message) -> Message:
        """Make the gradient of every device that is asked, and toss its coins."""
        if not isinstance(message, Shared):
            raise RunError(f"{self._home.party.name}: did not expect {type(message).__name__} here.")
        items, home = self._read(message), self._home
        present = np.flatnonzero(left_in(round, home) & asked_in(round, self._recipe, home))
        sketch = self._recipe.sketch_of(round, home.facts, home.seed)
        flat = flat_gradients(self._recipe.steps(), sketch, self.ratings.take(present), items)
        count = np.array([len(present)], np.int64)
        return Heads(
            heads=self._out(flat, len(present)),
            count=home.door.public(count, largest_sum=home.facts.user_count),
        )

    def finish(self, message: Message) -> Factors:
        """Fit every user at home once more: of any length, for nothing of it leaves."""
        items, ratings, scale = self._read(message), self._home.party.ratings, self._home.facts.scale
        users, shift = self._recipe.steps().users(self.ratings, items), np.zeros(ratings.user_count)
        if self._recipe.predictions == "ratings":
            shift, slope = as_ratings(self.ratings, users, items, (scale.low + scale.high) / 2)
            users = users * slope[:, None]
        found = without_biases(
            ratings.user_ids,
            ratings.item_ids,
            0.0,
            users.astype(np.float32),
            items.astype(np.float32),
            scale=scale,
            seen=seen_in(ratings),
        )
        return replace(found, user_bias=shift.astype(np.float32))

    def state(self) -> State:
        """Return nothing: all that is needed comes with the next question."""
        return {}

    def restore(self, state: State) -> None:
        """Go on from there."""

    def _read(self, message: Message) -> Reals:
        """Read item vectors; whatever comes, every user's equations have a solution."""
        recipe, home = self._recipe, self._home
        rows = array_of(message, "vectors", recipe.question_shape(home.facts), COORDINATOR)
        return recipe.steps().readable(recipe.items_of(rows, home.facts, home.seed))

    def _out(self, flat: Iterator[Reals], devices: int) -> NDArray[np.int64]:
        recipe, facts, door = self._recipe, self._home.facts, self._home.door
        release, layers = release_of(self._home, COINS), recipe.layers(facts)
        shape = recipe.answer_shape(facts)
        if release is None:
            if facts.cohort and layers is not None and devices < layers.fewest:
                raise TooFew(f"{devices:,} devices are left, and {layers.fewest:,} must be.")
            total = in_steps(flat, shape, recipe.farthest(facts))
            return door.unprotected(total, largest_sum=recipe.asked(facts) * _FINE)
        assert isinstance(release.mechanism, PoissonBinomial)
        return door.coins(
            release.mechanism,
            _bounded(flat, release),
            bound=release.bound,
            shape=shape,
            what=COINS,
            devices=devices,
            layers=layers,
        )


def _bounded(flat: Iterator[Reals], release: Release) -> Iterator[Bounded]:
    """Clip every coordinate of every device: all that the guarantee rests on, whatever the gradients are."""
    return (coordinates(part, limit=release.bound.size, unit="user") for part in flat)


def in_steps(flat: Iterator[Reals], shape: tuple[int, int], farthest: float) -> NDArray[np.int64]:
    """Return the sum of gradients in whole steps, so fine that rounding shows nowhere."""
    total = np.zeros(shape, np.int64)
    for part in flat:
        total += np.rint(np.clip(part / farthest, -1, 1) * _FINE).astype(np.int64).sum(axis=0)
    return total


def asked_in(round: int, recipe: "ProjectedMF", home: Home) -> NDArray[np.bool_]:
    """Say which devices are asked in a round, by public chance; all, unless a cohort asks fewer."""
    count = home.party.ratings.user_count
    found = np.ones(count, np.bool_)
    if home.facts.cohort and recipe.asked(home.facts) < count:
        chance = Seeds(home.seed).generator(f"asked in round {round}")
        found[chance.permutation(count)[recipe.asked(home.facts) :]] = False
    return found


class ProjectedCoordinator:
    """Moves the items, or what they are projected to, by Adam."""

    def __init__(self, recipe: "ProjectedMF", facts: Facts, seed: int) -> None:
        """Begin with item vectors that depend on nothing private."""
        self._recipe, self._facts, self._seed = recipe, facts, seed
        random = Seeds(seed).generator("projected items")
        start = random.normal(0, recipe.spread, (facts.item_count, recipe.factors))
        fixed = recipe.sketch == "fixed"
        self._rows = recipe.sketch_of(1, facts, seed).projected(start) if fixed else start
        self._adam = Adam(np.zeros_like(self._rows), np.zeros_like(self._rows))

    @property
    def rounds(self) -> int:
        """T in the paper."""
        return self._recipe.rounds

    def ask(self, round: int) -> Message:  # noqa: ARG002 (the same in all rounds)
        """Ask for gradients."""
        return Shared(centre=np.zeros(()), vectors=self._rows.astype(np.float32))

    def sums(self, round: int) -> bool:  # noqa: ARG002 (the same in all rounds)
        """Only sums are wanted, unless every device's own coins protect it."""
        return only_sums(self._recipe, self._facts)

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        """Take a step; without answers everything stays as it was."""
        recipe, shape = self._recipe, self._recipe.answer_shape(self._facts)
        count, total = 0, np.zeros(shape, np.int64)
        for sender, reply in replies.items():
            count += int(array_of(reply, "count", (1,), sender)[0])
            total = total + array_of(reply, "heads", shape, sender)
        if count < 1:
            return
        sketch = recipe.sketch_of(round, self._facts, self._seed)
        mean = sketch.unflattened(self._estimate(total, count)) / count
        data = mean if recipe.sketch == "fixed" else sketch.spread(mean)
        # On the scale of the sum over all users (eq. 7), of which a part was asked.
        gradient = 2 * recipe.item_penalty / self._facts.user_count * self._rows - data
        self._adam, step = self._adam.after(
            gradient,
            rate=recipe.learning_rate,
            first_decay=recipe.first_decay,
            second_decay=recipe.second_decay,
        )
        self._rows = self._rows + step

    def last(self) -> Message:
        """Return the items as they are now."""
        return Finished(centre=np.zeros(()), vectors=self._rows.astype(np.float32))

    def published(self) -> Factors:
        """Return the items' vectors; users who bring their own ratings can be folded in."""
        recipe, facts = self._recipe, self._facts
        items = recipe.items_of(self._rows, facts, self._seed)
        shared = items.T @ items + recipe.penalty * np.eye(recipe.factors)
        return without_biases(
            facts.catalogue[:0],
            facts.catalogue,
            0.0,
            np.zeros((0, recipe.factors), np.float32),
            items.astype(np.float32),
            # Without a scale: scores of new users rank, and are no ratings.
            # One weight for both sides of the equations: an item that is rated counts 2 + kappa on the left.
            home=HomeFit(shared, np.full(facts.item_count, 1 + recipe.confidence)),
        )

    def state(self) -> State:
        """Return the vectors, and what Adam remembers."""
        adam = self._adam
        return {
            "rows": self._rows,
            "first": adam.first,
            "second": adam.second,
            "taken": np.array(adam.taken),
        }

    def restore(self, state: State) -> None:
        """Go on from there."""
        self._rows = np.asarray(state["rows"], np.float64)
        first, second = (np.asarray(state[name], np.float64) for name in ("first", "second"))
        self._adam = Adam(first, second, int(state["taken"]))

    def _estimate(self, total: NDArray[np.int64], count: int) -> Reals:
        """Return the sum of flattened gradients that the coins tell of, without bias (Algorithm 2)."""
        recipe, facts = self._recipe, self._facts
        coins = recipe.coins(facts)
        if coins is None:
            return np.asarray(total * (recipe.farthest(facts) / _FINE))
        return coins.estimate(total, count, recipe.bound(facts))
