import math

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.recipes.taste_likelihood import Doubts, Moments, told_by_others
from cofactor.recipes.taste_message import COUNT_WEIGHT, Directions, Form

PASSES = math.erf(1 / math.sqrt(1.9))
FORMS = [Form(1), Form(3), Form(3, 0.4)]
Matrix = NDArray[np.float64]


def some_directions(form: Form, items: int = 60) -> Directions:
    rows = np.random.default_rng(1).uniform(-0.5, 0.5, (items, form.directions))
    rows[:, 0] = 0.6
    return Directions(rows, 0.7)


def some_moments(directions: Directions) -> Moments:
    random = np.random.default_rng(2)
    weights = random.dirichlet(np.ones(len(directions.rows)))
    return Moments.of(directions.rows, weights, random.normal(size=(len(weights), 4)))


def exact_messages(directions: Directions, form: Form, users: int, each: int, seed: int = 3) -> Matrix:
    """Messages of users with `each` ratings of random items, without noise."""
    random = np.random.default_rng(seed)
    rows = np.empty((users, form.length))
    for user in range(users):
        t = directions.rows[random.choice(len(directions.rows), each, replace=False)]
        products = (t[:, 1:].T @ t[:, 1:])[form.triangle()] * form.norms() * form.products
        told = random.uniform(-1, 1, each) @ t
        rows[user] = np.concatenate([COUNT_WEIGHT * t.sum(axis=0), told, products if form.products else []])
    return rows


@pytest.mark.parametrize("form", FORMS)
def test_what_is_told_is_each_users_regression_of_the_model(form: Form) -> None:
    directions, noise, doubts = some_directions(form), 1.3, Doubts(0.8, 0.3)
    moments = some_moments(directions)
    random = np.random.default_rng(4)
    noisy = exact_messages(directions, form, 20, 12) + random.normal(0, noise, (20, form.length))
    found = told_by_others(noisy, form, moments, directions, noise, doubts)
    others = form.directions - 1
    for user in range(20):
        sums, told, triangle = (part[0] for part in form.parts(noisy[user : user + 1]))
        count = max(sums[0] / 0.6, 0.0)
        gathered = count * moments.products
        for k in range(1, 1 + others):
            mean, prior = count * moments.products[0, k] / 0.6, count * moments.products[k, k]
            gain = prior / (prior + (noise / COUNT_WEIGHT) ** 2)
            gathered[0, k] = gathered[k, 0] = 0.6 * (mean + gain * (sums[k] - mean))
        left = 0.0
        for at, (i, j) in enumerate(zip(*form.triangle(), strict=True)):
            variance = count * moments.spread[1 + i, 1 + j]
            if form.products:
                size = noise / form.products / (1.0 if i == j else math.sqrt(2))
                gain = variance / (variance + size**2)
                mean = count * moments.products[1 + i, 1 + j]
                value = mean + gain * (triangle[at] - mean)
                gathered[1 + i, 1 + j] = gathered[1 + j, 1 + i] = value
                left += 2 * variance * (1 - gain) / others
            else:
                left += variance * (1 if i == j else 2) / others
        unknown = noise**2 + PASSES**2 * 0.49 * ((0.6 * noise / COUNT_WEIGHT) ** 2 + left)
        covariance = unknown * np.eye(form.directions) + 0.8 * count * moments.products
        covariance += 0.3 * PASSES**2 * gathered @ gathered
        design = PASSES * gathered
        inverse = np.linalg.inv(covariance)
        np.testing.assert_allclose(found.precision[user], design.T @ inverse @ design, atol=1e-9)
        np.testing.assert_allclose(found.information[user], design.T @ inverse @ told, atol=1e-9)
    products = directions.rows.T @ np.diag(np.random.default_rng(2).dirichlet(np.ones(60))) @ directions.rows
    np.testing.assert_allclose(moments.products, products)
    np.testing.assert_allclose(found.combinations, np.linalg.solve(products, moments.known), rtol=1e-5)


def test_moments_are_means_and_variances_over_ratings() -> None:
    rows, weights = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.25, 0.75])
    found = Moments.of(rows, weights, np.array([[1.0], [5.0]]))
    entry = np.array([1.0 * 2.0, 3.0 * 4.0])
    assert found.products[0, 1] == pytest.approx(weights @ entry)
    assert found.spread[0, 1] == pytest.approx(weights @ entry**2 - (weights @ entry) ** 2)
    assert found.known[1, 0] == pytest.approx(0.25 * 2 + 0.75 * 20)


@pytest.mark.parametrize("form", FORMS)
def test_the_mismatch_limits_how_much_is_believed(form: Form) -> None:
    directions = some_directions(form)
    clear = exact_messages(directions, form, 10, 50)
    told = told_by_others(clear, form, some_moments(directions), directions, 0.01, Doubts(0.8, 0.5))
    assert np.linalg.eigvalsh(told.precision).max() <= 1 / 0.5 + 1e-9


@pytest.mark.parametrize("form", FORMS)
def test_noise_makes_everything_less_believable_and_nothing_impossible(form: Form) -> None:
    directions = some_directions(form)
    moments, clear = some_moments(directions), exact_messages(directions, form, 10, 30)
    believed = [
        np.linalg.eigvalsh(
            told_by_others(clear, form, moments, directions, noise, Doubts(0.8, 0.05)).precision
        )
        for noise in (0.0, 1.0, 10.0, 1000.0)
    ]
    assert all(np.all(each > -1e-9) for each in believed)
    sums = [float(each.sum()) for each in believed]
    assert sums == sorted(sums, reverse=True)
    assert believed[-1].max() < 1e-3


@pytest.mark.parametrize("form", FORMS)
def test_of_users_without_ratings_elsewhere_nothing_is_told(form: Form) -> None:
    directions = some_directions(form)
    told = told_by_others(
        np.zeros((3, form.length)), form, some_moments(directions), directions, 0.0, Doubts(0.8, 0.05)
    )
    np.testing.assert_allclose(told.precision, 0, atol=1e-9)
    np.testing.assert_allclose(told.information, 0, atol=1e-9)


def test_a_generous_user_is_told_to_be_generous() -> None:
    form = Form(1)
    directions = some_directions(form)
    moments = Moments.of(directions.rows, np.full(60, 1 / 60), np.ones((60, 1)))
    messages = np.array([[COUNT_WEIGHT * 0.6 * 100, 0.3 * 0.6 * 100]])  # 100 ratings, 0.3 above the mean
    told = told_by_others(messages, form, moments, directions, 0.1, Doubts(0.8, 0.0))
    level = told.combinations[:, 0]
    taste = float(told.information[0] @ level) / float(level @ told.precision[0] @ level)
    assert taste == pytest.approx(0.3 / PASSES, rel=1e-6)
