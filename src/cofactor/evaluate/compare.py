"""A run beside the baselines: is it worth its trouble?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cofactor.data.ratings import Ratings
from cofactor.evaluate.ranking import Ranking, ranking
from cofactor.evaluate.rating_errors import Errors, errors
from cofactor.factors.baselines import GlobalMean, ItemMean, Popularity, UserItemBias, UserMean
from cofactor.federation.run import Run


@dataclass(frozen=True)
class Comparison:
    """Scores by name, the baselines first: errors, or the quality of rankings for implicit ratings."""

    scores: Mapping[str, Errors | Ranking]

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Return plain numbers by name."""
        return {name: score.as_dict() for name, score in self.scores.items()}

    def __str__(self) -> str:
        shown = (
            ("rmse", "mse", "mae")
            if isinstance(self.scores["pooled"], Errors)
            else ("ndcg_over_unseen", "recall")
        )
        lines = [f"{'':12s}" + "".join(f"  {name:<27s}" for name in shown)]
        for name, score in self.scores.items():
            lines.append(f"{name:12s}" + "".join(f"  {getattr(score, measure)!s:<27s}" for measure in shown))
        return "\n".join(line.rstrip() for line in lines)


def compare(run: Run, train: Ratings, test: Ratings, *, seed: int = 0) -> Comparison:
    """Measure a run and the baselines, fitted on the same training ratings, on the same test ratings.

    Where the run's model ranks only, values of test ratings do not count: all test items are relevant.
    """
    if run.model.scale is None:
        test = test.without_values()
        models = {"popularity": Popularity().fit(train), "pooled": run.model}
        return Comparison({name: ranking(model, train, test, seed=seed) for name, model in models.items()})
    models = {
        "global_mean": GlobalMean().fit(train),
        "user_mean": UserMean().fit(train),
        "item_mean": ItemMean().fit(train),
        "bias": UserItemBias().fit(train),
        "pooled": run.model,
    }
    return Comparison({name: errors(model, test, seed=seed) for name, model in models.items()})
