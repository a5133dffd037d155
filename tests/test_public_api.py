"""The public names, pinned: a change here is a change for every user."""

import subprocess
import sys
from pathlib import Path

import cofactor as cf

PUBLIC = [
    "ALS", "Alignment", "Alone", "Audit", "Bayes", "Binning", "Budget", "BudgetExceeded", "Capture",
    "CentralDPSGD", "Choice", "ChosenCap", "Clustering", "Coding", "CofactorError", "Comparison",
    "ConfigError", "DPMF", "DPSGLD", "DataError", "Distribution", "DownloadError", "EmbeddingClipping",
    "EncryptedSum", "ErrorsByGroup", "Factors", "Failures", "Features", "Federation", "GRR",
    "GeneralWave", "GlobalMean", "GradientClipping", "Group", "Guarantee", "HDPMF", "HDPMF_ITEMS",
    "HDPMF_USERS", "HaarHRR", "HadamardResponse", "HierarchicalHistogram", "HorizontalMF", "Hyperplanes",
    "IdealSum", "ImplicitALS", "InclUnc", "IndependentCounts", "InsecureRandom", "ItemMean", "ItemRound",
    "LSHForest", "Lattice", "Ledger", "LedgerError", "LocalMemberships", "LocalReports", "MultiViewMF",
    "Nonnegative", "OLH", "ObjectivePerturbation", "ObsOnly", "OnDeviceMF", "PDPMF", "Party", "People",
    "PersonalBiases", "PersonalBudget", "PersonalRidge", "PiecewiseMean", "PlainSum", "Plan", "Pooled",
    "Popularity", "Posterior", "PrivacyWarning", "PrivateLloyd", "Progress", "ProjectedMF",
    "ProtocolError", "PublicItems", "Question", "Ratings", "Recommendation", "Records", "Refused",
    "Release", "Run", "RunError", "SGD", "SampledUnrated", "Scale", "Schedule", "Scores", "SecureALS",
    "SecureRandom", "SecureSum", "SecureTable", "SharedBiases", "SharedKey", "SharedSum", "Sketches",
    "SquareWave", "StochasticRounding", "Survey", "Table", "ThresholdPaillier", "TooFew", "UnknownId",
    "UserAttributes", "UserItemBias", "UserMean", "UsersOnly", "VerticalMF", "VerticalTaste", "Weights",
    "__version__", "ask", "audit", "choose_cap", "compare", "datasets", "errors_by_group",
    "find_clusters", "find_common", "measure", "partition", "plan", "prepare", "rating_histogram",
    "read_items", "read_people", "read_ratings", "read_users", "read_weights", "split", "synthetic",
    "train", "verify",
]  # fmt: skip


def test_public_names_are_pinned() -> None:
    assert sorted(cf.__all__) == sorted(PUBLIC)


def test_every_public_name_loads_and_is_documented() -> None:
    for name in PUBLIC:
        assert getattr(cf, name) is not None
        if name != "__version__":
            assert getattr(cf, name).__doc__, name


def test_type_checkers_see_the_same_names() -> None:
    source = Path(cf.__file__).read_text()
    for name in PUBLIC:
        assert name == "__version__" or f"import {name} as {name}" in source


def test_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(cf, "no_such_name")


def test_importing_cofactor_loads_nothing_heavy() -> None:
    code = "import sys, cofactor; print(sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "scipy", "numba", "polars", "rich", "typer", "dp_accounting"} & set(
        eval(done.stdout)
    )
