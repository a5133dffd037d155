"""A distribution from all granularities at once: hierarchical histograms, HH and HH-ADMM."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cofactor.config import one_of, plain_numbers, whole
from cofactor.errors import ConfigError, RunError
from cofactor.privacy.answers import DividedResponse
from cofactor.privacy.bounding import divided_answers
from cofactor.randomness import Random
from cofactor.survey.admm import nearest_probabilities
from cofactor.survey.consistency import layer_sizes, layers_of, nearest_consistent
from cofactor.survey.hashing import checked_seeds, collision, drawn_seeds, hashes
from cofactor.survey.method import (
    Asked,
    Floats,
    Gives,
    Integers,
    cells_of,
    check_beside,
    check_settings,
    checked_answers,
    some_people,
)
from cofactor.survey.oracles import GRR, OLH, best_oracle, chances
from cofactor.survey.simplex import norm_sub

Post = Literal["admm", "consistent", "leaves"]
"""What is made of the layers: the nearest tree of probabilities; the nearest tree in which children add up to
their parent; or nothing, the estimates of the leaves alone."""


@dataclass(frozen=True, kw_only=True)
class HierarchicalHistogram:
    """A tree over the buckets: everybody tells of one layer, drawn by lot, where in it the own value lies.

    Layers have the frequency oracle that is best for their size. Everybody answers once, with all of epsilon:
    people are divided, not the budget (thesis, section 3.4.2). The tally is that of the oracles, layer after
    layer from the children of the root to the leaves.
    """

    beside: ClassVar[tuple[str, ...]] = ("layers", "seeds")

    epsilon: float
    """The most that an answer says for any value against any other, in log-odds."""
    buckets: int = 256
    """How many equal parts of [0, 1] are told apart: a power of the branching."""
    branching: int = 4
    """How many children a node has."""
    post: Post = "admm"
    """What is made of the layers. "admm" gives probabilities (HH-ADMM); "consistent" (HH) and "leaves" give
    unbiased numbers, some of them negative, for ranges only."""
    weighted: bool = True
    """Count layers by one over their noise's variance, so that small layers, which randomized response serves
    well, count for more. The thesis counts all alike: after ADMM, the Wasserstein distance is then up to a
    fifth larger, and on some data no larger."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        check_settings(epsilon=self.epsilon, buckets=self.buckets)
        whole(branching=self.branching)
        one_of(get_args(Post), post=self.post)
        if self.branching < 2:
            raise ConfigError(f"branching must be at least 2, got {self.branching}.")
        _check_power(self.buckets, self.branching)

    @property
    def gives(self) -> Gives:
        """Probabilities after ADMM; otherwise numbers for ranges."""
        return "distribution" if self.post == "admm" else "ranges"

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many nodes each layer has, from the children of the root to the leaves."""
        return layer_sizes(self.buckets, self.branching)

    @property
    def oracles(self) -> tuple[GRR | OLH, ...]:
        """The frequency oracle of each layer."""
        return tuple(best_oracle(self.epsilon, size) for size in self.sizes)

    @property
    def mechanism(self) -> DividedResponse:
        """Randomized response about one layer's node, or its hash."""
        choices = tuple(oracle.mechanism.choices for oracle in self.oracles)
        return DividedResponse(choices=choices, epsilon=self.epsilon)

    def asked(self, values: Floats, random: Random) -> Asked:
        """Draw a layer and a hash function for each person, and look up the node."""
        # The draws are public; only whether an answer is true is not, and that has a key of its own.
        chance = np.random.default_rng(random.new_key())
        layers = chance.integers(0, len(self.sizes), values.size, np.uint8)
        seeds = drawn_seeds(values.size, random)
        truth = self.truth(cells_of(values, self.buckets), layers, seeds)
        bounded = divided_answers(layers, truth, choices=self.mechanism.choices)
        return Asked(bounded=bounded, beside={"layers": layers, "seeds": seeds})

    def truth(self, buckets: Integers, layers: NDArray[Any], seeds: NDArray[np.uint32]) -> Integers:
        """Return what is true of people in these buckets: the node of their layer, or its hash."""
        found = np.empty(buckets.size, np.int64)
        for layer, (size, oracle) in enumerate(zip(self.sizes, self.oracles, strict=True)):
            own = layers == layer
            nodes = buckets[own] // (self.buckets // size)
            found[own] = nodes if isinstance(oracle, GRR) else hashes(seeds[own], nodes, oracle.choices)
        return found

    def tally(self, answers: Integers, **beside: NDArray[Any]) -> Integers:
        """Add up each layer's answers as its oracle does."""
        check_beside(self, beside)
        found = checked_answers(answers, self.mechanism.most_choices)
        layers = checked_answers(beside["layers"], len(self.sizes), "layers")
        seeds = checked_seeds(beside["seeds"], found.size)
        if layers.size != found.size:
            raise RunError("layers are not one for each answer.")
        tallies = []
        for layer, oracle in enumerate(self.oracles):
            own = layers == layer
            public = {} if isinstance(oracle, GRR) else {"seeds": seeds[own]}
            tallies.append(oracle.tally(found[own], **public))
        return np.concatenate(tallies)

    def estimate(self, tally: Integers) -> Floats:
        """Return probabilities, or signed numbers that add up to 1; of leaves alone, to about 1."""
        if self.post == "leaves":
            return self.oracles[-1].estimate(self._parts(tally)[-1])
        tree, weights = self.layer_estimates(tally)
        if self.post == "consistent":
            return layers_of(nearest_consistent(tree, self.sizes, weights), self.sizes)[-1]
        # ADMM stops within a tolerance: the nearest probabilities to its leaves add up to 1 as they should.
        return norm_sub(layers_of(nearest_probabilities(tree, self.sizes, weights), self.sizes)[-1])

    def layer_estimates(self, tally: Integers) -> tuple[Floats, list[float]]:
        """Return unbiased estimates of all nodes, layer after layer, and what each layer counts for.

        A layer that nobody answered counts for nothing.
        """
        found, weights = [], []
        for oracle, part in zip(self.oracles, self._parts(tally), strict=True):
            people = _people(oracle, part)
            found.append(oracle.estimate(part) if people else np.zeros(oracle.buckets))
            weights.append(people / _variance(oracle) if self.weighted else float(people > 0))
        some_people(any(weights))
        return np.concatenate(found), weights

    def resampled(self, tally: Integers, chance: np.random.Generator) -> Integers:
        """Draw each layer's answers again, as its oracle does; as many people answer about each layer."""
        again = [
            oracle.resampled(part, chance) if _people(oracle, part) else part
            for oracle, part in zip(self.oracles, self._parts(tally), strict=True)
        ]
        return np.concatenate(again)

    def _parts(self, tally: Integers) -> list[Integers]:
        """Return the tallies of the oracles: of hashed answers, with how many came as their last number."""
        widths = [oracle.buckets + isinstance(oracle, OLH) for oracle in self.oracles]
        if np.shape(tally) != (sum(widths),):
            raise RunError(f"a tally is not a row of {sum(widths):,} counts.")
        return np.split(np.asarray(tally), np.cumsum(widths)[:-1])


def _people(oracle: GRR | OLH, tally: Integers) -> int:
    return int(tally.sum() if isinstance(oracle, GRR) else tally[-1])


def _variance(oracle: GRR | OLH) -> float:
    """Return how much one answer's noise makes the estimate of a node vary in which hardly anybody is."""
    _, other, surplus = chances(oracle.mechanism)
    same = 0.0 if isinstance(oracle, GRR) else collision(oracle.choices)
    chance = other + surplus * same
    return chance * (1 - chance) / (surplus * (1 - same)) ** 2


def _check_power(buckets: int, branching: int) -> None:
    power = branching
    while power * branching <= buckets:
        power *= branching
    if power != buckets:
        near = f"are {power:,} and {power * branching:,}" if power < buckets else f"is {power:,}"
        raise ConfigError(
            f"buckets must be a power of the branching, {branching:,}, got {buckets:,}. The nearest {near}."
        )
