"""Sums that decrypters open: a party's end, and the coordinator's. Some of the parties are decrypters."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cofactor.crypto.hiding import Opener
from cofactor.crypto.keys import Identity
from cofactor.crypto.openings import Collector, Decrypter, Opening, uploaded
from cofactor.errors import ProtocolError, RunError
from cofactor.federation.door import Door, Passed, weakest
from cofactor.federation.messages import Message
from cofactor.federation.sizes import sizes_of
from cofactor.federation.summing import (
    ENCRYPTED,
    OPENS,
    Bytes,
    Form,
    Integers,
    SumBegun,
    Summing,
    SumStep,
    one_form,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Key:
    """What a decrypter has, and nobody else."""

    opener: Opener
    number: int
    """Its number among the decrypters."""


class PartyOpening:
    """A party's end of one sum: an upload and, if it is a decrypter, its parts in opening the sum."""

    secure = True
    underway = False  # an upload can be sent again, and decrypters see to it that one sum only is opened

    def __init__(
        self, summing: Summing, answer: Message, passed: Mapping[str, Passed], door: Door, key: Key | None
    ) -> None:
        """Take the answer: whole numbers that went through the door."""
        self._summing, self._key = summing, key
        self._form, self._protection = Form.of(answer, passed), weakest(passed)
        self._values = np.concatenate([each.values.ravel() for each in passed.values()])
        self._party = door.party
        self._decrypter: Decrypter | None = None

    def begun(
        self, party: str, identity: Identity | None, *, session: str, round: int
    ) -> tuple[Message, str]:
        """Return the upload, with what protects it."""
        summing = self._summing
        if identity is None or summing.roster.get(party) != identity.public:
            raise RunError(f"{party}: such a sum needs the key by which the other parties know this one.")
        opening = opening_of(summing, self._form, session, round)
        data = uploaded(opening, summing.place(party), identity, summing.hiding, self._values)
        if self._key is not None:
            pieces = summing.hiding.pieces(opening.length, opening.bits)
            self._decrypter = Decrypter(opening, self._key.number, self._key.opener, pieces)
        del self._values  # it is never sent twice
        nothing = sizes_of([None] * len(self._form.arrays))
        body = SumBegun(form=str(self._form), **nothing, data=_as_array(data))
        return body, f"{self._protection}, {ENCRYPTED}"

    def step(self, message: SumStep) -> tuple[SumStep, str]:
        """Return this decrypter's parts in opening the sum."""
        if self._decrypter is None:
            raise ProtocolError(f"{self._party} holds no key, and is asked to open a sum.")
        return SumStep(data=_as_array(self._decrypter.answer(message.data.tobytes()))), OPENS


class CoordinatorOpening:
    """The coordinator's end of one sum."""

    def __init__(self, summing: Summing, begun: Mapping[str, SumBegun], session: str, round: int) -> None:
        """Take the uploads."""
        self.form = one_form(begun)
        self._names, opening = list(summing.roster), opening_of(summing, self.form, session, round)
        uploads = {summing.place(party): each.data.tobytes() for party, each in begun.items()}
        self._collector = Collector(opening, summing.hiding, uploads)

    @property
    def finished(self) -> bool:
        """Whether enough decrypters have answered."""
        return self._collector.finished

    @property
    def refused(self) -> dict[str, str]:
        """Whose messages made no sense, and why."""
        return {self._names[place]: why for place, why in self._collector.refused.items()}

    def asks(self) -> dict[str, SumStep]:
        """Return what decrypters are asked next."""
        return {
            self._names[place]: SumStep(data=_as_array(data))
            for place, data in self._collector.asks().items()
        }

    def take(self, replies: Mapping[str, SumStep]) -> None:
        """Take what they have answered."""
        places = {name: place for place, name in enumerate(self._names)}
        self._collector.take({places[party]: each.data.tobytes() for party, each in replies.items()})

    def opened(self) -> Integers:
        """Return the sum of all whose uploads arrived."""
        return self._collector.opened()


def opening_of(summing: Summing, form: Form, session: str, round: int) -> Opening:
    """Return what all parties of one such sum agree on."""
    decryption, layers = summing.decryption, summing.layers
    assert decryption is not None
    assert layers is not None
    return Opening(
        session=f"{session} {summing.agreed} {form}",
        round=round,
        roster=tuple(summing.roster.values()),
        decrypters=tuple(summing.place(party) for party in decryption.decrypters),
        fewest=layers.fewest,
        length=form.length,
        bits=form.bits,
        keys=decryption.hiding.identity,
        recheck=decryption.recheck,
    )


def _as_array(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8)
