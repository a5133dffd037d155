"""Differential Privacy in Distributed Settings (Li 2022), chapter 5: clusters of vertically split users."""

from cofactor.papers import thesis22_cluster as figures
from cofactor.papers import thesis22_cluster_findings as findings
from cofactor.papers import thesis22_cluster_table as table
from cofactor.papers.figure import Figure
from cofactor.papers.thesis22_cluster_data import ADULT, CLUSTER_NAMES, GAUSSIAN, LETTER
from cofactor.papers.thesis22_cluster_names import LOSS, TABLE_ERROR, V_MEASURE

REPEATS = 10, 3
"""How often everything is clustered anew, and where few must do; 100 times in the thesis."""
_NOISE = (
    "Behind a number stands its standard error; a claim holds at a point if numbers differ, repeat by "
    "repeat, by more than chance would make them in 0.3% of cases (Student's test)."
)
_LOSSES = "Losses are divided by that of central k-means without privacy, on the same users."

FIGURES = {
    "figure5.2": Figure(
        title="Losses of final centres",
        measure=LOSS,
        rows=figures.by_epsilon(LOSS),
        findings=findings.findings2,
        data=CLUSTER_NAMES,
        reading=f"{_LOSSES} {_NOISE}",
        repeats=REPEATS,
    ),
    "figure5.3": Figure(
        title="V-measures",
        measure=V_MEASURE,
        rows=figures.by_epsilon(V_MEASURE),
        findings=findings.findings3,
        data=CLUSTER_NAMES,
        reading="1 is best: labels are those with which users were drawn, or else those of central k-means. "
        f"{_NOISE}",
        repeats=REPEATS,
    ),
    "figure5.4": Figure(
        title="Losses if one of two parties has more columns",
        measure=LOSS,
        rows=figures.uneven,
        findings=findings.findings4,
        data=tuple(figures.SPLITS),
        reading=f"{_LOSSES} {_NOISE}",
        repeats=REPEATS,
    ),
    "figure5.5": Figure(
        title="Losses by the number of parties",
        measure=LOSS,
        rows=figures.by_parties,
        findings=findings.findings5,
        data=(GAUSSIAN, LETTER),
        reading=f"{_LOSSES} {_NOISE}",
        repeats=REPEATS,
    ),
    "figure5.6": Figure(
        title="Relative errors of tables",
        measure=TABLE_ERROR,
        rows=figures.table_errors,
        findings=findings.findings6,
        data=(GAUSSIAN, ADULT, LETTER),
        reading="Errors are summed over all combinations of local clusters, and divided by the number of "
        f"users: 2 is the worst that can be. {_NOISE}",
        repeats=REPEATS,
        log=True,
    ),
    "figure5.7": Figure(
        title="Losses with only centres, or only the table, in private",
        measure=LOSS,
        rows=figures.components,
        findings=findings.findings7,
        data=(GAUSSIAN, ADULT, LETTER),
        reading=f"{_LOSSES} {_NOISE}",
        repeats=REPEATS,
    ),
    "figure5.8": Figure(
        title="Losses by the number of local clusters",
        measure=LOSS,
        rows=figures.by_local_clusters,
        findings=findings.findings8,
        data=(GAUSSIAN, LETTER),
        reading=f"{_LOSSES} {_NOISE}",
        repeats=REPEATS,
    ),
    "table5.1": Figure(
        title="Local clusters that the rule chooses",
        measure="local clusters",
        rows=table.local_clusters_table,
        findings=table.findings_table,
        data=(GAUSSIAN,),
        reading="The rule needs no data. Its constant rho is 0.649 in the thesis; of the sketch that it is "
        "about, 1.04.",
        decimals=0,
        repeats=(1, 1),
    ),
}
"""What can be made again, by its name in the thesis."""
