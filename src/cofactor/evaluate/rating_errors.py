"""How far predicted ratings are from the true ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor.data.grouping import Values
from cofactor.data.ratings import Ratings
from cofactor.errors import DataError
from cofactor.evaluate.bootstrap import Estimate, estimate, resampled_totals
from cofactor.factors.model import Factors

ACTIVITY_BOUNDS = (25, 50, 100, 500)
"""Where the groups of dpmf-rp, appendix I, begin after the first."""


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Errors of predicted ratings, with intervals over users."""

    mse: Estimate
    rmse: Estimate
    rmse_by_user: Estimate
    """The mean of each user's own RMSE, so that every user counts the same."""
    mae: Estimate
    users: int
    ratings: int

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers by name, their intervals beside them."""
        found = {name: getattr(self, name) for name in ("mse", "rmse", "rmse_by_user", "mae")}
        return {
            **{name: one.value for name, one in found.items()},
            "users": self.users,
            "ratings": self.ratings,
            "intervals": {name: [one.low, one.high] for name, one in found.items()},
        }


@dataclass(frozen=True)
class ActivityGroup:
    """Users with at least `low` and fewer than `high` ratings; no upper bound when None."""

    low: int
    high: int | None
    users: int
    ratings: int
    mse: float | None
    """Mean squared error over the group's test ratings; None when it has none."""


@dataclass(frozen=True)
class Activity:
    """Errors by how much users rate, and how unequal they are."""

    groups: tuple[ActivityGroup, ...]
    variance: float
    """Variance of the groups' errors, each group counting once (dpmf-rp, equation 59); empty ones do not."""


def mse(actual: ArrayLike, predicted: ArrayLike) -> float:
    """Return the mean squared error over ratings."""
    return float(np.mean(_differences(actual, predicted) ** 2))


def rmse(actual: ArrayLike, predicted: ArrayLike) -> float:
    """Return the root of the mean squared error over ratings."""
    return float(np.sqrt(mse(actual, predicted)))


def mae(actual: ArrayLike, predicted: ArrayLike) -> float:
    """Return the mean absolute error over ratings."""
    return float(np.mean(np.abs(_differences(actual, predicted))))


def rmse_by_user(users: ArrayLike, actual: ArrayLike, predicted: ArrayLike) -> float:
    """Return the mean over users of each one's own RMSE (dpmf-rp, equation 52)."""
    _, rows = np.unique(np.asarray(users), return_inverse=True)
    squared = np.bincount(rows, _differences(actual, predicted) ** 2)
    return float(np.sqrt(squared / np.bincount(rows)).mean())


def errors(model: Factors, test: Ratings, *, seed: int = 0, resamples: int = 1000) -> Errors:
    """Measure a model's predictions of the test ratings."""
    return errors_of(predictions(model, test), test, seed=seed, resamples=resamples)


def errors_of(predicted: Values, test: Ratings, *, seed: int = 0, resamples: int = 1000) -> Errors:
    """Measure predictions aligned with the test ratings."""
    return errors_of_each({"": predicted}, test, seed=seed, resamples=resamples)[""]


def errors_of_each(
    predicted: Mapping[str, Values], test: Ratings, *, seed: int = 0, resamples: int = 1000
) -> dict[str, Errors]:
    """Measure several predictions of the same test ratings; users are drawn once for all of them."""
    counts = test.by_user.sizes
    columns = [column for values in predicted.values() for column in by_user(values, test)]
    table = np.column_stack([*columns, counts, counts > 0])[counts > 0]
    totals = resampled_totals(table, resamples=resamples, seed=seed)
    ratings, users = totals[:, -2], totals[:, -1]
    found = {}
    for name, at in zip(predicted, range(0, len(columns), 3), strict=True):
        squared, absolute, own = totals[:, at : at + 3].T
        found[name] = Errors(
            mse=estimate(squared / ratings),
            rmse=estimate(np.sqrt(squared / ratings)),
            rmse_by_user=estimate(own / users),
            mae=estimate(absolute / ratings),
            users=len(table),
            ratings=len(test),
        )
    return found


def by_user(predicted: Values, test: Ratings) -> list[NDArray[np.float64]]:
    """Return each user's squared errors and absolute errors, added up, and her own RMSE."""
    wrong = _differences(test.values, predicted)
    squared = np.bincount(test.users, wrong**2, minlength=test.user_count)
    absolute = np.bincount(test.users, np.abs(wrong), minlength=test.user_count)
    return [squared, absolute, np.sqrt(squared / np.maximum(test.by_user.sizes, 1))]


def by_activity(
    model: Factors, train: Ratings, test: Ratings, bounds: tuple[int, ...] = ACTIVITY_BOUNDS
) -> Activity:
    """Group test errors by how many ratings a user has in train and test together."""
    return activity_of(predictions(model, test), train, test, bounds)


def activity_of(
    predicted: Values, train: Ratings, test: Ratings, bounds: tuple[int, ...] = ACTIVITY_BOUNDS
) -> Activity:
    """Group the errors of predictions aligned with the test ratings."""
    group_of = np.searchsorted(bounds, train.by_user.sizes + test.by_user.sizes, side="right")
    squared = _differences(test.values, predicted) ** 2
    groups = tuple(
        _group(low, high, group_of == number, test, squared)
        for number, (low, high) in enumerate(zip((0, *bounds), (*bounds, None), strict=True))
    )
    return Activity(groups, float(np.var([group.mse for group in groups if group.mse is not None])))


def predictions(model: Factors, test: Ratings) -> Values:
    """Predict the test ratings; refuse where an error in rating units would mean nothing."""
    check_numbering(model, test)
    if len(test) == 0:
        raise DataError("nothing to measure: there are no test ratings. Hold back more ratings.")
    if test.implicit or model.scale is None:
        who = "the test ratings have" if test.implicit else "the model has"
        raise DataError(
            f"{who} no rating scale, so errors mean nothing. Use evaluate.ranking.ranking instead."
        )
    return model.predict_rows(test.users, test.items)


def check_numbering(model: Factors, ratings: Ratings) -> None:
    """Refuse ratings whose rows stand for other users or items than the model's."""
    for side, ours, theirs in (
        ("users", model.user_ids, ratings.user_ids),
        ("items", model.item_ids, ratings.item_ids),
    ):
        if not np.array_equal(ours, theirs):
            raise DataError(
                f"the model and the ratings number their {side} differently ({len(ours):,} and "
                f"{len(theirs):,}). Split one set of ratings with cofactor.split and train on its first part."
            )


def _group(
    low: int, high: int | None, members: NDArray[np.bool_], test: Ratings, squared: NDArray[np.float64]
) -> ActivityGroup:
    mine = squared[members[test.users]]
    return ActivityGroup(low, high, int(members.sum()), len(mine), float(mine.mean()) if len(mine) else None)


def _differences(actual: ArrayLike, predicted: ArrayLike) -> NDArray[np.float64]:
    left, right = np.asarray(actual, np.float64), np.asarray(predicted, np.float64)
    if left.shape != right.shape or left.size == 0:
        raise DataError(f"cannot compare {left.size:,} ratings with {right.size:,} predictions.")
    return left - right
