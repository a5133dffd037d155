"""In which state a finished run is: the word beside its name."""

from cofactor.report.folder import Folder


def state(folder: Folder) -> tuple[str, str]:
    """Return the word, and its tone."""
    if folder.kind == "survey":
        return ("asked", "plain") if folder.guarantee.get("holds") else ("NOT PRIVATE", "bad")
    if not folder.guarantee.get("holds"):
        return "NOT PRIVATE", "bad"
    together = folder.together or {}
    rounds, planned = together.get("rounds", 0), together.get("planned_rounds")
    if planned and rounds < planned:
        return f"stopped after round {rounds:,} of {planned:,}", "doubt"
    if folder.rounds("resumed"):
        return "finished, after it was resumed", "plain"
    return "finished", "plain"
