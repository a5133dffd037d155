import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.crypto import shamir
from cofactor.crypto.shamir import PRIME, SHARE_BYTES, Weights, split
from cofactor.errors import ConfigError, ProtocolError

SECRET = bytes(range(32))
LARGEST = b"\xff" * 32


def naive_shares(secret: bytes, coefficients: list[int], holders: int) -> list[bytes]:
    """Evaluate one polynomial after the other, the highest coefficient first, and reduce at every step."""
    shares = []
    for x in range(1, holders + 1):
        value = 0
        for coefficient in [*coefficients, int.from_bytes(secret, "big")]:
            value = (value * x + coefficient) % PRIME
        shares.append(value.to_bytes(SHARE_BYTES, "big"))
    return shares


@given(st.data())
def test_as_many_shares_as_the_threshold_open_every_secret_whoever_holds_them(data: st.DataObject) -> None:
    secrets = data.draw(st.lists(st.binary(min_size=32, max_size=32), max_size=4))
    holders = data.draw(st.integers(1, 40))
    threshold = data.draw(st.integers(1, holders))
    places = data.draw(st.permutations(range(holders)))[:threshold]
    shares = split(secrets, threshold=threshold, holders=holders)
    weights = Weights.of(places)
    for number, secret in enumerate(secrets):
        assert weights.combine([shares[place][number] for place in places]) == secret


def test_one_share_less_than_the_threshold_opens_something_else() -> None:
    shares = split([SECRET], threshold=4, holders=6)
    for places in combinations(range(6), 3):
        weights = Weights.of(places)
        assert sum(
            weight * int.from_bytes(shares[place][0], "big")
            for weight, place in zip(weights.weights, places, strict=True)
        ) % PRIME != int.from_bytes(SECRET, "big")


@pytest.mark.parametrize("secret", [bytes(32), SECRET, LARGEST])
def test_a_single_share_says_nothing_about_the_secret(secret: bytes) -> None:
    # With a threshold of two every share is uniform. 20,000 of them in 16 boxes; false alarm: 1e-9 each.
    rounds, boxes = 100, 16
    shares = [row for _ in range(rounds) for row in split([secret] * 40, threshold=2, holders=5)]
    numbers = [int.from_bytes(share, "big") for row in shares for share in row]
    counts = np.bincount([number * boxes // PRIME for number in numbers], minlength=boxes)
    expected = len(numbers) / boxes
    # The five shares of a secret are not independent: the variance is at most five times a multinomial's.
    assert abs(counts - expected).max() < 6.5 * math.sqrt(5 * expected)


def test_equal_secrets_have_unequal_shares() -> None:
    rows = split([SECRET] * 30, threshold=2, holders=3)
    assert all(len(set(row)) == 30 for row in rows)
    assert split([SECRET], threshold=2, holders=3) != split([SECRET], threshold=2, holders=3)


@pytest.mark.parametrize(
    ("threshold", "holders", "secrets"), [(1, 1, 1), (2, 3, 2), (20, 30, 22), (90, 260, 3)]
)
@pytest.mark.parametrize("largest", [False, True])
def test_shares_side_by_side_are_those_of_the_plain_polynomials(
    monkeypatch: pytest.MonkeyPatch, threshold: int, holders: int, secrets: int, largest: bool
) -> None:
    rows: list[int] = []

    def drawn(bits: int) -> int:
        number = 2**bits - 1 if largest else int.from_bytes(np.random.default_rng(len(rows)).bytes(bits // 8))
        rows.append(number)
        return number

    monkeypatch.setattr(shamir, "randbits", drawn)
    shares = split([LARGEST] * secrets, threshold=threshold, holders=holders)
    assert len(rows) == threshold - 1
    for secret in range(secrets):
        coefficients = [(row >> 384 * secret) % 2**384 for row in rows]
        assert [row[secret] for row in shares] == naive_shares(LARGEST, coefficients, holders)


def test_random_coefficients_are_wider_than_the_prime_by_127_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def drawn(bits: int) -> int:
        asked.append(bits)
        return 0

    monkeypatch.setattr(shamir, "randbits", drawn)
    split([SECRET] * 5, threshold=3, holders=4)
    assert asked == [5 * 384] * 2


@pytest.mark.parametrize("places", [[0], [3, 1, 2], [0, 5, 199], list(range(150)), [0, 2**31 - 1]])
def test_weights_are_those_of_lagrange(places: list[int]) -> None:
    points = [place + 1 for place in places]
    exact = [math.prod(Fraction(y, y - x) for y in points if y != x) for x in points]
    expected = tuple(weight.numerator * pow(weight.denominator, -1, PRIME) % PRIME for weight in exact)
    assert Weights.of(places).weights == expected


def test_the_prime_is_one() -> None:
    # Fermat's test for several bases; 2^256 + 297 is in the tables of primes next to powers of two.
    assert all(pow(base, PRIME - 1, PRIME) == 1 for base in (2, 3, 5, 7, 11, 13))
    assert PRIME > 2**256


@pytest.mark.parametrize(
    "places", [[], [1, 1], [0, 2, 0], [-1, 1], [2**31, 1]], ids=["none", "twice", "apart", "below", "above"]
)
def test_shares_of_impossible_holders_are_refused(places: list[int]) -> None:
    with pytest.raises(ProtocolError):
        Weights.of(places)


@pytest.mark.parametrize(
    "share",
    [b"", bytes(32), bytes(34), PRIME.to_bytes(33, "big"), b"\xff" * 33],
    ids=["empty", "short", "long", "prime", "above"],
)
def test_malformed_shares_are_refused(share: bytes) -> None:
    with pytest.raises(ProtocolError, match="33 bytes"):
        Weights.of([0, 1]).combine([bytes(33), share])


def test_shares_that_open_to_no_secret_are_refused() -> None:
    assert Weights.of([7]).combine([b"\0" + LARGEST]) == LARGEST
    with pytest.raises(ProtocolError, match="do not belong together"):
        Weights.of([7]).combine([(2**256).to_bytes(33, "big")])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_shares_than_places_is_refused(count: int) -> None:
    with pytest.raises(ProtocolError, match="2 shares"):
        Weights.of([0, 1]).combine([bytes(33)] * count)


@pytest.mark.parametrize(("threshold", "holders"), [(0, 3), (4, 3), (1, 0), (-1, 3)])
def test_a_threshold_that_no_holders_reach_is_refused(threshold: int, holders: int) -> None:
    with pytest.raises(ConfigError, match="threshold"):
        split([SECRET], threshold=threshold, holders=holders)


@pytest.mark.parametrize("secret", [b"", bytes(31), bytes(33)])
def test_secrets_of_another_length_are_refused(secret: bytes) -> None:
    with pytest.raises(ConfigError, match="32 bytes"):
        split([SECRET, secret], threshold=1, holders=1)
