"""Keys of fixed primes where schemes would draw new ones, which takes seconds. Never encrypt with them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cofactor.crypto import primes
from tests.crypto.paillier_keys import LARGE, PAPER


@contextmanager
def fixed_primes() -> Iterator[None]:
    """Let every key of 2048 or 1024 bits have the same primes; all else about it is drawn afresh."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(primes, "safe_prime_pair", {2048: LARGE, 1024: PAPER}.__getitem__)
        yield
