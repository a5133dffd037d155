"""The party's side of a secure sum: five answers, each given once and in order.

A party believes the server nothing that it can check. Why it checks is written beside each check; what does
not hold raises ProtocolError, and from then on the party answers nothing more in this sum.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from secrets import SystemRandom, token_bytes

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto import sum_wire as wire
from cofactor.crypto.keys import SECRET_BYTES, Identity, KeyPair, opened, sealed, verified
from cofactor.crypto.shamir import split
from cofactor.crypto.sum_terms import Terms
from cofactor.crypto.sum_wire import Advert, Kind, Places
from cofactor.errors import ConfigError, ProtocolError, TooFew

_PHASES = ("advertise", "share", "mask", "confirm", "unmask")
_OVER = len(_PHASES)


class Client:
    """One party in one secure sum. It draws fresh keys and answers each phase once."""

    def __init__(self, terms: Terms, place: int, identity: Identity) -> None:
        if not 0 <= place < terms.parties or terms.roster[place] != identity.public:
            raise ConfigError(f"The roster has another identity key at place {place} than this party's.")
        self._terms, self._place, self._identity = terms, int(place), identity
        self._next = 0
        self._masking, self._sealing = KeyPair.fresh(), KeyPair.fresh()
        self._self_mask = token_bytes(SECRET_BYTES)
        self._chosen = _drawn(terms, place)
        self._advertisers = self._sharers = self._survivors = Places()
        self._adverts: dict[int, Advert] = {}
        self._held: dict[int, list[bytes]] = {}
        self._sets = b""  # bitmaps of those who shared secrets and of the survivors, as all sign them

    def advertise(self) -> bytes:
        """Return fresh public keys and the neighbours chosen at random, signed."""
        with self._phase("advertise"):
            chosen = np.array(self._chosen, wire.word(self._terms))
            advert = Advert(self._place, self._masking.public, self._sealing.public, chosen)
            signature = self._identity.sign(wire.to_sign_advert(self._terms, advert))
            return self._message(Kind.ADVERT, advert.content, signature)

    def share(self, data: bytes, secrets: Sequence[bytes] = ()) -> bytes:
        """Take the neighbours' adverts; return this party's secrets in shares, sealed for those it chose."""
        if len(secrets) != self._terms.secrets or any(len(secret) != SECRET_BYTES for secret in secrets):
            raise ConfigError(f"These terms need {self._terms.secrets} secrets of {SECRET_BYTES} bytes.")
        with self._phase("share"):
            self._advertisers, self._adverts = wire.read_adverts(self._terms, self._place, data)
            self._check_present(self._advertisers)
            self._check_adverts()
            who = self._terms.neighbourhood
            mine = [self._self_mask, self._masking.private, *secrets]
            shares = split(mine, threshold=who.threshold, holders=who.chosen)
            boxes = [
                self._sealed(holder, b"".join(row))
                for holder, row in zip(self._chosen, shares, strict=True)
                if holder in self._adverts
            ]
            return self._message(Kind.SHARES, *boxes)

    def mask(self, data: bytes, values: NDArray[np.int64]) -> bytes:
        """Take the shares to be held for others; return the numbers under this party's masks."""
        if values.shape != (self._terms.length,) or values.dtype != np.int64:
            raise ConfigError(f"A row of {self._terms.length} whole numbers (int64) is added in this sum.")
        with self._phase("mask"):
            self._sharers, boxes = wire.read_held(self._terms, self._place, data)
            self._check_part(self._sharers, self._advertisers)
            self._check_present(self._sharers)
            self._held = self._opened(boxes)
            ring, words = self._terms.ring, self._terms.ring.reduced(values)
            ring.mask(words, self._self_mask, 1)
            for other in self._sharers & self._adverts.keys():
                ring.mask(words, self._pair_mask(other), wire.sign(self._place, other))
            del self._self_mask, self._masking, self._sealing
            self._sets = wire.bitmap(self._terms, self._sharers)
            signature = self._identity.sign(wire.to_sign_sharers(self._terms, self._place, self._sets))
            return self._message(Kind.MASKED, signature, ring.packed(words))

    def confirm(self, data: bytes) -> bytes:
        """Take the set of survivors; return a signature, by which others see that all were told the same."""
        with self._phase("confirm"):
            self._survivors, signatures = wire.read_survivors(self._terms, self._place, data)
            self._check_part(self._survivors, self._sharers)
            self._check_present(self._survivors)
            self._check_masked_alike(signatures)
            self._sets += wire.bitmap(self._terms, self._survivors)
            signed = wire.to_sign_survivors(self._terms, self._place, self._sets)
            return self._message(Kind.CONFIRMATION, self._identity.sign(signed))

    def unmask(self, data: bytes) -> bytes:
        """Take the neighbours' signatures; return those of the shares held for others that open the sum."""
        with self._phase("unmask"):
            self._check_confirmations(wire.read_confirmations(self._terms, self._place, data))
            self._check_nobody_alone()
            asked = self._terms.asked(self._held, self._survivors)
            shares = [self._held[owner][secret] for owner, secret in asked]
            del self._held
            return self._message(Kind.REVEALED, *shares)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Let a phase happen once and in order; whatever goes wrong in it ends the sum for this party."""
        number = _PHASES.index(name)
        if self._next != number:
            due = "nothing more" if self._next == _OVER else f'"{_PHASES[self._next]}"'
            raise ProtocolError(f'Place {self._place} was asked to "{name}" and answers {due} in this sum.')
        self._next = _OVER
        yield
        self._next = number + 1

    def _message(self, kind: Kind, *parts: bytes) -> bytes:
        return wire.message(self._terms, kind, self._place, *parts)

    def _check_part(self, places: Places, whole: Places) -> None:
        # Whoever appears late has shared no secrets: nobody could take its masks off.
        if not places <= whole:
            raise ProtocolError("The server names parties that were not there in the phase before.")

    def _check_present(self, there: Places) -> None:
        """Stop before anything is sent that could never be opened, or only with fewer than were promised."""
        self._terms.check_enough(len(there))
        if self._place not in there:
            raise ProtocolError(f"The server does not count place {self._place} among those who are there.")
        _check_threshold(self._terms, there, self._place, self._chosen)

    def _check_adverts(self) -> None:
        # A server that hides those whom a party chose chooses the party's neighbours itself.
        if not self._advertisers.intersection(self._chosen) <= self._adverts.keys():
            raise ProtocolError("The server hides adverts of parties that it says are there.")
        for advert in self._adverts.values():
            chosen = advert.place in self._chosen or self._place in advert.chosen
            if not chosen or advert.place not in self._advertisers:
                raise ProtocolError(f"Place {advert.place} is no neighbour of place {self._place}.")
            signed = wire.to_sign_advert(self._terms, advert)
            if not verified(self._terms.roster[advert.place], signed, advert.signature):
                raise ProtocolError(f"The advert of place {advert.place} is not signed by its identity key.")

    def _sealed(self, holder: int, shares: bytes) -> bytes:
        context = wire.seal_context(self._terms, self._place, holder)
        return sealed(self._sealing.agreed(self._adverts[holder].sealing, context), shares, context)

    def _opened(self, boxes: dict[int, bytes]) -> dict[int, list[bytes]]:
        choosers = {owner for owner, advert in self._adverts.items() if self._place in advert.chosen}
        if boxes.keys() != choosers & self._sharers:
            raise ProtocolError("The server sends other shares than those of the parties that chose this.")
        held = {}
        for owner, box in boxes.items():
            context = wire.seal_context(self._terms, owner, self._place)
            key = self._sealing.agreed(self._adverts[owner].sealing, context)
            held[owner] = wire.split_shares(self._terms, opened(key, box, context))
        return held

    def _pair_mask(self, other: int) -> bytes:
        context = wire.pair_context(self._terms, self._place, other)
        return self._masking.agreed(self._adverts[other].masking, context)

    def _check_masked_alike(self, signatures: dict[int, bytes]) -> None:
        """Refuse survivors who did not mask their numbers with the same parties that this one knows of.

        A lying server could tell a party that some of its neighbours shared no secrets. Its numbers would
        then lack their masks, and those neighbours would still help to take its own mask off.
        """
        if signatures.keys() != self._survivors & self._held.keys():
            raise ProtocolError("The server does not prove that the survivors sent their numbers.")
        for place, signature in signatures.items():
            signed = wire.to_sign_sharers(self._terms, place, self._sets)
            if not verified(self._terms.roster[place], signed, signature):
                raise ProtocolError(f"Place {place} did not mask with those that this party was told of.")

    def _check_confirmations(self, signatures: dict[int, bytes]) -> None:
        """Refuse to reveal anything unless enough of the chosen ones were told the same two sets.

        A server that told some parties of one set and others of another could get a party's own mask from the
        first and its neighbours' masking keys from the second, and so its numbers. Whoever signs is bound to
        treat the survivors as such: a party that answers knows that too few are left to give its masking key
        away (if the neighbourhood is `active`), so that its masks protect those for whom it answers.
        """
        if not signatures.keys() <= self._survivors.intersection(self._chosen):
            raise ProtocolError("The server sends signatures of parties that are no surviving neighbours.")
        for place, signature in signatures.items():
            signed = wire.to_sign_survivors(self._terms, place, self._sets)
            if not verified(self._terms.roster[place], signed, signature):
                raise ProtocolError(f"Place {place} did not sign the survivors that this party was told of.")
        _check_threshold(self._terms, signatures.keys(), self._place, self._chosen)

    def _check_nobody_alone(self) -> None:
        """Refuse to take off the mask of a survivor whose neighbours are said to be gone.

        A lying server could declare all neighbours of one party dropped, learn their masking keys, and with
        them all masks of that party but its own. So its own is kept from the server unless enough of those it
        chose (its advert is signed) are in the sum with it. An honest server loses nothing: with fewer of
        them left there are not enough shares either.
        """
        for owner in self._survivors.intersection(self._held):
            _check_threshold(self._terms, self._survivors, owner, self._adverts[owner].chosen.tolist())


def _drawn(terms: Terms, place: int) -> tuple[int, ...]:
    """Choose neighbours among all others, each choice as likely as any other, and foreseen by nobody."""
    others = SystemRandom().sample(range(terms.parties - 1), terms.neighbourhood.chosen)
    return tuple(sorted(other + (other >= place) for other in others))


def _check_threshold(terms: Terms, there: Collection[int], place: int, chosen: Iterable[int]) -> None:
    left = sum(other in there for other in chosen)
    if left < terms.neighbourhood.threshold:
        raise TooFew(
            f"Of those that place {place} chose {left} are left; {terms.neighbourhood.threshold} are needed. "
            "Nothing was opened. Try again with more parties, or plan for more dropouts."
        )
