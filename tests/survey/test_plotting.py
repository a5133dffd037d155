from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cofactor.errors import ConfigError
from cofactor.survey.bootstrap import Band
from cofactor.survey.distribution import Distribution
from cofactor.survey.plotting import bars, svg

SVG = "{http://www.w3.org/2000/svg}"
AGES = Distribution(edges=np.linspace(0, 120, 7), probabilities=np.array([1, 3, 4, 1, 0.5, 0.5]) / 10)
STARS = Distribution(edges=np.arange(0.5, 6), probabilities=np.array([0.05, 0.1, 0.25, 0.4, 0.2]), whole=True)
COUNTS = Distribution(edges=np.geomspace(0.5, 2000.5, 65), probabilities=np.full(64, 1 / 64), whole=True)


def around(distribution: Distribution) -> Band:
    rows = np.random.default_rng(0).dirichlet(1 + 1000 * distribution.probabilities, 40)
    return Band(level=0.95, edges=distribution.edges, estimate=distribution.probabilities, again=rows)


def words(picture: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def corners(element: ElementTree.Element) -> list[tuple[float, float]]:
    pairs = (pair.split(",") for pair in element.attrib["points"].split())
    return [(float(x), float(y)) for x, y in pairs]


def test_a_picture_is_well_formed_whatever_its_names_hold() -> None:
    picture = AGES.svg(title="a < b & 'c'", name="<age>")
    assert {"a < b & 'c'", "<age>"} <= set(words(picture))
    assert "<script" not in picture


def test_a_picture_can_be_read_without_seeing_it() -> None:
    root = ElementTree.fromstring(svg(AGES, name="age"))
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{SVG}title") == "Distribution of age"
    assert root.findtext(f"{SVG}desc") == str(AGES)


def test_the_curve_is_level_in_each_bucket_and_as_high_as_it_holds() -> None:
    root = ElementTree.fromstring(svg(AGES))
    (line,) = root.iter(f"{SVG}polyline")
    found = corners(line)
    assert len(found) == 12
    zero = next(float(each.attrib["y"]) for each in root.iter(f"{SVG}text") if each.text == "0%") - 4
    heights = np.array([zero - y for _, y in found])
    assert heights[::2] == pytest.approx(heights[1::2])
    assert heights[::2] / heights.max() == pytest.approx(AGES.probabilities / 0.4, abs=0.01)
    assert np.diff([x for x, _ in found[::2]]) == pytest.approx(found[1][0] - found[0][0], abs=0.11)


def test_ticks_are_round_numbers() -> None:
    assert {"0", "20", "40", "100", "120", "0%", "10%", "40%"} <= set(words(svg(AGES)))
    assert {"1", "2", "3", "4", "5", "part with each number"} <= set(words(svg(STARS)))
    assert {"1", "10", "100", "1,000", "part in each of 64 buckets"} <= set(words(svg(COUNTS)))


def test_a_band_is_shaded_around_the_curve_and_named() -> None:
    plain, shaded = (ElementTree.fromstring(svg(AGES, band=band)) for band in (None, around(AGES)))
    assert len(list(plain.iter(f"{SVG}polygon"))) == 1
    (line,) = shaded.iter(f"{SVG}polyline")
    (shade,) = shaded.iter(f"{SVG}polygon")
    area = corners(shade)
    above, below = area[:12], area[:11:-1]
    for (x, y), high, low in zip(corners(line), above, below, strict=True):
        assert high[0] == low[0] == x
        assert high[1] <= y <= low[1]
    assert "95% interval of each bucket" in words(svg(AGES, band=around(AGES)))


def test_the_truth_is_drawn_in_the_same_buckets_and_called_a_simulation() -> None:
    fine = Distribution(edges=np.linspace(0, 120, 13), probabilities=np.repeat(AGES.probabilities / 2, 2))
    root = ElementTree.fromstring(svg(AGES, truth=fine))
    estimate, truth = (corners(each) for each in root.iter(f"{SVG}polyline"))
    assert estimate == truth
    assert "SIMULATION: the true values" in words(svg(AGES, truth=fine))
    assert not any("SIMULATION" in each for each in words(svg(AGES)))


def test_mean_and_median_are_written_with_their_intervals() -> None:
    assert "mean 47, median 45" in words(svg(AGES))
    band = around(AGES)
    line = f"mean 47 ({band.mean}), median 45 ({band.quantile(0.5)})"
    assert line in words(svg(AGES, band=band))


def test_a_band_of_other_buckets_is_refused() -> None:
    with pytest.raises(ConfigError, match="other buckets"):
        svg(AGES, band=around(STARS))


def test_bars_have_round_ends_and_their_length() -> None:
    assert bars(AGES, width=8, rows=6).splitlines() == [
        "   0 to 20  ##        10.0%",
        "  20 to 40  ######    30.0%",
        "  40 to 60  ########  40.0%",
        "  60 to 80  ##        10.0%",
        " 80 to 100  #         5.0%",
        "100 to 120  #         5.0%",
    ]


def test_whole_numbers_have_a_bar_each_or_share_one() -> None:
    assert bars(STARS, width=4).splitlines() == [
        "1        5.0%",
        "2  #     10.0%",
        "3  ##    25.0%",
        "4  ####  40.0%",
        "5  ##    20.0%",
    ]
    names = [line[:14].strip() for line in bars(COUNTS).splitlines()]
    assert names[:4] == ["1", "2 to 4", "5 to 9", "10 to 19"]
    assert names[-2:] == ["1,000 to 1,999", "2,000"]


@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([1e-6, 1.0, 1e9]))
def test_anything_can_be_drawn(seed: int, whole: bool, scale: float) -> None:
    chance = np.random.default_rng(seed)
    buckets = int(chance.integers(1, 40))
    edges = scale * (np.cumsum(chance.exponential(size=buckets + 1)) - chance.integers(0, 3))
    of = Distribution(edges=edges, probabilities=chance.dirichlet(np.full(buckets, 0.3)), whole=whole)
    root = ElementTree.fromstring(svg(of))
    for line in root.iter(f"{SVG}polyline"):
        places = np.array(corners(line))
        assert np.all((places >= 0) & (places <= [720, 400]))
    parts = bars(of).splitlines()
    total = sum(float(line.rsplit(" ", 1)[1].rstrip("%")) for line in parts)
    assert total == pytest.approx(100, abs=0.05 * len(parts) + 1e-6)
