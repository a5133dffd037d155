"""The harness on a small release that resembles the gradients of matrix factorization, right and wrong.

Ratings x lie in [0, R]; vectors u and v are clipped: not negative and shorter than sqrt(R). So
0 <= <u, v> <= R and |x - <u, v>| <= R. One rating adds -2 u (x - <u, v>) to its item's gradient and
-2 v (x - <u, v>) to its user's: 2 R^1.5 long at most, reached by x = R and vectors of full length at right
angles. A user with at most theta ratings, each of another item, adds to theta different rows of the items'
gradients: in all, at most sqrt(theta) 2 R^1.5. They all add to the one row of the user's own gradient:
theta 2 R^1.5, reached by equal item vectors.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cofactor.errors import ConfigError
from cofactor.privacy.bounding import Bounded
from cofactor.privacy.clipping import clipped_embeddings
from cofactor.privacy.events import Bound, Norm
from cofactor.privacy.neighbours import Chance, Datasets, Neighbours, Units
from cofactor.privacy.sensitivity import assert_bounded, check, difference
from cofactor.privacy.trimming import trimmed
from cofactor.randomness import InsecureRandom

Values = NDArray[np.float64]

R, THETA, USERS, ITEMS = 5.0, 3, 3, 6
ONE_RATING = 2 * R**1.5
NO_ITEMS = np.empty(0, np.int64)

User = tuple[NDArray[np.int64], Values]  # items and ratings; they may lie outside the scale
AT_RIGHT_ANGLES = (np.full((USERS, 2), [9.0, 0.0]), np.full((ITEMS, 2), [0.0, 9.0]))


@dataclass(frozen=True, kw_only=True)
class Gradients:
    """Gradients of one side for public vectors of both sides; each flag off plants a bug."""

    side: Literal["items", "users"] = "items"
    vectors: tuple[Values, Values] = AT_RIGHT_ANGLES
    clip_vectors: bool = True
    clip_targets: bool = True
    trim: bool = True

    def __call__(self, units: Units) -> Values:
        users, items = (clipped_embeddings(t, R) if self.clip_vectors else t for t in self.vectors)
        found = np.zeros((ITEMS if self.side == "items" else USERS, 2))
        for user, (rated, ratings) in enumerate(self.trimmed(units)):
            targets = np.clip(ratings, 0, R) if self.clip_targets else ratings
            for item, target in zip(rated, targets, strict=True):
                residual = target - float(users[user] @ items[item])
                if self.side == "items":
                    found[item] -= 2 * users[user] * residual
                else:
                    found[user] -= 2 * items[item] * residual
        return found

    def trimmed(self, units: Units) -> list[User]:
        full = [(NO_ITEMS, np.empty(0)) if unit is None else unit for unit in units]
        ptr = np.concatenate([[0], np.cumsum([len(items) for items, _ in full])])
        kept = trimmed(ptr, THETA if self.trim else ITEMS, InsecureRandom(1))
        by_user = [kept[ptr[g] : ptr[g + 1]] for g in range(len(full))]
        return [(items[keep], ratings[keep]) for (items, ratings), keep in zip(full, by_user, strict=True)]


def draw_user(chance: Chance) -> User:
    items = chance.permutation(ITEMS)[: chance.integers(0, ITEMS + 1)]
    return items, chance.choice([0.0, R, -R, 2 * R, 1.0], len(items))


def mutate_user(user: User, chance: Chance) -> User:
    ratings = user[1].copy()
    if len(ratings):
        ratings[chance.integers(len(ratings))] = chance.uniform(-R, 2 * R)
    return user[0], ratings


DATA = Datasets(draw=draw_user, count=USERS, mutate=mutate_user)
FULL: User = (np.arange(THETA), np.full(THETA, R))
WORST = Neighbours(units=(FULL, FULL, FULL), which=0, other=None)


def per_user(size: float) -> Bound:
    return Bound(size=size, norm="l2", unit="user", adjacency="empty")


TRUE_SIZE = {"items": math.sqrt(THETA) * ONE_RATING, "users": THETA * ONE_RATING}


@pytest.mark.parametrize("side", ["items", "users"])
def test_the_right_gradients_reach_their_bound_and_no_more(side: Any) -> None:
    report = assert_bounded(Gradients(side=side), per_user(TRUE_SIZE[side]), DATA, worst_case=WORST)
    assert report.largest < TRUE_SIZE[side]
    assert str(report).startswith("BOUND HOLDS: the largest difference is ")


@pytest.mark.parametrize("side", ["items", "users"])
@pytest.mark.parametrize("seed", range(3))
def test_the_right_gradients_hold_for_any_public_vectors(side: Any, seed: int) -> None:
    generator = np.random.default_rng(seed)
    vectors = generator.normal(0, 2, (USERS, 2)), generator.normal(0, 2, (ITEMS, 2))
    assert_bounded(Gradients(side=side, vectors=vectors), per_user(TRUE_SIZE[side]), DATA)


ratings = st.floats(-3 * R, 3 * R)
users = st.lists(st.tuples(st.integers(0, ITEMS - 1), ratings), unique_by=lambda rated: rated[0]).map(
    lambda rated: (np.array([item for item, _ in rated], np.int64), np.array([value for _, value in rated]))
)


@given(st.tuples(users, users, users), st.integers(0, USERS - 1), st.sampled_from(["items", "users"]))
def test_the_right_gradients_hold_for_what_hypothesis_finds(units: Units, which: int, side: Any) -> None:
    pair = Neighbours(units=units, which=which, other=None)
    assert difference(Gradients(side=side), per_user(TRUE_SIZE[side]), pair) <= TRUE_SIZE[side]


BUGS = {
    "a forgotten clip of the vectors": Gradients(clip_vectors=False),
    "a forgotten clip of the users' side": Gradients(side="users", clip_vectors=False),
    "an unclipped target": Gradients(clip_targets=False),
    "an unclipped target on the users' side": Gradients(side="users", clip_targets=False),
    "a forgotten trimming": Gradients(trim=False),
    "a forgotten trimming on the users' side": Gradients(side="users", trim=False),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found_by_random_search(bug: str) -> None:
    release = BUGS[bug]
    report = check(release, per_user(TRUE_SIZE[release.side]), DATA)
    assert not report.bounded
    with pytest.raises(AssertionError, match="BOUND EXCEEDED"):
        assert_bounded(release, per_user(TRUE_SIZE[release.side]), DATA)


def test_a_missing_factor_of_root_theta_is_found_at_the_worst_case() -> None:
    claimed = per_user(math.sqrt(THETA) * ONE_RATING)
    report = check(Gradients(side="users"), claimed, DATA, worst_case=WORST, pairs=1, climbs=0)
    assert not report.bounded
    assert report.found == "the worst case"
    assert report.largest == pytest.approx(math.sqrt(THETA) * claimed.size, rel=1e-5)
    assert not check(Gradients(side="users"), claimed, DATA).bounded  # and by search


def test_a_bound_that_is_too_loose_is_noticed() -> None:
    claimed = per_user(THETA * ONE_RATING)  # what the paper says of the items' side
    report = check(Gradients(), claimed, DATA, worst_case=WORST)
    assert report.bounded
    assert not report.holds
    with pytest.raises(AssertionError, match=r"TOO LOOSE: the worst case reaches only 38\.7"):
        assert_bounded(Gradients(), claimed, DATA, worst_case=WORST)


# Units that are ratings, all of one user: the place of a rating is its item.


def rating_gradients(units: Units, user: Values, items: Values) -> Values:
    found = np.zeros_like(items)
    for item, rating in enumerate(units):
        if rating is not None:
            found[item] = -2 * user * (np.clip(rating, 0, R) - float(user @ items[item]))
    return found


def doubles(vectors: Values) -> Values:
    return clipped_embeddings(vectors, R).astype(np.float64)


def with_public_vector(units: Units) -> Values:
    users, items = AT_RIGHT_ANGLES
    return rating_gradients(units, doubles(users)[0], doubles(items))


def with_fitted_vector(units: Units) -> Values:
    """Fit the user's vector on the same ratings first, as horizontal federations do."""
    items = doubles(np.random.default_rng(3).uniform(0, 2, (ITEMS, 2)))
    rated = [item for item, rating in enumerate(units) if rating is not None]
    own, target = items[rated], np.clip([units[item] for item in rated], 0, R)
    fitted = np.linalg.solve(own.T @ own + 0.1 * np.eye(2), own.T @ target)
    return rating_gradients(units, doubles(fitted[None])[0], items)


RATINGS = Datasets(
    draw=lambda chance: float(chance.choice([0.0, R, 2 * R])),
    count=ITEMS,
    mutate=lambda _, chance: float(chance.uniform(0, R)),
)
PER_RATING = Bound(size=ONE_RATING, norm="l2", unit="rating", adjacency="empty")


def test_a_rating_changes_gradients_of_public_vectors_by_no_more_than_its_own() -> None:
    worst = Neighbours(units=(R,) * ITEMS, which=2, other=None)
    assert_bounded(with_public_vector, PER_RATING, RATINGS, worst_case=worst)


def test_a_claim_for_ratings_is_refuted_where_the_users_vector_depends_on_all_of_them() -> None:
    report = check(with_fitted_vector, PER_RATING, RATINGS)
    assert report.largest > 1.2 * ONE_RATING
    assert "BOUND EXCEEDED" in str(report)
    assert "unit rating" in str(report)


@pytest.mark.parametrize(("norm", "expected"), [("l1", 7.0), ("l2", 5.0)])
def test_a_difference_is_measured_in_the_norm_of_the_bound(norm: Norm, expected: float) -> None:
    bound = Bound(size=1, norm=norm, unit="user", adjacency="replace")
    pair = Neighbours(units=(np.array([3, 0]),), which=0, other=np.array([0, -4]))
    assert difference(lambda units: units[0], bound, pair) == expected


def test_a_bound_on_every_coordinate_is_measured_on_the_contribution() -> None:
    bound = Bound(size=4, norm="max", unit="user", adjacency="replace")
    pair = Neighbours(units=(np.array([3, 0]),), which=0, other=np.array([0, -4]))
    assert difference(lambda units: units[0], bound, pair) == 4


def test_small_differences_of_large_whole_numbers_are_exact() -> None:
    bound = Bound(size=1, norm="l1", unit="user", adjacency="replace")
    pair = Neighbours(units=(np.array([2**60]),), which=0, other=np.array([2**60 + 1]))
    assert difference(lambda units: units[0], bound, pair) == 1


@pytest.mark.parametrize("other", [np.zeros(3), np.array([np.nan, 0]), np.array([np.inf, 0])])
def test_a_shape_or_a_nan_that_depends_on_data_counts_as_infinite(other: Values) -> None:
    bound = Bound(size=1, norm="l2", unit="user", adjacency="replace")
    pair = Neighbours(units=(np.zeros(2),), which=0, other=other)
    assert difference(lambda units: units[0], bound, pair) == math.inf


def structured(chance: Chance) -> tuple[int, float]:
    return int(chance.integers(0, 5)), float(chance.uniform(-1, 1))


VALUES = Datasets(
    draw=structured, count=2, redraw=lambda unit, chance: (unit[0], float(chance.uniform(-1, 1)))
)


def test_neighbours_that_differ_in_values_keep_their_structure_all_along_the_climb() -> None:
    def structure_times_thousand(units: Units) -> Values:
        return np.array([sum(1000 * structure + value for structure, value in units)])

    bound = Bound(size=2, norm="l2", unit="user", adjacency="value")
    worst = Neighbours(units=((1, -1.0), (0, 0.0)), which=0, other=(1, 1.0))
    report = assert_bounded(structure_times_thousand, bound, VALUES, worst_case=worst)
    assert report.largest > 1.8
    assert not check(structure_times_thousand, replace(bound, adjacency="replace"), VALUES).bounded


def test_climbing_finds_what_random_pairs_do_not() -> None:
    def nudged(value: float, chance: Chance) -> float:
        return float(np.clip(value + chance.normal(0, 0.2), -1, 1))

    data = Datasets(draw=lambda chance: float(chance.uniform(-0.1, 0.1)), count=1, mutate=nudged)
    bound = Bound(size=0.9, norm="l2", unit="user", adjacency="empty")
    release = lambda units: np.array([units[0] or 0.0])  # noqa: E731
    assert check(release, bound, data, climbs=0).bounded
    report = check(release, bound, data)
    assert not report.bounded
    assert report.found == "a pair found by climbing"


def test_the_same_seed_gives_the_same_report() -> None:
    bound = per_user(TRUE_SIZE["items"])
    reports = [check(Gradients(), bound, DATA, pairs=20, climbs=20, seed=seed) for seed in (4, 4, 5)]
    assert reports[0] == reports[1]
    assert len({report.largest for report in reports}) <= 2


def test_noise_that_was_left_on_is_refused() -> None:
    generator = np.random.default_rng(1)
    with pytest.raises(ConfigError, match="Switch its noise off"):
        check(lambda _: generator.normal(size=3), per_user(1), DATA)


def test_a_bound_that_differs_from_what_the_accountant_is_told_is_refused() -> None:
    with pytest.raises(ConfigError, match="another bound"):
        check(lambda _: Bounded(value=np.zeros(1), bound=per_user(2)), per_user(1), DATA)


def test_a_worst_case_that_is_no_neighbour_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"one side of the worst case must be Datasets\.empty"):
        check(Gradients(), per_user(1), DATA, worst_case=replace(WORST, other=FULL))
    with pytest.raises(ConfigError, match="which must lie between 0 and 2, got 3"):
        check(Gradients(), per_user(1), DATA, worst_case=replace(WORST, which=3))


def test_values_cannot_be_redrawn_without_being_told_how() -> None:
    bound = Bound(size=1, norm="l2", unit="user", adjacency="value")
    with pytest.raises(ConfigError, match="redraw"):
        check(Gradients(), bound, DATA)


def test_a_report_and_a_pair_show_no_data() -> None:
    secret = (NO_ITEMS, np.array([12345.678]))
    assert "12345" not in repr(Neighbours(units=(secret,), which=0, other=None))
    report = check(Gradients(trim=False), per_user(1), DATA, pairs=5, climbs=0)
    assert str(report) == (
        f"BOUND EXCEEDED: the largest difference is {report.largest:.6g} at a random pair; the accountant is "
        "told 1 (l2, unit user, adjacency empty; 5 pairs compared)."
    )
