import gmpy2
import numpy as np
import pytest

from cofactor.crypto import primes
from cofactor.crypto.primes import safe_prime_pair
from cofactor.errors import ConfigError
from tests.crypto.paillier_keys import LARGE, OTHER_SMALL, PAPER, SMALL


def surely_prime(number: int) -> bool:
    """Miller's test, which is exact below 2^64 with these bases (Sorenson and Webster 2015)."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        powers = [pow(base, odd << k, number) for k in range(twos)]
        if powers[0] != 1 and number - 1 not in powers:
            return False
    return True


def test_drawn_numbers_are_safe_primes_whose_product_has_the_size_asked_for() -> None:
    pairs = [[int(prime) for prime in safe_prime_pair(128)] for _ in range(3)]
    assert len({prime for pair in pairs for prime in pair}) == 6
    for pair in pairs:
        assert (pair[0] * pair[1]).bit_length() == 128
        assert all(surely_prime(prime) and surely_prime(prime // 2) for prime in pair)
        # With their two highest bits set, their product always has its highest bit set.
        assert all(prime >> 62 == 0b11 for prime in pair)


def test_large_primes_pass_tests_to_other_bases_than_they_were_chosen_by() -> None:
    for prime in safe_prime_pair(1024):
        assert prime.bit_length() == 512
        for number in (int(prime), int(prime) // 2):
            assert all(pow(base, number - 1, number) == 1 for base in (3, 5, 65537))


@pytest.mark.parametrize("pair", [SMALL, OTHER_SMALL, PAPER, LARGE])
def test_the_primes_of_these_tests_are_safe(pair: tuple[gmpy2.mpz, gmpy2.mpz]) -> None:
    assert all(gmpy2.is_prime(prime) and gmpy2.is_prime(prime // 2) for prime in pair)


def test_the_sieve_leaves_what_trial_division_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(primes, "_WINDOW", 3000)
    small, start = [3, 5, 7, 11, 13, 97, 101], 10**30 + 57
    left = list(primes._candidates(gmpy2.mpz(start), np.array(small)))
    halves = range(start, start + 6000, 2)
    assert left == [u for u in halves if all(u % q and (2 * u + 1) % q for q in small)]


def test_small_primes_are_all_odd_primes_below_the_limit() -> None:
    found = primes._small_primes()
    assert len(found) == 82025 - 1
    assert found[:5].tolist() == [3, 5, 7, 11, 13]
    assert found[-1] == 1048573


@pytest.mark.parametrize("bits", [127, 64])
def test_sizes_that_cannot_be_had_are_refused(bits: int) -> None:
    with pytest.raises(ConfigError, match=r"even number of bits|from 64 bits on"):
        safe_prime_pair(bits)
