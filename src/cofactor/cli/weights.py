"""`--user-weights`, `--item-weights`: who asks for more privacy than others, and what they get."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cofactor.cli import choose
from cofactor.cli.settings import WeightsWish, options_of, with_policy
from cofactor.cli.weight_files import DRAWN, Reader, Source
from cofactor.config import from_table, one_of
from cofactor.errors import ConfigError, DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cofactor.data.ratings import Ratings
    from cofactor.evaluate.by_group import ErrorsByGroup
    from cofactor.federation.federation import Federation
    from cofactor.federation.run import Run
    from cofactor.privacy.budget import Budget, Personal
    from cofactor.privacy.personal import PersonalBudget
    from cofactor.privacy.weights import Group


def check_wish(recipe: Any, wish: WeightsWish, unit: str, files: int) -> None:
    """Refuse, before anything is read, weights that a recipe would not regard, and what contradicts them."""
    if not options_of(wish):
        return
    if wish.users is None and wish.items is None:
        raise ConfigError("whose weights? Nobody has any. Name them: --user-weights FILE.")
    if unit not in getattr(recipe, "takes_weights", ()):
        raise ConfigError(
            f"{type(recipe).__name__} regards no weights where each {unit} is protected. Leave them out, or "
            f"use {_able()}."
        )
    if wish.items is not None and unit == "user":
        raise ConfigError(
            "--item-weights are for single ratings: --unit rating. Of users, everything they rated is "
            "protected alike."
        )
    if wish.threshold is not None and _mechanism(wish) != "sampling":
        raise ConfigError("--threshold is for --personal sampling. Leave it out, or add that.")
    check_sources(wish, files)


def check_sources(wish: WeightsWish, files: int) -> None:
    """Refuse sources that do not fit so many files of ratings, or each other."""
    if wish.users is None and wish.items is None and wish.otherwise is not None:
        raise ConfigError("whose weights? Nobody has any. Name them: --user-weights FILE.")
    named = _sources(wish.users)
    if len(named) > 1 and (len(named) != files or DRAWN in named):
        raise ConfigError(
            f"--user-weights names {len(named)} sources for {files} files of ratings. Name one for all, or a "
            "file for each party, in the same order."
        )
    if wish.otherwise is not None and named in ((), (DRAWN,)) and wish.items in (None, DRAWN):
        raise ConfigError("--other-weights is for those whom a file leaves out. Leave it out.")


@dataclass(frozen=True, kw_only=True)
class Stated:
    """Weights as they were stated: private where they are users'."""

    users: tuple[Source, ...]
    """One for all parties, or one for each."""
    items: Source | None
    personal: "Personal"
    threshold: float | None

    @classmethod
    def read(cls, wish: WeightsWish, seed: int) -> "Stated | None":
        """Read the files that were named; None where nobody asks for more than others."""
        from cofactor.privacy.weights import HDPMF_ITEMS, HDPMF_USERS

        if wish.users is None and wish.items is None:
            return None
        groups = _groups(wish) or HDPMF_USERS
        if DRAWN in _sources(wish.users) and groups != HDPMF_USERS:
            raise ConfigError(f"{DRAWN} draws from the groups of its Table 2. Leave out [[weights.groups]].")
        read = Reader(otherwise=wish.otherwise, expected=wish.expected, seed=seed)
        return cls(
            users=tuple(read.source(name, "users", groups) for name in _sources(wish.users)),
            items=None if wish.items is None else read.source(wish.items, "items", HDPMF_ITEMS),
            personal=_mechanism(wish),
            threshold=wish.threshold,
        )

    def budget(self, plain: "Budget") -> "PersonalBudget":
        """Return the budget of which weights allow a part."""
        from cofactor.privacy.personal import PersonalBudget
        from cofactor.privacy.weights import Weights

        return PersonalBudget(
            epsilon=plain.epsilon,
            delta=plain.delta,
            unit=plain.unit,
            adjacency=plain.adjacency,
            users=self.users[0].weights if self.users else Weights.equal(),
            items=Weights.equal() if self.items is None else self.items.weights,
            mechanism=self.personal,
            threshold=self.threshold,
        )

    def given_to(self, federation: "Federation") -> "Federation":
        """Give each party its users' weights; refuse sources that do not know them."""
        parties = federation.parties
        if self.items is not None:
            self.items.check(federation.item_ids)
        if not self.users:
            return federation
        if len(self.users) == 1 and not self.users[0].drawn and federation.at_two_parties():
            raise DataError(
                "some ids of users occur at two parties, where they are different people. Name a file of "
                "weights for each party: --user-weights FILE --user-weights FILE."
            )
        for source, ids in self._asked(federation):
            source.check(ids)
        own = self.users * len(parties) if len(self.users) == 1 else self.users
        pairs = zip(parties, own, strict=True)
        return replace(federation, parties=tuple(party.with_weights(each.weights) for party, each in pairs))

    def tell(self, federation: "Federation") -> None:
        """Say on standard error what is public of weights, and how many have none of their own."""
        items = [] if self.items is None else [(self.items, federation.item_ids.tolist())]
        lines = [line for each, ids in [*self._asked(federation), *items] for line in each.lines(ids)]
        print("\n".join(lines), file=sys.stderr)

    def _asked(self, federation: "Federation") -> "list[tuple[Source, list[Any]]]":
        """Return of which users each source is asked."""
        ids = [party.ratings.user_ids.tolist() for party in federation.parties]
        if len(self.users) < 2:
            return [(source, [one for own in ids for one in own]) for source in self.users]
        return list(zip(self.users, ids, strict=True))

    def groups_of(self, data: "Ratings | Federation") -> "NDArray[np.int64]":
        """Return the group of each user, in the order of all users."""
        from cofactor.federation.federation import Federation
        from cofactor.privacy.weights import groups_of

        if not isinstance(data, Federation):
            self.users[0].check(data.user_ids)
            return self.users[0].weights.groups_of(data.user_ids)
        parts = [party.weights for party in self.given_to(data).parties if party.weights is not None]
        return groups_of(self.policy, np.concatenate(parts))

    @property
    def policy(self) -> "tuple[Group, ...]":
        """The groups that users may choose between: public."""
        return self.users[0].weights.groups if self.users else ()


def personal_plan(recipe: Any, budget: "Budget", wish: WeightsWish) -> "PersonalBudget | None":
    """Return the budget of a plan: of users' weights only the policy is read, which is public."""
    from cofactor.privacy.weights import HDPMF_ITEMS, HDPMF_USERS, Weights

    if not options_of(wish):
        return None
    if not isinstance(wish.users, str):
        raise ConfigError(
            "name the groups that users may choose between: --user-weights hdpmf, or a TOML file with them."
        )
    if wish.users != DRAWN:
        policy = with_policy(Path(wish.users), replace(wish, users=None))
        wish = replace(policy, users=wish.users)
    check_wish(recipe, wish, budget.unit, 1)
    read = Reader(otherwise=wish.otherwise, expected=None, seed=0)
    items = None if wish.items is None else read.source(wish.items, "items", HDPMF_ITEMS)
    stated = Stated(users=(), items=items, personal=_mechanism(wish), threshold=wish.threshold)
    users = Weights.by({}, groups=_groups(wish) or HDPMF_USERS, expected=wish.expected)
    return replace(stated.budget(budget), users=users)


def measured_by_group(
    run: "Run", train: "Ratings | Federation", test: "Ratings | Federation | None", stated: Stated | None
) -> "ErrorsByGroup | None":
    """Measure errors by group of users, where users have weights and ratings were kept back."""
    from cofactor.evaluate.by_group import errors_by_group

    if test is None or stated is None or not stated.policy or test.implicit:
        return None
    names = [group.name for group in stated.policy]
    return errors_by_group(run, train, test, stated.groups_of(train), names)


def _mechanism(wish: WeightsWish) -> "Personal":
    from cofactor.privacy.budget import PERSONAL

    chosen = wish.personal or "stretching"
    one_of(PERSONAL, personal=chosen)
    return cast("Personal", chosen)


def _able() -> str:
    """Name the recipes that regard weights, and who is protected there."""
    found = {name: getattr(kind, "takes_weights", ()) for name, kind in choose.classes().items()}
    return " or ".join(f"--recipe {name} --unit {unit}" for name, units in found.items() for unit in units)


def _groups(wish: WeightsWish) -> "tuple[Group, ...] | None":
    from cofactor.privacy.weights import Group, Weights

    if wish.groups is None:
        return None
    made = tuple(from_table(Group, each, f"weights.groups[{at}]") for at, each in enumerate(wish.groups))
    return Weights(groups=made).groups


def _sources(users: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if users is None else (users,) if isinstance(users, str) else tuple(users)
