from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from cofactor.papers.results import Reproduction, Row
from tests.papers.making import write

Command = Any


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "data")


def test_reproduce_prints_one_object_and_draws_the_figure(
    folder: Path, tmp_path: Path, cofactor: Command
) -> None:
    plot = tmp_path / "figure2.svg"
    done = cofactor("reproduce", "pvldb22", "figure2", "--data", folder, "--json", "--plot", plot)
    assert done.code == 0, done.err
    assert {"paper", "item", "data", "rows", "baselines", "findings", "seconds"} <= set(done.json)
    assert {
        "row",
        "column",
        "paper",
        "ours",
        "low",
        "high",
        "epsilon_label",
        "epsilon",
        "delta",
        "note",
    } == set(done.json["rows"][0])
    assert done.json["data"]["ratings"] == 1_200
    assert ElementTree.parse(plot).getroot().tag.endswith("svg")


def test_reproduce_prints_a_table_with_the_papers_numbers_and_what_was_found(
    folder: Path, cofactor: Command
) -> None:
    done = cofactor("reproduce", "pvldb22", "figure2", "--data", folder, "-q")
    assert done.code == 0, done.err
    assert "5.590 (paper 5.6)" in done.out
    assert "60 users and 40 items" in done.out
    assert "- The paper says 1.7 MB for HFL-SGDMF." in done.out


def test_a_mistyped_item_is_one_line_with_a_proposal(folder: Path, cofactor: Command) -> None:
    done = cofactor("reproduce", "pvldb22", "figure44", "--data", folder)
    assert done.code == 2
    assert 'Did you mean "figure4"?' in done.err


def test_a_folder_without_data_says_where_to_get_them(tmp_path: Path, cofactor: Command) -> None:
    done = cofactor("reproduce", "pvldb22", "figure4", "--data", tmp_path)
    assert done.code == 2
    assert "cofactor data get ml-1m" in done.err


def test_figures_by_category_need_categories(folder: Path, cofactor: Command) -> None:
    (folder / "movies.csv").unlink()
    done = cofactor("reproduce", "pvldb22", "figure6", "--data", folder)
    assert done.code == 2
    assert "has no categories of items" in done.err


def test_a_plot_that_cannot_be_written_is_told_before_anything_is_trained(
    folder: Path, tmp_path: Path, cofactor: Command
) -> None:
    plot = tmp_path / "nowhere" / "figure4.svg"
    done = cofactor("reproduce", "pvldb22", "figure4", "--data", folder, "--plot", plot)
    assert done.code == 2
    assert "there is no folder" in done.err


def test_no_seeds_are_refused(folder: Path, cofactor: Command) -> None:
    done = cofactor("reproduce", "pvldb22", "figure4", "--data", folder, "--seeds", 0)
    assert done.code == 2
    assert "seeds must be at least 1" in done.err


def test_a_note_is_printed_once_with_the_lines_or_columns_that_it_is_about(
    folder: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def row(line: str, column: str, note: str) -> Row:
        return Row(line=line, panel="per-user", column=column, ours=1.0, note=note)

    notes = {("a", "1"): "whole", ("a", "2"): "whole", ("b", "1"): "part", ("b", "2"): "", ("c", "1"): "part"}
    made = Reproduction(
        paper="pvldb22",
        item="figure4",
        title="Errors",
        measure="MB",
        data={"name": "small", "ratings": 1, "users": 1, "items": 1, "scale": "1 to 5"},
        rows=[row(line, column, note) for (line, column), note in notes.items()],
        baselines={},
        findings=[],
        seconds=1.0,
    )
    monkeypatch.setattr("cofactor.papers.reproduce.reproduce", lambda *_, **__: made)
    done = cofactor("reproduce", "pvldb22", "figure4", "--data", folder)
    assert done.code == 0, done.err
    assert [line for line in done.out.splitlines() if line.startswith("  ") and ": " in line] == [
        "  a: whole",
        "  c; b, 1: part",
    ]
