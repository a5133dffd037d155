"""Hierarchical histograms: unbiased layers, exactly epsilon, and better for their non-negativity."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.config import as_table, from_table
from cofactor.errors import ConfigError, DataError, RunError
from cofactor.privacy.answer_noise import response_weights
from cofactor.randomness import InsecureRandom
from cofactor.survey.consistency import layers_of
from cofactor.survey.hashing import collision, drawn_seeds
from cofactor.survey.hierarchy import HierarchicalHistogram
from cofactor.survey.method import Floats, Integers, cells_of, report, simulated
from cofactor.survey.metrics import kolmogorov, range_error, wasserstein
from cofactor.survey.oracles import GRR, OLH
from cofactor.survey.waves import SquareWave

SETTINGS = [(1.0, 64, 4), (0.1, 16, 2), (3.0, 256, 16), (2.0, 27, 3), (1.0, 5, 5), (12.0, 64, 8)]


def expected_tally(method: HierarchicalHistogram, bucket: int) -> Integers:
    """Return what 10^17 people in one bucket would answer about each layer on average, over all seeds."""
    tallies = []
    for oracle in method.oracles:
        truth, other = (
            weight / 2**64 for weight in response_weights(oracle.mechanism.choices, method.epsilon)
        )
        same = collision(oracle.choices) if isinstance(oracle, OLH) else 0.0
        chances = np.full(oracle.buckets, other + (truth - other) * same)
        chances[bucket * oracle.buckets // method.buckets] = truth
        tallies.append(np.append(chances, 1.0) if isinstance(oracle, OLH) else chances)
    return np.rint(1e17 * np.concatenate(tallies)).astype(np.int64)


def beta(people: int, seed: int) -> Floats:
    return np.random.default_rng(seed).beta(5, 2, people)


def incomes(people: int, seed: int) -> Floats:
    """Return numbers such as people tell of their incomes: most are round."""
    chance = np.random.default_rng(seed)
    exact = chance.lognormal(10.6, 0.9, people)
    grain = chance.choice([1000.0, 500.0, 100.0, 1.0], people, p=[0.5, 0.2, 0.15, 0.15])
    told: Floats = np.rint(exact / grain) * grain / 2**19
    return told[told < 1]


def shares(values: Floats, buckets: int) -> Floats:
    return np.bincount(cells_of(values, buckets), minlength=buckets) / values.size


@pytest.mark.parametrize(("epsilon", "buckets", "branching"), SETTINGS)
@pytest.mark.parametrize("post", ["leaves", "consistent"])
def test_signed_estimates_are_unbiased_for_every_bucket(
    epsilon: float, buckets: int, branching: int, post: Any
) -> None:
    method = HierarchicalHistogram(epsilon=epsilon, buckets=buckets, branching=branching, post=post)
    for bucket in range(0, buckets, max(1, buckets // 16)):
        found = method.estimate(expected_tally(method, bucket))
        np.testing.assert_allclose(found, np.eye(buckets)[bucket], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("epsilon", "buckets", "branching"), SETTINGS)
def test_chances_sum_to_one_and_no_outcome_tells_more_than_epsilon(
    epsilon: float, buckets: int, branching: int
) -> None:
    method = HierarchicalHistogram(epsilon=epsilon, buckets=buckets, branching=branching)
    everybody, seeds = np.arange(buckets), drawn_seeds(20, InsecureRandom(4))
    for layer, choices in enumerate(method.mechanism.choices):
        truth, other = (weight / 2**64 for weight in response_weights(choices, epsilon))
        for seed in seeds:
            own = method.truth(everybody, np.full(buckets, layer), np.tile(seed, (buckets, 1)))
            chances = np.where(own == np.arange(choices)[:, None], truth, other)
            np.testing.assert_allclose(chances.sum(axis=0), 1, rtol=0, atol=1e-12)
            most = np.log(chances.max(axis=1) / chances.min(axis=1))
            assert most.max() <= epsilon * (1 + 1e-12)
            # Some answer is the truth of one bucket and not of another: there epsilon is reached.
            assert most.max() == pytest.approx(epsilon, rel=1e-9) or len(np.unique(own)) == 1


def test_layers_have_the_oracle_of_least_variance() -> None:
    method = HierarchicalHistogram(epsilon=1.0, buckets=256)
    assert [type(oracle) for oracle in method.oracles] == [GRR, OLH, OLH, OLH]
    assert method.mechanism.choices == (4, 4, 4, 4)
    low = HierarchicalHistogram(epsilon=2.5, buckets=256)
    assert [type(oracle) for oracle in low.oracles] == [GRR, GRR, OLH, OLH]
    assert low.mechanism.choices == (4, 16, 13, 13)


def test_what_goes_beside_does_not_depend_on_the_values() -> None:
    method = HierarchicalHistogram(epsilon=1.0)
    one, other = (report(method, values, InsecureRandom(7)) for values in (beta(500, 1), np.zeros(500)))
    for name in method.beside:
        np.testing.assert_array_equal(one[name], other[name])
    assert np.any(one["answers"] != other["answers"])


def test_layers_are_drawn_evenly_and_their_estimates_vary_as_the_law_says() -> None:
    method, values = HierarchicalHistogram(epsilon=1.5, buckets=64), beta(300_000, 2)
    sent = report(method, values, InsecureRandom(5))
    people = np.bincount(sent["layers"], minlength=3)
    assert np.all(np.abs(people - 100_000) < 6 * math.sqrt(100_000))
    tree, weights = method.layer_estimates(method.tally(**sent))
    off = []
    for oracle, found, count, weight in zip(
        method.oracles, layers_of(tree, method.sizes), people, weights, strict=True
    ):
        low, gain = support_chances(oracle)
        assert weight == pytest.approx(count * gain**2 / (low * (1 - low)), rel=1e-6)
        truth = shares(values, oracle.buckets)
        support = low + truth * gain
        off.append((found - truth) * gain / np.sqrt(support * (1 - support) / count))
    # Of 84 numbers none is 6.5 deviations off, but once in 10^8; nor is the mean of their squares 6.
    assert np.abs(np.concatenate(off)).max() < 6.5
    assert abs(np.mean(np.concatenate(off) ** 2) - 1) < 6 * math.sqrt(2 / 84)
    assert np.mean(np.concatenate(off) ** 2) > 0.4


def support_chances(oracle: GRR | OLH) -> tuple[float, float]:
    """Return how likely somebody's answer supports another node, and how much likelier the own one."""
    truth = 1 / (1 + (oracle.mechanism.choices - 1) * math.exp(-oracle.epsilon))
    low = (1 - truth) / (oracle.buckets - 1) if isinstance(oracle, GRR) else 1 / oracle.choices
    return low, truth - low


@pytest.mark.parametrize("epsilon", [1e-9, 0.05, 1.0, 64.0])
def test_probabilities_are_probabilities_whatever_came_in(epsilon: float) -> None:
    method = HierarchicalHistogram(epsilon=epsilon, buckets=64)
    for people in (1, 3, 1000):
        found = simulated(method, beta(people, 3), InsecureRandom(people))
        assert np.all(found >= 0)
        assert found.sum() == pytest.approx(1, abs=1e-12)


def test_an_epsilon_without_noise_gives_what_people_hold() -> None:
    method, values = HierarchicalHistogram(epsilon=64.0, buckets=16), np.repeat([0.1, 0.5, 0.95], 2000)
    found = simulated(method, values, InsecureRandom(3))
    # Only who answers about which layer is left to chance: six deviations of 3,000 people.
    assert np.abs(found - shares(values, 16)).max() < 6 * math.sqrt(0.25 / 3000)


def test_what_is_consistent_adds_up_to_one_and_what_is_left_alone_is_the_oracle_of_the_leaves() -> None:
    method = HierarchicalHistogram(epsilon=1.0, buckets=64, post="consistent")
    tally = method.tally(**report(method, beta(5000, 4), InsecureRandom(6)))
    found = method.estimate(tally)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert found.min() < 0
    leaves = replace(method, post="leaves").estimate(tally)
    np.testing.assert_array_equal(leaves, method.oracles[-1].estimate(tally[-65:]))
    assert (method.gives, replace(method, post="admm").gives) == ("ranges", "distribution")


def test_tallies_of_parties_add_up() -> None:
    method = HierarchicalHistogram(epsilon=1.0, buckets=64)
    sent = report(method, beta(1000, 5), InsecureRandom(7))
    first, rest = ({name: rows[part] for name, rows in sent.items()} for part in (slice(9), slice(9, None)))
    np.testing.assert_array_equal(method.tally(**first) + method.tally(**rest), method.tally(**sent))
    assert method.tally(**sent).shape == (4 + 17 + 65,)


def test_resampled_tallies_vary_as_answers_do() -> None:
    method, chance = HierarchicalHistogram(epsilon=1.0, buckets=16), np.random.default_rng(1)
    tally = method.tally(**report(method, beta(20_000, 6), InsecureRandom(8)))
    drawn = np.stack([method.resampled(tally, chance) for _ in range(2000)])
    people = np.repeat([tally[:4].sum(), tally[-1]], [4, 17])
    assert np.all(drawn[:, :4].sum(axis=1) == people[0])
    assert np.all(drawn[:, -1] == tally[-1])
    np.testing.assert_allclose(drawn.mean(axis=0), tally, rtol=0.02)
    np.testing.assert_allclose(drawn.var(axis=0), tally * (1 - tally / people), rtol=0.25)
    alone = method.tally(**report(method, [0.5], InsecureRandom(9)))
    assert method.resampled(alone, chance).sum() >= 1


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("answers", [0, 4]),
        ("answers", [-1, 0]),
        ("answers", [0.0, 1.0]),
        ("answers", [0]),
        ("layers", [0, 3]),
        ("layers", [0, -1]),
        ("layers", [0]),
        ("seeds", [[0, 0, 0]]),
        ("seeds", [[0, 0, 0], [0, 0, 2**31 - 1]]),
        ("seeds", [0, 0]),
    ],
)
def test_reports_that_cannot_be_are_refused(name: str, wrong: list[Any]) -> None:
    method = HierarchicalHistogram(epsilon=1.0, buckets=64)
    sent: dict[str, Any] = {"answers": np.zeros(2, int), "layers": np.array([0, 2], np.uint8)}
    sent["seeds"] = np.zeros((2, 3), np.uint32)
    assert method.tally(**sent).sum() > 0
    with pytest.raises(RunError, match="are not"):
        method.tally(**{**sent, name: np.array(wrong, np.uint32 if name == "seeds" else None)})


def test_an_answer_of_another_layer_is_refused() -> None:
    method = HierarchicalHistogram(epsilon=2.5, buckets=256)
    sent: dict[str, Any] = {"answers": np.array([15]), "seeds": np.zeros((1, 3), np.uint32)}
    assert method.tally(layers=np.array([1]), **sent).sum() == 1
    for layer in (0, 2, 3):
        with pytest.raises(RunError, match="answers are not"):
            method.tally(layers=np.array([layer]), **sent)


def test_tallies_that_cannot_be_are_refused() -> None:
    method = HierarchicalHistogram(epsilon=1.0, buckets=16)
    wrong: list[Any] = [np.ones(20, int), np.full(21, -1), np.ones((21, 1), int), np.ones(21)]
    for tally in wrong:
        with pytest.raises(RunError, match="tally"):
            method.estimate(tally)
    with pytest.raises(DataError, match="nobody"):
        method.estimate(np.zeros(21, int))
    with pytest.raises(RunError, match="layers and seeds"):
        method.tally(np.array([1]), layers=np.array([0]))


def test_mistakes_are_explained() -> None:
    with pytest.raises(
        ConfigError, match=r"power of the branching, 4, got 512\. The nearest are 256 and 1,024"
    ):
        HierarchicalHistogram(epsilon=1.0, buckets=512)
    with pytest.raises(ConfigError, match=r"got 3\. The nearest is 4\."):
        HierarchicalHistogram(epsilon=1.0, buckets=3)
    with pytest.raises(ConfigError, match="branching must be at least 2"):
        HierarchicalHistogram(epsilon=1.0, branching=1)
    wrong: Any = "consistency"
    with pytest.raises(ConfigError, match="Did you mean"):
        HierarchicalHistogram(epsilon=1.0, post=wrong)


def test_settings_survive_a_file() -> None:
    method = HierarchicalHistogram(epsilon=1.0, buckets=27, branching=3, post="leaves", weighted=False)
    assert from_table(HierarchicalHistogram, as_table(method), "method") == method


def test_probabilities_serve_ranges_better_than_signed_numbers() -> None:
    # Of 100 trials the mean error of ADMM was 0.6 of the other's, and 0.8 of it at worst.
    method = HierarchicalHistogram(epsilon=1.0, buckets=256)
    for seed in range(3):
        values = beta(50_000, seed)
        tally = method.tally(**report(method, values, InsecureRandom(seed)))
        errors = [
            range_error(shares(values, 256), replace(method, post=post).estimate(tally), 0.1)
            for post in ("admm", "consistent")
        ]
        assert errors[0] < errors[1]


def test_weights_bring_estimates_nearer() -> None:
    method = HierarchicalHistogram(epsilon=2.0, buckets=256)
    found: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(10):
        values = beta(50_000, seed)
        tally = method.tally(**report(method, values, InsecureRandom(seed)))
        for weighted in found:
            estimate = replace(method, weighted=weighted).estimate(tally)
            found[weighted].append(wasserstein(shares(values, 256), estimate))
    # Ten times ten trials: between 0.80 and 0.85.
    assert np.mean(found[True]) < 0.95 * np.mean(found[False])


def distances(method: Any, values: Floats, seed: int) -> tuple[float, float]:
    found, truth = simulated(method, values, InsecureRandom(seed)), shares(values, method.buckets)
    return wasserstein(truth, found), kolmogorov(truth, found)


def test_waves_are_nearer_for_smooth_numbers() -> None:
    tree, wave = HierarchicalHistogram(epsilon=1.0), SquareWave(epsilon=1.0)
    found = [[distances(method, beta(50_000, seed), seed)[0] for seed in range(4)] for method in (tree, wave)]
    assert np.mean(found[1]) < 0.75 * np.mean(found[0])


def test_trees_keep_the_steps_of_round_numbers() -> None:
    # With a million people, 0.017 against 0.033.
    tree = HierarchicalHistogram(epsilon=1.0, buckets=1024)
    wave = SquareWave(epsilon=1.0, buckets=1024)
    values = incomes(1_000_000, 1)
    assert distances(tree, values, 1)[1] < 0.75 * distances(wave, values, 1)[1]
