"""What canaries can be planted in: recipes, surveys and clusterings are all audited through this."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.one_run import Curve
from cofactor.randomness import Random


@dataclass(frozen=True, kw_only=True, eq=False)
class Played:
    """What one run with canaries gave."""

    scores: NDArray[np.float64]
    """For each canary, larger if it seems to have been there."""
    promised: Curve | None
    """What the ledgers were charged for; None if nothing was promised."""
    guarantee: Guarantee


class Target(Protocol):
    """Something in which canaries can be planted, and what one role sees of it."""

    @property
    def name(self) -> str:
        """What is audited, in a word or two."""

    @property
    def canaries(self) -> int:
        """How many canaries there are, present or not."""

    def play(self, present: NDArray[np.bool_], random: Random) -> Played:
        """Run it once with the canaries that are present, and score each from what the role saw alone."""
