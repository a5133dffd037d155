from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from cofactor.config import as_table, from_table
from cofactor.data.grouping import Grouped
from cofactor.data.split import by_fraction
from cofactor.errors import ConfigError
from cofactor.factors.baselines import GlobalMean
from cofactor.federation.channel import Failures
from cofactor.privacy.budget import Budget
from cofactor.randomness import InsecureRandom, SecureRandom, Seeds
from cofactor.recipes.objective import (
    ObjectivePerturbation,
    fitted_users,
    random_slopes,
    ridge,
    slope_size,
)
from cofactor.recipes.plan import plan
from cofactor.recipes.train import train
from tests.recipes.parties import facts_of, mse, small_ratings, transcript, vertical

RATING = Budget(epsilon=1.0, delta=1e-6, unit="rating")
QUICK = ObjectivePerturbation(factors=3)
RARE = 1e-7


def centred(parties: int = 1) -> tuple[Grouped, Grouped]:
    """Return the first party's ratings less 3, by user and by item."""
    ratings = vertical(small_ratings(), parties).parties[0].ratings
    by_user = ratings.by_user
    less = Grouped(by_user.ptr, by_user.index, by_user.values - np.float32(3.0))
    return less, less.turned(ratings.item_count)


def users_of(recipe: ObjectivePerturbation) -> NDArray[np.float32]:
    """Return what a run with seed 0 fits, without noise."""
    return fitted_users(*centred(), recipe, Seeds(0).generator("items of party-0"))


def slope_at(
    by_item: Grouped, users: NDArray[Any], items: NDArray[Any], regularization: float
) -> NDArray[np.float64]:
    """Return the gradient, at each item's vector, of its squared errors and penalty: a plain loop."""
    found = 2 * regularization * items.astype(np.float64)
    for j in range(len(items)):
        for at in range(by_item.ptr[j], by_item.ptr[j + 1]):
            u = users[by_item.index[at]].astype(np.float64)
            found[j] += 2 * (u @ items[j] - by_item.values[at]) * u
    return found


def test_the_released_items_minimise_a_perturbed_objective() -> None:
    recipe = ObjectivePerturbation(factors=3, claimed_epsilon=2.0, regularization=4.0)
    run = train(recipe, vertical(small_ratings(), 1), random=InsecureRandom(7))
    assert run.model is not None
    items = run.model.item_vectors
    slopes = random_slopes(items.shape, 2 * (5 - 1) / 2.0, InsecureRandom(7000))
    gradient = slope_at(centred()[1], users_of(recipe), items, 4.0) + slopes
    assert np.abs(slopes).mean() > 1.0
    np.testing.assert_allclose(gradient, 0.0, atol=2e-3)


def test_without_perturbation_it_is_a_ridge_regression() -> None:
    recipe = ObjectivePerturbation(factors=3, claimed_epsilon=1e12)
    run = train(recipe, vertical(small_ratings(), 1))
    assert run.model is not None
    plain = ridge(centred()[1], users_of(recipe), recipe.regularization)
    np.testing.assert_allclose(run.model.item_vectors, plain, atol=1e-6)
    np.testing.assert_allclose(slope_at(centred()[1], users_of(recipe), plain, 5.0), 0.0, atol=2e-3)


def test_slopes_have_the_density_that_the_claim_asks_for() -> None:
    # False alarms: 5 tests of 1e-7 each.
    slopes = random_slopes((40_000, 3), 2.5, SecureRandom())
    lengths = np.linalg.norm(slopes, axis=1)
    assert stats.kstest(lengths, stats.gamma(3, scale=2.5).cdf).pvalue > RARE
    directions = slopes / lengths[:, None]
    for k in range(3):  # on a sphere in three dimensions every coordinate is uniform
        assert stats.kstest(directions[:, k], stats.uniform(-1, 2).cdf).pvalue > RARE
    assert stats.spearmanr(lengths, directions[:, 0]).pvalue > RARE


def test_another_value_of_one_rating_costs_the_claim_if_users_were_given() -> None:
    facts = facts_of("vertical")
    recipe = ObjectivePerturbation(claimed_epsilon=0.7, factors=2)
    user, item = np.array([[0.6, 0.8]], np.float32), np.array([[0.3, -0.2]], np.float32)
    low, high = (
        slope_at(Grouped(np.array([0, 1]), np.array([0], np.int32), np.array([value])), user, item, 5.0)
        for value in (facts.scale.low, facts.scale.high)
    )
    # The density is exp(-|b| / size): its logarithm changes by no more than the length of the change.
    assert np.linalg.norm(low - high) / slope_size(recipe, facts) == pytest.approx(0.7)


def test_no_user_vector_is_longer_than_the_claim_assumes() -> None:
    less, by_item = centred()
    loud = [Grouped(each.ptr, each.index, each.values * np.float32(50.0)) for each in (less, by_item)]
    recipe = ObjectivePerturbation(factors=3, regularization=0.01)
    users = fitted_users(loud[0], loud[1], recipe, np.random.default_rng(0))
    lengths = np.linalg.norm(users.astype(np.float64), axis=1)
    assert 0.999 < lengths.max() <= 1.0


def test_the_run_says_why_it_is_not_private() -> None:
    run = train(ObjectivePerturbation(factors=2, claimed_epsilon=0.5), vertical(small_ratings(), 1))
    assert not run.guarantee.holds
    assert run.guarantee.epsilon is None
    words = str(run.guarantee)
    assert "epsilon 0.5 is claimed" in words
    assert "fitted to the same ratings without noise" in words
    assert "not about who rated what" in words


def test_a_budget_is_refused() -> None:
    words = "its claim cannot be proved. Leave the budget out, and set claimed_epsilon"
    with pytest.raises(ConfigError, match=words):
        train(QUICK, vertical(small_ratings(), 1), budget=RATING)
    with pytest.raises(ConfigError, match=words):
        plan(QUICK, RATING, users=100, items=50, ratings=2000)
    with pytest.raises(ConfigError, match=words):
        QUICK.settled(facts_of("vertical"), RATING)
    with pytest.raises(ConfigError, match=words):
        QUICK.schedule(facts_of("vertical"), "rating", "north")
    with pytest.raises(ConfigError, match=words):
        QUICK.promise(facts_of("vertical"), RATING)


def test_item_vectors_leave_once_and_user_vectors_never() -> None:
    run = train(QUICK, vertical(small_ratings(), 1))
    answers = [each for each in transcript(run) if each.sender == "party-0"]
    assert [(each.round, each.protection) for each in answers] == [(1, "nothing")]
    assert run.model is not None
    assert len(run.model.user_ids) == 0
    assert 4 * run.model.item_vectors.size < answers[0].bytes < 4 * run.model.item_vectors.size + 300
    np.testing.assert_array_equal(run.homes["party-0"].item_vectors, run.model.item_vectors)


def test_several_parties_fit_by_themselves_and_publish_nothing_together() -> None:
    learn, test = by_fraction(small_ratings(), 0.2, seed=1)
    run = train(ObjectivePerturbation(factors=3, claimed_epsilon=1e6), vertical(learn, 2))
    assert run.model is None
    means = {p.name: GlobalMean().fit(p.ratings) for p in vertical(learn, 2).parties}
    assert mse(run.homes, vertical(test, 2)) < mse(means, vertical(test, 2)) - 0.1


def test_whoever_brings_the_same_ratings_to_the_published_items_is_the_same_user() -> None:
    federation = vertical(small_ratings(), 1)
    run, ratings = train(QUICK, federation), federation.parties[0].ratings
    assert run.model is not None
    first = slice(*ratings.by_user.ptr[:2])
    given = zip(
        ratings.item_ids[ratings.by_user.index[first]].tolist(), ratings.by_user.values[first], strict=True
    )
    folded = run.model.fold_in({item: float(value) for item, value in given})
    np.testing.assert_allclose(folded.user_vectors[0], run.homes["party-0"].user_vectors[0], atol=1e-5)


def test_noise_is_drawn_once() -> None:
    absent = Failures(absent=frozenset({("party-0", 1)}))
    run = train(QUICK, vertical(small_ratings(), 1), failures=absent)
    assert run.model is None
    assert set(run.homes) == {"party-0"}
    settled = QUICK.settled(vertical(small_ratings(), 1).facts, None)
    first, second = (settled.participant(home_of()) for _ in range(2))
    assert first.state() == {}
    released = first._perturbed()
    second.restore(first.state())
    np.testing.assert_array_equal(second._perturbed(), released)


def home_of() -> Any:
    from cofactor.federation.door import Door
    from cofactor.federation.halves import Home

    federation = vertical(small_ratings(), 1)
    door = Door(party="party-0", ledger=None, random=SecureRandom(), run="a test")
    return Home(party=federation.parties[0], facts=federation.facts, schedule=None, door=door, seed=0)


def test_a_run_keeps_its_settings() -> None:
    recipe = ObjectivePerturbation(claimed_epsilon=2.5, factors=7, regularization=1.0)
    assert from_table(ObjectivePerturbation, as_table(recipe), "recipe") == recipe


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"claimed_epsilon": 0.0}, "claimed_epsilon must be greater than 0"),
        ({"regularization": 0.0}, "regularization must be greater than 0"),
        ({"factors": 0}, "factors must be at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ObjectivePerturbation(**settings)
