"""Shares of tables. Statistical checks fail by chance less than once in ten million runs."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from cofactor.crypto import products
from cofactor.crypto.products import SLOT_BITS, Integers, Layout, Offering, answered, most_slots
from cofactor.errors import ConfigError, ProtocolError, Refused

BITS = 512  # a size for tests of form: such a key is broken in days
LAYOUT = Layout(users=6, rows=3, columns=2, bits=BITS)
FIRST, SECOND = np.array([0, 2, -1, 1, 2, 2]), np.array([1, 1, 0, 0, -1, 1])
HEADER = 4 + 4 + 4 + 8 + 4 + 4


def true_table(first: Integers, second: Integers, layout: Layout) -> Integers:
    table = np.zeros((layout.rows, layout.columns), np.int64)
    for row, column in zip(first.tolist(), second.tolist(), strict=True):
        if row >= 0 and column >= 0:
            table[row, column] += 1
    return table


@pytest.fixture(scope="module")
def offering() -> Offering:
    return Offering(LAYOUT)


@pytest.fixture(scope="module")
def offer(offering: Offering) -> bytes:
    return offering.offered(FIRST)


def test_shares_add_up_to_the_table(offering: Offering, offer: bytes) -> None:
    answer, second = answered(offer, LAYOUT, SECOND)
    first = offering.share(answer)
    assert first.dtype == second.dtype == np.int64
    assert first.shape == second.shape == (3, 2)
    np.testing.assert_array_equal(first + second, true_table(FIRST, SECOND, LAYOUT))


cells = st.integers(1, 4).flatmap(
    lambda clusters: st.tuples(
        st.just(clusters), st.lists(st.integers(-1, clusters - 1), min_size=8, max_size=8)
    )
)


@settings(max_examples=25)
@given(cells, cells)
def test_shares_of_any_clusters_add_up(first: tuple[int, list[int]], second: tuple[int, list[int]]) -> None:
    layout = Layout(users=8, rows=first[0], columns=second[0], bits=BITS)
    rows, columns = np.array(first[1]), np.array(second[1])
    offering = Offering(layout)
    answer, share = answered(offering.offered(rows), layout, columns)
    np.testing.assert_array_equal(offering.share(answer) + share, true_table(rows, columns, layout))


def test_one_offer_serves_several_parties(offering: Offering, offer: bytes) -> None:
    for columns in (SECOND, np.array([-1] * 6), np.array([0] * 6)):
        answer, share = answered(offer, LAYOUT, columns)
        table = offering.share(answer) + share
        np.testing.assert_array_equal(table, true_table(FIRST, columns, LAYOUT))


def test_every_user_has_a_ciphertext_of_her_own_that_tells_nothing(offer: bytes) -> None:
    body = offer[HEADER + BITS // 8 :]
    each = [body[at : at + LAYOUT.width] for at in range(0, len(body), LAYOUT.width)]
    assert len(offer) == LAYOUT.offer_bytes
    assert len(set(each)) == LAYOUT.users


def plaintexts(offering: Offering, data: bytes, skipped: int) -> list[int]:
    body: Any = memoryview(data)[skipped:]
    numbers = products._numbers(body, LAYOUT.width, offering._modulus**2)
    return [int(offering._key.decrypted(number)) for number in numbers]


def test_an_offer_holds_a_single_one_in_the_slot_of_the_users_cluster(
    offering: Offering, offer: bytes
) -> None:
    found = plaintexts(offering, offer, HEADER + BITS // 8)
    assert found == [0 if cell < 0 else 1 << SLOT_BITS * cell for cell in FIRST.tolist()]


def test_masks_are_uniform_among_all_plaintexts() -> None:
    layout = Layout(users=1, rows=1, columns=400, bits=256)
    offering = Offering(layout)
    (modulus,) = [int(offering._modulus)]
    answer, share = answered(offering.offered(np.array([0])), layout, np.array([0]))
    body: Any = memoryview(answer)[HEADER:]
    opened = [
        int(offering._key.decrypted(each)) / modulus
        for each in products._numbers(body, layout.width, offering._modulus**2)
    ]
    assert kstest(opened, "uniform").pvalue > 1e-7
    assert kstest(offering.share(answer)[0] / 2.0**64 + 0.5, "uniform").pvalue > 1e-7
    assert kstest(share[0] / 2.0**64 + 0.5, "uniform").pvalue > 1e-7


def test_answers_to_the_same_offer_have_nothing_in_common(offer: bytes) -> None:
    first, second = (answered(offer, LAYOUT, SECOND)[0] for _ in range(2))
    assert first[:HEADER] == second[:HEADER]
    width = LAYOUT.width
    pieces = [{each[at : at + width] for at in range(HEADER, len(each), width)} for each in (first, second)]
    assert len(pieces[0]) == len(pieces[1]) == LAYOUT.columns
    assert not pieces[0] & pieces[1]


def test_the_number_that_hides_an_answer_is_not_that_of_the_offers(offering: Offering, offer: bytes) -> None:
    # Without fresh randomness the owner would find the product of its own random numbers: whose they were.
    answer, _ = answered(offer, LAYOUT, SECOND)
    square, modulus = offering._modulus**2, offering._modulus
    offered = products._numbers(memoryview(offer)[HEADER + BITS // 8 :], LAYOUT.width, square)
    found = products._numbers(memoryview(answer)[HEADER:], LAYOUT.width, square)
    for column, each in enumerate(found):
        product = mpz(1)
        for number, cell in zip(offered, SECOND.tolist(), strict=True):
            product = product * number % square if cell == column else product
        assert each % modulus != product % modulus


def test_a_share_is_right_where_masks_are_as_large_as_they_get(
    offering: Offering, offer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "randbelow", lambda below: below - 1 - (1 << SLOT_BITS * LAYOUT.rows))
    answer, share = answered(offer, LAYOUT, SECOND)
    np.testing.assert_array_equal(offering.share(answer) + share, true_table(FIRST, SECOND, LAYOUT))


def test_a_carry_makes_one_count_too_large_and_no_other(
    offering: Offering, offer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = iter([(1 << SLOT_BITS) - 1, 12345, 11, 13])  # two masks, and what hides them
    monkeypatch.setattr(products, "randbelow", lambda below: next(drawn))  # noqa: ARG005
    everybody = np.array([0, -1, -1, -1, -1, -1])
    answer, share = answered(offer, LAYOUT, everybody)
    wrong = offering.share(answer) + share - true_table(FIRST, everybody, LAYOUT)
    assert wrong.tolist() == [[0, 0], [1, 0], [0, 0]]


@pytest.mark.parametrize(
    ("at", "new"),
    [
        (slice(0, 4), b"CFTA"),
        (slice(4, 8), b"\2\0\0\0"),
        (slice(8, 12), b"\0\4\0\0"),
        (slice(12, 20), b"\7" + bytes(7)),
        (slice(20, 24), b"\4\0\0\0"),
        (slice(24, 28), b"\3\0\0\0"),
        (slice(0, 1), b""),
        (slice(-1, None), b""),
        (slice(-1, None), b"\0\0"),
    ],
)
def test_an_offer_of_another_kind_layout_or_length_is_refused(offer: bytes, at: slice, new: bytes) -> None:
    changed = bytearray(offer)
    changed[at] = new
    with pytest.raises(ProtocolError, match="another kind, layout or length"):
        answered(bytes(changed), LAYOUT, SECOND)


def with_modulus(offer: bytes, modulus: int) -> bytes:
    return offer[:HEADER] + modulus.to_bytes(BITS // 8, "little") + offer[HEADER + BITS // 8 :]


PRIME = (1 << 511) + 111
while pow(3, PRIME - 1, PRIME) != 1:
    PRIME += 2


@pytest.mark.parametrize(
    "modulus", [0, 15, 1 << 511, (1 << 511) + 2, PRIME, ((1 << 256) - 189) ** 2, (1 << 510) + 1]
)
def test_a_key_that_cannot_be_one_is_refused(offer: bytes, modulus: int) -> None:
    with pytest.raises(ProtocolError, match="no product of two large primes"):
        answered(with_modulus(offer, modulus), LAYOUT, SECOND)


def test_a_ciphertext_that_is_too_large_or_no_unit_is_refused(offering: Offering, offer: bytes) -> None:
    first, _ = offering._key._primes
    for number, why in (
        (offering._modulus**2, "too large"),
        (first * 12345, "shares a factor"),
        (mpz(0), "shares a factor"),
    ):
        data = offer[: -LAYOUT.width] + number.to_bytes(LAYOUT.width, "little")
        with pytest.raises(ProtocolError, match=why):
            answered(data, LAYOUT, SECOND)


def test_an_answer_that_cannot_be_one_is_refused(offering: Offering, offer: bytes) -> None:
    answer, _ = answered(offer, LAYOUT, SECOND)
    first, _ = offering._key._primes
    wrong = {
        "another kind": [offer, answer[:-1], answer + b"\0", b"", b"CFTO" + answer[4:]],
        "shares a factor": [answer[: -LAYOUT.width] + first.to_bytes(LAYOUT.width, "little")],
        "too large": [answer[: -LAYOUT.width] + b"\xff" * LAYOUT.width],
    }
    for why, each in wrong.items():
        for data in each:
            with pytest.raises(ProtocolError, match=why):
                offering.share(data)


@settings(max_examples=60)
@given(st.binary(max_size=LAYOUT.offer_bytes + 8))
def test_rubbish_is_refused_as_a_protocol_error(data: bytes) -> None:
    for rubbish in (data, LAYOUT.header(b"CFTO") + data.ljust(LAYOUT.offer_bytes, b"\7")[HEADER:]):
        with pytest.raises(ProtocolError):
            answered(rubbish, LAYOUT, SECOND)


@pytest.mark.parametrize("wrong", [FIRST[:-1], FIRST + 1, FIRST.astype(np.float64), FIRST.reshape(2, 3)])
def test_clusters_other_than_were_agreed_on_are_not_offered(offering: Offering, wrong: Any) -> None:
    with pytest.raises(ConfigError, match="one each"):
        offering.offered(wrong)
    with pytest.raises(ConfigError, match="one each"):
        answered(b"", LAYOUT, wrong)


def test_more_clusters_than_a_key_has_room_for_are_refused_with_a_key_that_has() -> None:
    assert (most_slots(2048), most_slots(3072)) == (20, 30)
    with pytest.raises(ConfigError, match=r"room for 4 clusters, and there are 9.*use a key of 1,088 bits"):
        Layout(users=5, rows=9, columns=2, bits=BITS)
    Layout(users=5, rows=9, columns=2, bits=1088)


@pytest.mark.parametrize("wrong", [{"bits": 128}, {"bits": 520}, {"users": 0}, {"rows": 0}, {"columns": 1.5}])
def test_settings_that_make_no_sense_are_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError):
        Layout(**{"users": 3, "rows": 2, "columns": 2, "bits": BITS, **wrong})


def test_keys_have_the_size_that_was_agreed_on_and_are_drawn_anew() -> None:
    moduli = {int(Offering(LAYOUT)._modulus) for _ in range(4)}
    assert len(moduli) == 4
    assert {each.bit_length() for each in moduli} == {BITS}


def test_a_key_is_neither_copied_nor_shown(offering: Offering) -> None:
    for way in (copy.copy, pickle.dumps):
        with pytest.raises(Refused):
            way(offering)
    assert str(int(offering._key._primes[0])) not in repr(vars(offering)["_layout"]) + repr(offering)
