import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.report.axes import Axis
from cofactor.report.charts import Dot, Level, Line, dot_chart, line_chart, meter
from tests.report.making import EVIL

REALS = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.lists(REALS, min_size=1), st.booleans())
def test_every_value_lies_on_its_axis(values: list[float], tight: bool) -> None:
    axis = Axis.around(values, start=10, end=90, tight=tight)
    assert all(10 - 1e-9 <= axis.place(value) <= 90 + 1e-9 for value in values)
    assert all(axis.low - 1e-6 <= mark <= axis.high + 1e-6 for mark, _ in axis.marks())


def test_an_axis_that_runs_downwards_puts_large_values_on_top() -> None:
    axis = Axis.around([0, 10], start=100, end=0)
    assert axis.place(10) == 0
    assert axis.place(0) == 100
    assert axis.place(5) == 50


def test_marks_are_round_numbers() -> None:
    assert [words for _, words in Axis.around([0, 1], start=0, end=1, ticks=5).marks()] == [
        "0.0",
        "0.2",
        "0.4",
        "0.6",
        "0.8",
        "1.0",
    ]


def test_a_logarithmic_axis_has_equal_room_for_equal_factors() -> None:
    axis = Axis.around([0.25, 1, 4], start=0, end=100, logarithmic=True, tight=True)
    assert axis.place(1) == pytest.approx(50)
    assert [words for _, words in axis.marks()] == ["0.5", "1", "2"]


@pytest.mark.parametrize("values", [[0.78, 40.6], [1e-300, 1e300]])
def test_values_lie_within_a_logarithmic_axis_not_on_its_ends(values: list[float]) -> None:
    axis = Axis.around(values, start=0, end=100, logarithmic=True)
    assert [0 < axis.place(value) < 100 for value in values] == [True, True]


@pytest.mark.parametrize("values", [[], [3.0], [math.nan, 1.0], [0.0], [math.inf]])
def test_axes_of_hardly_any_values_can_be_drawn(values: list[float]) -> None:
    for logarithmic in (False, True):
        axis = Axis.around(values, start=0, end=10, logarithmic=logarithmic)
        assert axis.low < axis.high
        assert axis.marks()


def test_a_line_chart_tells_its_numbers_in_words_and_in_a_table() -> None:
    chart = str(
        line_chart(
            "Epsilon",
            [Line(name="spent", points=((1, 0.5), (2, 0.75)))],
            x="round",
            y="epsilon",
            levels=[Level(name="budget", value=1.0)],
        )
    )
    assert 'aria-label="Epsilon. epsilon by round. spent: from 0.5 to 0.75; budget: 1."' in chart
    assert '<th scope="row" class="number">2</th><td class="number">0.75</td>' in chart
    assert "<title>spent: 0.75 at 2</title>" in chart


def test_points_are_where_the_axes_say() -> None:
    chart = str(line_chart("t", [Line(name="a", points=((0, 0), (10, 1)))], x="x", y="y", from_zero=True))
    low, high = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', chart)
    assert (float(low[0]), float(high[0])) == (62, 622)
    assert (float(low[1]), float(high[1])) == (216, 34)


def test_a_band_is_drawn_from_its_lowest_to_its_highest_end() -> None:
    line = Line(name="a", points=((0, 1), (1, 1)), band=((0, 2), (0, 2)))
    assert 'd="M62.0 34.0L622.0 34.0L622.0 216.0L62.0 216.0Z"' in str(line_chart("t", [line], x="x", y="y"))


def test_of_many_points_some_are_drawn_and_the_page_says_so() -> None:
    points = tuple((float(k), float(k)) for k in range(10_000))
    chart = str(line_chart("t", [Line(name="a", points=points)], x="x", y="y"))
    assert chart.count("<circle") == 400
    assert "at 9,999<" in chart
    assert "Of many points, some are shown." in chart


def test_names_in_pictures_are_text_and_long_ones_are_cut() -> None:
    chart = str(dot_chart("t", [Dot(name=EVIL * 3, value=1.0, low=0.5, high=1.5)], x="x"))
    assert "<script" not in chart
    assert "…" in chart


def test_a_dot_chart_says_which_way_is_better() -> None:
    assert "rmse (lower is better)" in str(
        dot_chart("t", [Dot(name="a", value=1)], x="rmse", lower_is_better=True)
    )
    assert "gain (higher is better)" in str(
        dot_chart("t", [Dot(name="a", value=1)], x="gain", lower_is_better=False)
    )


@pytest.mark.parametrize(("value", "widths"), [(1.0, ["400", "100"]), (0.0, ["400"]), (9.0, ["400", "400"])])
def test_a_meter_is_filled_by_its_share(value: float, widths: list[str]) -> None:
    drawn = str(meter("budget", value, 4.0, told="x"))
    assert re.findall(r'<rect x="0" y="0" width="(\d+)"', drawn) == widths


def test_a_meter_shows_lighter_what_is_ahead() -> None:
    drawn = str(meter("budget", 1.0, 4.0, ahead=2.0, told="x"))
    assert re.findall(r'width="(\d+)" height="14" rx="7" class="([a-z ]+)"', drawn) == [
        ("400", "track"),
        ("200", "ahead fill plain"),
        ("100", "fill plain"),
    ]
