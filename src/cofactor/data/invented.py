"""Invented side tables for synthetic ratings: attributes, features and categories that fit the truth."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cofactor.data.grouping import Values
from cofactor.data.ids import Ids
from cofactor.randomness import Seeds

Attributes = dict[str, Ids]
"""One entry a user under each attribute's name."""

AGES = ("under 18", "18-24", "25-34", "35-44", "45-54", "55 and over")
OCCUPATIONS = ("artist", "doctor", "educator", "engineer", "farmer", "lawyer", "retired", "student")
CATEGORIES = (
    "Action", "Adventure", "Animation", "Children", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
_QUALITIES = ("Quiet", "Golden", "Last", "Hidden", "Winter", "Second", "Long", "Paper", "Blue", "Distant")
_THINGS = (
    "Harbour", "Garden", "Letter", "Summer", "Orchard", "River", "Journey", "Lantern", "Island", "Waltz",
    "Bridge", "Kite", "Meadow",
)  # fmt: skip
FEATURES = 8


@dataclass(frozen=True)
class Catalogue:
    """What is publicly known about the items, one entry an item."""

    titles: Ids
    categories: Ids
    """The main category."""
    genres: tuple[tuple[str, ...], ...]
    """All categories, the main one first."""
    features: Values


def user_attributes(vectors: Values, seeds: Seeds) -> Attributes:
    """Give each user an age group, which goes with her first factor, and an occupation, with all of them."""
    random = seeds.generator("invented attributes")
    first = vectors[:, 0] / max(float(vectors[:, 0].std()), 1e-12)
    leaning = first + 0.8 * random.standard_normal(len(vectors))
    age = np.searchsorted(np.quantile(leaning, (0.05, 0.25, 0.55, 0.75, 0.9)), leaning)
    occupation = _affinity(vectors, len(OCCUPATIONS), random).argmax(axis=1)
    return {"age": np.array(AGES)[age], "occupation": np.array(OCCUPATIONS)[occupation]}


def catalogue(vectors: Values, seeds: Seeds) -> Catalogue:
    """Invent features and categories that go with the item vectors, and titles that go with nothing."""
    random = seeds.generator("invented catalogue")
    affinity = _affinity(vectors, len(CATEGORIES), random)
    features = _affinity(vectors, FEATURES, random).astype(np.float32)
    names = np.array(CATEGORIES)
    return Catalogue(_titles(len(vectors)), names[affinity.argmax(axis=1)], _genres(affinity), features)


def _affinity(vectors: Values, kinds: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Score each vector against random directions; noise keeps the scores from giving the vector away."""
    scaled = vectors / np.maximum(vectors.std(axis=0), 1e-12)
    directions = random.standard_normal((vectors.shape[1], kinds)) / np.sqrt(vectors.shape[1])
    scores: NDArray[np.float64] = scaled @ directions
    return scores + 0.5 * random.standard_normal((len(vectors), kinds))


def _genres(affinity: NDArray[np.float64]) -> tuple[tuple[str, ...], ...]:
    """Name up to three categories an item: the best, and the next ones if they are nearly as good."""
    order = np.argsort(-affinity, axis=1)[:, :3]
    scores = np.take_along_axis(affinity, order, axis=1)
    near = scores > scores[:, :1] - 0.4
    return tuple(
        tuple(CATEGORIES[kind] for kind, kept in zip(kinds, keep, strict=True) if kept)
        for kinds, keep in zip(order.tolist(), near.tolist(), strict=True)
    )


def _titles(count: int) -> Ids:
    return np.array(
        [
            f"Item {n}: The {_QUALITIES[n % len(_QUALITIES)]} {_THINGS[n % len(_THINGS)]}"
            for n in range(1, count + 1)
        ]
    )
