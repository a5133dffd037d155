"""Who pays for privacy: errors by how much of it users ask for; and by how much they rate."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor.data.ratings import Ratings
from cofactor.errors import ConfigError, DataError
from cofactor.evaluate.bootstrap import Estimate, estimate, resampled_totals
from cofactor.evaluate.joining import check_parties, own_means
from cofactor.evaluate.rating_errors import ACTIVITY_BOUNDS, by_user, check_numbering, predictions
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run

IN_NO_GROUP = "in no group"
_ENOUGH = 10
"""Users: the variety of fewer cannot be read off them."""

Reals = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class GroupErrors:
    """Errors of predicted ratings in one group of users, with intervals over its users."""

    name: str
    users: int
    """With test ratings."""
    ratings: int
    """Of the test."""
    mse: Estimate
    mae: Estimate
    own_mean: Estimate
    """The mean squared error of each user's own mean rating, which tells nobody anything."""
    gain: Estimate
    """By how much the model's is less: above 0 if taking part helped the group."""
    cost: Estimate | None = None
    """By how much the model's is more than that of another one, such as one without privacy."""

    @property
    def compared(self) -> bool:
        """Whether it is a group, and of so many users that it can be compared with another one."""
        return self.name != IN_NO_GROUP and self.users >= _ENOUGH

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers, with intervals if there are enough users for them."""
        table = asdict(self)
        if self.users >= _ENOUGH:
            return table
        alone = {"low": None, "high": None}
        return {name: each | alone if isinstance(each, dict) else each for name, each in table.items()}

    def shown(self, one: Estimate) -> str:
        """Write a number, with its interval if there are enough users for one."""
        return str(one) if self.users >= _ENOUGH else f"{one.value:.4f}"


@dataclass(frozen=True, kw_only=True)
class ErrorsByGroup:
    """Errors of all groups, in the order of their names, and how far they are apart."""

    groups: tuple[GroupErrors, ...]
    """Those in which somebody has test ratings."""
    gap: Estimate | None = None
    """What the first group gains less what the last one does, of those with enough users to tell; None if
    there are not two of them."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers."""
        return asdict(self) | {"groups": self.as_list()}

    def as_list(self) -> list[dict[str, Any]]:
        """Return the groups in plain numbers, for a run's scores."""
        return [group.as_dict() for group in self.groups]

    def text(self) -> str:
        """Return a table, and what to read off it in a sentence."""
        columns = ["group", "users", "ratings", "mse", "mae", "mse of own mean", "gained by taking part"]
        costs = any(group.cost is not None for group in self.groups)
        rows = [[*columns, *(["cost of privacy"] if costs else [])]]
        for group in self.groups:
            counts = [group.name, f"{group.users:,}", f"{group.ratings:,}"]
            beside = [f"{group.mae.value:.4f}", f"{group.own_mean.value:.4f}"]
            mse, gain, *cost = (group.shown(each) for each in (group.mse, group.gain, group.cost) if each)
            rows.append([*counts, mse, *beside, gain, *cost])
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        lines = [
            "  ".join(f"{cell:{width}s}" for cell, width in zip(row, widths, strict=True)) for row in rows
        ]
        return "\n".join([*(line.rstrip() for line in lines), *self._sentence()])

    def _sentence(self) -> list[str]:
        if self.gap is None:
            return []
        first, *_, last = (group.name for group in self.groups if group.compared)
        gap = f"What {first} users gain less what {last} users do: {self.gap}"
        return [f"{gap}, which may be chance." if self.gap.low <= 0 <= self.gap.high else f"{gap}."]


def errors_by_group(
    model: Factors | Run,
    train: Ratings | Federation,
    test: Ratings | Federation,
    groups: ArrayLike,
    names: Sequence[str],
    *,
    beside: Factors | Run | None = None,
    seed: int = 0,
    resamples: int = 1000,
) -> ErrorsByGroup:
    """Measure a model, or a run of parties, by group of users, beside each user's own mean rating.

    `groups` holds a place in `names` for each user, in the order of `test.user_ids`; -1 for none. `beside` is
    another model of the same users and items: one that was trained without privacy, or with weight 1 for all,
    shows what privacy costs whom.
    """
    own = np.asarray(groups)
    _check_groups(own, names, len(test.user_ids))
    sides = [_sums(model, train, test), _sums(_own_means(train), train, test)]
    sides += [] if beside is None else [_sums(beside, train, test)]
    # By user: ratings; and for each model its squared and its absolute errors, added up.
    table = np.column_stack([sides[0][:, 0], *(side[:, 1:] for side in sides)])
    there = table[:, 0] > 0
    if not there.any():
        raise DataError("nothing to measure: there are no test ratings. Hold back more ratings.")
    return _measured(table[there], own[there], names, resamples=resamples, seed=seed)


def errors_by_activity(
    model: Factors | Run,
    train: Ratings | Federation,
    test: Ratings | Federation,
    *,
    bounds: Sequence[int] = ACTIVITY_BOUNDS,
    seed: int = 0,
) -> ErrorsByGroup:
    """Measure a model, or a run of parties, by how many ratings users have, those of the test included."""
    sizes = _sizes(train) + _sizes(test)
    ends = zip((1, *bounds), (*bounds, None), strict=True)
    names = [f"{low:,} or more" if high is None else f"{low:,} to {high - 1:,}" for low, high in ends]
    return errors_by_group(model, train, test, np.digitize(sizes, bounds), names, seed=seed)


def _sizes(data: Ratings | Federation) -> NDArray[np.int64]:
    """Return how many ratings each user has, in the order of `user_ids`."""
    if isinstance(data, Ratings):
        return data.by_user.sizes
    own = [party.ratings.by_user.sizes for party in data.parties]
    return np.sum(own, axis=0) if data.kind == "vertical" else np.concatenate(own)


def _measured(
    table: Reals, own: NDArray[np.int64], names: Sequence[str], *, resamples: int, seed: int
) -> ErrorsByGroup:
    """Draw users once for all groups, so that groups can be subtracted from each other, too."""
    members = {name: own == place for place, name in enumerate(names)} | {IN_NO_GROUP: own == -1}
    members = {name: mask for name, mask in members.items() if mask.any()}
    apart = np.column_stack([table * mask[:, None] for mask in members.values()])
    totals = resampled_totals(apart, resamples=resamples, seed=seed)
    parts = dict(zip(members, np.split(totals, len(members), axis=1), strict=True))
    # A group of few may be empty when users are drawn again; such a draw does not count.
    with np.errstate(invalid="ignore", divide="ignore"):
        means = {name: part[:, 1:] / part[:, :1] for name, part in parts.items()}
        found = [
            _group(name, int(mask.sum()), int(parts[name][0, 0]), means[name])
            for name, mask in members.items()
        ]
        # Not errors themselves: those of some users are larger whatever they ask for.
        ends = [means[group.name][:, 2] - means[group.name][:, 0] for group in found if group.compared]
    gap = estimate(ends[0] - ends[-1]) if len(ends) > 1 else None
    return ErrorsByGroup(groups=tuple(found), gap=gap)


def _group(name: str, users: int, ratings: int, means: Reals) -> GroupErrors:
    squared, absolute, own, _, *other = means.T
    return GroupErrors(
        name=name,
        users=users,
        ratings=ratings,
        mse=estimate(squared),
        mae=estimate(absolute),
        own_mean=estimate(own),
        gain=estimate(own - squared),
        cost=estimate(squared - other[0]) if other else None,
    )


def _sums(
    model: Factors | Run | Mapping[str, Factors], train: Ratings | Federation, test: Ratings | Federation
) -> Reals:
    """Return by user how many test ratings there are, and their squared and absolute errors, added up."""
    models: Factors | Mapping[str, Factors] | None
    models = (model.homes or model.model) if isinstance(model, Run) else model
    if isinstance(test, Federation) != isinstance(train, Federation) or models is None:
        raise DataError("measure a run with the two parts of what it was trained on: data.split().")
    if isinstance(models, Factors):
        return _of_one(models, test.pooled() if isinstance(test, Federation) else test)
    if not isinstance(test, Federation) or not isinstance(train, Federation):
        raise DataError(
            "measure a run of parties with the two parts of their Federation: federation.split()."
        )
    if isinstance(model, Run):
        check_parties(model, train, test)
    own = [_of_party(models[party.name], party) for party in test.parties]
    return np.sum(own, axis=0) if test.kind == "vertical" else np.concatenate(own)


def _of_one(model: Factors, test: Ratings) -> Reals:
    squared, absolute, _ = by_user(predictions(model, test), test)
    return np.column_stack([test.by_user.sizes, squared, absolute])


def _of_party(model: Factors, party: Party) -> Reals:
    """Measure one party, or device, which may have nothing to test on."""
    check_numbering(model, party.ratings)
    return _of_one(model, party.ratings) if len(party.ratings) else np.zeros((party.ratings.user_count, 3))


def _own_means(train: Ratings | Federation) -> Factors | Mapping[str, Factors]:
    if isinstance(train, Federation):
        return {party.name: own_means(party.ratings, train.scale) for party in train.parties}
    if train.scale is None:
        raise DataError("the ratings have no scale, so errors mean nothing. Use evaluate.ranking instead.")
    return own_means(train, train.scale)


def _check_groups(own: NDArray[Any], names: Sequence[str], users: int) -> None:
    if own.shape != (users,) or own.dtype.kind not in "iu":
        raise ConfigError(
            f"groups must be one whole number for each of {users:,} users, in the order of test.user_ids."
        )
    if isinstance(names, str) or not names or len({*names, IN_NO_GROUP}) <= len(names):
        raise ConfigError(f'names must be a list of different names, none of them "{IN_NO_GROUP}".')
    if ((own < -1) | (own >= len(names))).any():
        raise ConfigError(f"groups must lie between -1, for none, and {len(names) - 1}: places in names.")
