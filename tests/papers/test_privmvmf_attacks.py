from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.attacks.solvers import METHODS
from cofactor.errors import ConfigError
from cofactor.federation.door import SUM
from cofactor.papers import privmvmf_attack_claims as claims
from cofactor.papers import privmvmf_attack_defences as behind
from cofactor.papers import privmvmf_attack_material as material
from cofactor.papers import privmvmf_attack_noise as noise
from cofactor.papers import privmvmf_attack_tables as tables
from cofactor.papers.cells import Effort
from cofactor.papers.privmvmf_attack_defences import BETTER, BUDGET, PLAIN, SECURE, TOLD
from cofactor.papers.privmvmf_attack_findings import findings3, findings6
from cofactor.papers.privmvmf_attack_material import OTHERS, attacked, recipe_of
from cofactor.papers.privmvmf_attack_noise import RULE, RULE_SIGNED, column_of, panel_of
from cofactor.papers.privmvmf_attack_tables import CONVERGED, NAMES, SIGN, Users, solvers_of
from cofactor.papers.privmvmf_attack_ways import (
    CHOSEN,
    ONE_ROUND,
    QUESTION,
    RANDOM,
    RATED,
    SECONDS,
    SIGNED,
    SOLVED,
    USUAL,
    ZEROS,
    under_noise,
)
from cofactor.papers.privmvmf_numbers import (
    ATTACKED,
    ATTRIBUTE,
    RATING,
    SEMI_INCL,
    SEMI_OBS,
    SGD_INCL,
    SGD_OBS,
    TABLE_3,
    TABLE_6,
)
from cofactor.papers.privmvmf_sides import Sided
from cofactor.papers.results import Row
from cofactor.progress import nobody
from cofactor.recipes.multiview_weights import InclUnc, ObsOnly
from tests.papers.sided import sided, write_sides

QUICK = Effort(quick=True)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Sided:
    return sided(tmp_path_factory.mktemp("sides"))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train for few rounds, and attack few users."""
    monkeypatch.setattr(material, "ROUND", 8)
    monkeypatch.setattr(tables, "QUICK_USERS", 8)
    monkeypatch.setattr(tables, "_QUICK_SLOW", 2)
    monkeypatch.setattr(tables, "_HYBR", 1)
    monkeypatch.setattr(noise, "ITEMS", 2)
    monkeypatch.setattr(noise, "FEW", noise.Users(observed=5, all_items=2, solvers=2))


def test_each_scenario_is_the_papers_setting_with_its_weights_and_its_way_to_move_vectors() -> None:
    found = {scenario: recipe_of(scenario) for scenario in ATTACKED}
    assert {name: (one.update, one.unrated) for name, one in found.items()} == {
        SEMI_OBS: ("semi-als", ObsOnly()),
        SEMI_INCL: ("semi-als", InclUnc(alpha=0.1)),
        SGD_OBS: ("sgd", ObsOnly()),
        SGD_INCL: ("sgd", InclUnc(alpha=0.1)),
    }
    for one in found.values():
        assert (one.factors, one.penalty, one.side_weight, one.adam_rate) == (6, 10.0, 1.0, 0.05)


@pytest.mark.parametrize("scenario", [SEMI_OBS, SGD_OBS])
def test_the_server_sees_single_uploads_of_those_it_attacks_and_no_other(sides: Sided, scenario: str) -> None:
    own = attacked(sides, scenario, users=5, seed=1)
    names = [f"user-{number}" for number in range(1, 6)]
    for uploads, round in ((own.before, 8), (own.after, 9)):
        assert [one.sender for one in uploads] == names
        assert {(one.users, one.round) for one in uploads} == {(1, round)}
    for one in own.before:
        [user] = own.truth.ratings[one.sender].user_ids
        rated = own.truth.ratings[one.sender].items
        assert user in sides.ratings.user_ids
        np.testing.assert_array_equal(np.flatnonzero(one.sent_items), np.sort(rated))
    assert own.truth.ratings[OTHERS].user_count == sides.ratings.user_count - 5
    # The attacked are not among those whose habits are known.
    known = own.knowing_habits().knowledge
    others = own.truth.ratings[OTHERS]
    assert known.values == own.knowledge.values
    assert known.common == pytest.approx([(others.values == value).mean() for value in known.values])
    assert len(own.needed(0)) == (2 if scenario == SGD_OBS else 1)
    assert [one.sender for one in own.only(slice(3, 5)).after] == names[3:]


def test_attacked_users_and_noise_follow_from_the_seed(sides: Sided) -> None:
    first, again, other = (attacked(sides, SEMI_OBS, users=4, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.before[0].item_rows, again.before[0].item_rows)
    assert not np.array_equal(first.before[0].item_rows, other.before[0].item_rows)
    noisy = [one.noisy(0.5, seed).before[0].item_rows for one, seed in ((first, 1), (again, 1), (first, 2))]
    np.testing.assert_array_equal(noisy[0], noisy[1])
    assert not np.array_equal(noisy[0], noisy[2])
    assert first.noisy(0.0, 1).before[0] is first.before[0]


def test_table_3_shows_one_round_the_papers_way_and_what_needs_no_attack(sides: Sided) -> None:
    rows = tables.table3(sides, QUICK, nobody)
    by = {(row.panel, row.line, row.column): row for row in rows}
    for scenario in ATTACKED:
        panel = f"ratings: {scenario}"
        lines = list(dict.fromkeys(row.line for row in rows if row.panel == panel))
        assert lines == [ONE_ROUND, SOLVED, SIGNED, ZEROS, USUAL, RANDOM]
        assert by[panel, ONE_ROUND, RATED].ours == 1.0
        assert by[panel, ONE_ROUND, QUESTION].ours == 1.0
        assert by[panel, SOLVED, RATING].paper == TABLE_3[scenario][RATING]
        assert by[panel, SOLVED, ATTRIBUTE].paper == TABLE_3[scenario][ATTRIBUTE]
        assert by[panel, SIGNED, RATING].paper is None
        assert (by[panel, SOLVED, SECONDS].ours or 0) > 0
        assert f"{CHOSEN[scenario].method} from" in by[panel, SOLVED, RATING].note
        # About half of all items are rated in these data.
        zeros = by[panel, ZEROS, RATING].ours
        assert zeros == 0.0 if scenario in (SEMI_OBS, SGD_OBS) else 0.3 < (zeros or 0) < 0.7
        assert by[panel, ZEROS, RATED].ours == 0.0
        assert by[panel, RANDOM, RATED].ours == pytest.approx(0.2)
    assert findings3(rows)


def test_table_6_tries_all_methods_from_all_starts_and_equation_42_both_ways() -> None:
    for scenario in ATTACKED:
        found = solvers_of(scenario).values()
        assert {one.method for one in found} == set(METHODS)
        assert any(one.printed for one in found) == ("InclUnc" in scenario)
        assert CHOSEN[scenario] in found
    assert {one.start for one in solvers_of(SGD_OBS).values()} == {"ones", "tenths", "random", "direction"}
    # A Jacobian for every item takes so long that it is tried once.
    assert [one.start for one in solvers_of(SEMI_INCL).values() if one.method == "hybr"] == ["tenths"]
    assert {method for names in NAMES.values() for method in names} == set(METHODS)


@pytest.mark.slow
def test_table_6_shows_both_signs_and_the_papers_methods(
    sides: Sided, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = solvers_of

    def few(scenario: str) -> dict[str, Any]:
        kept = {name: one for name, one in whole(scenario).items() if one.start in ("ones", "tenths")}
        return {name: replace(one, evaluations=100) for name, one in kept.items()}

    monkeypatch.setattr(tables, "solvers_of", few)
    rows = tables.table6(sides, QUICK, nobody)
    by = {(row.panel, row.line, row.column): row for row in rows}
    for scenario in ATTACKED:
        panel = f"ratings: {scenario}, {2 if scenario == SEMI_INCL else 4} users"
        for line in few(scenario):
            for column in (RATING, RATED, ATTRIBUTE, SIGN, CONVERGED, SECONDS):
                assert by[panel, line, column].ours is not None
        for name, numbers in TABLE_6[scenario].items():
            assert by[panel, f"the paper: {name}", RATING].paper == numbers[RATING]
    own = [by[f"ratings: {SEMI_OBS}, 4 users", "hybr from ones", column] for column in (SIGN, CONVERGED)]
    assert [(row.ours, row.note) for row in own] == [(1.0, ""), (1.0, "")]
    assert by[f"ratings: {SEMI_INCL}, 2 users", "hybr from tenths", RATED].note == "1 users only"
    said = findings6(rows)
    assert sum("Table III takes" in sentence for sentence in said) == 4


def test_methods_are_chosen_on_other_users_than_those_that_table_3_shows() -> None:
    users = Users(all=200, solvers=100, slow=25)
    for scenario in ATTACKED:
        for solver in solvers_of(scenario).values():
            sample = range(users.all)[tables._sample(solver, scenario, users)]
            assert not set(sample) & set(range(users.of_solvers(scenario)))
    assert users.of_solvers(SEMI_INCL) == 25
    assert {users.of_solvers(other) for other in (SEMI_OBS, SGD_OBS, SGD_INCL)} == {100}


def test_under_noise_all_factors_or_several_items_are_fixed_in_turn() -> None:
    assert under_noise(SEMI_OBS, items=10).fixed is under_noise(SEMI_INCL, items=10).fixed is None
    assert under_noise(SGD_OBS, items=10).fixed == under_noise(SGD_INCL, items=7).fixed + 3 == 10  # type: ignore[operator]


@pytest.mark.slow
def test_figures_show_what_noise_leaves_beside_levels(sides: Sided, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "ATTACKED", (SEMI_OBS, SGD_INCL))
    first, second = (make(sides, QUICK, nobody) for make in (noise.figure1, noise.figure2))
    panel = panel_of("ratings", SEMI_OBS, RATING)
    right = {(row.line, row.column): row.ours for row in first if row.panel == panel}
    assert [column for line, column in right if line == ONE_ROUND] == [column_of(b) for b in noise.FEW_SCALES]
    assert right[ONE_ROUND, "b = 0"] == right[RULE_SIGNED, "b = 0"] == 1.0
    assert (right[ONE_ROUND, "b = 2"] or 0) < 0.9
    assert (right[RULE_SIGNED, "b = 2"] or 0) < 0.9
    panels = {row.panel for row in first}
    assert panel_of("ratings", SGD_INCL, RATED) in panels
    # Under ObsOnly there are no others than rated items.
    assert panel_of("ratings", SEMI_OBS, RATED) not in panels
    assert {row.line for row in second} == {ONE_ROUND, RULE, RULE_SIGNED, ZEROS, RANDOM}
    assert claims.findings1(first) and claims.findings2(second)  # noqa: PT018


@pytest.mark.slow
def test_figure_3_shows_much_noise_where_all_items_are_sent(sides: Sided) -> None:
    rows = noise.figure3(sides, QUICK, nobody)
    assert {row.column for row in rows} == {"b = 1", "b = 100", "b = 10000"}
    assert all("InclUnc" in row.panel for row in rows)
    assert {row.panel.rsplit(": ")[-1] for row in rows} == {"rating", "rating, rated items only", "attribute"}
    assert claims.findings3(rows)


def test_behind_a_sum_there_is_one_upload_for_all(sides: Sided) -> None:
    own = attacked(sides, SEMI_OBS, users=5, seed=1, aggregate=behind.DEFENCES[SECURE].aggregate)
    [upload] = own.before
    assert (upload.sender, upload.users) == (SUM, sides.ratings.user_count)


@pytest.mark.slow
def test_defences_leave_no_more_than_guesses_do(sides: Sided, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {name: behind.DEFENCES[name] for name in (PLAIN, SECURE, BUDGET)}
    monkeypatch.setattr(behind, "QUICK_USERS", 6)
    monkeypatch.setattr(behind, "DEFENCES", kept)
    monkeypatch.setattr(behind, "ATTACKED", (SEMI_OBS, SGD_INCL))
    rows = behind.defences(sides, QUICK, nobody)
    right = {(row.panel, row.line): row.ours or 0.0 for row in rows if row.column == TOLD}
    better = {(row.panel, row.line): row.ours for row in rows if row.column == BETTER}
    for scenario in (SEMI_OBS, SGD_INCL):
        panel = f"ratings: {scenario}, 6 users"
        assert (better[panel, PLAIN], better[panel, SECURE], better[panel, BUDGET]) == (3, 0, 0)
        assert right[panel, PLAIN] == 1.0
        # 6 users of 20 ratings each: 0.2 is more than four standard errors.
        assert right[panel, SECURE] < right[panel, USUAL] + 0.2
        assert right[panel, BUDGET] < right[panel, USUAL] + 0.2


def test_a_library_that_is_not_installed_is_told_where_its_numbers_would_stand(
    sides: Sided, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise ConfigError("Lattice needs TenSEAL. Install it: pip install tenseal")

    monkeypatch.setattr("cofactor.crypto.lattice._tenseal", missing)
    monkeypatch.setattr(behind, "DEFENCES", {behind.ENCRYPTED: behind.DEFENCES[behind.ENCRYPTED]})
    monkeypatch.setattr(behind, "ATTACKED", (SEMI_OBS,))
    [row] = behind.defences(sides, QUICK, nobody)
    assert row.ours is None
    assert "pip install" in row.note


def test_attacks_are_made_from_the_command_line(tmp_path: Path, cofactor: Callable[..., Any]) -> None:
    write_sides(tmp_path / "ml-100k")
    made = cofactor("reproduce", "privmvmf", "table3", "--data", tmp_path, "--quick", "--json")
    assert made.code == 0, made.err
    assert made.json["data"]["seeds"] == 1
    assert any("Not there, and left out: ml-1m" in sentence for sentence in made.json["findings"])


def rows_of(panel: str, numbers: dict[str, dict[str, float]]) -> list[Row]:
    return [
        Row(line=line, panel=panel, column=column, ours=value)
        for line, columns in numbers.items()
        for column, value in columns.items()
    ]


def test_what_reproduces_and_what_zeros_have_is_said() -> None:
    numbers = {
        SOLVED: {RATING: 0.84, RATED: 0.1, ATTRIBUTE: 0.99},
        SIGNED: {RATED: 0.2},
        ONE_ROUND: {RATED: 1.0, SECONDS: 0.1},
        ZEROS: {RATING: 0.95},
    }
    said = findings3(rows_of(f"ml-1m: {SGD_INCL}", numbers))
    assert (
        "ml-1m: SGD, InclUnc, the paper's way: rating reproduced (0.840, paper 0.8182), attribute not "
        "reproduced, higher (0.990, paper 0.8474). Of rated items 0.100, and with signs put right 0.200."
        in said
    )
    assert any("zeros everywhere are right about 0.950" in sentence for sentence in said)
    assert "zeros everywhere" not in " ".join(findings3(rows_of(f"ml-1m: {SGD_OBS}", numbers)))


@pytest.mark.parametrize(
    ("hard", "verdict"), [(1.0, "not found from one round"), (0.5, "found from one round")]
)
def test_whether_a_scenario_is_harder_is_said_of_what_was_measured(hard: float, verdict: str) -> None:
    rows = [
        row
        for scenario in ATTACKED
        for row in rows_of(
            f"ml-1m: {scenario}",
            {
                SIGNED: {RATED: 0.9},
                ONE_ROUND: {RATED: hard if "InclUnc" in scenario else 1.0},
                SOLVED: {RATING: 0.9},
            },
        )
    ]
    [said] = [sentence for sentence in findings3(rows) if "counting unrated items makes" in sentence]
    assert f"; {verdict}" in said
    assert "not found its way" in said
    [all_of] = [sentence for sentence in findings3(rows) if "exceeds 80%" in sentence]
    assert f"of rated items, in {4 if hard == 1 else 2}." in all_of


def test_claims_about_noise_are_held_against_random_and_against_zeros() -> None:
    panel = panel_of("ml-1m", SEMI_INCL, RATING)
    columns = {"b = 0": 0.9, "b = 0.5": 0.85, "b = 2": 0.7}
    numbers = {RULE: columns, ZEROS: dict.fromkeys(columns, 0.8), RANDOM: dict.fromkeys(columns, 0.2)}
    said = claims.findings1(rows_of(panel, numbers))
    assert any("found, the paper's rule (+0.65 at least)" in sentence for sentence in said)
    [stable] = [sentence for sentence in said if "more than 50% above random" in sentence]
    assert "Not found" in stable
    assert "has more at b = 0, b = 0.5." in stable
    panel = panel_of("ml-1m", SEMI_OBS, ATTRIBUTE)
    below = {"b = 1": 0.6, "b = 2": 0.4}
    said = claims.findings2(rows_of(panel, {RULE: below, RANDOM: dict.fromkeys(below, 0.5)}))
    assert any("below random when b exceeds 1. Found (b = 2: -0.100" in sentence for sentence in said)
    panel = panel_of("ml-1m", SGD_OBS, RATING)
    said = claims.findings1(rows_of(panel, {RULE: {"b = 2": 0.35}, RANDOM: {"b = 2": 0.2}}))
    assert any("approaches random at b = 2. Not found" in sentence for sentence in said)


def test_a_defence_that_leaks_is_called_better() -> None:
    panel = f"ml-1m: {SEMI_OBS}"
    numbers = {USUAL: {TOLD: 0.3}, ZEROS: {RATING: 0.9}, SECURE: {TOLD: 0.31, RATING: 0.9, BETTER: 0.0}}
    leaks = numbers | {BUDGET: {TOLD: 0.5, RATING: 0.5, BETTER: 1.0}}
    [tight, none] = claims.findings_defences(rows_of(panel, numbers))
    assert "Clearly better: nothing. Not: secure sum (0.310, 0.900)." in tight
    assert "0 of 1 attacks" in none
    [loose, most] = claims.findings_defences(rows_of(panel, leaks))
    assert f"Clearly better: {BUDGET} (0.500, 0.500)." in loose
    assert "1 of 2 attacks" in most


@pytest.mark.slow
def test_one_round_tells_everything_about_users_of_movielens_100k(
    real_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(material, "ROUND", 20)
    monkeypatch.setattr(tables, "QUICK_USERS", 40)
    [own] = Sided.read_sides(real_data("ml-100k.inter"), ())
    rows = tables.table3(own, QUICK, nobody)
    right = {(row.panel, row.column): row.ours or 0 for row in rows if row.line == ONE_ROUND}
    for scenario in ATTACKED:
        assert right[f"ml-100k: {scenario}", RATED] >= 0.999
        assert right[f"ml-100k: {scenario}", QUESTION] >= 0.99
