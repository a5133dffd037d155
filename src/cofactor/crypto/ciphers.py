"""What every way of adding up under encryption offers: a cipher for everybody, and holders who open sums.

Numbers are whole. What is promised of them is that their sum over all parties has at most `bits` bits, sign
included; no cipher needs to know more of a single party's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


OWN_NUMBERS = (
    "one that makes its upload out of others' has, with the coordinator's help, a single party's numbers "
    "opened"
)
"""What nobody proves about uploads under encryption that adds: that their senders know what is in them."""


@dataclass(frozen=True)
class Part:
    """What one holder contributes to opening some pieces of a sum."""

    place: int
    pieces: range
    data: bytes


class Cipher(Protocol):
    """What everybody may have: a public key, and how numbers are laid out under it."""

    @property
    def identity(self) -> bytes:
        """32 bytes that name key and parameters: uploads are signed together with them."""

    @property
    def quorum(self) -> int:
        """How many holders must open each piece."""

    def encrypted(self, values: Integers, bits: int) -> bytes:
        """Return one party's numbers under fresh randomness; refuse numbers that have more than `bits`."""

    def added(self, uploads: Iterable[bytes], length: int, bits: int) -> bytes:
        """Return the encryption of the sum of uploads of `length` numbers each."""

    def pieces(self, length: int, bits: int) -> int:
        """Return into how many ciphertexts so many numbers go: holders can divide the work by them."""

    def combined(self, total: bytes, length: int, bits: int, parts: Sequence[Part]) -> Integers:
        """Return the sum, from the parts of at least `quorum` holders for each piece."""


class Holder(Protocol):
    """One decrypter's secret."""

    @property
    def place(self) -> int:
        """Its place among the decrypters, counted from 0."""

    def part(self, total: bytes, length: int, bits: int, pieces: range) -> bytes:
        """Return its part in opening some pieces of a sum."""


@dataclass(frozen=True)
class Dealt:
    """The keys that a dealer has made; it must forget them once they are handed out."""

    cipher: Cipher
    holders: tuple[Holder, ...]


class Scheme(Protocol):
    """Settings of a cipher: a frozen dataclass of plain numbers and texts."""

    @property
    def unsafe(self) -> str:
        """Why it protects nobody, in a sentence; empty if it does."""

    @property
    def exact(self) -> bool:
        """Whether sums come out as they are, to the last bit."""

    def quorum_of(self, decrypters: int) -> int:
        """Return how many of so many decrypters must open a sum together."""

    def assumptions(self, decrypters: int) -> tuple[str, ...]:
        """Return what hiding rests on with so many decrypters: clauses that follow "it assumes that"."""

    def dealt(self, decrypters: int) -> Dealt:
        """Make fresh keys for so many decrypters."""
