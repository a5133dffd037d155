"""Whatever a party or the server sends: a ProtocolError or a refusal, and never anything else."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.crypto import sum_wire as wire
from cofactor.crypto.sum_server import Opened, Server
from cofactor.crypto.sum_wire import Kind
from cofactor.errors import ProtocolError, TooFew
from tests.crypto.making import PHASES, Play, advert_of, identity, make_terms


def six() -> Play:
    """Six parties that all choose each other; three shares open a secret, four must be left."""
    return Play(make_terms(6, threshold=3, fewest=4))


@pytest.mark.parametrize(("due", "asked"), [*permutations(PHASES, 2)])
def test_phases_are_answered_once_and_in_order(due: str, asked: str) -> None:
    play = six().until(due)
    with pytest.raises(ProtocolError, match=f'asked to "{asked}" and answers "{due}"'):
        play.ask(asked, 0, play.questions[0])
    play.step(due)
    assert play.stopped == {}


@pytest.mark.parametrize("phase", PHASES[1:])
def test_a_party_that_was_lied_to_answers_nothing_more(phase: str) -> None:
    play = six().until(phase)
    with pytest.raises(ProtocolError):
        play.ask(phase, 0, b"nonsense")
    for later in PHASES:
        with pytest.raises(ProtocolError, match="answers nothing more"):
            play.ask(later, 0, play.questions[0])


def test_the_server_takes_answers_in_order_and_once() -> None:
    server = six().server
    for take in (server.shares, server.masked, server.confirmed, server.opened):
        with pytest.raises(ProtocolError, match="out of turn"):
            take({})
    play = six().until("share")
    with pytest.raises(ProtocolError, match="out of turn"):
        play.server.adverts(play.replies["advertise"])


@settings(max_examples=40)
@given(st.sampled_from(PHASES[1:]), st.data())
def test_whatever_the_server_sends_a_party_answers_or_raises_a_protocol_error(
    phase: str, data: st.DataObject
) -> None:
    play = six().until(phase)
    message = bytearray(play.questions[0])
    for _ in range(data.draw(st.integers(1, 3))):
        message[data.draw(st.integers(0, len(message) - 1))] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.sampled_from([None, len(message) - 1, len(message) // 2, 42, 0]))
    try:
        play.ask(phase, 0, bytes(message[:cut]))
    except ProtocolError as error:
        told = str(error)
    else:
        told = ""
    assert told.isascii()
    assert "b'" not in told


def spoiled(fault: str, play: Play, phase: str) -> bytes:
    """Return what place 2 sends instead of its answer."""
    data = play.replies[phase][2]
    match fault:
        case "nothing":
            return b""
        case "cut off":
            return data[:-1]
        case "too long":
            return data + b"\0"
        case "another's":
            return play.replies[phase][3]
        case "of another phase":
            return data[:5] + b"\x0b" + data[6:]
    other = Play(make_terms(6, threshold=3, fewest=4, round=7)).until(phase)
    return other.answers(phase, other.questions)[2]


FAULTS = ("nothing", "cut off", "too long", "another's", "of another phase", "of another round")


def finish(play: Play, phase: str) -> Opened:
    """Give the server the answers to a phase, and play the rest without faults."""
    opened = play.give(phase)
    for later in PHASES[PHASES.index(phase) + 1 :]:
        opened = play.step(later)
    assert opened is not None
    np.testing.assert_array_equal(opened.total, play.plain_sum(opened.survivors))
    return opened


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_party_that_sends_nonsense_counts_as_dropped_out(phase: str, fault: str) -> None:
    play = six().until(phase)
    play.replies[phase] = play.answers(phase, play.questions)
    play.replies[phase][2] = spoiled(fault, play, phase)
    opened = finish(play, phase)
    assert {*play.server.refused} == {2}
    assert (2 in opened.survivors) == (phase in ("confirm", "unmask"))


@pytest.mark.parametrize("phase", ["advertise", "mask", "confirm"])
def test_a_bad_signature_counts_as_dropping_out(phase: str) -> None:
    play = six().until(phase)
    play.replies[phase] = play.answers(phase, play.questions)
    data = bytearray(play.replies[phase][2])
    data[42 if phase != "advertise" else -1] ^= 1
    play.replies[phase][2] = bytes(data)
    finish(play, phase)
    assert "signed" in play.server.refused[2]


def test_a_party_that_comes_back_after_it_dropped_out_is_refused() -> None:
    play = six().until("share")
    play.replies["share"] = play.answers("share", play.questions)
    late = play.replies["share"].pop(2)
    play.give("share")
    play.replies["mask"] = play.answers("mask", play.questions) | {2: late, 99: late}
    play.give("mask")
    assert {*play.server.refused} == {2, 99}
    assert "had dropped out" in play.server.refused[2]


def test_a_signed_key_with_which_nobody_can_agree_is_refused_by_the_server() -> None:
    play = six()
    play.replies["advertise"] = play.answers("advertise", play.questions)
    real = advert_of(play, 2)
    for masking, sealing in ((bytes(32), real.sealing), (real.masking, bytes(32))):
        weak = replace(real, masking=masking, sealing=sealing)
        signature = identity(2).sign(wire.to_sign_advert(play.terms, weak))
        server = Server(play.terms)
        bad = wire.message(play.terms, Kind.ADVERT, 2, weak.content, signature)
        assert 2 not in server.adverts(play.replies["advertise"] | {2: bad})
        assert "agree" in server.refused[2]


def test_a_wrong_share_of_a_masking_key_is_noticed() -> None:
    play = six().until("mask")
    play.step("mask", drop={5})
    play.step("confirm")
    play.replies["unmask"] = play.answers("unmask", play.questions)
    data = bytearray(play.replies["unmask"][1])
    data[-1] ^= 1
    play.replies["unmask"][1] = bytes(data)
    with pytest.raises(ProtocolError, match="place 5"):
        play.give("unmask")


def test_nothing_is_opened_when_one_party_more_keeps_its_shares_than_planned() -> None:
    play = Play(make_terms(6, threshold=4, fewest=5)).until("unmask")
    with pytest.raises(TooFew, match="3 parties revealed shares of place"):
        play.step("unmask", drop={3, 4})
    assert not np.array_equal(play.terms.ring.signed(play.server._total), play.plain_sum(range(6)))
