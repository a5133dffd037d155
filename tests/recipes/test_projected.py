import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.config import as_table, from_table
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.errors import ConfigError, Refused, RunError, TooFew
from cofactor.factors.baselines import UserMean
from cofactor.federation.channel import Failures
from cofactor.federation.door import OVERFLOW
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts
from cofactor.privacy.accountant import spent
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.coverage import assert_noise_covers
from cofactor.privacy.events import Event
from cofactor.privacy.mechanisms import PoissonBinomial
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.progress import Progress
from cofactor.randomness import SecureRandom
from cofactor.recipes.projected import ProjectedMF
from cofactor.recipes.projected_halves import Heads, ProjectedCoordinator, asked_in
from cofactor.recipes.projected_steps import Reals
from cofactor.recipes.shared_vectors import Finished, Shared
from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum
from cofactor.recipes.train import train
from tests.recipes.parties import ITEMS, USERS, mse, small_ratings, transcript
from tests.recipes.test_on_device import (
    EMPTY,
    Row,
    device,
    drawn,
    facts_of,
    rated,
    real_devices,
    some,
)
from tests.recipes.test_questions import joined, outcome, questions

BUDGET = Budget(epsilon=4.0, delta=1e-6, unit="user")
QUICK = ProjectedMF(factors=2, rounds=3)
FEW = replace(QUICK, aggregate=IdealSum(dropout=0.25, colluding=0.25))
"""For as few devices as tests have."""


def question(items: NDArray[Any] | None = None, rows: int = ITEMS) -> Shared:
    chance = np.random.default_rng(5)
    vectors = chance.normal(0, 0.7, (rows, 2)) if items is None else items
    return Shared(centre=np.zeros(()), vectors=vectors)


def answer(participant: Any, asked: Shared | None = None) -> Heads:
    found = participant.handle(1, asked or question())
    assert isinstance(found, Heads)
    return found


def given_to_the_door(recipe: ProjectedMF, units: tuple[Row, ...], asked: Shared) -> list[Bounded]:
    """Return what every device is about to toss coins for."""
    seen: list[Bounded] = []
    half = device(recipe, rated(units))

    def coins(mechanism: Any, parts: Iterator[Bounded], *, shape: Any, **_: Any) -> NDArray[np.int64]:
        seen.extend(parts)
        return np.zeros(shape, np.int64)

    half._home.door.coins = coins
    half.handle(1, asked)
    return seen


def one_array(recipe: ProjectedMF, asked: Shared, units: tuple[Row, ...]) -> Bounded:
    parts = given_to_the_door(recipe, units, asked)
    return Bounded(value=np.concatenate([part.value for part in parts]), bound=parts[0].bound)


@pytest.mark.parametrize("sketch", ["fresh", "fixed"])
@pytest.mark.parametrize("errors", ["clipped", "whole"])
def test_no_coordinate_of_any_device_is_beyond_what_is_charged(sketch: Any, errors: Any) -> None:
    recipe = replace(FEW, sketch=sketch, errors=errors, clip=0.05)
    settled = recipe.settled(facts_of(), BUDGET)
    bound = settled.schedule(facts_of(), "user", "").releases[0].bound
    rows = settled.question_shape(facts_of())[0]
    chance, loud = np.random.default_rng(1), (5.0,) * ITEMS
    datasets = Datasets(draw=drawn, count=USERS, empty=EMPTY)
    others = tuple(drawn(chance) for _ in range(USERS - 1))
    for asked in (question(rows=rows), question(np.full((rows, 2), 1e14)), question(np.zeros((rows, 2)))):
        worst = None
        if asked.vectors.std() > 0:
            worst = Neighbours(units=(loud, *others), which=0, other=EMPTY)
        assert_bounded(
            partial(one_array, recipe, asked),
            bound,
            datasets,
            worst_case=worst,
            pairs=5,
            climbs=5,
        )


def test_coins_are_tossed_for_every_coordinate_whoever_rated_what() -> None:
    halves: dict[tuple[Row, ...], Any] = {}

    def release(units: tuple[Row, ...]) -> NDArray[np.int64]:
        if units not in halves:
            halves[units] = device(FEW, rated(units), random=SecureRandom())
            halves[units]._home.door._charge = lambda _: None  # for so many runs
        return answer(halves[units]).heads

    # A count of four coins moves with probability above 0.6: 40 runs miss one in 10^16.
    assert_noise_covers(release, "empty", Datasets(draw=drawn, count=USERS, empty=EMPTY), runs=40)


@pytest.mark.parametrize("sketch", ["fresh", "fixed"])
def test_no_question_fails_at_those_alone_who_rated_something(sketch: Any) -> None:
    recipe = ProjectedMF(rounds=2, factors=2, sketch=sketch, aggregate=SecureSum())
    first, other = joined("on-device", range(6)), joined("on-device", range(6, 12))
    found = set()
    for asked in questions(recipe.question_shape(first.facts)[0], 2):
        said = outcome(recipe, first, asked)
        assert said == outcome(recipe, other, asked)
        found.add(said[:8])
    assert found == {"an answe", "RunError"}


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e15])
def test_what_is_no_number_is_refused_by_everybody(value: float) -> None:
    for ratings in (some(0), rated((EMPTY,) * USERS)):
        with pytest.raises(RunError, match="not finite"):
            answer(device(FEW, ratings), question(np.full((ITEMS, 2), value)))
        with pytest.raises(RunError, match="did not expect Finished"):
            device(FEW, ratings).handle(1, Finished(centre=np.zeros(()), vectors=np.zeros((ITEMS, 2))))


def test_a_training_is_charged_what_the_exact_law_of_the_sum_says() -> None:
    run = train(QUICK, Federation.on_device(small_ratings()), budget=BUDGET)
    # 150 devices of which 45 may drop out and 15 collude; 80 items in 40 rows, padded to 64, 2 numbers each.
    coins = PoissonBinomial(trials=run.recipe["trials"], theta=run.recipe["theta"], participants=90)
    settled = QUICK.settled(Federation.on_device(small_ratings()).facts, BUDGET)
    event = Event(
        what="coins",
        by="each",
        to="coordinator",
        mechanism=coins,
        bound=settled.bound(Federation.on_device(small_ratings()).facts),
        dimension=64 * 2,
        count=3,
        slack=OVERFLOW,
    )
    expected = spent([event], 1e-6, unit="user").epsilon
    assert run.guarantee.epsilon == pytest.approx(expected)
    assert 0.98 * 4 < expected <= 4.0
    assert not run.guarantee.holds
    assert any("simulates a secure sum" in why for why in run.guarantee.why_not)
    assert "15 of them collude" in str(run.guarantee)


def test_calibrated_once_more_coins_stay_as_they_are() -> None:
    facts = Federation.on_device(small_ratings()).facts
    for epsilon in (0.3, 4.0, 9.0):
        budget = replace(BUDGET, epsilon=epsilon)
        settled = QUICK.settled(facts, budget)
        assert settled == settled.settled(facts, budget)
        schedule = settled.schedule(facts, "user", "devices")
        assert calibrated(schedule, budget) == schedule


def test_more_than_one_coin_is_tossed_only_if_one_cannot_spend_the_budget() -> None:
    many = replace(facts_of((3000,)), ratings=(90_000,))
    settled = QUICK.settled(many, BUDGET)
    assert 0.2 < (settled.theta or 0) <= 0.25
    assert (settled.trials or 0) > 1
    assert 0.98 * 4 < spent(settled.schedule(many, "user", "").events(), 1e-6, unit="user").epsilon <= 4.0
    assert QUICK.settled(facts_of(), BUDGET).trials == 1
    assert replace(QUICK, trials=5).settled(facts_of(), BUDGET).trials == 5


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Reals]:
    """Record what the coordinator takes the sums of gradients to be."""
    found: list[Reals] = []
    estimate = ProjectedCoordinator._estimate

    def watched(self: ProjectedCoordinator, total: NDArray[np.int64], count: int) -> Reals:
        found.append(estimate(self, total, count))
        return found[-1]

    monkeypatch.setattr(ProjectedCoordinator, "_estimate", watched)
    return found


def test_a_secure_sum_of_coins_tells_the_sum_of_gradients_without_bias(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, federation = recorded(monkeypatch), real_devices(6)
    # No coordinate is clipped, so that coins tell of the same numbers as a training without a budget.
    recipe = ProjectedMF(factors=8, rounds=1, reduction=1, clip=40.0)
    train(recipe, federation)
    run = train(recipe, federation, budget=replace(BUDGET, epsilon=9.0))
    assert run.guarantee.holds, run.guarantee.why_not
    true, estimate = found
    facts, (theta, trials) = federation.facts, (run.recipe["theta"], run.recipe["trials"])
    scale = recipe.settled(facts, BUDGET).bound(facts).size / (theta * trials)
    off = (estimate - true) / (scale * math.sqrt(6 * trials / 4))
    # 1,024 numbers of mean 0 and variance 1: six deviations of their mean and of their variance.
    assert off.size == 1024
    assert abs(off.mean()) < 6 / 32
    assert abs(off.var() - 1) < 6 * math.sqrt(2 / 1024)
    assert np.abs(true).max() > 0


def test_without_a_budget_secure_sums_are_those_in_plain_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    found, federation = recorded(monkeypatch), real_devices(6)
    for aggregate in (PlainSum(), SecureSum(dropout=0.3, colluding=0.1)):
        train(replace(QUICK, aggregate=aggregate), federation)
    np.testing.assert_array_equal(np.array(found[:3]), np.array(found[3:]))
    assert np.abs(found[0]).max() > 0


def test_projecting_nothing_takes_the_gradient_of_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = some(2)
    recipe = replace(FEW, reduction=1, rounds=1).settled(facts_of(), None)
    coordinator = recipe.coordinator(facts_of(), 0)
    items = coordinator.ask(1).arrays["vectors"].astype(np.float64)
    own = ratings.by_user.take(np.arange(USERS))
    weights, users = recipe.steps().gradients(own, items)
    expected = 2 * 0.9 / USERS * coordinator._rows - (weights.T @ users) / USERS
    seen: list[Reals] = []
    adam = type(coordinator._adam)
    after = adam.after

    def watched(self: Any, gradient: Reals, **more: Any) -> Any:
        seen.append(gradient)
        return after(self, gradient, **more)

    monkeypatch.setattr(adam, "after", watched)
    coordinator.take(1, {"devices": device(recipe, ratings, budget=None).handle(1, coordinator.ask(1))})
    np.testing.assert_allclose(seen[0], expected, atol=1e-9)


def of_one_user(ratings: Ratings, user: int) -> Ratings:
    own = ratings.by_user.window(user, user + 1)
    return Ratings.from_rows(
        np.zeros(len(own.index), np.int64),
        own.index,
        own.values,
        user_ids=np.array([user]),
        item_ids=ratings.item_ids,
        scale=ratings.scale,
    )


def test_a_cohort_tosses_coins_by_the_law_of_its_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings, runs = some(2), 200
    one_each = facts_of((1,) * USERS)
    recipe = replace(FEW, clip=0.05, theta=0.25, trials=2, largest_error=1.125)
    settled = recipe.settled(facts_of(), BUDGET)
    together = device(recipe, ratings, random=SecureRandom())
    apart = [
        device(recipe, of_one_user(ratings, user), facts=one_each, random=SecureRandom())
        for user in range(USERS)
    ]
    for half in (together, *apart):
        monkeypatch.setattr(half._home.door, "_charge", lambda _: None)
    assert together._home.schedule.releases == apart[0]._home.schedule.releases
    sums = np.array([answer(together).heads for _ in range(runs)])
    parts = np.array([sum(answer(half).heads for half in apart) for _ in range(runs)])
    assert sums.shape[1:] == settled.answer_shape(facts_of())
    off = np.sqrt((sums.var(axis=0) + parts.var(axis=0)) / runs)
    # Means and variances of 8 coordinates, six deviations each.
    assert (np.abs(sums.mean(axis=0) - parts.mean(axis=0)) < 6 * off).all()
    assert (np.abs(np.log(sums.var(axis=0) / parts.var(axis=0))) < 6 * math.sqrt(4 / runs)).all()
    assert answer(together).count.tolist() == [USERS]


@pytest.mark.parametrize("budget", [None, BUDGET])
def test_nothing_is_opened_if_too_few_devices_are_left(budget: Budget | None) -> None:
    with pytest.raises(TooFew):
        answer(device(FEW, some(0), budget=budget, dropout=0.9))
    run = train(QUICK, Federation.on_device(small_ratings()), budget=budget, failures=Failures(devices=0.9))
    assert [event.numbers["answered"] for event in run.rounds] == [0, 0, 0]
    start = QUICK.coordinator(Federation.on_device(small_ratings()).facts, 0)
    assert run.model is not None
    np.testing.assert_allclose(run.model.item_vectors, start._rows, atol=1e-6)


def test_real_devices_open_nothing_if_too_few_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    found = recorded(monkeypatch)
    away = Failures(
        lost=frozenset({("device-1", 1), ("device-2", 2)}),
        absent=frozenset({(f"device-{k}", 3) for k in range(3)}),
    )
    run = train(QUICK, real_devices(8), budget=BUDGET, failures=away)
    # Of eight devices six must be left: not so in the third round.
    assert len(found) == 2
    assert run.guarantee.holds, run.guarantee.why_not
    assert any("masked" in each.protection for each in transcript(run))


def test_a_number_costs_as_many_bits_as_the_sum_of_all_coins() -> None:
    sizes = []
    for trials in (1, 64):
        run = train(replace(QUICK, factors=16, rounds=1, trials=trials), real_devices(6), budget=BUDGET)
        masked = [each.bytes for each in transcript(run) if "masked" in each.protection]
        sizes.append(sum(masked) / len(masked))
    # Up to 6 or 384 heads, and a sign that is not needed: 4 and 10 bits, of 64 rows times 16.
    assert sizes[1] - sizes[0] == pytest.approx(64 * 16 * 6 / 8, rel=0.02)
    assert sizes[0] < 64 * 16 * 4 / 8 + 1_000


def test_a_device_alone_and_a_plain_sum_rest_on_nobody_else() -> None:
    run = train(QUICK, real_devices(1), budget=BUDGET)
    assert run.guarantee.holds, run.guarantee.why_not
    assert {each.protection for each in transcript(run)} == {"noise", "released before"}
    plain = replace(QUICK, aggregate=PlainSum())
    settled = plain.settled(facts_of((1,) * 6), BUDGET)
    assert settled.participants(facts_of((1,) * 6)) == 1
    assert (settled.theta or 1) < (QUICK.settled(facts_of((1,) * 6), BUDGET).theta or 0)
    run = train(plain, real_devices(3), budget=BUDGET)
    assert run.guarantee.holds, run.guarantee.why_not
    assert not train(plain, Federation.on_device(small_ratings()), budget=BUDGET).guarantee.why_not


def test_a_part_of_a_cohort_is_asked_by_public_chance() -> None:
    recipe = replace(QUICK, participation=0.5)
    half = device(recipe, some(0), budget=None)
    rounds = [tuple(asked_in(round, half._recipe, half._home).tolist()) for round in range(1, 21)]
    assert {sum(each) for each in rounds} == {2}
    assert len(set(rounds)) > 3
    assert answer(half).count.tolist() == [2]
    assert asked_in(1, half._recipe, half._home).tolist() == list(rounds[0])
    settled = replace(QUICK, participation=0.2).settled(Federation.on_device(small_ratings()).facts, BUDGET)
    # 30 of 150 are asked: 21 may be left, of whom 3 may collude.
    assert settled.participants(Federation.on_device(small_ratings()).facts) == 18
    run = train(replace(QUICK, participation=0.2), Federation.on_device(small_ratings()), budget=BUDGET)
    assert 0.98 * 4 < (run.guarantee.epsilon or 0) <= 4.0
    assert "30 parties" in str(run.guarantee)
    assert replace(QUICK, participation=0.001).asked(facts_of()) == 2


def test_a_training_that_was_stopped_goes_on_and_charges_no_round_twice(tmp_path: Path) -> None:
    federation = Federation.on_device(small_ratings())

    def stop(event: Progress) -> None:
        if event.step == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(QUICK, federation, budget=BUDGET, folder=tmp_path, progress=stop)
    run = train(QUICK, federation, budget=BUDGET, folder=tmp_path)
    assert 0.98 * 4 < (run.guarantee.epsilon or 0) <= 4.0
    assert [event.numbers["answered"] for event in run.rounds] == [1, 1, 1]


@pytest.mark.parametrize("sketch", ["fresh", "fixed"])
def test_both_halves_go_on_after_a_restart(sketch: Any) -> None:
    settled = replace(FEW, sketch=sketch).settled(facts_of(), None)
    first, again = (settled.coordinator(facts_of(), 0) for _ in range(2))
    half, other = (device(settled, some(1), budget=None) for _ in range(2))
    first.take(1, {"devices": half.handle(1, first.ask(1))})
    again.restore(first.state())
    other.restore(half.state())
    for coordinator, participant in ((first, half), (again, other)):
        coordinator.take(2, {"devices": participant.handle(2, coordinator.ask(2))})
    np.testing.assert_array_equal(again.ask(3).arrays["vectors"], first.ask(3).arrays["vectors"])
    before = first.ask(3).arrays["vectors"]
    first.take(3, {})
    np.testing.assert_array_equal(first.ask(4).arrays["vectors"], before)


def loss(recipe: ProjectedMF, ratings: Ratings, items: Reals) -> float:
    """Return what items leave of the weighted squares (eq. 4), with every user at the best."""
    own = ratings.by_user.take(np.arange(ratings.user_count))
    scores = recipe.steps().users(own, items) @ items.T
    wanted, weight = np.zeros(scores.shape), np.ones(scores.shape)
    wanted[ratings.users, ratings.items] = ratings.values
    weight[ratings.users, ratings.items] += recipe.confidence
    return float((weight * (wanted - scores) ** 2).sum())


@pytest.mark.parametrize(
    ("sketch", "reduction", "left"), [("fresh", 1, 0.6), ("fresh", 2, 0.7), ("fixed", 2, 0.9)]
)
def test_without_noise_devices_learn_from_each_other(sketch: Any, reduction: float, left: float) -> None:
    ratings = small_ratings()
    facts = Federation.on_device(ratings).facts
    recipe = ProjectedMF(rounds=30, reduction=reduction, sketch=sketch, predictions="scores")
    settled = recipe.settled(facts, None)
    start = settled.items_of(settled.coordinator(facts, 0)._rows, facts, 0)
    run = train(recipe, Federation.on_device(ratings), failures=Failures(devices=0.1))
    assert run.model is not None
    before, after = (loss(settled, ratings, items) for items in (start, run.model.item_vectors.astype(float)))
    assert after < left * before
    assert not run.guarantee.holds


def test_where_noise_drowns_everything_predictions_are_the_user_s_own_mean() -> None:
    learn, test = by_fraction(small_ratings(), 0.2, seed=1)
    own_mean = mse({"devices": UserMean().fit(learn)}, Federation.on_device(test))
    run = train(QUICK, Federation.on_device(learn), budget=replace(BUDGET, epsilon=0.1))
    # Of 150 draws the mean is 0.011 above, their deviation 0.006, and the largest 0.030 above.
    assert mse(run.homes, Federation.on_device(test)) < own_mean + 0.08


def test_scores_rank_as_ratings_do() -> None:
    federation = Federation.on_device(small_ratings())
    ranked = [
        train(replace(QUICK, predictions=predictions), federation).homes["devices"].top_items(slice(0, 20))[0]
        for predictions in ("ratings", "scores")
    ]
    np.testing.assert_array_equal(ranked[0], ranked[1])


def test_items_that_fall_together_in_a_fixed_sketch_share_a_vector() -> None:
    federation = Federation.on_device(small_ratings())
    found = {
        sketch: train(replace(QUICK, sketch=sketch, reduction=4), federation).homes["devices"].item_vectors
        for sketch in ("fresh", "fixed")
    }
    assert len(np.unique(np.abs(found["fixed"]), axis=0)) <= 20
    assert len(np.unique(np.abs(found["fresh"]), axis=0)) == 80


def test_released_items_serve_somebody_new_and_hold_no_users() -> None:
    run = train(QUICK, Federation.on_device(small_ratings()))
    assert run.model is not None
    assert len(run.model.user_ids) == 0
    item = run.model.item_ids[0].item()
    assert len(run.model.fold_in({item: 5.0}).recommend("new user", 3)) == 3


@pytest.mark.parametrize(
    ("data", "factors", "error"), [("ml-100k", 14, 1.0), ("ml-5m", 14, 1.5), ("yelp", 20, 1.5)]
)
def test_the_published_setting_is_that_of_the_paper(data: Any, factors: int, error: float) -> None:
    recipe = ProjectedMF.as_published(data)
    assert (recipe.factors, recipe.largest_error) == (factors, error)
    assert (recipe.penalty, recipe.item_penalty, recipe.confidence) == (0.25, 0.9, 15.0)
    assert (recipe.first_decay, recipe.second_decay, recipe.learning_rate) == (0.9, 0.8, 0.05)
    assert (recipe.user_limit, recipe.participation, recipe.sketch) == (0.001, 0.1, "fixed")
    facts = Federation.on_device(small_ratings()).facts
    settled = recipe.settled(facts, BUDGET)
    # Delta_1 / sqrt(p'), of 27 rows in 32.
    assert settled.bound(facts).size == pytest.approx(4 * error * 16 * 0.001 / 0.1 / math.sqrt(32))
    assert settled.participants(facts) == 14


def test_rows_can_be_chosen_by_equation_40_from_public_numbers() -> None:
    many = np.arange(3000)
    facts: Facts = replace(facts_of((500,)), items=(3000,), ratings=(9000,), shared_ids=many, catalogue=many)
    rows = [
        replace(QUICK, rows="optimal").settled(facts, replace(BUDGET, epsilon=epsilon)).row_count(facts)
        for epsilon in (0.01, 0.1, 9.0)
    ]
    assert 1 <= rows[0] < rows[1] < rows[2] <= 3000
    with pytest.raises(ConfigError, match="need a budget"):
        replace(QUICK, rows="optimal").settled(facts, None)


def test_settings_survive_being_written_down() -> None:
    for recipe in (QUICK, ProjectedMF.as_published("yelp"), QUICK.settled(facts_of(), BUDGET)):
        assert from_table(ProjectedMF, as_table(recipe), "recipe") == recipe


def test_single_ratings_are_refused_with_the_reason() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6, unit="rating")
    with pytest.raises(Refused, match=r"one rating changes all that the device contributes.*unit .user."):
        train(QUICK, Federation.on_device(small_ratings()), budget=budget)


def test_real_devices_are_all_asked() -> None:
    with pytest.raises(ConfigError, match="Use participation=1"):
        train(replace(QUICK, participation=0.5), real_devices(6), budget=BUDGET)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"factors": 0}, "factors must be at least 1"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"participation": 0.0}, "participation must be above 0"),
        ({"participation": 1.5}, "participation must be above 0 and at most 1"),
        ({"reduction": 0.5}, "reduction must be at least 1"),
        ({"sketch": "new"}, "sketch must be one of fresh, fixed"),
        ({"rows": "best"}, "rows must be one of reduced, optimal"),
        ({"errors": "none"}, "errors must be one of clipped, whole"),
        ({"predictions": "stars"}, "predictions must be one of ratings, scores"),
        ({"first_decay": 1.0}, "first_decay must lie between 0 and 1"),
        ({"clip": -1.0}, "clip must be greater than 0"),
        ({"penalty": 0.0}, "penalty must be greater than 0"),
        ({"aggregate": "secure"}, "aggregate must be PlainSum"),
    ],
    ids=str,
)
def test_mistakes_are_told(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ProjectedMF(**settings)
    with pytest.raises(ConfigError, match="data must be one of"):
        ProjectedMF.as_published("netflix")  # type: ignore[arg-type]
    with pytest.raises(RunError, match="not settled"):
        ProjectedMF().schedule(facts_of(), "user", "")
