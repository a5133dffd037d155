"""What private figures are compared with: simple models, and models without privacy."""

from cofactor.data.split import by_fraction
from cofactor.evaluate.joining import SENDS_NOTHING
from cofactor.evaluate.rating_errors import errors
from cofactor.factors.bayes import Bayes
from cofactor.factors.sgd import SGD, Nonnegative
from cofactor.papers.cells import TEST_FRACTION, Effort, summary
from cofactor.papers.material import Material
from cofactor.papers.results import Baseline

PUBLISHED = {"ml-10m": 0.83012, "ml-25m": 0.8631, "libimseti": 4.23981}
"""Li et al. 2022, section 4.3: test errors of SGD without privacy, all ratings in one place."""

EMBEDDING_SGD = SGD(factors=20, nonnegative=Nonnegative())
"""SGD one rating at a time with the paper's embedding clipping, without noise."""

_NOTES = {
    "global_mean": "not private",
    "user_mean": "costs no privacy where users' ratings are at one party",
    "item_mean": "not private",
    "bias": "user and item biases; not private",
    "pooled_bayes": "our strongest model on all ratings in one place; not private",
    "pooled_sgd": "SGD with embedding clipping on all ratings in one place; not private",
}


def baselines(material: Material, effort: Effort) -> dict[str, Baseline]:
    """Fit and measure all of them on the splits that the figure uses."""
    models = {**SENDS_NOTHING, "pooled_bayes": Bayes(), "pooled_sgd": EMBEDDING_SGD}
    halves = [
        (seed, *by_fraction(material.ratings, TEST_FRACTION, seed=seed))
        for seed in range(1, effort.seeds + 1)
    ]
    found = {
        name: Baseline(
            **summary([errors(model.fit(train), test, seed=seed).mse for seed, train, test in halves]),
            paper=PUBLISHED.get(material.name) if name == "pooled_sgd" else None,
            note=_NOTES[name],
        )
        for name, model in models.items()
    }
    return found | _published()


def _published() -> dict[str, Baseline]:
    return {
        f"published_{name}": Baseline(ours=None, paper=value, note=f"the paper's SGD without privacy, {name}")
        for name, value in PUBLISHED.items()
    }
