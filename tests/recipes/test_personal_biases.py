"""`PersonalBiases`: each rating is protected as far as its own weight asks, and what is left predicts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.errors import ConfigError, Refused, RunError, TooFew
from cofactor.factors.baselines import UserMean
from cofactor.factors.model import Factors
from cofactor.federation.channel import Failures
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.federation.verify import verify
from cofactor.privacy.budget import Adjacency, Budget
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.weights import Weights
from cofactor.randomness import InsecureRandom
from cofactor.recipes.personal_biases import PersonalBiases
from cofactor.recipes.personal_co_rating import LARGEST
from cofactor.recipes.personal_letters import CoRatingAsked, RatingsAsked
from cofactor.recipes.plan import plan
from cofactor.recipes.sums import PlainSum, SecureSum
from cofactor.recipes.train import train
from tests.recipes.parties import horizontal, mse, small_ratings, transcript
from tests.recipes.personal_parties import (
    ADJACENCIES,
    FEW,
    ITEMS,
    One,
    half,
    plain,
    table,
)


def cohort(ratings: Ratings) -> Federation:
    return Federation.on_device(ratings, scale=ratings.scale)


def outcome(
    recipe: PersonalBiases, budget: Budget | None, seed: int = 0, **settings: Any
) -> tuple[Run, float]:
    learn, test = by_fraction(small_ratings(), 0.1, seed=seed)
    run = train(recipe, cohort(learn), budget=budget, random=InsecureRandom(seed), **settings)
    return run, mse(run.homes, cohort(test))


def model_of(run: Run) -> Factors:
    assert run.model is not None
    return run.model


def everybody(**settings: Any) -> PersonalBudget:
    return PersonalBudget.as_published(**({"epsilon": 4.0} | settings))


def test_it_predicts_better_than_users_by_themselves_and_privacy_costs_something() -> None:
    learn, test = by_fraction(small_ratings(), 0.1, seed=0)
    alone = mse({"devices": UserMean().fit(learn)}, cohort(test))
    open_, unprotected = outcome(PersonalBiases(), None)
    assert not open_.guarantee.holds
    for settings in ({}, {"adjacency": "empty"}, {"mechanism": "sampling"}):
        _, private = outcome(PersonalBiases(), everybody(**settings))
        assert unprotected < private < alone - 0.05


def test_more_privacy_costs_more_and_none_is_worse_than_knowing_nothing_of_items() -> None:
    errors = [outcome(PersonalBiases(), plain(epsilon))[1] for epsilon in (0.01, 0.3, 7.77)]
    assert errors[0] > errors[1] > errors[2]
    learn, test = by_fraction(small_ratings(), 0.1, seed=0)
    assert errors[0] < mse({"devices": UserMean().fit(learn)}, cohort(test)) + 0.01


@pytest.mark.parametrize("epsilon", [0.3, 7.77])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_all_of_epsilon_is_spent_and_not_a_digit_more(epsilon: float, adjacency: Adjacency) -> None:
    run, _ = outcome(PersonalBiases(), plain(epsilon, adjacency))
    assert run.guarantee.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert (run.guarantee.epsilon or np.inf) <= epsilon


def test_what_a_weight_is_promised_is_what_its_ratings_lose() -> None:
    run, _ = outcome(PersonalBiases(), personal_of_all(0.25))
    assert run.guarantee.for_weight(0.25).epsilon == pytest.approx(0.25)


def personal_of_all(weight: float) -> PersonalBudget:
    return PersonalBudget(epsilon=1.0, users=Weights.equal(weight))


def test_who_rated_an_item_but_not_how_high_is_all_that_leaves_without_noise() -> None:
    ratings = small_ratings()
    other = Ratings.from_rows(
        ratings.users,
        ratings.items,
        6 - ratings.values,
        user_ids=ratings.user_ids,
        item_ids=ratings.item_ids,
        scale=ratings.scale,
    )
    recipe = replace(FEW, co_rating=3)
    asked = CoRatingAsked(directions=np.linspace(-1, 1, len(ratings.item_ids) * 8).reshape(-1, 8))
    answers = []
    for each in (ratings, other):
        participant = half(each, plain(), recipe)
        participant._home.door.begin(2)
        answers.append(participant.handle(2, asked).arrays["sums"])
    assert np.array_equal(*answers)
    assert answers[0].any()


def test_columns_of_co_rating_and_public_features_are_in_the_model() -> None:
    budget = everybody(epsilon=2.0)
    run, _ = outcome(PersonalBiases(co_rating=4), budget)
    assert model_of(run).item_vectors.shape[1] == 2 + 4
    assert any("which items the same users rate" in line for line in run.guarantee.does_not_cover)
    numbers = np.random.default_rng(0).normal(size=(80, 2))
    public = PublicItems.of_numbers(np.arange(80), numbers, source="a test")
    run, _ = outcome(PersonalBiases(public_items=public), budget)
    assert model_of(run).item_vectors.shape[1] == 2 + 2


def test_counts_are_not_shown_where_they_are_protected() -> None:
    with pytest.raises(Refused, match=r"co_rating=3 shows who rated what"):
        outcome(PersonalBiases(co_rating=3), plain(adjacency="empty"))
    run, _ = outcome(PersonalBiases(), plain(adjacency="empty"))
    assert not any("Who rated what: public" in line for line in run.guarantee.does_not_cover)
    run, _ = outcome(PersonalBiases(), plain())
    assert any("Who rated what: public" in line for line in run.guarantee.does_not_cover)


def devices(count: int = 6) -> Federation:
    ratings, parties = small_ratings(), []
    for user in range(count):
        own = ratings.where(ratings.users == user)
        parties.append(Party(name=f"d{user}", ratings=own.select(users=np.arange(150) == user)))
    return Federation.on_device(parties, scale=ratings.scale)


@pytest.mark.parametrize("aggregate", [PlainSum(), SecureSum(dropout=0.3, colluding=0.2)])
@pytest.mark.parametrize("mechanism", ["stretching", "sampling"])
def test_devices_sum_without_showing_single_answers(aggregate: Any, mechanism: str, tmp_path: Path) -> None:
    recipe = PersonalBiases(aggregate=aggregate)
    run = train(
        recipe,
        devices(),
        budget=everybody(mechanism=mechanism, threshold=4.0 if mechanism == "sampling" else None),
    )
    assert run.guarantee.holds
    assert run.together is not None
    assert run.together.rounds == 1
    hidden = any("masked" in sent.protection for sent in transcript(run))
    assert hidden == isinstance(aggregate, SecureSum)
    assert verify(run.save(tmp_path / "run")).holds
    assert all(isinstance(model, Factors) for model in run.homes.values())


GONE = frozenset({("d1", 1)})


@pytest.mark.parametrize("failures", [Failures(absent=GONE), Failures(silent=GONE)], ids=["absent", "silent"])
def test_a_sum_survives_devices_that_drop_out(failures: Failures) -> None:
    run = train(
        PersonalBiases(aggregate=SecureSum(dropout=0.4, colluding=0.2)),
        devices(),
        budget=everybody(),
        failures=failures,
    )
    assert run.guarantee.holds
    choice = model_of(run).choice
    assert choice is not None
    assert choice.log_counts.max() > 0


def test_parties_of_many_users_take_part_too() -> None:
    learn, test = by_fraction(small_ratings(), 0.1, seed=0)
    run = train(PersonalBiases(), horizontal(learn, 3), budget=everybody())
    assert run.guarantee.holds
    assert mse(run.homes, horizontal(test, 3)) < 1.5


def test_weights_of_users_are_in_nothing_that_leaves_or_stays(tmp_path: Path) -> None:
    secret = 0.123456789
    budget = PersonalBudget(
        epsilon=1.0, delta=1e-9, users=Weights.by(lambda _: secret, expected=0.5), items=Weights.equal()
    )
    run = train(PersonalBiases(), cohort(small_ratings()), budget=budget)
    folder = run.save(tmp_path / "run")
    found = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"0.123456" not in found
    assert np.float64(secret).tobytes() not in found
    assert str(secret)[:8] not in repr(run)


def test_same_seeds_give_the_same_model_and_secure_noise_never_does() -> None:
    first, again = (outcome(PersonalBiases(), everybody())[0] for _ in range(2))
    assert np.array_equal(model_of(first).item_bias, model_of(again).item_bias)
    fresh = [train(PersonalBiases(), cohort(small_ratings()), budget=everybody(delta=1e-9)) for _ in range(2)]
    assert not np.array_equal(model_of(fresh[0]).item_bias, model_of(fresh[1]).item_bias)


def test_too_many_devices_drop_out_of_a_cohort() -> None:
    participant = half(table((One(1.0, 0, 3.0), None, None, None)), plain())
    with pytest.raises(TooFew):
        participant._choices(np.zeros(3, np.int64), 1, np.array([True, False, False, False]))


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"unit": "user"}, Refused, "single ratings"),
        ({"adjacency": "replace"}, Refused, 'adjacency "replace"'),
    ],
)
def test_what_it_cannot_promise_is_refused(settings: Any, error: Any, words: str) -> None:
    budget = Budget(**({"epsilon": 1.0, "delta": 1e-6, "unit": "rating"} | settings))
    with pytest.raises(error, match=words):
        outcome(PersonalBiases(), budget)


def test_hidden_sums_need_a_delta_and_open_ones_do_not() -> None:
    ratings, pure = small_ratings(), plain(delta=0.0)
    with pytest.raises(Refused, match=r"delta=1e-9"):
        train(PersonalBiases(), cohort(ratings), budget=pure)
    open_sums = PersonalBiases(aggregate=PlainSum())
    run = train(open_sums, cohort(ratings), budget=pure)
    assert (run.guarantee.holds, run.guarantee.delta, run.guarantee.epsilon) == (True, 0.0, 1.0)


@pytest.mark.parametrize("settings", [{"co_rating": -1}, {"aggregate": 3}, {"home": 3}, {"public_items": 3}])
def test_settings_that_make_no_sense_are_refused(settings: Any) -> None:
    with pytest.raises(ConfigError):
        PersonalBiases(**settings)


def test_it_answers_nothing_that_was_not_planned() -> None:
    participant = half(table((One(1.0, 0, 3.0), None, None, None)), plain())
    with pytest.raises(RunError, match="did not expect"):
        participant.handle(2, CoRatingAsked(directions=np.zeros((ITEMS, 5))))
    with pytest.raises(RunError, match="did not expect"):
        participant.handle(2, RatingsAsked())


def test_a_plan_reads_no_data() -> None:
    made = plan(PersonalBiases(), plain(delta=1e-9), users=1000, items=100, ratings=50_000)
    assert made.schedule.releases[0].dimension == 100


EXTREMES = (1e300, -1e300, 1e20, 1e14, 5e-324, np.nan, np.inf)


@pytest.mark.parametrize("extreme", EXTREMES)
def test_no_question_fails_at_those_alone_who_rated_something(extreme: float) -> None:
    recipe = replace(FEW, co_rating=2)
    directions = np.full((ITEMS, ITEMS), 0.5)
    directions[0] = extreme
    outcomes = []
    for item in (0, 3):
        participant = half(table((One(1.0, item, 3.0), None, None, None)), plain(), recipe)
        participant._home.door.begin(2)
        try:
            sums = participant.handle(2, CoRatingAsked(directions=directions)).arrays["sums"]
            outcomes.append(f"numbers of at most {np.abs(sums).max() <= 4 * LARGEST}")
        except RunError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def test_a_training_goes_on_where_it_was_and_nothing_is_charged_twice(tmp_path: Path) -> None:
    recipe = PersonalBiases(co_rating=2, aggregate=SecureSum(dropout=0.3, colluding=0.2))
    first = train(recipe, devices(), budget=everybody(), folder=tmp_path / "run")
    again = train(recipe, devices(), budget=everybody(), folder=tmp_path / "run")
    assert np.array_equal(model_of(first).item_vectors, model_of(again).item_vectors)
    assert again.guarantee.epsilon == first.guarantee.epsilon


def test_a_plan_counts_ratings_where_ratings_pull() -> None:
    made = plan(PersonalBiases(), plain(), users=943, items=1682, ratings=100_000)
    assert not any("drown" in warning for warning in made.warnings)
    drowned = plan(PersonalBiases(), plain(epsilon=0.01), users=943, items=1682, ratings=10_000)
    assert any("even if all ratings pulled the same way" in warning for warning in drowned.warnings)


def test_a_budget_that_leaves_nothing_of_a_rating_is_refused() -> None:
    with pytest.raises(Refused, match="Use a larger epsilon"):
        plan(PersonalBiases(), plain(epsilon=1e-4), users=943, items=1682, ratings=100_000)
