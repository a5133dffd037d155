import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.data.ratings import Ratings, Scale
from cofactor.data.synthetic import Shape
from cofactor.errors import ConfigError, DataError
from cofactor.factors.baselines import GlobalMean
from cofactor.factors.model import Factors
from cofactor.papers import hdpmf_tuning
from cofactor.papers.hdpmf_lines import settings as chosen_settings
from cofactor.papers.hdpmf_method import DPMF_FRESH, HDPMF_FRESH, MF_LINE, VARIANTS, Setting
from cofactor.papers.hdpmf_splits import Repeat, enough, folds, thinned, users_with
from cofactor.papers.hdpmf_tuning import by_user, grid, tuned, usual, validated
from cofactor.privacy.weights import HDPMF_USERS
from cofactor.progress import nobody
from cofactor.recipes.hdpmf_fit import PerRating
from tests.papers.making import material


def ratings() -> Ratings:
    return enough(material().ratings)


def rigged(best: Setting) -> Any:
    """A fit that predicts a constant, the nearer to the truth the closer its setting is to the best."""

    def fit(self: PerRating, train: Ratings, users: Any, items: Any, *, seed: int) -> Factors:
        if self.rate == 0.05:
            raise ConfigError("training broke down")
        off = abs(math.log(self.rate / best.rate)) + abs(math.log(self.penalty / best.penalty))
        model = GlobalMean().fit(train)
        return Factors(**{**vars(model), "mean": model.mean - off / 5})

    return fit


def test_users_with_fewer_than_twenty_ratings_are_left_out() -> None:
    whole = material().ratings
    counts = whole.by_user.sizes
    assert counts.min() < 20 <= counts.max()
    kept = enough(whole)
    assert kept.user_ids.tolist() == whole.user_ids[counts >= 20].tolist()
    assert kept.by_user.sizes.tolist() == counts[counts >= 20].tolist()
    assert kept.by_item.sizes.min() >= 1


def test_twenty_ratings_are_enough() -> None:
    users = np.repeat([1, 2], [20, 19])
    own = enough(Ratings.from_arrays(users, np.r_[:20, :19], np.ones(39), scale=Scale(1, 5)))
    assert own.user_ids.tolist() == [1]


def test_nobody_with_enough_ratings_is_told() -> None:
    few = material(Shape(users=20, items=30, ratings=220, minimum=10)).ratings
    with pytest.raises(DataError, match="no user has 20 ratings"):
        enough(few)


def test_ten_ratings_of_each_user_are_tested_and_others_in_every_repeat() -> None:
    own = ratings()
    one, other = Repeat.of(own, 1), Repeat.of(own, 2)
    assert set(one.test.by_user.sizes.tolist()) == {10}
    assert (one.train.by_user.sizes + 10).tolist() == own.by_user.sizes.tolist()
    assert not np.array_equal(one.test.items, other.test.items)
    assert not np.array_equal(one.user_weights, other.user_weights)
    assert not np.array_equal(one.item_weights, other.item_weights)


def test_sparsity_is_tested_by_leaving_one_out() -> None:
    own = Repeat.of(ratings(), 1, tested=1)
    assert set(own.test.by_user.sizes.tolist()) == {1}


@settings(max_examples=20, deadline=None)
@given(st.floats(0.01, 1.0), st.integers(0, 99))
def test_a_fraction_of_each_users_ratings_stays(fraction: float, seed: int) -> None:
    own = ratings()
    wanted = np.maximum(np.floor(own.by_user.sizes * fraction + 0.5), 1)
    assert thinned(own, fraction, seed=seed).by_user.sizes.tolist() == wanted.tolist()


def test_what_stays_of_little_stays_of_more() -> None:
    own = ratings()
    little, more = (thinned(own, fraction, seed=3) for fraction in (0.2, 0.6))
    pairs = [set(zip(part.users.tolist(), part.items.tolist(), strict=True)) for part in (little, more)]
    assert pairs[0] < pairs[1]
    assert len(thinned(own, 1.0, seed=3)) == len(own)


def test_five_folds_hold_every_rating_back_once() -> None:
    own = ratings()
    parts = list(folds(own, 5, seed=1))
    held = [pair for _, kept in parts for pair in zip(kept.users.tolist(), kept.items.tolist(), strict=True)]
    assert sorted(held) == sorted(zip(own.users.tolist(), own.items.tolist(), strict=True))
    assert all(len(train) + len(kept) == len(own) for train, kept in parts)
    assert max(len(kept) for _, kept in parts) - min(len(kept) for _, kept in parts) <= 1
    ((train, _),) = folds(own, 1, seed=1)
    assert len(train) == len(parts[0][0])


def test_sweeps_change_one_thing_of_table_2() -> None:
    assert users_with()[:2] == HDPMF_USERS[:2]
    assert users_with()[2].share == pytest.approx(0.09)
    conservative, moderate, liberal = users_with(least=0.3)
    assert (conservative.low, conservative.high, conservative.share) == (0.3, 0.5, 0.54)
    assert moderate == HDPMF_USERS[1]
    assert (liberal.low, liberal.high) == (1.0, 1.0)
    conservative, moderate, liberal = users_with(conservative=0.2)
    assert (conservative.share, moderate.share) == (0.2, 0.37)
    assert liberal.share == pytest.approx(0.43)


def test_grids_are_the_papers() -> None:
    assert {one.rate for one in grid(HDPMF_FRESH)} == {0.05, 0.01, 0.005, 0.001}
    assert {one.rate for one in grid(DPMF_FRESH)} == {0.005, 0.001, 0.0005, 0.0001}
    for variant in VARIANTS:
        assert {one.penalty for one in grid(variant)} == {0.01, 0.001}
        assert len(grid(variant)) == 8
        assert usual(variant).setting in grid(variant)
        assert grid(variant, large=True) == [one for one in grid(variant) if one.penalty == 0.01]


@pytest.mark.parametrize("best", [Setting(rate=0.001, penalty=0.001), Setting(rate=0.01, penalty=0.01)])
def test_tuning_finds_the_best_of_the_grid(monkeypatch: pytest.MonkeyPatch, best: Setting) -> None:
    monkeypatch.setattr(PerRating, "fit", rigged(best))
    own = Repeat.of(ratings(), 1)
    found = tuned(HDPMF_FRESH, 5, own, nobody, "")
    assert found.setting == best
    assert found.how == "best of 8 on 5 of 5 folds"
    assert validated(HDPMF_FRESH, 5, own, Setting(rate=0.05, penalty=0.01), 1) == math.inf


def test_large_data_are_tuned_on_one_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdpmf_tuning, "LARGE", 10)
    monkeypatch.setattr(PerRating, "fit", rigged(Setting(rate=0.005, penalty=0.01)))
    found = tuned(MF_LINE, 5, Repeat.of(ratings(), 1), nobody, "")
    assert found.setting == Setting(rate=0.005, penalty=0.01)
    assert found.how == "best of 4 on 1 of 5 folds"


def test_nothing_is_tuned_on_test_ratings(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def fit(self: PerRating, train: Ratings, users: Any, items: Any, *, seed: int) -> Factors:
        seen.append(len(train))
        return GlobalMean().fit(train)

    monkeypatch.setattr(PerRating, "fit", fit)
    own = Repeat.of(ratings(), 1)
    tuned(HDPMF_FRESH, 5, own, nobody, "")
    assert set(seen) <= {len(own.train) * 4 // 5, len(own.train) * 4 // 5 + 1}


def test_quick_is_not_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(PerRating, "fit")
    found = chosen_settings(VARIANTS, 5, Repeat.of(ratings(), 1), nobody, quick=True)
    assert {one.how for one in found.values()} == {"not tuned, quick"}


def test_users_count_alike_however_much_is_validated_of_them() -> None:
    kept = Ratings.from_rows(
        [0, 0, 0, 2], [0, 1, 2, 0], [1.0, 2.0, 3.0, 4.0], user_ids=np.arange(3), item_ids=np.arange(3)
    )
    assert by_user(np.array([1.0, 2.0, 3.0, 6.0]), kept) == 4.0
