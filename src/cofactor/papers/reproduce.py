"""`reproduce`: make a published figure again with the data at hand."""

import time
from pathlib import Path

from cofactor.errors import ConfigError, did_you_mean
from cofactor.papers import pvldb22
from cofactor.papers.cells import Effort
from cofactor.papers.claims import against_baselines
from cofactor.papers.figure import Figure
from cofactor.papers.material import Material
from cofactor.papers.reference import baselines
from cofactor.papers.results import Baseline, Reproduction
from cofactor.progress import Listener, nobody

PAPERS = {"pvldb22": pvldb22.FIGURES}
"""By paper and item, what can be made again."""


def reproduce(
    paper: str, item: str, data: str | Path, *, effort: Effort | None = None, progress: Listener = nobody
) -> Reproduction:
    """Make a figure again with the ratings in a file, or with the first known set in a folder."""
    figure, spent, start = find(paper, item), effort or Effort(), time.perf_counter()
    material = Material.read(Path(data))
    rows = figure.rows(material, spent, progress)
    beside: dict[str, Baseline] = baselines(material, spent) if figure.measure == "MSE" else {}
    ratings = material.ratings
    return Reproduction(
        paper=paper,
        item=item,
        title=figure.title,
        measure=figure.measure,
        data={
            "name": material.name,
            "users": ratings.user_count,
            "items": ratings.item_count,
            "ratings": len(ratings),
            "scale": str(ratings.scale),
            "seeds": spent.seeds,
            "steps": spent.steps,
        },
        rows=rows,
        baselines=beside,
        findings=[*figure.findings(rows), *(against_baselines(rows, beside) if beside else ())],
        seconds=time.perf_counter() - start,
    )


def find(paper: str, item: str) -> Figure:
    """Return a figure by its paper and its name there."""
    if paper not in PAPERS:
        known = ", ".join(PAPERS)
        raise ConfigError(f'there is no paper "{paper}".{did_you_mean(paper, PAPERS)} There are: {known}.')
    items = PAPERS[paper]
    if item not in items:
        known = ", ".join(items)
        raise ConfigError(f'{paper} has no item "{item}".{did_you_mean(item, items)} There are: {known}.')
    return items[item]
