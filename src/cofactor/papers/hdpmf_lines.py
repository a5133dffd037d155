"""Lines of HDPMF's tables and figures: the paper's methods, and what they must be seen beside."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cofactor.evaluate.joining import own_means
from cofactor.factors.baselines import GlobalMean
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.papers.hdpmf_method import EPOCHS, Measured, Variant
from cofactor.papers.hdpmf_numbers import EPSILON
from cofactor.papers.hdpmf_splits import Repeat
from cofactor.papers.hdpmf_tuning import Tuned, tuned, usual
from cofactor.papers.privmvmf_tables import spread
from cofactor.papers.results import Row
from cofactor.progress import Listener, Progress
from cofactor.recipes.personal_biases import PersonalBiases
from cofactor.recipes.train import train

OWN_MEAN, GLOBAL_MEAN = "user's own mean", "global mean"
VALUES_PROTECTED, CO_RATING = "PersonalBiases", "PersonalBiases, co-rating"
COUNTS_PROTECTED = "PersonalBiases, counts too"
"""Our default as it protects values, learns from who rated what besides, or protects that, too."""
_HONEST = {
    VALUES_PROTECTED: "values are protected; who rated what is public, as in the paper",
    CO_RATING: "likewise, and what users rate together is learned from",
    COUNTS_PROTECTED: "who rated what is protected as well: a rating may become nothing",
}
_COLUMNS = 12
"""That are learned from what users rate together."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model, what is promised for it, and what is true."""

    model: Factors | None
    """None where training broke down."""
    label: float | None = None
    epsilon: float | None = None
    delta: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """Something that predicts ratings."""

    name: str
    fit: Callable[[Repeat], Fitted]
    note: str = ""
    method: str = ""
    """What Table 3 calls it, if it is there."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Scores:
    """What repeats gave for a line."""

    line: Line
    values: dict[str, list[float]]
    """By column, a number for each repeat; none, if one of the trainings broke down."""
    label: float | None = None
    epsilon: float | None = None
    delta: float = 0.0
    """The largest of all repeats, as epsilon is."""

    def row(self, panel: str, column: str, paper: float | None = None) -> Row:
        """Return the mean, and one standard deviation each way, as the paper prints it."""
        values = self.values.get(column, [])
        return Row(
            line=self.line.name,
            panel=panel,
            column=column,
            paper=paper,
            epsilon_label=self.label,
            epsilon=self.epsilon,
            delta=None if self.epsilon is None else self.delta,
            note=self.line.note if values else f"training broke down; {self.line.note}",
            at_home=False,
            **(spread(values) if values else {"ours": None}),
        )


Measure = Callable[[Factors, Repeat], Measured]
"""Measures a model on what a repeat holds back."""


def scored(
    lines: Sequence[Line], repeats: Sequence[Repeat], measure: Measure, progress: Listener, what: str
) -> list[Scores]:
    """Fit and measure all lines in all repeats."""
    found = []
    for at, line in enumerate(lines):
        fitted = []
        for repeat in repeats:
            fitted.append((repeat, line.fit(repeat)))
            step = at * len(repeats) + len(fitted)
            progress(Progress("trainings", step, len(lines) * len(repeats), f"{what}, {line.name}"))
        found.append(_scores(line, fitted, measure))
    return found


def _scores(line: Line, fitted: Sequence[tuple[Repeat, Fitted]], measure: Measure) -> Scores:
    values: dict[str, list[float]] = {}
    models = [(repeat, one.model) for repeat, one in fitted if one.model is not None]
    for repeat, model in models if len(models) == len(fitted) else []:
        for column, value in measure(model, repeat).items():
            values.setdefault(column, []).append(value)
    labels = [one.label for _, one in fitted if one.label is not None]
    epsilons = [one.epsilon for _, one in fitted if one.epsilon is not None]
    return Scores(
        line=line,
        values=values,
        label=max(labels, default=None),
        epsilon=max(epsilons, default=None),
        delta=max(one.delta for _, one in fitted),
    )


def published(variant: Variant, factors: int, chosen: Tuned) -> Line:
    """Return a method of the paper with its setting."""

    def fit(repeat: Repeat) -> Fitted:
        return Fitted(
            model=variant.fitted(repeat, factors, chosen.setting),
            label=variant.promised(repeat),
            epsilon=variant.spent(repeat),
        )

    return Line(name=variant.line, fit=fit, method=variant.name, note=f"{_cost(variant)}; {chosen}")


def _cost(variant: Variant) -> str:
    """Say what a method truly costs."""
    if variant.method == "mf":
        return "not private"
    if variant.noise == "fixed":
        return "no finite epsilon: differences of a user's messages in two epochs have no noise in them"
    if variant.method == "pdpmf":
        return f"every one of {EPOCHS} epochs spends the mean promise on every rating that takes part"
    return f"every one of {EPOCHS} epochs spends what is promised for all of them"


def settings(
    variants: Sequence[Variant],
    factors: int,
    repeat: Repeat,
    progress: Listener,
    *,
    quick: bool,
) -> dict[Variant, Tuned]:
    """Choose a setting for each variant on a repeat's training ratings; quickly, without looking at them."""
    what = f"K = {factors}"
    return {
        variant: usual(variant) if quick else tuned(variant, factors, repeat, progress, what)
        for variant in variants
    }


def own_mean() -> Line:
    """Return what every user has who sends nothing."""
    return Line(name=OWN_MEAN, fit=_own_mean, note="nothing leaves the user")


def _own_mean(repeat: Repeat) -> Fitted:
    assert repeat.train.scale is not None
    return Fitted(own_means(repeat.train, repeat.train.scale), epsilon=0.0)


def global_mean() -> Line:
    """Return one number for everybody and everything."""
    return Line(
        name=GLOBAL_MEAN, fit=lambda repeat: Fitted(GlobalMean().fit(repeat.train)), note="not private"
    )


def honest(kind: str = VALUES_PROTECTED) -> Line:
    """Return our default at the paper's specification: all that is released costs epsilon W together."""
    return Line(
        name=kind,
        fit=lambda repeat: personal_biases(repeat, kind),
        note=f"everything together costs a rating of weight W epsilon W; {_HONEST[kind]}",
    )


def personal_biases(repeat: Repeat, kind: str) -> Fitted:
    """Train our default on devices, with the weights that the paper's methods have."""
    recipe = PersonalBiases(co_rating=_COLUMNS if kind == CO_RATING else 0)
    budget = repeat.budget("empty" if kind == COUNTS_PROTECTED else "value")
    devices = Federation.on_device(repeat.train, scale=repeat.train.scale)
    run = train(recipe, devices, budget=budget, seed=repeat.seed)
    (model,) = run.homes.values()
    return Fitted(model, label=EPSILON, epsilon=run.guarantee.epsilon, delta=run.guarantee.delta or 0.0)
