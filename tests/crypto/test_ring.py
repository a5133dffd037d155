from secrets import token_bytes

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import ECB
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.crypto.ring import Ring
from cofactor.errors import ConfigError, ProtocolError

SEED = bytes(range(32))
EVERY_WIDTH = [1, 2, 7, 8, 13, 16, 31, 32, 33, 48, 63, 64]


def stream(seed: bytes, count: int, word: str) -> NDArray[np.unsignedinteger]:
    """Encrypt the numbers 0, 1, 2, ... block by block: counter mode by its definition."""
    blocks = b"".join(number.to_bytes(16, "big") for number in range(count * 8 // 16 + 1))
    cipher = Cipher(AES256(seed), ECB()).encryptor()
    return np.frombuffer(cipher.update(blocks), word)[:count]


def plain_packed(words: NDArray[np.unsignedinteger], bits: int) -> bytes:
    """Write the numbers into one long whole number."""
    whole: int = sum((int(word) % 2**bits) << bits * place for place, word in enumerate(words))
    return whole.to_bytes(-(-bits * len(words) // 8), "little")


def mask_of(ring: Ring, seed: bytes, count: int) -> NDArray[np.unsignedinteger]:
    words = np.zeros(count, ring.word)
    ring.mask(words, seed, 1)
    return words


@pytest.mark.parametrize(("bits", "word"), [(5, "<u4"), (32, "<u4"), (33, "<u8"), (64, "<u8")])
@pytest.mark.parametrize("count", [0, 1, 3, 8192, 16384, 16385, 50001])
def test_a_mask_is_the_stream_of_aes_256_in_counter_mode(bits: int, word: str, count: int) -> None:
    ring, seed = Ring(bits), token_bytes(32)
    expected = stream(seed, count, word)
    np.testing.assert_array_equal(mask_of(ring, seed, count), expected)
    words = np.full(count, 77, ring.word)
    ring.mask(words, seed, -1)
    np.testing.assert_array_equal(words, ring.word.type(77) - expected)


@pytest.mark.parametrize("bits", EVERY_WIDTH)
def test_a_mask_goes_off_as_it_came_on(bits: int) -> None:
    ring = Ring(bits)
    values = ring.signed(np.random.default_rng(bits).integers(0, 2**64, 999, np.uint64))
    words = ring.reduced(values)
    ring.mask(words, SEED, 1)
    assert (ring.signed(words) != values).sum() > 300
    ring.mask(words, SEED, -1)
    np.testing.assert_array_equal(ring.signed(words), values)


def test_flipping_any_one_bit_of_the_seed_changes_the_mask() -> None:
    whole = int.from_bytes(SEED, "big")
    seeds = [whole, *(whole ^ (1 << bit) for bit in range(256))]
    masks = np.array([mask_of(Ring(32), seed.to_bytes(32, "big"), 64) for seed in seeds])
    # Of 2,048 bits half change, plus or minus 23; false alarm for 33,000 pairs: below 1e-9.
    changed = np.array([np.bitwise_count(masks ^ mask).sum(axis=1) for mask in masks])
    assert changed[~np.eye(257, dtype=bool)].min() > 800


def test_masked_numbers_are_uniform_whatever_they_hide() -> None:
    ring, count = Ring(3), 80_000
    words = ring.reduced(np.full(count, 2))
    ring.mask(words, token_bytes(32), 1)
    counts = np.bincount(ring.unpacked(ring.packed(words), count), minlength=8)
    # Standard deviation 94; false alarm of a box: 1e-11.
    assert abs(counts - count / 8).max() < 640


@pytest.mark.parametrize("bits", EVERY_WIDTH)
def test_every_number_of_the_ring_comes_back_with_its_sign(bits: int) -> None:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    values = np.array(sorted({low, low // 2, -1 if bits > 1 else 0, 0, high // 2, high}))
    ring = Ring(bits)
    assert ring.reduced(values).max(initial=0) < 2**bits
    np.testing.assert_array_equal(ring.signed(ring.reduced(values)), values)


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=20), st.integers(0, 9))
def test_masked_sums_come_out_right_in_the_ring_that_holds_them(values: list[int], extra: int) -> None:
    ring = Ring.holding(abs(sum(values)) + extra)
    total = np.zeros(1, ring.word)
    for value in values:
        words = ring.reduced(np.array([value]))
        ring.mask(words, SEED, 1)
        total += words
    for _ in values:
        ring.mask(total, SEED, -1)
    assert ring.signed(total) == [sum(values)]


@pytest.mark.parametrize("largest", [0, 1, 2, 127, 128, 2**31 - 1, 2**31, 2**63 - 1])
def test_no_smaller_ring_holds_the_largest_sum(largest: int) -> None:
    ring = Ring.holding(largest)
    ends = np.array([-largest, largest])
    np.testing.assert_array_equal(ring.signed(ring.reduced(ends)), ends)
    if ring.bits > 1:
        smaller = Ring(ring.bits - 1)
        assert (smaller.signed(smaller.reduced(ends)) != ends).any()


@given(st.integers(1, 64), st.lists(st.integers(0, 2**64 - 1), max_size=70))
def test_numbers_are_packed_bit_by_bit(bits: int, numbers: list[int]) -> None:
    ring = Ring(bits)
    words = np.array(numbers, np.uint64).astype(ring.word)
    packed = ring.packed(words)
    assert packed == plain_packed(words, bits)
    read = ring.unpacked(packed, len(words))
    assert read.dtype == ring.word
    np.testing.assert_array_equal(read, words & ring.word.type(2**bits - 1))


@pytest.mark.parametrize(("bits", "count", "size"), [(20, 3, 8), (32, 2, 8), (1, 9, 2), (64, 0, 0)])
def test_packed_numbers_of_another_length_are_refused(bits: int, count: int, size: int) -> None:
    ring = Ring(bits)
    assert len(ring.unpacked(bytes(size), count)) == count
    for wrong in {size - 1, size + 1, size + 8} - {-1}:
        with pytest.raises(ProtocolError, match=f"{size} bytes"):
            ring.unpacked(bytes(wrong), count)


@pytest.mark.parametrize("bit", [4, 5, 6, 7])
def test_bits_after_the_last_number_must_be_zero(bit: int) -> None:
    ring = Ring(20)
    assert ring.unpacked(bytes(2) + bytes([15]), 1) == [15 << 16]
    with pytest.raises(ProtocolError, match="must be zero"):
        ring.unpacked(bytes(2) + bytes([1 << bit]), 1)


@pytest.mark.parametrize("bits", [0, -1, 65])
def test_rings_beyond_a_word_are_refused(bits: int) -> None:
    with pytest.raises(ConfigError, match=r"bits must be at (least 1|most 64), got"):
        Ring(bits)


def test_sums_beyond_a_word_are_refused_with_a_way_out() -> None:
    with pytest.raises(ConfigError, match="fewer parties or a coarser step"):
        Ring.holding(2**63)
    with pytest.raises(ConfigError):
        Ring.holding(-1)
    with pytest.raises(ConfigError):
        Ring.holding(10**400)


@pytest.mark.parametrize("values", [np.zeros(2), np.zeros(2, np.int32), np.zeros(2, np.uint64)])
def test_only_whole_numbers_of_64_bits_are_added(values: NDArray[np.int64]) -> None:
    with pytest.raises(ConfigError, match="int64"):
        Ring(32).reduced(values)


@pytest.mark.parametrize("seed", [b"", bytes(16), bytes(31), bytes(33)])
def test_seeds_of_another_length_are_refused(seed: bytes) -> None:
    with pytest.raises(ProtocolError, match="32 bytes"):
        Ring(32).mask(np.zeros(1, np.uint32), seed, 1)


@pytest.mark.parametrize(
    ("words", "sign"),
    [(np.zeros(2, np.uint32), 0), (np.zeros((2, 2), np.uint32), 1), (np.zeros(2, np.uint64), 1)],
)
def test_masks_for_anything_but_a_row_of_words_are_refused(
    words: NDArray[np.unsignedinteger], sign: int
) -> None:
    with pytest.raises(ConfigError, match="uint32"):
        Ring(32).mask(words, SEED, sign)
    assert not words.any()
