"""Memberships counted by sketches: who learns which keys, what is charged, and what comes out."""

import copy
import math
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from cofactor.cluster.estimates import deviation, sizes
from cofactor.cluster.method import NOWHERE, Integers
from cofactor.cluster.published_sketch import basic, published, published_registers, two_party
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
from cofactor.cluster.sketch_sizes import chosen, cost, published_local_clusters, usual_local_clusters
from cofactor.cluster.sketches import Sketches, _drawn_pair
from cofactor.cluster.sketching import drawn, registers
from cofactor.errors import ConfigError, ProtocolError, Refused, RunError
from cofactor.federation.messages import Message
from cofactor.privacy import bounding
from cofactor.privacy.coverage import assert_noise_covers
from cofactor.privacy.events import counted_once
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.schedule import Schedule
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.privacy.sketches import PartitionSketch
from cofactor.randomness import InsecureRandom, SecureRandom
from tests.cluster.counting import Counting, counting, drawn_cells, schedule_of
from tests.cluster.making import facts

METHOD: Any = Sketches(rows=64)
CLUSTERS = 3
KEY = b"k" * 32
Rows = NDArray[np.uint8]


def begun(parties: int = 3, users: int = 40, **more: Any) -> Counting:
    given = {"epsilon": 1.0, **more}
    return counting(METHOD, drawn_cells(parties, users, CLUSTERS), clusters=CLUSTERS, **given)


def clear_cells(users: int, parties: int = 2, clusters: int = CLUSTERS) -> list[Integers]:
    """Return clusters that mostly agree between all parties."""
    chance = np.random.default_rng(4)
    truth = chance.integers(clusters, size=users)
    stray = [chance.integers(clusters, size=users) for _ in range(parties)]
    return [np.where(chance.random(users) < 0.15, other, truth) for other in stray]


def table_of(cells: list[Integers], clusters: int = CLUSTERS) -> Integers:
    table = np.zeros((clusters,) * len(cells), np.int64)
    np.add.at(table, tuple(cells), 1)
    return table


# The protocol.


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


# What is promised.


def test_a_user_changes_the_registers_of_one_cluster_at_most() -> None:
    ids = [f"u{number}" for number in range(6)]

    def release(units: Any) -> Integers:
        return registers(KEY, ids, np.array(units, np.int64), CLUSTERS, 8)

    datasets = Datasets(draw=lambda chance: int(chance.integers(-1, CLUSTERS)), count=6, empty=NOWHERE)
    alone = Neighbours(units=(0, 1, 1, 1, 1, 1), which=0, other=NOWHERE)
    assert_bounded(release, bounding.MEMBER, datasets, worst_case=alone)


def test_phantoms_cover_all_registers_those_of_empty_clusters_too() -> None:
    ids = [f"u{number}" for number in range(6)]
    sketch = PartitionSketch(rows=4, phantoms=100, low=3, high=11)

    def release(units: Any) -> Integers:
        real = registers(KEY, ids, np.array(units, np.int64), CLUSTERS, sketch.rows)
        return sketch.noisy(bounding.registers(real), SecureRandom())

    datasets = Datasets(draw=lambda chance: int(chance.integers(-1, CLUSTERS)), count=6, empty=NOWHERE)
    assert_noise_covers(release, "empty", datasets)


@pytest.mark.parametrize("parties", [2, 4])
def test_releases_keep_the_budget_with_the_fewest_phantoms(parties: int) -> None:
    about = facts(users=20_000, widths=(2,) * parties, local_clusters=5)
    (release,) = Sketches().releases(about, epsilon=0.49, delta=5e-5)
    pairs = parties * (parties - 1) // 2
    sketch: Any = release.mechanism
    assert (release.times, release.joint, release.first, sketch.parties) == (pairs, True, 3, 2)
    assert 0.485 < cost(sketch, pairs, 5e-5) <= 0.49
    fewer = replace(sketch, phantoms=int(sketch.phantoms * 0.99))
    assert cost(fewer, pairs, 5e-5) > 0.49


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-12), (0.05, 1e-6), (8.0, 1e-4)])
def test_no_sketch_costs_more_than_it_may_by_the_accountant(epsilon: float, delta: float) -> None:
    # Where delta is tiny, the accountant has no distribution, and its bound is another than the quick one.
    sketch = chosen(rows=1024, pairs=3, users=1000, local_clusters=3, epsilon=epsilon, delta=delta)
    assert 0.9 * epsilon < cost(sketch, 3, delta) <= epsilon


def test_without_delta_no_number_of_phantoms_is_enough() -> None:
    with pytest.raises(Refused, match="no number of phantoms"):
        METHOD.releases(facts(), epsilon=1.0, delta=0.0)


def test_the_signal_grows_with_the_budget_and_warns_where_there_is_none() -> None:
    about = facts(users=2000, local_clusters=4)
    little, much = (schedule_of(METHOD, about, epsilon) for epsilon in (0.02, 5.0))
    assert METHOD.signal(about, sketch_of(little)) < 1 < METHOD.signal(about, sketch_of(much))
    (concern,) = METHOD.concerns(about, little)
    assert "next to nothing" in concern
    assert not METHOD.concerns(about, much)


def test_the_promise_names_who_may_not_collude_and_why_theorem_5_3_2_is_not_used() -> None:
    promise = METHOD.promise(facts())
    assert any("no party tells it a key" in each for each in promise.against)
    assert any("Theorem 5.3.2" in each for each in promise.covers)
    assert any("all pairs that it is in" in each.what for each in promise.assumptions)


def test_the_published_sketch_is_that_of_the_thesis_and_costs_more_than_it_claims() -> None:
    sketch = published(rows=4096, parties=2, epsilon=0.245, delta=2.5e-5)
    assert (sketch.phantoms, sketch.low) == (3401, 12)
    assert cost(sketch, 1, 5e-5) > 1.7
    ours = chosen(rows=4096, pairs=1, users=20_000, local_clusters=5, epsilon=0.49, delta=5e-5)
    assert cost(ours, 1, 5e-5) <= 0.49


# What comes out.


def test_simulated_registers_have_who_is_nowhere_at_the_other_party() -> None:
    sketch = PartitionSketch(rows=4096, phantoms=200, low=6, high=16)
    first = np.repeat([0, 1, NOWHERE], [3000, 1000, 500])
    second = np.repeat([0, NOWHERE, 1], [2000, 2000, 500])
    both = _drawn_pair(first, second, 2, sketch, InsecureRandom(0))
    for found, expected in zip(both, ([3000, 1000], [2000, 500]), strict=True):
        np.testing.assert_allclose(sizes(found, sketch), expected, rtol=0.15)


def test_the_protocol_and_its_simulation_are_equally_close_to_the_truth() -> None:
    cells, method = clear_cells(2000), Sketches(rows=512)
    truth, real, simulated = table_of(cells), [], []
    for seed in range(6):
        played = counting(method, cells, clusters=CLUSTERS, epsilon=4.0, random=InsecureRandom(seed)).run()
        real.append(played.counter.table(2000.0))
        args = (played.facts, played.homes[0].ids, cells, played.schedule, InsecureRandom(100 + seed), 2000.0)
        simulated.append(method.simulated(*args))
    errors = [np.abs(np.array(each) - truth).sum(axis=(1, 2)).mean() / 2000 for each in (real, simulated)]
    assert max(errors) < 0.2
    assert 0.4 < errors[0] / errors[1] < 2.5


@pytest.mark.parametrize(("parties", "most"), [(2, 0.06), (4, 0.3)])
def test_at_epsilon_1_tables_are_far_better_than_those_of_the_thesis(parties: int, most: float) -> None:
    users = 20_000
    cells = clear_cells(users, parties, 5)
    about = facts(users=users, widths=(2,) * parties, local_clusters=5)
    method = Sketches()
    schedule = Schedule(releases=method.releases(about, epsilon=0.49, delta=1 / users), rounds=3)
    ours = method.simulated(about, [], cells, schedule, InsecureRandom(1), float(users))
    assert np.abs(ours - table_of(cells, 5)).sum() / users < most
    sketch = published(rows=4096, parties=parties, epsilon=0.49 / parties, delta=1 / users / parties)
    random = InsecureRandom(2)
    theirs = [
        sketch.noisy(bounding.registers(each), random) for each in drawn(table_of(cells, 5), 4096, random)
    ]
    for table in (basic(theirs, sketch, users), two_party(theirs, sketch, users)):
        assert np.abs(table - table_of(cells, 5)).sum() / users > 2 * most


def test_published_registers_are_those_of_the_common_key_and_phantoms() -> None:
    sketch = published(rows=64, parties=2, epsilon=1.0, delta=1e-5)
    ids, cells = [f"u{number}" for number in range(9)], np.arange(9) % 3
    found = published_registers(sketch, KEY, ids, cells, 3, InsecureRandom(0))
    real = registers(KEY, ids, cells, 3, 64)
    assert np.all(found >= np.maximum(real, sketch.low))


@pytest.mark.parametrize("estimator", ["likelihood", "ties", "complements"])
@pytest.mark.parametrize("fit", ["proportional", "additive"])
@pytest.mark.parametrize("count", [None, 500.0, 0.0, -30.0])
def test_every_estimator_gives_possible_tables(estimator: Any, fit: Any, count: float | None) -> None:
    method = Sketches(rows=64, estimator=estimator, fit=fit)
    about = facts(users=500, widths=(1, 1, 1), local_clusters=CLUSTERS)
    schedule = Schedule(releases=method.releases(about, epsilon=1.0, delta=1e-6), rounds=3)
    found = method.simulated(about, [], drawn_cells(3, 500, CLUSTERS), schedule, InsecureRandom(0), count)
    assert found.shape == about.grid
    assert found.min() >= 0
    assert found.sum() == pytest.approx(max(500.0 if count is None else count, 0.0))


# How many local clusters.


def test_the_published_rule_is_that_of_theorem_5_3_3() -> None:
    numbers: dict[str, Any] = {
        "users": 20_000,
        "clusters": 5,
        "epsilon": 0.245,
        "delta": 2.5e-5,
        "rows": 4096,
    }
    found = published_local_clusters(parties=2, **numbers)

    def noise(many: int) -> float:
        seen = 1.04 * 20_000 * (1 - 1 / many**2) / 64
        return seen + 4 * 1.04 * 2 * (many - 1) * math.sqrt(math.log(1 / 2.5e-5)) / 0.245

    assert 2 * noise(found) >= 20_000 / found**2
    assert 2 * noise(found - 1) < 20_000 / (found - 1) ** 2
    assert published_local_clusters(parties=2, spread=0.649, **numbers) >= found


def test_as_many_local_clusters_as_wanted_are_usual_unless_noise_would_drown_them() -> None:
    numbers: dict[str, Any] = {"clusters": 16, "parties": 2, "epsilon": 2.0, "delta": 1e-6}
    assert usual_local_clusters(users=100_000, rows=4096, **numbers) == 16
    fewer = usual_local_clusters(users=100_000, rows=256, **numbers)
    sketch = chosen(rows=256, pairs=1, users=100_000, local_clusters=16, epsilon=2.0, delta=1e-6)
    assert 2 * deviation(sketch, 100_000, fewer) >= 100_000 / fewer**2
    assert 2 * deviation(sketch, 100_000, fewer - 1) < 100_000 / (fewer - 1) ** 2
    # Four local clusters at two parties make sixteen combinations: there are never fewer.
    assert usual_local_clusters(users=100, rows=64, **{**numbers, "epsilon": 0.05}) == 4


def test_settings_that_make_no_sense_are_refused() -> None:
    mistakes: list[dict[str, Any]] = [{"rows": 0}, {"share": 1.0}, {"estimator": "guess"}, {"fit": "tight"}]
    for wrong in mistakes:
        with pytest.raises(ConfigError):
            Sketches(**wrong)


def test_users_who_are_nowhere_at_a_party_are_in_no_cell() -> None:
    """A quarter of the users has no cluster at the second party; the worst of 40 runs was 0.09."""
    chance, known = np.random.default_rng(4), facts(users=20_000, local_clusters=5)
    kinds = chance.integers(0, 5, 20_000)
    first, second = kinds, np.where(chance.random(20_000) < 0.75, (kinds + 1) % 5, NOWHERE)
    method = Sketches()
    schedule = schedule_of(method, known, 0.49)
    table = method.simulated(known, [], [first, second], schedule, InsecureRandom(1), 20_000.0)
    true = np.zeros((5, 5))
    np.add.at(true, (first[second >= 0], second[second >= 0]), 1.0)
    assert np.abs(table - true).sum() / true.sum() < 0.15


def test_sketches_promise_nothing_against_all_others() -> None:
    assert not Sketches().alone(facts())
