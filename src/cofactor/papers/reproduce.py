"""`reproduce`: make a published figure again with the data at hand."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cofactor.errors import ConfigError, did_you_mean
from cofactor.papers import dpmf_rp, hdpmf, privmvmf, pvldb22, thesis22
from cofactor.papers.cells import Effort
from cofactor.papers.claims import against_baselines
from cofactor.papers.figure import Figure
from cofactor.papers.material import Material
from cofactor.papers.privmvmf_sides import Sided
from cofactor.papers.results import Baseline, Reproduction
from cofactor.papers.thesis22_cluster_data import Crowd
from cofactor.papers.thesis22_data import Numbers
from cofactor.progress import Listener, nobody

PAPERS = {
    "pvldb22": pvldb22.FIGURES,
    "dpmf-rp": dpmf_rp.FIGURES,
    "privmvmf": privmvmf.FIGURES,
    "hdpmf": hdpmf.FIGURES,
    "thesis22": thesis22.FIGURES,
}
"""By paper and item, what can be made again."""
_SEEDS = {"privmvmf": privmvmf.REPEATS, "hdpmf": hdpmf.REPEATS, "thesis22": thesis22.REPEATS}
"""How often papers that print standard deviations repeat everything; others are made once."""
_QUICK = {"hdpmf": 1, "thesis22": thesis22.QUICK_REPEATS}
"""The same, where few repeats must do."""


def reproduce(
    paper: str,
    item: str,
    data: str | Path | None = None,
    *,
    effort: Effort | None = None,
    progress: Listener = nobody,
    genome: str | Path | None = None,
) -> Reproduction:
    """Make a figure again with the ratings in a file, or with what a folder holds of the known sets.

    Some figures show several sets; others, the first that is there. thesis22 makes up data of its own.
    `genome` names a file of tag scores, by which privmvmf describes films; without it, they have genres.
    """
    figure, start = find(paper, item), time.perf_counter()
    spent = effort or Effort(seeds=usual_seeds(paper, item))
    place, tags = (None if file is None else Path(file) for file in (data, genome))
    if tags is not None and paper != "privmvmf":
        raise ConfigError(f"{paper} does not use a tag genome; only privmvmf does. Leave it out.")
    materials = (
        thesis22.people(item, place, quick=spent.quick)
        if paper == "thesis22"
        else _ratings(paper, figure, place, tags)
    )
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
        decimals=figure.decimals,
        log=figure.log,
    )


def usual_seeds(paper: str, item: str | None = None, *, quick: bool = False) -> int:
    """Return how often everything is done anew, unless somebody says otherwise."""
    repeats = None if item is None else find(paper, item).repeats
    if repeats is not None:
        return repeats[quick]
    usual = _SEEDS.get(paper, 1)
    return _QUICK.get(paper, usual) if quick else usual


def _ratings(paper: str, figure: Figure, place: Path | None, genome: Path | None) -> Sequence[Material]:
    if place is None:
        raise ConfigError(f"{paper} needs ratings. Name a folder that holds them, or a file, with --data.")
    if paper != "privmvmf":
        return Material.read_all(place, figure.data) if figure.data else [Material.read(place)]
    sided = Sided.read_sides(place, figure.data)
    return sided if genome is None else [one.with_genome(genome) for one in sided]


def _left_out(figure: Figure, materials: Sequence[Material | Numbers | Crowd]) -> list[str]:
    there = {material.name for material in materials}
    missing = [name for name in figure.data if name not in there]
    return [f"Not there, and left out: {', '.join(missing)}."] if missing else []


def _facts(material: Material | Numbers | Crowd, effort: Effort) -> dict[str, Any]:
    if isinstance(material, Crowd):
        return {
            "name": material.name,
            "people": material.users,
            "columns": material.columns,
            "seeds": effort.seeds,
        }
    if isinstance(material, Numbers):
        return {
            "name": material.name,
            "people": len(material.values),
            "buckets": material.buckets,
            "seeds": effort.seeds,
        }
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
