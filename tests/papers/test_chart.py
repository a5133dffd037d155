from xml.etree import ElementTree

import pytest

from cofactor.papers.chart import Chart, Panel, Point

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*panels: Panel, title: str = "Errors", joined: bool = True) -> ElementTree.Element:
    return ElementTree.fromstring(Chart(title=title, measure="MSE", panels=panels, joined=joined).svg())


def panel(**changes: object) -> Panel:
    settings: dict[str, object] = {
        "title": "per-user",
        "columns": ["1", "10"],
        "lines": {"a": {"1": Point(1.0, 0.9, 1.2), "10": Point(0.8)}, "b": {"10": Point(0.7)}},
    }
    return Panel(**(settings | changes))  # type: ignore[arg-type]


def words(svg: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in svg.iter(f"{SVG}text")]


def test_a_chart_is_well_formed_whatever_its_names_hold() -> None:
    svg = drawn(panel(lines={"a < b & 'c'": {"1": Point(1.0)}}, title="<&>"), title='T\' > "1"')
    assert {"a < b & 'c'", "<&>", 'T\' > "1"'} <= set(words(svg))


def test_title_columns_measure_and_legend_are_written() -> None:
    assert {"Errors", "per-user", "1", "10", "MSE", "a", "b"} <= set(words(drawn(panel())))


def test_points_of_a_line_are_joined_from_left_to_right_and_lower_errors_stand_lower() -> None:
    lines = list(drawn(panel()).iter(f"{SVG}polyline"))
    assert len(lines) == 1
    (x, y), (to_x, to_y) = [map(float, pair.split(",")) for pair in lines[0].attrib["points"].split()]
    assert x < to_x
    assert y < to_y


def test_points_that_do_not_belong_together_are_not_joined_and_begin_at_zero() -> None:
    svg = drawn(panel(), joined=False)
    assert list(svg.iter(f"{SVG}polyline")) == []
    assert "0.0" in words(svg)


def test_an_interval_is_drawn_as_a_bar_of_its_length() -> None:
    svg = drawn(panel(lines={"a": {"1": Point(1.0, 0.5, 1.5)}}))
    ticks = {
        each.text: float(each.attrib["y"]) for each in svg.iter(f"{SVG}text") if each.text in ("0.6", "1.4")
    }
    unit = (ticks["0.6"] - ticks["1.4"]) / 0.8
    bars = [
        abs(float(each.attrib["y1"]) - float(each.attrib["y2"]))
        for each in svg.iter(f"{SVG}line")
        if each.attrib["stroke"] == "#0072b2" and each.attrib["x1"] == each.attrib["x2"]
    ]
    assert bars == [pytest.approx(unit, abs=0.2)]


def test_levels_near_the_points_are_drawn_and_their_names_do_not_overlap() -> None:
    svg = drawn(panel(levels={"one": 1.0, "same": 1.001, "far": 99.0}))
    places = {each.text: float(each.attrib["y"]) for each in svg.iter(f"{SVG}text")}
    assert abs(places["one"] - places["same"]) >= 11
    assert "far" not in places


def test_all_marks_lie_inside_their_panel() -> None:
    svg = drawn(panel(), panel(lines={"a": {"1": Point(-3.0, -5.0, 40.0)}}), panel())
    assert len(list(svg.iter(f"{SVG}g"))) == 3
    for each in svg.iter(f"{SVG}line"):
        assert 0 <= float(each.attrib["x1"]) <= 520
        assert 0 <= float(each.attrib["y1"]) <= 800


@pytest.mark.parametrize("values", [(1.0, 1.0), (0.0, 0.0), (1e-6, 3e-6), (1e5, 9e5)])
def test_any_numbers_have_ticks(values: tuple[float, float]) -> None:
    svg = drawn(panel(lines={"a": {"1": Point(values[0]), "10": Point(values[1])}}))
    numbers = [float(word) for word in words(svg) if word.replace(".", "").isdigit()]
    assert min(numbers) <= values[0] + 1e-9
    assert max(numbers) >= values[1] - 1e-9


def test_equal_factors_are_equally_far_apart_and_what_reaches_below_zero_ends_at_the_frame() -> None:
    points = {"a": {"1": Point(0.001), "10": Point(0.01)}, "b": {"1": Point(0.1, -0.1, 0.19)}}
    svg = ElementTree.fromstring(Chart(title="", measure="", panels=[panel(lines=points)], log=True).svg())
    ticks = {each.text: float(each.attrib["y"]) for each in svg.iter(f"{SVG}text")}
    assert ticks["0.001"] - ticks["0.01"] == pytest.approx(ticks["0.01"] - ticks["0.1"], abs=0.2)
    assert list(ticks)[2:10] == ["0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2"]
    (frame,) = svg.iter(f"{SVG}g")
    bars = [float(each.attrib["y1"]) for each in frame.iter(f"{SVG}line") if each.attrib["stroke"][0] == "#"]
    assert max(bars) == pytest.approx(ticks["0.001"] - 4, abs=0.2)


def test_lines_beyond_the_colours_can_still_be_told_apart() -> None:
    many = {f"line {k}": {"1": Point(1.0 + k), "10": Point(2.0 + k)} for k in range(12)}
    looks = [
        (each.attrib["stroke"], each.attrib.get("stroke-dasharray"))
        for each in drawn(panel(lines=many)).iter(f"{SVG}polyline")
    ]
    assert len(set(looks)) == 12
