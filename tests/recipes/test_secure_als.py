"""`SharedBiases` and `SecureALS` from end to end: what is charged, who may drop out, what is learned."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.config import as_table, from_table
from cofactor.data import partition
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings, Scale
from cofactor.data.split import by_fraction
from cofactor.data.synthetic import Shape, Synthetic, make
from cofactor.errors import ConfigError, DataError
from cofactor.evaluate.ranking import ranking
from cofactor.factors.baselines import PersonalRidge, Popularity, UserMean
from cofactor.factors.model import Factors
from cofactor.federation.channel import Failures
from cofactor.federation.door import OVERFLOW
from cofactor.federation.federation import Federation
from cofactor.federation.labels import release_of, round_of
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.privacy.accountant import spent
from cofactor.privacy.budget import Budget
from cofactor.privacy.events import Event
from cofactor.privacy.ledger import Ledger
from cofactor.progress import Progress
from cofactor.randomness import InsecureRandom
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.item_rounds import ItemRound
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import PlainSum, SecureSum
from cofactor.recipes.train import train
from tests.recipes.parties import horizontal, mse, small_ratings, transcript

BUDGET = Budget(epsilon=4.0, delta=1e-6, unit="user")
ROUNDS = (
    ItemRound(share=0.5, count_weight=1.2),
    ItemRound(share=0.3, count_weight=0.4, spread_share=0.05),
    ItemRound(share=0.4, count_weight=0.2, factors=2, spread_share=0.02),
)
ALL = SecureALS(item_rounds=ROUNDS)
"""Asks for everything that can be asked for."""


def public_of(ratings: Ratings, seed: int = 0) -> PublicItems:
    numbers = np.random.default_rng(seed).normal(size=(ratings.item_count, 3))
    return PublicItems.of_numbers(ratings.item_ids, numbers, source="a test")


def events_of(run: Run, party: str, folder: Path) -> list[Event]:
    """Return what a party was charged."""
    assert run.together is not None
    file = folder / f"{party}.ledger"
    file.write_bytes(run.together.ledgers[party])
    return [entry.event for entry in Ledger.open(file).entries if entry.event is not None]


# What is charged.


@pytest.mark.parametrize("recipe", [ALL, SharedBiases(), replace(ALL, reduction=3.0)])
def test_exactly_what_was_planned_is_charged_and_spends_the_budget(recipe: Any, tmp_path: Path) -> None:
    federation = Federation.on_device(small_ratings())
    run = train(recipe, federation, budget=BUDGET)
    events = events_of(run, "devices", tmp_path)
    settled = recipe.settled(federation.facts, BUDGET)
    planned = settled.schedule(federation.facts, "user", "devices")
    assert sorted(release_of(event) for event in events) == sorted(each.what for each in planned.releases)
    assert {round_of(event) for event in events} == set(range(1, planned.rounds + 1))
    for event in events:
        release = next(each for each in planned.releases if each.what == release_of(event))
        assert (event.bound, event.dimension, event.count) == (release.bound, release.dimension, 1)
        assert event.slack == OVERFLOW
        assert event.secure
    total = spent(events, BUDGET.delta, unit="user").epsilon
    assert 0.99 * 4 < total <= 4.0
    assert total == pytest.approx(run.guarantee.epsilon)


def test_a_cohort_says_that_its_sum_is_a_simulation_and_what_is_public() -> None:
    ratings = small_ratings()
    run = train(replace(ALL, public_items=public_of(ratings)), Federation.on_device(ratings), budget=BUDGET)
    assert not run.guarantee.holds
    assert any("simulates a secure sum" in why for why in run.guarantee.why_not)
    assert any("Item features from a test (3 columns" in each for each in run.guarantee.does_not_cover)
    assert run.recipe["public_items"]["sha256"] == public_of(ratings).sha256
    assert run.recipe["aggregate"]["kind"] == "IdealSum"


# Devices, parties, cohorts.


def real_devices(count: int, ratings: Ratings | None = None) -> Federation:
    ratings = ratings or small_ratings()
    parties = [Party(name=f"device-{user}", ratings=one_user(ratings, user)) for user in range(count)]
    return Federation.on_device(parties, scale=Scale(1, 5))


def one_user(ratings: Ratings, user: int) -> Ratings:
    own = ratings.by_user.window(user, user + 1)
    return Ratings.from_rows(
        np.zeros(len(own.index), np.int64),
        own.index,
        own.values,
        user_ids=np.array([user]),
        item_ids=ratings.item_ids,
        scale=ratings.scale,
    )


@pytest.mark.slow
def test_real_devices_go_through_a_secure_sum_and_may_drop_out() -> None:
    away = Failures(
        absent=frozenset({("device-0", 1), ("device-3", 4)}),
        lost=frozenset({("device-1", 2)}),
        silent=frozenset({("device-2", 3)}),
    )
    run = train(ALL, real_devices(6), budget=BUDGET, failures=away)
    assert run.guarantee.holds, run.guarantee.why_not
    assert 0.99 * 4 < (run.guarantee.epsilon or 0) <= 4.0
    assert len(run.homes) == 6
    first = run.homes["device-0"]
    for home in run.homes.values():
        np.testing.assert_array_equal(home.item_bias, first.item_bias)
        np.testing.assert_array_equal(home.item_vectors, first.item_vectors)
        assert len(home.user_ids) == 1
    assert run.model is not None
    assert len(run.model.user_ids) == 0
    assert any("masked" in each.protection for each in transcript(run))


def items_of(run: Run) -> Any:
    assert run.model is not None
    return np.column_stack([run.model.item_bias, run.model.item_vectors])


def test_devices_cohorts_and_parties_learn_the_same_without_noise() -> None:
    devices, users = real_devices(6), range(6)
    ratings = small_ratings().select(users=list(users))
    # About how many ratings there are is public, and not the same here: rounds are given.
    cohort = Federation.on_device(ratings, scale=Scale(1, 5))
    parties = Federation.horizontal(
        [
            Party(name=f"p{k}", ratings=part)
            for k, part in enumerate(partition.horizontal(ratings, 2, seed=1))
        ],
        scale=Scale(1, 5),
    )
    fixed = replace(ALL, home=UsersOnly())
    expected = items_of(train(fixed, cohort))
    assert np.abs(expected[:, 0]).max() > 0.1
    for federation, aggregate in (
        (devices, SecureSum(dropout=0.3, colluding=0.1)),
        (devices, PlainSum()),
        (parties, SecureSum()),
        (parties, PlainSum()),
    ):
        found = items_of(train(replace(fixed, aggregate=aggregate), federation))
        # Rounding is by chance, to a thousandth of each user's message.
        np.testing.assert_allclose(np.abs(found), np.abs(expected), rtol=0.02, atol=0.05)


def test_one_device_alone_adds_all_of_the_noise() -> None:
    run = train(ALL, real_devices(1), budget=BUDGET)
    assert run.guarantee.holds, run.guarantee.why_not
    assert {each.protection for each in transcript(run)} == {"noise", "released before"}


def test_if_too_many_drop_out_again_and_again_nothing_is_known_and_nothing_fails() -> None:
    run = train(ALL, Federation.on_device(small_ratings()), budget=BUDGET, failures=Failures(devices=0.9))
    assert [event.numbers["answered"] for event in run.rounds] == [0, 0, 0, 0, 0]
    assert run.model is not None
    assert np.ptp(run.model.item_bias) == 0
    item = run.model.item_ids[0].item()
    assert len(run.model.fold_in({item: 5.0}).recommend("new user", 3)) == 3


def test_if_the_first_round_is_lost_there_are_as_many_users_as_everybody_knows() -> None:
    federation = real_devices(6)
    gone = Failures(silent=frozenset((f"device-{k}", 1) for k in range(6)))
    whole, lost = (train(ALL, federation, failures=each) for each in (Failures(), gone))
    np.testing.assert_allclose(items_of(lost)[:, 0], items_of(whole)[:, 0], atol=0.3)
    first, second = (run.homes["device-0"].home for run in (whole, lost))
    assert first is not None
    assert second is not None
    # Prior variances of tastes are alike, give or take what a mean is unsure of.
    np.testing.assert_allclose(np.linalg.inv(second.precision), np.linalg.inv(first.precision), atol=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [SharedBiases(), SecureALS()])
def test_tiny_federations_drowned_in_noise_are_trained_all_the_same(recipe: Any) -> None:
    tiny = Federation.on_device(make(Shape(users=10, items=5, ratings=30, minimum=1), seed=0).ratings)
    for _ in range(60):
        run = train(recipe, tiny, budget=replace(BUDGET, epsilon=1.0))
        model = run.homes["devices"]
        assert np.isfinite(model.predict_rows(np.arange(10, dtype=np.int32), np.zeros(10, np.int32))).all()


# Kept and taken up again.


@pytest.mark.parametrize("stop", [1, 2, 3, 4, 5])
def test_a_training_that_was_stopped_goes_on_and_charges_no_round_twice(stop: int, tmp_path: Path) -> None:
    federation = Federation.on_device(small_ratings())

    def halt(event: Progress) -> None:
        if event.step == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(ALL, federation, budget=BUDGET, folder=tmp_path, progress=halt)
    run = train(ALL, federation, budget=BUDGET, folder=tmp_path)
    assert 0.99 * 4 < (run.guarantee.epsilon or 0) <= 4.0
    assert [event.numbers["answered"] for event in run.rounds] == [1, 1, 1, 1, 1]


def test_noise_apart_a_training_that_was_stopped_learns_the_same(tmp_path: Path) -> None:
    federation = Federation.on_device(small_ratings())

    def halt(event: Progress) -> None:
        if event.step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(ALL, federation, folder=tmp_path, progress=halt)
    run, whole = train(ALL, federation, folder=tmp_path), train(ALL, federation)
    np.testing.assert_allclose(items_of(run), items_of(whole), atol=0.02)


def test_a_run_is_saved_and_loaded(tmp_path: Path) -> None:
    ratings = small_ratings()
    recipe = replace(ALL, public_items=public_of(ratings))
    run = train(recipe, Federation.on_device(ratings), budget=BUDGET)
    run.save(tmp_path / "run")
    again = Run.load(tmp_path / "run")
    assert again.model is not None
    np.testing.assert_array_equal(items_of(again), items_of(run))
    assert json.dumps(again.recipe) == json.dumps(run.recipe)
    # Its settings are those of a recipe that is settled; only their numbers are not kept.
    settled = recipe.settled(
        Federation.on_device(ratings).with_public_items(public_of(ratings)).facts, BUDGET
    )
    read: SecureALS = from_table(SecureALS, again.recipe, "recipe")
    assert read == settled
    assert read.public_items is not None
    assert not read.public_items.has_numbers


@pytest.mark.parametrize("recipe", [SharedBiases(), ALL, SecureALS(item_rounds=(), factors=3), SecureALS()])
def test_settings_go_into_a_table_and_back(recipe: Any) -> None:
    table = json.loads(json.dumps(as_table(recipe)))
    assert from_table(SharedBiases | SecureALS, table, "recipe") == recipe


# Units.


def rescaled(ratings: Ratings, low: float, high: float) -> Ratings:
    assert ratings.scale is not None
    size = (high - low) / (ratings.scale.high - ratings.scale.low)
    return Ratings.from_rows(
        ratings.users,
        ratings.items,
        low + size * (ratings.values - ratings.scale.low),
        user_ids=ratings.user_ids,
        item_ids=ratings.item_ids,
        scale=Scale(low, high),
    )


@pytest.mark.parametrize(("low", "high"), [(0.0, 100.0), (-1.0, 1.0), (0.0, 4096.0)])
def test_any_scale_gives_the_same_model_in_other_units(low: float, high: float) -> None:
    ratings = small_ratings()
    other = rescaled(ratings, low, high)
    homes = [
        train(ALL, Federation.on_device(each), budget=BUDGET, random=InsecureRandom(3)).homes["devices"]
        for each in (ratings, other)
    ]
    chance = np.random.default_rng(0)
    users, items = chance.integers(0, 150, 500).astype(np.int32), chance.integers(0, 80, 500).astype(np.int32)
    first, second = (home.predict_rows(users, items).astype(np.float64) for home in homes)
    np.testing.assert_allclose((second - low) / (high - low), (first - 1) / 4, atol=1e-4)
    assert np.ptp(first) > 1
    lists = [home.top_items(slice(0, 20), 10)[0] for home in homes]
    assert (lists[0] == lists[1]).mean() > 0.95


# What is learned.


@cache
def synthetic() -> Synthetic:
    return make(Shape(users=500, items=120, ratings=20_000, factors=3, taste=0.6), seed=3)


def public() -> PublicItems:
    made = synthetic()
    return PublicItems.of_numbers(made.ratings.item_ids, made.item_features, source="the truth")


def halves() -> tuple[Ratings, Ratings]:
    return by_fraction(synthetic().ratings, 0.2, seed=1)


def error(models: Mapping[str, Factors], test: Ratings) -> float:
    return mse(models, Federation.on_device(test))


def nothing_sent(learn: Ratings, test: Ratings, features: Any = None) -> float:
    """Return the error of the best of those who send nothing."""
    found = [error({"devices": UserMean().fit(learn)}, test)]
    if features is not None:
        found.append(error({"devices": PersonalRidge().fit(learn, features=features)}, test))
    return min(found)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [SharedBiases(), SecureALS(), SecureALS(public_items=public())])
def test_it_pays_to_take_part_and_never_costs_much(recipe: Any) -> None:
    learn, test = halves()
    own = recipe.public_items
    alone = nothing_sent(learn, test, None if own is None else own.rows(learn.item_ids))
    errors = {}
    for epsilon in (0.5, 4.0):
        budget = Budget(epsilon=epsilon, delta=1e-5, unit="user")
        run = train(recipe, Federation.on_device(learn), budget=budget, random=InsecureRandom(1))
        errors[epsilon] = error(run.homes, test)
    assert errors[0.5] < alone + 0.01
    assert errors[4.0] < alone - 0.03
    assert errors[4.0] < errors[0.5] + 0.005


def test_without_noise_factors_find_what_biases_cannot() -> None:
    learn, test = halves()
    biases, factors = (
        error(train(recipe, Federation.on_device(learn)).homes, test)
        for recipe in (SharedBiases(), SecureALS())
    )
    assert factors < biases - 0.02
    truth = synthetic().truth
    model = train(SharedBiases(), Federation.on_device(learn)).model
    assert model is not None
    assert np.corrcoef(model.item_bias, truth.item_bias)[0, 1] > 0.95


def test_counts_are_learned_as_well() -> None:
    learn, _ = halves()
    model = train(SharedBiases(), Federation.on_device(learn)).model
    assert model is not None
    assert model.choice is not None
    counts = np.log(1.0 + learn.by_item.sizes)
    assert np.corrcoef(model.choice.log_counts, counts)[0, 1] > 0.95


def test_fewer_rows_than_items_cost_accuracy_and_save_bytes() -> None:
    learn, test = halves()
    found = []
    for reduction in (1.0, 4.0):
        run = train(SharedBiases(reduction=reduction), Federation.on_device(learn), random=InsecureRandom(1))
        assert run.together is not None
        found.append((error(run.homes, test), run.together.parties["devices"].bytes_sent))
    assert found[1][0] > found[0][0]
    # A quarter of the numbers, and as much around them.
    assert found[1][1] < 0.45 * found[0][1]
    assert found[1][0] < nothing_sent(learn, test) + 0.01


@pytest.mark.slow
def test_parties_learn_from_each_other() -> None:
    learn, test = halves()
    train_parties, test_parties = horizontal(learn, 3), horizontal(test, 3)
    run = train(SharedBiases(item_rounds=ROUNDS[:2], home=UsersOnly()), train_parties, budget=BUDGET)
    assert run.guarantee.holds, run.guarantee.why_not
    alone = mse({party.name: UserMean().fit(party.ratings) for party in train_parties.parties}, test_parties)
    assert mse(run.homes, test_parties) < alone - 0.03


# Only that something happened.


def happened() -> tuple[Ratings, Ratings]:
    return by_fraction(synthetic().ratings.without_values(), 0.2, seed=1)


def test_what_happened_is_ranked_and_has_no_ratings() -> None:
    learn, _ = happened()
    run = train(SecureALS(public_items=public()), Federation.on_device(learn), budget=BUDGET)
    assert run.model is not None
    for model in (run.model, run.homes["devices"]):
        assert model.scale is None
        assert model.choice is not None
    best = run.homes["devices"].recommend(learn.user_ids[0].item(), 5)
    assert [each.rating for each in best] == [None] * 5


def chosen_by_taste() -> tuple[Ratings, PublicItems]:
    """Return who chose what, by popularity and by tastes for public columns."""
    chance, users, items, each = np.random.default_rng(5), 500, 150, 30
    columns, tastes = chance.normal(size=(items, 4)), chance.normal(size=(users, 4))
    likely = np.linspace(2.5, 0, items) + tastes @ columns.T + chance.gumbel(size=(users, items))
    chosen = np.argsort(-likely, axis=1)[:, :each]
    ratings = Ratings.from_rows(
        np.repeat(np.arange(users), each),
        chosen.ravel(),
        user_ids=np.arange(users),
        item_ids=np.arange(items),
    )
    return ratings, PublicItems.of_numbers(np.arange(items), columns, source="the truth")


def test_choices_are_ranked_better_than_by_popularity_with_public_columns() -> None:
    ratings, columns = chosen_by_taste()
    learn, test = by_fraction(ratings, 0.2, seed=1)
    recipe = SecureALS(public_items=columns)
    run = train(recipe, Federation.on_device(learn), budget=BUDGET, random=InsecureRandom(2))
    ours = ranking(run.homes["devices"], learn, test)
    popular = ranking(Popularity().fit(learn), learn, test)
    assert ours.precision.value > 1.3 * popular.precision.value
    assert ours.recall.value > 1.3 * popular.recall.value


def test_parties_of_what_happened_finish_as_devices_do() -> None:
    learn, _ = happened()
    run = train(SecureALS(), horizontal(learn, 3), budget=BUDGET)
    assert set(run.homes) == {"party-0", "party-1", "party-2"}


def test_rounds_that_ask_for_tastes_are_refused_where_only_choices_are_known() -> None:
    learn, _ = happened()
    with pytest.raises(ConfigError):
        train(ALL, Federation.on_device(learn), budget=BUDGET)


@pytest.mark.parametrize("recipe", [HorizontalMF(), OnDeviceMF()])
def test_other_recipes_refuse_what_has_no_values(recipe: Any) -> None:
    learn, _ = happened()
    federation = Federation.on_device(learn) if recipe.split == "on-device" else horizontal(learn, 3)
    with pytest.raises(DataError, match=r"only tell that something happened.*Use SecureALS \(secure-als\)"):
        train(recipe, federation, budget=BUDGET)
