from typing import Any

import numpy as np
import pytest

from cofactor.attacks.replay import OpenDoor, Replay, Setting, added, questions, rehearsed
from cofactor.data import partition
from cofactor.data.ratings import Ratings, Scale
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.privacy.bounding import Bounded, coordinates, sum_of_records
from cofactor.privacy.budget import Budget
from cofactor.privacy.mechanisms import Gaussian, PoissonBinomial, Skellam
from cofactor.randomness import InsecureRandom
from cofactor.recipes.central import CentralDPSGD
from cofactor.recipes.clipping import GradientClipping
from cofactor.recipes.hdpmf_published import DPMF
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import IdealSum
from cofactor.recipes.train import train
from cofactor.recipes.vertical import VerticalMF

BUDGET = Budget(epsilon=8.0, delta=1e-6, unit="user")


def federation(kind: str = "horizontal") -> Federation:
    random = np.random.default_rng(0)
    users, items = np.divmod(random.permutation(30 * 12)[:200], 12)
    ratings = Ratings.from_rows(
        users,
        items,
        random.integers(1, 6, 200).astype(np.float32),
        user_ids=np.arange(30),
        item_ids=np.arange(12),
        scale=Scale(1, 5),
    )
    if kind == "on-device":
        return Federation.on_device(ratings)
    if kind == "one party":
        return Federation.horizontal([Party(name="all", ratings=ratings)], simulated=True)
    deal = partition.vertical if kind == "vertical" else partition.horizontal
    parties = [Party(name=f"p{k}", ratings=part) for k, part in enumerate(deal(ratings, 3, seed=1))]
    bring = Federation.vertical if kind == "vertical" else Federation.horizontal
    return bring(parties, simulated=True)


def setting(recipe: Any, shape: Federation, budget: Budget | None = None) -> Setting:
    unit = None if budget is None else budget.unit
    return Setting(recipe=recipe.settled(shape.facts, budget), facts=shape.facts, unit=unit)


@pytest.mark.parametrize(
    ("recipe", "kind"),
    [
        (HorizontalMF(rounds=3, local_steps=2, factors=2), "horizontal"),
        (HorizontalMF(rounds=3, factors=2, centre=3.0, aggregate=IdealSum()), "horizontal"),
        (VerticalMF(rounds=2, factors=2), "vertical"),
        (CentralDPSGD(rounds=2), "one party"),
    ],
)
def test_whoever_knows_the_ratings_can_say_what_was_answered(recipe: Any, kind: str) -> None:
    parties = federation(kind)
    run = train(recipe, parties, capture="coordinator", random=InsecureRandom(0))
    assert run.captured is not None
    view, known = run.captured.view("coordinator"), setting(recipe, parties)
    again, answered = Replay(known, parties.parties), 0
    for round, question in questions(view, known).items():
        seen = [each for each in view.seen if each.round == round and each.sender != "coordinator"]
        if not any(known.message(each) for each in seen):
            continue
        answers = again.answers(round, question)
        everybody = {**answers, "the sum of all answers": added(answers.values())}
        for each in seen:
            if known.message(each):
                answered += 1
                for name, array in everybody[each.sender].arrays.items():
                    np.testing.assert_allclose(each.arrays[name], array, atol=1e-5)
    assert answered


@pytest.mark.parametrize("aggregate", [IdealSum(), None])
def test_a_training_without_noise_is_its_own_rehearsal(aggregate: Any) -> None:
    recipe = HorizontalMF(rounds=3, factors=2) if aggregate is None else SharedBiases(aggregate=aggregate)
    parties = federation("horizontal")
    run = train(recipe, parties, random=InsecureRandom(0))
    found = rehearsed(setting(recipe, parties), parties.parties)
    assert run.model is not None
    assert found.model is not None
    # Sums are rounded by chance.
    np.testing.assert_allclose(found.model.item_vectors, run.model.item_vectors, atol=0.02)
    np.testing.assert_allclose(found.model.item_bias, run.model.item_bias, atol=0.02)


def test_what_is_played_again_under_a_budget_is_bounded_and_has_hardly_any_noise() -> None:
    recipe, parties = HorizontalMF(rounds=1, factors=2, centre=3.0, aggregate=IdealSum()), federation()
    known = setting(recipe, parties, BUDGET)
    grain, limit = known.recipe.grain, known.recipe.clipping.limit  # type: ignore[attr-defined]
    coordinator = known.recipe.coordinator(known.facts, 0)
    first = parties.parties[0]
    for user in range(first.ratings.user_count):
        alone = first.with_ratings(_only(first.ratings, user))
        answer = Replay(known, [alone]).answers(1, coordinator.ask(1))["p0"]
        assert np.linalg.norm(answer.arrays["gradients"]) * grain <= limit * (1 + 1e-6)


def _only(ratings: Ratings, user: int) -> Ratings:
    own = ratings.users == user
    return Ratings.from_rows(
        ratings.users[own],
        ratings.items[own],
        ratings.values[own],
        user_ids=ratings.user_ids,
        item_ids=ratings.item_ids,
        scale=ratings.scale,
    )


def test_nobody_is_charged_at_an_open_door_and_nothing_is_changed() -> None:
    door = OpenDoor("p0")
    bounded = sum_of_records(np.ones((3, 2)), limit=2.0, unit="user")
    assert np.array_equal(door.release(Gaussian(), bounded, what="sums"), [3.0, 3.0])
    whole = Bounded(value=np.array([4, 5]), bound=bounded.bound)
    assert np.array_equal(door.share(Skellam(), whole, what="sums", largest_sum=9), [4, 5])
    heads = PoissonBinomial(trials=4, theta=0.25, participants=2)
    parts = [coordinates(np.array([[1.0, -1.0], [1.0, 0.0]]), limit=1.0, unit="user")]
    tossed = door.coins(heads, parts, bound=parts[0].bound, shape=(2,), what="coins", devices=2)
    assert np.array_equal(tossed, [6.0, 3.0])


def test_steps_in_which_some_take_part_become_smaller_steps_of_all() -> None:
    clipping = GradientClipping(limit=1.0)
    recipe = HorizontalMF(rounds=1, factors=2, sampling=0.25, clipping=clipping, learning_rate=0.8)
    known = setting(recipe, federation(), BUDGET)
    assert known.played.learning_rate == pytest.approx(0.2)  # type: ignore[attr-defined]
    published = setting(DPMF.as_published(), federation("on-device"))
    assert published.played.noise == "none"  # type: ignore[attr-defined]
