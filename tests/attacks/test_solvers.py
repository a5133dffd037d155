from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.attacks.reconstruction import attack_upload
from cofactor.attacks.scoring import scored
from cofactor.attacks.solver_systems import BestObserved, Sent, Steps, System, best_system, smoothed
from cofactor.attacks.solvers import METHODS, STARTS, Solver, solve_uploads
from cofactor.attacks.uploads import Upload, uploads, with_laplace
from cofactor.errors import ConfigError
from cofactor.recipes.multiview_weights import InclUnc, ObsOnly, SampledUnrated, Unrated
from tests.attacks.devices import ITEMS, KINDS, PLAIN, PUBLIC, USERS, WIDTH, answers, captured, made, table

Reals = NDArray[np.float64]

VALUES = np.array(PUBLIC.values)
CHANCE = np.random.default_rng
# Numbers travel in grains of about 2e-6, which errors divide by small numbers.
NEAR = 1e-4


def truth_of(upload: Upload, row: Reals, told: Reals) -> Reals:
    """Return the unknowns of SemiALS: what was really rated, and really answered."""
    return np.concatenate([np.nan_to_num(row)[upload.sent_items], told])


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
    upload, row, vector = made(unrated)
    truth = truth_of(upload, row, answers(1)[0].astype(np.float64))
    sent = Sent.of(upload)
    for factor in range(WIDTH):
        own = best_system(sent, factor, sent.alpha or 0.0)
        assert own.unknowns == len(truth)
        np.testing.assert_allclose(own.equations(truth), 0, atol=1e-12)
        assert np.abs(own.equations(truth + 0.1)).max() > 1e-3
        np.testing.assert_allclose(own.user(truth), vector)
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
        assert own.unexplained(vector) < NEAR < 1e-3 < own.unexplained(1.05 * vector)
        ratings, attributes = own.told(vector)
        true = np.zeros(ITEMS)
        true[truth.ratings[first.sender].items] = truth.ratings[first.sender].values
        # (35) divides small differences of two rounds by each other.
        np.testing.assert_allclose(ratings, true[places], atol=0.02 if unrated == ObsOnly() else 0.3)
        np.testing.assert_allclose(attributes, truth.attributes[first.sender][0], atol=0.01)


def test_equations_of_rated_items_do_not_tell_the_sign_and_those_of_all_items_do() -> None:
    upload, row, _ = made(ObsOnly())
    truth, sent = truth_of(upload, row, answers(1)[0].astype(np.float64)), Sent.of(upload)
    np.testing.assert_allclose(best_system(sent, 0, 0.0).equations(-truth), 0, atol=1e-12)
    before, after, _ = two_rounds(ObsOnly())
    vector = attack_upload(before[0], PUBLIC).vector
    own = steps_of(before[0], after[0])
    np.testing.assert_allclose(own.equations(-vector), own.equations(vector), atol=1e-9)
    np.testing.assert_allclose(own.told(-vector).ratings, -own.told(vector).ratings, atol=1e-9)
    upload, row, _ = made(InclUnc())
    truth, sent = truth_of(upload, row, answers(1)[0].astype(np.float64)), Sent.of(upload)
    assert np.abs(best_system(sent, 0, 0.1).equations(-truth)).max() > 0.1


def test_where_all_items_are_sent_an_unrated_item_does_not_tell_the_sign_of_steps_and_a_rated_one_does() -> (
    None
):
    before, after, truth = two_rounds(InclUnc())
    vector = attack_upload(before[0], PUBLIC).vector
    rated = np.zeros(ITEMS, np.bool_)
    rated[truth.ratings[before[0].sender].items] = True
    failed = [np.abs(steps_of(before[0], after[0], item).equations(-vector)).max() for item in range(ITEMS)]
    assert np.max(np.array(failed)[~rated]) < 0.1 * np.median(np.array(failed)[rated])


def test_weights_are_smoothed_as_printed_or_from_alpha() -> None:
    ratings = np.array([-3.0, 0.0, 0.25, 1.0, 4.0])
    np.testing.assert_allclose(smoothed(ratings, 0.0), [0, 0, 0.25, 1, 1])
    np.testing.assert_allclose(smoothed(ratings, 0.2), [0.2, 0.2, 0.4, 1, 1])


def test_as_printed_equation_42_is_not_solved_by_what_is_true() -> None:
    upload, row, _ = made(InclUnc())
    truth = truth_of(upload, row, answers(1)[0].astype(np.float64))
    assert np.abs(best_system(Sent.of(upload), 0, 0.0).equations(truth)).max() > 0.01


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_find_ratings_and_attributes_behind_one_upload(method: Any) -> None:
    upload, row, vector = made(ObsOnly())
    found = solve_uploads([upload], PUBLIC, Solver(method=method, start="direction"), CHANCE(0))
    np.testing.assert_array_equal(found.guess.ratings, np.nan_to_num(row))
    np.testing.assert_array_equal(found.guess.rated, ~np.isnan(row))
    np.testing.assert_array_equal(found.guess.attributes, answers(1)[0])
    np.testing.assert_allclose(found.guess.vector, vector, rtol=1e-3)
    assert found.converged == 1.0
    assert found.guess.seconds > 0


@pytest.mark.parametrize("unrated", [ObsOnly(), SampledUnrated()])
def test_two_rounds_of_steps_tell_most_of_what_was_rated(unrated: Unrated) -> None:
    before, after, truth = two_rounds(unrated)
    solver = Solver(method="hybr", start="direction")
    found = [
        solve_uploads(pair, PUBLIC, solver, CHANCE(1), user_rate=PLAIN.user_rate)
        for pair in zip(before, after, strict=True)
    ]
    signed = scored([one.guess for one in found], truth, PUBLIC)
    as_found = scored([one.as_found for one in found], truth, PUBLIC)
    assert signed.users == USERS
    assert signed.rated.right > 0.9
    assert signed.rated.right >= as_found.rated.right


def test_unknowns_for_all_items_are_found_from_little() -> None:
    before, _, truth = two_rounds(InclUnc(), "semi-als")
    solver = Solver(method="df-sane", start="tenths")
    found = [solve_uploads([one], PUBLIC, solver, CHANCE(0)).guess for one in before]
    score = scored(found, truth, PUBLIC)
    assert score.rated.right > score.rated.trivial + 0.3
    assert score.all_items.right > score.all_items.trivial


def test_a_solution_that_is_upside_down_is_put_right() -> None:
    upload, row, _ = made(ObsOnly())
    mirrored = [
        found
        for seed in range(6)
        if (
            found := solve_uploads(
                [upload], PUBLIC, Solver(method="df-sane", start="random", tries=1), CHANCE(seed)
            )
        )
        and not found.as_found.rated.any()
        and found.converged
    ]
    assert mirrored
    for found in mirrored:
        np.testing.assert_array_equal(found.guess.ratings, np.nan_to_num(row))


def test_under_noise_solutions_of_all_factors_are_averaged() -> None:
    shown = [made(ObsOnly(), seed=seed)[:2] for seed in range(12)]
    random = CHANCE(0)
    noisy = [(with_laplace(upload, 0.03, random), row) for upload, row in shown]
    right = {}
    for fixed in (1, None):
        solver = Solver(start="direction", fixed=fixed)
        found = [(solve_uploads([upload], PUBLIC, solver, CHANCE(2)).guess, row) for upload, row in noisy]
        right[fixed] = np.mean([(guess.ratings == row)[~np.isnan(row)].mean() for guess, row in found])
    assert right[None] > right[1] + 0.02
    assert right[None] > 0.8


def test_a_method_stops_when_it_has_had_its_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    whole = BestObserved.equations

    def counted(self: System, guess: Reals) -> Reals:
        calls.append(guess.copy())
        return whole(self, guess)  # type: ignore[arg-type]

    monkeypatch.setattr(BestObserved, "equations", counted)
    upload, _, _ = made(ObsOnly())
    found = solve_uploads([upload], PUBLIC, Solver(method="anderson", evaluations=3), CHANCE(0))
    # Once more, to see whether they came out.
    assert len(calls) == 4
    lengths = [np.linalg.norm(whole(best_system(Sent.of(upload), 0, 0.0), one)) for one in calls]  # type: ignore[arg-type]
    assert found.converged == 0.0
    assert lengths
    calls.clear()
    solve_uploads([upload], PUBLIC, Solver(method="anderson", seconds=1e-9), CHANCE(0))
    assert len(calls) == 1


def test_an_attribute_that_is_missing_weighs_nothing_and_is_not_guessed() -> None:
    upload, row, _ = made(ObsOnly())
    told = answers(1)[0].astype(np.float64)
    sides = upload.attributes[1:]
    weights = np.where(np.isnan(row), 0.0, 1.0)
    squares = (upload.items.T * weights) @ upload.items + sides.T @ sides + np.eye(WIDTH)
    vector = np.linalg.solve(squares, np.nan_to_num(row) @ upload.items + told[1:] @ sides)
    rows = (weights * (np.nan_to_num(row) - upload.items @ vector))[:, None] * vector
    answered = np.vstack([np.zeros(WIDTH), (told[1:] - sides @ vector)[:, None] * vector])
    partly = replace(upload, item_rows=rows, attribute_rows=answered)
    guess = solve_uploads([partly], PUBLIC, Solver(start="direction"), CHANCE(0)).guess
    assert np.isnan(guess.attributes[0])
    np.testing.assert_array_equal(guess.attributes[1:], told[1:])
    np.testing.assert_array_equal(guess.ratings, np.nan_to_num(row))


def test_nothing_but_chance_and_what_was_sent_decides_where_a_method_begins() -> None:
    upload, _, _ = made(InclUnc(), seed=4)
    for start in STARTS:
        solver = Solver(method="df-sane", start=start, evaluations=60)
        first, again = (solve_uploads([upload], PUBLIC, solver, CHANCE(5)).guess for _ in range(2))
        np.testing.assert_array_equal(first.ratings, again.ratings)


def test_uploads_that_equations_are_not_about_are_refused() -> None:
    one, _, _ = made(ObsOnly())
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
