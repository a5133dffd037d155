"""What is audited: all private recipes, surveys and clusterings, small, with canaries in them.

Federations are made up: 120 users of 60 items, or one or several parties of them. Sums are simulated ones
with the noise of secure ones, so that no time goes into cryptography, and nobody drops out of them. Limits on
what users contribute are low enough for a canary's ratings to reach beyond them, as those of real users do.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cofactor.attacks.canaries import RecipeTarget
from cofactor.attacks.cluster_canaries import ClusterTarget, nobody
from cofactor.attacks.survey_canaries import SurveyTarget
from cofactor.attacks.target import Target
from cofactor.cluster.lloyd import PrivateLloyd
from cofactor.cluster.local import LSHForest
from cofactor.cluster.method import LocalClustering, Membership
from cofactor.cluster.simple import IndependentCounts, LocalMemberships
from cofactor.cluster.sketches import Sketches
from cofactor.cluster.tables import SecureTable
from cofactor.data import partition
from cofactor.data.synthetic import Shape, make
from cofactor.federation.federation import Federation
from cofactor.federation.party import Party
from cofactor.privacy.budget import Adjacency, Budget, Unit
from cofactor.recipes.central import CentralDPSGD
from cofactor.recipes.clipping import GradientClipping
from cofactor.recipes.hdpmf import HDPMF
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.item_rounds import ItemRound
from cofactor.recipes.langevin import DPSGLD
from cofactor.recipes.local_reports import LocalReports
from cofactor.recipes.multiview import MultiViewMF
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.personal_biases import PersonalBiases
from cofactor.recipes.projected import ProjectedMF
from cofactor.recipes.secure_als import SecureALS
from cofactor.recipes.shared_biases import SharedBiases
from cofactor.recipes.sums import IdealSum
from cofactor.recipes.vertical import VerticalMF
from cofactor.recipes.vertical_taste import VerticalTaste
from cofactor.survey.binning import Binning
from cofactor.survey.haar import HaarHRR
from cofactor.survey.hierarchy import HierarchicalHistogram
from cofactor.survey.means import PiecewiseMean, StochasticRounding
from cofactor.survey.method import Method
from cofactor.survey.oracles import GRR, OLH, HadamardResponse
from cofactor.survey.waves import GeneralWave, SquareWave

DELTA = 1e-6
_SHAPE = Shape(users=120, items=60, ratings=2800)
_SUM = IdealSum()
_KEY_BITS, _SKETCH_ROWS = 2048, 256
"""The smallest keys, and few hashes: what is promised is the same."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Something to audit."""

    name: str
    target: Callable[[float], Target]
    """What it is at an epsilon."""
    repeats: int = 1
    """Runs that are one audit, where a run has few canaries."""


@dataclass(frozen=True, kw_only=True)
class RecipeCase:
    """A recipe to audit, and where it is trained."""

    recipe: Any
    federation: Callable[[], Federation]
    unit: Unit = "user"
    adjacency: Adjacency = "empty"
    canaries: int = 1000
    ratings: int | None = None
    """Of each canary; None leaves it to the target."""
    repeats: int = 1

    def target(self, epsilon: float) -> RecipeTarget:
        """Return it with canaries, at an epsilon."""
        return RecipeTarget(
            recipe=self.recipe,
            federation=self.federation(),
            budget=Budget(epsilon=epsilon, delta=DELTA, unit=self.unit, adjacency=self.adjacency),
            canaries=self.canaries,
            ratings=self.ratings,
        )


def devices() -> Federation:
    """Return users, each a device of one simulation."""
    return Federation.on_device(make(_SHAPE, seed=0).ratings)


def horizontal(parties: int) -> Callable[[], Federation]:
    """Return a maker of parties with different users."""

    def dealt() -> Federation:
        parts = partition.horizontal(make(_SHAPE, seed=0).ratings, parties, seed=1)
        return Federation.horizontal(_named(parts), simulated=True)

    return dealt


def vertical(parties: int) -> Callable[[], Federation]:
    """Return a maker of parties with different items."""

    def dealt() -> Federation:
        parts = partition.vertical(make(_SHAPE, seed=0).ratings, parties, seed=1)
        return Federation.vertical(_named(parts), simulated=True)

    return dealt


def _named(parts: Any) -> list[Party]:
    return [Party(name=f"party-{at}", ratings=part) for at, part in enumerate(parts)]


_SHORT = GradientClipping(limit=2.0)
_ROUNDS = (ItemRound(share=0.6, count_weight=1.2), ItemRound(share=0.3, count_weight=0.5))
_WITH_FACTORS = (*_ROUNDS, ItemRound(share=0.3, count_weight=0.2, factors=2, spread_share=0.02))
RECIPES: Mapping[str, RecipeCase] = {
    "SharedBiases": RecipeCase(
        recipe=SharedBiases(item_rounds=_ROUNDS, aggregate=_SUM), federation=devices, ratings=16
    ),
    "SharedBiases, sketched": RecipeCase(
        recipe=SharedBiases(item_rounds=_ROUNDS, reduction=1.5, aggregate=_SUM),
        federation=devices,
        canaries=250,
        repeats=4,
    ),
    "SecureALS": RecipeCase(
        recipe=SecureALS(item_rounds=_WITH_FACTORS, aggregate=_SUM), federation=devices, ratings=16
    ),
    "VerticalTaste": RecipeCase(recipe=VerticalTaste(), federation=vertical(3), unit="rating"),
    "VerticalTaste, sum": RecipeCase(
        recipe=VerticalTaste(aggregate=_SUM), federation=vertical(8), unit="rating"
    ),
    "PersonalBiases, values": RecipeCase(
        recipe=PersonalBiases(aggregate=_SUM), federation=devices, unit="rating", adjacency="value"
    ),
    "PersonalBiases": RecipeCase(recipe=PersonalBiases(aggregate=_SUM), federation=devices, unit="rating"),
    "VerticalMF, ratings": RecipeCase(recipe=VerticalMF(rounds=10), federation=vertical(3), unit="rating"),
    "VerticalMF, ratings, sampled": RecipeCase(
        recipe=VerticalMF(rounds=10, sampling=0.2), federation=vertical(3), unit="rating"
    ),
    "VerticalMF, ratings, sum": RecipeCase(
        recipe=VerticalMF(rounds=5, aggregate=_SUM), federation=vertical(8), unit="rating"
    ),
    "VerticalMF, users": RecipeCase(recipe=VerticalMF(rounds=10), federation=vertical(3)),
    "HorizontalMF": RecipeCase(
        recipe=HorizontalMF(rounds=5, local_steps=4, factors=4, clipping=_SHORT), federation=horizontal(3)
    ),
    "HorizontalMF, sampled": RecipeCase(
        recipe=HorizontalMF(rounds=20, local_steps=2, factors=4, sampling=0.2), federation=horizontal(3)
    ),
    "HorizontalMF, sum": RecipeCase(
        recipe=HorizontalMF(rounds=5, factors=4, clipping=_SHORT, aggregate=_SUM), federation=horizontal(12)
    ),
    "OnDeviceMF": RecipeCase(
        recipe=OnDeviceMF(rounds=4, most_ratings=8, clipping=GradientClipping(limit=1.0), aggregate=_SUM),
        federation=devices,
    ),
    "LocalReports": RecipeCase(
        recipe=LocalReports(factors=4, rows=16, rounds=3), federation=devices, adjacency="replace"
    ),
    "ProjectedMF": RecipeCase(
        recipe=ProjectedMF(rounds=2, aggregate=_SUM),
        federation=devices,
        adjacency="replace",
        canaries=100,
        repeats=6,
    ),
    "MultiViewMF": RecipeCase(recipe=MultiViewMF(rounds=3, limit=1.0, aggregate=_SUM), federation=devices),
    "HDPMF": RecipeCase(recipe=HDPMF(aggregate=_SUM), federation=devices),
    "CentralDPSGD": RecipeCase(recipe=CentralDPSGD(), federation=horizontal(1)),
    "DPSGLD, ratings": RecipeCase(
        recipe=DPSGLD(rounds=10, local_steps=5, sampling=0.05, factors=4),
        federation=vertical(3),
        unit="rating",
    ),
}
"""All recipes that promise something, with few rounds."""

SURVEYS: Mapping[str, Callable[[float], Method]] = {
    "SquareWave": lambda epsilon: SquareWave(epsilon=epsilon),
    "SquareWave, discrete": lambda epsilon: SquareWave(epsilon=epsilon, discrete=True, buckets=16),
    "GeneralWave": lambda epsilon: GeneralWave(epsilon=epsilon, buckets=32),
    "Binning, 4 bins": lambda epsilon: Binning(epsilon=epsilon, bins=4),
    "Binning, 256 bins": lambda epsilon: Binning(epsilon=epsilon, bins=256),
    "GRR": lambda epsilon: GRR(epsilon=epsilon, buckets=2),
    "OLH": lambda epsilon: OLH(epsilon=epsilon),
    "HadamardResponse": lambda epsilon: HadamardResponse(epsilon=epsilon),
    "HierarchicalHistogram": lambda epsilon: HierarchicalHistogram(epsilon=epsilon),
    "HaarHRR": lambda epsilon: HaarHRR(epsilon=epsilon),
    "StochasticRounding": lambda epsilon: StochasticRounding(epsilon=epsilon),
    "PiecewiseMean": lambda epsilon: PiecewiseMean(epsilon=epsilon),
}

CLUSTERINGS: Mapping[str, tuple[Membership, LocalClustering]] = {
    "SecureTable, LSHForest": (SecureTable(bits=_KEY_BITS), LSHForest()),
    "Sketches, LSHForest": (Sketches(rows=_SKETCH_ROWS), LSHForest()),
    "IndependentCounts, LSHForest": (IndependentCounts(), LSHForest()),
    "LocalMemberships, LSHForest": (LocalMemberships(), LSHForest()),
    "IndependentCounts, PrivateLloyd": (IndependentCounts(), PrivateLloyd()),
}


def cases() -> list[Case]:
    """Return everything, recipes first."""
    recipes = [Case(name=name, target=each.target, repeats=each.repeats) for name, each in RECIPES.items()]
    surveys = [Case(name=f"survey: {name}", target=_survey(made)) for name, made in SURVEYS.items()]
    clusterings = [
        Case(name=f"clustering: {name}", target=_clustering(*pair), repeats=20)
        for name, pair in CLUSTERINGS.items()
    ]
    return [*recipes, *surveys, *clusterings]


def _survey(made: Callable[[float], Method]) -> Callable[[float], SurveyTarget]:
    return lambda epsilon: SurveyTarget(method=made(epsilon), canaries=1000)


def _clustering(method: Membership, local: LocalClustering) -> Callable[[float], ClusterTarget]:
    return lambda epsilon: ClusterTarget(
        records=nobody(),
        budget=Budget(epsilon=epsilon, delta=DELTA, unit="user"),
        method=method,
        local=local,
    )
