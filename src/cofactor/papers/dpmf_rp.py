"""Differentially Private Matrix Factorization with Secure Aggregation and Random Projection (DPMF-RP).

A preprint without names. What it calls epsilon is a Renyi divergence of order 2 for one rating, with a
constant C_0 and a number of rounds T that it does not tell; every private line shows what is true of it.
"""

from cofactor.papers import dpmf_rp_activity as activity
from cofactor.papers import dpmf_rp_sweeps as sweeps
from cofactor.papers import dpmf_rp_tables as tables
from cofactor.papers import dpmf_rp_traffic as traffic
from cofactor.papers.figure import Figure
from cofactor.recipes.projected_paper import PUBLISHED_CONSTANT, PUBLISHED_ROUNDS

_LABEL = (
    "A label is what the paper calls epsilon (equation 18 for all rounds; C_0 = "
    f"{PUBLISHED_CONSTANT:g} and T = {PUBLISHED_ROUNDS} are ours, it tells neither); beside it stands the "
    "epsilon and delta that each user truly has, whoever she is replaced by, if she joins all rounds."
)
_RANKING = (
    "Top 10 of all unseen items, threshold 4, a fifth of each user's ratings held out; every user counts "
    "once. Behind a number stands half of its 95% interval. mAP is divided by 10."
)
_RESCALED = (
    "Rescaled is the error after every user's own mean and slope, fitted at home: pairs without a rating ask "
    "for 0, so that scores are no ratings as they are."
)
_ALL = ("ml-100k", "ml-1m", "yelp")

FIGURES = {
    "table1": Figure(
        title="Bytes that a user sends in a round",
        measure="kB",
        rows=traffic.table1,
        findings=traffic.findings1,
        data=("ml-100k",),
    ),
    "table2": Figure(
        title="CentralMF and DPMF-RP",
        measure="measures by column",
        rows=tables.table2,
        findings=tables.findings2,
        data=_ALL,
        reading=f"{_LABEL} {_RANKING} {_RESCALED}",
    ),
    "table5": Figure(
        title="Errors by how active users are",
        measure="MSE",
        rows=activity.table5,
        findings=activity.findings5,
        data=("yelp",),
        reading=f"{_LABEL} {_RESCALED}",
    ),
    "table7": Figure(
        title="Ablation",
        measure="measures by column",
        rows=tables.table7,
        findings=tables.findings7,
        data=_ALL,
        reading=f"{_LABEL} {_RANKING} {_RESCALED}",
    ),
    "figure2": Figure(
        title="Errors by how far is projected",
        measure="RMSE",
        rows=sweeps.figure2,
        findings=sweeps.findings2,
        data=("yelp",),
        reading=f"{_LABEL} {_RESCALED}",
    ),
    "figure3": Figure(
        title="Bytes that a user sends in a round, by factors and items",
        measure="kB",
        rows=traffic.figure3,
        findings=traffic.findings3,
        data=("ml-100k",),
    ),
    "figure4": Figure(
        title="Settings",
        measure="F1 and mAP",
        rows=sweeps.figure4,
        findings=sweeps.findings4,
        data=("ml-100k",),
        reading=f"{_LABEL} {_RANKING}",
    ),
}
"""What can be made again, by its name in the paper."""
