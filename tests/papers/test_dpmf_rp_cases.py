from typing import Any

import numpy as np
import pytest

from cofactor.data.ratings import Ratings
from cofactor.data.split import by_fraction
from cofactor.papers.cells import Effort
from cofactor.papers.dpmf_rp_cases import (
    BIASES,
    OWN_MEAN,
    POPULARITY,
    Loss,
    bounded_counts,
    delta_for,
    measured_cases,
    private_popularity,
    trivial,
)
from cofactor.papers.dpmf_rp_measures import MEASURES, RANKING, RMSE
from cofactor.papers.results import Row
from cofactor.privacy.accountant import spent
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.events import Bound, Event
from cofactor.privacy.mechanisms import Gaussian
from cofactor.progress import nobody
from cofactor.randomness import InsecureRandom
from tests.papers.making import material

LOSS = Loss(label=1.0, epsilon=6.0, delta=1e-4)


def test_delta_is_a_power_of_ten_well_below_one_user() -> None:
    assert delta_for(943) == pytest.approx(1e-5)
    assert delta_for(6_040) == pytest.approx(1e-6)
    assert delta_for(16_239) == pytest.approx(1e-7)


def test_what_is_trivial_is_measured_where_it_says_anything() -> None:
    rows = measured_cases(material(), "small", trivial(LOSS), Effort(), nobody)
    columns: dict[str, list[str]] = {}
    for row in rows:
        columns.setdefault(row.line, []).append(row.column)
    assert columns == {
        POPULARITY: list(RANKING),
        OWN_MEAN: [RMSE],
        BIASES: list(MEASURES),
        "private popularity, label 1": list(RANKING),
    }
    private = [row for row in rows if row.line.startswith("private")]
    assert {(row.epsilon, row.delta, row.epsilon_label) for row in private} == {(6.0, 1e-4, None)}
    assert all(row.epsilon is None for row in rows if row not in private)


def test_several_seeds_split_anew_and_give_an_interval_of_the_mean() -> None:
    [once] = _own_mean_rows(1)
    [thrice] = _own_mean_rows(3)
    singles = []
    for seed in (1, 2, 3):
        train, test = by_fraction(material().ratings, 0.2, seed=seed)
        own = np.bincount(train.users, train.values) / np.bincount(train.users)
        squared = np.bincount(test.users, (own[test.users] - test.values) ** 2)
        singles.append(float(np.sqrt(squared / np.bincount(test.users)).mean()))
    assert once.ours == pytest.approx(singles[0], abs=1e-5)
    assert thrice.ours == pytest.approx(np.mean(singles), abs=1e-5)
    assert thrice.low is not None
    assert thrice.high is not None
    assert thrice.low < min(singles) <= max(singles) < thrice.high


def _own_mean_rows(seeds: int) -> list[Row]:
    cases = [case for case in trivial(None) if case.line == OWN_MEAN]
    return measured_cases(material(), "small", cases, Effort(seeds=seeds), nobody)


def test_no_user_changes_private_counts_by_more_than_their_noise_is_made_for() -> None:
    def counted(first: range) -> Bounded:
        rows = [(user, item) for user, items in enumerate((first, range(30), range(90))) for item in items]
        users, items = np.array(rows).T
        values = 1 + np.arange(len(rows)) % 5
        ids: dict[str, Any] = {"user_ids": np.arange(3), "item_ids": np.arange(300)}
        return bounded_counts(Ratings.from_rows(users, items, values, **ids), InsecureRandom(3))

    before, none, other = (counted(first) for first in (range(100, 190), range(100, 101), range(200, 300)))
    assert np.linalg.norm(before.value - none.value) <= before.bound.size
    # The worst case, fifty ones against fifty others, reaches the bound.
    assert np.linalg.norm(before.value - other.value) == pytest.approx(before.bound.size)


def test_private_popularity_has_the_noise_of_its_epsilon_and_no_more() -> None:
    train = Ratings.from_rows(
        np.arange(4_000) % 40, np.arange(4_000) // 40 * 20, 1 + np.arange(4_000) % 5,
        user_ids=np.arange(40), item_ids=np.arange(2_000),
    )  # fmt: skip
    noisy = private_popularity(train, epsilon=1.0, delta=1e-5).item_bias.astype(np.float64)
    unrated = noisy[np.bincount(train.items, minlength=2_000) == 0]
    bound = Bound(size=10.0, norm="l2", unit="user", adjacency="replace")
    size = float(unrated.std())
    event = Event(what="counts", by="a", to="b", mechanism=Gaussian(noise_multiplier=size / 10), bound=bound)
    # The deviation of 1,900 normal numbers is within 9% of the true one, but for a chance below 1e-7.
    assert spent([event], 1e-5, unit="user", adjacency="replace").epsilon == pytest.approx(1.0, rel=0.12)
