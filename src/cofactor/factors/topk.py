"""The best unseen items for many users: one matrix product a block of users, then one pass to select."""

import numpy as np

from cofactor.compiled import kernel
from cofactor.config import whole
from cofactor.data.grouping import Index, Offsets, Values

_BLOCK = 64
"""Users scored at a time: enough for the product to run at full speed, few enough to stay in cache."""
_CHUNK = 64
"""Scores that are compared with the worst kept one in a single vector test."""


def top_items(
    user_vectors: Values,
    item_vectors: Values,
    item_bias: Values,
    seen_ptr: Offsets,
    seen_index: Index,
    n: int,
) -> tuple[Index, Values]:
    """Return each user's n best items and their scores, user vector . item vector + item bias.

    User u has seen seen_index[seen_ptr[u]:seen_ptr[u + 1]]; these items are left out. The best come
    first, equal scores in the order of item rows. Where items run out, the item is -1, its score -inf.
    """
    whole(n=n)
    users, item_count = len(user_vectors), len(item_bias)
    kept = min(n, item_count)
    items = np.full((users, kept), -1, np.int32)
    scores = np.full((users, kept), -np.inf, np.float32)
    by_factor = np.vstack([item_vectors.T, item_bias[None]]).astype(np.float32)
    block = np.empty((_BLOCK, item_count), np.float32)
    for start in range(0, users, _BLOCK):
        part = slice(start, min(start + _BLOCK, users))
        # A last factor of ones picks up the item bias inside the product.
        rows = np.column_stack([user_vectors[part], np.ones(part.stop - start, np.float32)])
        all_scores = np.matmul(rows, by_factor, out=block[: len(rows)])
        _select(all_scores, seen_ptr[start:], seen_index, items[part], scores[part])
    missing = ((0, 0), (0, n - kept))
    return np.pad(items, missing, constant_values=-1), np.pad(scores, missing, constant_values=-np.inf)


def best_items(all_scores: Values, seen_ptr: Offsets, seen_index: Index, n: int) -> tuple[Index, Values]:
    """Return the same from a score for each user and item; scores of seen items are overwritten."""
    users, item_count = all_scores.shape
    kept = min(n, item_count)
    items = np.full((users, kept), -1, np.int32)
    scores = np.full((users, kept), -np.inf, np.float32)
    if kept:
        _select(all_scores, seen_ptr, seen_index, items, scores)
    missing = ((0, 0), (0, n - kept))
    return np.pad(items, missing, constant_values=-1), np.pad(scores, missing, constant_values=-np.inf)


@kernel
def _select(all_scores: Values, seen_ptr: Offsets, seen_index: Index, items: Index, scores: Values) -> None:
    """Fill each row of items and scores, which start as -1 and -inf, from one row of all scores."""
    for user in range(all_scores.shape[0]):
        row = all_scores[user]
        for position in range(seen_ptr[user], seen_ptr[user + 1]):
            row[seen_index[position]] = -np.inf
        best, kept = items[user], scores[user]
        for start in range(0, row.size, _CHUNK):
            chunk = row[start : start + _CHUNK]
            if _any_above(chunk, kept[-1]):
                _insert(chunk, start, best, kept)


@kernel
def _any_above(chunk: Values, worst: float) -> bool:
    # An integer "or" is a reduction that compilers vectorise; a floating-point maximum is not.
    found = np.uint8(0)
    for score in chunk:
        found |= np.uint8(score > worst)
    return bool(found)


@kernel
def _insert(chunk: Values, start: int, best: Index, kept: Values) -> None:
    """Insertion sort; strict comparisons keep the earlier of two equal items in front."""
    for offset in range(chunk.size):
        score = chunk[offset]
        if score > kept[-1]:
            place = kept.size - 1
            while place > 0 and kept[place - 1] < score:
                kept[place] = kept[place - 1]
                best[place] = best[place - 1]
                place -= 1
            kept[place] = score
            best[place] = start + offset
