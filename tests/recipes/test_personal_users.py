"""Users who allow only a part of the budget, where sums about items are released: stretched, or sampled."""

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.ratings import Scale
from cofactor.federation.door import SUM
from cofactor.federation.federation import Federation
from cofactor.federation.verify import verify
from cofactor.privacy import fixed_point
from cofactor.privacy.accountant import spent
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.coverage import assert_noise_covers
from cofactor.privacy.losses import FINE_ORDERS
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.personal import PersonalBudget, weighed
from cofactor.privacy.sensitivity import assert_weighed
from cofactor.privacy.weights import HDPMF_USERS, Weights
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.recipes.item_letters import GAIN_SUM, USER_SUMS, UsersAsked, item_sums_of
from cofactor.recipes.item_weights import least_weight, mean_part
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.train import train
from tests.recipes import test_item_rounds as shapes
from tests.recipes.item_parties import (
    EMPTY,
    FEW,
    LAST,
    drawn,
    facts_of,
    half,
    question,
    rated,
    watched,
)
from tests.recipes.parties import USERS, mse, small_ratings, transcript
from tests.recipes.test_item_halves import LOUD, RELEASES, some
from tests.recipes.test_item_sums import extreme_questions, up
from tests.recipes.test_secure_als import ALL, halves, items_of
from tests.recipes.weighed_users import (
    NOBODY,
    PROMISED,
    SAMPLED,
    STRETCHED,
    WEIGHTS,
    Unit,
    at_work,
    both,
    bound_of,
    known,
    noise_free,
    run_of_devices,
    terms,
)

# A user of weight w changes everything by at most w times the bound.


def any_user(chance: np.random.Generator) -> Unit:
    return drawn(chance), float(chance.choice(WEIGHTS))


DATASETS = Datasets(draw=any_user, count=USERS, empty=NOBODY)


def weight_of(unit: Unit) -> float:
    return unit[1]


def worst(weight: float) -> Neighbours:
    others = tuple((row, 1.0) for row in some(1)[1:])
    return Neighbours(units=((LOUD, weight), *others), which=0, other=NOBODY)


@pytest.mark.parametrize(("what", "round", "asked"), RELEASES.values(), ids=RELEASES)
def test_a_user_changes_a_release_by_no_more_than_her_weight_allows(
    monkeypatch: pytest.MonkeyPatch, what: str, round: int, asked: Any
) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    reached = () if what == GAIN_SUM else (worst(1.0), worst(0.5), worst(0.1))
    assert_weighed(
        lambda units: noise_free(units, round, asked)[what],
        bound_of(what),
        DATASETS,
        weight_of=weight_of,
        worst_cases=reached,
        pairs=16,
        climbs=16,
    )


@pytest.mark.parametrize(("name", "asked"), extreme_questions()[::9])
def test_no_question_lets_a_user_change_more(monkeypatch: pytest.MonkeyPatch, name: str, asked: Any) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    cached = cache(lambda units: noise_free(units, LAST, asked))
    for what in RELEASES["items, with tastes"][0], RELEASES["spread"][0]:
        assert_weighed(
            lambda units, what=what: cached(units)[what],  # type: ignore[misc]
            bound_of(what),
            DATASETS,
            weight_of=weight_of,
            pairs=4,
            climbs=2,
        )


def test_who_only_chose_is_bounded_by_her_weight_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    recipe = replace(FEW, item_rounds=(replace(FEW.steps[0]),))
    facts = facts_of(weights=known(STRETCHED), implicit=True, scale=Scale(0, 1))
    settled = recipe.settled(facts, STRETCHED.public)
    bound = settled.schedule(facts, "user", "party-0").releases[1].bound

    def release(units: tuple[Unit, ...]) -> Bounded:
        rows, weights = zip(*units, strict=True)
        happened = rated(tuple(tuple(x and 1.0 for x in row) for row in rows)).without_values()
        own = np.array(weights)
        participant = half(recipe, happened, budget=STRETCHED.public, facts=facts, round=2, weights=own)
        seen = watched(participant)
        participant.handle(2, question(2))
        return dict(seen)[item_sums_of(1)]

    cases = (worst(1.0), worst(0.1))
    assert_weighed(release, bound, DATASETS, weight_of=weight_of, worst_cases=cases, pairs=12, climbs=12)


def test_what_a_user_adds_is_multiplied_by_her_weight() -> None:
    for what, round, asked in RELEASES.values():
        row = some(1)[0] if what == GAIN_SUM else LOUD
        nobody = ((EMPTY, 1.0),) * (USERS - 1)
        whole = noise_free(((row, 1.0), *nobody), round, asked)[what].value
        part = noise_free(((row, 0.25), *nobody), round, asked)[what].value
        assert np.abs(whole).max() > 100
        np.testing.assert_allclose(part, 0.25 * whole, atol=0.01 * np.abs(whole).max() + 2)


@pytest.mark.parametrize("mechanism", [STRETCHED, SAMPLED], ids=["stretching", "sampling"])
def test_noise_covers_every_number_however_little_users_allow(mechanism: PersonalBudget) -> None:
    def release(units: tuple[Unit, ...]) -> NDArray[np.int64]:
        rows, weights = zip(*units, *[(EMPTY, 0.1)] * 2, strict=True)
        found = []
        for round, asked in ((1, UsersAsked()), (LAST, question()), RELEASES["gain"][1:]):
            own = at_work(rows, weights, mechanism, round=round, random=SecureRandom())
            found += [array.ravel() for array in own.handle(round, asked).arrays.values()]
        return np.concatenate(found)

    # Numbers have noise of hundreds of steps: that one of them never moves in 5 runs has a chance below 1e-8.
    assert_noise_covers(release, "empty", replace(DATASETS, count=2), runs=5)


@pytest.mark.parametrize("mechanism", [STRETCHED, SAMPLED], ids=["stretching", "sampling"])
def test_a_sum_has_all_of_its_noise_whoever_takes_part(mechanism: PersonalBudget) -> None:
    # 60 answers of 24 numbers: the variance of 1,440 draws is off by a quarter once in 10^10 times.
    first = at_work((EMPTY,) * USERS, [1e-4] * USERS, mechanism)
    release = next(each for each in first._home.schedule.releases if each.what == item_sums_of(3))
    promised = release.mechanism.noise_size(release.bound) ** 2
    answers = [
        at_work((EMPTY,) * USERS, [1e-4] * USERS, mechanism, random=SecureRandom()).handle(LAST, question())
        for _ in range(60)
    ]
    # Of four devices one may collude, so that three make all of the noise, and four make 4/3 of it.
    assert np.var(np.concatenate([each.items for each in answers])) == pytest.approx(
        4 / 3 * promised, rel=0.25
    )


# What is made of the sums.


def test_weights_of_1_change_nothing() -> None:
    federation, plain = Federation.on_device(small_ratings()), Budget(epsilon=4.0, delta=1e-6, unit="user")
    budget = terms(users=Weights.equal(1.0))
    first, second = (train(ALL, federation, budget=b, random=InsecureRandom(1)) for b in (plain, budget))
    np.testing.assert_array_equal(items_of(first), items_of(second))
    assert first.recipe == second.recipe
    assert first.guarantee.epsilon == second.guarantee.epsilon


def test_if_all_have_half_a_weight_the_sums_tell_the_same_without_noise() -> None:
    federation = Federation.on_device(small_ratings(), scale=Scale(1, 5))
    whole = items_of(train(ALL, federation))
    part = items_of(train(ALL, federation.with_weights(Weights.equal(0.5))))
    np.testing.assert_allclose(np.abs(part), np.abs(whole), rtol=0.02, atol=0.05)


def test_if_all_have_half_a_weight_rounds_and_noise_are_those_of_twice_the_noise() -> None:
    facts = shapes.facts_of(*shapes.HUNDRED_K)
    budget = terms(epsilon=4.0, users=Weights.equal(0.5))
    weighted = replace(facts, weights=known(budget, facts.catalogue))
    settled = SecureALS().settled(weighted, budget.public)
    plain = SecureALS().settled(facts, Budget(epsilon=4.0, delta=1e-6, unit="user"))
    half_of_it = SecureALS().settled(facts, Budget(epsilon=2.0, delta=1e-6, unit="user"))
    assert settled.item_rounds == half_of_it.item_rounds != plain.item_rounds
    # What the coordinator reckons with is as much noise as half of epsilon would have, or a little more.
    noise = settled.noise_of(item_sums_of(1), weighted) / mean_part(weighted.weights)
    assert noise == pytest.approx(half_of_it.noise_of(item_sums_of(1), facts), rel=0.1)


@both
def test_as_many_users_are_believed_in_as_there_are(mechanism: Any) -> None:
    users, budget = 2000, terms(mechanism=mechanism)
    facts = replace(facts_of((users,)), weights=known(budget))
    settled = FEW.settled(facts, budget.public)
    step = settled.grid(USER_SUMS, facts).step
    coordinator = settled.coordinator(facts, 0)
    told = users * mean_part(facts.weights) * np.array([1.0, 0.3]) / step
    reply: Any = at_work(some(1), np.ones(USERS), budget, round=1).handle(1, UsersAsked())
    coordinator.take(1, {SUM: replace(reply, sums=np.rint(told).astype(np.int64))})
    assert coordinator.state()["users"] == pytest.approx(users, rel=1e-3)
    assert coordinator.state()["mean"] == pytest.approx(0.6, abs=0.01)


def test_grids_are_as_fine_as_the_least_weight_of_the_policy_needs() -> None:
    assert least_weight(None) == least_weight(known(SAMPLED)) == 1.0
    assert least_weight(known(STRETCHED)) == pytest.approx(math.sqrt(0.1))
    assert least_weight(known(terms(users=Weights.equal(1.0)))) == 1.0
    assert least_weight(known(terms(users=Weights.by(lambda _: 0.3)))) == pytest.approx(math.sqrt(0.05))
    facts = facts_of(weights=known(STRETCHED))
    what = item_sums_of(1)
    plain = FEW.settled(facts_of(), STRETCHED.public).grid(what, facts_of())
    assert FEW.settled(facts, STRETCHED.public).grid(what, facts).step <= plain.step / 2


def personal_error(budget: Budget) -> float:
    learn, test = halves()
    run = train(SharedBiases(), Federation.on_device(learn), budget=budget, random=InsecureRandom(1))
    return mse(run.homes, Federation.on_device(test))


@pytest.mark.slow
def test_it_pays_that_not_all_need_be_as_strict_as_the_strictest() -> None:
    users = Weights.drawn(HDPMF_USERS)
    all_of_it = personal_error(Budget(epsilon=4.0, delta=1e-6, unit="user"))
    stretched = personal_error(terms(users=users))
    sampled = personal_error(terms(users=users, mechanism="sampling"))
    strictest = personal_error(Budget(epsilon=0.4, delta=1e-6, unit="user"))
    assert all_of_it < stretched < strictest - 0.02
    assert all_of_it < sampled < strictest


# What each is promised.


@pytest.mark.parametrize("recipe", [SharedBiases(), SecureALS()])
@pytest.mark.parametrize(
    ("shape", "epsilon"), [(shapes.MILLION, 0.3), (shapes.HUNDRED_K, 1.0), (shapes.MILLION, 4.0)]
)
def test_all_rounds_together_cost_a_user_no_more_than_her_part(
    recipe: Any, shape: shapes.Shape, epsilon: float
) -> None:
    budget, facts = terms(epsilon=epsilon, users=Weights.drawn(HDPMF_USERS)), shapes.facts_of(*shape)
    facts = replace(facts, weights=known(budget, facts.catalogue))
    settled = recipe.settled(facts, budget.public)
    events = calibrated(settled.schedule(facts, "user", "devices"), budget.public).events()
    assert len(events) == len({event.what for event in events}) > 3
    for weight in (1.0, 0.9999, 0.999, 0.99, 0.9, 0.7, 0.5, 0.3, 0.1, 0.05, 0.01, 0.001, 0.0001):
        lost = spent(weighed(events, weight), budget.delta, unit="user", orders=FINE_ORDERS).epsilon
        assert lost <= weight * epsilon
    assert spent(events, budget.delta, unit="user").epsilon > 0.99 * epsilon


@pytest.mark.parametrize("mechanism", ["stretching", pytest.param("sampling", marks=pytest.mark.slow)])
def test_devices_with_weights_go_through_a_secure_sum_and_may_drop_out(mechanism: str) -> None:
    run = run_of_devices(mechanism)
    assert run.guarantee.holds, run.guarantee.why_not
    assert len(run.homes) == 4
    assert any("masked" in each.protection for each in transcript(run))
    assert [event.numbers["answered"] for event in run.rounds] == [3, 3, 4]


@both
def test_users_and_groups_are_told_what_they_are_promised(mechanism: str, tmp_path: Path) -> None:
    run, budget = run_of_devices(mechanism), STRETCHED
    for user in range(4):
        own = run.guarantee.for_user(user)
        assert own.holds
        assert 0 < (own.epsilon or 0) <= budget.for_user(user).epsilon * (1 + 1e-9)
    strict, free = (run.guarantee.for_group(name).epsilon or 0 for name in ("strict", "open"))
    assert 0 < strict <= 0.4 * PROMISED * (1 + 1e-9)
    assert strict <= free <= PROMISED
    assert verify(run.save(tmp_path / "run")).holds


@both
def test_letters_of_all_devices_are_alike_whatever_their_weights(mechanism: str) -> None:
    sent: dict[str, list[Any]] = {}
    for each in transcript(run_of_devices(mechanism)):
        if each.sender.startswith("device") and each.round == 3:
            sent.setdefault(each.sender, []).append((each.kind, each.bytes, each.protection))
    assert len(sent) == 4
    assert all(letters == sent["device-0"] for letters in sent.values())


def test_a_guarantee_says_how_weights_are_kept() -> None:
    stretched, sampled = (run_of_devices(each).guarantee for each in ("stretching", "sampling"))
    assert any("at most w times what one of weight 1 may add" in each for each in stretched.covers)
    assert any("chance decides at home, once for all rounds" in each for each in sampled.covers)
    assert any("nobody learns whose ratings go into sums" in each.what for each in sampled.assumptions)
    facts, plain = facts_of(), Budget(epsilon=4.0, delta=1e-6, unit="user")
    told = FEW.settled(facts, plain).promise(facts, plain)
    assert len(told.covers) == len(stretched.covers) - 1 == len(sampled.covers) - 1
