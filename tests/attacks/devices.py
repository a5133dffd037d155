"""A few devices with attributes, whose trainings are captured, and uploads made by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.attacks.knowledge import Knowledge
from cofactor.attacks.uploads import Known, Update, Upload
from cofactor.data.attributes import UserAttributes
from cofactor.data.coding import Coding
from cofactor.data.ratings import Ratings, Scale
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.randomness import InsecureRandom
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_weights import InclUnc, ObsOnly, SampledUnrated, Unrated
from cofactor.recipes.sums import PlainSum
from cofactor.recipes.train import train

Reals = NDArray[np.float64]

USERS, ITEMS, WIDTH = 10, 60, 4
SCALE = Scale(1, 5, 1)
CODING = Coding.stated({"group": ("a", "b", "c"), "sex": ("f", "m")})
PUBLIC = Knowledge.public(SCALE, CODING)
PLAIN = MultiViewMF(factors=WIDTH, rounds=12, penalty=1.0, aggregate=PlainSum(), unrated=ObsOnly())
KINDS: tuple[Unrated, ...] = (ObsOnly(), InclUnc(alpha=0.1), SampledUnrated(alpha=0.1, rho=1.0))
UPDATES: tuple[Update, ...] = ("semi-als", "sgd")


def table(users: int = USERS, items: int = ITEMS, *, seed: int = 0) -> Reals:
    """Return ratings of about a third of the items; NaN stands for nothing."""
    random = np.random.default_rng(seed)
    tastes, films = random.normal(0, 1, (users, 2)), random.normal(0, 1, (2, items))
    rows = np.clip(np.rint(3.5 + tastes @ films + random.normal(0, 0.7, (users, items))), 1, 5)
    rows[random.random(rows.shape) > 0.35] = np.nan
    return np.asarray(rows)


def answers(users: int = USERS, *, seed: int = 1) -> NDArray[np.float32]:
    """Return coded attributes of which none are missing."""
    random = np.random.default_rng(seed)
    found = np.zeros((users, CODING.width), np.float32)
    found[np.arange(users), random.integers(0, 3, users)] = 1
    found[np.arange(users), 3 + random.integers(0, 2, users)] = 1
    return found


def devices(rows: Reals | None = None, *, attributes: bool = True) -> Federation:
    """Return devices of one user each, who know their attributes."""
    rows = table() if rows is None else rows
    ids = np.arange(len(rows))
    parties = [Party(name=f"device-{user:02}", ratings=_of_one(user, row)) for user, row in enumerate(rows)]
    known = UserAttributes(coding=CODING, ids=ids, matrix=answers(len(rows)))
    federation = Federation.on_device(parties, scale=SCALE)
    return federation.with_user_attributes(known) if attributes else federation


def captured(recipe: Any = PLAIN, federation: Federation | None = None, **settings: Any) -> Run:
    """Train with what the coordinator sees."""
    federation = devices() if federation is None else federation
    return train(recipe, federation, seed=3, random=InsecureRandom(3), capture="coordinator", **settings)


def made(
    unrated: Unrated, update: Update = "semi-als", *, seed: int = 0, longest: float | None = None
) -> tuple[Upload, Reals, Reals]:
    """Return an upload made from the equations, the ratings (NaN for none), and the user's vector."""
    random = np.random.default_rng(seed)
    row, told = table(1, seed=seed)[0], answers(1, seed=seed)[0].astype(np.float64)
    items = random.normal(0.4, 0.5, (ITEMS, WIDTH)).astype(np.float32).astype(np.float64)
    sides = random.normal(0, 0.3, (CODING.width, WIDTH)).astype(np.float32).astype(np.float64)
    values, weights = np.nan_to_num(row), np.where(np.isnan(row), 0.0, 1.0)
    if isinstance(unrated, InclUnc):
        weights[weights == 0] = unrated.alpha
    elif isinstance(unrated, SampledUnrated):
        free = np.flatnonzero(weights == 0)
        weights[random.choice(free, min(int(weights.sum()), len(free)), replace=False)] = unrated.alpha
    squares = (items.T * weights) @ items + sides.T @ sides + np.eye(WIDTH)
    vector = np.linalg.solve(squares, (weights * values) @ items + told @ sides)
    if update != "semi-als":
        vector = 0.7 * vector + random.normal(0, 0.1, WIDTH)
    rows = (weights * (values - items @ vector))[:, None] * vector
    if longest is not None:
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows * np.minimum(1, longest / np.maximum(lengths, 1e-12))
    upload = Upload(
        sender="device-00",
        round=1,
        item_rows=rows,
        attribute_rows=(told - sides @ vector)[:, None] * vector,
        items=items,
        attributes=sides,
        known=Known(unrated=unrated, update=update, penalty=1.0, side_weight=1.0, longest=longest),
    )
    return upload, row, vector


def without_attributes(upload: Upload) -> Upload:
    """Return an upload of somebody of whom no attributes are known."""
    return replace(upload, attribute_rows=upload.attribute_rows[:0], attributes=upload.attributes[:0])


def _of_one(user: int, row: Reals) -> Ratings:
    items = np.flatnonzero(~np.isnan(row))
    return Ratings.from_rows(
        np.zeros(len(items), np.int64),
        items,
        row[items].astype(np.float32),
        user_ids=np.array([user]),
        item_ids=np.arange(len(row)),
        scale=SCALE,
    )
