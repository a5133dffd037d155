"""Chance for answers: exact probabilities in 64-bit words, rounded towards privacy."""

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cofactor.config import fraction, positive, whole
from cofactor.errors import ConfigError
from cofactor.privacy.noise import FULL, Integers, below, uniform_words
from cofactor.randomness import Random

_ANSWERS_AT_ONCE = 2**20


def randomized_response(values: NDArray[Any], choices: int, epsilon: float, random: Random) -> Integers:
    """Return the true answer or any other one, at most exp(epsilon) times less likely than the truth."""
    answers = _answers(values, choices)
    truth, other = response_weights(choices, epsilon)
    words = uniform_words(answers.size, random.new_key()).reshape(answers.shape)
    lie = ((words - np.uint64(truth)) // np.uint64(other)).astype(np.int64)
    return np.where(words < np.uint64(truth), answers, lie + (lie >= answers))


def response_weights(choices: int, epsilon: float) -> tuple[int, int]:
    """Return how many of 2^64 equally likely words mean the truth, and how many each other answer.

    Their ratio is at most exp(epsilon), and as near to it as whole numbers allow.
    """
    positive(epsilon=epsilon)
    with localcontext() as context:
        context.prec = 60
        # Beyond 64 the words are too few anyway.
        most = min(Decimal(epsilon), Decimal(64)).exp().next_minus()
        other = math.ceil(FULL / (most + choices - 1))
    truth = FULL - (choices - 1) * other
    if truth < other:
        raise ConfigError(
            f"epsilon {epsilon:g} is too small for {choices} answers: all would be equally likely."
        )
    return truth, other


def wave(
    values: NDArray[Any], choices: int, wide: int, narrow: int, epsilon: float, random: Random
) -> Integers:
    """Return for each value a number at most wide + narrow - 2 above it, or, by chance, any below all such.

    No number is more than exp(epsilon) times as likely for one value as for another.
    """
    answers, cells = _answers(values, choices), choices + wide + narrow - 2
    count, limit = answers.size, np.uint64(moved_weight(cells, wide, epsilon))
    step = below(count, wide, random) + below(count, narrow, random)
    moved = uniform_words(count, random.new_key()) < limit
    told = np.where(moved, answers.reshape(-1) + step, below(count, cells, random))
    return told.reshape(answers.shape)


def moved_weight(cells: int, wide: int, epsilon: float) -> int:
    """Return how many of 2^64 equally likely words mean an answer from the wave, rather than any.

    The wave lifts a cell by at most 1 / wide of it above 1 / cells of the rest: the ratio of the two is at
    most exp(epsilon), and as near to it as whole numbers allow.
    """
    positive(epsilon=epsilon)
    with localcontext() as context:
        context.prec = 60
        more = (min(Decimal(epsilon), Decimal(64)).exp().next_minus() - 1) * wide
        return math.floor(FULL * more / (more + cells))


def unary_encoding(
    values: NDArray[Any], choices: int, kept: float, raised: float, random: Random
) -> NDArray[np.uint8]:
    """Return a row of bits for each answer: the truth's is 1 with probability `kept`, others with `raised`.

    Both are rounded towards each other, by more than the error of a float, so that no row tells more.
    """
    answers = _answers(values, choices).reshape(-1)
    high, low = bit_limits(kept, raised)
    out = np.empty((answers.size, choices), np.uint8)
    key, rows = random.new_key(), max(1, _ANSWERS_AT_ONCE // choices)
    for part, start in enumerate(range(0, answers.size, rows)):
        some = answers[start : start + rows]
        words = uniform_words(some.size * choices, key, part).reshape(-1, choices)
        out[start : start + rows] = words < np.uint64(low)
        own = words[np.arange(some.size), some] < np.uint64(high)
        out[np.arange(start, start + some.size), some] = own
    return out.reshape((*np.shape(values), choices))


def bit_limits(kept: float, raised: float) -> tuple[int, int]:
    """Return how many of 2^64 words make the truth's bit a 1, and how many any other bit."""
    fraction(kept=kept, raised=raised)
    high = math.floor(math.ldexp(kept * (1 - 2.0**-50), 64))
    low = math.ceil(math.ldexp(raised * (1 + 2.0**-50), 64))
    if low > high:
        raise ConfigError(f"kept must exceed raised, got {kept:g} and {raised:g}.")
    return high, low


def _answers(values: NDArray[Any], choices: int) -> Integers:
    whole(choices=choices)
    answers = np.asarray(values)
    if choices < 2 or not np.issubdtype(answers.dtype, np.integer):
        raise ConfigError(
            f"answers must be whole numbers among at least 2 choices, got {answers.dtype} among {choices}."
        )
    if np.any(answers < 0) or np.any(answers >= choices):
        raise ConfigError(f"every answer must be a number from 0 to {choices - 1}. Number them from 0.")
    return answers.astype(np.int64)
