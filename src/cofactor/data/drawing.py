"""Kernels that draw synthetic ratings; their chance is a counter and a key, so that a seed repeats them."""

import numpy as np
from numpy.typing import NDArray

from cofactor.compiled import kernel
from cofactor.data.grouping import Index, Offsets, Times, Values


@kernel
def _uniform(key: np.uint64, counter: int) -> float:
    """Return number `counter` of the stream that the key names (splitmix64), in [0, 1)."""
    word = key + np.uint64(counter) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    word = word ^ (word >> np.uint64(31))
    return float(word >> np.uint64(11)) * 2.0**-53


@kernel
def draw_items(ptr: Offsets, ranked: Index, exponent: float, head: float, key: np.uint64) -> Index:
    """Draw distinct items for each user, popular ones more often; ranked[0] is the most popular."""
    index = np.empty(ptr[-1], np.int32)
    last_user = np.full(ranked.size, -1, np.int64)
    counter = 0
    for user in range(ptr.size - 1):
        for position in range(ptr[user], ptr[user + 1]):
            tries = 0
            while True:
                chance = _uniform(key, counter)
                counter += 1
                # A busy user has seen most of what is popular: after some tries any item will do.
                spread = _rank(chance, exponent, head, ranked.size) if tries < 50 else chance * ranked.size
                item = ranked[min(int(spread), ranked.size - 1)]
                if last_user[item] != user:
                    break
                tries += 1
            last_user[item] = user
            index[position] = item
    return index


@kernel
def _rank(chance: float, exponent: float, head: float, count: int) -> float:
    """Invert the distribution on [0, count) whose density falls as (x + head)^-exponent."""
    reach = (count + head) / head
    if abs(exponent - 1.0) < 1e-9:
        stretch = reach**chance
    else:
        power = 1.0 - exponent
        stretch = (1.0 + chance * (reach**power - 1.0)) ** (1.0 / power)
    rank: float = head * (stretch - 1.0)
    return rank


@kernel
def expected(
    ptr: Offsets,
    index: Index,
    mean: float,
    user_bias: Values,
    item_bias: Values,
    user_vectors: Values,
    item_vectors: Values,
) -> Values:
    """Return mean + biases + dot product for ratings grouped by user."""
    out = np.empty(index.size, np.float32)
    for user in range(ptr.size - 1):
        for position in range(ptr[user], ptr[user + 1]):
            item = index[position]
            total = mean + user_bias[user] + item_bias[item]
            for k in range(user_vectors.shape[1]):
                total += user_vectors[user, k] * item_vectors[item, k]
            out[position] = total
    return out


@kernel
def moments(ptr: Offsets, start: NDArray[np.float64], pace: NDArray[np.float64], key: np.uint64) -> Times:
    """Return increasing times for each user: a start, then one rating at some moment of each pace."""
    times = np.empty(ptr[-1], np.int64)
    for user in range(ptr.size - 1):
        for position in range(ptr[user], ptr[user + 1]):
            steps = position - ptr[user] + _uniform(key, position)
            times[position] = int(start[user] + pace[user] * steps)
    return times
