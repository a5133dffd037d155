"""PrivMVMF: Privacy-Preserving Multi-View Matrix Factorization for Recommender Systems (Mai and Pang)."""

from cofactor.papers.figure import Figure
from cofactor.papers.privmvmf_findings import findings4
from cofactor.papers.privmvmf_numbers import PRIV
from cofactor.papers.privmvmf_tables import table4
from cofactor.papers.privmvmf_times import findings5, table5

REPEATS = 5
"""How often the paper does everything."""
_DATA = ("ml-1m", "ml-100k")
_MEASURES = (
    "NDCG is over a user's own test items: ten terms, gains of 2^rating - 1 (equation 54 is misprinted). "
    "Precision, recall and F1: threshold 4, ten recommended of all items that the user has not rated in "
    "training, or of all new items; precision divides by the ten (equation 51 is misprinted)."
)
_DEVIATION = "Behind a number stands the standard deviation of the repeats, as in the paper."

FIGURES = {
    "table4": Figure(
        title="Test accuracy",
        measure="measures by column",
        rows=table4,
        findings=findings4,
        data=_DATA,
        reading=f"{_MEASURES} {_DEVIATION} Reproduced is what lies within 10% of the paper's {PRIV}; "
        "NDCG, within 0.01. All devices are played by one, whose sums are exact.",
    ),
    "table5": Figure(
        title="Seconds of the phases of a round",
        measure="seconds and MB",
        rows=table5,
        findings=findings5,
        data=_DATA,
        reading="Local update is for each user, the rest for each round. Aggregation is one party's: "
        f"decrypters add up again by themselves, at the same time. {_DEVIATION}",
    ),
}
"""What can be made again, by its name in the paper."""
