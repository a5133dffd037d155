import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import gmpy2
import phe
import pytest
from gmpy2 import mpz

from cofactor.crypto import paillier
from cofactor.crypto.gmp import gmp
from cofactor.crypto.paillier import PrivateKey, PublicKey, exponent_bits, security
from cofactor.errors import ConfigError, ProtocolError, Refused
from tests.crypto.paillier_keys import LARGE, PAPER, SMALL

PLAINTEXTS = [0, 1, 2, 10**30]


def public(pair: tuple[mpz, mpz], length: int = 64) -> PublicKey:
    return PublicKey.fresh(pair[0] * pair[1], length)


@pytest.mark.parametrize("pair", [SMALL, PAPER, LARGE])
def test_what_we_encrypt_phe_decrypts(pair: tuple[mpz, mpz]) -> None:
    key = public(pair)
    oracle = phe.PaillierPrivateKey(phe.PaillierPublicKey(int(key.modulus)), *map(int, pair))
    plaintexts = [*PLAINTEXTS, int(key.modulus) - 1]
    assert [oracle.raw_decrypt(int(each)) for each in key.encrypted(plaintexts)] == plaintexts


@pytest.mark.parametrize("pair", [SMALL, PAPER, LARGE])
def test_what_phe_encrypts_we_decrypt(pair: tuple[mpz, mpz]) -> None:
    modulus = int(pair[0] * pair[1])
    oracle = phe.PaillierPublicKey(modulus)
    plaintexts = [*PLAINTEXTS, modulus - 1]
    for key in (PrivateKey(*pair), PrivateKey(*pair[::-1])):
        assert [key.decrypted(mpz(oracle.raw_encrypt(each))) for each in plaintexts] == plaintexts


def test_products_of_ciphertexts_decrypt_to_sums_modulo_n() -> None:
    key = public(SMALL)
    first, second = key.encrypted([int(key.modulus) - 5, 12])
    assert PrivateKey(*SMALL).decrypted(first * second % key.square) == 7


def test_the_published_base_is_minus_a_square_to_the_power_n(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paillier, "randbelow", lambda _: 41)
    p, q = SMALL
    key = public(SMALL)
    assert key.base == pow(-(42**2) % int(p * q), int(p * q), int(p * q) ** 2)
    # Its Jacobi symbol is 1, while it is no square modulo either prime: both are 3 modulo 4.
    assert [gmpy2.jacobi(key.base, prime) for prime in (p, q)] == [-1, -1]


def test_windows_multiply_up_to_one_power_of_the_base(monkeypatch: pytest.MonkeyPatch) -> None:
    key = public(SMALL, 24)
    chance = bytes([3, 0, 255, 7, 200, 1])
    monkeypatch.setattr(paillier, "token_bytes", lambda count: chance[:count])
    for at, ciphertext in enumerate(key.encrypted([5, 6])):
        exponent = int.from_bytes(chance[3 * at : 3 * at + 3], "little")
        hidden = gmpy2.powmod(key.base, exponent, key.square)
        assert ciphertext == (1 + (5 + at) * key.modulus) * hidden % key.square


def test_all_bits_of_the_exponents_are_fresh_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def chance(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    monkeypatch.setattr(paillier, "token_bytes", chance)
    public(SMALL, 448).encrypted([1, 2, 3])
    assert asked == [3 * 448 // 8]


def test_the_same_plaintext_never_encrypts_alike() -> None:
    key = public(SMALL)
    ciphertexts = [*key.encrypted([0] * 50), *key.encrypted([0] * 50)]
    assert len(set(ciphertexts)) == 100


def test_parties_that_are_threads_share_one_table() -> None:
    key = public(PAPER, 320)
    with ThreadPoolExecutor(8) as threads:
        tables = list(threads.map(lambda _: key._table(), range(8)))
    assert all(table is tables[0] for table in tables)
    assert [len(row) for row in tables[0]] == [256] * 40


@pytest.mark.parametrize("plaintext", [-1, int(SMALL[0] * SMALL[1])])
def test_a_plaintext_outside_the_modulus_is_refused(plaintext: int) -> None:
    with pytest.raises(ConfigError, match="Nothing was encrypted"):
        public(SMALL).encrypted([0, plaintext])


@pytest.mark.parametrize("factor", [0, SMALL[0], SMALL[1], SMALL[0] * SMALL[1]])
def test_one_number_that_shares_a_factor_with_the_key_spoils_all(factor: mpz) -> None:
    key = public(SMALL)
    good = key.encrypted([1, 2, 3])
    key.check_units(good)
    with pytest.raises(ProtocolError, match="shares a factor"):
        key.check_units([*good[:2], mpz(factor) * 17, good[2]])


def test_exponents_are_as_long_as_the_bits_of_security_ask_for() -> None:
    sizes = (1024, 2048, 2112, 3072, 4096, 7680, 8192)
    assert [security(bits) for bits in sizes] == [80, 112, 112, 128, 128, 192, 192]
    assert [exponent_bits(bits, "short") for bits in (1024, 2048, 2112, 3072)] == [320, 448, 512, 512]
    assert [exponent_bits(bits, "full") for bits in (1024, 2048, 3072)] == [512, 1024, 1536]


def test_exponents_of_odd_lengths_are_refused() -> None:
    with pytest.raises(ConfigError, match="multiple of 8 bits"):
        PublicKey(mpz(35), mpz(2), 12)


def test_private_keys_do_not_show() -> None:
    key = PrivateKey(*SMALL)
    assert repr(key) == "PrivateKey(...)"
    for secret in (key, public(SMALL)):
        with pytest.raises(Refused, match="pickled"):
            pickle.dumps(secret)


def test_without_gmpy2_the_line_that_installs_it_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gmpy2", None)
    with pytest.raises(ConfigError, match=r"pip install gmpy2"):
        gmp()
