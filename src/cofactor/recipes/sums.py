"""How the answers of all parties to one question are added up, and how much noise each must add for that."""

from dataclasses import dataclass
from typing import ClassVar

from cofactor.privacy.guarantee import Assumption


@dataclass(frozen=True, kw_only=True)
class PlainSum:
    """The coordinator sees every answer, so every party adds all the noise that protects it."""

    only_sums: ClassVar[bool] = False

    def share(self, parties: int) -> float:  # noqa: ARG002
        """Return the part of the noise, as a variance, that each party adds."""
        return 1.0

    def assumptions(self, parties: int) -> tuple[Assumption, ...]:  # noqa: ARG002
        """Return what the guarantee rests on besides the noise."""
        return ()

    def why_not(self, parties: int) -> tuple[str, ...]:  # noqa: ARG002
        """Return why a guarantee does not hold, if it does not."""
        return ()


@dataclass(frozen=True, kw_only=True)
class IdealSum:
    """Nobody sees more than the sum of all answers, so the parties share the noise: a simulation.

    It stands for a secure sum, and shows what one would give. Nothing here hides the answers from whoever
    runs the process, so a guarantee that needs it does not hold.

    A party knows its own answer and its own noise: what is left when it takes both off must still have all
    the noise. It has, where each of s parties adds 1 / (s - 1) of it.
    """

    only_sums: ClassVar[bool] = True

    def share(self, parties: int) -> float:
        """Return the part of the noise, as a variance, that each party adds."""
        return 1.0 / max(parties - 1, 1)

    def assumptions(self, parties: int) -> tuple[Assumption, ...]:
        """Return what the guarantee rests on besides the noise."""
        if parties < 3:
            return ()
        return (
            Assumption(
                what="nobody sees more of the messages about users than their sum",
                met="that is only simulated here",
            ),
            Assumption(
                what="no two parties pool what they know, with or without the coordinator",
                met="it is taken on trust: two together know two shares of the noise, so that less than all "
                "of it is left",
            ),
        )

    def why_not(self, parties: int) -> tuple[str, ...]:
        """Return why a guarantee does not hold: with two parties every party adds all the noise anyway."""
        if parties < 3:
            return ()
        return (
            "Messages about users had only a share of the noise each and were added up in plain sight: "
            "IdealSum simulates a secure sum.",
        )
