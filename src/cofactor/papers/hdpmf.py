"""Decentralized Matrix Factorization with Heterogeneous Differential Privacy (Hu and Fang): HDPMF."""

from cofactor.papers import hdpmf_findings as findings
from cofactor.papers import hdpmf_sweeps as sweeps
from cofactor.papers.figure import Figure
from cofactor.papers.hdpmf_groups import groups
from cofactor.papers.hdpmf_splits import LEAST_RATINGS, TESTED
from cofactor.papers.hdpmf_tables import table3

REPEATS = 5
"""How often the paper does everything."""
_DATA = ("ml-100k", "ml-1m", "yelp", "douban")
_SPLIT = (
    f"Users with fewer than {LEAST_RATINGS} ratings are left out; {TESTED} ratings of each user are tested. "
    "Split, weights, beginnings and noise are drawn anew in every repeat."
)
_READINGS = (
    "Fresh noise is drawn in every one of 100 epochs, each of which spends what the paper promises for all; "
    "fixed noise is drawn once, as in the paper's proof, and hides nothing from who sees two epochs."
)
_DEVIATION = "Behind a number stands the standard deviation of the repeats, as in the paper."
_SETTINGS = "Settings are those that suit the default specification (Table 2)."
_FRESH = f"{_READINGS} The paper's numbers are those of fresh noise, which is shown. {_SETTINGS} {_DEVIATION}"
_SPARSE = (
    "One rating of each user is tested, and a fraction of her others is trained on: of more, where it is "
    "larger."
)


def _swept(sweep: sweeps.Sweep, factors: int, title: str, reading: str) -> Figure:
    told = {
        sweeps.LEAST.symbol: findings.findings_least,
        sweeps.CONSERVATIVE.symbol: findings.findings_conservative,
        sweeps.SPARSITY.symbol: findings.findings_sparsity,
    }
    return Figure(
        title=f"{title}, K = {factors}",
        measure="MSE",
        rows=sweeps.figure(sweep, factors),
        findings=told[sweep.symbol],
        data=_DATA,
        reading=f"{reading} {_FRESH}",
    )


_LEAST = "Errors by the least weight of conservative users"
_CONSERVATIVE = "Errors by the part of conservative users"
_SPARSITY = "Errors by how sparse ratings are"

FIGURES = {
    "table3": Figure(
        title="Test errors at the default specification",
        measure="MSE and MAE",
        rows=table3,
        findings=findings.findings3,
        data=_DATA,
        reading=f"{_SPLIT} {_READINGS} {_DEVIATION}",
    ),
    "figure2": _swept(sweeps.LEAST, 10, _LEAST, _SPLIT),
    "figure3": _swept(sweeps.LEAST, 5, _LEAST, _SPLIT),
    "figure4": _swept(sweeps.CONSERVATIVE, 10, _CONSERVATIVE, _SPLIT),
    "figure5": _swept(sweeps.CONSERVATIVE, 5, _CONSERVATIVE, _SPLIT),
    "figure6": _swept(sweeps.SPARSITY, 10, _SPARSITY, _SPARSE),
    "figure7": _swept(sweeps.SPARSITY, 5, _SPARSITY, _SPARSE),
    "figure8": Figure(
        title="HDPMF with and without rescaling",
        measure="MSE",
        rows=sweeps.figure8,
        findings=findings.findings8,
        data=_DATA,
        reading=f"{_SPLIT} {_FRESH} HDPMF-R is the same training without rescaling.",
    ),
    "groups": Figure(
        title="Who pays for privacy",
        measure="MSE",
        rows=groups,
        findings=findings.findings_groups,
        data=_DATA,
        reading=f"{_SPLIT} {_READINGS} Behind a number stands half of its 95% interval. Not in the paper.",
    ),
}
"""What can be made again, by its name in the paper; and by groups, what the paper does not show."""
