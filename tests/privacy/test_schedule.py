from dataclasses import replace
from typing import Any

import pytest

from cofactor.errors import ConfigError
from cofactor.privacy.answers import RandomizedResponse
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.mechanisms import Gaussian, Laplace, PoissonBinomial, SampledGaussian
from cofactor.privacy.schedule import Release, Schedule

ITEMS = Release(
    what="item gradients",
    mechanism=Gaussian(noise_multiplier=2.0),
    bound=Bound(size=2.5, norm="l2", unit="user"),
    dimension=40,
    times=3,
)
BIASES = Release(
    what="biases",
    mechanism=Laplace(noise_multiplier=6.0),
    bound=Bound(size=4.0, norm="l1", unit="user"),
    dimension=1,
)
SCHEDULE = Schedule(releases=(ITEMS, BIASES), rounds=5, parties=4)


def counts(schedule: Schedule, **settings: Any) -> list[int]:
    return [event.count for event in schedule.events(**settings)]


def test_parties_with_users_of_their_own_release_once_for_each_user() -> None:
    assert counts(SCHEDULE) == [15, 5]


def test_parties_that_share_users_all_release_for_each_user() -> None:
    assert counts(replace(SCHEDULE, shared_units=True)) == [60, 20]


def test_first_rounds_can_be_looked_at() -> None:
    assert counts(SCHEDULE, rounds=2) == [6, 2]


def test_events_carry_what_the_accountant_needs() -> None:
    first, second = SCHEDULE.events()
    assert (first.mechanism, first.bound, first.dimension) == (ITEMS.mechanism, ITEMS.bound, 40)
    assert (second.mechanism, second.bound, second.dimension) == (BIASES.mechanism, BIASES.bound, 1)
    assert first.what == "item gradients"


def test_noise_of_all_releases_is_scaled_alike() -> None:
    louder = SCHEDULE.scaled(3.0)
    assert [release.mechanism for release in louder.releases] == [
        Gaussian(noise_multiplier=6.0),
        Laplace(noise_multiplier=18.0),
    ]
    assert louder.rounds == SCHEDULE.rounds
    coins = PoissonBinomial(trials=4, theta=0.2, participants=9)
    assert coins.scaled(4.0).theta == pytest.approx(0.05)
    assert coins.scaled(0.5).theta == 0.25


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"releases": ()}, "a schedule needs at least one Release"),
    ({"rounds": 0}, "rounds must be at least 1"),
    ({"parties": 0}, "parties must be at least 1"),
    ({"users": 0}, "users must be at least 1"),
]


@pytest.mark.parametrize(("change", "message"), MISTAKES, ids=[str(change) for change, _ in MISTAKES])
def test_schedule_without_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(SCHEDULE, **change)


def test_release_needs_a_bound_in_the_norm_of_its_noise() -> None:
    with pytest.raises(ConfigError, match="Laplace needs a bound in l1, got one in l2"):
        replace(BIASES, bound=ITEMS.bound)


def test_release_from_a_sample_needs_the_bound_of_one_contribution() -> None:
    with pytest.raises(ConfigError, match='needs a bound for adjacency "empty"'):
        replace(
            ITEMS,
            mechanism=SampledGaussian(sampling=0.1),
            bound=Bound(size=5.0, norm="l2", unit="user", adjacency="replace"),
        )


@pytest.mark.parametrize("change", [{"dimension": 0}, {"times": 0}, {"times": 1.5}])
def test_release_of_nothing_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"^{next(iter(change))} must be"):
        replace(ITEMS, **change)


ONCE = replace(BIASES, rounds=1)


def test_release_of_some_rounds_counts_in_these_only() -> None:
    assert [ONCE.count(rounds) for rounds in (1, 2, 5)] == [1, 1, 1]
    assert [BIASES.count(rounds) for rounds in (1, 2, 5)] == [1, 2, 5]
    assert [replace(ITEMS, rounds=2).count(rounds) for rounds in (1, 2, 5)] == [3, 6, 6]


def test_events_count_a_release_in_its_own_rounds_only() -> None:
    schedule = replace(SCHEDULE, releases=(ITEMS, ONCE))
    assert counts(schedule) == [15, 1]
    assert counts(schedule, rounds=1) == [3, 1]
    assert counts(replace(schedule, shared_units=True)) == [60, 4]


def test_scaled_schedule_keeps_the_rounds_of_its_releases() -> None:
    assert replace(SCHEDULE, releases=(ITEMS, ONCE)).scaled(2.0).releases[1].rounds == 1


@pytest.mark.parametrize("rounds", [0, -1, 1.5, True])
def test_release_in_no_round_is_refused(rounds: Any) -> None:
    with pytest.raises(ConfigError, match=r"^rounds must be"):
        replace(BIASES, rounds=rounds)


ANSWER = RandomizedResponse(choices=4, epsilon=0.5)
BEFORE = Event(
    what="age, round 1",
    by="north",
    to="coordinator",
    mechanism=ANSWER,
    bound=ANSWER.bound,
    count=3,
    slack=1e-9,
)


def test_what_was_released_before_counts_as_often_as_it_was_and_is_not_scaled() -> None:
    schedule = SCHEDULE.with_fixed([BEFORE])
    for each in (schedule, schedule.scaled(5.0)):
        *_, event = each.events()
        assert event.once() == BEFORE.once()
        assert (event.count, event.slack) == (3, 1e-9)
        *_, early = each.events(1)
        assert early.count == 3
    assert schedule.scaled(5.0).releases[:-1] == SCHEDULE.scaled(5.0).releases
    assert schedule.without_fixed() == SCHEDULE
