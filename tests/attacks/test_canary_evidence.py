import numpy as np
import pytest
from scipy import stats

from cofactor.attacks.canary_evidence import Apart, Law, Overlapping

CANARIES, NUMBERS = 300, 6


def drawn(seed: int, size: float = 1.0) -> tuple[Apart, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    expected = random.normal(size=(CANARIES, NUMBERS))
    expected *= size / np.linalg.norm(expected, axis=1, keepdims=True)
    present = random.random(CANARIES) < 0.5
    seen = expected * present[:, None] + random.normal(size=expected.shape)
    return Apart(canary=np.arange(CANARIES), seen=seen, expected=expected), present, random.normal(size=3)


def test_log_odds_are_those_of_normal_noise_of_the_size_that_numbers_tell() -> None:
    apart, _, _ = drawn(1, size=2.0)
    with_it = stats.norm.logpdf(apart.seen, apart.expected).sum(axis=1)
    without = stats.norm.logpdf(apart.seen).sum(axis=1)
    np.testing.assert_allclose(apart.log_odds(CANARIES, Law()), with_it - without, rtol=0.1, atol=0.02)


def test_log_odds_do_not_depend_on_units() -> None:
    apart, _, _ = drawn(2)
    larger = Apart(canary=apart.canary, seen=1000 * apart.seen, expected=1000 * apart.expected)
    np.testing.assert_allclose(larger.log_odds(CANARIES, Law()), apart.log_odds(CANARIES, Law()))


def test_entries_of_a_canary_add_up_and_whoever_makes_no_difference_has_even_odds() -> None:
    apart, _, _ = drawn(3)
    split = Apart(
        canary=np.repeat(np.arange(CANARIES), 2),
        seen=apart.seen.reshape(-1, NUMBERS // 2),
        expected=apart.expected.reshape(-1, NUMBERS // 2),
    )
    found = split.log_odds(CANARIES + 5, Law())
    np.testing.assert_allclose(found[:CANARIES], apart.log_odds(CANARIES, Law()))
    assert not found[CANARIES:].any()


def test_where_units_take_part_by_chance_odds_are_those_of_the_mixture() -> None:
    apart, _, _ = drawn(4, size=1.5)
    law = Law(sampling=0.3, steps=2)
    base = np.exp(apart.log_odds(CANARIES, Law()))  # with exactly what is expected
    matched, squares = np.log(base) + 0.5 * _squares(apart), _squares(apart)
    parts = {0: 0.49, 1: 0.42, 2: 0.09}
    mixed = sum(
        chance * np.exp(count / 0.6 * matched - (count / 0.6) ** 2 * squares / 2)
        for count, chance in parts.items()
    )
    np.testing.assert_allclose(apart.log_odds(CANARIES, law), np.log(mixed), rtol=1e-6)


def _squares(apart: Apart) -> np.ndarray:
    """Return the squared differences in units of the noise, as log-odds of two sets of numbers tell them."""
    none = Apart(canary=apart.canary, seen=apart.seen - apart.expected, expected=apart.expected)
    return apart.log_odds(CANARIES, Law()) - none.log_odds(CANARIES, Law())


def test_laplace_noise_has_odds_that_no_number_can_exceed() -> None:
    random = np.random.default_rng(5)
    expected = np.ones((CANARIES, 1))
    seen = np.array([[-50.0], [50.0], *random.laplace(size=(CANARIES - 2, 1)).tolist()])
    apart = Apart(canary=np.arange(CANARIES), seen=seen, expected=expected)
    found = apart.log_odds(CANARIES, Law(shape="laplace"))
    assert found[1] == pytest.approx(-found[0]) == pytest.approx(found.max())


def test_without_noise_odds_are_finite_and_right() -> None:
    apart, present, _ = drawn(6)
    exact = Apart(canary=apart.canary, seen=apart.expected * present[:, None], expected=apart.expected)
    found = exact.log_odds(CANARIES, Law())
    assert np.isfinite(found).all()
    assert np.array_equal(found > 0, present)


def test_differences_that_do_not_overlap_have_the_odds_of_those_apart() -> None:
    apart, _, _ = drawn(7)
    expected = np.zeros((CANARIES, CANARIES * NUMBERS))
    for canary in range(CANARIES):
        expected[canary, canary * NUMBERS : (canary + 1) * NUMBERS] = apart.expected[canary]
    together = Overlapping(CANARIES)
    together.take(apart.seen.ravel(), expected)
    np.testing.assert_allclose(together.log_odds(), apart.log_odds(CANARIES, Law()), rtol=1e-3, atol=1e-4)


def test_differences_that_overlap_are_weighed_against_each_other() -> None:
    random = np.random.default_rng(8)
    expected = random.normal(size=(CANARIES, 2 * CANARIES)) + 3 * random.normal(size=2 * CANARIES)
    present = random.random(CANARIES) < 0.5
    seen = present @ expected + 0.1 * random.normal(size=2 * CANARIES)
    together = Overlapping(CANARIES)
    together.take(seen, expected)
    assert ((together.log_odds() > 0) == present).mean() > 0.95
    one_by_one = expected @ seen - (expected**2).sum(axis=1) / 2
    assert ((one_by_one > np.median(one_by_one)) == present).mean() < 0.9
