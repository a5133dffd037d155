"""Users who allow only a part of the budget, where sums about items are released: stretched, or sampled."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data import partition
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import ConfigError
from cofactor.federation.channel import Failures
from cofactor.federation.door import SUM, Door
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts, Home
from cofactor.federation.host import read_arrays
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.verify import verify
from cofactor.federation.weights import PublicWeights
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
from cofactor.privacy.weights import HDPMF_USERS, Group, Weights, taking_part
from cofactor.progress import Progress
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.item_letters import GAIN_SUM, USER_SUMS, GainAsked, UsersAsked, item_sums_of
from cofactor.recipes.item_weights import drawn_to_take_part, least_weight, mean_part
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import SecureSum
from cofactor.recipes.train import train
from tests.recipes import test_item_rounds as shapes
from tests.recipes.item_parties import (
    EMPTY,
    FACTORS,
    FEATURES,
    FEW,
    LAST,
    Row,
    arrays,
    drawn,
    facts_of,
    half,
    question,
    rated,
    watched,
)
from tests.recipes.parties import ITEMS, SCALE, USERS, mse, small_ratings, transcript
from tests.recipes.test_item_halves import LOUD, RELEASES, some
from tests.recipes.test_item_sums import extreme_questions, up
from tests.recipes.test_secure_als import ALL, ROUNDS, halves, items_of, real_devices

Reals = NDArray[np.float64]
Unit = tuple[Row, float]
"""What a user has rated, and her weight."""

PROMISED, SAMPLED_AT = 4.0, 1.0
POLICY = (
    Group(name="strict", share=0.5, low=0.1, high=0.4),
    Group(name="open", share=0.5, low=0.9, high=1.0),
)
NOBODY: Unit = (EMPTY, 1.0)
WEIGHTS = (1.0, 0.999, 0.5, 0.37, 0.1, 0.01, 0.0001)


def terms(**changed: Any) -> PersonalBudget:
    usual: dict[str, Any] = {
        "epsilon": PROMISED,
        "delta": 1e-6,
        "unit": "user",
        "adjacency": "empty",
        "users": Weights.drawn(POLICY),
    }
    return PersonalBudget(**usual | changed)


both = pytest.mark.parametrize("mechanism", ["stretching", "sampling"])
STRETCHED = terms()
SAMPLED = terms(mechanism="sampling", threshold=SAMPLED_AT)


def known(budget: PersonalBudget, catalogue: Any = range(ITEMS)) -> PublicWeights:
    return PublicWeights.of(budget.users, Weights.equal(), np.array(catalogue), budget)


def at_work(
    units: tuple[Row, ...],
    weights: Any,
    budget: PersonalBudget = STRETCHED,
    recipe: Any = FEW,
    **changed: Any,
) -> Any:
    """Return the participant of users with these weights."""
    facts = changed.pop("facts", None) or facts_of(weights=known(budget))
    own = np.asarray(weights, np.float64)
    return half(recipe, rated(units), budget=budget.public, facts=facts, weights=own, **changed)


def noise_free(units: tuple[Unit, ...], round: int, asked: Any, **changed: Any) -> dict[str, Bounded]:
    rows, weights = zip(*units, strict=True)
    participant = at_work(rows, weights, round=round, **changed)
    seen = watched(participant)
    participant.handle(round, asked)
    return dict(seen)


def bound_of(what: str) -> Any:
    facts = facts_of(weights=known(STRETCHED))
    releases = FEW.settled(facts, STRETCHED.public).schedule(facts, "user", facts.parties[0]).releases
    return next(each.bound for each in releases if each.what == what)


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


def personal(federation: Federation, budget: PersonalBudget, recipe: Any = ALL, **more: Any) -> Run:
    return train(recipe, federation, budget=budget, **more)


@cache
def run_of_devices(mechanism: str) -> Run:
    """Return a training of four devices, of which some drop out."""
    away = Failures(absent=frozenset({("device-0", 1)}), silent=frozenset({("device-2", 2)}))
    budget, recipe = STRETCHED if mechanism == "stretching" else SAMPLED, replace(ALL, item_rounds=ROUNDS[:1])
    return personal(real_devices(4), budget, recipe, failures=away)


@both
def test_devices_with_weights_go_through_a_secure_sum_and_may_drop_out(mechanism: str) -> None:
    run = run_of_devices(mechanism)
    assert run.guarantee.holds, run.guarantee.why_not
    assert len(run.homes) == 4
    assert any("masked" in each.protection for each in transcript(run))
    assert [event.numbers["answered"] for event in run.events] == [3, 3, 4]


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


# Who takes part by chance.


def many(users: int, weights: Reals, random: Any, budget: PersonalBudget = SAMPLED) -> Home:
    """Return the home of many users, each with one rating."""
    each = np.arange(users)
    own = Ratings.from_rows(
        each, each % ITEMS, np.full(users, 4.0), user_ids=each, item_ids=np.arange(ITEMS), scale=SCALE
    )
    return Home(
        party=Party(name="party-0", ratings=own, weights=weights),
        facts=facts_of((users,), weights=known(budget)),
        schedule=None,
        door=Door(party="party-0", ledger=None, random=random, run="a test"),
        seed=0,
    )


def test_users_take_part_as_often_as_their_weights_allow() -> None:
    users = 40_000
    for weight in (0.01, 0.1, 0.2, 0.24):
        chance = float(taking_part(np.array([weight]), PROMISED, SAMPLED_AT)[0])
        assert 0.01 < chance < 1
        found = drawn_to_take_part(many(users, np.full(users, weight), SecureRandom())).sum()
        # Six deviations: a false alarm once in 10^8 times.
        assert abs(found - users * chance) < 6 * math.sqrt(users * chance * (1 - chance))
    assert drawn_to_take_part(many(users, np.full(users, 0.25), SecureRandom())).all()


def test_without_sampling_everybody_takes_part_and_no_chance_is_used() -> None:
    random = InsecureRandom(3)
    assert drawn_to_take_part(many(10, np.full(10, 0.1), random, STRETCHED)).all()
    np.testing.assert_array_equal(random.new_key(), InsecureRandom(3).new_key())


def test_the_public_share_of_those_who_take_part_is_about_right() -> None:
    for budget in (SAMPLED, terms(mechanism="sampling", users=Weights.drawn(HDPMF_USERS))):
        users = 40_000
        weights = budget.users.of(np.arange(users))
        found = drawn_to_take_part(many(users, weights, SecureRandom(), budget)).mean()
        # Within 6 deviations of a coin, a false alarm once in 10^8 times.
        assert abs(found - mean_part(known(budget))) < 6 * 0.5 / math.sqrt(users)
    equal = terms(mechanism="sampling", threshold=SAMPLED_AT, users=Weights.equal(0.1))
    assert mean_part(known(equal)) == pytest.approx(math.expm1(0.4) / math.expm1(1.0))


def test_who_does_not_take_part_is_as_if_she_had_rated_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    units, weights, mixed = some(3), np.full(USERS, 0.15), 0
    for seed in range(8):
        participant = at_work(units, weights, SAMPLED, random=InsecureRandom(seed))
        taking = participant.state()["taking part"]
        mixed += 0 < taking.sum() < USERS
        rest = tuple(row if taken else EMPTY for row, taken in zip(units, taking, strict=True))
        for what, round, asked in RELEASES.values():
            participant._home.door.begin(round)
            seen = watched(participant)
            participant.handle(round, asked)
            sampled = dict(seen)[what]
            alike = at_work(rest, np.ones(USERS), SAMPLED, round=round)
            seen = watched(alike)
            alike.handle(round, asked)
            np.testing.assert_array_equal(sampled.value, dict(seen)[what].value)
            assert not sampled.bound.weighed
    assert mixed > 3, "in some, a part of the users takes part"


def test_all_devices_add_noise_whether_they_take_part_or_not() -> None:
    # Nobody takes part, with a chance of 1e-12; and nothing says that too few devices are left.
    participant = at_work(some(3), [1e-4] * USERS, SAMPLED)
    devices: list[int] = []

    def share(_: Any, bounded: Bounded, **more: Any) -> NDArray[Any]:
        devices.append(more["devices"])
        return bounded.value

    participant._home.door.share = share
    participant.handle(LAST, question())
    assert set(devices) == {USERS}


def test_who_takes_part_is_drawn_once_and_survives_a_crash(tmp_path: Path) -> None:
    federation, budget = Federation.on_device(small_ratings()), replace(SAMPLED, users=Weights.equal(0.1))
    stops, kept = iter((1, 2, 4)), []

    def halt(stop: int) -> Any:
        def note(event: Progress) -> None:
            if event.step == stop:
                raise KeyboardInterrupt

        return note

    for stop in stops:
        with pytest.raises(KeyboardInterrupt):
            personal(federation, budget, folder=tmp_path, progress=halt(stop))
        kept.append(read_arrays(tmp_path / "devices.npz", "taking part")["taking part"])
    run = personal(federation, budget, folder=tmp_path)
    kept.append(read_arrays(tmp_path / "devices.npz", "taking part")["taking part"])
    assert 0 < kept[0].sum() < len(kept[0])
    for later in kept[1:]:
        # Drawn anew, all of 150 users would choose the same with a chance of 10^-20.
        np.testing.assert_array_equal(later, kept[0])
    assert 0.99 * SAMPLED_AT < (run.guarantee.epsilon or 0) <= SAMPLED_AT


# Where weights are not.


def all_arrays(folder: Path) -> Iterator[tuple[str, NDArray[Any]]]:
    for path in folder.rglob("*.npz"):
        with np.load(path, allow_pickle=False) as stored:
            yield from ((f"{path.name}: {name}", stored[name]) for name in stored.files)


@both
def test_weights_are_in_no_message_and_in_no_run_folder(mechanism: Any, tmp_path: Path) -> None:
    ratings = small_ratings()
    own = {user: 0.1 + 0.3 * k / 150 + 1e-5 for k, user in enumerate(ratings.user_ids.tolist())}
    users = Weights.by(own, groups=POLICY)
    folder = tmp_path / "session"
    run = personal(Federation.on_device(ratings), terms(users=users, mechanism=mechanism), folder=folder)
    saved = run.save(tmp_path / "run")
    names = {name for name, array in all_arrays(saved) if "taking" in name or array.dtype == np.bool_}
    assert not names
    for name, array in all_arrays(saved):
        wide = array.astype(np.float64).ravel() if array.dtype.kind == "f" else np.zeros(0)
        # A model of 150 users may hold any number once by chance, not all of theirs.
        assert not np.isin(np.array(list(own.values()), np.float32), wide.astype(np.float32)).all(), name
    texts = [path.read_text(errors="replace") for path in saved.rglob("*.json*")]
    texts += [path.read_text(errors="replace") for path in saved.rglob("*.ledger")]
    assert len(texts) >= 3
    for weight in own.values():
        assert not any(repr(weight) in text for text in texts)
    session = json.loads((folder / "session.json").read_text())["terms"]
    assert repr(next(iter(own.values()))) not in json.dumps(session)


def test_weights_that_are_missing_or_none_are_refused_without_telling_them() -> None:
    facts = facts_of(weights=known(STRETCHED))
    with pytest.raises(ConfigError, match="party-0: its users have no weights"):
        half(FEW, rated(some(1)), budget=STRETCHED.public, facts=facts)
    for bad in (np.nan, 0.0, 1.25, -0.5, 1e-9):
        for budget in (STRETCHED, SAMPLED):
            with pytest.raises(ConfigError, match=r"must lie between 0\.0001 and 1") as refused:
                at_work(some(1), [1.0, bad, 0.5, 0.5], budget)
            assert "1.25" not in str(refused.value)


# Whoever plays whom.


def test_a_cohort_a_party_and_devices_add_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    units, weights = some(2), np.array([1.0, 0.5, 0.1, 0.3])
    asked = {
        1: UsersAsked(),
        2: question(2),
        LAST: question(),
        LAST + 1: GainAsked(**arrays(ITEMS, FEATURES, FACTORS, 5)),
    }
    public = known(STRETCHED)

    def answer(facts: Facts, round: int, own: tuple[Row, ...], parts: Reals) -> Any:
        return half(FEW, rated(own), budget=None, facts=facts, round=round, weights=parts).handle(
            round, asked[round]
        )

    for round in asked:
        cohort = answer(facts_of(weights=public), round, units, weights)
        party = answer(facts_of((USERS, USERS), split="horizontal", weights=public), round, units, weights)
        alone = [
            answer(
                facts_of((USERS, USERS), split="horizontal", weights=public),
                round,
                tuple(row if k == user else EMPTY for k, row in enumerate(units)),
                weights,
            )
            for user in range(USERS)
        ]
        for name, array in cohort.arrays.items():
            np.testing.assert_array_equal(array, party.arrays[name])
            np.testing.assert_array_equal(array, sum(each.arrays[name] for each in alone))


@both
def test_parties_may_bring_weights_of_their_own(mechanism: Any) -> None:
    parties = []
    for k, part in enumerate(partition.horizontal(small_ratings(), 3, seed=1)):
        # The same ids at all parties, for different people.
        own = Ratings.from_rows(
            part.users,
            part.items,
            part.values,
            user_ids=np.arange(part.user_count),
            item_ids=part.item_ids,
            scale=Scale(1, 5),
        )
        weights = Weights.by(lambda user, k=k: 0.1 + 0.1 * k + 0.001 * user, groups=POLICY)  # type: ignore[misc]
        parties.append(Party(name=f"party-{k}", ratings=own).with_weights(weights))
    recipe = replace(ALL, item_rounds=ROUNDS[:1], gain_share=0.0, home=UsersOnly(), aggregate=SecureSum())
    run = personal(Federation.horizontal(parties, scale=Scale(1, 5)), terms(mechanism=mechanism), recipe)
    assert run.guarantee.personal is not None
    assert run.guarantee.weights is None, "parties keep what they brought"
    with pytest.raises(ConfigError, match="weights stay with the users"):
        run.guarantee.for_user(1)
    assert 0 < (run.guarantee.for_group("strict").epsilon or 0) <= 0.4 * PROMISED * (1 + 1e-9)
