"""Noise in layers. Statistical checks fail by chance less than once in ten million runs: see SIGMAS."""

import hashlib
import math
import secrets
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from cofactor.errors import ConfigError, Refused
from cofactor.privacy import noise, tables
from cofactor.privacy.laws import AnyLaw, PolyaLaw, SkellamLaw
from cofactor.privacy.layers import Layers, draw
from cofactor.randomness import SecureRandom
from tests.privacy.making import assert_fits

SIGMAS = 5.8
"""Standard errors that pass: a normal number is beyond with probability 7e-9."""
ROUNDS = 10_000

settings = st.tuples(
    st.integers(2, 3000), st.floats(0, 0.9), st.floats(0, 0.9), st.sampled_from([1.001, 1.02, 1.3])
)


def layers_of(parties: int, omega: float, gamma: float, ratio: float = 1.02) -> Layers:
    fewest = max(2, math.ceil((1 - omega) * parties))
    colluding = min(max(1, math.floor(gamma * fewest)), fewest - 1)
    return Layers(parties=parties, fewest=fewest, colluding=colluding, ratio=ratio)


def keys_of(layers: Layers) -> list[bytes]:
    return [secrets.token_bytes(32) for _ in layers.grid]


# What the numbers promise.


@given(settings, st.floats(1e-6, 1e10), st.data())
def test_noise_that_stays_is_never_below_the_target_and_at_most_the_ratio_above(
    setting: tuple[int, float, float, float], target: float, data: st.DataObject
) -> None:
    layers = layers_of(*setting)
    survivors = data.draw(st.integers(layers.fewest, layers.parties))
    honest, kept = survivors - layers.colluding, layers.kept(survivors)
    of_one = sum(Fraction(float(variance)) for variance in layers.variances(target)[:kept])
    rounding = 1 + Fraction(1, 10**12)
    for share in (of_one, Fraction(layers.remaining(survivors, target))):
        assert Fraction(target) <= honest * share <= Fraction(target) * Fraction(layers.ratio) * rounding
    assert layers.together(survivors, survivors, target) == pytest.approx(float(survivors * of_one))


@given(settings)
def test_grid_falls_from_all_parties_to_the_fewest(setting: tuple[int, float, float, float]) -> None:
    layers = layers_of(*setting)
    assert layers.grid[0] == layers.parties
    assert layers.grid[-1] == layers.fewest
    assert np.all(np.diff(layers.grid) < 0)
    assert len(layers.variances(1.0)) == len(layers.grid)
    assert np.all(layers.variances(1.0) > 0)


def test_grid_of_few_parties_has_every_number_of_survivors() -> None:
    layers = Layers(parties=10, fewest=7, colluding=1)
    assert layers.grid == (10, 9, 8, 7)
    assert layers.variances(72.0).tolist() == pytest.approx([8, 1, 72 / 7 - 9, 12 - 72 / 7])
    assert [layers.kept(survivors) for survivors in (10, 9, 8, 7)] == [1, 2, 3, 4]
    assert layers.remaining(7, 72.0) == pytest.approx(12)


def test_grid_of_many_parties_leaves_numbers_out() -> None:
    layers = Layers(parties=201, fewest=150, colluding=1)
    # 200 honest ones; 196 / 1.02 ... : with 197 of them, 199 honest survivors have noise for 199 / 196.
    assert layers.grid[:3] == (201, 197, 193)
    assert [layers.kept(survivors) for survivors in (201, 200, 197, 196, 193, 192)] == [1, 2, 2, 3, 3, 4]


@pytest.mark.parametrize(("omega", "most"), [(0.3, 22), (0.6, 58)])
def test_a_few_dozen_layers_serve_any_number_of_devices(omega: float, most: int) -> None:
    layers = [layers_of(parties, omega, 0.1 / (1 - omega)) for parties in (1000, 100_000, 10_000_000)]
    assert [each.colluding / each.parties for each in layers] == pytest.approx([0.1] * 3, rel=0.01)
    assert all(len(each.grid) <= most for each in layers)


def test_nobody_drops_out_where_nobody_may() -> None:
    layers = Layers(parties=5, fewest=5, colluding=2)
    assert layers.grid == (5,)
    assert layers.variances(6.0).tolist() == [2.0]
    assert layers.excess(3, 6.0, 5, []).tolist() == [0, 0, 0]


# Adding and removing.


@pytest.mark.parametrize("survivors", [20, 17, 14])
def test_what_is_taken_off_is_bit_by_bit_what_was_added(survivors: int) -> None:
    layers, shape, target = Layers(parties=20, fewest=14, colluding=2), (40, 7), 900.0
    keys, kept = keys_of(layers), layers.kept(survivors)
    left = layers.added(shape, target, keys) - layers.excess(shape, target, survivors, keys[kept:])
    variances = layers.variances(target).tolist()[:kept]
    stays = [draw(shape, SkellamLaw(variance=v), key) for v, key in zip(variances, keys, strict=False)]
    assert np.array_equal(left, np.sum(stays, axis=0))


def test_a_wrong_key_takes_nothing_off() -> None:
    layers, shape, target = Layers(parties=20, fewest=5), 100_000, 900.0
    keys = keys_of(layers)
    left = layers.added(shape, target, keys) - layers.excess(shape, target, 20, keys_of(layers)[1:])
    assert left.var() > 5 * target / 19


@pytest.mark.parametrize("variance", [1e-6, 0.3, 40.0, 1e6])
def test_a_layer_follows_its_law(variance: float) -> None:
    count = 1 << 20
    drawn = draw(count, SkellamLaw(variance=variance), secrets.token_bytes(32))
    error = math.sqrt((2 + 1 / variance) / count)
    if variance > 1e-3:
        assert abs(drawn.mean()) < SIGMAS * math.sqrt(variance / count)
        assert drawn.var() / variance == pytest.approx(1, abs=SIGMAS * error)
    else:
        # One expected: more than 12 have a chance below 1e-9.
        assert np.count_nonzero(drawn) <= 12
        assert stats.poisson(count * variance).sf(12) < 1e-9


def test_arrays_layers_and_keys_have_noise_of_their_own() -> None:
    key, count = secrets.token_bytes(32), 100_000
    raw = noise.skellam_of_key(count, 50.0, key)
    image = noise.skellam_of_key(count, 50.0, hashlib.sha256(key).digest())
    law = SkellamLaw(variance=50.0)
    drawn = [draw(count, law, key, array=array) for array in range(3)]
    other = draw(count, law, secrets.token_bytes(32))
    table = np.corrcoef([raw, image, *drawn, other])
    assert np.abs(table - np.eye(6)).max() < SIGMAS / math.sqrt(count)
    assert np.array_equal(drawn[1], draw(count, law, key, array=1))


# The noise that really stays, over thousands of rounds.


def honest_noise(layers: Layers, survivors: int, target: float, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Return what the coordinator and its accomplices cannot take off, after the excess is revealed."""
    total = np.zeros(shape, np.int64)
    for _ in range(survivors - layers.colluding):
        keys = keys_of(layers)
        total += layers.added(shape, target, keys)
        total -= layers.excess(shape, target, survivors, keys[layers.kept(survivors) :])
    return total


def left_over(layers: Layers, dropout: float, coordinates: int, target: float = 400.0) -> tuple[float, float]:
    """Return the mean square of the noise that stays, over all rounds and relative to the target; its error.

    Parties drop out by lot, as many as may at most.
    """
    chance = np.random.default_rng(5)
    survivors = layers.parties - chance.binomial(layers.parties, dropout, size=ROUNDS)
    squares = np.zeros(0)
    for count, rounds in zip(
        *np.unique(np.maximum(survivors, layers.fewest), return_counts=True), strict=True
    ):
        drawn = honest_noise(layers, count, target, (int(rounds), coordinates))
        squares = np.append(squares, drawn.astype(np.float64).ravel() ** 2)
    return squares.mean() / target, math.sqrt((2 + 1 / target) / squares.size)


PATTERNS = [
    (omega, gamma, dropout)
    for omega, dropouts in ((0.3, (0.0, 0.15, 0.9)), (0.6, (0.0, 0.35, 0.9)))
    for gamma in (0.0, 0.1)
    for dropout in dropouts
]
"""Nobody drops out; half of those who may; all who may. One party colludes, or a tenth."""


def assert_within(found: tuple[float, float], ratio: float) -> None:
    mean, error = found
    assert 1 - SIGMAS * error < mean < ratio + SIGMAS * error


@pytest.mark.parametrize(("omega", "gamma", "dropout"), PATTERNS)
def test_noise_stays_between_the_target_and_two_percent_more(
    omega: float, gamma: float, dropout: float
) -> None:
    layers = layers_of(20, omega, gamma / (1 - omega))
    assert_within(left_over(layers, dropout, coordinates=24), layers.ratio)


@pytest.mark.slow
@pytest.mark.parametrize(("omega", "gamma", "dropout"), PATTERNS)
def test_noise_of_many_parties_stays_between_the_target_and_two_percent_more(
    omega: float, gamma: float, dropout: float
) -> None:
    layers = layers_of(200, omega, gamma / (1 - omega))
    assert len(layers.grid) < layers.parties - layers.fewest
    assert_within(left_over(layers, dropout, coordinates=16), layers.ratio)


class OneLayerTooFew(Layers):
    def kept(self, survivors: int) -> int:
        return super().kept(survivors) - 1


class NobodyColludes(Layers):
    def _stays(self, survivors: int) -> Fraction:
        return Fraction(1, survivors)


class NothingIsRemoved(Layers):
    def excess(self, shape: Any, *_: Any, **__: Any) -> Any:
        return np.zeros(shape, np.int64)


@pytest.mark.parametrize("flaw", [OneLayerTooFew, NobodyColludes, NothingIsRemoved])
def test_a_flaw_in_the_layers_is_noticed(flaw: type[Layers]) -> None:
    right = layers_of(20, 0.3, 0.15)
    wrong = flaw(parties=20, fewest=right.fewest, colluding=right.colluding)
    dropout = 0.0 if flaw is NothingIsRemoved else 0.9
    with pytest.raises(AssertionError):
        assert_within(left_over(wrong, dropout, coordinates=8), wrong.ratio)


def test_a_cohort_drawn_at_once_has_the_noise_of_its_devices() -> None:
    layers, survivors, target, count = layers_of(50, 0.6, 0.2), 31, 400.0, 200_000
    one_by_one = stats.skellam(*[survivors * layers.remaining(survivors, target) / 2] * 2)
    drawn = noise.skellam_of_key(
        count, layers.together(survivors, survivors, target), secrets.token_bytes(32)
    )
    error = math.sqrt((2 + 1 / target) / count)
    assert drawn.var() / one_by_one.var() == pytest.approx(1, abs=SIGMAS * error)
    honest = layers.together(survivors - layers.colluding, survivors, target)
    assert target <= honest <= 1.02 * target


# Noise of other laws.


@given(settings, st.data())
def test_parts_of_the_honest_survivors_make_up_the_whole_exactly(
    setting: tuple[int, float, float, float], data: st.DataObject
) -> None:
    layers = layers_of(*setting)
    survivors = data.draw(st.integers(layers.fewest, layers.parties))
    honest = survivors - layers.colluding
    of_one = sum(layers.parts[: layers.kept(survivors)])
    assert layers.part(survivors) == of_one
    assert layers.part(survivors, devices=honest) == honest * of_one
    assert 1 <= honest * of_one <= Fraction(layers.ratio)
    assert sum(layers.parts) * (layers.fewest - layers.colluding) == 1
    whole = PolyaLaw(scale=3.0)
    assert sum(whole.part(part).shape for part in layers.parts) == layers.part(layers.fewest)


LAPLACE = PolyaLaw(scale=12.0)


@pytest.mark.parametrize("survivors", [20, 17, 14])
def test_layers_of_laplace_noise_are_taken_off_bit_by_bit(survivors: int) -> None:
    layers, shape = Layers(parties=20, fewest=14, colluding=2), (40, 7)
    keys, kept = keys_of(layers), layers.kept(survivors)
    left = layers.added(shape, LAPLACE, keys, array=3)
    left -= layers.excess(shape, LAPLACE, survivors, keys[kept:], array=3)
    parts = zip(layers.parts[:kept], keys, strict=False)
    stays = [draw(shape, LAPLACE.part(part), key, array=3) for part, key in parts]
    assert np.array_equal(left, np.sum(stays, axis=0))
    assert not np.array_equal(layers.added(shape, LAPLACE, keys), layers.added(shape, LAPLACE, keys, array=1))


def laplace_left(layers: Layers, survivors: int, count: int, law: AnyLaw = LAPLACE) -> NDArray[np.int64]:
    """Return the noise that stays of the honest survivors, who are those that may be the fewest."""
    total = np.zeros(count, np.int64)
    for _ in range(survivors - layers.colluding):
        keys = keys_of(layers)
        total += layers.added(count, law, keys)
        total -= layers.excess(count, law, survivors, keys[layers.kept(survivors) :])
    return total


@pytest.mark.parametrize("scale", [0.7, 12.0, 60.0])
@pytest.mark.parametrize("survivors", [10, 8, 7])
def test_laplace_noise_of_the_honest_survivors_is_that_of_one_release(survivors: int, scale: float) -> None:
    # Each of these numbers is in the grid, so that what stays is not more than that either.
    layers, law = Layers(parties=10, fewest=7, colluding=2), PolyaLaw(scale=scale)
    drawn = laplace_left(layers, survivors, 100_000, law)
    assert_fits(drawn, law)
    assert_fits(noise.discrete_laplace(100_000, scale, SecureRandom()), law)


def test_laplace_noise_between_numbers_of_the_grid_is_a_little_more() -> None:
    layers = Layers(parties=201, fewest=150, colluding=1)
    assert layers.part(200, devices=199) == Fraction(199, 196)
    law = LAPLACE.part(Fraction(199, 196))
    assert_fits(laplace_left(layers, 200, 4_000), law)
    assert_fits(law.drawn(100_000, SecureRandom()), law)


@pytest.mark.parametrize("flaw", [OneLayerTooFew, NobodyColludes, NothingIsRemoved])
def test_a_flaw_in_the_layers_of_laplace_noise_is_noticed(flaw: type[Layers]) -> None:
    wrong = flaw(parties=10, fewest=7, colluding=2)
    with pytest.raises(AssertionError):
        assert_fits(laplace_left(wrong, 8, 100_000), LAPLACE)


# Mistakes.


def test_too_few_survivors_are_refused() -> None:
    layers = Layers(parties=1000, fewest=700)
    with pytest.raises(Refused, match=r"699 of 1,000 parties are left.*takes 700 .*Nothing may be opened"):
        layers.kept(699)
    for ask in (lambda: layers.remaining(699, 1.0), lambda: layers.excess(3, 1.0, 699, [])):
        with pytest.raises(Refused, match="Nothing may be opened"):
            ask()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fewest": 11}, "fewest must be at most parties, got 11 of 10"),
        ({"colluding": 7}, "colluding must be below fewest, got 7 and 7.*Allow fewer dropouts"),
        ({"colluding": 0}, "colluding must be at least 1"),
        ({"fewest": 1, "colluding": 1}, "colluding must be below fewest"),
        ({"parties": 0}, "parties must be at least 1"),
        ({"fewest": 6.5}, "fewest must be a whole number"),
        ({"ratio": 1.0}, "ratio must lie between 1.001 and 2"),
        ({"ratio": math.nan}, "ratio must be"),
    ],
)
def test_layers_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(Layers(parties=10, fewest=7), **changes)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda layers: layers.kept(11), "11 survivors of 10 parties cannot be"),
        (lambda layers: layers.kept(7.5), "survivors must be a whole number"),
        (lambda layers: layers.variances(0.0), "target must be greater than 0"),
        (lambda layers: layers.together(9, 8, 1.0), "a cohort of 9 is more than all 8 survivors"),
        (lambda layers: layers.added(3, 1.0, []), "4 layers need a key each, got 0"),
        (lambda layers: layers.added(3, 1.0, [b"short"] * 4), "must be 32 bytes"),
        (lambda layers: layers.added(3, 4e11, [bytes(32)] * 4), "Use a coarser grid"),
        (lambda layers: layers.added(3, PolyaLaw(scale=2.0**15), [bytes(32)] * 4), "Use a coarser grid"),
    ],
)
def test_questions_that_make_no_sense_are_refused(ask: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ask(Layers(parties=10, fewest=7))


def test_tables_of_dozens_of_layers_are_kept() -> None:
    layers = layers_of(1000, 0.6, 0.2)
    variances = layers.variances(1000.0).tolist()
    first = [tables.skellam(variance) for variance in variances]
    assert all(tables.skellam(v) is table for v, table in zip(variances, first, strict=True))
