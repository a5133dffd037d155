"""Errors of PersonalBiases where ratings have budgets of their own, beside everything that it must beat.

    python -m benchmarks.personal_accuracy FOLDER [ml-100k|ml-1m] [seeds=5] [epsilon=1]

FOLDER holds ml-100k.inter and .item, and ml-1m.zip. Weights are those of HDPMF's Table 2; a rating of weight
w costs exactly epsilon w in all, and nobody else knows whose weight is what. Users have 20 ratings at least,
of which 10 are tested: others for every seed, as are weights and noise. Cells are means over seeds and, in
brackets, their standard deviation. The last columns are MSEs of the users who ask for most privacy, for some,
and for none.

All but the baselines without privacy has the same home model, whose constants were chosen on validation parts
of the training ratings. With adjacency "value" a rating's value alone is protected, by epsilon w; "empty" is
about whether there is a rating at all, by epsilon w, and so its value by 2 epsilon w: that takes less noise.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.recipe_material import Material, cell, devices, heading, row
from cofactor.data.ratings import Ratings
from cofactor.data.split import leave_out
from cofactor.factors.baselines import UserItemBias, UserMean
from cofactor.factors.model import Factors
from cofactor.federation.weights import PublicWeights
from cofactor.privacy.budget import Budget
from cofactor.privacy.personal import PersonalBudget
from cofactor.privacy.weights import HDPMF_USERS
from cofactor.randomness import InsecureRandom, Seeds
from cofactor.recipes.item_models import Units, features_of, model_of
from cofactor.recipes.item_sums import Known
from cofactor.recipes.personal_beliefs import Portion, Told, believed, representatives
from cofactor.recipes.personal_biases import PersonalBiases
from cofactor.recipes.personal_halves import final_of
from cofactor.recipes.sums import PlainSum
from cofactor.recipes.train import train

DELTA = 1e-9
TESTED, LEAST_RATINGS = 10, 20
Reals = NDArray[np.float64]
Method = Callable[["Repeat"], Factors]


@dataclass(frozen=True)
class Repeat:
    """One split, with weights and noise of its own."""

    seed: int
    epsilon: float
    train: Ratings
    test: Ratings

    def budget(self, **settings: Any) -> PersonalBudget:
        """Return the budget of the paper's Table 2."""
        return PersonalBudget.as_published(seed=self.seed, epsilon=self.epsilon, delta=DELTA, **settings)

    def strictest(self) -> float:
        """Return the least that any rating of the training part is promised."""
        budget, own = self.budget(), self.train
        weights = budget.users.of(own.user_ids)[own.users] * budget.items.of(own.item_ids)[own.items]
        return self.epsilon * float(weights.min())

    def squares(self, model: Factors) -> Reals:
        """Return by how much each test rating was missed, squared."""
        predicted = model.predict_rows(self.test.users, self.test.items).astype(np.float64)
        return np.asarray((predicted - self.test.values) ** 2)


def main() -> None:
    folder, *words = sys.argv[1:]
    said = dict(word.split("=") for word in words if "=" in word)
    for name in [word for word in words if "=" not in word] or ["ml-100k", "ml-1m"]:
        table(Path(folder), name, seeds=int(said.get("seeds", 5)), epsilon=float(said.get("epsilon", 1)))


def table(folder: Path, name: str, *, seeds: int, epsilon: float) -> None:
    """Print the table of one release of MovieLens."""
    material = Material.read(folder, name)
    ratings = material.ratings.select(users=material.ratings.by_user.sizes >= LEAST_RATINGS).compact()
    repeats = [Repeat(seed, epsilon, *leave_out(ratings, TESTED, seed=seed)) for seed in range(seeds)]
    groups = [f"MSE {group.name}" for group in HDPMF_USERS]
    heading(f"{name}: {ratings.user_count:,} users, epsilon {epsilon:g}", ["MSE", "MAE", *groups])
    for words, method in _methods(material).items():
        _row(words, method, repeats)


def _methods(material: Material) -> dict[str, Method]:
    public = material.public_items
    found: dict[str, Method] = {
        "users by themselves: own mean": lambda each: UserMean().fit(each.train),
        "without privacy: user and item bias": lambda each: UserItemBias().fit(each.train),
        "without privacy: PersonalBiases": lambda each: _trained(PersonalBiases(), each, None),
        "the same epsilon for all": lambda each: _trained(PersonalBiases(), each, _equal(each.epsilon)),
        "the strictest rating's for all": lambda each: _trained(
            PersonalBiases(), each, _equal(each.strictest())
        ),
        "local: one bit for each rating": one_bit,
    }
    for adjacency in ("value", "empty"):
        for mechanism in ("stretching", "sampling"):
            settings = {"adjacency": adjacency, "mechanism": mechanism}
            found[f"PersonalBiases, {adjacency}, {mechanism}"] = _personal(PersonalBiases(), settings)
    found["... empty, stretching, at half of epsilon"] = lambda each: _trained(
        PersonalBiases(), each, replace(each.budget(adjacency="empty"), epsilon=each.epsilon / 2)
    )
    found["... value, stretching, no sum hidden"] = _personal(PersonalBiases(aggregate=PlainSum()), {})
    found["... value, stretching, public features"] = _personal(PersonalBiases(public_items=public), {})
    found["... value, stretching, co_rating=12"] = _personal(PersonalBiases(co_rating=12), {})
    both = PersonalBiases(public_items=public, co_rating=12)
    found["... value, stretching, both"] = _personal(both, {})
    return found


def _personal(recipe: PersonalBiases, settings: dict[str, Any]) -> Method:
    return lambda each: _trained(recipe, each, each.budget(**settings))


def _equal(epsilon: float) -> Budget:
    return Budget(epsilon=epsilon, delta=DELTA, unit="rating", adjacency="value")


def _trained(recipe: PersonalBiases, each: Repeat, budget: Budget | None) -> Factors:
    """Train with noise that the seed repeats, which no guarantee survives: for tables only."""
    run = train(recipe, devices(each.train), budget=budget, random=InsecureRandom(each.seed), seed=each.seed)
    (model,) = run.homes.values()
    return model


def one_bit(each: Repeat) -> Factors:
    """Let every rating answer by one bit, under local privacy of epsilon w (Duchi et al. 2013).

    A rating v from -1 to 1 answers 1 or -1, with mean v tanh(epsilon w / 2). Whose weight is what stays
    private, so that the sum of answers is read by what the tanh is on average.
    """
    budget, own = each.budget(), each.train
    federation = devices(own).with_weights(budget.users, budget.items, budget=budget)
    facts, units = federation.facts, Units(federation.facts)
    public, party = facts.weights, federation.parties[0]
    assert public is not None
    assert party.weights is not None
    ratings = units.inward(own.by_user)
    weights = party.weights[ratings.members()] * public.items[ratings.index]
    span = PersonalBiases().span
    means = span.told(ratings.values) * np.tanh(each.epsilon * weights / 2)
    chance = Seeds(each.seed).generator("one bit")
    answers = np.where(chance.random(len(means)) < (1 + means) / 2, 1.0, -1.0)
    counts = np.bincount(ratings.index, minlength=facts.item_count).astype(np.float64)
    sums = np.bincount(ratings.index, answers, minlength=facts.item_count).astype(np.float64)
    features, portion = features_of(facts), _portion_of_bits(public, each.epsilon)
    told = Told.of_values(counts, sums, counts, portion=portion, span=span)
    nothing = np.zeros((facts.item_count, 0))
    last = final_of(believed(told, portion, features, nothing, users=facts.user_count, exact=True))
    known = Known.of(last, features, 0)
    tastes = known.fit(ratings).tastes @ known.root.T
    return model_of(facts, last, known, features, own.user_ids, tastes, None)


def _portion_of_bits(public: PublicWeights, epsilon: float) -> Portion:
    """Return how much of a rating is left in its bit; what else is in it counts as noise."""
    points, shares = representatives(public)
    each = np.tanh(epsilon * public.items[:, None] * points / 2)
    return Portion(each @ shares, (each @ shares) ** 2)


def _row(words: str, method: Method, repeats: Sequence[Repeat]) -> None:
    start, found = time.process_time(), []
    for each in repeats:
        squares = each.squares(method(each))
        group = each.budget().users.groups_of(each.test.user_ids)[each.test.users]
        by_group = [float(squares[group == place].mean()) for place in range(len(HDPMF_USERS))]
        found.append([float(squares.mean()), float(np.sqrt(squares).mean()), *by_group])
    row(words, [cell(column) for column in zip(*found, strict=True)], start)


if __name__ == "__main__":
    main()
