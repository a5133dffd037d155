"""How the answers of all parties to one question are added up, and how much noise each must add for that."""

from dataclasses import dataclass

from cofactor.crypto.neighbours import Neighbourhood
from cofactor.federation.hidden_sums import HiddenSum
from cofactor.federation.hidden_sums import SecureSum as SecureSum
from cofactor.privacy.assumptions import Assumption
from cofactor.privacy.layers import Layers
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum


@dataclass(frozen=True, kw_only=True)
class PlainSum:
    """The coordinator sees every answer, so every party adds all the noise that protects it."""

    def layers(self, parties: int) -> Layers | None:  # noqa: ARG002
        """Return how the noise is divided among so many parties: not at all."""
        return None

    def neighbourhood(self, parties: int) -> Neighbourhood | None:  # noqa: ARG002
        """Return who helps whom: nobody needs help."""
        return None

    def assumptions(self, parties: int) -> tuple[Assumption, ...]:  # noqa: ARG002
        """Return what the guarantee rests on besides the noise."""
        return ()

    def on_trust(self, parties: int) -> tuple[Assumption, ...]:  # noqa: ARG002
        """Return what rests on a coordinator that keeps to the protocol: nothing."""
        return ()

    def why_not(self, parties: int) -> tuple[str, ...]:  # noqa: ARG002
        """Return why a guarantee does not hold, if it does not."""
        return ()


@dataclass(frozen=True, kw_only=True)
class IdealSum(HiddenSum):
    """A sum that is secure by decree: a simulation, for parties too many to play one by one.

    It shows what a secure sum gives. Nothing here hides the answers from whoever runs the process, so a
    guarantee that needs it does not hold.
    """

    def neighbourhood(self, parties: int) -> Neighbourhood | None:  # noqa: ARG002
        """Return who helps whom: nobody does, everything lies open."""
        return None

    def assumptions(self, parties: int) -> tuple[Assumption, ...]:
        """Return what the guarantee rests on besides the noise."""
        layers = self.layers(parties)
        if layers is None or _adds_all(layers):
            return ()
        return self.trusted(layers, "that is only simulated here")

    def why_not(self, parties: int) -> tuple[str, ...]:
        """Return why a guarantee does not hold: with two parties every party adds all the noise anyway."""
        layers = self.layers(parties)
        if layers is None or _adds_all(layers):
            return ()
        return (
            "Messages had only a share of the noise and were added up in plain sight: IdealSum simulates "
            "a secure sum.",
        )


AnySum = PlainSum | IdealSum | SecureSum | EncryptedSum | SharedSum


def without_noise(aggregate: AnySum, parties: int) -> str:
    """Say what protects anybody where nothing noisy was sent: at best nobody saw more than sums."""
    if aggregate.layers(parties) is None:
        return (
            "Not private: the parties kept their ratings at home, but what they sent of their models had no "
            "noise, and ratings can be recovered from it."
        )
    simulated = isinstance(aggregate, IdealSum)
    hidden = "was meant to see" if simulated or aggregate.why_not(parties) else "saw"
    words = (
        f"Not private: nobody {hidden} more than sums of what the parties sent, but these sums had no noise. "
        "Hiding the summands bounds nothing that a sum tells about one of them, and is no differential "
        "privacy.",
        *(() if simulated else aggregate.why_not(parties)),
    )
    return " ".join(words)


def own_share(aggregate: AnySum, parties: int) -> float:
    """Return the part of the noise, as a variance, that a party adds itself and that is never taken off."""
    layers = aggregate.layers(parties)
    return 1.0 if layers is None else min(1.0, layers.remaining(layers.parties, 1.0))


def _adds_all(layers: Layers) -> bool:
    return layers.parties - layers.colluding == 1
