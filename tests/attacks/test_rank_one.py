import numpy as np
import pytest
from scipy.stats import laplace, norm

from cofactor.attacks.rank_one import Rows, direction_of, log_total, noise_in


def rows_of(longest: float | None = None) -> Rows:
    random = np.random.default_rng(0)
    return Rows(
        rows=random.normal(0, 1, (4, 3)),
        vectors=random.normal(0, 1, (4, 3)),
        values=np.array([1.0, 2.0, 0.0]),
        weights=np.array([1.0, 1.0, 0.1]),
        chances=np.log(np.array([[0.3, 0.2, 0.5]])),
        longest=longest,
    )


def test_the_direction_of_one_user_is_that_of_the_users_vector() -> None:
    random = np.random.default_rng(1)
    vector = random.normal(0, 2, 6)
    found = direction_of(random.normal(0, 1, 50)[:, None] * vector)
    assert abs(found @ vector) == pytest.approx(np.linalg.norm(vector), rel=1e-12)


@pytest.mark.parametrize("scale", [0.0, 1e-6, 0.5])
def test_noise_is_what_lies_off_the_direction(scale: float) -> None:
    random = np.random.default_rng(2)
    vector = random.normal(0, 2, 6)
    rows = random.normal(0, 3, 2000)[:, None] * vector + random.laplace(0, scale, (2000, 6))
    # The median of 12,000 numbers is right within 2% or so; that noise is projected changes its law a little.
    assert noise_in(rows, direction_of(rows)) == pytest.approx(scale, rel=0.25, abs=1e-14)


def test_nothing_lies_off_the_direction_of_a_single_factor() -> None:
    assert noise_in(np.ones((5, 1)), np.ones(1)) == 0


def test_rows_are_as_likely_as_laplace_noise_makes_them() -> None:
    rows, vector, noise = rows_of(), np.array([0.5, -1.0, 2.0]), 0.4
    found = rows.logs(vector, noise) - rows.logs(vector, noise)[:, :1]
    means = rows.weights * (rows.values - (rows.vectors @ vector)[:, None])
    exact = laplace.logpdf(rows.rows[:, None], means[:, :, None] * vector, noise).sum(axis=2)
    # Near 0 the density is rounded off by up to 5% of the noise in each of the 3 numbers.
    np.testing.assert_allclose(found, exact - exact[:, :1], atol=0.3)


def test_what_lies_along_a_direction_is_as_likely_as_normal_errors_make_it() -> None:
    rows, direction = rows_of(), np.array([0.6, 0.8, 0.0])
    lengths, spread = np.array([-1.0, 0.5, 2.0]), np.array([0.3, 0.4, 0.5])
    for length, width, found in zip(lengths, spread, rows.along(direction, lengths, spread), strict=True):
        means = length * rows.errors(length * direction)
        density = norm.pdf((rows.rows @ direction)[:, None], means, width) * width * np.sqrt(2 * np.pi)
        exact = np.log(density @ np.exp(rows.chances[0])).sum()
        assert found == pytest.approx(exact)


def test_rows_that_were_shortened_are_expected_to_be() -> None:
    vector, longest = np.array([3.0, 0.0, 0.0]), 0.5
    free, short = rows_of(), rows_of(longest)
    cut = Rows(
        rows=np.array([[longest, 0.0, 0.0]] * 4),
        vectors=np.zeros((4, 3)),
        values=short.values,
        weights=short.weights,
        chances=short.chances,
        longest=longest,
    )
    assert (
        cut.logs(vector, 0.01)[:, :2] > -0.1
    ).all()  # errors of 1 and 2 are both shortened to the same row
    assert (cut.logs(vector, 0.01)[:, 2] < -10).all()
    assert not np.allclose(free.logs(vector, 0.1), short.logs(vector, 0.1))
    lengths, spread = np.array([3.0]), np.array([0.01])
    assert cut.along(vector / 3, lengths, spread)[0] == pytest.approx(4 * np.log(0.5))


def test_the_longest_rows_are_kept() -> None:
    rows = rows_of()
    kept = rows.largest(2)
    norms = np.sort(np.linalg.norm(rows.rows, axis=1))
    np.testing.assert_allclose(np.sort(np.linalg.norm(kept.rows, axis=1)), norms[-2:])
    assert rows.largest(4) is rows


def test_sums_of_exponentials_do_not_overflow() -> None:
    assert log_total(np.array([1000.0, 1000.0])) == pytest.approx(1000 + np.log(2))
