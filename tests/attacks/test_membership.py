from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.attacks import membership_rounds
from cofactor.attacks.membership import membership, split_by_membership
from cofactor.attacks.membership_errors import errors, usual_errors
from cofactor.attacks.membership_figures import NO_COINS, told_apart
from cofactor.attacks.membership_rounds import membership_in_rounds
from cofactor.attacks.replay import Setting
from cofactor.data.files import read_ratings
from cofactor.data.partition import horizontal
from cofactor.data.ratings import Ratings
from cofactor.data.synthetic import Shape, make
from cofactor.errors import ConfigError, DataError, RunError
from cofactor.factors.als import ALS
from cofactor.factors.implicit import ImplicitALS
from cofactor.factors.sgd import SGD
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.privacy.budget import Budget
from cofactor.privacy.one_run import Curve
from cofactor.randomness import InsecureRandom
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.pooled import Pooled
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.train import train

ALL = make(Shape(users=300, items=150, ratings=12_000), seed=3).ratings
IN = np.random.default_rng(1).random(300) < 0.5
ONE = Budget(epsilon=1.0, delta=1e-6, unit="user")


def parties(ratings: Ratings, count: int = 2) -> Federation:
    dealt = horizontal(ratings, count)
    return Federation.horizontal(
        [Party(name=f"party {place}", ratings=own) for place, own in enumerate(dealt)]
    )


@pytest.fixture(scope="module")
def pooled() -> Run:
    return train(Pooled(model=ALS(factors=30)), ALL.select(users=IN), seed=1)


def test_members_of_a_pooled_model_are_told_apart(pooled: Run) -> None:
    members = split_by_membership(pooled, ALL)
    np.testing.assert_array_equal(members, IN)
    found = told_apart(membership(pooled.model, ALL), members, confidence=0.999999)  # type: ignore[arg-type]
    assert found.succeeded
    assert found.auc > 0.8
    assert found.found_at_5 > 0.3
    assert found.advantage > 0.4


def test_a_reference_model_of_others_can_stand_for_the_means() -> None:
    third = np.random.default_rng(2).integers(3, size=300)
    one, other = (ALS(factors=30).fit(ALL.select(users=third == kind), seed=1) for kind in (1, 2))
    candidates, members = ALL.select(users=third < 2), third[third < 2] == 1
    assert told_apart(membership(one, candidates, reference=other), members).auc > 0.8
    # Compared with itself a model tells nothing.
    assert not membership(one, candidates, reference=one).any()


def test_members_of_a_private_run_are_not_told_apart() -> None:
    run = train(
        HorizontalMF(rounds=10, home=UsersOnly()),
        parties(ALL.select(users=IN)),
        budget=ONE,
        seed=1,
        random=InsecureRandom(1),
        capture="public",
    )
    assert run.captured is not None
    found = told_apart(membership(run.captured.view("public"), ALL), split_by_membership(run, ALL))
    assert not found.succeeded
    assert found.auc < 0.6


def test_rounds_without_noise_tell_more_than_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    federation, recipe = parties(ALL.select(users=IN)), SecureALS()
    run = train(recipe, federation, seed=1, capture="coordinator")
    assert run.captured is not None
    candidates, members = ALL.select(users=np.arange(60)), IN[:60]
    setting = Setting(
        recipe=recipe.settled(federation.facts, None), facts=federation.facts, unit=None, seed=1
    )
    by_rounds = told_apart(
        membership_in_rounds(run.captured.view("coordinator"), candidates, setting), members
    )
    by_model = told_apart(membership(run.captured.view("public"), candidates), members)
    assert by_rounds.auc > by_model.auc
    assert by_rounds.auc_low > 0.65
    monkeypatch.setattr(membership_rounds, "_MOST", 10_000)
    with pytest.raises(DataError, match="Give at most"):
        membership_in_rounds(run.captured.view("coordinator"), candidates, setting)
    with pytest.raises(DataError, match="saw no answers"):
        membership_in_rounds(run.captured.view("public"), candidates, setting)


@pytest.mark.parametrize("implicit", [False, True])
def test_ratings_left_out_are_predicted_as_if_they_had_never_been_there(implicit: bool) -> None:
    told = ALL.without_values() if implicit else ALL
    model = ImplicitALS().fit(told, seed=1) if implicit else ALS(factors=30).fit(told, seed=1)
    user, home = told.select(users=[7]), model.home
    assert home is not None
    items, values = user.item_ids[user.by_user.index].tolist(), user.by_user.values.tolist()
    # A fold-in counts its prior by the number of ratings, which is one less here.
    grown = (len(values) / (len(values) - 1)) ** home.growth
    folding = replace(model, home=replace(home, precision=home.precision * grown))
    wrong = []
    for place, item in enumerate(items):
        others = {each: value for each, value in zip(items, values, strict=True) if each != item}
        free = replace(folding.fold_in(others), scale=None)
        wrong.append(values[place] - float(free.predict("new user", [item])[0]))
    found, known = errors(model, user)
    assert known[0] == len(values)
    assert found[0] == pytest.approx(np.mean(np.square(wrong)), rel=1e-4)


def test_means_are_those_of_the_other_ratings() -> None:
    model = SGD(factors=1, epochs=1).fit(ALL, seed=1)
    user = ALL.select(users=[3])
    above = user.by_user.values - model.mean - model.item_bias[user.by_user.index]
    expected = [np.delete(above, place).mean() for place in range(len(above))]
    assert usual_errors(model, user)[0] == pytest.approx(np.mean(np.square(above - expected)), rel=1e-5)


def test_scores_do_not_follow_the_number_of_ratings(pooled: Run) -> None:
    assert pooled.model is not None
    scores = membership(pooled.model, ALL)
    assert abs(np.corrcoef(scores, np.log(np.diff(ALL.by_user.ptr)))[0, 1]) < 1e-6


def test_who_has_hardly_rated_a_known_item_gets_no_score(pooled: Run) -> None:
    assert pooled.model is not None
    strange = Ratings.from_arrays([1, 1, 1, 1, 2, 2], [1, 2, 3, 4, 1, 999], [5.0, 1, 5, 1, 3, 3])
    scores = membership(pooled.model, strange)
    assert scores[1] == 0.0
    with pytest.raises(DataError, match="Are their ids the same"):
        membership(pooled.model, Ratings.from_arrays([1, 1, 1], ["a", "b", "c"], [1.0, 2, 3]))


def test_candidates_of_one_kind_are_refused(pooled: Run) -> None:
    for chosen, says in ((IN, "0 of .* candidates were not"), (~IN, "0 of .* candidates were in")):
        with pytest.raises(DataError, match=says):
            split_by_membership(pooled, ALL.select(users=chosen))
    with pytest.raises(RunError, match="does not say who was in"):
        split_by_membership(replace(pooled, model=None), ALL)
    with pytest.raises(DataError, match="too few"):
        told_apart(np.arange(20.0), np.arange(20) < 5)


def test_nobody_is_folded_into_a_model_that_was_not_published(pooled: Run) -> None:
    run = train(HorizontalMF(rounds=1), parties(ALL.select(users=IN)), seed=1, capture="coordinator")
    assert run.captured is not None
    view = replace(run.captured.view("coordinator"), model=None)
    with pytest.raises(RunError, match="membership_in_rounds"):
        membership(view, ALL)


def test_figures_are_those_of_known_scores() -> None:
    scores = np.concatenate([np.arange(100.0), np.arange(50.0, 150.0)])
    members = np.arange(200) >= 100
    found = told_apart(scores, members)
    # A member is above: 50 of 100 surely, and of the others half of the time, ties by half.
    assert found.auc == pytest.approx(0.875)
    assert found.advantage == pytest.approx(0.5)
    assert (found.found_at_1, found.found_at_5) == (0.51, 0.55)
    assert found.auc_low < 0.875 < found.auc_high
    assert found.notes == (NO_COINS,)
    assert found.one_run is None
    assert "epsilon at least" not in found.figures()


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    chance, covered = np.random.default_rng(8), 0
    for _ in range(400):
        members = np.arange(80) < 40
        scores = chance.normal(size=80) + members
        found = told_apart(scores, members, confidence=0.9)
        covered += found.auc_low <= 0.7602 <= found.auc_high  # Phi(1 / sqrt(2))
    assert 0.86 < covered / 400 < 0.94


def test_where_all_members_are_above_all_others_the_interval_ends_at_one() -> None:
    found = told_apart(np.arange(40.0), np.arange(40) >= 20)
    assert found.auc == 1.0
    assert 0.5 < found.auc_low < found.auc_high <= 1.0
    assert not told_apart(np.zeros(40), np.arange(40) >= 20).succeeded


def test_with_coins_something_is_proved() -> None:
    chance = np.random.default_rng(2)
    members = chance.random(400) < 0.5
    found = told_apart(
        chance.normal(size=400) + 6 * members, members, by_coins=True, promised=Curve.pure(1.0)
    )
    assert found.one_run is not None
    assert found.one_run.refuted
    assert found.one_run.epsilon_at_least > 2
    assert found.notes == ()
    assert float(found.figures()["epsilon at least"]) > 2  # type: ignore[arg-type]


def test_users_of_a_vertical_federation_are_no_secret(pooled: Run) -> None:
    halves = [ALL.select(items=np.arange(75)), ALL.select(items=np.arange(75, 150))]
    federation = Federation.vertical([Party(name=f"p{at}", ratings=own) for at, own in enumerate(halves)])
    setting: Any = Setting(recipe=None, facts=federation.facts, unit=None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no secret"):
        membership_in_rounds(None, ALL, setting)  # type: ignore[arg-type]


@pytest.mark.slow
def test_on_real_ratings_plain_items_tell_members_and_private_ones_do_not(
    real_data: Callable[[str], Path],
) -> None:
    ratings = read_ratings(real_data("ml-100k.inter"))
    chosen = np.random.default_rng(0).random(ratings.user_count) < 0.5
    learn = ratings.select(users=chosen)
    plain = train(Pooled(model=ALS()), learn, seed=1)
    assert plain.model is not None
    assert told_apart(membership(plain.model, ratings), chosen).auc > 0.85
    third = np.random.default_rng(0).integers(3, size=ratings.user_count)
    one, other = (ALS().fit(ratings.select(users=third == kind), seed=1) for kind in (1, 2))
    candidates, members = ratings.select(users=third < 2), third[third < 2] == 1
    without, with_it = (
        told_apart(membership(one, candidates, reference=each), members).auc for each in (None, other)
    )
    assert with_it > without > 0.85
    for recipe in (SecureALS(), HorizontalMF(home=UsersOnly())):
        run = train(recipe, parties(learn, 4), budget=ONE, seed=1)
        assert run.model is not None
        assert told_apart(membership(run.model, ratings), chosen, confidence=0.9999).auc_low < 0.5
