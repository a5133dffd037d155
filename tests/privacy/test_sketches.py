import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cofactor.errors import ConfigError
from cofactor.privacy import pairs
from cofactor.privacy.accountant import spent
from cofactor.privacy.bounding import MEMBER, registers
from cofactor.privacy.events import Bound, Event, counted_once
from cofactor.privacy.losses import loss_of
from cofactor.privacy.mechanisms import DiscreteLaplace, event_from_table
from cofactor.privacy.neighbours import Neighbours
from cofactor.privacy.sensitivity import difference
from cofactor.privacy.sketches import PartitionSketch
from cofactor.randomness import InsecureRandom, SecureRandom

ROWS, DELTA = 4096, 5e-5


def event(mechanism: Any, **more: object) -> Event:
    known = {"what": "sketches", "by": "bank", "to": "coordinator", "bound": MEMBER, "mechanism": mechanism}
    return Event(**{**known, **more})


def cost(parties: int, phantoms: int, low: int, high: int, *, rows: int = ROWS, count: int = 1) -> float:
    mechanism = PartitionSketch(rows=rows, phantoms=phantoms, low=low, high=high, parties=parties)
    return spent([event(mechanism, count=count)], DELTA, unit="user").epsilon


def as_published(epsilon: float, delta: float, rows: int) -> tuple[int, int]:
    """Return n_p and alpha_min of Algorithm 3, with gamma = 1."""
    share = epsilon / (4 * math.sqrt(rows * math.log(1 / delta)))
    return math.ceil(1 / math.expm1(share)), math.ceil(-math.log2(-math.expm1(-share)))


def law_of_largest(count: int, low: int, high: int) -> list[float]:
    below = [(1 - 2.0**-z) ** count for z in range(low, high)]
    return list(np.diff([0.0, *below, 1.0]))


@pytest.mark.parametrize(("parties", "phantoms", "low", "high"), [(1, 3, 1, 4), (2, 5, 2, 5), (3, 2, 1, 4)])
def test_the_pair_of_a_row_is_what_counting_all_outcomes_gives(
    parties: int, phantoms: int, low: int, high: int
) -> None:
    phantom, hashed = law_of_largest(phantoms, low, high), law_of_largest(1, low, high)
    levels = range(high - low + 1)
    without = {r: math.prod(phantom[z] for z in r) for r in itertools.product(levels, repeat=parties)}
    touched = dict.fromkeys(without, 0.0)
    for drawn, chance in without.items():
        for own, likely in enumerate(hashed):
            touched[tuple(max(z, own) for z in drawn)] += chance * likely
    found = pairs.partition_sketch(parties, phantoms, low, high)
    for epsilon in (-0.5, -0.1, 0.0, 0.05, 0.2, 1.0):
        expected = sum(max(touched[r] - math.exp(epsilon) * without[r], 0) for r in without)
        gap = np.exp(found.log_upper) - math.exp(epsilon) * np.exp(found.log_lower)
        assert np.maximum(gap, 0).sum() == pytest.approx(expected, abs=1e-14)
    assert np.exp(found.log_upper).sum() == pytest.approx(1)
    assert np.exp(found.log_lower).sum() == pytest.approx(1)


def joint_law(
    homes: Sequence[tuple[int, ...]], clusters: int, parties: int, phantoms: int, low: int, high: int
) -> dict[tuple[int, ...], float]:
    """Count out what all registers of all parties are, in one row, for users in these clusters."""
    phantom, hashed = law_of_largest(phantoms, low, high), law_of_largest(1, low, high)
    found: dict[tuple[int, ...], float] = {}
    for own in itertools.product(range(len(hashed)), repeat=len(homes)):
        least = np.zeros((parties, clusters), int)
        for user, value in zip(homes, own, strict=True):
            for party, cluster in enumerate(user):
                least[party, cluster] = max(least[party, cluster], value)
        chance = math.prod(hashed[value] for value in own)
        for drawn in itertools.product(range(len(phantom)), repeat=parties * clusters):
            outcome = tuple(np.maximum(drawn, least.ravel()).tolist())
            found[outcome] = found.get(outcome, 0.0) + chance * math.prod(phantom[z] for z in drawn)
    return found


Homes = list[tuple[int, int]]
SOME: list[Homes] = [[], [(0, 0)], [(0, 1)], [(1, 1)], [(0, 0)] * 2, [(0, 1), (1, 0)], [(0, 0), (0, 1)]]


@pytest.mark.parametrize("others", SOME)
def test_no_data_tell_more_of_a_user_than_the_pair_does(others: Homes) -> None:
    phantoms, low, high = 2, 1, 3
    pair = pairs.partition_sketch(2, phantoms, low, high)
    without = joint_law(others, 2, 2, phantoms, low, high)
    touched = joint_law([*others, (0, 0)], 2, 2, phantoms, low, high)
    for epsilon in np.linspace(-1, 1, 21):
        for one, other, sign in ((touched, without, 1), (without, touched, -1)):
            told = sum(max(one.get(r, 0) - math.exp(epsilon) * other.get(r, 0), 0) for r in {*one, *other})
            ways = (pair.log_upper, pair.log_lower)[::sign]
            most = np.maximum(np.exp(ways[0]) - math.exp(epsilon) * np.exp(ways[1]), 0).sum()
            assert told <= most + 1e-12


def test_empty_clusters_are_as_bad_as_the_pair() -> None:
    pair = pairs.partition_sketch(2, 2, 1, 3)
    without, touched = (joint_law(homes, 2, 2, 2, 1, 3) for homes in ([], [(0, 0)]))
    told = sum(max(touched.get(r, 0) - without.get(r, 0), 0) for r in {*touched, *without})
    assert told == pytest.approx(np.maximum(np.exp(pair.log_upper) - np.exp(pair.log_lower), 0).sum())


def test_the_published_theorem_does_not_hold() -> None:
    phantoms, low = as_published(0.245, 2.5e-5, ROWS)
    assert phantoms == 3401
    assert cost(2, phantoms, low, 60) > 1.79  # two parties' sketches were to cost 0.49, everything 1


def test_an_upper_clip_mends_it() -> None:
    phantoms, low = as_published(0.245, 2.5e-5, ROWS)
    assert cost(2, phantoms, low, low + 6) < 0.49
    assert cost(2, 1060, 6, 16) < 0.49 < cost(2, 1000, 6, 16)


def test_a_party_alone_has_far_more_noise_than_it_needs() -> None:
    phantoms, low = as_published(0.245, 2.5e-5, ROWS)
    assert cost(1, phantoms, low, 60) < 0.06


def test_more_phantoms_fewer_rows_and_fewer_parties_cost_less() -> None:
    usual = cost(2, 1000, 6, 14)
    assert cost(2, 2000, 6, 14) < usual
    assert cost(2, 1000, 6, 14, rows=1024) < usual
    assert cost(1, 1000, 6, 14) < usual < cost(3, 1000, 6, 14)
    assert cost(2, 1000, 6, 12) < usual < cost(2, 1000, 6, 16)
    assert usual < cost(2, 1000, 6, 14, count=3)


def test_a_replaced_user_costs_more_than_an_emptied_one_and_less_than_four_times() -> None:
    mechanism = PartitionSketch(rows=ROWS, phantoms=2000, low=7, high=15)
    emptied, replaced = (
        spent([event(mechanism)], DELTA, unit="user", adjacency=adjacency).epsilon
        for adjacency in ("empty", "replace")
    )
    assert emptied * 1.5 < replaced < emptied * 4


def test_two_steps_follow_the_triangle_inequality_of_renyi_divergences() -> None:
    mechanism = PartitionSketch(rows=1, phantoms=20, low=2, high=8)
    pair, loss = pairs.partition_sketch(2, 20, 2, 8), loss_of(event(mechanism), 2)
    assert loss.renyi is not None
    expected = 3.5 / 3 * pair.renyi([8.0])[0] + pair.renyi([7.0])[0]
    assert loss.renyi([4.0])[0] == pytest.approx(expected)
    assert loss.pure == pytest.approx(2 * pair.pure)


@pytest.mark.slow
def test_sampled_sketches_break_the_published_claim_and_not_the_mended_one() -> None:
    """Joint audit: two parties, one user in otherwise empty clusters; false alarms below 1e-6 each."""
    rows, trials, claimed, delta = 16, 1_500_000, 1.96, 5e-5
    phantoms, low = as_published(claimed / 2, delta / 2, rows)
    published = PartitionSketch(rows=rows, phantoms=phantoms, low=low, high=60)
    mended = replace(published, high=low + 6)
    assert spent([event(mended)], delta, unit="user").epsilon < claimed
    assert _told_at_least(published, low + 9, trials, delta) > claimed
    assert _told_at_least(mended, low + 6, trials, delta) < claimed


def _told_at_least(mechanism: PartitionSketch, level: int, trials: int, delta: float) -> float:
    """Return an epsilon below which the sketch provably is not: it shows equal registers of this level."""
    upper, lower = (_alike(mechanism, level, trials, present) for present in (True, False))
    likely = stats.beta.ppf(1e-7, upper, trials - upper + 1)
    seldom = stats.beta.ppf(1 - 1e-7, lower + 1, trials - lower)
    return math.log(max(likely - delta, 1e-300) / seldom)


def _alike(mechanism: PartitionSketch, level: int, trials: int, present: bool) -> int:
    found, chance = 0, np.random.default_rng([level, present])
    for _ in range(10):
        shape = (trials // 10, mechanism.rows)
        hashes = chance.geometric(0.5, shape) if present else np.zeros(shape, np.int64)
        one, other = (
            mechanism.noisy(registers(hashes), InsecureRandom(int(chance.integers(2**31)))) for _ in range(2)
        )
        found += int(((one == other) & (one >= level)).any(axis=1).sum())
    return found


def test_phantoms_follow_their_law() -> None:
    mechanism = PartitionSketch(rows=ROWS, phantoms=1000, low=6, high=14)
    drawn = mechanism.noisy(registers(np.zeros((ROWS, 60), np.int64)), SecureRandom())
    counts = np.bincount(drawn.ravel(), minlength=15)[6:]
    expected = np.array(law_of_largest(1000, 6, 14)) * drawn.size
    few = expected < 10
    merged = [np.append(each[~few], each[few].sum()) for each in (counts, expected)]
    assert stats.chisquare(merged[0], merged[1]).pvalue > 1e-7


def test_real_registers_show_above_phantoms_and_are_clipped() -> None:
    mechanism = PartitionSketch(rows=2, phantoms=1, low=2, high=9)
    shown = mechanism.noisy(registers(np.array([[40, 0], [9, 0]])), SecureRandom())
    assert (shown[:, 0] == 9).all()
    assert ((shown >= 2) & (shown <= 9)).all()


def test_noise_scales_by_its_phantoms() -> None:
    mechanism = PartitionSketch(rows=8, phantoms=1000, low=6, high=14)
    assert mechanism.scaled(0.5).phantoms == 500
    assert mechanism.scaled(1e-9).phantoms == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": 9},
        {"low": 14},
        {"high": 65},
        {"rows": 0},
        {"phantoms": 0},
        {"parties": 7},
        {"phantoms": 2**41},
    ],
)
def test_impossible_sketches_are_refused(wrong: dict[str, int]) -> None:
    usual = {"rows": 8, "phantoms": 10, "low": 2, "high": 9}
    with pytest.raises(ConfigError):
        PartitionSketch(**{**usual, **wrong})


def test_registers_are_never_negative() -> None:
    with pytest.raises(ConfigError, match="never negative"):
        registers(np.array([[1, -1]]))


def test_a_bound_on_membership_is_one_set_for_an_emptied_user() -> None:
    for wrong in ({"size": 2.0}, {"adjacency": "replace"}):
        with pytest.raises(ConfigError, match="in one set, or none"):
            Bound(**{"size": 1.0, "norm": "member", "unit": "user", **wrong})  # type: ignore[arg-type]


def test_how_many_sets_a_user_touches_is_measured() -> None:
    def release(units: object) -> object:
        changed = np.zeros((4, 3), np.int64)
        for user in units:  # type: ignore[attr-defined]
            changed[:, list(user)] = 7
        return registers(changed)

    one = Neighbours(units=((1,), (0, 2)), which=0, other=())
    two = Neighbours(units=((1,), (0, 2)), which=1, other=())
    assert [difference(release, MEMBER, pair) for pair in (one, two)] == [1, 2]  # type: ignore[arg-type]


def test_joint_releases_count_once_and_others_for_each_party() -> None:
    sketch = PartitionSketch(rows=8, phantoms=10, low=2, high=9)
    joint = [event(sketch, by=party, joint=True, count=3) for party in ("bank", "shop")]
    noise = DiscreteLaplace(noise_multiplier=2.0)
    bound = Bound(size=1, norm="l1", unit="user")
    own = [event(noise, bound=bound, by=party) for party in ("bank", "shop")]
    found = counted_once([*joint, *own])
    assert sum(each.count for each in found if each.joint) == 3
    assert sum(each.count for each in found if not each.joint) == 2


def test_who_charged_more_joint_releases_counts() -> None:
    sketch = PartitionSketch(rows=8, phantoms=10, low=2, high=9)
    charged = [event(sketch, by=party, joint=True, count=count) for party, count in (("b", 4), ("a", 1))]
    assert [each.count for each in counted_once([*charged, event(sketch, by="a", joint=True)])] == [4]


def test_an_event_of_a_sketch_can_be_written_and_read() -> None:
    from cofactor.config import as_table

    told = event(PartitionSketch(rows=8, phantoms=10, low=2, high=9), joint=True)
    assert event_from_table(as_table(told), "event") == told
