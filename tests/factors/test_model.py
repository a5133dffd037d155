import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.data.ratings import Scale
from cofactor.errors import ConfigError, DataError, RunError, UnknownId
from cofactor.factors.choosing import Choice
from cofactor.factors.model import Factors, HomeFit, Recommendation, Seen
from cofactor.factors.stored import FORMAT

USERS, ITEMS, WIDTH = 6, 9, 3


@pytest.fixture
def model() -> Factors:
    random = np.random.default_rng(3)
    return Factors(
        user_ids=np.array([f"u{row}" for row in range(USERS - 1)] + ["u-1832"]),
        item_ids=np.arange(100, 100 + ITEMS),
        mean=3.5,
        user_bias=random.normal(0, 0.3, USERS).astype(np.float32),
        item_bias=random.normal(0, 0.3, ITEMS).astype(np.float32),
        user_vectors=random.normal(0, 0.5, (USERS, WIDTH)).astype(np.float32),
        item_vectors=random.normal(0, 0.5, (ITEMS, WIDTH)).astype(np.float32),
        scale=Scale(1, 5, 1),
        seen=Seen(np.array([0, 2, 2, 4, 4, 4, 13]), np.array([0, 4, 1, 8, *range(9)], np.int32)),
        home=HomeFit(np.diag([4.0, 2.0, 2.0, 2.0]), np.ones(ITEMS)),
    )


@pytest.fixture
def choosing(model: Factors) -> Factors:
    """Return the same model, which also knows how items are chosen."""
    random = np.random.default_rng(4)
    choice = Choice.from_counts(random.gamma(1.0, 20.0, ITEMS), 0.5, random.normal(0, 1, (ITEMS, 2)))
    return replace(model, choice=choice)


def choice_scores(model: Factors, row: int) -> np.ndarray:
    """Score all items for one user: log counts, the taste that her seen items tell, half a predicted star."""
    assert model.choice is not None
    assert model.seen is not None
    taste = model.choice.tastes(model.seen.ptr[row : row + 2], model.seen.index)
    return np.asarray(model.choice.scores(taste)[0] + 0.5 * all_scores(model)[row])


def all_scores(model: Factors) -> np.ndarray:
    dots = model.user_vectors.astype(np.float64) @ model.item_vectors.T
    return np.clip(model.mean + model.user_bias[:, None] + model.item_bias + dots, 1, 5)


def changed(path: Path, **arrays: Any) -> None:
    """Rewrite a saved model with other arrays; None removes one."""
    with np.load(path) as file:
        kept = dict(file) | arrays
    np.savez(path, **{name: array for name, array in kept.items() if array is not None})


def test_prediction_adds_mean_biases_and_dot_product(model: Factors) -> None:
    np.testing.assert_allclose(model.predict("u2", [100, 104]), all_scores(model)[2, [0, 4]], rtol=1e-6)


def test_predictions_are_clipped_to_the_scale(model: Factors) -> None:
    assert replace(model, mean=9.0).predict("u0", [100, 101]).tolist() == [5.0, 5.0]
    assert replace(model, mean=9.0, scale=None).predict("u0", [100])[0] > 5


def test_predicting_rows_equals_predicting_by_id(model: Factors) -> None:
    users, items = np.repeat(np.arange(USERS, dtype=np.int32), 2), np.array([1, 5] * USERS, np.int32)
    by_id = [model.predict(user, [101, 105]) for user in model.user_ids.tolist()]
    np.testing.assert_array_equal(model.predict_rows(users, items), np.concatenate(by_id))


def test_more_rows_than_are_predicted_at_a_time_keep_their_order(model: Factors) -> None:
    # A slice has a million rows, which is no multiple of the users nor of the items.
    rows = np.arange(1_000_003, dtype=np.int32)
    users, items = rows % USERS, rows % ITEMS
    np.testing.assert_allclose(model.predict_rows(users, items), all_scores(model)[users, items], rtol=1e-6)


def test_recommendations_without_a_choice_are_in_order_of_the_predicted_rating(model: Factors) -> None:
    assert all(best.rating == pytest.approx(best.score) for best in model.recommend("u2"))
    assert {best.rating for best in replace(model, scale=None).recommend("u2")} == {None}
    assert {best.rating for best in model.similar_items(104)} == {None}


def test_items_are_recommended_in_order_of_choice_with_their_rating_beside(choosing: Factors) -> None:
    scores, ratings = choice_scores(choosing, 2), all_scores(choosing)[2]
    unseen = [item for item in np.argsort(-scores) if item not in (1, 8)]
    assert unseen != [item for item in np.argsort(-ratings) if item not in (1, 8)]
    found = choosing.recommend("u2", n=50)
    assert [best.item for best in found] == [100 + item for item in unseen]
    np.testing.assert_allclose([best.score for best in found], scores[unseen], rtol=1e-5)
    np.testing.assert_allclose([best.rating or 0 for best in found], ratings[unseen], rtol=1e-6)


def test_choice_changes_no_prediction(model: Factors, choosing: Factors) -> None:
    np.testing.assert_array_equal(choosing.predict("u2", [100, 104]), model.predict("u2", [100, 104]))


def test_ratings_beyond_the_scale_count_as_its_end(choosing: Factors) -> None:
    assert choosing.choice is not None
    high = replace(choosing, mean=90.0)
    without = replace(choosing, scale=None)
    wanted = np.array([best.score for best in without.recommend("u2")]) + 0.5 * 5
    np.testing.assert_allclose([best.score for best in high.recommend("u2")], wanted, rtol=1e-5)


def test_rating_counts_in_quarters_of_any_scale(choosing: Factors) -> None:
    stretched = replace(
        choosing,
        scale=Scale(0, 100),
        mean=25 * (choosing.mean - 1),
        user_bias=25 * choosing.user_bias,
        item_bias=25 * choosing.item_bias,
        user_vectors=25 * choosing.user_vectors,
    )
    before, after = choosing.recommend("u2"), stretched.recommend("u2")
    assert [best.item for best in after] == [best.item for best in before]
    # The other scale begins at 0, not at 1.
    wanted = [best.score - 0.5 for best in before]
    np.testing.assert_allclose([best.score for best in after], wanted, rtol=1e-5)


def test_implicit_model_ranks_by_choice_alone(choosing: Factors) -> None:
    found = replace(choosing, scale=None).recommend("u2", n=50)
    scores = choice_scores(choosing, 2) - 0.5 * all_scores(choosing)[2]
    rows = [int(best.item) - 100 for best in found]
    np.testing.assert_allclose([best.score for best in found], scores[rows], rtol=1e-5)
    assert {best.rating for best in found} == {None}


def test_choice_leaves_seen_items_out_and_stops_where_items_run_out(choosing: Factors) -> None:
    assert {best.item for best in choosing.recommend("u0", n=50)} == {101, 102, 103, 105, 106, 107, 108}
    assert choosing.recommend("u-1832") == []
    assert len(choosing.recommend("u-1832", n=50, include_seen=True)) == ITEMS
    items, scores = choosing.top_items(slice(4, 6), n=ITEMS + 1)
    np.testing.assert_array_equal(items < 0, np.isneginf(scores))
    assert (items < 0).sum(axis=1).tolist() == [1, ITEMS + 1]


def test_seen_items_that_are_included_still_tell_the_taste(choosing: Factors) -> None:
    found = choosing.recommend("u2", n=50, include_seen=True)
    assert [best.item for best in found] == (100 + np.argsort(-choice_scores(choosing, 2))).tolist()


def test_chosen_items_of_a_range_are_those_of_each_user(choosing: Factors) -> None:
    together = choosing.top_items(slice(1, 5), n=4)[0]
    alone = [choosing.top_items(slice(row, row + 1), n=4)[0][0] for row in range(1, 5)]
    np.testing.assert_array_equal(together, alone)
    assert choosing.top_items(slice(4, 2))[0].shape == (0, 10)


def test_choice_without_knowing_what_was_seen_is_everybodys(choosing: Factors) -> None:
    assert choosing.choice is not None
    found = replace(choosing, seen=None).recommend("u2", n=50)
    wanted = choosing.choice.log_counts + 0.5 * all_scores(choosing)[2]
    assert [best.item for best in found] == (100 + np.argsort(-wanted)).tolist()


def test_taste_of_a_new_user_is_that_of_the_items_she_has_rated(choosing: Factors) -> None:
    new = choosing.fold_in({107: 5.0, 101: 2.0}, user="eve")
    scores = choice_scores(new, 0)
    found = new.recommend("eve", n=50)
    assert {best.item for best in found} == {100, 102, 103, 104, 105, 106, 108}
    rows = [int(best.item) - 100 for best in found]
    np.testing.assert_allclose([best.score for best in found], scores[rows], rtol=1e-5)
    assert new.seen is not None
    assert new.choice is not None
    assert new.choice.tastes(new.seen.ptr, new.seen.index).any()


def test_predicting_nothing_gives_nothing(model: Factors) -> None:
    assert model.predict("u0", []).shape == (0,)


def test_recommendations_are_the_best_unseen_items_in_order(model: Factors) -> None:
    scores = all_scores(model)[2]
    unseen = [item for item in np.argsort(-scores) if item not in (1, 8)]
    found = model.recommend("u2", n=3)
    assert [item.item for item in found] == [100 + item for item in unseen[:3]]
    np.testing.assert_allclose([item.score for item in found], scores[unseen[:3]], rtol=1e-6)


@pytest.mark.parametrize(("mean", "end"), [(9.0, 5.0), (-9.0, 1.0)])
def test_scores_of_recommendations_stay_on_the_scale(model: Factors, mean: float, end: float) -> None:
    assert {best.score for best in replace(model, mean=mean).recommend("u2", n=50)} == {end}
    unbounded = replace(model, mean=mean, scale=None).recommend("u2", n=50)
    assert not any(1 <= best.score <= 5 for best in unbounded)


def test_recommendations_stop_where_items_run_out(model: Factors) -> None:
    assert len(model.recommend("u0", n=50)) == ITEMS - 2
    assert model.recommend("u-1832") == []
    assert len(model.recommend("u-1832", n=50, include_seen=True)) == ITEMS


def test_a_model_that_does_not_know_what_was_seen_recommends_anything(model: Factors) -> None:
    assert len(replace(model, seen=None).recommend("u-1832", n=50)) == ITEMS


def test_places_beyond_the_last_item_score_minus_infinity(model: Factors) -> None:
    items, scores = model.top_items(slice(4, 6), n=ITEMS + 1)
    np.testing.assert_array_equal(items < 0, np.isneginf(scores))
    assert (items < 0).sum(axis=1).tolist() == [1, ITEMS + 1]


def test_top_items_of_a_range_are_those_of_each_user(model: Factors) -> None:
    together = model.top_items(slice(1, 5), n=4)[0]
    alone = [model.top_items(slice(row, row + 1), n=4)[0][0] for row in range(1, 5)]
    np.testing.assert_array_equal(together, alone)
    assert model.top_items(slice(4, 2))[0].shape == (0, 10)


def test_recommending_no_items_is_refused(model: Factors) -> None:
    with pytest.raises(ConfigError, match="n must be at least 1, got 0"):
        model.recommend("u0", n=0)
    with pytest.raises(ConfigError, match="n must be at least 1, got -1"):
        model.similar_items(100, n=-1)


def test_titles_come_with_recommendations(model: Factors) -> None:
    item = model.recommend("u2", n=1)[0].item
    assert isinstance(item, int)
    titled = model.with_titles({item: "Heat"})
    assert titled.recommend("u2", n=1)[0].title == "Heat"
    assert titled.recommend("u2", n=2)[1].title is None


def test_unknown_ids_are_named_with_a_hint(model: Factors) -> None:
    with pytest.raises(UnknownId, match=r"no user 'u1832'.*Did you mean \"u-1832\""):
        model.recommend("u1832")
    with pytest.raises(UnknownId, match="no item 999"):
        model.predict("u0", [999])


def test_text_finds_integer_ids_as_on_a_command_line(model: Factors) -> None:
    assert model.predict("u0", ["104"])[0] == model.predict("u0", [104])[0]


def test_similar_items_are_nearest_by_centred_cosine(model: Factors) -> None:
    vectors = model.item_vectors - model.item_vectors.mean(axis=0)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosine = unit @ unit[4]
    expected = [item for item in np.argsort(-cosine) if item != 4]
    found = model.similar_items(104, n=50)
    assert [item.item for item in found] == [100 + item for item in expected]
    np.testing.assert_allclose([item.score for item in found], cosine[expected], rtol=1e-4, atol=1e-6)


def test_what_all_items_share_does_not_make_them_similar(model: Factors) -> None:
    shifted = replace(model, item_vectors=model.item_vectors + np.float32(10))
    wanted = [item.item for item in model.similar_items(104)]
    assert [item.item for item in shifted.similar_items(104)] == wanted


def test_fold_in_solves_the_ridge_regression(model: Factors) -> None:
    rows, values = [1, 4, 6, 7], np.array([5.0, 2.0, 4.0, 3.0])
    x = np.column_stack([np.ones(4), model.item_vectors[rows]]).astype(np.float64)
    y = values - model.mean - model.item_bias[rows]
    exact = np.linalg.solve(x.T @ x + np.diag([4.0, 2.0, 2.0, 2.0]), x.T @ y)
    new = model.fold_in({100 + row: value for row, value in zip(rows, values, strict=True)}, user="eve")
    np.testing.assert_allclose(new.user_bias, exact[:1], rtol=1e-5)
    np.testing.assert_allclose(new.user_vectors[0], exact[1:], rtol=1e-5)
    assert {item.item for item in new.recommend("eve", n=50)} == {100, 102, 103, 105, 108}


def test_fold_in_lets_the_prior_grow_with_the_ratings_and_weighs_items(model: Factors) -> None:
    weights = np.linspace(0.5, 2.0, ITEMS)
    home = HomeFit(np.diag([2.0, 2.0, 2.0]), weights, growth=0.5)
    new = replace(model, home=home).fold_in({102: 5.0, 105: 1.0})
    x, w = model.item_vectors[[2, 5]].astype(np.float64), weights[[2, 5]]
    y = np.array([5.0, 1.0]) - model.mean - model.item_bias[[2, 5]]
    exact = np.linalg.solve((x.T * w) @ x + 2.0 * np.sqrt(2) * np.eye(3), (x.T * w) @ y)
    np.testing.assert_allclose(new.user_vectors[0], exact, rtol=1e-5)
    assert new.user_bias.tolist() == [0.0]


def test_fold_in_weighs_the_values_of_an_implicit_model(model: Factors) -> None:
    implicit = replace(model, scale=None, home=HomeFit(np.eye(3), np.ones(ITEMS), confidence=0.5))
    once, often = implicit.fold_in({103: 1.0}), implicit.fold_in({103: 7.0})
    x = model.item_vectors[3].astype(np.float64)
    exact = np.linalg.solve(0.5 * 7 * np.outer(x, x) + np.eye(3), (1 + 0.5 * 7) * x)
    np.testing.assert_allclose(often.user_vectors[0], exact, rtol=1e-5)
    assert float(often.user_vectors[0] @ x) > float(once.user_vectors[0] @ x) > 0


def test_nothing_done_cannot_be_folded_into_an_implicit_model(model: Factors) -> None:
    implicit = replace(model, scale=None, home=HomeFit(np.eye(3), np.ones(ITEMS), confidence=0.5))
    with pytest.raises(DataError, match="above 0"):
        implicit.fold_in({103: 0.0})


@pytest.mark.parametrize(
    ("ratings", "message"),
    [
        ({}, "at least one rating"),
        ({100: 6.0}, "outside the model's scale, 1 to 5"),
        ({100: float("nan")}, "outside the model's scale"),
    ],
)
def test_ratings_that_cannot_be_folded_in_are_refused(
    model: Factors, ratings: dict[int | str, float], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        model.fold_in(ratings)


def test_fold_in_needs_to_know_how_the_model_was_fitted(model: Factors) -> None:
    with pytest.raises(DataError, match="Fit it again"):
        replace(model, home=None).fold_in({100: 3.0})


def test_saving_and_loading_changes_nothing(model: Factors, tmp_path: Path) -> None:
    home = HomeFit(np.eye(4), np.linspace(1, 2, ITEMS), growth=0.5, confidence=2.5, calibrated=True)
    before = replace(model.with_titles({104: "Żółw"}), home=home)
    before.save(tmp_path / "model.npz")
    after = Factors.load(tmp_path / "model.npz")
    for name in ("user_ids", "item_ids", "user_bias", "item_bias", "user_vectors", "item_vectors", "titles"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    assert (after.mean, after.scale) == (before.mean, before.scale)
    assert before.seen is not None
    assert after.seen is not None
    np.testing.assert_array_equal(after.seen.index, before.seen.index)
    assert after.home is not None
    assert (after.home.growth, after.home.confidence, after.home.calibrated) == (0.5, 2.5, True)
    np.testing.assert_array_equal(after.home.weights, home.weights)
    assert after.recommend("u0") == before.recommend("u0")


def test_choice_is_saved_and_loaded(choosing: Factors, tmp_path: Path) -> None:
    assert choosing.choice is not None
    stated = Choice(choosing.choice.log_counts, choosing.choice.columns, 0.3, 0.25)
    before = replace(choosing, choice=stated)
    before.save(tmp_path / "model.npz")
    after = Factors.load(tmp_path / "model.npz")
    assert after.choice is not None
    assert (after.choice.variance, after.choice.rating_weight) == (0.3, 0.25)
    np.testing.assert_array_equal(after.choice.log_counts, stated.log_counts)
    np.testing.assert_array_equal(after.choice.columns, stated.columns)
    assert after.recommend("u0") == before.recommend("u0")


def test_models_saved_before_there_were_choices_are_read(model: Factors, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    model.save(path)
    with np.load(path) as file:
        facts = json.loads(str(file["facts"]))
    assert "choice" not in facts
    changed(path, facts=np.array(json.dumps(facts | {"format": 1})))
    assert Factors.load(path).choice is None


@pytest.mark.parametrize(
    "damage",
    [
        {"choice_log_counts": None},
        {"choice_columns": None},
        {"choice_log_counts": np.zeros(ITEMS - 1), "choice_columns": np.zeros((ITEMS - 1, 2))},
        {"choice_columns": np.zeros((ITEMS - 1, 2))},
        {"choice_columns": np.full((ITEMS, 2), np.nan)},
        {"choice_log_counts": np.array(["many"] * ITEMS)},
    ],
)
def test_choices_that_do_not_fit_the_items_are_refused(
    choosing: Factors, damage: dict[str, Any], tmp_path: Path
) -> None:
    choosing.save(tmp_path / "model.npz")
    changed(tmp_path / "model.npz", **damage)
    with pytest.raises(RunError, match="the model is damaged"):
        Factors.load(tmp_path / "model.npz")


def test_a_model_with_the_least_there_is_can_be_saved(model: Factors, tmp_path: Path) -> None:
    bare = replace(model, scale=None, seen=None, home=None)
    bare.save(tmp_path / "model.npz")
    after = Factors.load(tmp_path / "model.npz")
    assert (after.scale, after.seen, after.home, after.titles) == (None, None, None, None)


def test_saved_models_hold_no_pickle(model: Factors, tmp_path: Path) -> None:
    model.with_titles({100: "Heat"}).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert all(file[name].dtype.kind in "Uif" for name in file.files)


def test_a_pickled_file_is_not_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "model.npz", facts=np.array({"format": 1}, dtype=object))
    with pytest.raises(RunError, match="not a model"):
        Factors.load(tmp_path / "model.npz")


def test_a_missing_file_is_reported_as_missing(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no such file"):
        Factors.load(tmp_path / "none.npz")


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04broken"])
def test_other_files_are_refused_by_name(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.npz").write_bytes(content)
    with pytest.raises(RunError, match=r"model\.npz: not a model that cofactor has saved"):
        Factors.load(tmp_path / "model.npz")


def test_a_truncated_file_is_refused(model: Factors, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    model.save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(RunError, match="not a model"):
        Factors.load(path)


def test_a_newer_format_asks_for_an_upgrade(model: Factors, tmp_path: Path) -> None:
    model.save(tmp_path / "model.npz")
    changed(tmp_path / "model.npz", facts=np.array(json.dumps({"format": FORMAT + 1})))
    with pytest.raises(RunError, match="newer cofactor"):
        Factors.load(tmp_path / "model.npz")


@pytest.mark.parametrize(
    "damage",
    [
        {"item_bias": None},
        {"item_bias": np.zeros(ITEMS - 1, np.float32)},
        {"user_vectors": np.zeros((USERS, WIDTH + 1), np.float32)},
        {"seen_index": np.full(13, ITEMS, np.int32)},
        {"seen_ptr": np.array([0, 99, 2, 4, 4, 4, 13])},
        {"seen_ptr": np.array([0, 13])},
        {"seen_ptr": np.array([-1, 2, 2, 4, 4, 4, 13])},
        {"seen_ptr": np.array([0, 2, 2, 4, 4, 4, 14])},
        {"titles": np.array(["one"])},
        {"surprise": np.zeros(1)},
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(
    model: Factors, damage: dict[str, Any], tmp_path: Path
) -> None:
    model.save(tmp_path / "model.npz")
    changed(tmp_path / "model.npz", **damage)
    with pytest.raises(RunError, match="the model is damaged"):
        Factors.load(tmp_path / "model.npz")


def test_a_model_says_its_size_and_compares_by_identity(model: Factors) -> None:
    assert repr(model) == "Factors(3 factors, 6 users, 9 items)"
    assert model != replace(model)
    assert hash(model) == hash(model)
    assert Recommendation(1, None, 2.0) == Recommendation(1, None, 2.0)


def test_item_named_twice_cannot_be_folded_in(model: Factors) -> None:
    with pytest.raises(DataError, match="named twice"):
        model.fold_in({103: 3.0, "103": 4.0})
