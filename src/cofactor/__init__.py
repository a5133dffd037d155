"""Train recommenders on ratings that their holders may not share, and say what everybody could have learned.

This is the face: public names only. Each is loaded when it is first used, so that importing cofactor is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cofactor.attacks.audit import audit as audit
    from cofactor.attacks.result import Audit as Audit
    from cofactor.cluster.clustering import find_clusters as find_clusters
    from cofactor.cluster.lloyd import PrivateLloyd as PrivateLloyd
    from cofactor.cluster.local import LSHForest as LSHForest
    from cofactor.cluster.local_tree import Hyperplanes as Hyperplanes
    from cofactor.cluster.records import Records as Records
    from cofactor.cluster.result import Clustering as Clustering
    from cofactor.cluster.simple import IndependentCounts as IndependentCounts
    from cofactor.cluster.simple import LocalMemberships as LocalMemberships
    from cofactor.cluster.sketches import Sketches as Sketches
    from cofactor.cluster.tables import SecureTable as SecureTable
    from cofactor.crypto.lattice import Lattice as Lattice
    from cofactor.crypto.shared_key import SharedKey as SharedKey
    from cofactor.crypto.threshold import ThresholdPaillier as ThresholdPaillier
    from cofactor.data import datasets as datasets
    from cofactor.data import partition as partition
    from cofactor.data import prepare as prepare
    from cofactor.data import split as split
    from cofactor.data import synthetic as synthetic
    from cofactor.data.attributes import UserAttributes as UserAttributes
    from cofactor.data.coding import Coding as Coding
    from cofactor.data.files import read_ratings as read_ratings
    from cofactor.data.public_items import PublicItems as PublicItems
    from cofactor.data.ratings import Ratings as Ratings
    from cofactor.data.ratings import Scale as Scale
    from cofactor.data.tables import Features as Features
    from cofactor.data.tables import Table as Table
    from cofactor.data.tables import read_items as read_items
    from cofactor.data.tables import read_users as read_users
    from cofactor.errors import BudgetExceeded as BudgetExceeded
    from cofactor.errors import CofactorError as CofactorError
    from cofactor.errors import ConfigError as ConfigError
    from cofactor.errors import DataError as DataError
    from cofactor.errors import DownloadError as DownloadError
    from cofactor.errors import LedgerError as LedgerError
    from cofactor.errors import PrivacyWarning as PrivacyWarning
    from cofactor.errors import ProtocolError as ProtocolError
    from cofactor.errors import Refused as Refused
    from cofactor.errors import RunError as RunError
    from cofactor.errors import TooFew as TooFew
    from cofactor.errors import UnknownId as UnknownId
    from cofactor.evaluate.by_group import ErrorsByGroup as ErrorsByGroup
    from cofactor.evaluate.by_group import errors_by_group as errors_by_group
    from cofactor.evaluate.compare import Comparison as Comparison
    from cofactor.evaluate.compare import compare as compare
    from cofactor.evaluate.metrics import Scores as Scores
    from cofactor.evaluate.metrics import measure as measure
    from cofactor.factors.als import ALS as ALS
    from cofactor.factors.baselines import GlobalMean as GlobalMean
    from cofactor.factors.baselines import ItemMean as ItemMean
    from cofactor.factors.baselines import PersonalRidge as PersonalRidge
    from cofactor.factors.baselines import Popularity as Popularity
    from cofactor.factors.baselines import UserItemBias as UserItemBias
    from cofactor.factors.baselines import UserMean as UserMean
    from cofactor.factors.bayes import Bayes as Bayes
    from cofactor.factors.choosing import Choice as Choice
    from cofactor.factors.implicit import ImplicitALS as ImplicitALS
    from cofactor.factors.model import Factors as Factors
    from cofactor.factors.model import Recommendation as Recommendation
    from cofactor.factors.posterior import Posterior as Posterior
    from cofactor.factors.sgd import SGD as SGD
    from cofactor.factors.sgd import Nonnegative as Nonnegative
    from cofactor.federation.channel import Failures as Failures
    from cofactor.federation.federation import Federation as Federation
    from cofactor.federation.finding import Alignment as Alignment
    from cofactor.federation.finding import find_common as find_common
    from cofactor.federation.party import Party as Party
    from cofactor.federation.run import Run as Run
    from cofactor.federation.verify import verify as verify
    from cofactor.federation.view import Capture as Capture
    from cofactor.federation.weights import read_weights as read_weights
    from cofactor.privacy.budget import Budget as Budget
    from cofactor.privacy.guarantee import Guarantee as Guarantee
    from cofactor.privacy.ledger import Ledger as Ledger
    from cofactor.privacy.personal import PersonalBudget as PersonalBudget
    from cofactor.privacy.plan import Plan as Plan
    from cofactor.privacy.schedule import Release as Release
    from cofactor.privacy.schedule import Schedule as Schedule
    from cofactor.privacy.weights import HDPMF_ITEMS as HDPMF_ITEMS
    from cofactor.privacy.weights import HDPMF_USERS as HDPMF_USERS
    from cofactor.privacy.weights import Group as Group
    from cofactor.privacy.weights import Weights as Weights
    from cofactor.progress import Progress as Progress
    from cofactor.randomness import InsecureRandom as InsecureRandom
    from cofactor.randomness import SecureRandom as SecureRandom
    from cofactor.recipes.alone import Alone as Alone
    from cofactor.recipes.central import CentralDPSGD as CentralDPSGD
    from cofactor.recipes.clipping import EmbeddingClipping as EmbeddingClipping
    from cofactor.recipes.clipping import GradientClipping as GradientClipping
    from cofactor.recipes.hdpmf import HDPMF as HDPMF
    from cofactor.recipes.hdpmf_published import DPMF as DPMF
    from cofactor.recipes.hdpmf_published import PDPMF as PDPMF
    from cofactor.recipes.home_fit import UsersOnly as UsersOnly
    from cofactor.recipes.horizontal import HorizontalMF as HorizontalMF
    from cofactor.recipes.item_rounds import ItemRound as ItemRound
    from cofactor.recipes.langevin import DPSGLD as DPSGLD
    from cofactor.recipes.local_reports import LocalReports as LocalReports
    from cofactor.recipes.multiview import MultiViewMF as MultiViewMF
    from cofactor.recipes.multiview_weights import InclUnc as InclUnc
    from cofactor.recipes.multiview_weights import ObsOnly as ObsOnly
    from cofactor.recipes.multiview_weights import SampledUnrated as SampledUnrated
    from cofactor.recipes.objective import ObjectivePerturbation as ObjectivePerturbation
    from cofactor.recipes.on_device import OnDeviceMF as OnDeviceMF
    from cofactor.recipes.opened_sums import EncryptedSum as EncryptedSum
    from cofactor.recipes.opened_sums import SharedSum as SharedSum
    from cofactor.recipes.personal_biases import PersonalBiases as PersonalBiases
    from cofactor.recipes.plan import plan as plan
    from cofactor.recipes.pooled import Pooled as Pooled
    from cofactor.recipes.projected import ProjectedMF as ProjectedMF
    from cofactor.recipes.secure_als import SecureALS as SecureALS
    from cofactor.recipes.shared_biases import SharedBiases as SharedBiases
    from cofactor.recipes.sums import IdealSum as IdealSum
    from cofactor.recipes.sums import PlainSum as PlainSum
    from cofactor.recipes.sums import SecureSum as SecureSum
    from cofactor.recipes.train import train as train
    from cofactor.recipes.vertical import VerticalMF as VerticalMF
    from cofactor.recipes.vertical_taste import VerticalTaste as VerticalTaste
    from cofactor.survey.asking import ask as ask
    from cofactor.survey.before_training import ChosenCap as ChosenCap
    from cofactor.survey.before_training import choose_cap as choose_cap
    from cofactor.survey.before_training import rating_histogram as rating_histogram
    from cofactor.survey.binning import Binning as Binning
    from cofactor.survey.distribution import Distribution as Distribution
    from cofactor.survey.haar import HaarHRR as HaarHRR
    from cofactor.survey.hierarchy import HierarchicalHistogram as HierarchicalHistogram
    from cofactor.survey.means import PiecewiseMean as PiecewiseMean
    from cofactor.survey.means import StochasticRounding as StochasticRounding
    from cofactor.survey.oracles import GRR as GRR
    from cofactor.survey.oracles import OLH as OLH
    from cofactor.survey.oracles import HadamardResponse as HadamardResponse
    from cofactor.survey.people import People as People
    from cofactor.survey.question import Question as Question
    from cofactor.survey.reading import read_people as read_people
    from cofactor.survey.result import Survey as Survey
    from cofactor.survey.waves import GeneralWave as GeneralWave
    from cofactor.survey.waves import SquareWave as SquareWave

__version__ = "0.1.0"

_HOMES = {
    "cofactor.attacks.audit": ("audit",),
    "cofactor.attacks.result": ("Audit",),
    "cofactor.cluster.clustering": ("find_clusters",),
    "cofactor.cluster.lloyd": ("PrivateLloyd",),
    "cofactor.cluster.local": ("LSHForest",),
    "cofactor.cluster.local_tree": ("Hyperplanes",),
    "cofactor.cluster.records": ("Records",),
    "cofactor.cluster.result": ("Clustering",),
    "cofactor.cluster.simple": ("IndependentCounts", "LocalMemberships"),
    "cofactor.cluster.sketches": ("Sketches",),
    "cofactor.cluster.tables": ("SecureTable",),
    "cofactor.crypto.lattice": ("Lattice",),
    "cofactor.crypto.shared_key": ("SharedKey",),
    "cofactor.crypto.threshold": ("ThresholdPaillier",),
    "cofactor.data": ("datasets", "partition", "prepare", "split", "synthetic"),
    "cofactor.data.attributes": ("UserAttributes",),
    "cofactor.data.coding": ("Coding",),
    "cofactor.data.files": ("read_ratings",),
    "cofactor.data.public_items": ("PublicItems",),
    "cofactor.data.ratings": ("Ratings", "Scale"),
    "cofactor.data.tables": ("Features", "Table", "read_items", "read_users"),
    "cofactor.errors": (
        "BudgetExceeded", "CofactorError", "ConfigError", "DataError", "DownloadError",
        "LedgerError", "PrivacyWarning", "ProtocolError", "Refused", "RunError", "TooFew", "UnknownId",
    ),
    "cofactor.evaluate.by_group": ("ErrorsByGroup", "errors_by_group"),
    "cofactor.evaluate.compare": ("Comparison", "compare"),
    "cofactor.evaluate.metrics": ("Scores", "measure"),
    "cofactor.factors.als": ("ALS",),
    "cofactor.factors.baselines": (
        "GlobalMean", "ItemMean", "PersonalRidge", "Popularity", "UserItemBias", "UserMean",
    ),
    "cofactor.factors.bayes": ("Bayes",),
    "cofactor.factors.choosing": ("Choice",),
    "cofactor.factors.implicit": ("ImplicitALS",),
    "cofactor.factors.model": ("Factors", "Recommendation"),
    "cofactor.factors.posterior": ("Posterior",),
    "cofactor.factors.sgd": ("Nonnegative", "SGD"),
    "cofactor.federation.channel": ("Failures",),
    "cofactor.federation.federation": ("Federation",),
    "cofactor.federation.finding": ("Alignment", "find_common"),
    "cofactor.federation.party": ("Party",),
    "cofactor.federation.run": ("Run",),
    "cofactor.federation.verify": ("verify",),
    "cofactor.federation.view": ("Capture",),
    "cofactor.federation.weights": ("read_weights",),
    "cofactor.privacy.budget": ("Budget",),
    "cofactor.privacy.guarantee": ("Guarantee",),
    "cofactor.privacy.ledger": ("Ledger",),
    "cofactor.privacy.personal": ("PersonalBudget",),
    "cofactor.privacy.plan": ("Plan",),
    "cofactor.privacy.schedule": ("Release", "Schedule"),
    "cofactor.privacy.weights": ("HDPMF_ITEMS", "HDPMF_USERS", "Group", "Weights"),
    "cofactor.progress": ("Progress",),
    "cofactor.randomness": ("InsecureRandom", "SecureRandom"),
    "cofactor.recipes.alone": ("Alone",),
    "cofactor.recipes.central": ("CentralDPSGD",),
    "cofactor.recipes.clipping": ("EmbeddingClipping", "GradientClipping"),
    "cofactor.recipes.hdpmf": ("HDPMF",),
    "cofactor.recipes.hdpmf_published": ("DPMF", "PDPMF"),
    "cofactor.recipes.home_fit": ("UsersOnly",),
    "cofactor.recipes.horizontal": ("HorizontalMF",),
    "cofactor.recipes.item_rounds": ("ItemRound",),
    "cofactor.recipes.langevin": ("DPSGLD",),
    "cofactor.recipes.local_reports": ("LocalReports",),
    "cofactor.recipes.multiview": ("MultiViewMF",),
    "cofactor.recipes.multiview_weights": ("InclUnc", "ObsOnly", "SampledUnrated"),
    "cofactor.recipes.objective": ("ObjectivePerturbation",),
    "cofactor.recipes.on_device": ("OnDeviceMF",),
    "cofactor.recipes.opened_sums": ("EncryptedSum", "SharedSum"),
    "cofactor.recipes.personal_biases": ("PersonalBiases",),
    "cofactor.recipes.plan": ("plan",),
    "cofactor.recipes.pooled": ("Pooled",),
    "cofactor.recipes.projected": ("ProjectedMF",),
    "cofactor.recipes.secure_als": ("SecureALS",),
    "cofactor.recipes.shared_biases": ("SharedBiases",),
    "cofactor.recipes.sums": ("IdealSum", "PlainSum", "SecureSum"),
    "cofactor.recipes.train": ("train",),
    "cofactor.recipes.vertical": ("VerticalMF",),
    "cofactor.recipes.vertical_taste": ("VerticalTaste",),
    "cofactor.survey.asking": ("ask",),
    "cofactor.survey.before_training": ("ChosenCap", "choose_cap", "rating_histogram"),
    "cofactor.survey.binning": ("Binning",),
    "cofactor.survey.distribution": ("Distribution",),
    "cofactor.survey.haar": ("HaarHRR",),
    "cofactor.survey.hierarchy": ("HierarchicalHistogram",),
    "cofactor.survey.means": ("PiecewiseMean", "StochasticRounding"),
    "cofactor.survey.oracles": ("GRR", "OLH", "HadamardResponse"),
    "cofactor.survey.people": ("People",),
    "cofactor.survey.question": ("Question",),
    "cofactor.survey.reading": ("read_people",),
    "cofactor.survey.result": ("Survey",),
    "cofactor.survey.waves": ("GeneralWave", "SquareWave"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME_OF, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'cofactor' has no attribute {name!r}")
    home = _HOME_OF[name]
    if home == "cofactor.data":
        return import_module(f"{home}.{name}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
