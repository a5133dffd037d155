"""Whatever a coordinator asks: whether a party can answer does not depend on what its users have rated."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cofactor.crypto.keys import Identity
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import CofactorError
from cofactor.federation.door import COORDINATOR
from cofactor.federation.drive import Session
from cofactor.federation.federation import Federation
from cofactor.federation.host import Host
from cofactor.federation.messages import Letter
from cofactor.federation.party import Party
from cofactor.federation.transcript import Transcript
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.ledger import Ledger
from cofactor.randomness import SecureRandom
from cofactor.recipes.clipping import EmbeddingClipping
from cofactor.recipes.hdpmf import HDPMF
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.hosts import host_of, summing_of
from cofactor.recipes.item_letters import ItemsKnown
from cofactor.recipes.item_rounds import ItemRound
from cofactor.recipes.local_reports import LocalReports
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.shared_vectors import Shared
from cofactor.recipes.sums import PlainSum, SecureSum
from cofactor.recipes.vertical import VerticalMF

ITEMS, SCALE = 12, Scale(1, 5)
HERS = slice(0, 4)
"""Items that the first party's user rated, or not."""
EXTREMES = (1e300, -1e300, 3e38, 1e20, 1e14, 1e-45, 5e-324, 0.0)


def party(name: str, users: int, rated: range) -> Party:
    random = np.random.default_rng(len(rated))
    own = Ratings.from_rows(
        np.repeat(np.arange(users), len(rated)),
        np.tile(np.array(rated), users),
        random.integers(1, 6, users * len(rated)).astype(np.float32),
        user_ids=np.array([f"{name}-{k}" for k in range(users)]),
        item_ids=np.arange(ITEMS),
        scale=SCALE,
    )
    return Party(name=name, ratings=own)


def joined(split: str, rated: range) -> Federation:
    users = 1 if split == "on-device" else 3
    others = [party(f"other{k}", users, range(2, 10)) for k in range(4)]
    if split == "vertical":
        shared = np.arange(3)
        same = [
            Party(name=each.name, ratings=_with_users(each.ratings, shared))
            for each in (party("first", 3, rated), *others)
        ]
        return Federation.vertical(same, scale=SCALE)
    make: Any = Federation.on_device if split == "on-device" else Federation.horizontal
    found: Federation = make([party("first", users, rated), *others], scale=SCALE)
    return found


def _with_users(own: Ratings, users: Any) -> Ratings:
    return Ratings.from_rows(
        own.users, own.items, own.values, user_ids=users, item_ids=own.item_ids, scale=SCALE
    )


def host(recipe: Any, federation: Federation) -> Host:
    """Return the first party's end, ready for its first question."""
    budget = Budget(epsilon=1.0, delta=1e-6, unit=recipe.units[0])
    settled, first = recipe.settled(federation.facts, budget), federation.parties[0]
    identities = {each.name: Identity.generate() for each in federation.parties}
    roster = {name: identity.public for name, identity in identities.items()}
    session = Session(
        name="s",
        kinds=settled.messages,
        transcript=Transcript.create(None, session="s"),
        summing=summing_of(settled, federation.facts, roster),
    )
    return host_of(
        settled,
        first,
        federation.facts,
        session,
        schedule=calibrated(settled.schedule(federation.facts, budget.unit, first.name), budget),
        ledger=Ledger.create(None, party=first.name, fingerprint="f", budget=budget),
        random=SecureRandom(),
        identity=identities[first.name],
    )


def questions(rows: int, factors: int) -> Iterator[bytes]:
    """Yield questions about vectors of which some are extreme."""
    for extreme in EXTREMES:
        for kind in (np.float64, np.float32):
            with np.errstate(over="ignore"):
                value = kind(extreme)
            for where in (slice(None), HERS):
                vectors = np.full((rows, factors), 0.5, kind)
                vectors[where] = value
                if np.isfinite(vectors).all():
                    body = Shared(centre=np.array(3.0), vectors=vectors)
                    yield Letter(session="s", round=1, sender=COORDINATOR, body=body).to_bytes()


def outcome(recipe: Any, federation: Federation, question: bytes) -> str:
    try:
        host(recipe, federation).handle(question)
    except CofactorError as error:
        return f"{type(error).__name__}: {error}"
    return "an answer"


RECIPES: dict[str, Any] = {
    "devices": OnDeviceMF(rounds=2, factors=2),
    "devices as published": OnDeviceMF.as_published(),
    "reports": LocalReports(rounds=2, factors=2, rows=3),
    "horizontal": HorizontalMF(rounds=2, factors=2, home=UsersOnly(), aggregate=PlainSum()),
    "horizontal sums": HorizontalMF(
        rounds=2, factors=2, clipping=EmbeddingClipping(), home=UsersOnly(), aggregate=SecureSum()
    ),
    "hdpmf": HDPMF(rounds=2, factors=2),
    "vertical sums": VerticalMF(rounds=2, factors=2, aggregate=SecureSum()),
}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_no_question_fails_at_those_alone_who_rated_something(recipe: Any) -> None:
    rated, other = joined(recipe.split, range(6)), joined(recipe.split, range(6, 12))
    facts = rated.facts
    rows = facts.user_count if recipe.split == "vertical" else facts.item_count
    for question in questions(rows, recipe.factors):
        assert outcome(recipe, rated, question) == outcome(recipe, other, question)


FACTORS = 2
BY_ITEM = SecureALS(
    item_rounds=(
        ItemRound(share=0.5, count_weight=1.2, spread_share=0.05),
        ItemRound(share=0.5, count_weight=0.3, factors=FACTORS, spread_share=0.05),
    ),
    home=UsersOnly(),
)
LISTS = {"bias": (ITEMS,), "variance": (ITEMS,), "learned": (ITEMS, 2), "importance": (ITEMS,)}


def item_questions() -> Iterator[bytes]:
    """Yield questions about items of which some are extreme, in the rounds with and without factors."""
    for round, factors in ((2, 0), (3, FACTORS)):
        width = 3 + factors
        shapes = LISTS | {
            "covariance": (width, width), "factors": (ITEMS, factors), "told": (factors, factors), "mean": ()
        }  # fmt: skip
        for extreme in (1e300, 9e14, -9e14, 5e-324, np.nan):
            for name in shapes:
                arrays = {each: np.full(shape, 0.5) for each, shape in shapes.items()}
                arrays[name][... if name == "mean" else HERS] = extreme
                body = ItemsKnown(**arrays)
                yield Letter(session="s", round=round, sender=COORDINATOR, body=body).to_bytes()


@pytest.mark.parametrize("split", ["on-device", "horizontal"])
def test_no_question_about_items_fails_at_those_alone_who_rated_them(split: str) -> None:
    rated, other = joined(split, range(6)), joined(split, range(6, 12))
    found = set()
    for question in item_questions():
        first = outcome(BY_ITEM, rated, question)
        assert first == outcome(BY_ITEM, other, question)
        found.add(first.partition(":")[0])
    assert found == {"an answer", "RunError"}
