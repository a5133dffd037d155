"""Registers from keyed hashes. Statistical checks fail by chance less than once in ten million runs."""

from hashlib import blake2b

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from scipy import stats

from cofactor.cluster import sketching
from cofactor.cluster.method import NOWHERE, Integers
from cofactor.cluster.sketching import LARGEST_HASH, drawn, hashes, registers
from cofactor.errors import ConfigError, DataError
from cofactor.randomness import InsecureRandom, SecureRandom

KEY, OTHER = b"k" * 32, b"o" * 32
CHANCE = 1e-8
"""How seldom a check fails by chance."""


def plain_hash(key: bytes, user: str, row: int) -> int:
    """Return one user's hash in one row, by way of a text of 32 binary digits."""
    digest_key = blake2b(key=key, person=b"cofactor ids", digest_size=32).digest()
    block_key = blake2b(key=key, person=b"cofactor words", digest_size=32).digest()
    digest = blake2b(user.encode(), key=digest_key, digest_size=12).digest()
    block = Cipher(AES(block_key), ECB()).encryptor().update(digest + (row // 4).to_bytes(4, "little"))
    word = int.from_bytes(block[4 * (row % 4) : 4 * (row % 4) + 4], "little")
    digits = f"{word:032b}"
    return len(digits) - len(digits.lstrip("0")) + 1


def plain_registers(key: bytes, ids: list[str], cells: Integers, clusters: int, rows: int) -> Integers:
    found = np.zeros((rows, clusters), np.int64)
    for user, cell in zip(ids, cells.tolist(), strict=True):
        for row in range(rows if cell != NOWHERE else 0):
            found[row, cell] = max(found[row, cell], plain_hash(key, user, row))
    return found


def named(count: int) -> list[str]:
    return [f"user {number}" for number in range(count)]


def below(elements: int) -> list[float]:
    """Return F(z)^n for z from 0 to the largest hash, where nothing is above."""
    return [*((1 - 2.0**-z) ** elements for z in range(LARGEST_HASH)), 1.0]


def assert_law(values: Integers, elements: int) -> None:
    """Compare with the law of the largest of so many hashes by chi-square; rare values are one."""
    expected = np.diff(below(elements)) * values.size
    seen = np.bincount(values.reshape(-1), minlength=LARGEST_HASH + 1)[1:]
    often = expected >= 20
    expected = np.append(expected[often], expected[~often].sum())
    seen = np.append(seen[often], seen[~often].sum())
    assert stats.chi2.sf(((seen - expected) ** 2 / np.maximum(expected, 1e-9)).sum(), often.sum()) > CHANCE


@pytest.mark.parametrize("rows", [1, 3, 4, 37])
def test_registers_equal_those_of_a_loop_over_users_and_rows(rows: int) -> None:
    ids, cells = [*named(9), "Zoë", "\U0001f600"], np.array([0, 1, 2, 0, NOWHERE, 1, 0, 3, NOWHERE, 1, 0])
    np.testing.assert_array_equal(
        registers(KEY, ids, cells, 5, rows), plain_registers(KEY, ids, cells, 5, rows)
    )


def test_more_users_than_fit_into_memory_at_once_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, cells = named(300), np.arange(300) % 2
    whole = registers(KEY, ids, cells, 2, 64)
    monkeypatch.setattr(sketching, "_AT_ONCE", 64 * 4 * 7)
    np.testing.assert_array_equal(registers(KEY, ids, cells, 2, 64), whole)


def test_an_empty_cluster_has_registers_of_0_and_others_have_none() -> None:
    found = registers(KEY, named(3), np.array([1, 1, NOWHERE]), 3, 50)
    assert not found[:, [0, 2]].any()
    assert found[:, 1].min() >= 1


def test_the_largest_hash_of_several_users_is_the_largest_of_theirs() -> None:
    found = registers(KEY, named(4), np.zeros(4, np.int64), 1, 200)[:, 0]
    np.testing.assert_array_equal(found, np.max([hashes(KEY, user, 200) for user in named(4)], axis=0))


def test_both_parties_of_a_pair_find_the_same_hash_in_any_order_of_users() -> None:
    first = registers(KEY, named(6), np.array([0, 0, 0, 1, 1, 1]), 2, 100)
    second = registers(KEY, named(6)[::-1], np.array([1, 1, 1, 0, 0, 0]), 2, 100)
    np.testing.assert_array_equal(first, second)


def test_hashes_of_a_user_are_geometric() -> None:
    assert_law(np.concatenate([hashes(KEY, user, 4096) for user in named(100)]), 1)


@pytest.mark.parametrize("elements", [3, 1000])
def test_registers_have_the_law_of_the_largest_hash(elements: int) -> None:
    assert_law(registers(KEY, named(elements), np.zeros(elements, np.int64), 1, 8192), elements)


@pytest.mark.parametrize(("key", "user"), [(OTHER, "user 0"), (KEY, "user 1")])
def test_hashes_under_other_keys_and_of_other_users_are_independent(key: bytes, user: str) -> None:
    first, second = hashes(KEY, "user 0", 40_000), hashes(key, user, 40_000)
    seen = np.histogram2d(np.minimum(first, 6), np.minimum(second, 6), bins=np.arange(1, 8))[0]
    chances = np.append(0.5 ** np.arange(1, 6), 0.5**5)
    expected = 40_000 * np.outer(chances, chances)
    assert stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), 35) > CHANCE


def test_rows_of_a_user_are_independent() -> None:
    found = hashes(KEY, "somebody", 80_000)
    for apart in (1, 4):
        both = np.mean((found[:-apart] == 1) & (found[apart:] == 1))
        # Neighbours overlap: the variance of the mean is at most three times that of independent ones.
        assert abs(both - 0.25) < 6 * np.sqrt(3 * 0.25 * 0.75 / len(found))


def test_a_word_without_any_one_has_the_largest_hash() -> None:
    words = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)
    assert sketching._hashes(words).tolist() == [LARGEST_HASH, 32, 2, 1, 1]


def test_registers_drawn_from_a_table_have_the_same_law_as_real_ones() -> None:
    table = np.array([[0, 40], [200, 10]])
    first, second = drawn(table, 8192, SecureRandom())
    for found, elements in ((first[:, 0], 40), (first[:, 1], 210), (second[:, 0], 200), (second[:, 1], 50)):
        assert_law(found, elements)
    cells = np.repeat([[0, 1], [1, 0], [1, 1]], [40, 200, 10], axis=0)
    real = [registers(KEY, named(250), cells[:, party], 2, 8192) for party in (0, 1)]
    for one in (0, 1):
        for other in (0, 1):
            ties = [np.mean(a[:, one] == b[:, other]) for a, b in ((first, second), real)]
            assert abs(ties[0] - ties[1]) < 6 * np.sqrt(2 * 0.25 / 8192)


def test_nobody_gives_registers_of_0() -> None:
    first, second = drawn(np.zeros((2, 3), np.int64), 5, InsecureRandom(0))
    assert (first.shape, second.shape) == ((5, 2), (5, 3))
    assert not first.any()


def test_a_user_who_is_there_twice_is_refused_since_the_bound_is_one_cluster() -> None:
    with pytest.raises(DataError, match="twice"):
        registers(KEY, ["a", "a"], np.array([0, 1]), 2, 10)


def test_impossible_clusters_keys_and_rows_are_refused() -> None:
    with pytest.raises(DataError, match="NOWHERE"):
        registers(KEY, ["a"], np.array([2]), 2, 10)
    with pytest.raises(DataError, match="NOWHERE"):
        registers(KEY, ["a"], np.array([0, 0]), 2, 10)
    with pytest.raises(ConfigError, match="32 bytes"):
        registers(b"short", ["a"], np.array([0]), 2, 10)
    with pytest.raises(ConfigError, match="rows"):
        registers(KEY, ["a"], np.array([0]), 2, 0)
