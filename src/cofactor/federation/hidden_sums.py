"""What all sums have in common of which nobody sees the parts: parties share noise, and some may collude."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cofactor.config import not_negative, plain_numbers
from cofactor.crypto.neighbours import Neighbourhood
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

    def on_trust(self, parties: int) -> tuple[Assumption, ...]:  # noqa: ARG002
        """Return what rests on a coordinator that keeps to the protocol: nothing, unless a kind says so."""
        return ()

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


@dataclass(frozen=True, kw_only=True)
class SecureSum(HiddenSum):
    """Masks hide every answer, and cancel in the sum, also of those who are left when others drop out.

    The protocol is that of Bonawitz et al. (2017) with the neighbourhoods of Bell et al. (2020).
    """

    dropout: float = 0.2
    """The largest part of the parties that may drop out of a round. If more do, nothing is opened."""
    colluding: float = 0.1
    """The part of the parties that may tell the coordinator all they know; at least one party always may."""

    def neighbourhood(self, parties: int) -> Neighbourhood | None:
        """Return who helps whom, among so many parties."""
        layers = self.layers(parties)
        if layers is None:
            return None
        # Of two parties each knows what the other adds, masked or not; masks keep it from the coordinator.
        colluding = layers.colluding if parties > 2 else 0
        return Neighbourhood.of(parties, dropout=self.dropout, colluding=(colluding + 0.5) / parties)

    def assumptions(self, parties: int) -> tuple[Assumption, ...]:
        """Return what the guarantee rests on besides the noise."""
        layers, near = self.layers(parties), self.neighbourhood(parties)
        if layers is None or near is None:
            return ()
        return (
            *self.trusted(layers, f"masks hide each party's part, {_against(near)}"),
            *self.on_trust(parties),
            KNOWN_KEYS,
        )

    def on_trust(self, parties: int) -> tuple[Assumption, ...]:
        """Return where the noise, unlike the masks, rests on a coordinator that keeps to the protocol."""
        layers, near = self.layers(parties), self.neighbourhood(parties)
        if layers is None or near is None or near.least_honest >= layers.fewest - layers.colluding:
            return ()
        part = near.least_honest / (layers.parties - layers.colluding)
        return (
            Assumption(
                what="the coordinator tells all parties the same about who is left",
                met="it is taken on trust: one that lies could at worst open a sum of only "
                f"{near.least_honest:,} honest parties, with {100 * part:.2g}% of the noise",
            ),
        )

    def why_not(self, parties: int) -> tuple[str, ...]:  # noqa: ARG002
        """Return why a guarantee does not hold: it does."""
        return ()


def _against(near: Neighbourhood) -> str:
    """Say against what kind of coordinator masks hold."""
    return "also against a coordinator that lies" if near.active else _CURIOUS


_CURIOUS = (
    "against a coordinator that is curious but follows the protocol: with so many dropouts allowed, one that "
    "lies about who is left could see single parts"
)
