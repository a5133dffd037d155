"""ChaCha (Bernstein 2008): a key of 256 bits becomes words that nobody without the key can tell from chance.

The variant with a 64-bit block counter (words 12 and 13) and a 64-bit nonce (words 14 and 15). Twelve rounds
are far beyond what anybody can break (seven), twenty are the margin of TLS; RFC 8439 describes the latter.

Blocks come in groups of 128, computed side by side in vector registers: word w of the group's block b stands
at place 128 w + b. Whoever asks for a stream in pieces that start at whole groups gets the same words.
"""

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import inlined, kernel
from cofactor.errors import ConfigError

BLOCKS = 128
"""Blocks of a group."""
WORDS = 16 * BLOCKS
"""Words of a group."""
ROUNDS = 12
"""What noise is drawn with, unless twenty are asked for."""

Words = NDArray[np.uint32]
State = tuple[np.uint32, ...]

_U = np.uint32


@kernel
def fill(words: Words, key: Words, nonce: np.uint64, first: np.uint64, rounds: int) -> None:
    """Fill an array with the stream of a key and a nonce from block `first` on; the last group may be cut."""
    groups = -(-words.size // WORDS)
    # A plain integer is signed, and mixed with unsigned ones it would become a float.
    beginning = np.uint64(first)
    check_counter(beginning, groups)
    spare = np.empty(WORDS, np.uint32)
    for group in range(groups):
        part = words[group * WORDS : (group + 1) * WORDS]
        target = part if part.size == WORDS else spare
        fill_group(target, key, np.uint64(nonce), beginning + np.uint64(group * BLOCKS), rounds)
        if part.size < WORDS:
            for place in range(part.size):
                part[place] = spare[place]


@kernel
def check_counter(first: np.uint64, groups: int) -> None:
    """Refuse to count beyond 64 bits: the stream would start to repeat."""
    groups_left = (np.uint64(0xFFFFFFFFFFFFFFFF) - first + np.uint64(1)) // np.uint64(BLOCKS)
    if first > 0 and np.uint64(groups) > groups_left:
        raise OverflowError("a ChaCha key serves 2^64 blocks, and these would go beyond. Take a new key.")


@kernel
def fill_group(words: Words, key: Words, nonce: np.uint64, first: np.uint64, rounds: int) -> None:
    """Fill exactly one group; the caller has seen to it that the counter has room."""
    # Twice the loop, each with its rounds written out: a loop over rounds would not vectorise over blocks.
    secret = (key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7])
    if rounds == 12:
        for place in range(BLOCKS):
            start = _start(secret, nonce, first + np.uint64(place))
            _put(words, place, start, _twelve_rounds(start))
    elif rounds == 20:
        for place in range(BLOCKS):
            start = _start(secret, nonce, first + np.uint64(place))
            _put(words, place, start, _eight_rounds(_twelve_rounds(start)))
    else:
        raise ConfigError("ChaCha has 12 or 20 rounds. Use 12, or 20 for a margin beyond need.")


@kernel
def one_word(key: Words, nonce: np.uint64, counter: np.uint64, word: int, rounds: int) -> np.uint32:
    """Return one word of one block, for the rare cases that need no group."""
    secret = (key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7])
    start = _start(secret, nonce, counter)
    state = start
    for _ in range(rounds // 2):
        state = _double_round(state)
    return _U(start[word] + state[word])


@inlined
def _start(key: State, nonce: np.uint64, counter: np.uint64) -> State:
    high = np.uint64(32)
    return (
        _U(0x61707865), _U(0x3320646E), _U(0x79622D32), _U(0x6B206574),
        key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7],
        _U(counter), _U(counter >> high), _U(nonce), _U(nonce >> high),
    )  # fmt: skip


@inlined
def _put(words: Words, place: int, start: State, end: State) -> None:
    # One line a word: an index that is not a constant would put the state into memory.
    words[0 * BLOCKS + place] = _U(start[0] + end[0])
    words[1 * BLOCKS + place] = _U(start[1] + end[1])
    words[2 * BLOCKS + place] = _U(start[2] + end[2])
    words[3 * BLOCKS + place] = _U(start[3] + end[3])
    words[4 * BLOCKS + place] = _U(start[4] + end[4])
    words[5 * BLOCKS + place] = _U(start[5] + end[5])
    words[6 * BLOCKS + place] = _U(start[6] + end[6])
    words[7 * BLOCKS + place] = _U(start[7] + end[7])
    words[8 * BLOCKS + place] = _U(start[8] + end[8])
    words[9 * BLOCKS + place] = _U(start[9] + end[9])
    words[10 * BLOCKS + place] = _U(start[10] + end[10])
    words[11 * BLOCKS + place] = _U(start[11] + end[11])
    words[12 * BLOCKS + place] = _U(start[12] + end[12])
    words[13 * BLOCKS + place] = _U(start[13] + end[13])
    words[14 * BLOCKS + place] = _U(start[14] + end[14])
    words[15 * BLOCKS + place] = _U(start[15] + end[15])


@inlined
def _twelve_rounds(state: State) -> State:
    return _double_round(_double_round(_eight_rounds(state)))


@inlined
def _eight_rounds(state: State) -> State:
    return _double_round(_double_round(_double_round(_double_round(state))))


@inlined
def _double_round(state: State) -> State:
    a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3 = state
    a0, b0, c0, d0 = _quarter_round(a0, b0, c0, d0)
    a1, b1, c1, d1 = _quarter_round(a1, b1, c1, d1)
    a2, b2, c2, d2 = _quarter_round(a2, b2, c2, d2)
    a3, b3, c3, d3 = _quarter_round(a3, b3, c3, d3)
    a0, b1, c2, d3 = _quarter_round(a0, b1, c2, d3)
    a1, b2, c3, d0 = _quarter_round(a1, b2, c3, d0)
    a2, b3, c0, d1 = _quarter_round(a2, b3, c0, d1)
    a3, b0, c1, d2 = _quarter_round(a3, b0, c1, d2)
    return a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3


@inlined
def _quarter_round(
    a: np.uint32, b: np.uint32, c: np.uint32, d: np.uint32
) -> tuple[np.uint32, np.uint32, np.uint32, np.uint32]:
    # Numba's sums and shifts of 32-bit words have 64 bits: each must be cut, or the words are wrong.
    a = _U(a + b)
    d = _rotated(_U(d ^ a), 16)
    c = _U(c + d)
    b = _rotated(_U(b ^ c), 12)
    a = _U(a + b)
    d = _rotated(_U(d ^ a), 8)
    c = _U(c + d)
    b = _rotated(_U(b ^ c), 7)
    return a, b, c, d


@inlined
def _rotated(word: np.uint32, places: int) -> np.uint32:
    return _U(_U(word << _U(places)) | _U(word >> _U(32 - places)))
