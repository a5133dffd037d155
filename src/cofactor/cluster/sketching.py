"""Registers: the largest geometric hash of all users in a cluster, under a key that the parties share.

A user's hash in a row has the value z with probability 2^-z, and is the same at all who know the key. It is a
function of the user's id, such that nobody without the key can tell it from chance: the id is digested
(BLAKE2b under the key), and AES-256 turns the digest, with a counter, into a stream with a word of 32 bits
for every row. Of a word, the leading zeros and one more are the hash.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from numpy.typing import NDArray

from cofactor.cluster.method import NOWHERE, Integers
from cofactor.crypto.keys import SECRET_BYTES
from cofactor.errors import ConfigError, DataError
from cofactor.privacy import noise
from cofactor.randomness import Random

LARGEST_HASH = 33
"""The hash of a word without any one: all larger ones are cut to this. What is clipped below it, later, is
exactly what it would be without the cut."""

Words = NDArray[np.uint32]

_DIGEST_BYTES, _BLOCK_BYTES, _WORD_BYTES = 12, 16, 4
_MOST_ROWS = 2**24
_AT_ONCE = 2**20
"""Bytes of words that lie in memory at once, about: they stay in the cache."""


def registers(key: bytes, ids: Sequence[str], cells: Integers, clusters: int, rows: int) -> Integers:
    """Return the largest hash in every row (first axis) of all users in every cluster, 0 for an empty one.

    `cells` tells the cluster of each id; whoever is NOWHERE is left out. Between 0 and LARGEST_HASH.
    """
    _check(key, ids, cells, clusters, rows)
    found = np.zeros((rows, clusters), np.int64)
    stream = _Stream(key, rows, len(ids))
    for cluster in range(clusters):
        members = np.flatnonzero(cells == cluster)
        if members.size:
            # The largest hash is that of the smallest word.
            found[:, cluster] = _hashes(stream.smallest([ids[member] for member in members.tolist()]))
    return found


def hashes(key: bytes, user: str, rows: int) -> Integers:
    """Return one user's hash in every row."""
    return registers(key, [user], np.zeros(1, np.int64), 1, rows)[:, 0]


def drawn(table: Integers, rows: int, random: Random) -> list[Integers]:
    """Return registers of every party, the table's axes, with the law that they have under a key of chance.

    The table says how many users are in every combination of clusters. Of c users, the smallest word is, as a
    part of all words, 1 - U^(1/c) with U uniform.
    """
    places = np.nonzero(table)
    counts = table[places]
    smallest = -np.expm1(-noise.exponential((rows, counts.size), random) / counts)
    largest = np.minimum(np.floor(-np.log2(smallest)).astype(np.int64) + 1, LARGEST_HASH)
    return [_by_cluster(largest, own, size) for own, size in zip(places, table.shape, strict=True)]


def _by_cluster(largest: Integers, clusters: Integers, size: int) -> Integers:
    """Return the largest of each row over all columns of the same cluster, 0 if there are none."""
    return np.stack([largest[:, clusters == each].max(axis=1, initial=0) for each in range(size)], axis=1)


class _Stream:
    """The words of users under one key."""

    def __init__(self, key: bytes, rows: int, users: int) -> None:
        self._digest_key = blake2b(key=key, person=b"cofactor ids", digest_size=SECRET_BYTES).digest()
        block_key = blake2b(key=key, person=b"cofactor words", digest_size=SECRET_BYTES).digest()
        # Every block is asked for once, and no two are equal: then the mere block cipher is what is wanted.
        self._cipher = Cipher(AES(block_key), ECB()).encryptor()
        blocks = -(-rows * _WORD_BYTES // _BLOCK_BYTES)
        self._rows, self._users = rows, max(1, min(users, _AT_ONCE // (blocks * _BLOCK_BYTES)))
        self._plain = np.empty((self._users, blocks, _BLOCK_BYTES), np.uint8)
        self._plain[:, :, _DIGEST_BYTES:] = np.arange(blocks, dtype="<u4").view(np.uint8).reshape(-1, 4)
        self._secret = np.empty(self._plain.size + _BLOCK_BYTES, np.uint8)

    def smallest(self, users: Sequence[str]) -> Words:
        """Return the smallest word in every row."""
        least = np.full(self._rows, np.iinfo(np.uint32).max, np.uint32)
        for words in self._words(users):
            np.minimum(least, words.min(axis=0), out=least)
        return least

    def _words(self, users: Sequence[str]) -> Iterator[Words]:
        """Yield the words of a few users at a time, a user's in each row; each is overwritten by the next."""
        for start in range(0, len(users), self._users):
            some = users[start : start + self._users]
            digests = b"".join(map(self._digest, some))
            plain = self._plain[: len(some)]
            plain[:, :, :_DIGEST_BYTES] = np.frombuffer(digests, np.uint8).reshape(-1, 1, _DIGEST_BYTES)
            self._cipher.update_into(plain.data, self._secret.data)
            words = self._secret[: plain.size].view("<u4").reshape(len(some), -1)
            yield words[:, : self._rows]

    def _digest(self, user: str) -> bytes:
        text = user.encode("utf-8", "surrogatepass")
        return blake2b(text, key=self._digest_key, digest_size=_DIGEST_BYTES).digest()


def _hashes(words: Words) -> Integers:
    """Return the leading zeros of each word, and one more: the position of its highest one, from the top."""
    # Exact: every whole number below 2^53 is a float, and its exponent the number of its digits.
    digits = np.frexp(words.astype(np.float64))[1]
    return np.asarray(LARGEST_HASH - digits, np.int64)


def _check(key: bytes, ids: Sequence[str], cells: Integers, clusters: int, rows: int) -> None:
    if len(key) != SECRET_BYTES or not 1 <= rows <= _MOST_ROWS:
        raise ConfigError(f"a sketch needs a key of {SECRET_BYTES} bytes and from 1 to {_MOST_ROWS:,} rows.")
    if len(set(ids)) != len(ids):
        raise DataError("a user is in one cluster of a party, and some ids are here twice. Nothing was made.")
    if len(ids) != len(cells) or not np.all((cells >= NOWHERE) & (cells < clusters)):
        raise DataError("every user needs a cluster: a number below how many there are, or NOWHERE.")
