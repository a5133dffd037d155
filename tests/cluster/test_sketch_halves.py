"""Counting by sketches, message by message: parties and coordinators that keep to it, or do not."""

import copy
import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cofactor.cluster.method import NOWHERE
from cofactor.cluster.register_law import RegisterLaw
from cofactor.cluster.sketch_halves import (
    SKETCHES,
    OfferSketchKey,
    SketchCounter,
    SketchKeys,
    SketchRegisters,
    _context,
    _to_sign,
    sketch_of,
)
from cofactor.cluster.sketches import Sketches
from cofactor.cluster.sketching import registers
from cofactor.errors import ProtocolError, Refused, RunError
from cofactor.federation.messages import Message
from cofactor.privacy import bounding
from cofactor.privacy.events import counted_once
from tests.cluster.counting import Counting, counting
from tests.cluster.sketch_making import CLUSTERS, METHOD, Rows, begun, clear_cells, table_of


@pytest.mark.parametrize("parties", [2, 4])
def test_every_two_parties_send_registers_under_a_key_of_their_own(parties: int) -> None:
    played = begun(parties).run()
    sketch, secrets = sketch_of(played.schedule), []
    for one, other in played.facts.pairs:
        found = played.counter._pair(one, other)
        keys = [played.members[place]._pair for place in (one, other)]
        context = played.members[one]._home.session, (one, other)
        secret = keys[0].agreed(keys[1].public, _context(*context))
        assert secret == keys[1].agreed(keys[0].public, _context(*context))
        secrets.append(secret)
        for place, sent in zip((one, other), found, strict=True):
            home = played.homes[place]
            real = registers(secret, home.ids, home.cells, CLUSTERS, sketch.rows)
            assert np.all(sent >= np.clip(real, sketch.low, sketch.high))
            np.testing.assert_array_equal(sent, np.clip(sent, sketch.low, sketch.high))
    assert len(set(secrets)) == len(played.facts.pairs)


def test_the_table_of_a_session_is_close_to_the_truth() -> None:
    cells = clear_cells(3000)
    played = counting(Sketches(rows=1024), cells, clusters=CLUSTERS, epsilon=4.0).run()
    found = played.counter.table(3000.0)
    assert found.shape == (3, 3)
    assert found.sum() == pytest.approx(3000)
    assert np.abs(found - table_of(cells)).sum() / 3000 < 0.25


def test_everybody_charges_the_sketches_of_all_pairs_and_they_count_once() -> None:
    played = begun(4).run()
    events = played.events()
    assert {event.by for event in events} == set(played.facts.parties)
    for event in events:
        assert (event.joint, event.count, event.bound) == (True, 6, bounding.MEMBER)
        assert event.mechanism == sketch_of(played.schedule)
        assert event.what == f"{SKETCHES}, round 3"
    (once,) = counted_once(events)
    assert once.count == 6
    assert (once.mechanism, once.count, once.dimension) == (
        (planned := played.schedule.events()[0]).mechanism,
        planned.count,
        planned.dimension,
    )


def test_keys_are_public_and_registers_noisy() -> None:
    played = begun(2).run()
    assert played.protections(2) == {"public"}
    assert played.protections(3) == {"noise"}


@pytest.mark.parametrize("users", [1, 60])
def test_what_a_party_sends_of_empty_clusters_has_the_law_of_its_phantoms(users: int) -> None:
    """Fails by chance less than once in ten million runs."""
    nobody = [np.full(users, NOWHERE)] * 2
    played = counting(Sketches(rows=4096), nobody, clusters=CLUSTERS, epsilon=1.0).run()
    sketch = sketch_of(played.schedule)
    expected = RegisterLaw(sketch).one(np.array(float(sketch.phantoms)))[0]
    for sent in played.counter._pair(0, 1):
        seen = np.bincount(sent.reshape(-1) - sketch.low, minlength=len(expected))
        often = expected * sent.size >= 20
        wanted = np.append(expected[often], expected[~often].sum()) * sent.size
        found = np.append(seen[often], seen[~often].sum())
        statistic = ((found - wanted) ** 2 / np.maximum(wanted, 1e-9)).sum()
        assert stats.chi2.sf(statistic, often.sum()) > 1e-8


def test_phantoms_of_two_parties_and_of_two_clusters_are_independent() -> None:
    """Fails by chance less than once in ten million runs: ties are within six deviations."""
    nobody = [np.full(5, NOWHERE)] * 2
    played = counting(Sketches(rows=4096), nobody, clusters=CLUSTERS, epsilon=1.0).run()
    first, second = played.counter._pair(0, 1)
    law = RegisterLaw(sketch := sketch_of(played.schedule))
    alike = float((law.one(np.array(float(sketch.phantoms)))[0] ** 2).sum())
    for one, other in (
        (first[:, 0], second[:, 0]),
        (first[:, 0], first[:, 1]),
        (first[1:, 0], first[:-1, 0]),
    ):
        assert abs(np.mean(one == other) - alike) < 6 * math.sqrt(alike / 4000)


# A coordinator that does not keep to it.


def forged(change: Callable[[Rows], Rows]) -> Callable[[int, Message], Message]:
    def between(round: int, question: Message) -> Message:
        return SketchKeys(keys=change(question.keys.copy())) if isinstance(question, SketchKeys) else question

    return between


def with_other_key(rows: Rows) -> Rows:
    rows[0, :32] = np.arange(32)
    return rows


def with_other_signature(rows: Rows) -> Rows:
    rows[1, -1] ^= 1
    return rows


@pytest.mark.parametrize(
    "change",
    [
        with_other_key,
        with_other_signature,
        lambda rows: rows[::-1].copy(),
        lambda rows: np.repeat(rows[:1], len(rows), axis=0),
        np.zeros_like,
    ],
)
def test_forged_and_reordered_keys_are_refused_and_nothing_is_charged(change: Any) -> None:
    played = begun(2)
    with pytest.raises(ProtocolError, match="has not signed"):
        played.run(between=forged(change))
    assert not played.events()


@pytest.mark.parametrize(
    "change", [lambda rows: rows[:1], lambda rows: rows[:, :-1], lambda rows: rows.astype(np.int64)]
)
def test_missing_and_malformed_keys_are_refused(change: Any) -> None:
    played = begun(2)
    with pytest.raises(RunError, match="sent keys"):
        played.run(between=forged(change))
    assert not played.events()


def offered(played: Counting, place: int) -> Rows:
    played.homes[place].door.begin(2)
    reply = played.members[place].answer(2, OfferSketchKey())
    return np.asarray(reply.keys)


def offered_by_all(played: Counting) -> Rows:
    return np.concatenate([offered(played, place) for place in range(len(played.homes))])


def test_keys_signed_for_another_session_are_refused() -> None:
    played = begun(2)
    rows = offered_by_all(played)
    home = played.homes[0]
    data = _to_sign("another", home.facts, 0, rows[0, :32].tobytes())
    rows[0, 32:] = np.frombuffer(home.identity.sign(data), np.uint8)
    played.homes[1].door.begin(3)
    with pytest.raises(ProtocolError, match="party 0 has not signed"):
        played.members[1].answer(3, SketchKeys(keys=rows))


def test_a_key_signed_for_another_place_is_refused() -> None:
    played = begun(2)
    rows = offered_by_all(played)
    home = played.homes[0]
    data = _to_sign(home.session, home.facts, 1, rows[0, :32].tobytes())
    rows[0, 32:] = np.frombuffer(home.identity.sign(data), np.uint8)
    played.homes[1].door.begin(3)
    with pytest.raises(ProtocolError, match="party 0 has not signed"):
        played.members[1].answer(3, SketchKeys(keys=rows))


def test_a_party_that_offers_the_key_of_another_does_not_get_its_secret() -> None:
    played = begun(3)
    rows = offered_by_all(played)
    thief, key = played.homes[2], rows[0, :32].tobytes()
    rows[2, :32] = rows[0, :32]
    rows[2, 32:] = np.frombuffer(thief.identity.sign(_to_sign(thief.session, thief.facts, 2, key)), np.uint8)
    with_first, with_thief = played.members[1]._agreed(SketchKeys(keys=rows))
    assert with_first != with_thief


def test_an_own_key_of_earlier_is_noticed() -> None:
    played = begun(2)
    rows = offered_by_all(played)
    again: Any = METHOD.member(played.homes[1])
    again._next = 3
    played.homes[1].door.begin(3)
    with pytest.raises(ProtocolError, match="its own key came back changed"):
        again.answer(3, SketchKeys(keys=rows))


def test_a_party_that_nobody_knows_is_refused() -> None:
    played = begun(2)
    rows = offered_by_all(played)
    member: Any = played.members[1]
    member._home = replace(member._home, roster={"party 1": member._home.roster["party 1"]})
    played.homes[1].door.begin(3)
    with pytest.raises(ProtocolError, match="party 0 has not signed"):
        member.answer(3, SketchKeys(keys=rows))


def test_rounds_come_in_their_order_and_each_once() -> None:
    played = begun(2)
    member: Any = played.members[0]
    played.homes[0].door.begin(3)
    with pytest.raises(RunError, match="round 3 of counting cannot be now"):
        member.answer(3, SketchKeys(keys=np.zeros((2, 96), np.uint8)))
    offered(played, 0)
    with pytest.raises(RunError, match="round 2 of counting cannot be now"):
        member.answer(2, OfferSketchKey())
    with pytest.raises(RunError, match="OfferSketchKey came where SketchKeys"):
        member.answer(3, OfferSketchKey())
    with pytest.raises(RunError, match="cannot be now"):
        member.answer(3, SketchKeys(keys=np.zeros((2, 96), np.uint8)))
    assert not played.events()


def test_keys_are_neither_copied_nor_pickled_nor_shown() -> None:
    member: Any = begun(2).members[0]
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(Refused, match="holds keys"):
            way(member)
    assert member._pair.private.hex() not in repr(member)


# Parties that do not keep to it.


def counter_of(**more: Any) -> tuple[SketchCounter, Any]:
    played = begun(2, **more)
    return played.counter, played


@pytest.mark.parametrize("value", [0, 255])
def test_registers_that_cannot_be_are_refused(value: int) -> None:
    counter, played = counter_of()
    rows = sketch_of(played.schedule).rows
    sent = SketchRegisters(registers=np.full((1, rows, CLUSTERS), value, np.uint8))
    with pytest.raises(RunError, match="sent registers that are not from"):
        counter.take(3, dict.fromkeys(played.facts.parties, sent))
    wrong = SketchRegisters(registers=np.full((2, rows, CLUSTERS), 10, np.uint8))
    with pytest.raises(RunError, match="sent registers that are missing"):
        counter.take(3, dict.fromkeys(played.facts.parties, wrong))


def test_nothing_is_estimated_from_nothing() -> None:
    counter, _ = counter_of()
    with pytest.raises(RunError, match="no registers"):
        counter.table(10.0)
    with pytest.raises(RunError, match="keys are asked for"):
        counter.ask(3)
