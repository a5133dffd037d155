"""A class that no kit allows: it leaves a mark where it is loaded."""

from pathlib import Path


class Intruder:
    def __init__(self, mark: str) -> None:
        Path(mark).touch()
