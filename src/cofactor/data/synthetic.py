"""Ratings made from a known truth: low rank, biases, Zipf-like popularity and lognormal activity."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cofactor.config import not_negative, positive, whole
from cofactor.data.drawing import draw_items, expected, moments
from cofactor.data.grouping import Grouped, Index, Offsets, Times, Values, offsets
from cofactor.data.ids import Ids
from cofactor.data.invented import Attributes, Catalogue, catalogue, user_attributes
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import ConfigError, did_you_mean
from cofactor.randomness import Seeds

_CHUNK = 1_000_000
_FIRST_DAY = 946_684_800
_YEAR = 365 * 86_400


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How large synthetic ratings are, and how much of a rating follows from what.

    The spreads default to values with which means, biases and factors err about as on MovieLens 1M.
    """

    users: int
    items: int
    ratings: int
    scale: Scale = field(default_factory=lambda: Scale(1, 5, 1))
    minimum: int = 20
    """Fewest ratings of a user."""
    busiest: float = 0.6
    """Largest share of the items that one user rates."""
    activity: float = 1.4
    """Standard deviation of the logarithm of a user's ratings above the minimum."""
    popularity: float = 2.0
    """An item's popularity falls as (rank + head)^-popularity."""
    head: float = 0.1
    """Where the fall begins, as a share of the items."""
    quality: float = 0.4
    """Correlation between an item's bias and the logarithm of its popularity."""
    factors: int = 10
    """Length of the true vectors; later factors matter less."""
    mean: float = 3.72
    """What ratings lie around before they are brought onto the scale."""
    user_spread: float = 0.46
    """Standard deviation of the user biases."""
    item_spread: float = 0.64
    """Standard deviation of the item biases."""
    taste: float = 0.48
    """Standard deviation of the user vector . item vector."""
    noise: float = 0.84
    """Standard deviation of what nothing explains, before rounding."""

    def __post_init__(self) -> None:
        whole(users=self.users, items=self.items, ratings=self.ratings, minimum=self.minimum)
        whole(factors=self.factors)
        positive(activity=self.activity, popularity=self.popularity, head=self.head)
        not_negative(user_spread=self.user_spread, item_spread=self.item_spread, taste=self.taste)
        not_negative(noise=self.noise, quality=self.quality)
        positive(busiest=self.busiest)
        for name in ("quality", "busiest"):
            if getattr(self, name) > 1:
                raise ConfigError(f"{name} must be at most 1, got {getattr(self, name)}.")
        least, most = self.users * self.minimum, self.users * self.most
        if not least <= self.ratings <= most or self.minimum > self.most:
            raise ConfigError(
                f"{self.users:,} users with {self.minimum} to {self.most:,} ratings each cannot give "
                f"{self.ratings:,} ratings. Choose {least:,} to {most:,}, or change minimum or busiest."
            )

    @property
    def most(self) -> int:
        """Most ratings of a user."""
        return int(self.busiest * self.items)


_HALF_STARS = Scale(0.5, 5, 0.5)
PRESETS: dict[str, Shape] = {
    "ml-100k": Shape(
        users=943, items=1682, ratings=100_000, activity=1.13, popularity=4.0, head=0.3, mean=3.68,
        user_spread=0.48, item_spread=0.58, taste=0.44, noise=0.89,
    ),
    "ml-1m": Shape(users=6040, items=3706, ratings=1_000_209, activity=1.4, popularity=4.0, head=0.3),
    "ml-10m": Shape(
        users=69_878, items=10_677, ratings=10_000_054, scale=_HALF_STARS, activity=1.35, popularity=2.0,
        head=0.025, mean=3.6, item_spread=0.53, taste=0.45, noise=0.8,
    ),
    "ml-25m": Shape(
        users=162_541, items=59_047, ratings=25_000_095, scale=_HALF_STARS, activity=1.38, popularity=2.2,
        head=0.006, mean=3.6, item_spread=0.53, taste=0.45, noise=0.8,
    ),
}  # fmt: skip
"""Shapes of the MovieLens releases."""


@dataclass(frozen=True)
class Truth:
    """What made the ratings: mean + user bias + item bias + user vector . item vector + noise."""

    mean: float
    user_bias: Values
    item_bias: Values
    user_vectors: Values
    item_vectors: Values
    noise: float
    """Standard deviation of the noise."""

    def expected(self, users: Index, items: Index) -> Values:
        """Return ratings without noise, before rounding, for aligned row numbers."""
        dots = np.einsum("rk,rk->r", self.user_vectors[users], self.item_vectors[items])
        total: Values = self.mean + self.user_bias[users] + self.item_bias[items] + dots
        return total.astype(np.float32)


@dataclass(frozen=True)
class Synthetic:
    """Synthetic ratings, the truth behind them, and side tables that go with the truth."""

    ratings: Ratings
    """Users and items have the ids 1 to n."""
    truth: Truth
    user_attributes: Attributes
    """Age group and occupation of each user; both go with her vector."""
    catalogue: Catalogue

    @property
    def item_titles(self) -> Ids:
        """A title for each item."""
        return self.catalogue.titles

    @property
    def item_categories(self) -> Ids:
        """The main category of each item, one of 18."""
        return self.catalogue.categories

    @property
    def item_genres(self) -> tuple[tuple[str, ...], ...]:
        """All categories of each item, the main one first."""
        return self.catalogue.genres

    @property
    def item_features(self) -> Values:
        """Numbers that go with the item vectors, one row an item."""
        return self.catalogue.features


def like(name: str, seed: int = 0) -> Synthetic:
    """Make ratings with the shape of a MovieLens release: ml-100k, ml-1m, ml-10m or ml-25m."""
    if name not in PRESETS:
        words = ", ".join(PRESETS)
        raise ConfigError(f'there is no preset "{name}".{did_you_mean(name, PRESETS)} Known: {words}.')
    return make(PRESETS[name], seed)


def make(shape: Shape, seed: int = 0) -> Synthetic:
    """Make exactly the ratings that a shape asks for; every item has at least one where they suffice."""
    seeds = Seeds(seed)
    ranked = seeds.generator("synthetic popularity").permutation(shape.items).astype(np.int32)
    ptr = offsets(_activity(shape, seeds))
    index = _who_rates_what(shape, ptr, ranked, seeds)
    truth = _truth(shape, ranked, seeds)
    values = _rated(shape, truth, ptr, index, seeds)
    ratings = Ratings(
        Grouped(ptr, index, values, _times(ptr, seeds)),
        user_ids=np.arange(1, shape.users + 1),
        item_ids=np.arange(1, shape.items + 1),
        scale=shape.scale,
    )
    attributes = user_attributes(truth.user_vectors, seeds)
    return Synthetic(ratings, truth, attributes, catalogue(truth.item_vectors, seeds))


def _activity(shape: Shape, seeds: Seeds) -> NDArray[np.int64]:
    """Draw the number of ratings of each user: minimum + lognormal, scaled to the exact total."""
    weights = seeds.generator("synthetic activity").lognormal(0.0, shape.activity, shape.users)
    room = shape.most - shape.minimum
    wanted = shape.ratings - shape.users * shape.minimum
    low, high = 0.0, (room + 1) / weights.min()
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        enough = np.minimum(weights * middle, room).astype(np.int64).sum() > wanted
        low, high = (low, middle) if enough else (middle, high)
    extra = np.minimum(weights * low, room).astype(np.int64)
    # What rounding down has left over goes, one each, to the busiest who have room.
    by_weight = np.argsort(-weights, kind="stable")
    extra[by_weight[extra[by_weight] < room][: wanted - extra.sum()]] += 1
    return extra + shape.minimum


def _who_rates_what(shape: Shape, ptr: Offsets, ranked: Index, seeds: Seeds) -> Index:
    random = seeds.generator("synthetic items")
    key = np.uint64(random.integers(2**63))
    index = draw_items(ptr, ranked, shape.popularity, shape.head * shape.items, key)
    counts = np.bincount(index, minlength=shape.items)
    missing = np.flatnonzero(counts == 0).astype(np.int32)
    # Nobody rated the missing items, so that any user may take one in place of an item with raters to spare.
    for item in missing[: len(index) - (shape.items - len(missing))]:
        at = random.integers(len(index))
        while counts[index[at]] == 1:
            at = random.integers(len(index))
        counts[index[at]] -= 1
        counts[item] = 1
        index[at] = item
    return index


def _truth(shape: Shape, ranked: Index, seeds: Seeds) -> Truth:
    random = seeds.generator("synthetic truth")
    strength = np.arange(1, shape.factors + 1) ** -0.5
    strength *= shape.taste / np.linalg.norm(strength)
    return Truth(
        mean=shape.mean,
        user_bias=_float32(random.standard_normal(shape.users) * shape.user_spread),
        item_bias=_float32(_item_bias(shape, ranked, random)),
        user_vectors=_float32(random.standard_normal((shape.users, shape.factors)) * np.sqrt(strength)),
        item_vectors=_float32(random.standard_normal((shape.items, shape.factors)) * np.sqrt(strength)),
        noise=shape.noise,
    )


def _item_bias(shape: Shape, ranked: Index, random: np.random.Generator) -> NDArray[np.float64]:
    """Draw biases that go with popularity, centred on what is rated so that `mean` stays the mean."""
    log_weight = -shape.popularity * np.log(np.arange(shape.items) + 0.5 + shape.head * shape.items)
    fame = (log_weight - log_weight.mean()) / max(float(log_weight.std()), 1e-12)
    rest = random.standard_normal(shape.items)
    by_rank = shape.item_spread * (shape.quality * fame + np.sqrt(1 - shape.quality**2) * rest)
    bias = np.empty(shape.items)
    bias[ranked] = by_rank - np.average(by_rank, weights=np.exp(log_weight - log_weight[0]))
    return bias


def _rated(shape: Shape, truth: Truth, ptr: Offsets, index: Index, seeds: Seeds) -> Values:
    """Add noise to the truth and round it to the scale, in chunks so that memory stays small."""
    random = seeds.generator("synthetic noise")
    values = expected(
        ptr, index, truth.mean, truth.user_bias, truth.item_bias, truth.user_vectors, truth.item_vectors
    )
    low, step = shape.scale.low, shape.scale.step
    for start in range(0, len(values), _CHUNK):
        part = values[start : start + _CHUNK]
        part += np.float32(truth.noise) * random.standard_normal(len(part), np.float32)
        if step is not None:
            part[:] = np.round((part - low) / step) * step + low
        np.clip(part, low, shape.scale.high, out=part)
    return values


def _times(ptr: Offsets, seeds: Seeds) -> Times:
    """Let each user begin at some moment of ten years and rate at a pace of her own."""
    random = seeds.generator("synthetic times")
    users = len(ptr) - 1
    pace = np.minimum(random.lognormal(7.0, 2.0, users), _YEAR / np.diff(ptr))
    start = _FIRST_DAY + random.random(users) * 9 * _YEAR
    return moments(ptr, start, pace, np.uint64(random.integers(2**63)))


def _float32(array: NDArray[np.float64]) -> Values:
    return array.astype(np.float32)
