"""Audits find bugs that are planted on purpose, and raise no alarm without them.

Noise repeats, so that nothing here depends on the day. The whole table is `python -m benchmarks.audit_power`.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from benchmarks.audit_power import BUGS, REPEATS, falsely_alarmed, measured
from benchmarks.audit_targets import RECIPES, SURVEYS, RecipeCase, horizontal
from benchmarks.planted_bugs import LITTLE, Bug, Faulty, forgotten_clip, honest, little_noise, unsampled_batch
from cofactor.attacks.auditing import audited
from cofactor.attacks.canary_scores import Scoring
from cofactor.attacks.survey_canaries import SurveyTarget
from cofactor.attacks.target import Target
from cofactor.federation.view import View
from cofactor.privacy import answer_noise, bounding, noise
from cofactor.privacy.fixed_point import FixedPoint
from cofactor.randomness import InsecureRandom
from cofactor.recipes.clipping import GradientClipping
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.named import classes

TIMES = 3
STEPS = HorizontalMF(rounds=1, local_steps=10, factors=4, centre=3.5, clipping=GradientClipping(limit=2.0))
SAMPLED = replace(STEPS, local_steps=20, sampling=0.1)


def small(case: RecipeCase, epsilon: float) -> Target:
    return replace(case.target(epsilon), canaries=400)


TRIALS: dict[str, tuple[Callable[[], Target], tuple[Bug, ...]]] = {
    "normal noise": (
        lambda: small(RecipeCase(recipe=STEPS, federation=horizontal(1)), 8.0),
        (little_noise, forgotten_clip),
    ),
    "sampled normal noise": (
        lambda: small(RecipeCase(recipe=SAMPLED, federation=horizontal(1)), 8.0),
        (unsampled_batch,),
    ),
    "Skellam noise": (lambda: small(RECIPES["OnDeviceMF"], 4.0), (little_noise, forgotten_clip)),
    "discrete Laplace noise": (lambda: small(RECIPES["PersonalBiases"], 1.0), (little_noise,)),
    "answers by chance": (
        lambda: SurveyTarget(method=SURVEYS["GRR"](1.0), canaries=400),
        (little_noise,),
    ),
}


@pytest.mark.parametrize("name", TRIALS)
def test_a_planted_bug_is_found_every_time_and_honest_code_raises_no_alarm(name: str) -> None:
    made, bugs = TRIALS[name]
    target, charged = made(), []
    for bug in (honest, *bugs):
        faulty = Faulty(target=target, bug=bug)
        for seed in range(TIMES):
            found = audited(faulty, seen_by="coordinator", confidence=0.95, random=InsecureRandom(seed))
            assert found.alarm is (bug is not honest), found.headline
        charged += [Counter(events) for events in faulty.charged]
    assert charged[0]
    assert all(events == charged[0] for events in charged)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "epsilon", "bugs"),
    [
        ("HorizontalMF", 8.0, ("noise x 0.3", "forgotten clip")),
        ("CentralDPSGD", 1.0, ("noise x 0.3", "forgotten clip")),
        ("OnDeviceMF", 8.0, ("noise x 0.3", "forgotten clip")),
        ("SecureALS", 8.0, ("noise x 0.3", "forgotten clip")),
        ("PersonalBiases", 1.0, ("noise x 0.3",)),
        ("LocalReports", 1.0, ("noise x 0.3",)),
        ("HorizontalMF, sampled", 8.0, ("unsampled batch",)),
    ],
)
def test_of_twenty_audits_with_a_bug_at_least_eighteen_find_it(
    name: str, epsilon: float, bugs: tuple[str, ...]
) -> None:
    for row in measured(name, epsilon, bugs, REPEATS, seed=1):
        assert row.canaries <= 1000
        assert row.power >= 0.9
        assert row.false_alarms <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["survey: SquareWave", "survey: GRR"])
def test_alarms_are_false_in_one_of_twenty_audits_at_most(name: str) -> None:
    # If it is 1 in 20, more than 86 of 1,000 have a chance below 1e-6. Answers say all that epsilon allows.
    assert 0 < falsely_alarmed(name, 1.0, 1000, seed=1) <= 86


DRAWN: dict[str, Callable[[InsecureRandom], Any]] = {
    "gaussian": lambda random: noise.gaussian(40_000, 10.0, random),
    "laplace": lambda random: noise.laplace(40_000, 10.0, random),
    "discrete Gaussian": lambda random: noise.discrete_gaussian(40_000, 50.0, random),
    "discrete Laplace": lambda random: noise.discrete_laplace(40_000, 50.0, random),
    "Skellam": lambda random: noise.skellam(40_000, 2500.0, random),
    "Skellam, of a key": lambda _: noise.skellam_of_key(40_000, 2500.0, bytes(32)),
    "Polya": lambda random: noise.polya(40_000, 50.0, Fraction(1, 2), random),
}


@pytest.mark.parametrize("name", DRAWN)
def test_little_noise_is_a_part_of_all_noise(name: str) -> None:
    before = DRAWN[name](InsecureRandom(1)).std()
    with little_noise():
        within = DRAWN[name](InsecureRandom(2)).std()
    assert within == pytest.approx(LITTLE * before, rel=0.05)
    assert DRAWN[name](InsecureRandom(1)).std() == before


def test_little_noise_makes_answers_and_coins_tell_more() -> None:
    truth, shares = np.zeros(20_000, np.int64), np.ones(20_000)

    def told() -> tuple[float, float]:
        answers = answer_noise.randomized_response(truth, 2, 0.3, InsecureRandom(1))
        heads = noise.poisson_binomial(shares, 1, 0.03, InsecureRandom(2))
        return float(np.mean(answers == 0)), float(heads.mean())

    with little_noise():
        assert told() == pytest.approx((1 / (1 + np.exp(-1.0)), 0.6), abs=0.02)
    assert told() == pytest.approx((1 / (1 + np.exp(-0.3)), 0.53), abs=0.02)


def test_a_forgotten_clip_leaves_rows_as_they_are_and_states_the_same_bound() -> None:
    rows, ends, places = np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([0, 1, 2]), np.array([0, 1])
    grid = FixedPoint(step=0.25)

    def bounded() -> list[bounding.Bounded]:
        chance = InsecureRandom(1)
        return [
            bounding.vector(rows[0], limit=1.0, unit="user"),
            bounding.table_of_users(rows, ends, places, place_count=2, limit=1.0),
            bounding.whole_vector(rows[0].astype(np.int64), limit=1, norm="l2", unit="user"),
            grid.total(rows[:1], limit=1.0, random=chance, unit="user"),
            grid.table(rows, ends, places, place_count=2, limit=1.0, random=chance),
        ]

    kept = bounded()
    with forgotten_clip():
        free = bounded()
        assert np.array_equal(grid.rows(rows[:1], limit=1.0, random=InsecureRandom(1)), rows[:1] / 0.25)
    assert [each.bound for each in free] == [each.bound for each in kept]
    for value, each in zip((rows[0], rows, rows[0], rows[0] / 0.25, rows / 0.25), free, strict=True):
        np.testing.assert_allclose(each.value, value, rtol=1e-6)
    assert all(np.linalg.norm(each.value) <= 2 * each.bound.size for each in kept)


def test_whoever_looks_replays_with_honest_code(monkeypatch: pytest.MonkeyPatch) -> None:
    faulty_now, seen = [False], []
    real = Scoring.scores

    @contextmanager
    def bug() -> Iterator[None]:
        faulty_now[0] = True
        yield
        faulty_now[0] = False

    def scores(scoring: Scoring, view: View) -> Any:
        seen.append(faulty_now[0])
        return real(scoring, view)

    monkeypatch.setattr(Scoring, "scores", scores)
    target = Faulty(target=small(RECIPES["PersonalBiases"], 1.0), bug=bug)
    target.play(np.arange(400) % 2 == 0, InsecureRandom(1))
    assert seen == [False]
    assert len(target.charged) == 1


def test_every_recipe_that_can_be_private_is_audited() -> None:
    audited_kinds = {type(each.recipe) for each in RECIPES.values()}
    never_private = {"Alone", "Pooled", "ObjectivePerturbation"}
    assert {kind.__name__ for kind in classes().values()} - never_private == {
        kind.__name__ for kind in audited_kinds
    }
    assert set(BUGS.values()) == {little_noise, forgotten_clip, unsampled_batch}
