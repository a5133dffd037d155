from xml.etree import ElementTree

import pytest

from cofactor.svg import decimals, nice_step, opened, stroke, text


@pytest.mark.parametrize(
    ("least", "step"),
    [(0.9, 1), (1, 1), (1.1, 2), (2.1, 5), (5.1, 10), (0.03, 0.05), (0.1, 0.1), (700, 1000)],
)
def test_a_distance_between_ticks_is_round_and_large_enough(least: float, step: float) -> None:
    assert nice_step(least) == pytest.approx(step)


def test_ticks_have_as_many_digits_as_tell_them_apart() -> None:
    assert [decimals(step) for step in (0.001, 0.02, 0.5, 1, 20)] == [3, 2, 1, 0, 0]


def test_words_are_no_markup() -> None:
    parts = [*opened(10, 20, "<a> & b", "'c' < d"), text(1, 2, "x < y & z"), stroke(0, 0, 1, 1, "black")]
    root = ElementTree.fromstring("".join([*parts, "</svg>"]))
    assert [each.text for each in root][:2] == ["<a> & b", "'c' < d"]
    assert root[3].text == "x < y & z"
    assert "desc" not in "".join(opened(10, 20, "title"))
