"""`Guess`: what an attacker takes a user's ratings and attributes to be."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Guess:
    """What was made of one upload: of one user's, or of a sum, which is then guessed of all of its users."""

    sender: str
    """The party, or `SUM`."""
    round: int
    ratings: Reals
    """A number for each item, 0 where it is taken to be unrated."""
    rated: NDArray[np.bool_]
    """Which items are taken to be rated."""
    if_rated: Reals
    """The most likely rating of each item, if somebody told that it was rated."""
    attributes: Reals
    """A number for each column of the attributes; NaN if nothing was sent for it."""
    vector: Reals
    """The user's vector, which never left the device."""
    noise: float
    """Scale of the noise that the attacker reckoned with, rounding included."""
    users: int = 1
    """How many users' uploads were added up."""
    seconds: float = 0.0
    """Processor time that it took."""
