import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.ratings import Ratings, Scale
from cofactor.data.split import by_fraction
from cofactor.errors import ConfigError, Refused, RunError, TooFew
from cofactor.factors.baselines import UserMean
from cofactor.federation.channel import Failures
from cofactor.federation.door import Door
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Facts, Home
from cofactor.federation.party import Party
from cofactor.privacy import fixed_point
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.coverage import assert_noise_covers
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import Skellam
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.progress import Progress
from cofactor.randomness import InsecureRandom, Random, SecureRandom
from cofactor.recipes.clipping import EmbeddingClipping, GradientClipping
from cofactor.recipes.device_steps import left_in
from cofactor.recipes.hosts import aggregate_of
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.on_device_halves import DeviceGradients, DeviceParticipant
from cofactor.recipes.shared_vectors import Finished, Shared
from cofactor.recipes.sums import IdealSum, PlainSum, SecureSum
from cofactor.recipes.train import train
from tests.recipes.parties import ITEMS, SCALE, USERS, mse, small_ratings, table, transcript
from tests.recipes.test_device_steps import away_from_zero

BUDGET = Budget(epsilon=4.0, delta=1e-6, unit="user")
QUICK = OnDeviceMF(factors=2, rounds=3)
FEW = replace(QUICK, aggregate=IdealSum(dropout=0.25, colluding=0.25))
"""For as few devices as tests have."""
Row = tuple[float | None, ...]
EMPTY: Row = (None,) * ITEMS


def facts_of(users: tuple[int, ...] = (USERS,)) -> Facts:
    """Return what is public, whatever the ratings are: a cohort, unless more than one party is named."""
    return Facts(
        split="on-device",
        parties=tuple(f"device-{k}" for k in range(len(users))),
        users=users,
        items=(ITEMS,) * len(users),
        ratings=(12,) * len(users),
        scale=SCALE,
        shared_ids=np.arange(ITEMS),
        catalogue=np.arange(ITEMS),
    )


def device(
    recipe: Any,
    ratings: Ratings,
    *,
    budget: Budget | None = BUDGET,
    facts: Facts | None = None,
    dropout: float = 0.0,
    random: Random | None = None,
) -> Any:
    """Return the participant of the first party, at work in round 1."""
    facts = facts or facts_of()
    settled = recipe.settled(facts, budget)
    schedule = ledger = None
    if budget is not None:
        schedule = calibrated(settled.schedule(facts, "user", facts.parties[0]), budget)
        ledger = Ledger.create(None, party=facts.parties[0], fingerprint="a test", budget=budget)
    door = Door(
        party=facts.parties[0],
        ledger=ledger,
        random=random or InsecureRandom(0),
        run="a test",
        schedule=schedule,
        layers=aggregate_of(settled).layers(facts.summed),
        cohort=facts.cohort,
    )
    party = Party(name=facts.parties[0], ratings=ratings)
    home = Home(party=party, facts=facts, schedule=schedule, door=door, seed=0, dropout=dropout)
    door.begin(1)
    return settled.participant(home)


def question(items: NDArray[Any] | None = None, factors: int = 2) -> Shared:
    chance = np.random.default_rng(5)
    vectors = chance.uniform(0.2, 1.5, (ITEMS, factors)) if items is None else items
    return Shared(centre=np.array(3.0), vectors=vectors.astype(np.float32))


def answer(participant: DeviceParticipant, asked: Shared | None = None) -> DeviceGradients:
    found = participant.handle(1, asked or question())
    assert isinstance(found, DeviceGradients)
    return found


def rated(units: tuple[Row, ...]) -> Ratings:
    return table([(u, i, x) for u, row in enumerate(units) for i, x in enumerate(row) if x is not None])


def drawn(chance: np.random.Generator) -> Row:
    row = chance.choice([0.5, 3.0, 5.0], ITEMS)
    return tuple(float(x) if chance.random() < 0.7 else None for x in row)


def some(seed: int) -> Ratings:
    chance = np.random.default_rng(seed)
    return rated(tuple(drawn(chance) for _ in range(USERS)))


def noise_free(recipe: OnDeviceMF, units: tuple[Row, ...], asked: Shared) -> Bounded:
    """Return what the cohort gives to the door."""
    seen: list[Bounded] = []
    half = device(recipe, rated(units))

    def share(mechanism: Any, bounded: Bounded, **_: Any) -> NDArray[np.int64]:
        seen.append(bounded)
        return bounded.value

    half._home.door.share = share
    half.handle(1, asked)
    return seen[-1]


@pytest.mark.parametrize("users", ["refitted", "pretrained"])
@pytest.mark.parametrize("most_ratings", [1, ITEMS])
@pytest.mark.parametrize("clipping", [EmbeddingClipping(), GradientClipping(limit=2.0)])
def test_a_user_changes_a_round_by_no_more_than_what_is_charged(
    monkeypatch: pytest.MonkeyPatch, clipping: Any, most_ratings: int, users: Any
) -> None:
    monkeypatch.setattr(fixed_point, "rounded_by_chance", away_from_zero)
    # Users begin as long as can be, and nothing is predicted for items at 0.
    recipe = replace(
        FEW, centre=5.0, clipping=clipping, most_ratings=most_ratings, users=users, grain=2.0**-9
    )
    bound = recipe.settled(facts_of(), BUDGET).schedule(facts_of(), "user", "").releases[0].bound
    chance, loud = np.random.default_rng(1), (SCALE.high,) * ITEMS
    datasets = Datasets(draw=drawn, count=USERS, empty=EMPTY)
    others = tuple(drawn(chance) for _ in range(USERS - 1))
    at_zero = question(np.zeros((ITEMS, 2)))
    assert_bounded(
        lambda units: noise_free(recipe, units, at_zero),
        bound,
        datasets,
        worst_case=Neighbours(units=(loud, *others), which=0, other=EMPTY),
        pairs=15,
        climbs=15,
    )
    assert_bounded(lambda units: noise_free(recipe, units, question()), bound, datasets, pairs=15, climbs=15)


def test_noise_covers_every_item_whoever_rated_it() -> None:
    def release(units: tuple[Row, ...]) -> NDArray[np.int64]:
        return answer(device(FEW, rated(units), random=SecureRandom())).gradients

    assert_noise_covers(release, "empty", Datasets(draw=drawn, count=USERS, empty=EMPTY), runs=8)


def test_a_cohort_adds_what_its_devices_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_point, "rounded_by_chance", away_from_zero)
    recipe, ratings = replace(QUICK, most_ratings=ITEMS, learning_rate=1.0, grain=2.0**-9), some(2)
    together = answer(device(recipe, ratings, budget=None))
    one_each = facts_of((1,) * USERS)
    total, by_user = np.zeros((ITEMS, 2), np.int64), ratings.by_user
    for user in range(USERS):
        own = by_user.window(user, user + 1)
        alone = Ratings.from_rows(
            np.zeros(len(own.index), np.int64),
            own.index,
            own.values,
            user_ids=np.array([user]),
            item_ids=ratings.item_ids,
            scale=SCALE,
        )
        part = answer(device(recipe, alone, budget=None, facts=one_each))
        assert part.count.tolist() == [1]
        total += part.gradients
    np.testing.assert_array_equal(together.gradients, total)
    assert np.abs(total).sum() > 0
    assert together.count.tolist() == [USERS]


def test_devices_that_drop_out_take_only_their_own_part_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_point, "rounded_by_chance", away_from_zero)
    units = tuple(drawn(np.random.default_rng(k)) for k in range(USERS))
    recipe = replace(QUICK, most_ratings=ITEMS, learning_rate=1.0, grain=2.0**-9, aggregate=PlainSum())
    fewer = answer(device(recipe, rated(units), budget=None, dropout=0.25))
    # Which devices drop out is public chance: that of the seed.
    left = left_in(1, device(recipe, rated(units), budget=None, dropout=0.25)._home)
    assert 0 < left.sum() < USERS
    rest = tuple(row if stays else EMPTY for row, stays in zip(units, left, strict=True))
    np.testing.assert_array_equal(fewer.gradients, answer(device(recipe, rated(rest), budget=None)).gradients)
    assert fewer.count.tolist() == [left.sum()]


def test_other_devices_drop_out_in_other_rounds() -> None:
    home = device(QUICK, some(0), budget=None, dropout=0.5)._home
    rounds = [tuple(left_in(round, home).tolist()) for round in range(1, 21)]
    assert len(set(rounds)) > 3
    assert rounds[0] == tuple(left_in(1, home).tolist())


def test_a_training_that_was_stopped_goes_on_and_charges_no_round_twice(tmp_path: Path) -> None:
    federation = Federation.on_device(small_ratings())

    def stop(event: Progress) -> None:
        if event.step == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(QUICK, federation, budget=BUDGET, folder=tmp_path, progress=stop)
    run = train(QUICK, federation, budget=BUDGET, folder=tmp_path)
    assert 0.98 * 4 < (run.guarantee.epsilon or 0) <= 4.0
    assert [event.numbers["answered"] for event in run.rounds] == [1, 1, 1]


@pytest.mark.parametrize("aggregate", [PlainSum(), IdealSum(dropout=0.25, colluding=0.25)])
def test_a_sum_has_the_noise_that_was_promised(aggregate: Any) -> None:
    # 100 answers of 12 numbers: the variance of 1,200 draws is off by a quarter once in 10^9 times.
    recipe, empty = replace(QUICK, aggregate=aggregate), rated((EMPTY,) * USERS)
    half = device(recipe, empty, random=SecureRandom())
    release = half._home.schedule.releases[0]
    assert isinstance(release.mechanism, Skellam)
    promised = release.mechanism.noise_size(release.bound) ** 2
    drawn = [answer(device(recipe, empty, random=SecureRandom())).gradients for _ in range(100)]
    # Of four devices one may collude, so that three make all of the noise, and four make 4/3 of it.
    factor = USERS if isinstance(aggregate, PlainSum) else 4 / 3
    assert np.var(np.concatenate(drawn)) == pytest.approx(factor * promised, rel=0.25)


@pytest.mark.parametrize("budget", [None, BUDGET])
def test_nothing_is_opened_if_too_few_devices_are_left(budget: Budget | None) -> None:
    with pytest.raises(TooFew):
        answer(device(FEW, some(0), budget=budget, dropout=0.9))
    learn = small_ratings()
    gone = Failures(devices=0.9)
    run = train(QUICK, Federation.on_device(learn), budget=budget, failures=gone)
    still = replace(QUICK, aggregate=IdealSum()).alone(Federation.on_device(learn))["devices"]
    np.testing.assert_allclose(run.homes["devices"].item_vectors, still.item_vectors, rtol=1e-6)
    assert [event.numbers["answered"] for event in run.rounds] == [0, 0, 0]


def test_without_noise_devices_learn_from_each_other_even_if_some_drop_out() -> None:
    learn, test = by_fraction(small_ratings(), 0.2, seed=1)
    federation, held_out = Federation.on_device(learn), Federation.on_device(test)
    alone = mse(OnDeviceMF().alone(federation), held_out)
    own_mean = mse({"devices": UserMean().fit(learn)}, held_out)
    for failures in (Failures(), Failures(devices=0.2)):
        run = train(OnDeviceMF(), federation, failures=failures)
        together = mse(run.homes, held_out)
        assert together < min(alone, own_mean) - 0.03
        assert not run.guarantee.holds


def test_a_cohort_says_that_its_sum_is_a_simulation() -> None:
    run = train(QUICK, Federation.on_device(small_ratings()), budget=BUDGET)
    assert 0.98 * 4 < (run.guarantee.epsilon or 0) <= 4.0
    assert not run.guarantee.holds
    assert any("simulates a secure sum" in why for why in run.guarantee.why_not)
    assert any("SIMULATION" in each.protection for each in transcript(run))
    assert "15 of them collude" in str(run.guarantee)
    assert "150 parties" in str(run.guarantee)
    assert run.recipe["aggregate"]["dropout"] == 0.3


def test_released_items_serve_somebody_new_and_hold_no_users() -> None:
    run = train(QUICK, Federation.on_device(small_ratings()))
    assert run.model is not None
    assert len(run.model.user_ids) == 0
    item = run.model.item_ids[0].item()
    assert len(run.model.fold_in({item: 5.0}).recommend("new user", 3)) == 3


def real_devices(count: int) -> Federation:
    ratings = small_ratings()
    own = [ratings.by_user.window(user, user + 1) for user in range(count)]
    parties = [
        Party(
            name=f"device-{k}",
            ratings=Ratings.from_rows(
                np.zeros(len(each.index), np.int64),
                each.index,
                each.values,
                user_ids=np.array([k]),
                item_ids=ratings.item_ids,
                scale=ratings.scale,
            ),
        )
        for k, each in enumerate(own)
    ]
    return Federation.on_device(parties, scale=Scale(1, 5))


def test_real_devices_go_through_a_secure_sum_and_may_drop_out() -> None:
    federation = real_devices(8)
    away = Failures(
        absent=frozenset({("device-0", 1)}),
        lost=frozenset({("device-1", 1)}),
        silent=frozenset({("device-2", 2)}),
    )
    run = train(QUICK, federation, budget=BUDGET, failures=away)
    assert run.guarantee.holds, run.guarantee.why_not
    assert (run.guarantee.epsilon or 0) <= 4.0
    vectors = [home.item_vectors for home in run.homes.values()]
    assert len(vectors) == 8
    assert all(np.array_equal(vectors[0], each) for each in vectors)
    assert any("masked" in each.protection for each in transcript(run))
    assert not any("SIMULATION" in each.protection for each in transcript(run))


def test_real_devices_add_up_to_what_they_would_in_plain_sight() -> None:
    federation = real_devices(6)
    models = []
    for aggregate in (PlainSum(), SecureSum(dropout=0.3, colluding=0.1)):
        # All ratings are drawn, and steps are so fine that rounding by chance shows nowhere.
        recipe = replace(QUICK, aggregate=aggregate, most_ratings=80, grain=2.0**-16, learning_rate=1.0)
        run = train(recipe, federation)
        assert run.model is not None
        models.append(run.model.item_vectors)
    np.testing.assert_allclose(models[0], models[1], atol=1e-3)
    alone = QUICK.alone(federation)["device-0"].item_vectors
    assert np.abs(models[0] - alone).max() > 0.01


def test_one_device_alone_adds_all_of_the_noise() -> None:
    run = train(QUICK, real_devices(1), budget=BUDGET)
    assert run.guarantee.holds, run.guarantee.why_not
    assert {each.protection for each in transcript(run)} == {"noise", "released before"}


@pytest.mark.parametrize("users", ["refitted", "pretrained"])
def test_a_device_goes_on_after_a_restart(users: Any) -> None:
    recipe = replace(QUICK, users=users, most_ratings=ITEMS, grain=2.0**-16, learning_rate=1.0)
    first, again = device(recipe, some(1), budget=None), device(recipe, some(1), budget=None)
    first.handle(1, question())
    again.restore(first.state())
    later = question(np.full((ITEMS, 2), 0.7))
    # Rounded by chance, 4 devices' rows differ by less than 4 steps.
    off = first.handle(2, later).arrays["gradients"] - again.handle(2, later).arrays["gradients"]
    assert np.abs(off).max() <= USERS
    fresh = device(recipe, some(1), budget=None).handle(2, later).arrays["gradients"]
    assert (np.abs(first.handle(2, later).arrays["gradients"] - fresh).max() <= USERS) == (
        users == "refitted"
    )


def test_a_coordinator_goes_on_after_a_restart() -> None:
    settled = FEW.settled(facts_of(), None)
    first, again = (settled.coordinator(facts_of(), seed) for seed in (0, 1))
    total = DeviceGradients(gradients=np.full((ITEMS, 2), 300, np.int64), count=np.array([USERS], np.int64))
    before = first.ask(1).arrays["vectors"]
    first.take(1, {"the sum": total})
    assert (first.ask(2).arrays["vectors"] < before).all()
    again.restore(first.state())
    np.testing.assert_array_equal(again.ask(2).arrays["vectors"], first.ask(2).arrays["vectors"])
    first.take(2, {})
    np.testing.assert_array_equal(again.ask(3).arrays["vectors"], first.ask(3).arrays["vectors"])


def test_a_step_is_that_of_the_mean_over_those_who_answered() -> None:
    recipe = replace(FEW, learning_rate=0.5, grain=2.0**-9, centre=4.0)
    coordinator = recipe.settled(facts_of(), None).coordinator(facts_of(), 0)
    before = coordinator.ask(1).arrays["vectors"]
    part = DeviceGradients(gradients=np.arange(12).reshape(ITEMS, 2), count=np.array([3], np.int64))
    other = replace(part, count=np.array([1], np.int64))
    coordinator.take(1, {"device-0": part, "device-1": other})
    expected = before - 0.5 * 2.0**-9 * (2 * np.arange(12).reshape(ITEMS, 2)) / 4
    np.testing.assert_allclose(coordinator.ask(2).arrays["vectors"], expected, rtol=1e-6)


def test_the_published_setting_is_that_of_the_paper() -> None:
    recipe = OnDeviceMF.as_published()
    assert (recipe.factors, recipe.rounds, recipe.most_ratings) == (20, 10, 1)
    assert (recipe.users, recipe.clipping) == ("pretrained", EmbeddingClipping())
    settled = recipe.settled(facts_of(), BUDGET)
    release = settled.schedule(facts_of(), "user", "device-0").releases[0]
    assert settled.grain is not None
    claimed = 2 * 5**1.5
    assert claimed < release.bound.size * settled.grain < 1.01 * claimed
    assert release.dimension == ITEMS * 20
    assert release.count(10) == 10


def test_settings_follow_from_public_numbers_and_weaker_noise_means_larger_steps() -> None:
    many = np.arange(2000)
    facts = replace(facts_of((1000,)), ratings=(50_000,), items=(2000,), shared_ids=many, catalogue=many)
    settled = QUICK.settled(facts, BUDGET)
    assert settled == QUICK.settled(facts, BUDGET)
    assert settled == settled.settled(facts, BUDGET)
    assert settled.most_ratings == 100
    none = QUICK.settled(facts, None).learning_rate
    rates = [QUICK.settled(facts, replace(BUDGET, epsilon=e)).learning_rate for e in (0.5, 1.0)]
    assert 0 < (rates[0] or 0) < (rates[1] or 0) < (none or 0)
    plain = replace(QUICK, aggregate=PlainSum()).settled(facts, BUDGET).learning_rate
    # The noise of 1,000 devices instead of that of one, and of those who may collude.
    assert (settled.learning_rate or 0) / (plain or 1) == pytest.approx(math.sqrt(900), rel=0.05)


def test_single_ratings_are_refused_with_the_reason() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6, unit="rating")
    with pytest.raises(Refused, match=r"one rating changes all that the device contributes.*unit .user."):
        train(QUICK, Federation.on_device(small_ratings()), budget=budget)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"factors": 0}, "factors must be at least 1"),
        ({"rounds": 0}, "rounds must be at least 1"),
        ({"most_ratings": 0}, "most_ratings must be at least 1"),
        ({"users": "trained along"}, "users must be one of refitted, pretrained"),
        ({"clipping": "some"}, "clipping must be"),
        ({"learning_rate": -1.0}, "learning_rate must be"),
        ({"aggregate": "secure"}, "aggregate must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        OnDeviceMF(**settings)


def test_scales_below_zero_are_refused() -> None:
    facts = replace(facts_of(), scale=Scale(-2, 2))
    with pytest.raises(ConfigError, match="ratings from 0 up"):
        QUICK.settled(facts, BUDGET)


@pytest.mark.parametrize("size", [1e8, 9e14, -9e14])
def test_no_question_makes_a_device_fail_or_exceed_its_bound(size: float) -> None:
    bounded = noise_free(FEW, ((5.0,) * ITEMS,) + (EMPTY,) * 3, question(np.full((ITEMS, 2), size)))
    assert 0 < np.linalg.norm(bounded.value) <= bounded.bound.size


def test_other_messages_are_refused() -> None:
    half = device(FEW, some(0))
    with pytest.raises(RunError, match="did not expect Finished"):
        half.handle(1, Finished(centre=np.array(3.0), vectors=np.zeros((ITEMS, 2), np.float32)))


@pytest.mark.slow
def test_movielens_as_published(real_data: Any) -> None:
    from cofactor.data.files import read_ratings

    learn, test = by_fraction(read_ratings(real_data("ml-1m.zip")), 0.1, seed=2)
    federation, held_out = Federation.on_device(learn), Federation.on_device(test)
    for epsilon, expected, off in ((None, 0.94, 0.02), (1, 1.09, 0.015), (10, 1.06, 0.015)):
        budget = None if epsilon is None else Budget(epsilon=epsilon, delta=1e-6, unit="user")
        run = train(OnDeviceMF.as_published(), federation, budget=budget)
        assert mse(run.homes, held_out) == pytest.approx(expected, abs=off)
    budget = Budget(epsilon=1.0, delta=1e-6, unit="user")
    assert mse(train(OnDeviceMF(), federation, budget=budget).homes, held_out) < 0.98
