import math
from dataclasses import replace

import numpy as np
import pytest

from cofactor.data.split import by_fraction
from cofactor.errors import ConfigError, DataError
from cofactor.evaluate.bootstrap import Estimate
from cofactor.evaluate.rating_errors import errors
from cofactor.factors.sgd import SGD
from cofactor.papers.cells import Cell, Dealing, Effort, measured, summary
from cofactor.papers.material import Material
from cofactor.privacy.budget import Budget
from cofactor.progress import Progress, nobody
from cofactor.recipes.clipping import EmbeddingClipping
from cofactor.recipes.home_fit import UsersOnly
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.local_reports import LocalReports, budget_if_shuffled
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.sums import PlainSum
from cofactor.recipes.vertical import VerticalMF
from tests.papers.making import GENRES, material

ONE = Dealing(split="vertical")
TWO = Dealing(split="horizontal", parties=2)
DEVICES = Dealing(split="on-device")
FEW_STEPS = {"factors": 2, "rounds": 2, "local_steps": 1, "sampling": 1.0, "centre": 3.5}
VERTICAL = VerticalMF(**FEW_STEPS, clipping=EmbeddingClipping())  # type: ignore[arg-type]
HORIZONTAL = HorizontalMF(**FEW_STEPS, clipping=EmbeddingClipping(), home=UsersOnly())  # type: ignore[arg-type]


def cell(**changes: object) -> Cell:
    settings: dict[str, object] = {"line": "line", "panel": "panel", "dealing": ONE, "recipe": VERTICAL}
    return Cell(**(settings | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("dealing", [ONE, TWO, DEVICES, Dealing(split="vertical", by_category=True)])
def test_both_halves_are_dealt_alike_and_no_rating_is_lost(dealing: Dealing) -> None:
    whole = material()
    train, test = by_fraction(whole.ratings, 0.1, seed=3)
    left, right = dealing.federations(whole, train, test, seed=3)
    assert sum(len(party.ratings) for party in left.parties) == len(train)
    assert sum(len(party.ratings) for party in right.parties) == len(test)
    for one, other in zip(left.parties, right.parties, strict=True):
        assert one.name == other.name
        assert np.array_equal(one.ratings.item_ids, other.ratings.item_ids)
        assert np.array_equal(one.ratings.user_ids, other.ratings.user_ids)
    assert left.scale == whole.ratings.scale


@pytest.mark.parametrize("split", ["vertical", "horizontal"])
def test_parties_share_one_side_and_divide_the_other(split: str) -> None:
    whole = material()
    dealing = Dealing(split=split, parties=3)  # type: ignore[arg-type]
    dealt, _ = dealing.federations(whole, *by_fraction(whole.ratings, 0.1), seed=1)
    users = [party.ratings.user_count for party in dealt.parties]
    items = [party.ratings.item_count for party in dealt.parties]
    shared, divided = (users, items) if split == "vertical" else (items, users)
    counts = (whole.ratings.user_count, whole.ratings.item_count)
    assert dealt.kind == split
    assert shared == [counts[0 if split == "vertical" else 1]] * 3
    assert sum(divided) == counts[1 if split == "vertical" else 0]


def test_every_user_is_a_device() -> None:
    whole = material()
    dealt, kept = DEVICES.federations(whole, *by_fraction(whole.ratings, 0.1), seed=1)
    assert (dealt.kind, dealt.facts.cohort, dealt.facts.summed) == ("on-device", True, 60)
    assert kept.facts.summed == 60


def test_users_who_take_part_often_are_tested_once_and_keep_most_of_their_ratings() -> None:
    whole = material()
    train, test = by_fraction(whole.ratings, 0.1, seed=2)
    often = Dealing(split="on-device", replicas=5)
    dealt, kept = (half.parties[0].ratings for half in often.federations(whole, train, test, seed=2))
    assert dealt.user_count == kept.user_count == 5 * 60
    sizes = dealt.by_user.sizes.reshape(5, 60)
    assert np.array_equal(sizes[0], train.by_user.sizes)
    # Each of 4 x 1,080 ratings is kept with probability 0.8: five deviations are 131, a chance below 1e-6.
    assert abs(sizes[1:].sum() - 0.8 * 4 * len(train)) < 5 * np.sqrt(4 * len(train) * 0.16)
    assert not np.array_equal(sizes[1], sizes[2])
    assert np.array_equal(kept.by_user.sizes, np.concatenate([test.by_user.sizes, np.zeros(240)]))
    first = dealt.where(dealt.users < 60)
    assert np.array_equal(first.items, train.items)
    assert np.array_equal(first.values, train.values)
    again = often.federations(whole, train, test, seed=3)[0].parties[0].ratings
    assert not np.array_equal(again.by_user.sizes, dealt.by_user.sizes)


def test_devices_drop_out_of_a_training() -> None:
    recipe = OnDeviceMF(factors=2, rounds=2)
    asked = [cell(line=str(part), dealing=DEVICES, recipe=recipe, dropout=part) for part in (0.0, 0.25, 0.5)]
    none, some, all_lost = (row.ours for row in measured(material(), asked, Effort(), nobody))
    level = measured(
        material(),
        [cell(dealing=DEVICES, recipe=lambda federation, seed: recipe.alone(federation, seed=seed))],
        Effort(),
        nobody,
    )[0].ours
    assert none != some
    # If half of the devices are lost and 0.3 may be, no sum is opened, and items stay where they began.
    assert all_lost == pytest.approx(level, rel=1e-6)
    assert some != pytest.approx(level, rel=1e-6)


def test_noise_that_leaves_nothing_to_learn_is_a_row_that_says_so() -> None:
    recipe = OnDeviceMF(factors=2, rounds=2, most_ratings=20, aggregate=PlainSum())
    asked = cell(dealing=DEVICES, recipe=recipe, unit="user", epsilon=0.001)
    row = measured(material(), [asked], Effort(), nobody)[0]
    assert row.ours is None
    assert row.note.startswith("refused: noise of ")


def test_local_reports_get_the_budget_that_shuffling_would_bring_down_to_the_one_asked_for() -> None:
    recipe = LocalReports(factors=2, rounds=2)
    asked = cell(dealing=DEVICES, recipe=recipe, unit="user", epsilon=2.0)
    plain = asked.budget(1e-6)
    assert plain == Budget(epsilon=2.0, delta=1e-6, unit="user")
    asked = replace(asked, epsilon=0.5)
    local = replace(asked, if_shuffled=True).budget(1e-6, devices=20_000)
    assert local is not None
    assert local == budget_if_shuffled(replace(plain, epsilon=0.5), devices=20_000, rounds=2)
    assert local.epsilon > 2.0
    row = measured(material(), [replace(asked, if_shuffled=True)], Effort(), nobody)[0]
    assert (row.column, row.epsilon_label) == ("epsilon 0.5", 0.5)


def test_categories_become_parties_that_keep_all_users() -> None:
    whole = material()
    dealt, _ = Dealing(split="vertical", by_category=True).federations(
        whole, *by_fraction(whole.ratings, 0.1), seed=1
    )
    assert len(dealt.parties) == len(GENRES)
    assert all(party.ratings.user_count == whole.ratings.user_count for party in dealt.parties)


def test_a_party_without_ratings_to_train_on_is_left_out() -> None:
    ratings = material().ratings
    unrated = ratings.where(ratings.items != 0)
    names = tuple(("Rare",) if item == 0 else ("Drama",) for item in range(ratings.item_count))
    whole = Material(name="small", ratings=unrated, categories=names)
    dealt, kept = Dealing(split="vertical", by_category=True).federations(
        whole, *by_fraction(unrated, 0.1), seed=1
    )
    assert len(dealt.parties) == len(kept.parties) == 1


def test_splitting_by_category_needs_categories() -> None:
    plain = Material(name="small", ratings=material().ratings)
    with pytest.raises(DataError, match="small has no categories"):
        measured(plain, [cell(dealing=Dealing(split="vertical", by_category=True))], Effort(), nobody)


def test_a_private_cell_has_the_epsilon_that_is_proved_beside_the_one_asked_for() -> None:
    told: list[Progress] = []
    rows = measured(material(), [cell(unit="rating", epsilon=2.0)], Effort(), told.append)
    assert [(row.column, row.epsilon_label, row.delta) for row in rows] == [("epsilon 2", 2.0, 1e-6)]
    row = rows[0]
    assert row.epsilon is not None
    assert row.ours is not None
    assert row.low is not None
    assert row.high is not None
    assert 1.9 < row.epsilon <= 2.0
    assert row.low < row.ours < row.high
    assert [(event.step, event.steps) for event in told] == [(1, 1)]


def test_a_cell_without_a_budget_claims_nothing() -> None:
    row = measured(material(), [cell()], Effort(), nobody)[0]
    assert (row.column, row.epsilon_label, row.epsilon, row.delta) == ("no noise", None, None, None)
    assert row.ours is not None


def test_what_is_refused_is_a_row_without_a_number_that_says_why() -> None:
    asked = cell(dealing=TWO, recipe=HORIZONTAL, unit="rating", epsilon=1.0)
    row = measured(material(), [asked], Effort(), nobody)[0]
    assert row.ours is None
    assert row.epsilon is None
    assert row.note.startswith("refused: HorizontalMF cannot protect single ratings")


def test_a_claimed_epsilon_is_shown_as_the_papers_and_never_as_proved() -> None:
    row = measured(material(), [cell(claimed=4.0, note="claimed")], Effort(), nobody)[0]
    assert (row.column, row.epsilon_label, row.epsilon, row.delta) == ("epsilon 4", 4.0, None, None)
    assert row.note == "claimed"
    assert row.ours is not None


def test_what_is_impossible_is_not_trained() -> None:
    row = measured(material(), [cell(recipe=None, claimed=4.0, impossible="No.")], Effort(), nobody)[0]
    assert (row.ours, row.note) == (None, "No.")


def test_fine_tuning_is_a_second_line_of_the_same_training() -> None:
    asked = cell(dealing=TWO, recipe=HORIZONTAL, unit="user", epsilon=10.0, fine_tuned="after")
    before, after = measured(material(), [asked], Effort(), nobody)
    assert (before.line, after.line) == ("line", "after")
    assert before.epsilon == after.epsilon
    assert before.ours != after.ours
    assert (before.at_home, after.at_home) == (False, True)


def test_a_model_is_fitted_by_each_party_itself() -> None:
    whole = material()
    model = SGD(factors=2, epochs=2, threads=1)
    row = measured(whole, [cell(recipe=model, dealing=ONE)], Effort(), nobody)[0]
    train, test = ONE.federations(whole, *by_fraction(whole.ratings, 0.1, seed=1), 1)
    fitted = model.fit(train.parties[0].ratings, seed=1)
    assert row.ours == pytest.approx(errors(fitted, test.parties[0].ratings).mse.value, rel=1e-6)
    apart = measured(whole, [cell(recipe=model, dealing=TWO)], Effort(), nobody)[0]
    assert apart.ours != row.ours


def test_rows_keep_the_order_of_the_cells_whatever_the_parties() -> None:
    model = SGD(factors=2, epochs=1, threads=1)
    asked = [cell(line=name, recipe=model, dealing=d) for name, d in (("a", ONE), ("b", TWO), ("c", ONE))]
    assert [row.line for row in measured(material(), asked, Effort(), nobody)] == ["a", "b", "c"]


def test_several_seeds_split_the_ratings_anew() -> None:
    model = SGD(factors=2, epochs=1, threads=1)
    one, two = (
        measured(material(), [cell(recipe=model)], Effort(seeds=seeds), nobody)[0] for seeds in (1, 2)
    )
    assert one.ours != two.ours


def test_one_estimate_keeps_its_interval_and_several_have_students() -> None:
    assert summary([]) == {"ours": None, "low": None, "high": None}
    assert summary([Estimate(1.0, 0.9, 1.2)]) == {"ours": 1.0, "low": 0.9, "high": 1.2}
    found = summary([Estimate(value, 0.0, 9.0) for value in (1.0, 2.0, 3.0)])
    # Student's 97.5% quantile with two degrees of freedom is 4.30265.
    width = 4.30265 / math.sqrt(3)
    assert found["ours"] == pytest.approx(2.0)
    assert found["low"] == pytest.approx(2.0 - width, rel=1e-5)
    assert found["high"] == pytest.approx(2.0 + width, rel=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"steps": 75}, "multiple of 50"),
        ({"delta": 2.0}, "delta"),
    ],
)
def test_an_effort_that_makes_no_sense_is_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Effort(**settings)  # type: ignore[arg-type]
