from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, mean_squared_error, root_mean_squared_error

from cofactor.data.ratings import Ratings
from cofactor.errors import DataError
from cofactor.evaluate.rating_errors import (
    activity_of,
    by_activity,
    check_numbering,
    errors,
    errors_of,
    mae,
    mse,
    rmse,
    rmse_by_user,
)
from tests.evaluate.conftest import World


def test_errors_by_hand() -> None:
    actual, predicted = [5, 3, 1, 4], [4, 3, 4, 4]
    assert mse(actual, predicted) == 2.5
    assert rmse(actual, predicted) == pytest.approx(np.sqrt(2.5))
    assert mae(actual, predicted) == 1.0
    # User a errs by 1 and 0, user b by 3 and 0.
    assert rmse_by_user(["a", "a", "b", "b"], actual, predicted) == pytest.approx(
        (np.sqrt(0.5) + np.sqrt(4.5)) / 2
    )


def test_errors_of_a_model_equal_those_of_scikit_learn(world: World) -> None:
    test = world.test
    predicted = world.model.predict_rows(test.users, test.items)
    found = errors(world.model, test)
    assert found.mse.value == pytest.approx(mean_squared_error(test.values, predicted))
    assert found.rmse.value == pytest.approx(root_mean_squared_error(test.values, predicted))
    assert found.mae.value == pytest.approx(mean_absolute_error(test.values, predicted))
    own = [
        root_mean_squared_error(test.values[test.users == user], predicted[test.users == user])
        for user in np.unique(test.users)
    ]
    assert found.rmse_by_user.value == pytest.approx(np.mean(own))
    assert (found.users, found.ratings) == (150, len(test))
    for name, one in (("mse", found.mse), ("rmse_by_user", found.rmse_by_user)):
        assert one.low < one.value < one.high, name


def test_interval_equals_a_plain_bootstrap_over_users(world: World) -> None:
    test = world.test
    squared = (test.values - world.model.predict_rows(test.users, test.items)).astype(np.float64) ** 2
    random = np.random.default_rng(0)
    samples = []
    for _ in range(1000):
        drawn = random.integers(150, size=150)
        samples.append(np.concatenate([squared[test.users == user] for user in drawn]).mean())
    found, (low, high) = errors(world.model, test).mse, np.quantile(samples, (0.025, 0.975))
    # The standard error of a quantile of 1,000 resamples is about 4% of the interval's half width.
    assert found.low == pytest.approx(low, abs=0.25 * (high - low) / 2)
    assert found.high == pytest.approx(high, abs=0.25 * (high - low) / 2)


def test_users_without_test_ratings_do_not_count() -> None:
    test = Ratings.from_rows(
        [0, 0, 2], [0, 1, 0], [1.0, 3.0, 5.0], user_ids=np.arange(3), item_ids=np.arange(2)
    )
    found = errors_of(np.array([2, 3, 3], np.float32), test)
    assert found.users == 2
    assert found.rmse_by_user.value == pytest.approx((np.sqrt(0.5) + 2) / 2)


def test_seed_moves_the_interval_but_never_the_value(world: World) -> None:
    one, other = (errors(world.model, world.test, seed=seed).mse for seed in (0, 1))
    assert one.value == other.value
    assert one.low != other.low
    assert one == errors(world.model, world.test, seed=0).mse


def test_table_holds_plain_numbers_and_intervals(world: World) -> None:
    table = errors(world.model, world.test).as_dict()
    assert list(table) == ["mse", "rmse", "rmse_by_user", "mae", "users", "ratings", "intervals"]
    assert table["intervals"]["mse"][0] < table["mse"] < table["intervals"]["mse"][1]


def test_activity_groups_and_their_variance(world: World) -> None:
    train, test = world.train, world.test
    sizes = train.by_user.sizes + test.by_user.sizes
    squared = (test.values - world.model.predict_rows(test.users, test.items)).astype(np.float64) ** 2
    found = by_activity(world.model, train, test, bounds=(20, 40, 1000))
    wanted = []
    for group, (low, high) in zip(found.groups, ((0, 20), (20, 40), (40, 1000), (1000, 10**9)), strict=True):
        members = (sizes >= low) & (sizes < high)
        assert (group.low, group.users) == (low, members.sum())
        mine = squared[members[test.users]]
        assert group.ratings == len(mine)
        if len(mine):
            wanted.append(mine.mean())
            assert group.mse == pytest.approx(mine.mean())
        else:
            assert group.mse is None
    assert len(wanted) == 3
    assert found.groups[-1].high is None
    pairs = sum((wanted[k] - wanted[m]) ** 2 for k in range(3) for m in range(k))
    assert found.variance == pytest.approx(pairs / 3**2)


def test_published_groups_give_the_published_variance() -> None:
    # dpmf-rp, Table 5, central MF: its variance is 0.23 +- 0.03, over several runs.
    sizes, published = [10, 30, 60, 200, 600], [1.81, 2.04, 1.35, 1.02, 0.78]
    users, items = np.repeat(np.arange(5), sizes), np.concatenate([np.arange(size) for size in sizes])
    test = Ratings.from_rows(users, items, items % 5 + 1.0, user_ids=np.arange(5), item_ids=np.arange(600))
    predicted = test.values + np.sqrt(np.repeat(published, sizes)).astype(np.float32)
    found = activity_of(predicted, test.where(np.zeros(900, np.bool_)), test)
    assert [group.mse for group in found.groups] == pytest.approx(published, abs=1e-5)
    assert found.variance == pytest.approx(0.23, abs=0.03)


def test_default_groups_are_those_of_the_paper(world: World) -> None:
    groups = by_activity(world.model, world.train, world.test).groups
    assert [(group.low, group.high) for group in groups] == [
        (0, 25), (25, 50), (50, 100), (100, 500), (500, None),
    ]  # fmt: skip


def test_mistakes_are_named(world: World) -> None:
    model, test = world.model, world.test
    with pytest.raises(DataError, match=r"number their users differently \(150 and 140\).*cofactor.split"):
        errors(model, test.select(users=slice(0, 140)))
    with pytest.raises(DataError, match="number their items differently"):
        check_numbering(model, test.select(items=slice(0, 10)))
    with pytest.raises(DataError, match="there are no test ratings"):
        errors(model, test.where(np.zeros(len(test), np.bool_)))
    with pytest.raises(DataError, match="the model has no rating scale"):
        errors(replace(model, scale=None), test)
    clicks = Ratings.from_rows(test.users, test.items, user_ids=test.user_ids, item_ids=test.item_ids)
    with pytest.raises(DataError, match="the test ratings have no rating scale"):
        errors(model, clicks)
    with pytest.raises(DataError, match="cannot compare 2 ratings with 1 predictions"):
        mse([1, 2], [1])
