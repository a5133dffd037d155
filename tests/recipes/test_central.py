import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.files import read_ratings
from cofactor.data.ratings import Ratings, Scale
from cofactor.data.split import by_fraction
from cofactor.errors import CofactorError, ConfigError, Refused, RunError
from cofactor.factors.baselines import UserMean
from cofactor.federation.door import Door
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts, Home
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.coverage import assert_noise_covers
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import Gaussian
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.randomness import InsecureRandom, Random, SecureRandom
from cofactor.recipes.central import CentralDPSGD
from cofactor.recipes.central_halves import COUNTS, SLOPES, CentralParticipant, CountItems, Items
from cofactor.recipes.central_rule import usual
from cofactor.recipes.local_steps import MEAN
from cofactor.recipes.shared_vectors import Begin, Finished
from cofactor.recipes.train import train
from tests.recipes.parties import ITEMS, SCALE, USERS, horizontal, mse, small_ratings, table

BUDGET = Budget(epsilon=4.0, delta=1e-6, unit="user")
QUICK = CentralDPSGD(factors=2, rounds=3, weight_power=0.5)
Row = tuple[float | None, ...]
EMPTY: Row = (None,) * ITEMS
LOUD: Row = tuple(SCALE.low if at % 2 else SCALE.high for at in range(ITEMS))
EXTREMES = (1e300, -1e300, 3e38, 1e20, 1e14, 1e-45, 5e-324, 0.0)


def facts_of(parties: int = 1, users: int = USERS) -> Facts:
    return Facts(
        split="horizontal",
        parties=tuple(f"server-{k}" for k in range(parties)),
        users=(users,) * parties,
        items=(ITEMS,) * parties,
        ratings=(12,) * parties,
        scale=SCALE,
        shared_ids=np.arange(ITEMS),
        catalogue=np.arange(ITEMS),
    )


def server(ratings: Ratings, recipe: CentralDPSGD = QUICK, random: Random | None = None) -> Any:
    """Return the participant, at work in round 1."""
    facts = facts_of()
    settled = recipe.settled(facts, BUDGET)
    schedule = calibrated(settled.schedule(facts, "user", "server-0"), BUDGET)
    ledger = Ledger.create(None, party="server-0", fingerprint="a test", budget=BUDGET)
    door = Door(
        party="server-0", ledger=ledger, random=random or InsecureRandom(0), run="a test", schedule=schedule
    )
    door.begin(1)
    party = Party(name="server-0", ratings=ratings)
    return settled.participant(Home(party=party, facts=facts, schedule=schedule, door=door, seed=0))


def rated(units: tuple[Row, ...]) -> Ratings:
    return table([(u, i, x) for u, row in enumerate(units) for i, x in enumerate(row) if x is not None])


def drawn(chance: np.random.Generator) -> Row:
    row = chance.choice([0.5, 3.0, 5.0], ITEMS)
    return tuple(float(x) if chance.random() < 0.7 else None for x in row)


def question(vectors: NDArray[Any] | None = None, weights: NDArray[Any] | None = None) -> Items:
    chance = np.random.default_rng(5)
    return Items(
        centre=np.array(3.0),
        vectors=chance.normal(0.0, 0.5, (ITEMS, 2)) if vectors is None else vectors,
        weights=np.linspace(0.1, 1.0, ITEMS) if weights is None else weights,
    )


def noise_free(units: tuple[Row, ...], asked: Any) -> Bounded:
    """Return what the server gives to the door."""
    seen: list[Bounded] = []
    half = server(rated(units))

    def release(mechanism: Any, bounded: Bounded, **_: Any) -> NDArray[np.float64]:
        seen.append(bounded)
        return bounded.value

    half._home.door.release = release
    half.handle(1, asked)
    return seen[-1]


def release_of(what: str) -> Any:
    releases = QUICK.settled(facts_of(), BUDGET).schedule(facts_of(), "user", "").releases
    return next(each for each in releases if each.what == what)


@pytest.mark.parametrize(
    ("what", "asked"),
    [
        (SLOPES, question()),
        (SLOPES, question(np.full((ITEMS, 2), 1e14), np.full(ITEMS, -1e14))),
        (COUNTS, CountItems()),
        (MEAN, Begin()),
    ],
)
def test_a_user_changes_what_is_published_by_no_more_than_what_is_charged(what: str, asked: Any) -> None:
    # Users whose means lie at an end of the scale move the mean most, and all others disagree with the items.
    units = ((SCALE.high,) * ITEMS if what == MEAN else LOUD, *(EMPTY,) * (USERS - 1))
    assert_bounded(
        lambda units: noise_free(units, asked),
        release_of(what).bound,
        Datasets(draw=drawn, count=USERS, empty=EMPTY),
        worst_case=Neighbours(units=units, which=0, other=EMPTY),
        pairs=15,
        climbs=15,
    )


@pytest.mark.parametrize("asked", [question(), CountItems(), Begin()], ids=lambda each: type(each).__name__)
def test_noise_covers_every_item_whoever_rated_it(asked: Any) -> None:
    def release(units: tuple[Row, ...]) -> NDArray[Any]:
        answer = server(rated(units), random=SecureRandom()).handle(1, asked)
        return next(iter(answer.arrays.values()))

    assert_noise_covers(release, "empty", Datasets(draw=drawn, count=USERS, empty=EMPTY), runs=8)


def test_whatever_is_asked_no_answer_depends_on_who_rated_something() -> None:
    def outcome(units: tuple[Row, ...], asked: Items) -> str:
        try:
            server(rated(units)).handle(1, asked)
        except CofactorError as error:
            return f"{type(error).__name__}: {error}"
        return "an answer"

    hers, others = (LOUD[:3] + EMPTY[3:],) * USERS, (EMPTY[:3] + LOUD[3:],) * USERS
    for extreme in EXTREMES:
        vectors, weights = np.full((ITEMS, 2), 0.5), np.ones(ITEMS)
        vectors[:3], weights[:3] = extreme, extreme
        for asked in (question(vectors), question(weights=weights), question(vectors, weights)):
            assert outcome(hers, asked) == outcome(others, asked)


def test_a_message_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(RunError, match="did not expect Finished"):
        server(rated((LOUD,))).handle(1, Finished(centre=np.array(3.0), vectors=np.zeros((ITEMS, 2))))


def test_it_learns_items_and_keeps_within_the_budget() -> None:
    learn, test = by_fraction(small_ratings(), 0.1, seed=0)
    recipe = CentralDPSGD(factors=1, rounds=10)
    run = trained(recipe, learn, BUDGET)
    assert run.guarantee.holds
    assert run.guarantee.epsilon is not None
    assert run.guarantee.epsilon <= BUDGET.epsilon
    assert run.guarantee.releases == 12  # ten steps, the mean, and the counts
    whole = trained(replace(recipe, rounds=60), learn, None)
    own_mean = float(np.mean((UserMean().fit(learn).predict_rows(test.users, test.items) - test.values) ** 2))
    assert mse(whole.homes, federation(test)) < 0.95 * own_mean
    assert not whole.guarantee.holds


def trained(recipe: CentralDPSGD, learn: Ratings, budget: Budget | None) -> Run:
    return train(recipe, federation(learn), budget=budget)


def federation(ratings: Ratings) -> Federation:
    return Federation.horizontal([Party(name="server", ratings=ratings)], simulated=True)


def test_the_guarantee_says_who_sees_all_ratings() -> None:
    said = str(trained(QUICK, small_ratings(), BUDGET).guarantee)
    assert "users from server, which trains and sees all of their ratings. Only what it publishes" in said
    assert "trust the party that trains with all of their ratings" in said


def test_more_than_one_party_is_refused_with_the_reason() -> None:
    with pytest.raises(Refused, match="one party that holds all ratings, and these are 2 parties"):
        train(QUICK, horizontal(small_ratings(), 2), budget=BUDGET)


def test_single_ratings_are_not_protected() -> None:
    with pytest.raises(Refused, match="Protect users"):
        trained(QUICK, small_ratings(), replace(BUDGET, unit="rating"))


def test_a_public_mean_and_no_weights_are_not_paid_for() -> None:
    recipe = CentralDPSGD(factors=1, rounds=4, centre=3.5, weight_power=0.0)
    assert trained(recipe, small_ratings(), BUDGET).guarantee.releases == 4
    paid = CentralDPSGD(factors=1, rounds=4).settled(facts_of(), BUDGET)
    free = recipe.settled(facts_of(), BUDGET)
    noise = [
        calibrated(each.schedule(facts_of(), "user", ""), BUDGET).releases[0].mechanism
        for each in (free, paid)
    ]
    assert noise[0].noise_multiplier < noise[1].noise_multiplier  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="centre 9 does not lie on the scale"):
        replace(recipe, centre=9.0).settled(facts_of(), BUDGET)


def test_ratings_in_other_units_lead_to_the_same_model() -> None:
    ratings = small_ratings()
    wider = Ratings.from_rows(
        ratings.users,
        ratings.items,
        10 * ratings.values - 10,
        user_ids=ratings.user_ids,
        item_ids=ratings.item_ids,
        scale=Scale(0, 40),
    )
    recipe = CentralDPSGD(factors=3, rounds=4)
    plain, wide = (
        train(recipe, Federation.horizontal([Party(name="server", ratings=each)])).homes["server"]
        for each in (ratings, wider)
    )
    rows = ratings.users[:500], ratings.items[:500]
    np.testing.assert_allclose(wide.predict_rows(*rows), 10 * plain.predict_rows(*rows) - 10, atol=2e-2)


def test_a_user_who_comes_later_is_fitted_like_all_others() -> None:
    ratings = small_ratings()
    run = trained(CentralDPSGD(factors=3, rounds=5), ratings, None)
    home, published = run.homes["server"], run.model
    assert published is not None
    assert len(published.user_ids) == 0
    own = ratings.by_user.window(7, 8)
    hers = dict(zip(ratings.item_ids[own.index].tolist(), own.values.tolist(), strict=True))
    some = ratings.item_ids[:20].tolist()
    folded = published.fold_in(hers, user="she").predict("she", some)
    np.testing.assert_allclose(folded, home.predict(ratings.user_ids[7].item(), some), atol=1e-3)


def test_more_users_for_the_same_noise_get_more_factors_and_steps() -> None:
    few, many = (CentralDPSGD().settled(facts_of(users=users), BUDGET) for users in (500, 100_000))
    assert few.factors == 1
    assert many.factors is not None
    assert many.factors > 1
    assert many.rounds is not None
    assert few.rounds is not None
    assert many.rounds > few.rounds
    stated = CentralDPSGD(factors=7, rounds=9, learning_rate=0.125, least_count=3.0, weight_power=0.0)
    assert stated.settled(facts_of(), BUDGET) == stated


def test_noise_carries_no_coordinate_too_far_and_no_step_overshoots() -> None:
    for users, budget in ((100_000, BUDGET), (500, BUDGET), (100_000, None)):
        facts = facts_of(users=users)
        settled = CentralDPSGD().settled(facts, budget)
        chosen, rule = settled.chosen(), usual(0.0 if budget is None else 1.2 / users)
        reach = chosen.rate * settled.limit * users / math.sqrt(facts.rating_count / users)
        if budget is None:
            assert reach == pytest.approx(rule.stride)
            continue
        noise = calibrated(settled.schedule(facts, "user", ""), budget).releases[0]
        assert isinstance(noise.mechanism, Gaussian)
        walk = chosen.rate * noise.mechanism.noise_size(noise.bound) * math.sqrt(chosen.rounds)
        assert reach <= rule.stride * (1 + 1e-9)
        assert walk <= rule.walk * 1.01
        assert reach >= 0.99 * rule.stride or walk >= 0.98 * rule.walk


def test_the_published_constants_are_those_of_the_paper() -> None:
    published = CentralDPSGD.as_published()
    assert (published.factors, published.learning_rate, published.limit) == (32, 0.5, 0.1)
    assert published.taste_penalty == 0.5


def test_without_an_answer_everything_stays_as_it_was_and_state_is_all_there_is() -> None:
    recipe = QUICK.settled(facts_of(), None)
    first, second = recipe.coordinator(facts_of(), 1), recipe.coordinator(facts_of(), 2)
    before = first.ask(3).arrays
    first.take(3, {})
    assert first.rounds == 5
    second.restore(first.state())
    for name, array in before.items():
        np.testing.assert_array_equal(array, first.ask(3).arrays[name])
        np.testing.assert_array_equal(array, second.ask(3).arrays[name])


def test_what_is_left_open_is_refused_before_it_is_settled() -> None:
    with pytest.raises(RunError, match="not settled"):
        CentralDPSGD().chosen()
    with pytest.raises(ConfigError, match="shares must lie between 0 and 1"):
        CentralDPSGD(count_share=0.6, mean_share=0.6)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "bar"), [(1.0, 0.88), (4.0, 0.803)])
def test_it_is_as_strong_on_movielens_as_its_search_found(
    real_data: Callable[[str], Path], epsilon: float, bar: float
) -> None:
    learn, test = by_fraction(read_ratings(real_data("ml-1m.zip")), 0.1, seed=0)
    run = trained(CentralDPSGD(), learn, Budget(epsilon=epsilon, delta=1e-6, unit="user"))
    assert mse(run.homes, federation(test)) <= bar


def test_the_server_is_a_participant_without_memory() -> None:
    half = server(rated((LOUD,)))
    assert isinstance(half, CentralParticipant)
    half.restore(half.state())
    assert half.state() == {}
