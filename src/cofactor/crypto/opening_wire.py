"""What the messages of a sum that decrypters open look like, byte by byte. Numbers are little-endian.

    UPLOAD   "CFUP", version; place 4, signature 64, number of boxes 2; for each box: hash 32;
             for each box that is there: its number 2, its length 8, its bytes
    REQUEST  "CFRQ", version; digest of what was agreed on 32, number of pieces' ranges 2, their starts and
             ends 4 + 4; length of a total 8, the total; number of uploads 4; for each: length 8, UPLOAD
    ANSWER   "CFAN", version; for each range that was asked for: length 8, bytes

Reading raises ProtocolError and nothing else, whatever the bytes are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from cofactor.crypto.keys import SIGNATURE_BYTES
from cofactor.errors import ProtocolError

_VERSION = b"\x01"
_UPLOAD, _REQUEST, _ANSWER = (magic + _VERSION for magic in (b"CFUP", b"CFRQ", b"CFAN"))
_HASH = 32


@dataclass(frozen=True)
class Upload:
    """A party's boxes, or some of them, with its signature under the hashes of all."""

    place: int
    signature: bytes
    hashes: tuple[bytes, ...]
    boxes: Mapping[int, bytes]

    @classmethod
    def of(cls, place: int, signature: bytes, boxes: Sequence[bytes]) -> "Upload":
        """Take all boxes."""
        return cls(place, signature, tuple(sha256(box).digest() for box in boxes), dict(enumerate(boxes)))

    @property
    def bound(self) -> bytes:
        """Whose boxes they are, and which."""
        return self.place.to_bytes(4, "little") + b"".join(self.hashes)

    def named(self) -> "Upload":
        """Return it without boxes."""
        return replace(self, boxes={})

    def for_decrypter(self, number: int) -> "Upload":
        """Return it with the box for one decrypter alone, or with the one for all."""
        wanted = number if len(self.hashes) > 1 else 0
        return replace(self, boxes={wanted: self.boxes[wanted]})

    def to_bytes(self) -> bytes:
        """Write it."""
        head = _UPLOAD + self.place.to_bytes(4, "little") + self.signature
        counted = len(self.hashes).to_bytes(2, "little")
        rows = [at.to_bytes(2, "little") + _sized(box) for at, box in sorted(self.boxes.items())]
        return b"".join([head, counted, *self.hashes, *rows])


@dataclass(frozen=True)
class Request:
    """What a decrypter is asked."""

    digest: bytes
    pieces: tuple[range, ...]
    uploads: tuple[Upload, ...]
    total: bytes = b""
    """What the collector has added up, if that is taken on trust."""

    def to_bytes(self) -> bytes:
        """Write it."""
        ranges = b"".join(
            end.to_bytes(4, "little") for pieces in self.pieces for end in (pieces.start, pieces.stop)
        )
        counts = len(self.pieces).to_bytes(2, "little"), len(self.uploads).to_bytes(4, "little")
        uploads = [_sized(upload.to_bytes()) for upload in self.uploads]
        return b"".join([_REQUEST, self.digest, counts[0], ranges, _sized(self.total), counts[1], *uploads])


def read_upload(data: bytes) -> Upload:
    """Read what a party sends."""
    reader = _Reader(data, _UPLOAD)
    place, signature = reader.number(4), reader.take(SIGNATURE_BYTES)
    hashes = tuple(reader.take(_HASH) for _ in range(reader.number(2)))
    boxes = {}
    while not reader.at_end:
        at = reader.number(2)
        boxes[at] = reader.sized()
    return Upload(place, signature, hashes, boxes)


def read_request(data: bytes) -> Request:
    """Read what a decrypter is asked."""
    reader = _Reader(data, _REQUEST)
    digest = reader.take(_HASH)
    pieces = tuple(range(reader.number(4), reader.number(4)) for _ in range(reader.number(2)))
    total = reader.sized()
    uploads = tuple(read_upload(reader.sized()) for _ in range(reader.number(4)))
    reader.end()
    return Request(digest, pieces, uploads, total)


def write_answer(parts: Sequence[tuple[range, bytes]]) -> bytes:
    """Write a decrypter's parts, in the order in which they were asked for."""
    return _ANSWER + b"".join(_sized(data) for _, data in parts)


def read_answer(data: bytes, asked: Sequence[range]) -> list[bytes]:
    """Read a decrypter's parts, one for each range that was asked for."""
    reader = _Reader(data, _ANSWER)
    parts = [reader.sized() for _ in asked]
    reader.end()
    return parts


class _Reader:
    """Takes bytes from a message, one field after the other."""

    def __init__(self, data: bytes, magic: bytes) -> None:
        self._data, self._at = data, 0
        if self.take(len(magic)) != magic:
            raise ProtocolError("A message of a sum is of another kind or version than was expected.")

    @property
    def at_end(self) -> bool:
        """Whether nothing is left."""
        return self._at == len(self._data)

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        if self._at + count > len(self._data):
            raise ProtocolError("A message of a sum ends too early.")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, size: int) -> int:
        """Return the next whole number."""
        return int.from_bytes(self.take(size), "little")

    def sized(self) -> bytes:
        """Return bytes whose number stands before them."""
        return self.take(self.number(8))

    def end(self) -> None:
        """Refuse more bytes."""
        if not self.at_end:
            raise ProtocolError("A message of a sum has more bytes than it says.")


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(8, "little") + data
