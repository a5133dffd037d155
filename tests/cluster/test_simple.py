"""The plain ways to count. Statistical checks fail by chance less than once in ten million runs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cofactor.cluster.method import NOWHERE, Facts
from cofactor.cluster.simple import IndependentCounts, LocalMemberships
from cofactor.cluster.simple_halves import (
    MEMBERSHIPS,
    ONE_CLUSTER,
    SIZES,
    ClusterSizes,
    NoisyMemberships,
    TellMemberships,
    asked,
    estimated_table,
    memberships,
    oracle_in,
    sizes_of_clusters,
)
from cofactor.cluster.tables import pair_tables
from cofactor.errors import ConfigError, RunError
from cofactor.federation.channel import Failures
from cofactor.federation.messages import Message
from cofactor.privacy.answers import RandomizedResponse
from cofactor.privacy.budget import Budget
from cofactor.privacy.calibrate import calibrated
from cofactor.privacy.guarantee import Guarantee
from cofactor.privacy.laws import PolyaLaw
from cofactor.privacy.neighbours import Datasets, Neighbours
from cofactor.privacy.schedule import Schedule
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.randomness import InsecureRandom, SecureRandom
from cofactor.survey.oracles import GRR, OLH
from tests.cluster.counting import counting, drawn_cells, schedule_of
from tests.cluster.making import facts
from tests.privacy.making import assert_fits

CLUSTERS = 3
METHODS: list[Any] = [IndependentCounts(), LocalMemberships(), LocalMemberships(pairs=False)]
TRUTH = 40.0
"""An epsilon at which everybody tells the truth, but once in e^38 times."""


def named(method: Any) -> str:
    return type(method).__name__ + ("" if getattr(method, "pairs", True) else ", whole")


def about(parties: int, users: int, clusters: int = CLUSTERS) -> Facts:
    return facts(users=users, widths=(1,) * parties, local_clusters=clusters)


def answers_drawn(choices: int, epsilon: float) -> Schedule:
    """Return a schedule of answers with so many choices, whichever would be best."""
    method = LocalMemberships()
    (release,) = method.releases(about(2, 5, 9), epsilon=epsilon, delta=1e-6)
    mechanism = RandomizedResponse(choices=choices, epsilon=epsilon)
    return Schedule(releases=(replace(release, mechanism=mechanism, bound=mechanism.bound),), rounds=2)


# The sizes of clusters.


def test_without_noise_independent_counts_are_the_product_of_sizes() -> None:
    cells = [np.array([0, 0, 1, 2, 0, 1]), np.array([1, 1, 1, 1, 0, 0])]
    found = counting(IndependentCounts(), cells, clusters=CLUSTERS).run().counter.table(None)
    np.testing.assert_allclose(found, np.outer([3, 2, 1], [2, 4, 0]) / 6)


def test_sizes_are_told_with_the_noise_that_was_planned() -> None:
    cells = drawn_cells(2, 50, 400)
    played = counting(IndependentCounts(), cells, clusters=400, epsilon=0.5).run()
    for own, told in zip(cells, played.counter._told, strict=True):
        true = np.bincount(own[own >= 0], minlength=400)
        assert_fits(told - true, PolyaLaw(scale=2.0))
    assert played.protections(2) == {"noise"}


def test_a_simulation_of_sizes_has_their_noise() -> None:
    facts_, method = about(2, 400_000, 400), IndependentCounts()
    cells = [np.repeat(np.arange(400), 1000), np.full(400_000, 0)]
    cells[0][0] = NOWHERE
    schedule = schedule_of(method, facts_, 1.0)
    found = method.simulated(facts_, [], cells, schedule, SecureRandom(), None).sum(axis=1)
    # All sizes are moved together, to the sum that both parties' have in the mean.
    noise = found - np.bincount(cells[0][1:], minlength=400)
    drawn = np.rint(noise - np.median(noise)).astype(np.int64)
    assert 1.0 < drawn.std() < 1.9  # 1.39 in the mean
    assert np.abs(found.sum() - 400_000) < 2000


def test_a_user_is_in_one_cluster_of_a_party() -> None:
    facts_ = about(2, 6)

    def release(units: Any) -> Any:
        return sizes_of_clusters(np.array(units, np.int64), facts_)

    datasets = Datasets(draw=lambda chance: int(chance.integers(0, CLUSTERS)), count=6, empty=NOWHERE)
    worst = Neighbours(units=(0,) * 6, which=1, other=NOWHERE)
    assert_bounded(release, ONE_CLUSTER, datasets, worst_case=worst)


# Answers.


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("parties", [2, 3])
def test_where_everybody_tells_the_truth_tables_of_pairs_are_right(parties: int, pairs: bool) -> None:
    chance = np.random.default_rng(5)
    cells = [chance.integers(0, CLUSTERS, 200) for _ in range(parties)]
    cells[1] = cells[0]  # not independent
    method = LocalMemberships(pairs=pairs)
    played = counting(method, cells, clusters=CLUSTERS, epsilon=TRUTH).run()
    table = played.counter.table(None)
    assert table.shape == (CLUSTERS,) * parties
    for (first, second), true in zip(played.facts.pairs, pair_tables(cells, played.facts), strict=True):
        others = tuple(place for place in range(parties) if place not in (first, second))
        np.testing.assert_allclose(table.sum(axis=others), true, atol=1.0)


@pytest.mark.parametrize(("choices", "kind"), [(9, GRR), (3, OLH)])
def test_estimates_of_memberships_are_unbiased(choices: int, kind: type[Any]) -> None:
    facts_, epsilon, users = about(2, 40_000, 9), 1.5, 40_000
    oracle = oracle_in(answers_drawn(choices, epsilon), facts_)
    assert type(oracle) is kind
    cells = np.full(users, 4)
    prepared = asked(oracle, cells, SecureRandom())
    drawn = oracle.mechanism.noisy(prepared.bounded, SecureRandom())
    found = memberships(oracle, drawn, prepared.beside.get("seeds"))
    off = found.mean(axis=0) - (np.arange(9) == 4)
    assert np.all(np.abs(off) < 6 * found.std(axis=0) / np.sqrt(users))


@pytest.mark.parametrize("choices", [6, 3])
def test_products_of_answers_estimate_tables_of_pairs_without_bias(choices: int) -> None:
    facts_, chance = about(2, 60_000, 6), np.random.default_rng(2)
    first = chance.integers(0, 6, 60_000)
    cells = [first, (first + chance.integers(0, 2, 60_000)) % 6]
    oracle, told = oracle_in(answers_drawn(choices, 2.0), facts_), []
    for own in cells:
        prepared = asked(oracle, own, SecureRandom())
        drawn = oracle.mechanism.noisy(prepared.bounded, SecureRandom())
        told.append(memberships(oracle, drawn, prepared.beside.get("seeds")))
    off = told[0].T @ told[1] - pair_tables(cells, facts_)[0]
    each = np.einsum("ua,ub->uab", *told)
    assert np.all(np.abs(off) < 6 * each.std(axis=0) * np.sqrt(60_000))
    assert np.abs(off).max() > 10  # there is chance in it


@pytest.mark.parametrize("method", METHODS[1:], ids=named)
def test_a_simulation_makes_the_same_of_answers_as_the_protocol(method: LocalMemberships) -> None:
    cells = drawn_cells(3, 400, CLUSTERS)
    played = counting(method, cells, clusters=CLUSTERS, epsilon=2.0).run()
    told = estimated_table(played.counter._memberships, played.facts, by_pairs=method.pairs)
    np.testing.assert_array_equal(played.counter.table(None), told)
    first, second = (
        method.simulated(played.facts, [], cells, played.schedule, InsecureRandom(4), None) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    assert first.shape == (CLUSTERS,) * 3
    assert first.min() >= 0
    assert first.sum() == pytest.approx(400)


def test_users_who_are_nowhere_answer_all_the_same_by_lot() -> None:
    oracle = GRR(epsilon=TRUTH, buckets=5)
    told = asked(oracle, np.full(5000, NOWHERE), SecureRandom()).bounded.value
    # Each is a count of 5,000 with a chance of 1/5: within six deviations.
    assert np.abs(np.bincount(told, minlength=5) - 1000).max() < 6 * 28.3
    kept = asked(oracle, np.full(50, 3), SecureRandom()).bounded.value
    assert np.all(kept == 3)


def test_an_emptied_user_answers_no_more_telling_than_a_replaced_one() -> None:
    # By lot first: the chance of every answer is a mean of those of the five clusters, so within e^epsilon.
    mechanism = GRR(epsilon=1.0, buckets=5).mechanism
    truth = mechanism.truth
    other = (1 - truth) / 4
    by_lot = np.full(5, (truth + 4 * other) / 5)
    for cluster in range(5):
        chances = np.where(np.arange(5) == cluster, truth, other)
        assert np.abs(np.log(chances / by_lot)).max() <= 1.0


def test_clusters_are_hashed_where_there_are_many_and_epsilon_is_small() -> None:
    method = LocalMemberships()
    few, many = about(2, 100, 5), about(2, 100, 40)
    assert type(oracle_in(schedule_of(method, few, 0.5), few)) is GRR
    assert type(oracle_in(schedule_of(method, many, 0.5), many)) is OLH
    # Calibration makes epsilon another, and leaves what was chosen.
    scaled = schedule_of(method, many, 0.5).scaled(0.1)
    found = oracle_in(scaled, many)
    assert type(found) is OLH
    assert found.mechanism == scaled.releases[0].mechanism


def test_hashed_answers_travel_with_their_seeds() -> None:
    method = LocalMemberships()
    cells = drawn_cells(2, 300, 40)
    played = counting(method, cells, clusters=40, epsilon=1.0).run()
    assert played.counter.table(None).sum() == pytest.approx(300)
    assert played.protections(2) == {"noise"}


# All of them.


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_every_party_charges_its_own_release(method: Any) -> None:
    played = counting(method, drawn_cells(3, 20, CLUSTERS), clusters=CLUSTERS, epsilon=1.0).run()
    events = played.events()
    assert [event.by for event in events] == list(played.facts.parties)
    (planned,) = played.schedule.events()
    for event in events:
        assert not event.joint
        assert (event.mechanism, event.bound) == (planned.mechanism, planned.bound)
        assert event.what in (f"{SIZES}, round 2", f"{MEMBERSHIPS}, round 2")


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_releases_keep_a_budget_in_which_users_become_empty(method: Any) -> None:
    budget = Budget(epsilon=1.0, delta=1e-6, unit="user")
    schedule = calibrated(schedule_of(method, about(2, 100), 0.3), budget)
    found = Guarantee.of(schedule.events(), budget, against=("all",))
    assert found.holds
    assert found.epsilon == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_a_missing_party_ends_it_with_what_to_do(method: Any) -> None:
    played = counting(method, drawn_cells(2, 20, CLUSTERS), clusters=CLUSTERS, epsilon=1.0)
    with pytest.raises(RunError, match=r"party 1 did not answer.*stays charged.*when all are back"):
        played.run(failures=Failures(lost=frozenset({("party 1", 2)})))
    assert len(played.events()) == 2


@pytest.mark.parametrize("method", METHODS, ids=named)
def test_another_question_is_refused(method: Any) -> None:
    played = counting(method, drawn_cells(2, 20, CLUSTERS), clusters=CLUSTERS, epsilon=1.0)
    with pytest.raises(RunError, match="no question of counting"):
        played.members[0].answer(2, ClusterSizes(sizes=np.zeros(3, np.int64)))


WRONG: list[tuple[Any, Message]] = [
    (METHODS[0], ClusterSizes(sizes=np.zeros(4, np.int64))),
    (METHODS[0], ClusterSizes(sizes=np.zeros(3))),  # type: ignore[arg-type]
    (METHODS[0], TellMemberships()),
    (METHODS[1], NoisyMemberships(answers=np.zeros(19, np.int64), seeds=np.empty((0, 3), np.uint32))),
    (METHODS[1], NoisyMemberships(answers=np.full(20, 3), seeds=np.empty((0, 3), np.uint32))),
    (METHODS[1], NoisyMemberships(answers=np.full(20, -1), seeds=np.empty((0, 3), np.uint32))),
    (METHODS[1], TellMemberships()),
]


@pytest.mark.parametrize(("method", "reply"), WRONG)
def test_answers_that_cannot_be_are_refused(method: Any, reply: Message) -> None:
    counter = counting(method, drawn_cells(2, 20, CLUSTERS), clusters=CLUSTERS, epsilon=1.0).counter
    with pytest.raises(RunError):
        counter.take(2, {"party 0": reply, "party 1": reply})


def test_nothing_is_made_of_no_answers() -> None:
    for method in METHODS:
        counter = counting(method, drawn_cells(2, 20, CLUSTERS), clusters=CLUSTERS, epsilon=1.0).counter
        with pytest.raises(RunError, match="been told yet"):
            counter.table(None)


@pytest.mark.parametrize("kind", [IndependentCounts, LocalMemberships])
@pytest.mark.parametrize("share", [0.0, 1.0, "half"])
def test_shares_that_make_no_sense_are_refused(kind: Any, share: Any) -> None:
    with pytest.raises(ConfigError, match="share"):
        kind(share=share)


def test_what_one_should_know_beforehand() -> None:
    facts_ = about(2, 20_000, 5)
    schedule = schedule_of(IndependentCounts(), facts_, 1.0)
    assert "independent" in IndependentCounts().concerns(facts_, schedule)[0]
    method = LocalMemberships()
    (told,) = method.concerns(facts_, schedule_of(method, facts_, 0.25))
    assert "use SecureTable" in told
    assert method.concerns(facts_, schedule_of(method, facts_, 3.0)) == ()
    for each in METHODS:
        assert each.alone(facts_)
        assert "the coordinator" in each.promise(facts_).against


def test_who_is_nowhere_is_in_no_cluster() -> None:
    assert sizes_of_clusters(np.array([NOWHERE, 1]), about(2, 2)).value.tolist() == [0, 1, 0]
