from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.attacks.reconstruction import attack_upload
from cofactor.attacks.scoring import scored
from cofactor.attacks.solver_systems import BestObserved, Sent, Steps, System, best_system, smoothed
from cofactor.attacks.solvers import METHODS, STARTS, Solver, solve_uploads
from cofactor.attacks.uploads import Known, Upload, uploads, with_laplace
from cofactor.errors import ConfigError
from cofactor.recipes.multiview_weights import InclUnc, ObsOnly, SampledUnrated, Unrated
from tests.attacks.devices import ITEMS, KINDS, PLAIN, PUBLIC, USERS, WIDTH, captured

Reals = NDArray[np.float64]

VALUES = np.array(PUBLIC.values)
CHANCE = np.random.default_rng
# Numbers travel in grains of about 2e-6, which errors divide by small numbers.
NEAR = 1e-4


class Told(NamedTuple):
    """An upload made from the equations, and what is true."""

    upload: Upload
    row: Reals
    """0 for what was not rated."""
    answers: Reals
    vector: Reals

    @property
    def truth(self) -> Reals:
        """The unknowns of SemiALS."""
        return np.concatenate([self.row[self.upload.sent_items], self.answers[self.upload.sent_attributes]])


def made(unrated: Unrated = ObsOnly(), *, seed: int = 0, missing: int = 0) -> Told:  # noqa: B008 (frozen)
    """Return one upload of a user whose vector is best (8); of so many attributes nothing is known."""
    random = CHANCE(seed)
    row = np.where(random.random(ITEMS) < 0.35, random.integers(1, 6, ITEMS), 0).astype(np.float64)
    told = np.array([0.0, 1.0, 0.0, 1.0, 0.0])
    items, sides = random.normal(0.4, 0.5, (ITEMS, WIDTH)), random.normal(0, 0.3, (5, WIDTH))
    weights = np.where(row > 0, 1.0, 0.0)
    if isinstance(unrated, InclUnc):
        weights[row == 0] = unrated.alpha
    elif isinstance(unrated, SampledUnrated):
        weights[np.flatnonzero(row == 0)[: int(weights.sum())]] = unrated.alpha
    known = np.arange(5) >= missing
    squares = (items.T * weights) @ items + sides[known].T @ sides[known] + np.eye(WIDTH)
    vector = np.linalg.solve(squares, (weights * row) @ items + told[known] @ sides[known])
    upload = Upload(
        sender="device-00",
        round=1,
        item_rows=(weights * (row - items @ vector))[:, None] * vector,
        attribute_rows=((told - sides @ vector) * known)[:, None] * vector,
        items=items,
        attributes=sides,
        known=Known(unrated=unrated, update="semi-als", penalty=1.0, side_weight=1.0),
    )
    return Told(upload, row, told, np.asarray(vector, np.float64))


def two_rounds(unrated: Unrated, update: Any = "sgd") -> tuple[list[Upload], list[Upload], Any]:
    """Return all devices' uploads of the last two rounds of a captured training, and the truth."""
    run = captured(replace(PLAIN, unrated=unrated, update=update))
    assert run.captured is not None
    view = run.captured.view("coordinator")
    before, after = (uploads(view, round=round) for round in (PLAIN.turns - 1, PLAIN.turns))
    return list(before), list(after), run.captured.truth


def steps_of(before: Upload, after: Upload, item: int = 0) -> Steps:
    first, then = Sent.of(before, beside=after), Sent.of(after, beside=before)
    floor = 0.0 if first.alpha is None else first.alpha
    return Steps(first, then, item, rate=PLAIN.user_rate, floor=floor, values=VALUES)


@pytest.mark.parametrize("unrated", KINDS)
def test_what_is_true_solves_the_equations_of_one_upload_in_every_factor(unrated: Unrated) -> None:
    told = made(unrated)
    truth, sent = told.truth, Sent.of(told.upload)
    for factor in range(WIDTH):
        own = best_system(sent, factor, sent.alpha or 0.0)
        assert own.unknowns == len(truth)
        np.testing.assert_allclose(own.equations(truth), 0, atol=1e-12)
        assert np.abs(own.equations(truth + 0.1)).max() > 1e-3
        np.testing.assert_allclose(own.user(truth), told.vector)
        assert own.unexplained(truth) < 1e-11
        assert own.unexplained(truth + 0.1) > 1e-3


@pytest.mark.parametrize("unrated", KINDS)
def test_what_is_true_solves_the_equations_of_two_rounds_of_the_recipe(unrated: Unrated) -> None:
    before, after, truth = two_rounds(unrated)
    for first, then in zip(before, after, strict=True):
        vector = attack_upload(first, PUBLIC).vector
        places = Sent.of(first, beside=then).item_places
        for item in range(0, len(places), 7):
            own = steps_of(first, then, item)
            assert own.unknowns == WIDTH
            np.testing.assert_allclose(own.equations(vector), 0, atol=NEAR)
        assert own.unexplained(vector) < 1e-3 < 1e-2 < own.unexplained(1.05 * vector)
        ratings, attributes = own.told(vector)
        true = np.zeros(ITEMS)
        true[truth.ratings[first.sender].items] = truth.ratings[first.sender].values
        # (35) divides small differences of two rounds by each other, and some are next to nothing.
        assert np.quantile(np.abs(ratings - true[places]), 0.9) < 0.02
        np.testing.assert_allclose(attributes, truth.attributes[first.sender][0], atol=0.01)


def test_equations_of_rated_items_do_not_tell_the_sign_and_those_of_all_items_do() -> None:
    told = made()
    np.testing.assert_allclose(
        best_system(Sent.of(told.upload), 0, 0.0).equations(-told.truth), 0, atol=1e-12
    )
    before, after, _ = two_rounds(ObsOnly())
    vector = attack_upload(before[0], PUBLIC).vector
    own = steps_of(before[0], after[0])
    np.testing.assert_allclose(own.equations(-vector), own.equations(vector), atol=1e-9)
    np.testing.assert_allclose(own.told(-vector).ratings, -own.told(vector).ratings, atol=1e-9)
    told = made(InclUnc())
    assert np.abs(best_system(Sent.of(told.upload), 0, 0.1).equations(-told.truth)).max() > 0.1


def test_where_all_items_are_sent_weights_tell_the_sign_of_steps() -> None:
    before, after, _ = two_rounds(InclUnc())
    vector = attack_upload(before[0], PUBLIC).vector
    failed = [np.abs(steps_of(before[0], after[0], item).equations(-vector)).max() for item in range(ITEMS)]
    assert min(failed) > 100 * NEAR


def test_weights_are_smoothed_as_printed_or_from_alpha() -> None:
    ratings = np.array([-3.0, 0.0, 0.25, 1.0, 4.0])
    np.testing.assert_allclose(smoothed(ratings, 0.0), [0, 0, 0.25, 1, 1])
    np.testing.assert_allclose(smoothed(ratings, 0.2), [0.2, 0.2, 0.4, 1, 1])


def test_as_printed_equation_42_is_not_solved_by_what_is_true() -> None:
    told = made(InclUnc())
    assert np.abs(best_system(Sent.of(told.upload), 0, 0.0).equations(told.truth)).max() > 0.01


@pytest.mark.parametrize("method", METHODS)
def test_methods_that_converge_find_all_ratings_and_attributes_behind_one_upload(method: Any) -> None:
    converged = 0
    for seed in range(6):
        told = made(seed=seed)
        found = solve_uploads([told.upload], PUBLIC, Solver(method=method, start="direction"), CHANCE(seed))
        assert found.guess.seconds > 0
        if not found.converged:
            continue
        converged += 1
        np.testing.assert_array_equal(found.guess.ratings, told.row)
        np.testing.assert_array_equal(found.guess.rated, told.row > 0)
        np.testing.assert_array_equal(found.guess.if_rated[told.row > 0], told.row[told.row > 0])
        np.testing.assert_array_equal(found.guess.attributes, told.answers)
        np.testing.assert_allclose(found.guess.vector, told.vector, rtol=1e-3)
    assert converged >= (6 if method in ("hybr", "anderson") else 3)


@pytest.mark.parametrize("unrated", [ObsOnly(), SampledUnrated()])
def test_two_rounds_of_steps_tell_most_of_what_was_rated(unrated: Unrated) -> None:
    before, after, truth = two_rounds(unrated)
    solver = Solver(method="df-sane", start="direction")
    found = [
        solve_uploads(pair, PUBLIC, solver, CHANCE(1), user_rate=PLAIN.user_rate)
        for pair in zip(before, after, strict=True)
    ]
    signed = scored([one.guess for one in found], truth, PUBLIC)
    as_found = scored([one.as_found for one in found], truth, PUBLIC)
    assert signed.users == USERS
    assert signed.rated.right > signed.rated.trivial + 0.3
    assert signed.rated.right > as_found.rated.right + 0.2


def test_unknowns_for_all_items_are_found_from_little() -> None:
    before, _, truth = two_rounds(InclUnc(), "semi-als")
    solver = Solver(method="df-sane", start="tenths")
    found = [solve_uploads([one], PUBLIC, solver, CHANCE(0)).guess for one in before]
    score = scored(found, truth, PUBLIC)
    assert score.rated.right > score.rated.trivial + 0.3
    assert score.all_items.right > score.all_items.trivial


def test_a_solution_that_is_upside_down_is_put_right() -> None:
    mirrored = 0
    for seed in range(6):
        told = made(seed=seed)
        found = solve_uploads([told.upload], PUBLIC, Solver(start="direction"), CHANCE(seed))
        np.testing.assert_array_equal(found.guess.ratings, told.row)
        # All ratings are below 0 if it is, so that none is left.
        mirrored += not found.as_found.rated.any()
    assert mirrored >= 2


def test_under_noise_solutions_of_all_factors_are_averaged() -> None:
    random, right = CHANCE(0), {}
    noisy = [
        (with_laplace(told.upload, 0.1, random), told.row) for told in (made(seed=seed) for seed in range(20))
    ]
    for fixed in (1, None):
        solver = Solver(start="direction", fixed=fixed)
        found = [
            (solve_uploads([upload], PUBLIC, solver, CHANCE(seed)).guess.ratings == row)[row > 0].mean()
            for seed, (upload, row) in enumerate(noisy)
        ]
        right[fixed] = np.mean(found)
    assert right[None] > right[1] + 0.02
    assert right[None] > 0.6


def test_a_method_stops_when_it_has_had_its_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    whole = BestObserved.equations

    def counted(self: System, guess: Reals) -> Reals:
        calls.append(guess.copy())
        return whole(self, guess)  # type: ignore[arg-type]

    monkeypatch.setattr(BestObserved, "equations", counted)
    upload = made().upload
    found = solve_uploads([upload], PUBLIC, Solver(method="anderson", evaluations=3), CHANCE(0))
    # Once more, to see whether they came out: at the best of the three.
    assert len(calls) == 4
    assert any(np.array_equal(calls[3], one) for one in calls[:3])
    assert found.converged == 0.0
    calls.clear()
    solve_uploads([upload], PUBLIC, Solver(method="anderson", seconds=1e-9), CHANCE(0))
    assert len(calls) == 1


def test_an_attribute_that_is_missing_weighs_nothing_and_is_not_guessed() -> None:
    told = made(missing=2)
    guess = solve_uploads([told.upload], PUBLIC, Solver(start="direction"), CHANCE(0)).guess
    assert np.isnan(guess.attributes[:2]).all()
    np.testing.assert_array_equal(guess.attributes[2:], told.answers[2:])
    np.testing.assert_array_equal(guess.ratings, told.row)


def test_nothing_but_chance_and_what_was_sent_decides_where_a_method_begins() -> None:
    upload = made(InclUnc(), seed=4).upload
    for start in STARTS:
        solver = Solver(method="df-sane", start=start, evaluations=60)
        first, again = (solve_uploads([upload], PUBLIC, solver, CHANCE(5)).guess for _ in range(2))
        np.testing.assert_array_equal(first.ratings, again.ratings)


def test_uploads_that_equations_are_not_about_are_refused() -> None:
    one = made().upload
    step = replace(one, known=replace(one.known, update="sgd"))
    home = replace(one, known=replace(one.known, update="at home"))
    for wrong in ([step], [one, one], [home]):
        with pytest.raises(ConfigError, match="solvers take one upload"):
            solve_uploads(wrong, PUBLIC, Solver(), CHANCE(0))
    empty = replace(one, item_rows=np.zeros_like(one.item_rows))
    with pytest.raises(ConfigError, match="nothing was sent for any item"):
        solve_uploads([empty], PUBLIC, Solver(), CHANCE(0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "newton"}, "method"),
        ({"start": "truth"}, "start"),
        ({"tries": 0}, "tries must be at least 1"),
        ({"evaluations": 0}, "evaluations must be at least 1"),
        ({"seconds": 0.0}, "seconds must be greater than 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Solver(**settings)
