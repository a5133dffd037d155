import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor import chacha
from cofactor.chacha import BLOCKS, WORDS
from cofactor.errors import ConfigError

Words = NDArray[np.uint32]

ZEROS = bytes(32)
COUNTING = bytes(range(32))


def twin(key: bytes, nonce: int, counter: int, rounds: int) -> bytes:
    """Compute a block in plain Python, straight from RFC 8439, sections 2.1 to 2.3."""
    key_words = [int.from_bytes(key[k : k + 4], "little") for k in range(0, 32, 4)]
    tail = counter.to_bytes(8, "little") + nonce.to_bytes(8, "little")
    tail_words = [int.from_bytes(tail[k : k + 4], "little") for k in range(0, 16, 4)]
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *key_words, *tail_words]
    state = list(start)

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for x, y, z, places in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[x] = (state[x] + state[y]) % 2**32
            mixed = state[z] ^ state[x]
            state[z] = (mixed << places | mixed >> (32 - places)) % 2**32

    for _ in range(rounds // 2):
        for k in range(4):
            quarter(k, 4 + k, 8 + k, 12 + k)
        for k in range(4):
            quarter(k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4)
    return b"".join(((a + b) % 2**32).to_bytes(4, "little") for a, b in zip(start, state, strict=True))


def words_of(key: bytes) -> Words:
    return np.frombuffer(key, "<u4").astype(np.uint32)


def stream(key: bytes, nonce: int, first: int, size: int, rounds: int) -> Words:
    words = np.zeros(size, np.uint32)
    chacha.fill(words, words_of(key), np.uint64(nonce), np.uint64(first), rounds)
    return words


def block(words: Words, number: int) -> bytes:
    """Return a block of a group as the bytes that the standard shows."""
    return words.reshape(16, BLOCKS)[:, number].astype("<u4").tobytes()


# Key, the RFC's 32-bit counter, its 96-bit nonce, and the block (for appendix A.1, its first 16 bytes).
RFC_8439 = [
    (
        COUNTING, 1, "000000090000004a00000000",
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    (ZEROS, 0, "000000000000000000000000", "76b8e0ada0f13d90405d6ae55386bd28"),
    (ZEROS, 1, "000000000000000000000000", "9f07e7be5551387a98ba977c732d080d"),
    (bytes(31) + b"\x01", 1, "000000000000000000000000", "3aeb5224ecf849929b9d828db1ced4dd"),
    (b"\x00\xff" + bytes(30), 2, "000000000000000000000000", "72d54dfbf12ec44b362692df94137f32"),
    (ZEROS, 0, "000000000000000000000002", "c2c64d378cd536374ae204b9ef933fcd"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "counter", "nonce", "expected"), RFC_8439)
def test_twenty_rounds_give_the_blocks_of_rfc_8439(
    key: bytes, counter: int, nonce: str, expected: str
) -> None:
    # Its 96-bit nonce begins in the upper half of our counter.
    first, *rest = (int.from_bytes(bytes.fromhex(nonce)[k : k + 4], "little") for k in (0, 4, 8))
    ours, number = rest[0] | rest[1] << 32, counter | first << 32
    whole = block(stream(key, ours, number, WORDS, 20), 0)
    assert whole.startswith(bytes.fromhex(expected))
    assert twin(key, ours, number, 20) == whole


def test_twelve_rounds_give_the_published_block_of_the_zero_key() -> None:
    # draft-strombergson-chacha-test-vectors, TC1, 256-bit key, 12 rounds.
    expected = (
        "9bf49a6a0755f953811fce125f2683d50429c3bb49e074147e0089a52eae155f"
        "0564f879d27ae3c02ce82834acfa8c793a629f2ca0de6919610be82f411326be"
    )
    assert block(stream(ZEROS, 0, 0, WORDS, 12), 0).hex() == expected


@settings(max_examples=25)
@given(
    key=st.binary(min_size=32, max_size=32),
    nonce=st.integers(0, 2**64 - 1),
    first=st.integers(0, 2**64 - BLOCKS),
    number=st.integers(0, BLOCKS - 1),
    rounds=st.sampled_from([12, 20]),
)
@example(key=COUNTING, nonce=0, first=2**32 - 1, number=0, rounds=12)
@example(key=COUNTING, nonce=0, first=2**32 - 1, number=1, rounds=12)
@example(key=COUNTING, nonce=0, first=2**32 - 1, number=1, rounds=20)
@example(key=COUNTING, nonce=1, first=2**64 - BLOCKS, number=BLOCKS - 1, rounds=12)
def test_every_block_of_a_group_is_the_one_that_plain_python_computes(
    key: bytes, nonce: int, first: int, number: int, rounds: int
) -> None:
    expected = twin(key, nonce, first + number, rounds)
    assert block(stream(key, nonce, first, WORDS, rounds), number) == expected
    single = [
        chacha.one_word(words_of(key), np.uint64(nonce), np.uint64(first + number), word, rounds)
        for word in range(16)
    ]
    assert np.array(single, "<u4").tobytes() == expected


@pytest.mark.parametrize("before", [1, BLOCKS // 2, BLOCKS])
def test_counter_carries_into_its_upper_word(before: int) -> None:
    # Within a group, and from one group to the next.
    groups = stream(COUNTING, 0, 2**32 - before, 2 * WORDS, 12).reshape(2, WORDS)
    carried = block(groups[before // BLOCKS], before % BLOCKS)
    assert carried == twin(COUNTING, 0, 2**32, 12) != twin(COUNTING, 0, 0, 12)


@pytest.mark.parametrize(("first", "groups"), [(2**64 - BLOCKS, 1), (2**64 - 3 * BLOCKS, 3)])
def test_counter_goes_up_to_the_last_block_and_not_beyond(first: int, groups: int) -> None:
    last = stream(COUNTING, 0, first, groups * WORDS, 12)[-WORDS:]
    assert block(last, BLOCKS - 1) == twin(COUNTING, 0, 2**64 - 1, 12)
    with pytest.raises(OverflowError, match="Take a new key"):
        stream(COUNTING, 0, first, groups * WORDS + 1, 12)
    with pytest.raises(OverflowError, match="Take a new key"):
        stream(COUNTING, 0, first + 1, groups * WORDS, 12)


@pytest.mark.parametrize("size", [0, 1, WORDS - 1, WORDS, WORDS + 1, 3 * WORDS + 17])
def test_pieces_that_start_at_groups_are_those_of_the_whole(size: int) -> None:
    whole = stream(COUNTING, 5, 0, 4 * WORDS, 12)
    assert np.array_equal(stream(COUNTING, 5, 0, size, 12), whole[:size])
    assert np.array_equal(
        stream(COUNTING, 5, BLOCKS, min(size, WORDS), 12), whole[WORDS:][: min(size, WORDS)]
    )


def test_other_keys_nonces_and_rounds_give_other_words() -> None:
    streams = [
        stream(ZEROS, 0, 0, WORDS, 12), stream(COUNTING, 0, 0, WORDS, 12),
        stream(ZEROS, 1, 0, WORDS, 12), stream(ZEROS, 1 << 32, 0, WORDS, 12), stream(ZEROS, 0, 0, WORDS, 20),
    ]  # fmt: skip
    for one, first in enumerate(streams):
        for second in streams[one + 1 :]:
            assert not np.any(first == second)


def test_other_numbers_of_rounds_are_refused() -> None:
    with pytest.raises(ConfigError, match="12 or 20 rounds"):
        stream(ZEROS, 0, 0, WORDS, 8)
