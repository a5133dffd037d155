import copy
import pickle

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.crypto.ciphers import Cipher, Dealt, Integers, Part
from cofactor.crypto.paillier import PublicKey
from cofactor.crypto.paillier_sums import PaillierSums
from cofactor.crypto.shared_key import SharedKey, dealt_from
from cofactor.crypto.threshold import Root, Textbook
from cofactor.errors import ConfigError, ProtocolError, Refused, TooFew
from tests.crypto.paillier_keys import OTHER_SMALL, SMALL, opened, parts_of

BITS, LENGTH = 40, 11
HEADER = 4 + 4 + 32 + 4 + 8 + 8
MODULUS = SMALL[0] * SMALL[1]
BASE = mpz(3) ** MODULUS.bit_length()


@pytest.fixture(scope="module")
def dealt() -> Dealt:
    return dealt_from(SharedKey(), 2, SMALL)


def rows(count: int) -> list[Integers]:
    random = np.random.default_rng(5)
    return [random.integers(-(2**30), 2**30, LENGTH) for _ in range(count)]


def total_of(cipher: Cipher, values: list[Integers]) -> bytes:
    return cipher.added((cipher.encrypted(row, BITS) for row in values), LENGTH, BITS)


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.integers(-(2**36), 2**36), min_size=5, max_size=5), min_size=1, max_size=6),
    st.booleans(),
)
def test_sums_of_any_rows_open_exactly(values: list[list[int]], packed: bool) -> None:
    dealt = dealt_from(SharedKey(packed=packed), 1, SMALL)
    uploads = [dealt.cipher.encrypted(np.array(row, np.int64), BITS) for row in values]
    total = dealt.cipher.added(uploads, 5, BITS)
    assert opened(dealt, total, 5, BITS, [0]).tolist() == [sum(each) for each in zip(*values, strict=True)]


@pytest.mark.parametrize("bits", [1, 33, 64])
def test_the_ends_of_the_range_open_exactly(dealt: Dealt, bits: int) -> None:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    values = np.array([low, high, 0, high, low, low, high], np.int64)
    total = dealt.cipher.added([dealt.cipher.encrypted(values, bits)], len(values), bits)
    assert opened(dealt, total, len(values), bits, [1]).tolist() == values.tolist()


def test_a_sum_can_be_added_to_like_an_upload(dealt: Dealt) -> None:
    cipher, values = dealt.cipher, rows(3)
    total = cipher.added([total_of(cipher, values[:2]), cipher.encrypted(values[2], BITS)], LENGTH, BITS)
    assert opened(dealt, total, LENGTH, BITS, [0]).tolist() == np.sum(values, axis=0).tolist()


def test_the_same_numbers_never_encrypt_alike(dealt: Dealt) -> None:
    (values,) = rows(1)
    first, second = (dealt.cipher.encrypted(values, BITS) for _ in range(2))
    assert first[:HEADER] == second[:HEADER]
    width = 2 * 256 // 8
    pieces = [[each[at : at + width] for at in range(HEADER, len(each), width)] for each in (first, second)]
    assert len(pieces[0]) == dealt.cipher.pieces(LENGTH, BITS)
    assert not set(pieces[0]) & set(pieces[1])


def test_a_number_that_has_too_many_bits_is_not_encrypted(dealt: Dealt) -> None:
    with pytest.raises(ConfigError, match="Nothing was encrypted"):
        dealt.cipher.encrypted(np.array([2 ** (BITS - 1)]), BITS)


def test_an_upload_starts_with_all_that_must_agree(dealt: Dealt) -> None:
    upload = dealt.cipher.encrypted(rows(1)[0], BITS)
    assert upload[:4] == b"CFPU"
    assert upload[8:40] == dealt.cipher.identity
    assert int.from_bytes(upload[40:44], "little") == BITS
    assert int.from_bytes(upload[44:52], "little") == LENGTH
    assert int.from_bytes(upload[52:60], "little") == dealt.cipher.pieces(LENGTH, BITS) == 3


def test_everything_that_matters_has_a_part_in_the_identity() -> None:
    def identity(modulus: mpz, base: mpz, length: int, kind: type, *of: int, packed: bool = True) -> bytes:
        key = PublicKey(modulus, base, length)
        return PaillierSums(key, kind(*of, modulus), packed=packed).identity

    identities = [
        identity(MODULUS, BASE, 64, Textbook, 2, 4),
        identity(OTHER_SMALL[0] * OTHER_SMALL[1], BASE, 64, Textbook, 2, 4),
        identity(MODULUS, BASE + 1, 64, Textbook, 2, 4),
        identity(MODULUS, BASE, 72, Textbook, 2, 4),
        identity(MODULUS, BASE, 64, Root, 2, 4),
        identity(MODULUS, BASE, 64, Textbook, 3, 4),
        identity(MODULUS, BASE, 64, Textbook, 2, 5),
        identity(MODULUS, BASE, 64, Textbook, 2, 4, packed=False),
    ]
    assert len(set(identities)) == len(identities)
    assert all(len(each) == 32 for each in identities)
    assert identity(MODULUS, BASE, 64, Textbook, 2, 4) == identities[0]


def changed(data: bytes, at: int, to: bytes) -> bytes:
    return data[:at] + to + data[at + len(to) :]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda _: b"", "before its header"),
        (lambda upload: upload[: HEADER - 1], "before its header"),
        (lambda upload: changed(upload, 0, b"CFPP"), "does not start as one"),
        (lambda upload: changed(upload, 4, b"\x02"), "does not start as one"),
        (lambda upload: changed(upload, 8, bytes(32)), "another key or other parameters"),
        (lambda upload: changed(upload, 40, b"\x29"), "11 numbers of 41 bits in 3 pieces; 11 numbers of 40"),
        (lambda upload: changed(upload, 44, b"\x0c"), "12 numbers of 40 bits in 3 pieces; 11 numbers of 40"),
        (lambda upload: changed(upload, 52, b"\x04"), "in 4 pieces"),
        (lambda upload: upload[:-1], "take 192 bytes, got 191"),
        (lambda upload: upload + b"\x00", "take 192 bytes, got 193"),
        (lambda upload: upload[:HEADER], "take 192 bytes, got 0"),
        (lambda upload: upload[:-64] + b"\xff" * 64, "too large for its key"),
        (lambda upload: upload[:-64] + int(MODULUS**2).to_bytes(64, "little"), "too large for its key"),
        (lambda upload: upload[:-64] + bytes(64), "shares a factor"),
        (lambda upload: upload[:-64] + int(MODULUS).to_bytes(64, "little"), "shares a factor"),
    ],
)
def test_a_broken_upload_is_refused_by_whoever_reads_it(dealt: Dealt, broken, message: str) -> None:  # type: ignore[no-untyped-def]
    cipher = dealt.cipher
    good = [cipher.encrypted(row, BITS) for row in rows(2)]
    bad = broken(cipher.encrypted(rows(1)[0], BITS))
    for uploads in ([bad], [*good, bad], [bad, *good]):
        with pytest.raises(ProtocolError, match=message):
            cipher.added(uploads, LENGTH, BITS)
    with pytest.raises(ProtocolError, match=message):
        dealt.holders[0].part(bad, LENGTH, BITS, range(1))
    with pytest.raises(ProtocolError, match=message):
        cipher.combined(bad, LENGTH, BITS, [])


@given(st.binary(max_size=300), st.integers(0, HEADER + 10))
def test_reading_whatever_bytes_raises_nothing_but_protocol_errors(data: bytes, kept: int) -> None:
    cipher = dealt_from(SharedKey(), 1, SMALL).cipher
    with pytest.raises(ProtocolError):
        cipher.added([cipher.encrypted(np.arange(LENGTH), BITS)[:kept] + data], LENGTH, BITS)


def test_nothing_adds_up_to_no_sum(dealt: Dealt) -> None:
    with pytest.raises(TooFew, match="no upload"):
        dealt.cipher.added([], LENGTH, BITS)


@pytest.mark.parametrize("pieces", [range(0), range(2, 2), range(-1, 2), range(4), range(0, 3, 2)])
def test_only_runs_of_pieces_that_exist_are_opened(dealt: Dealt, pieces: range) -> None:
    total = total_of(dealt.cipher, rows(2))
    with pytest.raises(ProtocolError, match="no run of the 3 pieces"):
        dealt.holders[0].part(total, LENGTH, BITS, pieces)
    part = dealt.holders[0].part(total, LENGTH, BITS, range(3))
    with pytest.raises(ProtocolError, match="no run of the 3 pieces"):
        dealt.cipher.combined(total, LENGTH, BITS, [Part(0, pieces, part)])


def test_holders_can_divide_the_pieces(dealt: Dealt) -> None:
    values = rows(2)
    total = total_of(dealt.cipher, values)
    runs = [(1, range(2)), (0, range(2, 3))]
    parts = [Part(at, run, dealt.holders[at].part(total, LENGTH, BITS, run)) for at, run in runs]
    assert dealt.cipher.combined(total, LENGTH, BITS, parts).tolist() == np.sum(values, axis=0).tolist()
    for some in (parts[:1], parts[1:], []):
        with pytest.raises(TooFew, match="parts of 1 decrypters, got 0"):
            dealt.cipher.combined(total, LENGTH, BITS, some)


def test_parts_of_another_sum_place_or_piece_are_refused(dealt: Dealt) -> None:
    total, other = total_of(dealt.cipher, rows(2)), total_of(dealt.cipher, rows(2))
    (part,) = parts_of(dealt, total, LENGTH, BITS, [0])
    first = dealt.holders[0].part(total, LENGTH, BITS, range(1))
    moved = [Part(1, part.pieces, part.data), Part(0, range(1, 2), first), Part(0, range(3), first)]
    for wrong in [*parts_of(dealt, other, LENGTH, BITS, [0]), *moved]:
        with pytest.raises(ProtocolError, match="of another key, sum, place or piece"):
            dealt.cipher.combined(total, LENGTH, BITS, [wrong])


def test_parts_are_read_with_care(dealt: Dealt) -> None:
    total = total_of(dealt.cipher, rows(2))
    (part,) = parts_of(dealt, total, LENGTH, BITS, [0])
    with pytest.raises(ProtocolError, match="opened a piece twice"):
        dealt.cipher.combined(total, LENGTH, BITS, [part, part])
    for place in (-1, 2):
        with pytest.raises(ProtocolError, match=f"no decrypter at place {place}"):
            dealt.cipher.combined(total, LENGTH, BITS, [Part(place, part.pieces, part.data)])
    for data in (part.data[:-1], part.data + b"\x00"):
        with pytest.raises(ProtocolError, match="take 96 bytes"):
            dealt.cipher.combined(total, LENGTH, BITS, [Part(0, part.pieces, data)])
    for data in (b"", part.data[:50]):
        with pytest.raises(ProtocolError, match="of another key, sum, place or piece"):
            dealt.cipher.combined(total, LENGTH, BITS, [Part(0, part.pieces, data)])
    with pytest.raises(ProtocolError, match="too large for its key"):
        dealt.cipher.combined(total, LENGTH, BITS, [Part(0, part.pieces, part.data[:-32] + b"\xff" * 32)])


def test_a_cipher_says_what_it_is_and_is_not_pickled(dealt: Dealt) -> None:
    assert repr(dealt.cipher) == "PaillierSums(shared key, 256 bits, 1 of 2)"
    for copied in (pickle.dumps, copy.copy):
        with pytest.raises(Refused, match="not pickled"):
            copied(dealt.cipher)
