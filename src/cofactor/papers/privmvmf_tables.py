"""Table IV of PrivMVMF: how well it recommends, beside what is simple."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cofactor.papers.cells import Effort
from cofactor.papers.material import Material
from cofactor.papers.privmvmf_baselines import NOTES, baselines
from cofactor.papers.privmvmf_findings import ALL_UNRATED, NO_GENOME, OURS, PAPER
from cofactor.papers.privmvmf_lossless import lossless
from cofactor.papers.privmvmf_measures import measured
from cofactor.papers.privmvmf_method import model_of, published
from cofactor.papers.privmvmf_numbers import EXISTING, MEASURES, SCENARIOS, TABLE_4
from cofactor.papers.privmvmf_sides import Sided
from cofactor.papers.privmvmf_splits import Parts, parts
from cofactor.papers.results import Row
from cofactor.progress import Listener, Progress
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.multiview_weights import InclUnc

Values = dict[str, dict[str, list[float]]]
"""By line and measure, one number for each repeat."""


def table4(material: Material, effort: Effort, progress: Listener) -> list[Row]:
    """Train and measure all scenarios as often as there are seeds; then train once under encryption."""
    assert isinstance(material, Sided)
    rows = []
    for at, scenario in enumerate(SCENARIOS):
        found: Values = {}
        for seed in range(1, effort.seeds + 1):
            _measure(parts(material.ratings, scenario, seed), material, seed, found)
            done, steps = at * effort.seeds + seed, len(SCENARIOS) * effort.seeds
            progress(Progress("trainings", done, steps, f"{material.name}, {scenario}"))
        rows += _rows(f"{material.name}: {scenario}", TABLE_4[scenario], found, _described(material))
    return [*rows, *lossless(material)]


def _measure(own: Parts, sides: Sided, seed: int, found: Values) -> None:
    models = {line: model_of(own, sides, recipe, seed) for line, recipe in _recipes(own.scenario).items()}
    models |= {name: make(own, sides.features, seed) for name, make in baselines(own.scenario).items()}
    for line, model in models.items():
        for column, value in measured(model, own.rated, own.test, seed=seed).items():
            found.setdefault(line, {}).setdefault(column, []).append(value)


def _recipes(scenario: str) -> dict[str, MultiViewMF]:
    """Return the paper's setting and, where its precision is highest, the other weights that it names."""
    every = {ALL_UNRATED: replace(published(), unrated=InclUnc(alpha=0.1))} if scenario == EXISTING else {}
    return {OURS: published()} | every


def _described(sides: Sided) -> str:
    """Say what is known of users and items."""
    coding, items = sides.attributes.coding, sides.features
    columns = ", ".join(coding.columns)
    genome = "" if sides.genome is not None else f" ({NO_GENOME})"
    return (
        f"users by {coding.width} numbers ({columns}), items by {len(items.names)} of {items.source}{genome}"
    )


def _rows(panel: str, paper: Mapping[str, Mapping[str, float]], found: Values, note: str) -> list[Row]:
    ours = [
        Row(
            line=line, panel=panel, column=column, note=NOTES.get(line, note), at_home=False, **spread(values)
        )
        for line, columns in found.items()
        for column, values in columns.items()
    ]
    theirs = [
        Row(line=PAPER[which], panel=panel, column=column, ours=None, paper=numbers[column])
        for which, numbers in paper.items()
        for column in MEASURES
    ]
    return [*ours[: len(MEASURES)], *theirs, *ours[len(MEASURES) :]]


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """Return the mean of repeats, and one standard deviation each way, as the paper prints it."""
    mean = statistics.fmean(values)
    if len(values) == 1:
        return {"ours": mean}
    deviation = statistics.stdev(values)
    return {"ours": mean, "low": mean - deviation, "high": mean + deviation}
