"""Noise that is drawn anew each time, for the whole budget, hides nothing for long."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from cofactor.attacks import differencing_averaging as averaging
from cofactor.attacks.differencing import differenced, scored
from cofactor.attacks.differencing_averaging import averaged
from cofactor.attacks.differencing_uploads import PublishedUploads
from cofactor.data.files import read_ratings
from cofactor.data.synthetic import Shape, make
from cofactor.errors import ConfigError
from cofactor.federation.view import Capture, Captured
from cofactor.randomness import InsecureRandom
from cofactor.recipes.train import train
from tests.attacks.test_differencing import Find, captured, item_weights, single_users

RECIPE = PublishedUploads(factors=3, epochs=100, rate=0.001, epsilon=1.0, noise="fresh")


@cache
def uploaded(epochs: int = 100) -> Captured:
    shape = Shape(users=300, items=40, ratings=6000, minimum=10)
    federation = single_users(make(shape, seed=3).ratings, 5, weighed=False)
    rounds = Capture("coordinator", rounds=range(10, 2 + epochs))
    return captured(train(RECIPE, federation, seed=1, random=InsecureRandom(4), capture=rounds))


@pytest.mark.slow
def test_many_uploads_with_fresh_noise_give_ratings_away_and_few_do_not() -> None:
    kept = uploaded()
    guesses = averaged(kept.view("coordinator"))
    assert len(guesses) == 5
    found = scored(guesses, kept.truth)
    assert found.accuracy > 0.95
    assert found.trivial < 0.6
    # All but the noise is explained.
    assert all(0.9 < each.misfit < 1.1 for each in guesses)
    few = scored(averaged(uploaded(12).view("coordinator")), kept.truth)
    assert few.accuracy < 0.6
    # Differences have fresh noise in them: they give nothing.
    assert scored(differenced(kept.view("coordinator"), starts=1), kept.truth).explained == 0.0


def test_slopes_and_curvatures_are_those_of_the_cost() -> None:
    view = uploaded().view("coordinator")
    answers = list(view.messages("Uploads", sender=view.parties[0]))[:20]
    items = answers[0].arrays["items"]
    assert view.scale is not None
    story = averaging._told(view, RECIPE, answers, items, np.ones(len(items)), view.scale)
    random = np.random.default_rng(5)
    for length in (0.5, 3.0):  # where users are not scaled down, and where they are
        found = np.concatenate([length * random.normal(size=3), story.mean + random.normal(size=len(items))])
        _, slope, _ = averaging._normal(story, found)
        for place in (0, 2, 3, len(found) - 1):
            step = np.zeros(len(found))
            step[place] = 1e-5
            costs = [averaging._normal(story, found + way * step)[2] for way in (1, -1)]
            assert (costs[0] - costs[1]) / 4e-5 == pytest.approx(slope[place], rel=1e-4)


def test_it_needs_rounds_that_follow_each_other_of_the_published_uploads() -> None:
    view = uploaded().view("coordinator")
    with pytest.raises(ConfigError, match="in rounds that follow each other"):
        averaged(replace(view, seen=tuple(each for each in view.seen if each.round % 2)))
    with pytest.raises(ConfigError, match="averaging is for PublishedUploads, and this is HDPMF"):
        averaged(replace(view, recipe={"kind": "HDPMF"}))


@pytest.mark.slow
def test_ratings_of_movielens_come_out_of_a_hundred_epochs_of_fresh_noise(real_data: Find) -> None:
    federation = single_users(read_ratings(real_data("ml-100k.inter")), 20)
    rounds = Capture("coordinator", rounds=range(10, 102))
    kept = captured(train(PublishedUploads(noise="fresh"), federation, seed=1, capture=rounds))
    own = {
        party.name: float(party.weights[0]) for party in federation.parties[:-1] if party.weights is not None
    }
    guesses = averaged(kept.view("coordinator"), item_weights=item_weights(federation), user_weights=own)
    everybody = scored(guesses, kept.truth)
    assert everybody.accuracy > everybody.trivial + 0.25
    open_minded = [each for each in guesses if own[each.sender] > 0.6]
    assert scored(open_minded, kept.truth).accuracy > 0.9
