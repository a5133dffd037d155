import numpy as np
import pytest

from cofactor.errors import ConfigError, DataError
from cofactor.evaluate.bootstrap import Estimate, estimate, resampled_totals


def test_first_total_is_that_of_the_users_themselves() -> None:
    columns = np.arange(12.0).reshape(6, 2)
    totals = resampled_totals(columns, resamples=5, seed=1)
    assert totals.shape == (6, 2)
    assert totals[0].tolist() == [30.0, 36.0]


def test_resampling_draws_whole_users_with_replacement() -> None:
    # Powers of a hundred: the digits of a total count how often each user was drawn.
    columns = np.array([[1.0], [1e2], [1e4], [1e6]])
    for total in resampled_totals(columns, resamples=50)[:, 0]:
        digits = [int(total // 100**user) % 100 for user in range(4)]
        assert sum(digits) == 4


def test_same_seed_draws_the_same_users_so_that_models_can_be_paired() -> None:
    random = np.random.default_rng(0)
    first, difference = random.random((200, 1)), np.full((200, 1), 0.25)
    one = resampled_totals(first, resamples=30, seed=4)
    other = resampled_totals(first + difference, resamples=30, seed=4)
    assert np.allclose(other - one, 0.25 * 200)
    assert not np.allclose(one[1:], resampled_totals(first, resamples=30, seed=5)[1:])


def test_interval_has_the_width_that_theory_gives() -> None:
    values = np.random.default_rng(1).standard_normal((2000, 1))
    columns = np.column_stack([values, np.ones(2000)])
    totals = resampled_totals(columns, resamples=4000, seed=2)
    found = estimate(totals[:, 0] / totals[:, 1])
    half = 1.96 * values.std() / np.sqrt(2000)
    # Each end, a quantile of 4,000 draws, has a standard error of 4% of the half width.
    assert found.high - found.value == pytest.approx(half, rel=0.25)
    assert found.value - found.low == pytest.approx(half, rel=0.25)


def test_interval_is_wider_when_a_user_repeats_herself() -> None:
    sums = np.random.default_rng(1).standard_normal((100, 1)) * 50
    alike = estimate(resampled_totals(sums, seed=0)[:, 0])
    spread = estimate(resampled_totals(np.repeat(sums / 50, 50, axis=0), seed=0)[:, 0])
    assert alike.high - alike.low > 5 * (spread.high - spread.low)


def test_interval_of_known_samples() -> None:
    assert estimate(np.append(5.0, np.arange(101.0)), confidence=0.5) == Estimate(5.0, 25.0, 75.0)
    assert estimate(np.array([5.0, np.nan, 1.0, 3.0]), confidence=0.5) == Estimate(5.0, 1.5, 2.5)
    assert str(Estimate(1, 0.5, 2)) == "1.0000 (0.5000 to 2.0000)"


def test_interval_without_resamples_that_count_is_the_value_itself() -> None:
    assert estimate(np.array([5.0, np.nan])) == Estimate(5.0, 5.0, 5.0)


def test_mistakes_are_named() -> None:
    with pytest.raises(DataError, match="no user has test ratings"):
        resampled_totals(np.zeros((0, 2)))
    with pytest.raises(ConfigError, match="resamples must be at least 1"):
        resampled_totals(np.ones((3, 1)), resamples=0)
    with pytest.raises(ConfigError, match="confidence must lie between 0 and 1"):
        estimate(np.ones(3), confidence=95)
