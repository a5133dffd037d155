"""PrivMVMF: Privacy-Preserving Multi-View Matrix Factorization for Recommender Systems (Mai and Pang)."""

from cofactor.papers import privmvmf_attack_claims as claims
from cofactor.papers.figure import Figure
from cofactor.papers.privmvmf_attack_defences import defences
from cofactor.papers.privmvmf_attack_findings import findings3, findings6
from cofactor.papers.privmvmf_attack_noise import figure1, figure2, figure3
from cofactor.papers.privmvmf_attack_tables import table3, table6
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
_ATTACKED = ("ml-100k",)
_ONCE = (1, 1)
_ACCURACY = (
    "Accuracies are means over users (equation 43): ratings of all items or, under ObsOnly, of all that were "
    "sent; ratings of rated items only; attributes as zeros and ones, and as whole questions. The 20th round "
    "is attacked, and the 21st where the paper needs two. Seconds are of one processor, for each user."
)

FIGURES = {
    "table3": Figure(
        title="Accuracy of the server's attack",
        measure="accuracy",
        rows=table3,
        findings=findings3,
        data=_DATA,
        reading=f"{_ACCURACY} Reproduced is what lies within 0.05.",
        repeats=_ONCE,
    ),
    "table6": Figure(
        title="Accuracy of the server's attack by method",
        measure="accuracy",
        rows=table6,
        findings=findings6,
        data=_ATTACKED,
        reading=f"{_ACCURACY} Methods are scipy.optimize.root's. They stop after 10 s, or after 1,000 "
        "evaluations, 500 where vectors move by steps; hybr, after 5 for each unknown more.",
        repeats=_ONCE,
    ),
    "figure1": Figure(
        title="Accuracy for ratings under Laplace noise",
        measure="accuracy",
        rows=figure1,
        findings=claims.findings1,
        data=_ATTACKED,
        reading=_ACCURACY,
        repeats=_ONCE,
    ),
    "figure2": Figure(
        title="Accuracy for attributes under Laplace noise",
        measure="accuracy",
        rows=figure2,
        findings=claims.findings2,
        data=_ATTACKED,
        reading=_ACCURACY,
        repeats=_ONCE,
    ),
    "figure3": Figure(
        title="Accuracy under much Laplace noise, where all items are sent",
        measure="accuracy",
        rows=figure3,
        findings=claims.findings3,
        data=_ATTACKED,
        reading=_ACCURACY,
        repeats=_ONCE,
    ),
    "defences": Figure(
        title="The same attacks behind sums and a budget",
        measure="accuracy",
        rows=defences,
        findings=claims.findings_defences,
        data=_ATTACKED,
        reading=f"{_ACCURACY} Sums are attacked as if they were one user's upload. Not in the paper.",
        repeats=_ONCE,
    ),
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
