"""The server's side of a secure sum: it passes messages on, adds up, and learns the total.

A party whose answer is malformed, foreign, replayed or badly signed counts as dropped out, and `refused` says
why. Too few parties end the sum with nothing opened.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto import sum_wire as wire
from cofactor.crypto.keys import KeyPair, verified
from cofactor.crypto.shamir import Weights
from cofactor.crypto.sum_terms import EXTRA, MASKING_KEY, SELF_MASK, Asked, Terms
from cofactor.crypto.sum_wire import Advert, Kind, Places
from cofactor.errors import ProtocolError, TooFew

T = TypeVar("T")

_PHASES = ("adverts", "shares", "masked", "confirmed", "opened")


@dataclass(frozen=True)
class Opened:
    """What a secure sum tells."""

    total: NDArray[np.int64]
    """The sum of all survivors' numbers, each in [-2^(bits-1), 2^(bits-1))."""
    survivors: tuple[int, ...]
    """Whose numbers are in it, by place."""
    revealed: dict[int, bytes]
    """By survivor, the extra secret that belongs to their number, if any."""


class Server:
    """One secure sum. Each method takes the answers to what the one before returned, and is called once."""

    def __init__(self, terms: Terms) -> None:
        self.refused: dict[int, str] = {}
        """Whose answer was not accepted, and why. Such a party counts as dropped out."""
        self._terms = terms
        self._probe = KeyPair.fresh()
        self._next = 0
        self._adverts: dict[int, Advert] = {}
        self._choosers: dict[int, list[int]] = {}
        self._sharers = self._survivors = self._confirmers = Places()
        self._sets = b""  # bitmaps of those who shared secrets and of the survivors, as parties sign them
        self._total = terms.ring.reduced(np.zeros(terms.length, np.int64))

    def adverts(self, replies: Mapping[int, bytes]) -> dict[int, bytes]:
        """Take the adverts; return to each party those of the ones that it chose or that chose it."""
        self._enter("adverts")
        everybody = frozenset(range(self._terms.parties))
        self._adverts = self._accepted(replies, everybody, self._advert)
        self._terms.check_enough(len(self._adverts))
        self._choosers = {place: [] for place in self._adverts}
        for place, advert in self._adverts.items():
            for other in self._there(advert):
                self._choosers[other].append(place)
        return self._passed_on()

    def shares(self, replies: Mapping[int, bytes]) -> dict[int, bytes]:
        """Take everybody's sealed shares; return to each party those that it is to hold."""
        self._enter("shares")
        boxes = self._accepted(replies, self._adverts.keys(), self._boxes)
        self._sharers = Places(boxes)
        self._terms.check_enough(len(boxes))
        self._sets = wire.bitmap(self._terms, self._sharers)
        held: dict[int, dict[int, bytes]] = {place: {} for place in self._adverts}
        for owner, row in boxes.items():
            for holder, box in row.items():
                held[holder][owner] = box
        return {
            place: self._message(Kind.HELD, place, self._sets, *self._entries(held[place], held[place]))
            for place in boxes
        }

    def masked(self, replies: Mapping[int, bytes]) -> dict[int, bytes]:
        """Take the masked numbers; return to each party whose numbers arrived."""
        self._enter("masked")
        signatures = self._accepted(replies, self._sharers, self._added)
        self._survivors = Places(signatures)
        self._terms.check_enough(len(self._survivors))
        survivors = wire.bitmap(self._terms, self._survivors)
        self._sets += survivors
        return {
            place: self._message(
                Kind.SURVIVORS, place, survivors, *self._entries(self._choosers[place], signatures)
            )
            for place in signatures
        }

    def confirmed(self, replies: Mapping[int, bytes]) -> dict[int, bytes]:
        """Take the signatures of the survivors; return to each party those of the ones that it chose."""
        self._enter("confirmed")
        signatures = self._accepted(replies, self._survivors, self._confirmation)
        self._confirmers = Places(signatures)
        return {
            place: self._message(
                Kind.CONFIRMATIONS, place, *self._entries(self._there(self._adverts[place]), signatures)
            )
            for place in signatures
        }

    def opened(self, replies: Mapping[int, bytes]) -> Opened:
        """Take the shares that open the sum; return it, or raise TooFew if they do not suffice for everybody.

        A wrong share of a masking key is noticed, because the key does not belong to the public one. A wrong
        share of a party's own mask or of an extra secret, or wrong masked numbers, cannot be told from right
        ones: the total is then wrong.
        """
        self._enter("opened")
        shares = self._accepted(replies, self._confirmers, self._revealed)
        secrets = self._recombined(shares)
        for place in self._sharers:
            if place in self._survivors:
                self._terms.ring.mask(self._total, secrets[place, SELF_MASK], -1)
            else:
                self._take_off_pairs(place, secrets[place, MASKING_KEY])
        revealed = {owner: value for (owner, secret), value in secrets.items() if secret >= EXTRA}
        return Opened(self._terms.ring.signed(self._total), tuple(sorted(self._survivors)), revealed)

    def _enter(self, name: str) -> None:
        if self._next != _PHASES.index(name):
            raise ProtocolError(f'The server of a secure sum was given answers for "{name}" out of turn.')
        self._next += 1

    def _accepted(
        self, replies: Mapping[int, bytes], asked: Collection[int], read: Callable[[int, bytes], T]
    ) -> dict[int, T]:
        """Return what the parties that were asked answered, in the order of their places; refuse the rest."""
        accepted = {}
        for place in sorted(replies):
            try:
                if place not in asked:
                    raise ProtocolError(f"Place {place} answered and was not asked: it had dropped out.")
                accepted[place] = read(place, replies[place])
            except ProtocolError as error:
                self.refused.setdefault(place, str(error))
        return accepted

    def _message(self, kind: Kind, place: int, *parts: bytes) -> bytes:
        return wire.message(self._terms, kind, place, *parts)

    def _advert(self, place: int, data: bytes) -> Advert:
        advert = wire.read_advert(self._terms, place, data)
        signed = wire.to_sign_advert(self._terms, advert)
        if not verified(self._terms.roster[place], signed, advert.signature):
            raise ProtocolError(f"The advert of place {place} is not signed by its identity key.")
        for key in (advert.masking, advert.sealing):
            self._probe.agreed(key, b"")  # a key with which nobody can agree would stop all neighbours
        return advert

    def _there(self, advert: Advert) -> list[int]:
        """Return the chosen ones that advertised, too."""
        return [other for other in advert.chosen.tolist() if other in self._adverts]

    def _neighbours(self, place: int) -> list[int]:
        return sorted({*self._there(self._adverts[place]), *self._choosers[place]})

    def _passed_on(self) -> dict[int, bytes]:
        there = wire.bitmap(self._terms, self._adverts)
        adverts = {place: advert.content + advert.signature for place, advert in self._adverts.items()}
        return {
            place: self._message(Kind.ADVERTS, place, there, *self._entries(self._neighbours(place), adverts))
            for place in adverts
        }

    def _entries(self, places: Iterable[int], contents: Mapping[int, bytes]) -> Iterator[bytes]:
        """Yield the entries of a list: the places that have content, each followed by it."""
        return (wire.written(self._terms, place) + contents[place] for place in places if place in contents)

    def _boxes(self, place: int, data: bytes) -> dict[int, bytes]:
        holders = self._there(self._adverts[place])
        return dict(zip(holders, wire.read_shares(self._terms, place, data, len(holders)), strict=True))

    def _added(self, place: int, data: bytes) -> bytes:
        signature, words = wire.read_masked(self._terms, place, data)
        signed = wire.to_sign_sharers(self._terms, place, self._sets)
        if not verified(self._terms.roster[place], signed, signature):
            raise ProtocolError(f"Place {place} signed others than it was told had shared their secrets.")
        np.add(self._total, words, out=self._total)
        return signature

    def _confirmation(self, place: int, data: bytes) -> bytes:
        signature = wire.read_confirmation(self._terms, place, data)
        signed = wire.to_sign_survivors(self._terms, place, self._sets)
        if not verified(self._terms.roster[place], signed, signature):
            raise ProtocolError(f"Place {place} signed other survivors than it was told of.")
        return signature

    def _revealed(self, place: int, data: bytes) -> dict[Asked, bytes]:
        owners = self._sharers.intersection(self._choosers[place])
        asked = self._terms.asked(owners, self._survivors)
        return dict(zip(asked, wire.read_revealed(self._terms, place, data, len(asked)), strict=True))

    def _recombined(self, shares: Mapping[int, Mapping[Asked, bytes]]) -> dict[Asked, bytes]:
        """Return the secret of each (owner, secret) that was asked for; all can be had before one is made."""
        positions = {owner: self._positions(owner, shares) for owner in sorted(self._sharers)}
        weights = {row: Weights.of(row) for row in set(positions.values())}
        secrets = {}
        for owner, secret in self._terms.asked(self._sharers, self._survivors):
            holders = self._adverts[owner].chosen[list(positions[owner])].tolist()
            try:
                parts = [shares[holder][owner, secret] for holder in holders]
                secrets[owner, secret] = weights[positions[owner]].combine(parts)
            except ProtocolError:
                raise ProtocolError(f"Shares of a secret of place {owner} do not fit together.") from None
        return secrets

    def _positions(self, owner: int, answered: Collection[int]) -> tuple[int, ...]:
        """Return the first holders of an owner's shares that answered, as many as the threshold."""
        needed = self._terms.neighbourhood.threshold
        positions = [h for h, holder in enumerate(self._adverts[owner].chosen.tolist()) if holder in answered]
        if len(positions) < needed:
            raise TooFew(
                f"{len(positions)} parties revealed shares of place {owner}, and {needed} are needed. "
                "Nothing was opened. Try again with more parties, or plan for more dropouts."
            )
        return tuple(positions[:needed])

    def _take_off_pairs(self, gone: int, private: bytes) -> None:
        """Remove the masks that survivors have with a party whose numbers never came."""
        pair = KeyPair.of(private)
        if pair.public != self._adverts[gone].masking:
            raise ProtocolError(f"The shares of place {gone} give another key than it advertised.")
        for other in self._survivors.intersection(self._neighbours(gone)):
            seed = pair.agreed(self._adverts[other].masking, wire.pair_context(self._terms, gone, other))
            self._terms.ring.mask(self._total, seed, -wire.sign(other, gone))
