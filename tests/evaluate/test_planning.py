"""The grid of plans: what was asked for in the middle, and the same numbers as `plan` gives."""

from dataclasses import replace
from typing import Any

import pytest

import cofactor as cf
from cofactor.evaluate.planning import NO_TIME, Asked, Cell, Grid, planned
from cofactor.progress import Progress

BUDGET = cf.Budget(epsilon=2, delta=1e-6, unit="user")


def asked(recipe: Any = None, **changes: Any) -> Asked:
    sizes: dict[str, Any] = {"users": 400, "items": 80, "ratings": 6_000} | changes
    return Asked(recipe=recipe or cf.SharedBiases(), budget=BUDGET, **sizes)


def test_what_was_asked_for_is_in_the_middle_of_the_grid() -> None:
    grid = Grid.around(asked())
    assert [*grid.users, *grid.ratings_each] == [100, 400, 1600, 3, 15, 60]
    assert list(grid.epsilon) == [0.5, 1, 2, 4, 8]
    middle = [cell for cell in grid.cells() if cell.place == grid.middle]
    assert [cell.asked for cell in middle] == [grid.asked]
    assert grid.importance(middle[0]) == (0, False)


def test_other_cells_have_the_sizes_that_their_axes_say() -> None:
    grid = Grid.around(asked(ratings=6_100))
    for cell in grid.cells():
        users, each = grid.users[cell.place[0]], grid.ratings_each[cell.place[1]]
        assert (cell.asked.users, cell.asked.ratings) == (users, round(users * each))
        assert cell.asked.budget == replace(BUDGET, epsilon=grid.epsilon[cell.place[3]])


def test_nobody_rates_more_items_than_there_are() -> None:
    assert Grid.around(asked(items=20)).ratings_each == (3, 15)


def test_rounds_vary_where_the_recipe_lets_one_choose_them() -> None:
    parties = {"parties": 2}
    left_out = Grid.around(asked(cf.HorizontalMF(factors=2), **parties))
    usual = left_out.asked.plan().schedule.rounds
    assert left_out.rounds == (usual // 2, None, usual * 2)
    said = Grid.around(asked(cf.HorizontalMF(factors=2, rounds=8), **parties))
    assert said.rounds == (4, 8, 16)
    assert {cell.asked.recipe.rounds for cell in said.cells()} == {4, 8, 16}
    assert Grid.around(asked(cf.SharedBiases())).rounds == (None,)


def test_cells_have_the_plans_that_plan_makes() -> None:
    grid = Grid.around(asked(cf.HorizontalMF(factors=2, rounds=4), parties=2))
    cells = grid.cells()
    for cell in (each.planned() for each in (cells[0], cells[-1])):
        axes: list[Any] = [grid.users, grid.ratings_each, grid.rounds, grid.epsilon]
        users, each, rounds, epsilon = (values[at] for values, at in zip(axes, cell.place, strict=True))
        alone = cf.plan(
            cf.HorizontalMF(factors=2, rounds=rounds),
            cf.Budget(epsilon=epsilon, delta=1e-6, unit="user"),
            users=users,
            items=80,
            ratings=round(users * each),
            parties=2,
        )
        assert cell.plan.as_json() == alone.as_json()


def test_without_time_what_was_asked_for_is_planned_and_the_others_say_so() -> None:
    heard: list[Progress] = []
    grid = Grid.around(asked())
    cells = planned(grid, seconds=1e-9, progress=heard.append)
    assert [cell.place for cell in cells if cell.plan is not None] == [grid.middle]
    assert {cell.why_not for cell in cells if cell.plan is None} == {NO_TIME}
    assert (heard[-1].step, heard[-1].steps) == (1, 1)


def test_a_cell_that_cannot_be_planned_says_why_and_the_others_are() -> None:
    grid = Grid.around(asked(users=60, ratings=600, parties=20))
    places = {users: (users, *grid.middle[1:]) for users in (0, 1)}
    found = {cell.place: cell.planned() for cell in grid.cells() if cell.place in places.values()}
    assert found[places[0]].plan is None
    assert "15 cannot be divided among 20 parties" in found[places[0]].why_not
    assert (found[places[1]].plan.holds, found[places[1]].why_not) == (True, "")


def test_budgets_that_promise_little_are_planned_without_a_warning() -> None:
    most = replace(asked(), budget=cf.Budget(epsilon=9, delta=1e-6, unit="user"))
    last = Grid.around(most).cells()[-1].planned()
    assert last.asked.budget.epsilon == 36
    assert any("next to nothing" in text for text in last.plan.warnings)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"ratings": 100}, "less than one each"),
        ({"ratings": 400 * 81}, "would be 32,000"),
        ({"users": 0}, "users must be at least 1"),
    ],
)
def test_sizes_that_cannot_be_are_refused(changes: dict[str, int], said: str) -> None:
    with pytest.raises(cf.ConfigError, match=said):
        asked(**changes)


def test_the_nearest_cells_matter_most() -> None:
    grid = Grid.around(asked())
    order = sorted(grid.cells(), key=grid.importance)
    places = [
        [here != middle for here, middle in zip(cell.place, grid.middle, strict=True)] for cell in order
    ]
    assert not any(places[0])
    assert all(place == [False, False, False, True] for place in places[1:5])
    assert isinstance(order[0], Cell)
    assert places[-1].count(True) == 3
