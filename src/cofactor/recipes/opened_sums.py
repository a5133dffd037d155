"""Sums that a quorum of decrypters opens: under encryption, or in shares of the numbers themselves."""

import math
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
from cofactor.federation.hidden_sums import KNOWN_KEYS, HiddenSum
from cofactor.federation.opening import Key
from cofactor.federation.summing import Decryption
from cofactor.privacy.assumptions import Assumption
from cofactor.privacy.layers import Layers

_USUAL = 3
_TRUST = "it is taken on trust"
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
    """Whether decrypters of whom several must come together get all uploads and add them up themselves.
    Otherwise they open what they are told is the sum, and a coordinator that lies could have a single party's
    numbers opened. A decrypter that opens sums alone gets no uploads: it could open each."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.scheme, ThresholdPaillier | SharedKey | Lattice):
            raise ConfigError(
                f"scheme must be ThresholdPaillier(), SharedKey() or Lattice(), got {self.scheme!r}."
            )
        if not isinstance(self.recheck, bool):
            raise ConfigError(f"recheck must be true or false, got {self.recheck!r}.")
        wanted = getattr(self.scheme, "quorum", 1)
        if self.decrypters is not None and self.scheme.quorum_of(self.decrypters) < wanted:
            raise ConfigError(
                f"the scheme asks for a quorum of {wanted}, and there are only {self.decrypters} decrypters. "
                "Make quorum smaller, or name more decrypters."
            )

    def assumptions(self, parties: int) -> tuple[Assumption, ...]:
        """Return what the guarantee rests on besides the noise."""
        layers, count = self.layers(parties), self.decrypter_count(parties)
        if layers is None:
            return ()
        quorum, kind = self.quorum(parties), type(self.scheme).__name__
        hidden = f"answers were encrypted ({kind}) after noise was added; {_comes_together(quorum, count)}"
        return (
            *self.trusted(layers, hidden),
            _no_quorum(layers, quorum, count),
            *(Assumption(what=each, met=_TRUST) for each in self.scheme.assumptions(count)),
            *self.on_trust(parties),
            KNOWN_KEYS,
        )

    def on_trust(self, parties: int) -> tuple[Assumption, ...]:
        """Return what rests on a coordinator that keeps to the protocol."""
        return _one_sum(self, parties, rechecked=self.rechecked(parties))

    def why_not(self, parties: int) -> tuple[str, ...]:
        """Return why a guarantee does not hold: where one key opens everything."""
        if self.layers(parties) is None or not self.scheme.unsafe:
            return ()
        return (self.scheme.unsafe,)

    def decrypter_count(self, parties: int) -> int:
        """Return how many of so many parties open sums."""
        usual = _USUAL if isinstance(self.scheme, ThresholdPaillier) else 1
        return min(self.decrypters or usual, parties)

    def quorum(self, parties: int) -> int:
        """Return how many decrypters must come together, among so many parties."""
        return self.scheme.quorum_of(self.decrypter_count(parties))

    def rechecked(self, parties: int) -> bool:
        """Say whether decrypters add up all uploads themselves."""
        return self.recheck and self.quorum(parties) > 1

    def dealt(self, decrypters: tuple[str, ...]) -> tuple[Decryption, Keys]:
        """Deal keys to decrypters. Whoever calls this is the dealer."""
        dealt = self.scheme.dealt(len(decrypters))
        openers = [HolderOfKey(dealt.cipher, holder) for holder in dealt.holders]
        recheck = self.recheck and dealt.cipher.quorum > 1
        decryption = Decryption(hiding=UnderCipher(dealt.cipher), decrypters=decrypters, recheck=recheck)
        numbered = enumerate(zip(decrypters, openers, strict=True))
        return decryption, {name: Key(opener=opener, number=at) for at, (name, opener) in numbered}


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
            raise ConfigError(f"needed must lie between 2 and the decrypters ({most}), got {self.needed}.")

    def assumptions(self, parties: int) -> tuple[Assumption, ...]:
        """Return what the guarantee rests on besides the noise."""
        layers, count = self.layers(parties), self.decrypter_count(parties)
        if layers is None:
            return ()
        quorum = self.quorum(parties)
        hidden = f"answers were cut into shares after noise was added; {_comes_together(quorum, count)}"
        return (
            *self.trusted(layers, hidden),
            _no_quorum(layers, quorum, count),
            *self.on_trust(parties),
            KNOWN_KEYS,
        )

    def on_trust(self, parties: int) -> tuple[Assumption, ...]:
        """Return what rests on a coordinator that keeps to the protocol."""
        return _one_sum(self, parties, rechecked=True)

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
        numbered = enumerate(zip(decrypters, pairs, strict=True))
        return Decryption(hiding=hiding, decrypters=decrypters), {
            name: Key(opener=HolderOfShares(pair), number=at) for at, (name, pair) in numbered
        }


def _comes_together(quorum: int, decrypters: int) -> str:
    if decrypters == 1:
        return "one decrypter opens sums"
    if quorum == 1:
        return f"each of {decrypters} decrypters opens sums alone"
    return f"{quorum} of {decrypters} decrypters must come together to open a sum"


def _no_quorum(layers: Layers, quorum: int, decrypters: int) -> Assumption:
    """Say that no quorum may collude, and how likely it is that one does, if as many parties as may do."""
    who = "no decrypter is" if quorum == 1 else f"fewer than {quorum} of the {decrypters} decrypters are"
    chance = quorum_chance(layers.parties, layers.colluding, quorum, decrypters)
    lot = f": decrypters are drawn by lot, and a quorum of them colludes with a chance of {100 * chance:.2g}%"
    return Assumption(what=f"{who} among those who collude", met=f"{_TRUST}{lot if chance else ''}")


def quorum_chance(parties: int, colluding: int, quorum: int, decrypters: int) -> float:
    """Return the chance that `quorum` or more of decrypters drawn by lot are among the colluding parties."""
    honest = parties - colluding
    bad = sum(
        math.comb(colluding, some) * math.comb(honest, decrypters - some)
        for some in range(quorum, decrypters + 1)
    )
    return bad / math.comb(parties, decrypters)


def _one_sum(
    aggregate: "EncryptedSum | SharedSum", parties: int, *, rechecked: bool
) -> tuple[Assumption, ...]:
    """Say where it rests on a coordinator that keeps to the protocol."""
    layers = aggregate.layers(parties)
    if layers is None:
        return ()
    quorum, decrypters = aggregate.quorum(parties), aggregate.decrypter_count(parties)
    if not rechecked:
        return (
            Assumption(
                what="what the coordinator gives decrypters to open is the sum that it says it is",
                met=f"{_TRUST}: they do not add up uploads themselves",
            ),
        )
    # Of all parties there is one sum only; and if all decrypters must agree, they have seen the same.
    if layers.fewest == layers.parties or quorum == decrypters:
        return ()
    helped = (
        ""
        if 2 * quorum <= decrypters
        else ", if one of them colludes and helps to open what each of the others saw"
    )
    return (
        Assumption(
            what="the coordinator tells all decrypters the same about who is left",
            met=f"{_TRUST}: a decrypter opens one sum a round, of enough parties that have signed what is in "
            f"it, but {quorum} of {decrypters} can open one that the others have not seen{helped}",
        ),
    )
