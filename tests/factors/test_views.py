"""Users and items without ratings, against the formulas in plain numpy."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from cofactor.data.codes import Groups, Number, Tags
from cofactor.data.coding import Coding
from cofactor.data.features import Column
from cofactor.data.ids import Id
from cofactor.data.public_items import PublicItems
from cofactor.data.ratings import Scale
from cofactor.data.tables import Table
from cofactor.errors import ConfigError, DataError, RunError
from cofactor.factors.choosing import Choice
from cofactor.factors.model import Factors, HomeFit, Seen
from cofactor.factors.views import Views, ridge_rows

USERS, ITEMS, WIDTH, RIDGE = 4, 7, 3, 2.5
PEOPLE = Coding.stated(
    {"age": Groups((20, 30, 40, 50, 60, 70)), "gender": ("F", "M"), "city": ("Bonn", "Lyon", "Oslo")}
)
FILMS = Coding.stated({"length": Number(100.0, 20.0), "genres": Tags(("comedy", "crime", "drama"))})


def table(ids: list[Any], lengths: list[str], genres: list[str], titles: list[str] | None = None) -> Table:
    columns = [Column("length", "number", tuple(lengths)), Column("genres", "tags", tuple(genres), "|")]
    if titles is not None:
        columns.append(Column("title", "text", tuple(titles)))
    return Table(np.array(ids), tuple(columns), "new.csv")


NEW = table([200, 201, 202], ["120", "", "90"], ["crime|drama", "comedy", ""], ["Heat", "Clue", "Rope"])


@pytest.fixture
def views() -> Views:
    random = np.random.default_rng(5)
    return Views(
        users=random.normal(0, 1, (PEOPLE.width, WIDTH)).astype(np.float32),
        items=random.normal(0, 1, (FILMS.width, WIDTH)).astype(np.float32),
        ridge=RIDGE,
        attributes=PEOPLE,
        features=FILMS.names,
        feature_coding=FILMS,
        feature_means=np.array([0.1, 0.3, 0.4, 0.6], np.float32),
    )


@pytest.fixture
def model(views: Views) -> Factors:
    random = np.random.default_rng(3)
    return Factors(
        user_ids=np.array([f"u{row}" for row in range(USERS)]),
        item_ids=np.arange(100, 100 + ITEMS),
        mean=0.5,
        user_bias=random.normal(0, 0.1, USERS).astype(np.float32),
        item_bias=random.normal(0, 0.1, ITEMS).astype(np.float32),
        user_vectors=random.normal(0, 1, (USERS, WIDTH)).astype(np.float32),
        item_vectors=random.normal(0, 1, (ITEMS, WIDTH)).astype(np.float32),
        scale=Scale(-50, 50),
        seen=Seen(np.array([0, 2, 2, 3, 4]), np.array([0, 4, 1, 6], np.int32)),
        home=HomeFit(2.0 * np.eye(WIDTH), np.full(ITEMS, 0.7)),
        titles=np.array([f"film {row}" for row in range(ITEMS)]),
        views=views,
    )


def published(x: Any, view: Any) -> np.ndarray:
    """Equations 15 and 17 as they are printed: x U (U'U + ridge I)^-1."""
    wide = np.asarray(view, np.float64)
    return np.asarray(x, np.float64) @ wide @ np.linalg.inv(wide.T @ wide + RIDGE * np.eye(WIDTH))


def changed(path: Path, **parts: Any) -> None:
    """Rewrite a saved model with other arrays; None removes one."""
    with np.load(path) as file:
        kept = dict(file) | parts
    np.savez(path, **{name: array for name, array in kept.items() if array is not None})


def facts_of(path: Path) -> dict[str, Any]:
    with np.load(path) as file:
        found: dict[str, Any] = json.loads(str(file["facts"]))
    return found


def test_user_vectors_follow_equation_15(views: Views) -> None:
    x = np.random.default_rng(0).normal(size=(5, PEOPLE.width))
    np.testing.assert_allclose(views.user_vectors(x), published(x, views.users), rtol=1e-5, atol=1e-6)


def test_item_vectors_follow_equation_17(views: Views) -> None:
    y = np.random.default_rng(0).normal(size=(5, FILMS.width))
    np.testing.assert_allclose(views.item_vectors(y), published(y, views.items), rtol=1e-5, atol=1e-6)


@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(0, 6), st.just(PEOPLE.width)),
        elements=st.one_of(st.just(np.nan), st.floats(-3, 3)),
    )
)
def test_missing_attributes_are_left_out_of_the_formula_row_by_row(x: np.ndarray) -> None:
    view = np.random.default_rng(1).normal(0, 1, (PEOPLE.width, WIDTH)).astype(np.float32)
    found = ridge_rows(x, view, RIDGE)
    assert found.shape == (len(x), WIDTH)
    for row, vector in zip(x, found, strict=True):
        known = ~np.isnan(row)
        np.testing.assert_allclose(vector, published(row[known], view[known]), rtol=1e-4, atol=1e-5)


def test_found_vector_is_where_the_objective_is_least(views: Views) -> None:
    x = np.array([0.0, 1, 0, 0, 0, 0, 0, np.nan, np.nan, 0, 1, 0])
    known = ~np.isnan(x)

    def objective(p: np.ndarray) -> float:
        return float(((x - views.users @ p)[known] ** 2).sum() + RIDGE * (p**2).sum())

    best = views.user_vectors(x[None])[0].astype(np.float64)
    for step in np.random.default_rng(0).normal(0, 0.05, (50, WIDTH)):
        assert objective(best) < objective(best + step)


def test_new_user_is_scored_by_her_vector(model: Factors, views: Views) -> None:
    x = np.zeros(PEOPLE.width)
    x[[2, 7]] = 1  # in her thirties, F
    x[9:] = np.nan  # city: not told
    known = ~np.isnan(x)
    vector = published(x[known], views.users[known])
    # Her vector is too short for ratings: it ranks, beyond any scale.
    model = replace(model, scale=Scale(1, 5))
    wanted = model.mean + model.item_bias + model.item_vectors @ vector
    her = model.for_attributes({"age": 33, "gender": "F"})
    assert her.user_ids.tolist() == ["new user"]
    np.testing.assert_allclose(her.predict("new user", model.item_ids.tolist()), wanted, rtol=1e-4)
    best = model.recommend_for_attributes({"gender": "F", "age": "33"}, n=50)
    assert [one.item for one in best] == (100 + np.argsort(-wanted)).tolist()
    np.testing.assert_allclose([one.score for one in best], np.sort(wanted)[::-1], rtol=1e-4)
    assert {one.rating for one in best} == {None}
    assert [one.title for one in best[:1]] == [f"film {int(np.argmax(wanted))}"]


def test_new_user_may_have_a_name_and_has_seen_nothing(model: Factors) -> None:
    ann = model.for_attributes({"city": "Oslo"}, user="ann")
    assert len(ann.recommend("ann", 50)) == ITEMS
    assert not ann.knows("u1")


def test_category_that_is_not_coded_is_none_of_those_that_are(model: Factors, views: Views) -> None:
    her = model.for_attributes({"gender": "F", "city": "Rome"})
    x = np.array([1.0, 0, 0, 0, 0])
    np.testing.assert_allclose(her.user_vectors[0], published(x, views.users[7:]), rtol=1e-4)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "no attribute is given. Name at least one of age, gender, city"),
        ({"age": None, "city": ""}, "no attribute is given"),
        ({"gendre": "F"}, 'Did you mean "gender"'),
        ({"age": "old"}, "not a number"),
    ],
)
def test_attributes_that_mean_nothing_are_refused(
    attributes: dict[str, Any], message: str, model: Factors
) -> None:
    with pytest.raises(DataError, match=message):
        model.recommend_for_attributes(attributes)


def test_attributes_that_are_no_mapping_are_refused(model: Factors) -> None:
    text: Any = "age=31"
    with pytest.raises(ConfigError, match=r'such as \{"age": 31, "gender": "F"\}, and not as a str'):
        model.recommend_for_attributes(text)


@pytest.mark.parametrize("items", [{"length": [90]}, "new.csv", pl.DataFrame({"item_id": [1]})])
def test_new_items_that_are_no_table_are_refused(items: Any, model: Factors) -> None:
    with pytest.raises(ConfigError, match=rf"read_items.*PublicItems, and not as a {type(items).__name__}"):
        model.add_items(items)


def test_models_without_views_say_how_to_get_one(model: Factors, views: Views) -> None:
    nothing = np.zeros((0, WIDTH), np.float32)
    for without in (None, replace(views, users=nothing, attributes=None)):
        with pytest.raises(DataError, match=r"MultiViewMF.*--user-attributes"):
            replace(model, views=without).for_attributes({"age": 30})
    bare = replace(views, items=nothing, features=(), feature_coding=None, feature_means=None)
    for without in (None, bare):
        with pytest.raises(DataError, match=r"MultiViewMF.*--public-items"):
            replace(model, views=without).add_items(NEW)


def around_the_mean(model: Factors, y: Any, view: Any) -> np.ndarray:
    """Equation 17 with the penalty on the distance from the mean of the items."""
    mean = model.item_vectors.mean(axis=0, dtype=np.float64)
    return np.asarray(mean + published(y - view @ mean, view))


def test_added_items_get_the_vectors_of_their_features(model: Factors, views: Views) -> None:
    grown = model.add_items(NEW)
    # A missing length is the mean of training, and so are missing genres.
    y = np.array([[1.0, 0, 1, 1], [0.1, 1, 0, 0], [-0.5, 0.3, 0.4, 0.6]])
    assert grown.item_ids.tolist() == [*range(100, 107), 200, 201, 202]
    wanted = around_the_mean(model, y, views.items)
    np.testing.assert_allclose(grown.item_vectors[ITEMS:], wanted, rtol=1e-4, atol=1e-6)
    # They differ from each other as equation 17 has it.
    apart = np.diff(published(y, views.items), axis=0)
    np.testing.assert_allclose(np.diff(grown.item_vectors[ITEMS:], axis=0), apart, rtol=1e-4, atol=1e-6)
    assert grown.item_bias[ITEMS:].tolist() == [0, 0, 0]
    assert grown.titles is not None
    assert grown.titles.tolist()[-4:] == ["film 6", "Heat", "Clue", "Rope"]


def test_missing_features_are_left_out_where_no_means_are_known(model: Factors, views: Views) -> None:
    grown = replace(model, views=replace(views, feature_means=None)).add_items(NEW)
    without_length = around_the_mean(model, np.array([1.0, 0, 0]), views.items[1:])
    np.testing.assert_allclose(grown.item_vectors[ITEMS + 1], without_length, rtol=1e-4, atol=1e-6)


def test_adding_items_changes_nothing_for_the_old_ones(model: Factors) -> None:
    grown, old = model.add_items(NEW), model.item_ids.tolist()
    for user in model.user_ids.tolist():
        np.testing.assert_array_equal(grown.predict(user, old), model.predict(user, old))
        ranked = [best.item for best in grown.recommend(user, 50) if best.item in old]
        assert ranked == [best.item for best in model.recommend(user, 50)]
    her: dict[Id, float] = {100: 3.0, 103: -2.0}
    np.testing.assert_array_equal(grown.fold_in(her).user_vectors, model.fold_in(her).user_vectors)
    assert grown.seen is model.seen
    assert model.item_ids.tolist() == old


def test_added_items_can_be_recommended_and_rated(model: Factors) -> None:
    grown = model.add_items(NEW)
    assert {200, 201, 202} <= {best.item for best in grown.recommend("u0", 50)}
    assert {200, 201, 202} <= {best.item for best in grown.recommend_for_attributes({"age": 30}, 50)}
    assert 200 not in {best.item for best in grown.fold_in({200: 4.0}).recommend("new user", 50)}
    assert grown.home is not None
    assert grown.home.weights.tolist() == [0.7] * (ITEMS + 3)


def test_items_as_numbers_are_added_like_a_table(model: Factors) -> None:
    numbers = PublicItems.of_numbers(
        NEW.ids[:1], FILMS.encoded(NEW, NEW.ids)[:1], names=FILMS.names, source="s"
    )
    grown = model.add_items(numbers)
    np.testing.assert_array_equal(grown.item_vectors[-1], model.add_items(NEW).item_vectors[ITEMS])
    assert grown.titles is not None
    assert grown.titles.tolist()[-1] == ""


def test_items_that_the_model_has_stay_as_they_are(model: Factors) -> None:
    mixed = table([106, 300], ["10", "90"], ["drama", "crime"], ["other", "new"])
    grown = model.add_items(mixed)
    assert grown.item_ids.tolist() == [*range(100, 107), 300]
    assert grown.titles is not None
    assert grown.titles.tolist()[-2:] == ["film 6", "new"]
    np.testing.assert_array_equal(grown.item_vectors[:ITEMS], model.item_vectors)


def test_known_items_are_recognised_however_their_ids_are_spelled(model: Factors) -> None:
    grown = model.add_items(table(["106", "tt1"], ["10", "90"], ["drama", "crime"]))
    assert len(grown.item_ids) == ITEMS + 1
    assert grown.item_row("tt1") == ITEMS
    assert grown.item_row(106) == 6


def test_a_model_without_titles_or_ratings_at_home_grows_as_well(model: Factors) -> None:
    grown = replace(model, titles=None, home=None).add_items(NEW)
    assert grown.titles is None
    assert len(grown.item_ids) == ITEMS + 3


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (table([100, 101], ["1", "2"], ["", ""]), "every item of new.csv is in the model already"),
        (table([7, 7], ["1", "2"], ["", ""]), "an id occurs twice"),
        (
            Table(np.array([7]), (Column("length", "number", ("9",)),), "n.csv"),
            'n.csv: there is no column "genres"',
        ),
        (PublicItems.of_numbers([1], [[1.0]], names=["colour"], source="x"), "lacks length.*adds colour"),
        (PublicItems.of_numbers([1], np.ones((1, 4)), names=FILMS.names[::-1], source="x"), "another order"),
    ],
)
def test_items_that_cannot_be_added_are_refused(
    items: PublicItems | Table, message: str, model: Factors
) -> None:
    with pytest.raises(DataError, match=message):
        model.add_items(items)


def test_public_items_whose_numbers_are_gone_are_refused(model: Factors) -> None:
    named = PublicItems(source="films.csv", names=FILMS.names, sha256="")
    with pytest.raises(ConfigError, match="only named here"):
        model.add_items(named)


def test_a_table_needs_a_model_that_was_trained_on_one(model: Factors, views: Views) -> None:
    with pytest.raises(DataError, match=r"PublicItems.of_numbers, with the columns length"):
        replace(model, views=replace(views, feature_coding=None)).add_items(NEW)


def test_items_are_not_added_where_the_order_is_that_of_counts(model: Factors) -> None:
    choice = Choice.from_counts(np.arange(ITEMS), 0.5)
    with pytest.raises(DataError, match="how often they are chosen"):
        replace(model, choice=choice).add_items(NEW)


def test_views_of_a_training_know_its_coding_and_means(views: Views) -> None:
    public = PublicItems.coded(NEW, coding=FILMS)
    made = Views.learned(views.users, views.items, ridge=RIDGE, attributes=PEOPLE, public_items=public)
    assert made.features == FILMS.names
    assert made.feature_coding == FILMS
    assert made.feature_means is not None
    np.testing.assert_allclose(made.feature_means, public.matrix.mean(axis=0), rtol=1e-6)
    nothing = np.zeros((0, WIDTH), np.float32)
    assert Views.learned(views.users, nothing, ridge=1.0, attributes=PEOPLE, public_items=None).features == ()


@pytest.mark.parametrize(
    "change",
    [
        {"users": np.zeros((2, WIDTH))},
        {"users": np.full((PEOPLE.width, WIDTH), np.nan)},
        {"users": np.zeros((PEOPLE.width, WIDTH + 1))},
        {"attributes": None},
        {"items": np.zeros(WIDTH)},
        {"features": ("a",)},
        {"features": ("a", "b", "c", "d")},
        {"feature_means": np.zeros(2)},
        {"feature_means": np.full(FILMS.width, np.inf)},
    ],
)
def test_views_that_do_not_fit_together_are_refused(change: dict[str, Any], views: Views) -> None:
    with pytest.raises(DataError):
        replace(views, **change)


@pytest.mark.parametrize("ridge", [0.0, -1.0, np.nan, np.inf])
def test_a_ridge_that_is_none_is_refused(ridge: float, views: Views) -> None:
    with pytest.raises(ConfigError, match="ridge"):
        replace(views, ridge=ridge)


def test_numbers_of_another_width_are_refused(views: Views) -> None:
    with pytest.raises(DataError, match="shape"):
        views.user_vectors(np.zeros((1, 2)))


def test_views_are_saved_and_loaded_exactly(model: Factors, tmp_path: Path) -> None:
    model.save(tmp_path / "model.npz")
    loaded = Factors.load(tmp_path / "model.npz")
    assert loaded.views is not None
    assert model.views is not None
    for name in ("users", "items", "feature_means"):
        np.testing.assert_array_equal(getattr(loaded.views, name), getattr(model.views, name))
        assert getattr(loaded.views, name).dtype == np.float32
    for name in ("ridge", "attributes", "features", "feature_coding"):
        assert getattr(loaded.views, name) == getattr(model.views, name)
    told = {"age": 33, "city": "Oslo"}
    assert loaded.recommend_for_attributes(told) == model.recommend_for_attributes(told)
    np.testing.assert_array_equal(loaded.add_items(NEW).item_vectors, model.add_items(NEW).item_vectors)


def test_grown_models_are_saved_and_loaded(model: Factors, tmp_path: Path) -> None:
    grown = model.add_items(NEW)
    grown.save(tmp_path / "model.npz")
    assert Factors.load(tmp_path / "model.npz").recommend("u1", 50) == grown.recommend("u1", 50)


def test_one_view_alone_is_saved_and_loaded(model: Factors, views: Views, tmp_path: Path) -> None:
    nothing = np.zeros((0, WIDTH), np.float32)
    replace(model, views=Views(views.users, nothing, 1.0, PEOPLE)).save(tmp_path / "model.npz")
    loaded = Factors.load(tmp_path / "model.npz").views
    assert loaded is not None
    assert (loaded.features, loaded.feature_coding, loaded.feature_means) == ((), None, None)


def test_models_saved_before_there_were_views_are_read(model: Factors, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    replace(model, views=None).save(path)
    changed(path, facts=np.array(json.dumps(facts_of(path) | {"format": 2})))
    assert Factors.load(path).views is None


@pytest.mark.parametrize(
    "damage",
    [
        {"views_users": None},
        {"views_items": None},
        {"views_users": np.zeros((PEOPLE.width, WIDTH + 1), np.float32)},
        {"views_items": np.array([["a"]])},
        {"views_means": np.zeros(1, np.float32)},
        {"views_means": np.array(["a"] * FILMS.width)},
    ],
)
def test_damaged_arrays_of_views_are_refused(damage: dict[str, Any], model: Factors, tmp_path: Path) -> None:
    model.save(tmp_path / "model.npz")
    changed(tmp_path / "model.npz", **damage)
    with pytest.raises(RunError, match="the model is damaged"):
        Factors.load(tmp_path / "model.npz")


@pytest.mark.parametrize(
    "damage",
    [
        {"ridge": "much"},
        {"ridge": -1},
        {"features": ["a"]},
        {"features": 3},
        {"attributes": "{}"},
        {"attributes": 7},
        {"feature_coding": None, "features": []},
        {"attributes": json.dumps({"format": 1, "columns": [], "read_off": False, "left_out": []})},
    ],
)
def test_damaged_facts_of_views_are_refused(damage: dict[str, Any], model: Factors, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    model.save(path)
    facts = facts_of(path)
    changed(path, facts=np.array(json.dumps(facts | {"views": facts["views"] | damage})))
    with pytest.raises(RunError, match="the model is damaged"):
        Factors.load(path)


def test_views_of_other_factors_than_the_vectors_are_refused(
    model: Factors, views: Views, tmp_path: Path
) -> None:
    narrow = replace(views, users=views.users[:, :2], items=views.items[:, :2])
    replace(model, views=narrow).save(tmp_path / "model.npz")
    with pytest.raises(RunError, match="views of 2 factors for vectors of 3"):
        Factors.load(tmp_path / "model.npz")
