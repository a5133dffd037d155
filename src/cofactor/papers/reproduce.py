"""`reproduce`: make a published figure again with the data at hand."""

import time
from pathlib import Path
from typing import Any

from cofactor.errors import ConfigError, did_you_mean
from cofactor.papers import dpmf_rp, pvldb22
from cofactor.papers.cells import Effort
from cofactor.papers.claims import against_baselines
from cofactor.papers.figure import Figure
from cofactor.papers.material import Material
from cofactor.papers.results import Baseline, Reproduction
from cofactor.progress import Listener, nobody

PAPERS = {"pvldb22": pvldb22.FIGURES, "dpmf-rp": dpmf_rp.FIGURES}
"""By paper and item, what can be made again."""


def reproduce(
    paper: str, item: str, data: str | Path, *, effort: Effort | None = None, progress: Listener = nobody
) -> Reproduction:
    """Make a figure again with the ratings in a file, or with what a folder holds of the known sets.

    Some figures show several sets; others, the first that is there.
    """
    figure, spent, start = find(paper, item), effort or Effort(), time.perf_counter()
    place = Path(data)
    materials = Material.read_all(place, figure.data) if figure.data else [Material.read(place)]
    rows = [row for material in materials for row in figure.rows(material, spent, progress)]
    beside: dict[str, Baseline] = {} if figure.baselines is None else figure.baselines(materials[0], spent)
    first, *others = [_facts(material, spent) for material in materials]
    return Reproduction(
        paper=paper,
        item=item,
        title=figure.title,
        measure=figure.measure,
        data=first,
        more_data=others,
        rows=rows,
        baselines=beside,
        findings=[
            *_left_out(figure, materials),
            *figure.findings(rows),
            *(against_baselines(rows, beside) if beside else ()),
        ],
        seconds=time.perf_counter() - start,
        reading=figure.reading,
    )


def _left_out(figure: Figure, materials: list[Material]) -> list[str]:
    there = {material.name for material in materials}
    missing = [name for name in figure.data if name not in there]
    return [f"Not there, and left out: {', '.join(missing)}."] if missing else []


def _facts(material: Material, effort: Effort) -> dict[str, Any]:
    ratings = material.ratings
    return {
        "name": material.name,
        "users": ratings.user_count,
        "items": ratings.item_count,
        "ratings": len(ratings),
        "scale": str(ratings.scale),
        "seeds": effort.seeds,
        "steps": effort.steps,
    }


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
