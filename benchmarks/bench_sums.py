"""Secure sums: one party's masks against flwr's, a whole sum, and how a party's cost grows with their number.

The whole sum is played in one process: 100 parties, 10 of which drop out after they have shared their
secrets, when it costs most. What grows is the cost of one party of 100, 1,000 and 10,000 in a sum of 10,000
values, over all phases, keys included, with a tenth of the parties lost. It is a real `Client`, and so are
those whose adverts and sealed shares it gets. The server's letters are put together here, and what others
would sign later is signed here with their identities: not all 10,000 have to play on. The peer of these rows
is what one of 100 parties costs, grown like log n.
"""

import time
from collections.abc import Callable, Collection, Iterable
from math import log
from secrets import token_bytes

import numpy as np

from benchmarks.bench import Row, ask_peer, cpu_best, faster
from cofactor.crypto import sum_wire as wire
from cofactor.crypto.keys import Identity
from cofactor.crypto.neighbours import Neighbourhood
from cofactor.crypto.ring import Ring
from cofactor.crypto.sum_client import Client
from cofactor.crypto.sum_server import Server
from cofactor.crypto.sum_terms import Terms
from cofactor.crypto.sum_wire import Kind
from cofactor.privacy.layers import Layers

FLWR = "flwr==1.41.0"
VALUES = 200_000
NEIGHBOURS = 20
RING = Ring(32)
DROPOUT = COLLUDING = 0.1
FEW_VALUES = 10_000
WATCHED = 5
"""Of so many parties the cheapest is reported."""


def rows() -> list[Row]:
    return [_masking(), _whole_sum(), *_growth()]


def _masking() -> Row:
    values = np.arange(VALUES)
    seeds = [token_bytes(32) for _ in range(NEIGHBOURS)]

    def masked() -> None:
        words = RING.reduced(values)
        for number, seed in enumerate(seeds):
            RING.mask(words, seed, 1 if number % 2 else -1)

    best = cpu_best(masked, 50)
    peer = ask_peer("flwr", [FLWR], "flwr_masks.py", VALUES, NEIGHBOURS, 20)["seconds"]
    name = f"masks, {VALUES:,} values, {NEIGHBOURS} neighbours"
    return faster(name, ours=1e3 * best, peer=1e3 * peer, peer_name=FLWR.replace("==", " "), unit="CPU ms")


def _whole_sum() -> Row:
    identities, terms = _parties(100, VALUES)
    values = np.random.default_rng(0).integers(-(2**24), 2**24, (100, VALUES))
    seconds = cpu_best(lambda: _play(identities, terms, values, gone=range(0, 100, 10)), 2)
    name = f"secure sum, 100 parties x {VALUES:,}"
    return Row(name, seconds, 20.0, "limit", 20.0 / seconds, "CPU s")


def _play(identities: list[Identity], terms: Terms, values: np.ndarray, gone: Collection[int]) -> None:
    clients = [Client(terms, place, identity) for place, identity in enumerate(identities)]
    server = Server(terms)
    asked = server.adverts({place: client.advertise() for place, client in enumerate(clients)})
    asked = server.shares({place: clients[place].share(asked[place], _secrets(terms)) for place in asked})
    left = [place for place in asked if place not in gone]
    asked = server.masked({place: clients[place].mask(asked[place], values[place]) for place in left})
    asked = server.confirmed({place: clients[place].confirm(asked[place]) for place in asked})
    opened = server.opened({place: clients[place].unmask(asked[place]) for place in asked})
    if not np.array_equal(opened.total, values[left].sum(axis=0)):
        raise RuntimeError("the secure sum is wrong")


def _growth() -> list[Row]:
    costs = {parties: _one_party(parties) for parties in (100, 1_000, 10_000)}
    units = ("CPU ms", "kB")
    return [
        Row(f"one of {parties:,} parties, {unit}", own, first, "log n", first / own, unit)
        for parties, cost in costs.items()
        for own, unit, first in zip(cost, units, _grown(costs[100], parties), strict=True)
    ]


def _grown(cost: tuple[float, float], parties: int) -> list[float]:
    return [figure * log(parties) / log(100) for figure in cost]


def _parties(parties: int, length: int) -> tuple[list[Identity], Terms]:
    who = Neighbourhood.of(parties, dropout=DROPOUT, colluding=COLLUDING)
    identities = [Identity.generate() for _ in range(parties)]
    terms = Terms(
        session=token_bytes(8).hex(),
        round=0,
        roster=tuple(identity.public for identity in identities),
        neighbourhood=who,
        ring=RING,
        length=length,
        grid=Layers(parties=parties, fewest=who.fewest, colluding=who.colluding).grid,
    )
    return identities, terms


def _secrets(terms: Terms) -> list[bytes]:
    return [token_bytes(32) for _ in range(terms.secrets)]


def _one_party(parties: int) -> tuple[float, float]:
    """Return the cheapest watched party's CPU milliseconds, and the kilobytes that it sends and receives."""
    around = _Around(*_parties(parties, FEW_VALUES))
    watched = [around.watch(place) for place in range(WATCHED)]
    seconds, size = (min(figures) for figures in zip(*watched, strict=True))
    return 1e3 * seconds, 1e-3 * size


class _Around:
    """One sum as single parties see it: what the server would tell them."""

    def __init__(self, identities: list[Identity], terms: Terms) -> None:
        self._identities, self._terms = identities, terms
        self._clients = [Client(terms, place, identity) for place, identity in enumerate(identities)]
        letters = [client.advertise() for client in self._clients]
        self._adverts = [wire.read_advert(terms, place, letter) for place, letter in enumerate(letters)]
        self._choosers: list[list[int]] = [[] for _ in identities]
        for place, advert in enumerate(self._adverts):
            for other in advert.chosen.tolist():
                self._choosers[other].append(place)
        self._shares: dict[int, _Step] = {}
        self._everybody = wire.bitmap(terms, range(terms.parties))
        self._left = range(terms.neighbourhood.fewest)
        self._survivors = wire.bitmap(terms, self._left)

    def watch(self, place: int) -> tuple[float, int]:
        """Play all phases of one party; return its CPU seconds and the bytes that it sends and receives."""
        client, values = self._clients[place], np.arange(FEW_VALUES)
        steps = [
            _Step(lambda _: Client(self._terms, place, self._identities[place]).advertise(), b""),
            self._shared(place),
            _Step(lambda data: client.mask(data, values), self._held(place)),
            _Step(client.confirm, self._who_survived(place)),
            _Step(client.unmask, self._who_confirmed(place)),
        ]
        return sum(step.seconds for step in steps), sum(step.size for step in steps)

    def _shared(self, place: int) -> "_Step":
        """Let a party share its secrets; it does so once."""
        if place not in self._shares:
            secrets = _secrets(self._terms)
            share = self._clients[place].share
            self._shares[place] = _Step(lambda data: share(data, secrets), self._neighbours(place))
        return self._shares[place]

    def _neighbours(self, place: int) -> bytes:
        others = {*self._adverts[place].chosen.tolist(), *self._choosers[place]}
        adverts = {other: self._adverts[other].content + self._adverts[other].signature for other in others}
        return self._letter(Kind.ADVERTS, place, self._everybody, adverts)

    def _held(self, place: int) -> bytes:
        boxes = {}
        for owner in self._choosers[place]:
            chosen = self._adverts[owner].chosen.tolist()
            answer = self._shared(owner).answer
            row = wire.read_shares(self._terms, owner, answer, len(chosen))
            boxes[owner] = row[chosen.index(place)]
        return self._letter(Kind.HELD, place, self._everybody, boxes)

    def _who_survived(self, place: int) -> bytes:
        signed = {
            other: wire.to_sign_sharers(self._terms, other, self._everybody)
            for other in self._choosers[place]
        }
        return self._letter(Kind.SURVIVORS, place, self._survivors, self._signatures(signed))

    def _who_confirmed(self, place: int) -> bytes:
        sets = self._everybody + self._survivors
        chosen = self._adverts[place].chosen.tolist()
        signed = {other: wire.to_sign_survivors(self._terms, other, sets) for other in chosen}
        return self._letter(Kind.CONFIRMATIONS, place, b"", self._signatures(signed))

    def _signatures(self, signed: dict[int, bytes]) -> dict[int, bytes]:
        return {
            other: self._identities[other].sign(data) for other, data in signed.items() if other in self._left
        }

    def _letter(self, kind: Kind, place: int, start: bytes, contents: dict[int, bytes]) -> bytes:
        entries: Iterable[bytes] = (
            wire.written(self._terms, other) + contents[other] for other in sorted(contents)
        )
        return wire.message(self._terms, kind, place, start, *entries)


class _Step:
    """One answer of a party, timed."""

    def __init__(self, answer: Callable[[bytes], bytes], letter: bytes) -> None:
        start = time.process_time()
        self.answer = answer(letter)
        self.seconds = time.process_time() - start
        self.size = len(letter) + len(self.answer)
