"""Sums that a quorum of decrypters opens: under encryption, or in shares of the numbers themselves."""

from dataclasses import dataclass, field
from typing import ClassVar

from cofactor.config import whole
from cofactor.crypto.hiding import HolderOfKey, HolderOfShares, InShares, UnderCipher
from cofactor.crypto.keys import KeyPair
from cofactor.crypto.lattice import Lattice
from cofactor.crypto.neighbours import Neighbourhood
from cofactor.crypto.shared_key import SharedKey
from cofactor.crypto.threshold import ThresholdPaillier
from cofactor.errors import ConfigError
from cofactor.federation.opening import Key
from cofactor.federation.summing import Decryption
from cofactor.privacy.guarantee import Assumption
from cofactor.recipes.hidden_sums import HiddenSum

_USUAL = 3
Keys = dict[str, Key]
"""By decrypter, what it alone has."""


@dataclass(frozen=True, kw_only=True)
class OpenedSum(HiddenSum):
    """What both kinds have in common. Noise that survivors have too much of stays in the sum."""

    takes_off: ClassVar[bool] = False

    colluding: float = 0.1
    """The part of the parties that may tell the coordinator all they know; at least one party always may."""
    decrypters: int | None = None
    """How many of the parties open sums, drawn by lot; all of them, if there are fewer. Left out: three, or
    one, where each of them would hold the whole key."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(decrypters=self.decrypters)

    def neighbourhood(self, parties: int) -> Neighbourhood | None:  # noqa: ARG002
        """Return who helps whom: only decrypters help, and all of them everybody."""
        return None

    def decrypter_count(self, parties: int) -> int:
        """Return how many of so many parties open sums."""
        return min(self.decrypters or _USUAL, parties)


@dataclass(frozen=True, kw_only=True)
class EncryptedSum(OpenedSum):
    """Every party encrypts its answer; anybody can add up; and only decrypters open the sum.

    Encryption hides the summands, not the sum: it is no differential privacy. Noise is added before it.
    """

    scheme: ThresholdPaillier | SharedKey | Lattice = field(default_factory=ThresholdPaillier)
    """How numbers are encrypted, and who must come together to open a sum."""
    recheck: bool = True
    """Whether decrypters get all uploads and add them up themselves. Otherwise they open what they are told
    is the sum: a coordinator that lies could have a single party's numbers opened."""

    def assumptions(self, parties: int) -> tuple[Assumption, ...]:
        """Return what the guarantee rests on besides the noise."""
        layers, count = self.layers(parties), self.decrypter_count(parties)
        if layers is None:
            return ()
        quorum, kind = self.quorum(parties), type(self.scheme).__name__
        hidden = f"answers were encrypted ({kind}); {_quorum(quorum, count)}"
        trusted = (
            Assumption(what=each, met="it is taken on trust") for each in self.scheme.assumptions(count)
        )
        return (*self.trusted(layers, hidden), *trusted, *_collector(quorum, count, self.recheck))

    def why_not(self, parties: int) -> tuple[str, ...]:
        """Return why a guarantee does not hold: where one key opens everything."""
        if self.layers(parties) is None or not self.scheme.unsafe:
            return ()
        return (self.scheme.unsafe,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.scheme, Lattice) and not self.recheck:
            raise ConfigError(
                "a lattice's decrypters must add up uploads themselves: what they are given to open could be "
                "made to tell the key. Leave out recheck, or use ThresholdPaillier()."
            )

    def decrypter_count(self, parties: int) -> int:
        """Return how many of so many parties open sums."""
        usual = _USUAL if isinstance(self.scheme, ThresholdPaillier) else 1
        return min(self.decrypters or usual, parties)

    def quorum(self, parties: int) -> int:
        """Return how many decrypters must come together, among so many parties."""
        return self.scheme.quorum_of(self.decrypter_count(parties))

    def dealt(self, decrypters: tuple[str, ...]) -> tuple[Decryption, Keys]:
        """Deal keys to decrypters. Whoever calls this is the dealer."""
        dealt = self.scheme.dealt(len(decrypters))
        openers = [HolderOfKey(dealt.cipher, holder) for holder in dealt.holders]
        hiding = UnderCipher(dealt.cipher)
        return Decryption(hiding=hiding, decrypters=decrypters, recheck=self.recheck), {
            name: Key(opener=opener, number=at)
            for at, (name, opener) in enumerate(zip(decrypters, openers, strict=True))
        }


@dataclass(frozen=True, kw_only=True)
class SharedSum(OpenedSum):
    """Every party cuts its answer into Shamir's shares, one for each decrypter; a quorum opens the sum.

    No dealer, and no hard problem but that of sealing shares on their way. Every decrypter receives a share
    of everybody's numbers, as large as the numbers themselves.
    """

    needed: int = 2
    """How many decrypters must come together: the quorum."""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(needed=self.needed)
        most = self.decrypters or _USUAL
        if not 2 <= self.needed <= most:
            raise ConfigError(f"needed must lie between 2 and the {most} decrypters, got {self.needed}.")

    def assumptions(self, parties: int) -> tuple[Assumption, ...]:
        """Return what the guarantee rests on besides the noise."""
        layers, count = self.layers(parties), self.decrypter_count(parties)
        if layers is None:
            return ()
        hidden = f"answers were cut into shares; {_quorum(self.quorum(parties), count)}"
        fewer = Assumption(
            what=f"fewer than {self.quorum(parties)} of the {count} decrypters tell others what they hold",
            met="it is taken on trust",
        )
        return (*self.trusted(layers, hidden), fewer, *_collector(self.quorum(parties), count, True))

    def why_not(self, parties: int) -> tuple[str, ...]:  # noqa: ARG002
        """Return why a guarantee does not hold: it does."""
        return ()

    def quorum(self, parties: int) -> int:
        """Return how many decrypters must come together, among so many parties."""
        return min(self.needed, self.decrypter_count(parties))

    def dealt(self, decrypters: tuple[str, ...]) -> tuple[Decryption, Keys]:
        """Give every decrypter a key to seal its shares with."""
        pairs = [KeyPair.fresh() for _ in decrypters]
        hiding = InShares([pair.public for pair in pairs], self.quorum(len(decrypters)))
        return Decryption(hiding=hiding, decrypters=decrypters), {
            name: Key(opener=HolderOfShares(pair), number=at)
            for at, (name, pair) in enumerate(zip(decrypters, pairs, strict=True))
        }


def _quorum(quorum: int, decrypters: int) -> str:
    if decrypters == 1:
        return "one decrypter opens sums"
    return f"{quorum} of {decrypters} decrypters must come together to open one"


def _collector(quorum: int, decrypters: int, recheck: bool) -> tuple[Assumption, ...]:
    """Say where it rests on a coordinator that keeps to the protocol."""
    if not recheck:
        return (
            Assumption(
                what="what the coordinator gives decrypters to open is the sum that it says it is",
                met="it is taken on trust: recheck was switched off",
            ),
        )
    if 2 * quorum > decrypters:
        return ()
    return (
        Assumption(
            what="the coordinator asks all decrypters to open the same sum",
            met="it is taken on trust: a decrypter opens one sum a round, of enough parties that have signed "
            f"what is in it, but {quorum} of {decrypters} can open one without the others",
        ),
    )
