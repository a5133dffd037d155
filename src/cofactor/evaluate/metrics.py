"""All measures of one model in one call."""

from dataclasses import asdict, dataclass
from typing import Any

from cofactor.data.ratings import Ratings
from cofactor.evaluate.ranking import Ranking, ranking
from cofactor.evaluate.rating_errors import Activity, Errors, activity_of, errors, errors_of, predictions
from cofactor.factors.model import Factors

__all__ = ["Scores", "errors", "measure"]


@dataclass(frozen=True, kw_only=True)
class Scores:
    """How useful a model is on test ratings."""

    errors: Errors | None
    """None where there is no rating scale: for implicit ratings, and models that only rank."""
    activity: Activity | None
    """Errors by how much users rate; None with `errors`."""
    ranking: Ranking

    def as_dict(self) -> dict[str, Any]:
        """Return the measures by name on one level; `intervals`, `settings` and `activity` beside them."""
        table = self.ranking.as_dict()
        if self.errors is None or self.activity is None:
            return table
        wrong = self.errors.as_dict()
        intervals = wrong["intervals"] | table["intervals"]
        return wrong | table | {"intervals": intervals, "activity": asdict(self.activity)}


def measure(
    model: Factors,
    train: Ratings,
    test: Ratings,
    *,
    k: int = 10,
    threshold: float | None = None,
    seed: int = 0,
) -> Scores:
    """Measure a model that was fitted on `train`; the seed serves ties and the bootstrap intervals.

    Items are relevant from `threshold` on; by default that is the upper quarter of the scale.
    """
    quality = ranking(model, train, test, k=k, threshold=threshold, seed=seed)
    if test.implicit or model.scale is None:
        return Scores(errors=None, activity=None, ranking=quality)
    predicted = predictions(model, test)
    return Scores(
        errors=errors_of(predicted, test, seed=seed),
        activity=activity_of(predicted, train, test),
        ranking=quality,
    )
