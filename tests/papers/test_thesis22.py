from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cofactor.errors import ConfigError, DataError
from cofactor.papers import thesis22_data
from cofactor.papers.cells import Effort
from cofactor.papers.reproduce import reproduce, usual_seeds
from cofactor.papers.thesis22_data import (
    BETA,
    FARES,
    INCOME,
    NAMES,
    TAXI,
    TRIPS,
    Numbers,
    beta,
    income,
    read_numbers,
)
from cofactor.papers.thesis22_figures import (
    CHECKED,
    by_epsilon,
    granularities,
    shapes,
    what_is_measured,
    widths,
)
from cofactor.papers.thesis22_findings import findings2
from cofactor.papers.thesis22_methods import (
    ADMM,
    BINNED,
    EM,
    EMS,
    HAAR,
    HH,
    KS,
    MEAN,
    MEASURES,
    NARROW,
    PIECEWISE,
    QUANTILES,
    ROUNDING,
    VARIANCE,
    WASSERSTEIN,
    WEIGHTED,
    WIDE,
    Halves,
    all_askings,
    measured_by,
)
from cofactor.papers.thesis22_rows import Column, rows_of
from cofactor.progress import Progress, nobody
from cofactor.randomness import InsecureRandom, Random
from cofactor.survey.means import StochasticRounding

Command = Any
QUICK = Effort(seeds=2, quick=True)


def few(people: int = 4_000, buckets: int = 64) -> Numbers:
    return Numbers(name=BETA, values=beta(people).values, buckets=buckets)


def trips(folder: Path, **arrays: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    usual = {
        "pickup": np.array([0, 86_400 * 5 + 21_600, 43_200]),
        "fare_amount": np.array([3.0, -1.0, 60.0, 15.0]),
    }
    np.savez(folder / TRIPS, **(usual | arrays))
    return folder


def test_beta_is_the_sample_of_the_thesis() -> None:
    made = beta()
    assert (len(made.values), made.buckets) == (100_000, 256)
    # Five standard errors of the mean of Beta(5, 2), whose variance is 5/196.
    assert abs(made.values.mean() - 5 / 7) < 5 * (5 / 196 / 100_000) ** 0.5
    assert np.array_equal(made.values, beta().values)


def test_incomes_are_below_the_limit_and_most_of_them_are_round() -> None:
    made = income(50_000)
    dollars = np.rint(made.values * 2**19).astype(int)
    assert 0 <= made.values.min() <= made.values.max() < 1
    assert 0.98 < len(dollars) / 50_000 <= 1
    assert 0.55 < np.mean(dollars % 1_000 == 0) < 0.65
    shares, left = made.histogram(made.buckets), 512 * np.arange(40, 80)
    round_numbers = -(-left // 1_000) * 1_000 < left + 512
    assert shares[40:80][round_numbers].mean() > 2.5 * shares[40:80][~round_numbers].mean()


def test_a_histogram_is_of_the_people_as_they_are() -> None:
    numbers = Numbers(name="n", values=np.array([0.0, 0.2, 0.25, 1.0]), buckets=4)
    assert numbers.histogram(4).tolist() == [0.5, 0.25, 0.0, 0.25]


def test_taxis_are_read_as_times_of_day_and_fares(tmp_path: Path) -> None:
    found = {one.name: one for one in read_numbers(trips(tmp_path), NAMES, quick=True)}
    assert tuple(found) == NAMES
    assert found[TAXI].values.tolist() == [0.0, 0.25, 0.5]
    assert found[FARES].values.tolist() == [0.05, 0.25]
    (alone,) = read_numbers(tmp_path / TRIPS, [TAXI])
    assert alone.buckets == 1024


def test_without_a_folder_there_are_the_sets_that_are_made_here() -> None:
    found = read_numbers(None, NAMES, quick=True)
    assert [one.name for one in found] == [BETA, INCOME]
    assert all(len(one.values) <= 100_000 for one in found)


def test_a_folder_that_is_not_there_and_a_file_without_its_arrays_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        read_numbers(tmp_path / "nowhere", NAMES)
    np.savez(tmp_path / TRIPS, pickup=np.arange(3))
    with pytest.raises(DataError, match="does not hold an array of numbers fare_amount"):
        read_numbers(tmp_path, NAMES)
    for content in ("no arrays", ""):
        (tmp_path / TRIPS).write_text(content)
        with pytest.raises(DataError, match="does not hold"):
            read_numbers(tmp_path, NAMES)
    with pytest.raises(DataError, match="holds nobody's number for fares"):
        read_numbers(trips(tmp_path, fare_amount=np.array([-1.0, np.nan])), NAMES)


def test_a_folder_without_trips_leaves_taxis_out(tmp_path: Path) -> None:
    assert [one.name for one in read_numbers(tmp_path, NAMES, quick=True)] == [BETA, INCOME]


def test_table_2_follows_from_what_estimates_are() -> None:
    rows = what_is_measured(few(), QUICK, nobody)
    assert len(rows) == 4 * len(CHECKED) == 40
    assert {row.line for row in rows} == set(CHECKED)
    assert all(row.ours == row.paper for row in rows)
    assert [row.column for row in rows if row.line == HAAR and row.ours] == ["ranges"]
    assert [row.column for row in rows if row.line == ROUNDING and row.ours] == ["mean, variance"]


def test_what_can_be_measured_is_what_is_measured() -> None:
    assert measured_by("distribution") == list(MEASURES.values())
    for asking in all_askings(1.0, 64):
        found = asking.errors(few(500), InsecureRandom(1))
        assert {line: list(errors) for line, errors in found.items()} == {
            line: measured_by(gives) for line, gives in asking.gives.items()
        }


def test_methods_that_share_answers_ask_alike() -> None:
    for asking in all_askings(1.0, 64):
        if not isinstance(asking, Halves):
            first, *others = asking.estimators.values()
            for other in others:
                assert other.mechanism == first.mechanism
                assert (other.beside, other.buckets) == (first.beside, first.buckets)
                told = [
                    method.asked(few(50).values, InsecureRandom(3)).bounded.value for method in (first, other)
                ]
                assert np.array_equal(told[0], told[1])


def test_means_are_held_against_the_numbers_themselves_not_their_buckets() -> None:
    # Everybody at the left end of a bucket: the histogram's mean is half a bucket too high.
    numbers = Numbers(name="n", values=np.full(200_000, 0.5), buckets=2)
    found = Halves(line=ROUNDING, method=StochasticRounding(epsilon=20.0)).errors(numbers, InsecureRandom(1))
    assert found[ROUNDING][MEAN] < 0.01
    assert found[ROUNDING][VARIANCE] < 0.01


class Counted:
    """Errors that grow by one with each asking."""

    epsilon = 1.5

    def __init__(self) -> None:
        self.asked = 0
        self.keys: list[bytes] = []

    def errors(self, numbers: Numbers, random: Random) -> dict[str, dict[str, float]]:  # noqa: ARG002
        self.asked += 1
        self.keys.append(random.new_key().tobytes())
        return {"line": {"panel": float(self.asked)}}


def test_a_row_is_the_mean_of_repeats_with_its_standard_error() -> None:
    steps: list[Progress] = []
    (row,) = rows_of(few(), [Column(name="c", askings=[Counted()])], Effort(seeds=4), steps.append)
    assert (row.line, row.panel, row.column, row.ours) == ("line", "panel", "c", 2.5)
    # The standard deviation of 1, 2, 3, 4 is sqrt(5/3); over 2 it is the standard error.
    assert row.low == pytest.approx(2.5 - (5 / 3) ** 0.5 / 2)
    assert row.high == pytest.approx(2.5 + (5 / 3) ** 0.5 / 2)
    assert (row.epsilon_label, row.epsilon, row.delta, row.private) == (1.5, 1.5, 0.0, True)
    assert [(step.step, step.steps) for step in steps] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    (alone,) = rows_of(few(), [Column(name="c", askings=[Counted()])], Effort(seeds=1), nobody)
    assert (alone.ours, alone.low, alone.high) == (1.0, None, None)


def test_no_two_askings_share_their_chance() -> None:
    askings = [Counted(), Counted()]
    rows_of(few(), [Column(name="c", askings=askings)], Effort(seeds=3), nobody)
    keys = [key for asking in askings for key in asking.keys]
    assert len(set(keys)) == len(keys) == 6


def test_a_figure_comes_out_the_same_again() -> None:
    rows = by_epsilon((WASSERSTEIN,))
    first, second = (rows(few(), QUICK, nobody) for _ in range(2))
    assert first == second
    assert all(
        row.ours != again.ours for row, again in zip(first, rows(few(3_999), QUICK, nobody), strict=True)
    )


@pytest.mark.parametrize(
    ("measures", "lines"),
    [
        ((WASSERSTEIN, KS), {EMS, EM, ADMM, WEIGHTED, *BINNED}),
        ((NARROW, WIDE), {EMS, EM, ADMM, WEIGHTED, *BINNED, HH, HAAR}),
        ((MEAN, VARIANCE), {EMS, EM, ADMM, WEIGHTED, *BINNED, ROUNDING, PIECEWISE}),
        ((QUANTILES,), {EMS, EM, ADMM, WEIGHTED, *BINNED}),
    ],
)
def test_figures_by_epsilon_show_every_method_that_can_be_measured_so(
    measures: tuple[str, ...], lines: set[str]
) -> None:
    rows = by_epsilon(measures)(few(), QUICK, nobody)
    assert {row.panel for row in rows} == {f"beta: {measure}" for measure in measures}
    for measure in measures:
        own = [row for row in rows if row.panel == f"beta: {measure}"]
        assert {row.line for row in own} == lines
        assert len(own) == 3 * len(lines)
    assert list(dict.fromkeys(row.column for row in rows)) == ["epsilon 0.5", "epsilon 1.5", "epsilon 2.5"]
    assert all(row.ours is not None and 0 < row.ours < 1 for row in rows)


@pytest.mark.slow
def test_figure_2_says_that_our_bars_are_met_and_who_is_better_on_smooth_and_on_spiky_numbers() -> None:
    rows = by_epsilon((WASSERSTEIN, KS))
    smooth = findings2(rows(beta(), Effort(seeds=20), nobody))
    assert any("we demand" in one and one.endswith(" Met.") for one in smooth)
    assert any("EMS is better than HH-ADMM. Confirmed: 5 of 5" in one for one in smooth)
    spiky = findings2(rows(income(), Effort(seeds=20, quick=True), nobody))
    assert any("HH-ADMM performs better than EMS on incomes. Confirmed: 3 of 3" in one for one in spiky)


def test_shapes_are_shown_by_b() -> None:
    rows = shapes(few(), Effort(seeds=1, quick=True), nobody)
    assert len(rows) == 6 * 2
    assert {row.epsilon for row in rows} == {1.0}
    assert list(dict.fromkeys(row.column for row in rows)) == ["0.05", "0.25"]


def test_the_b_that_epsilon_settles_has_a_star_and_stands_in_its_place() -> None:
    rows = widths(few(), Effort(seeds=1, quick=True), nobody)
    columns = {
        panel: [row.column for row in rows if row.panel == panel] for panel in {row.panel for row in rows}
    }
    assert columns["epsilon 1"] == ["0.01", "0.1", "0.25", "*0.256", "0.38"]
    assert columns["epsilon 2"] == ["0.01", "0.1", "*0.129", "0.25", "0.38"]
    assert {row.line for row in rows} == {BETA}
    assert all(f"epsilon {row.epsilon:g}" == row.panel for row in rows)


def test_granularity_is_measured_by_its_own_buckets_and_by_the_finest() -> None:
    rows = granularities(few(), Effort(seeds=1, quick=True), nobody)
    assert {row.panel for row in rows} == {"beta: by its own buckets", "beta: by 2,048 buckets"}
    finest = {(row.panel, row.column): row.ours for row in rows if row.line == "2,048 buckets"}
    for column in ("epsilon 0.5", "epsilon 2.5"):
        own = finest["beta: by its own buckets", column]
        assert own == finest["beta: by 2,048 buckets", column]
    coarse = [row.ours for row in rows if (row.line, row.column) == ("256 buckets", "epsilon 1.5")]
    assert coarse[0] == pytest.approx(coarse[1], abs=1 / 256)


def test_repeats_are_twenty_and_few_if_quick() -> None:
    assert usual_seeds("thesis22") == 20
    assert usual_seeds("thesis22", quick=True) == 3
    assert (usual_seeds("hdpmf"), usual_seeds("hdpmf", quick=True), usual_seeds("pvldb22")) == (5, 1, 1)


def test_all_people_are_asked_unless_few_must_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(thesis22_data._MADE, BETA, lambda: beta(200_001))
    for quick, people in ((False, 200_001), (True, 66_667)):
        made = reproduce("thesis22", "table3.2", effort=Effort(quick=quick))
        assert made.data["people"] == people


def test_a_paper_about_ratings_needs_them() -> None:
    with pytest.raises(ConfigError, match="hdpmf needs ratings"):
        reproduce("hdpmf", "table3")
    with pytest.raises(ConfigError, match="thesis22 does not use a tag genome"):
        reproduce("thesis22", "table3.2", genome="tags.csv")


def test_the_command_makes_a_figure_without_any_file(
    tmp_path: Path, cofactor: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(thesis22_data._MADE, BETA, lambda: few(2_000))
    monkeypatch.setitem(
        thesis22_data._MADE, INCOME, lambda: Numbers(name=INCOME, values=income(2_000).values, buckets=64)
    )
    plot = tmp_path / "figure.svg"
    words = ("reproduce", "thesis22", "figure3.2", "--quick", "--seeds", 2, "--plot", plot)
    done = cofactor(*words, "--json")
    assert done.code == 0, done.err
    assert done.json["data"] == {"name": BETA, "people": 2_000, "buckets": 64, "seeds": 2}
    assert [one["name"] for one in done.json["more_data"]] == [INCOME]
    assert done.json["findings"][0] == "Not there, and left out: taxi, fares."
    assert "(beta, income-like)" in plot.read_text()
    printed = cofactor(*words, "-q")
    assert "beta, 2,000 people, 64 buckets; income-like" in printed.out
    first = done.json["rows"][0]
    assert f"{first['ours']:.5f} +- {(first['high'] - first['low']) / 2:.5f}" in printed.out


def test_the_command_prints_table_2(cofactor: Command) -> None:
    done = cofactor("reproduce", "thesis22", "table3.2")
    assert done.code == 0, done.err
    assert "all 40 places as in the thesis" in done.out
