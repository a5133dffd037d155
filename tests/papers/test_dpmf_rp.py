from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest

from cofactor.errors import DataError
from cofactor.federation.federation import Federation
from cofactor.papers.cells import Effort
from cofactor.papers.dpmf_rp import FIGURES
from cofactor.papers.dpmf_rp_cases import BIASES, OWN_MEAN, POPULARITY, delta_for
from cofactor.papers.dpmf_rp_findings import against_paper, against_trivial, best_at, other_data
from cofactor.papers.dpmf_rp_measures import F1, MEASURES, RANKING, RESCALED, RMSE
from cofactor.papers.dpmf_rp_method import facts_of, fresh, labelled, published, trained
from cofactor.papers.dpmf_rp_numbers import CASES, CENTRAL, TABLE_2, TABLE_5, TABLE_7, VARIANCE
from cofactor.papers.dpmf_rp_tables import findings7
from cofactor.papers.material import Material
from cofactor.papers.reproduce import reproduce
from cofactor.papers.results import Reproduction, Row
from cofactor.privacy.accountant import spent
from cofactor.recipes.projected import ProjectedMF
from cofactor.recipes.projected_paper import paper_epsilon
from cofactor.recipes.projected_steps import padded
from cofactor.recipes.sums import PlainSum, SecureSum
from tests.papers.making import material, write

QUICK = Effort(quick=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small ratings under the name of MovieLens 100K."""
    place = tmp_path_factory.mktemp("data")
    write(place / "ml-100k")
    return place


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train for three rounds."""
    whole = ProjectedMF.as_published

    def shortened(data: Literal["ml-100k", "ml-5m", "yelp"]) -> ProjectedMF:
        return replace(whole(data), rounds=3)

    monkeypatch.setattr(ProjectedMF, "as_published", shortened)


def lines_of(made: Reproduction) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in made.rows:
        found.setdefault(row.line, []).append(row.column)
    return found


def test_all_tables_and_figures_can_be_asked_for() -> None:
    assert set(FIGURES) == {"table1", "table2", "table5", "table7", "figure2", "figure3", "figure4"}


def test_the_papers_setting_is_the_one_of_its_data() -> None:
    for name, factors, error in (("ml-100k", 14, 1.0), ("ml-1m", 14, 1.5), ("yelp", 20, 1.5)):
        recipe = published(Material(name=name, ratings=material().ratings))
        assert (recipe.factors, recipe.largest_error, recipe.participation) == (factors, error, 0.1)
        assert (recipe.penalty, recipe.item_penalty, recipe.confidence) == (0.25, 0.9, 15)
        assert (recipe.learning_rate, recipe.first_decay, recipe.second_decay) == (0.05, 0.9, 0.8)
        assert recipe.user_limit == 0.001
        assert (recipe.sketch, fresh(Material(name=name, ratings=material().ratings)).sketch) == (
            "fixed",
            "fresh",
        )


def test_coins_of_a_label_spend_it_by_equation_18_and_truly_spend_more() -> None:
    facts = facts_of(material().ratings)
    recipe, loss = labelled(published(material()), facts, 1.0)
    assert recipe.theta is not None
    assert recipe.trials == 1
    rows = recipe.row_count(facts)
    label = paper_epsilon(
        theta=recipe.theta, trials=1, rows=rows, factors=14, participants=recipe.asked(facts), rounds=60
    )
    assert label == pytest.approx(1.0)
    events = recipe.schedule(facts, "user", "").events()
    assert [event.dimension for event in events] == [padded(rows) * 14]
    assert [event.count for event in events] == [60]
    true = spent(events, loss.delta, unit="user", adjacency="replace").epsilon
    assert loss.epsilon == pytest.approx(true)
    assert loss.delta == delta_for(60)
    assert loss.epsilon > 5


def test_without_a_secure_sum_coins_are_those_of_one_device() -> None:
    facts = facts_of(material().ratings)
    with_sum, _ = labelled(published(material()), facts, 1.0)
    without, loss = labelled(replace(published(material()), aggregate=PlainSum()), facts, 1.0)
    assert with_sum.theta is not None
    assert without.theta is not None
    # Theta grows about with the root of beta n, 6 here.
    assert 2 < with_sum.theta / without.theta < 6**0.5
    assert loss.epsilon > 5


def test_training_at_a_label_tosses_its_very_coins_and_is_charged_what_is_shown() -> None:
    ratings = material().ratings
    federation = Federation.on_device(ratings, scale=ratings.scale)
    for aggregate in (SecureSum(dropout=0.0, colluding=0.0), PlainSum()):
        short = replace(published(material()), rounds=2, aggregate=aggregate)
        recipe, loss = labelled(short, federation.facts, 1.0)
        run = trained(recipe, federation, loss, 1)
        assert (run.recipe["theta"], run.recipe["trials"]) == (recipe.theta, recipe.trials)
        assert run.guarantee.epsilon == pytest.approx(loss.epsilon, rel=1e-4)


@pytest.mark.usefixtures("short")
def test_table_2_shows_the_paper_ours_what_is_true_and_what_is_trivial(folder: Path) -> None:
    made = reproduce("dpmf-rp", "table2", folder, effort=QUICK)
    lines = lines_of(made)
    factors = [RMSE, RESCALED, *RANKING]
    private = [f"DPMF-RP, {which}" for which in ("Algorithm 2, label 1", "fresh sketches, label 1")]
    for line in (*private, "DPMF-RP, fresh sketches, label 100", "DPMF-RP, fresh sketches, no noise"):
        assert lines[line] == factors
    assert lines[CENTRAL][:6] == factors
    assert lines[POPULARITY] == lines["private popularity, label 1"] == list(RANKING)
    assert lines[OWN_MEAN] == [RMSE]
    assert lines[BIASES] == list(MEASURES)
    rows = {(row.line, row.column): row for row in made.rows}
    assert rows[private[0], F1].paper == rows[private[1], F1].paper == 0.2189
    assert rows[CENTRAL, F1].paper == 0.2451
    labelled_rows = [row for row in made.rows if row.epsilon_label is not None]
    assert {row.epsilon_label for row in labelled_rows} == {1.0, 100.0}
    assert all(row.epsilon is not None and row.delta for row in labelled_rows)
    assert not any(row.private for row in labelled_rows if row.epsilon_label == 1)
    assert rows["private popularity, label 1", F1].epsilon == rows[private[0], F1].epsilon
    assert made.findings[0] == "Not there, and left out: ml-1m, yelp."
    divided = [row for row in made.rows if row.panel == "ml-100k, mAP"]
    assert [row.paper for row in divided] == [0.1395] * 3


@pytest.mark.usefixtures("short")
def test_table_7_leaves_out_one_part_after_another(folder: Path) -> None:
    made = reproduce("dpmf-rp", "table7", folder, effort=QUICK)
    rows = {(row.line, row.column): row for row in made.rows}
    labels = {line: rows[line, F1].epsilon_label for line, column in rows if column == F1}
    assert [labels[line] for line in (CASES[0], CASES[3])] == [None, None]
    assert [labels[f"{line}, label 1"] for line in ("DPMF-RP", CASES[1], CASES[2])] == [1.0] * 3
    assert rows[f"{CASES[1]}, label 1", RMSE].paper == 1.10
    assert sum("the paper says" in sentence for sentence in made.findings) == 2


@pytest.mark.usefixtures("short")
def test_table_5_groups_users_by_their_ratings(folder: Path) -> None:
    made = reproduce("dpmf-rp", "table5", folder, effort=QUICK)
    assert lines_of(made)[CENTRAL] == ["[0, 25)", VARIANCE, "mean of groups"]
    assert {"DPMF-RP, label 1", "DPMF-RP, label 1, rescaled", OWN_MEAN, BIASES} < set(lines_of(made))


@pytest.mark.usefixtures("short")
def test_figure_2_splits_errors_between_projection_and_noise(folder: Path) -> None:
    made = reproduce("dpmf-rp", "figure2", folder, effort=QUICK)
    value = {(row.panel, row.line, row.column): row.ours or 0.0 for row in made.rows}
    for panel in (RMSE, RESCALED):
        three, whole = (value[panel, "label 1, beta 0.1", f"m/p = {ratio}"] for ratio in (1, 3))
        one, four = (value[panel, "no noise, beta 0.1", f"m/p = {ratio}"] for ratio in (1, 3))
        split = f"{panel}: error analysis at m/p = 3", "label 1, beta 0.1"
        projection, noise = value[*split, "projection error"], value[*split, "privatisation error"]
        assert projection == pytest.approx(((four - one) + (whole - three)) / 2)
        assert noise == pytest.approx(((three - one) + (whole - four)) / 2)
        # Together they are all that the whole method adds to case 1.
        assert projection + noise == pytest.approx(whole - one)
        share = value.get((*split, "part of privatisation"))
        if min(projection, noise) > 0:
            assert share == pytest.approx(noise / (whole - one))
        else:
            assert share is None


def row(line: str, column: str, ours: float, paper: float | None = None, **more: float) -> Row:
    return Row(line=line, panel="yelp, 3 users", column=column, ours=ours, paper=paper, **more)  # type: ignore[arg-type]


def test_what_is_near_the_paper_is_reproduced_and_what_is_not_is_told_with_both_numbers() -> None:
    found = against_paper([row("a", F1, 0.21, 0.2), row("a", RMSE, 1.5, 1.0), row("b", F1, 0.2, 0.2)])
    assert found == [
        "yelp, 3 users: a, reproduced in part: within 15% of the paper F1; not RMSE (1.5, paper 1).",
        "yelp, 3 users: b, reproduced: all within 15% of the paper.",
    ]
    assert against_paper([row("a", F1, 0.1, 0.2)]) == [
        "yelp, 3 users: a, not reproduced: F1 (0.1, paper 0.2)."
    ]
    assert other_data([row("a", F1, 0.1)])[0].startswith("yelp: the paper's numbers are for another sample")


def test_private_lines_are_held_against_what_is_trivial() -> None:
    rows = [
        row("a", F1, 0.21, epsilon_label=1.0, epsilon=9.0, delta=1e-5),
        row("a", RMSE, 1.2, epsilon_label=1.0, epsilon=9.0, delta=1e-5),
        row(POPULARITY, F1, 0.3),
        row("private popularity, label 1", F1, 0.2, epsilon=9.0, delta=1e-5),
        row(OWN_MEAN, RMSE, 1.0),
    ]
    assert against_trivial(rows) == [
        "yelp, 3 users: a (truly epsilon 9, delta 1e-05, for each user): F1 0.210 better than private "
        "popularity, label 1 (0.200), not better than popularity (0.300); RMSE 1.200 not better than user's "
        "own mean (1.000)."
    ]


def test_a_best_setting_is_found_only_where_settings_differ_by_more_than_chance() -> None:
    def line(**values: float) -> dict[str, Row]:
        ends = {"low": 0.9, "high": 1.1}
        return {column: row("a", column, value, **ends) for column, value in values.items()}

    assert best_at(line(a=2.0, b=1.0, c=3.0), "b", lowest=True) == "Found (3.000 to 1.000, +- 0.100)"
    assert best_at(line(a=2.0, b=1.0, c=3.0), "b", lowest=False).startswith("Not found: it is best at c")
    assert best_at(line(a=1.0, b=1.05), "b", lowest=False).startswith("Not to be seen: all are alike")
    assert best_at(line(a=1.0), "a", lowest=False).startswith("Not to be seen")


def test_without_a_secure_sum_results_are_worse_only_if_intervals_say_so() -> None:
    lines = (f"{CASES[1]}, label 1", "DPMF-RP, label 1", CASES[0], f"{CASES[2]}, label 1", CASES[3])

    def found(width: float) -> str:
        values = dict.fromkeys(lines, 0.2) | {lines[0]: 0.1}
        rows = [row(line, F1, v, low=v - width, high=v + width) for line, v in values.items()]
        return next(each for each in findings7(rows) if "without a secure sum" in each)

    assert "Found (F1: case 2" in found(0.01)
    assert "Not found" in found(0.06)


def test_the_papers_tables_are_whole() -> None:
    for table in (TABLE_2, TABLE_7):
        assert set(table) == {"ML100K", "ML5M", "Yelp"}
        assert all(list(numbers) == list(MEASURES) for lines in table.values() for numbers in lines.values())
    # The variance of the paper's own group means is what it prints, about.
    for line, printed in ((TABLE_5[CENTRAL], 0.23), (TABLE_5["DPMF-RP"], 0.31)):
        groups = [value for column, value in line.items() if column != VARIANCE]
        mean = sum(groups) / 5
        assert sum((group - mean) ** 2 for group in groups) / 5 == pytest.approx(printed, abs=0.01)


def test_yelp_comes_as_arrays_and_a_file_without_them_is_told(tmp_path: Path) -> None:
    own = material().ratings
    np.savez(tmp_path / "yelp-hin.npz", user=own.users, item=own.items, rating=own.values)
    [found] = Material.read_all(tmp_path, ("ml-100k", "yelp"))
    assert found.name == "yelp"
    assert len(found.ratings) == len(own)
    assert (found.ratings.values == own.values).all()
    assert Material.read(tmp_path / "yelp-hin.npz").name == "yelp"
    np.savez(tmp_path / "yelp-hin.npz", user=own.users)
    with pytest.raises(DataError, match="does not hold the arrays user, item and rating"):
        Material.read_all(tmp_path, ("yelp",))


def test_a_table_of_yelp_reviews_keeps_the_last_of_two_and_users_with_ten(tmp_path: Path) -> None:
    rows = [(user, item, 1 + (user + item) % 5) for user in range(12) for item in range(6 + user)]
    columns = ("user_id", "business_id", "stars")
    frame = {name: [row[at] for row in (*rows, (11, 0, 5))] for at, name in enumerate(columns)}
    pl.DataFrame(frame).write_parquet(tmp_path / "yelp.parquet")
    [found] = Material.read_all(tmp_path, ("yelp",))
    assert found.name == "yelp"
    assert found.ratings.by_user.sizes.min() == 10
    last = found.ratings.user_row(11), found.ratings.item_row(0)
    mine = (found.ratings.users == last[0]) & (found.ratings.items == last[1])
    assert found.ratings.values[mine].tolist() == [5.0]


@pytest.mark.slow
def test_on_movielens_100k_the_papers_ranking_comes_out_without_noise_and_only_so(
    real_data: Callable[[str], Path],
) -> None:
    made = reproduce("dpmf-rp", "table2", real_data("ml-100k.inter"), effort=QUICK)
    f1 = {row.line: row.ours or 0.0 for row in made.rows if row.column == F1}
    assert f1[CENTRAL] == pytest.approx(0.2451, rel=0.15)
    assert f1["DPMF-RP, fresh sketches, no noise"] == pytest.approx(0.2189, rel=0.15)
    for line in ("DPMF-RP, Algorithm 2, label 1", "DPMF-RP, fresh sketches, label 1"):
        assert f1[line] < 0.05 < f1["private popularity, label 1"] < f1[POPULARITY] + 0.02
    true = {row.epsilon for row in made.rows if row.epsilon_label == 1}
    assert all(epsilon is not None and 14 < epsilon < 15 for epsilon in true)
    divided = {row.column: row.ours for row in made.rows if row.panel == "ml-100k, mAP"}
    assert divided["divided by 10"] == pytest.approx(0.1395, rel=0.15)
    assert (divided["divided by the hits (equation 56)"] or 0.0) > 0.4
