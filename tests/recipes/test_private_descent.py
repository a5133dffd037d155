import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.errors import ConfigError, DataError
from cofactor.factors.simd import cells
from cofactor.privacy.budget import Unit
from cofactor.privacy.coverage import assert_noise_covers
from cofactor.privacy.events import Event
from cofactor.privacy.mechanisms import Gaussian, Laplace, SampledGaussian
from cofactor.privacy.sensitivity import assert_bounded
from cofactor.randomness import InsecureRandom, Random, SecureRandom
from cofactor.recipes.clipping import Clipping, EmbeddingClipping, GradientClipping
from cofactor.recipes.private_descent import Gradients, PrivateDescent
from tests.recipes.descents import (
    CLIPPINGS,
    FACTORS,
    HIGHEST,
    ITEMS,
    UNITS,
    USERS,
    by_user,
    datasets,
    grouped,
    lowest_for,
    party_of,
    random_party,
    random_ratings,
    worst_case,
)


def rescaled(sums: Gradients, party: PrivateDescent, both: bool) -> NDArray[np.float64]:
    """Return all sums in the coordinates in which the accountant is told their bound."""
    found = party.reach(both=both)
    parts = [sums.items / found.items]
    if both:
        assert sums.users is not None
        assert found.users is not None
        parts.append(sums.users / found.users)
    return np.concatenate(parts)


@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("mechanism", [None, Gaussian(noise_multiplier=300.0)])
def test_one_unit_changes_the_sums_by_the_bound_and_no_more(
    clipping: Clipping, unit: Unit, both: bool, mechanism: Gaussian | None
) -> None:
    def release(units: tuple[Any, ...]) -> NDArray[np.float64]:
        party = party_of(by_user(units, unit), clipping, unit)
        return rescaled(party.sums(both=both, mechanism=mechanism), party, both)

    bound = party_of([[]] * USERS, clipping, unit).reach(both=both).bound
    # Coarse steps, for much noise, only ever shorten a contribution: no worst case is reached.
    worst = worst_case(unit) if mechanism is None else None
    assert_bounded(
        release, bound, datasets(unit, lowest_for(clipping)), worst_case=worst, pairs=60, climbs=60
    )


@settings(max_examples=50)
@given(
    user=st.lists(st.floats(-1e3, 1e3, width=32), min_size=FACTORS, max_size=FACTORS),
    items=st.lists(st.floats(-1e3, 1e3, width=32), min_size=FACTORS * 3, max_size=FACTORS * 3),
    values=st.lists(st.floats(0, HIGHEST, width=32), min_size=3, max_size=3),
    clipping=st.sampled_from([*CLIPPINGS, GradientClipping(limit=1e-3), GradientClipping(limit=1e3)]),
    both=st.booleans(),
)
def test_whatever_the_vectors_a_users_contribution_stays_within_the_bound(
    user: list[float], items: list[float], values: list[float], clipping: Clipping, both: bool
) -> None:
    party = PrivateDescent(
        grouped([list(enumerate(values))]), [user], np.reshape(items, (3, FACTORS)),
        clipping=clipping, unit="user", highest=HIGHEST, most_ratings=3,
    )  # fmt: skip
    length = np.linalg.norm(rescaled(party.sums(both=both), party, both))
    assert length <= party.reach(both=both).bound.size


def take(
    party: PrivateDescent,
    steps: int = 1,
    *,
    mechanism: Gaussian | None,
    random: Random,
    rate: float = 1e-4,
    both: bool = True,
) -> Event | None:
    return party.take(
        steps, mechanism=mechanism, rate_users=rate if both else None, rate_items=rate, random=random,
        what="vectors, round 1", by="north", to="coordinator",
    )  # fmt: skip


@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize("unit", UNITS)
def test_noise_moves_every_number_of_both_sides_on_any_dataset(clipping: Clipping, unit: Unit) -> None:
    def release(units: tuple[Any, ...]) -> NDArray[np.float32]:
        party = party_of(by_user(units, unit), clipping, unit)
        party.users, party.items = np.full((USERS, FACTORS), 0.5), np.full((ITEMS, FACTORS), 0.5)
        take(party, mechanism=SampledGaussian(sampling=0.1), random=SecureRandom())
        return np.concatenate([party.users, party.items])

    # A number is at its old place again with a probability far below 1/100, and once of 16 times would do.
    assert_noise_covers(release, "empty", datasets(unit, lowest_for(clipping)), runs=16)


def test_noise_moves_every_item_while_users_stay_as_they_are() -> None:
    party = random_party(GradientClipping(), "user", empty=True)
    users, items = party.users, party.items
    moved = np.zeros(items.shape, bool)
    # Noise is whole steps, some hundreds of them: once in a while it is 0, but not in four steps on end.
    for _ in range(4):
        before = party.items
        take(party, mechanism=Gaussian(), random=SecureRandom(), both=False)
        moved |= party.items != before
    np.testing.assert_array_equal(party.users, users)
    assert moved.all()


def noise_of(party: PrivateDescent, mechanism: Gaussian, both: bool = True) -> list[NDArray[np.float64]]:
    """Return what one step adds to the sums of a party without ratings, for items and, if moved, users."""
    party.users = np.full(party.users.shape, 0.2)
    party.items = np.full(party.items.shape, 0.2)
    before = party.items.astype(np.float64), party.users.astype(np.float64)
    rate = 0.01 / mechanism.noise_size(party.reach(both=both).bound)
    take(party, mechanism=mechanism, random=SecureRandom(), rate=rate, both=both)
    after = party.items.astype(np.float64), party.users.astype(np.float64)
    sides = 2 if both else 1
    return [(old - new) / rate for old, new in list(zip(before, after, strict=True))[:sides]]


@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("multiplier", [0.7, 100.0])
def test_noise_is_as_large_as_the_event_says(
    clipping: Clipping, unit: Unit, both: bool, multiplier: float
) -> None:
    party = random_party(clipping, unit, users=20_000, items=20_000, empty=True)
    mechanism, found = Gaussian(noise_multiplier=multiplier), party.reach(both=both)
    drawn = noise_of(party, mechanism, both)
    for numbers, factor in zip(drawn, (found.items, found.users), strict=False):
        assert factor is not None
        size = multiplier * found.bound.size * factor
        # 100,000 numbers: false alarms are beyond 6 deviations of mean and spread, fewer than one in 10^8.
        assert abs(numbers.mean()) < 6 * size / math.sqrt(numbers.size)
        assert numbers.std() == pytest.approx(size, rel=6 / math.sqrt(2 * numbers.size))
        assert np.abs(numbers).max() < 9.5 * size


def test_no_noise_is_used_twice_in_a_table_on_both_sides_or_in_two_steps() -> None:
    party = random_party(GradientClipping(), "rating", users=9000, items=7000, empty=True)
    drawn = np.concatenate([side for _ in range(2) for side in noise_of(party, Gaussian())])
    # By chance, none of half a billion pairs of rows agrees in five numbers to four digits.
    assert len(np.unique(np.round(drawn, 2), axis=0)) == len(drawn) == 2 * 16_000


def test_noisy_sums_are_whole_numbers_of_steps() -> None:
    party = random_party(GradientClipping(limit=1.0), "rating", users=500, items=300, empty=True)
    wide = PrivateDescent(
        grouped([[]] * 500), np.zeros((500, 5)), np.zeros((300, 5)),
        clipping=party.clipping, unit="rating", highest=HIGHEST, radius=1e6,
    )  # fmt: skip
    take(wide, mechanism=Gaussian(noise_multiplier=1.0), random=SecureRandom(), rate=1.0)
    # The least power of two above 2^-12 of the noise, whose size is 1.
    steps = np.concatenate([wide.users, wide.items]).astype(np.float64) * 2**11
    np.testing.assert_array_equal(steps, np.rint(steps))
    assert np.abs(steps % 2).sum() > 0
    assert np.abs(steps).std() > 1e3


@pytest.mark.parametrize("clipping", [*CLIPPINGS, GradientClipping(nonnegative=True)])
@pytest.mark.parametrize("rate", [1e-3, 1e3])
def test_vectors_keep_what_their_clipping_promises_and_their_padding_stays_zero(
    clipping: Clipping, rate: float
) -> None:
    party = random_party(clipping, "rating")
    take(party, 20, mechanism=SampledGaussian(sampling=0.5), random=SecureRandom(), rate=rate)
    for table in (party._users, party._items):
        rows = cells(table).astype(np.float64)
        assert np.linalg.norm(rows, axis=1).max() < math.sqrt(HIGHEST)
        assert not rows[:, party.factors :].any()
        assert rows.min() >= 0 or clipping == CLIPPINGS[1]


def test_the_event_tells_what_was_released() -> None:
    mechanism = SampledGaussian(noise_multiplier=2.0, sampling=0.1)
    party = random_party(EmbeddingClipping(), "user")
    event = take(party, 7, mechanism=mechanism, random=SecureRandom())
    assert event == Event(
        what="vectors, round 1", by="north", to="coordinator", mechanism=mechanism,
        bound=party.reach(both=True).bound, dimension=(40 + 30) * 5, count=7,
    )  # fmt: skip
    alone = take(party, mechanism=mechanism, random=InsecureRandom(0), both=False)
    assert alone is not None
    assert (alone.dimension, alone.secure, alone.count) == (30 * 5, False, 1)
    assert alone.bound == party.reach(both=False).bound != event.bound


def test_rates_may_differ_from_step_to_step() -> None:
    steady, falling = (random_party(EmbeddingClipping(), "rating") for _ in range(2))
    said = partial(PrivateDescent.take, mechanism=None, random=InsecureRandom(0), what="", by="", to="")
    said(steady, 1, rate_users=0.01, rate_items=0.02)
    said(steady, 1, rate_users=0.0, rate_items=0.01)
    said(falling, 2, rate_users=np.array([0.01, 0.0]), rate_items=[0.02, 0.01])
    np.testing.assert_array_equal(steady.users, falling.users)
    np.testing.assert_array_equal(steady.items, falling.items)


def test_where_ratings_are_protected_each_is_chosen_by_a_coin_of_its_own() -> None:
    # A user's ratings take part one by one: in 200 steps on a user with 40, some but not all of them.
    own = grouped([[(item, 5.0) for item in range(40)]])
    users, items = np.zeros((1, 40)), np.eye(40)
    users[0, :] = 0.1
    cases: list[tuple[Unit, int | None, bool]] = [("rating", None, False), ("user", 40, True)]
    for unit, most, alike in cases:
        party = PrivateDescent(
            own, users, items, clipping=GradientClipping(), unit=unit, highest=5.0, most_ratings=most
        )
        sizes = set()
        for seed in range(200):
            part, chosen = party._batch(None, 0.5, InsecureRandom(seed))
            sizes.add(int(part.sizes[chosen].sum()))
        # Between 2 and 38 of 40 fair coins: all within 200 draws but for one time in 10^9.
        assert sizes == ({0, 40} if alike else sizes & set(range(2, 39)))
        assert len(sizes) > 5 or alike


def test_the_ratings_of_a_step_are_those_that_were_chosen() -> None:
    ratings = random_ratings(40, 30, 12)
    party = random_party(EmbeddingClipping(), "rating")
    positions = np.array([0, 3, 4, 50, 77])
    part, chosen = party._some_of(positions)
    np.testing.assert_array_equal(part.index, ratings.index[positions])
    np.testing.assert_array_equal(part.members(), ratings.members()[positions])
    np.testing.assert_array_equal(chosen, np.unique(ratings.members()[positions]))


def test_two_parties_in_two_threads_give_what_they_give_one_after_the_other() -> None:
    def run(seed: int) -> NDArray[np.float32]:
        party = random_party(EmbeddingClipping(), "rating", users=2000, items=100)
        take(party, 5, mechanism=SampledGaussian(sampling=0.2), random=InsecureRandom(seed))
        return np.concatenate([party.users, party.items])

    alone = [run(seed) for seed in range(2)]
    with ThreadPoolExecutor(2) as threads:
        together = list(threads.map(run, range(2)))
    np.testing.assert_array_equal(alone, together)
    assert not np.array_equal(alone[0], alone[1])


def test_vectors_that_are_set_are_copied_and_projected() -> None:
    party = random_party(EmbeddingClipping(), "rating")
    given = np.full((40, 5), 100.0, np.float32)
    given[0] = -1
    party.users = given
    given[:] = 0
    assert not party.users[0].any()
    np.testing.assert_allclose(party.users[1], math.sqrt(HIGHEST / 5), rtol=1e-4)
    party.users[:] = 7
    assert party.users.max() < 7


def make(*tables: Any, **changes: Any) -> PrivateDescent:
    settings: dict[str, Any] = {"clipping": EmbeddingClipping(), "unit": "rating", "highest": 5.0}
    return PrivateDescent(*tables, **(settings | changes))


ONE, TWO = np.ones((1, 3)), np.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: make(grouped([[(0, 6.0)]]), ONE, TWO), "a rating lies outside 0 to 5"),
        (lambda: make(grouped([[(0, -1.0)]]), ONE, TWO), "a rating lies outside 0 to 5"),
        (lambda: make(grouped([[(0, math.nan)]]), ONE, TWO), "a rating lies outside"),
        (lambda: make(grouped([[(1, 2.0), (1, 3.0)]]), ONE, TWO), "rated an item twice"),
        (
            lambda: make(grouped([[(0, 2.0), (1, 3.0)]]), ONE, TWO, unit="user", most_ratings=1),
            "more than 1 ratings. Trim",
        ),
    ],
)
def test_ratings_on_which_the_bound_would_not_hold_are_refused(call: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        call()


def noted(party: PrivateDescent, **changes: Any) -> Any:
    settings: dict[str, Any] = {
        "mechanism": Gaussian(), "rate_users": 0.1, "rate_items": 0.1, "random": SecureRandom(),
        "what": "w", "by": "a", "to": "b",
    }  # fmt: skip
    return party.take(changes.pop("steps", 2), **(settings | changes))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: make(grouped([[(2, 1.0)]]), ONE, TWO), "beyond the 2 that have vectors"),
        (lambda: make(grouped([[], []]), ONE, TWO), "ratings of 2 users, but 1 vectors"),
        (lambda: make(grouped([[]]), ONE, np.ones((2, 4))), "users have 3 factors, items 4"),
        (lambda: make(grouped([[]]), ONE * math.nan, TWO), "users must be a table of finite numbers"),
        (lambda: make(grouped([[]]), np.ones((1, 1001)), TWO), "1,001 factors"),
        (lambda: make(grouped([[]]), ONE, TWO, radius=1.0), "Leave radius out"),
        (lambda: make(grouped([[]]), ONE, TWO, unit="user"), "needs most_ratings"),
        (lambda: make(grouped([[]]), ONE, TWO, unit="item"), "unit must be one of"),
        (lambda: setattr(make(grouped([[]]), ONE, TWO), "items", ONE), r"items must have shape \(2, 3\)"),
        (lambda: make(grouped([[]]), ONE, TWO).sums([1], both=True), "from 0 to 0"),
        (lambda: noted(make(grouped([[]]), ONE, TWO), steps=0), "steps must be at least 1"),
        (lambda: noted(make(grouped([[]]), ONE, TWO), rate_items=[1.0] * 3), "each of 2 steps"),
        (lambda: noted(make(grouped([[]]), ONE, TWO), rate_users=-1.0), "rate_users must be"),
        (lambda: noted(make(grouped([[]]), ONE, TWO), rate_users=1e20), "so large"),
        (lambda: noted(make(grouped([[]]), ONE, TWO), sampling=0.5), r"Use SampledGaussian\(sampling"),
        (lambda: noted(make(grouped([[]]), ONE, TWO), mechanism=Laplace()), "take Gaussian or"),
        (lambda: noted(make(grouped([[]]), ONE, TWO), random=np.random.default_rng()), "SecureRandom"),
    ],
)
def test_mistakes_are_named(call: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        call()
