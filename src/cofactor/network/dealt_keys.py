"""What a dealing of keys leaves behind, in memory and in bytes: for everybody, and for each decrypter."""

import json
from dataclasses import dataclass, field

from cofactor.crypto.boxes import apart, joined
from cofactor.crypto.hiding import Hiding, HolderOfKey, HolderOfShares, InShares, UnderCipher
from cofactor.crypto.keys import PUBLIC_BYTES, SECRET_BYTES, KeyPair
from cofactor.crypto.written_keys import cipher_of, holder_of
from cofactor.errors import ProtocolError, RunError
from cofactor.federation.opening import Key
from cofactor.federation.summing import Decryption
from cofactor.recipes.opened_sums import EncryptedSum, SharedSum

AnyOpened = EncryptedSum | SharedSum
"""How sums are made that decrypters open."""
_MAGIC = b"cofactor keys 1"


@dataclass(frozen=True, kw_only=True, eq=False)
class DealtKeys:
    """Keys of sums: public, and at a decrypter also its own secret."""

    decrypters: tuple[str, ...]
    """Who they are, in the order of their parts."""
    public: bytes = field(repr=False)
    """The public part of the keys, as whoever made them has published it."""
    party: str = ""
    """Whose copy it is; nobody's in particular at the coordinator."""
    secret: bytes = field(default=b"", repr=False)
    """What this party alone has, if it is a decrypter."""

    @property
    def number(self) -> int | None:
        """The party's number among the decrypters, if it is one."""
        return self.decrypters.index(self.party) if self.party in self.decrypters else None

    def decryption(self, aggregate: AnyOpened) -> Decryption:
        """Return how sums are opened, which all may know; ProtocolError if the keys are not as agreed on."""
        if isinstance(aggregate, SharedSum):
            return Decryption(hiding=self._in_shares(aggregate), decrypters=self.decrypters)
        cipher = cipher_of(aggregate.scheme, len(self.decrypters), self.public)
        return self._under(UnderCipher(cipher), aggregate)

    def key(self, aggregate: AnyOpened) -> Key | None:
        """Return what this party alone has; None if it is no decrypter."""
        number = self.number
        if number is None:
            return None
        if isinstance(aggregate, SharedSum):
            return Key(opener=HolderOfShares(self._pair(number)), number=number)
        places = len(self.decrypters)
        cipher, holder = holder_of(aggregate.scheme, places, self.public, number, self.secret)
        return Key(opener=HolderOfKey(cipher, holder), number=number)

    def to_bytes(self) -> bytes:
        """Return all this, with the secret: for a file that only its party can read (mode 600)."""
        names = json.dumps([*self.decrypters])
        return joined([_MAGIC, names.encode(), self.party.encode(), self.public, self.secret])

    @classmethod
    def from_bytes(cls, data: bytes) -> "DealtKeys":
        """Read what `to_bytes` wrote."""
        try:
            magic, names, party, public, secret = apart(data)
            decrypters = json.loads(names)
            if magic != _MAGIC or not all(isinstance(name, str) for name in decrypters):
                raise ValueError
            return cls(decrypters=tuple(decrypters), public=public, party=party.decode(), secret=secret)
        except (ProtocolError, ValueError, TypeError):
            raise RunError(
                "the stored keys of this session cannot be read: they are damaged, or of another version. "
                "Sums cannot be opened without them: begin a new session."
            ) from None

    def _in_shares(self, aggregate: SharedSum) -> InShares:
        count = len(self.decrypters)
        keys = [self.public[at : at + PUBLIC_BYTES] for at in range(0, len(self.public), PUBLIC_BYTES)]
        if len(self.public) != count * PUBLIC_BYTES:
            raise ProtocolError("There is not one key for each decrypter.")
        return InShares(keys, aggregate.quorum(count))

    def _under(self, hiding: Hiding, aggregate: EncryptedSum) -> Decryption:
        recheck = aggregate.recheck and hiding.quorum > 1
        return Decryption(hiding=hiding, decrypters=self.decrypters, recheck=recheck)

    def _pair(self, number: int) -> KeyPair:
        published = self.public[number * PUBLIC_BYTES : (number + 1) * PUBLIC_BYTES]
        pair = KeyPair.of(self.secret) if len(self.secret) == SECRET_BYTES else None
        if pair is None or pair.public != published:
            raise ProtocolError("A decrypter's secret does not belong to the key that it has published.")
        return pair
