"""Small surveys for tests."""

from pathlib import Path
from typing import Any

import numpy as np

from cofactor.data.ratings import Ratings, Scale
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.randomness import InsecureRandom
from cofactor.survey.asking import ask
from cofactor.survey.binning import Binning
from cofactor.survey.haar import HaarHRR
from cofactor.survey.hierarchy import HierarchicalHistogram
from cofactor.survey.means import PiecewiseMean, StochasticRounding
from cofactor.survey.method import Floats, Method
from cofactor.survey.oracles import GRR, OLH, HadamardResponse
from cofactor.survey.people import People
from cofactor.survey.question import Question
from cofactor.survey.result import Survey
from cofactor.survey.waves import GeneralWave, SquareWave

AGE = Question(name="age", low=0, high=100)
METHODS: tuple[Method, ...] = (
    SquareWave(epsilon=2.0, buckets=64),
    SquareWave(epsilon=2.0, buckets=64, smoothing=False),
    SquareWave(epsilon=2.0, buckets=64, discrete=True),
    GeneralWave(epsilon=2.0, buckets=64, ratio=0.4),
    Binning(epsilon=2.0, buckets=64, bins=16),
    GRR(epsilon=2.0, buckets=16),
    OLH(epsilon=2.0, buckets=64),
    HadamardResponse(epsilon=2.0, buckets=64),
    HierarchicalHistogram(epsilon=2.0, buckets=64),
    HierarchicalHistogram(epsilon=2.0, buckets=64, post="consistent"),
    HaarHRR(epsilon=2.0, buckets=64),
    StochasticRounding(epsilon=2.0),
    PiecewiseMean(epsilon=2.0),
)
"""Every method, in some form or other."""


def named(method: Any) -> str:
    return type(method).__name__


def ages(count: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).beta(4, 5, count) * 100


def asked(count: int = 3000, *, question: Question = AGE, **settings: Any) -> Survey:
    chosen = settings if "method" in settings else {"epsilon": 1.0} | settings
    return ask(People(values=ages(count)), question, **({"random": InsecureRandom(1)} | chosen))


def ratings_of(users: int, items: int = 40, seed: int = 0) -> Ratings:
    """Users with very different numbers of ratings, who like what they rate rather well."""
    chance = np.random.default_rng(seed)
    sizes = np.clip(np.exp(chance.normal(2.0, 0.7, users)).astype(int), 1, items)
    rows = np.repeat(np.arange(users), sizes)
    columns = np.concatenate([chance.permutation(items)[:size] for size in sizes])
    values = np.clip(np.rint(chance.normal(3.6, 1.0, len(rows))), 1, 5).astype(np.float32)
    ids = np.arange(users), np.arange(items)
    return Ratings.from_rows(rows, columns, values, user_ids=ids[0], item_ids=ids[1], scale=Scale(1, 5))


def shops(folder: Path | None = None, users: int = 300) -> Federation:
    """Two shops with users of their own; on disk, if there is a folder."""
    halves = [ratings_of(users, seed=1), ratings_of(users, seed=2)]
    parties = []
    for name, ratings in zip(("north", "south"), halves, strict=True):
        if folder is None:
            parties.append(Party(name=name, ratings=ratings))
            continue
        rows = zip(ratings.users, ratings.items, ratings.values, strict=True)
        lines = [f"{user},{item},{value:g}\n" for user, item, value in rows]
        (folder / f"{name}.csv").write_text("user,item,rating\n" + "".join(lines))
        parties.append(Party.from_csv(folder / f"{name}.csv"))
    return Federation.horizontal(parties, scale=Scale(1, 5))
