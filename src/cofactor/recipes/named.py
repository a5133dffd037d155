"""All recipes by name: those of the command line, and those of the tables in run folders."""

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Any

from cofactor.config import from_table

RECIPES = (
    "secure-als",
    "shared-biases",
    "vertical-taste",
    "personal-biases",
    "vertical-mf",
    "horizontal-mf",
    "on-device-mf",
    "local-reports",
    "projected-mf",
    "multi-view",
    "hdpmf",
    "central-dpsgd",
    "dp-sgld",
    "objective-perturbation",
    "alone",
    "pooled",
)


def classes() -> dict[str, Any]:
    """Return all recipes by name."""
    from cofactor.recipes.alone import Alone
    from cofactor.recipes.central import CentralDPSGD
    from cofactor.recipes.hdpmf import HDPMF
    from cofactor.recipes.horizontal import HorizontalMF
    from cofactor.recipes.langevin import DPSGLD
    from cofactor.recipes.local_reports import LocalReports
    from cofactor.recipes.multiview import MultiViewMF
    from cofactor.recipes.objective import ObjectivePerturbation
    from cofactor.recipes.on_device import OnDeviceMF
    from cofactor.recipes.personal_biases import PersonalBiases
    from cofactor.recipes.pooled import Pooled
    from cofactor.recipes.projected import ProjectedMF
    from cofactor.recipes.secure_als import SecureALS
    from cofactor.recipes.shared_biases import SharedBiases
    from cofactor.recipes.vertical import VerticalMF
    from cofactor.recipes.vertical_taste import VerticalTaste

    ours = (SecureALS, SharedBiases, VerticalTaste, PersonalBiases)
    published = (VerticalMF, HorizontalMF, OnDeviceMF, LocalReports, ProjectedMF, MultiViewMF, HDPMF)
    literature = (CentralDPSGD, DPSGLD, ObjectivePerturbation)
    return dict(zip(RECIPES, (*ours, *published, *literature, Alone, Pooled), strict=True))


def recipe_from(table: Mapping[str, Any], where: str) -> Any:
    """Return the recipe that a table describes; `where` says where the table stands, for errors."""
    return from_table(reduce(or_, classes().values()), table, where)
