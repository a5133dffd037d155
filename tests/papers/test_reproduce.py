from collections.abc import Sequence
from pathlib import Path

import pytest

from cofactor.errors import ConfigError
from cofactor.papers.cells import Effort
from cofactor.papers.chart import Point
from cofactor.papers.drawing import chart
from cofactor.papers.reference import PUBLISHED, baselines
from cofactor.papers.reproduce import find, reproduce
from cofactor.papers.results import ANY_EPSILON, Baseline, Reproduction, Row
from tests.papers.making import material

ROW_KEYS = ("row", "column", "paper", "ours", "low", "high", "epsilon_label", "epsilon", "delta", "note")


def made(rows: Sequence[Row]) -> Reproduction:
    return Reproduction(
        paper="pvldb22",
        item="figure4",
        title="Errors",
        measure="MSE",
        data={"name": "small"},
        rows=rows,
        baselines={"bias": Baseline(ours=0.8), "pooled_bayes": Baseline(ours=0.7)},
        findings=["It is so."],
        seconds=1.26,
    )


def test_an_unknown_paper_or_item_is_told_with_the_closest_name() -> None:
    with pytest.raises(ConfigError, match=r'no paper "pvldb2"\. Did you mean "pvldb22"\?'):
        find("pvldb2", "figure4")
    with pytest.raises(
        ConfigError, match=r'no item "figur4"\. Did you mean "figure4"\? There are: figure2, '
    ):
        find("pvldb22", "figur4")


def test_a_mistyped_item_is_told_before_any_data_are_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no item"):
        reproduce("pvldb22", "table1", tmp_path / "nowhere")


def test_a_row_has_stable_keys() -> None:
    row = Row(line="a", panel="per-user", column="epsilon 1", ours=1.0, epsilon=0.99, epsilon_label=1.0)
    found = made([row]).as_json()
    assert tuple(found["rows"][0]) == ROW_KEYS
    assert found["rows"][0]["row"] == "a, per-user"
    assert found["rows"][0]["paper"] is None
    assert found["baselines"]["bias"] == {"ours": 0.8, "low": None, "high": None, "paper": None, "note": ""}
    assert (found["paper"], found["item"], found["seconds"]) == ("pvldb22", "figure4", 1.3)
    assert found["findings"] == ["It is so."]


def test_baselines_are_ours_and_the_papers() -> None:
    found = baselines(material(), Effort())
    assert set(found) == {
        "global_mean", "user_mean", "item_mean", "bias", "pooled_bayes", "pooled_sgd",
        "published_ml-10m", "published_ml-25m", "published_libimseti",
    }  # fmt: skip
    bias, plain = found["bias"].ours, found["global_mean"].ours
    assert bias is not None
    assert plain is not None
    assert bias < plain
    assert found["published_ml-10m"].ours is None
    assert found["published_ml-10m"].paper == PUBLISHED["ml-10m"] == 0.83012
    assert found["pooled_sgd"].paper is None


def test_levels_and_baselines_are_drawn_across_all_columns() -> None:
    rows = [
        Row(line="a", panel="per-user", column="epsilon 1", ours=1.0, low=0.9, high=1.1),
        Row(line="a", panel="per-user", column="epsilon 10", ours=0.9),
        Row(line="local", panel="per-user", column=ANY_EPSILON, ours=0.95),
        Row(line="a", panel="per-rating", column="epsilon 1", ours=None, note="refused"),
    ]
    panels = chart(made(rows)).panels
    assert [panel.title for panel in panels] == ["per-user"]
    assert panels[0].columns == ["epsilon 1", "epsilon 10"]
    assert panels[0].lines == {"a": {"epsilon 1": Point(1.0, 0.9, 1.1), "epsilon 10": Point(0.9)}}
    assert panels[0].levels == {"biases": 0.8, "local": 0.95}
