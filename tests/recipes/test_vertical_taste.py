from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cofactor.config import as_table, from_table
from cofactor.data import partition
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import ConfigError, Refused, RunError
from cofactor.factors.bayes import Bayes
from cofactor.factors.model import Factors
from cofactor.federation.channel import Failures
from cofactor.federation.door import SUM, Door
from cofactor.federation.federation import Federation
from cofactor.federation.halves import Home
from cofactor.federation.party import Party
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.ledger import Ledger
from cofactor.privacy.mechanisms import Gaussian, Skellam
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.randomness import InsecureRandom
from cofactor.recipes.alone import Alone
from cofactor.recipes.sums import IdealSum, SecureSum
from cofactor.recipes.taste_items import ITEM_BOUND
from cofactor.recipes.taste_letters import (
    TasteBegin,
    TasteDirections,
    TasteItems,
    TasteShares,
    TasteSums,
    TasteTotal,
)
from cofactor.recipes.taste_message import MESSAGE_BOUND
from cofactor.recipes.taste_participant import TasteParticipant
from cofactor.recipes.train import train
from cofactor.recipes.vertical_taste import VerticalTaste, directions_for, noise_for

BUDGET = Budget(epsilon=4.0, delta=1e-6, unit="rating")
HOME = Bayes(factors=1, epochs=4, threads=1)
RECIPE = VerticalTaste(home=HOME, aggregate=IdealSum())
PLAIN = VerticalTaste(home=HOME)
USERS, ITEMS = 150, 36
STARS = Scale(1, 5)


def make_ratings(scale: Scale = STARS, users: int = USERS) -> Ratings:
    """Users who differ in generosity and in what they think of the first of two features."""
    random = np.random.default_rng(3)
    level, slope = random.normal(0, 0.7, users), random.normal(0, 0.7, users)
    bias, feature = random.normal(0, 0.3, ITEMS), np.where(np.arange(ITEMS) % 2 == 0, 0.5, -0.5)
    user, item = np.nonzero(random.random((users, ITEMS)) < 0.4)
    values = 3.6 + level[user] + bias[item] + slope[user] * feature[item] + random.normal(0, 0.6, len(user))
    size = (scale.high - scale.low) / 4
    values = scale.low + size * (np.clip(values, 1, 5) - 1)
    return Ratings.from_rows(
        user, item, values, user_ids=np.arange(users), item_ids=np.arange(ITEMS), scale=scale
    )


def features_of(ids: NDArray[Any]) -> NDArray[np.float32]:
    return np.column_stack([ids % 2, (ids % 3 == 0)]).astype(np.float32)


def public(of: Callable[[NDArray[Any]], NDArray[np.float32]]) -> PublicItems:
    return PublicItems.of_numbers(np.arange(ITEMS), of(np.arange(ITEMS)), source="a test")


def federation(ratings: Ratings | None = None, parties: int = 3, *, features: bool = True) -> Federation:
    whole = make_ratings() if ratings is None else ratings
    parts = partition.vertical(whole, parties, seed=1)
    found = Federation.vertical(
        [Party(name=f"party {k}", ratings=part) for k, part in enumerate(parts)], scale=whole.scale
    )
    return found.with_public_items(public(features_of)) if features else found


def error(models: dict[str, Factors], test: Federation) -> float:
    wrong = [
        party.ratings.values - models[party.name].predict_rows(party.ratings.users, party.ratings.items)
        for party in test.parties
    ]
    return float(np.mean(np.concatenate(wrong).astype(np.float64) ** 2))


class Exchange:
    """Both halves of a settled recipe, asked by hand."""

    def __init__(self, recipe: VerticalTaste, together: Federation, budget: Budget | None = BUDGET) -> None:
        self.facts = together.facts
        self.recipe = recipe.settled(self.facts, budget)
        self.coordinator = self.recipe.coordinator(self.facts, 0)
        self.doors: dict[str, Door] = {}
        self.parties = {
            party.name: self.recipe.participant(self._home(party, budget)) for party in together.parties
        }

    def _home(self, party: Party, budget: Budget | None) -> Home:
        own = party.budget or budget
        ledger = schedule = None
        if own is not None:
            schedule = calibrated(self.recipe.schedule(self.facts, "rating", party.name), own)
            ledger = Ledger.create(None, party=party.name, fingerprint="test", budget=own)
        random = InsecureRandom(self.facts.place(party.name))
        layers = self.recipe.aggregate.layers(len(self.facts.parties))
        alone = party.budget is not None
        door = Door(party=party.name, ledger=ledger, random=random, run="r", layers=layers, shares=not alone)
        self.doors[party.name] = door
        return Home(party=party, facts=self.facts, schedule=schedule, door=door, seed=0)

    def round(self, number: int) -> dict[str, Any]:
        only_sum, answers = self.coordinator.sums(number), self.answers(number)
        self.coordinator.take(number, {SUM: added(list(answers.values()))} if only_sum else answers)
        return answers

    def answers(self, number: int, question: Any = None) -> dict[str, Any]:
        question = question or self.coordinator.ask(number)
        for door in self.doors.values():
            door.begin(number)
        return {name: party.handle(number, question) for name, party in self.parties.items()}

    def all(self) -> TasteTotal:
        self.round(1)
        self.round(2)
        last = self.coordinator.last()
        assert isinstance(last, TasteTotal)
        return last


def added(answers: list[TasteShares]) -> TasteShares:
    """Return the sum of all parties: nobody's noise is excess then."""
    arrays = [answer.arrays for answer in answers]
    return TasteShares(**{name: np.sum([each[name] for each in arrays], axis=0) for name in arrays[0]})


def participant_of(units: tuple[Any, ...]) -> tuple[TasteParticipant, Federation]:
    """A unit is (user, item, value) or None; whoever repeats a pair is left out. Nothing has noise."""
    given = {unit[:2]: unit[2] for unit in units if unit is not None}
    rows = np.array([*given], np.int32).reshape(-1, 2)
    own = Ratings.from_rows(
        rows[:, 0], rows[:, 1], np.array([*given.values()], np.float32),
        user_ids=np.arange(3), item_ids=np.arange(4), scale=STARS,
    )  # fmt: skip
    # How many ratings there are is public: a recipe may not look at them itself.
    together = Federation.vertical([Party(name="north", ratings=own)], scale=STARS)
    facts = replace(together.facts, ratings=(5,))
    door = Door(party="north", ledger=None, random=InsecureRandom(0), run="r")
    home = Home(party=together.parties[0], facts=facts, schedule=None, door=door, seed=0)
    return VerticalTaste(directions=2).participant(home), together


PLACES = [(user, item) for user in range(3) for item in range(4)]


def draw_unit(chance: np.random.Generator) -> tuple[int, int, float]:
    return (*PLACES[chance.integers(12)], float(chance.choice([1.0, 2.0, 3.6, 5.0])))


def apart(units: tuple[Any, ...]) -> tuple[Any, ...]:
    """Give every unit a pair of its own: the k-th of twelve places, by its number."""
    return tuple(unit and (*PLACES[at], unit[2]) for at, unit in enumerate(units))


WORST = Neighbours(
    units=((0, 0, 1.0), (0, 1, 5.0), (0, 2, 3.0), (0, 3, 2.0), (1, 0, 4.0)), which=0, other=None
)
DATASETS = Datasets(draw=draw_unit, count=5)
QUESTION = TasteDirections(
    mean=0.1,
    scale=0.7,
    bias=np.array([0.5, -0.2, 0.0, 9.0]),
    popularity=np.zeros(4),
    weights=np.full(4, 0.25),
    features=np.zeros((4, 0)),
    rows=np.array([[0.6, 0.8, 0.0], [0.6, 0.1, 0.1], [6.0, 8.0, 3.0], [0.6, 0.0, 0.2]]),
)


def test_what_a_party_says_about_items_changes_within_the_bound() -> None:
    def release(units: tuple[Any, ...]) -> NDArray[Any]:
        answer = participant_of(apart(units))[0].handle(1, TasteBegin())
        return np.concatenate([array.ravel() for array in answer.arrays.values()])

    assert_bounded(release, ITEM_BOUND, DATASETS, worst_case=WORST, pairs=60, climbs=60)


def test_what_a_party_says_about_users_changes_within_the_bound() -> None:
    def release(units: tuple[Any, ...]) -> NDArray[Any]:
        answer = participant_of(apart(units))[0].handle(2, QUESTION)
        return np.concatenate([array.ravel() for array in answer.arrays.values()])

    assert_bounded(release, MESSAGE_BOUND, DATASETS, worst_case=WORST, pairs=60, climbs=60)


def noise_on(exchange: Exchange, party: str, budget: Budget = BUDGET) -> float:
    """Return the variance of all the noise that a party is charged for, in the units of messages."""
    plan = calibrated(exchange.recipe.schedule(exchange.facts, "rating", party), budget)
    mechanism = plan.releases[1].mechanism
    assert isinstance(mechanism, Gaussian | Skellam)
    return mechanism.noise_size(MESSAGE_BOUND) ** 2


@pytest.mark.parametrize(("recipe", "times"), [(PLAIN, 2.0), (RECIPE, 1.0)])
def test_what_is_left_for_a_party_has_the_noise_that_the_others_were_charged(
    recipe: VerticalTaste, times: float
) -> None:
    exchange = Exchange(recipe, federation())
    total = exchange.all()
    part, own_noise = exchange.parties["party 0"]._own_part(3)
    silent = Exchange(exchange.recipe, federation(), None).answers(2, exchange.coordinator.ask(2))
    exact = sum(silent[name].sums for name in ("party 1", "party 2")) * (exchange.recipe.grain or 1.0)
    charged = noise_on(exchange, "party 1")
    # 1,500 squares or so: their mean has a standard deviation of 3.7%, so 25% off is a one in 10^10 event.
    assert np.mean((total.total - part - exact) ** 2) == pytest.approx(times * charged, rel=0.25)
    said = float(total.variance[0] - own_noise)
    assert said == pytest.approx(times * charged, rel=1e-4)


@pytest.mark.parametrize("budget", [None, BUDGET])
def test_a_party_takes_its_own_part_off_before_it_listens(budget: Budget | None) -> None:
    exchange = Exchange(RECIPE, federation(parties=1), budget)
    last = exchange.all()
    assert np.abs(last.total).max() > 1
    for numbers in exchange.parties["party 0"]._listener(last)(0.05).about(slice(None)):
        np.testing.assert_allclose(numbers, 0, atol=1e-6)


def finished(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[TasteParticipant, TasteTotal]]:
    """Return all participants that finish from now on, with what they were told; nobody fits anything."""
    found: dict[str, tuple[TasteParticipant, TasteTotal]] = {}

    def told(self: TasteParticipant, message: Any) -> Any:
        found[self._home.party.name] = self, message

    monkeypatch.setattr(TasteParticipant, "finish", told)
    return found


@pytest.mark.parametrize("budget", [None, BUDGET], ids=["no budget", "budget"])
@pytest.mark.parametrize("kind", ["nobody", "absent", "lost", "silent"])
def test_own_parts_are_exactly_what_a_secure_sum_is_made_of(
    kind: str, budget: Budget | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = replace(RECIPE, aggregate=SecureSum(dropout=0.4))
    gone: Any = {} if kind == "nobody" else {kind: frozenset({("party 2", 2)})}
    told = finished(monkeypatch)
    train(recipe, federation(parties=5), budget=budget, failures=Failures(**gone), random=InsecureRandom(1))
    total = next(iter(told.values()))[1]
    inside = [True, True, kind in ("nobody", "silent"), True, True]
    assert total.answered.tolist() == inside
    names = [f"party {k}" for k in range(5) if inside[k]]
    parts = {name: told[name][0]._own_part(len(names)) for name in names}
    # Grains are powers of two, so that all of this is exact.
    np.testing.assert_array_equal(sum(parts[name][0] for name in names), total.total)
    variance = float(total.variance[0])
    assert sum(parts[name][1] for name in names) == pytest.approx(variance)
    if budget is None:
        assert variance == 0
    else:
        # Of five, or four, each adds what makes four, or three, right.
        one = noise_on(Exchange(recipe, federation(parties=5)), "party 1")
        assert variance / one == pytest.approx(len(names) / (len(names) - 1), rel=0.02)


def test_the_noise_of_both_releases_adds_up_to_the_budget() -> None:
    run = train(PLAIN, federation(), budget=BUDGET)
    guarantee = run.guarantee
    assert guarantee.holds
    assert guarantee.releases == 6
    assert guarantee.epsilon is not None
    assert 0.98 * BUDGET.epsilon < guarantee.epsilon <= BUDGET.epsilon
    assert run.model is None
    assert set(run.homes) == {"party 0", "party 1", "party 2"}


def test_a_secure_sum_that_is_only_simulated_promises_nothing() -> None:
    run = train(RECIPE, federation(), budget=BUDGET)
    assert not run.guarantee.holds
    assert "simulates a secure sum" in str(run.guarantee)
    assert any(
        "of 3 parties, at most one of them colludes" in each.what for each in run.guarantee.assumptions
    )
    assert run.together is not None
    # Each of three parties adds half of the noise on messages about users, and all of that on items.
    losses = [party.epsilon or 0 for party in run.together.parties.values()]
    assert min(losses) > 1.2 * BUDGET.epsilon


def test_the_noise_of_two_parties_protects_each_by_itself() -> None:
    assert train(RECIPE, federation(parties=2), budget=BUDGET).guarantee.holds


@pytest.mark.parametrize("recipe", [PLAIN, RECIPE], ids=["plain", "summed"])
def test_the_two_releases_have_their_shares_of_the_budget(recipe: VerticalTaste) -> None:
    facts = federation().facts
    schedule = replace(recipe, item_share=0.2).settled(facts, BUDGET).schedule(facts, "rating", "party 1")
    parts = [
        each.mechanism.noise_multiplier**-2
        for each in schedule.releases
        if isinstance(each.mechanism, Gaussian | Skellam)
    ]
    assert parts == pytest.approx([0.2, 0.8])
    assert [event.count for event in schedule.events()] == [1, 1]
    assert [event.what for event in schedule.events(1)] == [schedule.releases[0].what], "one in each round"
    assert [each.dimension for each in schedule.releases] == [2 * facts.items[1], facts.user_count * 10]


def test_a_party_with_a_budget_of_its_own_adds_all_of_its_noise() -> None:
    whole = federation()
    strict = replace(whole.parties[0], budget=Budget(epsilon=1.0, delta=1e-6, unit="rating"))
    mixed = replace(whole, parties=(strict, *whole.parties[1:]))
    exchange = Exchange(RECIPE, mixed)
    exchange.round(1)
    answers, grain = exchange.answers(2), exchange.recipe.grain or 0.0
    alone = {name: (answer.alone * grain**2).tolist() for name, answer in answers.items()}
    shared = {name: (answer.shared * grain**2).tolist() for name, answer in answers.items()}
    strict_noise = noise_on(exchange, "party 0", Budget(epsilon=1.0, delta=1e-6, unit="rating"))
    usual = noise_on(exchange, "party 1")
    assert alone["party 0"] == pytest.approx([strict_noise, 0, 0], rel=1e-4)
    assert shared["party 0"] == alone["party 1"] == alone["party 2"] == [0, 0, 0]
    assert shared["party 1"] == pytest.approx([0, usual, 0], rel=1e-4)
    assert shared["party 2"] == pytest.approx([0, 0, usual], rel=1e-4)
    assert usual < strict_noise / 2
    exchange.coordinator.take(2, {SUM: added(list(answers.values()))})
    total = exchange.coordinator.last()
    # Each of the others adds half of what protects a sum of two.
    assert total.arrays["variance"][0] == pytest.approx(strict_noise + usual, rel=1e-4)


def test_joining_helps_and_never_hurts_much() -> None:
    train_part, test = federation(make_ratings(users=400)).split(0.2, seed=1)
    recipe = replace(RECIPE, home=replace(HOME, epochs=8))
    alone = error(Alone(home=recipe.home).fit(train_part), test)
    errors = {
        epsilon: error(
            dict(
                train(
                    recipe,
                    train_part,
                    budget=Budget(epsilon=epsilon, delta=1e-6, unit="rating"),
                    random=InsecureRandom(1),
                ).homes
                or {}
            ),
            test,
        )
        for epsilon in (0.01, 10.0)
    }
    assert errors[10.0] < 0.96 * alone
    assert errors[0.01] < 1.01 * alone


def test_a_published_model_is_made_from_what_was_released() -> None:
    together = federation(make_ratings(users=400))
    run = train(
        replace(RECIPE, publish=True), together, budget=Budget(epsilon=10.0, delta=1e-6, unit="rating"),
        random=InsecureRandom(1),
    )  # fmt: skip
    model = run.model
    assert model is not None
    pooled = together.pooled()
    assert model.item_ids.tolist() == pooled.item_ids.tolist()
    wrong = pooled.values - model.predict_rows(pooled.users, pooled.items)
    assert float(np.mean(wrong**2)) < 0.85 * float(np.var(pooled.values))
    assert model.seen is None


def other_ratings_of(together: Federation) -> Federation:
    """Exchange all that is private: who rated what, and how. Public facts stay the same."""
    random, changed = np.random.default_rng(6), []
    for party in together.parties:
        own = party.ratings
        users, items = random.permutation(len(own.user_ids)), random.permutation(len(own.item_ids))
        other = Ratings.from_rows(
            users[own.users], items[own.items], 6 - own.values,
            user_ids=own.user_ids, item_ids=own.item_ids, scale=STARS,
        )  # fmt: skip
        changed.append(replace(party, ratings=other))
    return replace(together, parties=tuple(changed))


def test_the_public_model_is_a_function_of_public_facts_and_released_numbers_alone() -> None:
    recipe = replace(PLAIN, publish=True)
    first = Exchange(recipe, federation())
    answers = [first.round(1), first.round(2)]
    ours = first.coordinator.published()
    second = Exchange(recipe, other_ratings_of(federation()))
    for number, released in enumerate(answers, start=1):
        second.coordinator.take(number, released)
    theirs = second.coordinator.published()
    second.all()  # with what its own parties release
    different = second.coordinator.published()
    assert ours is not None
    assert theirs is not None
    assert different is not None
    for name in ("user_vectors", "item_vectors", "item_bias", "mean"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        assert not np.array_equal(getattr(ours, name), getattr(different, name))


def test_both_halves_go_on_after_a_restart() -> None:
    plain, again = Exchange(RECIPE, federation()), Exchange(RECIPE, federation())
    last = plain.all()
    again.round(1)
    fresh = again.recipe.coordinator(again.facts, 0)
    fresh.restore(again.coordinator.state())
    again.coordinator = fresh
    again.round(2)
    np.testing.assert_array_equal(fresh.last().arrays["total"], last.total)
    own = plain.parties["party 1"]
    restarted = Exchange(RECIPE, federation()).parties["party 1"]
    restarted.restore(own.state())
    np.testing.assert_array_equal(restarted.finish(last).user_vectors, own.finish(last).user_vectors)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("kind", ["absent", "lost"])
def test_where_messages_are_seen_a_party_may_be_missing(number: int, kind: str) -> None:
    failures = Failures(**{kind: frozenset({("party 1", number)})})  # type: ignore[arg-type]
    run = train(PLAIN, federation(), budget=BUDGET, failures=failures, random=InsecureRandom(1))
    for model in (run.homes or {}).values():
        assert np.isfinite(model.user_vectors).all()


def test_an_answer_that_was_lost_is_not_taken_off() -> None:
    exchange = Exchange(PLAIN, federation())
    exchange.round(1)
    question = exchange.coordinator.ask(2)
    answers = exchange.answers(2, question)
    exchange.coordinator.take(2, {name: answers[name] for name in ("party 0", "party 2")})
    last = exchange.coordinator.last()
    assert last.arrays["answered"].tolist() == [True, False, True]
    fresh = Exchange(PLAIN, federation()).parties["party 1"]  # has sent nothing
    np.testing.assert_array_equal(
        exchange.parties["party 1"].finish(last).user_vectors, fresh.finish(last).user_vectors
    )


def test_if_nobody_tells_anything_everybody_stays_alone() -> None:
    exchange = Exchange(PLAIN, federation())
    exchange.coordinator.take(1, {})
    exchange.coordinator.take(2, {})
    model = exchange.parties["party 0"].finish(exchange.coordinator.last())
    assert np.isfinite(model.user_vectors).all()


def test_models_do_not_depend_on_where_features_begin() -> None:
    near = federation()
    far = near.with_public_items(public(lambda ids: features_of(ids) + np.float32(7)))
    first, second = (
        train(RECIPE, each, budget=BUDGET, random=InsecureRandom(1)).homes or {} for each in (near, far)
    )
    for name, model in first.items():
        items = model.item_ids.tolist()
        np.testing.assert_allclose(second[name].predict(7, items), model.predict(7, items), atol=0.01)


def test_models_do_not_depend_on_the_rating_scale() -> None:
    wide = Scale(-10, 30)
    plain, stretched = (
        train(RECIPE, federation(make_ratings(scale)), budget=BUDGET, random=InsecureRandom(1)).homes or {}
        for scale in (STARS, wide)
    )
    items = plain["party 0"].item_ids.tolist()
    expected = 10 * (plain["party 0"].predict(7, items) - 1) - 10
    np.testing.assert_allclose(stretched["party 0"].predict(7, items), expected, atol=0.1)


def test_without_a_budget_nothing_is_noisy_and_nothing_is_promised() -> None:
    run = train(RECIPE, federation())
    assert run.guarantee is not None
    assert not run.guarantee.holds


def test_one_party_is_alone() -> None:
    one = federation(parties=1)
    run = train(RECIPE, one, budget=BUDGET)
    assert len(run.homes or {}) == 1


def test_users_as_units_are_refused_with_the_reason() -> None:
    with pytest.raises(Refused, match="Noise that hides all ratings of a user at once also hides her taste"):
        train(RECIPE, federation(), budget=Budget(epsilon=4.0, delta=1e-6, unit="user"))


def test_two_parties_are_warned() -> None:
    warnings = RECIPE.promise(federation(parties=2).facts, BUDGET).warnings
    assert any("hides nothing from the other party" in text for text in warnings)
    assert RECIPE.promise(federation().facts, BUDGET).warnings == ()


def test_the_less_noise_the_more_directions() -> None:
    found = [directions_for(noise, 29) for noise in (0.05, 0.028, 0.008, 0.0036, 0.0)]
    assert found == [6, 6, 21, 31, 31]
    assert directions_for(0.05, 0) == directions_for(0.0, 0) == 2


def test_the_choice_rests_on_public_numbers() -> None:
    facts = federation().facts
    assert noise_for(None) == 0.0
    assert noise_for(BUDGET) == pytest.approx(1.19, rel=0.02)
    noise = noise_for(BUDGET) * facts.user_count / facts.rating_count
    settled = RECIPE.settled(facts, BUDGET)
    assert settled.directions == directions_for(noise, 2)
    assert replace(RECIPE, directions=1).settled(facts, BUDGET).directions == 1
    assert replace(RECIPE, directions=99).settled(facts, BUDGET).directions == 4


def test_settings_survive_their_way_to_a_table_and_back() -> None:
    settled = replace(PLAIN, publish=True).settled(federation().facts, BUDGET)
    assert from_table(VerticalTaste, as_table(settled), "recipe") == settled


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"directions": 0}, "directions must be at least 1"),
        ({"item_share": 1.0}, "item_share must lie between 0 and 1"),
        ({"aggregate": "plain"}, "aggregate must be"),
        ({"home": None}, "home must be"),
        ({"publish": "yes"}, "publish must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        VerticalTaste(**wrong)


def test_messages_that_do_not_belong_are_refused() -> None:
    exchange = Exchange(RECIPE, federation())
    party = exchange.parties["party 0"]
    with pytest.raises(RunError, match="round 2 does not begin with TasteBegin"):
        party.handle(2, TasteBegin())
    with pytest.raises(RunError, match="no sum of messages"):
        party.finish(TasteBegin())
    exchange.round(1)
    question = exchange.coordinator.ask(2)
    assert isinstance(question, TasteDirections)
    with pytest.raises(RunError, match="coordinator sent rows"):
        party.handle(2, replace(question, rows=question.rows[:-1]))
    with pytest.raises(RunError, match="not a finite number"):
        party.handle(2, replace(question, mean=float("nan")))
    short = TasteItems(sums=np.zeros((2, 2)), variance=np.zeros(1), features=np.zeros((2, 2)))
    with pytest.raises(RunError, match="party 1 sent sums"):
        exchange.coordinator.take(1, {"party 1": short})
    total = added(list(exchange.answers(2).values()))
    for wrong in (replace(total, sums=total.sums[:-1]), replace(total, answered=total.answered[:2])):
        with pytest.raises(RunError, match="the sum of all answers sent"):
            exchange.coordinator.take(2, {SUM: wrong})


def test_negative_variances_are_refused() -> None:
    exchange = Exchange(PLAIN, federation())
    exchange.round(1)
    shape = (exchange.facts.user_count, 2 * exchange.recipe.width)
    negative = TasteSums(sums=np.zeros(shape), variance=np.array([-1.0]))
    with pytest.raises(RunError, match="party 1 sent a negative variance"):
        exchange.coordinator.take(2, {"party 1": negative})
