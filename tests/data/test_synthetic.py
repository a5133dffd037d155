from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cofactor.data.drawing import _rank, _uniform, draw_items, expected, moments
from cofactor.data.grouping import offsets
from cofactor.data.invented import AGES, CATEGORIES
from cofactor.data.ratings import Scale
from cofactor.data.synthetic import PRESETS, Shape, Synthetic, _activity, _item_bias, _times, like, make
from cofactor.errors import ConfigError
from cofactor.randomness import Seeds

MASK = 2**64 - 1


@pytest.fixture(scope="module")
def hundred_thousand() -> Synthetic:
    return like("ml-100k", seed=0)


def uniform_twin(key: int, counter: int) -> float:
    word = (key + counter * 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return float((word ^ (word >> 31)) >> 11) * 2.0**-53


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    users, items = draw(st.integers(1, 30)), draw(st.integers(1, 40))
    busiest = draw(st.sampled_from((0.6, 1.0)))
    most = int(busiest * items)
    if most == 0:
        busiest, most = 1.0, items
    minimum = draw(st.integers(1, most))
    ratings = draw(st.integers(users * minimum, users * most))
    scale = draw(st.sampled_from((Scale(1, 5, 1), Scale(0.5, 5, 0.5), Scale(-10, 10))))
    popularity = draw(st.sampled_from((0.5, 1.0, 2.0, 4.0)))
    return Shape(
        users=users, items=items, ratings=ratings, minimum=minimum, busiest=busiest, scale=scale,
        popularity=popularity, factors=draw(st.integers(1, 4)),
    )  # fmt: skip


@given(shapes(), st.integers(0, 5))
@settings(deadline=None, max_examples=60)
def test_any_shape_is_met_exactly(shape: Shape, seed: int) -> None:
    ratings = make(shape, seed).ratings
    assert (ratings.user_count, ratings.item_count, len(ratings)) == (
        shape.users, shape.items, shape.ratings,
    )  # fmt: skip
    assert shape.minimum <= ratings.by_user.sizes.min()
    assert ratings.by_user.sizes.max() <= shape.most
    assert len(np.unique(ratings.users.astype(np.int64) * shape.items + ratings.items)) == shape.ratings
    rated = np.count_nonzero(np.bincount(ratings.items, minlength=shape.items))
    assert rated == min(shape.items, shape.ratings)
    steps = (ratings.values - shape.scale.low) / (shape.scale.step or 1)
    assert shape.scale.covers(ratings.values).all()
    assert shape.scale.step is None or np.array_equal(steps, np.round(steps))


def test_same_seed_gives_the_same_and_another_seed_gives_other_ratings() -> None:
    shape = Shape(users=50, items=80, ratings=1500, minimum=5)
    first, again, other = make(shape, 3), make(shape, 3), make(shape, 4)
    assert np.array_equal(first.ratings.items, again.ratings.items)
    assert np.array_equal(first.ratings.values, again.ratings.values)
    assert first.ratings.times is not None
    assert again.ratings.times is not None
    assert np.array_equal(first.ratings.times, again.ratings.times)
    assert first.item_genres == again.item_genres
    assert not np.array_equal(first.ratings.items, other.ratings.items)
    assert not np.array_equal(first.truth.item_vectors, other.truth.item_vectors)


def test_presets_have_the_shapes_of_movielens() -> None:
    found = {name: (shape.users, shape.items, shape.ratings) for name, shape in PRESETS.items()}
    assert found == {
        "ml-100k": (943, 1682, 100_000),
        "ml-1m": (6040, 3706, 1_000_209),
        "ml-10m": (69_878, 10_677, 10_000_054),
        "ml-25m": (162_541, 59_047, 25_000_095),
    }
    assert str(PRESETS["ml-25m"].scale) == "0.5 to 5 in steps of 0.5"


def test_preset_resembles_movielens(hundred_thousand: Synthetic) -> None:
    ratings = hundred_thousand.ratings
    wrong = ratings.values - ratings.mean
    by_item = np.bincount(ratings.items, wrong) / np.bincount(ratings.items)
    by_user = np.bincount(ratings.users, wrong) / ratings.by_user.sizes
    assert ratings.mean == pytest.approx(3.53, abs=0.1)
    assert np.var(wrong) == pytest.approx(1.27, abs=0.1)
    # Within-group variance of MovieLens 100K: 1.06 by user, 0.99 by item (means fitted on the ratings).
    assert np.var(wrong - by_user[ratings.users]) == pytest.approx(1.07, abs=0.08)
    assert np.var(wrong - by_item[ratings.items]) == pytest.approx(1.00, abs=0.08)
    sizes = np.sort(ratings.by_user.sizes)
    assert sizes[0] >= 20
    assert sizes[len(sizes) // 2] == pytest.approx(65, abs=12)


def test_popular_items_are_better_and_hold_most_ratings(hundred_thousand: Synthetic) -> None:
    ratings, truth = hundred_thousand.ratings, hundred_thousand.truth
    counts = np.bincount(ratings.items, minlength=ratings.item_count)
    assert np.corrcoef(np.log(counts), truth.item_bias)[0, 1] > 0.2
    top = np.sort(counts)[::-1]
    assert top[: len(top) // 10].sum() > 0.4 * len(ratings)
    assert top[0] > 10 * np.median(top)


@pytest.mark.parametrize("popularity", [0.5, 4.0])
def test_item_biases_go_with_log_popularity_as_much_as_stated(popularity: float) -> None:
    count = 100_000
    shape = Shape(users=1, items=count, ratings=20, popularity=popularity, quality=0.4, item_spread=0.64)
    random = np.random.default_rng(0)
    ranked = random.permutation(count).astype(np.int32)
    by_rank = _item_bias(shape, ranked, random)[ranked]
    logarithm = -popularity * np.log(np.arange(count) + 0.5 + shape.head * count)
    # Standard errors are 0.0027 and 0.0014; six of them are exceeded once in 1e8 runs.
    assert np.corrcoef(by_rank, logarithm)[0, 1] == pytest.approx(0.4, abs=0.016)
    assert by_rank.std() == pytest.approx(0.64, abs=0.0086)


def test_ratings_follow_the_stated_truth() -> None:
    # A wide scale without steps: neither rounding nor clipping hides the noise.
    shape = Shape(users=300, items=200, ratings=20_000, scale=Scale(-50, 50), noise=0.7)
    made = make(shape, seed=1)
    wrong = made.ratings.values - made.truth.expected(made.ratings.users, made.ratings.items)
    # Standard errors are 0.005 and 0.0035; six of them are exceeded once in 1e9 runs.
    assert abs(wrong.mean()) < 0.03
    assert wrong.std() == pytest.approx(0.7, abs=0.021)


def test_taste_and_noise_of_zero_leave_only_biases() -> None:
    shape = Shape(users=40, items=30, ratings=600, minimum=5, scale=Scale(-50, 50), noise=0.0, taste=0.0)
    made = make(shape)
    truth, ratings = made.truth, made.ratings
    only_biases = truth.mean + truth.user_bias[ratings.users] + truth.item_bias[ratings.items]
    assert np.allclose(ratings.values, only_biases, atol=1e-5)


def test_times_increase_within_each_user(hundred_thousand: Synthetic) -> None:
    ratings = hundred_thousand.ratings
    assert ratings.times is not None
    same_user = np.diff(ratings.users) == 0
    assert (np.diff(ratings.times)[same_user] >= 0).all()
    assert np.ptp(ratings.times) < 10 * 365 * 86_400 + 1


def test_slow_users_too_are_done_within_a_year_of_their_start() -> None:
    year, first_day = 365 * 86_400, 946_684_800
    # Left to their own pace, 17 of these users would take longer, one of them twelve years.
    times = _times(offsets(np.full(100, 5_000)), Seeds(0)).reshape(100, 5_000)
    assert np.ptp(times, axis=1).max() <= year
    assert first_day <= times.min()
    assert times.max() <= first_day + 10 * year
    assert np.ptp(times[:, 0]) > 5 * year


def test_side_tables_go_with_the_vectors(hundred_thousand: Synthetic) -> None:
    made = hundred_thousand
    age = np.array([AGES.index(name) for name in made.user_attributes["age"]])
    assert np.corrcoef(age, made.truth.user_vectors[:, 0])[0, 1] > 0.6
    vectors, features = made.truth.item_vectors, made.item_features
    fitted = vectors @ np.linalg.lstsq(vectors, features, rcond=None)[0]
    assert 0.5 < np.var(fitted) / np.var(features) < 0.95
    occupation = made.user_attributes["occupation"]
    spread = [made.truth.user_vectors[occupation == name].mean(axis=0) for name in np.unique(occupation)]
    assert np.linalg.norm(np.array(spread), axis=1).min() > 0.1


def test_each_item_has_a_title_a_category_and_genres(hundred_thousand: Synthetic) -> None:
    made = hundred_thousand
    assert len(set(made.item_titles)) == made.ratings.item_count
    assert made.item_titles[16].startswith("Item 17: The ")
    assert set(made.item_categories) == set(CATEGORIES)
    assert [genres[0] for genres in made.item_genres] == made.item_categories.tolist()
    assert {len(genres) for genres in made.item_genres} == {1, 2, 3}
    assert all(len(set(genres)) == len(genres) for genres in made.item_genres)


def test_ids_are_integers_from_one(hundred_thousand: Synthetic) -> None:
    assert hundred_thousand.ratings.user_ids.tolist() == list(range(1, 944))
    assert hundred_thousand.ratings.item_ids.tolist() == list(range(1, 1683))


def test_uniform_kernel_equals_its_twin_in_exact_integers() -> None:
    for key, counter in ((0, 0), (1, 1), (2**63 - 1, 12345), (987654321987654321, 2**40)):
        assert _uniform(np.uint64(key), counter) == uniform_twin(key, counter)


def test_uniform_stream_is_uniform() -> None:
    draws = np.array([_uniform(np.uint64(99), counter) for counter in range(20_000)])
    counts = np.histogram(draws, bins=20, range=(0, 1))[0]
    # Chi-square with 19 degrees of freedom: above 75 once in 2e7 runs.
    assert ((counts - 1000) ** 2 / 1000).sum() < 75
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.04


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0, 4.0])
def test_rank_kernel_inverts_the_popularity_distribution(exponent: float) -> None:
    places = np.linspace(0, 100, 5001)
    density = (places + 7.0) ** -exponent
    cumulative = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)])
    cumulative /= cumulative[-1]
    for place, chance in zip(places[::500], cumulative[::500], strict=True):
        assert _rank(float(chance), exponent, 7.0, 100) == pytest.approx(place, abs=0.01)


@pytest.mark.parametrize("exponent", [0.01, 1.0, 3.0, 1000.0])
def test_ranks_stay_within_the_items_at_the_ends(exponent: float) -> None:
    for chance in (0.0, 1 - 2.0**-53):
        for head in (1e-3, 1.0, 1e6):
            assert -1e-6 <= _rank(chance, exponent, head, 100) <= 100 * (1 + 1e-6)


def test_draw_items_kernel_equals_its_plain_twin() -> None:
    ptr, ranked = offsets(np.array([3, 0, 5, 4])), np.array([4, 2, 0, 1, 3], np.int32)
    expected_items, counter = [], 0
    for user in range(4):
        seen: list[int] = []
        while len(seen) < ptr[user + 1] - ptr[user]:
            tries = 0
            while True:
                chance = uniform_twin(5, counter)
                counter += 1
                rank = _rank(chance, 2.0, 0.5, 5) if tries < 50 else chance * 5
                item = int(ranked[min(int(rank), 4)])
                if item not in seen:
                    break
                tries += 1
            seen.append(item)
        expected_items += seen
    assert draw_items(ptr, ranked, 2.0, 0.5, np.uint64(5)).tolist() == expected_items


def test_expected_kernel_equals_the_formula() -> None:
    made = make(Shape(users=9, items=12, ratings=60, minimum=3), seed=2)
    truth, users, items = made.truth, made.ratings.users, made.ratings.items.copy()
    found = expected(
        made.ratings.by_user.ptr.copy(), items, truth.mean, truth.user_bias, truth.item_bias,
        truth.user_vectors, truth.item_vectors,
    )  # fmt: skip
    assert np.allclose(found, truth.expected(users, items), atol=1e-5)


def test_moments_kernel_equals_its_plain_twin() -> None:
    ptr, start, pace = offsets(np.array([2, 1])), np.array([100.0, 1000.0]), np.array([10.0, 7.0])
    chances = [uniform_twin(3, position) for position in range(3)]
    wanted = [int(100 + 10 * chances[0]), int(100 + 10 * (1 + chances[1])), int(1000 + 7 * chances[2])]
    assert moments(ptr, start, pace, np.uint64(3)).tolist() == wanted


def test_activity_is_lognormal_above_the_minimum() -> None:
    shape = Shape(users=20_000, items=100_000, ratings=2_000_000, activity=1.0, minimum=20)
    extra = _activity(shape, Seeds(0)) - 20
    # Two standard deviations above the median lie 2.28% of a lognormal; 7 standard errors are 0.7%.
    assert np.mean(extra > np.median(extra) * np.exp(2.0)) == pytest.approx(0.02275, abs=0.0075)
    assert (extra + 20).sum() == 2_000_000


def test_unknown_preset_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r'no preset "ml-2m"\. Did you mean "ml-.*Known: ml-100k, ml-1m'):
        like("ml-2m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"users": 0}, "users must be at least 1, got 0"),
        ({"noise": -1.0}, "noise must be 0 or more"),
        ({"quality": 1.5}, "quality must be at most 1, got 1.5"),
        ({"busiest": 1.5}, "busiest must be at most 1, got 1.5"),
        ({"busiest": 0.0}, "busiest must be greater than 0"),
        ({"ratings": 10}, "Choose 60 to 360"),
        ({"ratings": 361}, "Choose 60 to 360"),
        ({"minimum": 40}, "cannot give"),
    ],
)
def test_impossible_shape_is_refused(change: dict[str, float], message: str) -> None:
    good = Shape(users=6, items=100, ratings=100, minimum=10)
    with pytest.raises(ConfigError, match=message):
        replace(good, **change)  # type: ignore[arg-type]
