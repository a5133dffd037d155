"""Laws of which any part can be drawn: parts, tails, and what a mechanism's noise is."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.errors import ConfigError
from cofactor.privacy.events import Bound
from cofactor.privacy.laws import AnyLaw, PolyaLaw, SkellamLaw, law_of
from cofactor.privacy.mechanisms import DiscreteLaplace, Skellam
from cofactor.randomness import InsecureRandom

fractions = st.fractions(min_value=Fraction(1, 10**6), max_value=3)


@given(st.floats(1e-6, 1e10), fractions)
def test_a_part_of_skellam_noise_is_that_part_of_its_variance_rounded_up(
    variance: float, part: Fraction
) -> None:
    found = Fraction(SkellamLaw(variance=variance).part(part).variance)
    exact = Fraction(variance) * part
    assert exact <= found <= exact * (1 + Fraction(1, 2**51))


@given(st.floats(1e-3, 1e4), fractions, fractions)
def test_a_part_of_laplace_noise_is_exactly_that_part_of_its_shape(
    scale: float, one: Fraction, other: Fraction
) -> None:
    whole = PolyaLaw(scale=scale)
    assert whole.part(one).part(other) == PolyaLaw(scale=scale, shape=one * other)


@pytest.mark.parametrize("law", [SkellamLaw(variance=30.0), PolyaLaw(scale=5.0, shape=Fraction(4, 3))])
def test_noise_of_a_law_is_that_of_its_key(law: AnyLaw) -> None:
    key = InsecureRandom(3).new_key().astype("<u4").tobytes()
    drawn = law.drawn((4, 5), InsecureRandom(3))
    assert drawn.shape == (4, 5)
    assert np.array_equal(drawn, law.drawn_by((4, 5), key))


def test_a_mechanism_has_the_law_of_its_noise() -> None:
    l2, l1 = Bound(size=10.0, norm="l2", unit="user"), Bound(size=10.0, norm="l1", unit="rating")
    assert law_of(Skellam(noise_multiplier=3.0), l2) == SkellamLaw(variance=900.0)
    assert law_of(DiscreteLaplace(noise_multiplier=3.0), l1) == PolyaLaw(scale=30.0)


def log_generating(law: PolyaLaw, s: mpmath.mpf) -> mpmath.mpf:
    """Return log E exp(s X), infinite beyond the scale."""
    a = 1 / mpmath.mpf(law.scale)
    if s >= a:
        return mpmath.inf
    shape = mpmath.mpf(law.shape.numerator) / law.shape.denominator
    return shape * mpmath.log((mpmath.cosh(a) - 1) / (mpmath.cosh(a) - mpmath.cosh(s)))


@pytest.mark.parametrize("scale", [0.3, 2.0, 1000.0])
@pytest.mark.parametrize(("parties", "honest"), [(2, 1), (5, 3), (40, 25)])
@pytest.mark.parametrize("louder", [1.0, 1.7, 20.0])
def test_noise_of_all_parties_has_no_heavier_tails_than_what_sums_have_room_for(
    scale: float, parties: int, honest: int, louder: float
) -> None:
    whole = PolyaLaw(scale=scale)
    loud = PolyaLaw(scale=scale * louder)
    # Shared by those without a budget of their own; one party adds all of its own, louder noise.
    loudest = max(1 / honest, louder**2 if louder > 1 else 0.0)
    room = whole.most(parties, honest, loudest)
    if louder == 1:
        assert room.scale == pytest.approx(scale)
    assert room.shape == Fraction(parties, honest)
    # The party that is louder reckons with its own noise, and finds the same.
    assert loud.most(parties, honest, loudest / louder**2).scale == pytest.approx(room.scale)
    for part in (0.01, 0.3, 0.9, 0.999):
        s = mpmath.mpf(part) / room.scale
        shared = log_generating(whole.part(Fraction(1, honest)), s)
        own = log_generating(loud, s) if louder > 1 else shared
        assert (parties - 1) * shared + own <= log_generating(room, s) * (1 + mpmath.mpf(10) ** -9)


def test_room_for_skellam_noise_is_that_of_the_loudest_for_all() -> None:
    assert SkellamLaw(variance=100.0).most(5, 2, 1.5) == SkellamLaw(variance=750.0)


def test_reach_counts_bits_on_one_side() -> None:
    assert PolyaLaw(scale=100.0).reach(40) == pytest.approx(100 * 40 * math.log(2), rel=0.15)
    assert SkellamLaw(variance=1e6).reach(40) == pytest.approx(1000 * math.sqrt(80 * math.log(2)), rel=0.01)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SkellamLaw(variance=0.0), "variance must be greater than 0"),
        (lambda: PolyaLaw(scale=math.nan), "scale must be"),
        (lambda: PolyaLaw(scale=1.0, shape=Fraction(0)), "shape must be a Fraction above 0"),
        (lambda: PolyaLaw(scale=1.0, shape=0.5), "shape must be a Fraction above 0"),  # type: ignore[arg-type]
    ],
)
def test_laws_that_make_no_sense_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()
