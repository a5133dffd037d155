"""Weights: who asks for more privacy than others, and how much more.

A weight lies above 0 and at most at 1, and multiplies epsilon: a rating of item j by user i is promised
epsilon beta_i gamma_j. Weights of users are private and stay with them; public is at most a policy: the
groups that users may choose between.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cofactor.config import not_negative, plain_numbers, positive
from cofactor.errors import ConfigError, DataError

Reals = NDArray[np.float64]

LEAST_WEIGHT = 1e-4
"""The least weight: below, nothing useful can be told, and units rather stay away."""
_GUESS = 0.5
"""What weights are taken to be on average where nobody has said."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Users, or items, with about the same wish for privacy. Public."""

    name: str
    """What they are called: "conservative"."""
    share: float
    """About which part of all is in it."""
    low: float
    """The least weight in it."""
    high: float
    """The largest."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        if not isinstance(self.name, str) or not self.name.strip():
            raise ConfigError("a group needs a name.")
        not_negative(share=self.share)
        positive(low=self.low, high=self.high)
        if self.share > 1:
            raise ConfigError(f"{self.name}: share must be at most 1, got {self.share:g}.")
        if not LEAST_WEIGHT <= self.low <= self.high <= 1:
            raise ConfigError(
                f"{self.name}: weights must rise from {LEAST_WEIGHT:g} at least to 1 at most, got "
                f"{self.low:g} to {self.high:g}."
            )


HDPMF_USERS = (
    Group(name="conservative", share=0.54, low=0.1, high=0.5),
    Group(name="moderate", share=0.37, low=0.5, high=1.0),
    Group(name="liberal", share=0.09, low=1.0, high=1.0),
)
"""Table 2 of Hu and Fang, "Decentralized matrix factorization with heterogeneous differential privacy"."""
HDPMF_ITEMS = (
    Group(name="highly sensitive", share=1 / 3, low=0.1, high=0.5),
    Group(name="moderately sensitive", share=1 / 3, low=0.5, high=1.0),
    Group(name="least sensitive", share=1 / 3, low=1.0, high=1.0),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """How much of epsilon each user, or each item, allows. Make one with `equal`, `by` or `drawn`."""

    groups: tuple[Group, ...] = ()
    """The policy, from the least weights to the largest: public."""
    expected: float = 1.0
    """About what weights are on average: public, and a guess unless groups or somebody say."""
    look_up: Callable[[Any], float | str | None] = field(default=lambda _: 1.0, repr=False)
    """From an id to its weight, or the name of its group, or None: private where ids are users."""
    simulated: bool = False
    """Whether weights follow from a seed, so that whoever knows it knows them."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        _check_weight("expected", self.expected)
        object.__setattr__(self, "groups", _checked_groups(self.groups))

    @classmethod
    def equal(cls, weight: float = 1.0) -> "Weights":
        """Give all the same weight."""
        _check_weight("weight", weight)
        return cls(expected=weight, look_up=lambda _: weight)

    @classmethod
    def by(
        cls,
        given: Mapping[Any, float | str] | Callable[[Any], float | str | None],
        *,
        groups: Sequence[Group] = (),
        expected: float | None = None,
        otherwise: float | str | None = None,
    ) -> "Weights":
        """Take weights, or names of groups, from a mapping or a function of ids.

        Who only names a group has its least weight. `otherwise` is for ids of which nothing is said; without
        it they are refused. `expected` is public.
        """
        found: Callable[[Any], float | str | None]
        if isinstance(given, Mapping):
            known = {str(one): weight for one, weight in given.items()}
            found = lambda one: known.get(str(one))  # noqa: E731
        elif callable(given):
            found = given
        else:
            raise ConfigError(f"weights must be a mapping or a function of ids, got {type(given).__name__}.")

        def stated(one: Any) -> float | str | None:
            own = found(one)
            return otherwise if own is None else own

        ordered = _checked_groups(groups)
        mean = _mean(ordered) if ordered else _GUESS
        return cls(groups=ordered, expected=mean if expected is None else expected, look_up=stated)

    @classmethod
    def drawn(cls, groups: Sequence[Group], *, seed: int = 0) -> "Weights":
        """Draw a group and a weight in it for each id: a simulation of people who choose for themselves.

        They follow from the seed and the id, whatever party holds it.
        """
        ordered = _checked_groups(groups)
        if not ordered:
            raise ConfigError("weights are drawn from groups. Name some, such as HDPMF_USERS.")
        ends = np.cumsum([group.share for group in ordered])

        def one(id: Any) -> float:
            group, within = _chances(f"{seed}, {id}")
            own = ordered[min(int(np.searchsorted(ends, group * ends[-1], side="right")), len(ordered) - 1)]
            return own.low + within * (own.high - own.low)

        return cls(groups=ordered, expected=_mean(ordered), look_up=one, simulated=True)

    def of(self, ids: ArrayLike) -> Reals:
        """Return the weight of each id; refuse ids without one. What is refused names nobody."""
        stated = [self.look_up(one) for one in np.asarray(ids).tolist()]
        missing = sum(each is None for each in stated)
        if missing:
            raise DataError(
                f"{missing:,} of {len(stated):,} have no weight. State one for each, or one for all others "
                "(otherwise=)."
            )
        by_name = {group.name: group.low for group in self.groups}
        return np.array([_weight(each, by_name) for each in stated], np.float64)

    def groups_of(self, ids: ArrayLike) -> NDArray[np.int64]:
        """Return the group of each id, as a place in `groups`; -1 for a weight that is in none."""
        return groups_of(self.groups, self.of(ids))


def groups_of(groups: Sequence[Group], weights: Reals) -> NDArray[np.int64]:
    """Return in which group each weight lies; where two groups meet, in the one with larger weights."""
    lows, highs = (np.array([getattr(group, end) for group in groups]) for end in ("low", "high"))
    found = np.searchsorted(lows, weights, side="right") - 1
    inside = (found >= 0) & (weights <= np.append(highs, np.inf)[found])
    return np.where(inside, found, -1).astype(np.int64)


def taking_part(weights: Reals, epsilon: float, threshold: float) -> Reals:
    """Return with which probability units take part whose noise is made for `threshold` (HDPMF, eq. 5).

    Who takes part with probability p in something that costs t loses log(1 + p (e^t - 1)) by it.
    """
    positive(epsilon=epsilon, threshold=threshold)
    own = np.minimum(epsilon * np.asarray(weights, np.float64), threshold)
    # (e^own - 1) / (e^t - 1), without numbers that no float holds; rounded towards privacy.
    chance = np.exp(own - threshold) * np.expm1(-own) / math.expm1(-threshold) * (1 - 2.0**-40)
    return np.asarray(np.where(own >= threshold, 1.0, chance))


def _weight(stated: Any, by_name: Mapping[str, float]) -> float:
    if isinstance(stated, str):
        if stated not in by_name:
            words = ", ".join(by_name) or "none"
            raise DataError(f"a weight names a group that there is not. Groups are: {words}.")
        return by_name[stated]
    if isinstance(stated, bool) or not isinstance(stated, int | float | np.number):
        raise DataError("a weight is neither a number nor the name of a group.")
    if not LEAST_WEIGHT <= float(stated) <= 1:
        raise DataError(f"a weight lies outside {LEAST_WEIGHT:g} to 1. Correct it.")
    return float(stated)


def _check_weight(name: str, weight: float) -> None:
    positive(**{name: weight})
    if not LEAST_WEIGHT <= weight <= 1:
        raise ConfigError(f"{name} must lie between {LEAST_WEIGHT:g} and 1, got {weight:g}.")


def _checked_groups(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Return groups from the least weights to the largest; refuse such as overlap, or do not cover all."""
    if not all(isinstance(group, Group) for group in groups):
        raise ConfigError("groups must be Group(name=..., share=..., low=..., high=...).")
    ordered = tuple(sorted(groups, key=lambda group: (group.low, group.high)))
    for one, following in pairwise(ordered):
        if following.low < one.high or following.low == one.low:
            raise ConfigError(f"the weights of {one.name} and {following.name} overlap. Keep groups apart.")
    if len({group.name for group in ordered}) < len(ordered):
        raise ConfigError("two groups have the same name. Give each its own.")
    total = sum(group.share for group in ordered)
    if ordered and abs(total - 1) > 1e-6:
        raise ConfigError(f"the shares of all groups must add up to 1, got {total:g}.")
    return ordered


def _mean(groups: Sequence[Group]) -> float:
    return float(sum(group.share * (group.low + group.high) / 2 for group in groups))


def _chances(text: str) -> tuple[float, float]:
    """Return two numbers from 0 up to 1 that follow from a text."""
    drawn = sha256(f"cofactor weights {text}".encode()).digest()
    return tuple(int.from_bytes(drawn[at : at + 6], "big") / 2.0**48 for at in (0, 6))  # type: ignore[return-value]
