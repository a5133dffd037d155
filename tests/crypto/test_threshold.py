import copy
import math
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import phe
import pytest
from gmpy2 import invert, mpz, powmod

from cofactor.config import as_table, from_table
from cofactor.crypto import primes, threshold
from cofactor.crypto.ciphers import Dealt, Part, Scheme
from cofactor.crypto.threshold import (
    Root,
    Textbook,
    ThresholdHolder,
    ThresholdPaillier,
    dealt_from,
    polynomial,
    weights,
)
from cofactor.errors import ConfigError, ProtocolError, Refused, TooFew
from tests.crypto.paillier_keys import LARGE, OTHER_SMALL, SMALL, opened, parts_of

Kind = type[Textbook] | type[Root]
KINDS = pytest.mark.parametrize("kind", [Textbook, Root])
SHARES = pytest.mark.parametrize("shares", ["textbook", "root"])

BITS = 40
VALUES = np.array([-(2**38), 2**38 - 1, 0, 0, 12345, -1], np.int64)
LENGTH = len(VALUES)


def dealt_small(shares: str, decrypters: int = 3, quorum: int = 2) -> Dealt:
    scheme = ThresholdPaillier(shares=shares, quorum=quorum)  # type: ignore[arg-type]
    return dealt_from(scheme, decrypters, SMALL)


def told_by(opening: Textbook | Root, pair: tuple[mpz, mpz], ciphertext: int) -> dict[int, mpz]:
    shares = polynomial(opening.secret(*pair), opening.quorum, opening.decrypters)
    return {place: opening.part(mpz(ciphertext), share) for place, share in enumerate(shares)}


# One toy of a key, worked out by hand and agreed on by phe: p 59, q 83, share polynomial 877 + 100 x.
TOY, TOY_CIPHERTEXT = (mpz(59), mpz(83)), mpz(19850704)


def test_the_toy_opens_by_roots_as_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threshold, "randbelow", lambda _: 100)
    opening = Root(2, 3, mpz(4897))
    assert phe.PaillierPublicKey(4897).raw_encrypt(1234, 7) == TOY_CIPHERTEXT
    assert opening.secret(*TOY) == (877, 1189)
    shares = polynomial(opening.secret(*TOY), 2, 3)
    assert shares == [977, 1077, 1177]
    told = {place: opening.part(TOY_CIPHERTEXT, share) for place, share in enumerate(shares)}
    assert told == {0: 2199, 1: 4460, 2: 1688}
    for places in combinations(range(3), 2):
        assert threshold._product(told, places, 3, mpz(4897)) == 2672 == pow(7, 144, 4897)
        assert opening.opened(TOY_CIPHERTEXT, {place: told[place] for place in places}) == 1234


def test_the_toy_opens_by_the_textbook() -> None:
    opening = Textbook(2, 3, mpz(4897))
    secret, modulus = opening.secret(*TOY)
    assert modulus == 4897 * 1189
    assert (secret % 1189, secret % 4897) == (0, 1)
    assert opening.opened(TOY_CIPHERTEXT, told_by(opening, TOY, 19850704)) == 1234


@KINDS
@pytest.mark.parametrize(("quorum", "decrypters"), [(2, 2), (2, 3), (3, 5), (5, 5), (2, 7)])
def test_any_quorum_opens_what_phe_encrypts(kind: Kind, quorum: int, decrypters: int) -> None:
    modulus = SMALL[0] * SMALL[1]
    opening = kind(quorum, decrypters, modulus)
    for plaintext in (0, 1, 10**30, int(modulus) - 1):
        ciphertext = phe.PaillierPublicKey(int(modulus)).raw_encrypt(plaintext)
        told = told_by(opening, SMALL, ciphertext)
        for count in range(quorum, decrypters + 1):
            for places in combinations(range(decrypters), count):
                assert opening.opened(mpz(ciphertext), {at: told[at] for at in places}) == plaintext


@KINDS
def test_fewer_parts_than_the_quorum_do_not_combine_to_the_plaintext(kind: Kind) -> None:
    modulus = SMALL[0] * SMALL[1]
    opening = kind(3, 5, modulus)
    ciphertext = phe.PaillierPublicKey(int(modulus)).raw_encrypt(42)
    told = told_by(opening, SMALL, ciphertext)
    careless = replace(opening, quorum=2)
    for places in combinations(range(5), 2):
        with pytest.raises(ProtocolError, match="do not fit together"):
            careless.opened(mpz(ciphertext), {at: told[at] for at in places})


@SHARES
def test_every_quorum_opens_a_sum_at_the_default_size(shares: str) -> None:
    scheme = ThresholdPaillier(shares=shares)  # type: ignore[arg-type]
    dealt = dealt_from(scheme, 3, LARGE)
    cipher = dealt.cipher
    assert (cipher.quorum, cipher.pieces(LENGTH, BITS), cipher.pieces(22_446, 46)) == (2, 1, 522)
    total = cipher.added([cipher.encrypted(VALUES, BITS) for _ in range(2)], LENGTH, BITS)
    parts = parts_of(dealt, total, LENGTH, BITS, range(3))
    for chosen in [*combinations(parts, 2), parts]:
        assert cipher.combined(total, LENGTH, BITS, chosen).tolist() == (2 * VALUES).tolist()


@SHARES
@pytest.mark.parametrize(("quorum", "decrypters"), [(2, 2), (2, 3), (3, 5)])
def test_one_part_less_than_the_quorum_opens_nothing(shares: str, quorum: int, decrypters: int) -> None:
    dealt = dealt_small(shares, decrypters, quorum)
    total = dealt.cipher.encrypted(VALUES, BITS)
    parts = parts_of(dealt, total, LENGTH, BITS, range(decrypters))
    for places in combinations(range(decrypters), quorum):
        chosen = [parts[place] for place in places]
        assert dealt.cipher.combined(total, LENGTH, BITS, chosen).tolist() == VALUES.tolist()
        with pytest.raises(TooFew, match=rf"of {quorum} decrypters, got {quorum - 1}\. Nothing is opened"):
            dealt.cipher.combined(total, LENGTH, BITS, chosen[1:])


@SHARES
def test_three_decrypters_divide_the_pieces_so_that_two_open_each(shares: str) -> None:
    dealt = dealt_small(shares)
    values = np.arange(-8, 7)
    total, count = dealt.cipher.encrypted(values, BITS), dealt.cipher.pieces(15, BITS)
    assert count == 4
    runs = [(0, range(3)), (1, range(1, 4)), (2, range(1)), (2, range(3, 4))]
    parts = [Part(at, run, dealt.holders[at].part(total, 15, BITS, run)) for at, run in runs]
    assert dealt.cipher.combined(total, 15, BITS, parts).tolist() == values.tolist()
    for left_out in range(4):
        with pytest.raises(TooFew, match="got 1"):
            dealt.cipher.combined(total, 15, BITS, parts[:left_out] + parts[left_out + 1 :])


def with_number(part: Part, number: int, width: int) -> Part:
    return replace(part, data=part.data[:-width] + number.to_bytes(width, "little"))


def number_of(part: Part, width: int) -> int:
    return int.from_bytes(part.data[-width:], "little")


@SHARES
@pytest.mark.parametrize("number", [0, 1, 2, int(SMALL[0]), int(SMALL[0] * SMALL[1] - 1)])
@pytest.mark.parametrize("liar", [0, 1])
def test_a_false_part_opens_nothing(shares: str, number: int, liar: int) -> None:
    dealt = dealt_small(shares)
    total = dealt.cipher.encrypted(VALUES[:3], BITS)
    parts = parts_of(dealt, total, 3, BITS, [0, 1])
    parts[liar] = with_number(parts[liar], number, 64 if shares == "textbook" else 32)
    with pytest.raises(ProtocolError, match="Nothing was opened"):
        dealt.cipher.combined(total, 3, BITS, parts)


def shifted(dealt: Dealt, parts: Sequence[Part], liar: int, by: int) -> list[Part]:
    """Multiply the liar's part by a power of 1 + N, which the textbook's own check does not see."""
    modulus = dealt.cipher._way.key_modulus  # type: ignore[attr-defined]
    number = mpz(number_of(parts[liar], 64)) * (1 + by * modulus) % modulus**2
    lies = list(parts)
    lies[liar] = with_number(parts[liar], int(number), 64)
    return lies


def checked(dealt: Dealt, values: list[int]) -> int:
    """Return the plaintext of some numbers, with the check that belongs to them."""
    packing = dealt.cipher.packing(BITS)  # type: ignore[attr-defined]
    return int(packing.packed(np.array(values))[0])


def test_with_no_more_than_a_quorum_a_textbook_part_can_shift_the_sum_unseen() -> None:
    # This is what the assumption "decrypters keep to the protocol" is for. The liar at place 0 has weight
    # 2 * 6 * 2 / (2 - 1) = 24 and the result is divided by 4 * 6^2 = 144: it adds 1/6 of its power.
    dealt = dealt_small("textbook")
    total = dealt.cipher.encrypted(VALUES[:3], BITS)
    honest = parts_of(dealt, total, 3, BITS, [0, 1])
    parts = shifted(dealt, honest, 0, 6 * checked(dealt, [99, 0, 0]))
    assert (dealt.cipher.combined(total, 3, BITS, parts) - VALUES[:3]).tolist() == [99, 0, 0]
    with pytest.raises(ProtocolError, match="holds no packed sums"):  # the check of what is packed, forgotten
        dealt.cipher.combined(total, 3, BITS, shifted(dealt, honest, 0, 6 * 99))


@pytest.mark.parametrize("liar", [0, 1, 2, 3])
@pytest.mark.parametrize("quorum", [2, 3])
def test_with_one_part_more_than_the_quorum_a_textbook_part_that_shifts_is_seen(
    liar: int, quorum: int
) -> None:
    dealt = dealt_small("textbook", 4, quorum)
    total = dealt.cipher.encrypted(VALUES[:3], BITS)
    honest = parts_of(dealt, total, 3, BITS, range(4))
    for places in combinations(range(4), quorum + 1):
        if liar in places:
            lies = shifted(dealt, honest, liar, math.factorial(4) ** 2 * 99)
            with pytest.raises(ProtocolError, match="one of them is false"):
                dealt.cipher.combined(total, 3, BITS, [lies[place] for place in places])


def test_two_liars_are_seen_by_a_quorum_and_two_more() -> None:
    dealt = dealt_small("textbook", 4, 2)
    total = dealt.cipher.encrypted(VALUES[:3], BITS)
    honest = parts_of(dealt, total, 3, BITS, range(4))
    step = math.factorial(4) ** 2 * checked(dealt, [1, 0, 0])
    # What the liars add, 2 - x and 3 - x at the places 0 and 1 (x = 1, 2), lies on a line with nought at 2.
    lies = shifted(dealt, shifted(dealt, honest, 0, 2 * step), 1, step)
    assert dealt.cipher.combined(total, 3, BITS, lies[:3]).tolist() != VALUES[:3].tolist()
    with pytest.raises(ProtocolError, match="one of them is false"):
        dealt.cipher.combined(total, 3, BITS, lies)


def test_no_part_of_the_root_shifts_a_sum() -> None:
    dealt = dealt_small("root")
    total = dealt.cipher.encrypted(VALUES[:3], BITS)
    parts = parts_of(dealt, total, 3, BITS, [0, 1])
    number = number_of(parts[0], 32)
    modulus = int(SMALL[0] * SMALL[1])
    for lie in (number * 2 % modulus, number**2 % modulus, number + 1):
        with pytest.raises(ProtocolError, match="Nothing was opened"):
            dealt.cipher.combined(total, 3, BITS, [with_number(parts[0], lie, 32), parts[1]])
    # All weights are even: another sign changes nothing.
    lies = [with_number(parts[0], modulus - number, 32), parts[1]]
    assert dealt.cipher.combined(total, 3, BITS, lies).tolist() == VALUES[:3].tolist()


@SHARES
def test_a_changed_ciphertext_is_not_opened(shares: str) -> None:
    dealt = dealt_small(shares)
    total = dealt.cipher.encrypted(VALUES[:3], BITS)
    changed = total[:-20] + bytes([total[-20] ^ 1]) + total[-19:]
    with pytest.raises(ProtocolError, match="Nothing was opened"):
        opened(dealt, changed, 3, BITS, [0, 2])


@SHARES
def test_parts_for_the_sum_as_it_was_do_not_open_a_changed_one(shares: str) -> None:
    dealt = dealt_small(shares)
    total, other = (dealt.cipher.encrypted(VALUES[:3], BITS) for _ in range(2))
    (first,), (second,) = (parts_of(dealt, each, 3, BITS, [at]) for at, each in enumerate((total, other)))
    with pytest.raises(ProtocolError, match="of another key, sum"):
        dealt.cipher.combined(total, 3, BITS, [first, second])


@SHARES
def test_shares_of_another_dealing_open_nothing(shares: str) -> None:
    dealt, again = dealt_small(shares), dealt_small(shares)
    total = dealt.cipher.encrypted(VALUES[:3], BITS)
    with pytest.raises(ProtocolError, match="another key"):
        again.holders[0].part(total, 3, BITS, range(1))
    cipher, share = dealt.cipher, again.holders[1]._share  # type: ignore[attr-defined]
    mixed = ThresholdHolder(cipher, cipher._way, 1, share)  # type: ignore[arg-type, attr-defined]
    parts = [*parts_of(dealt, total, 3, BITS, [0]), Part(1, range(1), mixed.part(total, 3, BITS, range(1)))]
    with pytest.raises(ProtocolError, match="or of another key"):
        cipher.combined(total, 3, BITS, parts)


def test_uploads_of_different_parameters_are_not_added() -> None:
    mine, theirs = dealt_small("textbook"), dealt_small("root")
    uploads = [each.cipher.encrypted(VALUES, BITS) for each in (mine, theirs)]
    with pytest.raises(ProtocolError, match="another key or other parameters"):
        mine.cipher.added(uploads, LENGTH, BITS)
    with pytest.raises(ProtocolError, match="6 numbers of 41 bits"):
        mine.cipher.added([uploads[0], mine.cipher.encrypted(VALUES, 41)], LENGTH, BITS)


@KINDS
def test_shares_are_drawn_from_the_whole_range(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def largest(below: int) -> int:
        asked.append(below)
        return below - 1

    monkeypatch.setattr(threshold, "randbelow", largest)
    order = int((SMALL[0] // 2) * (SMALL[1] // 2))
    modulus = int(SMALL[0] * SMALL[1])
    secret, period = kind(3, 4, SMALL[0] * SMALL[1]).secret(*SMALL)
    assert period == (order * modulus if kind is Textbook else order)
    values = polynomial((secret, period), 3, 4)
    assert asked == [period] * 2
    assert values == [(secret - x - x * x) % period for x in range(1, 5)]


def test_weights_are_lagranges_times_twice_the_factorial() -> None:
    for places in combinations(range(7), 4):
        points = [place + 1 for place in places]
        for weight, i in zip(weights(places, 7), points, strict=True):
            others = [j for j in points if j != i]
            exact = math.prod(Fraction(j, j - i) for j in others)
            assert weight == 2 * math.factorial(7) * exact


def test_what_a_textbook_part_tells_follows_from_the_sum_and_the_other_shares() -> None:
    # The proof that parts tell nothing else: whoever has quorum - 1 shares and the plaintext computes the
    # part of every other decrypter, to the power of the factorial.
    modulus = SMALL[0] * SMALL[1]
    opening, square = Textbook(2, 3, modulus), modulus**2
    ciphertext = mpz(phe.PaillierPublicKey(int(modulus)).raw_encrypt(77))
    shares = polynomial(opening.secret(*SMALL), 2, 3)
    # f(3) = 3 f(1) - 2 f(0), and c^(2 f(0)) = (1 + N)^(2 * 77).
    known = powmod(ciphertext, 2 * 6 * 3 * shares[0], square)
    told = known * invert(powmod(1 + modulus, 2 * 6 * 2 * 77, square), square) % square
    assert opening.part(ciphertext, shares[2]) == told


@pytest.mark.parametrize("pair", [(SMALL[0], SMALL[0]), (mpz(13), mpz(7)), (mpz(23), mpz(11))])
def test_primes_that_do_not_fit_are_refused(pair: tuple[mpz, mpz]) -> None:
    for kind in (Textbook, Root):
        with pytest.raises(ConfigError, match="two different safe primes"):
            kind(2, 3, pair[0] * pair[1]).secret(*pair)


def test_keys_are_drawn_afresh_at_the_size_of_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([(2048, SMALL), (3072, OTHER_SMALL)])

    def pair(bits: int) -> tuple[mpz, mpz]:
        expected, primes_drawn = next(drawn)
        assert bits == expected
        return primes_drawn

    monkeypatch.setattr(primes, "safe_prime_pair", pair)
    first, second = ThresholdPaillier().dealt(3), ThresholdPaillier(bits=3072).dealt(3)
    assert first.cipher.identity != second.cipher.identity
    assert [holder.place for holder in first.holders] == [0, 1, 2]


def test_exponents_follow_the_setting() -> None:
    lengths = [
        dealt_from(ThresholdPaillier(randomness=words), 2, SMALL).cipher._key.exponent_bits  # type: ignore[attr-defined]
        for words in ("short", "full")
    ]
    assert lengths == [448, 1024]


def test_secrets_do_not_show_and_are_not_copied() -> None:
    dealt = dealt_small("textbook")
    assert repr(dealt.holders[2]) == "ThresholdHolder(place=2)"
    assert str(dealt.holders[2]._share) not in repr(dealt)  # type: ignore[attr-defined]
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(Refused, match="neither copied nor pickled"):
            copied(dealt.holders[0])


@pytest.mark.parametrize(
    ("quorum", "decrypters", "expected"), [(2, 2, 2), (2, 3, 2), (3, 2, 2), (5, 3, 3), (3, 5, 3)]
)
def test_the_quorum_is_what_was_asked_for_or_everybody(quorum: int, decrypters: int, expected: int) -> None:
    scheme = ThresholdPaillier(quorum=quorum)
    assert scheme.quorum_of(decrypters) == expected
    assert dealt_small("root", decrypters, quorum).cipher.quorum == expected


@pytest.mark.parametrize("decrypters", [1, 65])
def test_too_few_or_too_many_decrypters_are_refused(decrypters: int) -> None:
    scheme = ThresholdPaillier()
    for refused in (scheme.quorum_of, scheme.dealt, scheme.assumptions):
        with pytest.raises(ConfigError, match=rf"2 to 64 decrypters, got {decrypters}: a single one would"):
            refused(decrypters)


@pytest.mark.parametrize("bits", [1024, 2047, 2049, 8256])
def test_keys_that_are_too_short_or_too_long_are_refused(bits: int) -> None:
    with pytest.raises(ConfigError, match=r"multiple of 64 from 2048 to 8192, got \d+: shorter keys can be"):
        ThresholdPaillier(bits=bits)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="a decrypter that opens sums alone holds the whole key"):
        ThresholdPaillier(quorum=1)
    with pytest.raises(ConfigError, match=r'shares must be one of.*Did you mean "root"'):
        ThresholdPaillier(shares="roots")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="randomness must be one of short, full"):
        ThresholdPaillier(randomness="none")  # type: ignore[arg-type]


def test_assumptions_name_what_the_settings_rest_on() -> None:
    scheme: Scheme = ThresholdPaillier()
    assert scheme.unsafe == ""
    assert scheme.exact
    words = " ".join(scheme.assumptions(3))
    expected = ("dealer", "out of others", "2048 bits", "112 bits of security", "448 bits", "Ma, Han")
    assert all(each in words for each in expected)
    assert "unless more than the quorum open it" in words
    assert "not reviewed" not in words
    rooted = " ".join(ThresholdPaillier(shares="root", randomness="full").assumptions(3))
    assert all(each in rooted for each in ("not reviewed", "1024 bits", "always seen"))
    assert "Ma, Han" not in rooted


def test_settings_survive_a_table() -> None:
    scheme = ThresholdPaillier(bits=3072, quorum=3, shares="root", randomness="full")
    assert from_table(ThresholdPaillier, as_table(scheme), "scheme") == scheme


def test_settings_need_no_gmpy2_until_keys_are_made() -> None:
    code = (
        "import sys; sys.modules['gmpy2'] = None\n"
        "from cofactor.crypto.shared_key import SharedKey\n"
        "from cofactor.crypto.threshold import ThresholdPaillier\n"
        "from cofactor.errors import ConfigError\n"
        "for scheme in (ThresholdPaillier(), SharedKey()):\n"
        "    scheme.quorum_of(3), scheme.assumptions(3)\n"
        "    try: scheme.dealt(3)\n"
        "    except ConfigError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("pip install gmpy2 (or, in a clone, pip install '.[cluster,he]')") == 2
