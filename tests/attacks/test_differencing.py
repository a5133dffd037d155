"""Noise that is drawn once goes away in differences; noise that is drawn anew in hidden sums does not."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from cofactor.attacks import differencing
from cofactor.attacks.differencing import DifferencingScore, differenced, scored
from cofactor.attacks.differencing_repeats import repeating
from cofactor.attacks.differencing_solve import EXACT, solved
from cofactor.attacks.differencing_uploads import PublishedUploads
from cofactor.data.files import read_ratings
from cofactor.data.ratings import Ratings, Scale
from cofactor.data.synthetic import Shape, make
from cofactor.errors import ConfigError
from cofactor.federation.door import SUM
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.view import Capture, Captured, Truth
from cofactor.privacy.budget import Budget
from cofactor.privacy.weights import HDPMF_ITEMS, HDPMF_USERS, Weights
from cofactor.randomness import InsecureRandom
from cofactor.recipes.hdpmf import HDPMF
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.sums import PlainSum, SecureSum
from cofactor.recipes.train import train

Find = Callable[[str], Path]
ATTACKED = 6
UPLOADS = PublishedUploads(factors=4, epochs=40, rate=0.004)
RATING = Budget(epsilon=1.0, delta=1e-6, unit="rating")
USER = Budget(epsilon=1.0, delta=1e-6, unit="user")


def some_ratings() -> Ratings:
    return make(Shape(users=80, items=40, ratings=1600, minimum=8), seed=3).ratings


def single_users(ratings: Ratings, count: int, *, weighed: bool = True, seed: int = 0) -> Federation:
    """Return a federation in which some users are parties of their own, and all others one together."""
    order = np.random.default_rng(seed).permutation(ratings.user_count)
    parties = [Party(name=f"u{user}", ratings=ratings.select(users=[user])) for user in order[:count]]
    parties.append(Party(name="others", ratings=ratings.select(users=np.sort(order[count:]))))
    federation = Federation.horizontal(parties, scale=ratings.scale)
    if not weighed:
        return federation
    items = Weights.drawn(HDPMF_ITEMS, seed=1_000_003)
    return federation.with_weights(Weights.drawn(HDPMF_USERS, seed=seed), items)


FEDERATION = single_users(some_ratings(), ATTACKED)


def captured(run: Run) -> Captured:
    assert run.captured is not None
    return run.captured


@cache
def uploaded(noise: Any) -> Captured:
    random = InsecureRandom(4)
    return captured(
        train(replace(UPLOADS, noise=noise), FEDERATION, seed=1, random=random, capture="coordinator")
    )


def spreads_of(kept: Captured) -> list[NDArray[np.float64]]:
    """Return the deviations of the noise of each number that raters add, epoch by epoch."""
    asked = kept.view("coordinator").messages("UploadsAsked", receiver="others")
    return [each.arrays["spreads"] for each in asked]


def item_weights(federation: Federation = FEDERATION) -> NDArray[np.float64]:
    assert federation.weights is not None
    return federation.weights.items


def attacked(noise: Any, **known: Any) -> DifferencingScore:
    kept = uploaded(noise)
    found = differenced(kept.view("coordinator"), item_weights=item_weights(), **known)
    assert len(found) == ATTACKED
    return scored(found, kept.truth)


# The published messages.


def test_uploads_are_line_five_of_the_algorithm_and_items_follow_their_sum() -> None:
    kept = uploaded("none")
    ratings, weights = kept.truth.ratings, item_weights()
    view = kept.view("coordinator")
    questions = {each.round: each.arrays["vectors"] for each in view.messages("UploadsAsked")}
    for round in (2, 3):
        total = np.zeros_like(questions[round])
        for answer in view.messages("Uploads", round=round):
            np.add.at(total, answer.arrays["items"], answer.arrays["gradients"])
        rate = UPLOADS.rate_in(round - 2)
        moved = questions[round] - rate * (total + 2 * UPLOADS.penalty * questions[round])
        np.testing.assert_allclose(questions[round + 1], moved, rtol=1e-12)
    # Of a single user: rank one, u times errors that W R and u . v make.
    party = FEDERATION.parties[0]
    assert party.weights is not None
    answer = next(view.messages("Uploads", round=9, sender=party.name))
    own, items = answer.arrays["gradients"], answer.arrays["items"]
    np.testing.assert_array_equal(items, np.sort(ratings[party.name].items))
    _, sizes, right = np.linalg.svd(own)
    assert sizes[1] < 1e-12 * sizes[0]
    direction = right[0]
    values = ratings[party.name].values[np.argsort(ratings[party.name].items)]
    stretched = party.weights[0] * weights[items] * values

    def error(length: float) -> float:
        errors = 2 * length * (length * questions[9][items] @ direction - stretched)
        return float(np.abs(own @ direction - errors).max())

    least = min(minimize_scalar(error, bounds=ends, method="bounded").fun for ends in ((-1, 0), (0, 1)))
    assert least < 1e-3 * np.abs(own).max()


def test_noise_is_that_of_theorem_2_and_is_drawn_once_or_anew() -> None:
    spreads = {noise: spreads_of(uploaded(noise)) for noise in ("fixed", "fresh", "none")}
    assert not np.any(spreads["none"])
    assert all(np.array_equal(each, spreads["fixed"][0]) for each in spreads["fixed"])
    assert not np.array_equal(spreads["fresh"][0], spreads["fresh"][1])
    raters = np.bincount(some_ratings().items, minlength=40)[:, None]
    scale = 2 * np.sqrt(UPLOADS.factors) * 4 / UPLOADS.epsilon
    hidden = np.concatenate([each**2 * raters / (2 * scale**2) for each in spreads["fresh"]])
    # Exp(1): mean and deviation 1, over 6,400 numbers.
    assert hidden.mean() == pytest.approx(1.0, abs=6 / np.sqrt(hidden.size))
    assert np.quantile(hidden, 0.5) == pytest.approx(np.log(2), abs=0.08)


def test_they_take_no_budget_and_say_that_they_are_not_private() -> None:
    with pytest.raises(ConfigError, match="takes no budget"):
        train(UPLOADS, single_users(some_ratings(), 2, weighed=False), budget=RATING)
    run = train(replace(UPLOADS, epochs=2), FEDERATION)
    assert not run.guarantee.holds
    assert "single users' gradients" in str(run.guarantee)


# The attack.


@pytest.mark.parametrize("known", [True, False])
def test_noise_drawn_once_hides_no_rating(known: bool) -> None:
    own = {p.name: float(p.weights[0]) for p in FEDERATION.parties[:-1] if p.weights is not None}
    found = attacked("fixed", user_weights=own if known else None)
    assert found.accuracy == found.exact_users == found.explained == 1.0
    assert found.trivial < 0.6
    assert found.users == ATTACKED
    assert "100.0% were guessed exactly" in str(found)


def test_two_rounds_are_enough() -> None:
    assert attacked("fixed", rounds=(3, 41)).accuracy == 1.0


def test_noise_drawn_anew_resists_differencing() -> None:
    found = attacked("fresh", starts=2)
    assert found.explained == 0.0
    assert found.accuracy < found.trivial


def test_the_attack_knows_nothing_that_the_recommender_does_not() -> None:
    view = uploaded("fixed").view("coordinator")
    assert {each.sender for each in view.seen} == {"coordinator", *(p.name for p in FEDERATION.parties)}
    again = replace(view, seen=tuple(each for each in view.seen if each.round in (3, 12, 41)))
    assert differenced(again, item_weights=item_weights())[0].rounds == (3, 12, 41)


@cache
def mended(aggregate: Any) -> Captured:
    federation = single_users(some_ratings(), ATTACKED, weighed=False)
    recipe = HDPMF(factors=4, aggregate=aggregate)
    return captured(train(recipe, federation, budget=USER, random=InsecureRandom(2), capture="coordinator"))


@pytest.mark.slow
@pytest.mark.parametrize("aggregate", [SecureSum(dropout=0.0), PlainSum()])
def test_the_mended_recipe_gives_no_more_than_a_guess(aggregate: Any) -> None:
    kept = mended(aggregate)
    found = differenced(kept.view("coordinator"), starts=1)
    single = [each.name for each in FEDERATION.parties[:-1]]
    assert [each.sender for each in found] == ([SUM] if isinstance(aggregate, SecureSum) else single)
    score = scored(found, kept.truth)
    assert score.explained == 0.0
    assert score.accuracy < score.trivial + 0.05


def test_it_says_where_it_does_not_apply() -> None:
    federation = single_users(some_ratings(), 2, weighed=False)
    other = captured(train(SecureALS(factors=1), federation, capture="coordinator"))
    with pytest.raises(ConfigError, match="for uploads of PublishedUploads and HDPMF, and this is SecureALS"):
        differenced(other.view("coordinator"))
    plain = HDPMF(factors=2, rounds=2, aggregate=PlainSum())
    noiseless = captured(train(plain, federation, capture="coordinator"))
    with pytest.raises(ConfigError, match="no noise on them"):
        differenced(noiseless.view("coordinator"))
    view = uploaded("fixed").view("coordinator")
    with pytest.raises(ConfigError, match="no messages were captured"):
        differenced(replace(view, seen=()))
    once = replace(view, seen=tuple(each for each in view.seen if each.round == 5))
    with pytest.raises(ConfigError, match="no uploads of one user in two rounds"):
        differenced(once)
    with pytest.raises(ConfigError, match="no uploads of 'nobody' were seen"):
        differenced(view, senders=["nobody"])
    with pytest.raises(ConfigError, match=r"two rounds or more .* Got 3\."):
        differenced(view, rounds=[3])
    with pytest.raises(ConfigError, match="no guesses"):
        scored((), Truth())


def test_of_weights_that_fit_alike_the_one_with_usual_ratings_is_taken() -> None:
    scale = Scale(1, 5, 1)
    # 2, 4, 4 and 4 of weight 0.2, or 1, 2, 2 and 2 of weight 0.4.
    assert differencing._fitting_weight(np.array([0.4, 0.8, 0.8, 0.8]), scale) == pytest.approx(0.2)
    # With a 3 among them there is no doubt.
    assert differencing._fitting_weight(np.array([0.4, 0.8, 1.2, 0.8]), scale) == pytest.approx(0.4)
    assert differencing._fitting_weight(np.zeros(3), scale) == 1.0


# The solver.


def test_the_solver_finds_what_explains_everything_whatever_is_the_same_in_all_epochs() -> None:
    random = np.random.default_rng(8)
    users = 0.7 * random.normal(size=(3, 5)) / np.sqrt(5)
    vectors, told = random.normal(size=(3, 30, 5)), random.uniform(0.2, 4.0, 30)
    errors = np.einsum("tk,tjk->tj", users, vectors) - told
    constant = 50 * random.normal(size=(30, 5))
    gradients = 2 * errors[:, :, None] * users[:, None, :] + constant
    found = solved(gradients, vectors, random)
    assert found.misfit < EXACT
    np.testing.assert_allclose(found.stretched, told, rtol=1e-6)
    np.testing.assert_allclose(found.users, users, rtol=1e-6)
    lost = solved(gradients + random.normal(size=gradients.shape), vectors, random, starts=2)
    assert lost.misfit > 0.01


# Whether noise repeats, in any messages.


def test_noise_that_repeats_shows_in_any_messages_and_fresh_noise_does_not() -> None:
    for noise, alarming in (("fixed", True), ("fresh", False)):
        kept = uploaded(noise)
        view = kept.view("coordinator")
        late = replace(view, seen=tuple(each for each in view.seen if each.round > 30))
        promised = {"gradients": float(np.sqrt(np.mean(spreads_of(kept)[0] ** 2)))}
        single = [each for each in repeating(late, promised=promised) if each.sender != "others"]
        assert len(single) == 10 * ATTACKED
        assert all(each.alarming == alarming for each in single), noise


def test_secure_sums_say_what_noise_they_have_and_have_it_afresh() -> None:
    kept = mended(SecureSum(dropout=0.0))
    (found,) = repeating(kept.view("coordinator"))
    assert (found.sender, found.array, found.rounds) == (SUM, "gradients", (1, 2))
    # All parties' noise is more than that of the honest ones, which was promised.
    assert found.part is not None
    assert 0.9 < found.part < 2.0
    assert not found.alarming
    with pytest.raises(ConfigError, match="no messages were captured"):
        repeating(replace(kept.view("coordinator"), seen=()))


# Real data.


@pytest.mark.slow
def test_ratings_of_movielens_come_out_exactly_and_none_of_the_mended_recipe(real_data: Find) -> None:
    ratings = read_ratings(real_data("ml-100k.inter"))
    federation = single_users(ratings, 60)
    rounds = Capture("coordinator", rounds=(1, 4, 12, 26, 62, 101))
    kept = captured(train(PublishedUploads(), federation, seed=1, capture=rounds))
    guesses = differenced(kept.view("coordinator"), item_weights=item_weights(federation))
    score = scored(guesses, kept.truth)
    assert score.users == 60
    assert score.exact_users >= 0.95
    assert score.accuracy >= 0.95
    assert score.seconds_each < 5

    unweighed = single_users(ratings, 60, weighed=False)
    mended = captured(train(HDPMF(), unweighed, budget=USER, capture="coordinator"))
    resisted = scored(differenced(mended.view("coordinator"), starts=3), mended.truth)
    assert resisted.explained == 0.0
    assert resisted.accuracy < resisted.trivial
