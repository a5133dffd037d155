import math
from typing import Any

import numpy as np
import pytest

from cofactor.config import as_table, from_table
from cofactor.errors import ConfigError
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.mechanisms import SampledGaussian
from cofactor.randomness import InsecureRandom
from cofactor.recipes.clipping import EmbeddingClipping, reach
from cofactor.recipes.langevin import DPSGLD
from cofactor.recipes.shared_vectors import Shared
from cofactor.recipes.train import train
from cofactor.recipes.vertical import VerticalMF
from tests.recipes.parties import ITEMS, USERS, facts_of, participant_of, small_ratings, table, vertical

RATING = Budget(epsilon=1.0, delta=1e-6, unit="rating")
USER = Budget(epsilon=1.0, delta=1e-6, unit="user")
QUICK = DPSGLD(factors=2, rounds=3, sampling=1.0)
BOTH = pytest.mark.parametrize("budget", [RATING, USER], ids=["rating", "user"])


def deviation_of(recipe: DPSGLD, budget: Budget) -> float:
    """Return the deviation of the noise on a sum of gradients."""
    facts = facts_of("vertical")
    schedule = recipe.settled(facts, budget).schedule(facts, budget.unit, "north")
    release = calibrated(schedule, budget).releases[0]
    assert isinstance(release.mechanism, SampledGaussian)
    return release.mechanism.noise_multiplier * release.bound.size


@pytest.mark.parametrize(
    ("budget", "change"),
    [(RATING, 2 * math.sqrt(2) * 5**1.5), (USER, 2 * 5**1.5 * math.sqrt(5**2 + 5))],
    ids=["rating", "user"],
)
def test_privacy_fixes_the_size_of_a_step(budget: Budget, change: float) -> None:
    facts = facts_of("vertical")
    published = VerticalMF.as_published(2).settled(facts, budget)
    release = calibrated(published.schedule(facts, budget.unit, "north"), budget).releases[0]
    assert isinstance(release.mechanism, SampledGaussian)
    multiplier = release.mechanism.noise_multiplier
    settled = DPSGLD(noise=0.5).settled(facts, budget)
    assert settled.learning_rate == pytest.approx(4 * 0.01 / (2.0 * (multiplier * change) ** 2), rel=1e-12)


@BOTH
def test_noise_of_a_step_is_that_of_langevin_dynamics(budget: Budget) -> None:
    recipe = DPSGLD(sampling=0.05, noise=0.6, rounds=10)
    rate = recipe.settled(facts_of("vertical"), budget).learning_rate or 0.0
    variance = (rate * deviation_of(recipe, budget)) ** 2  # eta
    # Half of it times the gradient of -log posterior, whose likelihood has e^2 / (2 noise) for every rating:
    # gradients of e^2, of a twentieth of the users, count 1 / (2 noise) / 0.05 in it.
    assert variance / 2 / (2 * 0.6) / 0.05 == pytest.approx(rate, rel=1e-12)


def test_no_step_is_so_large_that_it_overshoots() -> None:
    settled = DPSGLD(noise=1e6).settled(facts_of("vertical"), RATING)
    assert settled.learning_rate == USERS / (2 * 5.0 * 20)


def test_steps_stay_as_large_as_they_are() -> None:
    half, settled = participant_of(DPSGLD(), table([(0, 0, 3.0)]), RATING)
    np.testing.assert_array_equal(half._steps.rates(0, 1000), settled.learning_rate)


def test_a_rate_that_is_given_is_kept() -> None:
    settled = DPSGLD(learning_rate=1e-7).settled(facts_of("vertical"), RATING)
    assert settled.learning_rate == 1e-7


@BOTH
def test_releases_are_those_of_the_same_vertical_factorization(budget: Budget) -> None:
    facts = facts_of("vertical")
    schedules = [
        recipe.settled(facts, budget).schedule(facts, budget.unit, "north")
        for recipe in (DPSGLD(), VerticalMF.as_published(2))
    ]
    assert schedules[0] == schedules[1]


@BOTH
def test_the_bound_in_the_records_is_that_of_its_steps(budget: Budget) -> None:
    half, settled = participant_of(QUICK, table([(0, 0, 3.0)]), budget)
    stated = settled.schedule(facts_of("vertical"), budget.unit, "north").releases[0].bound
    expected = reach(EmbeddingClipping(), highest=5.0, unit=budget.unit, most_ratings=5, both=True)
    users = np.ones((USERS, 2), np.float32)
    descent = half._with(Shared(centre=np.array(3.0), vectors=users))
    assert stated == expected.bound == descent.reach(both=True).bound
    assert isinstance(descent.clipping, EmbeddingClipping)


def test_only_users_as_units_are_trimmed() -> None:
    everything = table([(u, i, 3.0) for u in range(USERS) for i in range(ITEMS)])
    sizes = [
        participant_of(DPSGLD(most_ratings=2), everything, budget)[0]._ratings.sizes.tolist()
        for budget in (RATING, USER)
    ]
    assert sizes == [[ITEMS] * USERS, [2] * USERS]


@BOTH
def test_it_trains_privately(budget: Budget) -> None:
    run = train(QUICK, vertical(small_ratings(), 2), budget=budget)
    assert run.guarantee.holds
    assert 0.97 < (run.guarantee.epsilon or 0.0) <= 1.0
    assert run.model is not None
    assert np.isfinite(run.model.item_vectors).all()


def test_it_is_a_vertical_factorization_with_steps_of_its_own() -> None:
    federation = vertical(small_ratings(), 2)
    settled = QUICK.settled(federation.facts, RATING)
    same = VerticalMF(
        factors=2,
        rounds=3,
        local_steps=10,
        sampling=1.0,
        clipping=EmbeddingClipping(),
        learning_rate=settled.learning_rate,
        decay=1.0,
    )
    models = [
        train(recipe, federation, budget=RATING, random=InsecureRandom(5)).model for recipe in (QUICK, same)
    ]
    assert models[0] is not None
    assert models[1] is not None
    np.testing.assert_array_equal(models[0].item_vectors, models[1].item_vectors)
    np.testing.assert_array_equal(models[0].user_vectors, models[1].user_vectors)


@BOTH
def test_a_run_keeps_its_own_name_and_settings(budget: Budget) -> None:
    settled = QUICK.settled(facts_of("vertical"), budget)
    written = as_table(settled)
    assert written["kind"] == "DPSGLD"
    read: DPSGLD = from_table(DPSGLD, written, "recipe")
    assert read == settled
    assert read.settled(facts_of("vertical"), budget) == settled


def test_without_a_budget_there_is_no_noise_to_sample_with() -> None:
    with pytest.raises(ConfigError, match=r"DPSGLD needs a budget.*use VerticalMF"):
        train(QUICK, vertical(small_ratings(), 2))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"noise": 0.0}, "noise must be greater than 0"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"sampling": 2.0}, "sampling must lie between 0 and 1"),
        ({"learning_rate": -1.0}, "learning_rate must be greater than 0"),
        ({"most_ratings": 0}, "most_ratings must be at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        DPSGLD(**settings)
