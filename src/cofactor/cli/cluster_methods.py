"""Ways to cluster by their names on the command line, and what each needs to be installed."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from cofactor.config import one_of
from cofactor.errors import ConfigError

if TYPE_CHECKING:
    from cofactor.cluster.method import LocalClustering, Membership

METHODS = ("secure-table", "sketch", "independent", "local-reports")
"""How memberships are counted; the first is usual."""
LOCALS = ("lsh", "dplsf", "lloyd")
"""How each party finds clusters in its own columns; the first is usual."""
_PACKAGES = {
    "scikit-learn": ("sklearn", "scikit-learn", "cluster"),
    "gmpy2": ("gmpy2", "gmpy2", "cluster"),
    "openmined.psi": ("private_set_intersection", "openmined.psi==2.0.6", "psi"),
}
"""By package: what it is imported as, what pip calls it, and the extra it belongs to."""


def chosen_method(name: str | None) -> "Membership":
    """Return how memberships are counted."""
    chosen = name or METHODS[0]
    one_of(METHODS, method=chosen)
    if chosen == "secure-table":
        from cofactor.cluster.tables import SecureTable

        return SecureTable()
    if chosen == "sketch":
        from cofactor.cluster.sketches import Sketches

        return Sketches()
    from cofactor.cluster.simple import IndependentCounts, LocalMemberships

    return IndependentCounts() if chosen == "independent" else LocalMemberships()


def chosen_local(name: str | None) -> "LocalClustering":
    """Return how each party clusters alone."""
    chosen = name or LOCALS[0]
    one_of(LOCALS, local=chosen)
    if chosen == "lsh":
        from cofactor.cluster.local import LSHForest

        return LSHForest()
    if chosen == "dplsf":
        from cofactor.cluster.local import as_published

        return as_published()
    from cofactor.cluster.lloyd import PrivateLloyd

    return PrivateLloyd()


def check_installed(method: str | None, align: str) -> None:
    """Refuse what is not installed, before anything is read or charged."""
    needed = [
        ("scikit-learn", "Clustering", True),
        ("gmpy2", "--method secure-table", (method or METHODS[0]) == "secure-table"),
        ("openmined.psi", "--align psi", align == "psi"),
    ]
    missing = [(package, use) for package, use, wanted in needed if wanted and not _is_there(package)]
    if missing:
        pips = " ".join(_PACKAGES[package][1] for package, _ in missing)
        extras = ",".join(sorted({_PACKAGES[package][2] for package, _ in missing}))
        told = " ".join(f"{use} needs the package {package}." for package, use in missing)
        raise ConfigError(f"{told} Run: pip install {pips} (or, in a clone, pip install '.[{extras}]').")


def _is_there(package: str) -> bool:
    return find_spec(_PACKAGES[package][0]) is not None
