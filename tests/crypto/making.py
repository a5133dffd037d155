"""Secure sums to test: parties, terms, and a play of all roles."""

from collections.abc import Collection, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cofactor.crypto import sum_wire as wire
from cofactor.crypto.keys import Identity
from cofactor.crypto.neighbours import Neighbourhood
from cofactor.crypto.ring import Ring
from cofactor.crypto.sum_client import Client
from cofactor.crypto.sum_server import Opened, Server
from cofactor.crypto.sum_terms import Terms
from cofactor.crypto.sum_wire import Advert
from cofactor.errors import ProtocolError

PHASES = ("advertise", "share", "mask", "confirm", "unmask")


@cache
def identity(place: int) -> Identity:
    return Identity.generate()


def make_terms(
    parties: int = 6,
    *,
    chosen: int | None = None,
    threshold: int | None = None,
    fewest: int | None = None,
    length: int = 3,
    bits: int = 20,
    grid: tuple[int, ...] = (),
    session: str = "spring",
    round: int = 0,
) -> Terms:
    chosen = parties - 1 if chosen is None else chosen
    threshold = chosen // 2 + 1 if threshold is None else threshold
    fewest = threshold + 1 if fewest is None else fewest
    return Terms(
        session=session,
        round=round,
        roster=tuple(identity(place).public for place in range(parties)),
        neighbourhood=Neighbourhood(
            parties=parties, chosen=chosen, threshold=threshold, fewest=fewest, colluding=0, active=True
        ),
        ring=Ring(bits),
        length=length,
        grid=grid,
    )


class Play:
    """All parties and the server of one secure sum in one process."""

    def __init__(
        self,
        terms: Terms,
        values: NDArray[np.int64] | None = None,
        graph: Sequence[tuple[int, ...]] | None = None,
    ) -> None:
        self.terms = terms
        rows = np.arange(terms.parties * terms.length, dtype=np.int64).reshape(terms.parties, -1)
        self.values = rows if values is None else values
        self.secrets = {p: [bytes([p, j] * 16) for j in range(terms.secrets)] for p in range(terms.parties)}
        self.clients = {p: Client(terms, p, identity(p)) for p in range(terms.parties)}
        for place, chosen in enumerate(graph or ()):
            self.clients[place]._chosen = chosen
        self.server = Server(terms)
        self.questions: dict[int, bytes] = dict.fromkeys(self.clients, b"")
        self.replies: dict[str, dict[int, bytes]] = {}
        self.stopped: dict[int, ProtocolError] = {}
        """Which parties stopped by themselves, and why."""

    def ask(self, phase: str, place: int, data: bytes) -> bytes:
        client = self.clients[place]
        match phase:
            case "advertise":
                return client.advertise()
            case "share":
                return client.share(data, self.secrets[place])
            case "mask":
                return client.mask(data, self.values[place])
            case "confirm":
                return client.confirm(data)
        return client.unmask(data)

    def answers(self, phase: str, questions: Mapping[int, bytes]) -> dict[int, bytes]:
        answers = {}
        for place, data in questions.items():
            try:
                answers[place] = self.ask(phase, place, data)
            except ProtocolError as error:
                self.stopped[place] = error
        return answers

    def step(self, phase: str, drop: Collection[int] = ()) -> Opened | None:
        """Ask all for a phase, lose the answers of some, and give the rest to the server."""
        asked = {place: data for place, data in self.questions.items() if place not in drop}
        self.replies[phase] = self.answers(phase, asked)
        return self.give(phase)

    def give(self, phase: str) -> Opened | None:
        replies = self.replies[phase]
        match phase:
            case "advertise":
                self.questions = self.server.adverts(replies)
            case "share":
                self.questions = self.server.shares(replies)
            case "mask":
                self.questions = self.server.masked(replies)
            case "confirm":
                self.questions = self.server.confirmed(replies)
            case _:
                return self.server.opened(replies)
        return None

    def until(self, phase: str) -> "Play":
        """Play all phases before this one, without faults."""
        for earlier in PHASES[: PHASES.index(phase)]:
            self.step(earlier)
        return self

    def run(self, drops: Sequence[Collection[int]] = ((),) * 5) -> Opened:
        opened = None
        for phase, drop in zip(PHASES, drops, strict=True):
            opened = self.step(phase, drop)
        assert opened is not None
        return opened

    def plain_sum(self, survivors: Collection[int]) -> NDArray[np.int64]:
        """What a sum without any protection gives, in the ring."""
        half = 1 << (self.terms.ring.bits - 1)
        total = [sum(int(self.values[p, i]) for p in survivors) for i in range(self.terms.length)]
        return np.array([(number + half) % (2 * half) - half for number in total], np.int64)


def circle(parties: int, chosen: int) -> list[tuple[int, ...]]:
    """A graph in which everybody chooses the next ones."""
    return [tuple(sorted((p + i) % parties for i in range(1, chosen + 1))) for p in range(parties)]


def advert_of(play: Play, place: int) -> Advert:
    """The advert that a place sent."""
    return wire.read_advert(play.terms, place, play.replies["advertise"][place])
