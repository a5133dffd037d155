"""What joining was worth to each party: errors alone, together and pooled, on the same test ratings."""

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import from_table
from cofactor.data.grouping import Index, Values
from cofactor.data.ratings import Ratings, Scale
from cofactor.errors import DataError
from cofactor.evaluate.bootstrap import Estimate, estimate, resampled_totals
from cofactor.evaluate.rating_errors import Errors, by_user, check_numbering, errors_of_each
from cofactor.factors.baselines import GlobalMean, ItemMean, PersonalRidge, UserItemBias, UserMean
from cofactor.factors.bayes import Bayes
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.federation.run import Run
from cofactor.recipes.alone import Alone
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.pooled import Pooled

SENDS_NOTHING: dict[str, GlobalMean | UserMean | ItemMean | UserItemBias] = {
    "global_mean": GlobalMean(),
    "user_mean": UserMean(),
    "item_mean": ItemMean(),
    "bias": UserItemBias(),
}
"""What every party can fit to its own ratings in no time."""

ALONE, POOLED, PUBLISHED = "alone", "pooled", "published"
USER_MEAN, STAGE_1 = "user_mean", "stage_1"
"""What a device has of its own: its user's mean rating; and its user, fitted to items as they begin."""
PERSONAL_RIDGE = "personal_ridge"
"""What every user has of her own where there are public features of the items."""

_BY = {ALONE: "alone", USER_MEAN: "by own mean", PERSONAL_RIDGE: "by own ridge on public features"}
"""How sentences name what parties have without joining."""

Predicted = dict[str, dict[str, Values]]
"""By name of the model and by party, what it predicts of the party's test ratings."""


@dataclass(frozen=True)
class Joining:
    """What joining changed, from a paired bootstrap over users."""

    gain: Estimate
    """Mean squared error alone less that together: above 0 if joining helped."""
    alone: float
    together: float
    by: str = "alone"
    """How the error without joining came about."""

    @property
    def helped(self) -> bool | None:
        """True or False if 95% of the resamples agree on it; None if it may be chance."""
        if self.gain.low > 0:
            return True
        return False if self.gain.high < 0 else None

    def sentence(self, *, owner: str = "your", who: str = "you") -> str:
        """Say it plainly: `owner` has the error, `who` was to be helped."""
        width = (self.gain.high - self.gain.low) / 2
        decimals = 3 if width == 0 else min(max(2, 1 - math.floor(math.log10(width))), 5)
        margin = f"+- {width:.{decimals}f}"
        beside = f"(MSE {self.alone:.{decimals}f} {self.by}, {self.together:.{decimals}f} together)"
        if self.gain.value == width == 0:
            return f"joining did not help {who}: nothing changed {beside}"
        if self.helped is None:
            change = f"{-self.gain.value:+.{decimals}f} {margin}"
            return f"joining did not help {who}: a change of {change} may be chance {beside}"
        verb = "lowered" if self.helped else "raised"
        return f"joining {verb} {owner} error by {abs(self.gain.value):.{decimals}f} {margin} {beside}"

    def as_dict(self, **words: str) -> dict[str, Any]:
        """Return plain numbers and the sentence."""
        return {
            "gain": self.gain.value,
            "interval": [self.gain.low, self.gain.high],
            "sentence": self.sentence(**words),
        }


@dataclass(frozen=True)
class PartyScores:
    """One party's errors by name, and what joining changed for it."""

    scores: Mapping[str, Errors] = field(default_factory=dict)
    """Empty where a party has no test ratings."""
    joining: Joining | None = None


def own_name(run: Run) -> str:
    """Return under which name the parties' own models of a run are compared."""
    assert run.together is not None
    if run.recipe.get("kind") == "Alone":
        return ALONE
    return "together" if run.together.budget is None else "private"


def without_joining(federation: Federation, names: Container[str]) -> str:
    """Return under which of the names stands what parties have if they do not join."""
    if federation.kind != "on-device":
        return ALONE
    return PERSONAL_RIDGE if PERSONAL_RIDGE in names else USER_MEAN


def home_models(run: Run, train: Federation) -> dict[str, dict[str, Factors]]:
    """Return all models that parties have to themselves, by name and party; baselines first."""
    if train.kind == "on-device":
        return _device_models(run, train)
    found = {
        name: {party.name: baseline.fit(party.ratings) for party in train.parties}
        for name, baseline in SENDS_NOTHING.items()
    }
    found |= _personal(train)
    name = own_name(run)
    if name != ALONE:
        found[ALONE] = Alone(home=_home_settings(run)).fit(train, seed=run.seed)
    found[name] = dict(run.homes)
    return found


def _device_models(run: Run, train: Federation) -> dict[str, dict[str, Factors]]:
    """Return what devices have to themselves: nothing in it is from another user, but in the run's own."""
    found = {USER_MEAN: {party.name: own_means(party.ratings, train.scale) for party in train.parties}}
    found |= _personal(train)
    if run.recipe.get("kind") == OnDeviceMF.__name__:
        recipe = from_table(OnDeviceMF, run.recipe, "recipe")
        found[STAGE_1] = recipe.alone(train, seed=run.seed)
    return found | {own_name(run): dict(run.homes)}


def _personal(train: Federation) -> dict[str, dict[str, Factors]]:
    """Return what users have by themselves if there are public features of the items."""
    found = {
        party.name: PersonalRidge().fit(party.ratings, features=party.features, scale=train.scale)
        for party in train.parties
        if party.features is not None
    }
    return {PERSONAL_RIDGE: found} if found else {}


def own_means(ratings: Ratings, scale: Scale) -> Factors:
    """Return each user's own mean, and the middle of the scale for users without ratings."""
    model = UserMean(damping=0.0).fit(ratings)
    middle = np.float32((scale.low + scale.high) / 2 - model.mean)
    return replace(model, user_bias=np.where(ratings.by_user.sizes > 0, model.user_bias, middle))


def common_models(run: Run, train: Federation) -> dict[str, Factors]:
    """Return the models of all users and items: what everyone may see, and what pooling would give."""
    pooled = Pooled(model=_home_settings(run)).fit(
        train.pooled(), features=pooled_features(train), seed=run.seed
    )
    seen = run.model if train.kind == "vertical" else None
    return ({} if seen is None else {PUBLISHED: seen}) | {POOLED: pooled}


def pooled_features(federation: Federation) -> NDArray[np.float32] | None:
    """Return what the parties know about all items, in the order of the pooled ratings."""
    features = [party.features for party in federation.parties if party.features is not None]
    if not features:
        return None
    return np.concatenate(features) if federation.kind == "vertical" else features[0]


@dataclass(frozen=True, eq=False)
class HeldBack:
    """Test ratings party by party, and where each stands among those of all."""

    federation: Federation

    def predicted(self, homes: Mapping[str, Mapping[str, Factors]]) -> Predicted:
        """Predict with each party's own models."""
        return {
            name: {party.name: _predicted(models, party) for party in self.federation.parties}
            for name, models in homes.items()
        }

    def predicted_by_all(self, common: Mapping[str, Factors]) -> Predicted:
        """Predict with models that number users and items as the pooled ratings do."""
        found: Predicted = {}
        for name, model in common.items():
            if (len(model.user_ids), len(model.item_ids)) != (self.pooled.user_count, self.pooled.item_count):
                raise DataError(f"the {name} model has other users or items than the test ratings.")
            found[name] = {
                party: model.predict_rows(users, items) for party, (users, items) in self._rows.items()
            }
        return found

    def errors(self, predicted: Predicted, seed: int) -> dict[str, Errors]:
        """Measure all parties' predictions together, by name of the model."""
        whole = {name: self._in_order(by_party) for name, by_party in predicted.items()}
        return errors_of_each(whole, self.pooled, seed=seed)

    def joining(self, predicted: Predicted, own: str, seed: int) -> Joining | None:
        """Compare what parties have without joining with the run's own; None if nobody joined."""
        if own == ALONE:
            return None
        before = without_joining(self.federation, predicted)
        found = joining_of(
            self._in_order(predicted[before]), self._in_order(predicted[own]), self.pooled, seed=seed
        )
        return replace(found, by=_BY[before])

    def party_scores(self, party: Party, predicted: Predicted, own: str, seed: int) -> PartyScores:
        """Measure all models on one party's test ratings; one user's cannot tell a change from chance."""
        test = party.ratings
        if len(test) == 0:
            return PartyScores()
        mine = {name: by_party[party.name] for name, by_party in predicted.items()}
        told = own != ALONE and self.federation.kind != "on-device"
        joining = joining_of(mine[ALONE], mine[own], test, seed=seed) if told else None
        return PartyScores(errors_of_each(mine, test, seed=seed), joining)

    @cached_property
    def pooled(self) -> Ratings:
        """All test ratings."""
        return self.federation.pooled()

    @cached_property
    def _rows(self) -> dict[str, tuple[Index, Index]]:
        """By party, the rows of users and items among those of all parties."""
        found, at, vertical = {}, 0, self.federation.kind == "vertical"
        for party in self.federation.parties:
            ratings = party.ratings
            own_users, own_items = (0, at) if vertical else (at, 0)
            found[party.name] = (ratings.users + np.int32(own_users), ratings.items + np.int32(own_items))
            at += ratings.item_count if vertical else ratings.user_count
        return found

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        # Pooled ratings are grouped by user, and those of one user keep the order of the parties.
        return np.argsort(np.concatenate([users for users, _ in self._rows.values()]), kind="stable")

    def _in_order(self, predicted: Mapping[str, Values]) -> Values:
        """Put the parties' predictions in the order of the pooled ratings."""
        return np.concatenate([predicted[party] for party in self._rows])[self._order]


def joining_of(alone: Values, together: Values, test: Ratings, *, seed: int = 0) -> Joining:
    """Compare two predictions of the same test ratings; users are drawn once for both."""
    counts = test.by_user.sizes
    columns = [by_user(predicted, test)[0] for predicted in (alone, together)]
    totals = resampled_totals(np.column_stack([*columns, counts])[counts > 0], seed=seed)
    before, after = totals[:, 0] / totals[:, 2], totals[:, 1] / totals[:, 2]
    return Joining(estimate(before - after), float(before[0]), float(after[0]))


def check_parties(run: Run, train: Federation, test: Federation) -> None:
    """Refuse federations that are not the two parts of the one that was trained."""
    names = [party.name for party in train.parties]
    if names != [party.name for party in test.parties] or set(names) != set(run.homes):
        raise DataError(
            f"the run has models for {', '.join(run.homes)}, and the parties to compare are "
            f"{', '.join(names)}. Compare with the two parts of one federation."
        )


def _predicted(models: Mapping[str, Factors], party: Party) -> Values:
    model, ratings = models[party.name], party.ratings
    check_numbering(model, ratings)
    return model.predict_rows(ratings.users, ratings.items)


def _home_settings(run: Run) -> Bayes:
    """Return the home model of the run's recipe, if it has one: what joining is measured against."""
    stated = run.recipe.get("home", {})
    return from_table(Bayes, stated, "recipe.home") if stated.get("kind") == "Bayes" else Bayes()
