"""What both factorizations do differently where only sums of answers are seen."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.errors import ConfigError, Refused
from cofactor.privacy.mechanisms import Gaussian
from cofactor.randomness import InsecureRandom
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.plan import plan
from cofactor.recipes.summing_mode import adds_gradients, grain_of, noises, only_sums
from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum
from cofactor.recipes.train import train
from cofactor.recipes.vertical import VerticalMF
from tests.recipes.parties import facts_of, horizontal, transcript, vertical
from tests.recipes.summing_toys import ACROSS, QUICK, RATING, SUMS, USER, few_ratings


def test_several_steps_hide_the_summands_and_save_no_noise() -> None:
    federation = horizontal(few_ratings(), 3)
    recipe = replace(QUICK, rounds=2, local_steps=2, aggregate=SecureSum())
    settled = recipe.settled(federation.facts, USER)
    assert only_sums(settled, federation.facts)
    assert not adds_gradients(settled, federation.facts)
    assert grain_of(settled, federation.facts) is None
    (release,) = settled.schedule(federation.facts, "user", "party-0").releases
    assert isinstance(release.mechanism, Gaussian)
    assert noises(settled, federation.facts) == 3.0
    run = train(recipe, federation, budget=USER, random=InsecureRandom(1))
    words = "every party adds all of its noise in every step"
    assert any(words in each for each in run.guarantee.warnings)
    assert run.together is not None
    assert {each.epsilon for each in run.together.parties.values()} == {run.guarantee.epsilon}
    assert {each.protection for each in transcript(run) if "masked" in each.protection} == {"noise, masked"}
    planned = plan(recipe, USER, users=300, items=50, ratings=3000, parties=3)
    assert any(words in each for each in planned.warnings)
    one = plan(replace(recipe, local_steps=1), USER, users=300, items=50, ratings=3000, parties=3)
    assert not any(words in each for each in one.warnings)


@pytest.mark.parametrize("made", [(QUICK, horizontal), (ACROSS, vertical)], ids=["horizontal", "vertical"])
def test_several_steps_are_averaged_as_in_plain_sight(made: tuple[Any, Any]) -> None:
    recipe, deal = made
    steps = replace(recipe, rounds=2, local_steps=2)
    federation = deal(few_ratings(), 3)
    plain, ideal, secure = (
        train(replace(steps, aggregate=each), federation).model for each in (PlainSum(), *SUMS)
    )
    assert plain is not None
    assert ideal is not None
    assert secure is not None
    for name in ("user_vectors", "item_vectors"):
        np.testing.assert_array_equal(getattr(ideal, name), getattr(secure, name))
        np.testing.assert_allclose(getattr(secure, name), getattr(plain, name), atol=1e-4)


@pytest.mark.parametrize("aggregate", SUMS, ids=["ideal", "secure"])
def test_mean_is_summed_as_a_whole_number(aggregate: Any) -> None:
    federation = horizontal(few_ratings(), 3)
    recipe = replace(QUICK, centre=None)
    plain, summed = (
        train(replace(recipe, aggregate=each), federation).model for each in (PlainSum(), aggregate)
    )
    assert plain is not None
    assert summed is not None
    # Rounded by chance to 1/512 of half the scale, for each of 24 users.
    assert summed.mean == pytest.approx(plain.mean, abs=2.25 / 512)


def test_sampling_is_refused_where_noise_is_shared() -> None:
    facts = facts_of("horizontal")
    sampled = replace(QUICK, sampling=0.5, aggregate=SecureSum())
    with pytest.raises(Refused, match=r"sums of one step take all users.*Use sampling=1"):
        sampled.settled(facts, USER)
    with pytest.raises(Refused, match="sums of one step take all users"):
        replace(ACROSS, sampling=0.5, aggregate=IdealSum()).settled(facts_of("vertical"), RATING)
    assert replace(sampled, local_steps=2).settled(facts, USER).sampling == 0.5
    assert replace(sampled, aggregate=PlainSum()).settled(facts, USER).sampling == 0.5


@pytest.mark.parametrize("change", [{}, {"alone": True}], ids=["user", "alone"])
def test_vertical_sums_protect_ratings_of_parties_that_hear_of_each_other(change: dict[str, Any]) -> None:
    facts, budget = facts_of("vertical"), RATING if change else USER
    for aggregate in SUMS:
        with pytest.raises(Refused, match="VerticalMF sums answers only where each rating is protected"):
            replace(ACROSS, aggregate=aggregate, **change).settled(facts, budget)
    assert replace(ACROSS, **change).settled(facts, budget).grain is None


@pytest.mark.parametrize("wrong", [{"aggregate": "sum"}, {"grain": 0.0}, {"grain": -1.0}], ids=str)
@pytest.mark.parametrize("kind", [HorizontalMF, VerticalMF])
def test_settings_of_sums_that_make_no_sense_are_refused(kind: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        kind(**wrong)
