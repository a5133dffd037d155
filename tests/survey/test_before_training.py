from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import BudgetExceeded, ConfigError, DataError, Refused
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.privacy.budget import Budget
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.weights import Weights
from cofactor.randomness import InsecureRandom
from cofactor.survey.before_training import ACTIVITY, RATING, choose_cap, rating_histogram
from cofactor.survey.people import activity_of, one_rating_each
from tests.survey.making import ratings_of, shops

CROWD = ratings_of(4000)
SIZES = np.diff(CROWD.by_user.ptr)


@pytest.fixture(scope="module")
def devices() -> Federation:
    return Federation.on_device(CROWD, scale=Scale(1, 5))


def test_the_cap_is_what_three_users_of_four_have_at_most(devices: Federation) -> None:
    chosen = choose_cap(devices, 4.0, random=InsecureRandom(1))
    truth = np.quantile(SIZES, 0.75)
    assert chosen.most_ratings == pytest.approx(truth, rel=0.15)
    assert chosen.between[0] <= chosen.most_ratings <= chosen.between[1]
    kept = np.minimum(SIZES, chosen.most_ratings).sum() / SIZES.sum()
    assert chosen.kept == pytest.approx(kept, abs=0.08)
    assert str(chosen.most_ratings) in str(chosen)
    assert chosen.survey.question.name == ACTIVITY


def test_the_histogram_of_ratings_finds_their_mean(devices: Federation) -> None:
    survey = rating_histogram(devices, 4.0, random=InsecureRandom(1))
    means = np.bincount(CROWD.by_user.members(), CROWD.by_user.values) / SIZES
    assert survey.mean == pytest.approx(means.mean(), abs=0.08)
    assert survey.distribution is not None
    assert len(survey.distribution.probabilities) == 5
    assert survey.question.name == RATING


def test_answers_that_would_tell_nothing_are_not_asked_for(tmp_path: Path) -> None:
    federation = shops(tmp_path)
    for survey in (choose_cap, rating_histogram):
        with pytest.raises(Refused, match=r"600 users at epsilon 0\.05 .* From epsilon 0\.17"):
            survey(federation, 0.05)
    assert not any(party.has_ledger for party in federation.parties)
    few = Federation.on_device(CROWD.select(users=[0, 1, 2]), scale=Scale(1, 5))
    with pytest.raises(Refused, match="So few never tell"):
        choose_cap(few, 8.0)


@pytest.mark.parametrize("survey", [choose_cap, rating_histogram])
def test_ratings_in_place_of_a_federation_are_refused(survey: Any) -> None:
    with pytest.raises(ConfigError, match="of a Federation"):
        survey(CROWD, 1.0)


def test_half_stars_are_rounded_by_chance_and_right_on_average() -> None:
    half = CROWD.select(users=np.arange(2000))
    rows = Ratings.from_rows(
        half.users, half.items, np.full(len(half), 3.5, np.float32),
        user_ids=half.user_ids, item_ids=half.item_ids, scale=Scale(1, 5),
    )  # fmt: skip
    survey = rating_histogram(Federation.on_device(rows, scale=Scale(1, 5)), 8.0, random=InsecureRandom(1))
    assert survey.mean == pytest.approx(3.5, abs=0.1)


def test_a_scale_or_catalogue_that_was_read_off_the_data_is_told(tmp_path: Path) -> None:
    stated = shops()
    read = Federation.horizontal(stated.parties)
    for ask_for in (choose_cap, rating_histogram):
        found: Any = ask_for(read, 1.0)
        survey = getattr(found, "survey", found)
        assert any("scale" in warning for warning in survey.guarantee.warnings)
    assert not any("scale" in warning for warning in rating_histogram(stated, 1.0).guarantee.warnings)


def test_a_party_with_a_budget_of_its_own_keeps_it(tmp_path: Path) -> None:
    federation = shops(tmp_path)
    own = Budget(epsilon=0.3, delta=1e-6, unit="user")
    careful = replace(federation.parties[0], budget=own)
    federation = Federation.horizontal([careful, federation.parties[1]], scale=Scale(1, 5))
    with pytest.raises(BudgetExceeded, match=r"the budget is 0\.3"):
        choose_cap(federation, 0.5, budget=Budget(epsilon=2.0, delta=1e-6, unit="user"))
    assert not any(party.has_ledger for party in federation.parties)


def test_users_with_weights_are_not_asked_alike() -> None:
    weighed = Federation.on_device(CROWD, scale=Scale(1, 5)).with_weights(Weights.equal())
    with pytest.raises(ConfigError, match="weights promise some more"):
        choose_cap(weighed, 1.0)


def test_ratings_on_a_scale_without_whole_ends_are_surveyed_as_real_numbers() -> None:
    federation = Federation.on_device(CROWD, scale=Scale(0.5, 5))
    survey = rating_histogram(federation, 4.0, random=InsecureRandom(1))
    assert not survey.question.whole
    assert survey.mean == pytest.approx(3.6, abs=0.25)


def test_each_user_brings_one_of_her_own_ratings_drawn_evenly() -> None:
    parties = shops(users=40)
    drawn = [one_rating_each(parties, InsecureRandom(seed)) for seed in range(200)]
    ratings = parties.parties[0].ratings.by_user
    for user in range(10):
        own = ratings.values[ratings.ptr[user] : ratings.ptr[user + 1]]
        told = np.array([people[0].values[user] for people in drawn])
        assert set(told) <= set(own)
        # Means of 200 even draws: further than 6 deviations off in fewer than one of a million.
        assert abs(told.mean() - own.mean()) <= 6 * own.std() / np.sqrt(200) + 1e-9


def test_a_device_without_ratings_answers_from_the_middle_of_the_scale() -> None:
    one = CROWD.select(users=[0])
    phones = [Party(name="old", ratings=one), Party(name="new", ratings=one.where(np.zeros(len(one), bool)))]
    federation = Federation.on_device(phones, scale=Scale(1, 5))
    assert one_rating_each(federation)[1].values.tolist() == [3.0]
    assert activity_of(federation)[1].values.tolist() == [0.0]


def test_parties_with_files_pay_from_the_training_budget(tmp_path: Path) -> None:
    federation = shops(tmp_path)
    budget = Budget(epsilon=1.0, delta=1e-6, unit="user")
    choose_cap(federation, 0.6, budget=budget)
    for party in federation.parties:
        assert party.ledger_path is not None
        ledger = Ledger.open(party.ledger_path)
        assert ledger.budget == budget
        assert [entry.event.what for entry in ledger.entries if entry.event] == [f"{ACTIVITY}, round 1"]
    with pytest.raises(BudgetExceeded):
        rating_histogram(federation, 0.6)


def test_vertical_federations_are_refused() -> None:
    parties = [Party(name="a", ratings=CROWD), Party(name="b", ratings=CROWD)]
    federation = Federation.vertical(parties, scale=Scale(1, 5))
    for survey in (choose_cap, rating_histogram):
        with pytest.raises(ConfigError, match="vertical"):
            survey(federation, 1.0)


def test_what_only_happened_has_no_ratings_to_spread() -> None:
    federation = Federation.on_device(CROWD.without_values())
    with pytest.raises(DataError, match="only tell that something happened"):
        rating_histogram(federation, 1.0)
    assert choose_cap(federation, 4.0, random=InsecureRandom(1)).most_ratings > 3
