"""A sum that decrypters open: signed uploads, decrypters who check what they open, and who collects it all.

Every party hides its numbers (`hiding`), signs the boxes, and uploads them. A decrypter opens one sum only,
of enough parties of the roster, each of which has signed what is in it for this sum and no other; so that no
decrypter opens a single party's numbers, nor two sums that differ by a party. It adds up the boxes itself,
unless all have agreed to take the collector's total on trust.

What that does not prevent: where a party may be missing, decrypters who are shown different sums, with one
among them who helps to open all of these; and a party that makes its own upload out of others' ciphertexts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise

from cofactor.config import not_negative, whole
from cofactor.crypto.ciphers import Integers, Part
from cofactor.crypto.hiding import Hiding, Opener
from cofactor.crypto.keys import PUBLIC_BYTES, Identity, verified
from cofactor.crypto.opening_wire import Request, Upload, read_answer, read_request, read_upload, write_answer
from cofactor.errors import ConfigError, ProtocolError, TooFew


@dataclass(frozen=True, kw_only=True)
class Opening:
    """What all who take part in one such sum have agreed on; nobody takes any of it from the collector."""

    session: str
    """A name that no other session of these parties ever had."""
    round: int
    roster: tuple[bytes, ...]
    """Public identity keys by place, as every party has pinned them."""
    decrypters: tuple[int, ...]
    """Places of those who hold keys, in the order of their parts."""
    fewest: int
    """Of fewer parties a sum is not opened."""
    length: int
    """How many numbers each party adds."""
    bits: int
    """How many bits the sum of all parties has, at most, the sign included."""
    keys: bytes
    """The identity of the keys under which numbers are hidden."""
    recheck: bool = True
    """Whether decrypters add up all uploads themselves."""

    def __post_init__(self) -> None:
        whole(length=self.length, bits=self.bits, fewest=self.fewest)
        not_negative(round=self.round)
        parties = len(self.roster)
        if any(len(key) != PUBLIC_BYTES for key in self.roster) or len(set(self.roster)) != parties:
            raise ConfigError("The roster needs one identity key of 32 bytes for each party.")
        if not 2 <= self.fewest <= parties:
            raise ConfigError(f"A sum is opened of 2 to {parties} parties at least, got {self.fewest}.")
        if not self.decrypters or len(set(self.decrypters)) != len(self.decrypters):
            raise ConfigError("Decrypters are one or more different places of the roster.")
        if not all(0 <= place < parties for place in self.decrypters) or self.bits > 64:
            raise ConfigError("A decrypter stands at no place of the roster, or numbers have over 64 bits.")

    @cached_property
    def digest(self) -> bytes:
        """What every signature is bound to."""
        numbers = (self.round, self.fewest, self.length, self.bits, self.recheck, *self.decrypters)
        texts = [self.session.encode(), repr(numbers).encode(), self.keys, *self.roster]
        return sha256(b"cofactor opening 1" + b"".join(sha256(text).digest() for text in texts)).digest()

    def bound_to(self, place: int) -> bytes:
        """Return what a party's boxes belong to: this sum and this party."""
        return self.digest + place.to_bytes(4, "little")


def uploaded(opening: Opening, place: int, identity: Identity, hiding: Hiding, values: Integers) -> bytes:
    """Return a party's signed upload. It makes one, and one only, for each sum."""
    if not 0 <= place < len(opening.roster) or opening.roster[place] != identity.public:
        raise ConfigError(f"The roster has another identity key at place {place} than this party's.")
    if values.shape != (opening.length,) or hiding.identity != opening.keys:
        raise ConfigError(f"A row of {opening.length} numbers is added, under the keys that were agreed on.")
    bound_to = opening.bound_to(place)
    boxes = hiding.boxes(values, opening.bits, bound_to)
    signature = identity.sign(bound_to + b"".join(sha256(box).digest() for box in boxes))
    return Upload.of(place, signature, boxes).to_bytes()


class Decrypter:
    """One holder of a key, or of shares, in one sum. Asked again, it opens other pieces of the same sum."""

    def __init__(self, opening: Opening, number: int, opener: Opener, pieces: int) -> None:
        """Take its number among the decrypters, and into how many pieces a sum comes."""
        if not 0 <= number < len(opening.decrypters):
            raise ConfigError(f"There is no decrypter {number}.")
        self._opening, self._number, self._opener, self._pieces = opening, number, opener, pieces
        self._seen = b""
        self._total = b""

    def answer(self, data: bytes) -> bytes:
        """Return its part in opening the pieces that are asked for; refuse what it must not open."""
        request = read_request(data)
        self._check(request)
        if not self._total:
            self._total, self._seen = self._added(request), self._named(request)
        parts = [
            (pieces, self._opener.part(self._total, self._opening.length, self._opening.bits, pieces))
            for pieces in request.pieces
        ]
        return write_answer(parts)

    def _check(self, request: Request) -> None:
        terms, places = self._opening, [upload.place for upload in request.uploads]
        if request.digest != terms.digest:
            raise ProtocolError("It is asked to open another sum than was agreed on. Nothing is opened.")
        ends = [end for pieces in request.pieces for end in (pieces.start, pieces.stop)]
        if not ends or ends != sorted(ends) or ends[-1] > self._pieces or not all(request.pieces):
            raise ProtocolError("It is asked for pieces that there are not, or twice. Nothing is opened.")
        if sorted(set(places)) != places or not all(place < len(terms.roster) for place in places):
            raise ProtocolError("A party stands twice, or not at all, in what is to be opened.")
        if len({len(upload.hashes) for upload in request.uploads}) > 1:
            raise ProtocolError("Parties differ in how many boxes they send. Nothing is opened.")
        if len(places) < terms.fewest:
            raise TooFew(f"The sum of {len(places)} parties is not opened: it takes {terms.fewest}.")
        if bool(request.total) == terms.recheck:
            raise ProtocolError("The total comes from those who were not agreed to add it up.")
        if self._seen and self._named(request) != self._seen:
            raise ProtocolError("It has opened another sum in this round. Two are not opened.")
        for upload in request.uploads:
            check_signed(terms, upload)

    def _added(self, request: Request) -> bytes:
        """Return the total: its own, or the one that it was given."""
        if not self._opening.recheck:
            return request.total
        boxes = [
            (_own_box(upload, self._number), self._opening.bound_to(upload.place))
            for upload in request.uploads
        ]
        return self._opener.total(boxes, self._opening.length, self._opening.bits)

    def _named(self, request: Request) -> bytes:
        """Return what names the sum: whose uploads are in it, and which."""
        named = (sha256(upload.bound + upload.signature).digest() for upload in request.uploads)
        return sha256(b"".join(named) + sha256(request.total).digest()).digest()


class Collector:
    """Collects uploads, asks decrypters, asks others instead of those who do not answer, and has the sum.

    An upload that is malformed or badly signed counts as missing, and `refused` says why.
    """

    def __init__(self, opening: Opening, hiding: Hiding, uploads: Mapping[int, bytes]) -> None:
        if hiding.identity != opening.keys:
            raise ConfigError("The keys are not those that were agreed on.")
        self.refused: dict[int, str] = {}
        self._opening, self._hiding = opening, hiding
        self._uploads, self._total = self._added(self._accepted(uploads))
        self._blocks = _blocks(hiding.pieces(opening.length, opening.bits), len(opening.decrypters))
        self._asked: dict[int, set[range]] = {number: set() for number in range(len(opening.decrypters))}
        self._parts: dict[range, dict[int, bytes]] = {block: {} for block in self._blocks}
        self._pending: dict[int, list[range]] = {}

    @property
    def survivors(self) -> tuple[int, ...]:
        """Whose numbers are in the sum, by place."""
        return tuple(upload.place for upload in self._uploads)

    @property
    def finished(self) -> bool:
        """Whether enough decrypters have answered."""
        return all(len(parts) >= self._hiding.quorum for parts in self._parts.values())

    def asks(self) -> dict[int, bytes]:
        """Return what decrypters are asked next, by their place in the roster; TooFew if nobody is left."""
        self._pending = {}
        for at, (block, parts) in enumerate(self._parts.items()):
            lacking = self._hiding.quorum - len(parts)
            # Blocks begin at different decrypters, so that all have about the same to do.
            order = [(at + step) % len(self._asked) for step in range(len(self._asked))]
            free = [number for number in order if block not in self._asked[number]]
            if lacking > len(free):
                raise TooFew(
                    f"Of {len(self._asked)} decrypters too few answer: it takes {self._hiding.quorum} for "
                    "each piece of a sum. Nothing was opened."
                )
            for number in free[: max(lacking, 0)]:
                self._pending.setdefault(number, []).append(block)
                self._asked[number].add(block)
        return {self._opening.decrypters[number]: self._request(number) for number in self._pending}

    def take(self, replies: Mapping[int, bytes]) -> None:
        """Take what decrypters answered; who is missing, or answers nonsense, is not asked for it again."""
        for number, blocks in self._pending.items():
            place = self._opening.decrypters[number]
            if place not in replies:
                continue
            try:
                answer = read_answer(replies[place], blocks)
            except ProtocolError as error:
                self.refused[place] = str(error)
                continue
            for block, data in zip(blocks, answer, strict=True):
                self._parts[block][number] = data

    def opened(self) -> Integers:
        """Return the sum; ProtocolError if the parts do not belong together, and then nothing is known."""
        parts = [
            Part(number, block, data)
            for block, found in self._parts.items()
            for number, data in found.items()
        ]
        return self._hiding.combined(self._total, self._opening.length, self._opening.bits, parts)

    def _accepted(self, uploads: Mapping[int, bytes]) -> tuple[Upload, ...]:
        found = []
        for place in sorted(uploads):
            try:
                upload = read_upload(uploads[place])
                if upload.place != place:
                    raise ProtocolError("It speaks for another party.")
                wanted = self._hiding.box_count
                if len(upload.hashes) != wanted or set(upload.boxes) != set(range(wanted)):
                    raise ProtocolError(f"It has not the {wanted} boxes that decrypters need.")
                check_signed(self._opening, upload)
                found.append(upload)
            except ProtocolError as error:
                self.refused[place] = str(error)
        return tuple(found)

    def _added(self, uploads: tuple[Upload, ...]) -> tuple[tuple[Upload, ...], bytes]:
        """Add up; if that fails, without those whose boxes cannot be added to anything."""
        if len(uploads) < self._opening.fewest:
            raise TooFew(f"{len(uploads)} parties have sent numbers, and it takes {self._opening.fewest}.")
        try:
            return uploads, self._total_of(uploads)
        except ProtocolError:
            sound = tuple(upload for upload in uploads if self._is_sound(upload))
            if len(sound) == len(uploads):
                raise
            return self._added(sound)

    def _total_of(self, uploads: Iterable[Upload]) -> bytes:
        boxes = (upload.boxes[0] for upload in uploads)
        return self._hiding.total(boxes, self._opening.length, self._opening.bits)

    def _is_sound(self, upload: Upload) -> bool:
        try:
            self._total_of([upload])
        except ProtocolError as error:
            self.refused[upload.place] = str(error)
        return upload.place not in self.refused

    def _request(self, number: int) -> bytes:
        uploads = [
            upload.for_decrypter(number) if self._opening.recheck else upload.named()
            for upload in self._uploads
        ]
        return Request(
            digest=self._opening.digest,
            pieces=tuple(self._pending[number]),
            uploads=tuple(uploads),
            total=b"" if self._opening.recheck else self._total,
        ).to_bytes()


def check_signed(opening: Opening, upload: Upload) -> None:
    """Refuse boxes that their party has not signed for this sum."""
    for at, box in upload.boxes.items():
        if at >= len(upload.hashes) or sha256(box).digest() != upload.hashes[at]:
            raise ProtocolError("A box is not the one that its party signed.")
    if not 0 <= upload.place < len(opening.roster):
        raise ProtocolError("Somebody who does not take part has sent numbers.")
    signed = opening.bound_to(upload.place) + b"".join(upload.hashes)
    if not verified(opening.roster[upload.place], signed, upload.signature):
        raise ProtocolError("An upload is not signed by its party for this sum.")


def _own_box(upload: Upload, number: int) -> bytes:
    """Return the box that is for a decrypter: its own, or the one that is for all."""
    wanted = number if len(upload.hashes) > 1 else 0
    if wanted not in upload.boxes:
        raise ProtocolError("An upload comes without the box that is for this decrypter.")
    return upload.boxes[wanted]


def _blocks(pieces: int, decrypters: int) -> list[range]:
    """Divide pieces into as many blocks as there are decrypters, if there are so many pieces."""
    ends = [pieces * at // decrypters for at in range(decrypters + 1)]
    return [range(a, b) for a, b in pairwise(ends) if a < b]
