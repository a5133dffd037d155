from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cofactor.papers import pvldb22_devices as devices
from cofactor.papers import pvldb22_horizontal as horizontal
from cofactor.papers import pvldb22_vertical as vertical
from cofactor.papers.cells import Cell, Effort
from cofactor.papers.claims import Claim
from cofactor.papers.material import Material
from cofactor.papers.pvldb22 import FIGURES
from cofactor.papers.reproduce import reproduce
from cofactor.papers.results import ANY_EPSILON, Row
from cofactor.progress import nobody
from cofactor.recipes.clipping import EmbeddingClipping, GradientClipping
from cofactor.recipes.horizontal import HorizontalMF
from cofactor.recipes.on_device import OnDeviceMF
from cofactor.recipes.sums import PlainSum
from cofactor.recipes.vertical import VerticalMF
from tests.papers.making import material

Cells = Callable[[Material, Effort], list[Cell]]
Claims = Callable[[], list[Claim]]
OF_ERRORS: dict[str, tuple[Cells, Claims]] = {
    "figure4": (vertical.figure4, vertical.claims4),
    "figure5": (vertical.figure5, vertical.claims5),
    "figure6": (vertical.figure6, vertical.claims6),
    "figure7": (vertical.figure7, vertical.claims7),
    "figure8": (horizontal.figure8, horizontal.claims8),
    "figure9": (horizontal.figure9, horizontal.claims9),
    "figure10": (devices.figure10, devices.claims10),
    "figure11": (vertical.figure11, vertical.claims11),
}


def cells_of(figure: str, **effort: bool) -> list[Cell]:
    return OF_ERRORS[figure][0](material(), Effort(**effort))


def rows_of(cells: list[Cell]) -> set[tuple[str, str, str]]:
    lines = [(cell, line) for cell in cells for line in (cell.line, cell.fine_tuned) if line is not None]
    return {(line, cell.panel, cell.place) for cell, line in lines}


def test_all_figures_can_be_asked_for() -> None:
    assert set(FIGURES) == {"figure2", "figure10-tenfold", *OF_ERRORS}


@pytest.mark.parametrize("figure", OF_ERRORS)
def test_every_claim_is_about_lines_that_the_figure_has(figure: str) -> None:
    lines = {(line, panel) for line, panel, _ in rows_of(cells_of(figure))}
    claims = OF_ERRORS[figure][1]()
    assert claims
    for claim in claims:
        for line in (claim.lower, *claim.also):
            assert (line.line, line.panel) in lines
        assert (claim.than.line, claim.than.panel) in lines


@pytest.mark.parametrize("figure", OF_ERRORS)
def test_no_two_cells_stand_in_the_same_place_and_quick_ones_are_fewer(figure: str) -> None:
    cells, quick = cells_of(figure), cells_of(figure, quick=True)
    places = sum(1 + (cell.fine_tuned is not None) for cell in cells)
    assert len(rows_of(cells)) == places
    assert rows_of(quick) < rows_of(cells)


@pytest.mark.parametrize("figure", OF_ERRORS)
def test_both_units_are_asked_for(figure: str) -> None:
    assert {cell.unit for cell in cells_of(figure)} >= {"rating", "user"}


def test_the_papers_setting_is_used_wherever_its_method_is_shown() -> None:
    for parties, most in ((1, 10), (2, 5), (10, 5), (18, 2)):
        recipe = vertical.published(parties, Effort())
        assert recipe == VerticalMF.as_published(parties)
        assert (recipe.factors, recipe.rounds, recipe.local_steps, recipe.sampling) == (20, 100, 10, 0.01)
        assert recipe.most_ratings == most
    home = horizontal.published(Effort(), HorizontalMF.as_published())
    assert (home.factors, home.rounds, home.local_steps, home.most_ratings) == (20, 100, 10, 10)
    steps = horizontal.published(Effort(), HorizontalMF.synchronous())
    assert (steps.rounds, steps.local_steps) == (1000, 1)


def test_figure_4_changes_nothing_but_the_clipping() -> None:
    by_line = {cell.line: cell.recipe.clipping for cell in cells_of("figure4")}
    assert by_line == {
        "embedding clipping": EmbeddingClipping(),
        **{
            f"gradient clipping, C = {limit}": GradientClipping(limit=limit, nonnegative=True)
            for limit in (5, 10, 50)
        },
    }
    assert {cell.panel for cell in cells_of("figure4") if cell.epsilon is None} == {"without noise"}


def test_what_objective_perturbation_claims_is_shown_as_a_claim_and_for_ratings_only() -> None:
    found = [cell for cell in cells_of("figure5") if cell.line == "ObjPertb"]
    assert {cell.budget(1e-6) for cell in found} == {None}
    assert [cell.label for cell in found] == [0.5, 1.0, 2.0, 4.0, 10.0] * 2
    assert [bool(cell.impossible) for cell in found] == [False] * 5 + [True] * 5
    assert all(cell.recipe.claimed_epsilon == cell.label for cell in found)


def test_figure_6_takes_as_many_steps_however_often_it_averages() -> None:
    found = {cell.line: cell for cell in cells_of("figure6")}
    averages = {
        line: (cell.recipe.rounds, cell.recipe.local_steps)
        for line, cell in found.items()
        if not cell.recipe.alone
    }
    assert averages == {
        "T = 1000, T' = 1": (1000, 1),
        "T = 100, T' = 10": (100, 10),
        "T = 20, T' = 50": (20, 50),
        "T = 1, T' = 1000": (1, 1000),
    }
    assert {cell.dealing.parties for cell in cells_of("figure6")} == {3}


def test_fewer_steps_keep_their_shares() -> None:
    small = {cell.line: cell.recipe for cell in vertical.figure6(material(), Effort(steps=100))}
    assert (small["T = 1000, T' = 1"].rounds, small["T = 1000, T' = 1"].local_steps) == (100, 1)
    assert (small["T = 20, T' = 50"].rounds, small["T = 20, T' = 50"].local_steps) == (2, 50)


def test_local_only_parties_differ_from_joined_ones_in_nothing_else() -> None:
    found = {cell.line: cell.recipe for cell in cells_of("figure7")}
    alone, together = found["local-only, s = 5"], found["VFL-SGDMF, s = 5"]
    assert alone.alone
    assert not together.alone
    assert {**vars(alone), "alone": False} == vars(together)


def test_figure_10_shows_the_papers_dropouts_beside_all_that_it_compares_with() -> None:
    cells = cells_of("figure10")
    shown = {(cell.panel, cell.dropout) for cell in cells if cell.line.startswith("LFL-SGDMF, dropout")}
    assert shown == {
        *(("omega = 0.3", dropout) for dropout in (0.0, 0.1, 0.2)),
        *(("omega = 0.6", dropout) for dropout in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)),
    }
    for panel, omega in (("omega = 0.3", 0.3), ("omega = 0.6", 0.6)):
        own = {cell.line: cell for cell in cells if cell.panel == panel}
        assert set(own) >= {
            "stage 1 only", "user mean", "without noise", "GD-DR", "LFL-SGDMF, LDP-level noise",
            "cofactor's defaults",
        }  # fmt: skip
        settled = own["LFL-SGDMF, dropout 0"].recipe
        assert replace(settled, aggregate=OnDeviceMF.as_published().aggregate) == OnDeviceMF.as_published()
        assert (settled.aggregate.dropout, settled.rounds, settled.most_ratings) == (omega, 10, 1)
        assert own["LFL-SGDMF, LDP-level noise"].recipe == replace(settled, aggregate=PlainSum())
        assert own["GD-DR"].if_shuffled
        assert own["GD-DR"].recipe.rounds == 10
        assert own["without noise"].recipe == settled
        assert own["without noise"].epsilon is None


def test_figure_10_says_where_joining_beats_the_users_own_mean() -> None:
    def row(line: str, column: str, ours: float) -> Row:
        return Row(line=line, panel="omega = 0.3", column=column, ours=ours)

    rows = [
        row("LFL-SGDMF, dropout 0", "epsilon 1", 1.09),
        row("LFL-SGDMF, dropout 0", "epsilon 10", 1.05),
        row("cofactor's defaults", "epsilon 1", 0.9),
        row("user mean", ANY_EPSILON, 1.08),
    ]
    simulated, *found = devices.ours(rows)
    assert "secure sums are simulated" in simulated
    beside = "beside the user's own mean (1.080), which costs no privacy"
    assert found == [
        f"omega = 0.3: LFL-SGDMF, dropout 0, {beside}: lower at epsilon 10; not lower at epsilon 1.",
        f"omega = 0.3: cofactor's defaults, {beside}: lower at epsilon 1.",
    ]


@pytest.mark.slow
def test_figure_10_is_made_of_devices_that_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_DROPOUTS", {0.3: (0.0,), 0.6: (0.0, 0.5)})
    monkeypatch.setattr(devices, "_FEW", (10.0,))
    rows = FIGURES["figure10"].rows(material(), Effort(quick=True), nobody)
    refused = [row for row in rows if row.ours is None]
    assert [row.panel for row in refused] == ["per-rating"]
    assert "cannot protect single ratings" in refused[0].note
    local = [row for row in rows if row.line == "GD-DR"]
    assert len(local) == 2
    assert all("nobody does" in row.note for row in local)
    for row in rows:
        if row.epsilon_label is not None and row.line != "GD-DR" and row.ours is not None:
            assert row.private, row.name
    assert len(FIGURES["figure10"].findings(rows)) > len(devices.claims10())


def test_ten_times_as_many_devices_stand_beside_those_that_there_are() -> None:
    cells = devices.tenfold(material(), Effort(quick=True))
    assert {(cell.panel, cell.dealing.replicas) for cell in cells} == {
        ("every user once", 1),
        ("every user 10 times", 10),
    }
    lines = [{cell.line for cell in cells if cell.dealing.replicas == replicas} for replicas in (1, 10)]
    assert lines[0] == lines[1]
    assert "nobody should do so" in devices.ours_tenfold([])[0]


@pytest.fixture(scope="module")
def traffic() -> list[Row]:
    return FIGURES["figure2"].rows(material(), Effort(), nobody)


@pytest.mark.slow
def test_messages_hold_their_vectors_in_32_bits_and_little_else(traffic: list[Row]) -> None:
    found = {(row.panel[:6], row.line, row.column): row.ours for row in traffic}
    for panel, line, numbers in (
        ("69,878", "VFL-SGDMF", 69_878 * 20),
        ("69,878", "HFL-SGDMF", 10_677 * 20),
        ("69,878", "LFL-SGDMF", 10_677 * 20),
        ("60 use", "VFL-SGDMF", 60 * 20),
        ("60 use", "HFL-SGDMF", 40 * 20),
    ):
        once, both = found[panel, line, "one way"], found[panel, line, "both ways"]
        assert once is not None
        assert both is not None
        assert 0 <= once * 1e6 - 4 * numbers < 500
        assert 0 <= both * 1e6 - 8 * numbers < 1000


def test_the_papers_bytes_stand_beside_ours_at_its_own_shape_only(traffic: list[Row]) -> None:
    stated = {(row.panel, row.line, row.column): row for row in traffic if row.paper is not None}
    assert {panel for panel, _, _ in stated} == {"69,878 users and 10,677 items"}
    for row in stated.values():
        assert row.ours == pytest.approx(row.paper, abs=0.05)
    sentences = FIGURES["figure2"].findings(traffic)
    assert "5.59 MB one way" in sentences[0]
    assert "0.854 MB one way" in sentences[1]


@pytest.mark.slow
def test_on_movielens_1m_gradient_clipping_is_better_than_embedding_clipping(
    real_data: Callable[[str], Path],
) -> None:
    made = reproduce("pvldb22", "figure4", real_data("ml-1m.zip"), effort=Effort(quick=True))
    found = {(row.line, row.panel, row.column): row.ours for row in made.rows}
    for column, published in (("epsilon 1", 0.95), ("epsilon 10", 0.886)):
        embedding = found["embedding clipping", "per-rating", column]
        clipped = found["gradient clipping, C = 10", "per-rating", column]
        assert embedding is not None
        assert clipped is not None
        assert embedding == pytest.approx(published, abs=0.02)
        assert clipped < embedding - 0.01


@pytest.mark.slow
def test_on_movielens_1m_published_devices_beat_their_users_own_means_at_large_epsilons_only(
    real_data: Callable[[str], Path],
) -> None:
    made = reproduce("pvldb22", "figure10", real_data("ml-1m.zip"), effort=Effort(quick=True))
    found = {(row.line, row.panel, row.column): row.ours for row in made.rows}
    for column, wanted, error in (("epsilon 1", 1.09, 0.015), ("epsilon 10", 1.06, 0.015)):
        assert found["LFL-SGDMF, dropout 0", "omega = 0.3", column] == pytest.approx(wanted, abs=error)
    assert found["without noise", "omega = 0.3", ANY_EPSILON] == pytest.approx(0.94, abs=0.02)
    assert found["user mean", "omega = 0.3", ANY_EPSILON] == pytest.approx(1.08, abs=0.01)
    beside = next(
        each for each in made.findings if each.startswith("omega = 0.3: LFL-SGDMF, dropout 0, beside")
    )
    assert beside.endswith("lower at epsilon 10; not lower at epsilon 1.")


@pytest.mark.slow
def test_on_movielens_1m_ten_times_as_many_devices_are_much_better(
    real_data: Callable[[str], Path],
) -> None:
    made = reproduce("pvldb22", "figure10-tenfold", real_data("ml-1m.zip"), effort=Effort(quick=True))
    found = {(row.line, row.panel, row.column): row.ours for row in made.rows}
    assert found["LFL-SGDMF", "every user 10 times", "epsilon 10"] == pytest.approx(0.963, abs=0.02)
