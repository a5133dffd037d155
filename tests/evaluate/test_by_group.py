from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.data import partition
from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, DataError
from cofactor.evaluate.by_group import IN_NO_GROUP, errors_by_activity, errors_by_group
from cofactor.evaluate.joining import own_means
from cofactor.evaluate.rating_errors import errors
from cofactor.factors.baselines import GlobalMean, UserItemBias
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.recipes.alone import Alone
from cofactor.recipes.pooled import Pooled
from cofactor.recipes.train import train as run_recipe
from tests.evaluate.conftest import World

NAMES = ("conservative", "moderate", "liberal")


def thirds(users: int) -> Any:
    return np.arange(users) % 3


def horizontal(part: Ratings) -> Federation:
    parts = partition.horizontal(part, 3, seed=5)
    return Federation.horizontal([Party(name=f"p{at}", ratings=own) for at, own in enumerate(parts)])


def test_numbers_of_a_group_are_those_of_its_ratings_alone(world: World) -> None:
    groups = thirds(world.test.user_count)
    found = errors_by_group(world.model, world.train, world.test, groups, NAMES)
    assert [group.name for group in found.groups] == list(NAMES)
    assert world.train.scale is not None
    mean = own_means(world.train, world.train.scale)
    test = world.test
    for place, group in enumerate(found.groups):
        mine = groups[test.users] == place
        wrong = (test.values - world.model.predict_rows(test.users, test.items))[mine].astype(float)
        by_mean = (test.values - mean.predict_rows(test.users, test.items))[mine].astype(float)
        assert (group.users, group.ratings) == (len(np.unique(test.users[mine])), mine.sum())
        assert group.mse.value == pytest.approx((wrong**2).mean())
        assert group.mae.value == pytest.approx(np.abs(wrong).mean())
        assert group.own_mean.value == pytest.approx((by_mean**2).mean())
        assert group.gain.value == pytest.approx((by_mean**2).mean() - (wrong**2).mean())
        assert group.mse.low < group.mse.value < group.mse.high
    assert found.gap is not None
    assert found.gap.value == pytest.approx(found.groups[0].gain.value - found.groups[2].gain.value)


def test_one_group_of_all_users_has_the_errors_of_all(world: World) -> None:
    found = errors_by_group(world.model, world.train, world.test, np.zeros(150, int), ["all"])
    (group,) = found.groups
    whole = errors(world.model, world.test)
    assert group.mse.value == pytest.approx(whole.mse.value)
    assert (group.mse.low, group.mse.high) == pytest.approx((whole.mse.low, whole.mse.high))
    assert (found.gap, group.cost) == (None, None)


def test_users_in_no_group_are_told_apart_and_empty_groups_left_out(world: World) -> None:
    groups = np.where(np.arange(150) < 100, 2, -1)
    found = errors_by_group(world.model, world.train, world.test, groups, NAMES)
    assert [group.name for group in found.groups] == ["liberal", IN_NO_GROUP]
    assert found.gap is None


def test_what_privacy_costs_a_group_is_the_difference_from_the_model_beside(world: World) -> None:
    groups, worse = thirds(150), GlobalMean().fit(world.train)
    found = errors_by_group(worse, world.train, world.test, groups, NAMES, beside=world.model)
    other = errors_by_group(world.model, world.train, world.test, groups, NAMES)
    for group, better in zip(found.groups, other.groups, strict=True):
        assert group.cost is not None
        assert group.cost.value == pytest.approx(group.mse.value - better.mse.value)
        assert 0 < group.cost.low < group.cost.high
    assert "cost of privacy" in found.text()
    assert "cost of privacy" not in other.text()


def test_a_group_that_is_predicted_worse_is_seen_to_pay(world: World) -> None:
    groups = thirds(150)
    biased = UserItemBias().fit(world.train)
    spoilt = np.where(groups == 0, 3.0, 0.0).astype(np.float32)
    model = type(biased)(
        user_ids=biased.user_ids,
        item_ids=biased.item_ids,
        mean=biased.mean,
        user_bias=biased.user_bias + spoilt,
        item_bias=biased.item_bias,
        user_vectors=biased.user_vectors,
        item_vectors=biased.item_vectors,
        scale=biased.scale,
    )
    found = errors_by_group(model, world.train, world.test, groups, NAMES)
    assert found.gap is not None
    assert found.gap.high < 0
    assert f"What conservative users gain less what liberal users do: {found.gap}." in found.text()
    assert found.groups[0].gain.high < 0 < found.groups[1].gain.low


def test_a_difference_that_may_be_chance_is_said_to_be(world: World) -> None:
    found = errors_by_group(world.model, world.train, world.test, thirds(150), NAMES)
    assert found.gap is not None
    assert found.gap.low < 0 < found.gap.high
    assert f"{found.gap}, which may be chance." in found.text()


def test_groups_of_too_few_users_to_tell_are_measured_and_not_compared(world: World) -> None:
    groups = np.repeat([0, 1, 2], [70, 71, 9])
    found = errors_by_group(world.model, world.train, world.test, groups, NAMES)
    assert [group.users for group in found.groups] == [70, 71, 9]
    assert found.gap is not None
    assert found.gap.value == pytest.approx(found.groups[0].gain.value - found.groups[1].gain.value)
    assert "less what moderate users do" in found.text()
    few = found.groups[2]
    assert str(found.groups[0].mse) in found.text()
    assert f"{few.mse.value:.4f}" in found.text()
    assert str(few.mse) not in found.text()


def test_parties_are_measured_with_their_own_models_in_the_order_of_all_users(world: World) -> None:
    training, testing = horizontal(world.train), horizontal(world.test)
    run = run_recipe(Alone(), training)
    order = np.array(testing.user_ids) - 1
    found = errors_by_group(run, training, testing, thirds(150)[order], NAMES)
    for place, group in enumerate(found.groups):
        squared = []
        for party in testing.parties:
            own, model = party.ratings, run.homes[party.name]
            wrong = own.values - model.predict_rows(own.users, own.items)
            squared.append(wrong[(own.user_ids[own.users] - 1) % 3 == place].astype(float) ** 2)
        assert group.mse.value == pytest.approx(np.concatenate(squared).mean())
        assert group.ratings == sum(map(len, squared))


def test_groups_by_how_much_users_rate_are_named_by_their_least_and_most_ratings(world: World) -> None:
    sizes = world.train.by_user.sizes + world.test.by_user.sizes
    # Somebody has as many ratings as each bound: a name that were off by one would tell of other users.
    few, many = (int(np.sort(sizes)[place]) for place in (50, 100))
    found = errors_by_activity(world.model, world.train, world.test, bounds=(few, many))
    wanted = {
        f"1 to {few - 1}": sizes < few,
        f"{few} to {many - 1}": (few <= sizes) & (sizes < many),
        f"{many} or more": many <= sizes,
    }
    tested = world.test.by_user.sizes > 0
    assert {group.name: group.users for group in found.groups} == {
        name: (members & tested).sum() for name, members in wanted.items()
    }


def test_a_common_model_of_parties_is_measured_like_one_of_pooled_ratings(world: World) -> None:
    training, testing = horizontal(world.train), horizontal(world.test)
    run = run_recipe(Pooled(), training)
    assert run.model is not None
    groups = thirds(150)
    found = errors_by_group(run, training, testing, groups, NAMES)
    same = errors_by_group(run.model, training.pooled(), testing.pooled(), groups, NAMES)
    for one, other in zip(found.groups, same.groups, strict=True):
        assert one.mse == other.mse
        assert one.own_mean.value == pytest.approx(other.own_mean.value, rel=1e-5)


def test_a_party_without_test_ratings_does_not_count(world: World) -> None:
    training, testing = horizontal(world.train), horizontal(world.test)
    run = run_recipe(Alone(), training)
    first, *others = testing.parties
    silent = first.with_ratings(first.ratings.where(np.zeros(len(first.ratings), bool)))
    places = np.repeat([0, 1, 2], [party.ratings.user_count for party in testing.parties])
    found = errors_by_group(run, training, replace(testing, parties=(silent, *others)), places, NAMES)
    whole = errors_by_group(run, training, testing, places, NAMES)
    assert [group.name for group in found.groups] == ["moderate", "liberal"]
    for group, same in zip(found.groups, whole.groups[1:], strict=True):
        assert group.users == same.users
        assert group.mse.value == pytest.approx(same.mse.value)


@pytest.mark.parametrize(
    ("groups", "names", "message"),
    [
        (np.zeros(149, int), NAMES, "one whole number for each of 150 users"),
        (np.zeros(150), NAMES, "one whole number for each of 150 users"),
        (np.full(150, 3), NAMES, "between -1, for none, and 2"),
        (np.full(150, -2), NAMES, "between -1, for none, and 2"),
        (np.zeros(150, int), (), "a list of different names"),
        (np.zeros(150, int), "all", "a list of different names"),
        (np.zeros(150, int), ("a", "a"), "a list of different names"),
        (np.zeros(150, int), (IN_NO_GROUP,), "a list of different names"),
    ],
)
def test_groups_that_fit_no_users_are_refused(groups: Any, names: Any, message: str, world: World) -> None:
    with pytest.raises(ConfigError, match=message):
        errors_by_group(world.model, world.train, world.test, groups, names)


def test_what_cannot_be_measured_is_refused(world: World) -> None:
    training = horizontal(world.train)
    run = run_recipe(Alone(), training)
    with pytest.raises(DataError, match="two parts of their Federation"):
        errors_by_group(run, world.train, world.test, thirds(150), NAMES)
    with pytest.raises(DataError, match="two parts of what it was trained on"):
        errors_by_group(world.model, training, world.test, thirds(150), NAMES)
    nothing = world.test.where(np.zeros(len(world.test), bool))
    with pytest.raises(DataError, match="no test ratings"):
        errors_by_group(world.model, world.train, nothing, thirds(150), NAMES)
    with pytest.raises(DataError, match="no scale"):
        errors_by_group(world.model, world.train.without_values(), world.test, thirds(150), NAMES)


def test_numbers_can_be_had_as_plain_ones(world: World) -> None:
    found = errors_by_group(world.model, world.train, world.test, thirds(150), NAMES).as_dict()
    assert [group["name"] for group in found["groups"]] == list(NAMES)
    assert set(found["gap"]) == {"value", "low", "high"}
