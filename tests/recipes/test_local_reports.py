import math
from dataclasses import replace

import numpy as np
import pytest

from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.errors import ConfigError, Refused, RunError
from cofactor.factors.baselines import UserMean
from cofactor.federation.channel import Failures
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts
from cofactor.privacy.accountant import spent
from cofactor.privacy.answers import RandomizedResponse
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.shuffling import shuffled_rounds
from cofactor.randomness import SecureRandom
from cofactor.recipes.local_reports import LocalReports, Reports, budget_if_shuffled, coordinates_of
from cofactor.recipes.shared_vectors import Shared
from cofactor.recipes.train import train
from tests.recipes.parties import ITEMS, USERS, mse, small_ratings, transcript
from tests.recipes.test_on_device import EMPTY, device, drawn, facts_of, question, rated

BUDGET = Budget(epsilon=8.0, delta=1e-6, unit="user")
SILENT, LOUD = (EMPTY,) * USERS, ((5.0,) * ITEMS,) * USERS
QUICK = LocalReports(factors=2, rounds=3, rows=4)


def test_a_report_is_about_one_coordinate_of_the_mixed_gradient() -> None:
    chance = np.random.default_rng(0)
    units = tuple(drawn(np.random.default_rng(k)) for k in range(USERS))
    users, items = chance.random((USERS, 2), np.float32), chance.random((ITEMS, 2), np.float32)
    signs = QUICK.signs(ITEMS, 0)
    dense = np.zeros((USERS, ITEMS, 2))
    for u, row in enumerate(units):
        for i, x in enumerate(row):
            dense[u, i] = 0 if x is None else -2 * users[u] * (x - users[u] @ items[i])
    rows, factors = np.array([0, 3, 2, 1]), np.array([1, 0, 1, 0])
    found = coordinates_of(rated(units).by_user, users, items, signs, rows, factors)
    expected = [(signs @ dense[u])[rows[u], factors[u]] for u in range(USERS)]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_items_are_mixed_by_signs_that_everybody_knows() -> None:
    signs = QUICK.signs(50, 3)
    np.testing.assert_array_equal(signs, QUICK.signs(50, 3))
    assert not np.array_equal(signs, QUICK.signs(50, 4))
    np.testing.assert_allclose(np.square(signs).sum(axis=0), 1.0)


def alike(devices: int, value: float) -> tuple[Facts, Ratings]:
    """Return a cohort of devices that have all rated the one item there is."""
    facts = replace(facts_of((devices,)), items=(1,), shared_ids=np.arange(1), catalogue=np.arange(1))
    ratings = Ratings.from_rows(
        np.arange(devices),
        np.zeros(devices, np.int64),
        np.full(devices, value, np.float32),
        user_ids=np.arange(devices),
        item_ids=np.arange(1),
        scale=facts.scale,
    )
    return facts, ratings


@pytest.mark.parametrize("budget", [None, replace(BUDGET, epsilon=1.0)])
def test_the_coordinator_moves_against_the_mean_gradient_on_average(budget: Budget | None) -> None:
    facts, ratings = alike(400_000, 3.8)
    recipe = LocalReports(factors=1, rounds=1, rows=1, centre=4.0, learning_rate=0.05)
    half = device(recipe, ratings, budget=budget, facts=facts, random=SecureRandom())
    coordinator = recipe.settled(facts, budget).coordinator(facts, 0)
    coordinator.restore({"items": np.array([[2.0]], np.float32)})
    asked = coordinator.ask(1)
    reply = half.handle(1, asked)
    items, users = half._device.fitted(asked)
    slope = -2 * users[0, 0] * (3.8 - users[0, 0] * items[0, 0])
    assert 0.2 < abs(slope) < 1
    coordinator.take(1, {"devices": reply})
    estimate = (items - coordinator.ask(2).arrays["vectors"])[0, 0] / 0.05
    # The mean of so many bits is off by more than six deviations once in 5 * 10^8 times.
    deviation = float(reply.weight[0]) / math.sqrt(400_000)
    assert estimate == pytest.approx(slope, abs=6 * deviation + 1e-4)


def test_every_device_sends_a_bit_about_a_place_that_does_not_depend_on_its_ratings() -> None:
    answers = [device(QUICK, rated(units)).handle(1, question()) for units in (SILENT, LOUD)]
    for answer in answers:
        assert answer.bits.shape == (USERS,)
        assert np.isin(answer.bits, (0, 1)).all()
    np.testing.assert_array_equal(answers[0].places, answers[1].places)


def test_bits_are_told_by_the_mechanism_that_is_charged() -> None:
    # The slope is beyond the limit, so that all true bits are the same. Of 40,000 told ones the part that is
    # right is off by 0.015 once in 5 * 10^8 times.
    facts, ratings = alike(40_000, 5.0)
    half = device(replace(QUICK, rows=1, factors=1), ratings, facts=facts, random=SecureRandom())
    nothing = Shared(centre=np.array(3.0), vectors=np.zeros((1, 1), np.float32))
    bits = half.handle(1, nothing).bits
    truth = half._home.schedule.releases[0].mechanism.truth
    assert 0.6 < truth < 0.95
    assert np.mean(bits == (half._signs[0, 0] < 0)) == pytest.approx(truth, abs=0.015)


def test_places_differ_from_device_to_device_and_from_round_to_round() -> None:
    facts, ratings = alike(1000, 5.0)
    other = replace(facts, parties=("another",))
    recipe = replace(QUICK, rows=1000)
    asked = Shared(centre=np.array(3.0), vectors=np.zeros((1, 2), np.float32))
    first = device(recipe, ratings, budget=None, facts=facts, random=SecureRandom())
    drawn = [first.handle(1, asked).places, first.handle(2, asked).places]
    second = device(recipe, ratings, budget=None, facts=other, random=SecureRandom())
    drawn += [second.handle(1, asked).places]
    assert all((drawn[a] == drawn[b]).mean() < 0.1 for a, b in ((0, 1), (0, 2), (1, 2)))


def test_a_run_has_a_local_guarantee_and_needs_no_sum() -> None:
    run = train(QUICK, Federation.on_device(small_ratings()), budget=BUDGET)
    assert run.guarantee.holds, run.guarantee.why_not
    assert 0.98 * 8 < (run.guarantee.epsilon or 0) <= 8.0
    assert "everyone who sees a device's reports" in str(run.guarantee)
    assert {each.protection for each in transcript(run)} == {"noise", "released before"}


def test_with_many_devices_and_no_noise_something_is_learned() -> None:
    learn, test = by_fraction(small_ratings(), 0.2, seed=1)
    recipe = LocalReports(factors=2, rounds=40, rows=4, learning_rate=0.1)
    federation, held_out = Federation.on_device(learn), Federation.on_device(test)
    run = train(recipe, federation, failures=Failures(devices=0.1))
    before = mse(recipe.fitting().alone(federation), held_out)
    assert mse(run.homes, held_out) < before
    assert mse(run.homes, held_out) < 1.2 * mse({"devices": UserMean().fit(learn)}, held_out)


def test_single_ratings_and_senseless_settings_are_refused() -> None:
    with pytest.raises(Refused, match='unit "user"'):
        QUICK.settled(facts_of(), replace(BUDGET, unit="rating"))
    with pytest.raises(ConfigError, match="rows must be at least 1"):
        LocalReports(rows=0)


@pytest.mark.parametrize(
    ("places", "bits"), [([0, 8], [0, 1]), ([-1, 0], [0, 1]), ([0, 1], [0, 2]), ([0, 1], [0])]
)
def test_reports_that_cannot_be_are_refused(places: list[int], bits: list[int]) -> None:
    coordinator = QUICK.settled(facts_of(), BUDGET).coordinator(facts_of(), 0)
    reply = Reports(places=np.array(places, np.int64), bits=np.array(bits, np.int64), weight=np.array([1.0]))
    with pytest.raises(RunError):
        coordinator.take(1, {"device-0": reply})


@pytest.mark.parametrize("devices", [6_040, 60_400])
def test_the_local_budget_of_a_central_one_spends_it_and_no_more(devices: int) -> None:
    central = Budget(epsilon=1.0, delta=1e-6, unit="user")
    local = budget_if_shuffled(central, devices=devices, rounds=10)
    assert local.epsilon > central.epsilon
    facts = facts_of((devices,))
    mechanism = calibrated(LocalReports().schedule(facts, "user", ""), local).releases[0].mechanism
    assert isinstance(mechanism, RandomizedResponse)
    assert 0.98 < shuffled_rounds(mechanism.epsilon, devices, 10, 1e-6) <= 1.0 + 1e-9
    events = LocalReports().schedule(facts, "user", "").scaled(1 / mechanism.epsilon).events()
    assert spent(events, 1e-6, unit="user").epsilon <= local.epsilon * (1 + 1e-9)
