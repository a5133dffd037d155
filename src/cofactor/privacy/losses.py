"""What one release of each mechanism costs: its privacy-loss distribution, Renyi curve and pure epsilon.

What dp-accounting knows is asked of it; for the rest it is handed the exact laws of `pairs`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, get_args

import dp_accounting
import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import stats

from cofactor.errors import Refused
from cofactor.privacy import answers, mechanisms, pairs, sketches
from cofactor.privacy.events import Event
from cofactor.privacy.noise import GAUSSIAN_REACH
from cofactor.privacy.pairs import Distribution, Floats, Pair

_LARGE_ORDERS = tuple(2**k for k in range(6, 15))
ORDERS: tuple[float, ...] = (*(1 + k / 10 for k in range(1, 100)), *range(11, 64), *_LARGE_ORDERS)
"""Renyi orders: dp-accounting's, and larger ones for small losses."""
FINE_ORDERS = tuple(sorted({*ORDERS, *(float(round(2 ** (k / 8))) for k in range(48, 161))}))
"""More of them, and larger: for units that lose a small part of what noise was made for."""

_EMPTIED = dp_accounting.NeighboringRelation.REPLACE_SPECIAL
_REPLACED = dp_accounting.NeighboringRelation.REPLACE_ONE

Curve = Callable[[Sequence[float]], Floats]

_MOST_OUTCOMES = 20_000
"""Up to this noise or change in whole numbers their laws are listed outcome by outcome."""
_LONG = 10_000
"""More releases than this are composed in two stages."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The cost of one kind of release."""

    spread: float
    """Root mean square of the log-odds that one release gives: how fine a grid has to be."""
    reach: float = 0.0
    """The largest log-odds, but for a negligible probability: how far a grid has to go."""
    pure: float = math.inf
    """The most that it ever gives: epsilon at delta 0. Infinite where there is no such bound."""
    renyi: Curve | None = None
    """Renyi divergence at each order."""
    distribution: Callable[[float, int], Distribution] | None = None
    """Privacy-loss distribution on a grid of this width, of so many releases."""
    times: int = 1
    """How many such releases one event makes."""
    beyond: float = 0.0
    """Probability that noise of finite reach shows what it cannot under the other input: paid in delta."""


def loss_of(event: Event, steps: int) -> Loss:
    """Return the cost of one such release between inputs that are so many of its neighbours apart."""
    mechanism: Any = event.mechanism
    # A class derived from a known one may add other noise: only the known ones themselves are known.
    if type(mechanism) not in get_args(mechanisms.AnyMechanism):
        raise Refused(
            f"the accountant does not know the mechanism {type(mechanism).__name__}, so nothing can be "
            "promised about it. Use one of cofactor.privacy.mechanisms."
        )
    return _loss(mechanism, event.bound.size, event.dimension, steps)


@lru_cache(maxsize=256)
def _loss(mechanism: Any, size: float, dimension: int, steps: int) -> Loss:
    match mechanism:
        case mechanisms.SampledGaussian():
            return _sampled_gaussian(mechanism.noise_multiplier, mechanism.sampling, steps)
        case mechanisms.Gaussian():
            return _gaussian(mechanism.noise_multiplier / steps)
        case mechanisms.Laplace():
            return _laplace(mechanism.noise_multiplier / steps)
        case mechanisms.DiscreteLaplace():
            return _discrete_laplace(mechanism.noise_multiplier * size, steps * int(size))
        case mechanisms.DiscreteGaussian():
            return _discrete_gaussian(mechanism.noise_multiplier * size, size, steps, dimension)
        case mechanisms.SummedDiscreteGaussian():
            return _summed_discrete_gaussian(mechanism, size, steps, dimension)
        case mechanisms.Skellam():
            return _skellam((mechanism.noise_multiplier * size) ** 2, size, steps, dimension)
        case mechanisms.PoissonBinomial():
            return _poisson_binomial(mechanism, dimension)
        case sketches.PartitionSketch():
            return _partition_sketch(mechanism, steps)
        case answers.RandomizedResponse():
            return _exact(pairs.randomized_response(mechanism.choices, mechanism.epsilon))
        case answers.UnaryEncoding():
            return _exact(pairs.unary_encoding(mechanism.kept, mechanism.raised))
        case answers.DividedResponse() | answers.Wave():
            # Whatever never tells more than epsilon is made from such an answer by chance alone (Kairouz, Oh
            # and Viswanath 2015): it costs no more.
            return _exact(pairs.randomized_response(2, mechanism.epsilon))
    raise AssertionError(f"{type(mechanism).__name__} is known but has no loss")


def _exact(pair: Pair) -> Loss:
    return Loss(
        spread=pair.spread,
        pure=pair.pure,
        renyi=pair.renyi,
        distribution=lambda width, count: _composed(pair.distribution(width), count),
    )


def _gaussian(multiplier: float) -> Loss:
    def distribution(width: float, count: int) -> Distribution:
        deviation = multiplier / math.sqrt(count)
        return pld.from_gaussian_mechanism(deviation, value_discretization_interval=width)

    event = dp_accounting.GaussianDpEvent(multiplier)
    return Loss(
        spread=1 / multiplier,
        renyi=_known_curve(event),
        distribution=distribution,
        beyond=_beyond_reach(multiplier),
    )


def _sampled_gaussian(multiplier: float, sampling: float, steps: int) -> Loss:
    relation = _EMPTIED if steps == 1 else _REPLACED

    def distribution(width: float, count: int) -> Distribution:
        one = pld.from_gaussian_mechanism(
            multiplier,
            sampling_prob=sampling,
            value_discretization_interval=width,
            neighboring_relation=relation,
        )
        return _composed(one, count)

    # The root of the chi-square divergence, which tiny noise would blow up; it only sets the grid.
    spread = steps * sampling * math.sqrt(math.expm1(min(1 / multiplier**2, 10.0)))
    event = dp_accounting.PoissonSampledDpEvent(sampling, dp_accounting.GaussianDpEvent(multiplier))
    # dp-accounting has no Renyi curve for replacing a record of a sample.
    renyi = _known_curve(event, whole_orders=True) if steps == 1 else None
    # Ten deviations beyond what a chosen unit adds lies a negligible part of the noise.
    farthest = (0.5 + 10 * multiplier) / multiplier**2
    reach = float(np.logaddexp(0.0, math.log(sampling) + farthest))
    return Loss(
        spread=spread,
        reach=reach,
        renyi=renyi,
        distribution=distribution,
        beyond=sampling * _beyond_reach(multiplier / steps),
    )


def _laplace(multiplier: float) -> Loss:
    def distribution(width: float, count: int) -> Distribution:
        one = pld.from_laplace_mechanism(multiplier, value_discretization_interval=width)
        return _composed(one, count)

    curve = _known_curve(dp_accounting.LaplaceDpEvent(multiplier))
    return Loss(spread=1 / multiplier, pure=1 / multiplier, renyi=curve, distribution=distribution)


def _discrete_laplace(scale: float, shift: int) -> Loss:
    """All of the change in one coordinate is the worst case, as it is for real numbers.

    On a grid `coarse` times as wide the law gives away more, and hardly more: its curve of delta against
    e^epsilon is that of real numbers, joined by straight lines between shift + 1 points.
    """
    coarse = math.ceil(shift / _MOST_OUTCOMES)
    pair = pairs.discrete_laplace(scale / coarse, math.ceil(shift / coarse))
    return replace(_exact(pair), pure=shift / scale)


def _poisson_binomial(mechanism: mechanisms.PoissonBinomial, dimension: int) -> Loss:
    """Renyi divergences at the worst inputs; for distributions no inputs are the worst at every epsilon."""
    coins = mechanism.participants, mechanism.trials, mechanism.theta
    exact, fair = _exact(pairs.poisson_binomial(*coins)), _exact(pairs.poisson_binomial_fair(*coins))
    return replace(exact, distribution=fair.distribution, times=dimension)


def _partition_sketch(mechanism: sketches.PartitionSketch, steps: int) -> Loss:
    """One step is exact. Two lead through nothing, for which Renyi divergences have a triangle inequality.

    It is D_a(P, R) <= (a - 1/2) / (a - 1) D_2a(P, Q) + D_(2a-1)(Q, R) (Mironov 2017, Proposition 11).
    """
    pair = pairs.partition_sketch(mechanism.parties, mechanism.phantoms, mechanism.low, mechanism.high)
    one = replace(_exact(pair), times=mechanism.rows, reach=pair.pure)
    if steps == 1:
        return one

    def renyi(orders: Sequence[float]) -> Floats:
        a: Any = np.asarray(orders, np.float64)
        first, second = pair.renyi(2 * a), pair.renyi(2 * a - 1)
        curve: Floats = (a - 0.5) / (a - 1) * first + second
        return curve

    return Loss(spread=2 * pair.spread, pure=2 * pair.pure, renyi=renyi, times=mechanism.rows)


def _discrete_gaussian(sigma: float, size: float, steps: int, dimension: int) -> Loss:
    """Exact for one number; for vectors the concentrated bound (Canonne et al. 2020), a Gaussian's own."""

    def renyi(orders: Sequence[float]) -> Floats:
        return np.asarray(orders, np.float64) * (steps * size / sigma) ** 2 / 2

    if dimension == 1 and max(sigma, steps * size) <= _MOST_OUTCOMES:
        return replace(_exact(pairs.discrete_gaussian(sigma, steps * int(size))), renyi=renyi)
    return Loss(spread=steps * size / sigma, renyi=renyi)


def _summed_discrete_gaussian(
    mechanism: mechanisms.SummedDiscreteGaussian, size: float, steps: int, dimension: int
) -> Loss:
    """The bound of Kairouz, Liu and Steinke 2021, Proposition 14: a Gaussian's, and a little more."""
    sigma = mechanism.noise_multiplier * size / math.sqrt(mechanism.participants)
    tau = _distance_of_sums(sigma, mechanism.participants)
    ratio = steps / mechanism.noise_multiplier

    def renyi(orders: Sequence[float]) -> Floats:
        order = np.asarray(orders, np.float64)
        in_all, in_length = tau * dimension, tau * math.sqrt(dimension)
        return np.minimum(order / 2 * ratio**2 + in_all, order / 2 * (ratio + in_length) ** 2)

    return Loss(spread=ratio, renyi=renyi)


def _distance_of_sums(sigma: float, participants: int) -> float:
    """Return tau = 10 sum_(k=1)^(n-1) exp(-2 pi^2 sigma^2 k / (k + 1)): how far n parts are from a whole.

    Beyond the first thousand all terms are taken to be as large as the last, which is larger than they are.
    """
    exponent = -2 * math.pi**2 * sigma**2
    first = min(participants - 1, 1000)
    k = np.arange(1, first + 1)
    others = (participants - 1 - first) * math.exp(exponent * first / (first + 1))
    return 10 * (float(np.exp(exponent * k / (k + 1)).sum()) + others)


def _skellam(variance: float, size: float, steps: int, dimension: int) -> Loss:
    """Exact for one number; for vectors the bound of Agarwal, Kairouz and Liu 2021.

    It is stated for whole orders; the divergence rises with the order.
    """
    l2 = steps * size
    l1 = min(math.sqrt(dimension) * l2, l2**2)

    def renyi(orders: Sequence[float]) -> Floats:
        order = np.ceil(np.asarray(orders))
        extra = np.minimum(((2 * order - 1) * l2**2 + 6 * l1) / (4 * variance**2), 1.5 * l1 / variance)
        curve: Floats = order * l2**2 / (2 * variance) + extra
        return curve

    if dimension == 1 and max(variance, l2**2) <= _MOST_OUTCOMES**2:
        return replace(_exact(pairs.skellam(variance, steps * int(size))), renyi=renyi)
    return Loss(spread=l2 / math.sqrt(variance), renyi=renyi)


def _beyond_reach(multiplier: float) -> float:
    """Return how often noise that ends lands where it could not with the whole change in one number.

    Spread over several numbers a change matters less: beyond the reach of all lies far less than of one.
    """
    return float(stats.norm.sf(GAUSSIAN_REACH - 1 / multiplier))


def _known_curve(event: Any, *, whole_orders: bool = False) -> Curve:
    """Ask dp-accounting. Curves rise with the order, so a curve at whole orders bounds those below them."""

    def renyi(orders: Sequence[float]) -> Floats:
        asked = np.ceil(orders) if whole_orders else np.asarray(orders)
        # A sample's curve takes long at large orders, which matter only for a tiny epsilon.
        worth = asked <= (1024 if whole_orders else np.inf)
        curve = np.full(len(asked), np.inf)
        curve[worth] = dp_accounting.rdp.RdpAccountant(asked[worth], _EMPTIED).compose(event).rdp
        return curve

    return renyi


def _composed(one: Distribution, count: int) -> Distribution:
    with np.errstate(over="ignore"):  # dp-accounting tries bounds that may overflow, and leaves those out
        if count <= _LONG:
            return one.self_compose(count)
        # dp-accounting's bound on where a sum can end up is too wide, by far, for many short summands.
        block = math.isqrt(count)
        total = one.self_compose(block).self_compose(count // block)
        return total.compose(one.self_compose(count % block)) if count % block else total
