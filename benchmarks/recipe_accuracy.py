"""Errors of SharedBiases and SecureALS on real ratings, beside everything that they must beat.

    python -m benchmarks.recipe_accuracy FOLDER [ml-1m|ml-100k|tenfold|ranking|parties|others]
        [seeds=5] [epsilons=0.5,1,2,4,10]

FOLDER holds ml-1m.zip, ml-100k.inter and .item, yelp-hin.npz and douban-monti3k.npz. All is at user level;
delta is 1e-6 for MovieLens 1M, 1e-5 for 100K and 1e-7 tenfold. A tenth of each user's ratings is the test
part: for ml-1m and ml-100k another one for every seed, elsewhere the same. Cells are test MSEs: the mean over
seeds and, in brackets, their standard deviation. Tenfold, every user stands for ten, of whom the first is
tested; the others keep 80% of the training ratings. CPU seconds are those of a whole row.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recipe_material import (
    EPSILONS,
    Effort,
    Material,
    cell,
    devices,
    heading,
    mse,
    row,
    server,
    trained,
)
from benchmarks.recipe_others import others
from benchmarks.recipe_ranking import ranking
from cofactor.data import partition
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.evaluate.joining import own_means
from cofactor.factors.baselines import PersonalRidge, UserItemBias
from cofactor.factors.bayes import Bayes
from cofactor.factors.model import Factors
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.papers.cells import replicated
from cofactor.recipes.alone import Alone
from cofactor.recipes.central import CentralDPSGD
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.shared_biases import SharedBiases

TENFOLD_DELTA = 1e-7
PARTIES = 40


def main() -> None:
    folder, *words = sys.argv[1:]
    said = dict(word.split("=") for word in words if "=" in word)
    effort = Effort(
        seeds=int(said.get("seeds", Effort.seeds)),
        epsilons=tuple(float(each) for each in said["epsilons"].split(","))
        if "epsilons" in said
        else EPSILONS,
    )
    wanted = [word for word in words if "=" not in word] or list(TABLES)
    for name in wanted:
        TABLES[name](Path(folder), effort)


def movielens(name: str) -> Callable[[Path, Effort], None]:
    """Return the table of one release of MovieLens."""

    def table(folder: Path, effort: Effort) -> None:
        material = Material.read(folder, name)
        halves = [by_fraction(material.ratings, 0.1, seed=seed) for seed in range(effort.seeds)]
        _heading(f"{name}: {material.ratings.user_count:,} users, delta {material.delta:g}", effort)
        _without_privacy(material, halves, effort)
        for words, recipe in _ours(material, SharedBiases, SecureALS):
            _row(words, recipe, [(devices(a), devices(b)) for a, b in halves], material.delta, effort)
        for words, recipe in (
            ("CentralDPSGD, all ratings at a trusted server", CentralDPSGD()),
            ("CentralDPSGD as published", CentralDPSGD.as_published()),
        ):
            _row(words, recipe, [(server(a), server(b)) for a, b in halves], material.delta, effort)

    return table


def tenfold(folder: Path, effort: Effort) -> None:
    """MovieLens 1M, with ten for every user."""
    material = replace(Material.read(folder, "ml-1m"), delta=TENFOLD_DELTA)
    learn, test = by_fraction(material.ratings, 0.1, seed=0)
    many, first = replicated(learn, test, 10, seed=0)
    _heading(f"tenfold: {many.user_count:,} users, delta {material.delta:g}", effort)
    _without_privacy(material, [(many, first)], effort)
    for words, recipe in _ours(material, SecureALS):
        _row(words, recipe, [(devices(many), devices(first))], material.delta, effort)


def parties(folder: Path, effort: Effort) -> None:
    """MovieLens 1M dealt out to horizontal parties, together and alone."""
    material = Material.read(folder, "ml-1m")
    learn, test = (_dealt(part) for part in by_fraction(material.ratings, 0.1, seed=0))
    assert material.public_items is not None
    known = learn.with_public_items(material.public_items)
    _heading(f"{PARTIES} horizontal parties, ml-1m, delta {material.delta:g}", effort)
    for words, federation, home in (
        ("alone, user and item biases, no privacy", learn, UserItemBias()),
        ("alone, Bayes, no privacy", learn, Bayes()),
        ("alone, Bayes, public features, no privacy", known, Bayes()),
    ):
        start = time.process_time()
        models = (
            Alone(home=home).fit(federation)
            if isinstance(home, Bayes)
            else {party.name: home.fit(party.ratings) for party in federation.parties}
        )
        row(words, [cell([_error(models, test)])] * len(effort.epsilons), start)
    for words, recipe in _ours(material, SecureALS):
        _row(words, recipe, [(learn, test)], material.delta, effort)


def _dealt(ratings: Ratings) -> Federation:
    parts = partition.horizontal(ratings, PARTIES, seed=0)
    named = [Party(name=f"party-{at}", ratings=part) for at, part in enumerate(parts)]
    return Federation.horizontal(named, scale=ratings.scale, simulated=True)


def _ours(material: Material, *recipes: type[SharedBiases]) -> Iterator[tuple[str, Any]]:
    for recipe in recipes:
        yield f"{recipe.__name__}, no features", recipe()
        yield f"{recipe.__name__}, public features", recipe(public_items=material.public_items)


def _without_privacy(material: Material, halves: Sequence[tuple[Ratings, Ratings]], effort: Effort) -> None:
    """Print what sends nothing, and what knows everything: the same for every epsilon."""
    errors: dict[str, list[float]] = {}
    for learn, test in halves:
        for words, model in _baselines(material, learn):
            errors.setdefault(words, []).append(mse(model, test))
    for words, found in errors.items():
        row(words, [cell(found)] * len(effort.epsilons))


def _baselines(material: Material, learn: Ratings) -> Iterator[tuple[str, Factors]]:
    assert learn.scale is not None
    assert material.public_items is not None
    features = material.public_items.rows(learn.item_ids)
    yield "sends nothing: user's own mean", own_means(learn, learn.scale)
    yield "sends nothing: own ridge on public features", PersonalRidge().fit(learn, features=features)
    yield "user and item biases, no privacy", UserItemBias().fit(learn)


def _row(
    words: str,
    recipe: Any,
    halves: Sequence[tuple[Federation, Federation]],
    delta: float,
    effort: Effort,
) -> None:
    """Train at every epsilon with every seed, on its own halves if there are such, and print the errors."""
    start, cells = time.process_time(), []
    for epsilon in effort.epsilons:
        errors = []
        for seed in range(effort.seeds):
            learn, test = halves[seed % len(halves)]
            errors.append(_error(trained(recipe, learn, epsilon, delta, seed).homes, test))
        cells.append(cell(errors))
    row(words, cells, start)


def _error(models: Mapping[str, Factors], test: Federation) -> float:
    """Return the error over all parties' own test ratings."""
    missed = [
        models[party.name].predict_rows(party.ratings.users, party.ratings.items) - party.ratings.values
        for party in test.parties
    ]
    return float(np.mean(np.concatenate(missed).astype(np.float64) ** 2))


def _heading(title: str, effort: Effort) -> None:
    heading(f"{title}, {effort.seeds} seeds", [f"epsilon {each:g}" for each in effort.epsilons])


TABLES = {
    "ml-1m": movielens("ml-1m"),
    "ml-100k": movielens("ml-100k"),
    "tenfold": tenfold,
    "ranking": ranking,
    "parties": parties,
    "others": others,
}

if __name__ == "__main__":
    main()
