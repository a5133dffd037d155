"""A run beside the baselines: is it worth its trouble, and was it worth joining?"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Ratings
from cofactor.errors import DataError
from cofactor.evaluate.by_group import ErrorsByGroup, errors_by_activity
from cofactor.evaluate.joining import (
    PERSONAL_RIDGE,
    POOLED,
    SENDS_NOTHING,
    HeldBack,
    Joining,
    PartyScores,
    check_parties,
    common_models,
    home_models,
    own_name,
    pooled_features,
)
from cofactor.evaluate.party_rankings import party_rankings
from cofactor.evaluate.ranking import Ranking, ranking
from cofactor.evaluate.rating_errors import Errors, errors
from cofactor.factors.baselines import PersonalRidge, Popularity
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.federation.run import Run

ALL = {"owner": "the parties'", "who": "the parties"}
"""How a sentence names all parties together."""
USERS = {"owner": "the users'", "who": "the users"}
"""How it names them where every user is a party."""


@dataclass(frozen=True)
class Comparison:
    """Scores by name, the baselines first: errors, or the quality of rankings for implicit ratings."""

    scores: Mapping[str, Errors | Ranking]
    """Over all parties, where there are several."""
    parties: Mapping[str, PartyScores] = field(default_factory=dict)
    """The same by party, where there are several."""
    joining: Joining | None = None
    """What joining changed for all parties together."""
    rankings: Mapping[str, Ranking] = field(default_factory=dict)
    """Of the lists that parties show, beside popularity, where they know how items are chosen."""
    own: str = POOLED
    """The name of the run's own models among the scores."""
    everybody: Mapping[str, str] = field(default_factory=lambda: ALL)
    """How a sentence names all parties together."""
    by_activity: ErrorsByGroup | None = None
    """Errors of the run's own models by how much users rate; None for rankings."""

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Return plain numbers by name.

        Where there are parties, every score has `parties`, the same numbers by party, and the run's own score
        has `joining` beside them: its gain, the interval and the sentence; `rankings`, by name, where lists
        were measured, too; and `by_activity`, a list of groups of users, where errors were.
        """
        table = {name: score.as_dict() for name, score in self.scores.items()}
        for party, own in self.parties.items():
            for name, score in own.scores.items():
                joined = {} if own.joining is None or name != self.own else {"joining": own.joining.as_dict()}
                table[name].setdefault("parties", {})[party] = score.as_dict() | joined
        if self.joining is not None:
            table[self.own]["joining"] = self.joining.as_dict(**self.everybody)
        if self.rankings:
            table[self.own]["rankings"] = {name: each.as_dict() for name, each in self.rankings.items()}
        if self.by_activity is not None:
            table[self.own]["by_activity"] = self.by_activity.as_list()
        return table

    def __str__(self) -> str:
        shown = (
            ("rmse", "mse", "mae")
            if isinstance(next(iter(self.scores.values())), Errors)
            else ("ndcg_over_unseen", "recall")
        )
        width = max(12, *map(len, self.scores))
        lines = [" " * width + "".join(f"  {name:<27s}" for name in shown)]
        for name, score in self.scores.items():
            lines.append(
                f"{name:{width}s}" + "".join(f"  {getattr(score, measure)!s:<27s}" for measure in shown)
            )
        return "\n".join([*(line.rstrip() for line in lines), *self.sentences()])

    def sentences(self) -> list[str]:
        """Say of each party, and then of all, what joining changed."""
        found = [
            f"{party}: {own.joining.sentence()}"
            for party, own in self.parties.items()
            if own.joining is not None
        ]
        return found if self.joining is None else [*found, f"all: {self.joining.sentence(**self.everybody)}"]


def compare(
    run: Run,
    train: Ratings | Federation,
    test: Ratings | Federation,
    *,
    public_items: PublicItems | None = None,
    seed: int = 0,
) -> Comparison:
    """Measure a run and the baselines, fitted on the same training ratings, on the same test ratings.

    Where parties trained together, every party is also measured alone, with the same home model, and all of
    them pooled, which is not private; errors are over all parties' test ratings, and by party. A device has
    its own user's ratings only: alone it has their mean, and simulated devices are measured together. Where
    the run's model ranks only, values of test ratings do not count: all test items are relevant, and
    popularity is the baseline.

    Where something about the items is public, each user's own ridge regression on that is a baseline, too: a
    federation brings it along, and `public_items` says it otherwise.
    """
    _check_public(run, train.public_items if isinstance(train, Federation) else None, public_items)
    features = None
    if public_items is not None and isinstance(train, Federation):
        train = train.with_public_items(public_items)
    elif public_items is not None:
        features = public_items.matching_rows(train.item_ids, owner="the ratings")
    if isinstance(train, Federation) and isinstance(test, Federation):
        if run.homes:
            return _compare_parties(run, train, test, seed)
        features = pooled_features(train)
        train, test = train.pooled(), test.pooled()
    if run.homes or run.model is None or isinstance(train, Federation) or isinstance(test, Federation):
        raise DataError(
            "compare a run of parties with the two parts of their Federation: federation.split()."
        )
    if run.model.scale is None:
        pairs = test.without_values()
        ranked = {"popularity": Popularity().fit(train), "pooled": run.model}
        return Comparison({name: ranking(model, train, pairs, seed=seed) for name, model in ranked.items()})
    models: dict[str, Factors] = {name: baseline.fit(train) for name, baseline in SENDS_NOTHING.items()}
    if features is not None:
        models[PERSONAL_RIDGE] = PersonalRidge().fit(train, features=features)
    models["pooled"] = run.model
    return Comparison(
        {name: errors(model, test, seed=seed) for name, model in models.items()},
        by_activity=errors_by_activity(run.model, train, test, seed=seed),
    )


def _check_public(run: Run, brought: PublicItems | None, said: PublicItems | None) -> None:
    """Refuse to compare a run that used public items with models that know nothing, or others, of items."""
    used, known = run.recipe.get("public_items"), said or brought
    if used is not None and (known is None or known.sha256 != used["sha256"]):
        raise DataError(
            f"this run used public items from {used['source']}, and what it is compared with must know the "
            f"same. Name them: --public-items FILE, or public_items=PublicItems.from_file(FILE)."
        )


def _compare_parties(run: Run, train: Federation, test: Federation, seed: int) -> Comparison:
    check_parties(run, train, test)
    parts, own, cohort = HeldBack(test), own_name(run), test.facts.cohort
    rankings = party_rankings(run.homes, own, train, test, seed=seed)
    if train.implicit:
        return Comparison(rankings, own=own)
    predicted = parts.predicted(home_models(run, train)) | parts.predicted_by_all(common_models(run, train))
    return Comparison(
        scores=parts.errors(predicted, seed),
        parties={}
        if cohort
        else {party.name: parts.party_scores(party, predicted, own, seed) for party in test.parties},
        joining=parts.joining(predicted, own, seed),
        rankings=rankings,
        own=own,
        everybody=USERS if test.kind == "on-device" else ALL,
        by_activity=errors_by_activity(run, train, test, seed=seed),
    )
