import math
import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp
from scipy.stats import hypergeom

from cofactor.crypto import neighbours
from cofactor.crypto.neighbours import Neighbourhood, _Sparse
from cofactor.errors import ConfigError

SPARSE = [
    (300, 0.1, 0.1),
    (1_000, 0.2, 0.1),
    (1_000, 0.0, 0.0),
    (1_000, 0.5, 0.1),
    (3_000, 0.3, 0.1),
    (10_000, 0.2, 0.1),
    (10_000, 0.6, 0.2),
]


def planned(parties: int, dropout: float, colluding: float) -> Neighbourhood:
    return Neighbourhood.of(parties, dropout=dropout, colluding=colluding)


def choices(parties: int, chosen: int, chance: np.random.Generator, graphs: int) -> NDArray[np.bool_]:
    """Draw graphs: [graph, party, other], True where the party chose the other."""
    keys = chance.random((graphs, parties, parties))
    keys[:, np.arange(parties), np.arange(parties)] = 2.0
    drawn: NDArray[np.bool_] = keys.argsort(axis=2).argsort(axis=2) < chosen
    return drawn


@pytest.mark.parametrize(
    ("parties", "dropout", "colluding", "chosen", "threshold", "active"),
    [
        (2, 0.0, 0.0, 1, 1, True),
        (3, 0.0, 0.0, 2, 2, True),
        (3, 0.0, 0.34, 2, 2, True),
        (3, 0.34, 0.0, 2, 1, False),
        (4, 0.25, 0.0, 3, 2, True),
        (10, 0.1, 0.1, 9, 8, True),
        (10, 0.3, 0.3, 9, 6, False),
        (100, 0.2, 0.1, 99, 79, True),
        (100, 0.0, 0.0, 99, 99, True),
        (200, 0.6, 0.1, 199, 79, False),
    ],
)
def test_few_parties_all_choose_each_other(
    parties: int, dropout: float, colluding: float, chosen: int, threshold: int, active: bool
) -> None:
    plan = planned(parties, dropout, colluding)
    assert (plan.chosen, plan.threshold, plan.active) == (chosen, threshold, active)
    assert plan.least_honest == (plan.fewest - plan.colluding if active else 1)


def test_ten_thousand_parties_choose_about_two_hundred() -> None:
    plan = planned(10_000, 0.2, 0.1)
    assert (plan.fewest, plan.colluding, plan.active) == (8_000, 1_000, True)
    assert 170 < plan.chosen < 230
    assert 0.55 < plan.threshold / plan.chosen < 0.8


def test_the_number_chosen_grows_like_a_logarithm() -> None:
    chosen = [planned(parties, 0.2, 0.1).chosen for parties in (1_000, 10_000, 100_000, 1_000_000)]
    assert chosen == sorted(chosen)
    assert chosen[-1] < 2 * chosen[0]


@pytest.mark.parametrize(
    ("parties", "part", "count"),
    [(10, 0.1, 1), (100, 0.29, 29), (100, 0.57, 57), (1_000, 0.001, 1), (3, 0.34, 1), (7, 0.0, 0)],
)
def test_parts_are_counted_as_they_are_written(parties: int, part: float, count: int) -> None:
    assert planned(parties, part, 0.0).fewest == parties - count
    assert planned(parties, 0.0, part).colluding == count


@pytest.mark.parametrize("parties", [2, 3, 5, 8])
def test_in_a_complete_graph_active_means_that_no_lie_opens_both_secrets(parties: int) -> None:
    for fewest in range(2, parties + 1):
        for colluding in range(fewest - 1):
            _, threshold, active = neighbours._complete(parties, fewest, colluding)
            honest = parties - 1 - colluding
            both_open = any(
                own + colluding >= threshold and honest - own + colluding >= threshold
                for own in range(honest + 1)
            )
            assert active == (not both_open)
            assert colluding < threshold


@given(st.integers(2, 60), st.integers(0, 59), st.integers(0, 60))
def test_chances_are_hypergeometric(parties: int, some: int, chosen: int) -> None:
    some, chosen = min(some, parties - 1), min(chosen, parties - 1)
    chances = _Sparse(parties=parties, fewest=parties, colluding=0)._chances(some, chosen)
    expected = hypergeom.pmf(np.arange(chosen + 1), parties - 1, some, chosen)
    np.testing.assert_allclose(chances, expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize(("parties", "dropout", "colluding"), SPARSE)
def test_the_threshold_is_the_largest_that_dropouts_leave(
    parties: int, dropout: float, colluding: float
) -> None:
    plan = planned(parties, dropout, colluding)
    assert plan.chosen < parties // 2
    left = hypergeom(parties - 1, plan.fewest - 1, plan.chosen)
    assert parties * left.cdf(plan.threshold - 1) <= 1e-3 * (1 + 1e-6)
    assert parties * left.cdf(plan.threshold) > 1e-3


@pytest.mark.parametrize(("parties", "dropout", "colluding"), SPARSE)
def test_colluding_neighbours_do_not_open_secrets(parties: int, dropout: float, colluding: float) -> None:
    plan = planned(parties, dropout, colluding)
    needed = 2 * plan.threshold - plan.chosen if plan.active else plan.threshold
    chance = hypergeom.sf(needed - 1, parties - 1, plan.colluding, plan.chosen)
    assert (parties - plan.colluding) * chance <= 2.0**-40
    assert plan.active == (2 * plan.fewest > parties + plan.colluding)


@pytest.mark.parametrize(("parties", "dropout", "colluding"), [case for case in SPARSE if case[1] < 0.4])
def test_no_sum_of_at_most_half_of_the_honest_opens(parties: int, dropout: float, colluding: float) -> None:
    plan = planned(parties, dropout, colluding)
    honest = parties - plan.colluding
    assert honest / 2 < plan.least_honest <= plan.fewest - plan.colluding
    size = np.arange(1, plan.least_honest)
    with np.errstate(divide="ignore"):
        chance = np.log(hypergeom.sf(plan.threshold - 1, parties - 1, size - 1 + plan.colluding, plan.chosen))
    sets = gammaln(honest + 1) - gammaln(size + 1) - gammaln(honest - size + 1)
    assert logsumexp(sets + size * chance) <= math.log(2.0**-40)


@pytest.mark.parametrize(("parties", "dropout", "colluding"), SPARSE)
def test_choosing_one_less_would_not_be_safe(parties: int, dropout: float, colluding: float) -> None:
    plan = planned(parties, dropout, colluding)
    sparse = _Sparse(parties=parties, fewest=plan.fewest, colluding=plan.colluding)
    assert sparse.safe(plan.chosen)
    assert not sparse.safe(plan.chosen - 1)


def test_sums_mostly_find_enough_survivors() -> None:
    plan, chance = planned(300, 0.1, 0.1), np.random.default_rng(5)
    drawn, failed = choices(300, plan.chosen, chance, 40), 0
    for graph in drawn:
        survivors = chance.permutation(300)[: plan.fewest]
        failed += bool((graph[np.ix_(survivors, survivors)].sum(axis=1) < plan.threshold).any())
    # At most 0.04 are expected to fail; false alarm: 1e-7.
    assert failed <= 3


def closed_sets(graphs: NDArray[np.bool_], honest: int, size: int, threshold: int) -> NDArray[np.int64]:
    """Count sets of honest parties who all chose enough of each other or of the colluding, who stand last."""
    counts = np.zeros(len(graphs), np.int64)
    for members in map(list, combinations(range(honest), size)):
        inside = [*members, *range(honest, graphs.shape[1])]
        counts += (graphs[:, members][:, :, inside].sum(axis=2) >= threshold).all(axis=1)
    return counts


@pytest.mark.parametrize("size", [3, 4, 5])
def test_sets_that_could_open_a_sum_are_as_rare_as_the_formula_says(size: int) -> None:
    parties, colluding, chosen, threshold, graphs = 9, 2, 4, 3, 6000
    honest = parties - colluding
    drawn = choices(parties, chosen, np.random.default_rng(size), graphs)
    counts = closed_sets(drawn, honest, size, threshold)
    chance = hypergeom.sf(threshold - 1, parties - 1, size - 1 + colluding, chosen)
    expected = math.comb(honest, size) * chance**size
    # Six standard errors.
    assert abs(np.mean(counts) - expected) < 6 * np.std(counts) / math.sqrt(graphs)


@pytest.mark.parametrize("allowed", [1e-12, 1e-6, 1e-3, 0.5])
def test_the_smallest_sum_is_where_the_expected_number_exceeds_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, allowed: float
) -> None:
    parties, colluding, chosen, threshold = 60, 6, 20, 13
    monkeypatch.setattr(neighbours, "_MAY_LEAK", allowed)
    smallest = neighbours._smallest_sum.__wrapped__(parties, colluding, chosen, threshold)
    honest = parties - colluding
    bounds, exact = [], []
    for size in range(1, smallest + 1):
        part = (size - 1 + colluding) / (parties - 1)
        chance = 1.0
        if part < threshold / chosen:
            chance = (part * chosen / threshold) ** threshold
            chance *= ((1 - part) * chosen / (chosen - threshold)) ** (chosen - threshold)
        bounds.append(math.comb(honest, size) * chance**size)
        tail = hypergeom.sf(threshold - 1, parties - 1, size - 1 + colluding, chosen)
        exact.append(math.comb(honest, size) * tail**size)
    assert all(bound >= true for bound, true in zip(bounds, exact, strict=True))
    assert sum(bounds[:-1]) <= allowed < sum(bounds)


@pytest.mark.parametrize(("threshold", "undivided"), [(27, False), (30, False), (39, True), (48, True)])
def test_a_graph_is_undivided_if_no_half_of_the_honest_opens_a_sum(threshold: int, undivided: bool) -> None:
    honest, chosen = 280, 60
    assert _Sparse(parties=300, fewest=290, colluding=20)._undivided(chosen, threshold) == undivided
    # The same by exact chances, which the bound exceeds: here that makes no difference.
    size = np.arange(1, honest // 2 + 1)
    with np.errstate(divide="ignore"):
        chance = np.log(hypergeom.sf(threshold - 1, 299, size - 1 + 20, chosen))
    sets = gammaln(honest + 1) - gammaln(size + 1) - gammaln(honest - size + 1)
    assert (logsumexp(sets + size * chance) <= math.log(2.0**-40)) == undivided


def test_a_part_that_no_mask_ties_to_the_rest_is_no_more_common_than_the_formula_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parties, fewest, colluding, chosen, graphs = 12, 9, 2, 2, 4000
    survivors = fewest - colluding
    drawn = choices(parties, chosen, np.random.default_rng(1), graphs)[:, :survivors, :survivors]
    tied = drawn | drawn.transpose(0, 2, 1)
    parts = [
        list(part) for size in range(1, survivors // 2 + 1) for part in combinations(range(survivors), size)
    ]
    counts = np.zeros(graphs)
    for part in parts:
        rest = [place for place in range(survivors) if place not in part]
        counts += ~tied[:, part][:, :, rest].any(axis=(1, 2))
    sparse = _Sparse(parties=parties, fewest=fewest, colluding=colluding)
    mean, error = counts.mean(), counts.std() / math.sqrt(graphs)
    # The formula is an upper bound, and not twice too large.
    monkeypatch.setattr(neighbours, "_MAY_LEAK", mean - 6 * error)
    assert not sparse._connected(chosen)
    monkeypatch.setattr(neighbours, "_MAY_LEAK", 2 * mean)
    assert sparse._connected(chosen)


def test_more_dropouts_or_more_collusion_never_need_fewer_neighbours() -> None:
    by_dropout = [planned(2_000, dropout, 0.1).chosen for dropout in (0.0, 0.1, 0.2, 0.3, 0.44)]
    by_colluding = [planned(2_000, 0.2, colluding).chosen for colluding in (0.0, 0.05, 0.1, 0.2, 0.5)]
    assert by_dropout == sorted(by_dropout)
    assert by_colluding == sorted(by_colluding)


@given(st.integers(2, 400), st.floats(0, 0.5), st.floats(0, 0.49))
def test_every_plan_keeps_its_order(parties: int, dropout: float, colluding: float) -> None:
    try:
        plan = planned(parties, dropout, colluding)
    except ConfigError:
        return
    assert 1 <= plan.threshold <= plan.chosen < parties
    assert plan.colluding < plan.fewest - 1 < parties
    assert 1 <= plan.least_honest <= plan.fewest - plan.colluding
    if plan.chosen == parties - 1:
        assert plan.colluding < plan.threshold == plan.fewest - 1


@given(st.integers(2, 60), st.floats(0, 1.1), st.floats(0, 1.1))
def test_what_is_refused_becomes_possible_as_the_message_says(
    parties: int, dropout: float, colluding: float
) -> None:
    dropout = max(dropout, 1 - colluding)
    with pytest.raises(ConfigError) as caught:
        planned(parties, dropout, colluding)
    remedies = re.findall(r"(dropout|colluding) (<=?) (\d+)/(\d+)", str(caught.value))
    for name, sign, above, below in remedies:
        part = int(above) / int(below) - (1e-9 if sign == "<" else 0)
        settings = {"dropout": dropout, "colluding": colluding} | {name: part}
        assert Neighbourhood.of(parties, **settings)
    assert remedies or "less of both" in str(caught.value)


@pytest.mark.parametrize("parties", [0, 1, -3])
def test_a_sum_of_one_is_refused(parties: int) -> None:
    with pytest.raises(ConfigError, match="at least"):
        planned(parties, 0.0, 0.0)


@pytest.mark.parametrize("part", [-0.1, math.nan, math.inf])
def test_parts_that_are_none_are_refused(part: float) -> None:
    with pytest.raises(ConfigError, match="dropout"):
        planned(10, part, 0.0)
    with pytest.raises(ConfigError, match="colluding"):
        planned(10, 0.0, part)
