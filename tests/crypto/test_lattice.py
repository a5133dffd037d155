import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import gmpy2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.config import as_table, from_table
from cofactor.crypto import lattice
from cofactor.crypto.ciphers import Cipher, Dealt, Holder, Integers, Part, Scheme
from cofactor.crypto.lattice import (
    CHECKS,
    DEGREE,
    MOST_BITS,
    PLAIN_PRIME,
    PRIMES,
    SLOTS,
    Lattice,
    LatticeCipher,
    LatticeHolder,
    Variant,
)
from cofactor.errors import ConfigError, ProtocolError, Refused, TooFew

VARIANTS: list[Variant] = ["bfv", "ckks"]
HEAD = 45
"""Bytes before the sizes of the blocks."""


@pytest.fixture(scope="module", params=VARIANTS)
def dealt(request: pytest.FixtureRequest) -> Dealt:
    return Lattice(variant=request.param).dealt(2)


@pytest.fixture
def cipher(dealt: Dealt) -> LatticeCipher:
    assert isinstance(dealt.cipher, LatticeCipher)
    return dealt.cipher


@pytest.fixture
def holder(dealt: Dealt) -> LatticeHolder:
    assert isinstance(dealt.holders[0], LatticeHolder)
    return dealt.holders[0]


def opened(cipher: Cipher, holder: Holder, total: bytes, length: int, bits: int) -> Integers:
    everything = range(cipher.pieces(length, bits))
    data = holder.part(total, length, bits, everything)
    return cipher.combined(total, length, bits, [Part(holder.place, everything, data)])


def whole_numbers(bits: int, count: int, *, seed: int = 0) -> Integers:
    half = 2 ** (bits - 1)
    return np.random.default_rng(seed).integers(-half, half, count)


@pytest.mark.parametrize("bits", [1, 2, 17, 40, 46, 48, 59])
def test_sums_of_every_width_come_out_as_they_are(
    cipher: LatticeCipher, holder: LatticeHolder, bits: int
) -> None:
    bits = min(bits, MOST_BITS[cipher.variant])
    half = 2 ** (bits - 1)
    ends = np.array([-half, half - 1, 0], np.int64)
    values = np.concatenate([ends, whole_numbers(bits, 500)])
    nothing = np.zeros_like(values)
    total = cipher.added([cipher.encrypted(each, bits) for each in (nothing, values)], len(values), bits)
    np.testing.assert_array_equal(opened(cipher, holder, total, len(values), bits), values)


def test_the_sum_of_many_parties_over_several_pieces_is_exact(
    cipher: LatticeCipher, holder: LatticeHolder
) -> None:
    length, bits = 9_000, 46
    parties = [whole_numbers(40, length, seed=seed) for seed in range(4)]
    uploads = [cipher.encrypted(values, bits) for values in parties]
    total = cipher.added((uploads[k % 4] for k in range(60)), length, bits)
    assert cipher.pieces(length, bits) > 1
    np.testing.assert_array_equal(opened(cipher, holder, total, length, bits), 15 * np.sum(parties, axis=0))


@settings(max_examples=20)
@given(st.data())
def test_what_is_opened_is_the_sum(dealt: Dealt, data: st.DataObject) -> None:
    assert isinstance(dealt.cipher, LatticeCipher)
    bits = data.draw(st.integers(4, MOST_BITS[dealt.cipher.variant]))
    largest = 2 ** (bits - 4)
    rows = st.lists(st.integers(-largest, largest), min_size=3, max_size=3)
    parties = [np.array(row, np.int64) for row in data.draw(st.lists(rows, min_size=1, max_size=7))]
    total = dealt.cipher.added([dealt.cipher.encrypted(row, bits) for row in parties], 3, bits)
    assert opened(dealt.cipher, dealt.holders[1], total, 3, bits).tolist() == np.sum(parties, axis=0).tolist()


def test_errors_of_ckks_stay_far_below_a_half_before_they_are_rounded() -> None:
    dealt = Lattice(variant="ckks").dealt(1)
    cipher, holder = dealt.cipher, dealt.holders[0]
    assert isinstance(cipher, LatticeCipher)
    assert isinstance(holder, LatticeHolder)
    for bits, largest in ((40, 0.001), (48, 0.2)):
        values = whole_numbers(bits, SLOTS["ckks"] - CHECKS)
        block = cipher.blocks(cipher.encrypted(values, bits), len(values))[0]
        real = np.array(cipher._read(block, holder._private).decrypt())[:-CHECKS]
        assert 0 < abs(real - values).max() < largest


def test_bfv_has_room_for_the_noise_of_as_many_uploads_as_a_sum_takes() -> None:
    dealt = Lattice(variant="bfv").dealt(1)
    cipher, holder = dealt.cipher, dealt.holders[0]
    assert isinstance(cipher, LatticeCipher)
    assert isinstance(holder, LatticeHolder)
    block = cipher.blocks(cipher.encrypted(whole_numbers(59, 100), 59), 100)[0]
    vector = cipher._read(block, holder._private)
    budget = holder._private.decryptor().data.invariant_noise_budget(vector.ciphertext()[0])
    assert budget > np.log2(lattice.MOST_UPLOADS) + 3


def test_the_parameters_are_those_of_the_standards_table() -> None:
    # 128 bits of security at degree 8192: a modulus of 218 bits at most (homomorphicencryption.org).
    assert DEGREE == 8192
    assert sum(PRIMES) <= 218
    assert gmpy2.is_prime(PLAIN_PRIME)
    assert PLAIN_PRIME % (2 * DEGREE) == 1
    assert 2 ** MOST_BITS["bfv"] < PLAIN_PRIME


def test_decrypters_divide_the_pieces(dealt: Dealt) -> None:
    length, bits = 17_000, 40
    values = whole_numbers(bits, length)
    total = dealt.cipher.encrypted(values, bits)
    count = dealt.cipher.pieces(length, bits)
    parts = [
        Part(holder.place, pieces, holder.part(total, length, bits, pieces))
        for holder, pieces in zip(dealt.holders, (range(1), range(1, count)), strict=True)
    ]
    np.testing.assert_array_equal(dealt.cipher.combined(total, length, bits, parts), values)
    with pytest.raises(TooFew, match="Nobody opened 1 of"):
        dealt.cipher.combined(total, length, bits, parts[1:])
    with pytest.raises(TooFew):
        dealt.cipher.combined(total, length, bits, [])


def test_decrypters_who_open_the_same_piece_must_agree(cipher: LatticeCipher, holder: LatticeHolder) -> None:
    total = cipher.encrypted(np.array([3, 4]), 8)
    right = Part(0, range(1), holder.part(total, 2, 8, range(1)))
    wrong = Part(1, range(1), np.array([3, 5], "<i8").tobytes())
    assert cipher.combined(total, 2, 8, [right, right]).tolist() == [3, 4]
    with pytest.raises(ProtocolError, match="different numbers"):
        cipher.combined(total, 2, 8, [right, wrong])


@pytest.mark.parametrize(
    "part",
    [
        Part(0, range(1), bytes(15)),
        Part(0, range(1), bytes(24)),
        Part(0, range(2), bytes(16)),
        Part(0, range(-1, 1), bytes(16)),
        Part(0, range(0, 1, 2), bytes(16)),
        Part(0, range(1), np.array([0, 128], "<i8").tobytes()),
    ],
    ids=["short", "long", "beyond", "before", "steps", "too many bits"],
)
def test_malformed_parts_are_refused(cipher: LatticeCipher, part: Part) -> None:
    total = cipher.encrypted(np.array([3, 4]), 8)
    with pytest.raises(ProtocolError):
        cipher.combined(total, 2, 8, [part])


def test_holders_open_only_pieces_that_there_are(cipher: LatticeCipher, holder: LatticeHolder) -> None:
    total = cipher.encrypted(np.array([3, 4]), 8)
    assert holder.part(total, 2, 8, range(1, 1)) == b""
    for pieces in (range(1, 2), range(2), range(-1, 1), range(0, 1, 2)):
        with pytest.raises(ProtocolError, match="1 pieces"):
            holder.part(total, 2, 8, pieces)


def test_another_key_is_refused_by_its_name(cipher: LatticeCipher, holder: LatticeHolder) -> None:
    other = Lattice(variant=cipher.variant).dealt(1)
    foreign = other.cipher.encrypted(np.array([1, 2]), 8)
    assert other.cipher.identity != cipher.identity
    for call in (
        lambda: cipher.added([foreign], 2, 8),
        lambda: holder.part(foreign, 2, 8, range(1)),
        lambda: cipher.combined(foreign, 2, 8, [Part(0, range(1), bytes(16))]),
    ):
        with pytest.raises(ProtocolError, match="another key"):
            call()


def test_another_key_is_noticed_even_under_the_right_name(
    cipher: LatticeCipher, holder: LatticeHolder
) -> None:
    mine = cipher.encrypted(np.zeros(2, np.int64), 40)
    foreign = Lattice(variant=cipher.variant).dealt(1).cipher.encrypted(np.zeros(2, np.int64), 40)
    forged = mine[:HEAD] + foreign[HEAD:]
    total = cipher.added([mine, forged], 2, 40)
    with pytest.raises(ProtocolError, match="does not open"):
        holder.part(total, 2, 40, range(1))


def test_the_other_kind_is_refused(cipher: LatticeCipher, holder: LatticeHolder) -> None:
    other: Variant = "ckks" if cipher.variant == "bfv" else "bfv"
    foreign = Lattice(variant=other).dealt(1).cipher.encrypted(np.zeros(2, np.int64), 40)
    mine = cipher.encrypted(np.zeros(2, np.int64), 40)
    for upload in (foreign, mine[:HEAD] + foreign[HEAD:]):
        with pytest.raises(ProtocolError):
            cipher.added([upload], 2, 40)
        with pytest.raises(ProtocolError):
            holder.part(upload, 2, 40, range(1))


def test_no_changed_bit_opens_to_a_wrong_sum(cipher: LatticeCipher, holder: LatticeHolder) -> None:
    values = whole_numbers(40, 50)
    upload = cipher.encrypted(values, 41)
    random = np.random.default_rng(0)
    places = [*range(HEAD + 4 + 30), *random.integers(HEAD + 4, len(upload), 70).tolist()]
    refused = 0
    for place in places:
        changed = bytearray(upload)
        changed[place] ^= 1 << int(random.integers(8))
        try:
            total = cipher.added([bytes(changed)], 50, 41)
            # Some bits of TenSEAL's envelope and of BFV's noise mean nothing: then the sum is right.
            np.testing.assert_array_equal(opened(cipher, holder, total, 50, 41), values)
        except ProtocolError:
            refused += 1
    assert refused > 0.8 * len(places)


@pytest.mark.parametrize("cut", [0, 10, HEAD, HEAD + 3, HEAD + 4, 1000, -1])
def test_what_is_cut_off_or_longer_is_refused(cipher: LatticeCipher, holder: LatticeHolder, cut: int) -> None:
    upload = cipher.encrypted(np.array([1, 2]), 8)
    size = int.from_bytes(upload[HEAD : HEAD + 4], "little")
    shortened = (
        upload[:HEAD] + max(0, len(upload[:cut]) - HEAD - 4).to_bytes(4, "little") + upload[HEAD + 4 : cut]
    )
    longer = upload[:HEAD] + (size + 1).to_bytes(4, "little") + upload[HEAD + 4 :] + b"\0"
    for data in (upload[:cut], shortened, upload + b"\0", longer):
        with pytest.raises(ProtocolError):
            cipher.added([data], 2, 8)
        with pytest.raises(ProtocolError):
            holder.part(data, 2, 8, range(1))


def test_blocks_larger_than_any_ciphertext_are_not_even_read(cipher: LatticeCipher) -> None:
    head = cipher.encrypted(np.array([1, 2]), 8)[:HEAD]
    size = 10**6
    with pytest.raises(ProtocolError, match="longer than it says"):
        cipher.added([head + size.to_bytes(4, "little") + bytes(size)], 2, 8)


def test_ciphertexts_of_another_shape_are_refused(cipher: LatticeCipher, holder: LatticeHolder) -> None:
    import tenseal

    upload = cipher.encrypted(np.array([1, 2]), 8)
    if cipher.variant == "bfv":
        vectors = [tenseal.bfv_vector(cipher._context, [1, 2])]
    else:
        vectors = [
            tenseal.ckks_vector(cipher._context, [1.0, 2.0], lattice.SCALE),
            tenseal.ckks_vector(cipher._context, [0.0] * SLOTS["ckks"], 2 * lattice.SCALE),
        ]
    for vector in vectors:
        block = vector.serialize()
        with pytest.raises(ProtocolError, match="another shape"):
            cipher.added([upload[:HEAD] + len(block).to_bytes(4, "little") + block], 2, 8)
    with pytest.raises(ProtocolError, match="another shape"):
        holder.part(upload[:HEAD] + bytes(4), 2, 8, range(1))


@pytest.mark.parametrize("length", [1, 3, 10_000])
def test_uploads_of_another_length_are_refused(cipher: LatticeCipher, length: int) -> None:
    upload = cipher.encrypted(np.array([1, 2]), 8)
    with pytest.raises(ProtocolError, match=f"encryption of {length} numbers"):
        cipher.added([upload, upload], length, 8)


def test_a_sum_beyond_its_bits_is_not_opened(cipher: LatticeCipher, holder: LatticeHolder) -> None:
    upload = cipher.encrypted(np.array([0, 127]), 8)
    total = cipher.added([upload, upload], 2, 8)
    with pytest.raises(ProtocolError, match="8 bits"):
        holder.part(total, 2, 8, range(1))


@pytest.mark.parametrize("value", [128, -129])
def test_a_number_beyond_its_bits_is_refused_without_being_told(cipher: LatticeCipher, value: int) -> None:
    with pytest.raises(ConfigError, match="more than 8 bits") as refusal:
        cipher.encrypted(np.array([0, value]), 8)
    assert str(value) not in str(refusal.value)


@pytest.mark.parametrize("bits", [0, -1, 60, 64])
def test_sums_that_do_not_fit_are_refused_with_a_way_out(
    cipher: LatticeCipher, holder: LatticeHolder, bits: int
) -> None:
    values = np.array([0, 1])
    upload = cipher.encrypted(values, 8)
    for call in (
        lambda: cipher.encrypted(values, bits),
        lambda: cipher.added([upload], 2, bits),
        lambda: cipher.pieces(2, bits),
        lambda: holder.part(upload, 2, bits, range(1)),
        lambda: cipher.combined(upload, 2, bits, []),
    ):
        with pytest.raises(ConfigError, match="coarser step"):
            call()


@pytest.mark.parametrize("values", [np.zeros(2), np.zeros(2, np.int32), np.zeros((2, 2), np.int64)])
def test_only_a_row_of_whole_numbers_is_encrypted(cipher: LatticeCipher, values: NDArray[np.int64]) -> None:
    with pytest.raises(ConfigError, match="int64"):
        cipher.encrypted(values, 8)


def test_a_sum_of_nobody_or_of_too_many_is_refused(
    cipher: LatticeCipher, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TooFew):
        cipher.added([], 2, 8)
    monkeypatch.setattr(lattice, "MOST_UPLOADS", 2)
    upload = cipher.encrypted(np.array([1, 2]), 8)
    cipher.added([upload] * 2, 2, 8)
    with pytest.raises(ConfigError, match="2 uploads at most"):
        cipher.added([upload] * 3, 2, 8)


def test_no_numbers_at_all_are_a_sum_too(cipher: LatticeCipher, holder: LatticeHolder) -> None:
    upload = cipher.encrypted(np.zeros(0, np.int64), 8)
    assert len(opened(cipher, holder, cipher.added([upload], 0, 8), 0, 8)) == 0


def test_equal_numbers_are_encrypted_differently(cipher: LatticeCipher) -> None:
    first, second = (cipher.encrypted(np.array([1, 2]), 8) for _ in range(2))
    blocks = [np.frombuffer(data[-100_000:], np.uint8) for data in (first, second)]
    # Equal bytes are compressed alike: of 100,000 random ones 391 agree, plus or minus 20.
    assert (blocks[0] == blocks[1]).mean() < 0.2


def test_the_public_side_cannot_decrypt(cipher: LatticeCipher) -> None:
    assert not cipher._context.has_secret_key()
    block = cipher.blocks(cipher.encrypted(np.array([1, 2]), 8), 2)[0]
    with pytest.raises(ValueError, match="secret"):
        cipher._read(block, cipher._context).decrypt()


def test_a_decrypters_key_is_neither_printed_nor_copied(holder: LatticeHolder) -> None:
    assert repr(holder) == "LatticeHolder(place=0)"
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(Refused, match="neither copied nor pickled"):
            copied(holder)


def test_parties_may_be_threads(cipher: LatticeCipher, holder: LatticeHolder) -> None:
    def one(seed: int) -> bool:
        values = whole_numbers(30, 100, seed=seed)
        total = cipher.added([cipher.encrypted(values, 32)] * 2, 100, 32)
        return bool((opened(cipher, holder, total, 100, 32) == 2 * values).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(one, range(16)))


def test_the_settings_keep_to_the_contract() -> None:
    schemes: list[Scheme] = [Lattice(), Lattice(variant="ckks")]
    assert [scheme.exact for scheme in schemes] == [True, False]
    for scheme in schemes:
        assert scheme.quorum_of(3) == 1
        assert "together with the coordinator it opens every" in scheme.unsafe
        assert isinstance(scheme, Lattice)
        assert from_table(Lattice, as_table(scheme), "scheme") == scheme
    with pytest.raises(ConfigError, match="variant must be"):
        Lattice(variant="bgv")  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_assumptions_say_who_holds_the_key_and_what_approximate_sums_tell(variant: Variant) -> None:
    clauses = Lattice(variant=variant).assumptions(3)
    assert any("whoever is one holds the whole key" in clause for clause in clauses)
    assert any("Li and Micciancio" in clause for clause in clauses) == (variant == "ckks")
    assert all(clause[0].islower() and not clause.endswith(".") for clause in clauses)


@pytest.mark.parametrize("decrypters", [0, -1])
def test_somebody_must_decrypt(decrypters: int) -> None:
    for call in (Lattice().dealt, Lattice().quorum_of, Lattice().assumptions):
        with pytest.raises(ConfigError, match="at least 1"):
            call(decrypters)


def test_without_tenseal_the_line_to_install_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tenseal", None)
    scheme = Lattice(variant="ckks")
    with pytest.raises(ConfigError, match=r"pip install tenseal \(or, in a clone, pip install '\.\[he\]'"):
        scheme.dealt(3)
