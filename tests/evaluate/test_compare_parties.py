from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.data import partition
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.data.synthetic import Shape, make
from cofactor.errors import DataError
from cofactor.evaluate.bootstrap import Estimate
from cofactor.evaluate.compare import Comparison, compare
from cofactor.evaluate.joining import Joining, joining_of
from cofactor.evaluate.rating_errors import errors
from cofactor.factors.baselines import GlobalMean, PersonalRidge, UserItemBias, UserMean
from cofactor.factors.bayes import Bayes
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.recipes.alone import Alone
from cofactor.recipes.pooled import Pooled
from cofactor.recipes.train import train

MADE = make(Shape(users=90, items=60, ratings=3_000, minimum=10), seed=3)
PUBLIC = PublicItems.of_numbers(np.arange(1, 61), MADE.item_features, source="made up")
HOME = Bayes(factors=2, epochs=2, threads=1)
NAMES = ["global_mean", "user_mean", "item_mean", "bias", "alone", "private", "pooled"]
Parts = tuple[Federation, Federation]


def dealt(split: str, parties: int = 3) -> Parts:
    deal = partition.horizontal if split == "horizontal" else partition.vertical
    join = Federation.horizontal if split == "horizontal" else Federation.vertical
    both = [
        join([Party(name=f"p{at}", ratings=own) for at, own in enumerate(deal(part, parties, seed=5))])
        for part in by_fraction(MADE.ratings, 0.3, seed=1)
    ]
    return both[0], both[1]


def truth(ratings: Ratings) -> Factors:
    """The model that made the ratings, for some of the users and items: their ids are row numbers + 1."""
    users, items = ratings.user_ids - 1, ratings.item_ids - 1
    return Factors(
        user_ids=ratings.user_ids,
        item_ids=ratings.item_ids,
        mean=MADE.truth.mean,
        user_bias=MADE.truth.user_bias[users],
        item_bias=MADE.truth.item_bias[items],
        user_vectors=MADE.truth.user_vectors[users],
        item_vectors=MADE.truth.item_vectors[items],
        scale=ratings.scale,
    )


def run_of(training: Federation, homes: dict[str, Factors] | None = None, **changes: Any) -> Run:
    """A run of parties under a budget, with models that are given."""
    run = train(Alone(home=HOME), training)
    assert run.together is not None
    together = replace(run.together, budget={"kind": "Budget", "epsilon": 1.0})
    made = homes or {party.name: truth(party.ratings) for party in training.parties}
    recipe = {"kind": "Toy", "home": run.recipe["home"]}
    return replace(run, homes=made, together=together, recipe=recipe, **changes)


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Compare errors and their intervals: those of several models are the same as those of each."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        if name != "intervals":
            assert value == pytest.approx(other[name], rel=1e-9), name
    for name, ends in one["intervals"].items():
        assert ends == pytest.approx(other["intervals"][name], rel=1e-9), name


def squares(models: dict[str, Factors], test: Federation) -> np.ndarray[Any, Any]:
    return np.concatenate(
        [
            (party.ratings.values - models[party.name].predict_rows(party.ratings.users, party.ratings.items))
            ** 2
            for party in test.parties
        ]
    )


@pytest.fixture(scope="module", params=["horizontal", "vertical"])
def parts(request: pytest.FixtureRequest) -> Parts:
    return dealt(request.param)


@pytest.fixture(scope="module")
def found(parts: Parts) -> Comparison:
    """What parties with true models are told."""
    return compare(run_of(parts[0]), *parts)


def test_errors_are_over_all_test_ratings_and_by_party(parts: Parts, found: Comparison) -> None:
    training, test = parts
    truths = {party.name: truth(party.ratings) for party in training.parties}
    assert list(found.scores) == NAMES
    table = found.as_dict()
    assert table["private"]["mse"] == pytest.approx(squares(truths, test).mean(), rel=1e-5)
    own = {party.name: UserMean().fit(party.ratings) for party in training.parties}
    assert table["user_mean"]["mse"] == pytest.approx(squares(own, test).mean(), rel=1e-5)
    for party in test.parties:
        wrong = errors(truths[party.name], party.ratings).as_dict()
        stored = table["private"]["parties"][party.name]
        assert_same({name: stored[name] for name in wrong}, wrong)


def test_alone_is_the_run_s_home_model_on_own_ratings_only(parts: Parts, found: Comparison) -> None:
    training, test = parts
    alone = {party.name: HOME.fit(party.ratings, seed=0) for party in training.parties}
    assert found.as_dict()["alone"]["mse"] == pytest.approx(squares(alone, test).mean(), rel=1e-5)


def test_pooled_is_measured_as_one_model_of_all_ratings(parts: Parts, found: Comparison) -> None:
    training, test = parts
    model = HOME.fit(training.pooled(), seed=0)
    assert_same(found.scores["pooled"].as_dict(), errors(model, test.pooled()).as_dict())
    by_party = [score.scores["pooled"] for score in found.parties.values()]
    total = sum(one.mse.value * one.ratings for one in by_party) / sum(one.ratings for one in by_party)
    assert total == pytest.approx(found.scores["pooled"].as_dict()["mse"], rel=1e-6)


def test_pooled_uses_the_features_that_parties_have(parts: Parts) -> None:
    training, test = parts[0].with_public_items(PUBLIC), parts[1]
    pooled = training.pooled()
    # Pooled items of a vertical federation stand party by party.
    order = pooled.item_ids - 1
    model = HOME.fit(pooled, features=MADE.item_features[order], seed=0)
    found = compare(run_of(training), training, test).as_dict()
    assert found["pooled"]["mse"] == pytest.approx(errors(model, test.pooled()).mse.value, rel=1e-6)


def test_public_items_bring_each_partys_users_own_ridge(parts: Parts) -> None:
    training, test = parts[0].with_public_items(PUBLIC), parts[1]
    found = compare(run_of(training), training, test)
    said = compare(run_of(training), parts[0], test, public_items=PUBLIC)
    assert found.as_dict() == said.as_dict()
    party, held = training.parties[0], test.parties[0].ratings
    assert party.features is not None
    model = PersonalRidge().fit(party.ratings, features=party.features, scale=training.scale)
    own = found.parties[party.name].scores["personal_ridge"]
    assert own.mse.value == pytest.approx(errors(model, held).mse.value, rel=1e-6)


def test_published_model_is_measured_where_it_knows_the_users() -> None:
    training, test = dealt("vertical")
    model = UserItemBias().fit(training.pooled())
    found = compare(run_of(training, model=model), training, test).as_dict()
    assert list(found) == [*NAMES[:-1], "published", "pooled"]
    assert found["published"]["mse"] == pytest.approx(errors(model, test.pooled()).mse.value, rel=1e-6)
    training, test = dealt("horizontal")
    items_only = replace(model, user_ids=model.user_ids[:0], item_ids=training.item_ids)
    assert list(compare(run_of(training, model=items_only), training, test).scores) == NAMES


def test_joining_helps_whoever_gets_better_models(found: Comparison) -> None:
    assert found.joining is not None
    assert found.joining.helped
    gain = found.joining.gain.value
    assert gain == pytest.approx(found.joining.alone - found.joining.together, rel=1e-9)
    table = found.as_dict()
    assert gain == pytest.approx(table["alone"]["mse"] - table["private"]["mse"], rel=1e-9)
    assert table["private"]["joining"]["sentence"].startswith("joining lowered the parties' error by 0.")
    assert str(found).splitlines()[-1].startswith("all: joining lowered the parties' error by 0.")
    assert str(found).count(" your error by") + str(found).count("help you") == 3


def test_joining_hurts_whoever_gets_worse_models() -> None:
    training, test = dealt("horizontal")
    poor = {party.name: GlobalMean().fit(party.ratings) for party in training.parties}
    found = compare(run_of(training, homes=poor), training, test)
    assert found.joining is not None
    assert found.joining.helped is False
    assert "joining raised the parties' error by 0." in str(found)


def test_joining_that_changes_nothing_did_not_help(parts: Parts) -> None:
    training, test = parts
    same = Alone(home=HOME).fit(training, seed=0)
    found = compare(run_of(training, homes=same), training, test)
    assert found.joining is not None
    assert (found.joining.helped, found.joining.gain.value) == (None, 0.0)
    assert "joining did not help the parties: nothing changed" in str(found)
    assert "p1: joining did not help you: nothing changed" in str(found)


def test_change_that_may_be_chance_did_not_help() -> None:
    joining = Joining(Estimate(0.004, -0.012, 0.021), 0.9, 0.896)
    assert joining.helped is None
    said, beside = joining.sentence().split(" (")
    assert said == "joining did not help you: a change of -0.004 +- 0.017 may be chance"
    assert beside == "MSE 0.900 alone, 0.896 together)"


def test_the_same_users_are_drawn_for_both_models() -> None:
    # Each user's error falls by 1 exactly, however different users are: no resample says otherwise.
    users = np.repeat(np.arange(40), 5)
    random = np.random.default_rng(0)
    ratings = Ratings.from_arrays(users, np.tile(np.arange(5), 40), random.normal(0, 3, 200))
    size = np.repeat(random.uniform(1, 9, 40), 5)
    found = joining_of(
        (ratings.values - np.sqrt(size + 1)).astype(np.float32),
        (ratings.values - np.sqrt(size)).astype(np.float32),
        ratings,
    )
    assert (found.gain.low, found.gain.high) == pytest.approx((1.0, 1.0), abs=1e-4)
    assert found.sentence().startswith("joining lowered your error by 1.0")


def test_run_without_a_budget_is_called_together() -> None:
    training, test = dealt("horizontal")
    run = run_of(training)
    assert run.together is not None
    vanilla = replace(run, together=replace(run.together, budget=None))
    found = compare(vanilla, training, test)
    assert list(found.scores) == [*NAMES[:-2], "together", "pooled"]
    assert found.joining is not None


def test_run_of_parties_by_themselves_has_nothing_to_say_about_joining() -> None:
    training, test = dealt("horizontal")
    found = compare(train(Alone(home=HOME), training), training, test)
    assert list(found.scores) == [*NAMES[:-2], "pooled"]
    assert (found.joining, found.sentences()) == (None, [])
    assert "joining" not in found.as_dict()["alone"]


def test_pooled_run_of_a_federation_is_compared_as_one(parts: Parts) -> None:
    training, test = parts
    run = train(Pooled(model=HOME), training)
    whole = compare(run, training.pooled(), test.pooled()).as_dict()
    assert compare(run, training, test).as_dict() == whole


def test_party_without_test_ratings_is_left_out_of_the_tables() -> None:
    training, test = dealt("horizontal")
    first = test.parties[0]
    nothing = first.with_ratings(first.ratings.where(np.zeros(len(first.ratings), bool)))
    test = replace(test, parties=(nothing, *test.parties[1:]))
    found = compare(run_of(training), training, test)
    assert found.parties["p0"].scores == {}
    assert set(found.as_dict()["private"]["parties"]) == {"p1", "p2"}


def test_other_federation_is_refused() -> None:
    training, test = dealt("horizontal")
    others = dealt("horizontal", parties=2)
    with pytest.raises(DataError, match="two parts of one federation"):
        compare(run_of(training), *others)
    with pytest.raises(DataError, match="two parts of one federation"):
        compare(run_of(training), training, others[1])
    with pytest.raises(DataError, match=r"federation\.split"):
        compare(run_of(training), training.pooled(), test.pooled())


def test_parties_that_number_items_differently_are_refused() -> None:
    training, _ = dealt("vertical")
    _, test = dealt("horizontal")
    with pytest.raises(DataError, match="number their"):
        compare(run_of(training), training, test)
