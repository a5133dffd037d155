"""What parties release about items, and what is made of it: bounds, noise, charges, and who knows what."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import ConfigError, Refused, RunError, TooFew
from cofactor.federation.door import OVERFLOW, SUM
from cofactor.federation.halves import Facts
from cofactor.privacy import fixed_point
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.coverage import assert_noise_covers
from cofactor.privacy.mechanisms import Skellam
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.randomness import SecureRandom
from cofactor.recipes.device_steps import left_in
from cofactor.recipes.item_letters import (
    GAIN_SUM,
    USER_SUMS,
    GainAsked,
    GainSum,
    ItemAndSpreadSums,
    ItemsFinal,
    ItemSums,
    UsersAsked,
    UserSums,
    item_sums_of,
    spread_sums_of,
)
from cofactor.recipes.item_models import features_of
from cofactor.recipes.item_sums import SPREAD_LIMIT
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import PlainSum, SecureSum
from tests.recipes.item_parties import (
    BUDGET,
    EMPTY,
    FACTORS,
    FEATURES,
    FEW,
    LAST,
    ROUNDS,
    WIDTH,
    Row,
    arrays,
    drawn,
    facts_of,
    farewell,
    half,
    noise_free,
    public,
    question,
    rated,
    watched,
)
from tests.recipes.parties import ITEMS, SCALE, USERS
from tests.recipes.test_item_sums import extreme_questions, up

LOUD: Row = (SCALE.high,) * ITEMS
DATASETS = Datasets(draw=drawn, count=USERS, empty=EMPTY)
IMPLICIT: dict[str, Any] = {"implicit": True, "scale": Scale(0, 1)}


def some(seed: int) -> tuple[Row, ...]:
    chance = np.random.default_rng(seed)
    return tuple(drawn(chance) for _ in range(USERS))


def bound_of(recipe: Any, what: str, facts: Facts | None = None) -> Any:
    facts = facts or facts_of()
    releases = recipe.settled(facts, BUDGET).schedule(facts, "user", facts.parties[0]).releases
    return next(each.bound for each in releases if each.what == what)


def far_question() -> Any:
    """Return a question at which tastes spread farther than may be told."""
    return question(bias=np.full(ITEMS, -10.0), covariance=np.eye(WIDTH) * 0.5, variance=np.zeros(ITEMS))


RELEASES: dict[str, tuple[str, int, Any]] = {
    "users": (USER_SUMS, 1, UsersAsked()),
    "items, first": (item_sums_of(1), 2, question(2)),
    "items, with tastes": (item_sums_of(3), LAST, question()),
    "spread": (spread_sums_of(3), LAST, far_question()),
    "gain": (GAIN_SUM, LAST + 1, GainAsked(**arrays(ITEMS, FEATURES, FACTORS, 5))),
}


@pytest.mark.parametrize("reduction", [1.0, 2.0])
@pytest.mark.parametrize(("what", "round", "asked"), RELEASES.values(), ids=RELEASES)
def test_a_user_changes_a_release_by_no_more_than_what_is_charged(
    monkeypatch: pytest.MonkeyPatch, what: str, round: int, asked: Any, reduction: float
) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    recipe = replace(FEW, reduction=reduction)
    # What items of one row tell may cancel: nobody is then as long as the bound.
    worst = Neighbours(units=(LOUD, *some(1)[1:]), which=0, other=EMPTY)
    known = what in (USER_SUMS, spread_sums_of(3)) or (reduction == 1 and what != GAIN_SUM)
    assert_bounded(
        lambda units: noise_free(recipe, units, round, asked)[what],
        bound_of(recipe, what),
        DATASETS,
        worst_case=worst if known else None,
        pairs=12,
        climbs=12,
    )


@pytest.mark.parametrize(("name", "asked"), extreme_questions()[::9])
def test_no_question_lets_a_user_change_more(monkeypatch: pytest.MonkeyPatch, name: str, asked: Any) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    for what in (item_sums_of(3), spread_sums_of(3)):
        assert_bounded(
            lambda units, what=what: noise_free(FEW, units, LAST, asked)[what],  # type: ignore[misc]
            bound_of(FEW, what),
            DATASETS,
            pairs=3,
            climbs=3,
        )


def test_a_user_without_ratings_adds_nothing_at_all() -> None:
    for what, round, asked in RELEASES.values():
        assert not noise_free(FEW, (EMPTY,) * USERS, round, asked)[what].value.any()


def test_who_only_chose_changes_a_release_by_no_more_than_what_is_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    recipe, facts = replace(FEW, item_rounds=ROUNDS[:1]), facts_of(**IMPLICIT)

    def release(units: tuple[Row, ...]) -> Bounded:
        happened = rated(tuple(tuple(x and 1.0 for x in row) for row in units)).without_values()
        participant = half(recipe, happened, facts=facts, round=2)
        seen = watched(participant)
        participant.handle(2, question(2))
        return dict(seen)[item_sums_of(1)]

    worst = Neighbours(units=(LOUD, *some(1)[1:]), which=0, other=EMPTY)
    bound = bound_of(recipe, item_sums_of(1), facts)
    assert_bounded(release, bound, DATASETS, worst_case=worst, pairs=12, climbs=12)
    assert release((LOUD,) * USERS).value.shape == (ITEMS, 1)


@pytest.mark.parametrize("split", ["on-device", pytest.param("horizontal", marks=pytest.mark.slow)])
def test_noise_covers_every_number_whoever_contributed(split: str) -> None:
    facts = facts_of(split=split)

    # One horizontal party adds all of the noise; devices of a cohort their shares of it.
    def release(units: tuple[Row, ...]) -> NDArray[np.int64]:
        found = []
        for round, asked in ((1, UsersAsked()), (LAST, question()), RELEASES["gain"][1:]):
            recipe = half(FEW, rated(units), facts=facts, round=round, random=SecureRandom())
            found += [array.ravel() for array in recipe.handle(round, asked).arrays.values()]
        return np.concatenate(found)

    # Numbers have noise of hundreds of steps: that one of them never moves in 5 runs has a chance below 1e-8.
    small = Datasets(draw=drawn, count=2, empty=EMPTY)
    coverage = assert_noise_covers(lambda units: release((*units, EMPTY, EMPTY)), "empty", small, runs=5)
    assert coverage.coordinates == 2 + 4 * ITEMS + WIDTH * (WIDTH + 1) // 2 + 1


def test_a_sum_has_the_noise_that_was_promised() -> None:
    # 60 answers of 24 numbers: the variance of 1,440 draws is off by a quarter once in 10^10 times.
    for aggregate, factor in ((PlainSum(), USERS), (FEW.aggregate, 4 / 3)):
        recipe, empty = replace(FEW, aggregate=aggregate), rated((EMPTY,) * USERS)
        participant = half(recipe, empty)
        what = item_sums_of(3)
        release = next(each for each in participant._home.schedule.releases if each.what == what)
        assert isinstance(release.mechanism, Skellam)
        promised = release.mechanism.noise_size(release.bound) ** 2
        answers = [half(recipe, empty, random=SecureRandom()).handle(LAST, question()) for _ in range(60)]
        # Of four devices one may collude, so that three make all of the noise, and four make 4/3 of it.
        found = np.var(np.concatenate([each.items for each in answers]))
        assert found == pytest.approx(factor * promised, rel=0.25)
        settled, facts = recipe.settled(facts_of(), BUDGET), facts_of()
        believed = settled.noise_of(what, facts) / settled.grid(what, facts).step
        assert believed**2 == pytest.approx(factor * promised, rel=0.01), "what the coordinator reckons with"


@pytest.mark.parametrize(
    ("aggregate", "users"), [(PlainSum(), (USERS, USERS)), (SecureSum(), (USERS,)), (PlainSum(), (USERS,))]
)
def test_a_party_of_many_users_adds_noise_once(aggregate: Any, users: tuple[int, ...]) -> None:
    recipe, empty = replace(FEW, aggregate=aggregate), rated((EMPTY,) * USERS)
    facts, what = facts_of(users, split="horizontal"), item_sums_of(3)
    first = half(recipe, empty, facts=facts)
    release = next(each for each in first._home.schedule.releases if each.what == what)
    promised = release.mechanism.noise_size(release.bound) ** 2
    answers = [
        half(recipe, empty, facts=facts, random=SecureRandom()).handle(LAST, question()) for _ in range(60)
    ]
    # 1,440 draws: their variance is off by a quarter once in 10^10 times.
    found = np.var(np.concatenate([each.items for each in answers]))
    assert found == pytest.approx(promised, rel=0.25)
    settled = recipe.settled(facts, BUDGET)
    believed = settled.noise_of(what, facts) / settled.grid(what, facts).step
    assert believed**2 == pytest.approx(len(users) * promised, rel=0.01), "what the coordinator reckons with"


EXACTLY = "exactly how many users and ratings each party has, from which rounds and noise follow"
ABOUT = "about how many ratings a device has, who takes part"


@pytest.mark.parametrize(
    ("users", "split", "public"),
    [
        ((1,) * USERS, "on-device", ABOUT),
        ((USERS,), "on-device", EXACTLY),
        ((USERS, USERS), "horizontal", EXACTLY),
    ],
    ids=["devices", "cohort", "parties"],
)
def test_a_guarantee_says_what_is_public_of_devices_and_of_parties(
    users: tuple[int, ...], split: str, public: str
) -> None:
    facts = facts_of(users, split=split)
    told = " ".join(FEW.settled(facts, BUDGET).promise(facts, BUDGET).does_not_cover)
    assert [each for each in (EXACTLY, ABOUT) if each in told] == [public]
    assert "Which items there are" in told
    assert "who answers in which round: public." in told
    assert "Item features from a test" in told


def test_shares_of_the_budget_are_those_of_the_rounds() -> None:
    facts, settled = facts_of(), FEW.settled(facts_of(), BUDGET)
    schedule = settled.schedule(facts, "user", "party-0")
    multipliers = {each.what: each.mechanism.noise_multiplier for each in schedule.releases}  # type: ignore[attr-defined]
    shares = {what: multiplier**-2 for what, multiplier in multipliers.items()}
    assert shares == pytest.approx(
        {
            USER_SUMS: 0.01,
            item_sums_of(1): 0.5,
            item_sums_of(2): 0.3,
            item_sums_of(3): 0.4,
            spread_sums_of(2): 0.05,
            spread_sums_of(3): 0.02,
            GAIN_SUM: 0.02,
        }
    )
    assert [each.count(schedule.rounds) for each in schedule.releases] == [1] * 7
    assert {each.slack for each in schedule.releases} == {OVERFLOW}
    assert {each.bound.unit for each in schedule.releases} == {"user"}
    assert schedule.releases[-2].bound.size * settled.grid(spread_sums_of(3), facts).step == pytest.approx(
        SPREAD_LIMIT, rel=0.02
    )


# The order of things.


def entries(participant: Any) -> list[str]:
    return [entry.event.what for entry in participant._home.door._ledger.entries if hasattr(entry, "event")]


@pytest.mark.parametrize(
    ("round", "asked"),
    [
        (1, question(2)),
        (LAST + 1, question()),
        (100, question()),
        (LAST, ItemSums(items=np.zeros((ITEMS, 2), np.int64))),
        (LAST, UserSums(sums=np.zeros(2, np.int64))),
        (LAST, question(2)),
        (2, question()),
        (LAST, question(bias=np.zeros(ITEMS + 1))),
        (LAST, question(mean=np.array(np.nan))),
    ],
)
def test_what_was_not_planned_is_refused_and_costs_nothing(round: int, asked: Any) -> None:
    participant = half(FEW, rated(some(0)), round=round)
    with pytest.raises(RunError):
        participant.handle(round, asked)
    assert entries(participant) == []


def test_no_release_is_made_twice_whatever_round_it_is_asked_in() -> None:
    participant = half(FEW, rated(some(0)), round=1)
    participant.handle(1, UsersAsked())
    participant._home.door.begin(2)
    with pytest.raises(Refused, match="would be released 2 times, and 1 were planned"):
        participant.handle(2, UsersAsked())
    participant.handle(2, question(2))
    participant._home.door._round = 3
    with pytest.raises(Refused, match="would be released 2 times"):
        participant.handle(2, question(2))
    assert entries(participant) == [f"{USER_SUMS}, round 1", f"{item_sums_of(1)}, round 2"]


def test_a_last_message_that_comes_as_a_question_is_refused_and_costs_nothing() -> None:
    participant = half(FEW, rated(some(0)), round=2)
    first = question(2)
    with pytest.raises(RunError, match="did not expect ItemsFinal"):
        participant.handle(2, farewell(factors=first.factors, covariance=first.covariance))
    assert entries(participant) == []


def test_users_tell_whether_they_predict_better_than_by_themselves() -> None:
    # They rate every second item 5 and the others 1: who knows that predicts well, who believes the opposite
    # does not.
    row: Row = tuple(SCALE.high if k % 2 else SCALE.low for k in range(ITEMS))
    true = np.where(np.arange(ITEMS) % 2, 1.5, -1.5)
    asked = arrays(ITEMS, FEATURES, FACTORS, 5)
    told = [
        noise_free(FEW, (row,) * USERS, LAST + 1, GainAsked(**asked | {"bias": bias}))[GAIN_SUM].value[0]
        for bias in (true, -true)
    ]
    most = USERS * bound_of(FEW, GAIN_SUM).size
    assert told[0] > 0.5 * most
    assert told[1] < -0.5 * most


@pytest.mark.parametrize(("gain", "helps"), [(-1.0, False), (-0.4, True), (2.0, True)])
def test_what_did_not_help_is_forgotten_in_the_end_and_counts_are_kept(gain: float, helps: bool) -> None:
    facts = facts_of()
    settled = FEW.settled(facts, BUDGET)
    coordinator = coordinated(settled, facts)
    noise = settled.noise_of(GAIN_SUM, facts)
    steps = round(gain * noise / settled.grid(GAIN_SUM, facts).step)
    coordinator.take(LAST + 1, {SUM: GainSum(gain=np.array([steps]))})
    last = coordinator.last()
    assert bool(last.bias.any()) is helps
    assert last.factors.shape == (ITEMS, FACTORS)
    assert last.counts[:, 0].any()
    assert bool(np.ptp(coordinator.published().item_bias)) is helps


@pytest.mark.parametrize("budget", [None, BUDGET])
def test_nothing_is_opened_if_too_few_devices_are_left(budget: Any) -> None:
    participant = half(FEW, rated(some(0)), budget=budget, dropout=0.9)
    with pytest.raises(TooFew):
        participant.handle(LAST, question())


def test_devices_that_drop_out_take_only_their_own_part_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    recipe, units = replace(FEW, aggregate=PlainSum()), some(3)
    fewer = half(recipe, rated(units), budget=None, dropout=0.6)
    left = left_in(LAST, fewer._home)
    assert 0 < left.sum() < USERS
    rest = tuple(row if stays else EMPTY for row, stays in zip(units, left, strict=True))
    without = half(recipe, rated(rest), budget=None).handle(LAST, question())
    for name, array in fewer.handle(LAST, question()).arrays.items():
        np.testing.assert_array_equal(array, without.arrays[name])


# The same, whoever plays whom.


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


@pytest.mark.parametrize(("round", "asked"), [(1, UsersAsked()), (2, question(2)), (LAST, question())])
def test_a_cohort_and_a_party_add_what_their_devices_would(
    monkeypatch: pytest.MonkeyPatch, round: int, asked: Any
) -> None:
    monkeypatch.setattr(fixed_point, "_words", up)
    ratings = rated(some(2))

    def answer(own: Ratings, facts: Facts) -> Any:
        return half(FEW, own, budget=None, facts=facts, round=round).handle(round, asked)

    cohort = answer(ratings, facts_of())
    party = answer(ratings, facts_of((USERS, USERS), split="horizontal"))
    devices = [answer(one_user(ratings, user), facts_of((1,) * USERS)) for user in range(USERS)]
    for name, array in cohort.arrays.items():
        assert np.abs(array).sum() > 0
        np.testing.assert_array_equal(array, party.arrays[name])
        np.testing.assert_array_equal(array, sum(each.arrays[name] for each in devices))


def test_users_are_counted_with_their_means() -> None:
    units: tuple[Row, ...] = ((5.0,) * ITEMS, (0.5, None, None, None, None, None), EMPTY, (2.75, *EMPTY[1:]))
    found = noise_free(FEW, units, 1, UsersAsked())[USER_SUMS].value
    step = FEW.settled(facts_of(), BUDGET).grid(USER_SUMS, facts_of()).step
    # Three have ratings: at the top, at the bottom and in the middle of the scale.
    assert (found * step).tolist() == pytest.approx([3.0, 0.0], abs=3 * step)


# The coordinator.


def replies(round: int, settled: Any, facts: Facts, seed: int) -> dict[str, Any]:
    """Return sums that some users may have made, in whole grains."""
    chance = np.random.default_rng(seed)
    if round == 1:
        step = settled.grid(USER_SUMS, facts).step
        return {SUM: UserSums(sums=np.rint(np.array([40.0, 12.0]) / step).astype(np.int64))}
    plan, what = settled.steps[round - 2], item_sums_of(round - 1)
    columns = 1 if facts.implicit else 2 + plan.factors
    items = chance.normal(size=(facts.item_count, columns)) + 4.0 * (np.arange(columns) == 0)
    grains = np.rint(items / settled.grid(what, facts).step).astype(np.int64)
    if not plan.spread_share:
        return {SUM: ItemSums(items=grains)}
    width = facts.features + 3 + plan.factors
    grid = settled.grid(spread_sums_of(round - 1), facts)
    spread = chance.normal(size=width * (width + 1) // 2) / grid.step
    return {SUM: ItemAndSpreadSums(items=grains, spread=np.rint(spread).astype(np.int64))}


def coordinated(settled: Any, facts: Facts, *, until: int = LAST, half: Any = None) -> Any:
    half = half or settled.coordinator(facts, 0)
    for round in range(1, until + 1):
        half.ask(round)
        half.take(round, replies(round, settled, facts, round))
    return half


def test_what_is_published_is_made_of_released_numbers_and_nothing_else() -> None:
    # Facts of two federations with other ratings, as many of them: all that the coordinator is given.
    facts, other = facts_of(), facts_of()
    settled = FEW.settled(facts, BUDGET)
    assert settled == FEW.settled(other, BUDGET)
    one, two = coordinated(settled, facts).published(), coordinated(settled, other).published()
    for name in ("item_bias", "item_vectors", "mean"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.choice.log_counts, two.choice.log_counts)
    assert len(one.user_ids) == 0
    assert one.seen is None


def test_a_coordinator_goes_on_after_a_restart_in_any_round() -> None:
    facts = facts_of()
    settled = FEW.settled(facts, BUDGET)
    whole = coordinated(settled, facts)
    for stop in range(LAST):
        kept = coordinated(settled, facts, until=stop).state()
        fresh = settled.coordinator(facts, 0)
        fresh.restore({name: np.array(array) for name, array in kept.items()})
        for round in range(stop + 1, LAST + 1):
            fresh.ask(round)
            fresh.take(round, replies(round, settled, facts, round))
        for name, array in whole.last().arrays.items():
            np.testing.assert_array_equal(array, fresh.last().arrays[name])


@pytest.mark.parametrize("lost", range(1, LAST + 1))
def test_a_round_that_is_lost_leaves_what_was_known(lost: int) -> None:
    facts = facts_of()
    settled = FEW.settled(facts, BUDGET)
    found = settled.coordinator(facts, 0)
    for round in range(1, LAST + 1):
        asked = found.ask(round)
        found.take(round, {} if round == lost else replies(round, settled, facts, round))
        if round == lost > 1:
            np.testing.assert_array_equal(asked.arrays["bias"], found.last().arrays["bias"])
    for array in found.last().arrays.values():
        assert np.isfinite(array).all()
    found.published()


def test_everything_the_coordinator_says_can_be_read_at_home() -> None:
    facts = facts_of()
    settled = FEW.settled(facts, BUDGET)
    coordinator = settled.coordinator(facts, 0)
    for round in range(1, LAST + 1):
        half(FEW, rated(some(1)), round=round, budget=None).handle(round, coordinator.ask(round))
        coordinator.take(round, replies(round, settled, facts, round))
    model = half(FEW, rated(some(1)), budget=None).finish(coordinator.last())
    assert np.isfinite(model.user_vectors).all()


# At home.


def test_a_user_who_is_folded_into_the_published_model_gets_what_the_device_has() -> None:
    facts, units = facts_of(), some(5)
    settled = FEW.settled(facts, BUDGET)
    coordinator = coordinated(settled, facts)
    home = half(FEW, rated(units)).finish(coordinator.last())
    published = coordinator.published()
    user = next(k for k, row in enumerate(units) if any(x is not None for x in row))
    own = {item: x for item, x in enumerate(units[user]) if x is not None}
    folded = published.fold_in(own)
    np.testing.assert_allclose(folded.user_vectors[0], home.user_vectors[user], atol=1e-5)
    np.testing.assert_allclose(folded.user_bias[0], home.user_bias[user], atol=1e-5)
    np.testing.assert_array_equal(published.item_bias, home.item_bias)
    assert folded.predict("new user", [0]) == pytest.approx(home.predict(user, [0]), abs=1e-4)


def test_whatever_the_last_message_is_everybody_or_nobody_can_finish() -> None:
    for size in (1e14, -1e14, 5e-324, 0.0):
        counts = np.full((ITEMS, 2), size)
        for units in (some(1), (EMPTY,) * USERS, (LOUD,) * USERS):
            last = farewell(counts=counts, bias=np.full(ITEMS, size), learned=np.full((ITEMS, 2), size))
            assert np.isfinite(half(FEW, rated(units)).finish(last).user_vectors).all()
    with pytest.raises(RunError, match="counts that are missing"):
        half(FEW, rated(some(1))).finish(question())


def test_columns_that_were_not_declared_public_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"must be declared: Federation\.with_public_items"):
        features_of(facts_of(public_items=None))
    assert features_of(facts_of(public_items=None, features=0)).shape == (ITEMS, 0)


def test_public_columns_tell_as_much_whatever_their_units() -> None:
    numbers = np.random.default_rng(3).normal(size=(ITEMS, FEATURES))
    plain = features_of(facts_of())
    large = PublicItems.of_numbers(np.arange(ITEMS), 1000.0 * numbers, source="a test")
    np.testing.assert_allclose(features_of(facts_of(public_items=large)), plain, rtol=1e-4, atol=1e-5)
    assert features_of(facts_of(public_items=public(seed=4))) != pytest.approx(plain)


@pytest.mark.parametrize("make", [SharedBiases, lambda: FEW], ids=["SharedBiases", "SecureALS"])
def test_single_ratings_are_refused_with_the_reason(make: Callable[[], Any]) -> None:
    with pytest.raises(Refused, match=r"cannot protect single ratings.*Protect users"):
        make().settled(facts_of(), replace(BUDGET, unit="rating"))


def test_messages_have_no_numbers_about_users() -> None:
    last: Any = coordinated(FEW.settled(facts_of(), BUDGET), facts_of()).last()
    assert isinstance(last, ItemsFinal)
    assert {array.shape[0] for array in last.arrays.values() if array.ndim} <= {ITEMS, WIDTH, 0}
