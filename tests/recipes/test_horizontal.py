import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.grouping import Grouped
from cofactor.data.split import by_fraction
from cofactor.errors import ConfigError, Refused
from cofactor.factors.baselines import UserMean
from cofactor.federation.channel import Failures
from cofactor.privacy.budget import Budget
from cofactor.privacy.neighbours import Datasets
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.randomness import InsecureRandom
from cofactor.recipes.clipping import EmbeddingClipping, GradientClipping
from cofactor.recipes.home_fit import UsersOnly, fitted_users
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.private_descent import PrivateDescent
from cofactor.recipes.shared_vectors import Shared
from cofactor.recipes.train import train
from tests.recipes.parties import (
    ITEMS,
    USERS,
    facts_of,
    horizontal,
    mse,
    participant_of,
    small_ratings,
    table,
    transcript,
)

BUDGET = Budget(epsilon=1.0, delta=1e-6, unit="user")
QUICK = HorizontalMF(factors=2, rounds=3)
Row = tuple[float | None, ...]
"""A user's ratings, one for each item."""
EMPTY: Row = (None,) * ITEMS


def drawn(chance: np.random.Generator) -> Row:
    row = chance.choice([0.5, 5.0, 3.0], ITEMS)
    return tuple(float(x) if chance.random() < 0.7 else None for x in row)


def step_of(recipe: HorizontalMF, units: tuple[Row, ...], *, items: NDArray[Any]) -> NDArray[np.float64]:
    """Return what a party's last step in two rounds would release without noise, as the bound counts it.

    All neighbours have released the same items by then. Users may have moved, each by its own ratings.
    """
    rated = [(u, i, x) for u, row in enumerate(units) for i, x in enumerate(row) if x is not None]
    half, _ = participant_of(recipe, table(rated), BUDGET)
    steps: list[NDArray[np.float64]] = []

    def watched(descent: PrivateDescent, *_: Any) -> NDArray[Any]:
        steps.append(descent.sums(both=False).items / descent.reach(both=False).items)
        return descent.items

    half._take = watched
    for number in (1, 2):
        half.handle(number, Shared(centre=np.array(3.0), vectors=items))
    return steps[-1]


@pytest.mark.parametrize("most_ratings", [2, ITEMS])
@pytest.mark.parametrize("users", ["refitted", "pretrained", "trained along"])
@pytest.mark.parametrize(
    "clipping",
    [EmbeddingClipping(), GradientClipping(limit=2.0), GradientClipping(limit=2.0, nonnegative=True)],
    ids=["embedding", "gradient", "gradient from 0 up"],
)
def test_a_user_changes_a_step_by_no_more_than_the_bound(
    clipping: Any, users: Any, most_ratings: int
) -> None:
    recipe = HorizontalMF(
        factors=3,
        rounds=2,
        local_steps=2,
        learning_rate=1.0,
        clipping=clipping,
        users=users,
        most_ratings=most_ratings,
    )
    items = np.abs(np.random.default_rng(1).normal(size=(ITEMS, 3))).astype(np.float32)
    settled = recipe.settled(facts_of("horizontal"), BUDGET)
    bound = settled.schedule(facts_of("horizontal"), "user", "north").releases[0].bound
    assert_bounded(
        lambda units: step_of(recipe, units, items=items),
        bound,
        Datasets(draw=drawn, count=USERS, empty=EMPTY),
        pairs=60,
        climbs=60,
    )


def test_one_rating_changes_a_step_by_more_than_proposition_3_claims_for_it() -> None:
    # The user loves 99 items that say little and hates one that says much. Without that rating the user's
    # vector is another one, and it multiplies all 99 gradients.
    items, values = np.full((100, 1), 0.02, np.float32), np.full(100, 5.0, np.float32)
    items[-1], values[-1] = 2.2, 0.5
    steps = []
    for count in (100, 99):
        own = Grouped(np.array([0, count]), np.arange(count, dtype=np.int32), values[:count])
        users = fitted_users(own, items, 0.5).vectors
        descent = PrivateDescent(
            own, users, items, clipping=EmbeddingClipping(), unit="user", highest=5.0, most_ratings=100
        )
        steps.append(descent.sums(both=False).items)
    changed = np.linalg.norm(steps[0] - steps[1])
    claimed = 2 * 5**1.5
    assert changed > 2 * claimed
    assert changed < descent.reach(both=False).bound.size  # what we charge: that of the whole user


def test_single_ratings_are_refused_with_the_reason() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6, unit="rating")
    with pytest.raises(Refused, match=r"one rating changes all that the user contributes.*unit .user."):
        train(QUICK, horizontal(small_ratings(), 2), budget=budget)


def test_without_noise_the_parties_learn_from_each_other() -> None:
    learn, test = by_fraction(small_ratings(), 0.2, seed=1)
    run = train(HorizontalMF(home=UsersOnly()), horizontal(learn, 6))
    together = mse(run.homes, horizontal(test, 6))
    means = {p.name: UserMean().fit(p.ratings) for p in horizontal(learn, 6).parties}
    assert together < mse(means, horizontal(test, 6)) - 0.03
    assert not run.guarantee.holds


def test_a_private_run_says_what_it_costs_and_releases_items_only() -> None:
    federation = horizontal(small_ratings(), 3)
    run = train(QUICK, federation, budget=BUDGET)
    assert run.guarantee.holds
    assert 0.98 < (run.guarantee.epsilon or 0) <= 1.0
    assert run.model is not None
    assert len(run.model.user_ids) == 0
    assert {each.protection for each in transcript(run)} == {"noise", "released before"}
    assert "no user is at two" in str(run.guarantee)


def test_released_items_serve_somebody_new() -> None:
    run = train(QUICK, horizontal(small_ratings(), 3))
    assert run.model is not None
    item = run.model.item_ids[0].item()
    assert len(run.model.fold_in({item: 5.0}).recommend("new user", 3)) == 3


@pytest.mark.parametrize("users", ["refitted", "pretrained", "trained along"])
def test_all_ways_to_fit_users_train_with_and_without_a_budget(users: Any) -> None:
    clipping = EmbeddingClipping() if users != "refitted" else GradientClipping(limit=3.0)
    recipe = replace(QUICK, users=users, clipping=clipping, home=UsersOnly(), local_steps=2)
    for budget in (None, BUDGET):
        run = train(recipe, horizontal(small_ratings(), 2), budget=budget)
        assert all(np.isfinite(home.item_vectors).all() for home in run.homes.values())


def test_the_published_setting_is_that_of_the_paper() -> None:
    recipe = HorizontalMF.as_published()
    assert (recipe.factors, recipe.rounds, recipe.local_steps, recipe.sampling) == (20, 100, 10, 0.01)
    assert recipe.most_ratings == 10
    assert HorizontalMF.synchronous().rounds == 1000
    bound = recipe.settled(facts_of("horizontal"), BUDGET).schedule(facts_of("horizontal"), "user", "north")
    assert bound.releases[0].bound.size == pytest.approx(math.sqrt(10) * 2 * 5**1.5)


def test_settings_follow_from_public_numbers_only() -> None:
    facts = facts_of("horizontal")
    settled = HorizontalMF().settled(facts, BUDGET)
    assert settled == HorizontalMF().settled(facts, BUDGET)
    more = replace(facts, users=(500_000, 500_000), ratings=(50_000_000, 50_000_000))
    larger = HorizontalMF().settled(more, BUDGET)
    assert (larger.factors or 0) > (settled.factors or 0)


def test_a_party_that_does_not_answer_is_left_out_of_the_average() -> None:
    absent = Failures(absent=frozenset({("party-0", 2), ("party-1", 3)}))
    run = train(QUICK, horizontal(small_ratings(), 3), budget=BUDGET, failures=absent)
    assert [event.numbers["answered"] for event in run.rounds] == [3, 2, 2, 3]


def test_repeatable_noise_repeats_and_does_not_hold() -> None:
    federation = horizontal(small_ratings(), 2)
    runs = [train(QUICK, federation, budget=BUDGET, random=InsecureRandom(3)) for _ in range(2)]
    assert runs[0].model is not None
    assert runs[1].model is not None
    np.testing.assert_array_equal(runs[0].model.item_vectors, runs[1].model.item_vectors)
    assert not runs[0].guarantee.holds


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"factors": 0}, "factors must be at least 1"),
        ({"sampling": 1.5}, "sampling must lie between 0 and 1"),
        ({"users": "never"}, "users must be one of refitted, pretrained, trained along"),
        ({"clipping": "some"}, "clipping must be"),
        ({"learning_rate": -1.0}, "learning_rate must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        HorizontalMF(**settings)


@pytest.mark.parametrize("size", [1e8, 9e14])
def test_no_question_makes_a_party_fail_in_a_way_that_depends_on_ratings(size: float) -> None:
    # Two coordinates alike and huge: whether anybody rated the item would show in a singular regression.
    items = np.zeros((ITEMS, 3), np.float32)
    items[0] = 0.0, size, size
    for rated in ([(0, 1, 4.0)], [(0, 0, 4.0), (0, 1, 2.0)]):
        half, _ = participant_of(HorizontalMF(factors=3, rounds=2), table(rated), BUDGET)
        half._home.door.begin(1)
        answer = half.handle(1, Shared(centre=np.array(1e9), vectors=items))
        assert np.isfinite(answer.vectors).all()
