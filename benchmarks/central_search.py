"""Tune CentralDPSGD by a random search: python -m benchmarks.central_search FOLDER [settings [epsilon ...]].

FOLDER holds ml-1m.zip. A tenth of each user's ratings, the test part of split 0, is never looked at; a
twentieth of the rest is for validation. For each epsilon (user level, delta 1e-6) so many settings are drawn,
three fifths of them anywhere and the others near the best five so far; the best five are run again with three
other noise seeds, and the mean of those decides. What is searched is not charged to epsilon.
"""

import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from cofactor.data.files import read_ratings
from cofactor.data.grouping import Grouped
from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.privacy.budget import Budget
from cofactor.recipes import central_steps as steps
from cofactor.recipes.usual_steps import one_release

DELTA = 1e-6
ANYWHERE = 0.6
"""Part of the settings that are drawn anywhere."""
FINAL, SEEDS = 5, (1, 2, 3)
MEAN_SHARE = 0.01


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is searched; the ranges are in `drawn`."""

    factors: int
    rounds: int
    limit: float
    walk: float
    """How far the noise of all steps together carries a coordinate: it says how large a step is."""
    bias_penalty: float
    taste_penalty: float
    spread: float
    power: float
    count_share: float


def drawn(chance: np.random.Generator) -> Setting:
    """Draw a setting from all that there are."""

    def log(low: float, high: float) -> float:
        return math.exp(chance.uniform(math.log(low), math.log(high)))

    return Setting(
        factors=int(chance.choice([1, 1, 2, 2, 3, 4, 4, 6, 8, 16, 32])),
        rounds=round(log(2, 60)),
        limit=log(0.05, 2.0),
        walk=log(0.03, 0.6),
        bias_penalty=log(1.0, 8.0),
        taste_penalty=log(0.1, 10.0),
        spread=log(0.005, 0.5),
        power=float(chance.choice([0.0, chance.uniform(0.1, 0.7)])),
        count_share=log(0.02, 0.3),
    )


def near(setting: Setting, chance: np.random.Generator) -> Setting:
    """Draw a setting near another: numbers times exp(N(0, 0.25)), and factors one more or less at times."""
    numbers = {
        field.name: getattr(setting, field.name) * math.exp(chance.normal(0.0, 0.25))
        for field in fields(setting)
    }
    numbers["factors"] = max(1, setting.factors + int(chance.choice([-1, 0, 0, 1])))
    numbers["rounds"] = max(1, round(numbers["rounds"]))
    return Setting(**numbers)


@dataclass(frozen=True, eq=False)
class Data:
    """Ratings to learn from and to be measured on, and the noise that one release would need."""

    learn: Grouped
    test: Ratings
    items: int
    noise: float

    def error(self, setting: Setting, seed: int) -> float:
        """Train with noise that a seed repeats; return the mean squared error."""
        chance = np.random.default_rng(seed)
        counting = setting.count_share if setting.power else 0.0
        left = 1 - MEAN_SHARE - counting
        mean, weights = self._begun(setting, counting, chance)
        deviation = self.noise * math.sqrt(setting.rounds / left) * setting.limit
        rate = setting.walk / (deviation * math.sqrt(setting.rounds))
        penalties = steps.Penalties(setting.bias_penalty, setting.taste_penalty)
        ratings = Grouped(self.learn.ptr, self.learn.index, self.learn.values - np.float32(mean))
        items = steps.started(self.items, setting.factors, setting.spread, chance)
        for _ in range(setting.rounds):
            users = steps.fitted(ratings, items, penalties)
            total = steps.summed(ratings, users, items, weights, setting.limit).value
            items = steps.moved(items, total + chance.normal(0.0, deviation, total.shape), rate)
        users, test = steps.fitted(ratings, items, penalties), self.test
        predicted = mean + users.bias[test.users] + items[test.items, 0]
        predicted += np.einsum("ij,ij->i", users.tastes[test.users], items[test.items, 1:])
        return float(np.mean((np.clip(predicted, 1, 5) - test.values) ** 2))

    def _begun(
        self, setting: Setting, share: float, chance: np.random.Generator
    ) -> tuple[float, steps.Floats]:
        """Return the noisy mean of the users' means, and the weights of the items."""
        own = np.add.reduceat(self.learn.values - 3.0, self.learn.ptr[:-1]) / self.learn.sizes
        error = 2 * self.noise / math.sqrt(MEAN_SHARE) / len(own)
        mean = 3.0 + float(own.mean()) + chance.normal(0.0, error)
        if not setting.power:
            return mean, np.ones(self.items, np.float32)
        deviation = self.noise / math.sqrt(share)
        counts = steps.counted(self.learn, self.items).value[:, 0]
        noisy = counts + chance.normal(0.0, deviation, counts.shape)
        return mean, steps.weights_of(noisy, max(deviation, 1.0), setting.power)


def prepared(folder: Path, epsilon: float) -> Data:
    """Hold back the test part of split 0, and validate on a part of the rest."""
    ratings = read_ratings(folder / "ml-1m.zip")
    kept, _ = by_fraction(ratings, 0.1, seed=0)
    learn, validation = by_fraction(kept, 0.05, seed=1)
    facts = Federation.horizontal([Party(name="server", ratings=learn)]).facts
    noise = one_release(Budget(epsilon=epsilon, delta=DELTA, unit="user"), facts)
    return Data(learn.by_user, validation, ratings.item_count, noise)


def search(data: Data, count: int, chance: np.random.Generator) -> Iterator[tuple[Setting, float]]:
    """Yield settings and their errors with noise seed 0."""
    found: list[tuple[float, Setting]] = []
    for at in range(count):
        best = sorted(found, key=lambda pair: pair[0])[:FINAL]
        anywhere = at < ANYWHERE * count
        setting = drawn(chance) if anywhere else near(best[at % FINAL][1], chance)
        setting = setting if setting.count_share < 0.5 else replace(setting, count_share=0.5)
        error = data.error(setting, 0)
        found.append((error, setting))
        yield setting, error


def shown(setting: Setting) -> str:
    """Write a setting in one line."""
    return "  ".join(f"{field.name} {getattr(setting, field.name):.3g}" for field in fields(setting))


def main() -> None:
    folder, *more = sys.argv[1:]
    count = int(more[0]) if more else 200
    for epsilon in map(float, more[1:] or ["1", "4"]):
        data, start = prepared(Path(folder), epsilon), time.process_time()
        print(f"epsilon {epsilon:g}: {count} settings, noise of one release {data.noise:.4g}", flush=True)
        found = []
        for setting, error in search(data, count, np.random.default_rng(int(1000 * epsilon))):
            found.append((error, setting))
            if error <= min(each for each, _ in found):
                print(f"  {len(found):4d}  {error:.4f}  {shown(setting)}", flush=True)
        print(f"  best of each number of factors: {by_factors(found)}")
        for first, setting in sorted(found, key=lambda pair: pair[0])[:FINAL]:
            again = [data.error(setting, seed) for seed in SEEDS]
            print(f"  again {np.mean(again):.4f} (was {first:.4f})  {shown(setting)}", flush=True)
        print(f"  {len(found) + FINAL * len(SEEDS)} trainings, {time.process_time() - start:.0f} s of CPU")


def by_factors(found: list[tuple[float, Setting]]) -> str:
    """Return the best error for each number of factors that was tried."""
    best: dict[int, float] = {}
    for error, setting in found:
        best[setting.factors] = min(error, best.get(setting.factors, math.inf))
    return "  ".join(f"{factors}: {best[factors]:.4f}" for factors in sorted(best))


if __name__ == "__main__":
    main()
