import numpy as np
import pytest

from cofactor.data.grouping import Grouped
from cofactor.factors.simd import cells, new_table
from cofactor.privacy import noise
from cofactor.privacy.budget import Unit
from cofactor.privacy.mechanisms import Gaussian
from cofactor.randomness import InsecureRandom
from cofactor.recipes.clipping import Clipping, EmbeddingClipping, GradientClipping
from cofactor.recipes.descent_kernels import MARGIN, project
from cofactor.recipes.private_descent import PrivateDescent
from tests.recipes.descents import (
    CLIPPINGS,
    HIGHEST,
    UNITS,
    projected,
    random_party,
    random_ratings,
    shortenings,
    twin,
)


@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("chosen", [None, [0, 3, 17, 39], []])
def test_sums_of_gradients_equal_their_numpy_twin(
    clipping: Clipping, unit: Unit, both: bool, chosen: list[int] | None
) -> None:
    party, ratings = random_party(clipping, unit), random_ratings(40, 30, 12)
    some = np.arange(40) if chosen is None else np.array(chosen, np.int64)
    for_users, for_items = twin(party, ratings, some, both)
    found = party.sums(chosen, both=both)
    # Each contribution is cut to steps of which the longest has at least 2^15.
    longest = 2 * HIGHEST**1.5 if isinstance(clipping, EmbeddingClipping) else clipping.limit
    few_steps = 40 * longest / 2**15
    np.testing.assert_allclose(found.items, for_items, atol=few_steps)
    assert (found.users is not None) == both
    if found.users is not None:
        np.testing.assert_allclose(found.users, for_users, atol=few_steps)
    assert np.abs(for_items).max(initial=0) > 40 * few_steps or not some.size


@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("both", [True, False])
def test_a_step_without_noise_equals_its_numpy_twin(clipping: Clipping, unit: Unit, both: bool) -> None:
    party, ratings = random_party(clipping, unit), random_ratings(40, 30, 12)
    users, items, rate = party.users, party.items, 0.05
    if unit == "user":
        chosen = noise.chosen(40, 0.3, InsecureRandom(5))
    else:
        kept = np.zeros(len(ratings.values), np.bool_)
        kept[noise.chosen(len(ratings.values), 0.3, InsecureRandom(5))] = True
        ratings, chosen = ratings.keep(kept), np.arange(40)
    for_users, for_items = twin(party, ratings, chosen, both)
    event = party.take(
        1, mechanism=None, rate_users=2 * rate if both else None, rate_items=rate, sampling=0.3,
        random=InsecureRandom(5), what="vectors", by="a", to="b",
    )  # fmt: skip
    assert event is None
    nonnegative = isinstance(clipping, EmbeddingClipping)
    new_items = projected(items - rate * for_items, party.radius, nonnegative)
    new_users = projected(users - 2 * rate * for_users, party.radius, nonnegative) if both else users
    np.testing.assert_allclose(party.items, new_items, atol=5e-4)
    np.testing.assert_allclose(party.users, new_users, atol=5e-4)
    assert np.abs(new_items - items).max() > 0.05


def steps(party: PrivateDescent, count: int) -> None:
    party.take(
        count, mechanism=None, rate_users=0.01, rate_items=0.01, random=InsecureRandom(0),
        what="vectors", by="a", to="b",
    )  # fmt: skip


def test_sums_are_at_zero_again_for_the_next_step() -> None:
    twice, once = (random_party(EmbeddingClipping(), "rating") for _ in range(2))
    steps(twice, 2)
    for _ in range(2):
        steps(once, 1)
    np.testing.assert_array_equal(twice.users, once.users)
    np.testing.assert_array_equal(twice.items, once.items)


@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize("unit", UNITS)
def test_sums_are_exact_however_many_users_there_are(clipping: Clipping, unit: Unit) -> None:
    count, chance = 3000, np.random.default_rng(2)
    ratings = Grouped(
        np.arange(count + 1) * 2,
        np.tile(np.array([0, 1], np.int32), count),
        chance.uniform(4, 5, 2 * count).astype(np.float32),
    )
    party = PrivateDescent(
        ratings, chance.uniform(0, 0.3, (count, 5)), chance.uniform(0, 0.3, (2, 5)),
        clipping=clipping, unit=unit, highest=HIGHEST, most_ratings=2,
    )  # fmt: skip
    everybody, others = party.sums(both=True), party.sums(np.arange(1, count), both=True)
    alone = party.sums([0], both=True)
    assert np.abs(everybody.items).max() > 500 * np.abs(alone.items).max() > 0
    np.testing.assert_array_equal(everybody.items - others.items, alone.items)


@pytest.mark.parametrize("factors", [3, 20, 64])
@pytest.mark.parametrize("nonnegative", [True, False])
def test_projected_rows_are_strictly_shorter_than_the_radius(factors: int, nonnegative: bool) -> None:
    numbers = (
        np.random.default_rng(factors).normal(0, 1, (2000, factors))
        * 10.0 ** np.arange(-2, 6, 0.004)[:, None]
    )
    table = new_table(*numbers.shape)
    cells(table)[:, :factors] = numbers
    project(table, np.float32(HIGHEST * (1 - MARGIN)), nonnegative)
    lengths = np.linalg.norm(cells(table).astype(np.float64), axis=1)
    assert HIGHEST**0.5 * (1 - 2 * MARGIN) < lengths.max() < HIGHEST**0.5
    np.testing.assert_allclose(
        cells(table)[:, :factors], projected(numbers, HIGHEST**0.5, nonnegative), atol=1e-4, rtol=1e-4
    )
    assert not nonnegative or cells(table).min() >= 0
    assert not cells(table)[:, factors:].any()


def test_a_row_of_zeros_stays_where_it_is() -> None:
    table = new_table(3, 5)
    project(table, np.float32(1), False)
    assert not cells(table).any()


def test_a_gradient_within_the_limit_is_left_alone() -> None:
    loose, tight = (
        random_party(GradientClipping(limit=limit), "user").sums(both=True) for limit in (1e3, 3.0)
    )
    free = random_party(GradientClipping(limit=1e4), "rating").sums(both=True)
    np.testing.assert_allclose(loose.items, free.items, atol=0.05)
    assert np.abs(loose.items - tight.items).max() > 1


def _cut(party: PrivateDescent, ratings: Grouped, chosen: np.ndarray, both: bool) -> tuple[int, int]:
    """Count what is shortened, one rating or user after the other, in float64."""
    shortened = units = 0
    users, items = party.users.astype(np.float64), party.items.astype(np.float64)
    for u in chosen:
        at = slice(ratings.ptr[u], ratings.ptr[u + 1])
        mine = ratings.index[at]
        slopes = -2 * (ratings.values[at].astype(np.float64) - items[mine] @ users[u])
        if isinstance(party.clipping, EmbeddingClipping):
            units += len(mine)  # vectors that are short enough bound errors, all but float32's last digits
            continue
        of_user, of_items = slopes[:, None] * items[mine], slopes[:, None] * users[u]
        shares = shortenings(of_user, of_items, party.clipping.limit, party.unit, both)
        counted = shares[:1] if party.unit == "user" else shares
        shortened += int((counted < 1 - 3e-5).sum())
        units += 1 if party.unit == "user" else len(mine)
    return shortened, units


@pytest.mark.parametrize("clipping", CLIPPINGS)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("both", [True, False])
def test_the_first_step_is_read_as_its_sums_are_and_no_other(
    clipping: Clipping, unit: Unit, both: bool
) -> None:
    party, ratings = random_party(clipping, unit), random_ratings(40, 30, 12)
    mechanism, read = Gaussian(noise_multiplier=2.0), []
    sums, everybody = party.sums(both=both, mechanism=mechanism), np.arange(40)
    expected = _cut(party, ratings, everybody, both)
    reach = party.reach(both=both)
    noise_size = mechanism.noise_size(reach.bound)
    squares = np.square(sums.items / (noise_size * reach.items)).sum()
    if sums.users is not None:
        squares += np.square(sums.users / (noise_size * (reach.users or 0))).sum()
    party.take(
        3, mechanism=mechanism, rate_users=0.1 if both else None, rate_items=0.1, random=InsecureRandom(5),
        what="vectors", by="a", to="b", read=lambda *what: read.append(what),
    )  # fmt: skip
    ((found, numbers, shortened),) = read
    assert found == pytest.approx(squares, rel=1e-3)
    assert numbers == 5 * (30 + 40 * both)
    assert shortened == expected
    assert (shortened[0] > 0) == isinstance(clipping, GradientClipping)
