"""In which state a finished run is: the word beside its name."""

from cofactor.report.answers import alarms, breaks_promise
from cofactor.report.beside import Beside
from cofactor.report.folder import Folder


def state(folder: Folder, beside: Beside) -> tuple[str, str]:
    """Return the word, and its tone."""
    if alarms(folder, beside):
        return ("NOT PRIVATE" if breaks_promise(folder, beside) else "DO NOT RELY ON THIS"), "bad"
    if folder.kind == "survey":
        return "asked", "plain"
    if folder.ended_early:
        rounds, planned = folder.ended_early
        return f"stopped after round {rounds:,} of {planned:,}", "doubt"
    if folder.rounds("resumed"):
        return "finished, after it was resumed", "plain"
    return "finished", "plain"
