"""What the channel makes of a wire that fails: no process is needed for that."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from cofactor.federation.declining import declined
from cofactor.federation.flare import Ended, FlareChannel, Patience

QUICK = Patience(deadline=1.0, ping_every=0.05, ping_patience=0.3, first_ping=0.1)


class Wire:
    """Parties that answer, are late, are gone, stall, or fail with words that must not get through."""

    def __init__(self) -> None:
        self.dead: set[str] = set()
        self.slow: set[str] = set()
        self.failing: set[str] = set()
        self.mute: set[str] = set()
        self.over = threading.Event()
        self.sent: list[str] = []
        self.reply = b""

    def send(self, party: str, data: bytes, seconds: float) -> bytes:
        self.sent.append(party)
        if party in self.failing:
            raise ValueError("rated 4.5 by Ann")
        until = time.monotonic() + seconds
        while party in self.dead | self.slow | self.mute:
            if self.over.is_set():
                raise Ended
            if time.monotonic() > until:
                raise TimeoutError
            time.sleep(0.01)
        return self.reply or data + party.encode()

    def ping(self, party: str, seconds: float) -> None:
        if party in self.dead:
            time.sleep(seconds)
            raise TimeoutError


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def channel(wire: Wire) -> Iterator[FlareChannel]:
    channel = FlareChannel(wire, ("north", "south"), patience=QUICK)
    yield channel
    wire.dead.clear()
    wire.slow.clear()
    channel.close()


def test_answers_come_back_by_party(channel: FlareChannel) -> None:
    told = channel.ask(1, {"north": b"a", "south": b"b"})
    assert told.by_party == {"north": b"anorth", "south": b"bsouth"}
    assert told.missing == {}


def test_dead_party_is_given_up_before_the_deadline_and_costs_little_later(
    channel: FlareChannel, wire: Wire
) -> None:
    wire.dead.add("south")
    began = time.monotonic()
    told = channel.ask(1, {"north": b"", "south": b""})
    assert told.missing == {"south": "showed no sign of life for 0.3 s"}
    assert time.monotonic() - began < 0.9
    began = time.monotonic()
    assert channel.ask(2, {"north": b"", "south": b""}).missing == {"south": "was not reached"}
    assert time.monotonic() - began < 0.25
    assert wire.sent.count("south") == 1


def test_party_that_only_stalled_is_asked_again(channel: FlareChannel, wire: Wire) -> None:
    wire.dead.add("south")
    channel.ask(1, {"south": b""})
    wire.dead.clear()
    channel.ask(2, {"south": b""})
    assert channel.ask(3, {"south": b"x"}).by_party == {"south": b"xsouth"}


def test_party_that_lives_and_is_late_is_waited_for_until_the_deadline(
    channel: FlareChannel, wire: Wire
) -> None:
    wire.slow.add("south")
    began = time.monotonic()
    assert channel.ask(1, {"south": b""}).missing == {"south": "did not answer within 1 s"}
    assert time.monotonic() - began > 0.9


def test_words_of_a_failure_do_not_get_through(channel: FlareChannel, wire: Wire) -> None:
    wire.failing.add("north")
    assert channel.ask(1, {"north": b""}).missing == {"north": "was not reached"}


def test_party_that_is_not_in_the_job_is_not_asked(channel: FlareChannel, wire: Wire) -> None:
    assert channel.ask(1, {"west": b""}).missing == {"west": "was not reached"}
    assert wire.sent == []


def test_party_that_declines_is_missing_with_our_words(channel: FlareChannel, wire: Wire) -> None:
    wire.reply = declined("too few", session="s", round=1, sender="north")
    told = channel.ask(1, {"north": b""})
    assert told.by_party == {}
    assert told.missing["north"].startswith("found that too few parties")


def test_end_of_the_job_ends_the_question(channel: FlareChannel, wire: Wire) -> None:
    wire.slow.add("south")
    threading.Timer(0.1, wire.over.set).start()
    with pytest.raises(Ended):
        channel.ask(1, {"north": b"", "south": b""})


def test_party_that_lives_and_never_answers_keeps_nobody_else_waiting(wire: Wire) -> None:
    channel = FlareChannel(wire, ("north", "south"), patience=replace(QUICK, deadline=30.0))
    wire.mute.add("south")
    wire.dead.add("south")
    channel.ask(1, {"south": b""})
    for round in range(1, 6):
        wire.dead.clear()  # a sign of life, and then none
        channel.ask(round, {"south": b""})
        time.sleep(0.05)
        wire.dead.add("south")
        assert set(channel.ask(round, {"north": b"", "south": b""}).by_party) == {"north"}
    assert wire.sent.count("south") == 2
    wire.over.set()
    channel.close()
