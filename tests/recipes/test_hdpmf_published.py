"""HDPMF, PDPMF and DPMF as published: what they train, and what they say that it costs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.errors import ConfigError, Refused
from cofactor.federation.federation import Federation
from cofactor.federation.run import Run
from cofactor.privacy.budget import Budget
from cofactor.privacy.weights import HDPMF_ITEMS, HDPMF_USERS, Weights
from cofactor.progress import Progress
from cofactor.recipes.hdpmf import HDPMF
from cofactor.recipes.hdpmf_published import DPMF, PDPMF, PublishedHDPMF
from cofactor.recipes.train import train
from tests.recipes.parties import horizontal, small_ratings, transcript

USERS, ITEMS = Weights.drawn(HDPMF_USERS, seed=3), Weights.drawn(HDPMF_ITEMS, seed=4)
RECIPES: dict[str, Any] = {"hdpmf": HDPMF, "pdpmf": PDPMF, "dpmf": DPMF}


def simulation(users: Weights = USERS, items: Weights = ITEMS) -> Federation:
    return Federation.on_device(small_ratings()).with_weights(users, items)


def model(run: Run) -> Any:
    return run.homes["devices"]


@pytest.mark.parametrize("noise", ["fresh", "fixed"])
@pytest.mark.parametrize("method", RECIPES)
def test_the_protocol_trains_what_fit_does(method: str, noise: Any) -> None:
    recipe, ratings = RECIPES[method].as_published(epochs=3, factors=2, noise=noise), small_ratings()
    run = train(recipe, simulation(), seed=6)
    expected = recipe.fit(ratings, USERS.of(ratings.user_ids), ITEMS.of(ratings.item_ids), seed=6)
    assert recipe.method == method
    np.testing.assert_array_equal(model(run).user_vectors, expected.user_vectors)
    np.testing.assert_array_equal(model(run).item_vectors, expected.item_vectors)
    assert run.model is not None
    np.testing.assert_array_equal(run.model.item_vectors, expected.item_vectors)


def test_whoever_has_no_weights_has_weight_1() -> None:
    recipe = HDPMF.as_published(epochs=2, factors=2)
    plain = train(recipe, Federation.on_device(small_ratings()), seed=6)
    ones = train(recipe, simulation(Weights.equal(), Weights.equal()), seed=6)
    np.testing.assert_array_equal(model(plain).user_vectors, model(ones).user_vectors)


def test_a_training_that_was_stopped_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    recipe = HDPMF.as_published(epochs=4, factors=2)

    def stop(event: Progress) -> None:
        if event.step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(recipe, simulation(), seed=6, folder=tmp_path, progress=stop)
    resumed = train(recipe, simulation(), seed=6, folder=tmp_path)
    np.testing.assert_array_equal(
        model(resumed).user_vectors, model(train(recipe, simulation(), seed=6)).user_vectors
    )


def test_only_item_vectors_leave_and_they_leave_unprotected() -> None:
    run = train(HDPMF.as_published(epochs=2, factors=2), simulation())
    sent = [each for each in transcript(run) if each.sender == "devices"]
    assert {each.kind for each in sent} == {"Vectors"}
    assert {each.protection for each in sent} == {"nothing"}


def reason(recipe: PublishedHDPMF) -> str:
    run = train(recipe, simulation())
    assert run.guarantee is not None
    assert not run.guarantee.holds
    assert recipe.not_private in str(run.guarantee)
    return recipe.not_private


def test_fresh_noise_is_said_to_cost_as_many_times_the_claim_as_there_are_epochs() -> None:
    said = HDPMF.as_published(epsilon=0.5).not_private
    assert "epsilon 0.5 times W is claimed for a rating of weight W" in said
    assert "drawn anew in each of 100 epochs, which cost 100 times as much in all" in said
    assert "for epsilon 0.5 put 50." in said
    assert "cost 2 times as much" in reason(HDPMF.as_published(epochs=2, factors=2))


def test_fixed_noise_is_said_to_cancel_in_differences() -> None:
    said = reason(PDPMF.as_published(epochs=2, factors=2, noise="fixed"))
    assert "the difference of what a user sends in two of them has no noise in it" in said
    assert "drawn anew" not in said


@pytest.mark.parametrize("noise", ["fresh", "fixed"])
@pytest.mark.parametrize("method", RECIPES)
def test_all_say_that_single_messages_and_fitted_users_break_the_claim(method: str, noise: Any) -> None:
    said = RECIPES[method].as_published(noise=noise).not_private
    assert said.startswith("Not private: ")
    assert (
        "single messages, and of the noise of an item with n raters each has a part that is the root" in said
    )
    assert "fitted to the same ratings: one rating changes all messages of its user" in said
    assert "not about who rated what" in said


def test_without_noise_nothing_is_claimed() -> None:
    said = reason(HDPMF.as_published(epochs=2, factors=2, noise="none"))
    assert said == "Not private: no noise was added to anything that was sent."


def test_defaults_are_the_papers() -> None:
    found = HDPMF.as_published()
    assert (found.method, found.factors, found.epochs, found.epsilon, found.rescaled) == (
        "hdpmf",
        10,
        100,
        1,
        True,
    )
    assert found.penalty in (0.01, 0.001)
    assert found.rate in (0.05, 0.01, 0.005, 0.001)
    assert DPMF.as_published().rate in (0.005, 0.001, 0.0005, 0.0001)
    assert not HDPMF.as_published(rescaled=False).rescaled


@pytest.mark.parametrize("recipe", [HDPMF.as_published(), DPMF.as_published()])
def test_a_budget_is_refused_because_nothing_can_be_proved(recipe: PublishedHDPMF) -> None:
    facts, budget = simulation().facts, Budget(epsilon=1.0, delta=1e-6, unit="rating")
    with pytest.raises(ConfigError, match="take no budget: what is claimed for them cannot be proved"):
        recipe.settled(facts, budget)
    with pytest.raises(ConfigError, match="take no budget"):
        recipe.schedule(facts, "rating", "devices")
    with pytest.raises(ConfigError, match="take no budget"):
        recipe.promise(facts, budget)


def test_real_devices_are_refused() -> None:
    apart = Federation.on_device(horizontal(small_ratings(), 150).parties)
    with pytest.raises(ConfigError, match="simulations, in which one process plays all devices"):
        train(HDPMF.as_published(), apart)


@pytest.mark.parametrize(("kind", "instead"), [(PDPMF, "sampling"), (DPMF, "of the strictest epsilon")])
def test_baselines_without_a_published_setting_point_to_hdpmf(kind: Any, instead: str) -> None:
    with pytest.raises(ConfigError, match=f"as published only.*use HDPMF\\(\\).*{instead}"):
        kind()


def test_single_ratings_are_not_for_the_repaired_one() -> None:
    with pytest.raises(Refused, match="PersonalBiases"):
        HDPMF().settled(simulation().facts, Budget(epsilon=1.0, delta=1e-6, unit="rating"))


def test_who_takes_part_by_chance_is_said_to_lose_the_mean_promise_in_every_epoch() -> None:
    said = PDPMF.as_published().not_private
    assert "100 times the mean promise, and chance takes next to nothing off it" in said
    assert "for epsilon 1 put 100" not in said
    assert "for epsilon 1 put 100" in DPMF.as_published().not_private
