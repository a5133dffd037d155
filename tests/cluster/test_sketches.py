"""Memberships counted by sketches: who learns which keys, what is charged, and what comes out."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.cluster.estimates import deviation, sizes
from cofactor.cluster.method import NOWHERE, Integers
from cofactor.cluster.published_sketch import basic, published, published_registers, two_party
from cofactor.cluster.sketch_halves import (
    sketch_of,
)
from cofactor.cluster.sketch_sizes import chosen, cost, published_local_clusters, usual_local_clusters
from cofactor.cluster.sketches import Sketches, _drawn_pair
from cofactor.cluster.sketching import drawn, registers
from cofactor.errors import ConfigError, Refused
from cofactor.privacy import bounding
from cofactor.privacy.coverage import assert_noise_covers
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.schedule import Schedule
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.privacy.sketches import PartitionSketch
from cofactor.randomness import InsecureRandom, SecureRandom
from tests.cluster.counting import counting, drawn_cells, schedule_of
from tests.cluster.making import facts
from tests.cluster.sketch_making import CLUSTERS, KEY, METHOD, clear_cells, table_of

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
