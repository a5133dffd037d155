"""What is made of noisy sums: means that are right on average, and as certain as they are said to be."""

import numpy as np
import pytest

from cofactor.federation.weights import PublicWeights
from cofactor.privacy.weights import HDPMF_USERS, Weights, taking_part
from cofactor.recipes.item_beliefs import RATING_VARIANCE, Beliefs
from cofactor.recipes.personal_beliefs import Portion, Told, believed
from cofactor.recipes.personal_span import Span

ITEMS = 4000
WHOLE = Span(-2.0, 2.0)
NOTHING = np.zeros((ITEMS, 0))


def policy(**settings: object) -> PublicWeights:
    own = np.linspace(0.1, 1, 7)
    return PublicWeights(**({"groups": HDPMF_USERS, "expected": 0.6, "items": own} | settings))  # type: ignore[arg-type]


def test_portions_are_the_means_over_users_of_what_goes_into_sums() -> None:
    drawn = Weights.drawn(HDPMF_USERS, seed=3).of(np.arange(20_000))[:, None] * np.linspace(0.1, 1, 7)
    found = Portion.of(policy(), 7, 2**12)
    assert found.mean == pytest.approx(drawn.mean(axis=0), rel=0.02)
    assert found.square == pytest.approx((drawn**2).mean(axis=0), rel=0.03)
    assert found.variance == pytest.approx(drawn.var(axis=0), rel=0.05)
    sampled = Portion.of(policy(mechanism="sampling", epsilon=1.0, threshold=0.4), 7, 8)
    assert sampled.mean == pytest.approx(taking_part(drawn, 1.0, 0.4).mean(axis=0), rel=0.02)
    assert np.array_equal(sampled.mean, sampled.square)


def test_portions_without_groups_or_weights() -> None:
    assert np.array_equal(Portion.of(None, 3, 8).mean, np.ones(3))
    found = Portion.of(policy(groups=(), items=np.ones(1)), 1, 2**12)
    assert found.mean == pytest.approx([0.6], abs=1e-3)
    certain = Portion.of(policy(groups=(), expected=1.0, items=np.ones(1)), 1, 8)
    assert certain.variance == pytest.approx([0.0])


def test_weights_too_small_for_a_grain_go_into_nothing() -> None:
    found = Portion.of(policy(groups=(), expected=1.0, items=np.array([0.2, 0.5])), 2, 4)
    assert found.mean == pytest.approx([0.0, 0.5], abs=1e-6)


@pytest.mark.parametrize("span", [WHOLE, Span.of(0.375, 0.875), Span.of(0.0, 0.5)])
def test_ratings_as_told_lie_between_the_ends(span: Span) -> None:
    told = span.told(np.linspace(-2, 2, 41).astype(np.float32))
    assert told.min() == pytest.approx(-1)
    assert told.max() == pytest.approx(1)
    assert (np.diff(told) >= 0).all()


def test_the_whole_scale_is_told_as_it_is() -> None:
    assert (WHOLE.slope, WHOLE.offset) == pytest.approx((2.0, 0.0))


def test_means_are_read_off_a_part_of_the_scale() -> None:
    chance, span = np.random.default_rng(0), Span.of(0.375, 0.875)
    for mean in (0.2, 0.6, 1.0):
        ratings = np.clip(np.round(chance.normal(mean, 1.0, 200_000)), -2, 2).astype(np.float32)
        assert span.offset + span.slope * span.told(ratings).mean() == pytest.approx(ratings.mean(), abs=0.08)


def simulated(seed: int, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how high items are rated, how often, and exact sums of ratings."""
    chance = np.random.default_rng(seed)
    truth, counts = chance.normal(0.5, 0.45, ITEMS), chance.integers(0, 60, ITEMS).astype(np.float64)
    scatter = np.sqrt((RATING_VARIANCE + 0.2) * counts + noise)
    return truth, counts, truth * counts + chance.normal(0, 1, ITEMS) * scatter


def shrunk_well(found: Beliefs, truth: np.ndarray) -> None:
    missed = found.mean + found.bias - truth
    assert abs(missed.mean()) < 0.03
    assert np.mean(missed**2 / found.variance) == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("noise", [0.0, 10.0, 1000.0])
def test_items_are_as_uncertain_as_is_said_where_counts_are_exact(noise: float) -> None:
    truth, counts, sums = simulated(1, noise)
    portion = Portion.of(None, ITEMS, 1)
    told = Told.of_values(counts, sums / 2, noise / 4, portion=portion, span=WHOLE)
    shrunk_well(believed(told, portion, NOTHING, NOTHING, users=100, exact=True), truth)


@pytest.mark.parametrize("noise", [0.01, 10.0])
def test_items_are_as_uncertain_as_is_said_where_counts_are_noisy(noise: float) -> None:
    truth, counts, sums = simulated(2, 0.0)
    chance = np.random.default_rng(3)
    halves = np.column_stack([counts + sums / 2, counts - sums / 2]) / 2
    halves += chance.normal(0, np.sqrt(noise), halves.shape)
    found = believed(
        Told.of_halves(halves, noise, span=WHOLE),
        Portion.of(None, ITEMS, 1),
        NOTHING,
        NOTHING,
        users=100,
        exact=False,
    )
    shrunk_well(found, truth)
    assert (found.counts >= 0).all()


def test_features_tell_where_noise_drowns_single_items() -> None:
    truth, counts, _ = simulated(4, 0.0)
    features = np.random.default_rng(5).normal(size=(ITEMS, 1))
    truth = truth + 0.5 * features[:, 0]
    sums = truth * counts + np.random.default_rng(6).normal(0, 60, ITEMS)
    portion = Portion.of(None, ITEMS, 1)
    told = Told.of_values(counts, sums / 2, 900.0, portion=portion, span=WHOLE)
    found = believed(told, portion, features, NOTHING, users=100, exact=True)
    without = believed(told, portion, NOTHING, NOTHING, users=100, exact=True)
    assert np.var(found.mean + found.bias - truth) < 0.7 * np.var(without.mean + without.bias - truth)


def test_sums_of_nothing_are_no_numbers_to_fail_on() -> None:
    none, portion = np.zeros(ITEMS), Portion.of(None, ITEMS, 1)
    for told, exact in (
        (Told.of_values(none, none, 0.0, portion=portion, span=WHOLE), True),
        (Told.of_halves(np.full((ITEMS, 2), -50.0), 4.0, span=WHOLE), False),
    ):
        found = believed(told, portion, NOTHING, NOTHING, users=0, exact=exact)
        assert all(np.isfinite(array).all() for array in found.arrays().values())
        assert np.isfinite(found.columns).all()
