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


def made_of(rows: list[Row], **more: Any) -> Reproduction:
    return Reproduction(
        paper="dpmf-rp",
        item="table2",
        title="Two methods",
        measure="measures by column",
        data={"name": "small", "ratings": 1, "users": 2, "items": 3, "scale": "1 to 5"},
        rows=rows,
        baselines={},
        findings=[],
        seconds=1.0,
        **more,
    )


def test_what_a_label_truly_costs_stands_beside_its_line_and_the_papers_numbers_below(
    folder: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def row(line: str, column: str, epsilon: float | None, paper: float | None = None) -> Row:
        label, delta = (None, None) if epsilon is None else (1.0, 1e-5)
        return Row(
            line=line, panel="small", column=column, ours=0.25, paper=paper, epsilon_label=label,
            epsilon=epsilon, delta=delta,
        )  # fmt: skip

    columns = "abcde"
    rows = [row("private", column, 14.3, 0.5 if column != "b" else None) for column in columns]
    rows += [row("varied", "a", 9.0), row("varied", "b", 12.0), row("plain", "c", None)]
    made = made_of(
        rows,
        reading="Read it so.",
        more_data=[{"name": "other", "ratings": 4, "users": 5, "items": 6, "scale": "1 to 5"}],
    )
    monkeypatch.setattr("cofactor.papers.reproduce.reproduce", lambda *_, **__: made)
    done = cofactor("reproduce", "dpmf-rp", "table2", "--data", folder)
    assert done.code == 0, done.err
    assert "small, 1 ratings by 2 users of 3 items, 1 to 5; other, 4 ratings by 5 users of 6" in done.out
    assert "Read it so." in done.out
    printed = [line.split() for line in done.out.splitlines()]
    assert ["private", "14.3,", "1e-05", *["0.250"] * 5] in printed
    assert ["the", "paper", *["0.5"] * 4] in printed
    assert ["varied", "9", "to", "12,", "1e-05", "0.250", "0.250"] in printed
    assert ["plain", "0.250"] in printed


def test_no_cost_is_shown_where_labels_are_right(
    folder: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Row(line="a", panel="b", column="c", ours=1.0, epsilon_label=2.0, epsilon=1.99, delta=1e-6)
    monkeypatch.setattr("cofactor.papers.reproduce.reproduce", lambda *_, **__: made_of([right]))
    done = cofactor("reproduce", "dpmf-rp", "table2", "--data", folder)
    assert "true epsilon" not in done.out


def test_what_a_user_sends_is_printed_and_drawn(folder: Path, tmp_path: Path, cofactor: Command) -> None:
    plot = tmp_path / "figure3.svg"
    done = cofactor("reproduce", "dpmf-rp", "figure3", "--data", folder, "--quick", "-q", "--plot", plot)
    assert done.code == 0, done.err
    assert "m/p = 10" in plot.read_text()
    assert "Not there, and left out: ml-100k." in done.out
    assert "m/p = 10" in done.out
