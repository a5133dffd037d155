"""Two rounds of noise, combined: the published variant loses half of it, layers lose nothing."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cofactor.attacks.differencing_two_rounds import combined, layered, measured, published
from cofactor.errors import ConfigError
from cofactor.privacy.layers import Layers
from cofactor.privacy.two_rounds import TwoRounds, really_spent
from cofactor.randomness import SecureRandom

SURE = 1 - 1e-7
SIGMA, STEP, DELTA = 125.0, 100.0, 1e-6
TRIALS = 100_000
SIGMAS = 5.8
LAYERS = Layers(parties=8, fewest=4, colluding=1)


@pytest.mark.parametrize(("omega", "survivors"), [(0.3, 14), (0.3, 20), (0.6, 8)])
def test_the_published_rounds_leave_less_noise_than_was_promised(omega: float, survivors: int) -> None:
    rounds = TwoRounds(users=20, omega=omega)
    watch = published(rounds, SIGMA, survivors, SecureRandom())
    found = measured(watch, sigma=SIGMA, step=STEP, delta=DELTA, trials=TRIALS, confidence=SURE)
    assert found.left == pytest.approx(rounds.left(survivors), rel=SIGMAS * math.sqrt(2 / TRIALS))
    assert found.broken
    assert found.proved.lower_bound > 1.1 * found.claimed_mu
    truth = really_spent(found.claimed_epsilon, DELTA, omega=omega, dropped=1 - survivors / 20)
    assert found.real_epsilon == pytest.approx(truth, rel=0.03)
    assert "more than the 0.80 claimed" in str(found)


@pytest.mark.parametrize("survivors", [8, 6, 4])
def test_nothing_can_be_taken_off_layers(survivors: int) -> None:
    watch = layered(LAYERS, SIGMA, survivors)
    found = measured(watch, sigma=SIGMA, step=STEP, trials=TRIALS, confidence=SURE)
    assert found.left > 1 - SIGMAS * math.sqrt(2 / TRIALS)
    assert not found.broken
    assert "not more than the 0.80 claimed" in str(found)


def test_more_accomplices_than_promised_break_layers_too() -> None:
    watch = layered(LAYERS, SIGMA, 8, accomplices=4)
    found = measured(watch, sigma=SIGMA, step=STEP, trials=TRIALS, confidence=SURE)
    assert found.left == pytest.approx(4 / 7, rel=0.05)
    assert found.broken


def test_the_best_weight_shows_in_the_numbers_whatever_they_are_about() -> None:
    rounds = TwoRounds(users=20, omega=0.3)
    values = np.random.default_rng(1).normal(0, 3 * SIGMA, TRIALS)
    view = published(rounds, SIGMA, 14, SecureRandom())(values)
    found = combined(view)
    assert found.weights == pytest.approx([rounds.weight(14)], abs=0.05)
    noise = found.values - values
    assert noise.var() / SIGMA**2 == pytest.approx(rounds.left(14), rel=0.05)
    given = combined(view, weights=np.array([1.0]))
    assert (given.values - values).var() / SIGMA**2 == pytest.approx(1.0, rel=0.05)


def test_it_is_for_one_noisy_sum_and_its_corrections() -> None:
    view = published(TwoRounds(users=20, omega=0.3), SIGMA, 14, SecureRandom())(np.zeros(50))
    with pytest.raises(ConfigError, match="saw 0 noisy sums"):
        combined(replace(view, seen=view.seen[1:]))
    with pytest.raises(ConfigError, match="honest must be at least 1"):
        layered(LAYERS, SIGMA, 4, accomplices=4)
