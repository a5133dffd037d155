"""What a server reads off one round of gradients of MovieLens 100K, with and without noise, and off sums."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cofactor.attacks.knowledge import Knowledge
from cofactor.attacks.reconstruction import Reconstruction, attack_upload, reconstruct, scored, uploads
from cofactor.attacks.uploads import Update, with_laplace
from cofactor.data.attributes import UserAttributes
from cofactor.data.coding import published_coding
from cofactor.data.files import read_ratings
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings
from cofactor.data.tables import side_tables
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.view import Capture
from cofactor.privacy.budget import Budget
from cofactor.randomness import InsecureRandom
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_weights import InclUnc, ObsOnly, Unrated
from cofactor.recipes.sums import IdealSum, PlainSum
from cofactor.recipes.train import train

Find = Callable[[str], Path]

pytestmark = pytest.mark.slow

USERS, NOISY, EPOCH = 200, 60, 20
"""Attacked users, those of them whose gradients get noise, and the round: the paper's epoch."""
PUBLISHED = replace(MultiViewMF.as_published(), rounds=EPOCH, aggregate=PlainSum())


@cache
def all_of(path: Path) -> tuple[Ratings, UserAttributes, PublicItems]:
    users, items = side_tables(path)
    assert users is not None
    assert items is not None
    attributes = UserAttributes.of_table(users, coding=published_coding(users))
    return read_ratings(path), attributes, PublicItems.of_table(items)


def federation_of(path: Path) -> Federation:
    """Return attacked users, drawn by chance, as parties of one, and all others as one party."""
    ratings, attributes, items = all_of(path)
    alone = np.zeros(ratings.user_count, np.bool_)
    alone[np.random.default_rng(0).choice(ratings.user_count, USERS, replace=False)] = True
    parties = [
        Party(name=f"user-{user}", ratings=ratings.select(users=slice(user, user + 1)))
        for user in np.flatnonzero(alone)
    ]
    parties.append(Party(name="others", ratings=ratings.select(users=~alone)))
    federation = Federation.horizontal(parties, scale=ratings.scale)
    return federation.with_public_items(items).with_user_attributes(attributes)


def population(path: Path) -> Knowledge:
    ratings, attributes, _ = all_of(path)
    return Knowledge.of_population(
        ratings.by_user,
        ratings.item_count,
        ratings.scale,
        attributes=attributes.rows(ratings.user_ids),
        coding=attributes.coding,
    )


def trained(path: Path, recipe: MultiViewMF, budget: Budget | None = None) -> Run:
    capture = Capture("coordinator", rounds=[recipe.turns])
    return train(
        recipe, federation_of(path), budget=budget, random=InsecureRandom(7), seed=7, capture=capture
    )


def attacked(run: Run, known: Knowledge, *, noise: float = 0.0, most: int = USERS) -> Reconstruction:
    assert run.captured is not None
    seen = [each for each in uploads(run.captured.view("coordinator")) if each.sender != "others"][:most]
    random = np.random.default_rng(11)
    guesses = [attack_upload(with_laplace(each, noise, random), known) for each in seen]
    return scored(guesses, run.captured.truth, known)


@pytest.mark.parametrize(
    ("update", "unrated", "under_noise"),
    [
        ("semi-als", ObsOnly(), 0.91),
        ("sgd", ObsOnly(), 0.66),
        ("semi-als", InclUnc(alpha=0.1), 0.55),
        ("sgd", InclUnc(alpha=0.1), 0.27),
    ],
)
def test_one_round_gives_ratings_and_attributes_away(
    real_data: Find, update: Update, unrated: Unrated, under_noise: float
) -> None:
    path = real_data("ml-100k.inter")
    assert update != "at home"
    run = trained(path, replace(PUBLISHED, update=update, unrated=unrated))
    assert run.captured is not None
    public = Knowledge.of_view(run.captured.view("coordinator"))
    found = attacked(run, public)
    assert (found.users, found.single) == (USERS, True)
    assert found.rated.right >= 0.999
    assert found.attributes is not None
    assert found.attributes.right >= 0.99
    noisy = attacked(run, population(path), noise=0.5, most=NOISY)
    assert noisy.users == NOISY
    assert noisy.rated.right >= under_noise


@pytest.mark.parametrize("unrated", [ObsOnly(), InclUnc(alpha=0.1)])
def test_sums_and_budgets_leave_nothing_but_trivial_guesses(real_data: Find, unrated: Unrated) -> None:
    path = real_data("ml-100k.inter")
    recipe = replace(PUBLISHED, unrated=unrated, rounds=3)
    summed = replace(recipe, aggregate=IdealSum(dropout=0.0, colluding=0.1))
    budget = Budget(epsilon=8.0, delta=1e-5, unit="user")
    for run in (trained(path, summed), trained(path, replace(recipe, limit=None), budget)):
        assert run.captured is not None
        users = [name for name in run.captured.truth.ratings if name != "others"][:NOISY]
        known = population(path)
        guesses = reconstruct(run.captured.view("coordinator"), knowledge=known, parties=users)
        found = scored(guesses, run.captured.truth, known, parties=users)
        assert found.users == NOISY
        for each in (found.rated, found.told, found.all_items, found.attributes, found.questions):
            assert each is not None
            assert each.right <= each.trivial + 0.01
