"""What all sums have in common of which nobody sees the parts: parties share noise, and some may collude."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cofactor.config import not_negative, plain_numbers
from cofactor.errors import ConfigError
from cofactor.privacy.assumptions import Assumption
from cofactor.privacy.layers import Layers

KNOWN_KEYS = Assumption(
    what="every party knows beforehand the public keys of the others, and those that hide numbers",
    met="keys of this session were handed out in this process; parties on machines of their own must compare "
    "theirs by another way",
)


@dataclass(frozen=True, kw_only=True)
class HiddenSum:
    """Nobody sees more than the sum, so that the parties share the noise, sized for the honest survivors.

    A party knows its own noise, and at least one party is always taken to collude: what is left when its part
    is taken off must still have all the noise. Alone, a party adds all of it.
    """

    takes_off: ClassVar[bool] = True
    """Whether noise that survivors have too much of is taken off the sum again."""

    dropout: float = 0.0
    """The largest part of the parties that may drop out of a round. If more do, nothing is opened."""
    colluding: float = 0.0
    """The part of the parties that may tell the coordinator all they know; at least one party always may."""

    def __post_init__(self) -> None:
        plain_numbers(self)
        for name in ("dropout", "colluding"):
            not_negative(**{name: getattr(self, name)})
            if getattr(self, name) >= 1:
                raise ConfigError(
                    f"{name} must be at least 0 and below 1, such as 0.2, got {getattr(self, name)}."
                )
        if self.dropout + self.colluding >= 1:
            raise ConfigError(
                f"dropout {self.dropout:g} and colluding {self.colluding:g} together leave no honest party. "
                "Make one of them smaller."
            )

    def layers(self, parties: int) -> Layers | None:
        """Return how the noise is divided among so many parties; None for a party that is alone."""
        if parties < 2:
            return None
        # In fractions of the decimals that a user writes: 0.9 times 10 parties are 9 of them, not 10.
        fewest = math.ceil((1 - Fraction(str(self.dropout))) * parties)
        colluding = max(1, math.floor(Fraction(str(self.colluding)) * parties))
        if colluding >= fewest:
            raise ConfigError(
                f"of {parties} parties {fewest} may be left, and {colluding} of them may collude: no noise "
                "would protect. Find more parties, or allow fewer dropouts."
            )
        return Layers(parties=parties, fewest=fewest, colluding=colluding, taken_off=self.takes_off)

    def trusted(self, layers: Layers, hidden: str) -> tuple[Assumption, ...]:
        """Return what noise in shares rests on, and what hides the parts."""
        some = "one of them colludes" if layers.colluding == 1 else f"{layers.colluding:,} of them collude"
        return (
            Assumption(what="nobody sees more of what is summed than the sum", met=hidden),
            Assumption(
                what=f"of {layers.parties:,} parties, at most {some} with the coordinator or each other",
                met="it is taken on trust: whoever knows more parts of the noise is left with less than all "
                "of it",
            ),
        )
