"""Is joining worth it? python -m benchmarks.taste_accuracy FOLDER [2 5 10 category], with FOLDER/ml-1m.zip.

A tenth of each user's ratings is held out, and all items are dealt out to so many parties at random, or by
category. Printed: the mean squared error over all parties' own test ratings, alone and with `VerticalTaste`,
and by how much the party that gained least has gained.
"""

import sys
import time
from pathlib import Path

import numpy as np

import cofactor as cf
from cofactor.data.public_items import PublicItems
from cofactor.data.tables import Table, side_tables
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.privacy.budget import Budget
from cofactor.recipes.alone import Alone
from cofactor.recipes.sums import IdealSum, PlainSum
from cofactor.recipes.train import train
from cofactor.recipes.vertical_taste import VerticalTaste

EPSILONS = (1.0, 4.0, 10.0)
DELTA = 1e-6
SEED = 0

Errors = dict[str, tuple[float, int]]
"""Sum of squared errors, and number of test ratings, of each party."""


def dealt(ratings: cf.Ratings, how: str, items: Table) -> dict[str, cf.Ratings]:
    if how == "category":
        rows = items.rows(ratings.item_ids.tolist())
        column = items.column("genres")
        categories = [column.values(row) if row >= 0 else [] for row in rows.tolist()]
        return cf.partition.by_category(ratings, categories)
    parts = cf.partition.vertical(ratings, int(how), seed=SEED)
    return {f"party {at + 1}": part for at, part in enumerate(parts)}


def federation(ratings: cf.Ratings, how: str, items: Table, *, with_features: bool) -> Federation:
    parties = [
        Party(name=name.replace("'", ""), ratings=part) for name, part in dealt(ratings, how, items).items()
    ]
    made = Federation.vertical(parties, simulated=True)
    return made.with_public_items(PublicItems.of_table(items)) if with_features else made


def errors(models: dict[str, cf.Factors], test: Federation) -> Errors:
    found = {}
    for party in test.parties:
        ratings = party.ratings
        wrong = ratings.values - models[party.name].predict_rows(ratings.users, ratings.items)
        found[party.name] = float(np.sum(wrong.astype(np.float64) ** 2)), len(ratings)
    return found


def mean(found: Errors) -> float:
    return sum(error for error, _ in found.values()) / sum(count for _, count in found.values())


def least_gain(alone: Errors, joined: Errors) -> float:
    return min((alone[party][0] - joined[party][0]) / max(alone[party][1], 1) for party in alone)


def row(how: str, train_part: Federation, test: Federation, alone: Errors, name: str, ideal: bool) -> str:
    aggregate = IdealSum() if ideal else PlainSum()
    cells, seconds = [], 0.0
    for epsilon in EPSILONS:
        start = time.process_time()
        budget = Budget(epsilon=epsilon, delta=DELTA, unit="rating")
        run = train(VerticalTaste(aggregate=aggregate), train_part, budget=budget, seed=SEED)
        assert run.homes is not None
        joined = errors(dict(run.homes), test)
        cells.append(f"{mean(joined):.4f} ({least_gain(alone, joined):+.4f})")
        seconds = max(seconds, time.process_time() - start)
    words = "only sums seen" if ideal else "all messages seen"
    return f"| {how} | {name} | {words} | {mean(alone):.4f} | " + " | ".join(cells) + f" | {seconds:.0f} |"


def main() -> None:
    folder, *wanted = sys.argv[1:]
    path = Path(folder) / "ml-1m.zip"
    ratings, items = cf.read_ratings(path), side_tables(path)[1]
    assert items is not None, f"no table of items beside {path}"
    training, test = cf.split.by_fraction(ratings, test=0.1, seed=SEED)
    columns = " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS)
    print(f"| parties | items | messages | alone | {columns} | CPU s |")
    print("|---|---|---|---|" + "---|" * (len(EPSILONS) + 1))
    for how in wanted or ["5", "10"]:
        for name, with_features in (("features", True), ("no features", False)):
            train_part = federation(training, how, items, with_features=with_features)
            test_part = federation(test, how, items, with_features=False)
            alone = errors(Alone().fit(train_part, seed=SEED), test_part)
            for ideal in (True, False):
                print(row(how, train_part, test_part, alone, name, ideal), flush=True)


if __name__ == "__main__":
    main()
