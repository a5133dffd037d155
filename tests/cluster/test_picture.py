"""Pictures of clusters: everything that was released is in them, readable, and nothing else."""

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from cofactor.cluster.picture import drawn, written
from cofactor.cluster.segments import segment_names
from cofactor.errors import ConfigError

RANGES = [(0.0, 120.0), (0.0, 100_000.0), (-5.0, 5.0)]
CENTRES = np.array([[31.0, 20_000.0, -1.5], [64.25, 91_234.0, 2.25]])
SIZES = np.array([15_000.0, 5_000.0])
COLUMNS = [["age", "income"], ["mood"]]
SVG = "{http://www.w3.org/2000/svg}"


def picture(**settings: Any) -> str:
    usual: dict[str, Any] = {"centres": CENTRES, "sizes": SIZES, "parties": ["bank", "shop"]}
    told = {**usual, "columns": COLUMNS, "ranges": RANGES, **settings}
    return drawn(told.pop("centres"), told.pop("sizes"), **told)


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_picture_tells_names_sizes_and_centres_in_their_own_units() -> None:
    words = texts(picture(title="Two <kinds> of users"))
    for word in ("Two <kinds> of users", "bank", "shop", "age", "income", "mood", *segment_names(2)):
        assert word in words
    for word in ("15,000", "75%", "5,000", "25%", "31.0", "64.2", "20,000", "91,234", "-1.50", "2.25"):
        assert word in words
    # The mean of all users weighs clusters by their sizes.
    assert "39.3" in words
    assert "range 0 to 120" in words


def test_colours_tell_above_from_below_and_the_larger_difference_is_deeper() -> None:
    cells = re.findall(r"height='24' fill='(#\w+)'", picture())
    mean, low, high = cells[:3], cells[3:6], cells[6:]
    assert set(mean) == {"#f4f4f4"}

    def red_over_blue(colour: str) -> int:
        return int(colour[1:3], 16) - int(colour[5:7], 16)

    for below, above in zip(low, high, strict=True):
        assert red_over_blue(below) < 0 < red_over_blue(above)
    # In parts of the range, income differs most.
    assert max(map(red_over_blue, high)) == red_over_blue(high[1])


def test_clusters_that_hardly_differ_are_pale() -> None:
    alike = picture(centres=np.array([[31.0, 20_000.0, 0.0], [31.1, 20_010.0, 0.0]]))
    cells = re.findall(r"height='24' fill='(#\w+)'", alike)
    assert all(int(cell[1:3], 16) > 230 for cell in cells)
    assert "10% above" in texts(alike)


@pytest.mark.parametrize("clusters", [1, 2, 5, 12])
@pytest.mark.parametrize("widths", [(1, 1), (4, 4), (8, 8, 7, 7)])
def test_everything_lies_within_the_picture_whatever_its_size(clusters: int, widths: tuple[int, ...]) -> None:
    chance = np.random.default_rng(1)
    long = "what was measured in the year before the last visit to any of our branches"
    columns = [[f"{long if at % 3 == 0 else 'age'} {at}" for at in range(width)] for width in widths]
    svg = picture(
        centres=chance.uniform(0, 1, (clusters, sum(widths))),
        sizes=chance.uniform(1, 1e7, clusters),
        parties=[f"a party with the number {at}" for at in range(len(widths))],
        columns=columns,
        ranges=[(0.0, 1.0)] * sum(widths),
    )
    whole = ElementTree.fromstring(svg)
    width, height = float(whole.attrib["width"]), float(whole.attrib["height"])
    for each in whole.iter(f"{SVG}text"):
        x, size = float(each.attrib["x"]), float(each.attrib["font-size"])
        long_way = 0.55 * size * len(each.text or "")
        start = {"start": x, "middle": x - long_way / 2, "end": x - long_way}[each.attrib["text-anchor"]]
        assert start >= 0, each.text
        assert start + long_way <= width, each.text
        assert 0 < float(each.attrib["y"]) < height
    rows = sorted({float(each.attrib["y"]) for each in whole.iter(f"{SVG}rect") if "y" in each.attrib})
    assert rows[-1] < height
    full = [each.text for each in whole.iter(f"{SVG}title")]
    assert all(name in full for own in columns for name in own)


def test_odd_sizes_are_drawn_too() -> None:
    for sizes in ([0.0, 0.0], [-3.0, 20.0], [1e12, 1.0]):
        ElementTree.fromstring(picture(sizes=np.array(sizes)))


def test_names_are_no_markup() -> None:
    odd = "<script>alert('x')</script> & \"more\""
    svg = picture(columns=[[odd, "b"], ["c"]], parties=[odd, "shop"], title=odd)
    assert "<script" not in svg
    assert any(text.startswith("<script>") for text in texts(svg))


def test_numbers_that_do_not_belong_together_are_refused() -> None:
    for wrong in ({"sizes": SIZES[:1]}, {"columns": [["age"], ["mood"]]}, {"ranges": RANGES[:2]}):
        with pytest.raises(ConfigError, match="a size for each, and a name and range for each column"):
            picture(**wrong)


@pytest.mark.parametrize(
    ("value", "stated", "words"),
    [
        (31.26, (0, 120), "31.3"),
        (0.5, (0, 1), "0.500"),
        (-1.234, (-5, 5), "-1.23"),
        (54_321.4, (0, 100_000), "54,321"),
        (1961.04, (1900, 2030), "1961.0"),
        (5.8e7, (0, 1e8), "5.8e7"),
        (0.00012, (0, 0.001), "0.00012"),
        (0.0, (0, 1e9), "0"),
    ],
)
def test_numbers_have_as_many_digits_as_their_range_makes_sense_of(
    value: float, stated: tuple[float, float], words: str
) -> None:
    assert written(value, stated) == words
