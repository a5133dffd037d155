"""What lines, panels and columns of chapter 5 are called."""

from collections.abc import Sequence

from cofactor.papers.thesis22_cluster_data import LETTER

BASIC, TWO_PARTY = "DPFMPS-BasicEst", "DPFMPS-2PEst"
PROPORTIONAL = "DPFMPS-2PEst, proportional"
"""The published sketch with our fitting: the thesis' additive steps leave the possible tables."""
INDEPENDENT, LOCAL_ANSWERS = "IND-LAP", "LDP-AGG-2PEst"
CENTRAL, CENTRAL_PRIVATE = "central k-means", "central DPLSF"
NO_PRIVACY = "VFL non-private"
PRIVATE_TABLE, PRIVATE_CENTRES = "k-means + DPFMPS-2PEst", "DPLSF + exact table"
"""One part in private, as in figure 5.7."""
REPAIRED, SECURE = "ours: Sketches", "ours: SecureTable"

CENTRAL_OURS = "ours: central LSHForest"

LOSS, V_MEASURE, TABLE_ERROR = "loss ratio", "V-measure", "relative error"


def parts_of(line: str) -> tuple[str, str]:
    """Return what lines are called that show only the table, or only the centres, of a method in private."""
    return f"{line}, k-means centres", f"{line}, exact table"


def even(columns: int, parties: int) -> tuple[int, ...]:
    """Deal columns to parties as evenly as can be, the first ones having one more."""
    return tuple((columns + parties - 1 - place) // parties for place in range(parties))


def parties_panel(name: str, parties: int) -> str:
    """Return what the part of a figure is called that shows a set of users with so many parties."""
    return f"{name}, S = {parties}"


def split_panel(name: str, widths: Sequence[int]) -> str:
    """Return the same where parties have different numbers of columns."""
    return f"{name}, {':'.join(map(str, widths))}"


def local_column(local_clusters: int) -> str:
    """Return what a column is called that shows so many local clusters."""
    return f"k' = {local_clusters}"


def two_parties(panel: str) -> bool:
    """Say whether a panel is about two parties."""
    return ", S = 2" in panel


def four_parties(panel: str) -> bool:
    """Say whether a panel is about four."""
    return ", S = 4" in panel


def on_letter(panel: str) -> bool:
    """Say whether a panel is about letters."""
    return panel.startswith(LETTER)
