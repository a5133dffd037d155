"""A tiny recipe, complete in every half, and small federations: what the tests of this room train."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import RunError
from cofactor.factors.model import Factors, seen_in
from cofactor.federation.door import slack_of
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts, Home, Promise, State, array_of
from cofactor.federation.messages import Message
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.splits import Split
from cofactor.privacy.bounding import Bounded, sum_of_records, table_of_users
from cofactor.privacy.budget import Budget, Unit
from cofactor.privacy.events import Bound
from cofactor.privacy.mechanisms import DiscreteLaplace, Gaussian, Skellam
from cofactor.privacy.schedule import Release, Schedule
from cofactor.randomness import InsecureRandom, Random
from cofactor.recipes.sums import AnySum, PlainSum, own_share
from cofactor.recipes.together import Training, train_together

WHAT = "item sums"
BUDGET = Budget(epsilon=4.0, delta=1e-6, unit="user")
RATINGS = 40
"""Of each party of `parties`."""
ITEMS = 5
HUNDREDTHS = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class Guess(Message):
    """The coordinator's mean so far."""

    mean: NDArray[np.float64]
    words: str = "how far off?"


@dataclass(frozen=True, kw_only=True, eq=False)
class Off(Message):
    """By how much a party's ratings of each item are off, added up."""

    sums: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class OffInAll(Message):
    """The same in whole hundredths, for a sum."""

    hundredths: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ItemSums:
    """Parties that share items say in every round how far their ratings are from the mean so far."""

    split: ClassVar[Split] = "horizontal"
    units: ClassVar[tuple[Unit, ...]] = ("user",)
    messages: ClassVar[tuple[type[Message], ...]] = (Guess, Off, OffInAll)
    noise: ClassVar[type[Skellam] | type[DiscreteLaplace]] = Skellam
    """What parties share where nobody sees more than the sum."""

    rounds: int = 3
    limit: float | None = None
    """The most that a user can add; half of the scale, if left out."""
    aggregate: AnySum = field(default_factory=PlainSum)
    """Whether nobody sees more than the sum, in whole hundredths, so that parties share the noise."""

    def settled(self, facts: Facts, budget: Budget | None) -> Self:  # noqa: ARG002
        limit = (facts.scale.high - facts.scale.low) / 2
        return replace(self, limit=self.limit or limit)

    def schedule(self, facts: Facts, unit: Unit, party: str | None = None) -> Schedule:  # noqa: ARG002
        assert self.limit is not None
        summed = self.summed(facts)
        mechanism = self.noise() if summed else Gaussian()
        size = HUNDREDTHS * self.limit if summed else self.limit
        release = Release(
            what=WHAT,
            mechanism=mechanism,
            bound=Bound(size=size, norm=mechanism.norm, unit=unit),
            dimension=facts.item_count,
            bytes_per_number=8.0,
            slack=None
            if isinstance(mechanism, Gaussian)
            else slack_of(mechanism, self.aggregate.layers(facts.summed)),
        )
        return Schedule(
            releases=(release,),
            rounds=self.rounds,
            parties=len(facts.parties),
            shared_units=facts.split == "vertical" and unit == "user",
        )

    def summed(self, facts: Facts) -> bool:
        return self.aggregate.layers(facts.summed) is not None

    def participant(self, home: Home) -> "Adder":
        return Adder(self, home)

    def coordinator(self, facts: Facts, seed: int) -> "Averager":  # noqa: ARG002
        return Averager(self, facts)

    def promise(self, facts: Facts, budget: Budget) -> Promise:  # noqa: ARG002
        parties = len(facts.parties)
        return Promise(
            against=("the coordinator",),
            assumptions=self.aggregate.assumptions(parties),
            why_not=self.aggregate.why_not(parties),
            shared={WHAT: own_share(self.aggregate, parties)},
        )


@dataclass(frozen=True, kw_only=True)
class LaplaceSums(ItemSums):
    """The same with discrete Laplace noise, as if the toy's users were bounded in l1."""

    noise = DiscreteLaplace


@dataclass(frozen=True, kw_only=True)
class RatingSums(ItemSums):
    """The same for parties that share users: each says how far its ratings are from the mean in all."""

    split: ClassVar[Split] = "vertical"
    units: ClassVar[tuple[Unit, ...]] = ("rating", "user")


class Adder:
    """A party's half; it counts how often it was asked."""

    def __init__(self, recipe: ItemSums, home: Home) -> None:
        self.recipe, self.home, self.asked = recipe, home, 0

    def handle(self, round: int, message: Message) -> Message:  # noqa: ARG002
        self.asked += 1
        means = array_of(message, "mean", (self._width,), "the coordinator")
        door, schedule = self.home.door, self.home.schedule
        bounded = self._off(means)
        if self.recipe.summed(self.home.facts):
            return self._part(bounded)
        if schedule is None:
            return Off(sums=door.unprotected(bounded.value))
        return Off(sums=door.release(schedule.releases[0].mechanism, bounded, what=WHAT))

    def _part(self, bounded: Bounded) -> Message:
        door, schedule = self.home.door, self.home.schedule
        assert self.recipe.limit is not None
        # A toy: the sum is cut to hundredths, not what each user adds to it.
        whole = np.trunc(HUNDREDTHS * bounded.value).astype(np.int64)
        most = HUNDREDTHS * 4 * self.home.facts.rating_count
        if schedule is None:
            return OffInAll(hundredths=door.unprotected(whole, largest_sum=most))
        mechanism = schedule.releases[0].mechanism
        assert isinstance(mechanism, Skellam | DiscreteLaplace)
        bound = replace(bounded.bound, size=HUNDREDTHS * self.recipe.limit, norm=mechanism.norm)
        part = door.share(mechanism, Bounded(value=whole, bound=bound), what=WHAT, largest_sum=most)
        return OffInAll(hundredths=part)

    def finish(self, message: Message) -> Factors:
        if not isinstance(message, Guess):
            raise RunError("the last message must be a guess.")
        ratings = self.home.party.ratings
        bias = message.mean if self.recipe.split == "horizontal" else np.zeros(ratings.item_count)
        return factors(ratings.user_ids, ratings.item_ids, bias, seen=seen_in(ratings))

    def state(self) -> State:
        return {"asked": np.array(self.asked)}

    def restore(self, state: State) -> None:
        self.asked = int(state["asked"])

    @property
    def _width(self) -> int:
        return self.home.facts.item_count

    def _off(self, means: NDArray[np.float64]) -> Bounded:
        own, limit, facts = self.home.party.ratings.by_user, self.recipe.limit, self.home.facts
        assert limit is not None
        places = own.index.astype(np.int64)
        if self.recipe.split == "vertical":
            places = places + facts.items_of(self.home.party.name).start
        off = own.values.astype(np.float64) - means[places]
        unit = "user" if self.home.schedule is None else self.home.schedule.releases[0].bound.unit
        if unit == "user":
            return reshaped(
                table_of_users(off[:, None], own.ptr, places, place_count=self._width, limit=limit)
            )
        rows = np.zeros((len(off), self._width))
        rows[np.arange(len(off)), places] = off
        return sum_of_records(rows, limit=limit, unit="rating")


def reshaped(bounded: Bounded) -> Bounded:
    return Bounded(value=bounded.value.ravel(), bound=bounded.bound)


class Averager:
    """The coordinator's half. A round without answers changes nothing."""

    def __init__(self, recipe: ItemSums, facts: Facts) -> None:
        self.recipe, self.facts = recipe, facts
        self.mean = np.full(facts.item_count, (facts.scale.low + facts.scale.high) / 2)
        self.taken: list[tuple[int, list[str]]] = []

    @property
    def rounds(self) -> int:
        return self.recipe.rounds

    def ask(self, round: int) -> Message:  # noqa: ARG002
        return Guess(mean=self.mean)

    def sums(self, round: int) -> bool:  # noqa: ARG002
        return self.recipe.summed(self.facts)

    def take(self, round: int, replies: Mapping[str, Message]) -> None:
        self.taken.append((round, sorted(replies)))
        found = [
            array_of(reply, "hundredths", self.mean.shape, party) / HUNDREDTHS
            if isinstance(reply, OffInAll)
            else array_of(reply, "sums", self.mean.shape, party)
            for party, reply in replies.items()
        ]
        step = np.sum(found, axis=0) / self.facts.rating_count if found else 0.0
        self.mean = np.clip(self.mean + step, self.facts.scale.low, self.facts.scale.high)

    def last(self) -> Message:
        return Guess(mean=self.mean, words="done")

    def published(self) -> Factors | None:
        users = self.facts.shared_ids[:0] if self.facts.split == "horizontal" else self.facts.shared_ids
        return factors(users, self.facts.catalogue, self.mean)

    def state(self) -> State:
        return {"mean": self.mean}

    def restore(self, state: State) -> None:
        self.mean = state["mean"]


def factors(users: Any, items: Any, bias: NDArray[np.float64], **more: Any) -> Factors:
    return Factors(
        user_ids=users,
        item_ids=items,
        mean=0.0,
        user_bias=np.zeros(len(users), np.float32),
        item_bias=bias.astype(np.float32),
        user_vectors=np.zeros((len(users), 0), np.float32),
        item_vectors=np.zeros((len(items), 0), np.float32),
        **more,
    )


def ratings(seed: int, *, users: int = 10, items: int = ITEMS, count: int = RATINGS) -> Ratings:
    """Return random ratings from 1 to 5 of all these users and items."""
    random = np.random.default_rng(seed)
    cells = random.choice(users * items, count, replace=False)
    return Ratings.from_rows(
        cells // items,
        cells % items,
        random.integers(1, 6, count).astype(np.float32),
        user_ids=np.arange(users) + 100 * seed,
        item_ids=np.arange(items),
        scale=Scale(1, 5, 1),
    )


def parties(count: int = 3, *, seed: int = 1, **settings: Any) -> list[Party]:
    names = ("north", "south", "west", "east", "middle", "coast", "hills")
    return [Party(name=names[k], ratings=ratings(seed + k), **settings) for k in range(count)]


def horizontal(count: int = 3, *, seed: int = 1, **settings: Any) -> Federation:
    return Federation.horizontal(parties(count, seed=seed, **settings))


def vertical(count: int = 3) -> Federation:
    shared = [
        Ratings.from_rows(
            each.users,
            each.items,
            each.values,
            user_ids=np.arange(10),
            item_ids=each.item_ids,
            scale=each.scale,
        )
        for each in (ratings(7 + k) for k in range(count))
    ]
    names = ("north", "south", "west")
    return Federation.vertical([Party(name=names[k], ratings=shared[k]) for k in range(count)])


def on_disk(folder: Path, count: int = 2, *, seed: int = 1) -> list[Party]:
    """Write the parties' files and read them: their ledgers lie beside them."""
    found = []
    for party in parties(count, seed=seed):
        path = folder / f"{party.name}.csv"
        if not path.exists():
            own = party.ratings
            lines = [
                f"{own.user_ids[u]},{own.item_ids[i]},{value:g}\n"
                for u, i, value in zip(own.users, own.items, own.values, strict=True)
            ]
            path.write_text("user,item,rating\n" + "".join(lines))
        found.append(Party.from_csv(path, scale=Scale(1, 5, 1)))
    return found


def trained(
    recipe: Any = None,
    federation: Federation | None = None,
    *,
    budget: Budget | None = BUDGET,
    random: Random | None = None,
    **settings: Any,
) -> Run:
    """Train the toy, by default with noise that can be repeated."""
    training = Training(random=random or InsecureRandom(5), **settings)
    return train_together(recipe or ItemSums(), federation or horizontal(), budget, training)
