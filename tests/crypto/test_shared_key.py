import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from gmpy2 import mpz

from cofactor.config import as_table, from_table
from cofactor.crypto import primes
from cofactor.crypto.ciphers import Part, Scheme
from cofactor.crypto.shared_key import SharedKey, SharedKeyHolder, dealt_from
from cofactor.errors import ConfigError, ProtocolError, Refused
from tests.crypto.paillier_keys import LARGE, OTHER_SMALL, PAPER, SMALL, opened, parts_of

VALUES = np.array([-(2**39), 2**39 - 1, 0, 7, -1], np.int64)
BITS, LENGTH = 40, len(VALUES)


@pytest.mark.parametrize("pair", [PAPER, LARGE])
@pytest.mark.parametrize("packed", [True, False])
def test_every_holder_opens_a_sum_alone(pair: tuple[mpz, mpz], packed: bool) -> None:
    dealt = dealt_from(SharedKey(packed=packed), 3, pair)
    assert dealt.cipher.quorum == 1
    assert dealt.cipher.pieces(LENGTH, BITS) == (1 if packed else LENGTH)
    total = dealt.cipher.added([dealt.cipher.encrypted(VALUES // 2, BITS)] * 2, LENGTH, BITS)
    for holder in dealt.holders:
        assert opened(dealt, total, LENGTH, BITS, [holder.place]).tolist() == (VALUES // 2 * 2).tolist()


def test_a_key_is_drawn_afresh_for_every_dealing() -> None:
    first, second = SharedKey().dealt(1), SharedKey().dealt(1)
    assert first.cipher.identity != second.cipher.identity
    upload = first.cipher.encrypted(VALUES, BITS)
    assert opened(first, upload, LENGTH, BITS, [0]).tolist() == VALUES.tolist()
    with pytest.raises(ProtocolError, match="another key"):
        second.cipher.added([upload], LENGTH, BITS)


def test_the_primes_asked_for_have_the_size_of_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(primes, "safe_prime_pair", {1024: PAPER, 2048: LARGE}.__getitem__)
    assert "1024 bits" in repr(SharedKey().dealt(1).cipher)
    assert "2048 bits" in repr(SharedKey(bits=2048).dealt(1).cipher)


def test_a_changed_ciphertext_is_not_opened() -> None:
    dealt = dealt_from(SharedKey(), 1, PAPER)
    total = dealt.cipher.encrypted(VALUES, BITS)
    with pytest.raises(ProtocolError, match="Nothing was opened"):
        dealt.holders[0].part(total[:-100] + b"\x01" + total[-99:], LENGTH, BITS, range(1))


def test_a_wrong_key_opens_nothing() -> None:
    dealt = dealt_from(SharedKey(), 1, SMALL)
    other = dealt_from(SharedKey(), 1, OTHER_SMALL)
    total = dealt.cipher.encrypted(VALUES, BITS)
    with pytest.raises(ProtocolError, match="another key"):
        other.holders[0].part(total, LENGTH, BITS, range(1))
    thief = SharedKeyHolder(dealt.cipher, other.holders[0]._key, 0)  # type: ignore[arg-type, attr-defined]
    with pytest.raises(ProtocolError, match="Nothing was opened"):
        thief.part(total, LENGTH, BITS, range(1))


def test_a_sum_that_overflows_at_the_top_is_not_told() -> None:
    dealt = dealt_from(SharedKey(), 1, SMALL)
    upload = dealt.cipher.encrypted(np.array([2**39 - 1]), BITS)
    with pytest.raises(ProtocolError, match="more bits than were agreed on"):
        dealt.holders[0].part(dealt.cipher.added([upload] * 2, 1, BITS), 1, BITS, range(1))


def test_holders_that_tell_different_numbers_open_nothing() -> None:
    dealt = dealt_from(SharedKey(), 2, SMALL)
    total = dealt.cipher.encrypted(VALUES, BITS)
    first, second = parts_of(dealt, total, LENGTH, BITS, [0, 1])
    assert dealt.cipher.combined(total, LENGTH, BITS, [first, second]).tolist() == VALUES.tolist()
    lie = replace(second, data=second.data[:-32] + bytes([second.data[-32] ^ 4]) + second.data[-31:])
    with pytest.raises(ProtocolError, match="to different numbers"):
        dealt.cipher.combined(total, LENGTH, BITS, [first, lie])


def test_what_is_told_must_be_packed_numbers() -> None:
    dealt = dealt_from(SharedKey(), 1, SMALL)
    total = dealt.cipher.encrypted(VALUES, BITS)
    (part,) = parts_of(dealt, total, LENGTH, BITS, [0])
    lie = int(SMALL[0] * SMALL[1] // 2).to_bytes(32, "little")
    with pytest.raises(ProtocolError, match="Nothing was opened"):
        dealt.cipher.combined(total, LENGTH, BITS, [Part(0, part.pieces, part.data[:-32] + lie)])


def test_secrets_do_not_show_and_are_not_copied() -> None:
    holder = dealt_from(SharedKey(), 2, SMALL).holders[1]
    assert repr(holder) == "SharedKeyHolder(place=1)"
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(Refused, match="neither copied nor pickled"):
            copied(holder)


def test_it_is_a_scheme_that_says_why_it_is_unsafe() -> None:
    scheme: Scheme = SharedKey()
    assert "a single one that talks to the coordinator opens every party's upload" in scheme.unsafe
    assert scheme.exact
    assert scheme.quorum_of(5) == 1
    words = " ".join(scheme.assumptions(5))
    assert all(
        each in words
        for each in ("whoever is one holds the whole key", "1024 bits", "80 bits of security", "320 bits")
    )


def test_settings_survive_a_table() -> None:
    scheme = SharedKey(bits=2048, packed=False)
    assert from_table(SharedKey, as_table(scheme), "scheme") == scheme
    assert as_table(SharedKey()) == {"kind": "SharedKey", "bits": 1024, "packed": True}


@pytest.mark.parametrize("bits", [0, 512, 1023, 1025, 1056, 8256])
def test_sizes_out_of_range_are_refused(bits: int) -> None:
    with pytest.raises(ConfigError, match="bits must be"):
        SharedKey(bits=bits)


def test_somebody_must_hold_the_key() -> None:
    with pytest.raises(ConfigError, match="decrypters must be at least 1"):
        SharedKey().dealt(0)
